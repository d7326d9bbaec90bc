"""Encodings of rows from the rows before them by their age, in one pass: see `gpu_encode.ops.FusedOps`.

What the rows of a tile see is handed out first, then blended by all threads, as `ordered_digits` does.  Here each time
has a prior of its own.
"""

from typing import TYPE_CHECKING, NamedTuple

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
    Numbers,
    codes_of,
    freeze,
    kernel,
    measures_of,
    numbers_of,
    set_all,
    stage,
)
from cpu_fallback.compiled.digits import scratch as digit_room
from cpu_fallback.compiled.moments import Shape, cell_width, scratch, shape_of
from cpu_fallback.compiled.ordered_counts import Table, table_of
from cpu_fallback.compiled.ordered_digits import run_counting, write_rows
from cpu_fallback.compiled.ordered_encodings import tile_size
from cpu_fallback.compiled.row_encodings import Destination, destination
from cpu_fallback.fused_rules import M_ESTIMATE, FusedRule

if TYPE_CHECKING:
    from cpu_fallback.types import Layout, Rows


class Tile(NamedTuple):
    """Rows of a tile that are encoded: digits that each sees of its category and of all, its category, its number."""

    seen: Array
    around: Array
    codes: Array
    numbers: Array


def tile_of(n_rows: int, length: int) -> Tile:
    """Give room for the rows of a tile."""
    seen, around = np.empty(n_rows * length, np.int64), np.empty(n_rows * length, np.int64)
    return Tile(seen, around, np.empty(n_rows, np.int32), np.empty(n_rows, np.int64))


@stage
def enter_time(line: int, length: int, tie: int, table: Table) -> None:
    """Keep the sums of a line as all rows of a time see them: before the first of its own."""
    sums, at_tie, last_tie = table
    if last_tie[line // length] != tie:
        last_tie[line // length] = tie
        for k in range(length):
            at_tie[line + k] = sums[line + k]


@stage
def pass_block(
    codes: Array,
    classes: Array,
    numbers: Array,
    ties: Array,
    shape: Shape,
    own: Array,
    table: Table,
    tile: Tile,
    at: int,
) -> int:
    """Let each row of a block see its category and all rows, then add it to both; gives how many rows are encoded.

    Those of odd ties are taken away, and not encoded.  `at` says how many are encoded before the block.
    """
    width, (sums, at_tie, _) = cell_width(shape), table
    length = width * shape.n_classes
    everything = len(sums) - length
    n_lines = everything // length
    for i in range(len(codes)):
        code, sign = np.int64(codes[i]), 1 - 2 * (ties[i] & 1)
        line = (code + n_lines if code < 0 else code) * length
        if sign > 0:
            enter_time(line, length, ties[i], table)
            enter_time(everything, length, ties[i], table)
            tile.codes[at], tile.numbers[at] = codes[i], numbers[i]
            for k in range(length):
                tile.seen[np.uint64(at * length + k)] = at_tie[np.uint64(line + k)]
                tile.around[np.uint64(at * length + k)] = at_tie[np.uint64(everything + k)]
            at += 1
        cell = np.int64(classes[i]) * width if len(classes) else 0
        for k in range(width):
            digit = sign * own[np.uint64(i * width + k)]
            sums[np.uint64(line + cell + k)] += digit
            sums[np.uint64(everything + cell + k)] += digit
    return at


@kernel
def merge_places(rows: Array, ties: Array, gone: Array, state: Array, numbers: Array, times: Array) -> int:
    """Write the next rows that come or leave, and numbers of their times; gives how many.

    Number 2 t is that of time t; with 2 t - 1, right before, rows leave in the order in which they came: `gone` of
    them by each time.  `state` says how many have come and left.
    """
    come, left, at = state[0], state[1], 0
    while at < len(numbers) and come < len(rows):
        tie = ties[come]
        if left < gone[tie]:
            numbers[at], times[at] = rows[left], 2 * tie - 1
            left += 1
        else:
            numbers[at], times[at] = rows[come], 2 * tie
            come += 1
        at += 1
    state[0], state[1] = come, left
    return at


@kernel
def hand_out_by_age(
    codes: Array,
    classes: Array,
    given: Numbers,
    measures: Array,
    numbers: Array,
    ties: Array,
    shape: Shape,
    table: Table,
    tile: Tile,
) -> int:
    """Hand out sums to the rows of a tile, and add these to them; gives how many rows are encoded."""
    width, digits, at = cell_width(shape), digit_room(), 0
    own, slots = np.empty(width * BLOCK, np.int64), np.arange(BLOCK) * width
    for begin in range(0, len(codes), BLOCK):
        end = min(begin + BLOCK, len(codes))
        set_all(own[: (end - begin) * width], 0)
        add_rows(given, measures, begin, end, 0, digits, slots[: end - begin], own)
        labels = classes[begin:end]
        at = pass_block(codes[begin:end], labels, numbers[begin:end], ties[begin:end], shape, own, table, tile, at)
    return at


@kernel
def blend_by_age(
    burned: int, shape: Shape, first: int, rule: FusedRule, tile: Tile, start: int, stop: int, to: Destination
) -> int:
    """Write the encodings of the rows [start, stop) of a tile, of which the first `burned` get none; gives the lost."""
    room, length, n_outputs = scratch(shape), cell_width(shape) * shape.n_classes, shape.n_classes - first
    own, around = room_for_moments(n_outputs, BLOCK), room_for_moments(n_outputs, BLOCK)
    number, line = room_for_weights(BLOCK, shape.n_width), np.arange(BLOCK)
    values, counted = np.empty(BLOCK, np.float64), np.empty(BLOCK, np.bool_)
    kind, lost = rule.blend.shrinkage.kind, 0
    for begin in range(start, stop, BLOCK):
        end = min(begin + BLOCK, stop)
        mine, whole = tile.seen[begin * length : end * length], tile.around[begin * length : end * length]
        prior_rows(whole, 0, end - begin, shape, first, rule, room, number, around)
        moment_rows(mine, 0, end - begin, shape, first, kind, kind != M_ESTIMATE, room, number, own)
        sums, here = BlockSums(mine, 0, whole, line, shape, first), tile.codes[begin:end]
        places = tile.numbers[begin:end], begin, burned - begin
        lost += write_rows(here, *places, number, own, around, sums, rule, values, counted, to)
    return lost


def encodings_by_age(
    rows: "Rows",
    n_categories: int,
    n_classes: int,
    layout: "Layout",
    first_output: int,
    order: Array,
    ties: tuple[Array, Array, Array],
    burn_in: int,
    rule: FusedRule,
    out: Array,
    unseen: Array | None,
    /,
) -> int | None:
    """Write the encoding of every row from the rows before it by their age; see `gpu_encode.ops.FusedOps`."""
    to, length = destination(out, unseen, n_classes - first_output), n_classes * layout.width
    if to is None:
        return None
    shape, measures, table = shape_of(layout, n_classes), measures_of(layout), table_of(n_categories + 3, length, True)
    given, starts = (freeze(order, np.int64), freeze(ties[0], np.int64)), ties[1]
    gone, state, lost = freeze(starts[ties[2]], np.int64), np.zeros(2, np.int64), 0
    # The rows of one time burn in together.
    first = np.searchsorted(starts, burn_in)
    burned = int(starts[first]) if first < len(starts) else len(order)
    numbers, times = np.empty((2, min(tile_size(length), 2 * len(order))), np.int64)
    tile = tile_of(len(numbers), length)
    while n := merge_places(*given, gone, state, numbers, times):
        mine, when = freeze(numbers[:n], np.int64), freeze(times[:n], np.int64)
        here = rows.pick(mine)
        known = codes_of(here.codes), codes_of(here.classes), numbers_of(here), measures
        n_encoded = hand_out_by_age(*known, mine, when, shape, table, tile)
        lost += run_counting(blend_by_age, n_encoded, (burned, shape, first_output, rule, tile), to)
        burned -= n_encoded
    return lost
