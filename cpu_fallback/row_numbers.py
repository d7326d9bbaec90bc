"""Stateless randomness: a row's fold, and its place in an order, depend on a seed and the row's number alone.

Nothing is stored per row, no row count need be known for folds, and any chunking gives the same answer.
"""

from dataclasses import dataclass, field, replace
from math import gcd
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.cached import cached_property

if TYPE_CHECKING:
    from cpu_fallback.types import Folds

ROUNDS = 8
LONGEST_STRIDE_LOG2 = 10
# Logarithm of the number of strides in the block of a unit: units 0, 1 and 2, 3 to 6, and so on.
LOG2_OF_UNIT = np.repeat(np.arange(LONGEST_STRIDE_LOG2), 1 << np.arange(LONGEST_STRIDE_LOG2))
BLOCK_KEY = np.uint64(0x9E3779B97F4A7C15)
STRIDE_KEY = np.uint64(0xD1B54A32D192ED03)


def key_of(seed: int, purpose: int) -> int:
    """Make a 64-bit key from a user's seed, different for every purpose."""
    word = np.array([seed & 0xFFFFFFFFFFFFFFFF], dtype=np.uint64) ^ np.uint64(
        purpose * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
    )
    return int(mix(word)[0])


@dataclass(frozen=True, eq=False)
class FoldPattern:
    """Fold numbers as a function of the row number.

    ``order="random"``: rows form blocks of K * T rows (T = 1, 2, 4, ... 1024, then constant); within a block the rows
    t, t + T, t + 2T, ... share one hashed map j -> (a * j + c) mod K with a coprime to K.  Every complete block is
    balanced, neighbouring rows fall independently.  ``"interleaved"``: row mod K.  ``"contiguous"``: K blocks of
    neighbouring rows, as equal as possible (needs `n_rows`).

    Parameters
    ----------
    order : {"random", "contiguous", "interleaved"}
    n_splits : int
        Number of folds K.
    seed : int
        64-bit key.
    n_rows : int
        Rows in all; used by "contiguous" alone.
    first_row : int
        Global number of the first row of the chunk at hand.

    Examples
    --------
    >>> from cpu_fallback.row_numbers import FoldPattern, fold_numbers
    >>> fold_numbers(FoldPattern("interleaved", 3), 0, 7).tolist()
    [0, 1, 2, 0, 1, 2, 0]
    """

    order: str
    n_splits: int
    seed: int = 0
    n_rows: int = 0
    first_row: int = 0
    units: NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        units = (
            [a for a in range(1, self.n_splits + 1) if gcd(a, self.n_splits) == 1] if self.order == "random" else [1]
        )
        object.__setattr__(self, "units", np.array(units, dtype=np.int64))

    def at(self, first_row: int) -> "FoldPattern":
        """Give the same pattern for a chunk that begins at another global row."""
        return replace(self, first_row=first_row)


@dataclass(frozen=True)
class Permutation:
    """A keyed bijection of 0 .. n_rows - 1: a Feistel network over an even number of bits, with cycle walking.

    `places_of` gives the place of each row, `rows_at` (its inverse) the row at each place; neither sorts nor stores.
    Cf. Mitchell, Stokes, Frank and Holmes, "Bandwidth-Optimal Random Shuffling for GPUs", 2021.

    Parameters
    ----------
    n_rows : int
    seed : int
        64-bit key.

    Examples
    --------
    >>> from cpu_fallback.row_numbers import Permutation, places_of, rows_at
    >>> order = Permutation(10, seed=7)
    >>> rows_at(order, 0, 10)[places_of(order, 0, 10)].tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """

    n_rows: int
    seed: int = 0

    @property
    def half_bits(self) -> int:
        """Bits of each half of the network: four at least, since tiny networks shuffle badly."""
        return max(4, ((max(self.n_rows, 2) - 1).bit_length() + 1) // 2)

    @cached_property
    def keys(self) -> NDArray[np.uint64]:
        """One key a round."""
        rounds = np.arange(1, ROUNDS + 1, dtype=np.uint64)
        return mix(np.uint64(self.seed) + rounds * BLOCK_KEY)


def mix(values: NDArray[np.uint64], /) -> NDArray[np.uint64]:
    """Scramble 64-bit words (the finaliser of SplitMix64: Steele, Lea and Flood 2014)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def fold_numbers(pattern: FoldPattern, start: int, stop: int, /) -> NDArray[np.int32]:
    """Fold number of each row in [start, stop); see `FoldPattern`."""
    rows = np.arange(start, stop, dtype=np.int64) + pattern.first_row
    if pattern.order == "interleaved":
        return (rows % pattern.n_splits).astype(np.int32)
    if pattern.order == "contiguous":
        return contiguous(rows, pattern.n_splits, pattern.n_rows)
    # Blocks of 1, 2, 4, ... strides begin at units 0, 1, 3, 7, ...; from 1,024 on they are all alike.
    first_alike = ((1 << LONGEST_STRIDE_LOG2) - 1) * pattern.n_splits
    growing = in_growing_blocks(pattern, rows[: max(first_alike - int(rows[0]), 0)]) if len(rows) else rows
    if len(growing) == len(rows):
        return growing.astype(np.int32, copy=False)
    alike = in_alike_blocks(pattern, int(rows[len(growing)]) - first_alike, int(rows[-1]) + 1 - first_alike)
    return np.concatenate([growing, alike]) if len(growing) else alike


def in_growing_blocks(pattern: FoldPattern, rows: NDArray[np.int64], /) -> NDArray[np.int32]:
    """Fold numbers of rows in the blocks of 1, 2, 4, ... strides."""
    if not len(rows):
        return rows.astype(np.int32)
    log2_stride = LOG2_OF_UNIT[rows // pattern.n_splits]
    before = (np.int64(1) << log2_stride) - 1
    place = rows - before * pattern.n_splits
    # The rows of a stride share its turns: there are as many strides in a block as units.
    first, last = int(before[0]), int(2 * before[-1])
    blocks = LOG2_OF_UNIT[first : last + 1]
    factor, shift = turns_of(pattern, blocks, np.arange(first, last + 1) - (np.int64(1) << blocks) + 1)
    stride = (place & before) + (before - first)
    turn = factor[stride] * (place >> log2_stride) + shift[stride]
    # The remainder, in less time.
    turn -= turn // pattern.n_splits * pattern.n_splits
    fold: NDArray[np.int32] = turn.astype(np.int32)
    return fold


def in_alike_blocks(pattern: FoldPattern, start: int, stop: int, /) -> NDArray[np.int32]:
    """Fold numbers of rows [start, stop) after the growing blocks: every stride has its turns, block by block."""
    strides = 1 << LONGEST_STRIDE_LOG2
    size = strides * pattern.n_splits
    first, last = start // size, (stop - 1) // size
    block = np.arange(first, last + 1, dtype=np.int64)[:, None]
    turn = np.arange(pattern.n_splits, dtype=np.int64)[:, None]
    factor, shift = turns_of(pattern, block + LONGEST_STRIDE_LOG2, np.arange(strides, dtype=np.int64))
    place = factor[:, None] * turn + shift[:, None]
    # The remainder, in less time.
    place -= place // pattern.n_splits * pattern.n_splits
    return place.ravel()[start - first * size : stop - first * size].astype(np.int32)


def turns_of(
    pattern: FoldPattern, block: NDArray[np.int64], stride: NDArray[np.int64], /
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give the factor and the shift by which the folds of each stride of each block take turns."""
    key = mix(
        mix(np.uint64(pattern.seed) + block.astype(np.uint64) * BLOCK_KEY) + stride.astype(np.uint64) * STRIDE_KEY
    )
    factor = pattern.units[((key >> np.uint64(32)) % np.uint64(len(pattern.units))).astype(np.int64)]
    return factor, ((key & np.uint64(0xFFFFFFFF)) % np.uint64(pattern.n_splits)).astype(np.int64)


def contiguous(rows: NDArray[np.int64], n_splits: int, n_rows: int, /) -> NDArray[np.int32]:
    """Blocks of neighbouring rows; the first n_rows % n_splits blocks hold one row more."""
    size, longer = divmod(n_rows, n_splits)
    edge = longer * (size + 1)
    return np.where(rows < edge, rows // (size + 1), longer + (rows - edge) // max(size, 1)).astype(np.int32)


def scramble(words: NDArray[np.uint64], permutation: Permutation, forward: bool, /) -> NDArray[np.uint64]:
    """One pass of the Feistel network over 2 * half_bits bits, or of its inverse."""
    half = np.uint64(permutation.half_bits)
    mask = (np.uint64(1) << half) - np.uint64(1)
    left, right = words >> half, words & mask
    for key in permutation.keys if forward else permutation.keys[::-1]:
        if forward:
            left, right = right, left ^ (mix(right + key) & mask)
        else:
            left, right = right ^ (mix(left + key) & mask), left
    return (left << half) | right


def walk(numbers: NDArray[np.int64], permutation: Permutation, forward: bool, /) -> NDArray[np.int64]:
    """Scramble until every number is back below n_rows (cycle walking keeps the bijection)."""
    words = scramble(numbers.astype(np.uint64), permutation, forward)
    outside = np.flatnonzero(words >= np.uint64(permutation.n_rows))
    while len(outside):
        words[outside] = scramble(words[outside], permutation, forward)
        outside = outside[words[outside] >= np.uint64(permutation.n_rows)]
    return words.astype(np.int64)


def places_of(permutation: Permutation, start: int, stop: int, /) -> NDArray[np.int64]:
    """Place in the order of each row in [start, stop)."""
    return walk(np.arange(start, stop, dtype=np.int64), permutation, True)


def rows_at(permutation: Permutation, start: int, stop: int, /) -> NDArray[np.int64]:
    """Row at each place in [start, stop): the inverse of `places_of`."""
    return walk(np.arange(start, stop, dtype=np.int64), permutation, False)


def fold_array(folds: "Folds", start: int, stop: int) -> NDArray[np.int32] | None:
    """Fold numbers of a block of rows, whatever way they were given."""
    if folds is None:
        return None
    return folds[start:stop] if isinstance(folds, np.ndarray) else fold_numbers(folds, start, stop)
