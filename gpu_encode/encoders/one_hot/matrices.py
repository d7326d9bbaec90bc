"""Columns of zeros and ones, as a matrix that holds all of them or only the ones."""

from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import get_config

from cpu_fallback.types import Array
from gpu_encode import devices
from gpu_encode.errors.one_hot import sparse_type_on_device
from gpu_encode.ops import Ops

# Up to this many columns and ones their numbers are int32, as scikit-learn has them, else int64.
MOST_SMALL = (1 << 31) - 1
# Types of cupyx's sparse matrices.
ON_DEVICE = ("bool", "float32", "float64")


def number_type(largest: int) -> Any:
    """Type of numbers up to this one."""
    return np.int32 if largest <= MOST_SMALL else np.int64


def compressed(places: Array, ops: Ops) -> tuple[Array, Array]:
    """Column of each one, row by row, and where each row begins: `indices` and `indptr` of a CSR matrix.

    A negative place is no one.  Entries stand in the order of their columns, so columns rise within a row.

    Examples
    --------
    >>> import cpu_fallback, numpy as np
    >>> from gpu_encode.encoders.one_hot.matrices import compressed
    >>> indices, indptr = compressed(np.array([[0, 3], [-1, 2], [1, -1]]), cpu_fallback)
    >>> indices.tolist(), indptr.tolist()
    ([0, 3, 2, 1], [0, 2, 3, 4])
    """
    n_rows, n_entries = places.shape
    flat = places.reshape(-1)
    starts = ops.zeros(n_rows + 1, np.int64)
    if not flat.size or int(flat.min()) >= 0:
        starts[:] = ops.xp.arange(n_rows + 1) * n_entries
    else:
        present = places >= 0
        starts[1:] = np.cumsum(present.sum(axis=1))
        flat = flat[present.reshape(-1)]
    dtype = number_type(max(flat.size, MOST_SMALL + 1 if places.dtype == np.int64 else 0))
    return flat.astype(dtype, copy=False), starts.astype(dtype)


def sparse_matrix(places: Array, n_columns: int, dtype: Any, on_device: bool, ops: Ops) -> Any:
    """CSR matrix with a one at each place: of SciPy on the host, of CuPy in a GPU's memory.

    Parameters
    ----------
    places : int array (rows, entries)
        Column of each one, negative where there is none.
    n_columns : int
    dtype : dtype
    on_device : bool
        Where the matrix is to lie, whatever the places lie in.
    ops : Ops
        What computes.
    """
    indices, indptr = compressed(places, ops)
    shape = (len(places), n_columns)
    if on_device:
        if np.dtype(dtype).name not in ON_DEVICE:
            raise sparse_type_on_device(np.dtype(dtype).name)
        there = devices.cuda()
        ones = there.empty(indices.shape, dtype)
        ones[...] = 1
        parts = (ones, there.to_device(indices), there.to_device(indptr))
        # Beside CuPy, which is loaded by now; numba's simulator has no such library.
        return import_module("cupyx.scipy.sparse").csr_matrix(parts, shape=shape)
    ones = np.ones(indices.shape, dtype)
    as_array = get_config().get("sparse_interface", "spmatrix") == "sparray"
    made = sparse.csr_array if as_array else sparse.csr_matrix
    return made((ones, ops.to_host(indices), ops.to_host(indptr)), shape=shape)


def dense(places: Array, n_columns: int, dtype: Any, ops: Ops) -> Array:
    """Matrix (rows, columns) of zeros, with a one at each place; a negative place is no one."""
    n_rows, n_entries = places.shape
    matrix = ops.zeros((n_rows, n_columns), dtype)
    for entry in range(n_entries):
        rows = np.flatnonzero(places[:, entry] >= 0)
        ones = ops.empty((rows.size,), dtype)
        ones[...] = 1
        # CuPy's assignment to rows by number counts in 32 bits, its `put` in 64.
        matrix.put(rows * n_columns + places[:, entry][rows], ones)
    return matrix
