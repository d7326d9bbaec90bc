"""Turn rows of bytes, such as text, in Arrow's layout into codes and back, by hashing and by comparing bytes.

Each thread numbers its rows by its own dictionary; then dictionaries are joined, and only distinct strings are sorted.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.compiled.border import Array, freeze, kernel
from cpu_fallback.compiled.sorting import indices, ranks_of
from cpu_fallback.compiled.string_order import Picked, order_of
from cpu_fallback.compiled.string_pieces import SHORT, Texts, word_at
from cpu_fallback.compiled.string_tables import (
    MISSING,
    Dictionary,
    grow,
    join,
    number_piece,
    number_rows,
    of_distinct,
    write_lengths,
)
from cpu_fallback.compiled.threads import run, shares, threads
from cpu_fallback.memory import empty, zeros

if TYPE_CHECKING:
    from collections.abc import Callable

# The least number of bytes of all strings together, since two words are read at the end of a string.
FEWEST_BYTES = 16


class Strings(NamedTuple):
    """Rows of bytes: row i is characters[offsets[i]:offsets[i + 1]].

    Parameters
    ----------
    offsets : int32 or int64 array
        One more offset than rows.
    characters : uint8 array
    validity : uint8 array, optional
        A bit for each row, 0 for null.
    first : int
        Bit of the first row.
    """

    offsets: Array
    characters: Array
    validity: Array | None = None
    first: int = 0

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.offsets) - 1


class Known(NamedTuple):
    """Distinct strings in which others are looked up: their bytes, and their dictionary."""

    words: Array
    dictionary: Dictionary


class Part(NamedTuple):
    """Distinct strings of a range of rows of one array."""

    words: Array
    dictionary: Dictionary
    size: int

    def pick(self) -> Picked:
        """Give the strings."""
        _, pieces, _, starts = self.dictionary
        lengths = empty(self.size, np.int64)
        write_lengths(self.dictionary, lengths)
        return Picked(self.words, starts[: self.size], lengths, pieces)


def words_of(characters: Array) -> Array:
    """Give for every byte the word of eight bytes from it on, without alignment; few bytes are copied."""
    if len(characters) < FEWEST_BYTES:
        characters = np.append(characters, np.zeros(FEWEST_BYTES, np.uint8))
    return np.ndarray((len(characters) - 7,), np.uint64, np.ascontiguousarray(characters), strides=(1,))


def texts_of(strings: Strings) -> Texts:
    """Give strings in the form that kernels take."""
    words = words_of(strings.characters)
    words.flags.writeable = False
    offsets = freeze(strings.offsets, strings.offsets.dtype)
    validity = freeze(np.zeros(0, np.uint8) if strings.validity is None else strings.validity, np.uint8)
    return Texts(words, offsets.view(np.uint32), int(offsets.itemsize == 8), validity, strings.first)


def ranges_of(parts: list[Strings]) -> list[tuple[int, int, int, int]]:
    """Cut rows into ranges that are numbered separately: give the part, its rows, and the first row among all rows."""
    found, first = [], 0
    for number, part in enumerate(parts):
        found += [(number, start, stop, first) for start, stop in shares(part.n_rows) if stop > start]
        first += part.n_rows
    return found


@kernel
def copy_picked(picked: Picked, order: Array, offsets: Array, begin: int, words: Array) -> None:
    """Copy strings in an order, one after the other, and write where each begins, counted from `begin` on."""
    done, (given, starts, lengths, pieces) = 0, picked
    for i in range(len(order)):
        number = order[i]
        length = lengths[number]
        offsets[i] = begin + done
        # Bytes that are copied beyond the end of a string are overwritten by the next string.
        if length <= SHORT:
            words[np.uint64(done)] = pieces[2 * number]
            words[np.uint64(done + 8)] = pieces[2 * number + 1]
        else:
            for k in range(0, length, 8):
                words[np.uint64(done + k)] = word_at(given, starts[number] + k, length - k)
        done += length
    offsets[len(order)] = begin + done


def copy_strings(pieces: list[tuple[Picked, Array]]) -> Strings:
    """Copy strings of several pieces in an order, one piece after the other, into new memory."""
    lengths = [int(picked.lengths.sum()) for picked, _ in pieces]
    offsets = zeros(sum(len(order) for _, order in pieces) + 1, np.int64)
    characters = empty(sum(lengths) + FEWEST_BYTES, np.uint8)
    row = begin = 0
    for (picked, order), length in zip(pieces, lengths, strict=True):
        copy_picked(picked, order, offsets[row : row + len(order) + 1], begin, words_of(characters[begin:]))
        row, begin = row + len(order), begin + length
    return Strings(offsets, characters[:begin])


def in_one_piece(parts: list[Part]) -> list[Part]:
    """Copy the distinct strings of several arrays into one array, and give dictionaries of this array."""
    if all(part.words is parts[0].words for part in parts):
        return parts
    strings = copy_strings([(part.pick(), indices(part.size, np.int64)) for part in parts])
    words, edges = words_of(strings.characters), np.cumsum([part.size for part in parts])[:-1]
    words.flags.writeable = False
    for part, starts in zip(parts, np.split(strings.offsets[:-1], edges), strict=True):
        part.dictionary.starts[: part.size] = starts
    return [part._replace(words=words) for part in parts]


def join_dictionaries(parts: list[Part]) -> tuple[Part, list[Array]]:
    """Join dictionaries to one, and give for each of them the new numbers of its strings."""
    (words, dictionary, count), *others = in_one_piece(parts)
    numbers = [indices(count, np.int32)]
    for part in others:
        n_slots = len(dictionary.table)
        while n_slots // 2 < count + part.size:
            n_slots *= 2
        if n_slots > len(dictionary.table):
            dictionary = grow(dictionary, count, n_slots)
        numbers.append(empty(part.size, np.int32))
        count = join(words, dictionary, count, part.dictionary, part.size, numbers[-1])
    return Part(words, dictionary, count), numbers


@kernel
def renumber_rows(ranks: Array, start: int, stop: int, codes: Array) -> None:
    """Turn numbers into ranks; for -1, the last rank is used, which is -1."""
    part, size = codes[start:stop], len(ranks)
    for i in range(len(part)):
        code = np.int64(part[i])
        part[i] = ranks[np.uint64(code + size if code < 0 else code)]


def each(work: "Callable[[int], None]", n_items: int) -> None:
    """Call work(0) .. work(n_items - 1), on all threads."""
    n_shares = max(min(threads(), n_items), 1)

    def some(share: int) -> None:
        for item in range(share, n_items, n_shares):
            work(item)

    run(some, n_shares)


def factorize_strings(parts: list[Strings]) -> tuple[Array, Strings]:
    """Give the codes (int32; -1 for null) of the rows of all parts, and the distinct strings, sorted by bytes."""
    codes = empty(sum(part.n_rows for part in parts), np.int32)
    texts, ranges = [texts_of(part) for part in parts], ranges_of(parts)
    if not ranges:
        return codes, Strings(np.zeros(1, np.int64), np.zeros(0, np.uint8))
    found: dict[int, Part] = {}

    def number(index: int) -> None:
        part, start, stop, first = ranges[index]
        own = codes[first : first + parts[part].n_rows]
        found[index] = Part(texts[part].words, *number_piece(texts[part], start, stop, own))

    each(number, len(ranges))
    whole, numbers = join_dictionaries([found[index] for index in range(len(ranges))])
    picked = whole.pick()
    order = order_of(picked)
    ranks = ranks_of(order)

    def rank(index: int) -> None:
        _, start, stop, first = ranges[index]
        found = empty(len(numbers[index]) + 1, np.int32)
        np.take(ranks, numbers[index], out=found[:-1], mode="clip")
        found[-1] = MISSING
        renumber_rows(found, first + start, first + stop, codes)

    each(rank, len(ranges))
    return codes, copy_strings([(picked, order)])


def prepare(strings: Strings) -> Known:
    """Prepare distinct strings, in which others are then looked up."""
    texts = texts_of(strings)
    return Known(texts.words, of_distinct(texts, strings.n_rows)._replace(stamps=np.zeros(0, np.uint64)))


def lookup_strings(parts: list[Strings], categories: Known) -> Array:
    """Give the index (int32) of each string among known ones: -1 for null, -2 if it is absent."""
    codes = empty(sum(part.n_rows for part in parts), np.int32)
    texts, ranges = [texts_of(part) for part in parts], ranges_of(parts)

    def find(index: int) -> None:
        part, start, stop, first = ranges[index]
        number_rows(texts[part], start, stop, *categories, 0, 0, codes[first : first + parts[part].n_rows])

    each(find, len(ranges))
    return codes
