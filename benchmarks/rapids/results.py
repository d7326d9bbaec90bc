"""rapids.json and rapids.md: all that is known so far, on disk at any time."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from benchmarks.gpu.tables import Document, Row
from benchmarks.rapids.grid import Cell
from benchmarks.rapids.measurement import TIME_WAS_UP
from benchmarks.rapids.tables import markdown
from gpu_encode.cli.whole_files import whole_files

STAND_IN = "pandas stands in for cuDF: times mean nothing"
# What has to be the same for two runs to be one.
SAME = ("device", "commit", "frames", "dtype", "repeats", "memory resource", "tiny")


def complete(cell: Row, contenders: Iterable[str]) -> bool:
    """Whether a cell needs no second run: it was skipped, or every contender had its time."""
    records = cell["contenders"]
    if "skipped" in cell:
        return True
    return set(contenders) <= set(records) and not any(TIME_WAS_UP in str(record) for record in records.values())


class Results:
    """Results in a folder.

    Parameters
    ----------
    folder : Path
    document : dict
    """

    def __init__(self, folder: Path, document: Document) -> None:
        self.folder, self.document = folder, document

    @classmethod
    def open(cls, folder: Path, head: Document, contenders: Iterable[str] = (), resume: bool = False) -> Self:
        """Begin results, or go on with those of the same device, commit and settings in the folder.

        Parameters
        ----------
        folder : Path
        head : dict
            Device and settings.
        contenders : list of str
            Cells that lack one of them, or the time for one, are measured again.
        resume : bool
        """
        path = folder / "rapids.json"
        if resume and path.exists():
            found = cls(folder, json.loads(path.read_text()))
            if all(found.document.get(name) == head[name] for name in SAME):
                found.cells[:] = [cell for cell in found.cells if complete(cell, contenders)]
                found.note_killed()
                return found
        begun = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(folder, {**head, "begun": begun, "status": "running", "now": None, "cells": []})

    def has(self, cell: Cell) -> bool:
        """Whether a cell was tried before."""
        return any(all(found[key] == value for key, value in cell.described.items()) for found in self.cells)

    @property
    def cells(self) -> list[dict[str, Any]]:
        """Cells so far."""
        found: list[dict[str, Any]] = self.document["cells"]
        return found

    def note_killed(self) -> None:
        """Write down the cell in which an earlier run was killed, so that this one is not."""
        if self.document["now"] is not None:
            self.cells.append({**self.document["now"], "skipped": "the run was killed in it", "contenders": {}})
            self.document["now"] = None

    def begin(self, cell: Cell) -> None:
        """Say which cell is being measured."""
        self.document["now"] = cell.described
        self.save()

    def add(self, cell: Cell, contenders: dict[str, Row], skipped: str = "") -> None:
        """Add a cell."""
        self.document["now"] = None
        self.cells.append({**cell.described, "contenders": contenders} | ({"skipped": skipped} if skipped else {}))
        self.save()

    def end(self, status: str) -> None:
        """Say how it ended."""
        self.document["status"] = status
        self.save()

    def wrong(self) -> list[str]:
        """What must not be: wrong codes of anybody, and ours broken."""
        return [
            f"{name}: {record['status']}"
            for cell in self.cells
            for name, record in cell["contenders"].items()
            if record["status"] == "wrong" or (name in ("ours", "cpu") and record["status"] == "failed")
        ]

    def save(self) -> None:
        """Write both files, or neither."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with whole_files(self.folder / "rapids.json", self.folder / "rapids.md") as [data, text]:
            data.write_text(json.dumps(self.document, indent=1) + "\n")
            text.write_text(markdown(self.document))
