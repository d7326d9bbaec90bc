"""Stateless rows: the fold of a row number, and a keyed bijection between row numbers and places of an order."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from cpu_fallback.row_numbers import FoldPattern, Permutation

ROUNDS = 8
LONGEST_STRIDE_LOG2 = 10
BLOCK_KEY = np.uint64(0x9E3779B97F4A7C15)
STRIDE_KEY = np.uint64(0xD1B54A32D192ED03)


def mixed(values: NDArray[np.uint64], /) -> NDArray[np.uint64]:
    """Scramble 64-bit words (the finaliser of SplitMix64: Steele, Lea and Flood 2014)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def fold_numbers(pattern: "FoldPattern", start: int, stop: int, /) -> NDArray[np.int32]:
    """Fold number of each row in [start, stop); see `cpu_fallback.row_numbers.FoldPattern`."""
    rows = np.arange(start, stop, dtype=np.int64) + pattern.first_row
    if pattern.order == "interleaved":
        return (rows % pattern.n_splits).astype(np.int32)
    if pattern.order == "contiguous":
        return contiguous(rows, pattern.n_splits, pattern.n_rows)
    unit = rows // pattern.n_splits
    # Blocks of 1, 2, 4, ... strides begin at units 0, 1, 3, 7, ...; from 1,024 on they are all alike.
    growing = np.frexp((np.minimum(unit, 1023) + 1).astype(np.float64))[1].astype(np.int64) - 1
    full = np.int64((1 << LONGEST_STRIDE_LOG2) - 1)
    block = np.where(unit < full, growing, LONGEST_STRIDE_LOG2 + ((unit - full) >> LONGEST_STRIDE_LOG2))
    log2_stride = np.minimum(block, LONGEST_STRIDE_LOG2)
    first_unit = np.where(
        unit < full, (np.int64(1) << log2_stride) - 1, full + ((block - LONGEST_STRIDE_LOG2) << LONGEST_STRIDE_LOG2)
    )
    place = rows - first_unit * pattern.n_splits
    stride = place & ((np.int64(1) << log2_stride) - 1)
    turn = place >> log2_stride
    key = mixed(
        mixed(np.uint64(pattern.seed) + block.astype(np.uint64) * BLOCK_KEY) + stride.astype(np.uint64) * STRIDE_KEY
    )
    factor = pattern.units[((key >> np.uint64(32)) % np.uint64(len(pattern.units))).astype(np.int64)]
    shift = ((key & np.uint64(0xFFFFFFFF)) % np.uint64(pattern.n_splits)).astype(np.int64)
    fold: NDArray[np.int32] = ((factor * turn + shift) % pattern.n_splits).astype(np.int32)
    return fold


def contiguous(rows: NDArray[np.int64], n_splits: int, n_rows: int, /) -> NDArray[np.int32]:
    """Blocks of neighbouring rows; the first n_rows % n_splits blocks hold one row more."""
    size, longer = divmod(n_rows, n_splits)
    edge = longer * (size + 1)
    return np.where(rows < edge, rows // (size + 1), longer + (rows - edge) // max(size, 1)).astype(np.int32)


def scramble(words: NDArray[np.uint64], permutation: "Permutation", forward: bool, /) -> NDArray[np.uint64]:
    """One pass of the Feistel network over 2 * half_bits bits, or of its inverse."""
    half = np.uint64(permutation.half_bits)
    mask = (np.uint64(1) << half) - np.uint64(1)
    left, right = words >> half, words & mask
    for key in permutation.keys if forward else permutation.keys[::-1]:
        if forward:
            left, right = right, left ^ (mixed(right + key) & mask)
        else:
            left, right = right ^ (mixed(left + key) & mask), left
    return (left << half) | right


def walked(numbers: NDArray[np.int64], permutation: "Permutation", forward: bool, /) -> NDArray[np.int64]:
    """Scramble until every number is back below n_rows (cycle walking keeps the bijection)."""
    words = scramble(numbers.astype(np.uint64), permutation, forward)
    outside = np.flatnonzero(words >= np.uint64(permutation.n_rows))
    while len(outside):
        words[outside] = scramble(words[outside], permutation, forward)
        outside = outside[words[outside] >= np.uint64(permutation.n_rows)]
    return words.astype(np.int64)


def places_of(permutation: "Permutation", start: int, stop: int, /) -> NDArray[np.int64]:
    """Place in the order of each row in [start, stop)."""
    return walked(np.arange(start, stop, dtype=np.int64), permutation, True)


def rows_at(permutation: "Permutation", start: int, stop: int, /) -> NDArray[np.int64]:
    """Row at each place in [start, stop): the inverse of `places_of`."""
    return walked(np.arange(start, stop, dtype=np.int64), permutation, False)
