"""Sums of more categories than one process can hold: rows become digits by category, which are added up in buckets.

No process holds the sums of all categories, but all processes know the totals by fold.  A table of some categories has
one more line with the sums of all other rows; this line does not count as a category.  So the steps of
`gpu_encode.parts` make the same encodings from such a table as from a table of all categories, priors included.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, repeat
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cpu_fallback.exact import Integers
from cpu_fallback.row_numbers import FoldPattern, fold_array
from cpu_fallback.types import Array, Layout, Window, carry
from cpu_fallback.types import Rows as CodedRows
from gpu_encode.encoders.target import TargetEncoder
from gpu_encode.fitting.fit import FitContext, select_columns
from gpu_encode.fitting.inputs import TrainingRows, read_fixed_targets
from gpu_encode.fitting.leave_one_out import leave_one_out
from gpu_encode.fitting.model import Model
from gpu_encode.formulas.encoding_rule import EncodingRule, check_weights
from gpu_encode.scale.files.source import Reading
from gpu_encode.scale.messages import NotShuffledError
from gpu_encode.scale.parts import EncodingPlan, Part, PartialSums
from gpu_encode.scale.parts.encoding import labels_of
from gpu_encode.scale.parts.sums import prepare_part, sum_prepared
from gpu_encode.scale.parts.tables import TrainedKey, count_blind, train_key, widen
from gpu_encode.schemes import GroupKFold, Ordered
from gpu_encode.schemes.plans import LeaveOneOutPlan
from gpu_encode.seam import ops
from gpu_encode.seam.ops import host
from gpu_encode.sums.category_sums import CategorySums, DigitSpan, SumSpec, join_layouts
from gpu_encode.tables import frames
from gpu_encode.tables.categories.hashes import hash_categories
from gpu_encode.tables.categories.keys import Tuples

# Folds most likely use other seeds: with the same seed, some buckets would stay empty.
SEED = 0x9E3779B97F4A7C15
# Most sums of one category: each sum is a column of the engine.
MOST_SUMS = 1000
ENTRY, ENCODINGS = "entry", "encodings"


@dataclass(frozen=True, eq=False)
class ShuffledSums:
    """The facts about all rows that every worker knows.

    Parameters
    ----------
    encoding_plan : EncodingPlan
    reading : Reading
    model : Model
        Its keys have no categories.  It holds the sums of all rows that new rows see, in a line that does not count as
        a category.
    totals : list of int64 array (folds, classes, width)
        For each target, the digits of the sums of all rows.
    specs : list of SumSpec
        For each target, with room for the digits of any rows.
    training : bool
        Whether encodings of training rows are wanted.
    """

    encoding_plan: EncodingPlan
    reading: Reading
    model: Model
    totals: list[Integers]
    specs: list[SumSpec]
    training: bool

    @property
    def positions(self) -> list[int]:
        """Indices of the features that keys use."""
        return self.model.selection.needed

    @property
    def n_sums(self) -> int:
        """Number of digits of one category."""
        return sum(total.size for total in self.totals)

    def trained(self, entry: int, categories: Sequence[Integers]) -> tuple[Model, TrainedKey]:
        """Learn from the sums of some categories of a key, as `parts.fit` learns from all categories."""
        rule, key = self.model.rules[entry], self.model.keys[entry]
        # Only the number of categories matters, not their values.
        key = replace(key, tuples=Tuples([1], np.zeros((len(categories[0]), 1), np.int32)))
        sums = [
            beside_others(digits, total, spec, rule)
            for digits, total, spec in zip(categories, self.totals, self.specs, strict=True)
        ]
        model = replace(self.model, keys=[key], rules=[rule], statistics=[sums])
        return model, train_key(0, model, self.encoding_plan.plan)

    def encode(self, entry: int, categories: Sequence[Integers]) -> Array:
        """Encode some categories of a key.

        Parameters
        ----------
        entry : int
        categories : list of int64 array (n_categories, folds, classes, width)
            For each target, the digits of the categories.

        Returns
        -------
        float array (n_categories + 2, views + 1, outputs)
            Encodings of training rows by fold, or by class if each row is left out; the last view is that of new rows.
            Lines for unknown and missing values follow those of the categories.
        """
        model, trained = self.trained(entry, categories)
        new = replace(model, statistics=[trained.visible])
        encodings = new.lookups(host(sum(digits.size for digits in categories)))[0].encodings
        if not self.training:
            return encodings
        views = trained.encodings.values if trained.encodings is not None else by_class(model)
        return np.concatenate([views, encodings], axis=1)


def beside_others(categories: Integers, total: Integers, spec: SumSpec, rule: EncodingRule) -> CategorySums:
    """Give the sums of some categories, and a line of no category with the sums of all other rows."""
    accumulators = np.concatenate([categories, np.zeros_like(total, shape=(2, *total.shape))])
    carry(accumulators, spec.layout)
    accumulators[-2 if rule.missing == "category" else -1] = total - accumulators.sum(axis=0)
    return CategorySums(accumulators, spec)


def by_class(model: Model) -> Array:
    """Encode the rows of each category and class, with each row left out (n_categories + 2, classes, outputs)."""
    [key], [[sums]] = model.keys, model.statistics
    n_classes, backend = sums.accumulators.shape[2], host(sums.accumulators.size)
    codes = np.append(np.arange(key.n_categories, dtype=np.int32), np.array([-2, -1], np.int32))
    rows = CodedRows(np.repeat(codes, n_classes), np.tile(np.arange(n_classes, dtype=np.int32), len(codes)))
    task = model.task(0, 0, backend, rows)
    out = np.empty((len(rows), task.n_outputs), model.dtype, "F")
    leave_one_out(task, sums, out, False)
    return out.reshape(len(codes), n_classes, task.n_outputs)


def rules_of(reading: Reading, schema: Any) -> list[EncodingRule]:
    """Give the rule of each key for rows with these columns; a rule that needs all categories is a ValueError."""
    bare = frames.read(pa.schema([schema.field(name) for name in reading.roles.features]).empty_table())
    rules = reading.parameters.rules(select_columns(reading.parameters, bare), bare)
    for rule in rules:
        needs = rule.statistic.needs
        if rule.needs_categories or needs.table or needs.distribution:
            raise NotShuffledError(f"{type(rule.statistic).__name__}, or its prior, looks at all categories at once")
    return rules


def blind(encoding_plan: EncodingPlan) -> EncodingPlan:
    """Give the plan for `total_table`, which reads no features and must not complain about missing values."""
    return replace(encoding_plan, parameters=replace(encoding_plan.parameters, handle_missing="category"))


def total_table(shared: tuple[EncodingPlan, Reading], table: Any) -> PartialSums:
    """Sum some rows with a `blind` plan, without their categories; only columns that are not features are read."""
    encoding_plan, reading = shared
    part = reading.part(table)
    with part.named():
        return total_part(encoding_plan, part)


def total_part(encoding_plan: EncodingPlan, part: Part) -> PartialSums:
    """Sum a part as `total_table` sums a table."""
    context = prepare_part(encoding_plan, part)
    if context is None:
        return PartialSums()
    reach = [DigitSpan.of(task.rows, task.spec.layout) for task in context.tasks[0]]
    return replace(sum_prepared(encoding_plan, context, part.first_row), reach=reach)


def settle(
    encoding_plan: EncodingPlan, reading: Reading, rules: list[EncodingRule], total: PartialSums, training: bool
) -> ShuffledSums:
    """Collect what workers must know; warn and raise errors as `parts.fit` does.

    Parameters
    ----------
    encoding_plan : EncodingPlan
    reading : Reading
    rules : list of EncodingRule
        From `rules_of`.
    total : PartialSums
        The results of `total_table` for all rows, added up.
    training : bool
        Whether training encodings are wanted.
    """
    assert total.model is not None
    reached = zip(total.model.statistics[0], total.reach, strict=True)
    wide = [widen(sums, with_whole_numbers(reach.layout)) for sums, reach in reached]
    totals = [sums.accumulators.sum(axis=0) for sums in wide]
    model = replace(total.model, rules=rules)
    shared = ShuffledSums(encoding_plan, reading, model, totals, [sums.spec for sums in wide], training)
    check_sums(shared)
    return learn_of_none(shared)


def with_whole_numbers(layout: Layout) -> Layout:
    """Give a layout with room for whole numbers, since sums may be whole or not, depending on the parts of the rows."""
    windows = [window if window.low < 0 else Window() for window, _, _ in layout.measures()]
    return join_layouts(layout, Layout(*windows), repeat(True))


def learn_of_none(shared: ShuffledSums) -> ShuffledSums:
    """Teach the model the encodings of new rows without a known category; warn and raise errors as `parts.fit` does."""
    encoding_plan, model = shared.encoding_plan, shared.model
    trained = [shared.trained(entry, no_categories(shared))[1] for entry in range(len(model.rules))]
    if shared.training:
        plans = [encoding_plan.plan] * len(trained)
        blind = partial(count_blind, encoding_plan.n_rows, plans, model, trained)
        encoding_plan.parameters.warn_of_plans(plans, blind)
    model = replace(model, statistics=[of_key.visible for of_key in trained])
    check_weights(encoding_plan.parameters.owner, model.rules, model.statistics, host(0))
    encoding_plan.encoder._check_model(model)
    return replace(shared, model=model)


def no_categories(shared: ShuffledSums) -> list[Integers]:
    """Give the sums of no categories."""
    return [np.zeros((0, *total.shape), np.int64) for total in shared.totals]


def check_parameters(encoder: Any, training: bool, refused_schemes: Any = (Ordered, GroupKFold)) -> None:
    """Raise ValueError for parameters that need more than the sums of single categories."""
    if not isinstance(encoder, TargetEncoder):
        raise NotShuffledError(f"it works only for TargetEncoder. Got {type(encoder).__name__} instead")
    refused = {
        "categories": None if isinstance(encoder.categories, str) else "a list",
        "hierarchy": encoder.hierarchy,
        "indicators": encoder.indicators,
        "min_frequency": encoder.min_frequency,
        "max_categories": encoder.max_categories,
        "missing_target": None if encoder.missing_target == "error" else encoder.missing_target,
        "drop": None if encoder.drop == "first" else encoder.drop,
        "cv": encoder.cv if isinstance(encoder.cv, Mapping) else None,
    }
    for name, value in refused.items():
        if value is not None and value is not False:
            raise NotShuffledError(f"{name}={value!r} is not served so")
    scheme = encoder._parameters().scheme
    if scheme.by_age or (training and isinstance(scheme, refused_schemes)):
        raise NotShuffledError(
            f"it does not work for {type(scheme).__name__} in an order, by age, or by groups that are counted; it "
            "works for KFold(by=...), which keeps rows of one value together"
        )


def check_sums(shared: ShuffledSums) -> None:
    """Raise ValueError for too many sums of a category, or for leave-one-out that these sums do not allow."""
    if shared.n_sums > MOST_SUMS:
        raise NotShuffledError(
            f"a category has {shared.n_sums} sums here, by fold and class, {MOST_SUMS} at most; choose fewer folds"
        )
    of_classes = len(shared.specs) == 1 and shared.specs[0].classification and shared.reading.roles.weight is None
    if shared.training and isinstance(shared.encoding_plan.plan, LeaveOneOutPlan) and not of_classes:
        raise NotShuffledError("LeaveOneOut works only for one target of classes, without sample_weight")


def sum_table(shared: ShuffledSums, table: Any) -> Any:
    """Give the digits of the sums of some rows, with a line for each category of each key.

    Returns
    -------
    pyarrow.Table
        The number of the key, its values in columns named by the indices of features (other columns are null), and
        digits.
    """
    part = shared.reading.part(table)
    nothing = lines(shared, 0, part.X, np.zeros(0, np.int32), np.zeros((0, shared.n_sums), np.int64))
    return pa.concat_tables([nothing, *(of_key.table for of_key in sum_part(shared, part))])


class KeyLines(NamedTuple):
    """The categories of one key that occur in some rows.

    Parameters
    ----------
    table : pyarrow.Table
        A line for each category.
    hashes : uint64 array
        Hash of each line, which depends only on the values of its columns.
    of_rows : int array
        The number of each row's line; -1 for missing values that are not a category.
    """

    table: Any
    hashes: Array
    of_rows: Array


def sum_part(shared: ShuffledSums, part: Part) -> list[KeyLines]:
    """Give the lines of some rows, by key; give no lines if there are no rows."""
    context = prepare_part(shared.encoding_plan, part)
    if context is None:
        return []
    sums = sum_prepared(shared.encoding_plan, context, part.first_row).model
    assert sums is not None
    made = []
    for entry, per_target in enumerate(sums.statistics):
        digits = np.concatenate(
            [flat_digits(of_target, spec) for of_target, spec in zip(per_target, shared.specs, strict=True)], axis=1
        )
        made.append(key_lines(shared, context, part, entry, digits))
    return made


def key_lines(
    shared: ShuffledSums, context: FitContext, part: Part, entry: int, digits: Integers | None = None
) -> KeyLines:
    """Give the lines of a part that has been read, for one key; without digits, they only have the key's values."""
    key, codes = context.keys[entry], context.rows.ops.to_host(context.categories[entry].codes)
    rows = first_rows(codes, key.n_categories, context.rules[entry].missing == "category")
    found = np.flatnonzero(rows >= 0)
    table = lines(shared, entry, part.X, rows[found], None if digits is None else digits[found])
    return KeyLines(table, hash_categories(key, SEED)[found], line_of_rows(codes, rows))


def flat_digits(sums: CategorySums, spec: SumSpec) -> Integers:
    """Give the digits of each category, missing values last, as `digits_in` does."""
    digits = digits_in(sums, spec)
    return np.delete(digits, -2, axis=0).reshape(len(digits) - 1, -1)


def digits_in(sums: CategorySums, spec: SumSpec) -> Integers:
    """Give the digits of sums in another layout, so small that an engine can add them in any order."""
    windows = zip(sums.spec.layout.measures(), spec.layout.measures(), strict=True)
    # The sums of all rows fit into whole numbers, but a bound on the sums of some rows need not show it.
    if any(new.whole and not old.whole for (old, _, _), (new, _, _) in windows):
        sums = sums.to_canonical()
    digits = sums.in_layout(spec.layout).copy()
    carry(digits, spec.layout)
    return digits


def first_rows(codes: Array, n_categories: int, with_missing: bool) -> Array:
    """Find a row of each category, and last of missing values if they are a category; -1 if there is no row."""
    rows = np.full(n_categories + 1, -1, np.int64)
    rows[codes[::-1]] = np.arange(len(codes))[::-1]
    if not with_missing:
        rows[-1] = -1
    return rows


def line_of_rows(codes: Array, first: Array) -> Array:
    """Find the line of each row; a category has a line if one of its rows was found."""
    numbers = np.cumsum(first >= 0, dtype=np.int32) - 1
    numbers[first < 0] = -1
    found: Array = numbers[codes]
    return found


def lines(shared: ShuffledSums, entry: int, features: Any, rows: Array, digits: Integers | None) -> Any:
    """Make the lines of a key: the values of its columns, read from one row of each category, and digits if given."""
    members = {*shared.model.selection.entries[entry].members}
    columns = {ENTRY: pa.array(np.full(len(rows), entry, np.int32))}
    for position in shared.positions:
        column = features.column(position)
        taken = in_one_form(column.take(pa.array(rows)))
        columns[key_name(position)] = taken if position in members else pa.nulls(len(rows), taken.type)
    if digits is not None:
        for number in range(shared.n_sums):
            columns[digit_name(number)] = pa.array(np.ascontiguousarray(digits[:, number]))
    return pa.table(columns)


def without_others(lines: Any, members: Sequence[int]) -> Any:
    """Give the lines of a key without the columns of other keys."""
    own = {*map(key_name, members)}
    return lines.select([name for name in lines.column_names if name in own or not name.startswith("key")])


def in_one_form(column: Any) -> Any:
    """Give equal values the same form: null for NaN, 0.0 for -0.0, no dictionaries."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not pa.types.is_floating(column.type):
        return column
    return pc.if_else(pc.is_nan(column), None, pc.add(column, pa.scalar(0.0, column.type)))


def key_name(position: int) -> str:
    """Name the column that holds the values of a feature."""
    return f"key{position}"


def digit_name(number: int) -> str:
    """Name the column that holds a digit."""
    return f"digit{number}"


def add_lines(tables: Sequence[Any]) -> Any:
    """Add up lines of `sum_table`; the result has one line for each category."""
    # Unlike in `join_tables`, chunks are not copied together, since memory may be short.
    table = pa.concat_tables(tables, promote_options="permissive")
    digits = [name for name in table.column_names if name.startswith("digit")]
    keys = [name for name in table.column_names if name not in digits]
    added = table.group_by(keys, use_threads=False).aggregate([(name, "sum") for name in digits])
    return added.select([*keys, *(f"{name}_sum" for name in digits)]).rename_columns([*keys, *digits])


def join_tables(tables: Sequence[Any]) -> Any:
    """Join tables whose types may differ, since a type depends on the values that a table happens to have."""
    return pa.concat_tables(tables, promote_options="permissive").combine_chunks()


def of_entry(lines: Any, entry: int) -> Any:
    """Give the lines of one key."""
    return lines.filter(pa.array(lines[ENTRY].to_numpy() == entry))


def as_lists(encodings: Array, dtype: Any) -> Any:
    """Give the encodings of each line (lines, encodings) as an Arrow column of lists."""
    starts = pa.array(np.arange(len(encodings) + 1) * encodings.shape[1], pa.int32())
    return pa.ListArray.from_arrays(starts, pa.array(encodings.reshape(-1), dtype))


def encode_lines(shared: ShuffledSums, table: Any) -> Any:
    """Encode some categories, from lines of `sum_table` that the engine has added up.

    Returns
    -------
    pyarrow.Table
        The number of the key, its values, and a list of encodings, in the order of views, then outputs.
    """
    names = [ENTRY, *map(key_name, shared.positions)]
    dtype = pa.from_numpy_dtype(shared.model.dtype)
    made = [table.select(names).slice(0, 0).append_column(ENCODINGS, pa.array([], pa.list_(dtype)))]
    for entry in np.unique(table[ENTRY].to_numpy()):
        own = of_entry(table, entry)
        digits = np.column_stack([own[digit_name(number)].to_numpy() for number in range(shared.n_sums)])
        made.append(with_encodings(shared, int(entry), own.select(names), by_target(shared, digits)))
    return pa.concat_tables(made)


def with_encodings(shared: ShuffledSums, entry: int, keys: Any, digits: Sequence[Integers]) -> Any:
    """Add the encodings of some categories of a key to a table with its values, from their digits by target."""
    encodings = shared.encode(entry, digits)[:-2].reshape(len(keys), -1)
    return keys.append_column(ENCODINGS, as_lists(encodings, pa.from_numpy_dtype(shared.model.dtype)))


def by_target(shared: ShuffledSums, digits: Integers) -> list[Integers]:
    """Split digits by target, in the shape of each target's sums."""
    ends = list(accumulate(total.size for total in shared.totals))
    parts = np.split(digits, ends[:-1], axis=1)
    return [part.reshape(len(digits), *total.shape) for part, total in zip(parts, shared.totals, strict=True)]


def add_views(shared: tuple[ShuffledSums, str], table: Any) -> Any:
    """Add a column to training rows: the number of the view that has the encodings of the row."""
    summed, name = shared
    views = view_of_rows(summed, summed.reading.part(table)) if len(table) else np.zeros(0, np.int32)
    return table.append_column(name, pa.array(views, pa.int32()))


def view_of_rows(shared: ShuffledSums, part: Part) -> Array:
    """Find the view of each row: its fold, or its class if each row is left out."""
    encoding_plan, given = shared.encoding_plan, part.given()
    backend = ops.resolve(given.frame.n_rows, given.device(encoding_plan.parameters.device))
    if isinstance(encoding_plan.plan, LeaveOneOutPlan):
        [target] = read_fixed_targets(backend, given.targets(), encoding_plan.targets)
        labels: Array = backend.to_host(target.labels)
        return labels
    rows = TrainingRows.of(given, backend)
    labels = labels_of(encoding_plan, given, rows)
    [plan, *_] = encoding_plan.fold_plans(shared.model.selection, rows, labels, part.first_row)
    folds = plan.lookup_folds
    if not (folds is None or isinstance(folds, FoldPattern)):
        folds = backend.to_host(folds)
    views = fold_array(folds, 0, rows.n_rows)
    return np.zeros(rows.n_rows, np.int32) if views is None else views
