"""From the sums of all parts to the tables in which training encodings are looked up."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import repeat
from operator import attrgetter
from typing import Any

import numpy as np

from cpu_fallback.cached import cached_property
from cpu_fallback.types import Array, Layout
from gpu_encode.encoders.base import Encoder, check_encoder
from gpu_encode.encoders.summed import SummedEncoder, share_out
from gpu_encode.fitting.key_lookups import JointTables
from gpu_encode.fitting.model import Model
from gpu_encode.fitting.ordered import CheckpointState, checkpoint_ranks
from gpu_encode.fitting.tasks import Elapsed, in_type, see_new_rows, tables_by_fold
from gpu_encode.formulas.encoding_rule import EncodingRule, EncodingTable
from gpu_encode.formulas.order_statistics import OtherRows
from gpu_encode.scale.parts.plans import EncodingPlan
from gpu_encode.scale.parts.sums import PartialSums, orders_of, starts_in
from gpu_encode.schemes.plans import FoldPlan, OrderedPlan, Plan, first_rows
from gpu_encode.seam import devices, ops
from gpu_encode.seam.ops import host
from gpu_encode.sums.category_sums import CategorySums, SumSpec, join_layouts
from gpu_encode.words.errors.parameters import wrong_type
from gpu_encode.words.errors.tables import rows_have_changed


@dataclass(frozen=True, eq=False)
class EncodingTables:
    """The tables from which the training encodings of every part are looked up; they are the same for all parts.

    Parameters
    ----------
    encoding_plan : EncodingPlan
    encoder : TargetEncoder
        Fitted.
    encodings : list of EncodingTable or None
        For schemes of folds: for each key, the encodings of all targets side by side (categories, folds, outputs); None
        for a key under another scheme.
    sums : list of list of CategorySums
        For other schemes: for each key and target, the sums of all rows; empty for a key under a scheme of folds.
    elapsed : list of list of Elapsed
        For schemes of folds: for each key, the columns that also depend on a row's own date.
    before : list of list of list of CheckpointState
        For ordered schemes: for each order, key and target, the sums before each rank at which priors are taken.
    """

    encoding_plan: EncodingPlan
    encoder: Encoder
    encodings: list[EncodingTable | None] = field(default_factory=list)
    elapsed: list[list[Elapsed]] = field(default_factory=list)
    sums: list[list[CategorySums]] = field(default_factory=list)
    before: list[list[list[CheckpointState]]] = field(default_factory=list)

    @property
    def model(self) -> Model:
        """The model by which new rows are encoded."""
        return self.encoder._model

    @property
    def device(self) -> str:
        """The device on which parts compute: "cpu" or "cuda"."""
        return device_of(self.encoding_plan)

    @cached_property
    def others(self) -> list[list[OtherRows | None]]:
        """For each key and target, the sorted values of all rows, if encodings are computed from them."""
        return [[OtherRows.of(sums) for sums in per_target] for per_target in self.sums]

    @cached_property
    def joint(self) -> JointTables | None:
        """The keys that are looked up together; their encodings lie there and nowhere else."""
        model, tables = self.model, self.encodings
        if len(self.encoding_plan.plans) > 1 or model.indicators or self.device == "cuda":
            return None
        values = [
            None if table is None or elapsed else table.values
            for table, elapsed in zip(tables, self.elapsed, strict=True)
        ]
        joint = JointTables.of(model.keys, values, [rule.missing == "category" for rule in model.rules])
        if joint is not None:
            for number, entry in enumerate(joint.entries):
                tables[entry] = replace(tables[entry], values=joint.values_of(number))  # type: ignore[type-var]
        return joint

    def __getstate__(self) -> dict[str, Any]:
        # Sorted values and joint tables are not sent between processes: each process makes them again if it needs them.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def needs_categories(self) -> bool:
        """Whether an ordered scheme needs the means of all categories so far, which take a pass of their own."""
        return bool(self.before) and any(rule.needs_categories for rule in self.model.rules)


def check_same_rows(encoding_plan: EncodingPlan, sums: PartialSums) -> None:
    """Raise ValueError if other rows were summed than those for which the plan was made."""
    if sums.n_rows != encoding_plan.n_rows:
        raise ValueError(
            f"{sums.n_rows} rows were summed, but {encoding_plan.n_rows} were looked through first. Every part must be "
            "measured once, and all passes must read the same rows."
        )
    if sums.checksum != encoding_plan.checksum:
        raise rows_have_changed("X has rows, or values of rows,")


def fit(encoder: Encoder, encoding_plan: EncodingPlan, sums: PartialSums) -> EncodingTables:
    """Learn the encodings of new rows, as `TargetEncoder.fit_transform` does, and make the tables for training rows.

    Parameters
    ----------
    encoder : TargetEncoder
        Fitted when this returns; unchanged if this raises an error.
    encoding_plan : EncodingPlan
    sums : PartialSums
        The sum over all parts.

    Returns
    -------
    EncodingTables

    Raises
    ------
    ValueError
        If the sums are not those of the rows that the plan was made for.

    Warns
    -----
    UserWarning
        If the encodings leak (`Greedy`), or if rows see no rows at all.

    Examples
    --------
    >>> from gpu_encode import KFold, TargetEncoder
    >>> from gpu_encode.parts import Part, plan, fit, measure, profile
    >>> encoder, part = TargetEncoder(cv=KFold(2), smooth=0.0), Part([["a"], ["b"], ["a"]], [1, 0, 1])
    >>> encoding_plan = plan(encoder, profile(encoder, part))
    >>> tables = fit(encoder, encoding_plan, measure(encoding_plan, part))
    >>> encoder.encodings_
    [array([1., 0.])]
    """
    check_encoder(encoder)
    if not isinstance(encoding_plan, EncodingPlan):
        raise wrong_type("fit", "encoding_plan", encoding_plan, EncodingPlan)
    if not isinstance(sums, PartialSums):
        raise wrong_type("fit", "sums", sums, PartialSums)
    if sums.model is None:
        raise ValueError("There are no sums to learn from: measure the parts first, and add up what they give.")
    check_same_rows(encoding_plan, sums)
    model, reaches, segment_sums = sums.model.to_canonical(), sums.reach, sums.segments
    # If the caller no longer holds the sums, their memory becomes free for the tables.
    del sums
    if not encoding_plan.parameters.trains_apart:
        encoder._adopt(model, device_of(encoding_plan))
        return EncodingTables(encoding_plan, encoder)
    if isinstance(encoder, SummedEncoder) and isinstance(encoding_plan.plan, FoldPlan):
        return fit_views(encoder, encoding_plan, encoding_plan.plan, model)
    plans = encoding_plan.plans_of_keys(model)
    kept = [
        [] if isinstance(plan, FoldPlan) else [*map(widen, per_target, map(attrgetter("layout"), reaches))]
        for per_target, plan in zip(model.statistics, plans, strict=True)
    ]
    before: list[list[list[CheckpointState]]] = []
    if isinstance(encoding_plan.plan, OrderedPlan) and encoding_plan.plan.new_rows is not None:
        # The prior of a row depends on the rows that it sees.
        before = [[]]
    elif isinstance(encoding_plan.plan, OrderedPlan):
        before = [
            states_at_checkpoints(encoding_plan, starts_in(order), segments.sums, kept, model.rules)
            for order, segments in zip(orders_of(encoding_plan.plan), segment_sums, strict=True)
        ]
    trained = [train_key(key, model, plan) for key, plan in enumerate(plans)]
    encoder._adopt(replace(model, statistics=[of_key.visible for of_key in trained]), device_of(encoding_plan))
    encoding_plan.parameters.warn_of_plans(plans, partial(count_blind, encoding_plan.n_rows, plans, model, trained))
    encodings, elapsed = [of_key.encodings for of_key in trained], [of_key.elapsed for of_key in trained]
    return EncodingTables(encoding_plan, encoder, encodings, elapsed, kept, before)


def device_of(encoding_plan: EncodingPlan) -> str:
    """The device on which parts compute: "cpu" or "cuda"."""
    device = devices.choose(encoding_plan.parameters.device, n_rows=encoding_plan.n_rows)
    return ops.device_of(ops.resolve(encoding_plan.n_rows, device))


def widen(statistics: CategorySums, reach: Layout) -> CategorySums:
    """Give the same sums in a layout that can also hold the sums of all other rows."""
    layout = join_layouts(statistics.spec.layout, reach, repeat(True))
    spec = replace(statistics.spec, layout=layout)
    return replace(statistics, accumulators=statistics.in_layout(layout), spec=spec)


def states_at_checkpoints(
    encoding_plan: EncodingPlan,
    starts: Array | None,
    segments: list[CategorySums],
    kept: list[list[CategorySums]],
    rules: list[EncodingRule],
) -> list[list[CheckpointState]]:
    """Sum the rows before each checkpoint of one order, per key and target."""
    backend = host(encoding_plan.n_rows)
    ranks = checkpoint_ranks(starts, encoding_plan.n_rows, backend)
    per_key = []
    for per_target, rule in zip(kept, rules, strict=True):
        states = []
        for target, (sums, by_segment) in enumerate(zip(per_target, segments, strict=True)):
            spec: SumSpec = sums.spec
            digits = by_segment.in_layout(spec.layout)[:-2, 0]
            states.append(CheckpointState.of(ranks, starts, digits, rule.of_target(target), spec, backend))
        per_key.append(states)
    return per_key


def fit_views(encoder: SummedEncoder, encoding_plan: EncodingPlan, plan: FoldPlan, model: Model) -> EncodingTables:
    """Learn the sums that each fold sees, for all keys together."""
    tables, fitted = encoder._learn_views(*share_out(model, plan))
    encoder._adopt(fitted, device_of(encoding_plan))
    encoding_plan.parameters.warn_of_plans([plan])
    rounded: list[EncodingTable | None] = [round_table(table, model.dtype) for table in tables]
    return EncodingTables(encoding_plan, encoder, rounded, [[] for _ in rounded])


@dataclass(frozen=True, eq=False)
class TrainedKey:
    """The encodings of one key, computed from the sums of all rows.

    Parameters
    ----------
    visible : list of CategorySums
        The sums that new rows see, for each target.
    encodings : EncodingTable, optional
        Encodings of training rows, by category and fold, if the scheme has folds.
    blind : bool
        Whether some fold sees no rows.
    elapsed : list of Elapsed
        Columns that also depend on a row's own date.
    """

    visible: list[CategorySums]
    encodings: EncodingTable | None = None
    blind: bool = False
    elapsed: list[Elapsed] = field(default_factory=list)


def train_key(number: int, model: Model, plan: Plan) -> TrainedKey:
    """Make the table of encodings of one key by category and fold, and the sums that new rows see."""
    rule, per_target = model.rules[number], model.statistics[number]
    if isinstance(plan, OrderedPlan) and plan.new_rows is not None:
        backend = host(per_target[0].accumulators.size)
        return TrainedKey([see_new_rows(sums, plan.new_rows, backend) for sums in per_target])
    if not isinstance(plan, FoldPlan):
        return TrainedKey(per_target)
    visible, tables, seen, blind = [], [], [], False
    for target, sums in enumerate(per_target):
        backend = host(sums.accumulators.size)
        made = tables_by_fold(model.task(number, target, backend), sums, plan)
        visible.append(made.visible)
        tables.append(made.encodings)
        seen.append(made.seen)
        if rule.needs_rows and made.total is not None:
            has_rows = sums.totals(backend).accumulators[0].any(axis=(1, 2))
            blind |= bool((has_rows & ~(made.total.n > 0).all(axis=-1)).any())
    values = np.concatenate([table.values for table in tables], axis=2)
    table = EncodingTable(values, tables[rule.statistic.first_target].unseen)
    return TrainedKey(visible, round_table(table, model.dtype), blind, model.elapsed_of(number, tables, seen, host(0)))


def count_blind(n_rows: int, plans: Sequence[Plan], model: Model, trained: Sequence[TrainedKey], plan: Plan) -> Any:
    """Count the rows under a plan that see no rows at all; "Some" if only sums show that there are such rows."""
    keys = [key for key, other in enumerate(plans) if other is plan]
    if isinstance(plan, FoldPlan):
        return "Some" if any(trained[key].blind for key in keys) else 0
    return first_rows(plan, n_rows) if any(model.rules[key].needs_rows for key in keys) else 0


def round_table(table: EncodingTable, dtype: str) -> EncodingTable:
    """Give a table in the type of the output."""
    rounded = in_type(table.values, dtype, host(table.values.size))
    return EncodingTable(np.ascontiguousarray(rounded), table.unseen)
