"""Strings in a form for comparison: a stamp of hash and length, and two words with the bytes of a short string."""

from typing import NamedTuple

import numpy as np

from cpu_fallback.compiled.border import Array, inlined, separate, stage
from cpu_fallback.compiled.hashing import GOLDEN

# Strings of at most this number of bytes are compared without reading the string itself.
SHORT = 16
# The second factor of splitmix64 (Steele et al. 2014).
SECOND_FACTOR = np.uint64(0x94D049BB133111EB)
# The hash bits of a stamp: the upper 27, and the lower 32, which choose the slot; between them is the length class.
HASHED = np.uint64(0xFFFFFFE0FFFFFFFF)
EVERY = np.uint64(0xFFFFFFFFFFFFFFFF)


class Texts(NamedTuple):
    """Strings as Arrow lays them out.

    Parameters
    ----------
    words : uint64 array
        For every byte, the eight bytes from it on.
    offsets : uint32 array
        The beginning of each string, and the end of the last: one word for each, or two if `wide`.
    wide : int
    validity : uint8 array
        A bit for each row, 0 for null; empty if no row is.
    first : int
        Bit of the first row.
    """

    words: Array
    offsets: Array
    wide: int
    validity: Array
    first: int


@stage
def offset_at(texts: Texts, row: int) -> np.int64:
    """Give the index of the first byte of a row's string."""
    if texts.wide:
        low, high = texts.offsets[np.uint64(2 * row)], texts.offsets[np.uint64(2 * row + 1)]
        return np.int64(low) | np.int64(high) << np.int64(32)
    return np.int64(texts.offsets[np.uint64(row)])


@inlined
def first_bytes(word: np.uint64, length: int) -> np.uint64:
    """Keep the first `length` bytes of a word: all for eight or more, none for less than one."""
    few = min(max(length, 0), 7)
    return word & (EVERY if length >= 8 else ~(EVERY << np.uint64(8 * few)))


@inlined
def word_at(words: Array, start: int, length: int) -> np.uint64:
    """Give the first eight bytes of a string, or fewer, as a word; nothing is read beyond the end of all bytes."""
    near = min(start, len(words) - 1)
    return first_bytes(words[np.uint64(near)] >> np.uint64(8 * min(start - near, 7)), length)


@stage
def is_null(texts: Texts, row: int) -> bool:
    """Tell whether a row is null; some row must be."""
    bit = texts.first + row
    return not (texts.validity[np.uint64(bit >> 3)] >> (bit & 7)) & 1


@stage
def hash_of(first: np.uint64, second: np.uint64) -> np.uint64:
    """Hash two words."""
    word = first ^ second * SECOND_FACTOR
    word = (word ^ (word >> np.uint64(32))) * GOLDEN
    return word ^ (word >> np.uint64(29))


@stage
def hash_of_long(words: Array, start: int, length: int) -> np.uint64:
    """Hash all bytes of a string of more than eight; some of the last eight bytes may be hashed twice."""
    word = np.uint64(length)
    for done in range(start, start + length - 8, 8):
        word = (word ^ words[np.uint64(done)]) * GOLDEN
        word ^= word >> np.uint64(32)
    return (word ^ words[np.uint64(start + length - 8)]) * SECOND_FACTOR


@inlined
def alike(words: Array, start: int, others: Array, other_start: int, length: int) -> bool:
    """Compare all bytes of two strings that have the same length of more than eight."""
    apart = other_start - start
    for done in range(start, start + length - 8, 8):
        if words[np.uint64(done)] != others[np.uint64(done + apart)]:
            return False
    last = start + length - 8
    return words[np.uint64(last)] == others[np.uint64(last + apart)]


@stage
def begin_block(texts: Texts, begin: int, n: int, starts: Array) -> int:
    """Write where the strings of n rows begin, and where the last one ends; give the longest length."""
    if texts.wide:
        for i in range(n + 1):
            starts[i] = offset_at(texts, begin + i)
    else:
        for i in range(n + 1):
            starts[i] = texts.offsets[np.uint64(begin + i)]
    longest = 0
    for i in range(n):
        longest = max(longest, starts[i + 1] - starts[i])
    return longest


@separate
def cut_block(texts: Texts, begin: int, n: int, starts: Array, stamps: Array, firsts: Array, seconds: Array) -> int:
    """Write start, stamp and pieces of the strings of n rows; give the length of the longest."""
    words = texts.words
    longest = begin_block(texts, begin, n, starts)
    if starts[n] + 8 < len(words):
        # There are two loops, since the second one works on several rows at a time.
        for i in range(n):
            firsts[i], seconds[i] = words[np.uint64(starts[i])], words[np.uint64(starts[i] + 8)]
        for i in range(n):
            length = starts[i + 1] - starts[i]
            firsts[i] = first_bytes(firsts[i], length)
            seconds[i] = first_bytes(seconds[i], length - 8)
    else:
        for i in range(n):
            length = starts[i + 1] - starts[i]
            firsts[i] = word_at(words, starts[i], length)
            seconds[i] = word_at(words, starts[i] + 8, length - 8)
    if longest > SHORT:
        for i in range(n):
            length = starts[i + 1] - starts[i]
            if length > SHORT:
                firsts[i], seconds[i] = hash_of_long(words, starts[i], length), np.uint64(length)
    for i in range(n):
        class_ = np.uint64(min(starts[i + 1] - starts[i], SHORT + 1) + 1)
        stamps[i] = hash_of(firsts[i], seconds[i]) & HASHED | class_ << np.uint64(32)
    return longest
