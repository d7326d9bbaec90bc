"""Columns of text or dates, from places among their values."""

from typing import Any

import numpy as np
import pyarrow as pa

from cpu_fallback.types import Array
from gpu_encode.categories.values import UNITS
from gpu_encode.categories.vocabulary import Vocabulary
from gpu_encode.errors.values import unsupported_type

_DAY = 86_400
# Units of time that Arrow has, too.
_OF_ARROW = ("s", "ms", "us", "ns")


def column_of(labels: Vocabulary, places: Array, column: object) -> Any:
    """Give an Arrow array of the values at some places, null where these are NaN.

    Dates keep their unit and their time zone; those without a time of day are dates again.

    Parameters
    ----------
    labels : Vocabulary
        Of text or dates.
    places : float array (rows,)
    column : str
        Name of the column, for messages.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode.categories.vocabulary import Vocabulary
    >>> labels, _ = Vocabulary.from_values(["high", "low"], "level")
    >>> column_of(labels, np.array([1.0, np.nan, 0.0]), "level").to_pylist()
    ['low', None, 'high']
    """
    missing = np.isnan(places)
    return in_arrow(labels, column).take(pa.array(np.where(missing, 0, places).astype(np.int64), mask=missing))


def in_arrow(labels: Vocabulary, column: object) -> Any:
    """Give all values as an Arrow array of their type."""
    held = labels.values
    if held.kind == "text":
        return held.array
    if held.dtype == "date":
        return pa.array((held.array // (_DAY * 10 ** UNITS[held.unit or "s"])).astype(np.int32)).cast(pa.date32())
    if held.unit not in _OF_ARROW:
        raise unsupported_type(column, held.dtype)
    return pa.array(held.array).cast(pa.timestamp(held.unit, held.timezone))


def as_numpy(column: Any) -> Array:
    """Give an Arrow array of text as objects, None where it is null; of dates as moments in UTC, or NaT."""
    if isinstance(column, np.ndarray):
        return column
    if pa.types.is_large_string(column.type):
        objects: Array = np.array([*column.to_pylist(), None], object)[:-1]
        return objects
    unit = column.type.unit if pa.types.is_timestamp(column.type) else "D"
    whole = column.cast(pa.int32() if unit == "D" else pa.int64())
    moments = whole.fill_null(0).to_numpy().astype(f"datetime64[{unit}]")
    moments[column.is_null().to_numpy(zero_copy_only=False)] = np.datetime64("NaT")
    return moments  # type: ignore[no-any-return]
