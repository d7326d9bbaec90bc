"""Fold numbers, computed block by block inside other kernels; and the keyed bijection of row numbers."""

from typing import TYPE_CHECKING

import numpy as np

from cpu_fallback import row_numbers as definition
from cpu_fallback.compiled.border import (
    BLOCK,
    CONTIGUOUS,
    GIVEN,
    INTERLEAVED,
    NO_FOLDS,
    Array,
    FoldSource,
    counting,
    fold_source,
    freeze,
    kernel,
    separate,
    set_all,
    stage,
)
from cpu_fallback.compiled.threads import run, shares
from cpu_fallback.memory import empty
from cpu_fallback.row_numbers import BLOCK_KEY, INSIDE_ROUNDS, LONGEST_STRIDE_LOG2, ROUNDS, STRIDE_KEY

if TYPE_CHECKING:
    from cpu_fallback.row_numbers import FoldPattern, Permutation

LONGEST_STRIDE = 1 << LONGEST_STRIDE_LOG2
FIRST_MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9)
SECOND_MULTIPLIER = np.uint64(0x94D049BB133111EB)
MASK = np.uint64(0xFFFFFFFF)


@stage
def mix(word: np.uint64) -> np.uint64:
    """Scramble a 64-bit word (the finaliser of SplitMix64)."""
    word = (word ^ (word >> np.uint64(30))) * FIRST_MULTIPLIER
    word = (word ^ (word >> np.uint64(27))) * SECOND_MULTIPLIER
    return word ^ (word >> np.uint64(31))


@stage
def remainder(value: np.uint64, divisor: int, inverse: float) -> np.int64:
    """Give value modulo divisor, for values below 2**32; a product and two corrections cost less than a division."""
    number = np.int64(value)
    rest = number - np.int64(np.float64(number) * inverse) * divisor
    rest = rest + divisor if rest < 0 else rest
    return rest - divisor if rest >= divisor else rest


@counting
def fold_room() -> tuple[Array, Array, Array]:
    """Allocate the state of a pass over random folds: current fold and step of each stride, block and next row."""
    return np.zeros(LONGEST_STRIDE, np.int64), np.zeros(LONGEST_STRIDE, np.int64), np.full(2, -1, np.int64)


@stage
def block_of(unit: int) -> tuple[int, int, int]:
    """Find the block of a unit of n_splits rows: its number, the log2 of its number of strides, and its first unit."""
    full = LONGEST_STRIDE - 1
    if unit >= full:
        beyond = (unit - full) >> LONGEST_STRIDE_LOG2
        return LONGEST_STRIDE_LOG2 + beyond, LONGEST_STRIDE_LOG2, full + (beyond << LONGEST_STRIDE_LOG2)
    growing = 0
    while (2 << growing) - 1 <= unit:
        growing += 1
    return growing, growing, (1 << growing) - 1


@stage
def enter_block(
    source: FoldSource, block: int, log2_stride: int, position: int, room: tuple[Array, Array, Array]
) -> None:
    """Set the state to a position inside a block; strides before it have had one turn more than strides after it."""
    current, step, _ = room
    n_splits, n_units = source.n_splits, len(source.units)
    inverse, inverse_units = 1.0 / n_splits, 1.0 / n_units
    turn, stride = position >> log2_stride, position & ((1 << log2_stride) - 1)
    block_key = mix(source.seed + np.uint64(block) * BLOCK_KEY)
    for s in range(1 << log2_stride):
        key = mix(block_key + np.uint64(s) * STRIDE_KEY)
        step[s] = source.units[remainder(key >> np.uint64(32), n_units, inverse_units)]
        current[s] = remainder(key & MASK, n_splits, inverse)
    # At the beginning of a block, which is the usual case, no division is needed.
    for s in range(1 << log2_stride if position else 0):
        current[s] = (step[s] * (turn + (1 if s < stride else 0)) + current[s]) % n_splits


@stage
def take_turn(current: Array, step: Array, n_splits: int, out: Array) -> None:
    """Write the current fold of each stride, and go on to its next fold."""
    for i in range(len(out)):
        fold = current[i]
        out[i] = fold
        fold += step[i]
        current[i] = fold - n_splits if fold >= n_splits else fold


@stage
def fill_random(source: FoldSource, first: int, out: Array, room: tuple[Array, Array, Array]) -> None:
    """Write random fold numbers of the rows from `first` on."""
    current, step, state = room
    n_splits, done = source.n_splits, 0
    while done < len(out):
        row = first + done
        block, log2_stride, first_unit = block_of(row // n_splits)
        position = row - first_unit * n_splits
        if state[0] != block or state[1] != row:
            enter_block(source, block, log2_stride, position, room)
        stride = position & ((1 << log2_stride) - 1)
        count = min((1 << log2_stride) - stride, len(out) - done)
        take_turn(current[stride : stride + count], step[stride : stride + count], n_splits, out[done : done + count])
        done += count
        state[0], state[1] = block, row + count


@stage
def fill_contiguous(source: FoldSource, first: int, out: Array) -> None:
    """Write the fold numbers of the rows from `first` on, for folds that are blocks of neighbouring rows."""
    size, longer = source.n_rows // source.n_splits, source.n_rows % source.n_splits
    edge, shorter = longer * (size + 1), max(size, 1)
    done = 0
    while done < len(out):
        row = first + done
        fold = row // (size + 1) if row < edge else longer + (row - edge) // shorter
        end = (fold + 1) * (size + 1) if row < edge else edge + (fold - longer + 1) * shorter
        count = min(end - row, len(out) - done)
        set_all(out[done : done + count], fold)
        done += count


@separate
def fill_folds(source: FoldSource, start: int, out: Array, room: tuple[Array, Array, Array]) -> None:
    """Write the fold numbers of the chunk's rows from `start` on."""
    first = source.first_row + start
    if source.kind == NO_FOLDS:
        set_all(out, 0)
    elif source.kind == GIVEN:
        given = source.numbers[start : start + len(out)]
        for i in range(len(out)):
            out[i] = given[i]
    elif source.kind == INTERLEAVED:
        fold = first % source.n_splits
        for i in range(len(out)):
            out[i] = fold
            fold = fold + 1 if fold + 1 < source.n_splits else 0
    elif source.kind == CONTIGUOUS:
        fill_contiguous(source, first, out)
    else:
        fill_random(source, first, out, room)


@kernel
def fold_range(source: FoldSource, first: int, start: int, stop: int, out: Array) -> None:
    """Write the fold numbers of rows first + [start, stop)."""
    room = fold_room()
    for begin in range(start, stop, BLOCK):
        end = min(begin + BLOCK, stop)
        fill_folds(source, first + begin, out[begin:end], room)


def fold_numbers(pattern: "FoldPattern", start: int, stop: int, /) -> Array:
    """Give the fold number of each row in [start, stop); see `cpu_fallback.row_numbers.FoldPattern`."""
    source, out = fold_source(pattern), empty(max(stop - start, 0), np.int32)
    parts = shares(len(out))
    run(lambda share: fold_range(source, start, *parts[share], out), len(parts))
    return out


@stage
def scramble(numbers: Array, half: np.uint64, keys: Array, forward: bool) -> None:
    """Do one pass of the Feistel network over 2 * half bits, or of its inverse, for a whole block."""
    mask = (np.uint64(1) << half) - np.uint64(1)
    for turn in range(ROUNDS):
        key = keys[turn if forward else ROUNDS - 1 - turn]
        for i in range(len(numbers)):
            left, right = numbers[i] >> half, numbers[i] & mask
            if forward:
                numbers[i] = (right << half) | (left ^ (mix(right + key) & mask))
            else:
                numbers[i] = ((right ^ (mix(left + key) & mask)) << half) | left


@kernel
def walk_range(
    n_rows: np.uint64, half: np.uint64, keys: Array, forward: bool, first: int, start: int, stop: int, out: Array
) -> None:
    """Scramble the numbers first + [start, stop) until every one is below n_rows (cycle walking)."""
    numbers, index = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.int64)
    for begin in range(start, stop, BLOCK):
        count = min(BLOCK, stop - begin)
        for i in range(count):
            numbers[i] = np.uint64(first + begin + i)
            index[i] = begin + i
        while count:
            scramble(numbers[:count], half, keys, forward)
            outside = 0
            for i in range(count):
                # Numbers outside of the range move to the front; what other numbers write there is not read.
                word, position = numbers[i], index[i]
                out[np.uint64(position)] = np.int64(word)
                numbers[outside], index[outside] = word, position
                outside += 1 if word >= n_rows else 0
            count = outside


inverse_of = stage(definition.inverse_of)


@stage
def enter(key: np.uint64, block: int, factors: Array, constants: Array, forward: bool) -> None:
    """Compute the factors and constants that shuffle the rows of a block."""
    for turn in range(INSIDE_ROUNDS):
        step = mix(key + np.uint64(block) * STRIDE_KEY + np.uint64(turn + 1) * BLOCK_KEY)
        factor = step >> np.uint64(32) | np.uint64(1)
        factors[turn], constants[turn] = inverse_of(factor) if forward else factor, step


@stage
def scramble_inside(
    words: Array, factors: Array, constants: Array, mask: np.uint64, shift: np.uint64, forward: bool
) -> None:
    """Turn ranks in a block of mask + 1 rows into rows, or rows into ranks."""
    for turn in range(INSIDE_ROUNDS):
        number = INSIDE_ROUNDS - 1 - turn if forward else turn
        factor, constant = factors[number], constants[number]
        for i in range(len(words)):
            if forward:
                words[i] = ((words[i] ^ (words[i] >> shift)) - constant) * factor & mask
            else:
                word = words[i] * factor + constant & mask
                words[i] = word ^ (word >> shift)


@stage
def walk_block(
    offset: int,
    size: np.uint64,
    bits: int,
    chain: tuple[Array, Array],
    forward: bool,
    words: Array,
    begin: int,
    out: Array,
) -> None:
    """Write the rows of the ranks from an offset on in a block that begins at `begin`, or the ranks of such rows."""
    factors, constants = chain
    mask, shift = np.uint64((1 << bits) - 1), np.uint64((bits + 1) // 2)
    for i in range(len(words)):
        words[i] = np.uint64(offset + i)
    scramble_inside(words, factors, constants, mask, shift, forward)
    for i in range(len(words)):
        while words[i] >= size:
            scramble_inside(words[i : i + 1], factors, constants, mask, shift, forward)
        out[i] = begin + np.int64(words[i])


@kernel
def walk_inside_range(
    shape: tuple[int, int, int, int],
    bits: int,
    key: np.uint64,
    numbers: Array,
    first_number: int,
    forward: bool,
    first: int,
    start: int,
    stop: int,
    out: Array,
) -> None:
    """Write the rank of each row first + [start, stop), or the row of each such rank, of an order of blocks.

    `numbers` are the ranks of the blocks from `first_number` on, or the blocks of such ranks.
    """
    n_rows, block, last, lacking = shape
    chain = np.empty(INSIDE_ROUNDS, np.uint64), np.empty(INSIDE_ROUNDS, np.uint64)
    words, entered, done = np.empty(min(block, BLOCK), np.uint64), -1, start
    while done < stop:
        at = first + done
        if not forward and at >= (last + 1) * block - lacking:
            at += lacking
        number = at // block
        other, offset = numbers[number - first_number], at - number * block
        mine = number if forward else other
        if mine != entered:
            enter(key, mine, chain[0], chain[1], forward)
            entered = mine
        begin, size = other * block, min(block, n_rows - mine * block)
        if forward and other > last:
            begin -= lacking
        count = min(size - offset, stop - done, len(words))
        target = out[done : done + count]
        walk_block(offset, np.uint64(size), bits, chain, forward, words[:count], begin, target)
        done += count


def walk_share(permutation: "Permutation", forward: bool, first: int, start: int, stop: int, out: Array) -> None:
    """Write the rank of each row first + [start, stop), or the row of each such rank, on the calling thread."""
    if permutation.block == 1 or start == stop:
        keys, half = freeze(permutation.keys, np.uint64), np.uint64(permutation.half_bits)
        walk_range(np.uint64(permutation.n_rows), half, keys, forward, first, start, stop, out)
        return
    begin, end = (number_of(permutation, at, forward) for at in (first + start, first + stop - 1))
    numbers = np.empty(end + 1 - begin, np.int64)
    walk_share(permutation.blocks, forward, begin, 0, len(numbers), numbers)
    shape = permutation.n_rows, permutation.block, *permutation.last_block
    fixed = shape, permutation.inside_bits, permutation.inside_key, freeze(numbers, np.int64), begin
    walk_inside_range(*fixed, forward, first, start, stop, out)


def number_of(permutation: "Permutation", at: int, forward: bool) -> int:
    """Give the number of the block that holds a row, or the rank of the block that holds a rank."""
    last, lacking = permutation.last_block
    is_behind = not forward and at >= (last + 1) * permutation.block - lacking
    return (at + lacking * is_behind) // permutation.block


def walk(permutation: "Permutation", start: int, stop: int, forward: bool, /) -> Array:
    """Give the rank of each row in [start, stop), or the row of each rank."""
    out = empty(max(stop - start, 0), np.int64)
    parts = shares(len(out))
    run(lambda share: walk_share(permutation, forward, start, *parts[share], out), len(parts))
    return out


def ranks_of(permutation: "Permutation", start: int, stop: int, /) -> Array:
    """Give the rank in the order of each row in [start, stop)."""
    return walk(permutation, start, stop, True)


def rows_at(permutation: "Permutation", start: int, stop: int, /) -> Array:
    """Give the row at each rank in [start, stop): the inverse of `ranks_of`."""
    return walk(permutation, start, stop, False)
