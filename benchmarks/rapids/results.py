"""rapids.json and rapids.md: all that is known so far, on disk at any time."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from benchmarks.gpu.tables import Document, Row
from benchmarks.rapids.grid import Cell
from benchmarks.rapids.measurement import OURS, TIME_WAS_UP
from benchmarks.rapids.tables import markdown
from gpu_encode.cli.whole_files import whole_files

STAND_IN = "pandas stands in for cuDF: nothing was measured"
# What has to be the same for two runs to be one.
SAME = ("device", "commit", "frames", "dtype", "repeats", "memory resource", "tiny", "versions")


class RefusedError(Exception):
    """What is in the folder would be lost, or is of another run."""


def complete(cell: Row, contenders: Iterable[str]) -> bool:
    """Whether a cell needs no second run: it was skipped, or every contender had its time."""
    records = cell["contenders"]
    if "skipped" in cell:
        return True
    return set(contenders) <= set(records) and not any(TIME_WAS_UP in str(record) for record in records.values())


def n_found(cell: Row) -> int:
    """Contenders of which a cell says more than that there was no time."""
    return sum(not record["status"].startswith("not ") for record in cell["contenders"].values())


def differences(found: Document, head: Document) -> list[str]:
    """Say what differs between results and the settings of a run that would go on with them."""
    lines = []
    for name in SAME:
        old, new = found.get(name), head.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            lines += [
                f"{key} {old.get(key)}, now {new.get(key)}" for key in {**old, **new} if old.get(key) != new.get(key)
            ]
        elif old != new:
            lines.append(f"{name} {old}, now {new}")
    return lines


def opened(path: Path) -> Document:
    """Read results; RefusedError if they are none."""
    try:
        found: Document = json.loads(path.read_text())
        for cell in found["cells"]:
            n_found(cell)
    except (ValueError, KeyError, TypeError, AttributeError):
        message = f"{path} holds no results of this program: move it away, or name another folder with --out"
        raise RefusedError(message) from None
    return found


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
    def open(cls, folder: Path, head: Document, resume: bool = False) -> Self:
        """Begin results, or go on with those of the same device, commit and settings in the folder.

        Parameters
        ----------
        folder : Path
        head : dict
            Device and settings.
        resume : bool

        Raises
        ------
        RefusedError
            If finished cells would be lost, or the folder holds results of other settings.
        """
        path = folder / "rapids.json"
        found = opened(path) if path.exists() else None
        if found is not None and resume:
            differing = differences(found, head)
            if differing:
                message = f"{path} is of another run: {'; '.join(differing)}. --out names another folder"
                raise RefusedError(message)
            results = cls(folder, found)
            results.note_killed()
            results.document["status"] = "running"
            return results
        # Those of a trial measure nothing.
        trial = found is not None and bool(found.get("stand in") or found.get("tiny"))
        finished = [] if found is None or trial else [cell for cell in found["cells"] if n_found(cell)]
        if finished:
            message = f"{path} holds {len(finished)} cells: --resume goes on with them, --out names another folder"
            raise RefusedError(message)
        begun = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(folder, {**head, "begun": begun, "status": "running", "now": None, "cells": []})

    def earlier(self, described: Row) -> Row | None:
        """Find what is known of a cell from before."""
        alike = (found for found in self.cells if all(found[key] == value for key, value in described.items()))
        return next(alike, None)

    def has(self, cell: Cell, contenders: Iterable[str]) -> bool:
        """Whether a cell needs no run."""
        found = self.earlier(cell.described)
        return found is not None and complete(found, contenders)

    def also(self, cell: Cell) -> list[str]:
        """Contenders of a cell from before, which run again where others do."""
        found = self.earlier(cell.described)
        return [] if found is None else list(found["contenders"])

    @property
    def cells(self) -> list[dict[str, Any]]:
        """Cells so far."""
        found: list[dict[str, Any]] = self.document["cells"]
        return found

    def note_killed(self) -> None:
        """Write down the cell in which an earlier run was killed, so that this one is not."""
        if self.document["now"] is not None:
            self.put({**self.document["now"], "skipped": "the run was killed in it", "contenders": {}})
            self.document["now"] = None

    def put(self, cell: Row) -> None:
        """Add a cell, or put it where it was, unless more was found there before."""
        earlier = self.earlier({key: value for key, value in cell.items() if key not in ("skipped", "contenders")})
        if earlier is None:
            self.cells.append(cell)
        elif n_found(cell) >= n_found(earlier):
            self.cells[self.cells.index(earlier)] = cell
        elif "skipped" in cell:
            # What was found stays, and is not asked for again.
            earlier["skipped"] = cell["skipped"]

    def begin(self, cell: Cell) -> None:
        """Say which cell is being measured."""
        self.document["now"] = cell.described
        self.save()

    def add(self, cell: Cell, contenders: dict[str, Row], skipped: str = "") -> None:
        """Add a cell."""
        self.document["now"] = None
        self.put({**cell.described, "contenders": contenders} | ({"skipped": skipped} if skipped else {}))
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
            if record["status"] == "wrong" or (name in (*OURS, "cpu") and record["status"] == "failed")
        ]

    def save(self) -> None:
        """Write both files, or neither."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with whole_files(self.folder / "rapids.json", self.folder / "rapids.md") as [data, text]:
            data.write_text(json.dumps(self.document, indent=1) + "\n")
            text.write_text(markdown(self.document))
