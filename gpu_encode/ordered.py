"""Ordered target statistics: every row's code from the rows before it, in random orders or in time.

The prior of the order so far is taken at checkpoints: a row's place with all but its top nine bits cleared.  That makes
a table of a few thousand priors, at most 1/256 stale, instead of a scan over all rows.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from cpu_fallback.exact import Floats, Integers
from gpu_encode.cells import MISSING, Array
from gpu_encode.checkpoints import Before, checkpoint_places, segments_of
from gpu_encode.formula import Mask
from gpu_encode.jobs import Job, tiles
from gpu_encode.moments import CategoryMoments
from gpu_encode.outputs import Output
from gpu_encode.plans import Order, OrderedPlan, RowOrder, TimeOrder
from gpu_encode.rows import Permutation
from gpu_encode.statistics import CARRY_AFTER, Statistics, carry
from gpu_encode.walks import Gains, Walk, root_of_others


def ordered(job: Job, plan: OrderedPlan, out: Array, want_unseen: bool) -> tuple[Statistics, Mask | None]:
    """Write the code of each row from the rows before it.

    Parameters
    ----------
    job : Job
    plan : OrderedPlan
    out : array (rows, outputs * columns)
        One column per output, or per output and order where orders are not averaged; NaN in the burn-in.
    want_unseen : bool

    Returns
    -------
    statistics : Statistics
        Sums of all rows, one view.
    unseen : bool array (rows,) or None
        Rows whose category none of the orders had seen.
    """
    n, n_orders = len(job.rows), len(plan.orders)
    averaged = plan.average and n_orders > 1
    every = job.ops.empty((n, job.n_outputs * n_orders), np.float64, "F") if averaged else out
    output, unseen = Output(every, job.ops), job.ops.xp.ones(n, np.bool_) if want_unseen else None
    statistics = None
    for number, order in enumerate(plan.orders):
        columns = range(number, job.n_outputs * n_orders, n_orders)
        found = in_one_pass(job, order, plan.burn_in, output, columns, unseen)
        statistics = statistics or found
        if found is None:
            by_tiles(Pass(job, order, plan.burn_in), output, columns, unseen)
    output.close()
    if averaged:
        average_orders(job, every, n_orders, out)
    return statistics or job.measure(None, 1), unseen


def by_tiles(codes: "Pass", output: Output, columns: range, unseen: Mask | None) -> None:
    """Write the codes of one order, tile by tile."""
    for rows, values, missing in codes:
        output.put(rows, columns, values)
        if unseen is not None:
            unseen.put(rows, unseen[rows] & missing)


def in_one_pass(
    job: Job, order: Order, burn_in: int, output: Output, columns: range, unseen: Mask | None
) -> Statistics | None:
    """Write the codes of one order by one pass of the backend, with the same bits; None where it has no such pass."""
    rule = job.rule()
    # The sums of more rows have to be carried on the way.
    if rule is None or len(job.rows) > CARRY_AFTER:
        return None
    numbers = order.rows if isinstance(order, TimeOrder) else order if isinstance(order, Permutation) else None
    ties = (order.ties, order.starts) if isinstance(order, TimeOrder) else None
    fixed = job.key.n_categories, job.n_classes, job.measured.layout, job.measured.first_output
    out = output.matrix[:, columns.start :: columns.step]
    written = job.ops.ordered_codes(job.rows, *fixed, numbers, ties, burn_in, rule, out, unseen)
    if written is None:
        return None
    output.count(written.lost)
    statistics = Statistics(written.cells[:, None], job.measured, len(job.rows))
    if isinstance(order, Permutation) and rule.by_mean and not burn_in:
        first = job.ops.rows_at(order, 0, 1)
        row = job.rows.pick(first)
        root = root_of_others(job, statistics.totals(job.ops).cells[0, 0], row)[None]
        no_category = job.formula.missing != "category" and bool((row.codes == MISSING)[0])
        values = job.formula.missing_code(root) if no_category else job.formula.or_unseen(root)
        output.put(first, columns, values)
    return statistics


def average_orders(job: Job, every: Floats, n_orders: int, out: Array) -> None:
    """Write the average over the orders, tile by tile."""
    whole = Output(out, job.ops)
    for start, stop in tiles(len(job.rows), job.tile):
        columns_of = every[start:stop].T.reshape(job.n_outputs, n_orders, stop - start)
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


class Pass:
    """One order, tile by tile: yields row numbers, codes, and which rows' categories are unseen."""

    def __init__(self, job: Job, order: Order, burn_in: int) -> None:
        self.job, self.order, self.burn_in = job, order, burn_in
        self.starts = order.starts if isinstance(order, TimeOrder) else None
        places = checkpoint_places(self.starts, len(job.rows), job.ops)
        before = Before.of(places, self.starts, self._totals(places), job.formula, job.measured, job.ops)
        self.before = replace(before, categories=self._categories(places)) if job.formula.needs_categories else before

    def _row_numbers(self, start: int, stop: int) -> Integers:
        if isinstance(self.order, TimeOrder):
            return self.order.rows[start:stop]
        if isinstance(self.order, RowOrder):
            places: Integers = self.job.ops.xp.arange(start, stop)
            return places
        return self.job.ops.rows_at(self.order, start, stop)

    def _places(self, start: int, stop: int) -> Integers:
        places: Integers = self.job.ops.xp.arange(start, stop)
        return places

    def _totals(self, checkpoints: Integers) -> Integers:
        """Digits of the rows between checkpoints (checkpoints, classes, width)."""
        job, n_segments = self.job, len(checkpoints)
        layout = job.measured.layout
        sums = job.ops.zeros((n_segments, job.n_classes, layout.width), np.int64)
        for start, stop in tiles(len(job.rows), job.ops.TILE):
            segments = segments_of(checkpoints, self._places(start, stop))
            rows = job.rows.pick(self._row_numbers(start, stop)).with_codes(segments)
            sums += job.ops.accumulate(rows, n_segments, None, 1, job.n_classes, layout)[:-2, 0]
            if start // CARRY_AFTER < stop // CARRY_AFTER:
                # Rows of one time are one segment, however many they are.
                carry(sums, layout)
        carry(sums, layout)
        return sums

    def _categories(self, checkpoints: Integers) -> list[CategoryMoments | None]:
        """Sums over categories before each checkpoint, per level."""
        job = self.job
        gains = [Gains(job, keying, checkpoints) for keying in job.keyings()]
        for start, stop in tiles(len(job.rows), job.tile):
            rows, places = job.rows.pick(self._row_numbers(start, stop)), self._places(start, stop)
            for each in gains:
                each.add(rows, places)
        return [each.sums.running() for each in gains]

    def __iter__(self) -> Iterator[tuple[Integers, Floats, Mask]]:
        walk = Walk(self.job, self.before, isinstance(self.order, Permutation), self.burn_in)
        for start, stop in tiles(len(self.job.rows), self.job.tile):
            numbers = self._row_numbers(start, stop)
            if isinstance(self.order, TimeOrder):
                ties = self.order.ties[start:stop]
                codes = walk(self.job.rows.pick(numbers), self.order.starts[ties], ties)
            else:
                codes = walk(self.job.rows.pick(numbers), self._places(start, stop), None)
            yield numbers, *codes
