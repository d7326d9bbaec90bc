"""Turn values into sorted codes: by distance if the range is small, else by hashing; threads do not race."""

from typing import Any

import numpy as np

from cpu_fallback import categories as definition
from cpu_fallback.compiled.border import Array, freeze, kernel, raw, wide
from cpu_fallback.compiled.hashing import codes_by_hash, find_codes, table_of
from cpu_fallback.compiled.ranges import (
    UNKNOWN,
    factorize_dense,
    offset_inside_range,
    range_of,
    rank_codes,
    table_by_distance,
    take_in_range,
)
from cpu_fallback.compiled.sorting import indices, order_of_numbers
from cpu_fallback.compiled.threads import in_shares, run, shares
from cpu_fallback.memory import empty

# To build a table of many categories for few values costs more than bisection.
VALUES_PER_CATEGORY = 8
# Size of a sample of values, and the share of distinct values in it above which sorting all costs less than hashing: in
# a sample of this size from 160,000 numbers, a twentieth would be repeated.
MANY_SAMPLED, DISTINCT_SHARE = 1 << 14, 0.95


def factorize(values: Array, /) -> tuple[Array, Array]:
    """Give the codes of numbers without null, and their sorted distinct values."""
    if not len(values):
        return np.zeros(0, np.int32), values[:0]
    numbers = wide(values)
    found = None if numbers.dtype.kind == "f" else factorize_dense(numbers)
    if found is None:
        by = factorize_sorted if mostly_distinct(numbers) else factorize_hashed
        found = by(raw(numbers), numbers.dtype)
    codes, categories = found
    return codes, categories.astype(values.dtype, copy=False)


def mostly_distinct(numbers: Array) -> bool:
    """Guess whether there are so many distinct numbers that a table of them does not fit the caches."""
    some = numbers[:: max(len(numbers) // MANY_SAMPLED, 1)]
    return len(some) >= MANY_SAMPLED and len(np.unique(some)) > DISTINCT_SHARE * len(some)


def factorize_sorted(words: Array, dtype: Any) -> tuple[Array, Array]:
    """Number the values by sorting all of them."""
    ranks, distinct = empty(len(words), np.int32), empty(len(words), np.uint64)
    number = rank_in_order(words, order_of_numbers(words.view(dtype)), ranks, distinct)
    kept = empty(number, np.uint64)
    kept[...] = distinct[:number]
    return ranks, kept.view(dtype)


def factorize_hashed(words: Array, dtype: Any) -> tuple[Array, Array]:
    """Number the values by hashing: a dictionary for each thread, joined in sorted order."""
    codes, found = number_shares(words)
    ranks, categories = factorize_sorted(words[join(found)], dtype)
    rank_shares(codes, found, ranks)
    return codes, categories


def number_in_order(values: Array, /) -> tuple[Array, Array]:
    """Give the code of each value, in the order of first occurrence, and the first row of each distinct value."""
    words = raw(wide(values))
    codes, found = number_shares(words)
    if len(found) == 1:
        return codes, found[0]
    first = join(found)
    ranks = empty(len(first), np.int32)
    kept = codes_by_hash(words[first], 0, len(first), ranks)
    rank_shares(codes, found, ranks)
    return codes, first[kept]


def number_shares(words: Array) -> tuple[Array, list[Array]]:
    """Number the values of each share of the rows in the order of first occurrence; give these first rows, too."""
    codes, parts = empty(len(words), np.int32), shares(len(words))
    found: list[Array] = [words] * len(parts)

    def number_share(share: int) -> None:
        found[share] = codes_by_hash(words, *parts[share], codes)

    run(number_share, len(parts))
    return codes, found


def rank_shares(codes: Array, found: list[Array], ranks: Array) -> None:
    """Replace the codes of each share of the rows by the ranks of the values that it found."""
    # These are the same shares as before, even if the number of threads has changed since.
    parts, edges = shares(len(codes), len(found)), np.cumsum([0, *map(len, found)])
    run(lambda share: rank_codes(codes, 0, ranks[edges[share] : edges[share + 1]], *parts[share]), len(parts))


def join(found: list[Array]) -> Array:
    """Concatenate the rows that the shares have found."""
    return np.concatenate(found, out=empty(sum(map(len, found)), np.int64))


@kernel
def rank_in_order(words: Array, order: Array, ranks: Array, distinct: Array) -> int:
    """Number words in an order that puts equal words together; give the number of distinct words."""
    count = 0
    for i in range(len(order)):
        row = np.uint64(order[i])
        if count == 0 or words[row] != distinct[np.uint64(count - 1)]:
            distinct[np.uint64(count)] = words[row]
            count += 1
        ranks[row] = count - 1
    return count


def lookup(values: Array, categories: Array, /) -> Array:
    """Give the code of each value in sorted distinct `categories` of the same dtype; -2 for an absent value."""
    if len(values) < len(categories) // VALUES_PER_CATEGORY or not len(categories) or values.dtype != categories.dtype:
        return definition.lookup(values, categories)
    words, known = raw(wide(values)), raw(wide(categories))
    codes = empty(len(values), np.int32)
    size = range_of(categories, len(values))
    if size is None:
        table = table_of(known)
        in_shares(lambda start, stop: find_codes(words, table, UNKNOWN, start, stop, codes), len(words))
    elif size == len(known):
        in_shares(lambda start, stop: offset_inside_range(words, known[0], size, start, stop, codes), len(words))
    else:
        numbers = indices(len(known) + 1, np.int32)
        numbers[-1] = UNKNOWN
        ranks = table_by_distance(known, numbers, size)
        in_shares(lambda start, stop: take_in_range(words, known[0], ranks, 1, start, stop, codes), len(words))
    return codes


@kernel
def combine_range(left: Array, right: Array, n_right: int, start: int, stop: int, keys: Array) -> None:
    """Join two codes to one."""
    first, second, out = left[start:stop], right[start:stop], keys[start:stop]
    for i in range(len(out)):
        out[i] = np.int64(first[i]) * n_right + np.int64(second[i])


def combine(left: Array, right: Array, n_right: int, /) -> Array:
    """Give the joint int64 key of two columns of codes of at least 0, exact while n_left * n_right < 2**63."""
    keys = empty(len(left), np.int64)
    first, second = (freeze(side, np.int32 if side.dtype == np.int32 else np.int64) for side in (left, right))
    in_shares(lambda start, stop: combine_range(first, second, n_right, start, stop, keys), len(keys))
    return keys
