"""Zeros and ones in the container that the user wants: a sparse matrix for each table, or columns of a table."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn import get_config

from cpu_fallback.types import Array
from gpu_encode.fitting.columns import ColumnMap
from gpu_encode.formulas.one_hot import OWNER
from gpu_encode.seam import devices
from gpu_encode.seam.ops import Ops, put
from gpu_encode.tables import frames
from gpu_encode.tables.frames import Frame, Pieces
from gpu_encode.words.errors.parameters import bad_option, check_option

# Up to this many columns and ones, column numbers are int32, as in scikit-learn; beyond, they are int64.
MOST_SMALL = (1 << 31) - 1
# Types that cupyx's sparse matrices can have.
ON_DEVICE = ("bool", "float32", "float64")


class Ones(NamedTuple):
    """The columns in which each row has a 1.

    Parameters
    ----------
    columns : int array (rows, keys)
        Column of the 1 of each row and key; negative if there is none.
    ops : Ops
        Backend that computes; `columns` lie on its device.
    """

    columns: Array
    n_columns: int
    ops: Ops


def check_container(wanted: str, X: Any) -> None:
    """Raise ValueError for containers that hold no sparse matrix."""
    if wanted in ("pandas", "polars"):
        raise _sparse_in_frame(wanted)
    if frames.is_partitioned(X) and not isinstance(X, (list, tuple)):
        raise ValueError(
            "A Dask frame has no sparse partitions. Set sparse_output=False, or give X as a list of Delayed "
            "objects, one for each partition."
        )


def _sparse_in_frame(wanted: str) -> ValueError:
    """Error for a frame as the container of a sparse matrix, in scikit-learn's words."""
    name = wanted.capitalize()
    return ValueError(
        f"{name} output does not support sparse data. Set sparse_output=False to output {wanted} dataframes or "
        f'disable {name} output via` ohe.set_output(transform="default").'
    )


def check_passed(sparse_output: bool, at: ColumnMap, passed: Sequence[int]) -> None:
    """Raise ValueError for columns that pass through if the output is a sparse matrix."""
    if sparse_output and passed:
        raise _sparse_beside_passed(
            [at.frame.label(at.positions[column]) for column in passed if column in at.positions]
        )


def _sparse_beside_passed(names: Sequence[object]) -> ValueError:
    """Error for columns that pass through if the output is a sparse matrix."""
    shown = ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
    return ValueError(
        f"Columns that are not encoded ({shown}) pass through, and a sparse matrix cannot hold them. "
        "Set sparse_output=False, or leave them out of X."
    )


def check_form(sparse_output: Any, dtype: Any, feature_name_combiner: Any) -> None:
    """Raise ValueError for parameters that no output can have."""
    check_option(OWNER, "sparse_output", sparse_output, (True, False))
    checked_type(dtype)
    if not callable(feature_name_combiner):
        check_option(OWNER, "feature_name_combiner", feature_name_combiner, ("concat",), "a callable")


def checked_type(dtype: Any) -> np.dtype[Any]:
    """Give the type of the output; raise ValueError if it is no type of numbers."""
    try:
        kind: np.dtype[Any] = np.dtype(dtype)
    except TypeError:
        kind = np.dtype(object)
    if kind.kind not in "biuf":
        raise bad_option(OWNER, "dtype", dtype, ("a NumPy type of numbers", "bool"))
    return kind


def sparse_tables(frame: Frame | Pieces, ones: Ones, dtype: Any) -> Any:
    """Give a CSR matrix on the device of the table; for several tables, a list of them."""
    columns, n_columns, ops = ones
    if isinstance(frame, Pieces):
        return [
            sparse_matrix(columns[rows], n_columns, dtype, part.is_on_device, ops)
            for _, part, rows in frame.stretches()
        ]
    return sparse_matrix(columns, n_columns, dtype, frame.is_on_device, ops)


def cut(frame: Frame | Pieces, matrix: Array) -> Any:
    """Give a matrix as it is; for several tables, cut it into a list of their rows."""
    return [matrix[rows] for _, _, rows in frame.stretches()] if isinstance(frame, Pieces) else matrix


def number_type(largest: int) -> Any:
    """Give the integer type that holds all numbers up to this one."""
    return np.int32 if largest <= MOST_SMALL else np.int64


def compressed(columns: Array, ops: Ops) -> tuple[Array, Array]:
    """Give the `indices` and `indptr` of a CSR matrix: the column of each 1, row by row, and where each row begins.

    A negative column means that there is no 1.  Keys are in the order of their columns, so columns rise within a row.

    Examples
    --------
    >>> import cpu_fallback, numpy as np
    >>> from gpu_encode.encoders.one_hot.matrices import compressed
    >>> indices, indptr = compressed(np.array([[0, 3], [-1, 2], [1, -1]]), cpu_fallback)
    >>> indices.tolist(), indptr.tolist()
    ([0, 3, 2, 1], [0, 2, 3, 4])
    """
    n_rows, n_keys = columns.shape
    flat = columns.reshape(-1)
    starts = ops.zeros(n_rows + 1, np.int64)
    if not flat.size or int(flat.min()) >= 0:
        starts[:] = ops.xp.arange(n_rows + 1) * n_keys
    else:
        present = columns >= 0
        starts[1:] = np.cumsum(present.sum(axis=1))
        flat = flat[present.reshape(-1)]
    dtype = number_type(max(flat.size, MOST_SMALL + 1 if columns.dtype == np.int64 else 0))
    return flat.astype(dtype, copy=False), starts.astype(dtype)


def sparse_matrix(columns: Array, n_columns: int, dtype: Any, on_device: bool, ops: Ops) -> Any:
    """Make a CSR matrix of ones: SciPy's on the host, CuPy's in a GPU's memory.

    Parameters
    ----------
    columns : int array (rows, keys)
        Column of the 1 of each row and key; negative if there is none.
    on_device : bool
        Whether the matrix shall lie in a GPU's memory, even if `columns` does not.
    ops : Ops
        Backend that computes.
    """
    indices, indptr = compressed(columns, ops)
    shape = (len(columns), n_columns)
    if on_device:
        if np.dtype(dtype).name not in ON_DEVICE:
            raise ValueError(
                f"Sparse matrices on a GPU hold bool, float32 or float64, not {np.dtype(dtype).name}. Choose one of "
                "these as dtype, or sparse_output=False."
            )
        there = devices.cuda()
        ones = there.empty(indices.shape, dtype)
        ones[...] = 1
        parts = (ones, there.to_device(indices), there.to_device(indptr))
        # This is a part of CuPy, which is loaded by now; numba's simulator has no such library.
        return import_module("cupyx.scipy.sparse").csr_matrix(parts, shape=shape)
    ones = np.ones(indices.shape, dtype)
    as_array = get_config().get("sparse_interface", "spmatrix") == "sparray"
    made = sparse.csr_array if as_array else sparse.csr_matrix
    return made((ones, ops.to_host(indices), ops.to_host(indptr)), shape=shape)


def dense(ones: Ones, dtype: Any) -> Array:
    """Make a matrix (rows, columns) of zeros and ones; a negative column means that there is no 1."""
    columns, n_columns, ops = ones
    n_rows, n_keys = columns.shape
    matrix = ops.zeros((n_rows, n_columns), dtype)
    for key in range(n_keys):
        rows = np.flatnonzero(columns[:, key] >= 0)
        values = ops.empty((rows.size,), dtype)
        values[...] = 1
        put(matrix, rows * n_columns + columns[:, key][rows], values)
    return matrix
