"""A call on training rows, from its arguments to the model that the encoder keeps.  Read this file first.

`prepare` reads the rows.  `plan_keys` lets the schemes decide who may look at whom.  `sum_rows` gives the sums that new
rows see; `encode_rows` gives the training encodings as well.  `make_model` makes the model that the encoder keeps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.cached import cached_property
from cpu_fallback.row_numbers import Permutation
from cpu_fallback.types import Array, Rows, SumShape, written
from gpu_encode.fitting.columns import (
    FEWEST_ON,
    ColumnMap,
    Selection,
    column_keys,
    locate,
    locate_columns,
    map_columns,
    select,
)
from gpu_encode.fitting.compatibility import (
    check_same_columns,
    check_same_parameters,
    check_same_statistic,
)
from gpu_encode.fitting.copies import MOST_EQUAL, share_of_copies
from gpu_encode.fitting.inputs import (
    Decided,
    Inputs,
    RowCategories,
    SummedColumn,
    TrainingRows,
    look_up_categories,
    read_categories,
    read_rows,
    read_summed,
)
from gpu_encode.fitting.key_batches import encode_batches
from gpu_encode.fitting.key_sums import sum_keys
from gpu_encode.fitting.leave_one_out import leave_one_out
from gpu_encode.fitting.model import Model, TargetInfo
from gpu_encode.fitting.ordered import ordered, ordered_by_age
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.fitting.tasks import (
    DatedRows,
    Elapsed,
    EncodingTask,
    OutputColumns,
    Trained,
    look_up,
    make_room,
    missing_rows,
    see_new_rows,
    sum_by_fold,
    sum_seen_folds,
    tables_by_fold,
    to_columns,
)
from gpu_encode.formulas.encoding_rule import EncodingRule, SeenSums, check_weights
from gpu_encode.schemes import Scheme, Splits
from gpu_encode.schemes.plans import (
    FoldPlan,
    OrderedPlan,
    Plan,
    Request,
    RowsAtHand,
    SplitPlan,
    all_rows,
    assign,
    first_rows,
    leak_of,
)
from gpu_encode.seam.ops import Ops, device_of
from gpu_encode.sums import category_sums, targets
from gpu_encode.sums.category_sums import CategorySums, SumSpec
from gpu_encode.sums.distributions import Distribution
from gpu_encode.sums.moments import Moments
from gpu_encode.sums.pairs import PairSums
from gpu_encode.sums.targets import Target
from gpu_encode.tables.categories.keys import CategoryIndex, JointCodes
from gpu_encode.tables.categories.vocabulary import Vocabulary
from gpu_encode.tables.frames import Frame, Pieces
from gpu_encode.words.notices import LeakWarning, warn


@dataclass(frozen=True, eq=False)
class FitContext:
    """The data that `prepare` has read, for all later steps of a call.

    Parameters
    ----------
    parameters : Parameters
    rows : TrainingRows
    selection : Selection
        The columns that are encoded.
    summed : list of SummedColumn
        One for each target.
    specs : list of SumSpec
        One for each target.
    categories : list of RowCategories
        One for each key.
    rules : list of EncodingRule
        One for each key.
    columns : ColumnMap
        Columns of the table, by their positions at fit.
    """

    parameters: Parameters
    rows: TrainingRows
    selection: Selection
    summed: list[SummedColumn]
    specs: list[SumSpec]
    categories: list[RowCategories]
    rules: list[EncodingRule]
    columns: ColumnMap

    @cached_property
    def targets(self) -> list[Target]:
        """The targets that are summed, without the weights."""
        return [*map(attrgetter("target"), self.summed)]

    @cached_property
    def tasks(self) -> list[list[EncodingTask]]:
        """One task for each key and target, with the codes of all rows: tasks[key][target]."""
        numbers = range(len(self.summed))
        return [[self.task(entry, number).joined() for number in numbers] for entry in range(len(self.categories))]

    def task(self, entry: int, number: int) -> EncodingTask:
        """Make the task of a key and a target; the codes of joint keys may be `JointCodes`."""
        column, categories = self.summed[number], self.categories[entry]
        return EncodingTask(
            self.rows.ops,
            column.rows(categories.found),
            categories.key,
            column.target.n_classes,
            self.specs[number],
            self.rules[entry].of_target(number),
            categories.sums,
            column.target.vocabulary,
        )

    @property
    def keys(self) -> list[CategoryIndex]:
        """The categories of every key."""
        return [categories.key for categories in self.categories]


def prepare(
    parameters: Parameters,
    inputs: Inputs,
    known: Model | None = None,
    decided: Decided | None = None,
    sums_alone: bool = False,
    more_may_come: bool = False,
) -> FitContext:
    """Read the rows of a call (weights, targets, columns and categories), and choose the sums that are needed.

    Parameters
    ----------
    parameters : Parameters
    inputs : Inputs
    known : Model, optional
        The model of earlier calls of `partial_fit`.
    decided : Decided, optional
        Facts that were found in all rows, if the call has only a part of them.
    sums_alone : bool, default=False
        Whether only sums over all rows are needed, and not the category of each row.
    more_may_come : bool, default=False
        Whether more rows may be added later; if so, the weights of all these rows may be 0.

    Raises
    ------
    ValueError, TypeError
        For bad input, and for columns, targets or parameters that differ from those of earlier calls.
    """
    context = read_shared(parameters, inputs, known, decided, more_may_come)
    rows, summed, specs, rules = context.rows, context.summed, context.specs, context.rules
    if decided is not None and decided.keys is not None:
        categories = look_up_categories(parameters, decided.keys, context.columns, rows.ops)
    else:
        sums = [*zip(summed, specs, strict=True)]
        categories = read_categories(parameters, rows, context.selection.entries, rules, sums_alone, sums)
    context = replace(context, categories=categories)
    if known is not None:
        check_same_parameters(known, parameters, rules, specs, context.keys)
    return context


def read_shared(
    parameters: Parameters,
    inputs: Inputs,
    known: Model | None = None,
    decided: Decided | None = None,
    more_may_come: bool = False,
) -> FitContext:
    """Read what all keys share, as `prepare` does; no key has its categories yet."""
    rows = read_rows(parameters, inputs, decided, more_may_come)
    if known is not None:
        check_same_statistic(known, parameters)
    fixed = None if decided is None else decided.targets
    summed = read_summed(parameters, rows, None if known is None else known.targets, fixed, more_may_come)
    # This frees the arrays of y, since the targets have been made from them.
    rows = replace(rows, targets=())
    if known is not None:
        known.check_columns(rows.frame, parameters.owner)
    selection = select_columns(parameters, rows.frame)
    if known is not None:
        check_same_columns(known, rows.frame, selection, summed if parameters.values else [])
    rules = parameters.rules(selection, rows.frame)
    specs = specify_sums(parameters, rows.ops, summed)
    return FitContext(parameters, rows, selection, summed, specs, [], rules, map_columns(rows.frame))


def prepare_again(parameters: Parameters, inputs: Inputs, known: Model) -> FitContext:
    """Read again the rows that a model was fitted to: categories are looked up in the model, and classes are known.

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
    return FitContext(parameters, rows, known.selection, summed, specs, categories, known.rules, columns)


def select_columns(parameters: Parameters, frame: Frame | Pieces) -> Selection:
    """Read which columns are encoded, and name the outputs after them."""
    if parameters.select is not None:
        selection = parameters.select(frame).named(frame.names or [f"x{i}" for i in range(frame.n_columns)])
    else:
        for scheme in parameters.scheme_by_key.values():
            with parameters.naming_scheme(scheme):
                for column in scheme.used_columns():
                    locate(frame, column, "The scheme's column")
        selection = select(frame, parameters.columns, parameters.hierarchy, parameters.training_columns)
    if frame.labels and type(frame.labels[0]) is tuple:
        warn(
            "X has columns of several levels, which are no names for an encoder: its outputs are called x0, x1, ... "
            'X.columns = X.columns.map("_".join) gives them names.',
            UserWarning,
        )
    if dates := parameters.date_columns:
        selection = replace(selection, dates=[locate(frame, column, "values:") for column in dates])
    return selection


def specify_sums(parameters: Parameters, ops: Ops, summed: Sequence[SummedColumn]) -> list[SumSpec]:
    """Find the digits that the exact sums of every target need."""
    specs = []
    for number, column in enumerate(summed):
        squares = False
        for statistic in parameters.every_statistic:
            squares |= statistic.of_target(number).needs.squares
        specs.append(category_sums.choose_spec(ops, column.target, column.weight, squares, parameters.drop))
    return specs


def plan_keys(context: FitContext, for_new_rows: bool = False) -> list[Plan]:
    """Let the scheme of each key decide who may look at whom; keys of one scheme share a plan.

    `for_new_rows` says that only new rows will be encoded: if they see all rows, the scheme is not asked for a plan.
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


@dataclass(frozen=True, eq=False)
class ValueCounts:
    """The sorted distinct values of a column that a scheme reads, and the number of rows of each.

    Parameters
    ----------
    role : str
        The scheme's use of the column, such as "time" or "groups".
    vocabulary : Vocabulary
    counts : int64 array
    codes : int32 array (rows,), optional
        Index of each row's value, if all rows are at hand.
    """

    role: str
    vocabulary: Vocabulary
    counts: NDArray[np.int64]
    codes: Array | None = None

    @classmethod
    def of(cls, frame: Frame | Pieces, column: Any, role: str, ops: Ops) -> Self:
        """Count the rows of each value of a column that the scheme reads: a column of X, or an array."""
        codes, vocabulary, _ = column_keys(frame, column, role, ops)
        if len(vocabulary) == len(codes):
            # All values differ.
            return cls(role, vocabulary, np.ones(len(codes), np.int64), codes)
        return cls(role, vocabulary, ops.to_host(np.bincount(codes, minlength=len(vocabulary))), codes)

    def __add__(self, other: "ValueCounts") -> "ValueCounts":
        vocabulary, mine, theirs = self.vocabulary.union(other.vocabulary, self.role)
        counts = np.zeros(len(vocabulary), np.int64)
        counts[mine] += self.counts
        counts[theirs] += other.counts
        return ValueCounts(self.role, vocabulary, counts)


def plan_rows(scheme: Scheme, rows: TrainingRows, read_targets: Sequence[Target]) -> Plan:
    """Let a scheme decide who may look at whom, and give every row its fold or its rank in the order."""
    ops, values, given = rows.ops, {}, {}
    codes: dict[str, Any] = {}
    for column, role in scheme.reads():
        values[role] = ValueCounts.of(rows.frame, rows.groups if column is None else column, role, ops)
        codes[role] = values[role].codes
    class_counts = [count_classes(rows, target) for target in read_targets] if scheme.reads_classes else []
    if isinstance(scheme, Splits):
        X, y = rows.inputs.for_splitter()
        present = [ops.to_host(target.present) for target in read_targets if target.present is not None]
        lacking = np.flatnonzero(~np.logical_and.reduce(present)) if present else None
        given = {"X": X, "y": y, "groups": rows.groups, "lacking": lacking}
    with rows.inputs.naming_piece("y"):
        plan = plan_scheme(scheme, rows.n_rows, values, class_counts, **given)
    return assign(plan, RowsAtHand(ops, rows.n_rows, codes, read_targets[0].labels))


def plan_scheme(
    scheme: Scheme,
    n_rows: int,
    values: Mapping[str, ValueCounts],
    class_counts: Sequence[Array | None],
    **given: Any,
) -> Plan:
    """Let a scheme decide who may look at whom, from counts over all rows.

    Parameters
    ----------
    scheme : Scheme
    n_rows : int
    values : dict of str to ValueCounts
        The counts of each column that the scheme reads, by the column's role.
    class_counts : list of int64 array or None
        For each target, the number of rows of each class, then of rows without a value; None for a target without
        classes.
    **given
        The arguments of a scikit-learn splitter, as in `Request`.
    """
    counts, vocabularies = {}, {}
    for role, counted in values.items():
        counts[role], vocabularies[role] = counted.counts, counted.vocabulary
    return scheme.plan(Request(n_rows, counts, class_counts, vocabularies, **given))


def count_classes(rows: TrainingRows, target: Target) -> Array | None:
    """Count the rows of each class of a target, then the rows without a value; None for a target without classes."""
    if not target.is_classification:
        return None
    n_classes = target.n_classes + (target.present is not None)
    return rows.ops.to_host(np.bincount(rows.ops.to_device(target.labels), minlength=n_classes))


def sum_rows(context: FitContext, plans: Sequence[Plan] | None = None) -> list[list[CategorySums]]:
    """Sum the rows that new rows see by the plan of each key, or all rows without plans: sums[key][target]."""
    if plans is None:
        return sum_folds(context, [all_rows()] * len(context.categories))
    return [[sum_for_new_rows(task, plan) for task in tasks] for tasks, plan in zip(context.tasks, plans, strict=True)]


def sum_folds(context: FitContext, plans: Sequence[FoldPlan]) -> list[list[CategorySums]]:
    """Sum rows by category and fold: sums[key][target].  Keys that one pass can count are summed together."""
    together: dict[tuple[int, int], CategorySums] = {}
    n_targets = len(context.summed)
    if len(plans) >= FEWEST_ON[device_of(context.rows.ops)]:
        together = sum_keys(context.categories, plans, context.task, n_targets)
    return [
        [
            together.get((entry, number)) or sum_by_fold(context.task(entry, number).joined(), plan)
            for number in range(n_targets)
        ]
        for entry, plan in enumerate(plans)
    ]


def encode_rows(context: FitContext, plans: Sequence[Plan]) -> tuple[list[Array], list[list[CategorySums]]]:
    """Encode the training rows by the plan of each key: give columns, then indicators, and the sums for new rows."""
    parameters, ops = context.parameters, context.rows.ops
    widths = widths_of_keys(context, plans)
    matrix = make_room(ops, context.rows.n_rows, sum(map(sum, widths)), parameters.dtype, context.targets)
    output = OutputColumns(matrix, parameters.indicators)
    together: dict[tuple[int, int], Trained] = {}
    if len(plans) >= FEWEST_ON[device_of(ops)] and not parameters.indicators:
        together = encode_batches(context.categories, context.rules, plans, context.task, widths, matrix)
    totals: dict[Any, Moments | None] = {}
    sums: list[list[CategorySums]] = []
    blind = BlindRows(context.rows.n_rows, {}, set())
    for entry, plan in enumerate(plans):
        sums.append([])
        for number, width in enumerate(widths[entry]):
            out, done = output.next(width), together.get((entry, number))
            is_first = bool(parameters.indicators) and number == context.rules[entry].statistic.first_target
            if done is None:
                task = context.task(entry, number).joined()
                # The moments of all rows are computed for the first key, and shared by keys that need the same ones.
                alike = id(plan), number, task.rule.needs, ops.fused is None or task.rule.describe_fused() is None
                want_unseen = is_first and "unseen" in parameters.indicators
                done = train(task, plan, out, want_unseen, totals.get(alike))
                totals[alike] = done.total
            if not done.all_see:
                blind.note(plan, context.rules[entry].of_target(number), out)
            sums[-1].append(done.statistics)
            if is_first:
                key, codes = context.categories[entry].key, context.categories[entry].codes
                as_category = parameters.missing == "category"
                missing = partial(missing_rows, key, codes, context.columns, ops, as_category)
                output.add_indicators(done.unseen, missing)
    check_weights(parameters.owner, context.rules, sums, ops)
    schemes = parameters.scheme_of_each_key(context.selection, context.rows.frame)
    for scheme, of_key in dict(zip(map(id, schemes), zip(schemes, sums, strict=True), strict=True)).values():
        warn_of_rare_classes(context, scheme, of_key)
    parameters.warn_of_plans(plans, blind.of_plan)
    vocabularies = chain.from_iterable(map(attrgetter("vocabularies"), context.keys))
    if device_of(ops) == "cpu" and max(map(len, vocabularies), default=0) * MOST_EQUAL > context.rows.n_rows:
        warn_of_copies(context, schemes, plans)
    return output.to_list(), sums


def warn_of_copies(context: FitContext, schemes: Sequence[Scheme], plans: Sequence[Plan]) -> None:
    """Warn if rows are in the table several times and the scheme of a key may put copies into different folds."""
    target, owner = context.targets[0], context.parameters.owner
    chosen = (scheme.used_columns() or scheme.reads() or isinstance(scheme, Splits) for scheme in schemes)
    if not context.parameters.reads_target or target.values.ndim > 1 or all(chosen) or any(map(leak_of, plans)):
        return
    compared: dict[tuple[int, ...], Array] = {}
    for entry, (_, found, _) in zip(context.selection.entries, context.categories, strict=True):
        if isinstance(found, JointCodes):
            compared |= {(column,): found.column(column) for column in entry.members}
        else:
            compared[entry.members] = written(found)
    if share_of_copies([*compared.values()], target.labels):
        # The message names no columns, so that it comes once if keys are encoded in turn.
        warn(
            "Rows seem to be there several times: they equal another row in all encoded columns and in the target, "
            f"more often than chance explains. A copy in another fold brings a row of {owner} its own target. Give "
            "GroupKFold a group for each case, such as groups=X.groupby([...], dropna=False).ngroup(). leak_report "
            "counts the copies.",
            LeakWarning,
        )


def widths_of_keys(context: FitContext, plans: Sequence[Plan]) -> list[list[int]]:
    """Count the columns of the encodings of each key and target; keys of one rule and plan have equal numbers."""
    made: dict[tuple[int, int], list[int]] = {}
    widths = []
    for entry, (rule, plan) in enumerate(zip(context.rules, plans, strict=True)):
        alike = id(rule), id(plan)
        if alike not in made:
            made[alike] = [
                context.task(entry, number).n_outputs * n_columns(plan) for number in range(len(context.summed))
            ]
        widths.append(made[alike])
    return widths


class BlindRows(NamedTuple):
    """Finds rows that see no rows at all, by encodings that are NaN.

    Parameters
    ----------
    n_rows : int
        Number of all rows.
    columns : dict of int to list of array
        By the `id` of a plan: encodings whose prior is a mean, so that they are NaN if a row sees no rows.
    unsure : set of int
        Plans whose encodings may be NaN for other reasons, too.
    """

    n_rows: int
    columns: dict[int, list[Array]]
    unsure: set[int]

    def note(self, plan: Plan, rule: EncodingRule, out: Array) -> None:
        """Note the encodings of one key and target; `out` is a part of the matrix of all encodings."""
        if rule.prior is None and rule.needs_rows:
            self.unsure.add(id(plan))
        if isinstance(rule.prior, str) and not (isinstance(plan, OrderedPlan) and plan.burn_in):
            self.columns.setdefault(id(plan), []).extend(to_columns(out))

    def of_plan(self, plan: Plan) -> Any:
        """Count the rows under a plan that see no rows; "Some" if the number depends on the weights of folds."""
        blind: Any = None
        for column in self.columns.get(id(plan), []):
            # The minimum is NaN if any of the numbers is NaN.
            if len(column) and bool(np.isnan(column.min())):
                blind = np.isnan(column) if blind is None else blind | np.isnan(column)
        if blind is not None:
            return int(blind.sum())
        if id(plan) not in self.unsure:
            return 0
        return "Some" if isinstance(plan, FoldPlan) and not plan.blow_up else first_rows(plan, self.n_rows)


def n_columns(plan: Plan) -> int:
    """Count the columns of each output: one for each fold's encoder or each order if these stay separate, else one."""
    if isinstance(plan, FoldPlan) and plan.blow_up:
        return len(plan.new_rows)
    return len(plan.orders) if isinstance(plan, OrderedPlan) and not plan.average else 1


def sum_for_new_rows(task: EncodingTask, plan: Plan) -> CategorySums:
    """Sum the rows that new rows see: all rows, but fewer with holdout, blow-up columns, half-lives or windows."""
    in_order = isinstance(plan, OrderedPlan)
    if isinstance(plan, OrderedPlan) and plan.new_rows is not None:
        plan = plan.new_rows
    if isinstance(plan, FoldPlan) and (plan.blow_up or not plan.new_rows.all() or plan.ageing is not None):
        sums, plan = sum_seen_folds(task, plan) if in_order else (sum_by_fold(task, plan), plan)
        return see_new_rows(sums, plan, task.ops)
    return task.measure(None, 1)


def train(task: EncodingTask, plan: Plan, out: Array, want_unseen: bool, total: Moments | None = None) -> Trained:
    """Write the training encodings of every row to `out` (rows, outputs * columns).

    `total` are the moments of all rows, if they were computed for another key of the target: they are the same for
    every key.
    """
    if not task.n_outputs:
        return Trained(sum_for_new_rows(task, plan), None, True, total)
    if isinstance(plan, FoldPlan):
        return by_folds(task, plan, out, want_unseen, total)
    if isinstance(plan, SplitPlan):
        return by_splits(task, plan, out, want_unseen)
    if isinstance(plan, OrderedPlan) and plan.new_rows is not None:
        # Both need the weighted rows.
        task = task.weighed(plan.new_rows.weights)
        plan = replace(plan, new_rows=replace(plan.new_rows, weights=None))
        return Trained(sum_for_new_rows(task, plan), ordered_by_age(task, plan, out, want_unseen))
    others = task.rows.weight is None and len(task.rows) > 1
    want_unseen = want_unseen or task.rule.needs.dates
    if isinstance(plan, OrderedPlan):
        # The first row of a random order has a prior, the mean of all other rows.
        shuffled = all(isinstance(order, Permutation) for order in plan.orders)
        trained = Trained(*ordered(task, plan, out, want_unseen), others and shuffled)
    else:
        statistics = task.measure(None, 1)
        trained = Trained(statistics, leave_one_out(task, statistics, out, want_unseen), others)
    if task.rule.needs.dates:
        # Every row may see all dates before its own, so the dates of all rows are searched.
        for elapsed in Elapsed.of(task, trained.statistics.distribution):
            elapsed.write(DatedRows.of(task), out, trained.unseen)
    return trained


def by_folds(task: EncodingTask, plan: FoldPlan, out: Array, want_unseen: bool, total: Moments | None) -> Trained:
    """Sum by category and fold, make a table of encodings from the sums, and look up every row in it."""
    # The sums are freed before rows are looked up, which makes room for the encodings.
    made = tables_by_fold(task, sum_by_fold(task, plan), plan, out.dtype, total)
    unseen = look_up(task.ops, made.encodings, task.rows.codes, plan.lookup_folds, out, want_unseen)
    if made.seen is not None:
        for elapsed in Elapsed.of(task, made.seen, made.encodings):
            elapsed.write(DatedRows.of(task, plan.lookup_folds), out)
    return Trained(made.visible, unseen, made.total is not None and bool((made.total.n > 0).all()), made.total)


def by_splits(task: EncodingTask, plan: SplitPlan, out: Array, want_unseen: bool) -> Trained:
    """Sum the training rows of each split separately, and look up every row by the split that tests it."""
    splits = [replace(task, rows=task.rows.pick(rows)).measure(None, 1) for rows in plan.training]
    everything = task.measure(None, 1)
    views = replace(everything, accumulators=np.concatenate([split.accumulators for split in splits], axis=1))
    if everything.distribution is not None:
        distributions = [split.distribution for split in splits]
        views = replace(views, distribution=Distribution.side_by_side(distributions))  # type: ignore[arg-type]
    encodings = SeenSums(views, None, task.rule, task.ops).table(task.key)
    unseen = look_up(task.ops, encodings, task.rows.codes, plan.folds, out, want_unseen)
    for elapsed in Elapsed.of(task, views.distribution, encodings):
        elapsed.write(DatedRows.of(task, plan.folds), out)
    return Trained(everything, unseen)


def warn_of_rare_classes(context: FitContext, scheme: Scheme, sums: Sequence[CategorySums]) -> None:
    """Warn about classes with fewer rows than folds, as scikit-learn does; `sums` belong to any key of the scheme."""
    rows, folds = context.rows, context.parameters.folds_given_for(scheme)
    if folds is None:
        return
    # Every row has a category of each key, so the sums of one key count all rows.
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
    """Sum the rows of each pair of categories that the selection asks for; an empty list for more than `most` pairs."""
    ops, weight, counted, n_pairs = context.rows.ops, context.rows.weight, [], 0
    pairs = context.selection.pairs
    asked = [pair for number, pair in enumerate(pairs) if pair[::-1] not in pairs[:number]]
    spec = category_sums.choose_spec(ops, targets.no_target(context.rows.n_rows), weight, squares=False, drop=None)
    for pair in asked:
        found = [context.categories[entry] for entry in pair]
        sizes = [of_key.key.n_categories for of_key in found]
        counted.append(PairSums.measure(ops, pair, [of_key.codes for of_key in found], sizes, weight, spec))
        n_pairs += len(counted[-1].first)
        if n_pairs > most:
            return []
    return counted


def make_model(context: FitContext, sums: Sequence[Sequence[CategorySums]], most_pairs: float = np.inf) -> Model:
    """Make the model that the encoder keeps."""
    parameters, frame, ops = context.parameters, context.rows.frame, context.rows.ops
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
        parameters.scheme.n_repeats,
        sum_pairs(context, most_pairs) if context.selection.pairs and most_pairs else [],
        parameters.partial_scheme,
    )
