"""Values to codes: by direct index where the range is small, else by hashing; in sorted order, never by a race."""

from typing import TYPE_CHECKING

import numpy as np

from cpu_fallback import categories as definition
from cpu_fallback.categories import DENSE_RANGE
from cpu_fallback.compiled.border import Array, frozen, kernel
from cpu_fallback.compiled.hashing import codes_by_hash, find_codes, table_of
from cpu_fallback.compiled.threads import run, shares

if TYPE_CHECKING:
    from collections.abc import Callable

UNKNOWN = -2

# Building a table of many categories for few values costs more than bisection.
VALUES_PER_CATEGORY = 8


def wide(values: Array) -> Array:
    """Numbers as int64, uint64 or float64."""
    return values.astype({"i": np.int64, "u": np.uint64, "b": np.int64, "f": np.float64}[values.dtype.kind], copy=False)


def raw(values: Array) -> Array:
    """64-bit words of numbers, equal if and only if the numbers are equal."""
    if values.dtype.kind == "f" and ((values == 0) & np.signbit(values)).any():
        values = values + 0.0
    return frozen(values, values.dtype).view(np.uint64)


@kernel
def mark_range(words: Array, lowest: np.uint64, start: int, stop: int, present: Array) -> None:
    """Mark the values that occur, counted from the lowest."""
    for i in range(start, stop):
        present[words[i] - lowest] = 1


@kernel
def rank_range(words: Array, lowest: np.uint64, ranks: Array, start: int, stop: int, codes: Array) -> None:
    """Look the code of each value up in a table that is indexed by the value; absent outside of it."""
    size = np.uint64(len(ranks))
    for i in range(start, stop):
        offset = words[i] - lowest
        codes[i] = ranks[offset] if offset < size else UNKNOWN


@kernel
def number_marks(present: Array, ranks: Array) -> None:
    """Number the marked values from 0 on."""
    count = np.int32(0)
    for i in range(len(present)):
        ranks[i] = count
        count += np.int32(present[i])


@kernel
def bounds_range(values: Array, start: int, stop: int) -> tuple[int, int]:
    """Smallest and largest of signed or unsigned whole numbers."""
    lowest = highest = values[start]
    for i in range(start, stop):
        lowest, highest = min(lowest, values[i]), max(highest, values[i])
    return lowest, highest


def in_shares(work: "Callable[[int, int], object]", n_rows: int) -> "list[object]":
    """Run on ranges of rows and give what each returned."""
    parts = shares(n_rows)
    results: list[object] = [None] * len(parts)

    def one(share: int) -> None:
        results[share] = work(*parts[share])

    run(one, len(parts))
    return results


def bounds(values: Array) -> tuple[int, int]:
    """Smallest and largest value as Python ints."""
    given = frozen(values, values.dtype)
    found: list[tuple[int, int]] = in_shares(lambda start, stop: bounds_range(given, start, stop), len(values))  # type: ignore[assignment]
    return int(min(low for low, _ in found)), int(max(high for _, high in found))


def word_of(number: int) -> np.uint64:
    """Two's complement of a Python int."""
    return np.uint64(number & 0xFFFFFFFFFFFFFFFF)


def factorize(values: Array, /) -> tuple[Array, Array]:
    """Codes of numbers without null, and their sorted distinct values."""
    if not len(values):
        return np.zeros(0, np.int32), values[:0]
    numbers = wide(values)
    if numbers.dtype.kind != "f":
        lowest, highest = bounds(numbers)
        if highest - lowest < DENSE_RANGE * len(values) + 1024:
            codes, categories = factorize_dense(numbers, lowest, highest)
            return codes, categories.astype(values.dtype, copy=False)
    codes, categories = factorize_hashed(numbers)
    return codes, categories.astype(values.dtype, copy=False)


def factorize_dense(numbers: Array, lowest: int, highest: int) -> tuple[Array, Array]:
    """Number the values of a small range of whole numbers."""
    words, base = raw(numbers), word_of(lowest)
    present = np.zeros(highest - lowest + 1, np.uint8)
    # Threads may mark the same value: all of them write a one.
    in_shares(lambda start, stop: mark_range(words, base, start, stop, present), len(words))
    ranks = np.empty(len(present), np.int32)
    number_marks(present, ranks)
    codes = np.empty(len(words), np.int32)
    in_shares(lambda start, stop: rank_range(words, base, ranks, start, stop, codes), len(words))
    return codes, np.flatnonzero(present).astype(numbers.dtype) + numbers.dtype.type(lowest)


def factorize_hashed(numbers: Array) -> tuple[Array, Array]:
    """Number the values by hashing: a dictionary for each thread, joined in sorted order."""
    words = raw(numbers)
    codes = np.empty(len(words), np.int32)
    parts = shares(len(words))
    found: list[Array] = [words] * len(parts)

    def number_first_seen(share: int) -> None:
        found[share] = codes_by_hash(words, *parts[share], codes)

    run(number_first_seen, len(parts))
    distinct = np.concatenate(found).view(numbers.dtype)
    order = np.argsort(distinct)
    ordered = distinct[order]
    new = np.append(True, ordered[1:] != ordered[:-1])
    ranks = np.empty(len(distinct), np.int32)
    ranks[order] = np.cumsum(new, dtype=np.int32) - np.int32(1)
    edges = np.cumsum([0, *(len(part) for part in found)])
    run(lambda share: renumber_range(ranks[edges[share] : edges[share + 1]], *parts[share], codes), len(parts))
    return codes, ordered[new]


@kernel
def renumber_range(ranks: Array, start: int, stop: int, codes: Array) -> None:
    """Turn first-seen numbers into ranks."""
    for i in range(start, stop):
        codes[i] = ranks[codes[i]]


def lookup(values: Array, categories: Array, /) -> Array:
    """Code of each value in sorted distinct `categories` of the same dtype; -2 where absent."""
    if len(values) < len(categories) // VALUES_PER_CATEGORY or not len(categories) or values.dtype != categories.dtype:
        return definition.lookup(values, categories)
    words, known = raw(wide(values)), wide(categories)
    codes = np.empty(len(values), np.int32)
    if known.dtype.kind != "f" and int(known[-1]) - int(known[0]) < DENSE_RANGE * len(values) + 1024:
        base = word_of(int(known[0]))
        ranks = np.full(int(known[-1]) - int(known[0]) + 1, UNKNOWN, np.int32)
        ranks[(raw(known) - base).astype(np.int64)] = np.arange(len(known), dtype=np.int32)
        in_shares(lambda start, stop: rank_range(words, base, ranks, start, stop, codes), len(words))
    else:
        table = table_of(raw(known))
        in_shares(lambda start, stop: find_codes(words, table, UNKNOWN, start, stop, codes), len(words))
    return codes


@kernel
def combine_range(left: Array, right: Array, n_right: int, start: int, stop: int, keys: Array) -> None:
    """Join two codes to one."""
    for i in range(start, stop):
        keys[i] = np.int64(left[i]) * n_right + np.int64(right[i])


def combine(left: Array, right: Array, n_right: int, /) -> Array:
    """Joint int64 key of two columns of codes that are not negative: exact while n_left * n_right < 2**63."""
    keys = np.empty(len(left), np.int64)
    first, second = (frozen(side, np.int32 if side.dtype == np.int32 else np.int64) for side in (left, right))
    in_shares(lambda start, stop: combine_range(first, second, n_right, start, stop, keys), len(keys))
    return keys
