"""A call on training rows, from what it was given to what the encoder keeps.  Read this file first.

`prepare` reads the rows; `plan_keys` lets the schemes decide who may look at whom; `sum_rows` gives the sums that new
rows see, and `encode_rows` the training encodings as well; `make_model` puts together what the encoder keeps.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from cpu_fallback.types import Array, Rows, SumShape
from gpu_encode.fitting import encodings
from gpu_encode.fitting.categories import RowCategories, column_keys, look_up_categories, read_categories
from gpu_encode.fitting.columns import ColumnMap, Selection, locate, locate_columns, map_columns, select
from gpu_encode.fitting.compatibility import (
    check_columns,
    check_same_columns,
    check_same_parameters,
    check_same_statistic,
)
from gpu_encode.fitting.inputs import Inputs, SummedColumn, TrainingRows, read_rows, read_summed
from gpu_encode.fitting.model import Model, TargetInfo
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.fitting.tasks import EncodingTask, OutputColumns, make_room, missing_rows, to_columns
from gpu_encode.formulas.encoding_rule import EncodingRule, check_weights
from gpu_encode.schemes import Ordered, Scheme, Splits
from gpu_encode.schemes.plans import Plan, Request, RowsAtHand, all_rows, assign
from gpu_encode.seam.ops import Ops
from gpu_encode.sums import category_sums, targets
from gpu_encode.sums.category_sums import CategorySums, SumSpec
from gpu_encode.sums.moments import Moments
from gpu_encode.sums.pairs import PairSums
from gpu_encode.sums.targets import Target
from gpu_encode.tables.categories.keys import CategoryIndex
from gpu_encode.tables.frames import Frame, Pieces


@dataclass(frozen=True, eq=False)
class FitContext:
    """What `prepare` has read: all that the later steps of a call work with.

    Parameters
    ----------
    parameters : Parameters
    rows : TrainingRows
    selection : Selection
        Which columns are encoded.
    targets : list of Target
    categories : list of RowCategories
        One for each key.
    rules : list of EncodingRule
        One for each key.
    tasks : list of list of EncodingTask
        tasks[key][target].
    columns : ColumnMap
        Columns of the table, by their positions at fit.
    """

    parameters: Parameters
    rows: TrainingRows
    selection: Selection
    targets: list[Target]
    categories: list[RowCategories]
    rules: list[EncodingRule]
    tasks: list[list[EncodingTask]]
    columns: ColumnMap

    @property
    def keys(self) -> list[CategoryIndex]:
        """Categories of every key."""
        return [categories.key for categories in self.categories]


def prepare(
    parameters: Parameters,
    inputs: Inputs,
    known: Model | None = None,
    fixed_targets: Sequence[TargetInfo] | None = None,
    fixed_keys: Sequence[CategoryIndex] | None = None,
    sums_alone: bool = False,
    more_may_come: bool = False,
) -> FitContext:
    """Read the rows of a call: weights, targets, columns, categories; and say what is to be computed of them.

    Parameters
    ----------
    parameters : Parameters
    inputs : Inputs
    known : Model, optional
        What earlier calls of `partial_fit` have learned.
    fixed_targets : list of TargetInfo, optional
        Kinds and classes that all rows have decided, where these are some of them.
    fixed_keys : list of CategoryIndex, optional
        Categories of all rows, where these are some of them and all have been summed.
    sums_alone : bool, default=False
        Whether only sums over all rows are asked for, so that no row's category need be known.
    more_may_come : bool, default=False
        Whether other rows may be added, so that all of these may weigh nothing.

    Raises
    ------
    ValueError, TypeError
        For bad input, and for columns, targets or parameters that differ from those of earlier calls.
    """
    rows = read_rows(parameters, inputs, all_rows=fixed_targets is None and not more_may_come)
    if known is not None:
        check_same_statistic(known, parameters)
    summed = read_summed(parameters, rows, None if known is None else known.targets, fixed_targets, more_may_come)
    if known is not None:
        check_columns(known, rows.frame, parameters.owner)
    selection = select_columns(parameters, rows.frame)
    if known is not None:
        check_same_columns(known, rows.frame, selection, summed if parameters.values else [])
    rules = parameters.rules(selection, rows.frame)
    specs = specify_sums(parameters, rows.ops, summed)
    columns = map_columns(rows.frame)
    if fixed_keys is not None:
        categories = look_up_categories(parameters, fixed_keys, columns, rows.ops)
    else:
        categories = read_categories(parameters, selection.entries, rules, columns, rows.ops, sums_alone, summed, specs)
    context = FitContext(
        parameters,
        rows,
        selection,
        [column.target for column in summed],
        categories,
        rules,
        make_tasks(rows, summed, specs, categories, rules),
        columns,
    )
    if known is not None:
        check_same_parameters(known, parameters, rules, specs, context.keys)
    return context


def prepare_again(parameters: Parameters, inputs: Inputs, known: Model) -> FitContext:
    """Read the rows that a model was fitted to once more: its categories are looked up, its classes are known.

    Parameters
    ----------
    parameters : Parameters
    inputs : Inputs
    known : Model

    Raises
    ------
    ValueError, TypeError
        For bad input, and for columns, categories or labels that differ from those of the model.
    """
    rows = read_rows(parameters, inputs)
    columns = locate_columns(rows.frame, known.selection, known.feature_names, known.n_features, parameters.owner)
    summed = read_summed(parameters, rows, fixed=known.targets)
    specs = specify_sums(parameters, rows.ops, summed)
    remembered = columns.remember([key.entry for key in known.keys])
    categories = look_up_categories(parameters, known.keys, remembered, rows.ops)
    tasks = make_tasks(rows, summed, specs, categories, known.rules)
    targets = [column.target for column in summed]
    return FitContext(parameters, rows, known.selection, targets, categories, known.rules, tasks, columns)


def select_columns(parameters: Parameters, frame: Frame | Pieces) -> Selection:
    """Read which columns are encoded, and name the outputs after them."""
    if parameters.select is not None:
        selection = parameters.select(frame)
    else:
        for scheme in parameters.scheme_by_key.values():
            with parameters.naming_scheme(scheme):
                for column in scheme.used_columns():
                    locate(frame, column, "The scheme's column")
        selection = select(frame, parameters.columns, parameters.hierarchy, parameters.training_columns)
    if dates := parameters.date_columns:
        selection = replace(selection, dates=[locate(frame, column, "values:") for column in dates])
    return selection.named(frame.names or [f"x{i}" for i in range(frame.n_columns)])


def specify_sums(parameters: Parameters, ops: Ops, summed: Sequence[SummedColumn]) -> list[SumSpec]:
    """Find the digits that the exact sums of every target need."""
    specs = []
    for number, column in enumerate(summed):
        squares = False
        for statistic in parameters.every_statistic:
            squares |= statistic.of_target(number).needs.squares
        specs.append(category_sums.choose_spec(ops, column.target, column.weight, squares, parameters.drop))
    return specs


def make_tasks(
    rows: TrainingRows,
    summed: Sequence[SummedColumn],
    specs: Sequence[SumSpec],
    categories: Sequence[RowCategories],
    rules: Sequence[EncodingRule],
) -> list[list[EncodingTask]]:
    """Put together what is computed of each key and target."""
    tasks: list[list[EncodingTask]] = []
    for of_key, rule in zip(categories, rules, strict=True):
        tasks.append([])
        for number, (column, spec) in enumerate(zip(summed, specs, strict=True)):
            tasks[-1].append(
                EncodingTask(
                    rows.ops,
                    column.rows(of_key.found),
                    of_key.key,
                    column.target.n_classes,
                    spec,
                    rule.of_target(number),
                    of_key.sums,
                    column.target.vocabulary,
                )
            )
    return tasks


def plan_keys(context: FitContext, for_new_rows: bool = False) -> list[Plan]:
    """Let the scheme of each key decide who may look at whom; keys of one scheme have one plan.

    `for_new_rows` says that only new rows are to be encoded: a scheme that lets them see all rows then plans nothing.
    """
    rows, plans = context.rows, []
    made: dict[int, Plan] = {}
    for scheme in context.parameters.scheme_of_each_key(context.selection, rows.frame):
        if id(scheme) not in made:
            needed = scheme.new_rows_see_folds or not for_new_rows
            with context.parameters.naming_scheme(scheme):
                made[id(scheme)] = plan_rows(scheme, rows, context.targets) if needed else all_rows()
        plans.append(made[id(scheme)])
    return plans


def plan_rows(scheme: Scheme, rows: TrainingRows, read_targets: Sequence[Target]) -> Plan:
    """Let a scheme decide who may look at whom, and give every row its fold or its place in the order."""
    ops = rows.ops
    codes, counts, values = {}, {}, {}
    for column, role in scheme.reads():
        codes[role], values[role], _ = column_keys(rows.frame, rows.groups if column is None else column, role, ops)
        counts[role] = ops.to_host(np.bincount(codes[role], minlength=len(values[role])))
    class_counts = [count_classes(rows, target) for target in read_targets] if scheme.reads_classes else []
    X, y = rows.inputs.for_splitter() if isinstance(scheme, Splits) else (None, None)
    lacking = rows_without_target(read_targets, ops) if isinstance(scheme, Splits) else None
    with rows.inputs.naming_piece("y"):
        plan = scheme.plan(Request(rows.n_rows, counts, class_counts, values, X, y, rows.groups, lacking))
    return assign(plan, RowsAtHand(ops, rows.n_rows, codes, read_targets[0].labels))


def rows_without_target(read_targets: Sequence[Target], ops: Ops) -> Array | None:
    """Find the rows that lack a target; None where none does."""
    present = [ops.to_host(target.present) for target in read_targets if target.present is not None]
    return np.flatnonzero(~np.logical_and.reduce(present)) if present else None


def count_classes(rows: TrainingRows, target: Target) -> Array | None:
    """Count the rows of each class of a target, those without a value last; None for a target without classes."""
    if not target.is_classification:
        return None
    n_classes = target.n_classes + (target.present is not None)
    return rows.ops.to_host(np.bincount(rows.ops.to_device(target.labels), minlength=n_classes))


def sum_rows(context: FitContext, plans: Sequence[Plan] | None = None) -> list[list[CategorySums]]:
    """Sum the rows that new rows see, by the plan of each key: sums[key][target]; without plans all rows."""
    plans = [all_rows()] * len(context.tasks) if plans is None else plans
    return [
        [encodings.sum_for_new_rows(task, plan) for task in tasks]
        for tasks, plan in zip(context.tasks, plans, strict=True)
    ]


def encode_rows(context: FitContext, plans: Sequence[Plan]) -> tuple[list[Array], list[list[CategorySums]]]:
    """Encode the training rows by the plan of each key: columns, then indicators; and the sums that new rows see."""
    parameters, ops, n_outputs = context.parameters, context.rows.ops, 0
    for tasks, plan in zip(context.tasks, plans, strict=True):
        for task in tasks:
            n_outputs += task.n_outputs * encodings.n_columns(plan)
    matrix = make_room(ops, context.rows.n_rows, n_outputs, parameters.dtype, context.targets)
    output = OutputColumns(matrix, parameters.indicators)
    totals: dict[Any, Moments | None] = {}
    sums: list[list[CategorySums]] = []
    unseen = UnseenRows({}, set())
    for entry, (tasks, plan) in enumerate(zip(context.tasks, plans, strict=True)):
        sums.append([])
        for number, task in enumerate(tasks):
            rule, first = task.rule, number == context.rules[entry].statistic.first_target
            out = output.next(task.n_outputs * encodings.n_columns(plan))
            # Of keys that need the same, moments of all rows are those of the first.
            alike = id(plan), number, rule.needs, ops.fused is None or rule.describe_fused() is None
            want_unseen = first and "unseen" in parameters.indicators
            done = encodings.train(task, plan, out, want_unseen, totals.get(alike))
            totals[alike] = done.total
            if not done.all_see:
                unseen.note(plan, rule, out)
            sums[-1].append(done.statistics)
            if first and parameters.indicators:
                output.add_indicators(done.unseen, partial(find_missing, context, entry))
    check_weights(parameters.owner, context.rules, sums, ops)
    warn_of_plans(context, plans, sums, unseen)
    return output.to_list(), sums


class UnseenRows(NamedTuple):
    """What may show that rows see no rows.

    Parameters
    ----------
    columns : dict of int to list of array
        Encodings whose prior is a mean of what is seen, by the identity of their plan.
    unsure : set of int
        Plans by which encodings may be NaN for reasons of their own.
    """

    columns: dict[int, list[Array]]
    unsure: set[int]

    def note(self, plan: Plan, rule: EncodingRule, out: Array) -> None:
        """Note the encodings of a key and target, in columns of a matrix."""
        if isinstance(rule.prior, str):
            self.columns.setdefault(id(plan), []).extend(to_columns(out))
        elif rule.prior is None and rule.needs_rows:
            self.unsure.add(id(plan))


def find_missing(context: FitContext, entry: int) -> Array:
    """Find the rows of one key that have no value."""
    categories, as_category = context.categories[entry], context.parameters.missing == "category"
    return missing_rows(categories.key, categories.codes, context.columns, context.rows.ops, as_category)


def warn_of_plans(
    context: FitContext,
    plans: Sequence[Plan],
    sums: Sequence[Sequence[CategorySums]],
    unseen: UnseenRows,
) -> None:
    """Warn, once for each plan, of encodings that leak, and of rows that see none.

    `plans` has one for each key, and `sums` what new rows see, sums[key][target].
    """
    parameters, warned = context.parameters, set()
    schemes = parameters.scheme_of_each_key(context.selection, context.rows.frame)
    for plan, scheme, of_key in zip(plans, schemes, sums, strict=True):
        if id(plan) in warned:
            continue
        warned.add(id(plan))
        parameters.warn_of_leak(plan)
        warn_of_rare_classes(context, scheme, of_key)
        parameters.warn_of_nothing_seen(unseen.columns.get(id(plan), []), plan)
        if id(plan) in unseen.unsure:
            parameters.warn_of_first_rows(plan, context.rows.n_rows)


def warn_of_rare_classes(context: FitContext, scheme: Scheme, sums: Sequence[CategorySums]) -> None:
    """Warn of classes with fewer rows than folds, as scikit-learn does, by the sums of any key of the scheme."""
    rows, folds = context.rows, context.parameters.folds_given_for(scheme)
    if folds is None:
        return
    # Each row has one category of any key: the sums of one key tell.
    for target, target_sums in zip(context.targets, sums, strict=True):
        if target.classes is None:
            continue
        number = len(target.classes)
        if rows.weight is None:
            counts = target_sums.totals(rows.ops).accumulators[0, :, :number, 0].sum(axis=0)
        else:
            counts = rows.ops.accumulate(Rows(target.labels), SumShape(number + 1))[:number]
        targets.warn_of_rare_classes(counts, folds)


def sum_pairs(context: FitContext, most: float = np.inf) -> list[PairSums]:
    """Sum the rows of pairs of categories, as the selection asks; nothing where there are more than `most` pairs."""
    ops, weight, counted, n_pairs = context.rows.ops, context.rows.weight, [], 0
    pairs = context.selection.pairs
    asked = [pair for number, pair in enumerate(pairs) if pair[::-1] not in pairs[:number]]
    spec = category_sums.choose_spec(ops, targets.no_target(context.rows.n_rows), weight, squares=False, drop=None)
    for pair in asked:
        found = [context.categories[place] for place in pair]
        sizes = [of_key.key.n_categories for of_key in found]
        counted.append(PairSums.measure(ops, pair, [of_key.codes for of_key in found], sizes, weight, spec))
        n_pairs += len(counted[-1].first)
        if n_pairs > most:
            return []
    return counted


def make_model(context: FitContext, sums: Sequence[Sequence[CategorySums]], most_pairs: float = np.inf) -> Model:
    """Put together what the encoder keeps."""
    parameters, frame, ops = context.parameters, context.rows.frame, context.rows.ops
    scheme = parameters.scheme
    return Model(
        context.selection,
        frame.n_columns,
        frame.names,
        [TargetInfo(target.name, target.kind, target.classes, target.vocabulary) for target in context.targets],
        context.keys if parameters.statistic.needs.sums else [key.without_categories() for key in context.keys],
        [[target_sums.kept(ops) for target_sums in per_target] for per_target in sums],
        context.rules,
        parameters.indicators,
        parameters.dtype,
        scheme.n_permutations if isinstance(scheme, Ordered) and not scheme.average else 1,
        sum_pairs(context, most_pairs) if context.selection.pairs and most_pairs else [],
    )
