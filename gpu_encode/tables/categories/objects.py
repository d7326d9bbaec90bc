"""Python objects as typed values, of one kind in each column; numbers are compared exactly, as in Python."""

import datetime
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from cpu_fallback.types import Array
from gpu_encode.tables.categories import intervals
from gpu_encode.tables.categories.values import UNITS, Values, from_arrow, nothing, timestamp_storage
from gpu_encode.words.errors.values import broken_text, mixed_types, out_of_range, unsupported_type

_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
# The first match wins: a bool is also an int, a datetime is also a date.
_KINDS: list[tuple[str, tuple[type, ...]]] = [
    ("text", (str,)),
    ("bytes", (bytes,)),
    ("duration", (datetime.timedelta, np.timedelta64)),
    ("number", (bool, int, float, Decimal, np.bool_, np.integer, np.floating)),
    ("datetime", (datetime.date, np.datetime64)),
    ("time", (datetime.time,)),
]
# pandas' types, by name, since pandas may not be loaded.
_OF_PANDAS = {"Interval": "interval", "Period": "period"}
_NULL_TYPES = ("NoneType", "NAType", "NaTType")


def is_null(value: object) -> bool:
    """Whether a value is None, NaN, NaT or pandas' NA."""
    if type(value).__name__ in _NULL_TYPES:
        return True
    if isinstance(value, str):
        return False
    if isinstance(value, (float, Decimal, np.floating, np.datetime64, np.timedelta64)):
        return bool(value != value)  # noqa: PLR0124 - only NaN differs from itself
    return False


def from_objects(objects: Sequence[object], column: object) -> Values:
    """Make values of Python objects that are all of one kind, and none of them null."""
    if not len(objects):
        return nothing()
    types = list(dict.fromkeys(map(type, objects)))
    kinds = {type_: _kind(type_, column) for type_ in types}
    for type_ in types[1:]:
        if kinds[type_] != kinds[types[0]]:
            raise mixed_types(column, types[0].__name__, type_.__name__)
    kind = kinds[types[0]]
    if kind == "number":
        return _numbers(objects, column)
    if kind in ("text", "bytes"):
        return _strings(objects, kind, column)
    if kind == "interval":
        texts, name = intervals.spell(objects, column)
        return Values(kind, pa.array(texts, pa.large_string()), name)
    if kind == "period":
        return Values(kind, *intervals.number_periods(objects, column))
    return _timestamps(objects, kind, column)


def _kind(type_: type, column: object) -> str:
    for kind, known in _KINDS:
        if issubclass(type_, known):
            return kind
    if (of_pandas := kind_of_pandas(type_)) is None:
        raise unsupported_type(column, type_.__name__)
    return of_pandas


def kind_of_pandas(type_: type) -> str | None:
    """Give the kind of pandas intervals and periods; None for other objects."""
    return _OF_PANDAS.get(type_.__name__) if type_.__module__.partition(".")[0] == "pandas" else None


def _strings(objects: Sequence[object], kind: str, column: object) -> Values:
    try:
        return from_arrow(pa.array(objects, pa.large_string() if kind == "text" else pa.large_binary()))
    except UnicodeEncodeError:
        raise broken_text(column) from None


def _numbers(objects: Sequence[object], column: object) -> Values:
    plain = [_plain(value) for value in objects]
    if any(isinstance(value, np.generic) for value in plain):
        raise unsupported_type(column, "longdouble")
    types = set(map(type, plain))
    if types == {bool}:
        return Values("number", np.array(plain, bool), "bool")
    if not any(issubclass(type_, (float, Decimal)) for type_ in types):
        for dtype in (np.int64, np.uint64):
            if min(plain) >= np.iinfo(dtype).min and max(plain) <= np.iinfo(dtype).max:
                return Values("number", np.array(plain, dtype), np.dtype(dtype).name)
    elif not any(issubclass(type_, Decimal) for type_ in types) and all(map(_is_float, plain)):
        return Values("number", np.array(plain, np.float64) + 0.0, "float64")
    array = np.empty(len(plain), object)
    array[:] = [0.0 if value == 0 and isinstance(value, float) else value for value in plain]
    return Values("number", array, "decimal")


def _plain(value: Any) -> Any:
    """Give the plain Python number of a NumPy scalar, or of an instance of a subclass such as IntEnum."""
    if isinstance(value, np.generic):
        return value.item()
    return next((base(value) for base in (bool, int, float) if isinstance(value, base)), value)


def _is_float(value: Any) -> bool:
    try:
        return bool(float(value) == value)
    except OverflowError:
        return False


def _timestamps(objects: Sequence[object], kind: str, column: object) -> Values:
    aware = [getattr(value, "tzinfo", None) is not None for value in objects]
    if any(aware) and not all(aware):
        raise mixed_types(column, f"{kind} with time zone", f"{kind} without")
    if kind == "time" and any(aware):
        raise unsupported_type(column, "time with time zone")
    ticks, units = zip(*(_ticks(value, column) for value in objects), strict=True)
    unit = max(units, key=UNITS.__getitem__)
    scaled = [tick * 10 ** (UNITS[unit] - UNITS[tick_unit]) for tick, tick_unit in zip(ticks, units, strict=True)]
    try:
        array = np.array(scaled, np.int64)
    except OverflowError:
        raise out_of_range(column, unit) from None
    name = {"datetime": f"datetime64[{unit}]", "duration": f"timedelta64[{unit}]", "time": "time"}[kind]
    if all(type(value) is datetime.date for value in objects):
        name = "date"
    zones = {str(getattr(value, "tzinfo", None)) for value in objects} if any(aware) else set()
    zone = (zones.pop() if len(zones) == 1 else "UTC") if zones else None
    return Values(kind, array, name, unit, zone)


def _ticks(value: Any, column: object) -> tuple[int, str]:
    """Give the number of units since 1970, since midnight, or in a duration; and the unit."""
    if hasattr(value, "asm8"):
        value = value.asm8  # pandas keeps nanoseconds, which datetime does not have
    if isinstance(value, (np.datetime64, np.timedelta64)):
        array, unit = timestamp_storage(np.asarray(value).reshape(1), column)
        return int(array[0]), unit
    if isinstance(value, datetime.timedelta):
        return value // _MICROSECOND, "us"
    if isinstance(value, datetime.time):
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return seconds * 1_000_000 + value.microsecond, "us"
    if not isinstance(value, datetime.datetime):
        return (value - _EPOCH.date()).days * 86_400, "s"
    if value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return (value - _EPOCH) // _MICROSECOND, "us"


def to_text(numbers: Array) -> list[str]:
    """Write the numbers of an object array as text, from which `from_text` makes equal objects of the same types."""
    tags = {bool: "b", int: "i", float: "f", Decimal: "d"}
    return [tags[type(value)] + _digits(value) for value in numbers]


def _digits(value: bool | int | float | Decimal) -> str:
    if isinstance(value, float):
        return value.hex()
    return str(int(value)) if isinstance(value, int) else str(value)


def from_text(texts: Sequence[str]) -> Array:
    """Give the numbers that `to_text` has written."""
    readers: dict[str, Any] = {"b": lambda text: text == "1", "i": int, "f": float.fromhex, "d": Decimal}
    array = np.empty(len(texts), object)
    array[:] = [readers[text[:1]](text[1:]) for text in texts]
    return array
