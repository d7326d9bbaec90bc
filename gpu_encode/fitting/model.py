"""The model of a fitted encoder: categories and exact sums, but no rows; its encodings and the names of its columns."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from itertools import zip_longest
from typing import Any, ClassVar, Self

import numpy as np

from cpu_fallback.cached import cached_property
from cpu_fallback.exact import Floats
from cpu_fallback.types import MISSING, UNKNOWN, Array, Folds, KeyEncodings, Rows
from gpu_encode.fitting.columns import FEW_NUMBERS, FEWEST_ON, ColumnMap, Selection, locate_columns
from gpu_encode.fitting.key_lookups import JointTables, n_cells
from gpu_encode.fitting.tasks import (
    DatedRows,
    Elapsed,
    EncodingTask,
    OutputColumns,
    flatten,
    in_type,
    indicator,
    make_room,
    missing_rows,
)
from gpu_encode.formulas.encoding_rule import (
    EncodingRule,
    EncodingTable,
    Mask,
    SeenSums,
    describe_rules,
    tables_of_keys,
)
from gpu_encode.seam import devices
from gpu_encode.seam.ops import Ops, device_of, host, memory_of
from gpu_encode.sums.category_sums import CategorySums
from gpu_encode.sums.distributions import Distribution
from gpu_encode.sums.moments import Moments
from gpu_encode.sums.pairs import PairSums
from gpu_encode.sums.targets import LABELLED, UNDECIDED, counted_classes, join_labels
from gpu_encode.tables.categories.keys import CategoryIndex
from gpu_encode.tables.categories.vocabulary import Vocabulary
from gpu_encode.tables.frames import Frame, Pieces, part_with, to_host, with_piece
from gpu_encode.tables.frames.labels import column_of
from gpu_encode.words.errors.tables import other_columns, other_width
from gpu_encode.words.errors.targets import first_labels
from gpu_encode.words.errors.values import missing_values, unknown_categories
from gpu_encode.words.notices import UnseenWarning, warn

NO_ROWS = Rows(np.zeros(0, np.int32))
# With fewer rows there is no warning.
FEWEST_ROWS = 20
# Number of rows in the first sample, and number of rows that are counted at a time, which takes little memory.
SAMPLE = 1 << 10
PIECE = 1 << 20
# float32 holds every whole number up to this one.
MOST_INDICES = 1 << 24
# Bytes that are needed to compute one encoding: a few arrays of float64.
TEMPORARIES = 40
# Tables of fewer categories, repeated for each order, are computed without asking the system what is free.
FEW_CATEGORIES = 1 << 10
# The most sums of a key whose table is computed together with those of other keys, and of all these keys.
FEW_SUMS, MOST_SUMS = 1 << 14, 1 << 18
# Unseen rows by key.  A call over files counts them, so that it warns once at its end, and not for each chunk.
_COUNTS: ContextVar[Counter[str] | None] = ContextVar("counts", default=None)


@dataclass(frozen=True, eq=False)
class TargetInfo:
    """Facts about a target after fit: its name, kind, and sorted class labels or distinct values."""

    name: str | None
    kind: str
    classes: Array | None
    vocabulary: Vocabulary | None = None


@dataclass(frozen=True, eq=False)
class LookupTable:
    """The table in which new rows are looked up, for one entry.

    Parameters
    ----------
    encodings : array (categories + 2, 1, outputs)
        The encodings by all targets, in the type of the output.
    unseen : bool array (categories + 2, 1), optional
        True for categories that no visible row has; None unless an indicator needs it.
    elapsed : list of Elapsed
        Columns that also depend on a row's own date.
    """

    encodings: Floats
    unseen: Mask | None
    elapsed: list[Elapsed] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Model:
    """Categories and sums of every entry.

    Parameters
    ----------
    selection : Selection
    n_features : int
    feature_names : list of str, optional
    targets : list of TargetInfo
    keys : list of CategoryIndex
        One for each entry.
    statistics : list of list of CategorySums
        Sums that new rows see: statistics[entry][target].
    rules : list of EncodingRule
        One for each entry.
    indicators : tuple of str
        The columns of 0 and 1 that each entry has: "unseen" (no visible row has the category), "missing" (the row has
        no value).
    dtype : str
    permutations : int
        Number of columns that repeat each output: random orders that are not averaged differ only in training.
    pairs : list of PairSums
        Sums of the pairs of entries that the selection names; a pair that is named in both orders is summed once.
    partial_scheme : str
        The scheme under which new rows see only some rows, or weighed rows; "" if `statistics` sum all rows.
    """

    selection: Selection
    n_features: int
    feature_names: list[str] | None
    targets: list[TargetInfo]
    keys: list[CategoryIndex]
    statistics: list[list[CategorySums]]
    rules: list[EncodingRule]
    indicators: tuple[str, ...] = ()
    dtype: str = "float64"
    permutations: int = 1
    pairs: list[PairSums] = field(default_factory=list)
    partial_scheme: str = ""
    # Whether each encoding of a row follows from a single key.
    by_key: ClassVar[bool] = True

    @classmethod
    def of(cls, model: "Model") -> Self:
        """Give a model as one of this class."""
        return cls(**{field.name: getattr(model, field.name) for field in fields(Model)})

    def check_columns(self, frame: Frame | Pieces, owner: str = "the fitted encoder") -> None:
        """Raise ValueError if a table has other columns than the table from which the model has learned."""
        if frame.n_columns != self.n_features:
            raise other_width(owner, frame.n_columns, self.n_features)
        if frame.names != self.feature_names:
            raise other_columns(self.feature_names, frame.names)

    def lines(self, dtype: np.dtype[Any]) -> list[list[tuple[float, ...]]] | None:  # noqa: ARG002
        """Give the encodings of each code of each key if they do not come from tables of sums, else None."""
        return None

    def positions(self) -> list[list[int]] | None:
        """Give for each key the positions of its values in the output; None: key after key, and indicators last."""
        return None

    @property
    def tables(self) -> list[list[EncodingTable]]:
        """The encodings of every category, on the host: tables[entry][target]."""
        sizes = (sums.accumulators.size for per_target in self.statistics for sums in per_target)
        ops = host(max(sizes, default=0))
        self._make_small_tables()
        return [self._tables_of(entry, ops) for entry in range(len(self.keys))]

    def encoded_names(self, names: Sequence[Any]) -> list[str]:
        """Name the encoded columns and the indicators; `names` are the names of the columns of X.

        For the names at fit, this is done once.
        """
        if tuple(names) in self._names:
            return [*self._names[tuple(names)]]
        entries, encoded = self.selection.names(names), []
        # Keys of one rule have the same endings.
        endings: dict[int, list[str]] = {}
        for entry, rule in zip(entries, self.rules, strict=True):
            if id(rule) not in endings:
                endings[id(rule)] = [
                    f"{target_part}{suffix}{wide}"
                    for number, info in enumerate(self.targets)
                    for target_part in target_parts(self, number, info)
                    for suffix in rule.statistic.of_target(number).suffixes()
                    for wide in columns_per_output(self)
                ]
            encoded += [entry + ending for ending in endings[id(rule)]]
        if self.indicators:
            encoded += [f"{entry}_{indicator}" for entry in entries for indicator in self.indicators]
        if not self._names:
            self._names[tuple(names)] = [*encoded]
        return encoded

    def check_indices(self) -> None:
        """Raise ValueError if the type of the encodings does not hold the indices of all texts or dates."""
        for info in self.targets if self.dtype == "float32" else []:
            if info.vocabulary is not None and len(info.vocabulary) > MOST_INDICES:
                raise ValueError(
                    f"The column {info.name!r} of values has {len(info.vocabulary):,} distinct values, but "
                    f"dtype='float32' can tell only {MOST_INDICES:,} apart. Choose dtype='float64'."
                )

    def values_of(self, entry: int) -> list[tuple[Vocabulary, str] | None]:
        """Give for each encoding of an entry that is an index the values and their column; None for numbers."""
        return [
            (info.vocabulary, str(info.name)) if is_value and info.vocabulary is not None else None
            for number, info in enumerate(self.targets)
            for is_value in self.rules[entry].statistic.of_target(number).are_values()
            for _ in columns_per_output(self)
        ]

    def with_values(self, arrays: Sequence[Array]) -> list[Any]:
        """Give the columns of an output; indices of values become Arrow arrays of these values."""
        if all(info.vocabulary is None for info in self.targets):
            return list(arrays)
        known = [value for entry in range(len(self.keys)) for value in self.values_of(entry)]
        held = [to_host(array) for array in arrays]
        return [
            array if value is None else column_of(value[0], array, value[1])
            for array, value in zip_longest(held, known[: len(held)])
        ]

    def _tables_of(self, entry: int, ops: Ops) -> list[EncodingTable]:
        """Compute the encodings of every category of an entry, on a backend's device; the host's encodings are kept."""
        tables, on_host = self._tables, device_of(ops) == "cpu"
        if on_host and entry in tables:
            return tables[entry]
        key, rule = self.keys[entry], self.rules[entry]
        if on_host and key.n_categories * self.permutations > FEW_CATEGORIES:
            devices.check_free(self.table_bytes(entry), f"The encodings of all categories of {key.entry.name!r}")
        made = []
        for number, sums in enumerate(self.statistics[entry]):
            held = sums.to_device(ops)
            # Rows are looked up without a check of each code; a pickle, or a file of skops, may hold any numbers.
            if len(held.accumulators) != key.n_categories + 2:
                raise ValueError(f"The sums of {key.entry.name!r} do not fit its categories: the model is damaged.")
            made.append(SeenSums(held, None, rule.of_target(number), ops).table(key))
        if on_host:
            tables[entry] = made
        return made

    def _make_small_tables(self) -> None:
        """Make the small tables of many keys of one rule at once, on the host."""
        batches: dict[Any, list[int]] = {}
        n_sums, texts = 0, describe_rules(self.rules, len(self.targets))
        for entry, (key, rule, sums) in enumerate(zip(self.keys, self.rules, self.statistics, strict=True)):
            shapes, own = [each.shape for each in sums], sum(math.prod(each.shape) for each in sums)
            fit = own * self.permutations <= FEW_SUMS and all(shape[0] == key.n_categories + 2 for shape in shapes)
            if fit and entry not in self._tables and not key.levels:
                n_sums += own
                forms = [(each.spec, shape[1:]) for each, shape in zip(sums, shapes, strict=True)]
                batches.setdefault((texts[id(rule)], *forms, n_sums // MOST_SUMS), []).append(entry)
        for entries in batches.values():
            rule, key = self.rules[entries[0]], self.keys[entries[0]]
            if len(entries) >= FEWEST_ON["cpu"] and rule.describe_fused() is not None:
                by_target = zip(*(self.statistics[entry] for entry in entries), strict=True)
                made = [tables_of_keys(sums, rule.of_target(i), key) for i, sums in enumerate(by_target)]
                of_keys = zip(entries, zip(*made, strict=True), strict=True)
                self._tables.update({entry: [*tables] for entry, tables in of_keys if None not in tables})

    def table_bytes(self, entry: int) -> int:
        """Estimate the memory that it takes to compute the encodings of every category of an entry."""
        rule = self.rules[entry]
        return self.keys[entry].level_bytes + sum(
            (TEMPORARIES + 8 * self.permutations)
            * math.prod(sums.accumulators.shape[:2])
            * rule.of_target(number).statistic.n_outputs(sums.accumulators.shape[2])
            for number, sums in enumerate(self.statistics[entry])
        )

    def lookups(self, ops: Ops) -> list[LookupTable]:
        """Give the look-up table of each entry, on a backend's device; they are computed once for each device."""
        lookups, memory = self._lookups, memory_of(ops)
        if memory not in lookups:
            # The tables are made entry by entry, so that a GPU keeps only the look-up tables.
            lookups[memory] = [self._lookup_of(entry, ops) for entry in range(len(self.keys))]
        return lookups[memory]

    def _lookup_of(self, entry: int, ops: Ops) -> LookupTable:
        tables, unseen = self._tables_of(entry, ops), None
        if "unseen" in self.indicators:
            unseen = np.all(tables[self.rules[entry].statistic.first_target].unseen, axis=1, keepdims=True)
        values = [flatten(encodings).values for encodings in tables]
        if len(values) > 1 or self.permutations > 1:
            values = [np.concatenate([np.repeat(array, self.permutations, axis=2) for array in values], axis=2)]
        encodings = in_type(values[0], self.dtype, ops)
        seen = [sums.distribution for sums in self.statistics[entry]]
        return LookupTable(encodings, unseen, self.elapsed_of(entry, tables, seen, ops))

    def task(self, entry: int, target: int, ops: Ops, rows: Rows = NO_ROWS) -> EncodingTask:
        """Give the task of an entry and a target for rows whose categories are known."""
        sums, rule = self.statistics[entry][target], self.rules[entry].of_target(target)
        n_classes, vocabulary = sums.shape[2], self.targets[target].vocabulary
        return EncodingTask(ops, rows, self.keys[entry], n_classes, sums.spec, rule, vocabulary=vocabulary)

    def elapsed_of(
        self, entry: int, tables: Sequence[EncodingTable], seen: Sequence[Distribution | None], ops: Ops
    ) -> list[Elapsed]:
        """Give the columns of an entry that depend on a row's own date, from its tables and the dates that are seen."""
        found: list[Elapsed] = []
        start = 0
        if not self.selection.dates:
            return found
        for target, (encodings, distribution) in enumerate(zip(tables, seen, strict=True)):
            found += Elapsed.of(self.task(entry, target, ops), distribution, encodings, (target, start))
            start += encodings.values.shape[2]
        return found

    def write_elapsed(
        self, elapsed: Sequence[Elapsed], ops: Ops, codes: Array, folds: Folds, columns: ColumnMap, out: Array
    ) -> None:
        """Read the rows' own dates, and write the columns that depend on them."""
        for each in elapsed:
            name = self.targets[each.target].name
            dates = columns.keys(position_of(name, self.feature_names), ops)
            each.write(DatedRows(ops, codes, folds, dates, name), out)

    @cached_property
    def _tables(self) -> dict[int, list[EncodingTable]]:
        return {}

    @cached_property
    def _names(self) -> dict[tuple[Any, ...], list[str]]:
        return {}

    @cached_property
    def _lookups(self) -> dict[Any, Any]:
        return {}

    def _joint_tables(self, ops: Ops) -> JointTables | None:
        """Give the keys that are looked up together; only this object holds their encodings."""
        made, memory, on_gpu = self._lookups, memory_of(ops), device_of(ops) == "cuda"
        if ("together", memory) in made or len(self.keys) < FEWEST_ON[device_of(ops)]:
            return made.get(("together", memory))
        self._make_small_tables()
        # The host makes the small tables of keys sooner than a GPU does, which gets all of them in one copy.
        small = [not on_gpu or n_cells(key) <= FEW_NUMBERS for key in self.keys]
        if on_gpu and (self.indicators or self.selection.dates or sum(small) < FEWEST_ON["cuda"]):
            return None
        lookups = self.lookups(ops) if not on_gpu else []
        lookups = lookups or [self._lookup_of(entry, host(0) if few else ops) for entry, few in enumerate(small)]
        values: list[Array | None] = []
        for rule, lookup, few in zip(self.rules, lookups, small, strict=True):
            alone = self.indicators or lookup.elapsed or rule.missing == "error" or rule.refuses_unknown
            values.append(lookup.encodings if few and not alone else None)
        as_category = [rule.missing == "category" for rule in self.rules]
        joint = made["together", memory] = JointTables.of(self.keys, values, as_category, ops if on_gpu else None)
        for number, entry in enumerate(() if joint is None else joint.entries):
            lookups[entry] = replace(lookups[entry], encodings=joint.values_of(number))  # type: ignore[union-attr]
        if on_gpu:
            there = set(() if joint is None else joint.entries)
            made[memory] = [
                lookup if entry in there else replace(lookup, encodings=ops.to_device(lookup.encodings))
                for entry, lookup in enumerate(lookups)
            ]
        return joint

    def __getstate__(self) -> dict[str, Any]:
        # Tables that were computed from the sums may lie on a device that another process does not have.
        state = {field.name: getattr(self, field.name) for field in fields(self)}
        # In canonical form, equal sums have equal bytes, in whatever order they were added up.
        canonical = self.to_canonical()
        return state | {"statistics": canonical.statistics, "pairs": canonical.pairs}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def means(self) -> list[Floats]:
        """Give the exact mean of each target over the rows that new rows see: (outputs,).

        If the schemes of keys let new rows see different rows, it is the mean with the largest weight.
        """
        totals = [[sums.totals(host(len(sums.accumulators))) for sums in per_target] for per_target in self.statistics]
        moments = [[Moments.of(host(0), sums.accumulators[0, 0], sums.spec) for sums in of_key] for of_key in totals]
        return [max(of_keys, key=lambda one: (one.n[0], *one.mean)).mean for of_keys in zip(*moments, strict=True)]

    def encode(self, frame: Frame | Pieces, ops: Ops, owner: str) -> tuple[list[Array], ColumnMap]:
        """Encode every row of a new table: give an array for each column, then the indicators, and the map of columns.

        `owner` is the name of the encoder's class, for messages.
        """
        columns = locate_columns(frame, self.selection, self.feature_names, self.n_features, owner)
        columns = columns.remember([key.entry for key in self.keys])
        joint, lookups = self._joint_tables(ops), self.lookups(ops)
        n_columns = sum(lookup.encodings.shape[2] for lookup in lookups)
        matrix = make_room(ops, frame.n_rows, n_columns, self.dtype, self.targets)
        output = OutputColumns(matrix, self.indicators)
        together: dict[int, int] = {}
        if joint is not None:
            # All rows are looked at if unseen rows are counted; if there can only be a warning, a sample is.
            step = max(columns.n_rows // SAMPLE, 1) if _COUNTS.get() is None else 1
            first = np.cumsum([0, *(lookup.encodings.shape[2] for lookup in lookups)]).tolist()
            together = joint.look_up(columns, ops, None, step, KeyEncodings(matrix.T, first))
        for number, (key, lookup) in enumerate(zip(self.keys, lookups, strict=True)):
            missing = self.rules[number].missing
            out = output.next(lookup.encodings.shape[2])
            if number in together:
                self._note_together(number, together[number], columns, ops)
                continue
            if self._by_number(number, columns, ops, lookup.encodings, out):
                continue
            codes = key.lookup(columns, ops, missing == "category")
            if missing == "error" or self.rules[number].refuses_unknown:
                self._refuse(codes, number, columns)
            ops.gather(lookup.encodings, codes, None, out)
            if lookup.elapsed:
                self.write_elapsed(lookup.elapsed, ops, codes, None, columns, out)
            note_unseen(key, codes)
            if self.indicators:
                self._add_indicators(output, number, lookup, codes, columns, ops)
        return output.to_list(), columns

    def _note_together(self, number: int, unseen: int, columns: ColumnMap, ops: Ops) -> None:
        """Count the unseen rows of a key that was looked up with others, or warn if most of a sample are unseen."""
        key, counts, n_rows = self.keys[number], _COUNTS.get(), columns.n_rows
        if counts is not None:
            counts[key.entry.name] += unseen
        elif 2 * unseen > len(range(0, n_rows, max(n_rows // SAMPLE, 1))):
            note_unseen(key, key.lookup(columns, ops, self.rules[number].missing == "category"))

    def _by_number(self, number: int, columns: ColumnMap, ops: Ops, lookup: Floats, out: Array) -> bool:
        """Write the encodings of a column of numbers without making codes; False if something needs the codes."""
        if self.indicators or self.rules[number].refuses_unknown or _COUNTS.get() is not None:
            return False
        if self.selection.dates:
            return False
        key = self.keys[number]
        numbers = key.numbers(columns)
        if numbers is None or isinstance(numbers, np.ndarray) != (device_of(ops) == "cpu"):
            return False
        known = key.vocabularies[0].values.array
        ops.gather_numbers(lookup, numbers, known, out)
        # If there are many rows, a sample is looked up first; it is too small for a kernel.
        few = host(0)
        warn_of_unseen(
            key,
            numbers,
            lambda some: (
                few.lookup(ops.to_host(some), known) == UNKNOWN
                if len(some) <= 2 * SAMPLE
                else ops.lookup(some, known) == UNKNOWN
            ),
        )
        return True

    def _add_indicators(
        self, output: OutputColumns, number: int, lookup: LookupTable, codes: Array, columns: ColumnMap, ops: Ops
    ) -> None:
        """Append the indicators of one key."""
        key = self.keys[number]
        unseen = None if lookup.unseen is None else indicator(ops, lookup.unseen, codes, None)
        as_category = self.rules[number].missing == "category"
        output.add_indicators(unseen, lambda: missing_rows(key, codes, columns, ops, as_category))

    def _refuse(self, codes: Array, number: int, columns: ColumnMap) -> None:
        """Raise ValueError for values that the policies of a key refuse."""
        rule = self.rules[number]
        refuse_values(codes, self.keys[number], rule.missing, rule.refuses_unknown, columns)

    def merge(self, other: "Model") -> "Model":
        """Give the model of the rows of both, with sums in canonical digits."""
        return self.join(other).to_canonical()

    def to_canonical(self) -> "Model":
        """Give the model with sums in canonical digits: equal rows give equal digits, however they were split."""
        statistics = [[sums.to_canonical() for sums in per_target] for per_target in self.statistics]
        return replace(self, statistics=statistics, pairs=[sums.to_canonical() for sums in self.pairs])

    def join(self, other: "Model", in_place: bool = False) -> "Model":
        """Give the model of the rows of both; with `in_place`, the result replaces this model's sums."""
        targets = [join_targets(mine, theirs) for mine, theirs in zip(self.targets, other.targets, strict=True)]
        keys, statistics, codes = [], [], []
        for number, (my_key, their_key) in enumerate(zip(self.keys, other.keys, strict=True)):
            key, to_key, from_other = my_key.union(their_key)
            keys.append(key)
            codes.append((to_key, from_other))
            mine, theirs = self._decided(other, number)
            if in_place:
                # So each step below frees a target's sums, and only one target at a time has its sums in memory twice.
                self.statistics[number] = []
            statistics.append(
                [
                    widen_classes(mine.pop(0), self.targets[i], info).plus(
                        widen_classes(theirs[i], other.targets[i], info), to_key, from_other, key.n_categories, in_place
                    )
                    for i, info in enumerate(targets)
                ]
            )
        pairs_of_both = [
            mine.plus(theirs, [codes[key] for key in mine.keys], [keys[key].n_categories for key in mine.keys])
            for mine, theirs in zip(self.pairs, other.pairs, strict=True)
        ]
        return replace(self, targets=targets, keys=keys, statistics=statistics, pairs=pairs_of_both)

    def _decided(self, other: "Model", entry: int) -> tuple[list[CategorySums], list[CategorySums]]:
        """Give the sums of an entry of both models; an undecided target of one of them has the sums of no rows."""
        mine, theirs = [*self.statistics[entry]], [*other.statistics[entry]]
        for number, (one, two) in enumerate(zip(self.targets, other.targets, strict=True)):
            if one.kind != two.kind and one.kind == UNDECIDED:
                mine[number] = theirs[number].of_no_rows(mine[number].n_categories)
            elif one.kind != two.kind:
                theirs[number] = mine[number].of_no_rows(theirs[number].n_categories)
        return mine, theirs


def position_of(name: str | None, feature_names: Sequence[str] | None) -> int:
    """Give the position at fit of a column of values by its name; columns without names are called x0, x1 and so on."""
    return int(str(name)[1:]) if feature_names is None else list(feature_names).index(str(name))


def refuse_values(codes: Array, key: CategoryIndex, missing: str, refuses_unknown: bool, columns: ColumnMap) -> None:
    """Raise ValueError for values of a key that its policies refuse."""
    if missing != "error" and not refuses_unknown:
        return
    frame = columns.frame
    labels = [frame.label(columns.positions[position]) for position in key.entry.members]
    named = repr(labels[0]) if len(labels) == 1 else repr(tuple(labels))
    refuse_missing(codes, missing, named, frame)
    if refuses_unknown and len(codes):
        known = (codes >= 0) & (codes < key.n_categories)
        if missing != "category" or key.has_missing:
            known |= codes == MISSING
        if not bool(known.all()):
            rows = np.flatnonzero(~known)
            part, row = part_with(frame, int(rows[0]))
            values = [part.values(columns.positions[position])[row] for position in key.entry.members]
            shown = values[0] if len(values) == 1 else tuple(values)
            advice = f' ({shown!r}). Choose another handle_unknown than "error" to accept them.'
            raise with_piece(frame, unknown_categories(named, rows, advice))


def refuse_missing(codes: Array, missing: str, named: str, frame: Frame | Pieces) -> None:
    """Raise ValueError for missing values if the policy is "error"."""
    if missing == "error" and bool((codes == MISSING).any()):
        advice = '. Fill them, or choose handle_missing="category", or another one than "error".'
        raise with_piece(frame, missing_values(f"Column {named}", np.flatnonzero(codes == MISSING), advice))


def join_targets(mine: TargetInfo, theirs: TargetInfo) -> TargetInfo:
    """Give a target with the class labels of both; if one is undecided, give the other."""
    if UNDECIDED in (mine.kind, theirs.kind):
        return theirs if mine.kind == UNDECIDED else mine
    if mine.kind != theirs.kind and {mine.kind, theirs.kind} & {*LABELLED}:
        raise _several_kinds(mine.name, mine.kind, theirs.kind)
    if mine.kind != theirs.kind:
        raise ValueError(
            f"Targets of different kinds: {mine.kind!r} and {theirs.kind!r}. Give target_type at every fit."
        )
    if mine.vocabulary is not None and theirs.vocabulary is not None:
        return replace(mine, vocabulary=mine.vocabulary.union(theirs.vocabulary, mine.name)[0])
    if mine.classes is None or theirs.classes is None:
        return mine
    labels = join_labels(mine.classes, theirs.classes)
    if mine.kind == "binary" and len(labels) > 2:
        raise ValueError(
            f"The binary target now has {len(labels)} labels: {first_labels(labels)}. Fit with "
            'target_type="multiclass" from the start.'
        )
    return replace(mine, classes=labels)


def _several_kinds(column: object, one: str, other: str) -> ValueError:
    """Error for a column of values that holds one kind in some rows, and another kind or nothing in others."""
    held = {"continuous": "numbers, or nothing,", "text": "text", "datetime": "dates"}
    return ValueError(
        f"The column {column!r} of values holds {held[one]} in some rows and {held[other]} in others. Give it one "
        "type, in all tables."
    )


def widen_classes(statistics: CategorySums, before: TargetInfo, after: TargetInfo) -> CategorySums:
    """Give the same sums with the class numbers, or the indices of values, of a target that has more of them."""
    values = statistics.distribution
    if before.vocabulary is not None and after.vocabulary is not None and values is not None:
        indices = after.vocabulary.positions(before.vocabulary, after.name).astype(np.int64)
        return replace(statistics, distribution=replace(values, values=indices[values.values]))
    if before.classes is None or after.classes is None or len(before.classes) == len(after.classes):
        return statistics
    position = np.searchsorted(after.classes, before.classes)
    return statistics.widen_classes(position, counted_classes(after.kind, after.classes))


def target_parts(model: Model, number: int, info: TargetInfo) -> list[str]:
    """Give the parts of output names that tell targets and classes apart, if there are several."""
    alone = len(model.targets) == 1 and not model.rules[0].statistic.names_targets
    target = "" if alone else f"_{info.name if info.name is not None else number}"
    if info.kind != "multiclass" or info.classes is None:
        return [target]
    first, left_out = model.statistics[0][number].spec.first_output, dropped_output(model, info)
    parts = enumerate(model.rules[0].statistic.label_parts(info.classes, first))
    return [f"{target}{part}" for number, part in parts if number != left_out]


def dropped_output(model: Model, info: TargetInfo) -> int | None:
    """Give the number of the class of a target that has no column; None if every class has one."""
    label = model.rules[0].drop
    if label is None or info.kind != "multiclass" or info.classes is None:
        return None
    labels: list[Any] = info.classes.tolist()
    return labels.index(label)


def kept_outputs(model: Model) -> list[bool]:
    """Tell for every output, by key, target and class, whether it has a column."""
    # If a class is dropped by its label, there is one output for each class.
    return [
        output != dropped_output(model, info)
        for per_target in model.statistics
        for info, sums in zip(model.targets, per_target, strict=True)
        for output in range(sums.shape[2] - sums.spec.first_output)
    ]


def kept_columns(model: Model, arrays: list[Array]) -> list[Array]:
    """Leave out the columns of a class that is dropped by its label; indicators come after the encodings."""
    if model.rules[0].drop is None:
        return arrays
    kept = np.repeat(kept_outputs(model), len(columns_per_output(model)))
    return [array for number, array in enumerate(arrays) if number >= len(kept) or kept[number]]


def columns_per_output(model: Model) -> list[str]:
    """Give the suffixes of folds or permutations if each has a column; otherwise one empty suffix."""
    views = model.statistics[0][0].n_views
    if views > 1:
        return [f"_fold{i}" for i in range(views)]
    return [f"_perm{i}" for i in range(model.permutations)] if model.permutations > 1 else [""]


@contextmanager
def unseen_counted() -> Iterator[Counter[str]]:
    """Count rows with unseen values in `transform`, by the name of the key, instead of warning about them."""
    token = _COUNTS.set(Counter())
    try:
        yield _COUNTS.get()  # type: ignore[misc]
    finally:
        _COUNTS.reset(token)


def count_unseen(key: CategoryIndex, codes: Array) -> bool:
    """Count unseen rows if this was asked for, and tell whether it was."""
    counts = _COUNTS.get()
    if counts is None:
        return False
    counts[key.entry.name] += sum_in_pieces(codes, lambda some: some == UNKNOWN)
    return True


def counts_of(sums: CategorySums) -> Floats:
    """Give the summed weight of each category, then of unknown and of missing values: (categories + 2,)."""
    # With blow-up columns, the encoders of all folds but one have seen each row.
    n_views = max(sums.n_views - 1, 1)
    weights = Moments.of(host(0), sums.accumulators, sums.spec).n
    counts: Floats = np.divide(weights.sum(axis=(1, 2)), n_views)
    return counts


def weights_of(model: Model, number: int) -> Floats:
    """Give the weight of each category of a key, then of unknown and missing values: the largest of any target."""
    weights: Floats = np.max([counts_of(sums) for sums in model.statistics[number]], axis=0)
    return weights


def note_unseen(key: CategoryIndex, codes: Array) -> None:
    """Count unseen rows if this was asked for; otherwise warn about them."""
    if not count_unseen(key, codes):
        warn_of_unseen(key, codes, lambda some: some == UNKNOWN)


def sum_in_pieces(rows: Array, is_unseen: Callable[[Array], Any]) -> int:
    """Count unseen rows a few at a time, which takes little memory."""
    return sum(int(is_unseen(rows[start : start + PIECE]).sum()) for start in range(0, len(rows), PIECE))


def warn_of_unseen(key: CategoryIndex, rows: Array, is_unseen: Callable[[Array], Any]) -> None:
    """Warn if fit has not seen most values of a key; few rows never warn, and of many rows a sample is tested first."""
    if len(rows) < FEWEST_ROWS:
        return
    step = max(len(rows) // SAMPLE, 1)
    if 2 * int(is_unseen(rows[::step]).sum()) <= len(rows[::step]):
        return
    warn_of_share(key.entry.name, sum_in_pieces(rows, is_unseen), len(rows))


def warn_of_share(name: str, unseen: int, n_rows: int) -> None:
    """Warn if more than half of some rows are unseen; few rows never warn."""
    if n_rows >= FEWEST_ROWS and 2 * unseen > n_rows:
        warn(
            f"{unseen / n_rows:.0%} of the rows have values of {name!r} that fit has not seen, and get the encoding of "
            "unknown values. Are these the same columns, written in the same way?",
            UnseenWarning,
        )
