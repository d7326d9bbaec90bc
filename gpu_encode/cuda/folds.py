"""Fold numbers of rows, computed inside the kernels that use them; and the keyed bijection."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cpu_fallback.compiled.border import CONTIGUOUS, GIVEN, INTERLEAVED, NO_FOLDS, ORDERS, Array
from cpu_fallback.compiled.folds import MASK, block_of, inverse_of, mix
from cpu_fallback.row_numbers import BLOCK_KEY, INSIDE_ROUNDS, ROUNDS, STRIDE_KEY, FoldPattern, Permutation
from gpu_encode.cuda.memory import empty, keep_on_device, to_device
from gpu_encode.cuda.runtime import cuda, current_device, device_function, kernel, launch_rows

if TYPE_CHECKING:
    from cpu_fallback.types import Folds

# Places inside of so large a block fit a byte.
LARGEST_BLOCK = 256
# Launch arguments: kind, numbers, n_splits, seed, n_rows, first_row, units; see `fold_of`.
FoldArguments = tuple[int, Array, int, np.uint64, int, int, Array]


def fold_source(folds: "Folds") -> FoldArguments:
    """Describe folds to the kernels: what `fold_of` takes after the row."""
    nothing, no_units = empty(1, np.int32), empty(1, np.int64)
    if folds is None:
        return NO_FOLDS, nothing, 1, np.uint64(0), 0, 0, no_units
    if not isinstance(folds, FoldPattern):
        return GIVEN, to_device(folds).astype(np.int32, copy=False), 1, np.uint64(0), 0, 0, no_units
    kind, units = ORDERS[folds.order], keep_on_device(current_device(), folds.units.tobytes())
    return kind, nothing, folds.n_splits, np.uint64(folds.seed), folds.n_rows, folds.first_row, units


@device_function
def fold_of(
    row: int, kind: int, numbers: Array, n_splits: int, seed: np.uint64, n_rows: int, first_row: int, units: Array
) -> np.int64:
    """Fold number of a row of the chunk."""
    if kind == NO_FOLDS:
        return np.int64(0)
    if kind == GIVEN:
        return np.int64(numbers[row])
    if kind == INTERLEAVED:
        return np.int64(np.uint64(first_row + row) % np.uint64(n_splits))
    if kind == CONTIGUOUS:
        return contiguous(np.uint64(first_row + row), np.uint64(n_splits), np.uint64(n_rows))
    return random(first_row + row, np.uint64(n_splits), seed, units)


# Divisions are of unsigned words: those of signed ones round down, which costs a branch.  Those whose operands both
# fit 32 bits are short ones on a GPU, and most do.


@device_function
def contiguous(row: np.uint64, n_splits: np.uint64, n_rows: np.uint64) -> np.int64:
    """Blocks of neighbouring rows; the first n_rows % n_splits blocks hold one row more."""
    size = n_rows // n_splits
    longer = n_rows - size * n_splits
    edge = longer * (size + np.uint64(1))
    if row < edge:
        return np.int64(row // (size + np.uint64(1)))
    return np.int64(longer + (row - edge) // max(size, np.uint64(1)))


@device_function
def random(row: int, n_splits: np.uint64, seed: np.uint64, units: Array) -> np.int64:
    """Rows of a block that are a stride apart share one hashed map of turns to folds."""
    block, log2_stride, first_unit = block_of(np.int64(np.uint64(row) // n_splits))
    place = np.uint64(row) - np.uint64(first_unit) * n_splits
    turn = place >> np.uint64(log2_stride)
    stride = place - (turn << np.uint64(log2_stride))
    # In the simulator the CPU's functions give Python ints back.
    block_key = np.uint64(mix(seed + np.uint64(block) * BLOCK_KEY))
    key = np.uint64(mix(block_key + stride * STRIDE_KEY))
    factor = np.uint64(units[np.int64((key >> np.uint64(32)) % np.uint64(len(units)))])
    shift = (key & MASK) % n_splits
    return np.int64((factor * turn + shift) % n_splits)


@kernel
def number_folds(
    start: int,
    kind: int,
    numbers: Array,
    n_splits: int,
    seed: np.uint64,
    n_rows: int,
    first_row: int,
    units: Array,
    out: Array,
) -> None:
    """Write the fold numbers of the rows from `start` on."""
    for i in range(cuda.grid(1), len(out), cuda.gridsize(1)):
        out[i] = fold_of(start + i, kind, numbers, n_splits, seed, n_rows, first_row, units)


def fold_numbers(pattern: FoldPattern, start: int, stop: int, /) -> Array:
    """Fold number of each row in [start, stop); see `cpu_fallback.row_numbers.FoldPattern`."""
    out = empty(max(stop - start, 0), np.int32)
    launch_rows(number_folds, len(out), start, *fold_source(pattern), out)
    return out


@device_function
def scramble(word: np.uint64, half: np.uint64, keys: Array) -> np.uint64:
    """One pass of the Feistel network over 2 * half bits."""
    mask = (np.uint64(1) << half) - np.uint64(1)
    left, right = word >> half, word & mask
    for turn in range(ROUNDS):
        left, right = right, left ^ (np.uint64(mix(right + keys[turn])) & mask)
    return (left << half) | right


@device_function
def swap(word: np.uint64, half: np.uint64) -> np.uint64:
    """Exchange the halves of a word."""
    return ((word & ((np.uint64(1) << half) - np.uint64(1))) << half) | (word >> half)


@device_function
def walk_number(word: np.uint64, n_rows: np.uint64, half: np.uint64, keys: Array, forward: bool) -> np.uint64:
    """Scramble a number until it is below n_rows (cycle walking)."""
    outside = True
    while outside:
        # The inverse of the network is the network itself, its keys and its halves exchanged.
        word = scramble(word, half, keys) if forward else swap(scramble(swap(word, half), half, keys), half)
        outside = bool(word >= n_rows)
    return word


@device_function
def scramble_inside(word: np.uint64, key: np.uint64, bits: int, forward: bool) -> np.uint64:
    """Give the row at a place of a block of 2**bits rows, or the place of a row."""
    mask, shift = (np.uint64(1) << np.uint64(bits)) - np.uint64(1), np.uint64((bits + 1) // 2)
    for turn in range(INSIDE_ROUNDS):
        number = INSIDE_ROUNDS - turn if forward else turn + 1
        step = np.uint64(mix(key + np.uint64(number) * BLOCK_KEY))
        factor = step >> np.uint64(32) | np.uint64(1)
        if forward:
            word = ((word ^ (word >> shift)) - step) * np.uint64(inverse_of(factor)) & mask
        else:
            word = word * factor + step & mask
            word = word ^ (word >> shift)
    return word


@device_function
def walk_inside(word: np.uint64, key: np.uint64, size: np.uint64, bits: int, forward: bool) -> np.uint64:
    """Give the row at a place of a block of `size` rows, or the place of a row."""
    outside = True
    while outside:
        word = scramble_inside(word, key, bits, forward)
        outside = bool(word >= size)
    return word


@kernel
def walk(first: int, n_rows: np.uint64, half: np.uint64, keys: Array, forward: bool, out: Array) -> None:
    """Scramble numbers from `first` on until every one is below n_rows."""
    for i in range(cuda.grid(1), len(out), cuda.gridsize(1)):
        out[i] = np.int64(walk_number(np.uint64(first + i), n_rows, half, keys, forward))


@kernel
def walk_blocks(
    first: int,
    n_rows: np.uint64,
    block: np.uint64,
    bits: int,
    last: np.uint64,
    lacking: np.uint64,
    n_blocks: np.uint64,
    half: np.uint64,
    keys: Array,
    inside_key: np.uint64,
    forward: bool,
    out: Array,
) -> None:
    """Write the place of each row from `first` on, or the row at each place, in an order of blocks."""
    for i in range(cuda.grid(1), len(out), cuda.gridsize(1)):
        at = np.uint64(first + i)
        if not forward and at >= (last + np.uint64(1)) * block - lacking:
            at += lacking
        number = at // block
        other = walk_number(number, n_blocks, half, keys, forward)
        mine = number if forward else other
        key, size = inside_key + mine * STRIDE_KEY, min(block, n_rows - mine * block)
        word = walk_inside(at - number * block, key, size, bits, forward)
        begin = other * block
        if forward and other > last:
            begin -= lacking
        out[i] = np.int64(begin + word)


class Blocks(NamedTuple):
    """Blocks of consecutive rows, as they follow each other in an order.

    Parameters
    ----------
    numbers : int32 array
        The block at each place of blocks from the `first` on.
    size, first : int
        Rows of a block, but of the last one, which lacks some.
    turn, lacking : int
        Place of a row from which on places count as if the last block lacked none, which is so many more.
    """

    numbers: Array
    size: int
    first: int
    turn: int
    lacking: int


@device_function
def place_in_block(place: int, blocks: Blocks) -> tuple[np.int64, np.int64]:
    """Give the number of the block at a place of an order of at most 2**30 rows, and the place inside of it."""
    at = np.uint32(place + blocks.lacking if place >= blocks.turn else place)
    before = at // np.uint32(blocks.size)
    return np.int64(blocks.numbers[np.int64(before) - blocks.first]), np.int64(at - before * np.uint32(blocks.size))


@kernel
def shuffle_blocks(start: int, n_rows: int, blocks: Blocks, bits: int, inside_key: np.uint64, inside: Array) -> None:
    """Write how far the row at each place from `start` on lies behind the first row of its block."""
    for i in range(cuda.grid(1), len(inside), cuda.gridsize(1)):
        block, place = place_in_block(start + i, blocks)
        size = min(blocks.size, n_rows - block * blocks.size)
        key = inside_key + np.uint64(block) * STRIDE_KEY
        inside[i] = walk_inside(np.uint64(place), key, np.uint64(size), bits, False)


def walk_in_blocks(permutation: Permutation, start: int, stop: int) -> tuple[Blocks, Array]:
    """Give the blocks at the places [start, stop) of an order, and in one byte how far each row lies inside of its own.

    Blocks have more than one row and at most `LARGEST_BLOCK`, and there is some place.
    """
    size, (last, lacking) = permutation.block, permutation.last_block
    turn = (last + 1) * size - lacking
    first, end = ((place + lacking * (place >= turn)) // size for place in (start, stop - 1))
    blocks = Blocks(walk_rows(permutation.blocks, first, end + 1, False, np.int32), size, first, turn, lacking)
    inside, fixed = empty(stop - start, np.uint8), (permutation.inside_bits, permutation.inside_key)
    launch_rows(shuffle_blocks, stop - start, start, permutation.n_rows, blocks, *fixed, inside)
    return blocks, inside


def walk_rows(permutation: Permutation, start: int, stop: int, forward: bool, dtype: Any = np.int64) -> Array:
    """Give the place of each row in [start, stop), or the row at each place."""
    out = empty(max(stop - start, 0), dtype)
    blocks = permutation.blocks if permutation.block > 1 else permutation
    keys = blocks.keys if forward else blocks.keys[::-1]
    keys = keep_on_device(current_device(), keys.tobytes()).view(np.uint64)
    network = np.uint64(blocks.n_rows), np.uint64(blocks.half_bits), keys
    if permutation.block == 1:
        launch_rows(walk, len(out), start, *network, forward, out)
        return out
    size = np.uint64(permutation.n_rows), np.uint64(permutation.block), permutation.inside_bits
    last, lacking = map(np.uint64, permutation.last_block)
    launch_rows(walk_blocks, len(out), start, *size, last, lacking, *network, permutation.inside_key, forward, out)
    return out


def places_of(permutation: Permutation, start: int, stop: int, /) -> Array:
    """Place in the order of each row in [start, stop)."""
    return walk_rows(permutation, start, stop, True)


def rows_at(permutation: Permutation, start: int, stop: int, /) -> Array:
    """Row at each place in [start, stop): the inverse of `places_of`."""
    return walk_rows(permutation, start, stop, False)
