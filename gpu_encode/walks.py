"""Rows in an order, some at a time: what a category has summed up goes on from one tile to the next."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.exact import Floats, Integers, Limbs, stacked
from gpu_encode.cells import Array, Carry, Layout, Rows, Window, digit_window
from gpu_encode.checkpoints import Before, prior_places, segments_of
from gpu_encode.formula import Mask
from gpu_encode.jobs import Job, Keying, without_key
from gpu_encode.moments import CategoryMoments, Moments
from gpu_encode.readouts.base import Context
from gpu_encode.row_codes import Seen, row_codes
from gpu_encode.statistics import CARRY_AFTER, Statistics, carry


class Walk:
    """Codes of rows in their order.

    Parameters
    ----------
    job : Job
        Of which rows does not matter.
    before : Before
    shuffled : bool
        Whether the order is a random one, whose first row gets the mean of all others.
    burn_in : int
        Rows at the first `burn_in` places get NaN.
    earlier : Statistics, optional
        Sums of all rows before the first.
    """

    def __init__(
        self, job: Job, before: Before, shuffled: bool, burn_in: int, earlier: Statistics | None = None
    ) -> None:
        self.job, self.before, self.shuffled, self.burn_in = job, before, shuffled, burn_in
        self.keyings = job.keyings()
        self.carries = [carry_of(job, keying, before.starts is not None, earlier) for keying in self.keyings]
        self.walked, self.at_start = 0, earlier is None

    def __call__(self, rows: Rows, begins: Integers, ties: Array | None) -> tuple[Floats, Mask]:
        """Give the codes of the next rows, and which rows' categories are unseen.

        Parameters
        ----------
        rows : Rows
            At least one.
        begins : int64 array (rows,)
            Place of each row; of rows of equal time the first place of them all.
        ties : int64 array or None
            Number of each row's time.
        """
        job, layout = self.job, self.job.measured.layout
        at = np.searchsorted(self.before.places, prior_places(self.before.starts, begins))
        total = self.before.total.at(at)
        categories = self.before.categories or [None] * len(self.keyings)
        seen = []
        for keying, sums, own in zip(self.keyings, self.carries, categories, strict=True):
            codes = keying.codes(rows)
            cells = job.ops.ordered(rows.with_codes(codes), ties, layout, sums)
            carried(sums, self.walked, self.walked + len(rows), layout)
            moments = job.formula.moments(job.ops, cells, job.measured)
            context = Context(total, None if own is None else own.at(at))
            seen.append(Seen(moments, context, keying.has(codes, job.formula)))
        self.walked += len(rows)
        root = job.formula.root(total, seen[-1].context.categories)
        if self.at_start and self.shuffled and job.formula.needs_rows:
            root[0] = root_of_others(job, self.before.everything, rows)
        self.at_start = False
        values, unseen = row_codes(seen, rows.codes, root, job.formula)
        if self.burn_in and int(begins[0]) < self.burn_in:
            values = np.where((begins < self.burn_in)[:, None], np.nan, values)
        return values, unseen


class Gains:
    """Sums over the categories of one level before each checkpoint, by adding each row's change of its category's mean.

    Parameters
    ----------
    job : Job
    keying : Keying
    checkpoints : int64 array
    earlier : Statistics, optional
        Sums of all rows before the first.
    """

    def __init__(self, job: Job, keying: Keying, checkpoints: Integers, earlier: Statistics | None = None) -> None:
        self.job, self.keying, self.checkpoints = job, keying, checkpoints
        self.carry = carry_of(job, keying, False, earlier)
        self.sums = CategoryMoments.none(job.ops, (len(checkpoints), job.n_classes - job.measured.first_output))
        self.walked = 0

    def add(self, rows: Rows, begins: Integers) -> None:
        """Add the next rows in the order."""
        job, layout = self.job, self.job.measured.layout
        rows = rows.with_codes(self.keying.codes(rows))
        nobody = job.ops.zeros((3, job.n_classes, layout.width), np.int64)
        before = job.ops.ordered(rows, None, layout, self.carry)
        carried(self.carry, self.walked, self.walked + len(rows), layout)
        self.walked += len(rows)
        after = before - job.ops.leave_one_out(nobody, without_key(rows), layout)
        has, segments = self.keying.has(rows.codes, job.formula), segments_of(self.checkpoints, begins)
        gained, lost = (
            self._by_segment(job.formula.moments(job.ops, cells, job.measured), has, segments)
            for cells in (after, before)
        )
        self.sums = self.sums.changed(gained, lost)

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


def carry_of(job: Job, keying: Keying, ties: bool, earlier: Statistics | None) -> Carry:
    """Sums of one level before the first row to come."""
    layout = job.measured.layout
    start = Carry.empty(keying.n, job.n_classes, layout.width, ties, job.ops.xp)
    if earlier is None:
        return start
    whole = replace(earlier, cells=job.ops.to_device(earlier.cells))
    if keying.level is not None:
        whole = whole.grouped(job.ops, keying.level.of_leaf, keying.n)
    start.sums[...] = whole.in_layout(layout)[:, 0]
    return start


def carried(sums: Carry, start: int, stop: int, layout: Layout) -> None:
    """Carry the digits of the sums so far wherever rows [start, stop) go past the room that an int64 has for them."""
    if start // CARRY_AFTER < stop // CARRY_AFTER:
        carry(sums.sums, layout)
        if sums.at_tie.size:
            carry(sums.at_tie, layout)


def root_of_others(job: Job, everything: Integers, rows: Rows) -> Floats:
    """Prior of the first row of a random order: that of all other rows (their mean), of whose sums all are given."""
    cells = job.ops.zeros((3, *everything.shape), np.int64)
    cells[0] = everything
    others = job.ops.leave_one_out(cells, without_key(rows.block(0, 1)), job.measured.layout)
    seen = job.formula.moments(job.ops, others, job.measured)
    root: Floats = job.formula.readout.root(seen)[0] if job.formula.prior is None else seen.mean[0]
    return root
