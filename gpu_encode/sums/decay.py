"""Exact sums of rows that lose weight with age, as later blocks and steps see these sums: see `cpu_fallback.decay`."""

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.decay import factors_of, layout_of, spans_of
from cpu_fallback.types import Array, Layout
from gpu_encode.seam.ops import Ops

MASK = 0xFFFFFFFF


def add_earlier_block(own: Array, earlier: Array, layout: Layout) -> Array:
    """Add the sums of the block before, times 2**-64; both are in `layout`, the result is in `room_for_two_blocks`."""
    parts = []
    for _, _, columns in layout.measures():
        both = np.zeros_like(own, shape=(*own.shape[:-1], columns.stop - columns.start + 2))
        both[..., 2:] = own[..., columns]
        both[..., :-2] += earlier[..., columns]
        parts.append(both)
    return np.concatenate(parts, axis=-1)


def one_block_later(sums: Array, layout: Layout) -> Array:
    """Give the sums of the rows of a block as the next block sees them, in `room_for_two_blocks`."""
    later = np.zeros_like(sums)
    for _, _, columns in layout.measures():
        later[..., columns.start : columns.stop - 2] = sums[..., columns.start + 2 : columns.stop]
    return later


def seen_from(ops: Ops, sums: Array, layout: Layout, steps: NDArray[np.int64]) -> tuple[Array, Layout]:
    """Give the sums that each step of a block sees, from sums (..., steps, classes, width) on its scale.

    The second result is the layout of these sums.
    """
    factors, peaks = factors_of(steps), np.zeros(layout.width, np.int64)
    if sums.size:
        peaks = ops.to_host(np.abs(sums.reshape(-1, layout.width)).max(axis=0))
    spans = spans_of(peaks, layout, factors[:, 1])
    seen = getattr(ops.fused, "seen_from", multiply_sums)(sums, spans, ops.to_device(factors))
    return seen, layout_of(spans, layout)


def multiply_sums(sums: Array, spans: NDArray[np.int64], factors: Array, /) -> Array:
    """Multiply sums (..., steps, classes, width) by factors and powers of two; the highest column keeps the sign."""
    factor, power = factors[:, 0, None], factors[:, 1, None]
    bits, digits = power & 31, power >> 5
    out = np.empty_like(sums, shape=(*sums.shape[:-1], int((spans[:, 3] - spans[:, 2]).sum())))
    position = 0
    for begin, stop, first, end in spans.tolist():
        columns = shift_columns(multiply(sums[..., begin:stop], factor), bits)
        moved = [move(columns, digits, column) for column in range(max(end, len(columns) + 2))]
        above = np.zeros_like(moved[-1])
        for column in reversed(moved[end:]):
            above = (above << 32) + column
        moved[end - 1] = moved[end - 1] + (above << 32)
        for column in moved[first:end]:
            out[..., position] = column
            position += 1
    return out


def move(columns: list[Array], digits: Array, position: int) -> Array:
    """Give the column at `position` after each number is moved up by 0, 1 or 2 digits."""
    none = np.zeros_like(columns[0])
    by_digits = [columns[position - by] if 0 <= position - by < len(columns) else none for by in range(3)]
    return np.where(digits == 0, by_digits[0], np.where(digits == 1, by_digits[1], by_digits[2]))


def multiply(sums: Array, factor: Array) -> list[Array]:
    """Multiply digits by a factor of at most 2**31; give columns, which are below 2**32 except for the highest."""
    columns, above = [], np.zeros_like(sums[..., 0])
    for column in range(sums.shape[-1]):
        # Digits that were not carried are multiplied in two halves.
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
