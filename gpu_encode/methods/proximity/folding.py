"""Sums of votes by subset of features: patterns of agreement are folded, one feature after another."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np

from cpu_fallback.exact import Floats, Integers
from cpu_fallback.types import Array
from gpu_encode.methods.proximity.histogram import Histogram
from gpu_encode.seam.ops import Ops

# Most entries that are folded together, so that they stay in a cache.
MOST_ENTRIES = 1 << 16


class Block(NamedTuple):
    """How the entries of some queries are folded into sums by subset and query.

    Parameters
    ----------
    steps : int32 array
        Positions of entries: for each feature, the first entry of each pattern without the feature; the entry that is
        added to each of them, or a position after all entries; and the entries that have the feature and are also
        summed for subsets with it.
    ends : list of int
        Where each of these three parts ends, for all features.
    queries : int array (ends,)
        The query of each sum.
    bounds : list of int
        Where the sums of each subset begin, for subsets in rising order of their masks, and where they end.
    """

    steps: Array
    ends: list[int]
    queries: Array
    bounds: list[int]

    @property
    def additions(self) -> int:
        """Number of entries that all steps make, for each measure."""
        lengths = [end - start for start, end in pairwise([0, *self.ends])]
        return sum(lengths) - sum(lengths[1::3])


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
    rank : int array (queries,)
        The rank of each query by falling number of entries; each group of entries belongs to the first ranks.
    blocks : list of Block
    """

    ops: Ops
    patterns: Integers
    index: Array
    sums: Array
    ends: list[int]
    rank: Array
    blocks: list[Block]

    @classmethod
    def of(cls, ops: Ops, histogram: Histogram, first: int, masks: Integers) -> Self:
        """Read a histogram, whose queries begin with number `first`; `masks` are the subsets in rising order."""
        n_queries = histogram.full.shape[1]
        query, entry = np.nonzero((histogram.sums != 0).any(axis=1).T)
        index = entry if histogram.index is None else histogram.index[entry, query]
        counts = np.bincount(query, minlength=n_queries)
        number = ops.xp.arange(len(query)) - (np.cumsum(counts) - counts)[query]
        rank = np.argsort(np.argsort(-counts))
        of_number = np.bincount(number)
        position = (np.cumsum(of_number) - of_number)[number] + rank[query]
        by_number = np.argsort(position)
        patterns = ops.to_device(histogram.patterns)[index]
        at_once, starts = max(1, MOST_ENTRIES // max(len(of_number), 1)), np.cumsum(counts) - counts
        blocks, at_end = [], ops.zeros(1, np.int64) + len(query)
        for start in range(0, n_queries, at_once):
            begin, *_ = starts[start : start + 1].tolist()
            part = slice(begin, begin + int(counts[start : start + at_once].sum()))
            lies = np.concatenate([position[part], at_end])
            blocks.append(fold(ops, patterns[part], query[part] + first, lies, masks))
        sums = histogram.sums[entry, :, query][by_number]
        ends = ops.to_host(np.cumsum(of_number)).tolist()
        return cls(ops, histogram.patterns, index[by_number], sums, ends, rank, blocks)

    def multiply(self, factors: Floats) -> Array:
        """Multiply each entry by the factor of its pattern: (entries, n)."""
        of_entry = self.ops.to_device(factors).take(self.index)
        product = np.empty_like(self.sums)
        # Measure by measure, since NumPy would multiply line by line.
        for measure in range(product.shape[1]):
            product[:, measure] = self.sums[:, measure] * of_entry
        return product

    def add_up(self, factors: Floats) -> Array:
        """Sum by query, each pattern multiplied by its factor: (n, queries)."""
        values = self.multiply(factors)
        total = self.ops.zeros((len(self.rank), values.shape[1]), np.float64)
        start = 0
        for end in self.ends:
            total[: end - start] += values[start:end]
            start = end
        return total.take(self.rank, axis=0).T

    def fold(self, factors: Floats | None) -> Iterator[Array]:
        """Sum by subset and query, each pattern multiplied by its factor (None: 1): for each block, (ends, n)."""
        nothing = self.ops.zeros((1, self.sums.shape[1]), np.float64)
        given = np.concatenate([self.sums if factors is None else self.multiply(factors), nothing])
        # Without compiled kernels, array expressions give the same bits.
        fold_all = getattr(self.ops.fused, "fold_sums", fold_sums)
        for block in self.blocks:
            yield fold_all(given, block.steps, block.ends)


def fold_sums(values: Array, steps: Array, ends: Sequence[int]) -> Array:
    """Do the same as `FusedOps.fold_sums`, with the same bits; the last line of values is zeros."""
    nothing = values[-1:]
    parts = [steps[start:end] for start, end in pairwise([0, *ends])]
    for kept, partners, taken in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        added = values.take(kept, axis=0) + values.take(partners, axis=0)
        values = np.concatenate([added, values.take(taken, axis=0), nothing])
    return values[:-1]


def fold(ops: Ops, patterns: Array, queries: Array, positions: Array, masks: Integers) -> Block:
    """Find the folds of entries that are ordered by query, then pattern.

    `positions` say where the entries lie, and last which position lies after all of them.
    """
    order, n_features = max(int(mask).bit_count() for mask in masks), int(masks[-1]).bit_length()
    subsets, sizes = np.zeros_like(patterns), np.zeros_like(patterns)
    parts = []
    for feature in range(n_features):
        left = patterns >> 1
        begins = np.ones_like(left, bool)
        begins[1:] = (left[1:] != left[:-1]) | (queries[1:] != queries[:-1]) | (subsets[1:] != subsets[:-1])
        kept, taken = np.flatnonzero(begins), np.flatnonzero(((patterns & 1) == 1) & (sizes < order))
        # The entry after a kept one is its partner, unless it is kept itself.
        after = np.concatenate([kept[1:], kept[:1] * 0 + len(left)])
        partners = np.where(after - kept == 2, kept + 1, len(left))
        steps = [kept, partners, taken]
        if feature == 0:
            steps = [positions[each] for each in steps]
        parts += [each.astype(np.int32) for each in steps]
        queries, patterns = (np.concatenate([each[kept], each[taken]]) for each in (queries, left))
        subsets = np.concatenate([subsets[kept], subsets[taken] | (1 << feature)])
        sizes = np.concatenate([sizes[kept], sizes[taken] + 1])
    bounds = np.searchsorted(ops.to_host(subsets), np.append(masks, np.iinfo(np.int64).max))
    ends = np.cumsum([len(part) for part in parts]).tolist()
    return Block(np.concatenate(parts), ends, queries, bounds.tolist())
