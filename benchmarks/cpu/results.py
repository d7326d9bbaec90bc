"""cpu.json and cpu.md: all that is known so far, on disk at any time."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from benchmarks.cpu.grid import Cell
from benchmarks.cpu.report import markdown
from benchmarks.rapids.results import RefusedError
from gpu_encode.cli.whole_files import whole_files

Document = dict[str, Any]
Record = dict[str, Any]
# What has to be the same for two runs to be one.
SAME = ("cpu", "cores", "commit", "versions", "quick")
BAD = ("wrong", "failed")


def differences(found: Document, head: Document) -> list[str]:
    """What differs between results and a run that would go on with them."""
    return [f"{name} {found.get(name)}, now {head.get(name)}" for name in SAME if found.get(name) != head.get(name)]


def results_in(found: Document) -> str:
    """What a run left, in words; nothing where it left nothing."""
    cells, small, scaling = (len(found.get(name, [])) for name in ("cells", "small", "scaling"))
    held = {f"{cells} cells": cells, "results on small data": small, f"{scaling} points of scaling": scaling}
    return ", ".join(words for words, count in held.items() if count)


class Results:
    """Results in a folder.

    Parameters
    ----------
    folder : Path
    document : dict
    """

    # Of both files.
    stem = "cpu"

    def __init__(self, folder: Path, document: Document) -> None:
        self.folder, self.document = folder, document

    @classmethod
    def open(cls, folder: Path, head: Document, resume: bool = False) -> Self:
        """Begin results, or go on with those in the folder.

        Raises
        ------
        RefusedError
            If finished cells would be lost, or the folder holds results of other settings.
        """
        path = folder / f"{cls.stem}.json"
        found: Document | None = json.loads(path.read_text()) if path.exists() else None
        if found is not None and resume:
            if differing := differences(found, head):
                message = f"{path} is of another run: {'; '.join(differing)}. --out names another folder"
                raise RefusedError(message)
            return cls(folder, found | {"status": "running"})
        if found is not None and not found.get("quick") and (held := results_in(found)):
            message = f"{path} holds {held}: --resume goes on with them, --out names another folder"
            raise RefusedError(message)
        begun = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(folder, {**head, "begun": begun, "status": "running", "cells": [], "small": {}, "scaling": []})

    @property
    def cells(self) -> list[Record]:
        """Cells so far."""
        found: list[Record] = self.document["cells"]
        return found

    def cell(self, described: Record) -> Record | None:
        """What is known of a cell."""
        alike = (found for found in self.cells if all(found[key] == value for key, value in described.items()))
        return next(alike, None)

    def has(self, cell: Cell, names: list[str]) -> bool:
        """Whether a cell needs no run: all were asked, and none of them was wrong or broke."""
        found = self.cell(cell.described)
        records = {} if found is None else found["contenders"]
        return all(name in records and records[name]["status"] not in BAD for name in names)

    def guess(self, cell: Cell, name: str) -> float | None:
        """Seconds that a contender will take, in proportion to those of the nearest smaller number of rows."""
        known = []
        for found in self.cells:
            alike = all(found[key] == value for key, value in cell.described.items() if key != "rows")
            record = found["contenders"].get(name, {})
            # What was not run on fewer rows would take at least as long as was known then.
            seconds = record.get("seconds", record.get("about"))
            if alike and found["rows"] < cell.rows and seconds is not None:
                known.append((found["rows"], seconds * cell.rows / found["rows"]))
        return max(known)[1] if known else None

    def add(self, cell: Cell, records: dict[str, Record]) -> dict[str, Record]:
        """Put a cell where it was, or at the end, and give what is kept of it."""
        earlier = self.cell(cell.described)
        if earlier is None:
            self.cells.append({**cell.described, "contenders": records})
        else:
            # Times of one cell are compared, so that all are of one run.
            earlier["contenders"] = records
        self.save()
        return records

    def end(self, status: str) -> None:
        """Say how it ended."""
        self.document["status"] = status
        self.save()

    def wrong(self) -> list[str]:
        """What must not be: wrong codes of anybody, and contenders that broke."""
        found = [
            f"{name} ({cell['work']}, {cell['keys']}, {cell['categories']:,} categories): {record['status']}"
            for cell in self.cells
            for name, record in cell["contenders"].items()
            if record["status"] in BAD
        ]
        rows = [*self.document["scaling"], *self.document["small"].get("wrong", [])]
        return found + [str(row["wrong"]) for row in rows if row.get("wrong")]

    def save(self) -> None:
        """Write both files, or neither."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with whole_files(self.folder / f"{self.stem}.json", self.folder / f"{self.stem}.md") as [data, text]:
            data.write_text(json.dumps(self.document, indent=1) + "\n")
            text.write_text(self.markdown())

    def markdown(self) -> str:
        """Give the results to read."""
        return markdown(self.document)
