"""Ordered target statistics: every row's code from the rows before it, in random orders or in time.

The prior of the order so far is taken at checkpoints: a row's place with all but its top nine bits cleared.  That makes
a table of a few thousand priors, at most 1/256 stale, instead of a scan over all rows.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from cpu_fallback.exact import Floats, Integers
from cpu_fallback.row_numbers import Permutation
from cpu_fallback.types import MISSING, Array
from gpu_encode.formulas.encoding_rule import Mask
from gpu_encode.ops import tiles
from gpu_encode.schemes.plans import Order, OrderedPlan, RowOrder, TimeOrder
from gpu_encode.sums.category_sums import CARRY_AFTER, CategorySums, carry
from gpu_encode.sums.moments import CategoryMoments
from gpu_encode.training.checkpoints import CheckpointState, checkpoint_places, segments_of
from gpu_encode.training.outputs import Output
from gpu_encode.training.scans import SegmentMeanDeltas, SequentialScan, root_of_others
from gpu_encode.training.tasks import EncodingTask


def ordered(task: EncodingTask, plan: OrderedPlan, out: Array, want_unseen: bool) -> tuple[CategorySums, Mask | None]:
    """Write the code of each row from the rows before it.

    Parameters
    ----------
    task : EncodingTask
    plan : OrderedPlan
    out : array (rows, outputs * columns)
        One column per output, or per output and order where orders are not averaged; NaN in the burn-in.
    want_unseen : bool

    Returns
    -------
    statistics : CategorySums
        Sums of all rows, one view.
    unseen : bool array (rows,) or None
        Rows whose category none of the orders had seen.
    """
    n, n_orders = len(task.rows), len(plan.orders)
    averaged = plan.average and n_orders > 1
    every = task.ops.empty((n, task.n_outputs * n_orders), np.float64, "F") if averaged else out
    output, unseen = Output(every, task.ops), task.ops.xp.ones(n, np.bool_) if want_unseen else None
    statistics = None
    for number, order in enumerate(plan.orders):
        columns = range(number, task.n_outputs * n_orders, n_orders)
        found = in_one_pass(task, order, plan.burn_in, output, columns, unseen)
        statistics = statistics or found
        if found is None:
            by_tiles(OrderedTiles(task, order, plan.burn_in), output, columns, unseen)
    output.close()
    if averaged:
        average_orders(task, every, n_orders, out)
    return statistics or task.measure(None, 1), unseen


def by_tiles(codes: "OrderedTiles", output: Output, columns: range, unseen: Mask | None) -> None:
    """Write the codes of one order, tile by tile."""
    for rows, values, missing in codes:
        output.put(rows, columns, values)
        if unseen is not None:
            unseen.put(rows, unseen[rows] & missing)


def in_one_pass(
    task: EncodingTask, order: Order, burn_in: int, output: Output, columns: range, unseen: Mask | None
) -> CategorySums | None:
    """Write the codes of one order by one pass of the backend, with the same bits; None where it has no such pass."""
    fused, fused_rule = task.ops.fused, task.fused_rule()
    # The sums of more rows have to be carried on the way.
    if fused is None or fused_rule is None or len(task.rows) > CARRY_AFTER:
        return None
    numbers = order.rows if isinstance(order, TimeOrder) else order if isinstance(order, Permutation) else None
    ties = (order.ties, order.starts) if isinstance(order, TimeOrder) else None
    fixed = task.key.n_categories, task.n_classes, task.measured.layout, task.measured.first_output
    out = output.matrix[:, columns.start :: columns.step]
    written = fused.ordered_encodings(task.rows, *fixed, numbers, ties, burn_in, fused_rule, out, unseen)
    if written is None:
        return None
    output.count(written.lost)
    statistics = CategorySums(written.accumulators[:, None], task.measured, len(task.rows))
    if isinstance(order, Permutation) and fused_rule.by_mean and not burn_in:
        first = task.ops.rows_at(order, 0, 1)
        row = task.rows.pick(first)
        root = root_of_others(task, statistics.totals(task.ops).accumulators[0, 0], row)[None]
        no_category = task.rule.missing != "category" and bool((row.codes == MISSING)[0])
        values = task.rule.encode_missing(root) if no_category else task.rule.encode_unseen(root)
        output.put(first, columns, values)
    return statistics


def average_orders(task: EncodingTask, every: Floats, n_orders: int, out: Array) -> None:
    """Write the average over the orders, tile by tile."""
    whole = Output(out, task.ops)
    for start, stop in tiles(len(task.rows), task.tile):
        columns_of = every[start:stop].T.reshape(task.n_outputs, n_orders, stop - start)
        whole.write(start, stop, np.stack([average(each) for each in columns_of], axis=1))
    whole.close()


def average(columns: Floats) -> Floats:
    """Mean over the orders that have a code, such that equal codes give exactly themselves."""
    if len(columns) == 1:
        only: Floats = columns[0]
        return only
    known = ~np.isnan(columns)
    first = columns[0]
    for column in columns[1:]:
        first = np.where(np.isnan(first), column, first)
    shift = np.zeros_like(first)
    for column, valid in zip(columns, known, strict=True):
        # Infinite codes that are equal do not differ either.
        with np.errstate(invalid="ignore"):
            shift += np.where(valid & (column != first), column - first, 0.0)
    mean: Floats = first + shift / np.maximum(known.sum(axis=0), 1)
    return mean


class OrderedTiles:
    """One order, tile by tile: yields row numbers, codes, and which rows' categories are unseen."""

    def __init__(self, task: EncodingTask, order: Order, burn_in: int) -> None:
        self.task, self.order, self.burn_in = task, order, burn_in
        self.starts = order.starts if isinstance(order, TimeOrder) else None
        places = checkpoint_places(self.starts, len(task.rows), task.ops)
        before = CheckpointState.of(places, self.starts, self._totals(places), task.rule, task.measured, task.ops)
        self.before = replace(before, categories=self._categories(places)) if task.rule.needs_categories else before

    def _row_numbers(self, start: int, stop: int) -> Integers:
        if isinstance(self.order, TimeOrder):
            return self.order.rows[start:stop]
        if isinstance(self.order, RowOrder):
            places: Integers = self.task.ops.xp.arange(start, stop)
            return places
        return self.task.ops.rows_at(self.order, start, stop)

    def _places(self, start: int, stop: int) -> Integers:
        places: Integers = self.task.ops.xp.arange(start, stop)
        return places

    def _totals(self, checkpoints: Integers) -> Integers:
        """Digits of the rows between checkpoints (checkpoints, classes, width)."""
        task, n_segments = self.task, len(checkpoints)
        layout = task.measured.layout
        sums = task.ops.zeros((n_segments, task.n_classes, layout.width), np.int64)
        for start, stop in tiles(len(task.rows), task.ops.TILE):
            segments = segments_of(checkpoints, self._places(start, stop))
            rows = task.rows.pick(self._row_numbers(start, stop)).with_codes(segments)
            sums += task.ops.accumulate(rows, n_segments, None, 1, task.n_classes, layout)[:-2, 0]
            if start // CARRY_AFTER < stop // CARRY_AFTER:
                # Rows of one time are one segment, however many they are.
                carry(sums, layout)
        carry(sums, layout)
        return sums

    def _categories(self, checkpoints: Integers) -> list[CategoryMoments | None]:
        """Sums over categories before each checkpoint, per level."""
        task = self.task
        gains = [SegmentMeanDeltas(task, keying, checkpoints) for keying in task.keyings()]
        for start, stop in tiles(len(task.rows), task.tile):
            rows, places = task.rows.pick(self._row_numbers(start, stop)), self._places(start, stop)
            for each in gains:
                each.add(rows, places)
        return [each.sums.running() for each in gains]

    def __iter__(self) -> Iterator[tuple[Integers, Floats, Mask]]:
        walk = SequentialScan(self.task, self.before, isinstance(self.order, Permutation), self.burn_in)
        for start, stop in tiles(len(self.task.rows), self.task.tile):
            numbers = self._row_numbers(start, stop)
            if isinstance(self.order, TimeOrder):
                ties = self.order.ties[start:stop]
                codes = walk(self.task.rows.pick(numbers), self.order.starts[ties], ties)
            else:
                codes = walk(self.task.rows.pick(numbers), self._places(start, stop), None)
            yield numbers, *codes
