"""Matrices of zeros and ones, judged by the one column that each row has."""

from typing import Any

import numpy as np

from benchmarks.harness.rows import Array

# Dense matrices of more columns than this are not asked for.
MOST_DENSE = 1_000


class Indicators:
    """A matrix of zeros and ones as its library gives it, judged by the one column that each row has.

    Parameters
    ----------
    matrix : CSR matrix, NumPy array, or table of Arrow, pandas or polars
    """

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix

    @property
    def nbytes(self) -> int:
        """Bytes that it takes."""
        if hasattr(self.matrix, "indptr"):
            return int(self.matrix.data.nbytes + self.matrix.indices.nbytes + self.matrix.indptr.nbytes)
        if hasattr(self.matrix, "estimated_size"):
            return int(self.matrix.estimated_size())
        if hasattr(self.matrix, "memory_usage"):
            return int(self.matrix.memory_usage(deep=False).sum())
        return int(self.matrix.nbytes)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        """Column of the one in each row; -1 where a row has no one or several, or anything else."""
        if hasattr(self.matrix, "indptr"):
            return sparse_positions(self.matrix)
        dense = np.asarray(self.matrix)
        ones = dense == 1
        right = (np.count_nonzero(ones, axis=1) == 1) & (np.count_nonzero(dense, axis=1) == 1)
        return np.where(right, ones.argmax(axis=1), -1)


def sparse_positions(matrix: Any) -> Array:
    """Column of the one in each row of a CSR matrix."""
    n_rows = matrix.shape[0]
    if not np.array_equal(matrix.indptr, np.arange(n_rows + 1)) or not np.all(matrix.data == 1):
        return np.full(n_rows, -1)
    return matrix.indices.astype(np.int64)
