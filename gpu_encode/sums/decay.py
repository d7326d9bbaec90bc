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


def seen_layout(layout: Layout) -> Layout:
    """Give the layout that `seen_from` needs."""
    return Layout(*(Window(window.low - 1, window.width + 3, False) for window, _, _ in layout.measures()))


def seen_from(sums: Array, layout: Layout, factors: Array) -> Array:
    """Multiply sums (..., classes, width) on the scale of a block by what `factors_of` gives for each of them (..., 2).

    The result is in `seen_layout`.
    """
    factor, power = factors[..., 0], factors[..., 1]
    bits, digits = power & 31, power >> 5
    out = np.empty_like(sums, shape=(*sums.shape[:-1], seen_layout(layout).width))
    start = 0
    for window, _, columns in layout.measures():
        shifted = shift_columns(multiply(sums[..., columns], factor), bits)
        for column in range(window.width + 3):
            moved = [shifted[column - by] if 0 <= column - by < len(shifted) else 0 for by in range(3)]
            out[..., start] = np.where(digits == 0, moved[0], np.where(digits == 1, moved[1], moved[2]))
            start += 1
    return out


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
