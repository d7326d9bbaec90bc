"""Which library a table is of.  No frame library is imported to find out: narwhals looks at what has been."""

from collections import Counter
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from gpu_encode import devices
from gpu_encode.errors.tables import check_real, not_two_dimensional, ragged_rows
from gpu_encode.frames import cudf, device_columns
from gpu_encode.frames.frame import Frame

_MODULE = nw.dependencies
# A frame or series of Dask, of older versions too, and a promise of anything; its arrays are read as NumPy's.
_PROMISES = ("Delayed", "Future")
_OF_DASK = ("FrameBase", "_Frame", *_PROMISES)


def read(data: Any) -> Frame:
    """Read a table of any known library, or a list of rows.

    Parameters
    ----------
    data : ndarray, list of lists, a pandas, polars, pyarrow or any other eager frame, or a matrix on a GPU
        Nothing is copied, but for a list.

    Raises
    ------
    TypeError, ValueError
        If it is no table of rows and columns; the message says what to do.

    Examples
    --------
    >>> from gpu_encode.frames import read
    >>> frame = read([["a", 1], ["b", 2]])
    >>> frame.kind, frame.shape
    ('numpy', (2, 2))
    """
    if isinstance(data, Frame):
        return data
    # Asking which library a table is of takes longer than encoding a row of it.
    frame = _read_array(data) if type(data) is np.ndarray else _read_any(data)
    if frame.n_columns == 0:
        raise ValueError(f"Found array with 0 feature(s) (shape={frame.shape}) while a minimum of 1 is required.")
    if repeated := [str(label) for label, count in Counter(frame.labels or []).items() if count > 1]:
        raise ValueError(f"duplicate column names: {', '.join(repeated)}. Rename or drop all but one.")
    return frame


def _read_any(data: Any) -> Frame:
    refuse_dask(data, "X")
    refuse_sparse(data, "X")
    if devices.is_accelerated(data):
        return replace(read(devices.unwrapped(data)), wrap=devices.accelerated)
    if _MODULE.is_narwhals_dataframe(data):
        return replace(read(nw.to_native(data)), wrap=nw.from_native)
    return _read_frame(data) or _read_array(data)


def is_frame(data: Any) -> bool:
    """Whether data is a table of a frame library, rather than an array or a vector."""
    # Narwhals asks library after library.
    if isinstance(data, np.ndarray):
        return False
    return isinstance(data, pa.RecordBatch) or cudf.is_frame(data) or bool(_MODULE.is_into_dataframe(data))


def is_of_dask(data: Any, types: tuple[str, ...] = _OF_DASK) -> bool:
    """Whether data is a frame or series of Dask, or something else that it has yet to compute."""
    return any(
        base.__module__.split(".")[0] in ("dask", "dask_expr", "distributed") and base.__name__ in types
        for base in type(data).__mro__
    )


def is_partitioned(data: Any) -> bool:
    """Whether data is in partitions of Dask: one of its frames, or promises, or a list of promises."""
    if isinstance(data, (list, tuple)):
        return bool(data) and is_of_dask(data[0], _PROMISES)
    return is_of_dask(data)


def refuse_dask(data: Any, name: str) -> None:
    """Raise if data is a frame or series of Dask, or something else that it has yet to compute."""
    if is_of_dask(data):
        raise TypeError(
            f"{name} is a {type(data).__name__} of Dask, without rows yet, and stands beside other data. Give X, y, "
            "sample_weight and groups all as Dask frames and series of the same partitions, or as lists of Delayed "
            f"objects, one for each partition; or compute them first: {name.partition('[')[0]} = dask.compute(...)."
        )


def refuse_sparse(data: Any, name: str) -> None:
    """Raise if data is one of SciPy's sparse containers."""
    if hasattr(data, "nnz") and hasattr(data, "tocsr"):
        raise TypeError(
            f"Sparse data was passed, but dense data is required: {name} is sparse, which categories cannot be. "
            "Convert it to a dense array with .toarray()."
        )


def _read_frame(data: Any) -> Frame | None:
    if is_series(data):
        raise not_two_dimensional((len(data),), data)
    eager = None if _MODULE.is_narwhals_lazyframe(data) else _read_known(data)
    if eager is None and isinstance(nw.from_native(data, pass_through=True), nw.LazyFrame):
        raise TypeError(f"X is a lazy {type(data).__name__} without rows yet. Call .collect() first.")
    return eager or _read_protocol(data)


def _read_known(data: Any) -> Frame | None:
    if cudf.is_frame(data):
        return Frame(data, "cudf", data.shape, list(data.columns))
    if _MODULE.is_pandas_dataframe(data):
        return Frame(data, "pandas", data.shape, list(data.columns))
    if _MODULE.is_polars_dataframe(data):
        return Frame(data, "polars", data.shape, list(data.columns))
    if isinstance(data, (pa.Table, pa.RecordBatch)):
        kind = "pyarrow" if isinstance(data, pa.Table) else "pyarrow_batch"
        return Frame(data, kind, (data.num_rows, data.num_columns), list(data.schema.names))
    if _MODULE.is_into_dataframe(data):
        eager = nw.from_native(data, eager_only=True)
        return Frame(eager, "other", eager.shape, list(eager.columns))
    return None


def _read_protocol(data: Any) -> Frame | None:
    if hasattr(data, "__arrow_c_stream__"):
        return _read_known(pa.table(data))
    if hasattr(data, "__dataframe__"):
        from pyarrow.interchange import from_dataframe

        return _read_known(from_dataframe(data))
    return None


def is_series(data: Any) -> bool:
    """Whether data is a vector of a frame library: a series, an index, a column of Arrow."""
    return (
        isinstance(data, (pa.Array, pa.ChunkedArray))
        or cudf.is_vector(data)
        or bool(_MODULE.is_into_series(data) or _MODULE.is_pandas_index(data) or _MODULE.is_narwhals_series(data))
    )


def _read_array(data: Any) -> Frame:
    if devices.on_gpu(data):
        matrix = device_columns.adopt(data, "X")
        if matrix.ndim != 2:
            raise not_two_dimensional(matrix.shape, matrix)
        return Frame(matrix, "cupy", matrix.shape)
    array = to_array(data, "X")
    check_real("X", array)
    if array.ndim != 2:
        raise not_two_dimensional(array.shape, array)
    return Frame(array, "numpy", array.shape)


def to_array(data: Any, name: str) -> Any:
    """NumPy array of an array or of nested lists, whose values keep their types."""
    if isinstance(data, np.ndarray):
        return data
    if isinstance(data, dict) or (isinstance(data, (list, tuple)) and any(isinstance(row, dict) for row in data)):
        raise TypeError(
            f"{name} holds dicts, not a table. Build one first: pandas.DataFrame(rows) or "
            "pyarrow.Table.from_pylist(rows)."
        )
    if data is None or not (isinstance(data, (list, tuple, str, float, int)) or hasattr(data, "__array__")):
        raise TypeError(
            f"{name} of type {type(data).__name__} is not understood. Give a NumPy array, a list, or a pandas, polars "
            "or pyarrow object."
        )
    try:
        array = np.asarray(data)
    except ValueError:
        raise ragged_rows(name) from None
    if not isinstance(data, (list, tuple)) or array.dtype.kind not in "fUS":
        return array
    # NumPy turns 1 beside "a" into "1", and a large integer beside 0.5 into another number.
    objects = np.array(data, dtype=object)
    if array.dtype.kind == "f" and bool(np.all((objects == array) | (objects != objects))):  # noqa: PLR0124 - NaN
        return array
    return objects
