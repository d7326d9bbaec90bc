"""Turn pandas intervals into text that sorts as they do, pandas periods into numbers, and both back again."""

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from cpu_fallback.types import Array
from gpu_encode.words.errors.values import mixed_types, unsupported_type

# Which ends belong to an interval; intervals with the same ends are sorted in this order.
CLOSED = ("left", "both", "neither", "right")
_END = 32
_SIGN, _MASK = 1 << 63, (1 << 64) - 1
_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def spell(objects: Sequence[Any], column: object) -> tuple[list[str], str]:
    """Give the text of intervals, and the name of their type.

    The text of an interval has its left end, its right end, and which of them belong to it.  Equal intervals have equal
    text, whatever the types of their ends, and text sorts as intervals do.
    """
    types = list(dict.fromkeys(type_of_end(end, column) for value in objects for end in (value.left, value.right)))
    titles = list(dict.fromkeys(title_of(f"interval[{name}]") for name in types))
    if len(titles) > 1:
        raise mixed_types(column, *titles[:2])
    texts = [spell_end(value.left) + spell_end(value.right) + str(CLOSED.index(value.closed)) for value in objects]
    return texts, join_types(f"interval[{name}]" for name in types)


def type_of_end(end: Any, column: object) -> str:
    """Give the type of an end of an interval."""
    if hasattr(end, "asm8"):
        if end.asm8.dtype.kind == "m":
            return "timedelta64[ns]"
        return "datetime64[ns]" if end.tzinfo is None else f"datetime64[ns, {end.tzinfo}]"
    if isinstance(end, (bool, np.bool_)) or not isinstance(end, (int, float, np.integer, np.floating)):
        raise unsupported_type(column, f"Interval of {type(end).__name__}")
    return "int64" if isinstance(end, (int, np.integer)) else "float64"


def join_types(types: Iterable[str]) -> str:
    """Give the type that holds the intervals of several types; `title_of` is the same for all of them.

    Examples
    --------
    >>> join_types(["interval[int64]", "interval[float64]"])
    'interval[float64]'
    """
    several = set(types)
    if len(several) == 1:
        return several.pop()
    return "interval[datetime64[ns, UTC]]" if any("," in name for name in several) else "interval[float64]"


def title_of(type_: str) -> str:
    """Name the kind of intervals; intervals can be compared if their ends are of one kind.

    Examples
    --------
    >>> title_of("interval[float64]"), title_of("interval[datetime64[ns, UTC]]")
    ('interval of numbers', 'interval of datetimes with time zone')
    """
    name = type_.removeprefix("interval[")
    if name.startswith("datetime"):
        return f"interval of datetimes{' with time zone' if ',' in name else ''}"
    return "interval of durations" if name.startswith("timedelta") else "interval of numbers"


def spell_end(end: Any) -> str:
    """Spell an end of a pandas interval."""
    if hasattr(end, "asm8"):
        unit, _ = np.datetime_data(end.asm8.dtype)
        return spell_number(int(end.asm8.astype(np.int64)) * _NANOSECONDS[unit])
    return spell_number(end.item() if isinstance(end, np.generic) else end)


def spell_arrow(left: Any, right: Any, closed: str) -> tuple[list[str], str]:
    """Spell intervals as `spell` does; their ends are Arrow arrays without null."""
    type_, factor = left.type, 1
    name = "int64" if pa.types.is_integer(type_) else "float64"
    if pa.types.is_timestamp(type_) or pa.types.is_duration(type_):
        left, right, factor = left.cast(pa.int64()), right.cast(pa.int64()), _NANOSECONDS[type_.unit]
        zone = getattr(type_, "tz", None)
        name = "timedelta64[ns]" if pa.types.is_duration(type_) else f"datetime64[ns{', ' + zone if zone else ''}]"
    pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
    suffix = str(CLOSED.index(closed))
    texts = [spell_number(low * factor) + spell_number(high * factor) + suffix for low, high in pairs]
    return texts, f"interval[{name}]"


def spell_number(exact: int | float) -> str:
    """Spell a number as hexadecimal digits that sort as numbers do: the nearest float, then the rest of the number."""
    nearest = float(exact) + 0.0
    rest = exact - int(nearest) if isinstance(exact, int) else 0
    [bits] = struct.unpack(">Q", struct.pack(">d", nearest))
    return f"{bits ^ (_MASK if bits & _SIGN else _SIGN):016x}{rest + _SIGN:016x}"


def read_end(text: str) -> tuple[float, int]:
    """Read the text of `spell_number`: give the float, and the rest to be added."""
    ordered, rest = int(text[:16], 16), int(text[16:], 16) - _SIGN
    [nearest] = struct.unpack(">d", struct.pack(">Q", ordered ^ (_SIGN if ordered & _SIGN else _MASK)))
    return nearest, rest


def read(texts: Sequence[str], type_: str) -> Array:
    """Turn texts back into intervals, as pandas objects."""
    import pandas as pd

    make = maker_of(type_.removeprefix("interval[").removesuffix("]"))
    array = np.empty(len(texts), object)
    for index, text in enumerate(texts):
        left, right = (make(*read_end(text[start : start + _END])) for start in (0, _END))
        array[index] = pd.Interval(left, right, CLOSED[int(text[2 * _END :])])
    return array


def maker_of(name: str) -> Callable[[float, int], Any]:
    """Give the function that makes an end of this type from a float and the rest to be added."""
    if name == "float64":
        return lambda nearest, rest: float(int(nearest) + rest) if rest else nearest
    if name == "int64":
        return lambda nearest, rest: int(nearest) + rest
    import pandas as pd

    if name.startswith("timedelta"):
        return lambda nearest, rest: pd.Timedelta(int(nearest) + rest, "ns")
    zone = name.partition(", ")[2].removesuffix("]") or None
    return lambda nearest, rest: pd.Timestamp(int(nearest) + rest, tz=zone)


def number_periods(objects: Sequence[Any], column: object) -> tuple[Array, str]:
    """Give the numbers of periods (int64), and the name of their type, which has their frequency."""
    types = list(dict.fromkeys(f"period[{value.freqstr}]" for value in objects))
    if len(types) > 1:
        raise mixed_types(column, *types[:2])
    return np.array([value.ordinal for value in objects], np.int64), types[0]


def read_periods(numbers: Array, type_: str) -> Array:
    """Turn numbers back into periods, as pandas objects."""
    import pandas as pd

    frequency = type_.removeprefix("period[").removesuffix("]")
    array = np.empty(len(numbers), object)
    array[:] = [pd.Period(ordinal=number, freq=frequency) for number in numbers.tolist()]
    return array
