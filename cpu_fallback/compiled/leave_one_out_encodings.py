"""Encode each row from all other rows, in one pass: see `gpu_encode.seam.ops.FusedOps`."""

from typing import TYPE_CHECKING

import numpy as np

from cpu_fallback.compiled.addition import add_rows
from cpu_fallback.compiled.block_moments import (
    BLOCK,
    BlockSums,
    moment_rows,
    prior_rows,
    room_for_moments,
    room_for_weights,
)
from cpu_fallback.compiled.border import (
    Array,
    RowParts,
    freeze,
    kernel,
    parts_of,
    set_all,
    stage,
)
from cpu_fallback.compiled.digits import scratch as digit_room
from cpu_fallback.compiled.moments import cell_width, scratch, shape_of
from cpu_fallback.compiled.ordered_digits import run_counting, write_rows
from cpu_fallback.compiled.row_encodings import CellRule, Destination, destination
from cpu_fallback.fused_rules import EMPIRICAL_BAYES, M_ESTIMATE, FusedRule, RowEncodings

if TYPE_CHECKING:
    from cpu_fallback.types import Layout, Rows


@stage
def see_others(accumulators: Array, codes: Array, length: int, mine: Array, seen: Array) -> None:
    """Give the line of each row's category, plus the row's own digits, which are negative here."""
    n_lines = len(accumulators) // length
    for i in range(len(codes)):
        code, target = np.int64(codes[i]), i * length
        source = (code + n_lines if code < 0 else code) * length
        for k in range(length):
            seen[np.uint64(target + k)] = accumulators[np.uint64(source + k)] + mine[np.uint64(target + k)]


@kernel
def leave_out_range(
    accumulators: Array,
    total: Array,
    rows: RowParts,
    cell_rule: CellRule,
    start: int,
    stop: int,
    to: Destination,
) -> int:
    """Write the encodings of the rows [start, stop); give the number of those that the type cannot hold."""
    shape, first, rule = cell_rule
    width, n_outputs, lost, in_order = cell_width(shape), shape.n_classes - first, 0, np.empty(0, np.int64)
    length = width * shape.n_classes
    room, digits, slots = scratch(shape), digit_room(), np.empty(BLOCK, np.int64)
    seen, mine = np.empty(BLOCK * length, np.int64), np.empty(BLOCK * length, np.int64)
    others, nobody = np.empty(BLOCK * length, np.int64), np.zeros(BLOCK, np.int32)
    own, around = room_for_moments(n_outputs, BLOCK), room_for_moments(n_outputs, BLOCK)
    number = room_for_weights(BLOCK, shape.n_width)
    values, counted = np.empty(BLOCK, np.float64), np.empty(BLOCK, np.bool_)
    kind, sums = rule.blend.shrinkage.kind, BlockSums(seen, 0, others, np.arange(BLOCK), cell_rule)
    for begin in range(start, stop, BLOCK):
        end = min(begin + BLOCK, stop)
        n, here, labels = end - begin, rows.codes[begin:end], rows.classes[begin:end]
        for i in range(n):
            slots[i] = i * length + (np.int64(labels[i]) * width if len(labels) else 0)
        set_all(mine[: n * length], 0)
        add_rows(rows, begin, end, -1, digits, slots[:n], mine)
        if kind == EMPIRICAL_BAYES or rule.by_mean:
            see_others(total, nobody[:n], length, mine, others)
        prior_rows(others, 0, n, cell_rule, room, number, around)
        see_others(accumulators, here, length, mine, seen)
        moment_rows(seen, 0, n, shape, first, kind, kind != M_ESTIMATE, room, number, own)
        lost += write_rows(here, in_order, begin, 0, number, own, around, sums, values, counted, to)
    return lost


def leave_one_out_encodings(
    accumulators: Array,
    total: Array,
    rows: "Rows",
    layout: "Layout",
    rule: FusedRule,
    out: RowEncodings,
    /,
) -> int | None:
    """Write the encoding of every row from all others; see `gpu_encode.seam.ops.FusedOps`."""
    n_classes, n_rows = accumulators.shape[1], len(rows.codes)
    if (to := destination(out)) is None:
        return None
    sums = freeze(accumulators, np.int64).reshape(-1), freeze(total, np.int64).reshape(-1)
    cell_rule = CellRule(shape_of(layout, n_classes), n_classes - out.values.shape[1], rule)
    return run_counting(leave_out_range, n_rows, (*sums, parts_of(rows, layout), cell_rule), to)
