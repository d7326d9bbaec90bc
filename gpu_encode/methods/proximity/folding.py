"""Sums of votes by subset of features: patterns of agreement are folded, one feature after another."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from cpu_fallback.exact import Floats, Integers
from cpu_fallback.types import Array
from gpu_encode.methods.proximity.histogram import Histogram
from gpu_encode.seam.ops import Ops

# Most entries that are folded together, so that they stay in a cache.
MOST_ENTRIES = 1 << 16


class Fold(NamedTuple):
    """How one feature leaves the patterns of sums: positions of entries.

    Parameters
    ----------
    kept : int32 array
        The first entry of each pattern without the feature.
    pairs, partners : int32 array
        Positions in `kept`, and the other entries that are added there.
    taken : int32 array
        Entries that have the feature and are also summed for subsets with it.
    """

    kept: Array
    pairs: Array
    partners: Array
    taken: Array


class Block(NamedTuple):
    """How the entries of some queries are folded into sums by subset and query.

    Parameters
    ----------
    folds : list of Fold
        One for each feature.
    queries : int array (ends,)
        The query of each sum.
    bounds : list of int
        Where the sums of each subset begin, for subsets in rising order of their masks, and where they end.
    """

    folds: list[Fold]
    queries: Array
    bounds: list[int]


@dataclass(frozen=True, eq=False)
class PatternSums:
    """Sums of rows by query and pattern, without the patterns that do not occur with a query.

    Each number is added up in an order that depends only on its query, so blocks and devices change no bit.

    Parameters
    ----------
    ops : Ops
    patterns : int64 array
        On the host: the patterns that occur.
    index : int array (entries,)
        The number of each entry's pattern: the first entry of each query, then the second of each, and so on.
    sums : float64 array (entries, n)
    ends : list of int
        The number of first entries, of first and second ones, and so on.
    queries : int array (queries,)
        Queries by falling number of entries, so that each group of entries belongs to the first of them.
    blocks : list of Block
    """

    ops: Ops
    patterns: Integers
    index: Array
    sums: Array
    ends: list[int]
    queries: Array
    blocks: list[Block]

    @classmethod
    def of(cls, ops: Ops, histogram: Histogram, first: int, masks: Integers) -> Self:
        """Read a histogram, whose queries begin with number `first`; `masks` are the subsets in rising order."""
        n_queries = histogram.full.shape[1]
        query, entry = np.nonzero((histogram.sums != 0).any(axis=1).T)
        index = entry if histogram.index is None else histogram.index[entry, query]
        counts = np.bincount(query, minlength=n_queries)
        rank = ops.xp.arange(len(query)) - (np.cumsum(counts) - counts)[query]
        order = np.argsort(-counts)
        of_rank = np.bincount(rank)
        position = (np.cumsum(of_rank) - of_rank)[rank] + np.argsort(order)[query]
        by_rank = np.argsort(position)
        patterns = ops.to_device(histogram.patterns)[index]
        at_once, starts = max(1, MOST_ENTRIES // max(len(of_rank), 1)), np.cumsum(counts) - counts
        blocks = []
        for start in range(0, n_queries, at_once):
            begin, *_ = starts[start : start + 1].tolist()
            part = slice(begin, begin + int(counts[start : start + at_once].sum()))
            blocks.append(fold(ops, patterns[part], query[part] + first, position[part], masks))
        sums = histogram.sums[entry, :, query][by_rank]
        ends = ops.to_host(np.cumsum(of_rank)).tolist()
        return cls(ops, histogram.patterns, index[by_rank], sums, ends, order + first, blocks)

    def multiply(self, factors: Floats) -> Array:
        """Multiply each entry by the factor of its pattern: (entries, n)."""
        return self.sums * self.ops.to_device(factors).take(self.index)[:, None]

    def add_to(self, votes: Array, factors: Floats) -> None:
        """Add up by query, and write to votes (n, all queries)."""
        values = self.multiply(factors)
        total = self.ops.zeros((len(self.queries), values.shape[1]), np.float64)
        start = 0
        for end in self.ends:
            total[: end - start] += values[start:end]
            start = end
        votes[:, self.queries] = total.T

    def fold(self, factors: Floats | None) -> Iterator[Array]:
        """Sum by subset and query, each pattern multiplied by its factor, or by 1: an array (ends, n) for each block."""
        given = self.sums if factors is None else self.multiply(factors)
        for block in self.blocks:
            values = given
            for step in block.folds:
                kept = values.take(step.kept, axis=0)
                kept[step.pairs] += values.take(step.partners, axis=0)
                values = np.concatenate([kept, values.take(step.taken, axis=0)])
            yield values


def fold(ops: Ops, patterns: Array, queries: Array, positions: Array, masks: Integers) -> Block:
    """Find the folds of entries that are ordered by query, then pattern; `positions` say where they lie."""
    order, n_features = max(int(mask).bit_count() for mask in masks), int(masks[-1]).bit_length()
    subsets, sizes = np.zeros_like(patterns), np.zeros_like(patterns)
    folds = []
    for feature in range(n_features):
        left = patterns >> 1
        begins = np.ones_like(left, bool)
        begins[1:] = (left[1:] != left[:-1]) | (queries[1:] != queries[:-1]) | (subsets[1:] != subsets[:-1])
        kept, partners = np.flatnonzero(begins), np.flatnonzero(~begins)
        pairs = np.cumsum(begins)[partners] - 1
        taken = np.flatnonzero(((patterns & 1) == 1) & (sizes < order))
        entries = [positions[each] if feature == 0 else each for each in (kept, partners, taken)]
        folds.append(Fold(*(each.astype(np.int32) for each in (entries[0], pairs, entries[1], entries[2]))))
        queries, patterns = (np.concatenate([each[kept], each[taken]]) for each in (queries, left))
        subsets = np.concatenate([subsets[kept], subsets[taken] | (1 << feature)])
        sizes = np.concatenate([sizes[kept], sizes[taken] + 1])
    bounds = np.searchsorted(ops.to_host(subsets), np.append(masks, np.iinfo(np.int64).max))
    return Block(folds, queries, bounds.tolist())
