"""Encodings of all rows from the rows before them: counts and sums in one pass, other digits tile by tile."""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.compiled.moments import shape_of
from cpu_fallback.compiled.row_encodings import CellRule, encoding_without, has_category
from cpu_fallback.fused_rules import FusedRule, RowEncodings, Written
from cpu_fallback.row_numbers import Order, Permutation, TimeOrder
from cpu_fallback.types import CARRY_AFTER, Rows, carry
from gpu_encode.cuda import ordered_counts, ordered_sums
from gpu_encode.cuda.digits import Extents, line_of, measures_of, parts_of
from gpu_encode.cuda.encodings import (
    MOST_CELL,
    Doubts,
    Priors,
    around_of,
    encode_digits,
    fits,
    keep_cell,
    keep_doubt,
    room_for_doubts,
)
from gpu_encode.cuda.fallbacks import TIES, WIDE, leave_to_arrays
from gpu_encode.cuda.memory import empty, zeros
from gpu_encode.cuda.moments import ROOM, Cell, Rooms, class_width, count_pair, start_of_sum
from gpu_encode.cuda.order_segments import BLOCK_ROWS, OrderedPass, Segments, segment_of, sum_segments
from gpu_encode.cuda.ordered import counts_rows
from gpu_encode.cuda.permutations import walk_rows
from gpu_encode.cuda.rounding import scale
from gpu_encode.cuda.row_encodings import Destination, destination_of, settle_rows, store
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
    from cpu_fallback.types import Array, Layout, SumShape

# Largest number of ranks: an int64 holds each of them, with room for the sign.
MOST_RANKS = 2**62
# Bytes that a tile may use for each row of the table; and bytes for a row of a tile in addition to digits: its number,
# category, target, weight, and rank among sorted rows.
BYTES_A_ROW = 6
BYTES_OF_TILE = 48


class Tile(NamedTuple):
    """Ranks of a tile: their rows (empty if in order), the first rank, the number of burn-in rows, and the rule."""

    numbers: "Array"
    start: int
    burned: int
    cell_rule: CellRule
    priors: Priors


@device_function
def encode_row(i: int, code: int, tile: Tile, seen: "Array", rooms: Rooms, to: Destination, doubts: Doubts) -> None:
    """Write the encodings of the i-th row of a tile from the sums that it sees."""
    (shape, first, rule), rank = tile.cell_rule, tile.start + i
    n_outputs, segment, length = shape.n_classes - first, segment_of(rank), shape.n_classes * class_width(shape)
    row = np.int64(tile.numbers[i]) if len(tile.numbers) else np.int64(rank)
    count = count_pair(seen, 0, shape, 0)
    weight = scale(count[0], count[2])
    counts = has_category(code, rule) and weight > 0.0 and weight >= rule.blend.least
    for output in range(n_outputs):
        value, around = math.nan, around_of(tile.priors, segment * n_outputs + output, rule.blend)
        if rank >= tile.burned and counts:
            cell = Cell(seen, 0, start_of_sum(shape, first + output), shape)
            value, doubtful = encode_digits(cell, rule.blend, around, count, rooms)
            if doubtful:
                number = keep_doubt(doubts, row * n_outputs + output)
                keep_cell(doubts.seen, number, seen, 0, length)
                keep_segment(doubts, number, segment, length)
        elif rank >= tile.burned:
            value = encoding_without(code, around.mu, rule)
        store(value, row * to.by_row + output * to.by_output, to, doubts)
    if to.flagged:
        to.unseen[row] = to.unseen[row] and not counts


@kernel
def encode_sorted(rows: Sorted, sums: "Array", tile: Tile, to: Destination, doubts: Doubts) -> None:
    """Write the encodings of a tile's rows, which are sorted by category."""
    seen = cuda.local.array(MOST_CELL, types.int64)
    n_room = cuda.local.array(ROOM, types.int64)
    s_room = cuda.local.array(ROOM, types.int64)
    q_room = cuda.local.array(ROOM, types.int64)
    length = rows.extents.n_classes * rows.extents.width
    for at in range(cuda.grid(1), len(rows.order), cuda.gridsize(1)):
        i, code = np.int64(rows.order[at]), rows.codes[at]
        begin, source = first_equal(rows.codes, 0, at), line_of(code, rows.extents.n_lines) * length
        write_sums(rows, begin, at, sums, source, seen, 0)
        encode_row(i, code, tile, seen, Rooms(n_room, s_room, q_room), to, doubts)


@device_function
def keep_segment(doubts: Doubts, number: int, segment: int, length: int) -> None:
    """Keep for an estimate the number of a segment: this segment has the sums for it."""
    if number >= 0:
        doubts.around[number * length] = segment


def numbers_of(order: "Permutation | None", start: int, stop: int) -> "Array":
    """Give the rows at the ranks [start, stop) of a random order."""
    if order is None:
        return empty(0, np.int32)
    return walk_rows(order, start, stop, False, np.int32 if order.n_rows < 2**31 else np.int64)


def tile_size(n_rows: int, length: int) -> int:
    """Rows of a tile: its memory, digits included, should be small compared with the data of all rows."""
    return min(TILE, max(TILE // 8, BYTES_A_ROW * n_rows // (8 * length + BYTES_OF_TILE)))


def encode_digits_by_tile(rows: Rows, n_lines: int, layout: "Layout", given: OrderedPass) -> "Array":
    """Write the encodings of any rows; give their sums (categories + 2, classes, width)."""
    order, burned, segments, to, doubts = given
    extents = Extents(n_lines, segments.cell_rule.shape.n_classes, layout.width)
    sums, counted = zeros(extents, np.int64), counts_rows(rows, layout, extents.n_classes)
    measures, size = measures_of(layout), tile_size(len(rows), segments.length)
    for start in range(0, len(rows), size):
        stop = min(start + size, len(rows))
        numbers = numbers_of(order, start, stop)
        here = rows.block(start, stop) if order is None else rows.pick(numbers)
        parts, n_blocks = parts_of(here, measures), -(-(stop - start) // BLOCK_ROWS)
        added = start, layout.width, segments.length, BLOCK_ROWS, segments.sums
        launch(sum_segments, n_blocks, THREADS, parts, *added, shared=8 * segments.length)
        segments.find_priors(start, stop)
        tile = Tile(numbers, start, burned, segments.cell_rule, segments.priors)
        found = sort_by_code(parts, extents, counted)
        launch_rows(encode_sorted, stop - start, found, sums.reshape(-1), tile, to, doubts, threads=FEW_THREADS)
        launch_rows(carry_sums, stop - start, found, sums.reshape(-1))
        if start // CARRY_AFTER < stop // CARRY_AFTER:
            for digits in (sums, segments.by_class()):
                carry(digits, layout)
    return sums


def most_ordered_rows(layout: "Layout", /) -> int:  # noqa: ARG001 - digits are carried on the way
    """Give the largest number of rows, with carries of digits on the way; see `gpu_encode.seam.ops.FusedOps`."""
    return MOST_RANKS


def ordered_encodings(
    rows: Rows,
    shape: "SumShape",
    order: Order,
    burn_in: int,
    rule: FusedRule,
    out: RowEncodings,
    /,
) -> Written | None:
    """Write the encoding of every row from the rows before it; see `gpu_encode.seam.ops.FusedOps`."""
    (n_lines, _, n_classes, width), layout, to, n_rows = shape.extents, shape.layout, destination_of(*out), len(rows)
    cell = shape_of(layout, n_classes)
    if isinstance(order, TimeOrder) or to is None or not fits(cell):
        leave_to_arrays("ordered_encodings", TIES if isinstance(order, TimeOrder) else WIDE)
        return None
    doubts = room_for_doubts(out.values.size, n_classes * width, rule.blend.shrinkage.kind)
    segments = Segments(n_rows, CellRule(cell, n_classes - out.values.shape[1], rule))
    given = OrderedPass(order if isinstance(order, Permutation) else None, burn_in, segments, to, doubts)
    whole = rows.classes is not None and rows.weight is None and layout.count.whole and cell.by_class
    if whole and ordered_counts.fits(n_rows, n_lines, n_classes):
        sums = ordered_counts.encode_counts(rows, n_lines, given)
    elif ordered_sums.fits(rows, n_lines, n_classes, layout, rule):
        sums = ordered_sums.encode_sums(rows, n_lines, layout, given)
    else:
        sums = encode_digits_by_tile(rows, n_lines, layout, given)
    lost = settle_rows(doubts, segments.cell_rule, layout, to, segments.before)
    return None if lost is None else Written(sums.reshape(n_lines, n_classes, width), lost)
