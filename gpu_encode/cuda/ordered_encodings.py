"""Encodings of all rows from the rows before them: tile by tile, in few kernels each."""

import math
from typing import TYPE_CHECKING

import numpy as np

from cpu_fallback.compiled.estimates import exact_below
from cpu_fallback.compiled.moments import Shape, shape_of
from cpu_fallback.compiled.row_encodings import encoding_without, has_category
from cpu_fallback.fused_rules import M_ESTIMATE, FusedRule, Written
from cpu_fallback.row_numbers import Permutation
from cpu_fallback.types import Carry, Rows
from gpu_encode.cuda.digits import measures_of
from gpu_encode.cuda.encodings import (
    Doubts,
    Priors,
    around_of,
    encode_count,
    encode_digits,
    fits,
    keep_cell,
    keep_doubt,
    place_of_total,
    room_for_doubts,
)
from gpu_encode.cuda.fallbacks import TIES, WIDE, leave_to_arrays
from gpu_encode.cuda.indexed import CodeSource, code_at, source_of
from gpu_encode.cuda.memory import empty, to_device, zeros
from gpu_encode.cuda.moments import ROOM, class_width, pair, width_of_class
from gpu_encode.cuda.order_segments import BLOCK_ROWS, Segments, segment_of, sum_segments
from gpu_encode.cuda.order_tiles import AS_NUMBERED, Course, Tiles, row_at
from gpu_encode.cuda.ordered import ordered
from gpu_encode.cuda.rounding import scale
from gpu_encode.cuda.row_encodings import Destination, destination_of, settle_rows, store
from gpu_encode.cuda.row_parts import line_of, parts_of
from gpu_encode.cuda.running import sum_between
from gpu_encode.cuda.runtime import (
    FEW_THREADS,
    MOST_BLOCKS,
    SHARED_BYTES,
    SIMULATED,
    THREADS,
    cuda,
    device_function,
    kernel,
    launch,
    launch_rows,
    types,
    xp,
)

if TYPE_CHECKING:
    from cpu_fallback.types import Array, Layout

LANES = 2 if SIMULATED else 32
# Threads that walk over a chunk.  Tables leave room for few blocks, of which one warp each was measured to wait most of
# the time: for rows of memory, and for quotients.
WALKERS = 4 if SIMULATED else 128
# A table of counts must leave room for what the rows of a turn are.
MOST_CELLS = SHARED_BYTES // 4 - WALKERS
# Counts that a thread keeps.
MOST_CLASSES = 16
# Blocks that have room side by side on 132 multiprocessors; more would wait for the slowest of these.
BLOCKS_AT_WORK = MOST_BLOCKS if SIMULATED else 132 * 4


@kernel
def encode_seen(
    codes: "Array",
    seen: "Array",
    course: Course,
    shape: Shape,
    first: int,
    rule: FusedRule,
    priors: Priors,
    to: Destination,
    doubts: Doubts,
) -> None:
    """Write the encodings of a tile's rows from the digits of what each sees of its category."""
    n_room = cuda.local.array(ROOM, types.int64)
    s_room = cuda.local.array(ROOM, types.int64)
    q_room = cuda.local.array(ROOM, types.int64)
    line, n_outputs = class_width(shape), shape.n_classes - first
    length = shape.n_classes * line
    for i in range(cuda.grid(1), len(codes), cuda.gridsize(1)):
        place, row, cell, code = course.start + i, row_at(course, i), i * length, codes[i]
        count, segment = pair(seen, cell, line, shape.n_classes, shape.n_width, shape.n_low, 0), segment_of(place)
        weight = scale(count[0], count[2])
        counts = has_category(code, rule) and weight > 0.0 and weight >= rule.blend.least
        for output in range(n_outputs):
            s_at, value = cell + place_of_total(shape, output, first), math.nan
            around = around_of(priors, segment * n_outputs + output, rule.blend)
            if place >= course.burned and counts:
                value, doubtful = encode_digits(
                    seen, cell, s_at, shape, rule.blend, around, count, n_room, s_room, q_room
                )
                if doubtful:
                    number = keep_doubt(doubts, row * n_outputs + output)
                    keep_cell(doubts.seen, number, seen, cell, length)
                    keep_segment(doubts, number, segment, length)
            elif place >= course.burned:
                value = encoding_without(code, around.mu, rule)
            store(value, row * to.by_row + output * to.by_output, to, doubts)
        if to.flagged:
            to.unseen[row] = to.unseen[row] and not counts


@device_function
def keep_segment(doubts: Doubts, number: int, segment: int, length: int) -> None:
    """Keep the number of the segment of an estimate, whose sums lie around it."""
    if number >= 0:
        doubts.around[number * length] = segment


@kernel
def count_chunks(
    codes: CodeSource,
    classes: "Array",
    course: Course,
    n_places: int,
    n_lines: int,
    n_classes: int,
    chunk_rows: int,
    table: "Array",
    segments: "Array",
    cell_of_place: "Array",
) -> None:
    """Count the rows of each chunk of places by category and class, and add them to the sums of their segments.

    The cell of the row at each place is written down: rows are drawn from all over memory once.
    """
    shared = cuda.shared.array(0, types.int32)
    thread, threads, cells = np.int64(cuda.threadIdx.x), np.int64(cuda.blockDim.x), n_lines * n_classes
    for cell in range(thread, cells + n_classes, threads):
        shared[cell] = 0
    cuda.syncthreads()
    begin = cuda.blockIdx.x * chunk_rows
    home = segment_of(course.start + begin)
    for i in range(begin + thread, min(begin + chunk_rows, n_places), threads):
        row, segment = row_at(course, i), segment_of(course.start + i)
        label = np.int64(classes[row])
        cell_of_row = line_of(code_at(codes, row), n_lines) * n_classes + label
        cell_of_place[i] = cell_of_row
        cuda.atomic.add(shared, cell_of_row, 1)
        if segment != home:
            cuda.atomic.add(shared, cells + label, -1)
            cuda.atomic.add(segments, segment * n_classes + label, 1)
    cuda.syncthreads()
    for cell in range(thread, cells, threads):
        table[cell * cuda.gridDim.x + cuda.blockIdx.x] = shared[cell]
        if shared[cell]:
            cuda.atomic.add(shared, cells + cell % n_classes, shared[cell])
    cuda.syncthreads()
    for cell in range(thread, n_classes, threads):
        if shared[cells + cell]:
            cuda.atomic.add(segments, home * n_classes + cell, np.int64(shared[cells + cell]))


@device_function
def see_earlier(shared: "Array", thread: int, cells: int, n_classes: int, line: int, seen: "Array") -> None:
    """Count by class the rows of a category that come before a thread's: those in the table, and those of its warp."""
    for label in range(n_classes):
        seen[label] = shared[line * n_classes + label]
    for other in range(thread - thread % LANES, thread):
        label = shared[cells + other] - line * n_classes
        if 0 <= label < n_classes:
            seen[label] += 1


@device_function
def encode_from_counts(
    seen: "Array",
    n_classes: int,
    code: int,
    row: np.int64,
    place: int,
    burned: int,
    first: int,
    rule: FusedRule,
    priors: Priors,
    below: float,
    to: Destination,
    doubts: Doubts,
) -> None:
    """Write the encodings of a row from the counts that it sees of its category."""
    segment, n_outputs, count = segment_of(place), n_classes - first, np.int64(0)
    for label in range(n_classes):
        count += seen[label]
    counts = has_category(code, rule) and count > 0 and float(count) >= rule.blend.least
    for output in range(n_outputs):
        at, value = segment * n_outputs + output, math.nan
        if place >= burned and counts:
            value, doubtful = encode_count(seen[first + output], count, rule.blend, priors, at, below)
            if doubtful:
                number = keep_doubt(doubts, row * n_outputs + output)
                keep_cell(doubts.seen, number, seen, 0, n_classes)
                keep_segment(doubts, number, segment, n_classes)
        elif place >= burned:
            value = encoding_without(code, priors.mu[at], rule)
        store(value, row * to.by_row + output * to.by_output, to, doubts)
    if to.flagged:
        to.unseen[row] = to.unseen[row] and not counts


@device_function
def begin_chunk(shared: "Array", thread: int, threads: int, cells: int, sums: "Array", running: "Array") -> None:
    """Begin with the counts of all rows before the block's chunk."""
    chunk, n_chunks = np.int64(cuda.blockIdx.x), np.int64(cuda.gridDim.x)
    for cell in range(thread, cells, threads):
        shared[cell] = sums[cell] + sum_between(running, cell * n_chunks, 0, chunk)


@device_function
def end_chunk(shared: "Array", thread: int, threads: int, cells: int, next_sums: "Array") -> None:
    """Leave the counts of all rows so far to the next tile, if the block's chunk is the last."""
    if cuda.blockIdx.x == cuda.gridDim.x - 1:
        for cell in range(thread, cells, threads):
            next_sums[cell] = shared[cell]


@kernel
def encode_chunks(
    cell_of_place: "Array",
    course: Course,
    n_places: int,
    n_lines: int,
    n_classes: int,
    first: int,
    chunk_rows: int,
    running: "Array",
    sums: "Array",
    next_sums: "Array",
    rule: FusedRule,
    priors: Priors,
    below: float,
    to: Destination,
    doubts: Doubts,
) -> None:
    """Walk each chunk of places, and write the encodings of its rows from the counts of all rows before them.

    The warps of a block look at its table, and add to it, one after the other; all else they do side by side.
    """
    shared, seen = cuda.shared.array(0, types.int32), cuda.local.array(MOST_CLASSES, types.int64)
    thread, threads, cells = np.int64(cuda.threadIdx.x), np.int64(cuda.blockDim.x), n_lines * n_classes
    begin_chunk(shared, thread, threads, cells, sums, running)
    begin = cuda.blockIdx.x * chunk_rows
    stop = min(begin + chunk_rows, n_places)
    for i in range(begin + thread, begin + chunk_rows, threads):
        cell = np.int64(cell_of_place[i]) if i < stop else np.int64(-1)
        line = cell // n_classes
        shared[cells + thread] = cell
        for warp in range(threads // LANES):
            cuda.syncthreads()
            if i < stop and thread // LANES == warp:
                see_earlier(shared, thread, cells, n_classes, line, seen)
            cuda.syncthreads()
            if i < stop and thread // LANES == warp:
                cuda.atomic.add(shared, cell, 1)
        if i < stop:
            code = line if line < n_lines - 2 else line - n_lines
            given = n_classes, code, row_at(course, i), course.start + i, course.burned, first
            encode_from_counts(seen, *given, rule, priors, below, to, doubts)
    cuda.syncthreads()
    end_chunk(shared, thread, threads, cells, next_sums)


def chunk_size(n_places: int, cells: int) -> int:
    """Places of a chunk: as few as keep all blocks at work, but no fewer than the counts that are written for it."""
    n_chunks = max(1, min(BLOCKS_AT_WORK, n_places // max(cells, WALKERS)))
    return -(-n_places // (n_chunks * WALKERS)) * WALKERS


def encode_counts_by_chunk(
    rows: Rows, tiles: Tiles, n_lines: int, segments: Segments, to: Destination, doubts: Doubts
) -> "Array":
    """Write the encodings of rows without weights of few categories and classes; gives their counts, flat."""
    n_classes, first, rule = segments.shape.n_classes, segments.first, segments.rule
    codes, classes, cells = source_of(rows.codes), to_device(rows.classes), n_lines * n_classes
    m = rule.blend.shrinkage.first
    below = exact_below.py_func(m) if rule.blend.shrinkage.kind == M_ESTIMATE else 0.0
    sums, next_sums = zeros((2, cells), np.int64)
    for start, stop, course in tiles:
        size = chunk_size(stop - start, cells)
        n_chunks = -(-(stop - start) // size)
        table, cell_of_place = empty(cells * n_chunks, np.int64), empty(stop - start, np.int32)
        given = course, stop - start, n_lines, n_classes
        counted = size, table, segments.sums, cell_of_place
        launch(count_chunks, n_chunks, THREADS, codes, classes, *given, *counted, shared=4 * (cells + n_classes))
        segments.find_priors(start, stop)
        behind = xp.cumsum(table), sums, next_sums
        rest = first, size, *behind, rule, segments.priors, below, to, doubts
        launch(encode_chunks, n_chunks, WALKERS, cell_of_place, *given, *rest, shared=4 * (cells + WALKERS))
        sums, next_sums = next_sums, sums
    return sums


def encode_by_digits(
    rows: Rows, tiles: Tiles, n_categories: int, layout: "Layout", segments: Segments, to: Destination, doubts: Doubts
) -> "Array":
    """Write the encodings of any rows; gives their sums (categories + 2, classes, width)."""
    carry = Carry.empty(n_categories, segments.shape.n_classes, layout.width, False, xp)
    measures = measures_of(layout)
    for start, stop, course in tiles:
        here = rows.block(start, stop) if course.kind == AS_NUMBERED else rows.pick(course.numbers)
        parts, n_blocks = parts_of(here, measures), -(-(stop - start) // BLOCK_ROWS)
        given = start, layout.width, segments.length, BLOCK_ROWS, segments.sums
        launch(sum_segments, n_blocks, THREADS, *parts, *given, shared=8 * segments.length)
        segments.find_priors(start, stop)
        seen = ordered(here, None, layout, carry).reshape(-1)
        fixed = segments.shape, segments.first, segments.rule, segments.priors
        launch_rows(encode_seen, stop - start, parts.codes, seen, course, *fixed, to, doubts, threads=FEW_THREADS)
    return carry.sums


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
    if ties is not None or to is None or not fits(shape):
        leave_to_arrays("ordered_encodings", WIDE if ties is None else TIES)
        return None
    length, n_lines = n_classes * width_of_class(shape), n_categories + 2
    doubts = room_for_doubts(n_rows * (n_classes - first_output), length, rule.blend.shrinkage.kind)
    segments = Segments(n_rows, shape, first_output, rule)
    by_chunk = rows.classes is not None and rows.weight is None and layout.count.whole and shape.by_class
    by_chunk = by_chunk and (n_lines + 1) * n_classes <= MOST_CELLS and n_classes <= MOST_CLASSES
    tiles = Tiles(n_rows, order, burn_in, by_chunk)
    if by_chunk:
        sums = encode_counts_by_chunk(rows, tiles, n_lines, segments, to, doubts)
    else:
        sums = encode_by_digits(rows, tiles, n_categories, layout, segments, to, doubts)
    lost = settle_rows(doubts, shape, layout, first_output, rule, to, segments.before())
    return None if lost is None else Written(sums.reshape(n_lines, n_classes, layout.width), lost)
