"""What is asked: kinds of work, sizes, keys and distributions, the cells that matter most first."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import log10
from typing import Any

from gpu_encode import KFold, LeaveOneOut, Ordered, interactions

N_FOLDS = 5
# Rows at which the prior weighs as much as the category.
SMOOTH = 10.0
N_CLASSES = 10

ROWS = (100_000_000, 10_000_000, 1_000_000_000, 1_000_000)
CATEGORIES = (100_000, 1_000_000, 100, 100_000_000)
KEYS = ("int", "string", "category")
DISTRIBUTIONS = {"uniform": "uniform", "zipf": "Zipf 1.5"}
# The second and third column of a work of three.
FEWER_CATEGORIES = (1000, 100)
# The middle of the grid: 1e8 rows, then 1e7 before 1e9; between 1e5 and 1e6 categories, nearer to the first.
MIDDLE_ROWS, MIDDLE_CATEGORIES = 7.9, 5.4


@dataclass(frozen=True)
class Work:
    """One kind of work, which every contender does in its own way.

    Parameters
    ----------
    title : str
    options : dict
        Parameters of our encoder, beside smoothing and prior.
    n_keys : int
        Columns of categories.
    n_classes : int
        Classes of the target.
    """

    title: str
    options: dict[str, Any] = field(default_factory=dict)
    n_keys: int = 1
    n_classes: int = 2

    @property
    def names(self) -> list[str]:
        """Names of the columns of categories."""
        return ["a", "b", "c"][: self.n_keys]

    @property
    def groups(self) -> list[tuple[str, ...]]:
        """Columns that are a key together, for each key, in the order of the output."""
        listed = interactions(self.names, order=min(self.n_keys, 2))
        return [each if isinstance(each, tuple) else (each,) for each in listed]

    @property
    def n_outputs(self) -> int:
        """Columns of codes."""
        return len(self.groups) * (1 if self.n_classes == 2 else self.n_classes)


WORKS = {
    "folds": Work("5 folds", {"cv": KFold(N_FOLDS, order="interleaved")}),
    "mean": Work("mean, fit and transform"),
    "leave-one-out": Work("leave one out", {"cv": LeaveOneOut()}),
    "ordered": Work("ordered", {"cv": Ordered()}),
    "classes": Work("10 classes, 5 folds", {"cv": KFold(N_FOLDS, order="interleaved")}, n_classes=N_CLASSES),
    "pairs": Work("3 columns and their pairs, 5 folds", {"cv": KFold(N_FOLDS, order="interleaved")}, n_keys=3),
}


@dataclass(frozen=True)
class Cell:
    """One cell of the grid.

    Parameters
    ----------
    work : str
        One of `WORKS`.
    rows, categories : int
    keys : {"int", "string", "category"}
    drawn : {"uniform", "Zipf 1.5"}
    """

    work: str
    rows: int
    categories: int
    keys: str
    drawn: str

    @property
    def described(self) -> dict[str, Any]:
        """Give the cell as a row of a table begins."""
        return {
            "work": self.work,
            "rows": self.rows,
            "categories": self.categories,
            "keys": self.keys,
            "distribution": self.drawn,
        }

    @property
    def name(self) -> str:
        """Give it in words."""
        return (
            f"{WORKS[self.work].title}: {self.rows:,} rows, {self.categories:,} categories, {self.keys}, {self.drawn}"
        )

    def categories_of(self, place: int) -> int:
        """Categories of each column: those asked for in the first, fewer in the others."""
        return self.categories if place == 0 else min(self.categories, FEWER_CATEGORIES[place - 1])


def cells(
    rows: Iterable[int],
    categories: Iterable[int],
    keys: Sequence[str],
    distributions: Sequence[str],
    works: Sequence[str],
) -> list[Cell]:
    """List the grid from its middle outwards."""
    found = [Cell(*each) for each in product(works, rows, categories, keys, distributions)]
    order = {name: place for names in (keys, works, distributions) for place, name in enumerate(names)}

    def distance(cell: Cell) -> float:
        sizes = 3 * abs(log10(cell.rows) - MIDDLE_ROWS) + abs(log10(cell.categories) - MIDDLE_CATEGORIES) / 2
        return sizes + order[cell.keys] + order[cell.drawn] / 2 + order[cell.work] / 4

    return sorted(found, key=distance)


KEY_BYTES = {"int": 8, "string": 18, "category": 4}
# A number of category for the judge, a target for the frame and one for the judge, and 8 bytes at work.
BYTES_BESIDE = 4 + 8 + 8
# Sums of a category, and its value.
BYTES_OF_CATEGORY = 64
MOST_ROWS = 2**31 - 1


def bytes_needed(cell: Cell, itemsize: int) -> int:
    """Bytes without which the cell cannot be tried: the frame, the codes, our own encoder."""
    work = WORKS[cell.work]
    a_row = work.n_keys * (KEY_BYTES[cell.keys] + 4) + BYTES_BESIDE + work.n_outputs * itemsize
    if cell.work == "ordered":
        # The same rows once more, in the order that is walked, and that order.
        a_row += KEY_BYTES[cell.keys] + 4 + 4 + 8
    # Text is made of numbers, and becomes a category.
    making = 0 if cell.keys == "int" else 2 * KEY_BYTES["string"]
    return cell.rows * (a_row + making) + cell.categories * BYTES_OF_CATEGORY


def unfit(cell: Cell, itemsize: int, free: int) -> str:
    """Say why a cell cannot be tried; nothing if it can."""
    if cell.rows > MOST_ROWS:
        return f"a frame holds at most {MOST_ROWS:,} rows"
    needed = bytes_needed(cell, itemsize)
    return f"needs {needed / 2**30:.1f} GiB, {free / 2**30:.1f} are free" if needed > free else ""
