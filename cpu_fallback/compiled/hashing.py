"""Hash tables (open addressing) of 64-bit words: key and number are neighbours, so a look-up costs one cache line."""

import numpy as np

from cpu_fallback.compiled.border import Array, freeze, kernel, stage
from cpu_fallback.memory import empty, zeros

FEWEST_SLOTS = 1 << 10
# 2**64 divided by the golden ratio (Knuth's multiplicative hashing).
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@stage
def slot_of(word: np.uint64, shift: np.uint64) -> np.uint64:
    """Give the first slot in which to look for a word: the upper bits of a scrambled product."""
    word = (word ^ (word >> np.uint64(32))) * GOLDEN
    return (word ^ (word >> np.uint64(29))) * GOLDEN >> shift


def blank(n_slots: int) -> tuple[Array, np.uint64]:
    """Give an empty table (number 0 means free), and the shift that turns a hash into a slot."""
    return zeros((n_slots, 2), np.uint64), np.uint64(65 - n_slots.bit_length())


@kernel
def fill(table: Array, shift: np.uint64, words: Array) -> None:
    """Fill a table with distinct words; the number of a word is its index plus one."""
    last = np.uint64(len(table) - 1)
    for i in range(len(words)):
        slot = slot_of(words[i], shift)
        while table[slot, 1] != 0:
            slot = (slot + np.uint64(1)) & last
        table[slot, 0] = words[i]
        table[slot, 1] = np.uint64(i + 1)


@kernel
def number_words(
    words: Array, start: int, stop: int, codes: Array, table: Array, shift: np.uint64, first: Array, count: int
) -> tuple[int, int]:
    """Number words from `start` on until `first` is full; give the row after the last one, and the number of words."""
    last = np.uint64(len(table) - 1)
    for i in range(start, stop):
        row = np.uint64(i)
        word = words[row]
        slot = slot_of(word, shift)
        while table[slot, 1] != 0 and table[slot, 0] != word:
            slot = (slot + np.uint64(1)) & last
        if table[slot, 1] == 0:
            if count == len(first):
                return i, count
            first[count] = i
            count += 1
            table[slot, 0] = word
            table[slot, 1] = np.uint64(count)
        codes[row] = np.int64(table[slot, 1]) - 1
    return stop, count


def codes_by_hash(words: Array, start: int, stop: int, codes: Array) -> Array:
    """Number the words [start, stop) in the order of first occurrence; give the first row of each."""
    n_slots, count = FEWEST_SLOTS, 0
    first = empty(n_slots // 2, np.int64)
    while True:
        table, shift = blank(n_slots)
        fill(table, shift, freeze(words[first[:count]], np.uint64))
        start, count = number_words(words, start, stop, codes, table, shift, first, count)
        if start == stop:
            return first[:count]
        n_slots *= 4
        longer = empty(n_slots // 2, np.int64)
        longer[:count] = first
        first = longer


def table_of(words: Array) -> Array:
    """Make a table of distinct words; the number of a word is its index plus one."""
    table, shift = blank(max(FEWEST_SLOTS, 1 << (2 * len(words) - 1).bit_length()))
    fill(table, shift, words)
    return table


@kernel
def find_codes(words: Array, table: Array, unknown: int, start: int, stop: int, codes: Array) -> None:
    """Write the index of each word [start, stop) in the table; `unknown` if it is absent."""
    shift, size = np.uint64(64), len(table)
    while size > 1:
        size >>= 1
        shift -= np.uint64(1)
    last = np.uint64(len(table) - 1)
    given, out = words[start:stop], codes[start:stop]
    for i in range(len(given)):
        slot = slot_of(given[i], shift)
        while table[slot, 1] != 0 and table[slot, 0] != given[i]:
            slot = (slot + np.uint64(1)) & last
        out[i] = np.int64(table[slot, 1]) - 1 if table[slot, 1] != 0 else unknown
