"""Rows in an order, some at a time: what a category has summed up goes on from one tile to the next."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.exact import Floats, Integers, Limbs, stacked
from cpu_fallback.types import Array, Carry, Layout, Rows, Window, digit_window
from gpu_encode.formulas.encoding_rule import Mask
from gpu_encode.formulas.statistic import Context
from gpu_encode.sums.category_sums import CARRY_AFTER, CategorySums, carry
from gpu_encode.sums.moments import CategoryMoments, Moments
from gpu_encode.training.checkpoints import CheckpointState, prior_places, segments_of
from gpu_encode.training.row_encodings import VisibleMoments, row_codes
from gpu_encode.training.tasks import EncodingTask, LevelCodes, without_key


class SequentialScan:
    """Codes of rows in their order.

    Parameters
    ----------
    task : EncodingTask
        Of which rows does not matter.
    before : CheckpointState
    shuffled : bool
        Whether the order is a random one, whose first row gets the mean of all others.
    burn_in : int
        Rows at the first `burn_in` places get NaN.
    earlier : CategorySums, optional
        Sums of all rows before the first.
    """

    def __init__(
        self,
        task: EncodingTask,
        before: CheckpointState,
        shuffled: bool,
        burn_in: int,
        earlier: CategorySums | None = None,
    ) -> None:
        self.task, self.before, self.shuffled, self.burn_in = task, before, shuffled, burn_in
        self.keyings = task.keyings()
        self.carries = [carry_of(task, keying, before.starts is not None, earlier) for keying in self.keyings]
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
        task, layout = self.task, self.task.measured.layout
        at = np.searchsorted(self.before.places, prior_places(self.before.starts, begins))
        total = self.before.total.at(at)
        categories = self.before.categories or [None] * len(self.keyings)
        seen = []
        for keying, sums, own in zip(self.keyings, self.carries, categories, strict=True):
            codes = keying.codes(rows)
            accumulators = task.ops.ordered(rows.with_codes(codes), ties, layout, sums)
            carried(sums, self.walked, self.walked + len(rows), layout)
            moments = task.rule.moments(task.ops, accumulators, task.measured)
            context = Context(total, None if own is None else own.at(at))
            seen.append(VisibleMoments(moments, context, keying.has(codes, task.rule)))
        self.walked += len(rows)
        root = task.rule.find_prior(total, seen[-1].context.categories)
        if self.at_start and self.shuffled and task.rule.needs_rows:
            root[0] = root_of_others(task, self.before.everything, rows)
        self.at_start = False
        values, unseen = row_codes(seen, rows.codes, root, task.rule)
        if self.burn_in and int(begins[0]) < self.burn_in:
            values = np.where((begins < self.burn_in)[:, None], np.nan, values)
        return values, unseen


class SegmentMeanDeltas:
    """Sums over the categories of one level before each checkpoint, by adding each row's change of its category's mean.

    Parameters
    ----------
    task : EncodingTask
    keying : LevelCodes
    checkpoints : int64 array
    earlier : CategorySums, optional
        Sums of all rows before the first.
    """

    def __init__(
        self, task: EncodingTask, keying: LevelCodes, checkpoints: Integers, earlier: CategorySums | None = None
    ) -> None:
        self.task, self.keying, self.checkpoints = task, keying, checkpoints
        self.carry = carry_of(task, keying, False, earlier)
        self.sums = CategoryMoments.none(task.ops, (len(checkpoints), task.n_classes - task.measured.first_output))
        self.walked = 0

    def add(self, rows: Rows, begins: Integers) -> None:
        """Add the next rows in the order."""
        task, layout = self.task, self.task.measured.layout
        rows = rows.with_codes(self.keying.codes(rows))
        nobody = task.ops.zeros((3, task.n_classes, layout.width), np.int64)
        before = task.ops.ordered(rows, None, layout, self.carry)
        carried(self.carry, self.walked, self.walked + len(rows), layout)
        self.walked += len(rows)
        after = before - task.ops.leave_one_out(nobody, without_key(rows), layout)
        has, segments = self.keying.has(rows.codes, task.rule), segments_of(self.checkpoints, begins)
        gained, lost = (
            self._by_segment(task.rule.moments(task.ops, accumulators, task.measured), has, segments)
            for accumulators in (after, before)
        )
        self.sums = self.sums.changed(gained, lost)

    def _by_segment(self, moments: Moments, has: Mask, segments: NDArray[np.int32]) -> CategoryMoments:
        """Sum number, mean and squared mean of the rows' categories that count, per segment and output."""
        ops, n_segments = self.task.ops, len(self.checkpoints)
        counted = np.broadcast_to(self.task.rule.which_count(moments) & has[:, None], moments.mean.shape)
        parts = []
        for column, valid in zip(moments.mean.T, counted.T, strict=True):
            means = np.where(valid, column, 0.0)
            codes = np.where(valid, segments, -1).astype(np.int32)
            layout = Layout(Window(), *(digit_window(extent) for extent in ops.extents(means, None, (1, 2))))
            accumulators = ops.accumulate(Rows(codes, target=means), n_segments, None, 1, 1, layout)[:-2, 0]
            parts.append([Limbs(accumulators[..., columns], window.low) for window, _, columns in layout.measures()])
        return CategoryMoments(*(stacked(column, axis=1) for column in zip(*parts, strict=True)))


def carry_of(task: EncodingTask, keying: LevelCodes, ties: bool, earlier: CategorySums | None) -> Carry:
    """Sums of one level before the first row to come."""
    layout = task.measured.layout
    start = Carry.empty(keying.n, task.n_classes, layout.width, ties, task.ops.xp)
    if earlier is None:
        return start
    whole = replace(earlier, accumulators=task.ops.to_device(earlier.accumulators))
    if keying.level is not None:
        whole = whole.grouped(task.ops, keying.level.of_leaf, keying.n)
    start.sums[...] = whole.in_layout(layout)[:, 0]
    return start


def carried(sums: Carry, start: int, stop: int, layout: Layout) -> None:
    """Carry the digits of the sums so far wherever rows [start, stop) go past the room that an int64 has for them."""
    if start // CARRY_AFTER < stop // CARRY_AFTER:
        carry(sums.sums, layout)
        if sums.at_tie.size:
            carry(sums.at_tie, layout)


def root_of_others(task: EncodingTask, everything: Integers, rows: Rows) -> Floats:
    """Prior of the first row of a random order: that of all other rows (their mean), of whose sums all are given."""
    accumulators = task.ops.zeros((3, *everything.shape), np.int64)
    accumulators[0] = everything
    others = task.ops.leave_one_out(accumulators, without_key(rows.block(0, 1)), task.measured.layout)
    seen = task.rule.moments(task.ops, others, task.measured)
    root: Floats = task.rule.statistic.find_prior(seen)[0] if task.rule.prior is None else seen.mean[0]
    return root
