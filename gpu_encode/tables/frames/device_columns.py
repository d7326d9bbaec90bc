"""Arrays and columns in a GPU's memory: share them, turn them into codes, move them to the host, join them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from cpu_fallback.types import MISSING, Array
from gpu_encode.seam import devices
from gpu_encode.seam.ops import Ops, host, memory_of, put, through
from gpu_encode.tables.categories import strings, values
from gpu_encode.tables.categories.vocabulary import FactorizedColumn, Vocabulary
from gpu_encode.tables.frames import columns, factorizing
from gpu_encode.tables.frames.columns import Column
from gpu_encode.words.errors.values import infinite_value, unsupported_type

NUMBERS = "biuf"


def adopt(data: Any, role: str) -> Array:
    """Give a CuPy array that shares the memory of anything on a GPU (`__cuda_array_interface__` or DLPack)."""
    devices.choose("auto", data)  # this raises an error that says what is missing for a GPU
    array: Array = devices.cuda().adopt(data)
    if array.dtype.kind not in NUMBERS:
        raise unsupported_type(role, str(array.dtype))
    return array


def to_host(array: Array) -> Array:
    """Give a NumPy copy of a CuPy array; give an array of the host unchanged."""
    return array if isinstance(array, np.ndarray) else devices.cuda().to_host(array)


def assemble_matrix(arrays: list[Array], native: Array, passed: list[int]) -> Array:
    """Make a matrix of encoded columns and of columns that pass through, in one type that holds them all."""
    encoded = there(arrays)
    if encoded and not passed:
        matrix = columns.matrix_of(encoded)
        return np.stack(encoded, axis=1) if matrix is None else matrix
    kept = [native[:, position] for position in passed]
    dtype = np.result_type(*(column.dtype for column in [*encoded, *kept]))
    if (largest := columns.rounded_integer(kept, dtype)) is not None:
        raise ValueError(
            f"A column that passes through holds {largest}, which {dtype!s} encodings beside it cannot hold "
            "exactly. Pass a frame, whose columns have types of their own, or leave the column out."
        )
    cast = devices.cuda().cast
    return np.stack([cast(column, dtype) for column in [*encoded, *kept]], axis=1)


def there(arrays: list[Array]) -> list[Array]:
    """Give columns on the GPU; columns of the host are moved there as one matrix."""
    if not arrays or not isinstance(arrays[0], np.ndarray):
        return arrays
    matrix = devices.cuda().to_device(np.stack(arrays)).T
    return [matrix[:, position] for position in range(len(arrays))]


def here(arrays: list[Array]) -> list[Array]:
    """Give columns on the host; columns of a GPU are moved there as one matrix."""
    matrix = np.empty((len(arrays[0]), len(arrays)), arrays[0].dtype, order="F")
    for position, array in enumerate(arrays):
        matrix[:, position] = to_host(array)
    return [matrix[:, position] for position in range(len(arrays))]


@dataclass(frozen=True, eq=False)
class DeviceColumn:
    """Rows of one column in a GPU's memory.

    Parameters
    ----------
    rows : CuPy array or Strings
        The data that distinguish values: numbers, ticks of dates and times, unscaled decimals, text or other bytes, or
        codes.
    nulls : bool array, optional
        True for rows that are null, whatever `rows` holds there; None if no row is null.
    type : pyarrow.DataType, optional
        Type of the values that `rows` stand for; None if `rows` are the numbers themselves.
    entries : Column, optional
        The values that codes stand for, on the host.
    """

    rows: Any
    nulls: Array | None = None
    type: Any = None
    entries: Column | None = None

    @property
    def holds_strings(self) -> bool:
        """Whether the rows are bytes of any length."""
        return hasattr(self.rows, "characters")

    @property
    def holds_numbers(self) -> bool:
        """Whether the rows are the values themselves."""
        return self.type is None and self.entries is None

    def present(self) -> Any:
        """Mask of the rows that are not null; strings have no such array."""
        return self.rows if self.nulls is None else self.rows[~self.nulls]


def keys(column: DeviceColumn, name: object, ops: Ops) -> FactorizedColumn:
    """Give codes (int32; -1 for null and NaN) and sorted vocabulary of a column."""
    if column.holds_numbers:
        present, nulls = present_numbers(column, name)
        codes, distinct = ops.factorize(present)
        vocabulary = Vocabulary(values.from_numpy(ops.to_host(distinct), name))
        return FactorizedColumn(spread(codes, nulls, ops), vocabulary, nulls is None)
    codes, entries = number_rows(column, ops)
    if column.holds_strings and values.is_text(column.type):
        # The device has sorted the values, which takes almost no time there.
        return FactorizedColumn(codes, Vocabulary(values.from_arrow(entries.data)))
    indices, vocabulary, _ = factorizing.keys(entries, name, host(len(entries)))
    return FactorizedColumn(through(indices, codes, ops), vocabulary)


def lookup(column: DeviceColumn, name: object, vocabulary: Vocabulary, ops: Ops) -> Array:
    """Give the index (int32) of each row's value in a vocabulary: -1 for null and NaN, -2 if it is absent."""
    if column.holds_numbers:
        return lookup_numbers(column, name, vocabulary, ops)
    if column.holds_strings and vocabulary.kind == "text" and values.is_text(column.type):
        known = upload_strings(vocabulary, ops)
        return devices.cuda().strings.lookup_strings(column.rows, known, column.nulls)
    codes, entries = number_rows(column, ops)
    return through(factorizing.lookup(entries, name, vocabulary, host(len(entries))), codes, ops)


def lookup_numbers(column: DeviceColumn, name: object, vocabulary: Vocabulary, ops: Ops) -> Array:
    """Look up numbers as they are, if the vocabulary has their type; else look up their distinct values."""
    present, nulls = present_numbers(column, name)
    fitted = vocabulary.values.array
    if vocabulary.kind == "number" and vocabulary.is_sorted and comparable(present.dtype, fitted.dtype):
        return spread(ops.lookup(present, fitted), nulls, ops)
    codes, distinct = ops.factorize(present)
    indices = vocabulary.positions(values.from_numpy(ops.to_host(distinct), name), name)
    return spread(through(indices, codes, ops), nulls, ops)


def whole_numbers(column: DeviceColumn) -> tuple[Array, str] | None:
    """Give whole numbers, if none of them is null, and the name of their type; None for any other column."""
    if not column.holds_numbers or column.nulls is not None or column.rows.dtype.kind not in "iu":
        return None
    return column.rows, values.numpy_name(column.rows.dtype)


def whole_numbers_of(column: DeviceColumn, vocabulary: Vocabulary) -> Array | None:
    """Give whole numbers without nulls that can be looked up in a vocabulary as they are; None for any other column."""
    fitted = vocabulary.values.array
    if whole_numbers(column) is None:
        return None
    known = vocabulary.kind == "number" and vocabulary.is_sorted and comparable(column.rows.dtype, fitted.dtype)
    return column.rows if known else None


def comparable(given: "np.dtype[Any]", fitted: "np.dtype[Any]") -> bool:
    """Tell whether numbers can be looked up as they are: the types are equal, or the fitted type holds all integers."""
    return given == fitted or (given.kind == fitted.kind and given.kind in "iu" and given.itemsize < fitted.itemsize)


def number_rows(column: DeviceColumn, ops: Ops) -> tuple[Array, Column]:
    """Give the code of each row (-1 for null), and the distinct values, on the host."""
    if column.holds_strings:
        codes, distinct = devices.cuda().strings.factorize_strings(column.rows, column.nulls)
        return codes, columns.from_arrow(strings_as_arrow(distinct, column.type))
    codes, distinct = ops.factorize(column.present())
    return spread(codes, column.nulls, ops), decode(column, ops.to_host(distinct))


def decode(column: DeviceColumn, held: Array, nulls: Array | None = None) -> Column:
    """Give the values that codes stand for, on the host."""
    if column.entries is not None:
        codes = held.astype(np.int32)
        codes = codes if nulls is None else np.where(nulls, np.int32(MISSING), codes)
        return Column(column.entries.data, column.entries.nulls, codes)
    return Column(held, nulls) if column.type is None else columns.from_arrow(as_arrow(held, column.type, nulls))


def upload_strings(vocabulary: Vocabulary, ops: Ops) -> Any:
    """Give the texts of a vocabulary on the device, ready to be looked up; they stay there for the next call."""
    prepared, memory = vocabulary.prepared, memory_of(ops)
    if memory not in prepared:
        on_device = devices.cuda().strings
        offsets, characters = strings.buffers_of(vocabulary.values.array)
        prepared[memory] = on_device.prepare(on_device.strings_to_device(offsets, characters))
    return prepared[memory]


def present_numbers(column: DeviceColumn, name: object) -> tuple[Array, Array | None]:
    """Give the numbers that are neither null nor NaN, and which rows have them (None: all); infinity is an error."""
    present, nulls = column.present(), column.nulls
    # The smallest and the largest show NaN and infinity without a temporary array.
    if present.dtype.kind != "f" or not len(present) or bool(np.isfinite(present.min()) & np.isfinite(present.max())):
        return present, nulls
    infinite = np.isinf(present)
    if bool(infinite.any()):
        row = int(infinite.argmax())
        raise infinite_value(name, row if nulls is None else int(np.flatnonzero(~nulls)[row]))
    missing = np.isnan(column.rows) if nulls is None else nulls | np.isnan(column.rows)
    return column.rows[~missing], missing


def spread(codes: Array, nulls: Array | None, ops: Ops) -> Array:
    """Give the codes of all rows from the codes of the rows that are not null."""
    if nulls is None:
        return codes
    every = ops.empty((len(nulls),), np.int32)
    every[...] = MISSING
    done = 0
    # This is done in tiles, so that the row numbers of all rows never exist at once.
    for start in range(0, len(nulls), ops.TILE):
        rows = np.flatnonzero(~nulls[start : start + ops.TILE])
        put(every[start : start + ops.TILE], rows, codes[done : done + len(rows)])
        done += len(rows)
    return every


def column_to_host(column: DeviceColumn) -> Column:
    """Copy a column to the host."""
    nulls = None if column.nulls is None else to_host(column.nulls)
    if column.holds_strings:
        return columns.from_arrow(strings_as_arrow(column.rows, column.type, nulls))
    return decode(column, to_host(column.rows), nulls)


def as_arrow(held: Array, type_: Any, nulls: Array | None = None) -> Any:
    """Make an Arrow array of ticks or of unscaled decimals."""
    if pa.types.is_decimal(type_):
        # Each has 16 bytes, the lower half first; the upper half repeats the sign.
        halves = np.empty((len(held), 2), np.int64)
        halves[:, 0], halves[:, 1] = held, held.astype(np.int64) >> 63
        held = halves
    stored = np.ascontiguousarray(held)
    return pa.Array.from_buffers(type_, len(held), [validity(nulls), pa.py_buffer(stored)])


def strings_as_arrow(rows: Any, type_: Any, nulls: Array | None = None) -> Any:
    """Make an Arrow array, on the host, of strings on a device."""
    offsets, characters = devices.cuda().strings.strings_to_host(rows)
    held = [characters] if pa.types.is_decimal(type_) else [offsets, characters]
    return pa.Array.from_buffers(type_, rows.n_rows, [validity(nulls), *map(pa.py_buffer, held)])


def validity(nulls: Array | None) -> Any:
    """Give Arrow's bits, which are set for rows that are not null."""
    return None if nulls is None else pa.py_buffer(np.packbits(~nulls, bitorder="little"))
