"""Look up the value of a single row in a plain dict, without arrays and locks; other values are read like a column."""

import datetime
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from cpu_fallback.types import MISSING, UNKNOWN
from gpu_encode.tables.categories.keys import CategoryIndex
from gpu_encode.tables.categories.values import Values, as_bytes, rescale
from gpu_encode.tables.categories.vocabulary import Vocabulary

# For values of these types, Python and columns agree about equality.  A value of another type, such as a complex
# number, a fraction or timedelta64, may be equal to a known one although a column refuses it.
_INTEGERS: frozenset[type] = frozenset(
    {int, bool, np.bool_, *(np.dtype(letter).type for letter in np.typecodes["AllInteger"])}
)
_FLOATS: frozenset[type] = frozenset({float, np.float64, np.float32, np.float16})
_PLAIN: frozenset[type] = frozenset({int, bool, float, Decimal})
_TEXTS: frozenset[type] = frozenset({str, np.str_})


# For a row that is counted: the number of a key and the code of an unknown or missing value, for each such value.
Told = list[tuple[int, int]] | None


class UndecidedError(LookupError):
    """Error for a value that has to be read like a column, or that the policies refuse."""


class ColumnLookup:
    """The answers for the values of one column.

    Parameters
    ----------
    label : str
        Name of the column in rows.
    answers : list
        By code: the answer for each value; the last two are for an unknown and for a missing value.  None for a value
        that has to be read like a column.
    missing_is_unknown : bool, default=False
        Whether a missing value counts as unknown, too.

    Attributes
    ----------
    number : int
        The number of the key.
    """

    number = 0

    def __init__(
        self, vocabulary: Vocabulary, label: str, answers: Sequence[Any], missing_is_unknown: bool = False
    ) -> None:
        self.missing_is_unknown = missing_is_unknown
        self.label, self.kind = label, vocabulary.kind
        self.types, listed = list_values(vocabulary.values)
        self.known = {value: answers[index] for value, index in listed}
        self.unknown, self.missing = answers[UNKNOWN], answers[MISSING]

    def of(self, row: Mapping[str, Any], told: Told = None) -> Any:
        """Give the answer for a row's value; raise UndecidedError if there is none."""
        value = row[self.label]
        found = self.known.get(value) if type(value) in self.types else None
        if found is None:
            if value is None or (type(value) in _FLOATS and value != value):  # noqa: PLR0124 - NaN
                found, codes = self.missing, (MISSING, UNKNOWN)[: 1 + self.missing_is_unknown]
            elif self._is_unknown(value):
                found, codes = self.unknown, (UNKNOWN,)
            if found is None:
                raise UndecidedError
            if told is not None:
                told += [(self.number, code) for code in codes]
        return found

    def _is_unknown(self, value: Any) -> bool:
        """Tell whether a value that is not known is of the same kind as the known values."""
        # Columns refuse text with lone surrogates, and infinity.
        if self.kind == "text":
            return type(value) in _TEXTS and is_unicode(value)
        if self.kind != "number":
            return False
        return type(value) in _INTEGERS or (type(value) in _FLOATS and math.isfinite(value))


class JointLookup:
    """The answers for a joint key, or for a column below others in a hierarchy.

    Parameters
    ----------
    labels : list of str
        Names of the key's columns in rows, the top level first.
    answers : tuple of list
        Two lists by code: for rows that have all values of the key itself, and for rows that lack one.
    missing_is_category : bool
        Whether a missing value counts as one more value.
    """

    number = 0
    # The answer follows from several values, so no type of a single value decides.
    types: frozenset[type] = frozenset()
    known: Mapping[Any, Any] = {}

    def __init__(
        self, key: CategoryIndex, labels: Sequence[str], answers: tuple[list[Any], ...], missing_is_category: bool
    ) -> None:
        self.label, self.answers, self.missing_is_category = labels[0], answers, missing_is_category
        self.columns = [
            ColumnLookup(words, label, [*range(len(words)), UNKNOWN, MISSING])
            for words, label in zip(key.vocabularies, labels, strict=True)
        ]
        self.n_above, self.n_categories = len(key.entry.above), key.n_categories
        self.indices = joint_indices(key)

    def of(self, row: Mapping[str, Any], told: Told = None) -> Any:
        """Give the answer for a row's category, or for its nearest known ancestor; raise UndecidedError without one."""
        codes = tuple([column.of(row) for column in self.columns])
        lacks_value = MISSING in codes[self.n_above :]
        index = self._index(codes, lacks_value)
        found = self.answers[lacks_value][index]
        if found is None:
            raise UndecidedError
        if told is not None:
            is_unknown = index == UNKNOWN or index >= self.n_categories
            told += [(self.number, MISSING)] * lacks_value + [(self.number, UNKNOWN)] * is_unknown
        return found

    def _index(self, codes: tuple[int, ...], lacks_value: bool) -> int:
        index = self.indices.get(codes)
        if index is not None:
            return index
        if lacks_value and not self.missing_is_category:
            return MISSING
        for depth in range(self.n_above, 0, -1):
            index = self.indices.get(codes[:depth])
            if index is not None:
                return index
        return UNKNOWN


def joint_indices(key: CategoryIndex) -> dict[tuple[int, ...], int]:
    """Give the index of each category by the codes of its columns, and of each ancestor by the first of these codes."""
    assert key.tuples is not None
    members = key.tuples.members.tolist()
    indices = {tuple(codes): index for index, codes in enumerate(members)}
    for depth, (start, level) in enumerate(zip(key.starts[1:], key.levels, strict=False)):
        if not depth:
            # All values are indexed, even if no category has them; a missing value comes last.
            size = len(key.vocabularies[0])
            indices |= {(code,): start + code for code in range(size)} | {(MISSING,): start + size}
            continue
        found = zip(members, level.of_leaf.tolist(), strict=True)
        indices |= {tuple(codes[: depth + 1]): start + ancestor for codes, ancestor in found}
    return indices


def list_values(values: Values) -> tuple[frozenset[type], list[tuple[Any, int]]]:
    """Give the types of objects that may be looked up, and the values as Python objects with their indices."""
    kind, types = values.kind, frozenset[type]()
    listed: list[Any] = []
    if kind == "number":
        listed, of_objects = values.array.tolist(), values.array.dtype.kind == "O"
        # NumPy's floats are compared in their own precision with large integers.
        types = _PLAIN if of_objects else _INTEGERS | _FLOATS | _PLAIN
    elif kind == "text":
        return _TEXTS, list_texts(as_bytes(values.array))
    elif kind == "bytes":
        listed, types = as_bytes(values.array), frozenset({bytes})
    elif kind == "time":
        listed, types = values.to_numpy().tolist(), frozenset({datetime.time})
    elif kind == "duration":
        ticks, exact = rescale(values.array, values.unit or "s", "us")
        spans = ticks.view("timedelta64[us]").tolist()
        listed = [span if whole else None for span, whole in zip(spans, exact.tolist(), strict=True)]
        types = frozenset({datetime.timedelta})
    elif kind == "datetime":
        return frozenset({datetime.datetime, *([] if values.timezone else [datetime.date])}), list_moments(values)
    return types, [(value, index) for index, value in enumerate(listed) if type(value) in types]


def is_unicode(text: str) -> bool:
    """Tell whether text can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def list_texts(spelled: Sequence[bytes]) -> list[tuple[str, int]]:
    """Give texts with their indices; bytes from files that are not UTF-8 are left out."""
    listed = []
    for index, text in enumerate(spelled):
        try:
            listed.append((text.decode(), index))
        except UnicodeDecodeError:
            continue
    return listed


def list_moments(values: Values) -> list[tuple[datetime.date, int]]:
    """Give dates and times with their indices; a time at midnight without a time zone is also there as a date."""
    ticks, exact = rescale(values.array, values.unit or "s", "us")
    zone = datetime.UTC if values.timezone else None
    listed: list[tuple[datetime.date, int]] = []
    for index, (moment, whole) in enumerate(zip(ticks.view("datetime64[us]").tolist(), exact.tolist(), strict=True)):
        # A time beyond Python's years is a number here.
        if whole and isinstance(moment, datetime.datetime):
            listed.append((moment.replace(tzinfo=zone), index))
            if zone is None and moment.time() == datetime.time.min:
                listed.append((moment.date(), index))
    return listed
