"""Columns become one code for each row: single columns, joint keys of several columns, and hierarchies above them."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.cached import cached_property
from cpu_fallback.types import MISSING, UNKNOWN, Array, Codes, KeyCounts, UnwrittenCodes, written
from gpu_encode.seam import devices
from gpu_encode.seam.ops import Ops, host, put, through
from gpu_encode.tables.categories.hierarchy import (
    Derived,
    Level,
    bytes_of_levels,
    level_of_labels,
    levels_by_rule,
    link,
    positions_of_labels,
)
from gpu_encode.tables.categories.vocabulary import FactorizedColumn, Vocabulary


class Columns(Protocol):
    """The methods of a frame that a key calls: they give codes of a column by its own vocabulary, or by a known one."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    def keys(self, column: Any, ops: Ops) -> FactorizedColumn:
        """Give the codes and the sorted distinct values of a column."""

    def lookup(self, column: Any, vocabulary: Vocabulary, ops: Ops) -> Codes:
        """Give the codes of a column in a known vocabulary."""

    def numbers(self, column: Any, vocabulary: Vocabulary) -> Array | None:
        """Give the whole numbers of a column that can be compared with a known vocabulary; None for other columns."""

    def empty_vocabulary(self, column: Any) -> Vocabulary | None:
        """Give the vocabulary of a column without rows; None if the column's type does not tell the kind of values."""


class Tuples:
    """Combinations of values in lexicographic order; a missing value comes after all others.

    They are held as value numbers (`members`) or as sorted joint keys (`prefixes`); each form is made from the other
    when it is first needed.  Joint keys may lie on a GPU until then, and lie on the host afterwards.

    Parameters
    ----------
    sizes : list of int
        Number of values of each column.
    members : int32 array (combinations, columns), optional
        Number of each value, -1 for a missing one.
    prefixes : list of int64 array, optional
        Sorted joint keys of the first 2, 3, ... columns; a joint code is an index in the last of these arrays.
    """

    def __init__(
        self, sizes: Sequence[int], members: Codes | None = None, prefixes: Sequence[Array] | None = None
    ) -> None:
        self.sizes, self._members, self._prefixes = [*sizes], members, prefixes

    def __len__(self) -> int:
        """Number of combinations."""
        return len(self._prefixes[-1] if self._members is None else self._members)  # type: ignore[index]

    def __reduce__(self) -> tuple[Any, ...]:
        # A pickle always has the members, so that equal combinations have equal bytes, whichever form is known.
        return Tuples, (self.sizes, self.members)

    @property
    def members(self) -> Codes:
        """Value numbers that make up each combination (combinations, columns), -1 for missing."""
        if self._members is None:
            self._members = split_keys(self.prefixes, self.sizes)
        return self._members

    @property
    def prefixes(self) -> list[NDArray[np.int64]]:
        """Sorted joint keys of the first 2, 3, ... columns, on the host."""
        known = self._prefixes
        self._prefixes = join_values(self.members, self.sizes) if known is None else [on_host(keys) for keys in known]
        return self._prefixes


@dataclass(frozen=True)
class KeySpec:
    """A key, as the user asked for it.

    Parameters
    ----------
    name : str
        Name of the key in output names.
    members : tuple
        Columns whose values together are the key.
    above : tuple
        Columns of the levels above, the top level first.
    rule : Derived, optional
        Rule that derives the levels above from the value.
    """

    name: str
    members: tuple[Any, ...]
    above: tuple[Any, ...] = ()
    rule: Derived | None = None

    @property
    def columns(self) -> tuple[Any, ...]:
        """All columns of the key, the top level first."""
        return (*self.above, *self.members)


@dataclass(frozen=True, eq=False)
class CategoryIndex:
    """The categories of one key after fit, and their order.

    Parameters
    ----------
    vocabularies : list of Vocabulary
        Distinct values of each column of the key.
    tuples : Tuples, optional
        The combination of values of each category of a joint key.  None for a single column.
    has_missing : bool
        Whether the missing category was seen.
    given : bool
        Whether the user gave the categories.
    labels : list of Vocabulary, optional
        Labels of the levels that a rule derives, the top one first; only a key without categories has them.
    """

    entry: KeySpec
    vocabularies: list[Vocabulary]
    tuples: Tuples | None = None
    has_missing: bool = False
    given: bool = False
    labels: list[Vocabulary] | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Cached attributes are left out, so that equal categories have equal bytes.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def fit(
        cls,
        entry: KeySpec,
        frame: Columns,
        ops: Ops,
        missing_is_category: bool,
        joined: "dict[tuple[Any, ...], Joined] | None" = None,
        later: bool = False,
    ) -> "tuple[CategoryIndex, Codes]":
        """Learn the categories of a key, and give them with the code of each row.

        `joined` keeps joined columns: if several keys begin with the same columns, each joins only its last column.
        With `later`, the columns of a joint key are joined when its codes or categories are first needed; the frame
        keeps the codes of its columns until then.
        """
        names = entry.columns
        if len(names) == 1:
            codes, vocabulary, complete = frame.keys(names[0], ops)
            may_miss = missing_is_category and not complete and len(codes) > 0
            return cls(entry, [vocabulary], None, may_miss and int(codes.min()) < 0), codes
        factorized = [frame.keys(column, ops) for column in names]
        vocabularies = [column.vocabulary for column in factorized]
        present = None
        if not (missing_is_category or all(column.complete for column in factorized)):
            present = all_present([written(column.codes) for column in factorized[len(entry.above) :]])
        if present is not None and not bool(present.all()):
            columns = [column.codes[present] for column in factorized]
            dense, tuples = join_columns(names, columns, vocabularies, ops, {})
            codes = ops.empty((frame.n_rows,), np.int32)
            codes[...] = MISSING
            put(codes, np.flatnonzero(present), dense)
        elif later and not entry.above:
            joint_codes = JointCodes(names, frame, ops, joined)
            return cls(entry, vocabularies, LaterTuples(vocabularies, joint_codes)), joint_codes  # type: ignore[return-value]
        else:
            columns = [written(column.codes) for column in factorized]
            codes, tuples = join_columns(names, columns, vocabularies, ops, {} if joined is None else joined)
        return cls(entry, vocabularies, tuples), codes

    @classmethod
    def fit_given(
        cls, entry: KeySpec, given: Any, frame: Columns, ops: Ops, missing_is_category: bool
    ) -> "tuple[CategoryIndex, Codes]":
        """Take the categories that the user listed; rows with other values are unknown."""
        vocabulary, has_missing = Vocabulary.from_values(given, entry.name)
        key = cls(entry, [vocabulary], None, has_missing, True)
        return key, key.lookup(frame, ops, missing_is_category)

    @classmethod
    def by_type(cls, entry: KeySpec, frame: Columns) -> "CategoryIndex | None":
        """Make a key without categories from its columns' types; None if a type does not tell the kind of values."""
        vocabularies = [frame.empty_vocabulary(column) for column in entry.columns]
        return None if None in vocabularies else cls(entry, vocabularies).without_categories()  # type: ignore[arg-type]

    def without_categories(self) -> "CategoryIndex":
        """Give the key without its categories; it keeps only the kinds of values."""
        vocabularies = [Vocabulary(vocabulary.values.take(np.zeros(0, np.int64))) for vocabulary in self.vocabularies]
        n_columns = len(vocabularies)
        nothing = Tuples([0] * n_columns, np.zeros((0, n_columns), np.int32)) if n_columns > 1 else None
        return CategoryIndex(self.entry, vocabularies, nothing)

    def pick(self, kept: NDArray[np.int64]) -> "CategoryIndex":
        """Give a key with some of the categories, and with only the values that occur in them."""
        if self.tuples is None:
            return replace(self, vocabularies=[Vocabulary(self.vocabularies[0].values.take(kept))])
        members, vocabularies, numbers = self.tuples.members[kept], [], []
        for column, vocabulary in zip(members.T, self.vocabularies, strict=True):
            used = np.unique(column[column >= 0]).astype(np.int64)
            vocabularies.append(Vocabulary(vocabulary.values.take(used)))
            number = np.full(len(vocabulary), MISSING, np.int32)
            number[used] = np.arange(len(used))
            numbers.append(number)
        return replace(self, vocabularies=vocabularies, tuples=tuples_of(renumber(members, numbers), vocabularies))

    @property
    def missing_is_unknown(self) -> bool:
        """Whether the user listed the categories, and no missing value is among them."""
        return self.given and not self.has_missing

    @cached_property
    def n_categories(self) -> int:
        """Number of categories, without the missing one."""
        return len(self.vocabularies[0]) if self.tuples is None else len(self.tuples)

    @property
    def prefixes(self) -> list[NDArray[np.int64]]:
        """Sorted joint keys of the first 2, 3, ... columns; a joint code is an index in the last of these arrays."""
        return [] if self.tuples is None else self.tuples.prefixes

    @cached_property
    def levels(self) -> list[Level]:
        """Levels above the categories, the top one first."""
        if self.labels is not None:
            return [level_of_labels(labels, self.n_categories) for labels in self.labels]
        if self.entry.rule is not None:
            return levels_by_rule(self.entry.rule, self.vocabularies[0], self.entry.name)
        if not self.entry.above:
            return []
        sizes = [len(self.vocabularies[0]) + 1, *(len(prefix) for prefix in self.prefixes)]
        # ancestors[i]: the code of each category in the joint key of the first i + 1 columns.
        ancestors = [np.arange(self.n_categories, dtype=np.int64)]
        for number in range(len(self.prefixes), 0, -1):
            below = self.prefixes[number - 1][ancestors[0]]
            ancestors.insert(0, below // (len(self.vocabularies[number]) + 1))
        levels: list[Level] = []
        for depth in range(len(self.entry.above)):
            of_leaf = ancestors[depth].astype(np.int32)
            levels.append(Level(of_leaf, link(of_leaf, sizes[depth], levels), sizes[depth]))
        return levels

    @property
    def level_bytes(self) -> int:
        """Estimate the memory that it takes to derive the levels above the categories by a rule."""
        rule = self.entry.rule
        return 0 if rule is None or self.labels is not None else bytes_of_levels(rule, self.vocabularies[0])

    @cached_property
    def starts(self) -> list[int]:
        """First row of each level in the table of encodings: categories, then levels from the top, then the end."""
        sizes = [self.n_categories, *(level.n for level in self.levels)]
        return [int(start) for start in np.cumsum([0, *sizes])]

    def lookup(self, frame: Columns, ops: Ops, missing_is_category: bool) -> Codes:
        """Give for each row the line of its category in the table of encodings, or of its nearest known ancestor."""
        if len(self.entry.columns) > 1:
            return self._joint_lookup(frame, ops, missing_is_category)
        column = self.entry.members[0]
        if self.entry.rule is None:
            codes = frame.lookup(column, self.vocabularies[0], ops)
            if missing_is_category and self.missing_is_unknown and bool((codes == MISSING).any()):
                codes = np.where(codes == MISSING, np.int32(UNKNOWN), codes)
            return codes
        codes, vocabulary, _ = frame.keys(column, ops)
        codes = written(codes)
        indices = self.vocabularies[0].positions(vocabulary, self.entry.name)
        unknown = np.flatnonzero(indices == UNKNOWN)
        if len(unknown):
            values = vocabulary.to_numpy()[unknown]
            # If there are many values, the codes may share Arrow's memory, which must not be written to.
            indices = indices.copy()
            for start, level, paths in zip(self.starts[1:], self.levels, self.entry.rule.paths(values), strict=False):
                known = positions_of_labels(level, paths, self.entry.name)
                indices[unknown] = np.where(known >= 0, start + known, indices[unknown])
        return through(indices, codes, ops)

    def numbers(self, frame: Columns) -> Array | None:
        """Give the whole number of each row; None unless the key is one column of whole numbers."""
        if len(self.entry.columns) > 1 or self.entry.rule is not None:
            return None
        return frame.numbers(self.entry.members[0], self.vocabularies[0])

    def _joint_lookup(self, frame: Columns, ops: Ops, missing_is_category: bool) -> Codes:
        sizes = [len(vocabulary) for vocabulary in self.vocabularies]
        columns = [
            frame.lookup(column, words, ops)
            for column, words in zip(self.entry.columns, self.vocabularies, strict=True)
        ]
        codes, n_above = code_missing(columns[0], sizes[0]), len(self.entry.above)
        resolved: Any = np.int32(UNKNOWN)
        for number in range(len(columns)):
            if number:
                right = code_missing(columns[number], sizes[number])
                # To ask a GPU would be to wait for it.
                if isinstance(codes, np.ndarray) and min(codes.min(initial=0), right.min(initial=0)) >= 0:
                    keys = ops.combine(codes, right, sizes[number] + 1)
                else:
                    keys = ops.combine(np.maximum(codes, 0), np.maximum(right, 0), sizes[number] + 1)
                    keys = np.where((codes < 0) | (right < 0), -1, keys)
                codes = ops.lookup(keys, ops.to_device(self.prefixes[number - 1]))
            if number < n_above:
                resolved = np.where(codes >= 0, self.starts[number + 1] + codes, resolved).astype(np.int32)
        if n_above:
            codes = np.where(codes >= 0, codes, resolved).astype(np.int32)
        if not missing_is_category:
            codes = np.where(all_present(columns[n_above:]), codes, np.int32(MISSING))
        return codes

    def knows_missing(self, number: int) -> bool:
        """Tell whether some category has a missing value in one of the key's columns, given by its number."""
        return self.has_missing if self.tuples is None else bool((self.tuples.members[:, number] < 0).any())

    def union(self, other: "CategoryIndex") -> "tuple[CategoryIndex, Codes, Codes]":
        """Join two indexes of one key, and give the new code of each category of both."""
        if self.given:
            same = np.arange(self.n_categories, dtype=np.int32)
            return self, same, same
        joined = [
            mine.union(theirs, self.entry.name)
            for mine, theirs in zip(self.vocabularies, other.vocabularies, strict=True)
        ]
        words = [vocabulary for vocabulary, _, _ in joined]
        missing = self.has_missing or other.has_missing
        if self.tuples is None or other.tuples is None:
            return replace(self, vocabularies=words, has_missing=missing), joined[0][1], joined[0][2]
        kept = all(np.array_equal(number, np.arange(len(word))) for word, *numbers in joined for number in numbers)
        if kept and np.array_equal(self.tuples.members, other.tuples.members):
            same = np.arange(self.n_categories, dtype=np.int32)
            return replace(self, vocabularies=words), same, same
        mine = renumber(self.tuples.members, [numbers for _, numbers, _ in joined])
        theirs = renumber(other.tuples.members, [numbers for _, _, numbers in joined])
        columns = [np.concatenate(pair) for pair in zip(mine.T, theirs.T, strict=True)]
        indices, tuples = join_columns(self.entry.columns, columns, words, host(len(columns[0])), {})
        return replace(self, vocabularies=words, tuples=tuples), indices[: len(mine)], indices[len(mine) :]


class LaterTuples(Tuples):
    """Combinations that are found when they are first needed, unless a pass over the rows has found them by then.

    Parameters
    ----------
    vocabularies : list of Vocabulary
        Values of each column.
    codes : JointCodes
        Codes of the rows; joining their columns finds the combinations.
    """

    def __init__(self, vocabularies: Sequence[Vocabulary], codes: "JointCodes") -> None:
        self._vocabularies = vocabularies
        self._codes: JointCodes | None = codes
        # The cells of the combinations, or what a GPU knows of them.
        self._found: Any = None
        self._members = self._prefixes = None

    @property
    def sizes(self) -> list[int]:  # type: ignore[override]
        """Number of values of each column."""
        return [len(words) for words in self._vocabularies]

    def __len__(self) -> int:
        """Number of combinations."""
        self._join()
        return super().__len__() if self._found is None else len(self._cells)

    @property
    def _cells(self) -> Array:
        """The cells of the combinations."""
        found = self._found
        return found if isinstance(found, np.ndarray) else found.cells

    def _join(self) -> None:
        """Take combinations from the codes, unless a pass has found them; they stay on a GPU if they lie there."""
        if (codes := self._codes) is not None:
            self._prefixes, self._codes = codes.tuples._prefixes, None

    def tell(self, found: KeyCounts) -> None:
        """Take combinations that a pass has found, as sorted mixed-radix numbers of their values."""
        # The combinations are kept longer than the counts.  The codes of the rows are not needed any more.
        self._found = found.cells if isinstance(found, KeyCounts) else found
        self._codes = None

    @property
    def members(self) -> Codes:
        """Value numbers that make up each combination (combinations, columns), -1 for missing."""
        if self._members is None and self._found is not None:
            self._members = split_cells(self._cells, self.sizes)
        return super().members

    @property
    def prefixes(self) -> list[NDArray[np.int64]]:
        """Sorted joint keys of the first 2, 3, ... columns, on the host."""
        self._join()
        return super().prefixes


def split_cells(cells: Array, sizes: Sequence[int]) -> Codes:
    """Split mixed-radix numbers into value numbers; the largest number of each column is a missing value."""
    members, rest = np.empty((len(cells), len(sizes)), np.int32), cells.astype(np.int64)
    for number in reversed(range(len(sizes))):
        rest, values = np.divmod(rest, sizes[number] + 1)
        members[:, number] = np.where(values == sizes[number], MISSING, values)
    return members


def on_host(keys: Array) -> NDArray[np.int64]:
    """Give joint keys on the host."""
    return keys if isinstance(keys, np.ndarray) else devices.cuda().to_host(keys)


def code_missing(codes: Codes, size: int) -> Codes:
    """Give codes in which a missing value is one more value, after all others."""
    if isinstance(codes, np.ndarray) and codes.min(initial=0) >= 0:
        return codes
    return np.where(codes == MISSING, np.int32(size), codes)


def join_values(members: Codes, sizes: Sequence[int]) -> list[NDArray[np.int64]]:
    """Give the sorted joint keys of the first 2, 3, ... columns of some combinations."""
    prefixes: list[NDArray[np.int64]] = []
    codes = code_missing(members[:, 0], sizes[0])
    for number in range(1, len(sizes)):
        keys = codes.astype(np.int64) * (sizes[number] + 1) + code_missing(members[:, number], sizes[number])
        prefix, codes = np.unique(keys, return_inverse=True)
        prefixes.append(prefix)
    return prefixes


def split_keys(prefixes: Sequence[NDArray[np.int64]], sizes: Sequence[int]) -> Codes:
    """Split sorted joint keys into value numbers."""
    members = np.empty((len(prefixes[-1]), len(sizes)), np.int32)
    keys = prefixes[-1]
    for number in range(len(prefixes), 0, -1):
        codes, values = np.divmod(keys, sizes[number] + 1)
        members[:, number] = np.where(values == sizes[number], MISSING, values)
        keys = prefixes[number - 2][codes] if number > 1 else codes
    members[:, 0] = np.where(keys == sizes[0], MISSING, keys)
    return members


def all_present(columns: Sequence[Codes]) -> NDArray[np.bool_]:
    """Tell which rows have a value in every column."""
    present: NDArray[np.bool_] = columns[0] != MISSING
    for codes in columns[1:]:
        present = present & (codes != MISSING)
    return present


def renumber(members: Codes, numbers: Sequence[Codes]) -> Codes:
    """Give members with new value numbers; a missing value keeps its number."""
    return np.column_stack(
        [np.append(codes, np.int32(MISSING))[members[:, i]] for i, codes in enumerate(numbers)]
    ).astype(np.int32)


def tuples_of(members: Codes, vocabularies: Sequence[Vocabulary]) -> Tuples:
    """Make combinations from the numbers of their values."""
    return Tuples([len(words) for words in vocabularies], members)


# The code of each row in the joint key of some columns, and the sorted joint keys of the first 2, 3, ... of these.
Joined = tuple[Array, list[Array]]


def join_columns(
    names: tuple[Any, ...],
    columns: list[Codes],
    vocabularies: list[Vocabulary],
    ops: Ops,
    joined: dict[tuple[Any, ...], Joined],
) -> tuple[Codes, Tuples]:
    """Give dense codes of the combinations that occur, in lexicographic order, and the combinations themselves."""
    codes: Array = code_missing(columns[0], len(vocabularies[0]))
    prefixes: list[Array] = []
    for number in range(1, len(columns)):
        first = names[: number + 1]
        if first not in joined:
            size = len(vocabularies[number])
            codes, distinct = ops.factorize(ops.combine(codes, code_missing(columns[number], size), size + 1))
            joined[first] = codes, [*prefixes, distinct]
        codes, prefixes = joined[first]
    return codes, Tuples([len(words) for words in vocabularies], prefixes=prefixes)


class JointCodes(UnwrittenCodes):
    """Codes of a joint key whose columns are joined when the codes are first needed.

    Parameters
    ----------
    names : tuple
        Columns of the key.
    frame : Columns
        The rows; it has kept the codes of these columns.
    ops : Ops
    joined : dict, optional
        Joined columns of keys that begin with the same columns.
    """

    def __init__(
        self, names: tuple[Any, ...], frame: Columns, ops: Ops, joined: dict[tuple[Any, ...], Joined] | None
    ) -> None:
        super().__init__(frame.n_rows)
        self._names, self._frame, self._ops, self._known = names, frame, ops, joined

    def column(self, name: Any) -> Codes:
        """Give the codes of a column of the key; -1 for a missing value."""
        return self._frame.keys(name, self._ops).codes

    @cached_property
    def _joined(self) -> tuple[Codes, Tuples]:
        names, ops = self._names, self._ops
        vocabularies = [self._frame.keys(name, ops).vocabulary for name in names]
        joined = {} if self._known is None else self._known
        return join_columns(names, [written(self.column(name)) for name in names], vocabularies, ops, joined)

    @property
    def written(self) -> Codes:
        """The codes as an array."""
        return self._joined[0]

    @property
    def tuples(self) -> Tuples:
        """The combinations that rows have."""
        return self._joined[1]


def categories_as_numpy(key: CategoryIndex) -> Array:
    """Give the values of a key's categories; a joint key has tuples."""
    if key.tuples is None:
        values = key.vocabularies[0].to_numpy()
        return append_missing(values) if key.has_missing else values
    words = [np.append(vocabulary.to_numpy().astype(object), [None]) for vocabulary in key.vocabularies]
    members = key.tuples.members
    out = np.empty(len(members), dtype=object)
    out[:] = list(zip(*(word[members[:, i]] for i, word in enumerate(words)), strict=True))
    return out


def append_missing(values: Array) -> Array:
    """Append a missing value, in a type that can hold it."""
    if values.dtype.kind in "mM":
        return np.append(values, np.array(["NaT"], dtype=values.dtype))
    if values.dtype.kind == "f" or (
        values.dtype.kind in "iu" and (not len(values) or int(np.abs(values).max()) < 1 << 53)
    ):
        return np.append(values.astype(np.float64), np.nan)
    return np.append(values.astype(object), [None])
