"""Encode one row at a time, as a web service does: by dicts made of a fitted encoder, without threads."""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from itertools import chain, count, pairwise
from operator import itemgetter
from threading import Lock
from typing import Any

import numpy as np

from cpu_fallback.types import MISSING, UNKNOWN
from gpu_encode.encoders.base import Encoder, names_at_fit
from gpu_encode.fitting.drift import RowCounts
from gpu_encode.fitting.model import Model, columns_per_output, kept_outputs
from gpu_encode.seam.ops import host
from gpu_encode.tables.categories.row_lookups import ColumnLookup, JointLookup, Told, UndecidedError
from gpu_encode.tables.frames import Frame
from gpu_encode.tables.frames.labels import as_numpy, column_of
from gpu_encode.words.annotations import Row
from gpu_encode.words.errors.tables import other_width, unknown_column

# The values that each code adds to a row: first for rows that have all values of a key, then for rows that lack one.
# None: the steps of `transform` encode the row.
Answers = tuple[list[Any], list[Any]]


class RowEncoder:
    """Gives the encodings of one row at a time; `row_encoder` of a fitted encoder makes it.

    Parameters
    ----------
    encoder : Encoder
        A fitted encoder.
    passed : bool, default=True
        Whether rows have the columns that pass through.
    counts : bool, default=False
        Whether rows, unknown and missing values are counted.

    Attributes
    ----------
    names : list of str
        Names of the values, as `get_feature_names_out` gives them.

    Examples
    --------
    >>> from gpu_encode import CountEncoder
    >>> encode = CountEncoder().fit([["oak", 1], ["oak", 2], ["elm", 1]]).row_encoder()
    >>> encode.names, encode(("oak", 2))
    (['x0', 'x1'], [2.0, 1.0])
    """

    def __init__(self, encoder: Encoder, *, passed: bool = True, counts: bool = False) -> None:
        # A shallow copy is enough: an encoder that learns more gets another model, and the old one never changes.
        self._encoder = copy(encoder)
        model = encoder._model
        self.names: list[str] = encoder.get_feature_names_out().tolist()
        self._labels = names_at_fit(model)
        selection = model.selection
        through = selection.passed if passed else []
        if not passed and selection.passed:
            del self.names[-len(selection.passed) :]
        needed = {*selection.needed, *through, *selection.dates} - {*selection.optional}
        self._needed, self._passed = ([self._labels[one] for one in some] for some in (sorted(needed), through))
        self._in_tuple = self._needed if selection.everything or not passed else self._labels
        answers = self._answers(model)
        lookups = [lookup_of(model, number, of_key) for number, of_key in enumerate(answers)]
        for number, lookup in enumerate(lookups):
            lookup.number = number
        self._counted = encoder._counted() if counts else None
        self._counter = None if self._counted is None else RowCounter(len(self._counted.keys))
        self._lookups = [(lookup.label, lookup.types, lookup.known, lookup) for lookup in lookups]
        order = order_of(model) if lookups and model.by_key else []
        self._order = itemgetter(*order) if order != [*range(len(order))] else None

    def __call__(self, row: Row | Sequence[Row]) -> Any:
        """Encode a row, or each row of a list.

        Parameters
        ----------
        row : dict, tuple, or list of these
            A dict of values by the names of the columns; it may have other names, too.  Columns without a name are
            called x0, x1 and so on.  A tuple holds the values of all columns, in their order at fit; if `passed` is
            False, it may hold those of the columns that are encoded alone.

        Returns
        -------
        list, or list of lists
            Encodings, indicators, and values that pass through as they are.

        Raises
        ------
        ValueError
            If a column is missing, or if `transform` would raise it.
        TypeError
            If `row` is no row, or if `transform` would raise it.
        """
        if type(row) is list:
            return [self(one) for one in row]
        named = row if type(row) is dict else self._by_name(row)
        counter = self._counter
        told: Told = None if counter is None else []
        try:
            values = self._look_up(named, told)
            if self._passed:
                values += [named[label] for label in self._passed]
        except LookupError:
            self._check_columns(named)
            frame = self._frame(named)
            told = None if self._counted is None else tell(self._counted, frame, self._encoder._owner)
            values = [*self._transform(frame), *(named[label] for label in self._passed)]
        if counter is not None:
            counter.count_row()
            if told:
                counter.add(told)
        return values

    @property
    def counts(self) -> list[dict[str, str | int]]:
        """Numbers of the rows that were encoded, and of their unknown and missing values: a dict for each key.

        The words have the meaning that they have in `drift`.  Rows that are refused are not counted.
        """
        if self._counter is None or self._counted is None:
            raise AttributeError("Nothing was counted: make the row encoder by row_encoder(counts=True).")
        model = self._counted
        names = model.selection.names(names_at_fit(model))
        return [{"key": name} | found for name, found in zip(names, self._counter.counts(), strict=True)]

    def _answers(self, model: Model) -> list[Answers]:
        """Give the values that each code of each key adds to a row; none if encodings need several keys."""
        return answers_of(model, self._encoder._output_type) or []

    def _look_up(self, row: Mapping[str, Any], told: Told) -> list[Any]:
        """Give the encodings and indicators of a row; raise UndecidedError if the dicts do not have them.

        Unknown and missing values are added to `told`.
        """
        if not self._lookups:
            raise UndecidedError
        values: list[Any] = []
        for label, types, known, lookup in self._lookups:
            value = row[label]
            found = known.get(value) if type(value) in types else None
            values += found or lookup.of(row, told)
        return values if self._order is None else list(self._order(values))

    def _frame(self, row: Mapping[str, Any]) -> Frame:
        """Give a row as a table."""
        values = np.empty((1, len(self._labels)), object)
        for position, label in enumerate(self._labels):
            values[0, position] = row.get(label)
        return Frame(values, "numpy", values.shape, self._encoder._model.feature_names)

    def _transform(self, frame: Frame) -> list[Any]:
        """Give the encodings and indicators of a row by the steps of `transform`."""
        arrays, _ = self._encoder._model.encode(frame, host(1), self._encoder._owner)
        return [in_python(array)[0] for array in self._finish(arrays)]

    def _finish(self, arrays: Any) -> list[Any]:
        return self._encoder._finish(self._encoder._model, arrays)

    def _by_name(self, row: Any) -> Mapping[str, Any]:
        """Give a row as a dict."""
        if isinstance(row, tuple):
            labels = self._in_tuple if len(row) == len(self._in_tuple) else self._labels
            if len(row) != len(labels):
                raise other_width(self._encoder._owner, len(row), len(labels))
            return dict(zip(labels, row, strict=True))
        if isinstance(row, Mapping):
            return dict(row)
        raise TypeError(
            "A row is a dict of values by the names of their columns, or a tuple of the values of all columns. For "
            f"several rows, pass a list of these. Got {type(row).__name__} instead."
        )

    def _check_columns(self, row: Mapping[str, Any]) -> None:
        """Raise ValueError if a row lacks a column that is needed."""
        for label in self._needed:
            if label not in row:
                role = "The passed-through column" if label in self._passed else "The fitted column"
                error = unknown_column(role, label, list(row), "the row")
                advice = " row_encoder(passed=False) does not ask for it." if label in self._passed else ""
                raise ValueError(f"{error}{advice}")


class RowCounter:
    """Counts of rows, and of unknown and missing values of each key; threads may share it."""

    def __init__(self, n_keys: int) -> None:
        self.values = [{UNKNOWN: 0, MISSING: 0} for _ in range(n_keys)]
        self.lock, self.n_reads = Lock(), 0
        # It counts in one step that no thread can interrupt, at a fourth of what a lock costs.
        self.count_row = count().__next__

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy in another process counts its own rows.
        return RowCounter, (len(self.values),)

    def add(self, told: Iterable[tuple[int, int]]) -> None:
        """Count unknown and missing values of a row."""
        with self.lock:
            for number, code in told:
                self.values[number][code] += 1

    def counts(self) -> list[dict[str, Any]]:
        """Give the counts of each key."""
        with self.lock:
            # To read it is to count.
            n_rows = self.count_row() - self.n_reads
            self.n_reads += 1
            return [{"rows": n_rows, "unknown": found[UNKNOWN], "missing": found[MISSING]} for found in self.values]


def tell(model: Model, frame: Frame, owner: str) -> Told:
    """Give the unknown and missing values of a table of one row, as `drift` counts them."""
    found = RowCounts.of(model, frame, host(1), owner)
    unknown = [(number, UNKNOWN) for number, counts in enumerate(found.counts) if counts[UNKNOWN]]
    return unknown + [(number, MISSING) for number, lacks in enumerate(found.lacking) if lacks]


def answers_of(model: Model, dtype: np.dtype[Any]) -> list[Answers] | None:
    """Give the values that each code of each key adds to a row: its encodings, in the given type, then its indicators.

    None: the encodings of a row do not follow from single keys alone, or they change with time.
    """
    if not model.by_key:
        return None
    if (lines := model.lines(dtype)) is not None:
        return [(rows, rows) for rows in (with_policies(model, number, rows) for number, rows in enumerate(lines))]
    if any(lookup.elapsed for lookup in model.lookups(host(0))):
        return None
    return [smoothed_answers(model, number, dtype) for number in range(len(model.keys))]


def smoothed_answers(model: Model, number: int, dtype: np.dtype[Any]) -> Answers:
    """Give the values that each code of a key adds to a row, from the table of its encodings."""
    key, rule, table = model.keys[number], model.rules[number], model.lookups(host(0))[number]
    rows: list[Any] = list(zip(*[in_python(column) for column in columns_of(model, number, dtype)], strict=True))
    unseen: Any = [False] * len(rows) if table.unseen is None else table.unseen[:, 0].tolist()
    if dtype.kind != "f":
        blind: Any = np.isnan(table.encodings).any(axis=(1, 2)).tolist()
        rows = [None if is_blind else row for row, is_blind in zip(rows, blind, strict=True)]
    if key.missing_is_unknown and rule.missing == "category":
        unseen[MISSING] = unseen[UNKNOWN]
    rows = with_policies(model, number, rows)
    if not model.indicators:
        return rows, rows
    present, lacking = (
        [
            row and (*row, *(float(lacks if name == "missing" else is_unseen) for name in model.indicators))
            for row, is_unseen in zip(rows, unseen, strict=True)
        ]
        for lacks in (False, True)
    )
    return present, lacking


def with_policies(model: Model, number: int, rows: list[Any]) -> list[Any]:
    """Apply the policies of a key to the values of its codes: None for values that they refuse."""
    key, rule = model.keys[number], model.rules[number]
    if key.missing_is_unknown and rule.missing == "category":
        rows[MISSING] = rows[UNKNOWN]
    if rule.refuses_unknown:
        missing = rows[MISSING] if rule.missing != "category" or key.has_missing else None
        rows = [*rows[: key.n_categories], *[None] * (len(rows) - key.n_categories - 1), missing]
    if rule.missing == "error":
        rows[MISSING] = None
    return rows


def order_of(model: Model) -> list[int]:
    """Give for each output its position among the values of all keys, laid side by side."""
    positions = model.positions()
    if positions is None:
        n_keys, n_flags = len(model.keys), len(model.indicators)
        encodings = np.cumsum([0, *(len(kept_positions(model, number)) for number in range(n_keys))])
        flags = encodings[-1] + n_flags * np.arange(n_keys + 1)
        of_both = zip(pairwise(encodings), pairwise(flags), strict=True)
        positions = [[*range(*encoded), *range(*flagged)] for encoded, flagged in of_both]
    return [int(position) for position in np.argsort([*chain.from_iterable(positions)])]


def lookup_of(model: Model, number: int, answers: Answers) -> ColumnLookup | JointLookup:
    """Give the look-up of a key's values, with the values that each code adds to a row."""
    key, labels = model.keys[number], names_at_fit(model)
    named = [labels[position] for position in key.entry.columns]
    if len(named) > 1:
        return JointLookup(key, named, answers, model.rules[number].missing == "category")
    present, lacking = answers
    of_column = [*present[:MISSING], lacking[MISSING]]
    if key.entry.rule is not None:
        # An unknown value may have known ancestors in the hierarchy.
        of_column[UNKNOWN] = None
    as_unknown = key.missing_is_unknown and model.rules[number].missing == "category"
    return ColumnLookup(key.vocabularies[0], named[0], of_column, as_unknown)


def kept_positions(model: Model, number: int) -> list[int]:
    """Give the positions of a key's encodings that have an output column."""
    if (positions := model.positions()) is not None:
        return [*range(len(positions[number]))]
    width = model.lookups(host(0))[number].encodings.shape[2]
    if model.rules[0].drop is None:
        return list(range(width))
    # Every key has the same outputs.
    kept = np.repeat(kept_outputs(model), len(columns_per_output(model))).reshape(len(model.keys), -1)
    return np.flatnonzero(kept[number]).tolist()


def columns_of(model: Model, number: int, dtype: np.dtype[Any]) -> list[Any]:
    """Give the output columns of one key, by code, as arrays; text and dates are arrays of Arrow."""
    encodings = model.lookups(host(0))[number].encodings[:, 0, :]
    # If targets have classes, no statistic is text or a date.
    labels, columns = dict(enumerate(model.values_of(number))), []
    for position in kept_positions(model, number):
        values, named = encodings[:, position], labels.get(position)
        with np.errstate(invalid="ignore"):
            columns.append(values.astype(dtype) if named is None else column_of(named[0], values, named[1]))
    return columns


def in_python(column: Any) -> list[Any]:
    """Give a column as a list: numbers and text of Python, dates of NumPy."""
    array = as_numpy(column)
    return list(array) if array.dtype.kind in "mM" else array.tolist()
