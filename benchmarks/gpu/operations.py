"""Every operation of the seam as work to be done again and again, with the bytes that a row of it must move."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from benchmarks.gpu.drawn import Columns, codes
from benchmarks.gpu.kinds import KINDS
from cpu_fallback.row_numbers import FoldPattern, Permutation
from cpu_fallback.types import Array, Carry, Folds, Layout, Rows
from gpu_encode.cuda.runtime import xp
from gpu_encode.ops import Ops

FIVE = FoldPattern("random", 5, seed=7)


class Work(NamedTuple):
    """A call that gives arrays, how many rows (or cells) it works on, and the bytes that each of them must move."""

    call: Callable[[], Any]
    items: int
    moves: dict[str, int]

    def formula(self) -> str:
        """Bytes of a row, in words."""
        return " + ".join(f"{name} {size}" for name, size in self.moves.items())


@dataclass
class Data:
    """Rows on the device.

    Parameters
    ----------
    ops : Ops
    columns : Columns
    n_categories : int
    drawn : {"uniform", "Zipf 1.5"}
    hot : float
        Share of the rows that one category has on top.
    """

    ops: Ops
    columns: Columns
    n_categories: int
    drawn: str = "uniform"
    hot: float = 0.0
    layouts: dict[str, Layout] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.codes = codes(self.columns.n_rows, self.n_categories, self.drawn, hot=self.hot)

    def __len__(self) -> int:
        return self.columns.n_rows

    def of(self, name: str) -> tuple[Rows, int, Layout]:
        """Rows of a kind, their number of classes and layout."""
        kind = KINDS[name]
        if name not in self.layouts:
            self.layouts[name] = kind.layout(self.ops, self.columns)
        return kind.rows(self.codes, self.columns), kind.n_classes, self.layouts[name]


Operation = Callable[[Data], Work]


def accumulate(name: str, folds: Folds = None, n_folds: int = 1) -> Operation:
    """Sums per cell."""

    def work(data: Data) -> Work:
        rows, n_classes, layout = data.of(name)
        arguments = (rows, data.n_categories, folds, n_folds, n_classes, layout)
        return Work(lambda: data.ops.accumulate(*arguments), len(data), KINDS[name].row_bytes())

    return work


def gather(dtype: str, outputs: int = 1, folds: Folds = None, n_folds: int = 1) -> Operation:
    """Look-up by category and fold."""

    def work(data: Data) -> Work:
        shape = (data.n_categories + 2, n_folds, outputs)
        table = xp.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)
        out = xp.empty((len(data), outputs), dtype, order="F")

        def call() -> Array:
            data.ops.gather(table, data.codes, folds, out)
            return out

        return Work(call, len(data), {"codes": 4, "out": out.dtype.itemsize * outputs})

    return work


def seen_bytes(name: str, layout: Layout) -> dict[str, int]:
    """Bytes of a row and of the digits that it sees."""
    return KINDS[name].row_bytes() | {"seen": 8 * KINDS[name].n_classes * layout.width}


def leave_one_out(name: str) -> Operation:
    """Digits of each row's category without the row."""

    def work(data: Data) -> Work:
        rows, n_classes, layout = data.of(name)
        cells = data.ops.accumulate(rows, data.n_categories, None, 1, n_classes, layout)[:, 0]
        return Work(lambda: data.ops.leave_one_out(cells, rows, layout), len(data), seen_bytes(name, layout))

    return work


def ordered(name: str, tied: bool = False) -> Operation:
    """Digits of each row's category before the row; gives what was carried as well."""

    def work(data: Data) -> Work:
        rows, n_classes, layout = data.of(name)
        ties = data.columns.ties if tied else None

        def call() -> list[Array]:
            carry = Carry.empty(data.n_categories, n_classes, layout.width, tied, xp)
            seen = data.ops.ordered(rows, ties, layout, carry)
            return [seen, carry.sums, carry.at_tie, carry.last_tie]

        return Work(call, len(data), seen_bytes(name, layout) | ({"ties": 8} if tied else {}))

    return work


def moments(name: str) -> Operation:
    """Count, mean and deviations of cells; a row is a cell here."""

    def work(data: Data) -> Work:
        rows, n_classes, layout = data.of(name)
        cells = data.ops.accumulate(rows, data.n_categories, None, 1, n_classes, layout)
        first, squares = (1, True) if rows.classes is not None else (0, layout.square is not None)
        outputs = n_classes - first
        moved = {"cells": 8 * n_classes * layout.width, "out": 8 * (1 + outputs + (1 + 2 * outputs) * squares)}
        return Work(lambda: data.ops.moments(cells, layout, first, squares), data.n_categories + 2, moved)

    return work


def extents(data: Data) -> Work:
    """Binary places of a real target and of weights."""
    columns = data.columns

    def call() -> list[tuple[int, int]]:
        return data.ops.extents(columns.real, columns.weight, (0, 1, 2))

    return Work(call, len(data), {"target": 8, "weight": 8})


def values_of(codes: Array, how: str) -> Array:
    """Values that have the codes' order: close together, or far apart as whole numbers or as real ones."""
    numbers = codes.astype(np.int64)
    return numbers * (1 if how == "near" else 2**33 + 1) if how != "real" else numbers * 0.37 - 5.0


def factorize(how: str) -> Operation:
    """Values to codes and distinct values."""

    def work(data: Data) -> Work:
        values = values_of(data.codes, how)
        return Work(lambda: data.ops.factorize(values), len(data), {"values": 8, "codes": 4})

    return work


def lookup(how: str, share: int = 1) -> Operation:
    """Values to codes of known categories, every second one; `share`: one row of so many."""

    def work(data: Data) -> Work:
        values, known = values_of(data.codes, how), values_of(xp.arange(0, data.n_categories, 2), how)
        few = values[: max(len(values) // share, 1)]
        return Work(lambda: data.ops.lookup(few, known), len(few), {"values": 8, "codes": 4})

    return work


def combine(data: Data) -> Work:
    """Joint key of two columns of codes."""
    other = data.columns.folds
    return Work(lambda: data.ops.combine(data.codes, other, 5), len(data), {"codes": 8, "keys": 8})


def row_numbers(name: str) -> Operation:
    """Folds and orders as functions of the row number."""

    def work(data: Data) -> Work:
        n = len(data)
        if name in ("rows_at", "places_of"):
            walk, order = getattr(data.ops, name), Permutation(n, seed=11)
            return Work(lambda: walk(order, 0, n), n, {"out": 8})
        pattern = FoldPattern(name, 5, seed=7, n_rows=n)
        return Work(lambda: data.ops.fold_numbers(pattern, 0, n), n, {"out": 4})

    return work


# What a number of categories matters to.
BY_CATEGORY: dict[str, Operation] = {
    "accumulate, rows": accumulate("rows"),
    "accumulate, 0/1": accumulate("0/1"),
    "accumulate, 0/1, 5 folds": accumulate("0/1", FIVE, 5),
    "accumulate, 10 classes, 5 folds": accumulate("10 classes", FIVE, 5),
    "accumulate, real": accumulate("real"),
    "accumulate, real, squares, 5 folds": accumulate("real, squares", FIVE, 5),
    "accumulate, real, squares, weights": accumulate("real, squares, weights"),
    "gather, float32": gather("float32"),
    "gather, float32, 5 folds": gather("float32", 1, FIVE, 5),
    "gather, float32, 10 outputs, 5 folds": gather("float32", 10, FIVE, 5),
    "gather, float64": gather("float64"),
    "leave one out, 0/1": leave_one_out("0/1"),
    "leave one out, real, squares": leave_one_out("real, squares"),
    "ordered, 0/1": ordered("0/1"),
    "ordered, real": ordered("real"),
    "ordered, 0/1, ties": ordered("0/1", tied=True),
    "factorize, near": factorize("near"),
    "factorize, far apart": factorize("far"),
    "factorize, real": factorize("real"),
    "lookup, near": lookup("near"),
    "lookup, far apart": lookup("far"),
    "moments, 0/1": moments("0/1"),
    "moments, real, squares": moments("real, squares"),
}
ANYHOW: dict[str, Operation] = {
    "extents": extents,
    "combine": combine,
    "fold_numbers, random": row_numbers("random"),
    "fold_numbers, interleaved": row_numbers("interleaved"),
    "fold_numbers, contiguous": row_numbers("contiguous"),
    "rows_at": row_numbers("rows_at"),
    "places_of": row_numbers("places_of"),
}
