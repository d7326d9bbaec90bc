"""Open-addressing tables of 64-bit words in the device's memory: a number for each distinct word.

A table has one slot more than its hash reaches: the last is for the word that marks free slots.  Which slot a word
gets depends on which thread comes first; what is made of a slot (a rank in sorted order) does not.
"""

from typing import NamedTuple

import numpy as np

from cpu_fallback.compiled.border import Array
from cpu_fallback.compiled.hashing import slot_of
from gpu_encode.cuda.memory import empty, zeros
from gpu_encode.cuda.runtime import cuda, device_function, kernel, launch_rows, xp

UNKNOWN = -2

# As a float64 not a number, as whole numbers far from zero: rarely among the words, and wider than narrow ones.
FREE = np.uint64(0xFFF89E3779B97F4A)
ZERO = np.uint64(0)
# Slots of the first table tried, and of the largest: what a slot is kept in holds 32 bits.
FIRST_SLOTS = 1 << 20
MOST_SLOTS = 1 << 31
# A word that finds no slot so near asks for a larger table: on about six words to ten slots the first does.
MOST_PROBES = 128
GROWTH = 4


class Words(NamedTuple):
    """Numbers as unsigned words of their own width, and the word that is another one's equal: that of minus zero."""

    words: Array
    minus_zero: np.uint64


class Table(NamedTuple):
    """Words in their slots, and the shift that takes a hash to a slot."""

    slots: Array
    shift: np.uint64


def slots_for(n_words: int) -> int:
    """Slots that leave at least half of them free: a power of two."""
    return min(1 << max(2 * n_words - 1, 1).bit_length(), MOST_SLOTS)


def blank(n_slots: int) -> Table:
    """Give a table of free slots."""
    slots = empty(n_slots + 1, np.uint64)
    slots[...] = FREE
    return Table(slots, np.uint64(65 - n_slots.bit_length()))


@device_function
def word_at(given: Words, i: int) -> np.uint64:
    """Word of a number, the same for numbers that are equal; whole numbers have no minus zero, and give zero for it."""
    word = np.uint64(given.words[i])
    return ZERO if word == given.minus_zero else word


@device_function
def claim(word: np.uint64, table: Table, most_probes: int) -> np.int64:
    """Find the slot of a word, taking a free one where it has none; -1 where neither is near."""
    slots, n_slots = table.slots, len(table.slots) - 1
    if word == FREE:
        slots[n_slots] = ZERO
        return np.int64(n_slots)
    slot = np.int64(slot_of(word, table.shift))
    for _ in range(most_probes):
        held = slots[slot]
        if held == FREE:
            held = cuda.atomic.cas(slots, slot, FREE, word)
        if held in (word, FREE):
            return np.int64(slot)
        slot = (slot + 1) & (n_slots - 1)
    return np.int64(-1)


@device_function
def find(word: np.uint64, table: Table) -> np.int64:
    """Find the slot of a word; -1 where it has none."""
    slots, n_slots = table.slots, len(table.slots) - 1
    if word == FREE:
        return np.int64(n_slots if slots[n_slots] != FREE else -1)
    slot = np.int64(slot_of(word, table.shift))
    while slots[slot] != word:
        if slots[slot] == FREE:
            return np.int64(-1)
        slot = (slot + 1) & (n_slots - 1)
    return np.int64(slot)


@kernel
def enter_rows(given: Words, table: Table, most_probes: int, given_up: Array, slot_of_row: Array) -> None:
    """Enter each row's word into the table and write its slot; every thread stops soon after one has given up."""
    for i in range(cuda.grid(1), len(given.words), cuda.gridsize(1)):
        if given_up[0]:
            break
        slot = claim(word_at(given, i), table, most_probes)
        if slot < 0:
            given_up[0] = 1
            break
        slot_of_row[i] = slot


@kernel
def read_slots(occupied: Array, slots: Array, words: Array) -> None:
    """Read the words at some slots."""
    for i in range(cuda.grid(1), len(occupied), cuda.gridsize(1)):
        slot = occupied[i]
        words[i] = FREE if slot == len(slots) - 1 else slots[slot]


@kernel
def rank_slots(occupied: Array, ranks: Array) -> None:
    """Write the rank of each word at its slot, the words given in order by their slots."""
    for i in range(cuda.grid(1), len(occupied), cuda.gridsize(1)):
        # Of 32 bits a slot uses all, the sign's too.
        ranks[np.int64(occupied[i]) & 0xFFFFFFFF] = i


@kernel
def number_slots(slot_of_row: Array, ranks: Array) -> None:
    """Replace each row's slot by the rank of the word there."""
    for i in range(cuda.grid(1), len(slot_of_row), cuda.gridsize(1)):
        slot_of_row[i] = ranks[np.int64(slot_of_row[i]) & 0xFFFFFFFF]


@kernel
def find_rows(given: Words, table: Table, ranks: Array, codes: Array) -> None:
    """Write the rank of each row's word, `UNKNOWN` where the table has none."""
    for i in range(cuda.grid(1), len(given.words), cuda.gridsize(1)):
        slot = find(word_at(given, i), table)
        codes[i] = ranks[slot] if slot >= 0 else UNKNOWN


def enter_words(given: Words) -> tuple[Array, Array]:
    """Slot of each row's word (int32, all 32 bits used), in the first table that is large enough, and its slots."""
    n_rows = len(given.words)
    enough = slots_for(n_rows)
    n_slots = min(FIRST_SLOTS, enough)
    slot_of_row = empty(n_rows, np.int32)
    while True:
        table, given_up = blank(n_slots), zeros(1, np.int32)
        most_probes = MOST_PROBES if n_slots < enough else n_slots
        launch_rows(enter_rows, n_rows, given, table, most_probes, given_up, slot_of_row)
        if not int(given_up[0]):
            return slot_of_row, table.slots
        if n_slots == enough:
            raise NotImplementedError("codes of more than 2**31 distinct values")
        n_slots = min(n_slots * GROWTH, enough)


def distinct(slots: Array) -> tuple[Array, Array]:
    """Give the slots that hold words, and the words."""
    occupied = xp.flatnonzero(slots != FREE)
    words = empty(len(occupied), np.uint64)
    launch_rows(read_slots, len(occupied), occupied, slots, words)
    return occupied, words


def codes_in(given: Words, known: Words) -> Array:
    """Index of each word among distinct known ones, `UNKNOWN` where it is absent."""
    table = blank(slots_for(len(known.words)))
    n_slots = len(table.slots) - 1
    slot_of_row = empty(len(known.words), np.int32)
    launch_rows(enter_rows, len(known.words), known, table, n_slots, zeros(1, np.int32), slot_of_row)
    ranks = empty(n_slots + 1, np.int32)
    launch_rows(rank_slots, len(slot_of_row), slot_of_row, ranks)
    codes = empty(len(given.words), np.int32)
    launch_rows(find_rows, len(codes), given, table, ranks, codes)
    return codes
