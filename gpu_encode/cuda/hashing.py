"""Hash tables with open addressing for 64-bit words in device memory: each distinct word gets a number.

A table has one slot more than the hash can give: the last one is for the word that marks free slots.  The slot of a
word depends on which thread comes first; the results (ranks in sorted order) do not.
"""

from typing import NamedTuple

import numpy as np

from cpu_fallback.compiled.border import Array
from cpu_fallback.compiled.hashing import slot_of
from gpu_encode.cuda.memory import empty, zeros
from gpu_encode.cuda.runtime import cuda, device_function, kernel, launch_rows, xp

UNKNOWN = -2

# As a float64 it is NaN, as an integer far from zero: it rarely occurs among the words, and never among narrow ones.
FREE = np.uint64(0xFFF89E3779B97F4A)
ZERO = np.uint64(0)
# Number of slots in the first table and in the largest one: a slot number must fit into 32 bits.
FIRST_SLOTS = 1 << 20
MOST_SLOTS = 1 << 31
# If a word finds no slot within this number of steps, a larger table is tried; it happens at about six words to ten
# slots.
MOST_PROBES = 128
GROWTH = 4


class Words(NamedTuple):
    """Numbers as unsigned words of their own width, and the word of minus zero, which equals that of zero."""

    words: Array
    minus_zero: np.uint64


class Table(NamedTuple):
    """Words in their slots, and the shift that turns a hash into a slot."""

    slots: Array
    shift: np.uint64


def slots_for(n_words: int) -> int:
    """Number of slots, a power of two, of which at least half stay free."""
    return min(1 << max(2 * n_words - 1, 1).bit_length(), MOST_SLOTS)


def blank(n_slots: int) -> Table:
    """Give a table with free slots."""
    slots = empty(n_slots + 1, np.uint64)
    slots[...] = FREE
    return Table(slots, np.uint64(65 - n_slots.bit_length()))


@device_function
def word_at(given: Words, i: int) -> np.uint64:
    """Word of a number; equal numbers have equal words.  Integers have no minus zero, and pass zero for it."""
    word = np.uint64(given.words[i])
    return ZERO if word == given.minus_zero else word


@device_function
def claim(word: np.uint64, table: Table, most_probes: int) -> np.int64:
    """Find the slot of a word, or take a free slot for it; -1 if there is none nearby."""
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
    """Find the slot of a word; -1 if it is not in the table."""
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
    """Enter each row's word into the table and write its slot; all threads stop soon after one of them has given up."""
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
    """Read the words in some slots."""
    for i in range(cuda.grid(1), len(occupied), cuda.gridsize(1)):
        slot = occupied[i]
        words[i] = FREE if slot == len(slots) - 1 else slots[slot]


@kernel
def rank_slots(occupied: Array, ranks: Array) -> None:
    """Write the rank of each word to its slot; the words are given in order, by their slots."""
    for i in range(cuda.grid(1), len(occupied), cuda.gridsize(1)):
        # A slot number uses all 32 bits, also the sign bit.
        ranks[np.int64(occupied[i]) & 0xFFFFFFFF] = i


@kernel
def number_slots(slot_of_row: Array, ranks: Array) -> None:
    """Replace each row's slot by the rank of the word in it."""
    for i in range(cuda.grid(1), len(slot_of_row), cuda.gridsize(1)):
        slot_of_row[i] = ranks[np.int64(slot_of_row[i]) & 0xFFFFFFFF]


@kernel
def find_rows(given: Words, table: Table, ranks: Array, codes: Array) -> None:
    """Write the rank of each row's word; `UNKNOWN` if it is not in the table."""
    for i in range(cuda.grid(1), len(given.words), cuda.gridsize(1)):
        slot = find(word_at(given, i), table)
        codes[i] = ranks[slot] if slot >= 0 else UNKNOWN


def enter_words(given: Words) -> tuple[Array, Array]:
    """Slot of each row's word (int32 with all 32 bits used), in the first table that is large enough, and its slots."""
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
    """Give the slots with words, and the words."""
    occupied = xp.flatnonzero(slots != FREE)
    words = empty(len(occupied), np.uint64)
    launch_rows(read_slots, len(occupied), occupied, slots, words)
    return occupied, words


def codes_in(given: Words, known: Words) -> Array:
    """Index of each word among distinct known words; `UNKNOWN` if it is absent."""
    table = blank(slots_for(len(known.words)))
    n_slots = len(table.slots) - 1
    slot_of_row = empty(len(known.words), np.int32)
    launch_rows(enter_rows, len(known.words), known, table, n_slots, zeros(1, np.int32), slot_of_row)
    ranks = empty(n_slots + 1, np.int32)
    launch_rows(rank_slots, len(slot_of_row), slot_of_row, ranks)
    codes = empty(len(given.words), np.int32)
    launch_rows(find_rows, len(codes), given, table, ranks, codes)
    return codes
