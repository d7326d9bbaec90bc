"""Values of categories as Arrow arrays, and columns of such values, given by their indices."""

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from cpu_fallback.types import Array
from gpu_encode.tables.categories.values import UNITS
from gpu_encode.tables.categories.vocabulary import Vocabulary
from gpu_encode.words.errors.values import unsupported_type

_DAY = 86_400
# The units of time that Arrow has.
_OF_ARROW = ("s", "ms", "us", "ns")


def column_of(labels: Vocabulary, indices: Array, column: object) -> Any:
    """Make an Arrow array of the values with these indices; an index NaN gives null.

    Dates keep their unit and their time zone; dates without a time of day have none in the result.

    Parameters
    ----------
    labels : Vocabulary
        Distinct texts or dates.
    indices : float array (rows,)
    column : str
        Name of the column, for messages.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode.tables.categories.vocabulary import Vocabulary
    >>> labels, _ = Vocabulary.from_values(["high", "low"], "level")
    >>> column_of(labels, np.array([1.0, np.nan, 0.0]), "level").to_pylist()
    ['low', None, 'high']
    """
    missing = np.isnan(indices)
    return in_arrow(labels, column).take(pa.array(np.where(missing, 0, indices).astype(np.int64), mask=missing))


def in_arrow(labels: Vocabulary, column: object) -> Any:
    """Give all values as an Arrow array of their type; numbers that no other type holds exactly become decimals.

    Raises
    ------
    TypeError
        If Arrow has no such type.
    """
    held = labels.values
    if held.kind in ("text", "bytes"):
        return held.array
    if held.kind == "null":
        return pa.nulls(0)
    if held.kind == "number":
        return numbers_in_arrow(held.to_numpy(), column)
    if held.dtype == "date":
        return pa.array((held.array // (_DAY * 10 ** UNITS[held.unit or "s"])).astype(np.int32)).cast(pa.date32())
    if held.unit not in _OF_ARROW or held.kind in ("interval", "period"):
        raise unsupported_type(column, held.dtype)
    types = {"datetime": pa.timestamp(held.unit, held.timezone), "duration": pa.duration(held.unit)}
    if held.kind in types:
        return pa.array(held.array).cast(types[held.kind])
    return pa.array(held.to_numpy(), pa.time64("us" if held.unit in ("s", "ms", "us") else "ns"))


def numbers_in_arrow(numbers: Array, column: object) -> Any:
    """Give numbers as an Arrow array of the narrowest type that holds all of them exactly."""
    if numbers.dtype.kind != "O":
        return pa.array(numbers)
    try:
        return pa.array([Decimal(number) for number in numbers.tolist()])
    except (TypeError, pa.ArrowInvalid) as error:
        raise unsupported_type(column, "numbers of more than 76 digits") from error


def as_numpy(column: Any) -> Array:
    """Give an Arrow array as NumPy: text as objects, with None for null; dates as datetime64 in UTC, with NaT."""
    if isinstance(column, np.ndarray):
        return column
    if pa.types.is_large_string(column.type):
        return np.array([*column.to_pylist(), None], object)[:-1]
    unit: Any = column.type.unit if pa.types.is_timestamp(column.type) else "D"
    whole = column.cast(pa.int32() if unit == "D" else pa.int64())
    moments = whole.fill_null(0).to_numpy().astype(f"datetime64[{unit}]")
    moments[column.is_null().to_numpy(zero_copy_only=False)] = np.datetime64("NaT", unit)
    return moments
