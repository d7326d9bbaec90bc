"""Columns of X by their use: encoded alone or jointly, passed through, or read by schemes; and their positions."""

import math
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.types import Array, Codes
from gpu_encode.schemes.plans import ValueFolds
from gpu_encode.seam import devices
from gpu_encode.seam.ops import Ops
from gpu_encode.tables import frames
from gpu_encode.tables.categories.hierarchy import Derived
from gpu_encode.tables.categories.keys import CategoryIndex, Joined, KeySpec
from gpu_encode.tables.categories.values import Values, from_numpy
from gpu_encode.tables.categories.vocabulary import FactorizedColumn, Vocabulary
from gpu_encode.tables.frames import Frame, Pieces, with_piece
from gpu_encode.tables.frames.column_choice import is_choice, list_columns
from gpu_encode.tables.frames.columns import NOTE, index_of
from gpu_encode.words.annotations import Column
from gpu_encode.words.errors.parameters import check_count
from gpu_encode.words.errors.tables import inconsistent_lengths, not_encoded, other_width, unknown_column
from gpu_encode.words.errors.values import RowError, missing_values
from gpu_encode.words.notices import UnseenWarning, warn

# Dates, weeks, ordinal days, and times of a day.  Months above 12 do not match, so YYYY-DD-MM is noticed.
DATE = r"-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01])([T ][0-2]\d(:[0-5]\d(:[0-6]\d([.,]\d+)?)?)?Z?)?)?"
ISO_8601 = re.compile(rf"\d{{4}}({DATE}|-W[0-5]\d(-[1-7])?|-[0-3]\d\d)?", re.ASCII)

# A name of a column, or its position.
Name = TypeVar("Name", bound=Column)

# Types of names and positions that equal nothing of another type: True equals 1.
PLAIN = (str, int)

# Up to this number of rows, codes of columns that several keys read are kept until the call ends.
FEW_ROWS = 1 << 20
# From this number of keys on, keys may be encoded together, from the codes of their columns.  On a GPU fewer keys are
# enough, since the host waits twice for a column that is read alone.  Six keys, three columns and their pairs, are
# predicted to take two thirds of the time.
FEWEST_TOGETHER = 8
FEWEST_ON = {"cpu": FEWEST_TOGETHER, "cuda": 3}
# The most numbers in the table of a key (cells, folds, classes, width) that is encoded or looked up with others: for
# each row, for few rows, and for any rows.  Looking through more numbers takes longer than numbering the rows of the
# key.  A thread holds the table of one key, and its encodings, which are at most as many numbers.
NUMBERS_PER_ROW, FEW_NUMBERS, MOST_NUMBERS = 8, 1 << 19, 1 << 23
# The most columns of a key for which a GPU has room, in addition to the column of folds.
MOST_COLUMNS = 15
# Keys that `interactions` lists.
MOST_KEYS = 1_000_000


def interactions(names: Iterable[Name], order: int = 2) -> list[Name | tuple[Name, ...]]:
    """List all names and all their conjunctions of up to `order` columns, for the `columns` parameter.

    Parameters
    ----------
    names : iterable of str
    order : int, default=2
        Largest number of columns in a joint key.

    Returns
    -------
    list of str and tuple of str
        The length of the list tells the cost of an encoding: each key takes 8 bytes a row as float64, 4 as float32, and
        one to three milliseconds of two cores for 250,000 rows.

    Notes
    -----
    10 columns have 55 keys with pairs, and 175 with pairs and triples.  30 columns have 465 and 4,525; 100 columns have
    5,050 and 166,750.  `choose_interactions(..., order=3, forward="once", top=50)` finds the keys that are worth their
    cost: it takes about a millisecond a key of such a table, and stores no encodings.

    Examples
    --------
    >>> from gpu_encode import interactions
    >>> interactions(["a", "b", "c"])
    ['a', 'b', 'c', ('a', 'b'), ('a', 'c'), ('b', 'c')]
    >>> len(interactions(range(30))), len(interactions(range(30), order=3))
    (465, 4525)
    """
    if isinstance(names, str):
        raise ValueError(f"interactions needs a list of column names. Got the text {names!r}.")
    listed = list(names)
    check_count("interactions", "order", order, low=1)
    if (n_keys := sum(math.comb(len(listed), size) for size in range(1, min(order, len(listed)) + 1))) > MOST_KEYS:
        raise ValueError(
            f"interactions of up to {order} of {len(listed)} columns are {n_keys:,} keys, more than {MOST_KEYS:,}. "
            "Lower order, or name fewer columns; choose_interactions(order=, forward='once', top=) finds the best."
        )
    return [*listed, *(group for size in range(2, order + 1) for group in combinations(listed, size))]


def most_numbers(n_rows: int) -> int:
    """Give the most numbers in the table of a key that is encoded or looked up with others."""
    return min(max(NUMBERS_PER_ROW * n_rows, FEW_NUMBERS), MOST_NUMBERS)


@dataclass(frozen=True)
class Selection:
    """Columns by their position at fit.

    Parameters
    ----------
    entries : list of KeySpec
        The keys that are encoded, in the order of the output.
    passed : list of int
        Columns that pass through.
    training_only : list of int
        Columns that a scheme reads, or that are summed; later frames may lack them.
    everything : bool
        True if `columns` was None: all columns are encoded, by position.
    pairs : list of tuple of int
        Pairs of numbers of entries, whose pairs of categories are counted.
    others : int
        Number of the last entries that get no encodings: the other entries are counted against these.
    dates : list of int
        Columns that are summed and that later frames must have, since each row's own date is needed.
    """

    entries: list[KeySpec]
    passed: list[int]
    training_only: list[int] = field(default_factory=list)
    everything: bool = True
    pairs: list[tuple[int, int]] = field(default_factory=list)
    others: int = 0
    dates: list[int] = field(default_factory=list)

    @property
    def optional(self) -> list[int]:
        """Positions of columns that later frames may lack."""
        return [position for position in self.training_only if position not in self.dates]

    @property
    def left_out(self) -> list[int]:
        """Positions of columns that are read, and are neither encoded nor passed through."""
        encoded = {column for entry in self.entries[: self.n_encoded] for column in entry.columns}
        return sorted({*self.training_only, *self.needed} - encoded - {*self.passed})

    @property
    def n_encoded(self) -> int:
        """Number of entries that get encodings."""
        return len(self.entries) - self.others

    def without_others(self) -> "Selection":
        """Give the selection of the entries that get encodings; new rows need no column of the other entries."""
        entries = self.entries[: self.n_encoded]
        encoded = {column for entry in entries for column in entry.columns}
        read = sorted({*self.training_only, *self.needed} - encoded)
        return Selection(entries, self.passed, read, self.everything)

    def named(self, names: Sequence[Any]) -> "Selection":
        """Give the same selection; the entries' output names are made from these names of the columns."""
        named = zip(self.entries, self.names(names), strict=True)
        return replace(self, entries=[KeySpec(name, entry.members, entry.above, entry.rule) for entry, name in named])

    def names(self, names: Sequence[Any]) -> list[str]:
        """Give the entries' output names, made from these names of the columns."""
        called = [*map(str, names)]
        return ["_x_".join([called[column] for column in entry.members]) for entry in self.entries]

    @property
    def needed(self) -> list[int]:
        """Positions of all columns that are read."""
        return sorted({position for entry in self.entries for position in entry.columns})


def locate(frame: Frame | Pieces, column: Any, role: str) -> int:
    """Give the position of a column that is given by name or by position."""
    labels = frame.labels if frame.labels is not None else []
    if isinstance(column, (int, np.integer)) and not isinstance(column, bool):
        if not -frame.n_columns <= column < frame.n_columns:
            named = f" The column named {column!r} is at {labels.index(column)}." if column in labels else ""
            raise ValueError(
                f"{role} {column!r} is out of range: X has {frame.n_columns} columns, and an integer is a position."
                f"{named}"
            )
        return int(column) % frame.n_columns
    if not isinstance(column, Hashable) or hasattr(column, "__array__"):
        raise _no_column(role.rstrip(":"), column)
    if column not in labels:
        raise unknown_column(role, column, labels or list(range(frame.n_columns)))
    return labels.index(column)


def _no_column(role: str, found: object) -> ValueError:
    """Error for something that cannot name a column; it says how to write joint keys and groups."""
    hint = ""
    if role == "columns" and isinstance(found, list):
        hint = f" Write a joint key as a tuple, {tuple(found)!r}."
    elif role.startswith("The scheme"):
        hint = " Join several columns to one first; or give groups to fit_transform."
    kind = type(found).__name__
    return ValueError(f"{role} must be the name or position of a column of X. Got a {kind} instead.{hint}")


def select(frame: Frame | Pieces, columns: Any, hierarchy: Any, scheme_columns: Sequence[Any]) -> Selection:
    """Read the `columns` and `hierarchy` parameters for a frame."""
    used = {locate(frame, column, "The scheme's column") for column in scheme_columns}
    tree = {} if hierarchy is None else read_hierarchy(frame, hierarchy)
    everything = columns is None
    groups = list(zip(range(frame.n_columns), strict=True)) if everything else read_columns(frame, columns)
    chosen = not everything and not isinstance(columns, list) and is_choice(columns)
    first = frame.parts[0]
    if first.kind in ("pyarrow", "pyarrow_batch") and NOTE in (first.native.schema.metadata or ()):
        index = {*map(first.native.schema.names.index, index_of(first.native.schema))}
        used |= index if everything or chosen else index.difference(*groups)
    consumed = {*used}
    for above in tree.values():
        consumed.update(() if isinstance(above, Derived) else above)
    if consumed and (everything or chosen):
        groups = [group for group in groups if consumed.isdisjoint(group)]
    if not groups:
        others = "every column is used by the scheme, as values or by a hierarchy"
        why = others if everything else f"columns={columns!r} chooses none" if chosen else "columns is empty"
        raise ValueError(f"No column is left to encode: {why}. Name at least one other column.")
    if twice := used and used.intersection(chain.from_iterable(groups)):
        raise ValueError(
            f"Column {frame.label(min(twice))!r} is used by the scheme (groups, time or folds), as against or summed "
            "(values), and cannot be encoded as well. Leave it out of columns, or give X a copy of it under another "
            "name."
        )
    for key in tree:
        if key not in groups:
            raise not_encoded("hierarchy", frame.label(key[0]))
    entries: list[KeySpec] = []
    touched: set[int] = set()
    called = [*map(str, frame.names or [f"x{position}" for position in range(frame.n_columns)])]
    for group in groups:
        above = tree.get(group, ())
        # The user lists the nearest level first; a path starts at the top.
        levels = ((), above) if isinstance(above, Derived) else (above[::-1],)
        entries.append(KeySpec("_x_".join([called[position] for position in group]), group, *levels))
        touched.update(entries[-1].columns if above else group)
    passed = [] if everything else [position for position in range(frame.n_columns) if position not in touched]
    return Selection(entries, passed, sorted(used - touched), everything)


def read_columns(frame: Frame | Pieces, columns: Any) -> list[tuple[int, ...]]:
    """Read the list of columns and joint keys."""
    # A dict keeps the order, and finds repeated keys without a search through a list.
    groups: dict[tuple[int, ...], None] = {}
    positions: dict[Any, int] = {position: position for position in range(frame.n_columns)}
    positions |= {label: position for position, label in enumerate(frame.labels or []) if type(label) is str}
    for column in columns if isinstance(columns, list) else list_columns(frame, columns):
        members = column if isinstance(column, tuple) else (column,)
        group = tuple(
            [
                positions[member]
                if type(member) in PLAIN and member in positions
                else locate(frame, member, "columns:")
                for member in members
            ]
        )
        if not group or len(set(group)) < len(group):
            raise ValueError(f"The joint key {column!r} must name different columns, at least one.")
        if group in groups:
            raise ValueError(f"columns lists {column!r} twice.")
        groups[group] = None
    return list(groups)


def read_hierarchy(frame: Frame | Pieces, hierarchy: Any) -> "dict[tuple[int, ...], tuple[int, ...] | Derived]":
    """Read the hierarchies: columns from the nearest level to the top, or a rule."""
    if not isinstance(hierarchy, Mapping):
        raise ValueError(
            'hierarchy must map a column to its levels, such as {"zip": ["zip4", "zip3"]}, or to Prefixes, Parts or '
            f"Bits. Got {hierarchy!r} instead."
        )
    tree: dict[tuple[int, ...], tuple[int, ...] | Derived] = {}
    for column, above in hierarchy.items():
        members = column if isinstance(column, tuple) else (column,)
        group = tuple(locate(frame, member, "hierarchy:") for member in members)
        if isinstance(above, Derived):
            above.check()
            if len(group) > 1:
                raise ValueError(
                    f"hierarchy: {type(above).__name__} applies to a single column, not to the joint key {column!r}."
                )
            tree[group] = above
            continue
        named = [above] if isinstance(above, str) or not isinstance(above, Iterable) else list(above)
        levels = tuple(locate(frame, level, f"hierarchy of {column!r}:") for level in named)
        if not levels or len({*levels, *group}) < len(levels) + len(group):
            raise ValueError(f"hierarchy of {column!r} must name different columns, at least one. Got {named!r}.")
        tree[group] = levels
    return tree


def value_of_each_key(name: str, value: Any, others: Any, selection: Selection, frame: Frame | Pieces) -> list[Any]:
    """Give the value of every key: `value` itself, or if it is a dict, the key's value in it, by default `others`.

    Raises
    ------
    ValueError
        If the dict names something that is no column or is not encoded, or names a key twice.
    """
    if not isinstance(value, Mapping) or not value:
        return [others if isinstance(value, Mapping) else value] * len(selection.entries)
    given: dict[tuple[int, ...], Any] = {}
    keys = [entry.members for entry in selection.entries]
    for column, of_key in value.items():
        members = column if isinstance(column, tuple) else (column,)
        key = tuple(locate(frame, member, f"{name}:") for member in members)
        if key in given:
            raise ValueError(f"{name} names {column!r} twice, once by its position. Leave one of them out.")
        if key not in keys:
            labels = [tuple(frame.label(position) for position in members) for members in keys if len(members) > 1]
            raise not_encoded(name, column, labels)
        given[key] = of_key
    return [given.get(key, others) for key in keys]


@dataclass(frozen=True)
class ColumnMap:
    """A table whose columns are found by their positions at fit.

    Parameters
    ----------
    frame : Frame or Pieces
    positions : dict of int to int
        Position at fit -> position in this table.
    repeated : set of int
        Columns that several keys read; their codes are kept.
    joined : dict, optional
        Joined columns for keys that begin with the same columns: see `CategoryIndex.fit`.
    """

    frame: Frame | Pieces
    positions: Mapping[int, int]
    repeated: frozenset[int] = frozenset()
    joined: dict[tuple[Any, ...], Joined] | None = None
    _kept: dict[Any, Any] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.frame.n_rows

    def remember(self, entries: Sequence[KeySpec], join_later: bool = False) -> "ColumnMap":
        """Give a map that keeps the codes of columns that several keys read, if there are few rows.

        With `join_later`, it keeps the codes of all joint keys, for any number of rows: they are needed again.
        """
        if len(entries) < 2:
            return self
        once: set[int] = set()
        repeated: set[int] = set()
        for entry in entries:
            if join_later and len(entry.columns) > 1:
                repeated.update(entry.columns)
            else:
                for column in entry.columns:
                    (repeated if column in once else once).add(column)
        if not repeated or (self.n_rows > FEW_ROWS and not join_later):
            return self
        return replace(self, repeated=self.repeated.union(repeated), joined={}, _kept={**self._kept})

    def number_together(self, entries: Sequence[KeySpec]) -> "ColumnMap":
        """Give a map that keeps the codes of columns of whole numbers in a GPU's memory, which it numbers together."""
        if not self.frame.parts[0].is_on_device:
            return self
        names = {name for entry in entries if entry.rule is None for name in entry.columns}
        found = {name: given[0] for name in sorted(names) if (given := self.whole_numbers(name)) is not None}
        kept = dict(self._kept)
        for name, numbered in zip(found, devices.cuda().index_columns([*found.values()]), strict=True):
            if numbered is not None:
                codes, distinct = numbered
                kept["keys", name] = FactorizedColumn(codes, Vocabulary(from_numpy(distinct, name)), True)
        return replace(self, repeated=self.repeated.union(map(itemgetter(1), kept)), _kept=kept)

    def keys(self, column: int, ops: Ops) -> FactorizedColumn:
        """Give the codes and the sorted distinct values of a column."""
        if column in self.repeated:
            found: FactorizedColumn | None = self._kept.get(("keys", column))
            if found is None:
                found = self._kept["keys", column] = self.frame.keys(self.positions[column], ops)
            return found
        return self.frame.keys(self.positions[column], ops)

    def lookup(self, column: int, vocabulary: Vocabulary, ops: Ops) -> Codes:
        """Give the codes of a column in a known vocabulary."""
        if column in self.repeated:
            known, codes = self._kept.get(("lookup", column), (None, None))
            if known is not vocabulary:
                codes = self.frame.lookup(self.positions[column], vocabulary, ops)
                self._kept["lookup", column] = vocabulary, codes
            return codes
        return self.frame.lookup(self.positions[column], vocabulary, ops)

    def numbers(self, column: int, vocabulary: Vocabulary) -> Array | None:
        """Give the whole numbers of a column that can be compared with a known vocabulary; None for another column."""
        return self.frame.numbers(self.positions[column], vocabulary)

    def whole_numbers(self, column: int) -> tuple[Array, str] | None:
        """Give the whole numbers of a column, on their device, and the name of their type; None for another column."""
        return self.frame.whole_numbers(self.positions[column])

    def empty_vocabulary(self, column: int) -> Vocabulary | None:
        """Give the vocabulary of a column without rows; None if the column's type does not tell the kind of values."""
        return self.frame.empty_vocabulary(self.positions[column])


def map_columns(frame: Frame | Pieces) -> ColumnMap:
    """Map the columns of the fitted table, each to itself."""
    return ColumnMap(frame, dict(enumerate(range(frame.n_columns))))


def locate_columns(
    frame: Frame | Pieces, selection: Selection, fitted_names: Sequence[str] | None, n_features: int, owner: str
) -> ColumnMap:
    """Find the fitted columns in another table: by name if both tables have names and `columns` was a list.

    Otherwise they are found by position.

    Raises
    ------
    ValueError
        If a column that is needed is missing.

    Warns
    -----
    UnseenWarning
        If there are columns that fit has not seen.
    """
    if selection.everything or fitted_names is None or frame.names is None:
        kept = [position for position in range(n_features) if position not in selection.optional]
        if selection.everything and frame.n_columns == len(kept) < n_features:
            return ColumnMap(frame, {position: column for column, position in enumerate(kept)})
        if frame.n_columns != n_features:
            raise other_width(owner, frame.n_columns, n_features)
        return map_columns(frame)
    present = {name: position for position, name in enumerate(frame.names)}
    required = {*selection.needed, *selection.passed, *selection.dates} - {*selection.optional}
    missing = [position for position in sorted(required) if fitted_names[position] not in present]
    if missing:
        only_passed = missing[0] in selection.passed and missing[0] not in selection.dates
        role = "The passed-through column" if only_passed else "The fitted column"
        raise unknown_column(role, fitted_names[missing[0]], frame.names)
    warn_of_others(present, fitted_names)
    return ColumnMap(frame, {position: present[name] for position, name in enumerate(fitted_names) if name in present})


def warn_of_others(present: Iterable[str], fitted_names: Sequence[str]) -> None:
    """Warn about columns that fit has not seen, since the output in memory leaves them out."""
    known = {*fitted_names}
    others = [name for name in present if name not in known]
    if others:
        named = ", ".join(map(repr, others[:3])) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
        warn(
            f"X has columns that fit has not seen, and the output leaves them out: {named}. Drop them from X, or give "
            "them to fit, where columns that are not encoded pass through.",
            UnseenWarning,
        )


def column_keys(frame: Frame | Pieces, column: Any, role: str, backend: Ops) -> FactorizedColumn:
    """Give codes and vocabulary of a column that a scheme reads: a column of X by name or position, or an array."""
    if column is None:
        raise ValueError(
            "GroupKFold needs groups: name their column, GroupKFold(groups='...'), or pass fit_transform(X, y, "
            "groups=...)."
        )
    if isinstance(column, ValueFolds):
        return number_folds(frame, column, backend)
    source: Frame | Pieces
    if isinstance(column, (Frame, Pieces)):
        source, position, named = column, 0, f"The array given as {role}"
        if source.n_rows != frame.n_rows:
            raise inconsistent_lengths(role, [frame.n_rows, source.n_rows])
    elif isinstance(column, np.integer) or (isinstance(column, Hashable) and not hasattr(column, "__array__")):
        source, position, named = frame, locate(frame, column, f"The {role} column"), f"The {role} column {column!r}"
    else:
        source, position = frames.read_grouping(column, role, frame.n_rows), 0
        named = f"The array given as {role}"
    keys = source.keys(position, backend)
    if len(keys.codes) and int(keys.codes.min()) < 0:
        raise with_piece(source, missing_values(named, np.flatnonzero(keys.codes < 0), ". Fill or drop them."))
    if role == "fold numbers":
        check_fold_numbers(keys, named, source, backend)
    elif role == "mask":
        check_mask(keys, named, source, backend)
    elif role == "time" and keys.vocabulary.kind == "text":
        check_times(keys, named, source, backend)
    return keys


def number_folds(frame: Frame | Pieces, folds: ValueFolds, backend: Ops) -> FactorizedColumn:
    """Give the fold of each row by its values; the values include folds without rows."""
    positions = tuple(locate(frame, column, "The by column") for column in folds.columns)
    key, codes = CategoryIndex.fit(KeySpec("by", positions), map_columns(frame), backend, missing_is_category=True)
    of_rows: Array = backend.to_device(folds.of_categories(key))[codes]
    return FactorizedColumn(of_rows, Vocabulary(Values("number", np.arange(folds.n_splits), "int64")), True)


def check_times(keys: FactorizedColumn, named: str, source: Frame | Pieces, backend: Ops) -> None:
    """Raise ValueError unless all texts are times in one form of ISO 8601: only such texts sort as times do."""
    texts = keys.vocabulary.to_numpy()
    forms = [re.sub("[0-9]", "0", str(text)) for text in texts]
    is_iso = np.array([ISO_8601.fullmatch(str(text)) is not None for text in texts], dtype=bool)
    wrong = np.array([form != forms[0] for form in forms], dtype=bool) | ~is_iso
    if wrong.any():
        row, index = find_first(wrong, keys, backend)
        raise with_piece(
            source,
            RowError(
                f"{named} is text, which sorts as times do only if all rows have the same form of ISO 8601 "
                "(2024-01-31, 2024-01-31T23:59:59). Row ",
                row,
                f" has {texts[index]!r}. Parse it first: "
                "pandas.to_datetime(column, format=...), or str.to_datetime(...) of polars.",
            ),
        )


def check_mask(keys: FactorizedColumn, named: str, source: Frame | Pieces, backend: Ops) -> None:
    """Raise ValueError unless all values are booleans, or 0 and 1; the error names the first row with a wrong value."""
    values = keys.vocabulary.to_numpy().tolist()
    wrong = np.array([value not in (0, 1) for value in values], dtype=bool)
    if wrong.any():
        row, index = find_first(wrong, keys, backend)
        law = "must be of booleans, or 0 and 1"
        raise with_piece(source, RowError(f"{named} {law}. Row ", row, f" has {values[index]!r}."))


def check_fold_numbers(keys: FactorizedColumn, named: str, source: Frame | Pieces, backend: Ops) -> None:
    """Raise ValueError unless all values are integers of at least zero; the error names the first wrong row."""
    values = keys.vocabulary.to_numpy()
    if keys.vocabulary.kind == "text":
        told = f" has {values[int(keys.codes[0])]}. To keep equal values in one fold, write GroupKFold(groups=...)."
        raise with_piece(source, RowError(f"{named} must be integers. Row ", 0, told))
    if keys.vocabulary.kind != "number":
        raise ValueError(f"{named} must be integers of at least 0. Got {keys.vocabulary.kind} values.")
    for wrong, law in ((values != values // 1, "must be integers"), (values < 0, "must not be negative")):
        if wrong.any():
            row, index = find_first(wrong, keys, backend)
            raise with_piece(source, RowError(f"{named} {law}. Row ", row, f" has {values[index]}."))


def find_first(wrong: NDArray[np.bool_], keys: FactorizedColumn, backend: Ops) -> tuple[int, int]:
    """Give the first row whose value is wrong, and the index of that value."""
    row = int(backend.to_device(wrong)[keys.codes].argmax())
    return row, int(keys.codes[row])
