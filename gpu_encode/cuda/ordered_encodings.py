"""Encodings of all rows from the rows before them: from counts in one go, from digits tile by tile."""

import math
from typing import TYPE_CHECKING

import numpy as np

from cpu_fallback.compiled.moments import Shape, shape_of
from cpu_fallback.compiled.row_encodings import encoding_without, has_category
from cpu_fallback.fused_rules import FusedRule, Written
from cpu_fallback.sums import CARRY_AFTER, carry
from cpu_fallback.types import Carry, Rows
from gpu_encode.cuda import ordered_counts
from gpu_encode.cuda.digits import measures_of
from gpu_encode.cuda.encodings import (
    Doubts,
    Priors,
    around_of,
    encode_digits,
    fits,
    keep_cell,
    keep_doubt,
    place_of_total,
    room_for_doubts,
)
from gpu_encode.cuda.fallbacks import TIES, WIDE, leave_to_arrays
from gpu_encode.cuda.memory import empty
from gpu_encode.cuda.moments import ROOM, class_width, pair, width_of_class
from gpu_encode.cuda.order_segments import BLOCK_ROWS, Segments, segment_of, sum_segments
from gpu_encode.cuda.ordered import ordered
from gpu_encode.cuda.permutations import walk_rows
from gpu_encode.cuda.rounding import scale
from gpu_encode.cuda.row_encodings import Destination, destination_of, settle_rows, store
from gpu_encode.cuda.row_parts import parts_of
from gpu_encode.cuda.runtime import (
    FEW_THREADS,
    THREADS,
    TILE,
    cuda,
    device_function,
    kernel,
    launch,
    launch_rows,
    types,
    xp,
)

if TYPE_CHECKING:
    from cpu_fallback.row_numbers import Permutation
    from cpu_fallback.types import Array, Layout

# Places have as many bits as a sign leaves.
MOST_ROWS = 2**62


@kernel
def encode_seen(
    codes: "Array",
    seen: "Array",
    numbers: "Array",
    start: int,
    burned: int,
    shape: Shape,
    first: int,
    rule: FusedRule,
    priors: Priors,
    to: Destination,
    doubts: Doubts,
) -> None:
    """Write the encodings of a tile's rows, numbered unless they stand in order, from the digits of what each sees."""
    n_room = cuda.local.array(ROOM, types.int64)
    s_room = cuda.local.array(ROOM, types.int64)
    q_room = cuda.local.array(ROOM, types.int64)
    line, n_outputs = class_width(shape), shape.n_classes - first
    length = shape.n_classes * line
    for i in range(cuda.grid(1), len(codes), cuda.gridsize(1)):
        place, cell, code = start + i, i * length, codes[i]
        row = np.int64(numbers[i]) if len(numbers) else np.int64(place)
        count, segment = pair(seen, cell, line, shape.n_classes, shape.n_width, shape.n_low, 0), segment_of(place)
        weight = scale(count[0], count[2])
        counts = has_category(code, rule) and weight > 0.0 and weight >= rule.blend.least
        for output in range(n_outputs):
            s_at, value = cell + place_of_total(shape, output, first), math.nan
            around = around_of(priors, segment * n_outputs + output, rule.blend)
            if place >= burned and counts:
                value, doubtful = encode_digits(
                    seen, cell, s_at, shape, rule.blend, around, count, n_room, s_room, q_room
                )
                if doubtful:
                    number = keep_doubt(doubts, row * n_outputs + output)
                    keep_cell(doubts.seen, number, seen, cell, length)
                    keep_segment(doubts, number, segment, length)
            elif place >= burned:
                value = encoding_without(code, around.mu, rule)
            store(value, row * to.by_row + output * to.by_output, to, doubts)
        if to.flagged:
            to.unseen[row] = to.unseen[row] and not counts


@device_function
def keep_segment(doubts: Doubts, number: int, segment: int, length: int) -> None:
    """Keep the number of the segment of an estimate, whose sums lie around it."""
    if number >= 0:
        doubts.around[number * length] = segment


def numbers_of(order: "Permutation | None", start: int, stop: int) -> "Array":
    """Give the rows at the places [start, stop) of a random order."""
    if order is None:
        return empty(0, np.int32)
    return walk_rows(order, start, stop, False, np.int32 if order.n_rows < 2**31 else np.int64)


def encode_digits_by_tile(
    rows: Rows,
    order: "Permutation | None",
    burned: int,
    n_categories: int,
    layout: "Layout",
    segments: Segments,
    to: Destination,
    doubts: Doubts,
) -> "Array":
    """Write the encodings of any rows; gives their sums (categories + 2, classes, width)."""
    state = Carry.empty(n_categories, segments.shape.n_classes, layout.width, False, xp)
    measures, fixed = measures_of(layout), (segments.shape, segments.first, segments.rule, segments.priors)
    for start in range(0, len(rows), TILE):
        stop = min(start + TILE, len(rows))
        numbers = numbers_of(order, start, stop)
        here = rows.block(start, stop) if order is None else rows.pick(numbers)
        parts, n_blocks = parts_of(here, measures), -(-(stop - start) // BLOCK_ROWS)
        given = start, layout.width, segments.length, BLOCK_ROWS, segments.sums
        launch(sum_segments, n_blocks, THREADS, *parts, *given, shared=8 * segments.length)
        segments.find_priors(start, stop)
        seen = ordered(here, None, layout, state).reshape(-1)
        where = parts.codes, seen, numbers, start, burned
        launch_rows(encode_seen, stop - start, *where, *fixed, to, doubts, threads=FEW_THREADS)
        if start // CARRY_AFTER < stop // CARRY_AFTER:
            for sums in (state.sums, segments.by_class()):
                carry(sums, layout)
    return state.sums


def most_ordered_rows(_layout: "Layout", /) -> int:
    """Give how many rows there may be: digits are carried on the way; see `gpu_encode.ops.FusedOps`."""
    return MOST_ROWS


def ordered_encodings(
    rows: Rows,
    n_categories: int,
    n_classes: int,
    layout: "Layout",
    first_output: int,
    order: "Permutation | Array | None",
    ties: "tuple[Array, Array] | None",
    burn_in: int,
    rule: FusedRule,
    out: "Array",
    unseen: "Array | None",
    /,
) -> Written | None:
    """Write the encoding of every row from the rows before it; see `gpu_encode.ops.FusedOps`."""
    shape, to, n_rows = shape_of(layout, n_classes), destination_of(out, unseen), len(rows)
    # Only orders in time, which have ties, say which row stands at each place.
    if ties is not None or to is None or not fits(shape):
        leave_to_arrays("ordered_encodings", WIDE if ties is None else TIES)
        return None
    length, n_lines = n_classes * width_of_class(shape), n_categories + 2
    doubts = room_for_doubts(n_rows * (n_classes - first_output), length, rule.blend.shrinkage.kind)
    segments = Segments(n_rows, shape, first_output, rule)
    whole = rows.classes is not None and rows.weight is None and layout.count.whole and shape.by_class
    if whole and ordered_counts.fits(n_rows, n_lines, n_classes):
        sums = ordered_counts.encode_counts(rows, order, burn_in, n_lines, segments, to, doubts)
    else:
        sums = encode_digits_by_tile(rows, order, burn_in, n_categories, layout, segments, to, doubts)
    lost = settle_rows(doubts, shape, layout, first_output, rule, to, segments.before)
    return None if lost is None else Written(sums.reshape(n_lines, n_classes, layout.width), lost)
