"""Targets of several terms: numbers of a row that are summed side by side, for encodings that take more than one sum.

The terms of a target stand where the classes of another do: accumulators are (categories, folds, terms, width), so
that whatever adds, moves or keeps them need not know of terms.  Of the first term, the target itself, squares may be
summed, too.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from cpu_fallback.exact import in_one_piece
from cpu_fallback.types import Array, Carry, Folds, Layout, Rows
from gpu_encode.ops import Ops


def backend_for(ops: Ops, target: Array | None) -> Ops:
    """Give the backend for rows of a target: one that sums its terms one by one, where it has several."""
    plain = target is None or target.ndim == 1 or isinstance(ops, Termwise)
    return ops if plain else cast(Ops, Termwise(ops))


def side_by_side(terms: Sequence[Array], ops: Ops) -> Array:
    """Put terms of one length side by side: int64 where all are, float64 otherwise; each in one piece."""
    dtype = np.int64 if all(term.dtype == np.int64 for term in terms) else np.float64
    matrix = ops.empty((len(terms[0]), len(terms)), dtype, "F")
    for column, numbers in enumerate(terms):
        matrix[:, column] = numbers
    return matrix


class Termwise:
    """A backend that takes rows of several terms, and hands them to another one after the other.

    Parameters
    ----------
    ops : Ops
    """

    # Fused passes know rules of one sum alone.
    fused = None

    def __init__(self, ops: Ops) -> None:
        self._ops = ops

    def __getattr__(self, name: str) -> Any:
        # What takes no rows is done by the other; mypy cannot see which, so a test looks at the protocol.
        return getattr(self._ops, name)

    def extents(self, target: Array | None, weight: Array | None, powers: tuple[int, ...]) -> list[tuple[int, int]]:
        """Find the binary places that the terms touch in any row; of squares those of the first term."""
        if target is None or target.ndim == 1:
            return self._ops.extents(target, weight, powers)
        extents = self._ops.extents(in_one_piece(target[:, 0]), weight, powers)
        plain = tuple(power for power in powers if power < 2)
        for column in range(1, target.shape[1]):
            own = dict(zip(plain, self._ops.extents(in_one_piece(target[:, column]), weight, plain), strict=True))
            extents = [both(first, own.get(power, first)) for first, power in zip(extents, powers, strict=True)]
        return extents

    def accumulate(
        self, rows: Rows, n_categories: int, folds: Folds, n_folds: int, n_classes: int, layout: Layout
    ) -> Array:
        """Sum every term exactly, and the weights: (n_categories + 2, n_folds, terms, layout.width)."""
        if rows.target is None or rows.target.ndim == 1:
            return self._ops.accumulate(rows, n_categories, folds, n_folds, n_classes, layout)
        accumulators = self._ops.zeros((n_categories + 2, n_folds, rows.target.shape[1], layout.width), np.int64)
        for column in range(rows.target.shape[1]):
            own = columns_of(layout, column)
            sums = self._ops.accumulate(term(rows, column), n_categories, folds, n_folds, 1, own)
            accumulators[:, :, column, : own.width] = sums[:, :, 0]
        return accumulators

    def accumulate_numbers(self, rows: Rows, n_classes: int, layout: Layout) -> tuple[Array, Array]:
        """Sum rows, in one fold, whose codes are any integers; give the sorted distinct integers, too."""
        codes, numbers = self._ops.factorize(rows.codes)
        return self.accumulate(rows.with_codes(codes), len(numbers), None, 1, n_classes, layout), numbers

    def leave_one_out(self, accumulators: Array, rows: Rows, layout: Layout) -> Array:
        """Give the digits of each row's category less the row: (rows, terms, layout.width)."""
        others = self._ops.zeros((len(rows), accumulators.shape[1], layout.width), np.int64)
        for column in range(accumulators.shape[1]):
            own = columns_of(layout, column)
            whole = in_one_piece(accumulators[:, column : column + 1, : own.width])
            others[:, column, : own.width] = self._ops.leave_one_out(whole, term(rows, column), own)[:, 0]
        return others

    def ordered(self, rows: Rows, ties: Array | None, layout: Layout, carry: Carry) -> Array:
        """Give the digits of each row's category before the row, in the order given: (rows, terms, layout.width)."""
        earlier = self._ops.zeros((len(rows), carry.sums.shape[1], layout.width), np.int64)
        for column in range(carry.sums.shape[1]):
            own = columns_of(layout, column)
            part = slice(column, column + 1), slice(own.width)
            state = Carry(carry.sums[:, *part].copy(), carry.at_tie[:, *part].copy(), carry.last_tie.copy())
            earlier[:, column, : own.width] = self._ops.ordered(term(rows, column), ties, own, state)[:, 0]
            carry.sums[:, *part] = state.sums
            if carry.at_tie.size:
                carry.at_tie[:, *part] = state.at_tie
        # The same for every term: rows of one tie are tied in all of them.
        carry.last_tie[...] = state.last_tie
        return earlier


def term(rows: Rows, column: int) -> Rows:
    """Give the rows with one of their terms as the target."""
    assert rows.target is not None
    return Rows(rows.codes, None, in_one_piece(rows.target[:, column]), rows.weight)


def columns_of(layout: Layout, column: int) -> Layout:
    """Give the layout of one term: squares stand last, and are those of the first alone."""
    return replace(layout, square=None) if column else layout


def both(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """Join the binary places that two extents touch; an empty one is (0, 0)."""
    if one == (0, 0) or other == (0, 0):
        return other if one == (0, 0) else one
    return min(one[0], other[0]), max(one[1], other[1])
