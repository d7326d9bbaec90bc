"""Results in two files, JSON and Markdown: all results so far are on disk at any time."""

import json
import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.harness.grid import Cell, name_of
from benchmarks.harness.turns import TIME_WAS_UP
from benchmarks.harness.worker import Record
from gpu_encode.scale.files.staging import publish

Document = dict[str, Any]
# Settings that must be the same in two runs if one is to continue the other.
SAME = ("device", "cores", "commit", "versions", "quick")
BAD = ("wrong", "failed")


class RefusedError(Exception):
    """Results in the folder would be lost, or belong to another run."""


def save(document: Document, path: Path, text: str) -> None:
    """Write a document (a line for each cell) and its report, both or neither."""
    path.parent.mkdir(parents=True, exist_ok=True)
    top = json.dumps({key: value for key, value in document.items() if key != "cells"}, indent=1)
    cells = ",\n".join(f"  {json.dumps(cell)}" for cell in document["cells"])
    with tempfile.TemporaryDirectory(prefix=".partial-", dir=path.parent) as folder:
        data, report = Path(folder, "results"), Path(folder, "report")
        data.write_text(f'{top[:-2]},\n "cells": [\n{cells}\n ]\n}}\n')
        report.write_text(text)
        publish(Path(folder), [(data, path), (report, path.with_suffix(".md"))])


class Results:
    """Measured cells in a folder; each has the axes of the cell, the name of its grid, and a record of each contender.

    Parameters
    ----------
    path : Path
        The JSON file.
    document : dict
    report : callable
        Makes Markdown from the document.
    """

    def __init__(self, path: Path, document: Document, report: Callable[[Document], str]) -> None:
        self.path, self.document, self.report = path, document, report

    @classmethod
    def open(cls, path: Path, head: Document, report: Callable[[Document], str], resume: bool = False) -> "Results":
        """Start new results, or continue the results in the folder.

        Raises
        ------
        RefusedError
            If finished cells would be lost, or if the file has results of other settings.
        """
        earlier: Document | None = json.loads(path.read_text()) if path.exists() else None
        if earlier is not None and resume:
            differing = [
                f"{name} {earlier.get(name)}, now {head.get(name)}"
                for name in SAME
                if earlier.get(name) != head.get(name)
            ]
            if differing:
                message = f"{path} is of another run: {'; '.join(differing)}. --out names another folder"
                raise RefusedError(message)
            return cls(path, earlier | {"status": "running"}, report)
        if earlier is not None and earlier["cells"] and not earlier.get("quick"):
            message = (
                f"{path} holds {len(earlier['cells'])} cells: --resume goes on with them, --out names another folder"
            )
            raise RefusedError(message)
        begun = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(path, {**head, "begun": begun, "status": "running", "cells": []}, report)

    @property
    def cells(self) -> list[Record]:
        """The measured cells so far."""
        return self.document["cells"]

    def find(self, cell: Cell) -> Record | None:
        """Find the record of a cell."""
        return next((measured for measured in self.cells if cell.items() <= axes_of(measured).items()), None)

    def has(self, cell: Cell, names: Sequence[str]) -> bool:
        """Whether a cell need not be run: all contenders were asked, and none lacked time, was wrong or broke."""
        records = (self.find(cell) or {"contenders": {}})["contenders"]
        return all(
            name in records and records[name].get("said") != TIME_WAS_UP and records[name]["status"] not in BAD
            for name in names
        )

    def guess(self, cell: Cell, name: str) -> float | None:
        """Estimate the seconds of a contender, in proportion to its time for the nearest smaller number of rows."""
        others, known = {axis: value for axis, value in cell.items() if axis != "rows"}, []
        for measured in self.cells:
            record = measured["contenders"].get(name, {})
            # A contender that was not run on fewer rows would take at least as long as was estimated then.
            seconds = record.get("seconds", record.get("about"))
            if (
                others.items() <= axes_of(measured).items()
                and measured.get("rows", 0) < cell.get("rows", 0)
                and seconds
            ):
                known.append((measured["rows"], seconds * cell["rows"] / measured["rows"]))
        return max(known)[1] if known else None

    def add(self, cell: Cell, records: dict[str, Record]) -> None:
        """Replace a cell, or add it at the end; times of one cell are compared, so all of them are from one run."""
        earlier = self.find(cell)
        if earlier is None:
            self.cells.append({**cell, "contenders": records})
        else:
            earlier["contenders"] = records
        self.save()

    def end(self, status: str) -> None:
        """Record how the run ended."""
        self.document["status"] = status
        self.save()

    def wrong(self) -> list[str]:
        """List the failures: wrong answers of any contender, and contenders that broke."""
        return [
            f"{name} ({name_of(axes_of(cell))}): {record['status']}"
            for cell in self.cells
            for name, record in cell["contenders"].items()
            if record["status"] in BAD
        ]

    def save(self) -> None:
        """Write both files, or neither."""
        save(self.document, self.path, self.report(self.document))


def axes_of(record: Record) -> Cell:
    """Give the axes of a measured cell."""
    return {axis: value for axis, value in record.items() if axis != "contenders"}
