"""The second pass over rows in parts: exact sums by category, fold and segment, which can be added in any order."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cpu_fallback.row_numbers import Order, Permutation, RowOrder, fold_array
from cpu_fallback.types import MISSING, UNKNOWN, Array, written
from gpu_encode.fitting.columns import ColumnMap
from gpu_encode.fitting.compatibility import check_mergeable_columns
from gpu_encode.fitting.fit import FitContext, make_model, prepare, read_shared, sum_folds
from gpu_encode.fitting.inputs import Decided, TrainingRows
from gpu_encode.fitting.model import Model
from gpu_encode.fitting.ordered import checkpoint_ranks, find_segments
from gpu_encode.scale.parts.part import Part
from gpu_encode.scale.parts.plans import EncodingPlan
from gpu_encode.schemes.plans import ByTime, FoldPlan, OrderedPlan
from gpu_encode.seam.ops import device_of, host, resolve
from gpu_encode.sums.category_sums import CategorySums, DigitSpan
from gpu_encode.sums.targets import backend_for
from gpu_encode.tables import frames
from gpu_encode.tables.categories.keys import CategoryIndex
from gpu_encode.words.errors.parameters import wrong_type

# Categories of some keys, by the numbers of the keys, and their sums for each target.
NewCategories = dict[int, tuple[CategoryIndex, list[CategorySums]]]
# Rows of a category, on average, from which on most rows of a part should have known categories.
REPEATED = 2
# New categories are put among the known ones once they are more than this share of them.
NEW_SHARE = 1 / 4


@dataclass(frozen=True, eq=False)
class SegmentSums:
    """Sums of rows by segment, for each target; the sums of parts can be added."""

    sums: list[CategorySums]

    def __add__(self, other: "SegmentSums") -> "SegmentSums":
        return SegmentSums([(mine + theirs).to_canonical() for mine, theirs in zip(self.sums, other.sums, strict=True)])


def orders_of(plan: OrderedPlan) -> list[Order | ByTime]:
    """Give the orders of a plan, without rows."""
    return [plan.time] if plan.time is not None else list(plan.orders)


def starts_in(order: Order | ByTime) -> Array | None:
    """Give the ranks at which rows of a new time begin, if the order is in time."""
    return order.starts if isinstance(order, ByTime) else None


def begins_of(order: Order | ByTime, encoding_plan: EncodingPlan, rows: TrainingRows, first_row: int) -> Array:
    """Give the rank of each row of a part in the order; rows of equal time all have the rank of the first of them."""
    if isinstance(order, Permutation):
        return rows.ops.ranks_of(order, first_row, first_row + rows.n_rows)
    if isinstance(order, RowOrder):
        ranks: Array = rows.ops.xp.arange(first_row, first_row + rows.n_rows)
        return ranks
    assert isinstance(order, ByTime)
    times = encoding_plan.codes_of(rows, order.column, order.role)
    starts: Array = rows.ops.to_device(order.starts)[times]
    return starts


def segment_sums(
    encoding_plan: EncodingPlan, plan: OrderedPlan, context: FitContext, first_row: int
) -> list[SegmentSums]:
    """Sum the rows of a part by segment, for each order."""
    per_order = []
    for order in orders_of(plan):
        on_host = checkpoint_ranks(starts_in(order), encoding_plan.n_rows, host(encoding_plan.n_rows))
        checkpoints = context.rows.ops.to_device(on_host)
        segments = find_segments(checkpoints, begins_of(order, encoding_plan, context.rows, first_row))
        sums = []
        for number in range(len(context.summed)):
            task = context.task(0, number)
            rows = task.rows.with_codes(segments)
            by_segment = CategorySums.measure(task.ops, rows, (len(checkpoints), 1, task.n_classes), task.spec)
            sums.append(by_segment.on_host(context.rows.ops))
        per_order.append(SegmentSums(sums))
    return per_order


@dataclass(frozen=True, eq=False)
class PartialSums:
    """Categories and exact sums of some parts; they can be added in any order.

    Parameters
    ----------
    n_rows : int
    model : Model, optional
        Categories, and sums by fold; None if there are no rows.
    reach : list of DigitSpan
        For each target, the digits that its values need.
    segments : list of SegmentSums
        For each order of an ordered scheme, the sums of the rows between the ranks at which priors are taken.
    checksum : int
        As in `Profile`.

    Examples
    --------
    >>> from gpu_encode import KFold, TargetEncoder
    >>> from gpu_encode.parts import Part, plan, measure, profile
    >>> encoder, parts = TargetEncoder(cv=KFold(2)), [Part([["a"], ["b"]], [1, 0]), Part([["c"]], [1], first_row=2)]
    >>> encoding_plan = plan(encoder, profile(encoder, parts[0]) + profile(encoder, parts[1]))
    >>> both = measure(encoding_plan, parts[1]) + measure(encoding_plan, parts[0])
    >>> both.n_rows, both.n_categories
    (3, [3])
    """

    n_rows: int = 0
    model: Model | None = None
    reach: list[DigitSpan] = field(default_factory=list)
    segments: list[SegmentSums] = field(default_factory=list)
    checksum: int = 0

    @property
    def n_categories(self) -> list[int]:
        """Number of categories of every key."""
        return [] if self.model is None else [key.n_categories for key in self.model.keys]

    def __add__(self, other: "PartialSums") -> "PartialSums":
        return self.plus(other)

    def plus(self, other: "PartialSums", in_place: bool = False) -> "PartialSums":
        """Add both; `in_place` keeps the result in the memory of these sums, which saves a copy for every part."""
        if self.model is None or other.model is None:
            return other if self.model is None else self
        check_mergeable_columns(self.model, other.model)
        return PartialSums(
            self.n_rows + other.n_rows,
            self.model.join(other.model, in_place),
            [mine + theirs for mine, theirs in zip(self.reach, other.reach, strict=True)],
            [mine + theirs for mine, theirs in zip(self.segments, other.segments, strict=True)],
            (self.checksum + other.checksum) % 2**64,
        )


def measure(encoding_plan: EncodingPlan, part: Part) -> PartialSums:
    """Sum the rows of a part by category and fold.

    Parameters
    ----------
    encoding_plan : EncodingPlan
    part : Part
        All columns of X that are encoded or that the scheme reads; every part has the same columns.

    Returns
    -------
    PartialSums
        The size grows with the categories of the part, not with its rows.

    Raises
    ------
    ValueError, TypeError
        For values that cannot be categories, or that the policies refuse.

    Examples
    --------
    >>> from gpu_encode import KFold, TargetEncoder
    >>> from gpu_encode.parts import Part, plan, measure, profile
    >>> encoder, part = TargetEncoder(cv=KFold(2)), Part([["a"], ["b"], ["a"]], [1, 0, 1])
    >>> measure(plan(encoder, profile(encoder, part)), part).n_categories
    [2]
    """
    if not isinstance(encoding_plan, EncodingPlan):
        raise wrong_type("measure", "encoding_plan", encoding_plan, EncodingPlan)
    if not isinstance(part, Part):
        raise wrong_type("measure", "part", part, Part)
    with part.named():
        context = prepare_part(encoding_plan, part)
        return PartialSums() if context is None else sum_prepared(encoding_plan, context, part.first_row)


def sum_prepared(encoding_plan: EncodingPlan, context: FitContext, first_row: int) -> PartialSums:
    """Sum the rows of a part that has been read."""
    labels = context.targets[0].labels
    plans = encoding_plan.fold_plans(context.selection, context.rows, labels, first_row)
    whole = encoding_plan.plan
    n_targets, sums = len(context.summed), sum_folds(context, plans)
    # With folds, sums are never computed for one row less or for only some of the rows.
    by_age = isinstance(whole, OrderedPlan) and whole.new_rows is not None
    by_row = [] if encoding_plan.by_folds else [context.task(0, number) for number in range(n_targets)]
    by_row = [task.weighed(plans[0].weights) for task in by_row] if by_age else by_row
    reach = [DigitSpan.of(task.rows, task.spec.layout) for task in by_row]
    segments = []
    if isinstance(whole, OrderedPlan) and not by_age:
        segments = segment_sums(encoding_plan, whole, context, first_row)
    return PartialSums(context.rows.n_rows, make_model(context, sums), reach, segments)


def prepare_part(
    encoding_plan: EncodingPlan, part: Part, keys: Sequence[CategoryIndex] | None = None
) -> FitContext | None:
    """Read a part, with given categories or with its own; give None if it has no rows."""
    inputs = part.given()
    if not inputs.frame.n_rows:
        return None
    decided = Decided(encoding_plan.targets, encoding_plan.floats, encoding_plan.float_weight, keys)
    return prepare(encoding_plan.parameters, inputs, decided=decided)


def categories_repeat(encoding_plan: EncodingPlan, total: PartialSums, part: Part) -> bool:
    """Whether the rows of a part can be added by `AddedRows`, and most of them should have known categories."""
    model, plans, parameters = total.model, encoding_plan.plans, encoding_plan.parameters
    if model is None or total.n_rows < REPEATED * max(total.n_categories) or model.pairs:
        return False
    if not encoding_plan.by_folds or any(isinstance(plan, FoldPlan) and plan.ageing for plan in plans):
        return False
    if not parameters.statistic.needs.sums or any(rule.missing == "error" for rule in model.rules):
        return False
    special = any(key.given or key.entry.rule is not None or key.entry.above for key in model.keys)
    values = any(sums.distribution is not None for per_target in model.statistics for sums in per_target)
    labelled = any(target.vocabulary is not None for target in encoding_plan.targets)
    backend = resolve(part.X.num_rows, part.given().device(parameters.device))
    return not (special or values or labelled) and device_of(backend) == "cpu"


class AddedRows:
    """Rows that are added to sums in place: at once if their categories are known, and otherwise some at a time.

    The sums of new categories are kept apart while these are few, so that tables of sums are seldom copied.

    Parameters
    ----------
    encoding_plan : EncodingPlan
    part : Part
        An Arrow table.
    total : PartialSums
        The sums, whose model is changed.
    new : NewCategories
        Categories of earlier parts that are not among those of the sums yet; this part adds to them.
    """

    def __init__(self, encoding_plan: EncodingPlan, part: Part, total: PartialSums, new: NewCategories) -> None:
        assert total.model is not None
        decided = Decided(encoding_plan.targets, encoding_plan.floats, encoding_plan.float_weight)
        self._context = read_shared(encoding_plan.parameters, part.given(), decided=decided)
        self._part, self._total, self._model, self._new = part, total, total.model, new
        labels = self._context.targets[0].labels
        self._plans = encoding_plan.fold_plans(self._context.selection, self._context.rows, labels, part.first_row)
        self._folds: dict[int, Array | None] = {}

    def add_known(self, entry: int) -> Array:
        """Add the rows of a key whose categories are known, and give the numbers of the others."""
        key, context, plan = self._model.keys[entry], self._context, self._plans[entry]
        as_category = self._model.rules[entry].missing == "category"
        codes = self._codes = written(key.lookup(context.columns, context.rows.ops, as_category))
        if as_category and key.tuples is None and bool((codes == MISSING).any()):
            self._model.keys[entry] = replace(key, has_missing=True)
        per_target = self._model.statistics[entry]
        for number, (column, spec) in enumerate(zip(context.summed, context.specs, strict=True)):
            rows = column.rows(codes)
            backend = backend_for(context.rows.ops, rows.target)
            per_target[number] = per_target[number].with_rows(backend, rows, spec, plan.folds)
        return np.flatnonzero(codes == UNKNOWN)

    def add_new(self, entry: int, chosen: Array) -> None:
        """Add some rows of a key whose categories are new."""
        known, plan, context = self._model.keys[entry], self._plans[entry], self._context
        columns, as_category = known.entry.columns, self._model.rules[entry].missing == "category"
        frame = frames.read(self._part.X.select([context.columns.positions[column] for column in columns]).take(chosen))
        given = ColumnMap(frame, {column: position for position, column in enumerate(columns)})
        key, codes = CategoryIndex.fit(known.entry, given, context.rows.ops, as_category)
        if id(plan) not in self._folds:
            self._folds[id(plan)] = fold_array(plan.folds, 0, context.rows.n_rows)
        folds, per_target = self._folds[id(plan)], []
        for column, spec in zip(context.summed, context.specs, strict=True):
            rows = column.rows(self._codes).pick(chosen).with_codes(written(codes))
            backend = backend_for(context.rows.ops, rows.target)
            shape = key.n_categories, plan.n_folds, column.target.n_classes
            per_target.append(
                CategorySums.measure(backend, rows, shape, spec, None if folds is None else folds[chosen])
            )
        if entry in self._new:
            key = join_sums(*self._new[entry], key, per_target)
            per_target = self._new[entry][1]
        self._new[entry] = key, per_target
        if key.n_categories > NEW_SHARE * known.n_categories:
            join_new(self._total, self._new, [entry])


def join_new(total: PartialSums, new: NewCategories, entries: Sequence[int]) -> None:
    """Put the new categories of some keys among the others."""
    for entry in entries:
        assert total.model is not None
        keys, statistics = total.model.keys, total.model.statistics
        keys[entry] = join_sums(keys[entry], statistics[entry], *new.pop(entry))


def join_sums(
    key: CategoryIndex, per_target: list[CategorySums], other: CategoryIndex, others: list[CategorySums]
) -> CategoryIndex:
    """Add the sums of other categories of a key to `per_target`, one target at a time; give the joined categories."""
    both, mine, theirs = key.union(other)
    for number, sums in enumerate(others):
        per_target[number] = per_target[number].plus(sums, mine, theirs, both.n_categories, in_place=True)
    return both
