"""Values to codes: by direct index where the range is small, else by hashing; in sorted order, never by a race."""

from typing import TYPE_CHECKING, Any

import numpy as np

from cpu_fallback import categories as definition
from cpu_fallback.categories import DENSE_RANGE
from cpu_fallback.compiled.border import Array, frozen, kernel
from cpu_fallback.compiled.hashing import codes_by_hash, find_codes, table_of
from cpu_fallback.compiled.sorting import order_of_numbers
from cpu_fallback.compiled.threads import run, shares

if TYPE_CHECKING:
    from collections.abc import Callable

UNKNOWN = -2

# Building a table of many categories for few values costs more than bisection.
VALUES_PER_CATEGORY = 8
# Twice as many are still int32.
MOST_CODES = 1 << 30
# Values that are looked at for a guess of the range.
SAMPLED = 512
# Values that are looked at, and the share of different ones among them above which sorting all costs less than hashing:
# drawn from 160,000 numbers, a twentieth of so many would repeat.
MANY_SAMPLED, DISTINCT_SHARE = 1 << 14, 0.95


def wide(values: Array) -> Array:
    """Numbers as int64, uint64 or float64."""
    return values.astype({"i": np.int64, "u": np.uint64, "b": np.int64, "f": np.float64}[values.dtype.kind], copy=False)


def raw(values: Array) -> Array:
    """64-bit words of numbers, equal if and only if the numbers are equal."""
    if values.dtype.kind == "f" and ((values == 0) & np.signbit(values)).any():
        values = values + 0.0
    return frozen(values, values.dtype).view(np.uint64)


@kernel
def rank_range(words: Array, lowest: np.uint64, ranks: Array, start: int, stop: int, codes: Array) -> None:
    """Look the code of each value up in a table that is indexed by the value; absent outside of it."""
    size, given, out = np.uint64(len(ranks)), words[start:stop], codes[start:stop]
    for i in range(len(given)):
        offset = given[i] - lowest
        out[i] = ranks[offset] if offset < size else UNKNOWN


@kernel
def offset_inside_range(words: Array, lowest: np.uint64, size: int, start: int, stop: int, codes: Array) -> None:
    """Distance of each value from the lowest; absent from `size` on."""
    given, out = words[start:stop], codes[start:stop]
    for i in range(len(given)):
        offset = given[i] - lowest
        out[i] = np.int32(offset) if offset < np.uint64(size) else np.int32(UNKNOWN)


@kernel
def offset_with_bounds(
    values: Array, base: int, start: int, stop: int, codes: Array, present: Array
) -> tuple[int, int]:
    """Write the distance of each value from `base`, mark those that have a mark, and give the extreme values."""
    given, out = values[start:stop], codes[start:stop]
    lowest = highest = given[0]
    size = np.uint64(len(present))
    if size == 0:
        # A loop of its own, which works on several values at a time.
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
    """Mark the codes that occur, `shift` added."""
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
    """Turn codes into ranks, `shift` added."""
    part = codes[start:stop]
    for i in range(len(part)):
        part[i] = ranks[np.uint64(part[i] + shift)]


def in_shares(work: "Callable[[int, int], Any]", n_rows: int) -> list[Any]:
    """Run on ranges of rows and give what each returned."""
    parts = shares(n_rows)
    results: list[Any] = [None] * len(parts)

    def one(share: int) -> None:
        results[share] = work(*parts[share])

    run(one, len(parts))
    return results


def word_of(number: int) -> np.uint64:
    """Two's complement of a Python int."""
    return np.uint64(number & 0xFFFFFFFFFFFFFFFF)


def factorize(values: Array, /) -> tuple[Array, Array]:
    """Codes of numbers without null, and their sorted distinct values."""
    if not len(values):
        return np.zeros(0, np.int32), values[:0]
    numbers = wide(values)
    found = None if numbers.dtype.kind == "f" else factorize_dense(numbers)
    if found is None:
        by = factorize_sorted if mostly_distinct(numbers) else factorize_hashed
        found = by(raw(numbers), numbers.dtype)
    codes, categories = found
    return codes, categories.astype(values.dtype, copy=False)


def factorize_dense(numbers: Array) -> tuple[Array, Array] | None:
    """Number whole numbers of a small range by their place in it; None where the range is large.

    The pass that finds the range also writes distances from a guess of where it begins, and marks those of a guessed
    range; for nothing if it is large.
    """
    given, codes = frozen(numbers, numbers.dtype), np.empty(len(numbers), np.int32)
    most, parts = min(DENSE_RANGE * len(codes) + 1024, MOST_CODES), shares(len(codes))
    base, guessed = guessed_range(numbers, most)
    # Each thread has its own marks: a line of memory that one writes is taken away from the others.
    present, bounds = [np.zeros(guessed, np.bool_) for _ in parts], [(0, 0)] * len(parts)

    def look(share: int) -> None:
        bounds[share] = offset_with_bounds(given, base, *parts[share], codes, present[share])

    run(look, len(parts))
    lowest, highest = int(min(low for low, _ in bounds)), int(max(high for _, high in bounds))
    size, shift = highest - lowest + 1, int(base) - lowest
    if size > most:
        return None
    if size == 2:
        # Both occur: one is the lowest, the other the highest.
        found = np.arange(2)
    elif shift <= 0 and highest - int(base) < guessed:
        found = joined_marks([marks[-shift : size - shift] for marks in present])
    else:
        present.clear()
        found = marked(codes, shift, size)
    if len(found) < size:
        ranks = np.empty(size, np.int32)
        ranks[found] = np.arange(len(found), dtype=np.int32)
        in_shares(lambda start, stop: rank_codes(codes, shift, ranks, start, stop), len(codes))
    elif shift:
        in_shares(lambda start, stop: shift_range(codes, shift, start, stop), len(codes))
    return codes, found.astype(numbers.dtype) + numbers.dtype.type(lowest)


def guessed_range(numbers: Array, most: int) -> tuple[Any, int]:
    """Guess the smallest number, most often zero or near the first, and how many from it on are worth a mark."""
    first = numbers[0]
    base = numbers.dtype.type(0) if 0 <= first < MOST_CODES else first
    farthest = int(numbers[:: max(len(numbers) // SAMPLED, 1)].max()) - int(base)
    # Neighbours are known without a mark, and beyond a sample lie about as many as in it.
    return base, 2 * farthest if 1 < farthest <= most // 2 else 0


def joined_marks(present: list[Array]) -> Array:
    """Places that any thread has marked."""
    for other in present[1:]:
        present[0] |= other
    return np.flatnonzero(present[0])


def marked(codes: Array, shift: int, size: int) -> Array:
    """Distances from the lowest value at which there are values."""
    parts = shares(len(codes))
    present = [np.zeros(size, np.bool_) for _ in parts]
    run(lambda share: mark_codes(codes, shift, *parts[share], present[share]), len(parts))
    return joined_marks(present)


def mostly_distinct(numbers: Array) -> bool:
    """Guess whether there are so many different numbers that no table of them fits the caches."""
    some = numbers[:: max(len(numbers) // MANY_SAMPLED, 1)]
    return len(some) >= MANY_SAMPLED and len(np.unique(some)) > DISTINCT_SHARE * len(some)


def factorize_sorted(words: Array, dtype: Any) -> tuple[Array, Array]:
    """Number the values by sorting all of them."""
    numbers = words.view(dtype)
    order = order_of_numbers(numbers)
    ordered = numbers[order]
    new = np.append(True, ordered[1:] != ordered[:-1])
    ranks = np.empty(len(numbers), np.int32)
    ranks[order] = np.cumsum(new, dtype=np.int32) - np.int32(1)
    return ranks, ordered[new]


def factorize_hashed(words: Array, dtype: Any) -> tuple[Array, Array]:
    """Number the values by hashing: a dictionary for each thread, joined in sorted order."""
    codes = np.empty(len(words), np.int32)
    parts = shares(len(words))
    found: list[Array] = [words] * len(parts)

    def number_first_seen(share: int) -> None:
        found[share] = codes_by_hash(words, *parts[share], codes)

    run(number_first_seen, len(parts))
    ranks, categories = factorize_sorted(np.concatenate(found), dtype)
    edges = np.cumsum([0, *(len(part) for part in found)])
    run(lambda share: rank_codes(codes, 0, ranks[edges[share] : edges[share + 1]], *parts[share]), len(parts))
    return codes, categories


def range_of(categories: Array, n_values: int) -> int | None:
    """Numbers from the smallest to the largest of sorted whole numbers; None if a table of them is not worth it."""
    if categories.dtype.kind == "f" or not len(categories):
        return None
    size = int(categories[-1]) - int(categories[0]) + 1
    return size if size <= DENSE_RANGE * n_values + 1024 else None


def lookup(values: Array, categories: Array, /) -> Array:
    """Code of each value in sorted distinct `categories` of the same dtype; -2 where absent."""
    if len(values) < len(categories) // VALUES_PER_CATEGORY or not len(categories) or values.dtype != categories.dtype:
        return definition.lookup(values, categories)
    words, known = raw(wide(values)), wide(categories)
    codes = np.empty(len(values), np.int32)
    if (size := range_of(known, len(values))) is not None:
        base = word_of(int(known[0]))
        if size == len(known):
            in_shares(lambda start, stop: offset_inside_range(words, base, size, start, stop, codes), len(words))
            return codes
        ranks = np.full(size, UNKNOWN, np.int32)
        ranks[(raw(known) - base).astype(np.int64)] = np.arange(len(known), dtype=np.int32)
        in_shares(lambda start, stop: rank_range(words, base, ranks, start, stop, codes), len(words))
    else:
        table = table_of(raw(known))
        in_shares(lambda start, stop: find_codes(words, table, UNKNOWN, start, stop, codes), len(words))
    return codes


@kernel
def combine_range(left: Array, right: Array, n_right: int, start: int, stop: int, keys: Array) -> None:
    """Join two codes to one."""
    first, second, out = left[start:stop], right[start:stop], keys[start:stop]
    for i in range(len(out)):
        out[i] = np.int64(first[i]) * n_right + np.int64(second[i])


def combine(left: Array, right: Array, n_right: int, /) -> Array:
    """Joint int64 key of two columns of codes that are not negative: exact while n_left * n_right < 2**63."""
    keys = np.empty(len(left), np.int64)
    first, second = (frozen(side, np.int32 if side.dtype == np.int32 else np.int64) for side in (left, right))
    in_shares(lambda start, stop: combine_range(first, second, n_right, start, stop, keys), len(keys))
    return keys
