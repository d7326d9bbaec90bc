"""Sums of rows by the pattern of features in which they agree with each query; votes depend only on these sums."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from cpu_fallback.exact import Floats, Integers, in_one_piece
from cpu_fallback.types import Array
from gpu_encode.methods.proximity.measures import sum_equal_rows, to_floats
from gpu_encode.methods.proximity.subsets import DENSE
from gpu_encode.seam.ops import Ops

# Comparing two rows in all features takes about a sixteenth of the time of numbering a row in one of the groups.
PAIRS_PER_ROW = 16
# Number of pairs whose patterns are sorted at a time.
SORTED_PAIRS = 1 << 22
# Most cells of a histogram; a cell has eight bytes.
MOST_CELLS = 1 << 24


@dataclass(frozen=True, eq=False)
class Histogram:
    """Sums of n measures of rows, by query and pattern.

    Parameters
    ----------
    patterns : int64 array (patterns,)
        On the host: the patterns that occur, except agreement in all features.
    sums : float64 array (patterns, n, queries)
        With `index`, (entries of a query, n, queries).
    full : int64 array (n, queries)
        Sums of the rows that agree in all features.
    exponents : list of int
        One for each measure of `full`.
    index : int32 array (entries of a query, queries), optional
        The number of each entry's pattern.
    """

    patterns: Integers
    sums: Array
    full: Array
    exponents: Sequence[int]
    index: Array | None = None

    @classmethod
    def of(
        cls, ops: Ops, queries: Array, rows: Array, measures: Array, exponents: Sequence[int], sizes: Sequence[int]
    ) -> Self:
        """Compare queries with rows: codes (features, number), measures (rows, n)."""
        if len(queries) > DENSE:
            patterns, index, sums, full = list_patterns(ops, queries, rows, measures)
            return cls(patterns, to_floats(ops, sums, exponents), full, exponents, index)
        sums = sum_patterns(ops, queries, rows, measures, sizes)
        patterns = np.flatnonzero(ops.to_host((sums[:-1] != 0).any(axis=(1, 2))))
        kept = sums[:-1] if len(patterns) == len(sums) - 1 else sums[ops.to_device(patterns)]
        return cls(patterns, to_floats(ops, kept, exponents), sums[-1].copy(), exponents)

    def add_up(self, ops: Ops, strengths: Floats) -> Array:
        """Add up the measures of rows that differ in some feature, each multiplied by the strength of its pattern.

        Parameters
        ----------
        ops : Ops
        strengths : float64 array (patterns,)
            On the host.

        Returns
        -------
        float64 array (n, queries)
            Patterns are added one after another, so that no bit depends on the device.
        """
        n_measures, n_queries = self.full.shape
        total = ops.zeros((n_measures, n_queries), np.float64)
        factors = ops.to_device(strengths)
        at_once = max(1, ops.TILE // n_measures)
        for start in range(0, n_queries, at_once):
            part = slice(start, start + at_once)
            block = total[:, part]
            for number, sums in enumerate(self.sums[:, :, part] if len(strengths) else ()):
                block += factors[number if self.index is None else self.index[number, part]] * sums
        return total


def count_in_blocks(
    ops: Ops, queries: Array, rows: Array, measures: Array, exponents: Sequence[int], sizes: Sequence[int]
) -> Iterator[tuple[slice, Histogram]]:
    """Compare blocks of queries with rows, as `Histogram.of` does: give the block, and its histogram."""
    at_once = max(1, MOST_CELLS // (len(exponents) << min(len(queries), DENSE)))
    for start in range(0, queries.shape[1], at_once):
        block = slice(start, start + at_once)
        yield block, Histogram.of(ops, in_one_piece(queries[:, block]), rows, measures, exponents, sizes)


def sum_patterns(ops: Ops, queries: Array, rows: Array, measures: Array, sizes: Sequence[int]) -> Array:
    """Sum measures (rows, n) by pattern and query: (2**features, n, queries); choose the faster of two ways."""
    n_queries, n_rows = queries.shape[1], rows.shape[1]
    if n_queries * n_rows > (n_queries + n_rows) * (PAIRS_PER_ROW << len(queries)):
        return sum_by_groups(ops, queries, rows, measures, sizes)
    return in_one_piece(ops.sum_agreements(queries, rows, measures).transpose(1, 2, 0))


def sum_by_groups(ops: Ops, queries: Array, rows: Array, measures: Array, sizes: Sequence[int]) -> Array:
    """Do the same without comparing pairs.

    The rows that agree with a query at least in a subset of features are a group of the subset's joint key.  From the
    sums of groups, the sums of rows that agree in more features are subtracted, feature by feature.
    """
    n_features, (n_rows, n_measures) = len(queries), measures.shape
    sums = ops.zeros((1 << n_features, n_measures, queries.shape[1]), np.int64)
    sums[0] = measures.sum(axis=0)[:, None]
    # A value that agrees with nothing has one number among rows and another one among queries.
    columns = [
        np.concatenate([row + 1, np.where(query < 0, np.int32(size + 1), query + 1)]).astype(np.int32)
        for row, query, size in zip(rows, queries, sizes, strict=True)
    ]
    values = in_one_piece(measures.T)

    def add_groups(mask: int, codes: Array | None, first: int) -> None:
        for feature in range(first, n_features):
            column, size = columns[feature], sizes[feature]
            groups, distinct = ops.factorize(column if codes is None else ops.combine(codes, column, size + 2))
            of_group = sum_equal_rows(ops, groups[:n_rows], len(distinct), values)
            sums[mask | 1 << feature] = of_group[groups[n_rows:]].T
            add_groups(mask | 1 << feature, groups, feature + 1)

    add_groups(0, None, 0)
    for feature in range(n_features):
        halves = sums.reshape(-1, 2, 1 << feature, *sums.shape[1:])
        halves[:, 0] -= halves[:, 1]
    return sums


def list_patterns(ops: Ops, queries: Array, rows: Array, measures: Array) -> tuple[Integers, Array, Array, Array]:
    """List the patterns that occur with each query.

    Returns
    -------
    patterns : int64 array
        All patterns that occur, on the host, except agreement in all features.
    index : int32 array (entries of a query, queries)
        The number of each entry's pattern.
    sums : int64 array (entries of a query, n, queries)
    full : int64 array (n, queries)
    """
    n_queries, n_measures = queries.shape[1], measures.shape[1]
    at_once = max(1, SORTED_PAIRS // max(rows.shape[1], 1))
    blocks = [
        sort_block(queries[:, start : start + at_once], rows, measures, start) for start in range(0, n_queries, at_once)
    ]
    entries, query, values = (np.concatenate([block[part] for block in blocks]) for part in range(3))
    full = ops.zeros(n_measures * n_queries, np.int64)
    in_all = entries == (1 << len(queries)) - 1
    for measure in range(n_measures):
        full.put(measure * n_queries + query[in_all], values[in_all, measure])
    entries, query, values = entries[~in_all], query[~in_all], values[~in_all]
    numbers, patterns = ops.factorize(entries)
    counts = np.bincount(query, minlength=n_queries)
    rank = ops.xp.arange(len(query)) - (np.cumsum(counts) - counts)[query]
    width = int(counts.max()) if len(query) else 0
    index = ops.zeros(width * n_queries, np.int32)
    sums = ops.zeros(width * n_measures * n_queries, np.int64)
    index.put(rank * n_queries + query, numbers)
    for measure in range(n_measures):
        sums.put((rank * n_measures + measure) * n_queries + query, values[:, measure])
    sums, full = sums.reshape(width, n_measures, n_queries), full.reshape(n_measures, n_queries)
    return ops.to_host(patterns), index.reshape(width, n_queries), sums, full


def sort_block(queries: Array, rows: Array, measures: Array, start: int) -> tuple[Array, Array, Array]:
    """Give patterns, query numbers and sums (entries, n) for a block of queries that begins with `start`."""
    n_rows = rows.shape[1]
    patterns = np.zeros_like(queries[0][:, None] == rows[0], np.int64)
    for feature, (query, row) in enumerate(zip(queries, rows, strict=True)):
        agrees = (query[:, None] == row) & (row >= 0)
        patterns |= agrees.astype(np.int64) << feature
    order = patterns.argsort(axis=1)
    ordered = np.take_along_axis(patterns, order, axis=1)
    # The last row of each query and pattern.
    last = np.ones_like(ordered, bool)
    last[:, :-1] = ordered[:, 1:] != ordered[:, :-1]
    positions = np.flatnonzero(last.ravel())
    # Sums over all queries may overflow an int64 and wrap around; their differences are still right.
    running = np.cumsum(measures[order.ravel()], axis=0)[positions]
    running[1:] -= running[:-1].copy()
    return ordered.ravel()[positions], start + positions // n_rows, running
