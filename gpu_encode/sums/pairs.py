"""Numbers of rows that have two categories together: exact sparse sums that add up, equal on every backend."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy import sparse

from cpu_fallback.exact import Floats
from cpu_fallback.types import MISSING, Array, Codes, Layout, Rows
from gpu_encode.seam.ops import Ops, host
from gpu_encode.sums.category_sums import CategorySums, SumSpec
from gpu_encode.sums.moments import Moments
from gpu_encode.tables.categories.keys import CategoryIndex, code_missing

# Pairs are counted in a table of all possible pairs if these are not more than the rows, or not more than this number.
FEW_CELLS = 1 << 16
# Numbers of cells are int32, like codes.
MOST_CELLS = (1 << 31) - 3


@dataclass(frozen=True, eq=False)
class PairSums:
    """The weight of the rows of each pair of categories of two keys; only pairs with rows, in order, on the host.

    Parameters
    ----------
    keys : tuple of int
        Positions of the two keys; if both are the same key, the pairs are its categories.
    first, second : int32 array (pairs,)
        Codes of the two keys; a missing value has the code MISSING, and comes last.
    sums : CategorySums
        Sums of each pair.
    n_rows : int
        Number of rows that were counted.
    """

    keys: tuple[int, int]
    first: Codes
    second: Codes
    sums: CategorySums
    n_rows: int

    @classmethod
    def measure(
        cls,
        ops: Ops,
        keys: tuple[int, int],
        codes: Sequence[Codes],
        sizes: Sequence[int],
        weight: Array | None,
        spec: SumSpec,
    ) -> Self:
        """Sum the rows of every pair; `codes` and `sizes` are the codes and numbers of categories of the two keys."""
        first, second = (code_missing(of_key, size) for of_key, size in zip(codes, sizes, strict=True))
        n_rows, width = len(first), sizes[1] + 1
        n_cells = sizes[0] + 1 if keys[0] == keys[1] else (sizes[0] + 1) * width
        cells = first if keys[0] == keys[1] else ops.combine(first, second, width)
        if n_cells <= min(max(n_rows, FEW_CELLS), MOST_CELLS):
            numbered, occurring = cells.astype(np.int32), np.arange(n_cells)
        else:
            numbered, distinct = ops.factorize(cells)
            occurring = ops.to_host(distinct)
        sums = CategorySums.measure(ops, Rows(numbered, weight=weight), (len(occurring), 1, 1), spec).on_host(ops)
        # Rows of weight zero make no pair.
        weighed = np.flatnonzero(sums.accumulators[:-2].any(axis=(1, 2, 3)))
        kept = replace(sums, accumulators=sums.accumulators[np.append(weighed, (-2, -1))])
        occurring = occurring[weighed]
        pair = (occurring, occurring) if keys[0] == keys[1] else (occurring // width, occurring % width)
        return cls(keys, as_missing(pair[0], sizes[0]), as_missing(pair[1], sizes[1]), kept, n_rows)

    @property
    def nbytes(self) -> int:
        """Number of bytes of the sums."""
        return int(self.first.nbytes + self.second.nbytes + self.sums.accumulators.nbytes)

    def plus(self, other: "PairSums", renamed: Sequence[tuple[Codes, Codes]], sizes: Sequence[int]) -> "PairSums":
        """Add other sums; both get new codes.

        Parameters
        ----------
        renamed : list of tuple of int32 array
            For each key, the new codes of the categories of these sums, and of the other sums.
        sizes : list of int
            The new number of categories of each key.
        """
        cells = []
        for number, pairs in enumerate((self, other)):
            one, two = (
                code_missing(np.append(new_codes[number], np.int32(MISSING))[codes], size).astype(np.int64)
                for new_codes, codes, size in zip(renamed, (pairs.first, pairs.second), sizes, strict=True)
            )
            cells.append(one * (sizes[1] + 1) + two)
        distinct, inverse = np.unique(np.concatenate(cells), return_inverse=True)
        numbered: Codes = inverse.reshape(-1).astype(np.int32)
        mine, theirs = numbered[: len(cells[0])], numbered[len(cells[0]) :]
        sums = self.sums.plus(other.sums, mine, theirs, len(distinct))
        pair = as_missing(distinct // (sizes[1] + 1), sizes[0]), as_missing(distinct % (sizes[1] + 1), sizes[1])
        return PairSums(self.keys, *pair, sums, self.n_rows + other.n_rows)

    def to_canonical(self) -> "PairSums":
        """Give the same sums with canonical digits."""
        return replace(self, sums=self.sums.to_canonical())

    def counts(self, keys: Sequence[CategoryIndex]) -> Any:
        """Give the weights, exact sums rounded once, as a sparse float64 array; a missing value is the last category.

        Pairs with a missing value are left out if a missing value is no category of the key.
        """
        shape = tuple(key.n_categories + bool(key.has_missing) for key in keys)
        first, second = (
            code_missing(codes, key.n_categories) for codes, key in zip((self.first, self.second), keys, strict=True)
        )
        inside = (first < shape[0]) & (second < shape[1])
        values = weights_of(self.sums)[:-2]
        return sparse.csr_array((values[inside], (first[inside], second[inside])), shape=shape)


def as_missing(codes: Array, size: int) -> Codes:
    """Give codes in which the code after all categories is MISSING."""
    return np.where(codes == size, MISSING, codes).astype(np.int32)


def weights_of(sums: CategorySums) -> Floats:
    """Give the weight of each category, then unknown and missing, as exact sums rounded once: (categories + 2,)."""
    if sums.spec.layout == Layout():
        return sums.accumulators[:, 0].sum(axis=(1, 2)).astype(np.float64)
    ops = host(len(sums.accumulators))
    return Moments.of(ops, sums.accumulators, sums.spec).n[:, 0, 0]


def with_missing(of_categories: Array, key: CategoryIndex) -> Array:
    """Leave out the rows of unknown values, and the rows of missing values if these are no category."""
    of_missing = of_categories[-1:] if key.has_missing else of_categories[:0]
    return np.concatenate([of_categories[: key.n_categories], of_missing])
