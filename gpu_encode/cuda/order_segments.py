"""Segments of an order, whose rows share a prior: the sums of all rows before each, and what lam asks for of them.

A segment begins at a checkpoint: a place with all but its top nine bits cleared.
"""

import math
from typing import TYPE_CHECKING

import numpy as np

from cpu_fallback.compiled.digits import MOST_DIGITS
from cpu_fallback.compiled.estimates import whole_prior
from cpu_fallback.compiled.extents import bit_length
from cpu_fallback.compiled.moments import Shape
from cpu_fallback.fused_rules import CHECKPOINT_BITS, M_ESTIMATE, FusedRule
from gpu_encode.cuda.digits import add_row
from gpu_encode.cuda.encodings import MOST_CELL, Priors, place_of_total, see_around
from gpu_encode.cuda.memory import empty
from gpu_encode.cuda.moments import ROOM, class_width, pair, width_of_class
from gpu_encode.cuda.runtime import FEW_THREADS, SIMULATED, cuda, device_function, kernel, launch_rows, types, xp

if TYPE_CHECKING:
    from cpu_fallback.types import Array

# Rows that a block sums up: nearly all blocks lie in one segment then, and have one sum to add to it.
BLOCK_ROWS = 8 if SIMULATED else 1 << 12


@device_function
def segment_of(place: int) -> int:
    """Give the number of the segment that a place lies in."""
    extra = bit_length(np.uint64(place)) - CHECKPOINT_BITS
    return place if extra <= 0 else (extra << (CHECKPOINT_BITS - 1)) + (place >> extra)


def count_segments(n_rows: int) -> int:
    """Give the number of segments of an order."""
    last = max(n_rows, 1) - 1
    extra = max(last.bit_length() - CHECKPOINT_BITS, 0)
    return (extra << (CHECKPOINT_BITS - 1)) + (last >> extra) + 1


@device_function
def clear(numbers: "Array", n: int) -> None:
    """Set the first numbers to zero."""
    for k in range(n):
        numbers[k] = 0


@device_function
def add_all(numbers: "Array", n: int, sums: "Array", at: int) -> None:
    """Add the first numbers to sums that other threads add to as well."""
    for k in range(n):
        if numbers[k]:
            cuda.atomic.add(sums, at + k, numbers[k])


@kernel
def sum_segments(
    codes: "Array",
    classes: "Array",
    labelled: bool,
    target: "Array",
    target_kind: int,
    weight: "Array",
    weight_kind: int,
    measures: "Array",
    start: int,
    width: int,
    length: int,
    block_rows: int,
    segments: "Array",
) -> None:
    """Add the rows at the places from `start` on to the sums of their segments."""
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
    for row in range(begin + thread, min(begin + block_rows, len(codes)), cuda.blockDim.x):
        segment, own = segment_of(start + row), classes[row] * width if labelled else 0
        given = row, 1, target, target_kind, weight, weight_kind, measures, digits
        if segment == home:
            add_row(*given, mine, own)
        else:
            clear(single, length)
            add_row(*given, single, own)
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
    shape: Shape,
    first: int,
    rule: FusedRule,
    priors: Priors,
) -> None:
    """Write the priors of the segments [first_segment, last_segment]; sums up to the end of each are `running`."""
    others = cuda.local.array(MOST_CELL, types.int64)
    n_room = cuda.local.array(ROOM, types.int64)
    s_room = cuda.local.array(ROOM, types.int64)
    q_room = cuda.local.array(ROOM, types.int64)
    line, n_outputs = class_width(shape), shape.n_classes - first
    length = shape.n_classes * line
    for segment in range(first_segment + cuda.grid(1), last_segment + 1, cuda.gridsize(1)):
        for k in range(length):
            others[k] = running[segment * length + k] - segments[segment * length + k]
        count = pair(others, 0, line, shape.n_classes, shape.n_width, shape.n_low, 0)
        for output in range(n_outputs):
            at, s_at = segment * n_outputs + output, place_of_total(shape, output, first)
            around = see_around(others, s_at, shape, rule, count, n_room, s_room, q_room)
            priors.mu[at], priors.fraction[at], priors.exponent[at] = around.mu, around.fraction, around.exponent
            priors.high[at], priors.rest[at] = around.high, around.rest
            priors.weighed[at], priors.number[at] = 0.0, math.nan
            if rule.blend.shrinkage.kind == M_ESTIMATE and rule.by_mean and shape.by_class and count[2] == 0:
                m = rule.blend.shrinkage.first
                priors.weighed[at], priors.number[at] = whole_prior(float(others[s_at]), count[0], m)


class Segments:
    """The sums of an order's segments, as far as its rows have been added, and the priors behind them.

    Parameters
    ----------
    n_rows : int
    shape : Shape
        Of a cell.
    first : int
        The class of the first output.
    rule : FusedRule
    """

    def __init__(self, n_rows: int, shape: Shape, first: int, rule: FusedRule) -> None:
        self.shape, self.first, self.rule, self.n = shape, first, rule, count_segments(n_rows)
        self.bits = CHECKPOINT_BITS
        self.length = width_of_class(shape) * shape.n_classes
        n_priors = self.n * (shape.n_classes - first)
        room = empty((6, n_priors), np.float64)
        self.sums = xp.zeros(self.n * self.length, np.int64)
        self.running = self.sums
        self.priors = Priors(room[0], room[1], empty(n_priors, np.int64), *room[2:])

    def find_priors(self, start: int, stop: int) -> None:
        """Find the priors of the segments of the places [start, stop), all of which have been added."""
        self.running = xp.cumsum(self.sums.reshape(self.n, self.length), axis=0).reshape(-1)
        first, last = count_segments(start + 1) - 1, count_segments(stop) - 1
        given = self.sums, self.running, self.shape, self.first, self.rule, self.priors
        launch_rows(see_segments, last - first + 1, first, last, *given, threads=FEW_THREADS)

    def by_class(self) -> "Array":
        """Give the sums so far: (segments, classes, width)."""
        return self.sums.reshape(self.n, self.shape.n_classes, -1)

    def before(self) -> "Array":
        """Give the sums of all rows before each segment, once all have been added: (segments, classes, width)."""
        return (self.running - self.sums).reshape(self.n, self.shape.n_classes, -1)
