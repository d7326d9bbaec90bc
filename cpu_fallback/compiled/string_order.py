"""Sort distinct strings by their bytes: first by the eight bytes after their common prefix."""

from typing import NamedTuple

import numpy as np

from cpu_fallback.compiled.border import Array, inlined, kernel, stage
from cpu_fallback.compiled.sorting import indices, order_of_words
from cpu_fallback.compiled.string_pieces import SHORT, first_bytes, word_at
from cpu_fallback.memory import empty


class Picked(NamedTuple):
    """Some strings among many bytes: where each begins, its number of bytes, and two words with its bytes if short."""

    words: Array
    starts: Array
    lengths: Array
    pieces: Array


@inlined
def word_behind(picked: Picked, number: int, depth: int) -> np.uint64:
    """Give eight bytes of a string from byte `depth` on; zeros after its end."""
    length = picked.lengths[np.uint64(number)]
    if length > SHORT:
        return word_at(picked.words, picked.starts[np.uint64(number)] + depth, length - depth)
    # Pieces are contiguous in memory, unlike the strings in the rows.
    first, second = picked.pieces[np.uint64(2 * number)], picked.pieces[np.uint64(2 * number + 1)]
    if depth >= 8:
        return second >> np.uint64(8 * (depth - 8)) if depth < SHORT else np.uint64(0)
    return first >> np.uint64(8 * depth) | second << np.uint64(64 - 8 * depth) if depth else first


@inlined
def swap_bytes(word: np.uint64) -> np.uint64:
    """Reverse the bytes of a word, so that words are ordered as their bytes."""
    found = np.uint64(0)
    for k in range(8):
        found |= ((word >> np.uint64(8 * k)) & np.uint64(0xFF)) << np.uint64(56 - 8 * k)
    return found


@stage
def common_prefix(picked: Picked, order: Array, begin: int, end: int) -> int:
    """Give the number of bytes with which all strings of some ranks begin."""
    first = order[begin]
    common = picked.lengths[first]
    for k in range(begin + 1, end):
        common = min(common, picked.lengths[order[k]])
        for done in range(0, common, 8):
            differs = word_behind(picked, first, done) ^ word_behind(picked, order[k], done)
            if first_bytes(differs, common - done):
                common = done
                while not differs & np.uint64(0xFF):
                    differs >>= np.uint64(8)
                    common += 1
                break
    return common


@kernel
def key_range(picked: Picked, depth: int, keys: Array) -> None:
    """Write the eight bytes of each string from byte `depth` on."""
    for i in range(len(keys)):
        keys[i] = swap_bytes(word_behind(picked, i, depth))


@stage
def precedes(picked: Picked, one: int, other: int, depth: int) -> bool:
    """Tell whether a string comes before another one that begins with the same `depth` bytes."""
    length, other_length = picked.lengths[one], picked.lengths[other]
    for done in range(depth, min(length, other_length), 8):
        key, other_key = swap_bytes(word_behind(picked, one, done)), swap_bytes(word_behind(picked, other, done))
        if key != other_key:
            return key < other_key
    return length < other_length


@stage
def merge_runs(picked: Picked, order: Array, begin: int, end: int, depth: int, scratch: Array) -> None:
    """Sort the ranks [begin, end) of the order by merging runs of 1, 2, 4, ... of them."""
    width = 1
    while width < end - begin:
        for start in range(begin, end, 2 * width):
            middle, stop = min(start + width, end), min(start + 2 * width, end)
            left, right = start, middle
            for k in range(start, stop):
                if right == stop or (left < middle and not precedes(picked, order[right], order[left], depth)):
                    scratch[k] = order[left]
                    left += 1
                else:
                    scratch[k] = order[right]
                    right += 1
        for k in range(begin, end):
            order[k] = scratch[k]
        width *= 2


@kernel
def sort_ties(picked: Picked, keys: Array, order: Array) -> None:
    """Sort the strings with equal keys by their further bytes; strings are in the order of keys already."""
    scratch = np.empty(0, np.int64)
    begin = 0
    while begin < len(order):
        end = begin + 1
        while end < len(order) and keys[end] == keys[begin]:
            end += 1
        if end - begin > 1:
            if not len(scratch):
                scratch = np.empty(len(order), np.int64)
            merge_runs(picked, order, begin, end, common_prefix(picked, order, begin, end), scratch)
        begin = end


def order_of(picked: Picked) -> Array:
    """Give the order of distinct strings by their bytes."""
    order = indices(len(picked.starts), np.int64)
    if len(order) < 2:
        return order
    keys = empty(len(order), np.uint64)
    key_range(picked, common_prefix(picked, order, 0, len(order)), keys)
    order = order_of_words(keys)
    sort_ties(picked, np.take(keys, order, out=empty(len(order), np.uint64), mode="clip"), order)
    return order
