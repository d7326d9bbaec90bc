"""Open-addressing tables of 64-bit words in the device's memory: a number for each distinct word.

A table has one place more than its hash reaches: the last is for the word that marks free places.  Which place a word
gets depends on which thread comes first; what is made of a place (a rank in sorted order) does not.
"""

from typing import NamedTuple

import numpy as np

from cpu_fallback.compiled.border import Array
from cpu_fallback.compiled.hashing import place_of
from gpu_encode.cuda.memory import empty, zeros
from gpu_encode.cuda.runtime import cuda, device_function, kernel, launch_rows, xp

UNKNOWN = -2

# As a float64 not a number, as whole numbers far from zero: rarely among the words, and wider than narrow ones.
FREE = np.uint64(0xFFF89E3779B97F4A)
ZERO = np.uint64(0)
# Places of the first table tried, and of the largest: what a place is kept in holds 32 bits.
FIRST_PLACES = 1 << 20
MOST_PLACES = 1 << 31
# A word that finds no place so near asks for a larger table: on about six words to ten places the first does.
MOST_PROBES = 128
GROWTH = 4


class Words(NamedTuple):
    """Numbers as unsigned words of their own width, and the word that is another one's equal: that of minus zero."""

    words: Array
    minus_zero: np.uint64


class Table(NamedTuple):
    """Words at their places, and the shift that takes a hash to a place."""

    places: Array
    shift: np.uint64


def places_for(n_words: int) -> int:
    """Places that leave at least half of them free: a power of two."""
    return min(1 << max(2 * n_words - 1, 1).bit_length(), MOST_PLACES)


def blank(n_places: int) -> Table:
    """Give a table of free places."""
    places = empty(n_places + 1, np.uint64)
    places[...] = FREE
    return Table(places, np.uint64(65 - n_places.bit_length()))


@device_function
def word_at(words: Array, i: int, minus_zero: np.uint64) -> np.uint64:
    """Word of a number, the same for numbers that are equal; whole numbers have no minus zero, and give zero for it."""
    word = np.uint64(words[i])
    return ZERO if word == minus_zero else word


@device_function
def claim(word: np.uint64, places: Array, shift: np.uint64, most_probes: int) -> np.int64:
    """Find the place of a word, taking a free one where it has none; -1 where neither is near."""
    n_places = len(places) - 1
    if word == FREE:
        places[n_places] = ZERO
        return np.int64(n_places)
    place = np.int64(place_of(word, shift))
    for _ in range(most_probes):
        held = places[place]
        if held == FREE:
            held = cuda.atomic.cas(places, place, FREE, word)
        if held in (word, FREE):
            return np.int64(place)
        place = (place + 1) & (n_places - 1)
    return np.int64(-1)


@device_function
def find(word: np.uint64, places: Array, shift: np.uint64) -> np.int64:
    """Find the place of a word; -1 where it has none."""
    n_places = len(places) - 1
    if word == FREE:
        return np.int64(n_places if places[n_places] != FREE else -1)
    place = np.int64(place_of(word, shift))
    while places[place] != word:
        if places[place] == FREE:
            return np.int64(-1)
        place = (place + 1) & (n_places - 1)
    return np.int64(place)


@kernel
def place_rows(
    words: Array,
    minus_zero: np.uint64,
    places: Array,
    shift: np.uint64,
    most_probes: int,
    given_up: Array,
    place_of_row: Array,
) -> None:
    """Enter each row's word into the table and write its place; every thread stops soon after one has given up."""
    for i in range(cuda.grid(1), len(words), cuda.gridsize(1)):
        if given_up[0]:
            break
        place = claim(word_at(words, i, minus_zero), places, shift, most_probes)
        if place < 0:
            given_up[0] = 1
            break
        place_of_row[i] = place


@kernel
def read_places(occupied: Array, places: Array, words: Array) -> None:
    """Read the words at some places."""
    for i in range(cuda.grid(1), len(occupied), cuda.gridsize(1)):
        place = occupied[i]
        words[i] = FREE if place == len(places) - 1 else places[place]


@kernel
def rank_places(occupied: Array, ranks: Array) -> None:
    """Write the rank of each word at its place, the words given in order by their places."""
    for i in range(cuda.grid(1), len(occupied), cuda.gridsize(1)):
        # Of 32 bits a place uses all, the sign's too.
        ranks[np.int64(occupied[i]) & 0xFFFFFFFF] = i


@kernel
def number_places(place_of_row: Array, ranks: Array) -> None:
    """Replace each row's place by the rank of the word there."""
    for i in range(cuda.grid(1), len(place_of_row), cuda.gridsize(1)):
        place_of_row[i] = ranks[np.int64(place_of_row[i]) & 0xFFFFFFFF]


@kernel
def find_rows(words: Array, minus_zero: np.uint64, places: Array, shift: np.uint64, ranks: Array, codes: Array) -> None:
    """Write the rank of each row's word, `UNKNOWN` where the table has none."""
    for i in range(cuda.grid(1), len(words), cuda.gridsize(1)):
        place = find(word_at(words, i, minus_zero), places, shift)
        codes[i] = ranks[place] if place >= 0 else UNKNOWN


def place_words(given: Words) -> tuple[Array, Array]:
    """Place of each row's word (int32, all 32 bits used), in the first table that is large enough, and its places."""
    n_rows = len(given.words)
    enough = places_for(n_rows)
    n_places = min(FIRST_PLACES, enough)
    place_of_row = empty(n_rows, np.int32)
    while True:
        table, given_up = blank(n_places), zeros(1, np.int32)
        most_probes = MOST_PROBES if n_places < enough else n_places
        launch_rows(place_rows, n_rows, *given, *table, most_probes, given_up, place_of_row)
        if not int(given_up[0]):
            return place_of_row, table.places
        if n_places == enough:
            raise NotImplementedError("codes of more than 2**31 distinct values")
        n_places = min(n_places * GROWTH, enough)


def distinct(places: Array) -> tuple[Array, Array]:
    """Give the places that hold words, and the words."""
    occupied = xp.flatnonzero(places != FREE)
    words = empty(len(occupied), np.uint64)
    launch_rows(read_places, len(occupied), occupied, places, words)
    return occupied, words


def codes_in(given: Words, known: Words) -> Array:
    """Index of each word among distinct known ones, `UNKNOWN` where it is absent."""
    table = blank(places_for(len(known.words)))
    n_places = len(table.places) - 1
    place_of_row = empty(len(known.words), np.int32)
    launch_rows(place_rows, len(known.words), *known, *table, n_places, zeros(1, np.int32), place_of_row)
    ranks = empty(n_places + 1, np.int32)
    launch_rows(rank_places, len(place_of_row), place_of_row, ranks)
    codes = empty(len(given.words), np.int32)
    launch_rows(find_rows, len(codes), *given, *table, ranks, codes)
    return codes
