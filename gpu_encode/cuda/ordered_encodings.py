"""Encodings of all rows from the rows before them: from counts or sums in one go, from any digits tile by tile."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from cpu_fallback.compiled.moments import Shape, shape_of
from cpu_fallback.compiled.row_encodings import encoding_without, has_category
from cpu_fallback.fused_rules import FusedRule, Written
from cpu_fallback.row_numbers import Permutation
from cpu_fallback.types import CARRY_AFTER, Rows, carry
from gpu_encode.cuda import ordered_counts, ordered_sums
from gpu_encode.cuda.digits import measures_of
from gpu_encode.cuda.encodings import (
    MOST_CELL,
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
from gpu_encode.cuda.memory import empty, zeros
from gpu_encode.cuda.moments import ROOM, class_width, pair, width_of_class
from gpu_encode.cuda.order_segments import BLOCK_ROWS, Segments, segment_of, sum_segments
from gpu_encode.cuda.ordered import counts_rows
from gpu_encode.cuda.permutations import walk_rows
from gpu_encode.cuda.rounding import scale
from gpu_encode.cuda.row_encodings import Destination, destination_of, settle_rows, store
from gpu_encode.cuda.row_parts import RowParts, line_of, parts_of
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
)
from gpu_encode.cuda.segments import Sorted, carry_sums, first_equal, sort_by_code, write_sums

if TYPE_CHECKING:
    from cpu_fallback.types import Array, Layout

# Places have as many bits as a sign leaves.
MOST_PLACES = 2**62
# What a tile may keep for each of all rows, and what a row of it needs beside digits: its number, category, target,
# weight, and place among sorted rows.
BYTES_A_ROW = 6
BYTES_OF_TILE = 48


@device_function
def encode_row(
    seen: "Array",
    code: int,
    place: int,
    numbers: "Array",
    i: int,
    burned: int,
    shape: Shape,
    first: int,
    rule: FusedRule,
    priors: Priors,
    rooms: "tuple[Array, Array, Array]",
    to: Destination,
    doubts: Doubts,
) -> None:
    """Write the encodings of a row, the i-th of a tile and numbered unless rows stand in order, from what it sees."""
    line, n_outputs, segment = class_width(shape), shape.n_classes - first, segment_of(place)
    row, length = np.int64(numbers[i]) if len(numbers) else np.int64(place), shape.n_classes * line
    count = pair(seen, 0, line, shape.n_classes, shape.n_width, shape.n_low, 0)
    weight = scale(count[0], count[2])
    counts = has_category(code, rule) and weight > 0.0 and weight >= rule.blend.least
    for output in range(n_outputs):
        s_at, value = place_of_total(shape, output, first), math.nan
        around = around_of(priors, segment * n_outputs + output, rule.blend)
        if place >= burned and counts:
            value, doubtful = encode_digits(
                seen, 0, s_at, shape, rule.blend, around, count, rooms[0], rooms[1], rooms[2]
            )
            if doubtful:
                number = keep_doubt(doubts, row * n_outputs + output)
                keep_cell(doubts.seen, number, seen, 0, length)
                keep_segment(doubts, number, segment, length)
        elif place >= burned:
            value = encoding_without(code, around.mu, rule)
        store(value, row * to.by_row + output * to.by_output, to, doubts)
    if to.flagged:
        to.unseen[row] = to.unseen[row] and not counts


@kernel
def encode_sorted(
    rows: Sorted,
    sums: "Array",
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
    """Write the encodings of a tile's rows, which stand in the order of their categories."""
    seen = cuda.local.array(MOST_CELL, types.int64)
    n_room = cuda.local.array(ROOM, types.int64)
    s_room = cuda.local.array(ROOM, types.int64)
    q_room = cuda.local.array(ROOM, types.int64)
    length, n_rows = rows.n_classes * rows.width, len(rows.order)
    for at in range(cuda.grid(1), n_rows, cuda.gridsize(1)):
        i, code = np.int64(rows.order[at]), rows.codes[at]
        begin, source = first_equal(rows.codes, 0, at), line_of(code, rows.n_lines) * length
        columns = rows.counted, rows.n_classes, rows.width
        write_sums(rows.running, n_rows, *columns, begin, at, sums, source, seen, 0)
        where = seen, code, start + i, numbers, i, burned
        encode_row(*where, shape, first, rule, priors, (n_room, s_room, q_room), to, doubts)


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


def tile_size(n_rows: int, length: int) -> int:
    """Rows of a tile: what is kept of each, its digits among it, is to be a small part of what all rows are."""
    return min(TILE, max(TILE // 8, BYTES_A_ROW * n_rows // (8 * length + BYTES_OF_TILE)))


def encode_tile(parts: RowParts, shape: tuple[int, int, int], counted: bool, sums: "Array", *given: Any) -> None:
    """Write the encodings of a tile's rows, and bring the sums so far, flat, up to date."""
    n_rows, found = len(parts.codes), sort_by_code(parts, shape, counted)
    launch_rows(encode_sorted, n_rows, found, sums, *given, threads=FEW_THREADS)
    launch_rows(carry_sums, n_rows, *found, sums)


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
    shape = n_categories + 2, segments.shape.n_classes, layout.width
    sums, counted = zeros(shape, np.int64), counts_rows(rows, layout, shape[1])
    measures, fixed = measures_of(layout), (segments.shape, segments.first, segments.rule, segments.priors)
    size = tile_size(len(rows), segments.length)
    for start in range(0, len(rows), size):
        stop = min(start + size, len(rows))
        numbers = numbers_of(order, start, stop)
        here = rows.block(start, stop) if order is None else rows.pick(numbers)
        parts, n_blocks = parts_of(here, measures), -(-(stop - start) // BLOCK_ROWS)
        given = start, layout.width, segments.length, BLOCK_ROWS, segments.sums
        launch(sum_segments, n_blocks, THREADS, *parts, *given, shared=8 * segments.length)
        segments.find_priors(start, stop)
        encode_tile(parts, shape, counted, sums.reshape(-1), numbers, start, burned, *fixed, to, doubts)
        if start // CARRY_AFTER < stop // CARRY_AFTER:
            for digits in (sums, segments.by_class()):
                carry(digits, layout)
    return sums


def most_ordered_rows(layout: "Layout", /) -> int:  # noqa: ARG001 - digits are carried on the way
    """Give how many rows there may be: digits are carried on the way; see `gpu_encode.seam.ops.FusedOps`."""
    return MOST_PLACES


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
    """Write the encoding of every row from the rows before it; see `gpu_encode.seam.ops.FusedOps`."""
    shape, to, n_rows = shape_of(layout, n_classes), destination_of(out, unseen), len(rows)
    # Only orders in time, which have ties, say which row stands at each place.
    if ties is not None or to is None or not fits(shape) or not isinstance(order, Permutation | None):
        leave_to_arrays("ordered_encodings", WIDE if ties is None else TIES)
        return None
    length, n_lines = n_classes * width_of_class(shape), n_categories + 2
    doubts = room_for_doubts(n_rows * (n_classes - first_output), length, rule.blend.shrinkage.kind)
    segments = Segments(n_rows, shape, first_output, rule)
    whole = rows.classes is not None and rows.weight is None and layout.count.whole and shape.by_class
    if whole and ordered_counts.fits(n_rows, n_lines, n_classes):
        sums = ordered_counts.encode_counts(rows, order, burn_in, n_lines, segments, to, doubts)
    elif ordered_sums.fits(rows, n_lines, n_classes, layout, rule):
        sums = ordered_sums.encode_sums(rows, order, burn_in, n_lines, layout, segments, to, doubts)
    else:
        sums = encode_digits_by_tile(rows, order, burn_in, n_categories, layout, segments, to, doubts)
    lost = settle_rows(doubts, shape, layout, first_output, rule, to, segments.before)
    return None if lost is None else Written(sums.reshape(n_lines, n_classes, layout.width), lost)
