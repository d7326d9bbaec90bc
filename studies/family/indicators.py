"""Matrices of zeros and ones, judged by the column of the one in each row."""

from typing import Any

import numpy as np

from benchmarks.harness.rows import Array

# Most columns of dense matrices.
MOST_DENSE = 1_000


class Indicators:
    """A matrix of zeros and ones of any library, judged by the column of the one in each row.

    Parameters
    ----------
    matrix : CSR matrix, NumPy array, or table of Arrow, pandas or polars
    """

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix

    @property
    def nbytes(self) -> int:
        """Number of bytes of the matrix."""
        if hasattr(self.matrix, "indptr"):
            return int(self.matrix.data.nbytes + self.matrix.indices.nbytes + self.matrix.indptr.nbytes)
        if hasattr(self.matrix, "estimated_size"):
            return int(self.matrix.estimated_size())
        if hasattr(self.matrix, "memory_usage"):
            return int(self.matrix.memory_usage(deep=False).sum())
        return int(self.matrix.nbytes)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        """Give the column of the one in each row; -1 if a row does not have exactly one one, and otherwise zeros."""
        if hasattr(self.matrix, "indptr"):
            return sparse_positions(self.matrix)
        dense = np.asarray(self.matrix)
        ones = dense == 1
        right = (np.count_nonzero(ones, axis=1) == 1) & (np.count_nonzero(dense, axis=1) == 1)
        return np.where(right, ones.argmax(axis=1), -1)


def sparse_positions(matrix: Any) -> Array:
    """Give the column of the one in each row of a CSR matrix."""
    n_rows = matrix.shape[0]
    if not np.array_equal(matrix.indptr, np.arange(n_rows + 1)) or not np.all(matrix.data == 1):
        return np.full(n_rows, -1)
    return matrix.indices.astype(np.int64)
