"""The third look at rows in parts: their training codes."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gpu_encode import errors, notices, ops
from gpu_encode.cells import Array
from gpu_encode.encoders.decided import decided_targets, known_codes
from gpu_encode.encoders.given import Given
from gpu_encode.encoders.work import Work
from gpu_encode.errors.parts import codes_of_orders_needed, other_rows_placed
from gpu_encode.frames import Frame, Pieces
from gpu_encode.indicators import columns_of_entry, indicator, missing_rows
from gpu_encode.jobs import Job
from gpu_encode.leave_one_out import leave_one_out
from gpu_encode.model import Model
from gpu_encode.ops import Ops
from gpu_encode.ordered import average
from gpu_encode.outputs import in_type
from gpu_encode.parts.orders import Placed
from gpu_encode.parts.part import Part
from gpu_encode.parts.sums import work_on
from gpu_encode.parts.tables import Tables
from gpu_encode.plans import FoldPlan, OrderedPlan
from gpu_encode.selection import Located, same_frame
from gpu_encode.statistics import Statistics


class Rows:
    """Rows of a part that only their folds are asked of."""

    def __init__(self, given: Given, device: str) -> None:
        self.frame: Frame | Pieces = given.frame
        self.ops: Ops = ops.resolve(given.frame.n_rows, given.device(device))
        self.groups: Frame | Pieces | None = given.groups()


def encode(tables: Tables, part: Part, placed: Sequence[Sequence[Placed]] | None = None) -> Any:
    """Give the training codes of a part.

    Parameters
    ----------
    tables : Tables
    part : Part
        The same rows that were measured; y only for schemes in which a row's code depends on its own.
    placed : list of list of Placed, optional
        For an ordered scheme: per order, what `Running` gave for these rows, in any number of pieces.

    Returns
    -------
    table of shape (n_rows, n_outputs)
        Of X's kind and with X's index: encoded columns, indicators, columns that pass through.

    Raises
    ------
    ValueError
        If the rows are not those that were measured.

    Examples
    --------
    >>> from gpu_encode import KFold, TargetEncoder
    >>> from gpu_encode.parts import Part, draft, encode, fit, measure, survey
    >>> encoder = TargetEncoder(cv=KFold(2, order="interleaved"), smooth=None, target_type="continuous")
    >>> parts = [Part([["a"], ["a"]], [1.0, 2.5]), Part([["a"], ["a"]], [6.0, 4.5], first_row=2)]
    >>> blueprint = draft(encoder, survey(encoder, parts[0]) + survey(encoder, parts[1]))
    >>> tables = fit(encoder, blueprint, measure(blueprint, parts[0]) + measure(blueprint, parts[1]))
    >>> [encode(tables, part).ravel().tolist() for part in parts]
    [[3.5, 3.5], [3.5, 3.5]]
    """
    plan = tables.blueprint.plan
    with part.named():
        given = part.given()
        if not given.frame.n_rows:
            with notices.kept():  # of codes that no row here gets
                return tables.encoder.transform(part.X)
        if not tables.blueprint.options.trains_apart:
            check_columns(given.frame, tables)
            return tables.encoder.transform(part.X)
        if isinstance(plan, FoldPlan):
            return by_folds(tables, part, given)
        if isinstance(plan, OrderedPlan):
            if placed is None:
                raise codes_of_orders_needed()
            return by_place(tables, part, given, plan, placed)
        work = work_on(tables.blueprint, part, tables.model.keys)
        assert work is not None
        return by_row(tables, work)


def by_folds(tables: Tables, part: Part, given: Given) -> Any:
    """Look every row up by its category and fold."""
    model, blueprint = tables.model, tables.blueprint
    rows = Rows(given, blueprint.options.device)
    check_columns(rows.frame, tables)
    labels: Array = np.zeros(0, np.int32)
    if blueprint.needs_labels:
        if not given.has_target:
            raise errors.no_target(type(blueprint.encoder).__name__)
        named, cut = given.targets(), blueprint.options.cut
        named = named if cut is None else cut.buckets(rows.ops, named)
        labels = decided_targets(rows.ops, named, blueprint.targets)[0].values
    plan = blueprint.plan_of(rows, labels, part.first_row)
    assert isinstance(plan, FoldPlan)
    place, dtype = same_frame(rows.frame), model.dtype
    matrix = rows.ops.empty((rows.frame.n_rows, sum(each.values.shape[2] for each in tables.codes)), dtype, "F")
    flags, start = [], 0
    for key, formula, codes in zip(model.keys, model.formulas, tables.codes, strict=True):
        found, folds = known_codes(key, place, rows.ops, formula.missing), None if plan.blow_up else plan.folds
        stop = start + codes.values.shape[2]
        rows.ops.gather(rows.ops.to_device(codes.values), found, folds, matrix[:, start:stop])
        start = stop
        unseen = None
        if "unseen" in model.indicators:
            unseen = indicator(rows.ops, rows.ops.to_device(codes.unseen), found, folds)
        missing = partial(missing_rows, key, found, place, rows.ops, formula.missing == "category")
        flags += columns_of_entry(model.indicators, unseen, missing, dtype)
    return tables.encoder._assemble(rows.frame, [*(matrix[:, i] for i in range(start)), *flags], place)


def by_row(tables: Tables, work: Work) -> Any:
    """Take every row out of the sums of all rows."""
    model = tables.model
    check_columns(work.frame, tables)
    n_outputs = sum(job.n_outputs for jobs in work.jobs for job in jobs)
    matrix = work.ops.empty((work.frame.n_rows, n_outputs), model.dtype, "F")
    flags, start = [], 0
    for entry, (jobs, sums, in_order) in enumerate(zip(work.jobs, tables.sums, tables.others, strict=True)):
        for number, (job, whole, others) in enumerate(zip(jobs, sums, in_order, strict=True)):
            if not job.n_outputs:
                continue
            first, stop = number == work.formulas[entry].readout.first_target, start + job.n_outputs
            own, statistics = in_common(job, whole)
            want = first and "unseen" in model.indicators
            unseen = leave_one_out(own, statistics, matrix[:, start:stop], want, others)
            start = stop
            if first:
                flags += work.flags(entry, unseen)
    return tables.encoder._assemble(work.frame, [*(matrix[:, i] for i in range(start)), *flags], work.place)


def in_common(job: Job, whole: Statistics) -> tuple[Job, Statistics]:
    """Give the job of a part and the sums of all rows, where the backend computes, in the same columns."""
    there = replace(whole, cells=job.ops.to_device(whole.cells))
    return replace(job, measured=whole.measured), there


def check_columns(frame: Frame | Pieces, tables: Tables) -> None:
    """Raise ValueError if the columns are not those that were measured."""
    model = tables.model
    if frame.n_columns != model.n_features:
        raise errors.other_width(frame.n_columns, model.n_features)
    if frame.names != model.feature_names:
        raise errors.other_columns(model.feature_names, frame.names)


def by_place(tables: Tables, part: Part, given: Given, plan: OrderedPlan, placed: Sequence[Sequence[Placed]]) -> Any:
    """Put the codes of every order where their rows stand, and the average over the orders where that is asked for."""
    model, n_rows = tables.model, given.frame.n_rows
    backend = ops.resolve(n_rows, given.device(tables.blueprint.options.device))
    orders = [gathered(pieces, part.first_row, n_rows) for pieces in placed]
    width = orders[0].values.shape[1]
    if plan.average or len(orders) == 1:
        values = np.empty((n_rows, width), np.float64, "F")
        for column in range(width):
            values[:, column] = average(np.stack([each.values[:, column] for each in orders]))
    else:
        values = np.stack([each.values for each in orders], axis=2).reshape(n_rows, -1)
    matrix = backend.to_device(np.asfortranarray(in_type(values, model.dtype, ops.host(n_rows))))
    unseen = np.logical_and.reduce([each.unseen for each in orders])
    check_columns(given.frame, tables)
    place = same_frame(given.frame)
    flags = [flag for entry in range(len(model.keys)) for flag in flags_by_place(model, entry, unseen, place, backend)]
    return tables.encoder._assemble(given.frame, [*(matrix[:, i] for i in range(matrix.shape[1])), *flags], place)


def flags_by_place(model: Model, entry: int, unseen: Array, place: Located, backend: Ops) -> list[Array]:
    """Indicators of one entry; `unseen` (rows, entries) has no columns where it is not asked for."""
    key, policy = model.keys[entry], model.formulas[entry].missing

    def missing() -> Array:
        return missing_rows(key, known_codes(key, place, backend, policy), place, backend, policy == "category")

    own = backend.to_device(unseen[:, entry]) if unseen.shape[1] else None
    return columns_of_entry(model.indicators, own, missing, model.dtype)


def gathered(pieces: Sequence[Placed], first_row: int, n_rows: int) -> Placed:
    """Put pieces together in the order of the rows."""
    rows = np.concatenate([each.rows for each in pieces]) - first_row
    place = np.full(n_rows, -1, np.int64)
    inside = len(rows) == n_rows and (not n_rows or (rows.min() >= 0 and rows.max() < n_rows))
    if inside:
        place[rows] = np.arange(n_rows)
    if not inside or (place < 0).any():
        raise other_rows_placed(first_row, n_rows)
    values, unseen = (np.concatenate([getattr(each, name) for each in pieces]) for name in ("values", "unseen"))
    return Placed(rows + first_row, values[place], unseen[place])
