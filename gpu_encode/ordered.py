"""Ordered target statistics: every row's code from the rows before it, in random orders or in time.

The prior of the order so far is taken at checkpoints: a row's place with all but its top nine bits cleared.  That makes
a table of a few thousand priors, at most 1/256 stale, instead of a scan over all rows.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.blending import CHECKPOINT_BITS
from cpu_fallback.exact import Floats, Integers, Limbs, stacked
from gpu_encode.cells import MISSING, Array, Carry, Layout, Rows, Window, digit_window
from gpu_encode.formula import Mask, Seen, row_codes
from gpu_encode.jobs import Job, Keying, tiles, without_key
from gpu_encode.moments import CategoryMoments, Moments
from gpu_encode.ops import Ops
from gpu_encode.outputs import Output
from gpu_encode.plans import Order, OrderedPlan, RowOrder, TimeOrder
from gpu_encode.rows import Permutation
from gpu_encode.smoothing import Context
from gpu_encode.statistics import CARRY_AFTER, Statistics, carry

EXACT_PLACES = 1 << CHECKPOINT_BITS


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
        root = mean_of_others(job, statistics.totals(job.ops).cells[0, 0], row)[None]
        no_category = job.formula.missing != "category" and bool((row.codes == MISSING)[0])
        values = job.formula.missing_code(root) if no_category else job.formula.or_unseen(root)
        output.put(first, columns, values)
    return statistics


def mean_of_others(job: Job, everything: Integers, rows: Rows) -> Floats:
    """Prior of the first row of a random order: the mean of all other rows, of whose sums all are given."""
    cells = job.ops.zeros((3, *everything.shape), np.int64)
    cells[0] = everything
    others = job.ops.leave_one_out(cells, without_key(rows.block(0, 1)), job.measured.layout)
    mean: Floats = job.formula.moments(job.ops, others, job.measured).mean[0]
    return mean


def average_orders(job: Job, every: Floats, n_orders: int, out: Array) -> None:
    """Write the average over the orders, tile by tile."""
    whole = Output(out, job.ops)
    for start, stop in tiles(len(job.rows), job.tile):
        columns_of = every[start:stop].T.reshape(job.n_outputs, n_orders, stop - start)
        whole.write(start, stop, np.stack([average(each) for each in columns_of], axis=1))
    whole.close()


def average(columns: Floats) -> Floats:
    """Mean over the orders that have a code, such that equal codes give exactly themselves."""
    known = ~np.isnan(columns)
    first = columns[0]
    for column in columns[1:]:
        first = np.where(np.isnan(first), column, first)
    shift = np.zeros_like(first)
    for column, valid in zip(columns, known, strict=True):
        shift += np.where(valid, column - first, 0.0)
    mean: Floats = first + shift / np.maximum(known.sum(axis=0), 1)
    return mean


def floor_places(places: Integers) -> Integers:
    """Places with all but their top nine bits cleared."""
    extra = np.maximum(np.frexp(places.astype(np.float64))[1].astype(np.int64) - CHECKPOINT_BITS, 0)
    return (places >> extra) << extra


def prior_places(order: Order, begins: Integers) -> Integers:
    """Place up to which a row's prior is taken: at most 1/256 before what it sees, and never inside a tie."""
    floored = floor_places(begins)
    if not isinstance(order, TimeOrder):
        return floored
    back = order.starts[np.searchsorted(order.starts, floored, side="right") - 1]
    return np.where((back == 0) & (begins > 0), begins, back)


def checkpoint_places(order: Order, n_rows: int, ops: Ops) -> Integers:
    """Sorted places at which priors are taken, 0 among them."""
    if isinstance(order, TimeOrder):
        return np.unique(np.append(prior_places(order, order.starts), 0))
    parts = [np.arange(min(EXACT_PLACES, max(n_rows, 1)))]
    for bits in range(CHECKPOINT_BITS, max(n_rows, 1).bit_length()):
        step = 1 << (bits + 1 - CHECKPOINT_BITS)
        parts.append(np.arange(1 << bits, min(2 << bits, n_rows), step))
    return ops.to_device(np.concatenate(parts))


def carried(sums: Carry, start: int, stop: int, layout: Layout) -> None:
    """Carry the digits of the sums so far wherever rows [start, stop) go past the room that an int64 has for them."""
    if start // CARRY_AFTER < stop // CARRY_AFTER:
        carry(sums.sums, layout)
        if sums.at_tie.size:
            carry(sums.at_tie, layout)


class Pass:
    """One order, tile by tile: yields row numbers, codes, and which rows' categories are unseen."""

    def __init__(self, job: Job, order: Order, burn_in: int) -> None:
        self.job, self.order, self.burn_in = job, order, burn_in
        self.checkpoints = checkpoint_places(order, len(job.rows), job.ops)
        self.keyings = job.keyings()
        self.everything, before = self._totals()
        self.total = job.formula.moments(job.ops, before, job.measured)
        needed = job.formula.needs_categories
        self.categories = [self._category_sums(keying) if needed else None for keying in self.keyings]

    def _row_numbers(self, start: int, stop: int) -> Integers:
        if isinstance(self.order, TimeOrder):
            return self.order.rows[start:stop]
        if isinstance(self.order, RowOrder):
            places: Integers = self.job.ops.xp.arange(start, stop)
            return places
        return self.job.ops.rows_at(self.order, start, stop)

    def _ties(self, start: int, stop: int) -> Integers | None:
        return self.order.ties[start:stop] if isinstance(self.order, TimeOrder) else None

    def _segments(self, start: int, stop: int) -> NDArray[np.int32]:
        """Give the number of the last checkpoint at or before each place."""
        places: Integers = self.job.ops.xp.arange(start, stop)
        return (np.searchsorted(self.checkpoints, places, side="right") - 1).astype(np.int32)

    def _totals(self) -> tuple[Integers, Integers]:
        """Digits of all rows (classes, width), and of all rows before each checkpoint (checkpoints, classes, width)."""
        job, n_segments = self.job, len(self.checkpoints)
        layout = job.measured.layout
        sums = job.ops.zeros((n_segments, job.n_classes, layout.width), np.int64)
        for start, stop in tiles(len(job.rows), job.ops.TILE):
            rows = job.rows.pick(self._row_numbers(start, stop)).with_codes(self._segments(start, stop))
            sums += job.ops.accumulate(rows, n_segments, None, 1, job.n_classes, layout)[:-2, 0]
            if start // CARRY_AFTER < stop // CARRY_AFTER:
                # Rows of one time are one segment, however many they are.
                carry(sums, layout)
        carry(sums, layout)
        return sums.sum(axis=0), np.cumsum(sums, axis=0) - sums

    def _category_sums(self, keying: Keying) -> CategoryMoments:
        """Sum over categories before each checkpoint, by adding each row's change of its own category's mean."""
        job, layout = self.job, self.job.measured.layout
        earlier = Carry.empty(keying.n, job.n_classes, layout.width, False, job.ops.xp)
        nobody = job.ops.zeros((3, job.n_classes, layout.width), np.int64)
        sums = CategoryMoments.none(job.ops, (len(self.checkpoints), job.n_outputs))
        for start, stop in tiles(len(job.rows), job.tile):
            rows = job.rows.pick(self._row_numbers(start, stop))
            rows = rows.with_codes(keying.codes(rows))
            before = job.ops.ordered(rows, None, layout, earlier)
            carried(earlier, start, stop, layout)
            after = before - job.ops.leave_one_out(nobody, without_key(rows), layout)
            has, segments = keying.has(rows.codes, job.formula), self._segments(start, stop)
            gained = self._by_segment(job.formula.moments(job.ops, after, job.measured), has, segments)
            sums = sums.changed(
                gained, self._by_segment(job.formula.moments(job.ops, before, job.measured), has, segments)
            )
        return sums.running()

    def _by_segment(self, moments: Moments, has: Mask, segments: NDArray[np.int32]) -> CategoryMoments:
        """Sum number, mean and squared mean of the rows' categories that count, per segment and output."""
        ops, n_segments = self.job.ops, len(self.checkpoints)
        counted = np.broadcast_to(self.job.formula.counts(moments) & has[:, None], moments.mean.shape)
        parts = []
        for column, valid in zip(moments.mean.T, counted.T, strict=True):
            means = np.where(valid, column, 0.0)
            codes = np.where(valid, segments, -1).astype(np.int32)
            layout = Layout(Window(), *(digit_window(extent) for extent in ops.extents(means, None, (1, 2))))
            cells = ops.accumulate(Rows(codes, target=means), n_segments, None, 1, 1, layout)[:-2, 0]
            parts.append([Limbs(cells[..., columns], window.low) for window, _, columns in layout.measures()])
        return CategoryMoments(*(stacked(column, axis=1) for column in zip(*parts, strict=True)))

    def __iter__(self) -> Iterator[tuple[Integers, Floats, Mask]]:
        job, layout, xp = self.job, self.job.measured.layout, self.job.ops.xp
        timed = isinstance(self.order, TimeOrder)
        earlier = [Carry.empty(keying.n, job.n_classes, layout.width, timed, xp) for keying in self.keyings]
        for start, stop in tiles(len(job.rows), job.tile):
            numbers = self._row_numbers(start, stop)
            rows, ties = job.rows.pick(numbers), self._ties(start, stop)
            begins = self.order.starts[ties] if isinstance(self.order, TimeOrder) else xp.arange(start, stop)
            at = np.searchsorted(self.checkpoints, prior_places(self.order, begins))
            total = self.total.at(at)
            seen = []
            for keying, sums, categories in zip(self.keyings, earlier, self.categories, strict=True):
                codes = keying.codes(rows)
                cells = job.ops.ordered(rows.with_codes(codes), ties, layout, sums)
                carried(sums, start, stop, layout)
                moments = job.formula.moments(job.ops, cells, job.measured)
                context = Context(total, None if categories is None else categories.at(at))
                seen.append(Seen(moments, context, keying.has(codes, job.formula)))
            root = job.formula.root(total, seen[-1].context.categories)
            if isinstance(self.order, Permutation) and start == 0 and isinstance(job.formula.prior, str):
                root[0] = mean_of_others(job, self.everything, rows)
            values, unseen = row_codes(seen, rows.codes, root, job.formula)
            if start < self.burn_in:
                values = np.where((begins < self.burn_in)[:, None], np.nan, values)
            yield numbers, values, unseen
