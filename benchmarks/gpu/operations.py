"""Every operation of the backends as work that can be repeated, and the bytes that each of its rows must move."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from benchmarks.gpu.drawn import Columns
from cpu_fallback.row_numbers import FoldPattern, Permutation
from cpu_fallback.types import Array, Carry, Folds, Layout, Rows, SumShape, carry
from gpu_encode.seam.ops import Ops
from gpu_encode.sums import category_sums

ORDERS = ("random", "interleaved", "contiguous")
N_FOLDS = 5


class Work(NamedTuple):
    """A call that returns arrays, the number of its rows (or cells), and the bytes that each of them must move.

    Results with a layout are digits.  A number can be written in digits in several ways, but in only one way after
    carries.
    """

    call: Callable[[], Any]
    items: int
    moves: dict[str, int]
    layout: Layout | None = None

    def result(self) -> Any:
        """Make the call, and carry digits, since backends only agree on carried digits."""
        found = self.call()
        if self.layout is not None:
            carry(found, self.layout)
        return found


class Kind(NamedTuple):
    """Columns of rows in addition to their category, as names in `COLUMNS`, and the power up to which y is summed."""

    name: str
    classes: str = ""
    n_classes: int = 1
    target: str = ""
    weight: str = ""
    powers: int = 0

    @property
    def row_bytes(self) -> dict[str, int]:
        """Give the bytes of a row."""
        sizes = {"classes": 4, "target": 8, "weight": 8}
        return {"codes": 4} | {name: size for name, size in sizes.items() if getattr(self, name)}


KINDS = {
    kind.name: kind
    for kind in (
        Kind("rows"),
        Kind("0/1", "binary", 2),
        Kind("10 classes", "ten", 10),
        Kind("0/1, weights", "binary", 2, weight="weight"),
        Kind("real", target="real", powers=1),
        Kind("real, squares", target="real", powers=2),
        Kind("real, squares, weights", target="real", weight="weight", powers=2),
        Kind("integers, squares", target="whole", powers=2),
        Kind("large integers", target="large", powers=1),
    )
}


@dataclass
class Data:
    """Rows, in the memory of their backend.

    Parameters
    ----------
    ops : Ops
    columns : Columns
    codes : array of int32
    n_categories : int
    """

    ops: Ops
    columns: Columns
    codes: Array
    n_categories: int
    layouts: dict[str, Layout] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def known(self) -> Array:
        """The codes of the rows that have a category."""
        return self.codes[self.codes >= 0]

    def rows(self, kind: Kind) -> tuple[Rows, Layout]:
        """Give rows of a kind, and the layout that an encoder chooses for their sums."""
        parts = [self.columns[name] if name else None for name in (kind.classes, kind.target, kind.weight)]
        if kind.name not in self.layouts:
            windows = category_sums.windows(self.ops, *parts[1:], kind.powers, len(self))
            self.layouts[kind.name] = Layout(*windows)
        return Rows(self.codes, *parts), self.layouts[kind.name]

    def folds(self, how: str) -> tuple[Folds, int]:
        """Give fold numbers and their count: none, those of a column ("given"), or those of a pattern."""
        if how in ORDERS:
            return FoldPattern(how, N_FOLDS, seed=3, n_rows=len(self) + 11, first_row=11), N_FOLDS
        return (self.columns["folds"], N_FOLDS) if how else (None, 1)


Operation = Callable[[Data], Work]


def accumulate(data: Data, name: str, folds: str = "") -> Work:
    """Sum every cell."""
    kind = KINDS[name]
    rows, layout = data.rows(kind)
    given, n_folds = data.folds(folds)
    shape = SumShape(data.n_categories, n_folds, kind.n_classes, layout)
    return Work(lambda: data.ops.accumulate(rows, shape, given), len(data), kind.row_bytes, layout)


def moments(data: Data, name: str, folds: str = "") -> Work:
    """Compute count, mean and deviations of cells; an item is a cell here."""
    cells, layout, kind = accumulate(data, name, folds).call(), data.rows(KINDS[name])[1], KINDS[name]
    first, squares = int(kind.n_classes > 1), not kind.target or layout.square is not None
    outputs, items = kind.n_classes - first, (data.n_categories + 2) * data.folds(folds)[1]
    moved = {"cells": 8 * kind.n_classes * layout.width, "out": 8 * (1 + outputs + (1 + 2 * outputs) * squares)}
    return Work(lambda: data.ops.moments(cells, layout, first, squares), items, moved)


def gather(data: Data, dtype: str, outputs: int = 1, folds: str = "") -> Work:
    """Look rows up by category and fold."""
    pattern, n_folds = data.folds(folds)
    shape, xp = (data.n_categories + 2, n_folds, outputs), data.ops.xp
    # float32 can hold all whole numbers below 2^24.
    table = (xp.arange(int(np.prod(shape))) % (1 << 24)).astype(dtype).reshape(shape)
    out = xp.empty((len(data), outputs), dtype, order="F")

    def call() -> Array:
        data.ops.gather(table, data.codes, pattern, out)
        return out

    return Work(call, len(data), {"codes": 4, "out": out.dtype.itemsize * outputs})


def digits_of(kind: Kind, layout: Layout) -> dict[str, int]:
    """Give the bytes of a row and of the digits that it sees."""
    return kind.row_bytes | {"seen": 8 * kind.n_classes * layout.width}


def leave_one_out(data: Data, name: str) -> Work:
    """Compute the digits of each row's category without the row."""
    cells, (rows, layout) = accumulate(data, name).call()[:, 0], data.rows(KINDS[name])
    return Work(lambda: data.ops.leave_one_out(cells, rows, layout), len(data), digits_of(KINDS[name], layout), layout)


def ordered(data: Data, name: str, tied: bool = False, stops: int = 1) -> Work:
    """Compute the digits of each row's category before the row, in several steps that carry sums on."""
    kind, (rows, layout) = KINDS[name], data.rows(KINDS[name])
    ties, n_rows = data.columns["ties"] if tied else None, len(data)

    def call() -> list[Array]:
        before = Carry.empty(data.n_categories, kind.n_classes, layout.width, tied, data.ops.xp)
        seen = []
        for step in range(stops):
            start, stop = n_rows * step // stops, n_rows * (step + 1) // stops
            given = None if ties is None else ties[start:stop]
            seen.append(data.ops.ordered(rows.block(start, stop), given, layout, before))
        return [*seen, before.sums, before.at_tie, before.last_tie]

    return Work(call, n_rows, digits_of(kind, layout) | ({"ties": 8} if tied else {}))


def extents(data: Data, name: str) -> Work:
    """Find the bits behind the binary point of a target and of weights."""
    rows = data.rows(KINDS[name])[0]
    moved = {key: size for key, size in KINDS[name].row_bytes.items() if key != "codes"}
    return Work(lambda: data.ops.extents(rows.target, rows.weight, (0, 1, 2)), len(data), moved)


VALUES: dict[str, Callable[[Array], Array]] = {
    "int64": lambda codes: codes.astype(np.int64) - 3,
    "int32": lambda codes: codes,
    "uint8": lambda codes: codes.astype(np.uint8),
    "far apart": lambda codes: codes.astype(np.int64) * (2**36 + 1),
    "float64": lambda codes: codes * 0.37 - 5.0,
    "float32": lambda codes: codes.astype(np.float32) * np.float32(0.5),
    "bool": lambda codes: codes % 2 == 1,
}


def factorize(data: Data, how: str) -> Work:
    """Turn values into codes and distinct values."""
    values = VALUES[how](data.known)
    moved = {"values": values.dtype.itemsize, "codes": 4}
    return Work(lambda: data.ops.factorize(values), len(values), moved)


def lookup(data: Data, how: str, most: int | None = None) -> Work:
    """Look values up among the known categories, which are every second value; `most` limits the number of values."""
    values = VALUES[how](data.known)
    known, asked = data.ops.factorize(values)[1][::2].copy(), values[:most]
    return Work(lambda: data.ops.lookup(asked, known), len(asked), {"values": values.dtype.itemsize, "codes": 4})


def combine(data: Data) -> Work:
    """Make the joint key of two columns of codes."""
    other = data.columns["folds"][data.codes >= 0]
    return Work(lambda: data.ops.combine(data.known, other, N_FOLDS), len(other), {"codes": 8, "keys": 8})


def fold_numbers(data: Data, order: str, n_splits: int = N_FOLDS) -> Work:
    """Compute folds from row numbers."""
    n_rows = len(data)
    pattern = FoldPattern(order, n_splits, seed=9, n_rows=n_rows + 7)
    return Work(lambda: data.ops.fold_numbers(pattern, 7, n_rows + 7), n_rows, {"out": 4})


def permute(data: Data, name: str) -> Work:
    """Compute rows of ranks, or ranks of rows, in a random order."""
    order = Permutation(len(data), seed=5)
    return Work(lambda: getattr(data.ops, name)(order, 0, len(data)), len(data), {"out": 8})


def of(make: Callable[..., Work], *parameters: Any, **keywords: Any) -> Operation:
    """Give an operation with its parameters."""
    return lambda data: make(data, *parameters, **keywords)


def by_name(make: Callable[..., Work], *names: str) -> dict[str, Operation]:
    """Give operations of one sort, by the names of their input."""
    return {f"{make.__name__}, {name}": of(make, name) for name in names}


# Operations whose bits are compared: first, operations on rows of a kind, ...
def of_sums(name: str) -> dict[str, Operation]:
    """Give the operations on sums of all rows."""
    every = ("", "given", *ORDERS)
    operations = {f"accumulate, folds {folds or 'none'}": of(accumulate, name, folds) for folds in every}
    operations |= {f"moments, folds {folds or 'none'}": of(moments, name, folds) for folds in ("", "random")}
    return operations | (by_name(extents, name) if KINDS[name].target else {})


def of_rows(name: str) -> dict[str, Operation]:
    """Give the operations that compute the digits that every row sees."""
    both = {f"ordered, ties {tied}": of(ordered, name, tied, stops=2) for tied in (False, True)}
    return by_name(leave_one_out, name) | both


# ... then operations on codes and numbers alone.
OF_CODES: dict[str, Operation] = {
    **by_name(factorize, *VALUES),
    **by_name(lookup, *VALUES),
    "combine": combine,
    **{
        f"gather, {outputs} of {dtype}, folds {folds or 'none'}": of(gather, dtype, outputs, folds)
        for dtype in ("float32", "float64")
        for outputs in (1, 10)
        for folds in ("", "random")
    },
}
OF_ROW_NUMBERS: dict[str, Operation] = {
    **{
        f"fold_numbers {order} {splits}": of(fold_numbers, order, splits)
        for order in ORDERS
        for splits in (1, 2, 5, 64)
    },
    **by_name(permute, "ranks_of", "rows_at"),
}

# Operations that are timed and repeated: first those for which the number of categories matters, then the others.
BY_CATEGORY: dict[str, Operation] = {
    **by_name(accumulate, "rows", "0/1", "real", "real, squares, weights"),
    "accumulate, 0/1, 5 folds": of(accumulate, "0/1", "random"),
    "accumulate, 10 classes, 5 folds": of(accumulate, "10 classes", "random"),
    "accumulate, real, squares, 5 folds": of(accumulate, "real, squares", "random"),
    **by_name(gather, "float32", "float64"),
    "gather, float32, 5 folds": of(gather, "float32", 1, "random"),
    "gather, float32, 10 outputs, 5 folds": of(gather, "float32", 10, "random"),
    **by_name(leave_one_out, "0/1", "real, squares"),
    **by_name(ordered, "0/1", "real"),
    "ordered, 0/1, ties": of(ordered, "0/1", tied=True),
    **by_name(factorize, "int64", "far apart", "float64"),
    **by_name(lookup, "int64", "far apart"),
    **by_name(moments, "0/1", "real, squares"),
}
OF_ANY_ROWS: dict[str, Operation] = {
    **by_name(extents, "real, squares, weights"),
    "combine": combine,
    **by_name(fold_numbers, *ORDERS),
    **by_name(permute, "ranks_of", "rows_at"),
}
