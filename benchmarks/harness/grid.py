"""The parts of a topic: grids of cells, and contenders that do the work of a cell."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.harness.rows import draw, open_rows

Cell = dict[str, Any]
Choice = Mapping[str, Collection[Any]]


class Seconds(float):
    """The result of a call that measures its time itself."""


@dataclass(frozen=True)
class Prepared:
    """A contender with the rows of a cell.

    Parameters
    ----------
    call : callable
        The call that is measured. It gives the answer, in the order of the rows.
    expected : object
        Its method `verdict` takes the answer, and gives the fault ("" if there is none) and the largest error.
    finish : callable, optional
        Releases resources at the end.
    watch : callable, optional
        Gives figures of a right answer that are better than those of the record ("peak bytes" of a GPU).
    """

    call: Callable[[], Any]
    expected: Any
    finish: Callable[[], Any] = bool
    watch: Callable[[], dict[str, Any]] = dict


@dataclass(frozen=True)
class Contender:
    """One way to do some kinds of work.

    Parameters
    ----------
    name : str
    family : str
        Tables show the fastest contender of each family.
    prepare : callable
        Makes `Prepared` from the rows of a cell.
    only : mapping
        For each axis, the values that this contender can do; it can do all values of axes that are not named.
    needs : tuple of str
        Modules without which it cannot run.
    compiles : bool
        Whether a first call with equally many rows compiles something, so that its memory must not be judged.
    """

    name: str
    family: str
    prepare: Callable[[Any], Prepared]
    only: Choice = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    compiles: bool = False

    def does(self, cell: Cell) -> bool:
        """Whether the contender can do a cell."""
        return all(cell[axis] in values for axis, values in self.only.items())

    @property
    def missing(self) -> list[str]:
        """List the needed modules that are not installed."""
        return [name for name in self.needs if find_spec(name) is None]


@dataclass(frozen=True)
class Grid:
    """Cells that are measured in the same way.

    Parameters
    ----------
    name : str
    axes : mapping
        For each axis its values; the axis that changes most slowly comes first, and few rows come before many.
    contenders : sequence of Contender
        The first one is ours: ratios compare with it.
    quick : mapping
        Values of some axes for a trial on a few rows.
    keep : callable, optional
        Takes a cell and the axes that the user chose; returns whether the cell exists.
    listed : callable, optional
        Gives all cells, if they are not a product of axes; its argument says whether this is a trial.
    draw, open : callable
        Draw the rows of a cell into a folder, once; and open all or the first of these rows in a process.
    fresh : bool
        Whether each timed call is the first call of a new process.
    isolated : bool
        Whether each contender has a process of its own; otherwise all run in this process.
    environment : callable, optional
        Environment variables for a new process, from the cell and its folder; each process then serves one cell.
    clock : callable
        Gives the seconds and the answer of a call.
    most_turns : int
        Timed calls of a fast contender.
    views : mapping
        For each contender of ours, the families with which it is compared; by default, only the first contender, with
        all families.
    mark : callable, optional
        Text after a ratio, for example for a missed goal, from the measured cell, the family and the ratio.
    remark : callable, optional
        Lines below the table, from all measured cells.
    """

    name: str
    axes: Mapping[str, Sequence[Any]]
    contenders: Sequence[Contender]
    quick: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    keep: Callable[[Cell, Choice], bool] = lambda _cell, _chosen: True
    listed: Callable[[bool], list[Cell]] | None = None
    draw: Callable[[Path, Cell], Path] = draw
    open: Callable[..., Any] = open_rows
    fresh: bool = False
    isolated: bool = True
    environment: Callable[[Cell, Path], dict[str, str]] | None = None
    clock: Callable[[Callable[[], Any]], tuple[float, Any]] | None = None
    most_turns: int = 15
    views: Mapping[str, Collection[str] | None] | None = None
    mark: Callable[[Cell, str, float], str] = lambda _cell, _family, _ratio: ""
    remark: Callable[[list[Cell]], list[str]] = lambda _: []

    def cells(self, chosen: Choice, quick: bool) -> Iterator[Cell]:
        """Yield the cells of the axes that the user chose."""
        if self.listed is not None:
            yield from self.listed(quick)
            return
        axes = {**self.axes, **(self.quick if quick else {})}
        for axis in axes.keys() & chosen.keys():
            numbers = isinstance(axes[axis][0], int)
            axes[axis] = sorted(chosen[axis]) if numbers else [value for value in axes[axis] if value in chosen[axis]]
        for values in product(*axes.values()):
            cell = dict(zip(axes, values, strict=True))
            if self.keep(cell, chosen):
                yield cell

    def contender(self, name: str) -> Contender:
        """Find a contender by its name."""
        return next(contender for contender in self.contenders if contender.name == name)

    def names_for(self, cell: Cell, asked: Sequence[str]) -> list[str]:
        """List the requested contenders that can do a cell and whose libraries are installed."""
        able = [contender for contender in self.contenders if contender.does(cell) and not contender.missing]
        return [contender.name for contender in able if contender.name in asked]

    def time_call(self, call: Callable[[], Any]) -> tuple[float, Any]:
        """Give the seconds and the answer of a call."""
        if self.clock is not None:
            return self.clock(call)
        begun = time.perf_counter()
        answer = call()
        seconds = time.perf_counter() - begun
        return (answer if isinstance(answer, Seconds) else seconds), answer


@dataclass(frozen=True)
class Topic:
    """One command for benchmarks.

    Parameters
    ----------
    module : str
        The module that holds `TOPIC`; worker processes import it.
    title : str
        First line of the report.
    grids : tuple of Grid
    notes : str
        Notes for readers of the report.
    packages : tuple of str
        Distributions whose versions the report names.
    machine : callable, optional
        Describes the machine in more detail, for example its GPU.
    """

    module: str
    title: str
    grids: tuple[Grid, ...]
    notes: str = ""
    packages: tuple[str, ...] = ()
    machine: Callable[[], dict[str, Any]] = dict

    @property
    def command(self) -> str:
        """Name of the module that a user runs."""
        return self.module.removesuffix(".__main__")

    @property
    def name(self) -> str:
        """Name of the topic's files."""
        return self.command.rpartition(".")[2]

    def grid(self, name: str) -> Grid:
        """Find a grid by its name."""
        return next(grid for grid in self.grids if grid.name == name)


def name_of(cell: Cell) -> str:
    """Write a cell in words."""
    texts = (
        f"{value:,} {axis}" if isinstance(value, int) else str(value) for axis, value in cell.items() if axis != "grid"
    )
    return ", ".join(texts)
