"""Hash tables of strings, which are compared by stamp and pieces; long strings are compared by all their bytes, too.

A slot of a table holds, in one word, the upper half of a string's stamp and its number plus one.  The pieces that are
compared, sixteen bytes of a short string or hash and length of a long one, are in dense arrays by number, so an empty
slot takes only eight bytes.
"""

from typing import NamedTuple

import numpy as np

from cpu_fallback.compiled.border import Array, counting, inlined, kernel, stage
from cpu_fallback.compiled.string_pieces import SHORT, Texts, alike, cut_block, is_null
from cpu_fallback.memory import empty, zeros

MISSING, UNKNOWN = -1, -2
# Number of rows that are cut and hashed at once, so that their loads from the table overlap.
BLOCK = 512
FEWEST_SLOTS = 1 << 12
LOW = np.uint64(0xFFFFFFFF)
HIGH = np.uint64(0xFFFFFFFF00000000)


class Dictionary(NamedTuple):
    """Distinct strings by number, and the table to find them in.

    Parameters
    ----------
    table : uint64 array
    pieces : uint64 array
        Two words for each string: the bytes of a short one, or hash and length of a long one.
    stamps : uint64 array
    starts : int64 array
        Index of each string's first byte.
    """

    table: Array
    pieces: Array
    stamps: Array
    starts: Array


@counting
def put(table: Array, stamps: Array, count: int) -> None:
    """Put the first `count` strings into the slots of an empty table."""
    last, taken = np.uint64(len(table) - 1), np.empty(BLOCK, np.uint64)
    for begin in range(0, count, BLOCK):
        some = stamps[begin : min(begin + BLOCK, count)]
        # These independent loads overlap, and bring into the cache the lines for which the loop below would wait.
        for i in range(len(some)):
            taken[i] = np.uint64(table[some[i] & last] != 0)
        for i in range(len(some)):
            slot = ((some[i] & last) + taken[i]) & last
            while table[slot] != 0:
                slot = (slot + np.uint64(1)) & last
            table[slot] = some[i] & HIGH | np.uint64(begin + i + 1)


def blank(n_slots: int, room: int) -> Dictionary:
    """Give an empty dictionary with `n_slots` slots, and room for `room` strings."""
    return Dictionary(
        zeros(n_slots, np.uint64), empty(2 * room, np.uint64), empty(room, np.uint64), empty(room, np.int64)
    )


def grow(dictionary: Dictionary, count: int, n_slots: int) -> Dictionary:
    """Give the same dictionary with more slots."""
    larger = blank(n_slots, n_slots // 2)
    move(dictionary, count, larger)
    return larger


@kernel
def move(dictionary: Dictionary, count: int, larger: Dictionary) -> None:
    """Put the first strings of a dictionary into an empty one."""
    for i in range(2 * count):
        larger.pieces[i] = dictionary.pieces[i]
    for i in range(count):
        larger.stamps[i], larger.starts[i] = dictionary.stamps[i], dictionary.starts[i]
    put(larger.table, larger.stamps, count)


@inlined
def probe(
    words: Array,
    start: int,
    length: int,
    cut: tuple[int, int, int],
    known: Array,
    table: Array,
    pieces: Array,
    starts: Array,
) -> tuple[np.int64, np.uint64]:
    """Give the number of a string, or -2 if it is absent, and the slot in which it is or would be."""
    stamp, first, second = cut
    last = np.uint64(len(table) - 1)
    slot = stamp & last
    while table[slot] != 0:
        held = table[slot]
        if held & HIGH == stamp & HIGH:
            number = (held & LOW) - np.uint64(1)
            at = number << np.uint64(1)
            equal = pieces[at] == first and pieces[at + np.uint64(1)] == second
            if equal and (length <= SHORT or alike(words, start, known, starts[number], length)):
                return np.int64(number), slot
        slot = (slot + np.uint64(1)) & last
    return np.int64(UNKNOWN), slot


@inlined
def insert(
    table: Array,
    pieces: Array,
    stamps: Array,
    starts: Array,
    slot: np.uint64,
    number: int,
    start: int,
    cut: tuple[int, int, int],
) -> None:
    """Write a new string to a free slot."""
    stamp, first, second = cut
    table[slot] = stamp & HIGH | np.uint64(number + 1)
    stamps[number], starts[number] = stamp, start
    pieces[2 * number], pieces[2 * number + 1] = first, second


@counting
def guess_block(
    dictionary: Dictionary, n: int, stamps: Array, firsts: Array, seconds: Array, codes: Array, missed: Array
) -> int:
    """Look strings up by stamp and pieces in their first slots; give the number of rows that are missed, and which."""
    table, pieces, last = dictionary.table, dictionary.pieces, np.uint64(len(dictionary.table) - 1)
    # Loops that only load have more loads in progress at a time.
    held = np.empty(BLOCK, np.uint64)
    for i in range(n):
        held[i] = table[stamps[i] & last]
    for i in range(n):
        number = max(np.int64(held[i] & LOW) - np.int64(1), np.int64(0))
        at = np.uint64(2 * number)
        codes[i] = number
        held[i] = (held[i] ^ stamps[i]) & HIGH | pieces[at] ^ firsts[i] | pieces[at + np.uint64(1)] ^ seconds[i]
    n_missed = 0
    for i in range(n):
        codes[i] = codes[i] if held[i] == 0 else UNKNOWN
        missed[n_missed] = i
        n_missed += held[i] != 0
    return n_missed


@stage
def check_long(
    words: Array, n: int, starts: Array, known: Array, dictionary: Dictionary, codes: Array, missed: Array
) -> int:
    """Compare long strings with the guessed ones; give the number of all rows that are missed, and write these rows."""
    n_missed = 0
    for i in range(n):
        length = starts[i + 1] - starts[i]
        if length > SHORT and codes[i] >= 0:
            start = dictionary.starts[np.uint64(codes[i])]
            if not alike(words, starts[i], known, start, length):
                codes[i] = UNKNOWN
        # New strings are numbered in the order of their rows, for whatever reason each row was missed.
        missed[n_missed] = i
        n_missed += codes[i] == UNKNOWN
    return n_missed


@kernel
def number_rows(
    texts: Texts, start: int, stop: int, known: Array, dictionary: Dictionary, count: int, adds: int, codes: Array
) -> tuple[int, int]:
    """Number the strings of the rows [start, stop), and add new ones to the dictionary if `adds`.

    It gives the row at which the dictionary was full, and the number of its strings.
    """
    firsts, seconds, stamps = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint64)
    missed, starts = np.empty(BLOCK, np.int64), np.empty(BLOCK + 1, np.int64)
    # Taking an array out of a tuple counts a reference: this is done once, and not for every row.
    words, (table, pieces, kept_stamps, kept_starts) = texts.words, dictionary
    for begin in range(start, stop, BLOCK):
        n = min(BLOCK, stop - begin)
        if adds and count + n > len(kept_starts):
            return begin, count
        longest = cut_block(texts, begin, n, starts, stamps, firsts, seconds)
        own = codes[begin : begin + n]
        n_missed = guess_block(dictionary, n, stamps, firsts, seconds, own, missed)
        if longest > SHORT:
            n_missed = check_long(words, n, starts, known, dictionary, own, missed)
        for k in range(n_missed):
            i = missed[k]
            if len(texts.validity) and is_null(texts, begin + i):
                continue
            cut = (stamps[i], firsts[i], seconds[i])
            length = starts[i + 1] - starts[i]
            number, slot = probe(words, starts[i], length, cut, known, table, pieces, kept_starts)
            if adds and number < 0:
                insert(table, pieces, kept_stamps, kept_starts, slot, count, starts[i], cut)
                number = count
                count += 1
            own[i] = number
        if len(texts.validity):
            for i in range(n):
                own[i] = MISSING if is_null(texts, begin + i) else own[i]
    return stop, count


def number_piece(texts: Texts, start: int, stop: int, codes: Array) -> tuple[Dictionary, int]:
    """Number the strings of the rows [start, stop) in order; give their dictionary, and the number of strings."""
    dictionary, count = blank(FEWEST_SLOTS, FEWEST_SLOTS // 2), 0
    while True:
        start, count = number_rows(texts, start, stop, texts.words, dictionary, count, 1, codes)
        if start == stop:
            return dictionary, count
        dictionary = grow(dictionary, count, 4 * len(dictionary.table))


@kernel
def cut_all(texts: Texts, n_rows: int, dictionary: Dictionary) -> None:
    """Write starts, stamps and pieces of distinct strings; the number of each is its row."""
    firsts, seconds, starts = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint64), np.empty(BLOCK + 1, np.int64)
    for begin in range(0, n_rows, BLOCK):
        n = min(BLOCK, n_rows - begin)
        cut_block(texts, begin, n, starts, dictionary.stamps[begin : begin + n], firsts, seconds)
        pieces, own = dictionary.pieces[2 * begin :], dictionary.starts[begin : begin + n]
        for i in range(n):
            own[i] = starts[i]
            pieces[2 * i], pieces[2 * i + 1] = firsts[i], seconds[i]


def of_distinct(texts: Texts, n_rows: int) -> Dictionary:
    """Give the dictionary of distinct strings; the number of each is its row."""
    dictionary = blank(max(FEWEST_SLOTS, 1 << (2 * n_rows - 1).bit_length()), max(n_rows, 1))
    cut_all(texts, n_rows, dictionary)
    put(dictionary.table, dictionary.stamps, n_rows)
    return dictionary


@inlined
def class_of(stamp: np.uint64) -> np.int64:
    """Give the number of bytes of a short string; for all long ones, one more than a short one can have."""
    return np.int64((stamp >> np.uint64(32)) & np.uint64(31)) - np.int64(1)


@inlined
def length_of(stamps: Array, pieces: Array, number: int) -> np.int64:
    """Give the number of bytes of a string of a dictionary."""
    length = class_of(stamps[number])
    return length if length <= SHORT else np.int64(pieces[2 * number + 1])


@kernel
def join(words: Array, dictionary: Dictionary, count: int, other: Dictionary, n_other: int, codes: Array) -> int:
    """Add the strings of another dictionary of the same bytes, and give their numbers; there must be room for all."""
    firsts, seconds, missed = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.int64)
    table, pieces, kept_stamps, kept_starts = dictionary
    for begin in range(0, n_other, BLOCK):
        n = min(BLOCK, n_other - begin)
        given, stamps, starts = other.pieces[2 * begin :], other.stamps[begin:], other.starts[begin:]
        own = codes[begin : begin + n]
        for i in range(n):
            firsts[i], seconds[i] = given[2 * i], given[2 * i + 1]
        n_missed = guess_block(dictionary, n, stamps, firsts, seconds, own, missed)
        for i in range(n):
            # Equal hash and length of long strings do not prove that they are equal.
            if own[i] >= 0 and class_of(stamps[i]) > SHORT:
                missed[n_missed] = i
                n_missed += 1
        for k in range(n_missed):
            i = missed[k]
            cut, start, length = (stamps[i], firsts[i], seconds[i]), starts[i], length_of(stamps, given, i)
            number, slot = probe(words, start, length, cut, words, table, pieces, kept_starts)
            if number < 0:
                insert(table, pieces, kept_stamps, kept_starts, slot, count, start, cut)
                number = count
                count += 1
            own[i] = number
    return count


@kernel
def write_lengths(dictionary: Dictionary, lengths: Array) -> None:
    """Write the number of bytes of each string."""
    stamps, pieces = dictionary.stamps, dictionary.pieces
    for number in range(len(lengths)):
        lengths[number] = length_of(stamps, pieces, number)
