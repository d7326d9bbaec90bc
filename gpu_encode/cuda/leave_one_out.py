"""Leave-one-out: what each row sees is its category without itself; and the encodings of all rows, in one pass."""

from typing import TYPE_CHECKING

import numpy as np

from cpu_fallback.compiled.digits import MOST_DIGITS
from cpu_fallback.compiled.moments import Shape, shape_of
from cpu_fallback.fused_rules import FusedRule
from gpu_encode.cuda.digits import add_row, measures_of
from gpu_encode.cuda.encodings import MOST_CELL, Doubts, fits, room_for_doubts
from gpu_encode.cuda.fallbacks import WIDE, leave_to_arrays
from gpu_encode.cuda.indexed import CodeSource, code_at, source_of
from gpu_encode.cuda.memory import empty, to_device
from gpu_encode.cuda.moments import ROOM, class_width
from gpu_encode.cuda.row_encodings import Destination, destination_of, settle_rows, write_row
from gpu_encode.cuda.row_parts import line_of, parts_of
from gpu_encode.cuda.runtime import FEW_THREADS, cuda, kernel, launch_rows, types

if TYPE_CHECKING:
    from cpu_fallback.types import Array, Layout, Rows


@kernel
def leave_row_out(
    codes: "Array",
    classes: "Array",
    labelled: bool,
    target: "Array",
    target_kind: int,
    weight: "Array",
    weight_kind: int,
    measures: "Array",
    accumulators: "Array",
    n_lines: int,
    n_classes: int,
    width: int,
    seen: "Array",
) -> None:
    """Copy the line of each row's category and take the row's own digits out of its class."""
    digits = cuda.local.array(MOST_DIGITS, types.int64)
    length = n_classes * width
    for row in range(cuda.grid(1), len(codes), cuda.gridsize(1)):
        source, at = line_of(codes[row], n_lines) * length, row * length
        for k in range(length):
            seen[at + k] = accumulators[source + k]
        own = at + classes[row] * width if labelled else at
        add_row(row, -1, target, target_kind, weight, weight_kind, measures, digits, seen, own)


def leave_one_out(accumulators: "Array", rows: "Rows", layout: "Layout", /) -> "Array":
    """Category sums (categories + 2, n_classes, width) less the row itself: (rows, n_classes, width) digits."""
    seen = empty((len(rows), *accumulators.shape[1:]), np.int64)
    if len(rows):
        parts, table = parts_of(rows, measures_of(layout)), to_device(accumulators).reshape(-1)
        launch_rows(leave_row_out, len(rows), *parts, table, *accumulators.shape, seen.reshape(-1))
    return seen


@kernel
def leave_row_out_and_encode(
    codes: CodeSource,
    classes: "Array",
    labelled: bool,
    target: "Array",
    target_kind: int,
    weight: "Array",
    weight_kind: int,
    measures: "Array",
    accumulators: "Array",
    total: "Array",
    n_lines: int,
    shape: Shape,
    first: int,
    rule: FusedRule,
    to: Destination,
    doubts: Doubts,
) -> None:
    """Write the encodings of each row from all other rows."""
    digits = cuda.local.array(MOST_DIGITS, types.int64)
    seen = cuda.local.array(MOST_CELL, types.int64)
    others = cuda.local.array(MOST_CELL, types.int64)
    n_room = cuda.local.array(ROOM, types.int64)
    s_room = cuda.local.array(ROOM, types.int64)
    q_room = cuda.local.array(ROOM, types.int64)
    width = class_width(shape)
    length = shape.n_classes * width
    for row in range(cuda.grid(1), len(codes.words), cuda.gridsize(1)):
        code = code_at(codes, row)
        source = line_of(code, n_lines) * length
        for k in range(length):
            seen[k], others[k] = accumulators[source + k], total[k]
        own = classes[row] * width if labelled else 0
        add_row(row, -1, target, target_kind, weight, weight_kind, measures, digits, seen, own)
        add_row(row, -1, target, target_kind, weight, weight_kind, measures, digits, others, own)
        write_row(code, row, seen, others, shape, first, rule, n_room, s_room, q_room, to, doubts)


def leave_one_out_encodings(
    accumulators: "Array",
    total: "Array",
    rows: "Rows",
    layout: "Layout",
    first_output: int,
    rule: FusedRule,
    out: "Array",
    unseen: "Array | None",
    /,
) -> int | None:
    """Write the encoding of every row from all others; see `gpu_encode.ops.FusedOps`."""
    n_lines, n_classes, width = accumulators.shape
    shape, n_rows, to = shape_of(layout, n_classes), len(rows), destination_of(out, unseen)
    if to is None or not fits(shape):
        leave_to_arrays("leave_one_out_encodings", WIDE)
        return None
    doubts = room_for_doubts(n_rows * out.shape[1], n_classes * width, rule.blend.shrinkage.kind)
    sums = to_device(accumulators).reshape(-1), to_device(total).reshape(-1)
    parts = parts_of(rows, measures_of(layout), source_of)
    launch_rows(
        leave_row_out_and_encode,
        n_rows,
        *parts,
        *sums,
        n_lines,
        shape,
        first_output,
        rule,
        to,
        doubts,
        threads=FEW_THREADS,
    )
    return settle_rows(doubts, shape, layout, first_output, rule, to)
