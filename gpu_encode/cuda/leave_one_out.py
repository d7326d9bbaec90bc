"""Leave-one-out: each row sees its category without itself; one pass encodes all rows."""

from typing import TYPE_CHECKING

import numpy as np

from cpu_fallback.compiled.digits import MOST_DIGITS
from cpu_fallback.compiled.moments import Shape, shape_of
from cpu_fallback.compiled.row_encodings import CellRule
from cpu_fallback.fused_rules import FusedRule, RowEncodings
from gpu_encode.cuda.closed_forms import Sums, encode_by_closed_forms, has_closed_forms, make_lines
from gpu_encode.cuda.digits import Extents, RowParts, add_row, line_of, measures_of, parts_of
from gpu_encode.cuda.encodings import MOST_CELL, Doubts, fits, room_for_doubts
from gpu_encode.cuda.fallbacks import OPEN, WIDE, leave_to_arrays
from gpu_encode.cuda.indexed import code_at, source_of
from gpu_encode.cuda.memory import empty, to_device, to_host, zeros
from gpu_encode.cuda.moments import ROOM, Rooms, class_width
from gpu_encode.cuda.row_encodings import Destination, Seen, destination_of, settle_rows, write_row
from gpu_encode.cuda.runtime import (
    FEW_THREADS,
    MOST_BLOCKS,
    blocks_for,
    cuda,
    device_function,
    kernel,
    launch,
    launch_rows,
    types,
)

if TYPE_CHECKING:
    from cpu_fallback.types import Array, Layout, Rows

# Position of the counter of rows without a closed form, after the counters of `Doubts`; room for their row numbers.
LISTED = 3
ROOM_FOR_OPEN = 1 << 10
ROWS_OF_AN_OPEN = 1 << 6


@kernel
def leave_row_out(rows: RowParts, accumulators: "Array", extents: Extents, seen: "Array") -> None:
    """Copy the line of each row's category, and subtract the row's own digits from its class."""
    digits = cuda.local.array(MOST_DIGITS, types.int64)
    width, length = extents.width, extents.n_classes * extents.width
    for row in range(cuda.grid(1), len(rows.codes), cuda.gridsize(1)):
        source, at = line_of(rows.codes[row], extents.n_lines) * length, row * length
        for k in range(length):
            seen[at + k] = accumulators[source + k]
        add_row(row, -1, rows, digits, seen, at + rows.classes[row] * width if rows.labelled else at)


def leave_one_out(accumulators: "Array", rows: "Rows", layout: "Layout", /) -> "Array":
    """Give the sums of each row's category without the row: (rows, n_classes, width) digits."""
    seen = empty((len(rows), *accumulators.shape[1:]), np.int64)
    if len(rows):
        parts, table = parts_of(rows, measures_of(layout)), to_device(accumulators).reshape(-1)
        launch_rows(leave_row_out, len(rows), parts, table, Extents(*accumulators.shape), seen.reshape(-1))
    return seen


@device_function
def rows_open(n_rows: int, listed: "Array", every: bool, counters: "Array") -> int:
    """Give the number of listed rows; all rows if there is no list, or if it was too short."""
    n_listed = counters[LISTED]
    return n_rows if every or n_listed > len(listed) else n_listed


@kernel
def leave_row_out_and_encode(
    rows: RowParts,
    sums: Sums,
    cell_rule: CellRule,
    listed: "Array",
    every: bool,
    to: Destination,
    doubts: Doubts,
) -> None:
    """Write the encodings of the listed rows, each from all rows except itself."""
    shape = cell_rule.shape
    digits = cuda.local.array(MOST_DIGITS, types.int64)
    seen = cuda.local.array(MOST_CELL, types.int64)
    others = cuda.local.array(MOST_CELL, types.int64)
    n_room = cuda.local.array(ROOM, types.int64)
    s_room = cuda.local.array(ROOM, types.int64)
    q_room = cuda.local.array(ROOM, types.int64)
    width, n_rows = class_width(shape), len(rows.codes.words)
    length, n_open = shape.n_classes * width, rows_open(n_rows, listed, every, doubts.counters)
    for i in range(cuda.grid(1), n_open, cuda.gridsize(1)):
        row = i if n_open == n_rows else listed[i]
        code = code_at(rows.codes, row)
        source = line_of(code, sums.n_lines) * length
        for k in range(length):
            seen[k], others[k] = sums.accumulators[source + k], sums.total[k]
        own = rows.classes[row] * width if rows.labelled else 0
        add_row(row, -1, rows, digits, seen, own)
        add_row(row, -1, rows, digits, others, own)
        write_row(row, code, Seen(seen, others), cell_rule, Rooms(n_room, s_room, q_room), to, doubts)


def list_open_rows(
    parts: RowParts, sums: Sums, shape: Shape, rule: FusedRule, to: Destination
) -> "tuple[Array, bool, Array]":
    """Write the encodings that closed forms decide; list the other rows, say if the list is complete, give counters."""
    n_rows, counters = len(parts.codes.words), zeros(LISTED + 1, np.int64)
    if not has_closed_forms(parts, sums.n_lines, shape, rule):
        return empty(1, np.int64), True, counters
    listed = empty(ROOM_FOR_OPEN + n_rows // ROWS_OF_AN_OPEN, np.int64)
    encode_by_closed_forms(parts, make_lines(sums, shape, rule, to), rule, to, listed, counters[LISTED:])
    return listed, False, counters


def leave_one_out_encodings(
    accumulators: "Array",
    total: "Array",
    rows: "Rows",
    layout: "Layout",
    rule: FusedRule,
    out: RowEncodings,
    /,
) -> int | None:
    """Write the encoding of every row from all other rows; see `gpu_encode.seam.ops.FusedOps`."""
    n_lines, n_classes, width = accumulators.shape
    shape, n_rows, to = shape_of(layout, n_classes), len(rows), destination_of(*out)
    if to is None or not fits(shape):
        leave_to_arrays("leave_one_out_encodings", WIDE)
        return None
    sums = Sums(to_device(accumulators).reshape(-1), to_device(total).reshape(-1), n_lines)
    parts = parts_of(rows, measures_of(layout), source_of)
    listed, every, counters = list_open_rows(parts, sums, shape, rule, to)
    cell_rule = CellRule(shape, n_classes - out.values.shape[1], rule)
    doubts = room_for_doubts(out.values.size, n_classes * width, rule.blend.shrinkage.kind, counters)
    given = parts, sums, cell_rule, listed, every, to, doubts
    launch(leave_row_out_and_encode, min(blocks_for(n_rows, FEW_THREADS), MOST_BLOCKS), FEW_THREADS, *given)
    counted = to_host(doubts.counters).tolist()
    if not every and counted[LISTED] > len(listed):
        leave_to_arrays("leave_one_out_encodings", OPEN)
    return settle_rows(doubts, cell_rule, layout, to, counted=counted)
