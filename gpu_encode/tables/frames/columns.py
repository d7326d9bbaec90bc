"""One column of any library on the host: its rows in the library's own form, and as plain NumPy values."""

import contextlib
import datetime
import json
import re
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cpu_fallback.types import Array
from gpu_encode.seam.loading import LOADING
from gpu_encode.tables.categories import objects
from gpu_encode.tables.categories import values as typed
from gpu_encode.tables.categories.values import NOT_A_TIME

# Types that pyarrow cannot compute with, cannot import, or would import as another type.
_POLARS_BY_VALUE = ("Int128", "UInt128", "Object")
# The Arrow types of pandas intervals and periods.
OF_PANDAS = ("pandas.interval", "pandas.period")
# The key of pandas' note in the metadata of a schema, and columns of the levels of an index that have no name.
NOTE, UNNAMED_LEVEL = b"pandas", re.compile(r"__index_level_\d+__")


@dataclass(frozen=True, eq=False)
class Column:
    """Rows of one column in its library's own form.

    Parameters
    ----------
    data : ndarray, pyarrow.Array or pyarrow.ChunkedArray
        The rows; if there are codes, the entries of the dictionary.
    nulls : bool array, optional
        True for rows that are null, whatever `data` holds there.
    codes : int32 array, optional
        Entry of each row; -1 for null.
    all_used : bool
        Whether it is known that every entry occurs in some row.
    """

    data: Any
    nulls: Array | None = None
    codes: Array | None = None
    all_used: bool = False

    def __len__(self) -> int:
        return len(self.data if self.codes is None else self.codes)


def from_numpy(array: Any) -> Column:
    """Read a one-dimensional NumPy array, masked or not."""
    if isinstance(array, np.ma.MaskedArray):
        masked = np.ma.getmaskarray(array)
        return Column(np.asarray(array.data), masked if masked.any() else None)
    # Other libraries know NumPy's variable-width strings only as objects.
    return Column(array.astype(object) if array.dtype.kind == "T" else array)


def from_arrow(array: Any) -> Column:
    """Read an Arrow array, chunked or not; a dictionary array becomes codes and entries."""
    if isinstance(array.type, pa.BaseExtensionType) and not array.type.extension_name.startswith("pandas."):
        array = array.cast(array.type.storage_type)
    if pa.types.is_run_end_encoded(array.type):
        array = pa.chunked_array([pc.run_end_decode(part) for part in _chunks(array)], array.type.value_type)
    if pa.types.is_decimal(array.type) and array.type.bit_width < 128:
        array = array.cast(pa.decimal128(array.type.precision, array.type.scale))
    if not pa.types.is_dictionary(array.type):
        return Column(array)
    codes, entries = _join_dictionaries(array)
    return Column(entries, codes=codes)


def _chunks(array: Any) -> list[Any]:
    return list(array.chunks) if isinstance(array, pa.ChunkedArray) else [array]


def _join_dictionaries(array: Any) -> tuple[Array, Any]:
    """Give codes and entries of an array whose chunks have different dictionaries; the entries are concatenated.

    Arrow's own unification refuses null entries; repeated entries do no harm here.
    """
    entries: list[Any] = []
    codes: list[Array] = [np.zeros(0, np.int32)]
    start = 0
    for part in _chunks(array):
        if not entries or not _same(entries[-1], part.dictionary):
            start = sum(map(len, entries))
            entries.append(part.dictionary)
        indices = _codes(part.indices)
        lowest, highest = (int(indices.min()), int(indices.max())) if len(indices) else (0, -1)
        if lowest < -1 or highest >= len(part.dictionary):
            raise ValueError(
                f"a dictionary column of X has the index {lowest if lowest < -1 else highest}, but its dictionary has "
                f"{len(part.dictionary)} entries. The array is damaged: array.validate(full=True) of pyarrow says "
                "where."
            )
        codes.append(np.where(indices < 0, indices, indices + np.int32(start)) if start else indices)
    every = entries[0] if len(entries) == 1 else pa.concat_arrays([pa.array([], array.type.value_type), *entries])
    return codes[1] if len(codes) == 2 else np.concatenate(codes), every


def _same(one: Any, other: Any) -> bool:
    """Tell whether two arrays are equal; chunks of one file often have the same address, which is compared first."""
    memory = [
        (len(array), array.offset, [buffer and buffer.address for buffer in array.buffers()]) for array in (one, other)
    ]
    return bool(memory[0] == memory[1] or one.equals(other))


def load_what_arrays_need() -> None:
    """Make an Arrow array: at the first one, Arrow loads pandas if it is installed."""
    pa.array(())


def dictionary_parts(encoded: Any) -> tuple[Array, Any]:
    """Give the codes (int32, -1 for null) and the entries of a dictionary array whose chunks share one dictionary."""
    if not isinstance(encoded, pa.ChunkedArray):
        return _codes(encoded.indices), encoded.dictionary
    parts = _chunks(encoded)
    if not parts:
        return np.zeros(0, np.int32), pa.array([], encoded.type.value_type)
    codes = [_codes(part.indices) for part in parts]
    # A chunk without rows may have a shorter dictionary; the longest one serves all chunks.
    entries = max((part.dictionary for part in parts), key=len)
    return codes[0] if len(codes) == 1 else np.concatenate(codes), entries


def _codes(indices: Any) -> Array:
    whole = indices.cast(pa.int32())
    return (whole.fill_null(-1) if whole.null_count else whole).to_numpy()


def from_pandas(series: Any) -> Column:
    """Read a pandas Series or Index."""
    dtype = series.dtype
    values = series.array
    if type(dtype).__name__ == "CategoricalDtype":
        # Arrow does not have a type for every kind of categories.
        entries = from_pandas(dtype.categories)
        codes = np.asarray(values.codes).astype(np.int32, copy=False).view()
        codes.flags.writeable = False  # the memory may be the caller's
        return Column(entries.data, entries.nulls, codes)
    if isinstance(dtype, np.dtype):
        return from_numpy(series.to_numpy())
    if type(dtype).__name__ == "SparseDtype":
        return from_numpy(np.asarray(values))
    return from_arrow(pa.array(values, from_pandas=True))


def from_polars(series: Any) -> Column:
    """Read a polars Series."""
    if type(series.dtype).__name__ in _POLARS_BY_VALUE:
        objects = np.empty(len(series), object)
        objects[:] = series.to_list()
        return Column(objects)
    return from_arrow(series.to_arrow())


def from_native(vector: Any) -> Column | None:
    """Read a series of any known library; None for anything else."""
    if isinstance(vector, np.ndarray):
        return from_numpy(vector)
    if isinstance(vector, (pa.Array, pa.ChunkedArray)):
        return from_arrow(vector)
    if nw.dependencies.is_narwhals_series(vector):
        vector = nw.to_native(vector)
    if nw.dependencies.is_pandas_series(vector) or nw.dependencies.is_pandas_index(vector):
        return from_pandas(vector)
    if nw.dependencies.is_polars_series(vector):
        return from_polars(vector)
    if nw.dependencies.is_into_series(vector):
        with LOADING:  # narwhals loads its module for a library at the first series of that library
            series = nw.from_native(vector, series_only=True)
        return from_arrow(series.to_arrow())
    return None


def is_number(data: Any) -> bool:
    """Tell whether a column's data are numbers or booleans."""
    if isinstance(data, np.ndarray):
        return data.dtype.kind in "biuf"
    return bool(pa.types.is_boolean(data.type) or pa.types.is_integer(data.type) or pa.types.is_floating(data.type))


def learn_types_of_pandas(schema: Any) -> bool:
    """Let Arrow learn the types of pandas intervals and periods; True if a type of this schema was unknown before."""
    names = {(one.metadata or {}).get(b"ARROW:extension:name") for one in schema}
    if names.isdisjoint({name.encode() for name in OF_PANDAS}):
        return False
    # Without pandas, periods are numbers and intervals are pairs of values; both may still pass through.
    with contextlib.suppress(ImportError):
        import_module("pandas.core.arrays.arrow.extension_types")
    return True


def read_note(schema: pa.Schema) -> dict[str, Any]:
    """Read pandas' note in a schema; give an empty dict if there is none, or if it is damaged."""
    try:
        note = json.loads((schema.metadata or {}).get(NOTE, b"{}"))
        for level in note["index_columns"]:
            if not isinstance(level, str):
                range(level["start"], level["stop"], level["step"])
        for entry in note["columns"]:
            entry["field_name"] = entry.get("field_name") or entry["name"]
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}
    return dict(note)


def index_of(schema: pa.Schema) -> list[str]:
    """List the columns that are the index of the frame that pandas wrote.

    Examples
    --------
    >>> index_of(pa.schema({"city": pa.string(), "__index_level_0__": pa.int64()}))
    ['__index_level_0__']
    """
    noted = read_note(schema).get("index_columns", ())
    return [name for name in schema.names if name in noted or UNNAMED_LEVEL.fullmatch(name)]


def is_categorical(column: Column) -> bool:
    """Tell whether a column is text, bytes, booleans, objects, a dictionary, or pandas intervals or periods."""
    if column.codes is not None:
        return True
    if isinstance(column.data, np.ndarray):
        return column.data.dtype.kind in "OUSb"
    kind = column.data.type
    known = typed.is_text(kind) or typed.is_binary(kind) or pa.types.is_boolean(kind)
    return known or getattr(kind, "extension_name", None) in OF_PANDAS


def to_numpy(array: Any) -> Array:
    """Turn an Arrow array without null, chunked or not, into a NumPy array; memory is shared if possible."""
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    return array.to_numpy(zero_copy_only=False)


def is_temporal(column: Column) -> bool:
    """Tell whether a column has a type of dates, times or durations."""
    if isinstance(column.data, np.ndarray):
        return column.data.dtype.kind in "Mm"
    return bool(pa.types.is_temporal(column.data.type))


def are_labels(column: Column) -> bool:
    """Tell whether a column of values holds text or dates, even as Python objects, and not numbers."""
    if is_temporal(column):
        return True
    if not isinstance(column.data, np.ndarray):
        return typed.is_text(column.data.type)
    if column.data.dtype.kind != "O":
        return column.data.dtype.kind in "US"
    first = next((value for value in column.data if not objects.is_null(value)), None)
    return isinstance(first, str | datetime.date | np.datetime64)


def drop_nulls(array: Any) -> tuple[Any, Array | None]:
    """Give the values of an Arrow array that are not null, and tell which rows are null (None: no row)."""
    if not array.null_count:
        return array, None
    return array.drop_null(), array.is_null().to_numpy(zero_copy_only=False)


def spread(present: Array, nulls: Array | None, blank: float) -> Array:
    """Give a value for each row: `present` for rows that are not null, and `blank` for all others."""
    if nulls is None:
        return present
    every = np.full(len(nulls), blank, present.dtype)
    every[~nulls] = present
    return every


def plain(column: Column) -> tuple[Array, Array]:
    """Give plain values of a column (numbers, dates and times as int64, others as objects), and tell which are null.

    A null is NaN among floats, None among objects, and 0 elsewhere.
    """
    if column.codes is not None:
        return _plain_dictionary(column, column.codes)
    data = column.data
    if not isinstance(data, np.ndarray):
        return _plain_arrow(data)
    nulls = np.zeros(len(data), bool) if column.nulls is None else column.nulls
    kind = data.dtype.kind
    if kind in "Mm":
        ticks, _ = typed.timestamp_storage(data, None)
        nulls = nulls | (ticks == NOT_A_TIME)
        return np.where(nulls, 0, ticks), nulls
    if kind == "f":
        return (np.where(nulls, np.nan, data) if nulls.any() else data), nulls | np.isnan(data)
    if kind in "biu":
        return (np.where(nulls, 0, data).astype(data.dtype) if nulls.any() else data), nulls
    values = data.astype(object)
    nulls = nulls | np.fromiter(map(objects.is_null, values), bool, len(values))
    values[nulls] = None
    return values, nulls


def _plain_arrow(data: Any) -> tuple[Array, Array]:
    if is_number(data) or (pa.types.is_temporal(data.type) and not pa.types.is_interval(data.type)):
        present, nulls = drop_nulls(data)
        numbers = to_numpy(present) if is_number(data) else typed.arrow_timestamps(present)[0]
        values = spread(numbers, nulls, np.nan if numbers.dtype.kind == "f" else 0)
        nulls = np.zeros(len(data), bool) if nulls is None else nulls
        return values, nulls | np.isnan(values) if values.dtype.kind == "f" else nulls
    values = np.empty(len(data), object)
    values[:] = data.to_pylist()
    return values, data.is_null().to_numpy(zero_copy_only=False)


def _plain_dictionary(column: Column, codes: Array) -> tuple[Array, Array]:
    entries, nulls = plain(Column(column.data, column.nulls))
    if not len(entries):
        return np.full(len(codes), None, object), np.ones(len(codes), bool)
    missing = (codes < 0) | nulls[codes]
    values = entries[codes]
    if missing.any():
        values[missing] = {"f": np.nan, "O": None}.get(values.dtype.kind, 0)
    return values, missing


def check_real(name: object, values: Any) -> None:
    """Raise for complex numbers, in scikit-learn's words."""
    if values.dtype.kind == "c":
        raise ValueError(f"Complex data not supported\n{name}={values}\n")


def matrix_of(arrays: list[Array]) -> Array | None:
    """Give the matrix of which the arrays are all columns, in order; None if there is no such matrix."""
    if not arrays:
        return None
    matrix: Any = getattr(arrays[0], "base", None)
    if getattr(matrix, "shape", None) != (len(arrays[0]), len(arrays)):
        return None
    start, (down, across) = address(matrix), matrix.strides
    for position, array in enumerate(arrays):
        if isinstance(array, pa.Array) or array.strides != (down,) or array.dtype != matrix.dtype:
            return None
        if address(array) != start + position * across:
            return None
    return matrix


def address(array: Any) -> int:
    """Give the address of an array's memory, on the host or on a GPU."""
    return array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr


def rounded_integer(columns: list[Array], dtype: np.dtype[Any]) -> int | None:
    """Give the largest magnitude in columns of integers if a type of floats cannot hold it exactly; otherwise None."""
    integers = [column for column in columns if column.dtype.kind in "iu" and len(column)]
    if dtype.kind != "f" or not integers:
        return None
    largest = max(abs(int(end)) for column in integers for end in (column.max(), column.min()))
    return largest if largest.bit_length() > np.finfo(dtype).nmant + 1 else None
