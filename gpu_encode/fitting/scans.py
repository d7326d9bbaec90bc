"""Scans of rows in an order, tile by tile: each row is encoded from the rows before it.

The prior of the order so far is taken at checkpoints: a row's place with all but its top nine bits cleared.  That makes
a table of a few thousand priors, at most 1/256 stale, instead of one prior for each row.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.exact import Floats, Integers, Limbs, stack
from cpu_fallback.fused_rules import CHECKPOINT_BITS
from cpu_fallback.types import CARRY_AFTER, Array, Carry, Layout, Rows, SumShape, Window, carry, digit_window
from gpu_encode.fitting.row_encodings import VisibleMoments, encode_rows
from gpu_encode.fitting.tasks import EncodingTask, LevelCodes, without_key
from gpu_encode.formulas.encoding_rule import EncodingRule, Mask
from gpu_encode.seam.ops import Ops
from gpu_encode.sums.category_sums import CategorySums, SumSpec
from gpu_encode.sums.moments import CategoryMoments, Moments

EXACT_PLACES = 1 << CHECKPOINT_BITS


@dataclass(frozen=True)
class CheckpointState:
    """Sums of the rows before each checkpoint, a place of an order at which priors are taken.

    Parameters
    ----------
    places : int64 array (checkpoints,)
    starts : int64 array or None
        Places at which ties begin, in an order in time.
    everything : int64 array (classes, width)
        Digits of all rows.
    total : Moments
        Moments of the rows before each checkpoint.
    categories : list of CategoryMoments or None
        Per level from the top, sums over the categories before each checkpoint; where a formula asks for them.
    """

    places: Integers
    starts: Array | None
    everything: Integers
    total: Moments
    categories: list[CategoryMoments | None] = field(default_factory=list)

    @classmethod
    def of(
        cls, places: Integers, starts: Array | None, sums: Integers, rule: EncodingRule, spec: SumSpec, ops: Ops
    ) -> Self:
        """Add up carried sums of the rows between the checkpoints (checkpoints, classes, width)."""
        before = np.cumsum(sums, axis=0) - sums
        return cls(places, starts, sums.sum(axis=0), rule.moments(ops, before, spec))


def floor_places(places: Integers) -> Integers:
    """Places with all but their top nine bits cleared."""
    extra = np.maximum(np.frexp(places.astype(np.float64))[1].astype(np.int64) - CHECKPOINT_BITS, 0)
    return (places >> extra) << extra


def prior_places(starts: Array | None, begins: Integers) -> Integers:
    """Place up to which a row's prior is taken: at most 1/256 before what it sees, and never inside a tie.

    `starts` are the places at which ties begin, in an order in time.
    """
    floored = floor_places(begins)
    if starts is None:
        return floored
    back = starts[np.searchsorted(starts, floored, side="right") - 1]
    return np.where((back == 0) & (begins > 0), begins, back)


def checkpoint_places(starts: Array | None, n_rows: int, ops: Ops) -> Integers:
    """Sorted places at which priors are taken, 0 among them."""
    if starts is not None:
        return np.unique(np.append(prior_places(starts, starts), 0))
    places = [np.arange(min(EXACT_PLACES, max(n_rows, 1)))]
    for bits in range(CHECKPOINT_BITS, max(n_rows, 1).bit_length()):
        step = 1 << (bits + 1 - CHECKPOINT_BITS)
        places.append(np.arange(1 << bits, min(2 << bits, n_rows), step))
    return ops.to_device(np.concatenate(places))


def find_segments(checkpoints: Integers, places: Integers) -> NDArray[np.int32]:
    """Give the segment of each place: the number of the last checkpoint at or before it."""
    return (np.searchsorted(checkpoints, places, side="right") - 1).astype(np.int32)


class Tile(NamedTuple):
    """Rows at neighbouring places of an order, at least one.

    Parameters
    ----------
    numbers : int64 array, or slice
        Where the results of these rows go.
    rows : Rows
    begins : int64 array (rows,)
        Place of each row; of rows of equal time the first place of them all.
    ties : int64 array or None
        Number of each row's time, in an order in time.
    """

    numbers: Any
    rows: Rows
    begins: Integers
    ties: Array | None


class SequentialScan:
    """Encodes rows in their order.

    Parameters
    ----------
    task : EncodingTask
        Its rows do not matter.
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
        self.levels = task.level_codes()
        self.carries = [carry_of(task, level, before.starts is not None, earlier) for level in self.levels]
        self.n_encoded, self.at_start = 0, earlier is None

    def encode(self, tile: Tile) -> tuple[Floats, Mask]:
        """Encode the next rows, and say which rows' categories are unseen."""
        task, rows, begins = self.task, tile.rows, tile.begins
        checkpoints = np.searchsorted(self.before.places, prior_places(self.before.starts, begins))
        total = self.before.total.at(checkpoints)
        visible = self._visible_moments(tile, checkpoints, total)
        root = task.rule.find_prior(total, visible[-1].context.categories)
        if self.at_start and self.shuffled and task.rule.needs_rows:
            root[0] = root_of_others(task, self.before.everything, rows)
        self.at_start = False
        values, unseen = encode_rows(visible, rows.codes, root, task.rule)
        if self.burn_in and int(begins[0]) < self.burn_in:
            values = np.where((begins < self.burn_in)[:, None], np.nan, values)
        return values, unseen

    def _visible_moments(self, tile: Tile, checkpoints: Integers, total: Moments) -> list[VisibleMoments]:
        """Give what each row sees at each level, and add the rows to the sums that later rows see."""
        task, layout = self.task, self.task.spec.layout
        start, stop = self.n_encoded, self.n_encoded + len(tile.rows)
        visible: list[VisibleMoments] = []
        categories = self.before.categories or [None] * len(self.levels)
        for level, sums, of_level in zip(self.levels, self.carries, categories, strict=True):
            codes = level.codes(tile.rows)
            accumulators = task.ops.ordered(tile.rows.with_codes(codes), tile.ties, layout, sums)
            carry_sums(sums, start, stop, layout)
            moments = task.rule.moments(task.ops, accumulators, task.spec)
            of_categories = None if of_level is None else of_level.at(checkpoints)
            context = task.rule.context(task.ops, total, of_categories, not visible)
            visible.append(VisibleMoments(moments, context, level.has(codes, task.rule)))
        self.n_encoded = stop
        return visible


class SegmentMeanDeltas:
    """Changes of the sums over categories within each segment: each row changes the mean, or other number, of its own.

    Parameters
    ----------
    task : EncodingTask
        Its rows do not matter.
    checkpoints : int64 array
    earlier : CategorySums, optional
        Sums of all rows before the first.

    Attributes
    ----------
    sums : list of CategoryMoments
        Per level from the top, the changes within each segment.
    """

    def __init__(self, task: EncodingTask, checkpoints: Integers, earlier: CategorySums | None = None) -> None:
        self.task, self.checkpoints, self.levels = task, checkpoints, task.level_codes()
        self.carries = [carry_of(task, level, False, earlier) for level in self.levels]
        nobody = task.ops.zeros((1, task.n_classes, task.spec.layout.width), np.int64)
        nothing = task.rule.moments(task.ops, nobody, task.spec)
        shape = (len(checkpoints), task.rule.statistic.of_each_category(nothing).shape[-1])
        self.sums = [CategoryMoments.none(task.ops, shape) for _ in self.levels]
        self.n_added = 0

    def add(self, tiles: Iterable[Tile]) -> None:
        """Add the next rows in the order."""
        for tile in tiles:
            segments = find_segments(self.checkpoints, tile.begins)
            pairs = zip(self.levels, self.carries, self.sums, strict=True)
            self.sums = [self._add_level(level, running, sums, tile, segments) for level, running, sums in pairs]
            self.n_added += len(tile.rows)

    def _add_level(
        self, level: LevelCodes, running: Carry, sums: CategoryMoments, tile: Tile, segments: NDArray[np.int32]
    ) -> CategoryMoments:
        """Give the changes at one level with those of the next rows."""
        task, layout = self.task, self.task.spec.layout
        rows = tile.rows.with_codes(level.codes(tile.rows))
        nobody = task.ops.zeros((3, task.n_classes, layout.width), np.int64)
        before = task.ops.ordered(rows, None, layout, running)
        carry_sums(running, self.n_added, self.n_added + len(rows), layout)
        after = before - task.ops.leave_one_out(nobody, without_key(rows), layout)
        has = level.has(rows.codes, task.rule)
        gained, lost = (
            self._by_segment(task.rule.moments(task.ops, accumulators, task.spec), has, segments)
            for accumulators in (after, before)
        )
        return sums.changed(gained, lost)

    def _by_segment(self, moments: Moments, has: Mask, segments: NDArray[np.int32]) -> CategoryMoments:
        """Sum the numbers of the rows' categories that count, and their squares, per segment and number."""
        ops, statistic, n_segments = self.task.ops, self.task.rule.statistic, len(self.checkpoints)
        numbers, weights = statistic.of_each_category(moments), statistic.category_weights(moments)
        counted = (self.task.rule.which_count(moments) & has[:, None]) & np.isfinite(numbers)
        by_number = []
        for place, (column, valid) in enumerate(zip(numbers.T, counted.T, strict=True)):
            values = np.where(valid, column, 0.0)
            weight = None if weights is None else np.where(valid, weights[:, place], 0.0)
            codes = np.where(valid, segments, -1).astype(np.int32)
            powers = (1, 2) if weight is None else (0, 1, 2)
            extents = [digit_window(extent) for extent in ops.extents(values, weight, powers)]
            layout = Layout(*extents) if weight is not None else Layout(Window(), *extents)
            rows = Rows(codes, target=values, weight=weight)
            accumulators = ops.accumulate(rows, SumShape(n_segments, layout=layout))[:-2, 0]
            by_number.append(
                [Limbs(accumulators[..., columns], window.low) for window, _, columns in layout.measures()]
            )
        return CategoryMoments(*(stack(column, axis=1) for column in zip(*by_number, strict=True)))


def carry_of(task: EncodingTask, level: LevelCodes, ties: bool, earlier: CategorySums | None) -> Carry:
    """Sums of one level before the first row to come."""
    layout = task.spec.layout
    start = Carry.empty(level.n, task.n_classes, layout.width, ties, task.ops.xp)
    if earlier is None:
        return start
    start.sums[...] = sums_of_level(task, level, earlier)
    return start


def sums_of_level(task: EncodingTask, level: LevelCodes, sums: CategorySums) -> Integers:
    """Give the digits of one level, in the task's layout, of sums of the categories."""
    whole = sums.to_device(task.ops)
    if level.level is not None:
        whole = whole.sum_by_parent(task.ops, level.level.of_leaf, level.n)
    digits: Integers = whole.in_layout(task.spec.layout)[:, 0]
    return digits


def carry_sums(sums: Carry, start: int, stop: int, layout: Layout) -> None:
    """Carry the digits of the sums so far wherever rows [start, stop) go past the room that an int64 has for them."""
    if start // CARRY_AFTER < stop // CARRY_AFTER:
        carry(sums.sums, layout)
        if sums.at_tie.size:
            carry(sums.at_tie, layout)


def root_of_others(task: EncodingTask, everything: Integers, rows: Rows) -> Floats:
    """Prior of the first row of a random order: that of all other rows; `everything` are the sums of all rows."""
    accumulators = task.ops.zeros((3, *everything.shape), np.int64)
    accumulators[0] = everything
    others = task.ops.leave_one_out(accumulators, without_key(rows.block(0, 1)), task.spec.layout)
    visible = task.rule.moments(task.ops, others, task.spec)
    root: Floats = task.rule.statistic.find_prior(visible)[0] if task.rule.prior is None else visible.mean[0]
    return root
