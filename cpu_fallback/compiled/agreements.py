"""Sums over all rows by the pattern of agreement with each query: threads share the queries."""

import numpy as np

from cpu_fallback.compiled.border import BLOCK, Array, freeze, kernel, stage
from cpu_fallback.compiled.threads import run, shares
from cpu_fallback.memory import zeros

# This number of pairs of a query and a row is worth a thread.
PAIRS = 1 << 18


@stage
def compare(asked: Array, rows: Array, begin: int, patterns: Array) -> None:
    """Write the pattern in which each row of a block agrees with a query."""
    for i in range(len(patterns)):
        patterns[i] = 0
    for feature in range(len(asked)):
        code, bit, given = asked[feature], np.int32(1 << feature), rows[feature][begin : begin + len(patterns)]
        if code >= 0:
            for i in range(len(patterns)):
                patterns[i] |= bit if given[i] == code else np.int32(0)


@stage
def add_one(patterns: Array, measures: Array, sums: Array) -> None:
    """Add one measure of a block of rows."""
    for i in range(len(patterns)):
        sums[np.uint64(patterns[i])] += measures[i]


@stage
def add_two(patterns: Array, measures: Array, sums: Array) -> None:
    """Add two measures of a block of rows."""
    for i in range(len(patterns)):
        at = 2 * np.uint64(patterns[i])
        sums[at] += measures[2 * i]
        sums[at + np.uint64(1)] += measures[2 * i + 1]


@stage
def add_several(patterns: Array, measures: Array, sums: Array, n_measures: int) -> None:
    """Add all measures of a block of rows."""
    for i in range(len(patterns)):
        at = np.uint64(patterns[i]) * np.uint64(n_measures)
        for measure in range(n_measures):
            sums[at + np.uint64(measure)] += measures[i * n_measures + measure]


@kernel
def sum_for_queries(
    queries: Array, rows: Array, measures: Array, n_measures: int, start: int, stop: int, sums: Array
) -> None:
    """Compare the queries [start, stop) with all rows, block by block, and add the measures (rows * n_measures)."""
    n_rows, room = rows.shape[1], np.empty(BLOCK, np.int32)
    given, found = queries[start:stop], sums[start:stop]
    for query in range(len(given)):
        for begin in range(0, n_rows, BLOCK):
            patterns = room[: min(BLOCK, n_rows - begin)]
            compare(given[query], rows, begin, patterns)
            block = measures[begin * n_measures : (begin + len(patterns)) * n_measures]
            if n_measures == 1:
                add_one(patterns, block, found[query])
            elif n_measures == 2:
                add_two(patterns, block, found[query])
            else:
                add_several(patterns, block, found[query], n_measures)


def sum_agreements(queries: Array, codes: Array, measures: Array, /) -> Array:
    """Sum measures (rows, n) of rows by query and by pattern of agreement: (queries, 2**features, n)."""
    n_features, n_queries = queries.shape
    n_rows, n_measures = measures.shape
    sums = zeros((n_queries, (1 << n_features) * n_measures), np.int64)
    if n_queries and n_rows:
        fixed = freeze(queries.T, np.int32), freeze(codes, np.int32), freeze(measures, np.int64).reshape(-1), n_measures
        parts = shares(n_queries, smallest=max(1, PAIRS // n_rows))
        run(lambda share: sum_for_queries(*fixed, *parts[share], sums), len(parts))
    return sums.reshape(n_queries, 1 << n_features, n_measures)
