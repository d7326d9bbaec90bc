"""Typed values of one column: numbers, text, bytes, dates and times, compared exactly across types."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cpu_fallback.cached import cached_property
from cpu_fallback.types import Array
from gpu_encode.seam.ops import host, host_strings
from gpu_encode.tables.categories import intervals, strings
from gpu_encode.words.errors.values import out_of_range, unsupported_type

# Units of time in a second, as a power of ten; every other unit of time is turned into seconds when it is read.
UNITS = {"s": 0, "ms": 3, "us": 6, "ns": 9, "ps": 12, "fs": 15, "as": 18}
TEMPORAL = ("datetime", "duration", "time")
NOT_A_TIME = np.iinfo(np.int64).min
_DAY = 86_400
# Python sorts up to this number of strings in less time than Arrow needs to start.
FEW = 256


@dataclass(frozen=True, eq=False)
class Values:
    """Values of one column without null, their kind, and the type in which they were first read.

    Parameters
    ----------
    kind : {"number", "text", "bytes", "datetime", "duration", "time", "interval", "period", "null"}
        Values of different kinds are never compared; "null" is the kind of a column that holds nothing but nulls.
    array : ndarray or pyarrow.Array
        Numbers: bool, int64, uint64, float64, or an object array of Python numbers if none of these is exact.  Dates,
        times and durations: int64 in `unit`.  Periods: their numbers.  Text and bytes: a large_string or large_binary
        Arrow array.  Intervals: text that sorts as they do.
    dtype : str
        The type that users see: the NumPy type of numbers, "date" for dates, pandas' type of periods and intervals;
        otherwise the kind.
    unit, timezone : str, optional
        For dates, times and durations; a datetime with a time zone is kept in UTC.
    """

    kind: str
    array: Any
    dtype: str
    unit: str | None = None
    timezone: str | None = None

    def __len__(self) -> int:
        return len(self.array)

    def __getstate__(self) -> dict[str, Any]:
        # Libraries that walk through a state, such as skops, know NumPy arrays, but would leave Arrow arrays empty.
        state = {field.name: getattr(self, field.name) for field in fields(self)}
        if isinstance(self.array, np.ndarray):
            return state
        offsets, characters = strings.buffers_of(self.array)
        start, stop = offsets[[0, -1]]
        return state | {"array": None, "offsets": offsets - start, "characters": characters[start:stop]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        held = {field.name: state[field.name] for field in fields(self)}
        if held["array"] is None:
            type_ = pa.large_binary() if held["kind"] == "bytes" else pa.large_string()
            held["array"] = strings.from_buffers(state["offsets"], state["characters"], type_)
        self.__dict__.update(held)

    @property
    def title(self) -> str:
        """The name of the kind in messages."""
        if self.kind in ("interval", "period"):
            return self.dtype if self.kind == "period" else intervals.title_of(self.dtype)
        return f"{self.kind} with time zone" if self.timezone else self.kind

    @cached_property
    def is_sorted(self) -> bool:
        """Whether the values increase strictly, so that they are distinct, too."""
        if isinstance(self.array, np.ndarray):
            return bool(np.all(self.array[:-1] < self.array[1:]))
        return pc.all(pc.less(self.array[:-1], self.array[1:])).as_py() is not False

    def take(self, indices: Array) -> "Values":
        """Give the values at some indices."""
        array = self.array[indices] if isinstance(self.array, np.ndarray) else self.array.take(pa.array(indices))
        return Values(self.kind, array, self.dtype, self.unit, self.timezone)

    def sort(self) -> tuple["Values", Array]:
        """Give the sorted distinct values, and for each value its index among them (int32)."""
        array = self.array
        if isinstance(array, np.ndarray):
            distinct, codes = np.unique(array, return_inverse=True)
        elif len(array) <= FEW:
            texts = as_bytes(array)
            in_order = sorted(set(texts))
            code = dict(zip(in_order, range(len(in_order)), strict=True))
            distinct = pa.array(in_order, pa.large_binary()).view(array.type)
            codes = np.fromiter(map(code.__getitem__, texts), np.int32, len(texts))
        elif (backend := host_strings(len(array), host(len(array)))) is not None:
            codes, distinct = strings.factorize(array, backend)
        else:
            repeated = array.dictionary_encode()
            order = pc.sort_indices(repeated.dictionary).to_numpy()
            distinct, indices = repeated.dictionary.take(pa.array(order)), repeated.indices.to_numpy()
            codes = inverse(order)[indices]
        return Values(self.kind, distinct, self.dtype, self.unit, self.timezone), codes.astype(np.int32, copy=False)

    def infinite(self) -> Array:
        """Give the indices of infinite values."""
        if self.kind != "number" or self.array.dtype.kind not in "fO":
            return np.zeros(0, np.intp)
        if self.array.dtype.kind == "f":
            return np.flatnonzero(np.isinf(self.array))
        infinities = (float("inf"), float("-inf"))
        return np.flatnonzero([value in infinities for value in self.array])

    def to_numpy(self) -> Array:
        """Give the values for users, in the type of the first table; text, times of day and decimals are objects."""
        if self.kind == "number":
            array: Array = self.array if self.array.dtype.kind == "O" else self.array.astype(self.dtype)
        elif self.kind == "datetime":
            array = self.array.view(f"datetime64[{self.unit}]")
            array = array.astype("datetime64[D]") if self.dtype == "date" else array
        elif self.kind == "duration":
            array = self.array.view(f"timedelta64[{self.unit}]")
        elif self.kind == "time":
            array = _times_of_day(self)
        elif self.kind == "interval":
            array = intervals.read(self.array.to_pylist(), self.dtype)
        elif self.kind == "period":
            array = intervals.read_periods(self.array, self.dtype)
        else:
            array = np.empty(0, object) if self.kind == "null" else self.array.to_numpy(zero_copy_only=False)
        return array


def as_bytes(array: Any) -> list[bytes]:
    """Give text or bytes of an Arrow array as bytes, which sort as text does; text of a file may not be UTF-8."""
    return array.view(pa.large_binary()).to_pylist()


def _times_of_day(values: Values) -> Array:
    """Give `datetime.time` objects; if these are too coarse, timedelta64 since midnight."""
    microseconds, exact = rescale(values.array, values.unit or "us", "us")
    if not exact.all():
        return values.array.view(f"timedelta64[{values.unit}]")
    array = np.empty(len(values), object)
    array[:] = pa.array(microseconds).cast(pa.time64("us")).to_pylist()
    return array


def inverse(order: Array) -> Array:
    """Give the inverse of a permutation (int32)."""
    indices = np.empty(len(order), np.int32)
    indices[order] = np.arange(len(order), dtype=np.int32)
    return indices


def nothing() -> Values:
    """Give the values of a column that holds only nulls."""
    return Values("null", np.zeros(0, np.int64), "null")


def from_numpy(array: Array, column: object) -> Values:
    """Make values of a NumPy array of numbers, datetimes, timedeltas, text or bytes, without null."""
    kind = array.dtype.kind
    if kind == "b":
        return Values("number", array, "bool")
    if kind in "iuf":
        return Values("number", number_storage(array, column), numpy_name(array.dtype))
    if kind in "Mm":
        ticks, unit = timestamp_storage(array, column)
        name = "date" if np.datetime_data(array.dtype)[0] == "D" and kind == "M" else f"{array.dtype.name}"
        return Values("datetime" if kind == "M" else "duration", ticks, name, unit)
    if kind in "US":
        return from_arrow(pa.array(array))
    raise unsupported_type(column, str(array.dtype))


@cache
def numpy_name(dtype: np.dtype[Any]) -> str:
    """Name a type of numbers so that `astype` takes the name; objects are "decimal"."""
    return "decimal" if dtype.kind == "O" else "float64" if dtype.itemsize > 8 else dtype.name


def number_storage(array: Array, column: object) -> Array:
    """Give numbers as int64, uint64 or float64, contiguous and without negative zeros; copied only if necessary."""
    wide = {"i": np.int64, "u": np.uint64, "f": np.float64}[array.dtype.kind]
    stored = np.ascontiguousarray(array, dtype=wide)
    if array.dtype.itemsize > 8 and not np.array_equal(stored.astype(array.dtype), array):
        raise unsupported_type(column, str(array.dtype))
    # Read as int64, negative zero is the smallest number, so one pass without a copy finds it.
    if wide is np.float64 and stored.size and stored.view(np.int64).min() == NOT_A_TIME:
        return stored + 0.0
    return stored


def timestamp_storage(array: Array, column: object) -> tuple[Array, str]:
    """Give datetimes or timedeltas as int64, and their unit; NaT is the smallest int64."""
    unit, count = np.datetime_data(array.dtype)
    if unit in UNITS and count == 1:
        return np.ascontiguousarray(array, array.dtype.newbyteorder("=")).view(np.int64), unit
    target = unit if unit in UNITS else "s"
    if unit == "generic" or (array.dtype.kind == "m" and unit in "YM"):
        raise unsupported_type(column, str(array.dtype))
    try:
        stored = array.astype(f"{array.dtype.kind}8[{target}]")
    except OverflowError:  # NumPy 2.5 raises this; earlier versions wrap around
        raise out_of_range(column, target) from None
    if not np.array_equal(stored.astype(array.dtype), array, equal_nan=True):
        raise out_of_range(column, target)
    return stored.view(np.int64), target


def from_arrow(array: Any) -> Values:
    """Make values of an Arrow array of text, bytes or decimals, without null."""
    type_ = array.type
    if pa.types.is_decimal(type_):
        objects = np.empty(len(array), object)
        objects[:] = array.to_pylist()
        return Values("number", objects, "decimal")
    if is_text(type_):
        return Values("text", as_type(array, pa.large_string()), "str")
    return Values("bytes", as_type(array, pa.large_binary()), "bytes")


def as_type(array: Any, type_: Any) -> Any:
    """Cast an Arrow array to a type; if it has this type, give it back at once, since Arrow's cast takes long."""
    return array if array.type == type_ else array.cast(type_)


def is_text(type_: Any) -> bool:
    """Whether an Arrow type is text."""
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_) or type_ == pa.string_view())


def is_binary(type_: Any) -> bool:
    """Whether an Arrow type is bytes."""
    types = pa.types
    plain = types.is_binary(type_) or types.is_large_binary(type_) or types.is_fixed_size_binary(type_)
    return bool(plain or type_ == pa.binary_view())


def arrow_timestamps(array: Any) -> tuple[Array, Values]:
    """Give dates, times or durations without null as int64, and as values with kind, unit and time zone."""
    type_ = array.type
    if pa.types.is_date(type_):
        days = array.cast(pa.date32()).cast(pa.int32()).to_numpy(zero_copy_only=False)
        seconds = days.astype(np.int64) * _DAY
        return seconds, Values("datetime", seconds, "date", "s")
    whole = array.cast(pa.int32()) if pa.types.is_time32(type_) else array
    ticks = whole.cast(pa.int64()).to_numpy(zero_copy_only=False)
    if pa.types.is_timestamp(type_):
        return ticks, Values("datetime", ticks, f"datetime64[{type_.unit}]", type_.unit, type_.tz)
    kind = "duration" if pa.types.is_duration(type_) else "time"
    return ticks, Values(kind, ticks, f"timedelta64[{type_.unit}]" if kind == "duration" else "time", type_.unit)


def rescale(array: Array, unit: str, target: str) -> tuple[Array, Array]:
    """Give ticks in another unit, and tell which of them are exact."""
    step = UNITS[target] - UNITS[unit]
    if step == 0:
        return array, np.ones(len(array), bool)
    factor = 10 ** abs(step)
    if step > 0:
        largest = np.iinfo(np.int64).max // factor
        exact = (array <= largest) & (array >= -largest)
        return np.where(exact, array, 0) * factor, exact
    return array // factor, array % factor == 0


def as_dtype(array: Array, target: np.dtype[Any]) -> tuple[Array, Array]:
    """Give numbers in another of the stored types, and tell which are exact; all others are 0."""
    if array.dtype.kind == "b":
        array = array.astype(np.int64)
    if target.kind == "b":
        target = np.dtype(np.int64)
    if array.dtype == target:
        return array, np.ones(len(array), bool)
    if array.dtype.kind == "O":
        return _objects_as_dtype(array, target)
    if target.kind == "f":
        # The largest int64 and the largest uint64 round up to floats that are out of their range.
        rounded = array.astype(np.float64)
        inside = rounded < float(np.iinfo(array.dtype).max)
        back = np.where(inside, rounded, 0).astype(array.dtype)
        return rounded, inside & (back == array)
    if array.dtype.kind == "f":
        limits = np.iinfo(target)
        exact = (np.floor(array) == array) & (array >= float(limits.min)) & (array < float(limits.max))
    else:
        exact = array >= 0 if target.kind == "u" else array <= np.iinfo(np.int64).max
    return np.where(exact, array, 0).astype(target), exact


def _objects_as_dtype(array: Array, target: np.dtype[Any]) -> tuple[Array, Array]:
    converted, exact = np.zeros(len(array), target), np.zeros(len(array), bool)
    for row, value in enumerate(array):
        try:
            whole = float(value) if target.kind == "f" else int(value)
            converted[row] = whole
        except OverflowError:
            continue
        exact[row] = whole == value
    return converted, exact


def union(parts: Sequence[Values]) -> Values:
    """Concatenate values of one kind, in a type that holds all of them exactly."""
    kinds = [part for part in parts if len(part)] or list(parts[:1])
    first = kinds[0]
    dtype = first.dtype if len({part.dtype for part in kinds}) == 1 else None
    if first.kind == "number":
        array = _union_of_numbers([part.array for part in kinds])
        return Values("number", array, dtype or numpy_name(array.dtype))
    if first.kind in TEMPORAL:
        unit = max((part.unit or "s" for part in kinds), key=UNITS.__getitem__)
        scaled = [rescale(part.array, part.unit or "s", unit) for part in kinds]
        if not all(exact.all() for _, exact in scaled):
            raise out_of_range(None, unit)
        name = {"datetime": f"datetime64[{unit}]", "duration": f"timedelta64[{unit}]", "time": "time"}[first.kind]
        # Datetimes are kept in UTC, so the time zone is only shown to users; no part may decide it alone.
        zone = first.timezone if len({part.timezone for part in kinds}) == 1 else "UTC"
        return Values(first.kind, np.concatenate([array for array, _ in scaled]), dtype or name, unit, zone)
    if first.kind in ("null", "period"):
        return Values(first.kind, np.concatenate([part.array for part in kinds]), first.dtype)
    joined = intervals.join_types(part.dtype for part in kinds) if first.kind == "interval" else first.dtype
    return Values(first.kind, pa.concat_arrays([part.array for part in kinds]), joined)


def _union_of_numbers(arrays: list[Array]) -> Array:
    kinds = {array.dtype.kind for array in arrays}
    if len(kinds) == 1:
        return np.concatenate(arrays)
    # All parts decide the type, and not the first one, so that merging does not depend on their order.
    targets = (np.float64, np.int64, np.uint64) if "f" in kinds else (np.int64, np.uint64)
    for target in targets if "O" not in kinds else ():
        converted = [as_dtype(array, np.dtype(target)) for array in arrays]
        if all(exact.all() for _, exact in converted):
            return np.concatenate([array for array, _ in converted])
    return np.concatenate([array.astype(object) for array in arrays])
