"""Types that cross the seam: rows, the columns of a cell, and the state between two chunks of rows.

Rows cross as int32 codes (-1 is missing, -2 unknown); sums cross as int64 digits, so every backend gives the same bits
in any order of addition.  Tables by category have two more rows than categories, for unknown and missing values, so
that a negative code counts from the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.row_numbers import FoldPattern

Array = NDArray[Any]
Codes = NDArray[np.int32]

MISSING = -1
UNKNOWN = -2
Folds = FoldPattern | Array | None
# The number of digits below 2**32 that an int64 can add up before a carry is needed.
CARRY_AFTER = 1 << 30


@dataclass(frozen=True)
class Window:
    """The digit positions [low, low + width), in base 2**32, at which a sum is kept.

    `whole` says that a single int64 (at position 0) holds the entire sum.
    """

    low: int = 0
    width: int = 1
    whole: bool = True


def digit_window(extent: tuple[int, int]) -> Window:
    """Give the digit positions for sums of numbers with binary positions [low, high), and one more for carries."""
    low, high = extent
    return Window(low // 32, max((high - 1) // 32 - low // 32 + 1, 1) + 1, False)


@dataclass(frozen=True)
class Layout:
    """Columns of a cell: the digits of the sum of weights, then of weight * target, then of weight * target**2."""

    count: Window = field(default_factory=Window)
    total: Window | None = None
    square: Window | None = None

    @property
    def width(self) -> int:
        """Number of int64 columns of a cell."""
        columns: slice = self.measures()[-1][2]
        return int(columns.stop)

    @property
    def is_whole(self) -> bool:
        """Whether each sum is one whole number."""
        total, square = self.total, self.square
        return self.count.whole and (total is None or total.whole) and (square is None or square.whole)

    def measures(self) -> list[tuple[Window, int, slice]]:
        """Give the window, the power of the target and the columns of each sum that is kept."""
        measures, start = [], 0
        for power, window in enumerate((self.count, self.total, self.square)):
            if window is not None:
                measures.append((window, power, slice(start, start + window.width)))
                start += window.width
        return measures


def carry(accumulators: Array, layout: Layout) -> None:
    """Carry digits in place, within each window: all digits of a window but the highest are then below 2**32."""
    for window, _, columns in layout.measures():
        # The highest digit keeps its carries, and the sign of the number.
        for column in range(columns.start, columns.start if window.whole else columns.stop - 1):
            over = accumulators[..., column] >> 32
            accumulators[..., column] -= over << 32
            accumulators[..., column + 1] += over


class UnwrittenCodes:
    """Codes (int32) that a backend computes when it reads them; an array of codes is written only if it is needed.

    `Rows` may hold them instead of an array of codes.
    """

    ndim = 1

    def __init__(self, n_rows: int) -> None:
        self.shape = (n_rows,)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, chosen: "slice | Array") -> Array:
        return self.written[chosen]

    @property
    def written(self) -> Array:
        """The codes as an array on the backend's device; it is written once."""
        raise NotImplementedError


def written(codes: Any) -> Array:
    """Give codes as an array; an array is given back itself."""
    array: Array = codes.written if isinstance(codes, UnwrittenCodes) else codes
    return array


@dataclass(frozen=True)
class Rows:
    """Category code, class number or target, and weight of each row.

    Parameters
    ----------
    codes : int32 array or UnwrittenCodes
    classes : int32 array, optional
        Class number of a classification target.
    target : float64 or int64 array, optional
        Target of a regression; of shape (rows, terms) if it has several terms.
    weight : float64 or int64 array, optional
    """

    codes: Array
    classes: Array | None = None
    target: Array | None = None
    weight: Array | None = None

    def __len__(self) -> int:
        return len(self.codes)

    def block(self, start: int, stop: int) -> "Rows":
        """Give the rows [start, stop), without a copy."""
        return self.pick(slice(start, stop))

    def pick(self, chosen: "slice | Array") -> "Rows":
        """Give the rows with these numbers, in the order of the numbers."""
        classes = None if self.classes is None else self.classes[chosen]
        target = None if self.target is None else self.target[chosen]
        return Rows(self.codes[chosen], classes, target, None if self.weight is None else self.weight[chosen])

    def with_codes(self, codes: Array) -> "Rows":
        """Give the same rows with the codes of another key."""
        return Rows(codes, self.classes, self.target, self.weight)


class KeyColumns(NamedTuple):
    """Keys made of columns of codes: the cell of a row is the mixed-radix number of its codes in the key's columns.

    Parameters
    ----------
    codes : object
        The result of `narrow_codes`, in which a missing value is the last code of its column.
    sizes : list of int
        Number of codes of each column, the code of a missing value included.
    members : list of tuple of int
        Columns of each key.
    """

    codes: Any
    sizes: Sequence[int]
    members: Sequence[tuple[int, ...]]

    @property
    def n_cells(self) -> list[int]:
        """Number of cells of each key."""
        return [prod([self.sizes[column] for column in of_key]) for of_key in self.members]

    @property
    def missing(self) -> list[int]:
        """The last cell of a key of one column, whose missing values have a line of their own; -1 for joint keys."""
        return [self.sizes[of_key[0]] - 1 if len(of_key) == 1 else -1 for of_key in self.members]


class KeyEncodings(NamedTuple):
    """The encodings that one call writes for many keys.

    Parameters
    ----------
    values : float array (outputs, rows)
    first : list of int
        Line of `values` for the first output of each key.
    """

    values: Array
    first: Sequence[int]


class KeyCounts(NamedTuple):
    """Categories of a key and sums of their rows: only the rows that new rows see, or all rows by fold.

    Parameters
    ----------
    cells : uint32 array (categories,)
        Cells that any row has, sorted.
    counts : int32 or int64 array (categories + 2, classes or folds * classes, layout.width)
        The last two lines are for unknown and for missing values.  A count takes 32 bits.
    """

    cells: Array
    counts: Array


class KeyTables(NamedTuple):
    """The tables in which the rows of many keys are looked up, one key after the other.

    Parameters
    ----------
    cells : uint32 array
        Cells of the categories of each key.  In each column, the last two codes are a missing and an unknown value.
    values : float array
        Lines of encodings (categories + 2, views, outputs) of each key; the last two are unknown and missing values.
    first_cell, first_value : int64 array (keys,)
        The index at which the cells and the values of each key begin.
    n_categories, n_outputs : int64 array (keys,)
    missing : int64 array (keys,)
        Line of rows that lack a value in any column of the key; -1 if a missing value is one more value.
    n_views : int
        Number of views of each line; rows are looked up by their fold.
    """

    cells: Array
    values: Array
    first_cell: Array
    first_value: Array
    n_categories: Array
    n_outputs: Array
    missing: Array
    n_views: int


class FoldedResponses(NamedTuple):
    """Working responses of the rows in an additive model, and the folds that each fold sees.

    Parameters
    ----------
    response : int64 array (rows,)
    information : int64 array (rows,) or None
        Above 0; None if it is the same for all rows.
    visibility : int64 array (folds, folds)
    """

    response: Array
    information: Array | None
    visibility: Array


class SumShape(NamedTuple):
    """The shape of sums: (n_categories + 2, n_folds, n_classes, layout.width) digits.

    The last two lines are for unknown and missing values.
    """

    n_categories: int
    n_folds: int = 1
    n_classes: int = 1
    layout: Layout = Layout()

    @property
    def extents(self) -> tuple[int, int, int, int]:
        """Shape of the array of digits."""
        return self.n_categories + 2, self.n_folds, self.n_classes, self.layout.width


class SumsByNumber(NamedTuple):
    """Sums of rows by numbers, which are their categories.

    Parameters
    ----------
    accumulators : int64 array (n_distinct + 2, 1, n_classes, layout.width)
    numbers : array
        Sorted distinct numbers.
    codes : int32 array or UnwrittenCodes, optional
        Code of each row, if no further pass over the rows is needed for it.
    """

    accumulators: Array
    numbers: Array
    codes: Array | None = None


@dataclass
class Carry:
    """The state between chunks of an ordered pass: sums so far and, with ties, the sums at each category's last tie."""

    sums: Array
    at_tie: Array
    last_tie: Array

    @classmethod
    def empty(cls, n_categories: int, n_classes: int, width: int, ties: bool, xp: Any = np) -> "Carry":
        """Make the state before the first row, with arrays of the library `xp`."""
        shape = (n_categories + 2, n_classes, width)
        return cls(
            xp.zeros(shape, np.int64),
            xp.zeros(shape if ties else (0, 0, 0), np.int64),
            xp.full(n_categories + 2, -1, np.int64),
        )
