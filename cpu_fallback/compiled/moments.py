"""Count, mean and squared deviations of cells, from their digits: integers of any size, rounded once.

Numbers are `n` digits from a place `at` of a flat array: slices would cost more than the arithmetic on them.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.compiled import threads
from cpu_fallback.compiled.border import Array, frozen, kernel, measures_of
from cpu_fallback.moments import MomentArrays, empty_moments

if TYPE_CHECKING:
    from gpu_encode.ops import Layout

MASK = np.int64(0xFFFFFFFF)
SAFE = np.int64(1) << np.int64(53)
SMALL = np.int64(1) << np.int64(31)
SPLITTER = 134217729.0
TWO_TO_MINUS_64 = 2.0**-64
TWO_TO_MINUS_128 = 2.0**-128
# A cell costs as much as some thirty rows of other kernels.
SMALLEST_SHARE = 1 << 10


class Shape(NamedTuple):
    """Widths and lowest positions of the digits of N, S and Q in a cell, and whether classes are counted in it."""

    n_width: int
    s_width: int
    q_width: int
    n_low: int
    s_low: int
    q_low: int
    n_classes: int
    by_class: bool


class Room(NamedTuple):
    """Scratch space: N in digits, magnitudes of N, S and Q, columns of a product, its magnitude."""

    summed: Array
    n: Array
    s: Array
    q: Array
    columns: Array
    product: Array


@kernel
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


@kernel
def magnitude(digits: Array, at: int, n: int, out: Array) -> int:
    """Carry signed digits to non-negative ones, one more than there were; gives the sign."""
    carry = np.int64(0)
    for i in range(n):
        low = (digits[at + i] & MASK) + carry
        out[i] = low & MASK
        carry = (digits[at + i] >> 32) + (low >> 32)
    out[n] = carry
    if carry >= 0:
        return 1
    carry = np.int64(1)
    for i in range(n):
        low = (~out[i] & MASK) + carry
        out[i] = low & MASK
        carry = low >> 32
    out[n] = ~out[n] + carry
    return -1


@kernel
def digit(digits: Array, i: int) -> np.uint64:
    """Give a digit, zero below the first."""
    return np.uint64(digits[i]) if i >= 0 else np.uint64(0)


@kernel
def rounded_pair(digits: Array, n: int, low: int) -> tuple[float, float, int]:
    """Round non-negative digits to (hi, lo, exponent): the number is (hi + lo) * 2**exponent, hi correctly rounded."""
    top = n - 1
    while top > 0 and digits[top] == 0:
        top -= 1
    if digits[top] == 0:
        return 0.0, 0.0, 0
    first, second, third = digit(digits, top), digit(digits, top - 1), digit(digits, top - 2)
    fourth, fifth = digit(digits, top - 3), digit(digits, top - 4)
    _, length = math.frexp(float(first))
    size = np.uint64(length)
    head = (first << (np.uint64(64) - size)) | (second << (np.uint64(32) - size)) | (third >> size)
    tail = np.int64(third & ((np.uint64(1) << size) - np.uint64(1)))
    sticky = tail != 0 or fourth != 0 or fifth != 0
    for i in range(top - 4):
        sticky = sticky or digits[i] != 0
    mantissa = np.int64(head >> np.uint64(11))
    rest = np.int64(head & np.uint64(0x7FF))
    if rest > 1024 or (rest == 1024 and (sticky or mantissa & 1 == 1)):
        mantissa += 1
        rest -= 2048
    deep = (fourth << np.uint64(32)) | fifth
    lower = float((rest << length) + tail) * TWO_TO_MINUS_64 + float(deep) * TWO_TO_MINUS_128
    return math.ldexp(float(mantissa), length - 53), lower, 32 * (top + low)


@kernel
def pair(digits: Array, at: int, n: int, low: int, room: Array) -> tuple[float, float, int]:
    """Give (hi, lo, exponent) of signed digits."""
    if low == 0 and n == 1 and -SAFE < digits[at] < SAFE:
        return float(digits[at]), 0.0, 0
    sign = magnitude(digits, at, n, room)
    high, lower, exponent = rounded_pair(room, n + 1, low)
    return sign * high, sign * lower, exponent


@kernel
def plain(value: float, exponent: int) -> float:
    """Value * 2**exponent, for any exponent."""
    return value if exponent == 0 else math.ldexp(value, min(max(exponent, -5000), 5000))


@kernel
def halved(value: float) -> float:
    """Upper 26 bits of a number (Veltkamp)."""
    wide = value * SPLITTER
    return wide - (wide - value)


@kernel
def quotient(high: float, lower: float, n_high: float, n_lower: float) -> float:
    """Quotient of two pairs, as `cpu_fallback.exact.quotient` has it."""
    if n_high == 0:
        return math.nan
    first = high / n_high
    product = first * n_high
    a, b = halved(first), halved(n_high)
    c, d = first - a, n_high - b
    error = c * d - (((product - a * b) - c * b) - a * d)
    rest = ((high - product) - error) + (lower - first * n_lower)
    return first + rest / n_high


@kernel
def add_product(left: Array, n_left: int, right: Array, n_right: int, sign: int, out: Array, at: int) -> None:
    """Add sign * left * right, digit by digit, to columns not yet carried."""
    for i in range(n_left):
        if left[i]:
            for j in range(n_right):
                product = np.uint64(left[i]) * np.uint64(right[j])
                out[at + i + j] += sign * np.int64(product & np.uint64(MASK))
                out[at + i + j + 1] += sign * np.int64(product >> np.uint64(32))


@kernel
def trimmed(digits: Array, n: int) -> int:
    """Count digits up to the highest that is not zero."""
    while n > 0 and digits[n - 1] == 0:
        n -= 1
    return n


@kernel
def deviation(cells: Array, s_at: int, q_at: int, shape: Shape, room: Room) -> tuple[float, int]:
    """N * Q - S**2, rounded once, as (fraction, exponent); N lies in the room."""
    n_sign = magnitude(room.summed, 0, shape.n_width, room.n)
    magnitude(cells, s_at, shape.s_width, room.s)
    q_sign = magnitude(cells, q_at, shape.q_width, room.q)
    n = trimmed(room.n, shape.n_width + 1)
    s = trimmed(room.s, shape.s_width + 1)
    q = trimmed(room.q, shape.q_width + 1)
    left, right = shape.n_low + shape.q_low, 2 * shape.s_low
    low = min(left, right)
    width = max(left + n + q, right + 2 * s) - low
    for i in range(width):
        room.columns[i] = 0
    add_product(room.n, n, room.q, q, n_sign * q_sign, room.columns, left - low)
    add_product(room.s, s, room.s, s, -1, room.columns, right - low)
    fraction, _, exponent = pair(room.columns, 0, width, low, room.product)
    return fraction, exponent


@kernel
def spread(cells: Array, s_at: int, q_at: int, shape: Shape, room: Room) -> tuple[float, int]:
    """N * Q - S**2: in plain integers where these are small, else digit by digit."""
    if shape.n_width == shape.s_width == shape.q_width == 1 and shape.n_low == shape.s_low == shape.q_low == 0:
        n, s, q = room.summed[0], cells[s_at], cells[q_at]
        if 0 <= n < SMALL and 0 <= q < SMALL and -SMALL < s < SMALL and -SAFE < n * q - s * s < SAFE:
            return float(n * q - s * s), 0
    return deviation(cells, s_at, q_at, shape, room)


@kernel
def less_one(shape: Shape, room: Room) -> float:
    """N - 1, correctly rounded."""
    n, low = shape.n_width, shape.n_low
    if low == 0 and n == 1 and -SAFE < room.summed[0] < SAFE:
        return float(room.summed[0] - 1)
    base = min(low, 0)
    width = max(low - base + n, 1 - base)
    for i in range(width):
        room.columns[i] = 0
    for i in range(n):
        room.columns[low - base + i] = room.summed[i]
    room.columns[-base] -= 1
    high, _, exponent = pair(room.columns, 0, width, base, room.product)
    return plain(high, exponent)


@kernel
def moments_range(
    cells: Array,
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
    """Moments of the cells [start, stop)."""
    room = scratch(shape)
    line = shape.n_width if shape.by_class else shape.n_width + shape.s_width + shape.q_width
    for i in range(start, stop):
        cell = i * shape.n_classes * line
        for column in range(shape.n_width):
            room.summed[column] = 0
            for label in range(shape.n_classes):
                room.summed[column] += cells[cell + label * line + column]
        n_high, n_lower, n_exponent = pair(room.summed, 0, shape.n_width, shape.n_low, room.n)
        n[i, 0] = plain(n_high, n_exponent)
        if deviations:
            fewer[i, 0] = less_one(shape, room)
        for label in range(first, shape.n_classes):
            s_at = cell + label * line + (0 if shape.by_class else shape.n_width)
            high, lower, power = pair(cells, s_at, shape.s_width, shape.s_low, room.s)
            mean[i, label - first] = plain(quotient(high, lower, n_high, n_lower), power - n_exponent)
            if deviations:
                q_at = s_at if shape.by_class else s_at + shape.s_width
                fraction[i, label - first], exponent[i, label - first] = spread(cells, s_at, q_at, shape, room)


def moments(cells: Array, layout: "Layout", first_output: int, deviations: bool, /) -> MomentArrays:
    """Count, mean and deviations of every cell; see `gpu_encode.ops.Ops`."""
    out = empty_moments(cells.shape, first_output, deviations)
    n_cells = int(np.prod(cells.shape[:-2]))
    lines = [part.reshape(n_cells, part.shape[-1]) for part in out]
    shape = shape_of(layout, cells.shape[-2])
    flat = frozen(cells, np.int64).reshape(-1)
    parts = threads.shares(n_cells, smallest=SMALLEST_SHARE)

    def work(number: int) -> None:
        moments_range(flat, shape, first_output, deviations, *parts[number], *lines)

    threads.run(work, len(parts))
    return out


def shape_of(layout: "Layout", n_classes: int) -> Shape:
    """Describe cells to the kernels; a class's count is its S and its Q."""
    (_, _, n_low, n_width), (kept, _, s_low, s_width), (_, _, q_low, q_width) = measures_of(layout).tolist()
    if kept:
        return Shape(n_width, s_width, q_width, n_low, s_low, q_low, n_classes, False)
    return Shape(n_width, n_width, n_width, n_low, n_low, n_low, n_classes, True)
