"""How often two categories stand in one row: exact, sparse, and the same on every backend."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from cpu_fallback.types import Array, Codes, Layout, Rows
from gpu_encode.encoders.codes import CodedRows
from gpu_encode.ops import Ops
from gpu_encode.sums.category_sums import CategorySums, SumSpec, choose_spec
from gpu_encode.sums.moments import Moments
from gpu_encode.sums.targets import no_target

# Pairs of categories that are counted in a table of all of them, where they are no more than rows or than this.
FEW_CELLS = 1 << 16
# Numbers of cells are int32, as codes are.
MOST_CELLS = (1 << 31) - 3


@dataclass(frozen=True, eq=False)
class PairCounts:
    """Rows, or their weight, of each pair of categories that occurs; pairs in order, on the host.

    Parameters
    ----------
    first, second : int64 array (pairs,)
        Codes of the two keys.
    counts : int64 or float64 array (pairs,)
        Whole where weights are; others are the exact sum, rounded once.
    shape : tuple of int
        Number of categories of each key.
    """

    first: Array
    second: Array
    counts: Array
    shape: tuple[int, int]

    @property
    def matrix(self) -> Any:
        """The counts as a sparse matrix of float64, (first, second)."""
        values = self.counts.astype(np.float64)
        return sparse.csr_array((values, (self.first, self.second)), shape=self.shape)

    def transpose(self) -> "PairCounts":
        """Give the counts of the second key by the first."""
        order = np.lexsort((self.first, self.second))
        return PairCounts(self.second[order], self.first[order], self.counts[order], self.shape[::-1])

    def __add__(self, other: "PairCounts") -> "PairCounts":
        """Add the counts of other rows, whose codes mean the same."""
        cells = np.concatenate([self.first, other.first]) * self.shape[1] + np.concatenate([self.second, other.second])
        distinct, places = np.unique(cells, return_inverse=True)
        counts = np.zeros(len(distinct), np.result_type(self.counts, other.counts))
        np.add.at(counts, places, np.concatenate([self.counts, other.counts]))
        return PairCounts(distinct // self.shape[1], distinct % self.shape[1], counts, self.shape)


def weigher(rows: CodedRows) -> Callable[[Codes, int], Array]:
    """Give what counts the rows of each code, by their weight: codes and their number in, counts on the host out."""
    spec = choose_spec(rows.ops, no_target(rows.n_rows), rows.weight, squares=False, drop=None)
    return lambda codes, size: weigh(rows.ops, Rows(codes, weight=rows.weight), size, spec)


def weigh(ops: Ops, rows: Rows, size: int, spec: SumSpec) -> Array:
    """Sum the weight of each code: int64 where it is whole, else the exact sum as the nearest float64."""
    sums = CategorySums.measure(ops, rows, size, None, 1, 1, spec)
    if spec.layout == Layout():
        return ops.to_host(sums.accumulators)[:size, 0, 0, 0]
    return ops.to_host(Moments.of(ops, sums.accumulators, spec, variances=False).n)[:size, 0, 0]


def count_pairs(
    ops: Ops, codes: tuple[Codes, Codes], sizes: tuple[int, int], weigh_codes: Callable[[Codes, int], Array]
) -> PairCounts:
    """Count the rows of every pair of categories of two keys.

    Parameters
    ----------
    ops : Ops
    codes : tuple of int32 array (rows,)
        None of them negative.
    sizes : tuple of int
        Number of categories of each key.
    weigh_codes : callable
        What `weigher` gives.
    """
    cells = ops.combine(codes[0], codes[1], sizes[1])
    n_cells = sizes[0] * sizes[1]
    if n_cells <= min(max(len(codes[0]), FEW_CELLS), MOST_CELLS):
        counts = weigh_codes(cells.astype(np.int32), n_cells)
        occurring = np.flatnonzero(counts)
        return PairCounts(occurring // sizes[1], occurring % sizes[1], counts[occurring], sizes)
    numbered, distinct = ops.factorize(cells)
    occurring = ops.to_host(distinct)
    counts = weigh_codes(numbered, len(occurring))
    # Rows of weight zero make no pair.
    weighed = counts != 0
    occurring = occurring[weighed]
    return PairCounts(occurring // sizes[1], occurring % sizes[1], counts[weighed], sizes)
