"""Segments of an order, whose rows share a prior: the sums of all rows before each, and the moments that lam needs.

A segment begins at a checkpoint: a rank in which all but the top nine bits are zero.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.compiled.digits import MOST_DIGITS
from cpu_fallback.compiled.estimates import whole_prior
from cpu_fallback.compiled.extents import bit_length
from cpu_fallback.compiled.row_encodings import CellRule
from cpu_fallback.fused_rules import CHECKPOINT_BITS, M_ESTIMATE
from gpu_encode.cuda.digits import RowParts, add_row
from gpu_encode.cuda.encodings import MOST_CELL, Doubts, Priors, see_around
from gpu_encode.cuda.memory import empty
from gpu_encode.cuda.moments import ROOM, Cell, Rooms, class_width, count_pair, start_of_sum, width_of_class
from gpu_encode.cuda.row_encodings import Destination
from gpu_encode.cuda.runtime import FEW_THREADS, SIMULATED, cuda, device_function, kernel, launch_rows, types, xp

if TYPE_CHECKING:
    from cpu_fallback.row_numbers import Permutation
    from cpu_fallback.types import Array

# Rows that a block sums: then nearly every block is in one segment, and adds one sum to it.
BLOCK_ROWS = 8 if SIMULATED else 1 << 12


@device_function
def segment_of(rank: int) -> int:
    """Give the number of the segment of a rank."""
    extra = bit_length(np.uint64(rank)) - CHECKPOINT_BITS
    return rank if extra <= 0 else (extra << (CHECKPOINT_BITS - 1)) + (rank >> extra)


def count_segments(n_rows: int) -> int:
    """Give the number of segments of an order."""
    last = max(n_rows, 1) - 1
    extra = max(last.bit_length() - CHECKPOINT_BITS, 0)
    return (extra << (CHECKPOINT_BITS - 1)) + (last >> extra) + 1


@device_function
def clear(numbers: "Array", n: int) -> None:
    """Set the first `n` numbers to zero."""
    for k in range(n):
        numbers[k] = 0


@device_function
def add_all(numbers: "Array", n: int, sums: "Array", at: int) -> None:
    """Add the first `n` numbers to sums to which other threads add as well."""
    for k in range(n):
        if numbers[k]:
            cuda.atomic.add(sums, at + k, numbers[k])


@kernel
def sum_segments(rows: RowParts, start: int, width: int, length: int, block_rows: int, segments: "Array") -> None:
    """Add the rows of the ranks from `start` on to the sums of their segments."""
    digits = cuda.local.array(MOST_DIGITS, types.int64)
    mine = cuda.local.array(MOST_CELL, types.int64)
    single = cuda.local.array(MOST_CELL, types.int64)
    shared = cuda.shared.array(0, types.int64)
    thread = np.int64(cuda.threadIdx.x)
    for k in range(thread, length, cuda.blockDim.x):
        shared[k] = 0
    clear(mine, length)
    cuda.syncthreads()
    begin = cuda.blockIdx.x * block_rows
    home = segment_of(start + begin)
    for row in range(begin + thread, min(begin + block_rows, len(rows.codes)), cuda.blockDim.x):
        segment, own = segment_of(start + row), rows.classes[row] * width if rows.labelled else 0
        if segment == home:
            add_row(row, 1, rows, digits, mine, own)
        else:
            clear(single, length)
            add_row(row, 1, rows, digits, single, own)
            add_all(single, length, segments, segment * length)
    add_all(mine, length, shared, 0)
    cuda.syncthreads()
    for k in range(thread, length, cuda.blockDim.x):
        if shared[k]:
            cuda.atomic.add(segments, home * length + k, shared[k])


@kernel
def see_segments(
    first_segment: int,
    last_segment: int,
    segments: "Array",
    running: "Array",
    cell_rule: CellRule,
    priors: Priors,
) -> None:
    """Write the priors of the segments [first_segment, last_segment]; `running` has the sums up to the end of each."""
    shape, first, rule = cell_rule
    others = cuda.local.array(MOST_CELL, types.int64)
    n_room = cuda.local.array(ROOM, types.int64)
    s_room = cuda.local.array(ROOM, types.int64)
    q_room = cuda.local.array(ROOM, types.int64)
    length, n_outputs = shape.n_classes * class_width(shape), shape.n_classes - first
    for segment in range(first_segment + cuda.grid(1), last_segment + 1, cuda.gridsize(1)):
        for k in range(length):
            others[k] = running[segment * length + k] - segments[segment * length + k]
        count = count_pair(others, 0, shape, 0)
        for output in range(n_outputs):
            at, s_at = segment * n_outputs + output, start_of_sum(shape, first + output)
            around = see_around(Cell(others, 0, s_at, shape), rule, count, Rooms(n_room, s_room, q_room))
            priors.mu[at], priors.fraction[at], priors.exponent[at] = around.mu, around.fraction, around.exponent
            priors.high[at], priors.rest[at] = around.high, around.rest
            priors.weighed[at], priors.number[at] = 0.0, math.nan
            if rule.blend.shrinkage.kind == M_ESTIMATE and rule.by_mean and shape.by_class and count[2] == 0:
                m = rule.blend.shrinkage.first
                priors.weighed[at], priors.number[at] = whole_prior(float(others[s_at]), count[0], m)


class Segments:
    """The sums of an order's segments, for the rows that were added so far, and the priors that follow from them.

    Parameters
    ----------
    n_rows : int
    cell_rule : CellRule
    """

    def __init__(self, n_rows: int, cell_rule: CellRule) -> None:
        self.cell_rule, self.n = cell_rule, count_segments(n_rows)
        self.bits = CHECKPOINT_BITS
        self.length = width_of_class(cell_rule.shape) * cell_rule.shape.n_classes
        n_priors = self.n * (cell_rule.shape.n_classes - cell_rule.first)
        room = empty((6, n_priors), np.float64)
        self.sums = xp.zeros(self.n * self.length, np.int64)
        self.running = self.sums
        self.priors = Priors(room[0], room[1], empty(n_priors, np.int64), *room[2:])

    def find_priors(self, start: int, stop: int) -> None:
        """Find the priors of the segments of the ranks [start, stop), whose rows have all been added."""
        self.running = xp.cumsum(self.sums.reshape(self.n, self.length), axis=0).reshape(-1)
        first, last = count_segments(start + 1) - 1, count_segments(stop) - 1
        given = self.sums, self.running, self.cell_rule, self.priors
        launch_rows(see_segments, last - first + 1, first, last, *given, threads=FEW_THREADS)

    def by_class(self) -> "Array":
        """Give the sums so far: (segments, classes, width)."""
        return self.sums.reshape(self.n, self.cell_rule.shape.n_classes, -1)

    def before(self) -> "Array":
        """Give the sums of all rows before each segment, once all have been added: (segments, classes, width)."""
        return (self.running - self.sums).reshape(self.n, self.cell_rule.shape.n_classes, -1)


class OrderedPass(NamedTuple):
    """A pass over the rows in an order (random, or None for the rows' own order), and where encodings are written."""

    order: "Permutation | None"
    burned: int
    segments: Segments
    to: Destination
    doubts: Doubts
