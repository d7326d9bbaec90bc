"""Numbers of rows of each value in each category: exact counts that add up, from which order statistics follow."""

from dataclasses import dataclass, replace
from functools import reduce
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.row_numbers import folds_of_block
from cpu_fallback.types import CARRY_AFTER, Array, Folds, Rows, SumShape, written
from gpu_encode.seam.ops import Ops, host
from gpu_encode.sums.targets import as_doubles

Integers = NDArray[np.int64]
# Two codes come before the categories: unknown is -2, missing is -1.
BEFORE = 2


@dataclass(frozen=True, eq=False)
class Distribution:
    """The number of rows of each pair of a category and a value that occur together; on the host.

    Parameters
    ----------
    values : float64 or int64 array (n_values,)
        Sorted distinct values.
    category : int32 array (pairs,)
        Category of each pair; pairs are sorted by category, then by value.  Unknown is -2, missing -1.
    value : int64 array (pairs,)
        Index of each pair's value among the values.
    counts : int64 array (pairs, views)
        Number of rows (or summed weight) of each pair and view, or fold.
    """

    values: Array
    category: NDArray[np.int32]
    value: Integers
    counts: Integers

    @classmethod
    def measure(cls, ops: Ops, rows: Rows, folds: Folds, n_folds: int) -> Self:
        """Count the rows by category, value and fold.

        Raises
        ------
        ValueError
            For weights with fractions, of which no row can be the middle one.
        """
        if rows.weight is not None and rows.weight.dtype.kind == "f":
            raise ValueError(
                "Quantiles, modes, numbers of distinct values and dates need whole weights, which repeat rows, but "
                "sample_weight has fractions. Leave it out, or take statistics of sums: count, sum, mean, var, std, "
                "sem, skew, kurt."
            )
        numbers, values = ops.factorize(numbers_of(ops, rows))
        pairs, keys = ops.factorize(ops.combine(written(rows.codes) + np.int32(BEFORE), numbers, len(values)))
        whole, counts = Rows(pairs, weight=rows.weight), np.zeros((len(keys), n_folds), np.int64)
        for start in range(0, len(rows), CARRY_AFTER):
            stop = min(start + CARRY_AFTER, len(rows))
            block_folds = folds_of_block(folds, start, stop)
            accumulators = ops.accumulate(whole.block(start, stop), SumShape(len(keys), n_folds), block_folds)
            counts += ops.to_host(accumulators)[:-2, :, 0, 0]
        return cls.of_pairs(ops.to_host(values), ops.to_host(keys), counts)

    @classmethod
    def of_pairs(cls, values: Array, keys: Integers, counts: Integers) -> Self:
        """Make a distribution from sorted keys (category + 2) * n_values + value, without pairs of weight 0."""
        kept = counts.any(axis=1)
        if not kept.all():
            keys, counts = keys[kept], counts[kept]
        n_values = max(len(values), 1)
        # The keys of a category are contiguous: a search for each category costs less than a division for each pair.
        first = np.arange(int(keys[-1]) // n_values + 2 if len(keys) else 1) * n_values
        category = np.repeat(np.arange(len(first) - 1), np.diff(np.searchsorted(keys, first)))
        value = keys - category * n_values
        used = np.zeros(len(values), np.bool_)
        used[value] = True
        if not used.all():
            values, value = values[used], (np.cumsum(used) - 1)[value]
        return cls(values, (category - BEFORE).astype(np.int32), value, counts)

    @property
    def keys(self) -> Integers:
        """The pairs as single numbers."""
        return (self.category.astype(np.int64) + BEFORE) * len(self.values) + self.value

    def visible(self, visibility: NDArray[np.int64] | None) -> "Distribution":
        """Count the rows that each view sees: the rows of the folds f with visibility[view, f] = 1."""
        return replace(self, counts=host(len(self.counts)).visible(self.counts, visibility))

    @classmethod
    def side_by_side(cls, views: "list[Distribution]") -> "Distribution":
        """Join the views of several distributions, which count different rows by the same categories."""
        total, start = sum(view.counts.shape[1] for view in views), 0
        padded = []
        for view in views:
            width = view.counts.shape[1]
            counts = np.pad(view.counts, ((0, 0), (start, total - start - width)))
            padded.append(replace(view, counts=counts))
            start += width
        return reduce(Distribution.plus, padded)

    def plus(
        self, other: "Distribution", mine: NDArray[np.int32] | None = None, theirs: NDArray[np.int32] | None = None
    ) -> "Distribution":
        """Add the counts of both; category i becomes mine[i], and category i of the other becomes theirs[i]."""
        values = np.unique(np.concatenate([self.values, other.values]))
        keys = np.concatenate([self.renumber(values, mine).keys, other.renumber(values, theirs).keys])
        both, index = np.unique(keys, return_inverse=True)
        counts = add_counts(index.reshape(-1), np.concatenate([self.counts, other.counts]), len(both))
        return Distribution.of_pairs(values, both, counts)

    def renumber(self, values: Array, codes: NDArray[np.int32] | None) -> "Distribution":
        """Give the same counts with new numbers for values and categories; the order of the pairs stays."""
        category = self.category
        if codes is not None:
            # Unknown and missing keep their codes, which index the end of the table.
            category = np.append(codes, np.array([-2, -1], np.int32)).astype(np.int32)[category]
        return Distribution(values, category, np.searchsorted(values, self.values)[self.value], self.counts)


def numbers_of(ops: Ops, rows: Rows) -> Array:
    """Give the values of rows that are counted: of several terms, the first; 0.0 and -0.0 are one value."""
    target: Array = rows.target  # type: ignore[assignment]
    first = as_doubles(ops, target if target.ndim == 1 else target[:, 0])
    return first + 0.0 if first.dtype.kind == "f" else first


def add_counts(indices: Integers, counts: Integers, n: int) -> Integers:
    """Add up counts (rows, views) of each index: (n, views)."""
    totals = np.zeros((counts.shape[1], n), np.int64)
    for view, of_view in enumerate(totals):
        # NumPy does this quickly only along one axis.
        np.add.at(of_view, indices, np.ascontiguousarray(counts[:, view]))
    return totals.T
