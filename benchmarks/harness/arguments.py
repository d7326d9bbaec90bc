"""Command lines: readers of numbers and names, and the options that every topic has."""

import argparse
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.harness.grid import Topic
from benchmarks.harness.machine import ROOT


def names_of(known: Collection[str], kind: str) -> Callable[[str], list[str]]:
    """Give a reader of one or more names, separated by commas; `kind` is the word for one of them in errors."""

    def read(text: str) -> list[str]:
        names = text.split(",")
        if unknown := [name for name in names if name not in known]:
            message = f"no {kind} {', '.join(unknown)}; there are {', '.join(known)}"
            raise argparse.ArgumentTypeError(message)
        return names

    return read


def whole_number(text: str) -> int:
    """Read a number such as 1e6."""
    number = float(text)
    if not 1 <= number < 1e12 or number != int(number):
        message = f"{text} is no positive whole number"
        raise argparse.ArgumentTypeError(message)
    return int(number)


def whole_numbers(text: str) -> list[int]:
    """Read numbers separated by commas."""
    return [whole_number(part) for part in text.split(",")]


def plural(axis: str) -> str:
    """Give the name of the option for an axis."""
    return axis if axis.endswith("s") else f"{axis}s"


def axes_of(topic: Topic) -> dict[str, list[Any]]:
    """Give the axes of all grids that are products of axes, and their values."""
    axes: dict[str, dict[Any, None]] = {}
    for grid in topic.grids:
        for axis, values in ({} if grid.listed else grid.axes).items():
            axes.setdefault(axis, {}).update(dict.fromkeys(values))
    return {axis: list(values) for axis, values in axes.items()}


def parser_of(topic: Topic, description: str | None) -> argparse.ArgumentParser:
    """Give a parser with the options that every topic has."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {topic.command}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    grids = [grid.name for grid in topic.grids]
    contenders = list(dict.fromkeys(contender.name for grid in topic.grids for contender in grid.contenders))
    for axis, values in axes_of(topic).items():
        reader: Any = whole_numbers if isinstance(values[0], int) else names_of(values, axis)
        name, known = plural(axis), ",".join(map(str, values))
        add(f"--{name}", dest=f"axis {axis}", metavar=name.upper(), type=reader, help=f"of {known}")
    add("--only", type=names_of(grids, "part"), default=grids, help=f"of {','.join(grids)}")
    add("--contenders", type=names_of(contenders, "contender"), default=contenders, help=",".join(contenders))
    add("--most-rows", type=whole_number, help="cells of more rows are left out")
    add("--repeats", type=whole_number, help="timed calls of each contender; by its speed unless given")
    add("--contender-limit", type=float, default=60.0, help="seconds; slower contenders are not run")
    add("--time-limit", type=float, default=float("inf"), help="seconds; --resume goes on with what is left")
    add("--out", "--output", type=Path, help="folder of the results")
    add("--resume", action="store_true", help="keep the cells that an earlier run left in that folder")
    add("--quick", action="store_true", help="every line once on a few rows, which measures nothing")
    return parser


def chosen_axes(options: argparse.Namespace) -> dict[str, list[Any]]:
    """Give the axes for which the user chose values."""
    prefix = "axis "
    return {
        name.removeprefix(prefix): values
        for name, values in vars(options).items()
        if name.startswith(prefix) and values is not None
    }


def folder_of(options: argparse.Namespace, name: str) -> Path:
    """Give the folder for results; those of trials go to the folder `build`."""
    if options.out:
        return Path(options.out).resolve()
    return ROOT / (f"build/{name}-quick" if options.quick else f"benchmarks/results/{name}-{datetime.now(UTC).date()}")
