"""Exact counts and sums per (category, fold, class) cell, and what a fold or a row sees of them."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.categories import factorize
from cpu_fallback.digits import bit_range, signed_digits
from cpu_fallback.row_numbers import fold_array

if TYPE_CHECKING:
    from cpu_fallback.types import Array, Folds, Layout, Rows, Window

# Digits are below 2**32, so this many of them add up exactly in float64, in which bincount works.
BLOCK = 1 << 20
LINES_AT_ONCE = 64


def factors_of(target: "Array | None", weight: "Array | None", power: int) -> "list[Array]":
    """Arrays whose product weight * target**power is summed; none stands for one."""
    return ([] if weight is None else [weight]) + ([] if target is None else [target] * power)


def row_digits(rows: "Rows", layout: "Layout", /) -> NDArray[np.int64]:
    """What each row adds to its cell: (rows, layout.width) digits."""
    out = np.zeros((len(rows.codes), layout.width), np.int64)
    for window, power, columns in layout.measures():
        factors = factors_of(rows.target, rows.weight, power)
        if window.whole:
            out[:, columns.start] = whole_product(factors, len(out))
        elif factors:
            place_digits(out[:, columns], factors, window)
    return out


def whole_product(factors: "list[Array]", n_rows: int) -> NDArray[np.int64]:
    """Multiply integers that are known to fit 64 bits; no factor at all counts one."""
    product = np.ones(n_rows, np.int64)
    # The target of a row without weight may be anything: nobody looked at it, and it is multiplied by zero.
    with np.errstate(invalid="ignore"):
        for factor in factors:
            product *= factor.astype(np.int64)
    return product


def place_digits(out: NDArray[np.int64], factors: "list[Array]", window: "Window") -> None:
    """Write the digits of each product at its positions of the window."""
    digits, base = signed_digits(factors)
    rows = np.arange(len(out))
    for offset, digit in enumerate(digits):
        # Outside the window all digits are zero: it was made as wide as the data need.
        column = np.clip(base + (offset - window.low), 0, window.width - 1)
        np.add.at(out, (rows, column), digit)


def slots(
    rows: "Rows", n_folds: int, n_classes: int, folds: NDArray[np.int32] | None, n_categories: int
) -> NDArray[np.int64]:
    """Cell of each row: category-major, then fold, then class; negative codes count from the end of the table."""
    cell = rows.codes.astype(np.int64)
    cell[cell < 0] += n_categories + 2
    cell *= n_folds
    if folds is not None:
        cell += folds
    cell *= n_classes
    if rows.classes is not None:
        cell += rows.classes
    return cell


def accumulate(
    rows: "Rows", n_categories: int, folds: "Folds", n_folds: int, n_classes: int, layout: "Layout", /
) -> NDArray[np.int64]:
    """Add every row to its cell; gives (n_categories + 2, n_folds, n_classes, layout.width) digits."""
    n_cells = (n_categories + 2) * n_folds * n_classes
    accumulators = np.zeros((layout.width, n_cells), np.int64)
    for start in range(0, len(rows.codes), BLOCK):
        block = rows.block(start, min(start + BLOCK, len(rows.codes)))
        cell = slots(block, n_folds, n_classes, fold_array(folds, start, start + len(block.codes)), n_categories)
        added = row_digits(block, layout)
        for column in range(layout.width):
            accumulators[column] += exact_bincount(cell, added[:, column], n_cells)
    return np.ascontiguousarray(accumulators.T).reshape(n_categories + 2, n_folds, n_classes, layout.width)


def accumulate_numbers(rows: "Rows", n_classes: int, layout: "Layout", /) -> "tuple[Array, Array]":
    """Sum rows by number: (distinct + 2, 1, n_classes, layout.width) digits, and the sorted distinct numbers."""
    codes, distinct = factorize(rows.codes)
    return accumulate(rows.with_codes(codes), len(distinct), None, 1, n_classes, layout), distinct


def exact_bincount(cell: NDArray[np.int64], values: NDArray[np.int64], n_cells: int) -> NDArray[np.int64]:
    """Integer bincount with weights: two float64 bincounts of halves, each exact."""
    low = np.bincount(cell, values & 0xFFFFFFFF, n_cells).astype(np.int64)
    high = values >> 32
    return low + (np.bincount(cell, high, n_cells).astype(np.int64) << 32) if high.any() else low


def is_own(visibility: "Array", n_folds: int) -> bool:
    """Whether each view sees its own fold alone; read off without a matrix to compare with."""
    return visibility.shape == (n_folds, n_folds) and bool(visibility.diagonal().all()) and visibility.sum() == n_folds


def is_others(visibility: "Array", n_folds: int) -> bool:
    """Whether each view sees every fold but its own."""
    square = visibility.shape == (n_folds, n_folds)
    return square and not visibility.diagonal().any() and visibility.sum() == n_folds * (n_folds - 1) > 0


def visible(accumulators: "Array", visibility: "Array | None", /) -> "Array":
    """Sum cells (categories + 2, folds, ...) over the folds that each view sees: (categories + 2, views, ...).

    Without a matrix each fold is a view of its own.
    """
    if visibility is None or is_own(visibility, accumulators.shape[1]):
        return accumulators
    total = accumulators.sum(axis=1, keepdims=True)
    if visibility.all():
        return np.repeat(total, len(visibility), axis=1)
    if is_others(visibility, accumulators.shape[1]):
        others: Array = total - accumulators
        return others
    return np.stack([sum_over(accumulators, seen) for seen in visibility], axis=1)


def sum_over(accumulators: "Array", seen: "Array") -> "Array":
    """Sums over the folds that a view sees, from the 0 or 1 of each fold; neighbouring folds are added at once."""
    total = np.zeros_like(accumulators[:, 0])
    edges = np.flatnonzero(np.diff(seen, prepend=0, append=0)).tolist()
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        total += accumulators[:, start:stop].sum(axis=1)
    return total


def totals(accumulators: "Array", /) -> "Array":
    """Sum cells over their first axis; many short lines are added as fewer long ones, in a quarter of the time."""
    whole = len(accumulators) // LINES_AT_ONCE * LINES_AT_ONCE
    rest: Array = accumulators[whole:].sum(axis=0)
    if not whole:
        return rest
    lines = accumulators[:whole].reshape(whole // LINES_AT_ONCE, -1).sum(axis=0)
    rest += lines.reshape(LINES_AT_ONCE, *accumulators.shape[1:]).sum(axis=0)
    return rest


def extents(target: "Array | None", weight: "Array | None", powers: tuple[int, ...], /) -> list[tuple[int, int]]:
    """Binary places that weight * target**power touches in any row, for each power; ordered by power."""
    ranges = []
    for power in powers:
        factors = factors_of(target, weight, power)
        blocks = range(0, len(factors[0]), BLOCK)
        parts = [bit_range([factor[start : start + BLOCK] for factor in factors]) for start in blocks]
        touched = [part for part in parts if part != (0, 0)]
        ranges.append((min(low for low, _ in touched), max(high for _, high in touched)) if touched else (0, 0))
    return ranges


def leave_one_out(accumulators: "Array", rows: "Rows", layout: "Layout", /) -> NDArray[np.int64]:
    """Category sums (categories + 2, n_classes, width) less the row itself: (rows, n_classes, width) digits."""
    seen = accumulators[rows.codes]
    digits = row_digits(rows, layout)
    seen[np.arange(len(digits)), 0 if rows.classes is None else rows.classes] -= digits
    return seen
