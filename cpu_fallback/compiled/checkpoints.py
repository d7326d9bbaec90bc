"""The way through an order: segments of rows that share a prior, and the sums of all rows before them."""

from typing import NamedTuple

import numpy as np

from cpu_fallback.compiled.border import Array, freeze, stage
from cpu_fallback.fused_rules import CHECKPOINT_BITS
from cpu_fallback.row_numbers import Order, TimeOrder

# Where the segment at hand ends, where its last tie begins, and where the sums behind its prior end.
END, PIVOT, BACK = 0, 1, 2


class Walk(NamedTuple):
    """An order, and how far one has come.

    `starts` is empty where no two rows are tied.  `totals` are the sums of all rows so far, `held` those at the pivot.
    """

    n_rows: int
    burned: int
    ties: Array
    starts: Array
    state: Array
    totals: Array
    held: Array


def walk_of(order: Order, n_rows: int, burn_in: int, length: int) -> Walk:
    """Begin an order; rows that are all of different times are no ties."""
    ties, starts, burned = np.zeros(0, np.int64), np.zeros(0, np.int64), min(burn_in, n_rows)
    if isinstance(order, TimeOrder) and not (order.ties[1:] > order.ties[:-1]).all():
        ties, starts = order.ties, order.starts
        # The rows of one time burn in together.
        burned = int(np.append(starts[starts >= burned], n_rows).min())
    zeros = [np.zeros(size, np.int64) for size in (3, length, length)]
    return Walk(n_rows, burned, freeze(ties, np.int64), freeze(starts, np.int64), *zeros)


@stage
def checkpoint(rank: int) -> tuple[int, int]:
    """Rank with all but its top nine bits cleared, and how far the next such rank lies from there."""
    extra = 0
    while rank >> (CHECKPOINT_BITS + extra):
        extra += 1
    return (rank >> extra) << extra, 1 << extra


@stage
def enter(walk: Walk, at: int) -> bool:
    """Begin the segment at `at`.

    True if its prior comes from the sums kept at the last checkpoint, not the current ones.
    """
    floor, step = checkpoint(at)
    if not len(walk.starts):
        walk.state[END] = walk.state[PIVOT] = min(floor + step, walk.n_rows)
        return False
    if floor == at:
        walk.state[BACK] = at
    elif floor >= walk.state[PIVOT]:
        walk.state[BACK] = walk.state[PIVOT]
    back = walk.state[BACK]
    # While the prior would be taken before all rows, it is taken at the begin of each tie.
    after = floor + step if back else at + 1
    end = walk.n_rows
    if after < end:
        tie = walk.ties[after]
        begin = walk.starts[tie]
        if begin == after:
            end = begin
        elif tie + 1 < len(walk.starts):
            end = walk.starts[tie + 1]
    walk.state[END] = end
    walk.state[PIVOT] = walk.starts[walk.ties[end - 1]]
    return 0 < back < at


@stage
def leg(walk: Walk, at: int, stop: int) -> int:
    """Give where rows from `at` on are to pause: at the segment's end, or at its pivot."""
    pivot = walk.state[PIVOT]
    end = min(stop, walk.state[END])
    return min(end, pivot) if at < pivot else end


@stage
def pause(walk: Walk, at: int) -> None:
    """Hold the sums so far where the last tie of the segment begins."""
    if len(walk.starts) and at == walk.state[PIVOT]:
        for i in range(len(walk.totals)):
            walk.held[i] = walk.totals[i]
