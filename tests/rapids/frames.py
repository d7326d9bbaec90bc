"""Converts tables of Arrow to frames of cuDF and back: with cuDF on a GPU, otherwise in the host's memory."""

from types import SimpleNamespace
from zoneinfo import ZoneInfo

import cudf
import numpy as np
import pandas as pd
import pyarrow as pa
import pylibcudf as plc
from cudf.core.column import ColumnBase

from gpu_encode.seam import devices

Id = plc.TypeId
NUMBERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")
UNITS = {"s": "SECONDS", "ms": "MILLISECONDS", "us": "MICROSECONDS", "ns": "NANOSECONDS"}
# The Arrow types that both libraries hold in the same way.
SAME = {getattr(pa, name)(): getattr(Id, name.upper()) for name in NUMBERS}
SAME |= {pa.duration(unit): getattr(Id, f"DURATION_{word}") for unit, word in UNITS.items()}
INSTANTS = {unit: getattr(Id, f"TIMESTAMP_{word}") for unit, word in UNITS.items()}
DECIMALS = {32: Id.DECIMAL32, 64: Id.DECIMAL64, 128: Id.DECIMAL128}


class Memory:
    """Host memory that stands for a GPU's memory."""

    def __init__(self, array):
        self.array = np.ascontiguousarray(array).view(np.uint8).reshape(-1)

    @property
    def __cuda_array_interface__(self):
        return {**self.array.__array_interface__, "stream": None}


def buffer(array):
    return plc.gpumemoryview(Memory(array)) if array is not None and len(array) else None


def plain(kind, array, offset, size, mask=None, nulls=0, children=()):
    return plc.Column(kind, size, buffer(array), buffer(mask), nulls, offset, list(children))


def held(array):
    """Column of pylibcudf over the memory of an Arrow array, which may be a slice."""
    type_, (mask, *rest) = array.type, array.buffers()
    bits = None if mask is None else np.frombuffer(mask, np.uint8)
    parts = [None if part is None else np.frombuffer(part, np.uint8) for part in rest]
    given = (array.offset, len(array), bits, array.null_count)
    if pa.types.is_boolean(type_):
        whole = np.unpackbits(parts[0], bitorder="little")
        return plain(plc.DataType(Id.BOOL8), whole, *given)
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        width = Id.INT32 if pa.types.is_string(type_) else Id.INT64
        offsets = plain(plc.DataType(width), parts[0], 0, array.offset + len(array) + 1)
        return plain(plc.DataType(Id.STRING), parts[1], *given, [offsets])
    if pa.types.is_list(type_):
        offsets = plain(plc.DataType(Id.INT32), parts[0], 0, array.offset + len(array) + 1)
        return plain(plc.DataType(Id.LIST), None, *given, [offsets, held(array.values)])
    if pa.types.is_decimal(type_):
        return plain(plc.DataType(DECIMALS[type_.bit_width], -type_.scale), parts[0], *given)
    kind = INSTANTS[type_.unit] if pa.types.is_timestamp(type_) else SAME[type_]
    return plain(plc.DataType(kind), parts[0], *given)


def column(array):
    """Column of cuDF over the memory of an Arrow array."""
    if pa.types.is_dictionary(array.type):
        entries = cudf.Index.from_pylibcudf(held(array.dictionary))
        dtype = cudf.CategoricalDtype(categories=entries, ordered=array.type.ordered)
        size = min(width for width in (1, 2, 4, 8) if len(entries) < 1 << 8 * width)
        codes = array.indices.cast(getattr(pa, f"uint{8 * size}")())
        return ColumnBase.create(held(codes), dtype)
    column_of_host = held(array)
    if pa.types.is_timestamp(array.type) and array.type.tz:
        return ColumnBase.create(column_of_host, pd.DatetimeTZDtype(array.type.unit, ZoneInfo(array.type.tz)))
    return ColumnBase.from_pylibcudf(column_of_host)


def from_arrow(array):
    """Series of cuDF, which cannot read an empty slice of bits."""
    return cudf.Series.from_arrow(array if len(array) else pa.array([], array.type))


def series(array, name=None):
    """Series of cuDF."""
    if not devices.simulated():
        return from_arrow(array).rename(name)
    return cudf.Series._from_column(column(array), name=name)


def frame(columns, index=None):
    """Frame of cuDF, by names."""
    if devices.simulated():
        made = cudf.DataFrame._from_data({name: column(array) for name, array in columns.items()})
        # The columns of a frame that already has them are left alone.
        return made if index is None else cudf.DataFrame._from_data(dict(made._data), index=index_of(index, "row"))
    made = cudf.DataFrame({name: from_arrow(array) for name, array in columns.items()})
    return made if index is None else made.set_index(index_of(index, "row"))


def index_of(array, name=None):
    """Index of cuDF."""
    if not devices.simulated():
        return cudf.Index.from_arrow(array).rename(name)
    return cudf.Index.from_pylibcudf(held(array), {"name": name})


def read(series):
    """Arrow array of a series that has no null."""
    if not devices.simulated():
        return series.to_arrow()
    column_of_host = series.to_pylibcudf()[0]
    dtype = {Id.FLOAT64: np.float64, Id.FLOAT32: np.float32, Id.INT64: np.int64}[column_of_host.type().id()]
    memory = column_of_host.data().__cuda_array_interface__
    seen = SimpleNamespace(__array_interface__={name: memory[name] for name in ("shape", "typestr", "data", "version")})
    return pa.array(
        np.asarray(seen).view(dtype)[column_of_host.offset() : column_of_host.offset() + column_of_host.size()].copy()
    )
