"""Ordered target statistics: every row is encoded from the rows before it, in random orders, in time, or in X.

A row's prior comes from the rows before a checkpoint: the row's rank with all but its top nine bits cleared.  So there
is a table of a few thousand priors instead of one for each row, and at most 1/256 of the earlier rows are left out.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.decay import blocks_of, room_for_two_blocks
from cpu_fallback.exact import Floats, Integers
from cpu_fallback.fused_rules import CHECKPOINT_BITS, RowEncodings
from cpu_fallback.row_numbers import Order, Permutation, RowOrder, TimeOrder
from cpu_fallback.types import CARRY_AFTER, MISSING, Array, Carry, Layout, Rows, SumShape, carry
from gpu_encode.fitting.tasks import EncodingTask, LevelCodes, TiledOutput, without_key
from gpu_encode.formulas.encoding_rule import EncodingRule, Mask, VisibleMoments, encode_tile
from gpu_encode.schemes.plans import OrderedPlan
from gpu_encode.seam.ops import Ops, host, tiles
from gpu_encode.sums.category_sums import CategorySums, SumSpec
from gpu_encode.sums.decay import one_block_later, seen_from
from gpu_encode.sums.moments import CategoryMoments, Moments

EXACT_RANKS = 1 << CHECKPOINT_BITS


def ordered(task: EncodingTask, plan: OrderedPlan, out: Array, want_unseen: bool) -> tuple[CategorySums, Mask | None]:
    """Encode each row from the rows before it.

    Parameters
    ----------
    task : EncodingTask
    plan : OrderedPlan
    out : array (rows, outputs * columns)
        One column for each output, or for each output and order if orders are not averaged; NaN in the burn-in.
    want_unseen : bool

    Returns
    -------
    statistics : CategorySums
        Sums of all rows, one view.
    unseen : bool array (rows,) or None
        True for rows whose category was unseen in every order; None unless wanted.
    """
    n, n_orders = len(task.rows), len(plan.orders)
    averaged = plan.average and n_orders > 1
    every = task.ops.empty((n, task.n_outputs * n_orders), np.float64, "F") if averaged else out
    output, unseen = TiledOutput(every, task.ops), task.ops.xp.ones(n, np.bool_) if want_unseen else None
    statistics = None
    for number, order in enumerate(plan.orders):
        columns = range(number, task.n_outputs * n_orders, n_orders)
        all_rows = in_one_pass(task, order, plan.burn_in, output, columns, unseen)
        statistics = statistics or all_rows
        if all_rows is None:
            by_tiles(task, order, plan.burn_in, output, columns, unseen)
    output.close()
    if averaged:
        average_orders(task, every, n_orders, out)
    return statistics or task.measure(None, 1), unseen


def ordered_by_age(task: EncodingTask, plan: OrderedPlan, out: Array, want_unseen: bool) -> Mask | None:
    """Encode each row from the rows before it, whose weights are those of their ages; otherwise as `ordered`."""
    (order,) = plan.orders
    output, unseen = TiledOutput(out, task.ops), task.ops.xp.ones(len(task.rows), np.bool_) if want_unseen else None
    assert isinstance(order, TimeOrder)
    if not by_age_in_one_pass(task, plan, order, output, unseen):
        scan = AgeingScan(task, plan, {})
        for tile in tiles_in_order(task, order, task.tile):
            values, missing = scan.encode(tile)
            numbers = tile.numbers[scan.which_stay(tile)]
            output.put(numbers, range(task.n_outputs), values)
            if unseen is not None:
                unseen.put(numbers, missing)
    output.close()
    return unseen


def by_tiles(
    task: EncodingTask, order: Order, burn_in: int, output: TiledOutput, columns: range, unseen: Mask | None
) -> None:
    """Encode the rows in one order, tile by tile."""
    scan = SequentialScan(task, state_at_checkpoints(task, order), isinstance(order, Permutation), burn_in)
    for tile in tiles_in_order(task, order, task.tile):
        values, missing = scan.encode(tile)
        output.put(tile.numbers, columns, values)
        if unseen is not None:
            unseen.put(tile.numbers, unseen[tile.numbers] & missing)


def in_one_pass(
    task: EncodingTask, order: Order, burn_in: int, output: TiledOutput, columns: range, unseen: Mask | None
) -> CategorySums | None:
    """Encode the rows of an order by one pass of the backend, with the same bits; None if it has no such pass."""
    fused, fused_rule = task.ops.fused, task.fused_rule()
    if fused is None or fused_rule is None or len(task.rows) > fused.most_ordered_rows(task.spec.layout):
        return None
    out = RowEncodings(output.matrix[:, columns.start :: columns.step], unseen)
    shape = SumShape(task.key.n_categories, 1, task.n_classes, task.spec.layout)
    written = fused.ordered_encodings(task.rows, shape, order, burn_in, fused_rule, out)
    if written is None:
        return None
    output.count(written.lost)
    if isinstance(order, Permutation) and fused_rule.by_mean and not burn_in:
        encode_first(task, order, written.accumulators, output, columns)
    return CategorySums(written.accumulators[:, None], task.spec, len(task.rows))


def encode_first(task: EncodingTask, order: Permutation, sums: Array, output: TiledOutput, columns: range) -> None:
    """Encode the first row of a random order, whose prior is that of all other rows, from the sums of all rows.

    The host does this, since on a GPU each step for the single row would be a kernel launch.
    """
    ops = host(1)
    number = int(ops.rows_at(order, 0, 1)[0])
    row = task.rows.block(number, number + 1)
    parts = row.codes, row.classes, row.target, row.weight
    known = Rows(*(None if part is None else task.ops.to_host(part) for part in parts))  # type: ignore[arg-type]
    everything = task.ops.to_host(task.ops.totals(sums))
    root = root_of_others(replace(task, ops=ops, rows=known), everything, known)[None]
    no_category = task.rule.missing != "category" and bool((known.codes == MISSING)[0])
    values = task.rule.encode_missing(root) if no_category else task.rule.encode_unseen(root)
    output.put_row(number, columns, values[0], ops)


def by_age_in_one_pass(
    task: EncodingTask, plan: OrderedPlan, order: TimeOrder, output: TiledOutput, unseen: Mask | None
) -> bool:
    """Encode the rows by one pass of the backend, with the same bits; tell whether it has such a pass."""
    encode, rule = getattr(task.ops.fused, "encodings_by_age", None), task.fused_rule()
    if encode is None or rule is None or len(order.rows) > CARRY_AFTER:
        return False
    shape = SumShape(task.key.n_categories, 1, task.n_classes, task.spec.layout)
    lost = encode(task.rows, shape, order, plan.burn_in, rule, RowEncodings(output.matrix, unseen))
    output.count(lost or 0)
    return lost is not None


def average_orders(task: EncodingTask, every: Floats, n_orders: int, out: Array) -> None:
    """Write the average over the orders, tile by tile."""
    whole = TiledOutput(out, task.ops)
    for start, stop in tiles(len(task.rows), task.tile):
        by_output = every[start:stop].T.reshape(task.n_outputs, n_orders, stop - start)
        whole.write(start, stop, np.stack([average(orders) for orders in by_output], axis=1))
    whole.close()


def average(columns: Floats) -> Floats:
    """Give the mean over the orders, without NaN; the mean of equal encodings is exactly this encoding."""
    if len(columns) == 1:
        only: Floats = columns[0]
        return only
    known = ~np.isnan(columns)
    first = columns[0]
    for column in columns[1:]:
        first = np.where(np.isnan(first), column, first)
    shift = np.zeros_like(first)
    for column, valid in zip(columns, known, strict=True):
        # The difference of equal infinite encodings is NaN, not 0, but they are equal, too.
        with np.errstate(invalid="ignore"):
            shift += np.where(valid & (column != first), column - first, 0.0)
    mean: Floats = first + shift / np.maximum(known.sum(axis=0), 1)
    return mean


class Tile(NamedTuple):
    """Rows of neighbouring ranks in an order, at least one.

    Parameters
    ----------
    numbers : int64 array, or slice
        Row numbers, to which the results are written.
    rows : Rows
    begins : int64 array (rows,)
        Rank of each row; rows of equal time all have the rank of the first of them.
    ties : int64 array or None
        Number of each row's time, if the order is one of time.
    """

    numbers: Any
    rows: Rows
    begins: Integers
    ties: Array | None


def tiles_in_order(task: EncodingTask, order: Order, size: int) -> Iterator[Tile]:
    """Give the rows in an order, tile by tile."""
    windowed = isinstance(order, TimeOrder) and order.firsts is not None
    order = with_leaving(order) if isinstance(order, TimeOrder) else order
    n_rows = len(order.rows) if isinstance(order, TimeOrder) else len(task.rows)
    for start, stop in tiles(n_rows, size):
        ranks = task.ops.xp.arange(start, stop)
        if isinstance(order, TimeOrder):
            numbers, ties = order.rows[start:stop], order.ties[start:stop]
            rows = task.rows.pick(numbers)
            yield Tile(numbers, signed(rows, ties) if windowed else rows, order.starts[ties], ties)
        else:
            numbers = ranks if isinstance(order, RowOrder) else task.ops.rows_at(order, start, stop)
            yield Tile(numbers, task.rows.pick(numbers), ranks, None)


def with_leaving(order: TimeOrder) -> TimeOrder:
    """Give the order of a window, with each row a second time, when it leaves; other orders are not changed.

    Time t becomes number 2 t; rows that leave before time t have number 2 t - 1.  `starts` does not count these.
    """
    rows, ties, starts, firsts = order.rows, order.ties, order.starts, order.firsts
    if firsts is None or not len(rows):
        return order
    # Rows leave the window in the order in which they came.
    n_leaving, leaves = int(starts[firsts[-1]]), np.cumsum(np.bincount(firsts, minlength=len(firsts)))
    ties = np.concatenate([2 * ties, 2 * leaves[ties[:n_leaving]] - 1])
    by_tie = np.argsort(ties, kind="stable")
    return TimeOrder(np.concatenate([rows, rows[:n_leaving]])[by_tie], ties[by_tie], np.repeat(starts, 2))


def signed(rows: Rows, ties: Array) -> Rows:
    """Give rows of a window with signed weights: rows with odd ties leave, so they are subtracted."""
    sign = 1 - 2 * (ties & 1)
    return replace(rows, weight=sign if rows.weight is None else rows.weight * sign)


@dataclass(frozen=True)
class CheckpointState:
    """Sums of the rows before each checkpoint; a checkpoint is a rank for which there is a prior.

    Parameters
    ----------
    ranks : int64 array (checkpoints,)
    starts : int64 array or None
        Ranks at which ties begin, if the order is one of time.
    everything : int64 array (classes, width)
        Digits of the sums of all rows.
    total : Moments
        Moments of the rows before each checkpoint.
    categories : list of CategoryMoments or None
        For each level from the top, sums over the categories before each checkpoint; None unless a formula needs them.
    """

    ranks: Integers
    starts: Array | None
    everything: Integers
    total: Moments
    categories: list[CategoryMoments | None] = field(default_factory=list)

    @classmethod
    def of(
        cls, ranks: Integers, starts: Array | None, sums: Integers, rule: EncodingRule, spec: SumSpec, ops: Ops
    ) -> Self:
        """Add up the carried sums of the rows between checkpoints (checkpoints, classes, width)."""
        before = np.cumsum(sums, axis=0) - sums
        return cls(ranks, starts, sums.sum(axis=0), rule.moments(ops, before, spec))


def floor_ranks(ranks: Integers) -> Integers:
    """Clear all but the top nine bits of ranks."""
    extra = np.maximum(np.frexp(ranks.astype(np.float64))[1].astype(np.int64) - CHECKPOINT_BITS, 0)
    return (ranks >> extra) << extra


def prior_ranks(starts: Array | None, begins: Integers) -> Integers:
    """Give the checkpoint of each row: only rows before this rank count for its prior.  No checkpoint is inside a tie.

    At most 1/256 of the rows before a row lie between its checkpoint and itself; in an order of time, the tie at the
    checkpoint is left out, too.  `starts` are the ranks at which ties begin, if the order is one of time.
    """
    floored = floor_ranks(begins)
    if starts is None:
        return floored
    back = starts[np.searchsorted(starts, floored, side="right") - 1]
    return np.where((back == 0) & (begins > 0), begins, back)


def checkpoint_ranks(starts: Array | None, n_rows: int, ops: Ops) -> Integers:
    """Give the sorted ranks of all checkpoints, beginning with 0."""
    if starts is not None:
        return np.unique(np.append(prior_ranks(starts, starts), 0))
    ranks = [np.arange(min(EXACT_RANKS, max(n_rows, 1)))]
    for bits in range(CHECKPOINT_BITS, max(n_rows, 1).bit_length()):
        step = 1 << (bits + 1 - CHECKPOINT_BITS)
        ranks.append(np.arange(1 << bits, min(2 << bits, n_rows), step))
    return ops.to_device(np.concatenate(ranks))


def find_segments(checkpoints: Integers, ranks: Integers) -> NDArray[np.int32]:
    """Give the segment of each rank: the number of the last checkpoint at or before it."""
    return (np.searchsorted(checkpoints, ranks, side="right") - 1).astype(np.int32)


def state_at_checkpoints(task: EncodingTask, order: Order) -> CheckpointState:
    """Sum the rows before each checkpoint of an order; if nothing depends on these sums, there is one of no rows."""
    starts = order.starts if isinstance(order, TimeOrder) else None
    if not task.rule.needs_everything:
        nothing = task.ops.zeros((1, task.n_classes, task.spec.layout.width), np.int64)
        return CheckpointState.of(task.ops.zeros(1, np.int64), starts, nothing, task.rule, task.spec, task.ops)
    ranks = checkpoint_ranks(starts, len(task.rows), task.ops)
    sums = sums_by_segment(task, order, ranks)
    state = CheckpointState.of(ranks, starts, sums, task.rule, task.spec, task.ops)
    if not task.rule.needs_categories:
        return state
    deltas = SegmentMeanDeltas(task, ranks)
    deltas.add(tiles_in_order(task, order, task.tile))
    return replace(state, categories=[sums.running() for sums in deltas.sums])


def sums_by_segment(task: EncodingTask, order: Order, checkpoints: Integers) -> Integers:
    """Sum the rows between checkpoints: digits (checkpoints, classes, width)."""
    n_segments, layout, n_rows = len(checkpoints), task.spec.layout, 0
    sums = task.ops.zeros((n_segments, task.n_classes, layout.width), np.int64)
    for tile in tiles_in_order(task, order, task.ops.TILE):
        rows = tile.rows.with_codes(find_segments(checkpoints, tile.begins))
        sums += task.ops.accumulate(rows, SumShape(n_segments, 1, task.n_classes, layout))[:-2, 0]
        start, n_rows = n_rows, n_rows + len(rows)
        if start // CARRY_AFTER < n_rows // CARRY_AFTER:
            # Rows of one time are one segment, however many they are, so that digits may need a carry.
            carry(sums, layout)
    carry(sums, layout)
    return sums


class SequentialScan:
    """Encodes rows in their order.

    Parameters
    ----------
    task : EncodingTask
        The rows of the task are not used.
    before : CheckpointState
    shuffled : bool
        Whether the order is random, so that the prior of its first row is the mean of all other rows.
    burn_in : int
        Rows at the first `burn_in` ranks get NaN.
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
        """Encode the next rows, and tell which rows' categories are unseen."""
        task, rows, begins = self.task, tile.rows, tile.begins
        if task.rule.needs_everything:
            checkpoints = find_segments(self.before.ranks, prior_ranks(self.before.starts, begins))
            total = self.before.total.at(checkpoints)
        else:
            checkpoints, total = task.ops.zeros(len(rows), np.int32), self.before.total.at(slice(0, 1))
        visible = self._visible_moments(tile, checkpoints, total)
        root = task.rule.find_prior(total, visible[-1].context.categories)
        if len(root) < len(rows):
            root = np.repeat(root, len(rows), axis=0)
        if self.at_start and self.shuffled and task.rule.needs_rows:
            root[0] = root_of_others(task, self.before.everything, rows)
        self.at_start = False
        values, unseen = encode_tile(visible, rows.codes, root, task.rule)
        if self.burn_in and int(begins[0]) < self.burn_in:
            values = np.where((begins < self.burn_in)[:, None], np.nan, values)
        return values, unseen

    def _visible_moments(self, tile: Tile, checkpoints: Array, total: Moments) -> list[VisibleMoments]:
        """Give the moments that each row sees at each level, and add the rows to the sums that later rows see."""
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
            context = task.rule.context(total, of_categories, not visible)
            visible.append(VisibleMoments(moments, context, level.has(codes, task.rule)))
        self.n_encoded = stop
        return visible


def root_of_others(task: EncodingTask, everything: Integers, rows: Rows) -> Floats:
    """Give the prior of the first row of a random order, from all other rows; `everything` are the sums of all rows."""
    accumulators = task.ops.zeros((3, *everything.shape), np.int64)
    accumulators[0] = everything
    others = task.ops.leave_one_out(accumulators, without_key(rows.block(0, 1)), task.spec.layout)
    visible = task.rule.moments(task.ops, others, task.spec)
    root: Floats = task.rule.statistic.find_prior(visible)[0] if task.rule.prior is None else visible.mean[0]
    return root


class AgeingScan:
    """Encodes rows in order of time, each from the rows before it, weighted by age; otherwise as `SequentialScan`.

    Parameters
    ----------
    task : EncodingTask
        The rows of the task are not used.  Weights of rows are on the scale of the row's block.
    plan : OrderedPlan
    earlier : dict of int to CategorySums
        Sums of the rows before the first row, by block; a window has only one block.
    """

    def __init__(self, task: EncodingTask, plan: OrderedPlan, earlier: Mapping[int, CategorySums]) -> None:
        self.task, self.burn_in, self.steps, self.spec = task, plan.burn_in, plan.steps, task.spec
        if self.steps is not None:
            self.spec = replace(task.spec, layout=room_for_two_blocks(task.spec.layout))
        everything = LevelCodes(1, None, task.ops.zeros(task.key.n_categories + 2, np.int32))
        self.levels = [everything, *task.level_codes()]
        roomy = replace(task, spec=self.spec)
        self.carries = [carry_of(roomy, level, True, None) for level in self.levels]
        # The part of the sums that comes from the block before.
        self.earlier = [carry_of(roomy, level, False, None) for level in self.levels]
        self.block, self.n_encoded = min(earlier, default=None), 0
        for block, sums in sorted(earlier.items()):
            self._go_to(block)
            for level, running in zip(self.levels, self.carries, strict=True):
                whole = sums.totals(task.ops) if level is everything else sums
                running.sums += sums_of_level(roomy, level, whole)

    def which_stay(self, tile: Tile) -> Any:
        """Tell which rows of a tile are encoded: all rows but those that leave a window."""
        if self.steps is not None or tile.ties is None:
            return slice(None)
        return (tile.ties & 1) == 0

    def encode(self, tile: Tile) -> tuple[Floats, Mask]:
        """Encode the next rows, without those that leave a window, and tell which rows' categories are unseen."""
        if self.steps is None or tile.ties is None:
            return self._encode(tile, None)
        done = []
        ties = self.task.ops.to_host(tile.ties)
        blocks = blocks_of(self.steps[ties])
        cuts = [0, *(np.flatnonzero(np.diff(blocks)) + 1).tolist(), len(ties)]
        for start, stop in pairwise(cuts):
            self._go_to(int(blocks[start]))
            here = slice(start, stop)
            piece = Tile(None, tile.rows.block(start, stop), tile.begins[here], tile.ties[here])
            done.append(self._encode(piece, self.steps[ties[here]]))
        values, unseen = zip(*done, strict=True)
        return np.concatenate(values), np.concatenate(unseen)

    def _go_to(self, block: int) -> None:
        """Put the sums on the scale of a block, and drop rows that are older than the block before it."""
        if self.block is not None and block != self.block:
            for running, earlier in zip(self.carries, self.earlier, strict=True):
                own = running.sums - earlier.sums
                earlier.sums[...] = one_block_later(own, self.spec.layout) if block == self.block + 1 else 0
                running.sums[...] = earlier.sums
        self.block = block

    def _encode(self, tile: Tile, steps: Integers | None) -> tuple[Floats, Mask]:
        """Encode rows of one block."""
        task, stays = self.task, self.which_stay(tile)
        seen = [self._moments(number, tile, stays, steps) for number in range(len(self.levels))]
        self.n_encoded += len(tile.rows)
        total, codes = seen[0], tile.rows.codes[stays]
        visible = [
            VisibleMoments(
                moments,
                task.rule.context(total, None, not number),
                level.has(level.of_codes(codes), task.rule),
            )
            for number, (level, moments) in enumerate(zip(self.levels[1:], seen[1:], strict=True))
        ]
        values, unseen = encode_tile(visible, codes, task.rule.find_prior(total, None), task.rule)
        begins = tile.begins[stays]
        if self.burn_in and len(begins) and int(begins[0]) < self.burn_in:
            values = np.where((begins < self.burn_in)[:, None], np.nan, values)
        return values, unseen

    def _moments(self, number: int, tile: Tile, stays: Any, steps: Integers | None) -> Moments:
        """Give the moments that each encoded row sees at a level, and add the rows to the sums that later rows see."""
        task, layout, running = self.task, self.spec.layout, self.carries[number]
        rows = tile.rows.with_codes(self.levels[number].codes(tile.rows))
        sums = task.ops.ordered(rows, tile.ties, layout, running)
        for digits in (running, self.earlier[number]):
            carry_sums(digits, self.n_encoded, self.n_encoded + len(rows), layout)
        assert tile.ties is not None
        sums, ties = sums[stays], tile.ties[stays]
        if number:
            return self._as_seen(sums, steps)
        # All rows of one time see the same sums over all categories.
        begins = task.ops.xp.ones(len(ties), np.bool_)
        begins[1:] = ties[1:] != ties[:-1]
        first = np.flatnonzero(begins)
        seen = self._as_seen(sums[first], None if steps is None else steps[task.ops.to_host(first)])
        return seen.at(np.cumsum(begins) - 1)

    def _as_seen(self, sums: Integers, steps: Integers | None) -> Moments:
        """Give the moments of sums, by the steps of the rows that see them."""
        task, layout = self.task, self.spec.layout
        if steps is not None:
            sums, layout = seen_from(task.ops, sums, layout, steps)
        return task.rule.moments(task.ops, sums, replace(self.spec, layout=layout))


class SegmentMeanDeltas:
    """Changes of the sums over categories within each segment: each row changes the number of its own category.

    Parameters
    ----------
    task : EncodingTask
        The rows of the task are not used.
    checkpoints : int64 array
    earlier : CategorySums, optional
        Sums of all rows before the first.

    Attributes
    ----------
    sums : list of CategoryMoments
        For each level from the top, the changes within each segment.
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
        """Add the changes by the next rows to the changes at one level."""
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
        """Sum the numbers of the rows' categories that count, and their squares, for each segment."""
        statistic = self.task.rule.statistic
        numbers, weights = statistic.of_each_category(moments), statistic.category_weights(moments)
        counted = self.task.rule.which_count(moments) & has[:, None]
        return CategoryMoments.of(self.task.ops, numbers, counted, weights, segments, len(self.checkpoints))


def carry_of(task: EncodingTask, level: LevelCodes, ties: bool, earlier: CategorySums | None) -> Carry:
    """Give the sums of one level before the first row."""
    layout = task.spec.layout
    start = Carry.empty(level.n, task.n_classes, layout.width, ties, task.ops.xp)
    if earlier is None:
        return start
    start.sums[...] = sums_of_level(task, level, earlier)
    return start


def sums_of_level(task: EncodingTask, level: LevelCodes, sums: CategorySums) -> Integers:
    """Give the digits of the sums of one level, in the task's layout, from the sums of the categories."""
    whole = sums.to_device(task.ops)
    if level.level is not None:
        whole = whole.sum_by_parent(task.ops, level.level.of_leaf, level.n)
    digits: Integers = whole.in_layout(task.spec.layout)[:, 0]
    return digits


def carry_sums(sums: Carry, start: int, stop: int, layout: Layout) -> None:
    """Carry the digits of the sums before rows [start, stop) if these rows might make an int64 overflow."""
    if start // CARRY_AFTER < stop // CARRY_AFTER:
        carry(sums.sums, layout)
        if sums.at_tie.size:
            carry(sums.at_tie, layout)
