"""Count, mean and squared deviations of cells, from their digits: integers of any size, rounded once.

A number is `n` digits of a flat array from index `at` on: slices would cost more than the arithmetic on them.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.compiled import threads
from cpu_fallback.compiled.border import Array, counting, freeze, inlined, kernel, measures_of, stage
from cpu_fallback.compiled.digits import FRACTION, ONE, ZERO
from cpu_fallback.compiled.midpoints import settle
from cpu_fallback.compiled.product_errors import product_error
from cpu_fallback.compiled.rounding import (
    MASK,
    WORD_DIGITS,
    carry_to_words,
    magnitude,
    pair_of_words,
    power_of_two,
    round_pair,
    spread_of_words,
)
from cpu_fallback.exact import MomentArrays, empty_moments

if TYPE_CHECKING:
    from cpu_fallback.types import Layout

SAFE = np.int64(1) << np.int64(53)
SMALL = np.int64(1) << np.int64(31)
COUNTS = np.int64(1) << np.int64(32)
# A quotient that is farther from the middle of two floats than any error is rounded correctly.
DOUBT = 1.0 + 2.0**-30
# A mean below this number is rounded a second time.
TINY = 2.0**-1021
# A cell costs about as much as thirty rows of other kernels.
SMALLEST_SHARE = 1 << 10


class Shape(NamedTuple):
    """Widths and lowest positions of the digits of N, S and Q in a cell, and whether the cell counts classes."""

    n_width: int
    s_width: int
    q_width: int
    n_low: int
    s_low: int
    q_low: int
    n_classes: int
    by_class: bool


@stage
def shape_of_counts(n_classes: int) -> Shape:
    """Describe cells that count classes, one plain integer each."""
    return Shape(1, 1, 1, 0, 0, 0, n_classes, True)


@stage
def cell_width(shape: Shape) -> int:
    """Give the number of columns of a cell."""
    return shape.n_width if shape.by_class else shape.n_width + shape.s_width + shape.q_width


class Room(NamedTuple):
    """Scratch space: N in digits, magnitudes of N, S and Q, columns of a product, its magnitude."""

    summed: Array
    n: Array
    s: Array
    q: Array
    columns: Array
    product: Array


@counting
def scratch(shape: Shape) -> Room:
    """Give room for one cell, products and differences included."""
    n, s, q = shape.n_width + 1, shape.s_width + 1, shape.q_width + 1
    spread = abs(2 * shape.s_low - shape.n_low - shape.q_low) + n + q + 2 * s
    wide = max(spread, n + abs(shape.n_low)) + 2
    return Room(
        np.zeros(n, np.int64),
        np.zeros(wide, np.int64),
        np.zeros(s, np.int64),
        np.zeros(q, np.int64),
        np.zeros(wide, np.int64),
        np.zeros(wide + 1, np.int64),
    )


@counting
def pair_of_many(digits: Array, at: int, n: int, low: int) -> tuple[float, float, int]:
    """Give (hi, lo, exponent) of any number of signed digits; this allocates memory, but is rarely needed."""
    room = np.empty(n + 1, np.int64)
    sign = magnitude(digits, at, n, room)
    high, lower, exponent = round_pair(room, n + 1, low)
    return sign * high, sign * lower, exponent


@inlined
def pair(digits: Array, at: int, n: int, low: int) -> tuple[float, float, int]:
    """Give (hi, lo, exponent) of signed digits."""
    if low == 0 and n == 1 and -SAFE < digits[at] < SAFE:
        return float(digits[at]), 0.0, 0
    fits, top, middle, bottom = False, ZERO, ZERO, ZERO
    if 0 < n <= WORD_DIGITS:
        fits, top, middle, bottom = carry_to_words(digits, at, n)
    if not fits:
        return pair_of_many(digits, at, n, low)
    high, lower, exponent = pair_of_words(top, middle, bottom)
    return high, lower, exponent + 32 * low if high else 0


@stage
def bound_exponent(exponent: int) -> int:
    """Give an exponent that a float has, or one beyond all of them."""
    return min(max(exponent, -5000), 5000)


@stage
def plain(value: float, exponent: int) -> float:
    """Give value * 2**exponent, for any exponent."""
    if exponent == 0:
        return value
    # Multiplying by a normal power of two rounds once, as ldexp does.
    return value * power_of_two(exponent) if -1000 < exponent < 1000 else math.ldexp(value, bound_exponent(exponent))


@inlined
def quotient(high: float, lower: float, n_high: float, n_lower: float) -> tuple[float, bool]:
    """Give the quotient of two pairs, and whether it may be rounded wrongly, as in `cpu_fallback.exact.quotient`."""
    first = high / n_high
    product = first * n_high
    left = (high - product) - product_error(product, first, n_high)
    right = lower - first * n_lower
    rest = left + right
    change = rest / n_high
    near = first + change
    off = change - (near - first)
    again = rest - left
    even = (np.float64(lower).view(np.uint64) & ONE) | (np.float64(change).view(np.uint64) & FRACTION) == ZERO
    whole = (left - (rest - again)) + (right - again) == 0
    sure = (n_lower == 0) & even & whole & (change * n_high == rest)
    none = n_high == 0
    return math.nan if none else near, (near + off * DOUBT != near) & ~sure & ~none


@stage
def settled_mean(
    high: float,
    lower: float,
    exponent: int,
    n_high: float,
    n_lower: float,
    n_exponent: int,
    totals: Array,
    at: int,
    width: int,
    low: int,
    counts: Array,
    n_at: int,
    n_width: int,
    n_low: int,
) -> float:
    """Give S / N, rounded once, from pairs and digits of both."""
    near, doubtful = quotient(high, lower, n_high, n_lower)
    mean = plain(near, exponent - n_exponent)
    if doubtful or (high != 0 and abs(mean) < TINY):
        signs = 1 if high > 0 else -1, 1 if n_high > 0 else -1
        return float(settle(mean, totals, at, width, low, signs[0], counts, n_at, n_width, n_low, signs[1]))
    return mean


@stage
def add_product(left: Array, n_left: int, right: Array, n_right: int, sign: int, out: Array, at: int) -> None:
    """Add sign * left * right, digit by digit, to columns not yet carried."""
    for i in range(n_left):
        if left[i]:
            for j in range(n_right):
                product = np.uint64(left[i]) * np.uint64(right[j])
                out[at + i + j] += sign * np.int64(product & np.uint64(MASK))
                out[at + i + j + 1] += sign * np.int64(product >> np.uint64(32))


@stage
def count_digits(digits: Array, n: int) -> int:
    """Count digits up to the highest that is not zero."""
    while n > 0 and digits[n - 1] == 0:
        n -= 1
    return n


@stage
def deviation(accumulators: Array, s_at: int, q_at: int, shape: Shape, room: Room) -> tuple[float, float, int]:
    """Give N * Q - S**2 as (hi, lo, exponent); the digits of N are in `room`."""
    n_sign = magnitude(room.summed, 0, shape.n_width, room.n)
    magnitude(accumulators, s_at, shape.s_width, room.s)
    q_sign = magnitude(accumulators, q_at, shape.q_width, room.q)
    n = count_digits(room.n, shape.n_width + 1)
    s = count_digits(room.s, shape.s_width + 1)
    q = count_digits(room.q, shape.q_width + 1)
    left, right = shape.n_low + shape.q_low, 2 * shape.s_low
    low = min(left, right)
    width = max(left + n + q, right + 2 * s) - low
    for i in range(width):
        room.columns[i] = 0
    add_product(room.n, n, room.q, q, n_sign * q_sign, room.columns, left - low)
    add_product(room.s, s, room.s, s, -1, room.columns, right - low)
    return pair(room.columns, 0, width, low)


@inlined
def spread(accumulators: Array, s_at: int, q_at: int, shape: Shape, n: int, room: Room) -> tuple[float, float, int]:
    """Give N * Q - S**2 as (hi, lo, exponent), where hi is rounded once.

    It uses plain integers if these are small, a few words if these are enough, else digits.
    """
    if shape.n_width == shape.s_width == shape.q_width == 1 and shape.n_low == shape.s_low == shape.q_low == 0:
        s, q = accumulators[s_at], accumulators[q_at]
        if 0 <= n < SMALL and 0 <= q < SMALL and -SMALL < s < SMALL and -SAFE < n * q - s * s < SAFE:
            return float(n * q - s * s), 0.0, 0
    ahead = shape.q_low - 2 * shape.s_low
    narrow = shape.n_width == 1 and max(shape.s_width, shape.q_width) <= WORD_DIGITS
    if narrow and shape.n_low == 0 and 0 <= ahead <= 1:
        total_fits, s_high, s_middle, s_bottom = carry_to_words(accumulators, s_at, shape.s_width)
        fits, q_high, q_middle, q_bottom = carry_to_words(accumulators, q_at, shape.q_width)
        # The total's magnitude must be below 2**127: then its first word only repeats the sign of the second.
        if fits and total_fits and 0 <= n < COUNTS and np.int64(s_high) == np.int64(s_middle) >> 63:
            upper, lower, exponent = spread_of_words(
                np.uint64(n), (s_high, s_middle, s_bottom), (q_high, q_middle, q_bottom), ahead
            )
            return upper, lower, exponent + 64 * shape.s_low if upper else 0
    return deviation(accumulators, s_at, q_at, shape, room)


@stage
def less_one(shape: Shape, room: Room) -> float:
    """Give N - 1, correctly rounded."""
    n, low = shape.n_width, shape.n_low
    base = min(low, 0)
    width = max(low - base + n, 1 - base)
    for i in range(width):
        room.columns[i] = 0
    for i in range(n):
        room.columns[low - base + i] = room.summed[i]
    room.columns[-base] -= 1
    high, _, exponent = pair(room.columns, 0, width, base)
    return plain(high, exponent)


@inlined
def total_of(shape: Shape, label: int) -> int:
    """Give the column at which the total of a class, or the only total, begins in a cell."""
    return label * cell_width(shape) + (0 if shape.by_class else shape.n_width)


@inlined
def sum_classes(seen: Array, at: int, n_classes: int, width: int, n_width: int, summed: Array) -> None:
    """Sum the digits of the weights of all classes of a cell."""
    for column in range(n_width):
        summed[column] = 0
        for label in range(n_classes):
            summed[column] += seen[at + label * width + column]


@kernel
def moments_range(
    accumulators: Array,
    shape: Shape,
    first: int,
    deviations: bool,
    start: int,
    stop: int,
    n: Array,
    mean: Array,
    fewer: Array,
    fraction: Array,
    exponent: Array,
) -> None:
    """Write the moments of the cells [start, stop)."""
    room = scratch(shape)
    summed, whole = room.summed, shape.n_width == 1 and shape.n_low == 0
    line = cell_width(shape)
    for i in range(start, stop):
        cell = i * shape.n_classes * line
        sum_classes(accumulators, cell, shape.n_classes, line, shape.n_width, summed)
        n_high, n_lower, n_exponent = pair(summed, 0, shape.n_width, shape.n_low)
        n[i, 0] = plain(n_high, n_exponent)
        if deviations:
            few = whole and -SAFE < summed[0] < SAFE
            fewer[i, 0] = float(summed[0] - 1) if few else less_one(shape, room)
        for label in range(first, shape.n_classes):
            s_at = cell + total_of(shape, label)
            high, lower, power = pair(accumulators, s_at, shape.s_width, shape.s_low)
            mean[i, label - first] = settled_mean(
                *(high, lower, power, n_high, n_lower, n_exponent),
                *(accumulators, s_at, shape.s_width, shape.s_low, summed, 0, shape.n_width, shape.n_low),
            )
            if deviations:
                q_at = s_at if shape.by_class else s_at + shape.s_width
                fraction[i, label - first], _, exponent[i, label - first] = spread(
                    accumulators, s_at, q_at, shape, summed[0], room
                )


def moments(accumulators: Array, layout: "Layout", first_output: int, deviations: bool, /) -> MomentArrays:
    """Give count, mean and deviations of every cell; see `gpu_encode.seam.ops.Ops`."""
    out = empty_moments(accumulators.shape, first_output, deviations)
    n_cells = int(np.prod(accumulators.shape[:-2]))
    lines = [part.reshape(n_cells, part.shape[-1]) for part in out]
    shape = shape_of(layout, accumulators.shape[-2])
    flat = freeze(accumulators, np.int64).reshape(-1)
    parts = threads.shares(n_cells, smallest=SMALLEST_SHARE)

    def work(number: int) -> None:
        moments_range(flat, shape, first_output, deviations, *parts[number], *lines)

    threads.run(work, len(parts))
    return out


def shape_of(layout: "Layout", n_classes: int) -> Shape:
    """Describe cells for the kernels; the count of a class is also its S and its Q."""
    (_, _, n_low, n_width), (kept, _, s_low, s_width), (_, _, q_low, q_width) = measures_of(layout).tolist()
    if kept:
        return Shape(n_width, s_width, q_width, n_low, s_low, q_low, n_classes, False)
    return Shape(n_width, n_width, n_width, n_low, n_low, n_low, n_classes, True)
