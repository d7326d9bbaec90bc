"""Leave-one-out: the encoding of each row, and its prior, come from all other rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cpu_fallback.exact import Floats, Integers
from cpu_fallback.fused_rules import RowEncodings
from cpu_fallback.types import Array, Rows
from gpu_encode.fitting.tasks import EncodingTask, LevelCodes, TiledOutput, look_up, without_key
from gpu_encode.formulas.encoding_rule import (
    EncodingTable,
    Mask,
    SeenSums,
    VisibleMoments,
    apply_policies,
    encode_tile,
)
from gpu_encode.formulas.order_statistics import OtherRows
from gpu_encode.seam.ops import tiles
from gpu_encode.sums.category_sums import CategorySums
from gpu_encode.sums.moments import CategoryMoments, Moments


def leave_one_out(task: EncodingTask, statistics: CategorySums, out: Array, want_unseen: bool) -> Mask | None:
    """Encode each row from all other rows.

    Parameters
    ----------
    task : EncodingTask
    statistics : CategorySums
        Sums of all rows, one view.
    out : array (rows, outputs)
    want_unseen : bool

    Returns
    -------
    bool array (rows,) or None
        True for rows whose category no other row has; None unless wanted.
    """
    rows = task.rows
    if task.spec.classification and rows.weight is None and rows.classes is not None:
        # Without weights, an encoding depends only on category and class.
        encodings = table_in_one_pass(task, statistics, out.dtype) or table_by_cells(task, statistics)
        return look_up(task.ops, encodings, rows.codes, rows.classes, out, want_unseen)
    output, unseen = TiledOutput(out, task.ops), task.ops.xp.ones(len(rows), np.bool_) if want_unseen else None
    if (lost := rows_in_one_pass(task, statistics, out, unseen)) is not None:
        output.count(lost)
        output.close()
        return unseen
    evaluate = Evaluation(task, statistics)
    for start, stop in tiles(len(rows), task.tile):
        values, missing = evaluate(rows.block(start, stop))
        output.write(start, stop, values)
        if unseen is not None:
            unseen[start:stop] = missing
    output.close()
    return unseen


def rows_in_one_pass(task: EncodingTask, statistics: CategorySums, out: Array, unseen: Mask | None) -> int | None:
    """Encode the rows in one pass of the backend, with the same bits; None if the backend has no such pass."""
    fused, fused_rule = task.ops.fused, task.fused_rule()
    if fused is None or fused_rule is None:
        return None
    accumulators, total = statistics.accumulators[:, 0], task.ops.totals(statistics.accumulators)[0]
    to = RowEncodings(out, unseen)
    return fused.leave_one_out_encodings(accumulators, total, task.rows, task.spec.layout, fused_rule, to)


def table_in_one_pass(task: EncodingTask, statistics: CategorySums, dtype: Any) -> EncodingTable | None:
    """Make the table by category and class in one pass of the backend; None if the backend has no such pass."""
    if task.ops.fused is None or task.key.levels or task.rule.describe_fused() is None:
        return None
    total = total_of_others(task, statistics)
    return SeenSums(statistics, None, task.rule, task.ops).table_in_one_pass(total, dtype, less_one=True)


def total_of_others(task: EncodingTask, statistics: CategorySums) -> Moments:
    """Round the sums over all rows that a row of each class sees, the row itself left out."""
    everything, backend = statistics.totals_on_host(task.ops)
    one_each = Rows(np.zeros(task.n_classes, np.int32), np.arange(task.n_classes, dtype=np.int32))
    others = backend.leave_one_out(everything.accumulators[:, 0], one_each, task.spec.layout)
    return task.rule.moments(backend, others, task.spec)


def table_by_cells(task: EncodingTask, statistics: CategorySums) -> EncodingTable:
    """Make the table by array expressions, for cells that hold rows: no row looks up an empty cell."""
    ops, n, width = task.ops, task.key.n_categories, task.n_outputs
    evaluate = Evaluation(task, statistics)
    category, label = np.nonzero(statistics.accumulators[:, 0, :, 0])
    codes = np.where(category >= n, category - n - 2, category).astype(np.int32)
    table = ops.zeros((n + 2, task.n_classes, width), np.float64)
    alone = ops.zeros((n + 2, task.n_classes), np.bool_)
    for start, stop in tiles(len(codes), task.tile):
        tile = slice(start, stop)
        values, unseen = evaluate(Rows(codes[tile], label[tile].astype(np.int32)))
        cell = category[tile] * task.n_classes + label[tile]
        table.put(cell[:, None] * width + ops.xp.arange(width), values)
        alone.put(cell, unseen)
    return EncodingTable(table, alone)


@dataclass(frozen=True)
class TotalSums:
    """Sums over all rows at one level; each row is subtracted from them."""

    level_codes: LevelCodes
    accumulators: Integers
    moments: Moments
    categories: CategoryMoments | None


class Evaluation:
    """Encodes tiles of rows; each row is left out of the sums that it sees."""

    def __init__(self, task: EncodingTask, statistics: CategorySums) -> None:
        self.task = task
        self.others = OtherRows.of(statistics) if task.in_order is None else task.in_order
        self.totals = statistics.totals(task.ops).accumulators[:, 0]
        self.levels = [self._total(level_codes, statistics) for level_codes in task.level_codes()]

    def _total(self, level_codes: LevelCodes, statistics: CategorySums) -> TotalSums:
        task, level = self.task, level_codes.level
        at_level = statistics if level is None else statistics.sum_by_parent(task.ops, level.of_leaf, level.n)
        moments = task.rule.moments(task.ops, at_level.accumulators[:, 0], task.spec)
        counted = task.rule.which_leaves_count(moments)
        if level is not None:
            counted[-1] = False
        categories = task.rule.categories_of(task.ops, moments, counted)
        return TotalSums(level_codes, at_level.accumulators[:, 0], moments, categories)

    def __call__(self, rows: Rows) -> tuple[Floats, Mask]:
        """Encode a tile, and tell which rows' categories are unseen."""
        task = self.task
        everything = task.ops.leave_one_out(self.totals, without_key(rows), task.spec.layout)
        total = task.rule.moments(task.ops, everything, task.spec)
        seen = [self._seen(level, rows, total) for level in self.levels]
        if self.others is not None:
            return self._in_order(self.others, rows, seen[-1], total)
        return encode_tile(seen, rows.codes, task.rule.find_prior(total, seen[-1].context.categories), task.rule)

    def _in_order(self, others: OtherRows, rows: Rows, leaf: VisibleMoments, total: Moments) -> tuple[Floats, Mask]:
        """Encode a tile from the sorted values of other rows, and tell which rows' categories are unseen."""
        task = self.task
        counted = task.rule.which_count(leaf.moments) & leaf.has[:, None]
        # Only rows whose category does not count need the values of other categories.
        values = others.seen_by(task.ops, rows, ~counted[:, 0])
        encodings, root = task.rule.statistic.encode_in_order(task.ops, leaf.moments, total, values)
        return apply_policies(encodings, root, root, leaf, rows.codes, task.rule)

    def _seen(self, level: TotalSums, rows: Rows, total: Moments) -> VisibleMoments:
        task, codes = self.task, level.level_codes.codes(rows)
        accumulators = task.ops.leave_one_out(level.accumulators, rows.with_codes(codes), task.spec.layout)
        moments = task.rule.moments(task.ops, accumulators, task.spec)
        has = level.level_codes.has(codes, task.rule)
        under_root = level is self.levels[0]
        if level.categories is None:
            return VisibleMoments(moments, task.rule.context(total, None, under_root), has)
        lost = own_category(task, level.moments.at(codes), has)
        left = own_category(task, moments, has)
        changed = level.categories.changed(left, lost)
        return VisibleMoments(moments, task.rule.context(total, changed, under_root), has)


def own_category(task: EncodingTask, moments: Moments, has: Mask) -> CategoryMoments:
    """Give each row's own category as sums over one category, or over none if the category does not count."""
    rule = task.rule
    numbers, weights = rule.statistic.of_each_category(moments), rule.statistic.category_weights(moments)
    counted = (rule.which_count(moments) & has[:, None])[None]
    return CategoryMoments.of(task.ops, numbers[None], counted, None if weights is None else weights[None])
