"""Rows of bytes, such as text, to codes and back, all on the device: strings are hashed, then compared byte by byte.

In the hash tables of `hashing.py`, words stand for strings.  Every row is checked: if equal words stand for different
strings, another seed is tried, so codes are exact.  Only distinct strings are ever sorted.
"""

from itertools import count
from typing import NamedTuple

import numpy as np

from cpu_fallback.compiled.border import Array
from gpu_encode.cuda.hashing import UNKNOWN, ZERO, Words, codes_in, distinct, enter_words, number_slots, rank_slots
from gpu_encode.cuda.memory import empty, to_device, to_host, zeros
from gpu_encode.cuda.runtime import cuda, device_function, kernel, launch_rows, xp

MISSING = -1
# The word of null, and the word for a string that would otherwise have this word.
NULL = np.uint64(0xA0761D6478BD642F)
NOT_NULL = NULL ^ np.uint64(1)
# Bytes that are hashed and compared at a time.
PIECE = 8
# Constants that mix bits well: that of the golden ratio, and the second one of splitmix64 (Steele et al. 2014).
FIRST_FACTOR = np.uint64(0x9E3779B97F4A7C15)
SECOND_FACTOR = np.uint64(0x94D049BB133111EB)


class Strings(NamedTuple):
    """Rows of bytes: row i is characters[starts[i]:ends[i]].

    Parameters
    ----------
    starts, ends : int32 or int64 arrays
    characters : uint8 array
        Not empty, even if all rows are.
    """

    starts: Array
    ends: Array
    characters: Array

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.starts)

    def pick(self, rows: Array) -> "Strings":
        """Rows with the given numbers; the bytes are shared."""
        return Strings(self.starts[rows], self.ends[rows], self.characters)


class Known(NamedTuple):
    """Distinct known strings, and their words under a seed with which all words differ."""

    strings: Strings
    words: Array
    seed: np.uint64


@device_function
def piece_at(characters: Array, start: int, stop: int) -> np.uint64:
    """The first eight bytes, or fewer, in one word; words are in the order of the bytes."""
    word = ZERO
    for k in range(min(stop - start, PIECE)):
        word |= np.uint64(characters[start + k]) << np.uint64(56 - 8 * k)
    return word


@device_function
def stir(word: np.uint64) -> np.uint64:
    """Mix the bits of a word; different words give different results."""
    word = (word ^ (word >> np.uint64(32))) * FIRST_FACTOR
    word = (word ^ (word >> np.uint64(29))) * SECOND_FACTOR
    return word ^ (word >> np.uint64(32))


@device_function
def alike(first: Strings, i: int, second: Strings, j: int) -> bool:
    """Whether two strings are equal, byte by byte."""
    start, stop = np.int64(first.starts[i]), np.int64(first.ends[i])
    other_start, other_stop = np.int64(second.starts[j]), np.int64(second.ends[j])
    if stop - start != other_stop - other_start:
        return False
    while start < stop:
        if piece_at(first.characters, start, stop) != piece_at(second.characters, other_start, other_stop):
            return False
        start += PIECE
        other_start += PIECE
    return True


@kernel
def hash_rows(strings: Strings, nulls: Array, has_nulls: int, seed: np.uint64, words: Array) -> None:
    """Write a word for each string; different strings of the same length up to eight bytes have different words."""
    for i in range(cuda.grid(1), len(words), cuda.gridsize(1)):
        if has_nulls and nulls[i]:
            words[i] = NULL
            continue
        start, stop = np.int64(strings.starts[i]), np.int64(strings.ends[i])
        word = stir(seed ^ np.uint64(stop - start))
        while start < stop:
            word = stir(word ^ piece_at(strings.characters, start, stop))
            start += PIECE
        words[i] = word if word != NULL else NOT_NULL


@kernel
def keep_rows(slot_of_row: Array, row_at: Array) -> None:
    """Write one row for each slot, from whichever thread comes last."""
    for i in range(cuda.grid(1), len(slot_of_row), cuda.gridsize(1)):
        # A slot number uses all 32 bits, also the sign bit.
        row_at[np.int64(slot_of_row[i]) & 0xFFFFFFFF] = i


@kernel
def compare_rows(
    strings: Strings, nulls: Array, has_nulls: int, slot_of_row: Array, row_at: Array, differs: Array
) -> None:
    """Note whether any string differs from the string of the row that was kept for its slot."""
    for i in range(cuda.grid(1), len(slot_of_row), cuda.gridsize(1)):
        if has_nulls and nulls[i]:
            continue
        if not alike(strings, i, strings, row_at[np.int64(slot_of_row[i]) & 0xFFFFFFFF]):
            differs[0] = 1


@kernel
def check_rows(strings: Strings, nulls: Array, has_nulls: int, known: Strings, codes: Array) -> None:
    """Mark null rows as missing, and rows whose string differs from the string of their code as unknown."""
    for i in range(cuda.grid(1), len(codes), cuda.gridsize(1)):
        j = codes[i]
        if has_nulls and nulls[i]:
            codes[i] = MISSING
        elif j >= 0 and not alike(strings, i, known, j):
            codes[i] = UNKNOWN


@kernel
def cut_rows(strings: Strings, rows: Array, depth: int, pieces: Array) -> None:
    """Write eight bytes of some rows, from `depth` bytes after their start; zeros after the end of a string."""
    for i in range(cuda.grid(1), len(rows), cuda.gridsize(1)):
        start, stop = np.int64(strings.starts[rows[i]]) + depth, np.int64(strings.ends[rows[i]])
        pieces[i] = piece_at(strings.characters, start, stop) if start < stop else ZERO


@kernel
def copy_rows(strings: Strings, offsets: Array, copied: Array) -> None:
    """Copy strings one after another."""
    for i in range(cuda.grid(1), len(strings.starts), cuda.gridsize(1)):
        start = np.int64(strings.starts[i])
        for k in range(np.int64(strings.ends[i]) - start):
            copied[offsets[i] + k] = strings.characters[start + k]


def mark_nulls(nulls: Array | None) -> tuple[Array, int]:
    """Which rows are null, in the form that kernels take, and whether any is."""
    return (zeros(1, np.bool_), 0) if nulls is None else (nulls, 1)


def hash_strings(strings: Strings, nulls: Array | None, seed: np.uint64) -> Words:
    """Words that stand for strings, and for null."""
    words = empty(strings.n_rows, np.uint64)
    launch_rows(hash_rows, strings.n_rows, strings, *mark_nulls(nulls), seed, words)
    return Words(words, ZERO)


def factorize_strings(strings: Strings, nulls: Array | None = None) -> tuple[Array, Strings]:
    """Codes (int32; -1 for null) of strings, and the distinct strings in the order of their bytes."""
    n_rows = strings.n_rows
    if not n_rows:
        return empty(0, np.int32), strings
    for seed in count():
        slot_of_row, slots = enter_words(hash_strings(strings, nulls, np.uint64(seed)))
        row_at, differs = empty(len(slots), np.int32), zeros(1, np.int32)
        launch_rows(keep_rows, n_rows, slot_of_row, row_at)
        launch_rows(compare_rows, n_rows, strings, *mark_nulls(nulls), slot_of_row, row_at, differs)
        if not int(differs[0]):
            break
    occupied, words = distinct(slots)
    ranks = empty(len(slots), np.int32)
    if nulls is not None:
        ranks[...] = MISSING
        occupied = occupied[words != NULL]
    found = strings.pick(row_at[occupied])
    order = order_of(found)
    launch_rows(rank_slots, len(order), occupied[order], ranks)
    launch_rows(number_slots, n_rows, slot_of_row, ranks)
    return slot_of_row, found.pick(order)


def order_of(strings: Strings) -> Array:
    """Sort distinct strings by their bytes: eight bytes at a time, and only strings that are not yet distinguished."""
    n_rows = strings.n_rows
    if not n_rows:
        return xp.arange(0)
    lengths = (strings.ends - strings.starts).astype(np.uint64)
    longest = int(lengths.max())
    order = xp.arange(n_rows)
    rows, positions, group = order.copy(), order.copy(), zeros(n_rows, np.int64)
    depth = 0
    while len(rows):
        pieces = empty(len(rows), np.uint64)
        launch_rows(cut_rows, len(rows), strings, rows, depth, pieces)
        # At the end, strings differ only by zero bytes after the shorter one, which comes first.
        keys = pieces if depth < longest else lengths[rows]
        by_key = xp.argsort(keys, kind="stable")
        sorted_rows = by_key[xp.argsort(group[by_key], kind="stable")]
        rows, keys, group = rows[sorted_rows], keys[sorted_rows], group[sorted_rows]
        order.put(positions, rows)
        begins, ends = empty(len(rows), bool), empty(len(rows), bool)
        begins[:1], ends[-1:] = True, True
        begins[1:] = (keys[1:] != keys[:-1]) | (group[1:] != group[:-1])
        ends[:-1] = begins[1:]
        tied = ~(begins & ends)
        rows, positions, group = rows[tied], positions[tied], xp.cumsum(begins, dtype=np.int64)[tied]
        depth += PIECE
    return order


def prepare(strings: Strings) -> Known:
    """Prepare distinct strings, so that others can be looked up among them."""
    for seed in count():
        words = hash_strings(strings, None, np.uint64(seed))
        if not strings.n_rows or len(distinct(enter_words(words)[1])[1]) == strings.n_rows:
            break
    return Known(strings, words.words, np.uint64(seed))


def lookup_strings(strings: Strings, categories: Known, nulls: Array | None = None) -> Array:
    """Index of each string among known strings (int32): -1 for null, -2 if it is absent."""
    if strings.n_rows and categories.strings.n_rows:
        codes = codes_in(hash_strings(strings, nulls, categories.seed), Words(categories.words, ZERO))
        launch_rows(check_rows, strings.n_rows, strings, *mark_nulls(nulls), categories.strings, codes)
        return codes
    codes = empty(strings.n_rows, np.int32)
    codes[...] = UNKNOWN
    return codes if nulls is None else xp.where(nulls, np.int32(MISSING), codes)


def strings_to_host(strings: Strings) -> tuple[Array, Array]:
    """Offsets (int64, one more than rows) and bytes of strings, on the host."""
    offsets = zeros(strings.n_rows + 1, np.int64)
    if strings.n_rows:
        offsets[1:] = xp.cumsum(strings.ends - strings.starts, dtype=np.int64)
    copied = empty(int(offsets[-1]), np.uint8)
    if len(copied):
        launch_rows(copy_rows, strings.n_rows, strings, offsets, copied)
    return to_host(offsets), to_host(copied)


def strings_to_device(offsets: Array, characters: Array) -> Strings:
    """Copy strings to the device, from their offsets (one more than rows) and their bytes."""
    ends = to_device(offsets)
    return Strings(ends[:-1], ends[1:], to_device(characters) if len(characters) else zeros(1, np.uint8))
