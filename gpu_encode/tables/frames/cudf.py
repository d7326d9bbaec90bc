"""Frames of cuDF: columns are read on the GPU, through pylibcudf, and encoded columns are added to a frame.

Nothing here computes.  A column of pylibcudf shows its buffers, which are those of Arrow: values, or offsets and
characters, and a bit for each row that is not null.  `from_pylibcudf` makes a frame of buffers.  Neither copies.
"""

from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa

from cpu_fallback.types import Array
from gpu_encode.seam import devices
from gpu_encode.tables.frames import device_columns
from gpu_encode.tables.frames.device_columns import DeviceColumn
from gpu_encode.words.errors.values import unsupported_type

# For pylibcudf's names of types: the type in which a value is held, and the type of the value itself.
NUMBERS = {
    "INT8": "i1",
    "INT16": "i2",
    "INT32": "i4",
    "INT64": "i8",
    "UINT8": "u1",
    "UINT16": "u2",
    "UINT32": "u4",
    "UINT64": "u8",
    "FLOAT32": "f4",
    "FLOAT64": "f8",
}
UNITS = {"SECONDS": "s", "MILLISECONDS": "ms", "MICROSECONDS": "us", "NANOSECONDS": "ns"}
DECIMALS = {"DECIMAL32": "i4", "DECIMAL64": "i8"}
# Decimals of 16 bytes are encoded like strings of bytes.
WIDE_DECIMAL = 16
OUTPUTS = {"float32": "FLOAT32", "float64": "FLOAT64"}


def column(series: Any, name: object) -> DeviceColumn:
    """Read a series or index, without a copy.

    Raises
    ------
    TypeError
        If the values cannot be categories, such as lists and structs.
    """
    devices.choose("auto", series)  # this raises an error that says what is missing for a GPU
    devices.cuda().wait_for_default_stream()
    held, dtype = _column_held(series), series.dtype
    if type(dtype).__name__ != "CategoricalDtype":
        return _read(held, dtype, name)
    entries = device_columns.column_to_host(_read(_column_held(dtype.categories), dtype.categories.dtype, name))
    return DeviceColumn(_numbers(held, NUMBERS[held.type().id().name]), _nulls(held), entries=entries)


def _column_held(series: Any) -> Any:
    """Give the pylibcudf column in which cuDF holds the rows.

    In cuDF 26.10, `to_pylibcudf` gives nothing for buffers that cuDF has spilled to the host; for buffers that share an
    allocation, it gives all of it.  If the pointer of a cuDF buffer is read, the buffer comes back to the GPU and stays
    there.
    """
    return series._column.plc_column


class _Seen:
    """The bytes of a buffer for CuPy, for any type that cuDF gives them; the object keeps the buffer alive."""

    def __init__(self, span: Any) -> None:
        self.span = span
        data, shape = (span.ptr, False), (span.size,)
        self.__cuda_array_interface__ = {"data": data, "shape": shape, "strides": None, "typestr": "|u1", "version": 3}


def _read(held: Any, dtype: Any, name: object) -> DeviceColumn:
    kind, type_ = held.type().id().name, _meaning(held, dtype)
    if kind == "STRING":
        rows = _strings(held)
    elif kind == "BOOL8":
        rows = _numbers(held, "u1") != 0
    elif kind == "DECIMAL128":
        rows = _strings_of((_library().arange(held.size() + 1) + held.offset()) * WIDE_DECIMAL, held.data())
    elif kind == "EMPTY":
        rows = _library().zeros(held.size(), np.int64)
        return DeviceColumn(rows, rows == 0)
    elif kind in NUMBERS or type_ is not None:
        rows = _numbers(held, NUMBERS.get(kind) or DECIMALS.get(kind) or ("i4" if type_ == pa.date32() else "i8"))
    else:
        raise unsupported_type(name, str(dtype))
    return DeviceColumn(rows, _nulls(held), type_)


def _meaning(held: Any, dtype: Any) -> Any:
    """Give Arrow's type of a column's values; None for plain numbers, and for values that cannot be categories."""
    kind = held.type().id().name
    what, _, unit = kind.partition("_")
    if kind == "STRING":
        return pa.large_string()
    if kind.startswith("DECIMAL"):
        # pylibcudf's scale is negative for digits after the decimal point.
        return pa.decimal128(38, -held.type().scale())
    if kind == "TIMESTAMP_DAYS":
        return pa.date32()
    if what == "TIMESTAMP":
        zone = getattr(dtype, "tz", None)
        return pa.timestamp(UNITS[unit], None if zone is None else str(zone))
    return pa.duration(UNITS[unit]) if what == "DURATION" and unit in UNITS else None


def _library() -> Any:
    """Give CuPy, or the module that replaces it in a simulation."""
    return devices.cuda().xp


def _bytes(span: Any) -> Array:
    """Give the bytes of a buffer, without a copy."""
    if span is None or not span.size:
        return _library().empty(0, np.uint8)
    return devices.cuda().adopt(_Seen(span))


def _numbers(held: Any, dtype: str) -> Array:
    width = np.dtype(dtype).itemsize
    start = held.offset() * width
    found = _bytes(held.data())[start : start + held.size() * width].view(dtype)
    if len(found) != held.size():
        raise RuntimeError(
            f"A cuDF column of {held.size()} rows shows memory for {len(found)}: this version of cuDF holds columns in "
            "a way that gpu-encode does not know. `gpu-encode doctor` shows the versions; device='cpu' on "
            "X.to_pandas() works."
        )
    return found


def _nulls(held: Any) -> Array | None:
    """Tell which rows are null; None if no row is."""
    if not held.null_count() or held.null_mask() is None:
        return None
    start, stop = held.offset(), held.offset() + held.size()
    bits = _library().unpackbits(_bytes(held.null_mask())[start // 8 : -(-stop // 8)], bitorder="little")
    return bits[start % 8 :][: held.size()] == 0


def _strings(held: Any) -> Any:
    if not held.num_children():
        return _strings_of(_library().zeros(1, np.int32), None)
    offsets = held.child(0)
    every = _numbers(offsets, NUMBERS[offsets.type().id().name])
    return _strings_of(every[held.offset() : held.offset() + held.size() + 1], held.data())


def _strings_of(offsets: Array, characters: Any) -> Any:
    strings = devices.cuda().strings
    # A kernel needs an array with an address in memory, even if it does not read it.
    held = _bytes(characters) if characters is not None and characters.size else _library().zeros(1, np.uint8)
    return strings.Strings(offsets[:-1], offsets[1:], held)


def assemble(frame: Any, names: list[str], arrays: list[Array], passed: dict[int, Any]) -> Any:
    """Make a frame of encoded columns, then the columns of `frame` that pass through; `passed` gives their names."""
    cudf = import_module("cudf")
    rest = pick(frame, passed)
    if not names:
        return rest
    pylibcudf = import_module("pylibcudf")
    table = pylibcudf.Table([_column_of(array, pylibcudf) for array in device_columns.there(arrays)])
    devices.cuda().default_stream_waits()
    encoded = cudf.DataFrame.from_pylibcudf(table, {"columns": names, "index": frame.index})
    return cudf.concat([encoded, rest], axis=1) if passed else encoded


def pick(frame: Any, passed: dict[int, Any]) -> Any:
    """Give some columns of a frame, by position, with the names of the output, without a copy."""
    labels, named = [frame.columns[position] for position in passed], [*passed.values()]
    # cuDF would take labels that are booleans for a choice of rows.
    by_position = any(isinstance(label, bool) for label in labels)
    chosen = frame.iloc[:, [*passed]] if by_position else frame[labels]
    return chosen if named == labels else chosen.rename(columns=dict(zip(labels, named, strict=True)))


def _column_of(array: Array, pylibcudf: Any) -> Any:
    """Make a column of numbers, without a copy."""
    whole = array if array.flags.c_contiguous else array.copy()
    type_ = pylibcudf.DataType(pylibcudf.TypeId[OUTPUTS[array.dtype.name]])
    return pylibcudf.Column(type_, len(whole), pylibcudf.gpumemoryview(whole.view(np.uint8)), None, 0, 0, [])
