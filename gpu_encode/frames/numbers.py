"""Columns of numbers: what is told of their type, and their values as NumPy's, where they are no dictionary's."""

from typing import Any

import numpy as np
import pyarrow as pa

from cpu_fallback.types import Array
from gpu_encode.categories import values as typed
from gpu_encode.categories.vocabulary import Vocabulary
from gpu_encode.errors.values import infinite_value
from gpu_encode.frames.columns import Column
from gpu_encode.frames.dictionaries import Place


def is_number(data: Any) -> bool:
    """Whether a column's data are numbers, truth values among them."""
    if isinstance(data, np.ndarray):
        return data.dtype.kind in "biuf"
    return bool(pa.types.is_boolean(data.type) or pa.types.is_integer(data.type) or pa.types.is_floating(data.type))


def present_numbers(column: Column, place: Place) -> tuple[Array, Array | None]:
    """Numbers that are not null, and which rows are (None: none is); infinity is an error."""
    data, nulls = column.data, column.nulls
    if not isinstance(data, np.ndarray):
        nulls = data.is_null().to_numpy(zero_copy_only=False) if data.null_count else None
        data = to_numpy(data.drop_null() if data.null_count else data)
    elif nulls is not None:
        data = data[~nulls]
    # Smallest and largest tell of NaN and infinity without a temporary.
    if data.dtype.kind != "f" or not len(data) or (np.isfinite(data.min()) and np.isfinite(data.max())):
        return data, nulls
    if (infinite := np.isinf(data)).any():
        row = int(infinite.argmax())
        raise infinite_value(place.column, place.row(row if nulls is None else int(np.flatnonzero(~nulls)[row])))
    not_numbers = np.isnan(data)
    if nulls is None:
        return data[~not_numbers], not_numbers
    every = nulls.copy()
    every[~nulls] = not_numbers
    return data[~not_numbers], every


def to_numpy(array: Any) -> Array:
    """NumPy array of an Arrow array without null, chunked or not; the same memory where it can be."""
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    return array.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def whole_numbers(column: Column, name: object) -> tuple[Array, str] | None:
    """Whole numbers of every row, as int64 or uint64, and the name of their type; None of any other column."""
    data = column.data
    if column.codes is not None or column.nulls is not None:
        return None
    if not isinstance(data, np.ndarray):
        data = to_numpy(data) if pa.types.is_integer(data.type) and not data.null_count else None
    if data is None or data.dtype.kind not in "iu":
        return None
    return typed.number_storage(data, name), typed.numpy_name(data.dtype)


def are_numbers_of(column: Column, vocabulary: Vocabulary) -> bool:
    """Whether a column holds numbers of the type of a vocabulary, and rows enough."""
    fitted = vocabulary.values.array
    if vocabulary.kind != "number" or len(column) < len(vocabulary) or column.codes is not None:
        return False
    if fitted.dtype.kind not in "iuf" or not vocabulary.is_sorted or not is_number(column.data):
        return False
    given = column.data.dtype if isinstance(column.data, np.ndarray) else column.data.type.to_pandas_dtype()
    return bool(np.dtype(given).kind == fitted.dtype.kind)


def comparable_numbers(column: Column, name: object, vocabulary: Vocabulary) -> Array | None:
    """Whole numbers of every row that those of a vocabulary can be compared with; None of any other column."""
    if not are_numbers_of(column, vocabulary):
        return None
    found = whole_numbers(column, name)
    return None if found is None else found[0]
