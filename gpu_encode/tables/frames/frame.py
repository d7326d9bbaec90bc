"""A table of any library: read into columns by position, and made from columns again."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from typing import Any, Literal

import narwhals as nw
import numpy as np
import pyarrow as pa

from cpu_fallback.types import Array
from gpu_encode.seam import devices
from gpu_encode.seam.loading import LOADING
from gpu_encode.seam.ops import Ops, device_of, host
from gpu_encode.tables.categories.vocabulary import FactorizedColumn, Vocabulary
from gpu_encode.tables.frames import columns, cudf, device_columns, factorizing
from gpu_encode.tables.frames.columns import Column
from gpu_encode.tables.frames.device_columns import DeviceColumn
from gpu_encode.tables.frames.labels import as_numpy

# Finding the library of a table imports no frame library: narwhals looks only at loaded libraries.
_MODULE = nw.dependencies
# Tables and arrays have one of these attributes at least; so have Arrow's readers of batches and data on a device.
READABLE = ("__arrow_c_stream__", "__dataframe__", "__array__", "__cuda_array_interface__", "ndim")
# Class names of Dask's frames and series, of old versions too, and of its promises; its arrays are read like NumPy's.
_PROMISES = ("Delayed", "Future")
_OF_DASK = ("FrameBase", "_Frame", *_PROMISES)
# By engine: the module that defines its tables, and the names of their classes.
_TABLES_OF = {
    "spark": ("pyspark.sql.", "DataFrame"),
    "ray": ("ray.data.", "Dataset"),
    "pandas on Spark": ("pyspark.pandas.", "DataFrame"),
}


@dataclass(frozen=True, eq=False)
class Frame:
    """A table of one library, never written to.

    Parameters
    ----------
    native : object
        The table itself; for the kind "other", its narwhals frame.
    kind : {"numpy", "cupy", "cudf", "pandas", "polars", "pyarrow", "pyarrow_batch", "other"}
        The table's library; "cupy" is anything in a GPU's memory that CuPy accepts.
    shape : tuple of int
        Numbers of rows and columns.
    labels : list, optional
        Column names of any type; None for a NumPy array.
    wrap : callable, optional
        Wraps a table as this one was wrapped: in a narwhals frame, or in a pandas frame that cudf.pandas accelerates.
    """

    native: Any
    kind: str
    shape: tuple[int, int]
    labels: list[Any] | None = None
    wrap: Callable[[Any], Any] | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.shape[0]

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.shape[1]

    @property
    def names(self) -> list[str] | None:
        """Column names if all are strings, None if none is; a mixture raises an error, as in scikit-learn."""
        kinds = {*map(type, self.labels or ())}
        if self.labels and kinds == {str}:
            return [*self.labels]
        types = sorted({kind.__qualname__ for kind in kinds})
        if len(types) > 1 and "str" in types:
            raise TypeError(
                f"Feature names are only supported if all input features have string names, but your input has {types} "
                "as feature name / column name types. If you want feature names to be stored and validated, you must "
                "convert them all to strings, by using X.columns = X.columns.astype(str) for example. Otherwise you "
                "can remove feature / column names from your input data, or convert them all to a non-string data type."
            )
        return list(self.labels) if self.labels and types == ["str"] else None

    def label(self, position: int) -> object:
        """Give the name of a column in messages; its position if it has no name."""
        return self.labels[position] if self.labels is not None else position

    def without_rows(self) -> "Frame":
        """Give a table with the same columns and without rows."""
        if self.kind in ("pandas", "cudf"):
            bare = self.native.iloc[:0]
        elif self.kind in ("polars", "pyarrow", "pyarrow_batch"):
            bare = self.native.slice(0, 0)
        else:
            bare = self.native[:0]
        return replace(self, native=bare, shape=(0, self.n_columns))

    def as_given(self) -> Any:
        """Give the table as the user gave it."""
        return self.native if self.wrap is None else self.wrap(self.native)

    def column(self, position: int) -> Column:
        """Read the rows of a column, without codes."""
        if self.is_on_device:
            return device_columns.column_to_host(self._device_column(position))
        return _READERS[self.kind](self.native_column(position))

    def native_column(self, position: int) -> Any:
        """Give a column of a table on the host, in the form of its library."""
        if self.kind in ("numpy", "other"):
            return self.native[:, position]
        if self.kind == "pandas":
            # By position, pandas takes ten times as long; by name is safe, since all names differ.
            label = self.native.columns[position]
            return self.native[label] if type(label) is str else self.native.iloc[:, position]
        return self.native.to_series(position) if self.kind == "polars" else self.native.column(position)

    def keys(self, position: int, ops: Ops) -> FactorizedColumn:
        """Give the codes of a column (int32; -1 for null), on the device of `ops`, and its sorted vocabulary.

        Columns on the host are turned into codes there.

        Raises
        ------
        TypeError
            If the values cannot be compared with one another, or cannot be categories.
        ValueError
            If a value is infinite.
        """
        if self.is_on_device and device_of(ops) == "cuda":
            return device_columns.keys(self._device_column(position), self.label(position), ops)
        factorized = factorizing.keys(self.column(position), self.label(position), host(self.n_rows))
        return factorized._replace(codes=ops.to_device(factorized.codes))

    def lookup(self, position: int, vocabulary: Vocabulary, ops: Ops) -> Array:
        """Give the index (int32) of each row of a column in a vocabulary: -1 for null, -2 if it is absent."""
        if self.is_on_device and device_of(ops) == "cuda":
            return device_columns.lookup(self._device_column(position), self.label(position), vocabulary, ops)
        return ops.to_device(
            factorizing.lookup(self.column(position), self.label(position), vocabulary, host(self.n_rows))
        )

    def numbers(self, position: int, vocabulary: Vocabulary) -> Array | None:
        """Give whole numbers that can be compared with a vocabulary, on their device; None for other columns."""
        if vocabulary.kind != "number":
            return None
        if self.is_on_device:
            return device_columns.whole_numbers_of(self._device_column(position), vocabulary)
        column = self.column(position)
        if not factorizing.are_numbers_of(column, vocabulary):
            return None
        numbers = factorizing.whole_numbers(column, self.label(position))
        return None if numbers is None else numbers[0]

    def whole_numbers(self, position: int) -> tuple[Array, str] | None:
        """Give whole numbers without null, on their device, and the name of their type; None for other columns."""
        if self.is_on_device:
            return device_columns.whole_numbers(self._device_column(position))
        return factorizing.whole_numbers(self.column(position), self.label(position))

    def empty_vocabulary(self, position: int) -> Vocabulary | None:
        """Give the vocabulary of a column without rows; None if the column's type does not tell the kind of values."""
        if self.is_on_device:
            return None
        return factorizing.empty_vocabulary(self.column(position), self.label(position))

    @property
    def parts(self) -> "tuple[Frame, ...]":
        """The table itself, as the only part; `Pieces` has several parts."""
        return (self,)

    @property
    def is_on_device(self) -> bool:
        """Whether the columns lie in a GPU's memory."""
        return self.kind in ("cupy", "cudf")

    def _device_column(self, position: int) -> DeviceColumn:
        if self.kind == "cupy":
            return DeviceColumn(self.native[:, position])
        return cudf.column(self.native[self.label(position)], self.label(position))

    def values(self, position: int) -> Array:
        """Give plain values: numbers, dates and times as int64 in the column's unit, everything else as objects.

        A null is NaN among floats, None among objects, and 0 elsewhere.
        """
        return columns.plain(self.column(position))[0]

    def assemble(
        self, names: Sequence[str], arrays: Sequence[Array], passed: Sequence[int], kind: str | None = None
    ) -> Any:
        """Make a table of new columns, then unchanged columns of this one, in this table's library and with its index.

        Parameters
        ----------
        names, arrays : list of str, list of 1-D arrays
            The new columns.  Columns of one matrix, in order, are not copied if the library allows it.
        passed : list of int
            Positions of the columns that pass through.
        kind : {"numpy", "pandas", "polars", "pyarrow"}, optional
            Another library than this table's; columns of a NumPy array are then called x0, x1, ...
        """
        return assemble(self, list(names), list(arrays), list(passed), kind)


def read(data: Any) -> Frame:
    """Read a table of any known library, or a list of rows.

    Parameters
    ----------
    data : ndarray, list of lists, a pandas, polars, pyarrow or any other eager frame, or a matrix on a GPU
        Nothing is copied, except for lists.

    Raises
    ------
    TypeError, ValueError
        If `data` is not a table of rows and columns; the message says what to do.

    Examples
    --------
    >>> from gpu_encode.tables.frames import read
    >>> frame = read([["a", 1], ["b", 2]])
    >>> frame.kind, frame.shape
    ('numpy', (2, 2))
    """
    if isinstance(data, Frame):
        return data
    # To find out the library of a table takes longer than to encode one of its rows.
    frame = _read_array(data) if type(data) is np.ndarray else _read_any(data)
    if frame.n_columns == 0:
        raise ValueError(f"Found array with 0 feature(s) (shape={frame.shape}) while a minimum of 1 is required.")
    if frame.labels and len({*frame.labels}) < len(frame.labels):
        repeated = [str(label) for label, count in Counter(frame.labels).items() if count > 1]
        raise ValueError(f"duplicate column names: {', '.join(repeated)}. Rename or drop all but one.")
    return frame


def _read_any(data: Any) -> Frame:
    if devices.is_accelerated(data):
        return replace(read(devices.unwrap(data)), wrap=devices.accelerate)
    if _MODULE.is_narwhals_dataframe(data):
        return replace(read(nw.to_native(data)), wrap=from_native)
    # Asking for other libraries takes longer than encoding one row of pandas or polars.
    is_lazy = _MODULE.is_narwhals_lazyframe(data)
    if not is_lazy and (frame := _of_pandas_or_polars(data)) is not None:
        return frame
    refuse_dask(data, "X")
    refuse_sparse(data, "X")
    return _read_frame(data, is_lazy) or _read_array(data)


def is_frame(data: Any) -> bool:
    """Tell whether data is a table of a frame library, and not an array or a vector."""
    # This saves time, since narwhals tries one library after the other.
    if isinstance(data, np.ndarray):
        return False
    return isinstance(data, pa.RecordBatch) or devices.is_cudf_frame(data) or bool(_MODULE.is_into_dataframe(data))


def from_native(table: Any, **how: Any) -> Any:
    """Give a table as a narwhals frame; at the first table of a library, narwhals loads its module for it."""
    with LOADING:
        return nw.from_native(table, **how)


def of_columns(columns: Mapping[str, Any]) -> pa.Table:
    """Make a table of named columns."""
    return pa.table(dict(columns))


def take(data: Any, rows: Array) -> Any:
    """Give some rows of a table or a vector, by their numbers on the host, in a table or vector of the same kind."""
    # scikit-learn loads pandas, which callers with tables of other libraries need not have loaded.
    from sklearn.utils import _safe_indexing

    if isinstance(data, (pa.Table, pa.RecordBatch, pa.Array, pa.ChunkedArray)):
        return data.take(pa.array(rows))
    return _safe_indexing(data, rows)


def is_collection(data: Any) -> bool:
    """Tell whether data is a collection of things, and nothing else.

    A list, an iterator and the values of a dict are collections.  Text, a mapping, a set, an array, a series and a
    table are not.
    """
    if isinstance(data, (list, tuple)):
        return True
    if not isinstance(data, Iterable) or isinstance(data, (str, bytes, Mapping, Set)):
        return False
    return not any(map(partial(hasattr, data), READABLE))


def is_of_dask(data: Any, types: tuple[str, ...] = _OF_DASK) -> bool:
    """Tell whether data is a frame or series of Dask, or anything else that Dask has not computed yet."""
    for base in type(data).__mro__:
        if base.__name__ in types and base.__module__.split(".")[0] in ("dask", "dask_expr", "distributed"):
            return True
    return False


def is_partitioned(data: Any) -> bool:
    """Tell whether data is in partitions of Dask: a frame, a promise, or a list of promises."""
    if isinstance(data, (list, tuple)):
        return bool(data) and is_of_dask(data[0], _PROMISES)
    return is_of_dask(data)


def engine_holding(data: Any) -> str | None:
    """Name the engine that holds a table in partitions; None if this process does.

    Raises
    ------
    TypeError
        For a frame of pandas on Spark.

    Examples
    --------
    >>> import pandas as pd
    >>> from dask.dataframe import from_pandas
    >>> from gpu_encode.tables.frames import engine_holding
    >>> table = pd.DataFrame({"shop": ["a", "b"]})
    >>> engine_holding(from_pandas(table, npartitions=1)), engine_holding(table)
    ('dask', None)
    """
    if is_partitioned(data):
        return "dask"
    for base in type(data).__mro__:
        for engine, (module, name) in _TABLES_OF.items():
            if base.__name__ == name and base.__module__.startswith(module):
                if engine == "pandas on Spark":
                    raise TypeError(
                        "X is a DataFrame of pandas on Spark, whose index Spark may number anew in each pass. Give "
                        'X.to_spark(), or X.to_spark(index_col="id") if the index identifies rows, and y as the name '
                        'of a column, y="...".'
                    )
                return engine
    return None


def refuse_dask(data: Any, name: str) -> None:
    """Raise TypeError if data is a frame or series of Dask, or anything else that Dask has not computed yet."""
    if is_of_dask(data):
        raise TypeError(
            f"{name} is a {type(data).__name__} of Dask, without rows yet, but other data is not of Dask. Give X, y, "
            "sample_weight and groups all as Dask frames and series of the same partitions, or as lists of Delayed "
            f"objects, one for each partition; or compute them first: {name.partition('[')[0]} = dask.compute(...)."
        )


def refuse_sparse(data: Any, name: str) -> None:
    """Raise TypeError if data is one of SciPy's sparse containers."""
    if hasattr(data, "nnz") and hasattr(data, "tocsr"):
        raise TypeError(
            f"Sparse data was passed, but dense data is required: {name} is sparse, but categories cannot be. "
            "Convert it to a dense array with .toarray()."
        )


def _read_frame(data: Any, is_lazy: bool) -> Frame | None:
    if is_series(data):
        raise _not_two_dimensional((len(data),), data)
    eager = None if is_lazy else _read_known(data)
    if eager is None and isinstance(from_native(data, pass_through=True), nw.LazyFrame):
        of_spark = engine_holding(data) == "spark"
        instead = "Call .toArrow() first; but fit, fit_transform and transform of an encoder take it unchanged."
        if not of_spark:
            call = "collect" if hasattr(data, "collect") else "to_arrow_table"
            instead = f"Call .{call}() first, or give it to encode_dataset, which takes it in chunks."
        raise TypeError(f"X is a lazy {type(data).__name__} without rows yet. {instead}")
    return eager or _read_protocol(data)


def _read_known(data: Any) -> Frame | None:
    if devices.is_cudf_frame(data):
        return Frame(data, "cudf", data.shape, list(data.columns))
    if (frame := _of_pandas_or_polars(data)) is not None:
        return frame
    if isinstance(data, (pa.Table, pa.RecordBatch)):
        kind = "pyarrow" if isinstance(data, pa.Table) else "pyarrow_batch"
        return Frame(data, kind, (data.num_rows, data.num_columns), list(data.schema.names))
    if _MODULE.is_into_dataframe(data):
        eager = from_native(data, eager_only=True)
        return Frame(eager, "other", eager.shape, list(eager.columns))
    return None


def _of_pandas_or_polars(data: Any) -> Frame | None:
    if _MODULE.is_pandas_dataframe(data):
        return Frame(data, "pandas", data.shape, list(data.columns))
    if _MODULE.is_polars_dataframe(data):
        return Frame(data, "polars", data.shape, list(data.columns))
    return None


def _read_protocol(data: Any) -> Frame | None:
    if hasattr(data, "__arrow_c_stream__"):
        return _read_known(pa.table(data))
    if hasattr(data, "__dataframe__"):
        from pyarrow.interchange import from_dataframe

        return _read_known(from_dataframe(data))
    return None


def is_series(data: Any) -> bool:
    """Tell whether data is a vector of a frame library: a series, an index, a column of Arrow."""
    return (
        isinstance(data, (pa.Array, pa.ChunkedArray))
        or devices.is_cudf_vector(data)
        or bool(_MODULE.is_into_series(data) or _MODULE.is_pandas_index(data) or _MODULE.is_narwhals_series(data))
    )


def _read_array(data: Any) -> Frame:
    if devices.on_gpu(data):
        matrix = device_columns.adopt(data, "X")
        if matrix.ndim != 2:
            raise _not_two_dimensional(matrix.shape, matrix)
        return Frame(matrix, "cupy", matrix.shape)
    array = to_array(data, "X")
    columns.check_real("X", array)
    if array.ndim != 2:
        raise _not_two_dimensional(array.shape, array)
    return Frame(array, "numpy", array.shape)


def _not_two_dimensional(shape: tuple[int, ...], found: object) -> ValueError:
    """Error, in scikit-learn's words, for data that is not a table."""
    if len(shape) > 2:
        return ValueError(f"Found array with dim {len(shape)}, while dim 2 is required: one row per sample.")
    what = "1D" if len(shape) == 1 else "scalar"
    name = getattr(found, "name", None)
    as_table = f" One column of a frame is a table as X[[{name!r}]]." if isinstance(name, str) and name else ""
    return ValueError(
        f"Expected 2D array, got {what} array instead:\narray={found}.\n"
        "Reshape your data either using array.reshape(-1, 1) if your data has a single feature or "
        f"array.reshape(1, -1) if it contains a single sample.{as_table}"
    )


def to_array(data: Any, name: str) -> Any:
    """Turn an array or nested lists into a NumPy array; values keep their types."""
    if isinstance(data, np.ndarray):
        return data
    if isinstance(data, dict) or (isinstance(data, (list, tuple)) and any(isinstance(row, dict) for row in data)):
        raise TypeError(
            f"{name} holds dicts, not a table. Build one first: pandas.DataFrame(rows) or "
            "pyarrow.Table.from_pylist(rows)."
        )
    if isinstance(data, (str, bytes, PathLike)):
        if name == "X":
            raise TypeError(
                f"X is {str(data)!r}, which is not a table. Read the file first, or encode it directly: "
                "gpu_encode.encode_dataset(source, destination, encoder, target=...)."
            )
        raise TypeError(
            f"{name} is {str(data)!r}, which is not a vector. Give one value for each row of X: if this is a name, "
            f"the values of the column of this name, such as table[{str(data)!r}]."
        )
    if data is None or not (isinstance(data, (list, tuple, float, int)) or hasattr(data, "__array__")):
        raise TypeError(
            f"{name} of type {type(data).__name__} is not understood. Give a NumPy array, a list, or a pandas, polars "
            "or pyarrow object."
        )
    try:
        array = np.asarray(data)
    except ValueError:
        raise _ragged_rows(name) from None
    if not isinstance(data, (list, tuple)) or array.dtype.kind not in "fUS":
        return array
    # NumPy turns [1, "a"] into text, and a large integer in a list with 0.5 into another number.
    objects = np.array(data, dtype=object)
    if array.dtype.kind == "f" and bool(np.all((objects == array) | (objects != objects))):  # noqa: PLR0124 - NaN
        return array
    return objects


def _ragged_rows(name: str) -> ValueError:
    """Error for a list of rows of different lengths."""
    held = "column" if name == "X" else "target"
    return ValueError(f"{name} is a list whose rows have different lengths. Give every row one value per {held}.")


def assemble(frame: Frame, names: list[str], arrays: list[Array], passed: list[int], kind: str | None) -> Any:
    """Make a table of new columns, then columns of `frame` by position, in its own library or another."""
    if kind == "pandas" and frame.wrap is devices.accelerate:
        # The user sees such a table as a pandas frame already, so it stays on its device.
        kind = None
    labelled, named = any(isinstance(array, pa.Array) for array in arrays), {at: frame.label(at) for at in passed}
    is_own_kind = kind is None or kind == frame.kind
    wanted = frame.kind if kind is None else kind
    if labelled and wanted in ("cupy", "cudf"):
        raise ValueError(
            "Only frames of the host can hold encodings that are text or dates. Take set_output(transform='pandas') or "
            "'polars', or leave such statistics out."
        )
    if wanted == "cupy":
        return device_columns.assemble_matrix(arrays, frame.native, passed)
    if wanted == "cudf":
        table: Any = cudf.assemble(frame.native, names, arrays, named)
        return frame.wrap(table) if frame.wrap is not None and is_own_kind else table
    if arrays and not labelled and not isinstance(arrays[0], np.ndarray):
        arrays = device_columns.here(arrays)
    if frame.kind == "cupy":
        frame = replace(frame, native=device_columns.to_host(frame.native), kind="numpy")
    if frame.kind == "cudf":
        rest, kind = cudf.pick(frame.native, named), "pandas" if wanted == "pandas" else "pyarrow"
        # pandas also needs the index.
        native = rest.to_pandas() if kind == "pandas" else rest.to_arrow(preserve_index=False)
        frame, passed = replace(frame, native=native, kind=kind), list(range(len(passed)))
    if wanted == "numpy":
        table = _numpy(frame, arrays, passed)
    elif wanted in _BUILDERS:
        table = _BUILDERS[wanted](frame, names, arrays, passed)
    else:
        raise ValueError(
            f"kind {kind!r} of table is not known. Use one of {', '.join(map(repr, ['numpy', *_BUILDERS]))}."
        )
    return frame.wrap(table) if frame.wrap is not None and is_own_kind else table


def _numpy(frame: Frame, arrays: list[Array], passed: list[int]) -> Array:
    if not passed and (matrix := columns.matrix_of(arrays)) is not None:
        return matrix
    every = [*map(as_numpy, arrays), *(_as_numpy(frame, position) for position in passed)]
    dtype = np.result_type(*every) if all(column.dtype.kind in "biuf" for column in every) else np.dtype(object)
    if columns.rounded_integer(every, dtype) is not None:
        dtype = np.dtype(object)
    table = np.empty((frame.n_rows, len(every)), dtype, order="F")
    for position, column in enumerate(every):
        # If an array were assigned, nanoseconds would become plain integers; a list keeps them.
        table[:, position] = list(column) if column.dtype.kind in "mM" else column
    return table


def _as_numpy(frame: Frame, position: int) -> Array:
    native = frame.native_column(position)
    if frame.kind in ("pyarrow", "pyarrow_batch"):
        return np.asarray(native.to_numpy(zero_copy_only=False))
    return np.asarray(native if frame.kind == "numpy" else native.to_numpy())


def _pandas(frame: Frame, names: list[str], arrays: list[Array], passed: list[int]) -> Any:
    import pandas as pd

    index = frame.native.index if frame.kind == "pandas" else pd.RangeIndex(frame.n_rows)
    matrix = columns.matrix_of(arrays)
    if matrix is not None:
        encoded = pd.DataFrame(matrix, index=index, columns=names, copy=False)
    else:
        encoded = pd.DataFrame(dict(zip(names, map(_for_pandas, arrays), strict=True)), index=index, copy=False)
    if passed:
        rest = _called(frame, passed) if frame.kind == "pandas" else _select(frame, passed, "pandas").to_pandas()
        encoded = pd.concat([encoded, rest], axis=1) if names else rest
    if frame.kind == "pandas":
        if frame.native.columns.nlevels == 1 and frame.native.columns.name is not None:
            encoded.columns = encoded.columns.rename(frame.native.columns.name)
        encoded.attrs = frame.native.attrs
    return encoded


def _for_pandas(array: Any) -> Any:
    """Give an Arrow array in the form of pandas; other arrays do not change."""
    return array.to_pandas().array if isinstance(array, pa.Array) else array


def _polars(frame: Frame, names: list[str], arrays: list[Array], passed: list[int]) -> Any:
    import polars as pl

    held = [pl.from_arrow(array) if isinstance(array, pa.Array) else np.ascontiguousarray(array) for array in arrays]
    encoded = pl.DataFrame(dict(zip(names, held, strict=True)))
    if not passed:
        return encoded
    # Selection by an index in brackets would give a name to a column without one.
    rest = (
        frame.native.select(pl.nth(passed)) if frame.kind == "polars" else _select(frame, passed, "polars").to_polars()
    )
    return encoded.hstack(rest) if names else rest


def _pyarrow(frame: Frame, names: list[str], arrays: list[Array], passed: list[int]) -> Any:
    columns: list[Any] = [array if isinstance(array, pa.Array) else pa.array(array) for array in arrays]
    fields = [pa.field(name, column.type) for name, column in zip(names, columns, strict=True)]
    metadata: dict[bytes, bytes] = {}
    if frame.kind in ("pyarrow", "pyarrow_batch"):
        fields += [frame.native.schema.field(position) for position in passed]
        columns += [frame.native.column(position) for position in passed]
        # pandas' metadata describe the old columns.
        metadata = {key: text for key, text in (frame.native.schema.metadata or {}).items() if key != b"pandas"}
    elif passed:
        rest = _select(frame, passed, "pyarrow").to_arrow()
        fields += [rest.schema.field(position) for position in range(len(passed))]
        columns += rest.columns
    return pa.Table.from_arrays(columns, schema=pa.schema(fields, metadata=metadata or None))


def _batch(frame: Frame, names: list[str], arrays: list[Array], passed: list[int]) -> Any:
    table = _pyarrow(frame, names, arrays, passed)
    columns = [column.combine_chunks() for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


def _other(frame: Frame, names: list[str], arrays: list[Array], passed: list[int]) -> Any:
    rest = frame.native[:, passed]
    rest = rest.rename(dict(zip(rest.columns, map(frame.label, passed), strict=True)))
    if not names:
        return nw.to_native(rest)
    held = dict(zip(names, map(_for_pandas, arrays), strict=True))
    encoded = nw.from_dict(held, backend=frame.native.implementation)
    return nw.to_native(nw.concat([encoded, rest], how="horizontal") if passed else encoded)


def _called(frame: Frame, passed: list[int]) -> Any:
    """Give columns of a pandas frame with the names of the output."""
    rest, labels = frame.native.iloc[:, passed], [frame.label(position) for position in passed]
    return rest if labels == list(rest.columns) else rest.set_axis(labels, axis=1)


def _select(frame: Frame, passed: list[int], kind: Literal["pandas", "polars", "pyarrow"]) -> Any:
    """Give columns of a frame as a narwhals frame, which can convert a frame of one library to another.

    Columns of an array become a frame of the wanted library.
    """
    if frame.kind == "numpy":
        names = frame.labels or [f"x{position}" for position in range(frame.n_columns)]
        held = {names[position]: np.ascontiguousarray(frame.native[:, position]) for position in passed}
        return nw.from_dict(held, backend=kind)
    if frame.kind == "pandas":
        return from_native(_called(frame, passed).reset_index(drop=True), eager_only=True)
    if frame.kind == "other":
        return frame.native[:, passed]
    native = pa.Table.from_batches([frame.native]) if frame.kind == "pyarrow_batch" else frame.native
    return from_native(native, eager_only=True)[:, passed]


_READERS: dict[str, Callable[[Any], Column]] = {
    "numpy": columns.from_numpy,
    "pandas": columns.from_pandas,
    "polars": columns.from_polars,
    "pyarrow": columns.from_arrow,
    "pyarrow_batch": columns.from_arrow,
    "other": lambda series: columns.from_arrow(series.to_arrow()),
}
_BUILDERS: dict[str, Callable[[Frame, list[str], list[Array], list[int]], Any]] = {
    "pandas": _pandas,
    "polars": _polars,
    "pyarrow": _pyarrow,
    "pyarrow_batch": _batch,
    "other": _other,
}
