"""Radix sort of numbers: each word that is sorted holds the bits in which numbers differ, and an index."""

from itertools import groupby
from typing import Any

import numpy as np

from cpu_fallback.compiled.border import Array, freeze, kernel
from cpu_fallback.compiled.threads import run, shares
from cpu_fallback.memory import cast, empty, zeros

WORD_BITS = 64
# Up to this number of words, NumPy sorts in less time than the passes take to start.
FEW_WORDS = 1 << 12
SIGN = np.uint64(1 << 63)
# Words are written to 1,024 positions, which fit the second cache and the processor's table of pages.
DIGIT_BITS = 10


@kernel
def find_different_bits_of_range(words: Array, start: int, stop: int) -> np.uint64:
    """Find the bits that are not the same in all words."""
    given = words[start:stop]
    every = some = given[0]
    for i in range(len(given)):
        every &= given[i]
        some |= given[i]
    return every ^ some


@kernel
def pack(
    words: Array, order: Array, masks: Array, downs: Array, index_bits: np.uint64, start: int, stop: int, out: Array
) -> None:
    """Write the kept bits of each word, and below them its index, in the current order."""
    indices, packed = order[start:stop], out[start:stop]
    for i in range(len(packed)):
        index = np.uint64(indices[i]) if len(indices) else np.uint64(start + i)
        word, kept = words[index], np.uint64(0)
        for k in range(len(masks)):
            kept |= (word & masks[k]) >> downs[k]
        packed[i] = kept << index_bits | index


@kernel
def count_digits(words: Array, down: np.uint64, start: int, stop: int, counts: Array) -> None:
    """Count the words of each digit."""
    given, mask = words[start:stop], np.uint64(len(counts) - 1)
    for i in range(len(given)):
        counts[(given[i] >> down) & mask] += 1


@kernel
def move_by_digit(words: Array, down: np.uint64, start: int, stop: int, positions: Array, out: Array) -> None:
    """Write each word to the next position of its digit."""
    given, mask = words[start:stop], np.uint64(len(positions) - 1)
    for i in range(len(given)):
        digit = (given[i] >> down) & mask
        out[np.uint64(positions[digit])] = given[i]
        positions[digit] += 1


@kernel
def indices_in(packed: Array, index_bits: np.uint64, start: int, stop: int, order: Array) -> None:
    """Take the indices out of packed words."""
    given, out, mask = packed[start:stop], order[start:stop], (np.uint64(1) << index_bits) - np.uint64(1)
    for i in range(len(given)):
        out[i] = np.int64(given[i] & mask)


@kernel
def write_indices(out: Array) -> None:
    """Write 0, 1, 2, ..."""
    for i in range(len(out)):
        out[i] = i


@kernel
def write_ranks(order: Array, ranks: Array) -> None:
    """Write for each index its rank in an order."""
    for i in range(len(order)):
        ranks[np.uint64(order[i])] = i


@kernel
def count_codes(codes: Array, counts: Array) -> bool:
    """Count the rows of each code; tell whether the codes are in order."""
    rising, before = True, np.int64(0)
    for i in range(len(codes)):
        code = np.int64(codes[i])
        counts[np.uint64(code)] += 1
        if code < before:
            rising = False
        before = code
    return rising


@kernel
def move_by_code(codes: Array, counts: Array, rows: Array, sorted_codes: Array) -> None:
    """Write rows and codes in the order of the codes, from the number of rows of each; rows of a code keep theirs."""
    begin = np.int64(0)
    for code in range(len(counts)):
        begin += counts[code]
        counts[code] = begin - counts[code]
    for i in range(len(codes)):
        at = np.uint64(codes[i])
        place = np.uint64(counts[at])
        counts[at] += 1
        rows[place], sorted_codes[place] = i, np.int64(codes[i])


def sort_codes(codes: Array, n_codes: int, /) -> tuple[Array, Array]:
    """Give rows in the order of their codes, and these codes; see `gpu_encode.seam.ops.FusedOps`."""
    given, counts = freeze(codes, np.int32), zeros(n_codes, np.int64)
    if count_codes(given, counts):
        return indices(len(codes), np.int64), cast(codes, np.int64)
    rows, sorted_codes = empty(len(codes), np.int64), empty(len(codes), np.int64)
    move_by_code(given, counts, rows, sorted_codes)
    return rows, sorted_codes


def indices(number: int, dtype: Any) -> Array:
    """Give the numbers 0 to `number` - 1."""
    found = empty(number, dtype)
    write_indices(found)
    return found


def ranks_of(order: Array) -> Array:
    """Give the rank of each index in an order (int32)."""
    ranks = empty(len(order), np.int32)
    write_ranks(order, ranks)
    return ranks


def find_different_bits(words: Array) -> int:
    """Find the bits that are not the same in all words, on threads."""
    parts = shares(len(words))
    found = np.zeros(len(parts), np.uint64)

    def look(share: int) -> None:
        # Words may be equal within each share but differ between shares, so each share is compared with the first.
        found[share] = find_different_bits_of_range(words, *parts[share]) | (words[0] ^ words[parts[share][0]])

    run(look, len(parts))
    return int(np.bitwise_or.reduce(found))


def groups_of(bits: int, room: int) -> list[list[tuple[int, int]]]:
    """Give groups of runs of bits [begin, end), the lowest first; a group has as many bits as there is room for."""
    kept = [bit for bit in range(WORD_BITS) if bits >> bit & 1]
    groups = [kept[first : first + room] for first in range(0, len(kept), room)]
    found = []
    for group in groups:
        # Bits of one run have the same distance from their positions in the group.
        runs = [[bit for _, bit in same] for _, same in groupby(enumerate(group), lambda item: item[1] - item[0])]
        found.append([(run[0], run[-1] + 1) for run in runs])
    return found


def pack_words(words: Array, order: Array, runs: list[tuple[int, int]], index_bits: int, out: Array) -> int:
    """Write some runs of bits of each word, and its index, in the current order; give the number of bits."""
    masks, downs, n_bits = [], [], 0
    for begin, end in runs:
        masks.append((1 << end) - (1 << begin))
        downs.append(begin - n_bits)
        n_bits += end - begin
    fixed = freeze(order, np.int64), np.array(masks, np.uint64), np.array(downs, np.uint64), np.uint64(index_bits)
    parts = shares(len(words))
    run(lambda share: pack(words, *fixed, *parts[share], out), len(parts))
    return n_bits


def sort_by_digit(packed: Array, down: int, n_bits: int, out: Array) -> None:
    """Write the words in the order of one digit; equal ones keep their order."""
    parts, shift = shares(len(packed)), np.uint64(down)
    counts = np.zeros((len(parts), 1 << n_bits), np.int64)
    run(lambda share: count_digits(packed, shift, *parts[share], counts[share]), len(parts))
    # Words of the first share come before words of the next share with the same digit.
    in_order = counts.T.ravel()
    positions = np.ascontiguousarray((np.cumsum(in_order) - in_order).reshape(counts.T.shape).T)
    run(lambda share: move_by_digit(packed, shift, *parts[share], positions[share], out), len(parts))


def indices_of(packed: Array, index_bits: int, room: Array) -> Array:
    """Give the indices of packed words, in their order; `room` has space for as many words."""
    order, parts = room.view(np.int64), shares(len(packed))
    run(lambda share: indices_in(packed, np.uint64(index_bits), *parts[share], order), len(parts))
    return order


def order_of_words(words: Array) -> Array:
    """Give the indices (int64) that sort words (uint64); equal ones keep their order."""
    n_words = len(words)
    order = np.empty(0, np.int64)
    if n_words < FEW_WORDS:
        return np.argsort(words, kind="stable")
    words, index_bits = freeze(words, np.uint64), (n_words - 1).bit_length()
    packed, other = empty(n_words, np.uint64), empty(n_words, np.uint64)
    for runs in groups_of(find_different_bits(words), WORD_BITS - index_bits):
        n_bits = pack_words(words, order, runs, index_bits, packed)
        n_digits = -(-n_bits // DIGIT_BITS)
        size = -(-n_bits // n_digits)
        for digit in range(n_digits):
            sort_by_digit(packed, index_bits + digit * size, size, other)
            packed, other = other, packed
        # The next bits are sorted in this room, after the order has been read from it.
        order = indices_of(packed, index_bits, other)
    return order if len(order) else indices(n_words, np.int64)


def order_of_numbers(numbers: Array) -> Array:
    """Give the indices (int64) that sort int64, uint64 or float64 numbers without NaN; equal ones keep their order.

    There must be no negative zeros.
    """
    words = freeze(numbers, numbers.dtype).view(np.uint64)
    if numbers.dtype.kind == "f":
        # The bits of negative floats increase when the numbers decrease.
        room = empty(len(words), np.int64)
        flipped = np.right_shift(words.view(np.int64), np.int64(WORD_BITS - 1), out=room).view(np.uint64)
        flipped |= SIGN
        words = np.bitwise_xor(flipped, words, out=flipped)
    elif len(numbers):
        # If the range is small, distances from the smallest number differ in few bits.
        words = np.subtract(words, words[numbers.argmin()], out=empty(len(words), np.uint64))
    return order_of_words(words)
