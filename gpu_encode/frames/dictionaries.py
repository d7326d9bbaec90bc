"""What the rows of a column stand for: raw codes and their values; and the dictionary of Python objects."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cpu_fallback.types import MISSING, Array
from gpu_encode.categories import objects
from gpu_encode.categories.values import Values
from gpu_encode.errors.values import infinite_value, unsupported_type
from gpu_encode.frames.columns import Column
from gpu_encode.ops import Ops

# Text whose values occur more often than this among so many rows is told apart by the hash that Python keeps of it.
SAMPLED = 4096
REPEATED = 8


class Place(NamedTuple):
    """Where values stand, for messages: the column, and the row of the value at an index."""

    column: object
    row: Callable[[int], int]


@dataclass(frozen=True, eq=False)
class Encoded:
    """Dictionary of a column: raw code of each row, and the place of each raw code among the values."""

    codes: Array
    values: Values
    table: Array | None = None  # place of each raw code, -1 at the end; None: the codes are the places
    is_sorted: bool = False
    complete: bool = False  # whether it is known that no row is null

    def through(self, places: Array | None, ops: Ops) -> Array:
        """Code of each row, the values having moved to `places`."""
        # A null counts from the end of the table, where it is found again.
        table = self.table if places is None else np.append(places, np.int32(MISSING)).astype(np.int32)
        if table is None:
            return self.codes
        if places is not None and self.table is not None:
            table = table[self.table]
        if table[-1] == MISSING and np.array_equal(table[:-1], np.arange(len(table) - 1)):
            return self.codes
        found = np.empty(len(self.codes), np.int32)
        ops.gather(table.reshape(-1, 1, 1), self.codes, None, found.reshape(-1, 1))
        return found


def texts_of_objects(column: Column) -> Any:
    """Python objects that are all text or null as an Arrow array; None if any is not, or few of them are different."""
    data = column.data
    # A look at some of them spares most columns of other things the attempt.
    some = {value for value in data[:: max(len(data) // SAMPLED, 1)] if isinstance(value, str)}
    if len(some) * REPEATED <= min(len(data), SAMPLED):
        return None
    # Subclasses may be equal or not in a way of their own.
    if any(type_ not in (str, np.str_) and issubclass(type_, str) for type_ in set(map(type, data))):
        return None
    try:
        found = pa.array(data, mask=column.nulls, from_pandas=True)
    except (pa.ArrowException, UnicodeEncodeError, TypeError, ValueError):
        return None
    return found if pa.types.is_string(found.type) or pa.types.is_large_string(found.type) else None


def encode_objects(column: Column, place: Place) -> Encoded:
    """Find the dictionary of Python objects by their own equality, which is exact across types of numbers."""
    table: defaultdict[object, int] = defaultdict()
    table.default_factory = table.__len__
    try:
        codes = np.fromiter(map(table.__getitem__, column.data), np.int32, len(column.data))
    except TypeError:
        odd = next(value for value in column.data if not _hashes(value))
        raise unsupported_type(place.column, type(odd).__name__) from None
    if column.nulls is not None:
        codes[column.nulls] = MISSING
    used = np.zeros(len(table) + 1, bool)
    used[codes] = True
    kept = [key for key, seen in zip(table, used[:-1], strict=True) if seen and not objects.is_null(key)]
    places = np.full(len(table) + 1, MISSING, np.int32)
    places[[table[key] for key in kept]] = np.arange(len(kept), dtype=np.int32)
    found = objects.from_objects(kept, place.column)
    if len(infinite := found.infinite()):
        raise infinite_value(place.column, place.row(int(np.isin(places[codes], infinite).argmax())))
    return Encoded(codes, found, places)


def _hashes(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
