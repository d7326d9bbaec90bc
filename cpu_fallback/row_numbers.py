"""Stateless randomness: a row's fold, and its rank in an order, depend only on a seed and the row's number.

Nothing is stored for each row, folds do not depend on the number of rows, and any chunking gives the same result.
"""

import itertools
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.cached import cached_property

if TYPE_CHECKING:
    from cpu_fallback.types import Array, Folds

ROUNDS = 8
LONGEST_STRIDE_LOG2 = 10
LONGEST_STRIDE = 1 << LONGEST_STRIDE_LOG2
BLOCK_KEY = np.uint64(0x9E3779B97F4A7C15)
STRIDE_KEY = np.uint64(0xD1B54A32D192ED03)
# Number of rounds that shuffle the rows of a block, and a constant by which their keys differ from those of the blocks'
# order.
INSIDE_ROUNDS = 6
INSIDE_KEY = np.uint64(0x8CB92BA72F3D8DD7)


@lru_cache
def key_of(seed: int, purpose: int) -> int:
    """Make a 64-bit key from a user's seed, different for every purpose."""
    word = np.array([seed & 0xFFFFFFFFFFFFFFFF], dtype=np.uint64) ^ np.uint64(
        purpose * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
    )
    return int(mix(word)[0])


@dataclass(frozen=True, eq=False)
class FoldPattern:
    """Fold numbers as a function of the row number.

    ``order="random"``: rows form blocks of K * T rows (T = 1, 2, 4, ... 1024, then constant).  Within a block, the rows
    t, t + T, t + 2T, ... share one hashed map j -> (a * j + c) mod K, where a is coprime to K.  Every complete block is
    balanced, and the folds of neighbouring rows are independent.  ``"interleaved"``: row mod K.  ``"contiguous"``: K
    blocks of neighbouring rows, as equal as possible (needs `n_rows`).

    Parameters
    ----------
    order : {"random", "contiguous", "interleaved"}
    n_splits : int
        Number of folds K.
    seed : int
        64-bit key.
    n_rows : int
        Number of all rows; only "contiguous" needs it.
    first_row : int
        Number, among all rows, of the chunk's first row.

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

    @cached_property
    def units(self) -> NDArray[np.int64]:
        """Factors of the maps of a block: all numbers that are coprime to K."""
        numbers = np.arange(1, self.n_splits + 1 if self.order == "random" else 2, dtype=np.int64)
        units: NDArray[np.int64] = numbers[np.gcd(numbers, self.n_splits) == 1]
        return units

    def at(self, first_row: int) -> "FoldPattern":
        """Give the same pattern for a chunk that begins at another global row."""
        return replace(self, first_row=first_row)


@dataclass(frozen=True)
class Permutation:
    """A keyed bijection of 0 .. n_rows - 1: a Feistel network over an even number of bits, with cycle walking.

    `ranks_of` gives the rank of each row in the order, `rows_at` (its inverse) the row of each rank.  Neither sorts or
    stores.
    Cf. Mitchell, Stokes, Frank and Holmes, "Bandwidth-Optimal Random Shuffling for GPUs", 2021.

    With blocks of more than one row, the network orders the blocks; the last one may be shorter.  Inside a block of
    2**k rows, rank x belongs to row x_6, where x_0 = x, y = (a_i * x_i + c_i) mod 2**k and
    x_(i+1) = y ^ (y >> ceil(k/2)) for i = 0 .. 5, with odd a_i and c_i for each block; this is repeated while the
    result is outside the block.

    Parameters
    ----------
    n_rows : int
    seed : int
        64-bit key.
    block : int
        Consecutive rows that stay together; 1 orders single rows.

    Examples
    --------
    >>> from cpu_fallback.row_numbers import Permutation, ranks_of, rows_at
    >>> order = Permutation(10, seed=7)
    >>> rows_at(order, 0, 10)[ranks_of(order, 0, 10)].tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """

    n_rows: int
    seed: int = 0
    block: int = 1

    @cached_property
    def blocks(self) -> "Permutation":
        """The order of the blocks."""
        return Permutation(-(-self.n_rows // self.block), self.seed)

    @cached_property
    def last_block(self) -> tuple[int, int]:
        """Rank of the last block among the blocks, and the number of rows by which it is shorter."""
        number = self.blocks.n_rows
        return int(ranks_of(self.blocks, number - 1, number)[0]), number * self.block - self.n_rows

    @property
    def inside_bits(self) -> int:
        """Number of bits of a rank inside a block."""
        return (self.block - 1).bit_length()

    @cached_property
    def inside_key(self) -> np.uint64:
        """Key from which the keys of the blocks are made."""
        key: np.uint64 = mix(np.array([self.seed], np.uint64) ^ INSIDE_KEY)[0]
        return key

    @property
    def half_bits(self) -> int:
        """Number of bits of each half of the network: at least four, since tiny networks shuffle badly."""
        return max(4, ((max(self.n_rows, 2) - 1).bit_length() + 1) // 2)

    @cached_property
    def keys(self) -> NDArray[np.uint64]:
        """One key for each round."""
        rounds = np.arange(1, ROUNDS + 1, dtype=np.uint64)
        return mix(np.uint64(self.seed) + rounds * BLOCK_KEY)


def mix(values: NDArray[np.uint64], /) -> NDArray[np.uint64]:
    """Scramble 64-bit words (the finaliser of SplitMix64: Steele, Lea and Flood 2014)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def fold_numbers(pattern: FoldPattern, start: int, stop: int, /) -> NDArray[np.int32]:
    """Give the fold number of each row in [start, stop); see `FoldPattern`."""
    rows = np.arange(start, stop, dtype=np.int64) + pattern.first_row
    if pattern.order == "interleaved":
        return (rows % pattern.n_splits).astype(np.int32)
    if pattern.order == "contiguous":
        return contiguous(rows, pattern.n_splits, pattern.n_rows)
    return random_folds(pattern, int(rows[0]), int(rows[-1]) + 1) if len(rows) else rows.astype(np.int32)


def random_folds(pattern: FoldPattern, start: int, stop: int, /) -> NDArray[np.int32]:
    """Give the fold numbers of rows [start, stop), from those of all strides of the blocks that hold these rows.

    A unit is a row for each fold.  Blocks have 1, 2, 4, ... 512 units, and then 1,024 each.
    """
    n_folds = pattern.n_splits
    unit = start // n_folds
    growing = min((unit + 1).bit_length() - 1, LONGEST_STRIDE_LOG2)
    alike = max(unit + 1 - LONGEST_STRIDE, 0) // LONGEST_STRIDE
    block = growing + alike
    # The first unit of each block, and of the block behind the last row.
    edges = [(1 << growing) - 1 + alike * LONGEST_STRIDE]
    while edges[-1] * n_folds < stop:
        edges.append(edges[-1] + (1 << min(block + len(edges) - 1, LONGEST_STRIDE_LOG2)))
    factor, shift = turns_of(pattern, block, edges)
    # Each line of a block is a turn of its strides.  With thousands of folds, rows may lie in few lines of one block.
    first, last, begin = 0, n_folds, edges[0] * n_folds
    if len(edges) == 2:
        first, last = (start - begin) // len(factor), (stop - 1 - begin) // len(factor) + 1
        begin += first * len(factor)
    fold = factor * np.arange(first, last)[:, None] + shift
    # The remainder, computed in less time than by %.
    fold -= fold // n_folds * n_folds
    parts = [fold[:, left - edges[0] : right - edges[0]].ravel() for left, right in itertools.pairwise(edges)]
    return np.concatenate(parts)[start - begin : stop - begin].astype(np.int32)


def turns_of(pattern: FoldPattern, block: int, edges: list[int], /) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give the factor and the shift by which the folds of each stride take turns, for blocks from a number on."""
    begins = np.array(edges, np.uint64)
    of_block = mix(np.uint64(pattern.seed) + np.arange(block, block + len(edges) - 1, dtype=np.uint64) * BLOCK_KEY)
    sizes = (begins[1:] - begins[:-1]).astype(np.int64)
    # Strides are counted from the begin of their block.
    of_stride = np.arange(edges[0], edges[-1], dtype=np.uint64) * STRIDE_KEY
    key = mix(np.repeat(of_block - begins[:-1] * STRIDE_KEY, sizes) + of_stride)
    factor = pattern.units[((key >> np.uint64(32)) % np.uint64(len(pattern.units))).astype(np.int64)]
    return factor, ((key & np.uint64(0xFFFFFFFF)) % np.uint64(pattern.n_splits)).astype(np.int64)


def contiguous(rows: NDArray[np.int64], n_splits: int, n_rows: int, /) -> NDArray[np.int32]:
    """Give folds that are blocks of neighbouring rows; the first n_rows % n_splits blocks have one more row."""
    size, longer = divmod(n_rows, n_splits)
    edge = longer * (size + 1)
    return np.where(rows < edge, rows // (size + 1), longer + (rows - edge) // max(size, 1)).astype(np.int32)


def scramble(words: NDArray[np.uint64], permutation: Permutation, forward: bool, /) -> NDArray[np.uint64]:
    """Do one pass of the Feistel network over 2 * half_bits bits, or of its inverse."""
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
    """Scramble until every number is below n_rows (cycle walking, which keeps the bijection)."""
    words = scramble(numbers.astype(np.uint64), permutation, forward)
    outside = np.flatnonzero(words >= np.uint64(permutation.n_rows))
    while len(outside):
        words[outside] = scramble(words[outside], permutation, forward)
        outside = outside[words[outside] >= np.uint64(permutation.n_rows)]
    return words.astype(np.int64)


@dataclass(frozen=True)
class TimeOrder:
    """Rows in order of time.

    Parameters
    ----------
    rows : int array (rows,)
        The row of each rank.
    ties : int64 array (rows,)
        The number of the time at each rank.
    starts : int array (times,)
        The rank at which each time begins.
    firsts : int array (times,), optional
        With a window: for each time, the number of the first time that it sees.
    steps : int64 array (times,), optional
        If rows lose weight with age: the step of each time, as `cpu_fallback.decay` defines it.
    """

    rows: "Array"
    ties: "Array"
    starts: "Array"
    firsts: "Array | None" = None
    steps: "Array | None" = None


@dataclass(frozen=True)
class RowOrder:
    """Rows in the order of X, without ties."""


Order = Permutation | TimeOrder | RowOrder


def ranks_of(permutation: Permutation, start: int, stop: int, /) -> NDArray[np.int64]:
    """Give the rank in the order of each row in [start, stop)."""
    rows = np.arange(start, stop, dtype=np.int64)
    if permutation.block == 1 or not len(rows):
        return walk(rows, permutation, True)
    block, (last, lacking) = rows // permutation.block, permutation.last_block
    rank = walk(np.arange(block[0], block[-1] + 1), permutation.blocks, True)[block - block[0]]
    begin: NDArray[np.int64] = rank * permutation.block - lacking * (rank > last)
    return begin + walk_inside(rows - block * permutation.block, block, permutation, True)


def rows_at(permutation: Permutation, start: int, stop: int, /) -> NDArray[np.int64]:
    """Give the row at each rank in [start, stop): the inverse of `ranks_of`."""
    ranks = np.arange(start, stop, dtype=np.int64)
    if permutation.block == 1 or not len(ranks):
        return walk(ranks, permutation, False)
    last, lacking = permutation.last_block
    ranks += lacking * (ranks >= (last + 1) * permutation.block - lacking)
    rank = ranks // permutation.block
    block = walk(np.arange(rank[0], rank[-1] + 1), permutation.blocks, False)[rank - rank[0]]
    inside = walk_inside(ranks - rank * permutation.block, block, permutation, False)
    begin: NDArray[np.int64] = block * permutation.block
    return begin + inside


def walk_inside(
    numbers: NDArray[np.int64], blocks: NDArray[np.int64], permutation: Permutation, forward: bool, /
) -> NDArray[np.int64]:
    """Give the rank of each row inside its block (forward), or the row of each rank; see `Permutation`."""
    size = np.minimum(permutation.block, permutation.n_rows - blocks * permutation.block).astype(np.uint64)
    key = permutation.inside_key + blocks.astype(np.uint64) * STRIDE_KEY
    words = scramble_inside(numbers.astype(np.uint64), key, permutation.inside_bits, forward)
    outside = np.flatnonzero(words >= size)
    while len(outside):
        words[outside] = scramble_inside(words[outside], key[outside], permutation.inside_bits, forward)
        outside = outside[words[outside] >= size[outside]]
    return words.astype(np.int64)


def scramble_inside(
    words: NDArray[np.uint64], key: NDArray[np.uint64], bits: int, forward: bool, /
) -> NDArray[np.uint64]:
    """Give the row of each rank in a block of 2**bits rows, or its inverse."""
    mask, shift = np.uint64((1 << bits) - 1), np.uint64((bits + 1) // 2)
    rounds = np.arange(1, INSIDE_ROUNDS + 1, dtype=np.uint64) * BLOCK_KEY
    for turn in rounds[::-1] if forward else rounds:
        step = mix(key + turn)
        factor, constant = step >> np.uint64(32) | np.uint64(1), step & mask
        if forward:
            words = ((words ^ (words >> shift)) - constant) * inverse_of(factor) & mask
        else:
            words = words * factor + constant & mask
            words ^= words >> shift
    return words


def inverse_of(odd: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Invert odd numbers modulo 2**64: each step of Newton's method doubles the correct bits, three at first."""
    inverse = odd
    for _ in range(5):
        inverse = inverse * (np.uint64(2) - odd * inverse)
    return inverse


def folds_of_block(folds: "Folds", start: int, stop: int) -> "Folds":
    """Give the folds of rows [start, stop)."""
    if folds is None:
        return None
    return folds.at(folds.first_row + start) if isinstance(folds, FoldPattern) else folds[start:stop]


def fold_array(folds: "Folds", start: int, stop: int) -> NDArray[np.int32] | None:
    """Give the fold numbers of a block of rows as an array, from folds in any form."""
    if folds is None:
        return None
    return folds[start:stop] if isinstance(folds, np.ndarray) else fold_numbers(folds, start, stop)
