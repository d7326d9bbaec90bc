"""From the sums of all parts to what training codes are looked up in."""

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from cpu_fallback.types import Array, Layout
from gpu_encode import devices, ops
from gpu_encode.errors.parts import other_rows_measured, sums_of_no_rows
from gpu_encode.fitting.encoder import Encoder
from gpu_encode.fitting.model import Model
from gpu_encode.formulas.encoding_rule import EncodingRule, EncodingTable, table, total_of_views
from gpu_encode.formulas.order_statistics import OtherRows
from gpu_encode.notices import warn
from gpu_encode.ops import host
from gpu_encode.parts.plans import EncodingPlan
from gpu_encode.parts.segments import orders_of, starts_in
from gpu_encode.parts.sums import PartialSums
from gpu_encode.schemes.plans import FoldPlan, OrderedPlan, first_rows
from gpu_encode.sums.category_sums import CategorySums, SumSpec, layout_of_both
from gpu_encode.training.checkpoints import CheckpointState, checkpoint_places
from gpu_encode.training.encodings import flat
from gpu_encode.training.outputs import in_type


@dataclass(frozen=True, eq=False)
class EncodingTables:
    """What the training codes of every part are made of; the same for all parts, and independent of how many there are.

    Parameters
    ----------
    encoding_plan : EncodingPlan
    encoder : TargetEncoder
        Fitted.
    codes : list of EncodingTable
        Per entry, the codes of all targets side by side: (categories, folds, outputs); where rows are told apart by
        folds.
    sums : list of list of CategorySums
        Per entry and target, sums of all rows, where each row sees rows of its own.
    before : list of list of list of CheckpointState
        Per order, entry and target, what lies before each place at which priors are taken.
    """

    encoding_plan: EncodingPlan
    encoder: Encoder
    codes: list[EncodingTable] = field(default_factory=list)
    sums: list[list[CategorySums]] = field(default_factory=list)
    before: list[list[list[CheckpointState]]] = field(default_factory=list)

    @property
    def model(self) -> Model:
        """What new rows are encoded by."""
        return self.encoder._model

    @property
    def device(self) -> str:
        """Where parts compute: "cpu" or "cuda"."""
        return device_of(self.encoding_plan)

    @cached_property
    def others(self) -> list[list[OtherRows | None]]:
        """Per entry and target, the values of all rows in order, where codes follow from them."""
        return [[OtherRows.of(sums) for sums in own] for own in self.sums]

    def __getstate__(self) -> dict[str, Any]:
        # What is put in order here is put in order again where it is needed.
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @property
    def needs_categories(self) -> bool:
        """Whether an ordered scheme asks for the means of all categories so far, which take a pass of their own."""
        return bool(self.before) and any(rule.needs_categories for rule in self.model.rules)


def fit(encoder: Encoder, encoding_plan: EncodingPlan, sums: PartialSums) -> EncodingTables:
    """Learn the codes of new rows, as `TargetEncoder.fit_transform` does, and what training codes are made of.

    Parameters
    ----------
    encoder : TargetEncoder
        Is fitted when this returns, and as it was where it raises.
    encoding_plan : EncodingPlan
    sums : PartialSums
        Of all parts.

    Returns
    -------
    Tables

    Raises
    ------
    ValueError
        If the sums are not those of the rows that the plan was made for.

    Warns
    -----
    UserWarning
        If the codes leak (`Greedy`), or if rows see no rows at all.

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
    if sums.model is None:
        raise sums_of_no_rows()
    if sums.n_rows != encoding_plan.n_rows:
        raise other_rows_measured(encoding_plan.n_rows, sums.n_rows)
    model = sums.model.carried()
    if not encoding_plan.options.trains_apart:
        encoder._adopt(model, device_of(encoding_plan))
        return EncodingTables(encoding_plan, encoder)
    if isinstance(encoding_plan.plan, FoldPlan):
        return fit_by_folds(encoder, encoding_plan, encoding_plan.plan, model)
    kept = [
        [in_reach(each, reach.layout) for each, reach in zip(per_target, sums.reach, strict=True)]
        for per_target in model.statistics
    ]
    before = []
    if isinstance(encoding_plan.plan, OrderedPlan):
        before = [
            befores(encoding_plan, starts_in(order), segments.sums, kept, model.rules)
            for order, segments in zip(orders_of(encoding_plan.plan), sums.segments, strict=True)
        ]
    encoder._adopt(model, device_of(encoding_plan))
    if any(rule.needs_rows for rule in model.rules) and (blind := first_rows(encoding_plan.plan, encoding_plan.n_rows)):
        encoding_plan.options.warn_of_blind_rows(blind, encoding_plan.plan)
    return EncodingTables(encoding_plan, encoder, sums=kept, before=before)


def device_of(encoding_plan: EncodingPlan) -> str:
    """Where parts compute: "cpu" or "cuda"."""
    return ops.device_of(ops.resolve(encoding_plan.n_rows, devices.choose(encoding_plan.options.device)))


def in_reach(statistics: CategorySums, reach: Layout) -> CategorySums:
    """Give the same sums in columns that hold the sums of any of the rows, too."""
    layout = layout_of_both(statistics.measured.layout, reach)
    measured = replace(statistics.measured, layout=layout)
    return replace(statistics, accumulators=statistics.in_layout(layout), measured=measured)


def befores(
    encoding_plan: EncodingPlan,
    starts: Array | None,
    segments: list[CategorySums],
    kept: list[list[CategorySums]],
    rules: list[EncodingRule],
) -> list[list[CheckpointState]]:
    """What lies before each checkpoint of one order, per entry and target."""
    backend = host(encoding_plan.n_rows)
    places = checkpoint_places(starts, encoding_plan.n_rows, backend)
    found = []
    for per_target, rule in zip(kept, rules, strict=True):
        own = []
        for number, (each, between) in enumerate(zip(per_target, segments, strict=True)):
            measured: SumSpec = each.measured
            digits = between.in_layout(measured.layout)[:-2, 0]
            own.append(CheckpointState.of(places, starts, digits, rule.of_target(number), measured, backend))
        found.append(own)
    return found


def fit_by_folds(encoder: Encoder, encoding_plan: EncodingPlan, plan: FoldPlan, model: Model) -> EncodingTables:
    """Make a table of codes by category and fold, and let new rows see what the plan says."""
    visible = [[each.visible(host(each.accumulators.size), plan.new_rows) for each in own] for own in model.statistics]
    lasting = replace(model, statistics=visible)
    codes, blind = [], False
    for number, rule in enumerate(model.rules):
        tables = []
        for target, (sums, new) in enumerate(zip(model.statistics[number], visible[number], strict=True)):
            backend, own = host(sums.accumulators.size), rule.of_target(target)
            if plan.blow_up:
                tables.append(flat(table(new, None, model.keys[number], own, backend)))
                continue
            total = total_of_views(sums, plan.visibility, own, backend)
            tables.append(table(sums, plan.visibility, model.keys[number], own, backend, total))
            there = sums.totals(backend).accumulators[0].any(axis=(1, 2))
            blind |= rule.needs_rows and bool((there & ~(total.n > 0).all(axis=-1)).any())
        values = np.concatenate([each.values for each in tables], axis=2)
        whole = np.ascontiguousarray(in_type(values, model.dtype, host(values.size)))
        codes.append(EncodingTable(whole, tables[rule.statistic.first_target].unseen))
    encoder._adopt(lasting, device_of(encoding_plan))
    if plan.n_folds == 1:
        warn("Greedy training codes contain each row's own target (a leak). Use KFold or Ordered to train on them.")
    if blind:
        encoding_plan.options.warn_of_blind_rows("Some", plan)
    return EncodingTables(encoding_plan, encoder, codes)
