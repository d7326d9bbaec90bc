"""Whole numbers of a small range get codes, and are looked up, by their distance from the lowest number."""

from typing import Any

import numpy as np

from cpu_fallback.categories import DENSE_RANGE
from cpu_fallback.compiled.border import Array, freeze, kernel, set_all
from cpu_fallback.compiled.threads import in_shares, run, shares
from cpu_fallback.memory import empty, zeros

UNKNOWN = -2

# Twice as many codes still fit int32.
MOST_CODES = 1 << 30
# Number of values that are read to guess the range.
SAMPLED = 512


def word_of(number: int) -> np.uint64:
    """Give the two's complement of a Python int."""
    return np.uint64(number & 0xFFFFFFFFFFFFFFFF)


@kernel
def offset_with_bounds(
    values: Array, base: int, start: int, stop: int, codes: Array, present: Array
) -> tuple[int, int]:
    """Write the distance of each value from `base`, set the mark of each value that has one, and give the extremes."""
    given, out = values[start:stop], codes[start:stop]
    lowest = highest = given[0]
    size = np.uint64(len(present))
    if size == 0:
        # This separate loop works on several values at a time.
        for i in range(len(given)):
            value = given[i]
            lowest, highest = min(lowest, value), max(highest, value)
            out[i] = np.int32(value - base)
        return lowest, highest
    for i in range(len(given)):
        value = given[i]
        lowest, highest = min(lowest, value), max(highest, value)
        distance = np.uint64(value - base)
        out[i] = np.int32(distance)
        if distance < size:
            present[distance] = True
    return lowest, highest


@kernel
def mark_codes(codes: Array, shift: int, start: int, stop: int, present: Array) -> None:
    """Set the mark of each code that occurs, plus `shift`."""
    given = codes[start:stop]
    for i in range(len(given)):
        present[np.uint64(given[i] + shift)] = True


@kernel
def shift_range(codes: Array, shift: int, start: int, stop: int) -> None:
    """Add a number to codes."""
    part = codes[start:stop]
    for i in range(len(part)):
        part[i] += np.int32(shift)


@kernel
def rank_codes(codes: Array, shift: int, ranks: Array, start: int, stop: int) -> None:
    """Turn each code, plus `shift`, into its rank."""
    part = codes[start:stop]
    for i in range(len(part)):
        part[i] = ranks[np.uint64(part[i] + shift)]


@kernel
def write_marked(marks: Array, lowest: np.uint64, ranks: Array, words: Array) -> None:
    """Write the number of marks before each index, and the words of marked indices; `words` has room for one more."""
    count = 0
    for i in range(len(marks)):
        ranks[i] = count
        words[count] = lowest + np.uint64(i)
        count += marks[i]


def ranks_of_marks(marks: Array, lowest: np.uint64) -> tuple[Array, Array]:
    """Give the rank of each marked index, and its word: the lowest word plus the index."""
    number = int(np.count_nonzero(marks))
    ranks, words = empty(len(marks), np.int32), empty(number + 1, np.uint64)
    write_marked(marks, lowest, ranks, words)
    return ranks, words[:number]


def factorize_dense(numbers: Array) -> tuple[Array, Array] | None:
    """Number whole numbers of a small range by their distance from the lowest; None if the range is large.

    The pass that finds the range also writes distances from the guessed lowest number, and marks the numbers of a
    guessed range; if the range is large, this work is lost.
    """
    given, codes = freeze(numbers, numbers.dtype), empty(len(numbers), np.int32)
    most, parts = min(DENSE_RANGE * len(codes) + 1024, MOST_CODES), shares(len(codes))
    base, guessed = guess_marks(numbers, most)
    # Each thread has its own marks: if one thread writes a line of memory, the other threads lose it from their caches.
    present, bounds = [zeros(guessed, np.bool_) for _ in parts], [(0, 0)] * len(parts)

    def look(share: int) -> None:
        bounds[share] = offset_with_bounds(given, base, *parts[share], codes, present[share])

    run(look, len(parts))
    lowest, highest = int(min(low for low, _ in bounds)), int(max(high for _, high in bounds))
    size, shift = highest - lowest + 1, int(base) - lowest
    if size > most:
        return None
    if size == 2:
        # Both numbers occur: one is the lowest, the other the highest.
        marks = np.ones(2, np.bool_)
    elif shift <= 0 and highest - int(base) < guessed:
        marks = join_marks([marks[-shift : size - shift] for marks in present])
    else:
        present.clear()
        marks = mark_present(codes, shift, size)
    ranks, found = ranks_of_marks(marks, word_of(lowest))
    if len(found) < size:
        in_shares(lambda start, stop: rank_codes(codes, shift, ranks, start, stop), len(codes))
    elif shift:
        in_shares(lambda start, stop: shift_range(codes, shift, start, stop), len(codes))
    return codes, found.view(numbers.dtype)


def guess_marks(numbers: Array, most: int) -> tuple[Any, int]:
    """Guess the smallest number, often zero or near the first value, and the number of marks from it on."""
    first = numbers[0]
    base = numbers.dtype.type(0) if 0 <= first < MOST_CODES else first
    farthest = int(numbers[:: max(len(numbers) // SAMPLED, 1)].max()) - int(base)
    # If all values are neighbours, no marks are needed; beyond the sample, values are probably as dense as in it.
    return base, 2 * farthest if 1 < farthest <= most // 2 else 0


def guess_range(numbers: Array) -> tuple[int, int]:
    """Guess the smallest number, and the distance to the largest, with room for numbers that the sample misses."""
    some = numbers[:: max(len(numbers) // SAMPLED, 1)]
    return range_around(int(some.min()), int(some.max()), numbers.dtype)


def range_around(lowest: int, highest: int, dtype: "np.dtype[Any]") -> tuple[int, int]:
    """Give the first number and the length of a range, which has room around the numbers of a sample."""
    bounds = np.iinfo(dtype)
    # If 512 numbers are drawn evenly from a range, some lie in its last thirty-second, except once in millions of
    # draws.
    spare = (highest - lowest) // 32 + 64
    first, last = max(lowest - spare, bounds.min), min(highest + spare, bounds.max)
    # Numbers that count something begin at zero or one.
    first = 0 if 0 <= lowest <= spare else first
    return first, last - first + 1


def join_marks(present: list[Array]) -> Array:
    """Join the marks of all threads."""
    for other in present[1:]:
        present[0] |= other
    return present[0]


def mark_present(codes: Array, shift: int, size: int) -> Array:
    """Tell for each distance from the lowest value whether some value has it."""
    parts = shares(len(codes))
    present = [zeros(size, np.bool_) for _ in parts]
    run(lambda share: mark_codes(codes, shift, *parts[share], present[share]), len(parts))
    return join_marks(present)


def range_of(categories: Array, n_values: int) -> int | None:
    """Count the numbers from the smallest to the largest of sorted values; None if a table of them is too large."""
    if categories.dtype.kind == "f" or not len(categories):
        return None
    size = int(categories[-1]) - int(categories[0]) + 1
    return size if size <= DENSE_RANGE * n_values + 1024 else None


@kernel
def offset_inside_range(words: Array, lowest: np.uint64, size: int, start: int, stop: int, codes: Array) -> None:
    """Write the distance of each value from the lowest; distances of at least `size` count as absent."""
    given, out = words[start:stop], codes[start:stop]
    for i in range(len(given)):
        offset = given[i] - lowest
        out[i] = np.int32(offset) if offset < np.uint64(size) else np.int32(UNKNOWN)


@kernel
def take_in_range(
    words: Array, lowest: np.uint64, table: Array, by_row: int, start: int, stop: int, out: Array
) -> None:
    """Write for each row of [start, stop) the table's line at its distance from the lowest, or else the last line."""
    last, given = np.uint64(len(table) - 1), words[start:stop]
    for i in range(len(given)):
        out[np.uint64((start + i) * by_row)] = table[min(given[i] - lowest, last)]


@kernel
def put_lines(known: Array, lowest: np.uint64, lines: Array, unknown: Any, table: Array) -> None:
    """Write the line of each known number at its distance from the lowest; all others, and the end, get one line."""
    set_all(table, unknown)
    for number in range(len(known)):
        table[known[number] - lowest] = lines[number]


def table_by_distance(known: Array, lines: Array, size: int) -> Array:
    """Make a table for `take_in_range`: a line for each of some sorted words, the last of `lines` for all others."""
    table = empty(size + 1, lines.dtype)
    put_lines(known, known[0], lines, lines[-1], table)
    return table
