"""Sums of rows whose weights halve with age, exactly: weights are eight constants times powers of two.

A row has a step: its time in whole eighths of a half-life.  Step 8 q + r stands for q half-lives and r eighths; 512
steps are a block.  A row is summed with the weight g[r] * 2**(q mod 64 - 63), on the scale of its block, and the sum of
a block as seen from a step 8 Q + R of that block is multiplied by d[R] * 2**(63 - Q mod 64).  The sum of the block
before is 2**-64 of itself: two digits lower.  Older blocks do not count.  g and d are 2**(r / 8) and 2**(-r / 8),
rounded to 31 binary places; all else is exact.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.types import Array, Layout, Window
from gpu_encode.ops import Ops

STEPS_OF_BLOCK = 512
# 2**31 times 2**(r / 8), and times 2**(-r / 8).
GROWTH = (2147483648, 2341847524, 2553802834, 2784941738, 3037000500, 3311872529, 3611622603, 3938502376)
DECLINE = (2147483648, 1969251188, 1805811301, 1655936265, 1518500250, 1392470869, 1276901417, 1170923762)
MASK = 0xFFFFFFFF


def blocks_of(steps: Any) -> Any:
    """Give the block of each step."""
    return steps >> 9


def weights_of(steps: NDArray[np.int64]) -> NDArray[np.float64]:
    """Give the weight of a row of each step on the scale of its block: below 2."""
    exponents = (((steps >> 3) & 63) - 94).astype(np.int32)
    weights: NDArray[np.float64] = np.ldexp(np.array(GROWTH, np.float64)[steps & 7], exponents)
    return weights


def room_for_two_blocks(layout: Layout) -> Layout:
    """Give the layout that holds the sums of a block and those of the block before."""
    return Layout(*(Window(window.low - 2, window.width + 2, False) for window, _, _ in layout.measures()))


def add_earlier_block(own: Array, earlier: Array, layout: Layout) -> Array:
    """Add the sums of the block before, 2**-64 of themselves; both in `layout`, the result in `room_for_two_blocks`."""
    parts = []
    for _, _, columns in layout.measures():
        both = np.zeros_like(own, shape=(*own.shape[:-1], columns.stop - columns.start + 2))
        both[..., 2:] = own[..., columns]
        both[..., :-2] += earlier[..., columns]
        parts.append(both)
    return np.concatenate(parts, axis=-1)


def one_block_later(sums: Array, layout: Layout) -> Array:
    """Give the sums of the rows of a block, in `room_for_two_blocks`, as the next block sees them."""
    later = np.zeros_like(sums)
    for _, _, columns in layout.measures():
        later[..., columns.start : columns.stop - 2] = sums[..., columns.start + 2 : columns.stop]
    return later


def factors_of(steps: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give what sums are multiplied by as they are seen from each step (steps, 2): a factor, and a power of two."""
    return np.stack([np.array(DECLINE, np.int64)[steps & 7], 64 - ((steps >> 3) & 63)], axis=-1)


def seen_from(ops: Ops, sums: Array, layout: Layout, steps: NDArray[np.int64]) -> tuple[Array, Layout]:
    """Give sums (..., steps, classes, width) on the scale of a block as each step of it sees them, and their layout."""
    factors = factors_of(steps)
    spans = spans_of(ops, sums, layout, factors[:, 1])
    seen = getattr(ops.fused, "seen_from", multiply_sums)(sums, spans, ops.to_device(factors))
    spanned = zip(layout.measures(), spans.tolist(), strict=True)
    windows = (Window(window.low - 1 + first, end - first, False) for (window, _, _), (_, _, first, end) in spanned)
    return seen, Layout(*windows)


def spans_of(ops: Ops, sums: Array, layout: Layout, powers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give the columns of each sum, and which columns of it, moved by the power, hold all of it (sums, 4)."""
    peaks = np.zeros(layout.width, np.int64)
    if sums.size:
        peaks = ops.to_host(np.abs(sums.reshape(-1, layout.width)).max(axis=0))
    spans = []
    for _, _, columns in layout.measures():
        digits = [int(peak) for peak in peaks[columns]]
        largest = sum(digit << 32 * place for place, digit in enumerate(digits))
        first, end = 0, 1
        if largest:
            end = (largest.bit_length() + 31 + int(powers.max())) // 32 + 1
            first = min(next(place for place, digit in enumerate(digits) if digit) + (int(powers.min()) >> 5), end - 1)
        spans.append([columns.start, columns.stop, first, end])
    return np.array(spans, np.int64)


def multiply_sums(sums: Array, spans: NDArray[np.int64], factors: Array, /) -> Array:
    """Multiply sums (..., steps, classes, width) by factors and powers of two; the highest column keeps the sign."""
    factor, power = factors[:, 0, None], factors[:, 1, None]
    bits, digits = power & 31, power >> 5
    out = np.empty_like(sums, shape=(*sums.shape[:-1], int((spans[:, 3] - spans[:, 2]).sum())))
    place = 0
    for begin, stop, first, end in spans.tolist():
        columns = shift_columns(multiply(sums[..., begin:stop], factor), bits)
        moved = [move(columns, digits, column) for column in range(max(end, len(columns) + 2))]
        above = np.zeros_like(moved[-1])
        for column in reversed(moved[end:]):
            above = (above << 32) + column
        moved[end - 1] = moved[end - 1] + (above << 32)
        for column in moved[first:end]:
            out[..., place] = column
            place += 1
    return out


def move(columns: list[Array], digits: Array, place: int) -> Array:
    """Give the column at a place of numbers that are moved up by 0, 1 or 2 digits."""
    none = np.zeros_like(columns[0])
    by_digits = [columns[place - by] if 0 <= place - by < len(columns) else none for by in range(3)]
    return np.where(digits == 0, by_digits[0], np.where(digits == 1, by_digits[1], by_digits[2]))


def multiply(sums: Array, factor: Array) -> list[Array]:
    """Multiply digits by a factor of at most 2**31: columns, of which all but the highest are below 2**32."""
    columns, above = [], np.zeros_like(sums[..., 0])
    for column in range(sums.shape[-1]):
        # Digits that were not carried are multiplied by halves.
        lower, upper = sums[..., column] & MASK, sums[..., column] >> 32
        product = lower * factor
        total = (product & MASK) + (above & MASK)
        columns.append(total & MASK)
        above = (above >> 32) + (product >> 32) + (total >> 32) + upper * factor
    return [*columns, above]


def shift_columns(columns: list[Array], bits: Array) -> list[Array]:
    """Multiply columns by 2**bits, for bits below 32; the highest may be negative."""
    shifted, above = [], np.zeros_like(columns[0])
    for column in columns[:-1]:
        moved = column << bits
        shifted.append((moved & MASK) + above)
        above = moved >> 32
    return [*shifted, (columns[-1] << bits) + above]
