"""From columns of zeros and ones back to categories; on the host, where categories are kept."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array

from cpu_fallback.types import Array
from gpu_encode.encoders.one_hot.columns import KeyColumns, OneHotColumns
from gpu_encode.seam import devices
from gpu_encode.words.errors.tables import check_number_of_codes


def original(columns: OneHotColumns, X: Any) -> Array:
    """Give the category of each row and key: (rows, keys).

    Parameters
    ----------
    X : array, frame or sparse matrix (rows, columns)

    Raises
    ------
    ValueError
        If X has another number of columns, or if a row has no 1 for a key although every value has one.
    """
    check_number_of_codes(columns.n_columns, X)
    X = check_array(on_host(X), accept_sparse="csr", ensure_min_samples=0, ensure_min_features=0)
    labels = [of_key.labels() for of_key in columns.by_key]
    values = np.empty((X.shape[0], len(labels)), common_type(labels))
    unknown: dict[int, NDArray[np.bool_]] = {}
    for number, (of_key, start) in enumerate(zip(columns.by_key, columns.starts, strict=False)):
        if of_key.width:
            largest, zeros = largest_column(X, start, start + of_key.width)
            values[:, number] = of_key.kept_labels()[largest]
        else:
            zeros = np.full(X.shape[0], True)
        if of_key.dropped is not None:
            values[zeros, number] = labels[number][[of_key.dropped]]
        elif zeros.any():
            if not may_be_zeros(columns, of_key):
                raise ValueError(
                    f"Samples {np.flatnonzero(zeros)} can not be inverted when drop=None and handle_unknown='error' "
                    "because they contain all zeros"
                )
            unknown[number] = zeros
    if unknown:
        values = values.astype(object)
        for number, rows in unknown.items():
            values[rows, number] = None
    return values


def may_be_zeros(columns: OneHotColumns, of_key: KeyColumns) -> bool:
    """Tell whether a row may be all zeros for a key that drops no category."""
    statistic = columns.statistic
    if statistic.handle_missing == "zero" or statistic.handle_unknown == "ignore":
        return True
    return statistic.unknown_is_infrequent and not of_key.has_rare


def on_host(X: Any) -> Any:
    """Copy a matrix, sparse or not, from a GPU to the host."""
    if type(X).__module__.startswith("cupyx.") or devices.on_gpu(X):
        return X.to_numpy() if hasattr(X, "to_numpy") else X.get()
    return X


def common_type(labels: list[Array]) -> np.dtype[Any]:
    """Give the type that holds the values of all columns."""
    try:
        return np.result_type(*(values.dtype for values in labels))
    except TypeError:
        return np.dtype(object)


def largest_column(X: Any, start: int, stop: int) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Find the column in [start, stop) where each row is largest, the first of equal ones, and the rows of sum zero."""
    if not sparse.issparse(X):
        block = X[:, start:stop]
        return block.argmax(axis=1), block.sum(axis=1) == 0
    block = X[:, start:stop].tocoo()
    rows, columns, values = block.row, block.col, block.data
    zeros = np.bincount(rows, values, minlength=X.shape[0]) == 0
    largest = np.zeros(X.shape[0], np.intp)
    above = values > 0
    rows, columns, values = rows[above], columns[above], values[above]
    # SciPy's own argmax loops over rows.  A matrix that an encoder made has one number in each row, in order of rows.
    if (np.diff(rows) <= 0).any():
        # The last write wins: that of the largest value, and of equal values that of the first column.
        order = np.lexsort((-columns, values, rows))
        rows, columns = rows[order], columns[order]
    largest[rows] = columns
    # A row that stores only negative values is largest in a column that stores nothing, which is zero.
    below = ~zeros
    below[rows] = False
    if len(negative := np.flatnonzero(below)):
        largest[negative] = X[negative, start:stop].toarray().argmax(axis=1)
    return largest, zeros
