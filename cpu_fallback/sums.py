"""Exact counts and sums for each cell of category, fold and class, and the sums that a fold or a row sees."""

import itertools
import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.categories import factorize
from cpu_fallback.digits import bit_range, signed_digits
from cpu_fallback.exact import DIGIT, FRACTION, Floats, peak, residual
from cpu_fallback.row_numbers import fold_array
from cpu_fallback.types import SumsByNumber, SumShape

if TYPE_CHECKING:
    from cpu_fallback.types import Array, Folds, Layout, Rows, Window

# Digits are below 2**32, so the sum of this many of them is exact in float64, in which bincount works.
BLOCK = 1 << 20
LARGEST_SUMMED = 1 << 32
LINES_AT_ONCE = 64
# Number of rows at a time, whose intermediate results stay in the processor's cache.
TILE = 1 << 14
FIRST = 1 << 10
# Up to this number of digits are summed in one call.
FEW_DIGITS = 1 << 14
# If numbers lie between these bounds, products of two of them, and the rounding errors of these, neither overflow nor
# underflow.
LARGEST_FACTOR = 2.0**200
SMALLEST_FACTOR = 2.0**-200
# A number can be shifted to a window within these binary positions by one multiplication.
FARTHEST = 960
WIDEST = 24


def factors_of(target: "Array | None", weight: "Array | None", power: int) -> "list[Array]":
    """Give the arrays whose product weight * target**power is summed; an empty list stands for the number 1."""
    return ([] if weight is None else [weight]) + ([] if target is None else [target] * power)


def row_digits(rows: "Rows", layout: "Layout", /) -> NDArray[np.int64]:
    """Give the digits that each row adds to its cell: (rows, layout.width)."""
    out = np.empty((len(rows.codes), layout.width), np.int64)
    for window, power, columns in layout.measures():
        factors = factors_of(rows.target, rows.weight, power)
        if window.whole:
            out[:, columns.start] = whole_product(factors, len(out))
        else:
            out[:, columns] = window_digits(factors, window, len(out)).T
    return out


def whole_product(factors: "list[Array]", n_rows: int) -> NDArray[np.int64]:
    """Multiply integers whose products are known to fit 64 bits; without any factor, the product is 1."""
    product = np.ones(n_rows, np.int64)
    # The target of a row of weight 0 was not checked and may be any value; it is multiplied by zero.
    with np.errstate(invalid="ignore"):
        for factor in factors:
            product *= factor.astype(np.int64)
    return product


def window_digits(factors: "list[Array]", window: "Window", n_rows: int) -> Floats:
    """Give the digits of each product in a window, each with the sign of the product: (width, rows)."""
    out = np.zeros((window.width, n_rows))
    if not factors:
        return out
    write = choose_way(factors, window)
    square = len(factors) == 2 and factors[0] is factors[1]
    for start in range(0, n_rows, TILE):
        part = slice(start, start + TILE)
        # In a square, both factors are the same number, whose sign does not matter.
        here = [factor[part] for factor in (factors[:1] if square else factors)]
        write(here * 2 if square else here, window, out[:, part])
    return out


def choose_way(factors: "list[Array]", window: "Window") -> "Callable[[list[Array], Window, Floats], None]":
    """Choose the fastest way to the digits that is exact for these numbers."""
    far = window.width > WIDEST or max(abs(window.low), abs(window.low + window.width)) * 32 > FARTHEST
    if far or len(factors) > 2:
        return write_digits
    if len(factors) == 1:
        return write_number if factors[0].dtype == np.float64 else write_digits
    distinct = factors[:1] if factors[0] is factors[1] else factors
    return write_product if all(is_moderate(factor) for factor in distinct) else write_digits


def is_moderate(factor: "Array") -> bool:
    """Tell whether all numbers fit float64 exactly and are neither huge nor tiny."""
    if factor.dtype != np.float64:
        return bool(factor.size) and max(int(factor.max()), -int(factor.min())) < 1 << 53
    size = np.abs(factor)
    largest = size.max(initial=0.0)
    size[size == 0] = 1.0
    # A row of weight 0 may hold NaN, which is not below any bound.
    return bool(largest < LARGEST_FACTOR and size.min(initial=1.0) > SMALLEST_FACTOR)


def write_number(factors: "list[Array]", window: "Window", out: Floats) -> None:
    """Write the digits of single floats: for each digit, take the integer part away and go on with the rest."""
    rest = factors[0] * 2.0 ** (-32 * (window.low + window.width - 1))
    for digit in out[::-1]:
        rest -= np.trunc(rest, out=digit)
        rest *= DIGIT


def write_product(factors: "list[Array]", window: "Window", out: Floats) -> None:
    """Write the digits of products of two floats: the digits of the product, rounded down, plus those of the rest.

    The rest is smaller than the last bit of the product, so adding both needs no carries.
    """
    left = np.abs(factors[0].astype(np.float64, copy=False))
    right = left if factors[1] is factors[0] else np.abs(factors[1].astype(np.float64, copy=False))
    high = left * right
    low = -residual(high, left, right)
    rounded_down = (high.view(np.int64) - (low < 0)).view(np.float64)
    low += high - rounded_down
    high = rounded_down
    scale = 2.0 ** (-32 * (window.low + window.width - 1))
    high *= scale
    low *= scale
    for digit in out[::-1]:
        high -= np.floor(high, out=digit)
        whole = np.floor(low)
        low -= whole
        np.add(digit, whole, out=digit)
        high *= DIGIT
        low *= DIGIT
    if factors[0] is not factors[1]:
        out *= np.sign(factors[0]) * np.sign(factors[1])


def write_digits(factors: "list[Array]", window: "Window", out: Floats) -> None:
    """Write the digits of products of any numbers."""
    digits, base = signed_digits(factors)
    rows = np.arange(out.shape[1])
    for offset, digit in enumerate(digits):
        # Outside of the window all digits are zero: the window is as wide as the data need.
        column = np.clip(base + (offset - window.low), 0, window.width - 1)
        out[column, rows] += digit


def slots(rows: "Rows", shape: SumShape, folds: NDArray[np.int32] | None) -> NDArray[np.int64]:
    """Give the cell of each row, by category, then fold, then class; negative codes count from the end of the table."""
    cell = rows.codes.astype(np.int64)
    cell[cell < 0] += shape.n_categories + 2
    cell *= shape.n_folds
    if folds is not None:
        cell += folds
    cell *= shape.n_classes
    if rows.classes is not None:
        cell += rows.classes
    return cell


def accumulate(
    rows: "Rows", shape: SumShape, folds: "Folds" = None, sums: "Array | None" = None, /
) -> NDArray[np.int64]:
    """Add every row to its cell; give (n_categories + 2, n_folds, n_classes, layout.width) digits."""
    n_categories, n_folds, n_classes, layout = shape
    n_cells = (n_categories + 2) * n_folds * n_classes
    accumulators = np.zeros((layout.width, n_cells), np.int64)
    for start in range(0, len(rows.codes), BLOCK):
        block = rows.block(start, min(start + BLOCK, len(rows.codes)))
        cell = slots(block, shape, fold_array(folds, start, start + len(block.codes)))
        for window, power, columns in layout.measures():
            factors = factors_of(block.target, block.weight, power)
            if not window.whole:
                digits = window_digits(factors, window, len(cell))
                for column, of_digit in enumerate(sum_digits(cell, digits, n_cells), columns.start):
                    accumulators[column] += of_digit
            elif factors:
                accumulators[columns.start] += exact_bincount(cell, whole_product(factors, len(cell)), n_cells)
            else:
                accumulators[columns.start] += np.bincount(cell, minlength=n_cells)
    added = np.ascontiguousarray(accumulators.T).reshape(n_categories + 2, n_folds, n_classes, layout.width)
    return added if sums is None else np.add(sums, added, out=sums)


def sum_digits(cell: NDArray[np.int64], digits: Floats, n_cells: int) -> "Iterable[NDArray[np.int64]]":
    """Sum digits (width, rows) by cell: (width, n_cells); if there are many, one column at a time."""
    if len(digits) * max(len(cell), n_cells) > FEW_DIGITS:
        return (np.bincount(cell, digit, n_cells).astype(np.int64) for digit in digits)
    # For few rows, the calls take longer than the sums.
    cells = cell + np.arange(len(digits))[:, None] * n_cells
    sums = np.bincount(cells.ravel(), digits.ravel(), len(digits) * n_cells).astype(np.int64)
    return sums.reshape(len(digits), n_cells)


def accumulate_numbers(rows: "Rows", n_classes: int, layout: "Layout", /) -> SumsByNumber:
    """Sum rows by number; see `gpu_encode.seam.ops.Ops`."""
    codes, distinct = factorize(rows.codes)
    shape = SumShape(len(distinct), 1, n_classes, layout)
    return SumsByNumber(accumulate(rows.with_codes(codes), shape), distinct, codes)


def exact_bincount(cell: NDArray[np.int64], values: NDArray[np.int64], n_cells: int) -> NDArray[np.int64]:
    """Do a weighted bincount of integers by exact float64 bincounts, of both halves if the weights are large."""
    if peak(values) < LARGEST_SUMMED:
        return np.bincount(cell, values, n_cells).astype(np.int64)
    low = np.bincount(cell, values & 0xFFFFFFFF, n_cells).astype(np.int64)
    return low + (np.bincount(cell, values >> 32, n_cells).astype(np.int64) << 32)


def is_own(visibility: "Array", n_folds: int) -> bool:
    """Tell whether each view sees only its own fold, without a matrix for comparison."""
    square = visibility.shape == (n_folds, n_folds)
    return square and bool(visibility.trace() == n_folds) and bool(visibility.sum() == n_folds)


def is_others(visibility: "Array", n_folds: int) -> bool:
    """Whether each view sees every fold but its own."""
    square = visibility.shape == (n_folds, n_folds)
    return square and not visibility.trace() and visibility.sum() == n_folds * (n_folds - 1) > 0


def visible(accumulators: "Array", visibility: "Array | None", /) -> "Array":
    """Sum cells (categories + 2, folds, ...) over the folds that each view sees: (categories + 2, views, ...).

    Without a matrix each fold is a view of its own.
    """
    if visibility is None or is_own(visibility, accumulators.shape[1]):
        return accumulators
    total = accumulators.sum(axis=1, keepdims=True)
    if is_others(visibility, accumulators.shape[1]):
        others: Array = total - accumulators
        return others
    if visibility.all():
        return np.repeat(total, len(visibility), axis=1)
    return np.stack([sum_over(accumulators, seen) for seen in visibility], axis=1)


def sum_over(accumulators: "Array", seen: "Array") -> "Array":
    """Sum the folds that a view sees, from a 0 or 1 for each fold; neighbouring folds are added at once."""
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
    """Give the range of binary positions of weight * target**power over all rows, for each power in order."""
    if weight is None and target is not None and target.dtype == np.float64 and 0 not in powers:
        low, high = span_of(target)
        return [(power * low, power * high) for power in powers]
    ranges = []
    for power in powers:
        factors = factors_of(target, weight, power)
        blocks = range(0, len(factors[0]), BLOCK)
        parts = [bit_range([factor[start : start + BLOCK] for factor in factors]) for start in blocks]
        touched = [part for part in parts if part != (0, 0)]
        ranges.append((min(low for low, _ in touched), max(high for _, high in touched)) if touched else (0, 0))
    return ranges


def span_of(numbers: NDArray[np.float64]) -> tuple[int, int]:
    """Give the range of binary positions [lowest, highest) of all numbers; (0, 0) if all are zero."""
    largest, smallest = 0.0, np.inf
    for start, stop in itertools.pairwise([0, *range(FIRST, len(numbers), TILE), len(numbers)]):
        size = np.abs(numbers[start:stop])
        largest = max(largest, float(size.max(initial=0.0)))
        # The first numbers rule out that most others have a smaller last bit.
        smallest = min(smallest, last_bit(size[size < smallest * 2.0**52]))
    return (math.frexp(smallest)[1] - 1, math.frexp(largest)[1]) if largest else (0, 0)


def last_bit(size: Floats) -> float:
    """Give the smallest power of two that is the last bit of a number; zeros have none."""
    # The number without its last bit; the last bit of a power of two is the number itself.
    bits = size.view(np.int64)
    rest = (bits & (bits - 1)).view(np.float64)
    last = np.where(bits & FRACTION != 0, size - rest, size)
    return float(np.where(size != 0, last, np.inf).min(initial=np.inf))


def leave_one_out(accumulators: "Array", rows: "Rows", layout: "Layout", /) -> NDArray[np.int64]:
    """Give the sums of each row's category without the row: (rows, n_classes, width) digits."""
    seen = accumulators[rows.codes]
    digits = row_digits(rows, layout)
    seen[np.arange(len(digits)), 0 if rows.classes is None else rows.classes] -= digits
    return seen
