"""The third look at rows in parts: their training codes."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from cpu_fallback.types import Array
from gpu_encode import notices, ops
from gpu_encode.errors.learned import other_columns
from gpu_encode.errors.parts import codes_of_orders_needed, other_rows_placed
from gpu_encode.errors.tables import other_width
from gpu_encode.errors.targets import no_target
from gpu_encode.fitting.categories import known_codes
from gpu_encode.fitting.columns import ColumnMap, same_frame
from gpu_encode.fitting.inputs import Inputs
from gpu_encode.fitting.model import Model
from gpu_encode.fitting.targets import read_fixed_targets
from gpu_encode.fitting.work import Work
from gpu_encode.frames import Frame, Pieces
from gpu_encode.ops import Ops
from gpu_encode.parts.part import Part
from gpu_encode.parts.scans import RowEncodings
from gpu_encode.parts.sums import work_on
from gpu_encode.parts.tables import EncodingTables
from gpu_encode.schemes.plans import FoldPlan, OrderedPlan
from gpu_encode.sums.category_sums import CategorySums
from gpu_encode.training.indicators import columns_of_entry, indicator, missing_rows
from gpu_encode.training.leave_one_out import leave_one_out
from gpu_encode.training.ordered import average
from gpu_encode.training.outputs import in_type
from gpu_encode.training.tasks import EncodingTask


class Rows:
    """Rows of a part that only their folds are asked of."""

    def __init__(self, given: Inputs, device: str) -> None:
        self.frame: Frame | Pieces = given.frame
        self.ops: Ops = ops.resolve(given.frame.n_rows, given.device(device))
        self.groups: Frame | Pieces | None = given.groups()


def encode(tables: EncodingTables, part: Part, placed: Sequence[Sequence[RowEncodings]] | None = None) -> Any:
    """Give the training codes of a part.

    Parameters
    ----------
    tables : EncodingTables
    part : Part
        The same rows that were measured; y only for schemes in which a row's code depends on its own.
    placed : list of list of RowEncodings, optional
        For an ordered scheme: per order, what `OrderedScan` gave for these rows, in any number of pieces.

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
    >>> from gpu_encode.parts import Part, plan, encode, fit, measure, profile
    >>> encoder = TargetEncoder(cv=KFold(2, order="interleaved"), smooth=None, target_type="continuous")
    >>> parts = [Part([["a"], ["a"]], [1.0, 2.5]), Part([["a"], ["a"]], [6.0, 4.5], first_row=2)]
    >>> encoding_plan = plan(encoder, profile(encoder, parts[0]) + profile(encoder, parts[1]))
    >>> tables = fit(encoder, encoding_plan, measure(encoding_plan, parts[0]) + measure(encoding_plan, parts[1]))
    >>> [encode(tables, part).ravel().tolist() for part in parts]
    [[3.5, 3.5], [3.5, 3.5]]
    """
    plan = tables.encoding_plan.plan
    with part.named():
        given = part.given()
        if not given.frame.n_rows:
            with notices.kept():  # of codes that no row here gets
                return tables.encoder.transform(part.X)
        if not tables.encoding_plan.options.trains_apart:
            check_columns(given.frame, tables)
            return tables.encoder.transform(part.X)
        if isinstance(plan, FoldPlan):
            return by_folds(tables, part, given)
        if isinstance(plan, OrderedPlan):
            if placed is None:
                raise codes_of_orders_needed()
            return by_place(tables, part, given, plan, placed)
        work = work_on(tables.encoding_plan, part, tables.model.keys)
        assert work is not None
        return by_row(tables, work)


def by_folds(tables: EncodingTables, part: Part, given: Inputs) -> Any:
    """Look every row up by its category and fold."""
    model, encoding_plan = tables.model, tables.encoding_plan
    rows = Rows(given, encoding_plan.options.device)
    check_columns(rows.frame, tables)
    labels: Array = np.zeros(0, np.int32)
    if encoding_plan.needs_labels:
        if not given.has_target:
            raise no_target(type(encoding_plan.encoder).__name__)
        named, cut = given.targets(), encoding_plan.options.cut
        named = named if cut is None else cut.buckets(rows.ops, named)
        labels = read_fixed_targets(rows.ops, named, encoding_plan.targets)[0].values
    plan = encoding_plan.plan_of(rows, labels, part.first_row)
    assert isinstance(plan, FoldPlan)
    place, dtype = same_frame(rows.frame), model.dtype
    matrix = rows.ops.empty((rows.frame.n_rows, sum(each.values.shape[2] for each in tables.codes)), dtype, "F")
    flags, start = [], 0
    for key, rule, codes in zip(model.keys, model.rules, tables.codes, strict=True):
        found, folds = known_codes(key, place, rows.ops, rule.missing), None if plan.blow_up else plan.folds
        stop = start + codes.values.shape[2]
        rows.ops.gather(rows.ops.to_device(codes.values), found, folds, matrix[:, start:stop])
        start = stop
        unseen = None
        if "unseen" in model.indicators:
            unseen = indicator(rows.ops, rows.ops.to_device(codes.unseen), found, folds)
        missing = partial(missing_rows, key, found, place, rows.ops, rule.missing == "category")
        flags += columns_of_entry(model.indicators, unseen, missing, dtype)
    return tables.encoder._assemble(rows.frame, [*(matrix[:, i] for i in range(start)), *flags], place)


def by_row(tables: EncodingTables, work: Work) -> Any:
    """Take every row out of the sums of all rows."""
    model = tables.model
    check_columns(work.frame, tables)
    n_outputs = sum(task.n_outputs for tasks in work.tasks for task in tasks)
    matrix = work.ops.empty((work.frame.n_rows, n_outputs), model.dtype, "F")
    flags, start = [], 0
    for entry, (tasks, sums, in_order) in enumerate(zip(work.tasks, tables.sums, tables.others, strict=True)):
        for number, (task, whole, others) in enumerate(zip(tasks, sums, in_order, strict=True)):
            if not task.n_outputs:
                continue
            first, stop = number == work.rules[entry].statistic.first_target, start + task.n_outputs
            own, statistics = in_common(task, whole)
            want = first and "unseen" in model.indicators
            unseen = leave_one_out(own, statistics, matrix[:, start:stop], want, others)
            start = stop
            if first:
                flags += work.flags(entry, unseen)
    return tables.encoder._assemble(work.frame, [*(matrix[:, i] for i in range(start)), *flags], work.place)


def in_common(task: EncodingTask, whole: CategorySums) -> tuple[EncodingTask, CategorySums]:
    """Give the job of a part and the sums of all rows, where the backend computes, in the same columns."""
    there = replace(whole, accumulators=task.ops.to_device(whole.accumulators))
    return replace(task, measured=whole.measured), there


def check_columns(frame: Frame | Pieces, tables: EncodingTables) -> None:
    """Raise ValueError if the columns are not those that were measured."""
    model = tables.model
    if frame.n_columns != model.n_features:
        raise other_width(frame.n_columns, model.n_features)
    if frame.names != model.feature_names:
        raise other_columns(model.feature_names, frame.names)


def by_place(
    tables: EncodingTables, part: Part, given: Inputs, plan: OrderedPlan, placed: Sequence[Sequence[RowEncodings]]
) -> Any:
    """Put the codes of every order where their rows stand, and the average over the orders where that is asked for."""
    model, n_rows = tables.model, given.frame.n_rows
    backend = ops.resolve(n_rows, given.device(tables.encoding_plan.options.device))
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


def flags_by_place(model: Model, entry: int, unseen: Array, place: ColumnMap, backend: Ops) -> list[Array]:
    """Indicators of one entry; `unseen` (rows, entries) has no columns where it is not asked for."""
    key, policy = model.keys[entry], model.rules[entry].missing

    def missing() -> Array:
        return missing_rows(key, known_codes(key, place, backend, policy), place, backend, policy == "category")

    own = backend.to_device(unseen[:, entry]) if unseen.shape[1] else None
    return columns_of_entry(model.indicators, own, missing, model.dtype)


def gathered(pieces: Sequence[RowEncodings], first_row: int, n_rows: int) -> RowEncodings:
    """Put pieces together in the order of the rows."""
    rows = np.concatenate([each.rows for each in pieces]) - first_row
    place = np.full(n_rows, -1, np.int64)
    inside = len(rows) == n_rows and (not n_rows or (rows.min() >= 0 and rows.max() < n_rows))
    if inside:
        place[rows] = np.arange(n_rows)
    if not inside or (place < 0).any():
        raise other_rows_placed(first_row, n_rows)
    values, unseen = (np.concatenate([getattr(each, name) for each in pieces]) for name in ("values", "unseen"))
    return RowEncodings(rows + first_row, values[place], unseen[place])
