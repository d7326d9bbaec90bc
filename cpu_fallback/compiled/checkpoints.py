"""Walk through an order: segments of rows that share a prior, and the sums of all rows before them."""

from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from cpu_fallback.compiled import threads
from cpu_fallback.compiled.border import BLOCK, Array, freeze, kernel, stage
from cpu_fallback.compiled.folds import walk_share
from cpu_fallback.fused_rules import CHECKPOINT_BITS
from cpu_fallback.row_numbers import Order, Permutation, TimeOrder

# Indices of the state: end of the current segment, beginning of its last tie, end of the sums of its prior.
END, PIVOT, BACK = 0, 1, 2
# What is done at a piece of an order: a segment begins, its prior comes from the sums that were kept, and the sums
# before the piece, or after it, are kept.
BEGINS, FROM_KEPT, KEEP_BEFORE, KEEP_AFTER = 1, 2, 4, 8


class Walk(NamedTuple):
    """An order, and the state of the walk through it.

    `starts` is empty if no two rows are tied.  `totals` are the sums of all rows so far, `held` the sums at the pivot.
    """

    n_rows: int
    burned: int
    ties: Array
    starts: Array
    state: Array
    totals: Array
    held: Array


@kernel
def rises(numbers: Array) -> bool:
    """Tell whether each number is above the one before it."""
    for begin in range(1, len(numbers), BLOCK):
        later, earlier, rising = numbers[begin : begin + BLOCK], numbers[begin - 1 :], True
        for i in range(len(later)):
            rising &= later[i] > earlier[i]
        if not rising:
            return False
    return True


def walk_of(order: Order, n_rows: int, burn_in: int, length: int) -> Walk:
    """Begin to walk through an order; if all times differ, there are no ties."""
    ties, starts, burned = np.zeros(0, np.int64), np.zeros(0, np.int64), min(burn_in, n_rows)
    if isinstance(order, TimeOrder) and not rises(freeze(order.ties, np.int64)):
        ties, starts = order.ties, order.starts
        # All rows of one time belong to the burn-in, or none.
        burned = int(np.append(starts[starts >= burned], n_rows).min())
    zeros = [np.zeros(size, np.int64) for size in (3, length, length)]
    return Walk(n_rows, burned, freeze(ties, np.int64), freeze(starts, np.int64), *zeros)


@stage
def checkpoint(rank: int) -> tuple[int, int]:
    """Give the rank with all but its top nine bits cleared, and the distance to the next such rank."""
    extra = 0
    while rank >> (CHECKPOINT_BITS + extra):
        extra += 1
    return (rank >> extra) << extra, 1 << extra


@stage
def enter(walk: Walk, at: int) -> bool:
    """Begin the segment at `at`.

    It gives True if the prior of the segment comes from the sums that were kept, and not from the current sums.
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
    # As long as the checkpoint would be before all rows, the prior is taken at the beginning of each tie.
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
    """Give the rank at which to pause after `at`: the end of the segment, or its pivot."""
    pivot = walk.state[PIVOT]
    end = min(stop, walk.state[END])
    return min(end, pivot) if at < pivot else end


@stage
def pause(walk: Walk, at: int) -> None:
    """Keep the sums so far if the last tie of the segment begins here."""
    if len(walk.starts) and at == walk.state[PIVOT]:
        for i in range(len(walk.totals)):
            walk.held[i] = walk.totals[i]


@kernel
def cut_pieces(walk: Walk, start: int, stop: int, ends: Array, marks: Array) -> int:
    """Cut the ranks [start, stop) where segments and their last ties begin; write where each piece ends, and its mark.

    It gives the number of pieces.
    """
    at, count, tied = start, 0, len(walk.starts) > 0
    while at < stop:
        mark = 0
        if at == walk.state[END]:
            mark = BEGINS | FROM_KEPT if enter(walk, at) else BEGINS
        mark |= KEEP_BEFORE if tied and at == walk.state[PIVOT] else 0
        at = leg(walk, at, stop)
        mark |= KEEP_AFTER if tied and at == walk.state[PIVOT] else 0
        ends[count], marks[count] = at, mark
        count += 1
    return count


def edges_of(n_rows: int, size: int, starts: Array | None = None) -> list[tuple[int, int]]:
    """Cut ranks into tiles of a size; with the ranks at which times begin, a tile ends where a time ends."""
    edges, ends = [0], None if starts is None else np.append(starts, n_rows)
    while edges[-1] < n_rows:
        end = min(edges[-1] + size, n_rows)
        edges.append(end if ends is None else int(ends[np.searchsorted(ends, end)]))
    return list(pairwise(edges))


def rows_of(order: Permutation, start: int, stop: int) -> Array:
    """Give the row at each rank in [start, stop), computed by the calling thread."""
    numbers = np.empty(stop - start, np.int64)
    walk_share(order, False, start, 0, len(numbers), numbers)
    return freeze(numbers, np.int64)


def cut_order(order: Order, edges: list[tuple[int, int]]) -> Iterator[tuple[int, int, Array]]:
    """Give the tiles of an order with these edges, and their row numbers; these are empty for rows in their own order.

    For a random order, a second thread computes the numbers of the next tile while the caller works on this one.
    """
    if not isinstance(order, Permutation):
        numbers = freeze(order.rows if isinstance(order, TimeOrder) else np.zeros(0), np.int64)
        yield from ((start, stop, numbers[start:stop]) for start, stop in edges)
    elif threads.threads() == 1:
        yield from ((start, stop, rows_of(order, start, stop)) for start, stop in edges)
    else:
        helper, ahead = threads.pool(threads.threads() - 1), deque[Any]()
        for number, edge in enumerate(edges):
            while len(ahead) < min(2, len(edges) - number):
                ahead.append(helper.submit(rows_of, order, *edges[number + len(ahead)]))
            yield *edge, ahead.popleft().result()
