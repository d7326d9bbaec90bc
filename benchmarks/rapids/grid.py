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
# The contender that has no prior in common with the others.
OWN_PRIOR = "ours-own-prior"

ROWS = (100_000_000, 1_000_000_000, 10_000_000, 1_000_000)
CATEGORIES = (100_000, 1_000_000, 100_000_000, 100)
KEYS = ("int", "string", "category")
DISTRIBUTIONS = {"uniform": "uniform", "zipf": "Zipf 1.5"}
# The second and third column of a work of three.
FEWER_CATEGORIES = (1000, 100)
# The middle of the grid: 1e8 rows, then 1e9 before 1e7; between 1e5 and 1e6 categories, nearer to the first.
MIDDLE_ROWS, MIDDLE_CATEGORIES = 8.1, 5.4


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
    distribution : {"uniform", "Zipf 1.5"}
    """

    work: str
    rows: int
    categories: int
    keys: str
    distribution: str

    @property
    def described(self) -> dict[str, Any]:
        """Give the cell as a row of a table begins."""
        return {
            "work": self.work,
            "rows": self.rows,
            "categories": self.categories,
            "keys": self.keys,
            "distribution": self.distribution,
        }

    @property
    def name(self) -> str:
        """Give it in words."""
        sizes = f"{self.rows:,} rows, {self.categories:,} categories"
        return f"{WORKS[self.work].title}: {sizes}, {self.keys}, {self.distribution}"

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
    """List the grid: what breaks first, then from its middle outwards.

    Every work comes once at the fewest rows.  Then, for each number of rows, works take turns with keys and
    distributions, so that the first cells have all of them; a work gets other keys after all numbers of categories.
    """
    by_rows = sorted(set(rows), key=lambda n: abs(log10(n) - MIDDLE_ROWS))
    by_categories = sorted(set(categories), key=lambda n: abs(log10(n) - MIDDLE_CATEGORIES))
    kinds = list(product(distributions, keys))

    def turn(number: int, n_rows: int, n_categories: int) -> list[Cell]:
        """One cell of each work, with other keys or another distribution than in other turns."""
        drawn = [(work, *kinds[(number + place) % len(kinds)]) for place, work in enumerate(works)]
        return [Cell(work, n_rows, n_categories, key, distribution) for work, distribution, key in drawn]

    found = turn(0, min(by_rows), by_categories[0])
    for n_rows, number, n_categories in product(by_rows, range(len(kinds)), by_categories):
        found += turn(number, n_rows, n_categories)
    return list(dict.fromkeys(found))


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
