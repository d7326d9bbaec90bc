"""family.json and family.md: all that is known so far, on disk at any time."""

from typing import Any

from benchmarks.cpu import results
from benchmarks.cpu.grid import Cell
from benchmarks.family.registry import HOME
from benchmarks.family.report import markdown

Record = dict[str, Any]


def short(name: str) -> str:
    """Name of a contender without the module that all are in."""
    return name.removeprefix(HOME)


class Results(results.Results):
    """Results in a folder, by short names of contenders.

    Parameters
    ----------
    folder : Path
    document : dict
    """

    stem = "family"

    def has(self, cell: Cell, names: list[str]) -> bool:
        """Whether a cell needs no run."""
        return super().has(cell, [short(name) for name in names])

    def guess(self, cell: Cell, name: str) -> float | None:
        """Seconds that a contender will take, by what fewer rows took."""
        return super().guess(cell, short(name))

    def add(self, cell: Cell, records: dict[str, Record]) -> dict[str, Record]:
        """Put a cell where it was, or at the end, and give what is kept of it."""
        return super().add(cell, {short(name): record for name, record in records.items()})

    def markdown(self) -> str:
        """Give the results to read."""
        return markdown(self.document)
