"""Sums of rows that lose weight with age, as folds, rows and new rows see them."""

from dataclasses import replace

import numpy as np

from gpu_encode.ops import Ops
from gpu_encode.schemes.plans import FoldPlan
from gpu_encode.sums.category_sums import CategorySums
from gpu_encode.sums.decay import (
    add_earlier_block,
    blocks_of,
    factors_of,
    room_for_two_blocks,
    seen_from,
    seen_layout,
)


def as_seen(sums: CategorySums, plan: FoldPlan, ops: Ops) -> tuple[CategorySums, FoldPlan]:
    """Give sums by view for sums by fold of rows that lose weight, and the plan by which each view sees its own.

    The last view is that of new rows.
    """
    assert plan.ageing is not None
    blocks, steps = plan.ageing.by_fold.T
    steps = np.append(steps, plan.ageing.steps[-1])
    visibility, lag = np.concatenate([plan.visibility, plan.new_rows]), blocks_of(steps)[:, None] - blocks
    own, earlier = (ops.visible(sums.accumulators, visibility * (lag == blocks_before)) for blocks_before in (0, 1))
    layout = room_for_two_blocks(sums.spec.layout)
    both = add_earlier_block(own, earlier, sums.spec.layout)
    factors = ops.to_device(factors_of(steps))
    seen = seen_from(both, layout, factors[None, :, None])
    views = np.eye(len(steps), dtype=np.int64)
    spec = replace(sums.spec, layout=seen_layout(layout))
    return CategorySums(seen, spec, 1), replace(plan, visibility=views[:-1], new_rows=views[-1:], ageing=None)
