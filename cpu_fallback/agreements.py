"""Sums over all rows, by the features in which a row agrees with each of some queries."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.memory import zeros
from cpu_fallback.sums import exact_bincount

if TYPE_CHECKING:
    from cpu_fallback.types import Array

# Number of pairs of a query and a row that are compared at a time.
PAIRS = 1 << 20


def sum_agreements(queries: "Array", codes: "Array", measures: "Array", /) -> NDArray[np.int64]:
    """Sum measures (rows, n) of rows by query and by pattern of agreement: (queries, 2**features, n)."""
    n_features, n_queries = queries.shape
    n_rows, n_measures = measures.shape
    sums = zeros((n_queries, 1 << n_features, n_measures), np.int64)
    rows_at_once = max(1, min(n_rows, PAIRS))
    queries_at_once = max(1, PAIRS // rows_at_once)
    for first in range(0, n_queries, queries_at_once):
        asked = slice(first, min(first + queries_at_once, n_queries))
        for start in range(0, n_rows, rows_at_once):
            part = slice(start, start + rows_at_once)
            add_block(queries[:, asked], codes[:, part], measures[part], sums[asked])
    return sums


def add_block(queries: "Array", rows: "Array", measures: "Array", sums: "Array") -> None:
    """Add a block of rows to the sums of a block of queries."""
    n_queries, n_patterns, _ = sums.shape
    patterns = np.zeros((n_queries, rows.shape[1]), np.int64)
    for feature, (asked, given) in enumerate(zip(queries, rows, strict=True)):
        # Values that fit has not seen, and values that shall agree with nothing, are negative.
        agrees = (asked[:, None] == given) & (given >= 0)
        patterns |= agrees.astype(np.int64) << feature
    cells = (patterns + (np.arange(n_queries) * n_patterns)[:, None]).ravel()
    for measure, values in enumerate(measures.T):
        repeated = np.broadcast_to(values, patterns.shape).ravel()
        sums[:, :, measure] += exact_bincount(cells, repeated, n_queries * n_patterns).reshape(n_queries, n_patterns)
