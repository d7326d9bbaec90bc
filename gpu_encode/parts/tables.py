"""From the sums of all parts to what training codes are looked up in."""

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from gpu_encode import devices, ops
from gpu_encode.cells import Array, Layout
from gpu_encode.checkpoints import Before, checkpoint_places
from gpu_encode.encoders.base import Encoder
from gpu_encode.errors.parts import other_rows_measured, sums_of_no_rows
from gpu_encode.formula import CodeTable, Formula, table, total_of_views
from gpu_encode.model import Model
from gpu_encode.notices import warn
from gpu_encode.ops import host
from gpu_encode.outputs import in_type
from gpu_encode.parts.blueprints import Blueprint
from gpu_encode.parts.stretches import orders_of, starts_in
from gpu_encode.parts.sums import Sums
from gpu_encode.plans import FoldPlan, OrderedPlan, first_rows
from gpu_encode.readouts.other_rows import OtherRows
from gpu_encode.statistics import Measured, Statistics, layout_of_both
from gpu_encode.training import flat


@dataclass(frozen=True, eq=False)
class Tables:
    """What the training codes of every part are made of; the same for all parts, and independent of how many there are.

    Parameters
    ----------
    blueprint : Blueprint
    encoder : TargetEncoder
        Fitted.
    codes : list of CodeTable
        Per entry, the codes of all targets side by side: (categories, folds, outputs); where rows are told apart by
        folds.
    sums : list of list of Statistics
        Per entry and target, sums of all rows, where each row sees rows of its own.
    before : list of list of list of Before
        Per order, entry and target, what lies before each place at which priors are taken.
    """

    blueprint: Blueprint
    encoder: Encoder
    codes: list[CodeTable] = field(default_factory=list)
    sums: list[list[Statistics]] = field(default_factory=list)
    before: list[list[list[Before]]] = field(default_factory=list)

    @property
    def model(self) -> Model:
        """What new rows are encoded by."""
        return self.encoder._model

    @property
    def device(self) -> str:
        """Where parts compute: "cpu" or "cuda"."""
        return device_of(self.blueprint)

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
        return bool(self.before) and any(formula.needs_categories for formula in self.model.formulas)


def fit(encoder: Encoder, blueprint: Blueprint, sums: Sums) -> Tables:
    """Learn the codes of new rows, as `TargetEncoder.fit_transform` does, and what training codes are made of.

    Parameters
    ----------
    encoder : TargetEncoder
        Is fitted when this returns, and as it was where it raises.
    blueprint : Blueprint
    sums : Sums
        Of all parts.

    Returns
    -------
    Tables

    Raises
    ------
    ValueError
        If the sums are not those of the rows that the blueprint was made for.

    Warns
    -----
    UserWarning
        If the codes leak (`Greedy`), or if rows see no rows at all.

    Examples
    --------
    >>> from gpu_encode import KFold, TargetEncoder
    >>> from gpu_encode.parts import Part, draft, fit, measure, survey
    >>> encoder, part = TargetEncoder(cv=KFold(2), smooth=0.0), Part([["a"], ["b"], ["a"]], [1, 0, 1])
    >>> blueprint = draft(encoder, survey(encoder, part))
    >>> tables = fit(encoder, blueprint, measure(blueprint, part))
    >>> encoder.encodings_
    [array([1., 0.])]
    """
    if sums.model is None:
        raise sums_of_no_rows()
    if sums.n_rows != blueprint.n_rows:
        raise other_rows_measured(blueprint.n_rows, sums.n_rows)
    model = sums.model.carried()
    if not blueprint.options.trains_apart:
        encoder._adopt(model, device_of(blueprint))
        return Tables(blueprint, encoder)
    if isinstance(blueprint.plan, FoldPlan):
        return fit_by_folds(encoder, blueprint, blueprint.plan, model)
    kept = [
        [in_reach(each, reach.layout) for each, reach in zip(per_target, sums.reach, strict=True)]
        for per_target in model.statistics
    ]
    before = []
    if isinstance(blueprint.plan, OrderedPlan):
        before = [
            befores(blueprint, starts_in(order), stretches.sums, kept, model.formulas)
            for order, stretches in zip(orders_of(blueprint.plan), sums.stretches, strict=True)
        ]
    encoder._adopt(model, device_of(blueprint))
    if any(formula.needs_rows for formula in model.formulas) and (
        blind := first_rows(blueprint.plan, blueprint.n_rows)
    ):
        blueprint.options.warn_of_blind_rows(blind, blueprint.plan)
    return Tables(blueprint, encoder, sums=kept, before=before)


def device_of(blueprint: Blueprint) -> str:
    """Where parts compute: "cpu" or "cuda"."""
    return ops.device_of(ops.resolve(blueprint.n_rows, devices.choose(blueprint.options.device)))


def in_reach(statistics: Statistics, reach: Layout) -> Statistics:
    """Give the same sums in columns that hold the sums of any of the rows, too."""
    layout = layout_of_both(statistics.measured.layout, reach)
    measured = replace(statistics.measured, layout=layout)
    return replace(statistics, cells=statistics.in_layout(layout), measured=measured)


def befores(
    blueprint: Blueprint,
    starts: Array | None,
    stretches: list[Statistics],
    kept: list[list[Statistics]],
    formulas: list[Formula],
) -> list[list[Before]]:
    """What lies before each checkpoint of one order, per entry and target."""
    backend = host(blueprint.n_rows)
    places = checkpoint_places(starts, blueprint.n_rows, backend)
    found = []
    for per_target, formula in zip(kept, formulas, strict=True):
        own = []
        for number, (each, between) in enumerate(zip(per_target, stretches, strict=True)):
            measured: Measured = each.measured
            digits = between.in_layout(measured.layout)[:-2, 0]
            own.append(Before.of(places, starts, digits, formula.of_target(number), measured, backend))
        found.append(own)
    return found


def fit_by_folds(encoder: Encoder, blueprint: Blueprint, plan: FoldPlan, model: Model) -> Tables:
    """Make a table of codes by category and fold, and let new rows see what the plan says."""
    visible = [[each.visible(host(each.cells.size), plan.new_rows) for each in own] for own in model.statistics]
    lasting = replace(model, statistics=visible)
    codes, blind = [], False
    for number, formula in enumerate(model.formulas):
        tables = []
        for target, (sums, new) in enumerate(zip(model.statistics[number], visible[number], strict=True)):
            backend, own = host(sums.cells.size), formula.of_target(target)
            if plan.blow_up:
                tables.append(flat(table(new, None, model.keys[number], own, backend)))
                continue
            total = total_of_views(sums, plan.visibility, own, backend)
            tables.append(table(sums, plan.visibility, model.keys[number], own, backend, total))
            there = sums.totals(backend).cells[0].any(axis=(1, 2))
            blind |= formula.needs_rows and bool((there & ~(total.n > 0).all(axis=-1)).any())
        values = np.concatenate([each.values for each in tables], axis=2)
        whole = np.ascontiguousarray(in_type(values, model.dtype, host(values.size)))
        codes.append(CodeTable(whole, tables[formula.readout.first_target].unseen))
    encoder._adopt(lasting, device_of(blueprint))
    if plan.n_folds == 1:
        warn("Greedy training codes contain each row's own target (a leak). Use KFold or Ordered to train on them.")
    if blind:
        blueprint.options.warn_of_blind_rows("Some", plan)
    return Tables(blueprint, encoder, codes)
