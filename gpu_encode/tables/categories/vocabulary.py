"""The distinct values of one column, in a defined order; a code is the index of a value."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cpu_fallback.cached import cached_property
from cpu_fallback.types import UNKNOWN, Array
from gpu_encode.seam.ops import Ops, host, host_strings
from gpu_encode.tables.categories import objects, strings, values
from gpu_encode.tables.categories.values import TEMPORAL, UNITS, Values
from gpu_encode.words.errors.values import different_kinds, of_column

# Up to _FEW strings are looked up one by one: among up to _TABLED categories in a table that is made and kept; among
# more categories by bisection, which takes a microsecond for each string in a million categories.
_FEW, _TABLED = 64, 1 << 12
_STORED = {
    "text": pa.large_string(),
    "bytes": pa.large_binary(),
    "interval": pa.large_string(),
    "period": pa.int64(),
    "null": pa.int64(),
}


class Vocabulary:
    """Distinct values of one column, without null, in a defined order; immutable.

    Parameters
    ----------
    distinct : Values
        The values, each once.  `from_unsorted`, `in_order` and `from_values` make sure of this.

    Examples
    --------
    >>> vocabulary, has_null = Vocabulary.from_values(["low", "high", None], "level")
    >>> vocabulary.to_numpy(), has_null
    (array(['low', 'high'], dtype=object), True)
    >>> other, _ = Vocabulary.from_values(["high", "none"], "level")
    >>> vocabulary.positions(other, "level")
    array([ 1, -2], dtype=int32)
    """

    def __init__(self, distinct: Values) -> None:
        self.values = distinct

    @classmethod
    def from_unsorted(cls, unsorted: Values) -> tuple["Vocabulary", Array]:
        """Make the vocabulary of values in any order, repeated or not, and give the index (int32) of each value."""
        distinct, codes = unsorted.sort()
        return cls(distinct), codes

    @classmethod
    def in_order(cls, given: Values, column: object) -> "Vocabulary":
        """Make the vocabulary of values in their own order; a repeated value is an error."""
        if not given.is_sorted:
            distinct, indices = given.sort()
            if len(distinct) < len(given):
                repeated = given.take(np.flatnonzero(np.bincount(indices)[indices] > 1)[:1]).to_numpy()[0]
                shown = str(repeated) if isinstance(repeated, np.generic) else repr(repeated)
                raise ValueError(
                    f"categories of {of_column(column)} contain {shown} more than once: the predefined categories "
                    "contain duplicate elements. Name each once."
                )
        return cls(given)

    @classmethod
    def from_values(cls, given: Any, column: object) -> tuple["Vocabulary", bool]:
        """Make the vocabulary of a user's list or array, and tell whether it ends with a null.

        Parameters
        ----------
        given : list or array
            Categories in their order, each once; only the last may be null.
        column : str
            Name of the column, for messages.
        """
        listed = given.to_pylist() if isinstance(given, (pa.Array, pa.ChunkedArray)) else list(given)
        nulls = [objects.is_null(value) for value in listed]
        has_null = any(nulls)
        if has_null and nulls.index(True) != len(nulls) - 1:
            raise ValueError(
                f"categories of {of_column(column)}: Nan should be the last element: a missing value (None, NaN) must "
                "be the last element, once."
            )
        if isinstance(given, np.ndarray) and given.dtype.kind in "biufmMUS":
            read = values.from_numpy(given[: len(given) - has_null], column)
        else:
            read = objects.from_objects(listed[: len(listed) - has_null], column)
        if len(read.infinite()):
            raise ValueError(f"categories of {of_column(column)} contain infinity. Leave it out.")
        return cls.in_order(read, column), has_null

    def __len__(self) -> int:
        return len(self.values.array)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        if len(self) != len(other) or self.values.title != other.values.title:
            return False
        return bool(np.array_equal(self.positions(other, None), np.arange(len(self))))

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def prepared(self) -> dict[str, Any]:
        """Tables that look-ups have made of the values, by the memory in which they lie."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        # Tables for look-ups can be made again, and may lie on a device that another process does not have.
        return {"values": self.values}

    def __repr__(self) -> str:
        return f"Vocabulary({self.values.title}, {len(self)} values)"

    @property
    def kind(self) -> str:
        """Kind of the values: number, text, bytes, datetime, duration, time, interval, period; null for no values."""
        return self.values.kind

    @property
    def is_sorted(self) -> bool:
        """Whether the values are in sorted order."""
        return self.values.is_sorted

    def positions(self, other: "Vocabulary | Values", column: object) -> Array:
        """Give the index (int32) in this vocabulary of each value of `other`; -2 if it is absent.

        Numbers are equal if they are the same number, whatever their types; dates and times if they are the same
        moment.

        Raises
        ------
        ValueError
            If the values are of another kind than this vocabulary.
        """
        wanted = other.values if isinstance(other, Vocabulary) else other
        if not len(wanted) or not len(self):
            return np.full(len(wanted), UNKNOWN, np.int32)
        if wanted.title != self.values.title:
            raise different_kinds(column, self.values.title, wanted.title)
        if isinstance(self.values.array, np.ndarray):
            return self._positions_of_numbers(wanted)
        return self._positions_of_text(wanted.array)

    @cached_property
    def _order(self) -> Array | None:
        """The indices that sort the values; None if they are sorted already."""
        if self.is_sorted:
            return None
        array = self.values.array
        order = np.argsort(array, kind="stable") if isinstance(array, np.ndarray) else pc.sort_indices(array).to_numpy()
        return order.astype(np.int32)

    def _positions_of_numbers(self, wanted: Values) -> Array:
        array = self.values.array
        if self.kind in TEMPORAL:
            given, exact = values.rescale(wanted.array, wanted.unit or "s", self.values.unit or "s")
        elif array.dtype.kind == "O":
            table = {value: index for index, value in enumerate(array)}
            return np.array([table.get(value, UNKNOWN) for value in wanted.array.tolist()], np.int32)
        else:
            given, exact = values.as_dtype(wanted.array, array.dtype)
        array = array.astype(np.int64) if array.dtype.kind == "b" else array
        index = np.minimum(np.searchsorted(array, given, sorter=self._order), len(array) - 1)
        index = index if self._order is None else self._order[index]
        return np.where(exact & (array[index] == given), index, UNKNOWN).astype(np.int32)

    def indices_of(self, array: Any, ops: Ops) -> Array | None:
        """Give the index (int32) of each value of an Arrow array of this kind: -1 for null, -2 if it is absent.

        None if the backend leaves this to Arrow.
        """
        backend = host_strings(len(array) + len(self), ops)
        if backend is None or len(array) <= _FEW:
            return None
        prepared = self.prepared
        if "cpu" not in prepared:
            prepared["cpu"] = strings.prepare(self.values.array, backend)
        return strings.lookup(array, prepared["cpu"], backend)

    def _positions_of_text(self, wanted: Any) -> Array:
        array = self.values.array
        if wanted.equals(array):
            return np.arange(len(array), dtype=np.int32)
        if (positions := self.indices_of(wanted, host(len(wanted)))) is not None:
            return positions
        if len(wanted) <= _FEW:
            return self._indices_one_by_one(values.as_bytes(wanted))
        if len(wanted) > len(array) // 4:
            return pc.index_in(wanted, value_set=array).fill_null(UNKNOWN).to_numpy()
        # To hash the few wanted values and pass over the many known ones costs far less than to hash the many.
        repeated = wanted.dictionary_encode()
        hit = pc.index_in(array, value_set=repeated.dictionary)
        present = np.flatnonzero(hit.is_valid().to_numpy(zero_copy_only=False))
        positions = np.full(len(repeated.dictionary), UNKNOWN, np.int32)
        positions[hit.drop_null().to_numpy()] = present
        indices: Array = repeated.indices.to_numpy()
        return positions[indices]

    def _indices_one_by_one(self, wanted: list[bytes]) -> Array:
        if len(self) <= _TABLED:
            return np.array([self._index_of_bytes.get(value, UNKNOWN) for value in wanted], np.int32)
        known, positions = self.values.array.view(pa.large_binary()), np.full(len(wanted), UNKNOWN, np.int32)
        for index, value in enumerate(wanted):
            rank = bisect_left(range(len(known)), value, key=lambda rank: known[self._index(rank)].as_py())
            if rank < len(known) and known[self._index(rank)].as_py() == value:
                positions[index] = self._index(rank)
        return positions

    @cached_property
    def _index_of_bytes(self) -> dict[bytes, int]:
        """Indices of a few values, by value."""
        return {value: index for index, value in enumerate(values.as_bytes(self.values.array))}

    @cached_property
    def index_of_text(self) -> dict[str, int] | None:
        """The index of each value, if they are few and Python text; None for all others."""
        if self.kind != "text" or len(self) > _TABLED:
            return None
        try:
            return {value: index for index, value in enumerate(self.values.array.to_pylist())}
        except UnicodeDecodeError:  # Arrow arrays from files may hold text that is not UTF-8
            return None

    def _index(self, rank: int) -> int:
        return rank if self._order is None else int(self._order[rank])

    def union(self, other: "Vocabulary", column: object) -> tuple["Vocabulary", Array, Array]:
        """Give the sorted vocabulary of both vocabularies, and the new indices of the values of each of them."""
        positions = self.positions(other, column)  # raises an error for another kind
        if self.is_sorted and _alike(self.values, other.values):
            new = np.flatnonzero(positions == UNKNOWN)
            if not len(new):
                return self, np.arange(len(self), dtype=np.int32), positions
            if isinstance(self.values.array, np.ndarray) and other.is_sorted:
                return self._with_new(other.values.take(new), positions, new)
        both, indices = Vocabulary.from_unsorted(union_of([self.values, other.values]))
        return both, indices[: len(self)], indices[len(self) :]

    def _with_new(self, added: Values, positions: Array, new: Array) -> tuple["Vocabulary", Array, Array]:
        """Insert new sorted numbers; among many numbers this costs less than to sort all of them."""
        before = np.searchsorted(self.values.array, added.array)
        both = replace(self.values, array=np.insert(self.values.array, before, added.array))
        shift = np.cumsum(np.bincount(before, minlength=len(self) + 1))[: len(self)]
        mine = (np.arange(len(self)) + shift).astype(np.int32)
        theirs, known = np.empty(len(positions), np.int32), np.flatnonzero(positions >= 0)
        theirs[known] = mine[positions[known]]
        theirs[new] = before + np.arange(len(new))
        return Vocabulary(both), mine, theirs

    def to_numpy(self) -> Array:
        """Give the values for users, in the type of the first table; text and decimals are objects, dates in UTC."""
        return self.values.to_numpy()

    def to_arrow(self) -> Any:
        """Give the values as an Arrow array; `from_arrow` needs this array and `metadata`."""
        array = self.values.array
        if not isinstance(array, np.ndarray):
            return array
        return pa.array(objects.to_text(array), pa.large_string()) if array.dtype.kind == "O" else pa.array(array)

    def metadata(self) -> dict[str, str | None]:
        """Describe in terms of JSON the facts about the values that the Arrow array does not tell."""
        held = self.values
        return {"kind": held.kind, "dtype": held.dtype, "unit": held.unit, "timezone": held.timezone}

    @classmethod
    def from_arrow(cls, array: Any, metadata: dict[str, Any]) -> "Vocabulary":
        """Make the vocabulary that `to_arrow` and `metadata` describe; raise ValueError if they do not fit together."""
        array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
        if reason := _misfit(array, **{name: metadata.get(name) for name in ("kind", "dtype", "unit", "timezone")}):
            raise _damaged_vocabulary(reason)
        kind, stored = metadata["kind"], array
        try:
            if kind == "number" and values.is_text(array.type):
                stored = objects.from_text(array.to_pylist())
            elif kind not in ("text", "bytes", "interval"):
                stored = array.to_numpy(zero_copy_only=False)
            distinct = Values(kind, stored, metadata["dtype"], metadata.get("unit"), metadata.get("timezone"))
            distinct.take(np.zeros(0, np.int64)).to_numpy()
            return cls.in_order(distinct, None)
        except (TypeError, ValueError, KeyError, ArithmeticError) as error:
            raise _damaged_vocabulary(str(error)) from None


def _damaged_vocabulary(reason: str) -> ValueError:
    """Error for stored categories that do not fit their description."""
    return ValueError(f"the stored categories are damaged: {reason}.")


def as_python(categories: Any) -> Any:
    """Give a user's categories with Arrow arrays as lists; other containers do not change."""
    if not isinstance(categories, list):
        return categories
    return [given.to_pylist() if isinstance(given, (pa.Array, pa.ChunkedArray)) else given for given in categories]


def union_of(parts: list[Values]) -> Values:
    """Concatenate values, in a type that does not depend on the order of the parts."""
    filled = [part for part in parts if len(part)]
    if not filled:
        return min(parts, key=lambda part: (part.kind == "null", part.dtype, part.unit or "", part.timezone or ""))
    union = values.union(filled)
    if union.kind != "number":
        return union
    numbers = [part for part in parts if part.kind == "number"]
    array = union.array
    if array.dtype.kind in "iu" and any(part.array.dtype.kind == "f" for part in numbers):
        # A part that holds only NaN still counts when the type is chosen, as NaN does in a single column.
        floats, exact = values.as_dtype(array, np.dtype(np.float64))
        array = floats if exact.all() else array
    names = {part.dtype for part in numbers}
    return replace(union, array=array, dtype=union.dtype if len(names) == 1 else values.numpy_name(array.dtype))


def _alike(one: Values, other: Values) -> bool:
    """Tell whether both hold their values in the same type."""
    held = [part.array.dtype if isinstance(part.array, np.ndarray) else part.array.type for part in (one, other)]
    traits = [(part.kind, part.dtype, part.unit, part.timezone) for part in (one, other)]
    return held[0] == held[1] and traits[0] == traits[1]


def _misfit(array: Any, kind: Any, dtype: Any, unit: Any, timezone: Any) -> str | None:
    """Name the fault in the type of a stored vocabulary; None if there is none."""
    numbers: Sequence[Any] = (pa.bool_(), pa.int64(), pa.uint64(), pa.float64(), pa.large_string())
    expected = numbers if kind == "number" else (_STORED.get(kind, pa.int64()),)
    if kind not in (*_STORED, *TEMPORAL, "number") or not isinstance(dtype, str):
        return f"kind {kind!r} of {dtype!r} is not known"
    if array.type not in expected:
        return f"{kind} values are stored as {array.type}"
    if kind in ("interval", "period") and not dtype.startswith(f"{kind}["):
        return f"{kind} values are of {dtype!r}"
    if array.null_count or (kind in TEMPORAL) != (unit in UNITS) or not isinstance(timezone, str | None):
        return "they hold nulls, or their unit or time zone is wrong"
    return None


class FactorizedColumn(NamedTuple):
    """The code of each row (int32; -1 for null), the vocabulary, and whether it is known that no row is null."""

    codes: Array
    vocabulary: Vocabulary
    complete: bool = False
