"""Sums of rows that lose weight with age, as folds, rows and new rows see them."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from cpu_fallback.decay import blocks_of, room_for_two_blocks
from cpu_fallback.exact import Floats, Integers
from cpu_fallback.types import Array, Rows
from gpu_encode.fitting.row_encodings import VisibleMoments, encode_rows
from gpu_encode.fitting.scans import Tile, carry_of, carry_sums, sums_of_level
from gpu_encode.fitting.tasks import EncodingTask, LevelCodes
from gpu_encode.formulas.encoding_rule import Mask
from gpu_encode.schemes.plans import FoldPlan, OrderedPlan
from gpu_encode.seam.ops import Ops
from gpu_encode.sums.category_sums import CategorySums
from gpu_encode.sums.decay import add_earlier_block, one_block_later, seen_from
from gpu_encode.sums.moments import Moments


def as_views(sums: CategorySums, plan: FoldPlan, ops: Ops) -> tuple[CategorySums, FoldPlan]:
    """Give sums by view for sums by fold of rows that lose weight, and the plan by which each view sees its own.

    The last view is that of new rows.  Sums of rows that do not lose weight stay by fold.
    """
    if plan.ageing is None:
        return sums, plan
    blocks, steps = plan.ageing.by_fold.T
    steps = np.append(steps, plan.ageing.steps[-1])
    visibility, lag = np.concatenate([plan.visibility, plan.new_rows]), blocks_of(steps)[:, None] - blocks
    seen, layout = ops.visible(sums.accumulators, visibility * (lag == 0)), sums.spec.layout
    if (before := visibility * (lag == 1)).any():
        earlier, layout = ops.visible(sums.accumulators, before), room_for_two_blocks(layout)
        seen = add_earlier_block(seen, earlier, sums.spec.layout)
    seen, layout = seen_from(ops, seen, layout, steps)
    views = np.eye(len(steps), dtype=np.int64)
    spec = replace(sums.spec, layout=layout)
    return CategorySums(seen, spec, 1), replace(plan, visibility=views[:-1], new_rows=views[-1:], ageing=None)


def signed(rows: Rows, ties: Array) -> Rows:
    """Give rows of a window, of which those of odd ties are taken away."""
    sign = 1 - 2 * (ties & 1)
    return replace(rows, weight=sign if rows.weight is None else rows.weight * sign)


class AgeingScan:
    """Encodes rows in order of time, each from the rows before it by their age; otherwise as `SequentialScan`.

    Parameters
    ----------
    task : EncodingTask
        Weights are those on the scale of a row's block; its rows do not matter.
    plan : OrderedPlan
    earlier : dict of int to CategorySums
        Sums of rows before the first to come, by block; those of a window have one.
    """

    def __init__(self, task: EncodingTask, plan: OrderedPlan, earlier: Mapping[int, CategorySums]) -> None:
        self.task, self.burn_in, self.steps, self.spec = task, plan.burn_in, plan.steps, task.spec
        if self.steps is not None:
            self.spec = replace(task.spec, layout=room_for_two_blocks(task.spec.layout))
        everything = LevelCodes(1, None, task.ops.zeros(task.key.n_categories + 2, np.int32))
        self.levels = [everything, *task.level_codes()]
        roomy = replace(task, spec=self.spec)
        self.carries = [carry_of(roomy, level, True, None) for level in self.levels]
        # What the block before gives to these.
        self.earlier = [carry_of(roomy, level, False, None) for level in self.levels]
        self.block, self.n_encoded = min(earlier, default=None), 0
        for block, sums in sorted(earlier.items()):
            self._go_to(block)
            for level, carry in zip(self.levels, self.carries, strict=True):
                whole = sums.totals(task.ops) if level is everything else sums
                carry.sums += sums_of_level(roomy, level, whole)

    def which_stay(self, tile: Tile) -> Any:
        """Say which rows of a tile are encoded: all that are not taken away."""
        if self.steps is not None or tile.ties is None:
            return slice(None)
        return (tile.ties & 1) == 0

    def encode(self, tile: Tile) -> tuple[Floats, Mask]:
        """Encode the next rows, and say which rows' categories are unseen; of those that stay."""
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
        """Let sums be on the scale of a block, and rows of blocks before the one before go."""
        if self.block is not None and block != self.block:
            for carry, earlier in zip(self.carries, self.earlier, strict=True):
                own = carry.sums - earlier.sums
                earlier.sums[...] = one_block_later(own, self.spec.layout) if block == self.block + 1 else 0
                carry.sums[...] = earlier.sums
        self.block = block

    def _encode(self, tile: Tile, steps: Integers | None) -> tuple[Floats, Mask]:
        """Encode rows of one block."""
        task, stays, levels = self.task, self.which_stay(tile), self.levels
        seen = [self._moments(level, place, tile, stays, steps) for place, level in enumerate(levels)]
        self.n_encoded += len(tile.rows)
        total, codes = seen[0], tile.rows.codes[stays]
        visible = [
            VisibleMoments(
                moments,
                task.rule.context(task.ops, total, None, not place),
                level.has(level.of_codes(codes), task.rule),
            )
            for place, (level, moments) in enumerate(zip(levels[1:], seen[1:], strict=True))
        ]
        values, unseen = encode_rows(visible, codes, task.rule.find_prior(total, None), task.rule)
        begins = tile.begins[stays]
        if self.burn_in and len(begins) and int(begins[0]) < self.burn_in:
            values = np.where((begins < self.burn_in)[:, None], np.nan, values)
        return values, unseen

    def _moments(self, level: LevelCodes, place: int, tile: Tile, stays: Any, steps: Integers | None) -> Moments:
        """Give what each row that stays sees at one level, and add the rows to the sums that later rows see."""
        task, layout, carry = self.task, self.spec.layout, self.carries[place]
        rows = tile.rows.with_codes(level.codes(tile.rows))
        sums = task.ops.ordered(rows, tile.ties, layout, carry)
        for digits in (carry, self.earlier[place]):
            carry_sums(digits, self.n_encoded, self.n_encoded + len(rows), layout)
        assert tile.ties is not None
        sums, ties = sums[stays], tile.ties[stays]
        if place:
            return self._as_seen(sums, steps)
        # All rows of one time see the same of all categories together.
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
