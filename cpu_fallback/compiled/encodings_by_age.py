"""Encode rows from the rows before them, weighted by age, in one pass: see `gpu_encode.seam.ops.FusedOps`.

First each row of a tile gets the sums that it sees; then all threads make encodings of them, as in `ordered_digits`.
Here each time has a prior of its own.  If rows lose weight, sums are on the scale of their block, and are multiplied by
the factor of the row's step when an encoding is made.
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
    RowParts,
    freeze,
    kernel,
    parts_of,
    set_all,
    stage,
)
from cpu_fallback.compiled.decay import see_cell
from cpu_fallback.compiled.digits import scratch as digit_room
from cpu_fallback.compiled.moments import Shape, cell_width, scratch, shape_of
from cpu_fallback.compiled.ordered import Table, table_of
from cpu_fallback.compiled.ordered_digits import run_for_rows, write_rows
from cpu_fallback.compiled.ordered_encodings import tile_size
from cpu_fallback.compiled.ordered_pairs import form_of
from cpu_fallback.compiled.pairs_by_age import AgeWalk
from cpu_fallback.compiled.row_encodings import CellRule, Destination, destination
from cpu_fallback.decay import blocks_of, factors_of, layout_of, room_for_two_blocks, spans_of
from cpu_fallback.fused_rules import M_ESTIMATE, FusedRule, RowEncodings
from cpu_fallback.row_numbers import TimeOrder
from cpu_fallback.types import Rows

if TYPE_CHECKING:
    from cpu_fallback.types import Layout, SumShape


NO_NUMBERS = freeze(np.zeros(0, np.int64), np.int64)


class Tile(NamedTuple):
    """Rows of a tile: for each, the sums that it sees of its category and of all rows; its category, number and time.

    Sums are digits.  Each peak is at least as large as all digits of its column.
    """

    seen: Array
    around: Array
    codes: Array
    numbers: Array
    times: Array
    peaks: Array


class Blocks(NamedTuple):
    """Blocks of rows that lose weight: the block of each time, the current block, and its sums from the block before.

    `columns` says where the columns of each measure begin and end.
    """

    of_time: Array
    now: Array
    earlier: Array
    columns: Array


class View(NamedTuple):
    """Spans, and a factor for each time, which turn stored sums into the sums that a row sees.

    Both are empty if rows see the sums as they are stored.  The spans are those of `cpu_fallback.decay.spans_of`.
    """

    spans: Array
    factors: Array


def tile_of(n_rows: int, length: int, width: int) -> Tile:
    """Give room for the rows of a tile."""
    seen, around = np.empty(n_rows * length, np.int64), np.empty(n_rows * length, np.int64)
    numbers, times = np.empty((2, n_rows), np.int64)
    return Tile(seen, around, np.empty(n_rows, np.int32), numbers, times, np.empty(width, np.int64))


@stage
def enter_block(block: int, blocks: Blocks, width: int, sums: Array) -> None:
    """Bring sums to the scale of a block; only sums of this block and of the one before are kept."""
    follows, columns, earlier = block == blocks.now[0] + 1, blocks.columns, blocks.earlier
    blocks.now[0] = block
    for cell in range(0, len(sums), width):
        for k in range(0, len(columns), 2):
            for column in range(columns[k], columns[k + 1]):
                # The sums of the block itself, times 2**-64: two columns lower.
                here, above = np.uint64(cell + column), np.uint64(cell + column + 2)
                earlier[here] = sums[above] - earlier[above] if follows and column + 2 < columns[k + 1] else 0
                sums[here] = earlier[here]


@stage
def enter_time(line: int, length: int, tie: int, table: Table) -> None:
    """Keep the sums of a line before the first row of a time, since all rows of this time see these sums."""
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
    blocks: Blocks,
    table: Table,
    tile: Tile,
    at: int,
) -> int:
    """Let each row of a block see its category and all rows, then add the row to both; give the number of encoded rows.

    Rows of ties with odd numbers are subtracted, and not encoded.  `at` is the number of rows encoded before the block.
    If all times differ, the table has no sums at ties.
    """
    width, sums, tied = cell_width(shape), table.sums, len(table.at_tie) > 0
    before = table.at_tie if tied else sums
    length = width * shape.n_classes
    everything = len(sums) - length
    n_lines = everything // length
    for i in range(len(codes)):
        if len(blocks.of_time) and blocks.of_time[ties[i] >> 1] != blocks.now[0]:
            enter_block(blocks.of_time[ties[i] >> 1], blocks, width, sums)
        code, sign = np.int64(codes[i]), 1 - 2 * (ties[i] & 1)
        line = (code + n_lines if code < 0 else code) * length
        if sign > 0:
            if tied:
                enter_time(line, length, ties[i], table)
                enter_time(everything, length, ties[i], table)
            tile.codes[at], tile.numbers[at], tile.times[at] = codes[i], numbers[i], ties[i] >> 1
            for k in range(length):
                tile.seen[np.uint64(at * length + k)] = before[np.uint64(line + k)]
                tile.around[np.uint64(at * length + k)] = before[np.uint64(everything + k)]
            at += 1
        cell = np.int64(classes[i]) * width if len(classes) else 0
        for k in range(width):
            digit = sign * own[np.uint64(i * width + k)]
            sums[np.uint64(line + cell + k)] += digit
            sums[np.uint64(everything + cell + k)] += digit
    return at


@stage
def find_peaks(digits: Array, peaks: Array) -> None:
    """Raise each peak to at least the magnitude of every digit of its column, and below the next power of two."""
    width = len(peaks)
    for k in range(width):
        peak = np.int64(0)
        for cell in range(0, len(digits), width):
            peak |= abs(digits[np.uint64(cell + k)])
        peaks[k] |= peak


@stage
def see_rows(digits: Array, begin: int, times: Array, columns: Array, n_classes: int, view: View, out: Array) -> None:
    """Write the sums that each row from `begin` on sees; `columns` has room for a cell and one more column."""
    width, to = len(columns) - 1, 0
    at = begin * width * n_classes
    for i in range(len(times)):
        factor, power = view.factors[2 * times[i]], view.factors[2 * times[i] + 1]
        for _ in range(n_classes):
            to = see_cell(digits, at, view.spans, factor, power, columns, out, to)
            at += width


@kernel
def merge_rows(rows: Array, ties: Array, gone: Array, state: Array, numbers: Array, times: Array) -> int:
    """Write the next rows that come or leave, and the numbers of their times; give the number of these rows.

    Time t has the number 2 t for rows that come, and 2 t - 1 for rows that leave, in the order in which they came;
    `gone` is the number of rows that have left by each time, and `state` has the numbers of rows come and left so far.
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
    rows: RowParts, numbers: Array, ties: Array, shape: Shape, blocks: Blocks, table: Table, tile: Tile
) -> int:
    """Give each row of a tile its sums, then add the row to the sums; give the number of encoded rows."""
    width, digits, at = cell_width(shape), digit_room(), 0
    own, slots = np.empty(width * BLOCK, np.int64), np.arange(BLOCK) * width
    for begin in range(0, len(rows.codes), BLOCK):
        end = min(begin + BLOCK, len(rows.codes))
        set_all(own[: (end - begin) * width], 0)
        add_rows(rows, begin, end, 0, digits, slots[: end - begin], own)
        here = rows.codes[begin:end], rows.classes[begin:end], numbers[begin:end], ties[begin:end]
        at = pass_block(*here, shape, own, blocks, table, tile, at)
    if len(blocks.of_time):
        set_all(tile.peaks, 0)
        find_peaks(tile.seen[: at * width * shape.n_classes], tile.peaks)
        find_peaks(tile.around[: at * width * shape.n_classes], tile.peaks)
    return at


@kernel
def blend_by_age(
    burned: int,
    width: int,
    cell_rule: CellRule,
    view: View,
    tile: Tile,
    start: int,
    stop: int,
    to: Destination,
) -> int:
    """Write the encodings of the rows [start, stop) of a tile, but not of the first `burned`; count the lost encodings.

    A stored cell has `width` columns; a cell that a row sees has the shape of the rule.
    """
    shape, first, rule = cell_rule
    room, length, n_outputs = scratch(shape), cell_width(shape) * shape.n_classes, shape.n_classes - first
    own, around = room_for_moments(n_outputs, BLOCK), room_for_moments(n_outputs, BLOCK)
    number, line = room_for_weights(BLOCK, shape.n_width), np.arange(BLOCK)
    values, counted = np.empty(BLOCK, np.float64), np.empty(BLOCK, np.bool_)
    kind, lost, size = rule.blend.shrinkage.kind, 0, BLOCK * length if len(view.spans) else 0
    mine, whole, columns = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(width + 1, np.int64)
    for begin in range(start, stop, BLOCK):
        end = min(begin + BLOCK, stop)
        if size:
            see_rows(tile.seen, begin, tile.times[begin:end], columns, shape.n_classes, view, mine)
            see_rows(tile.around, begin, tile.times[begin:end], columns, shape.n_classes, view, whole)
        else:
            mine, whole = tile.seen[begin * length : end * length], tile.around[begin * length : end * length]
        prior_rows(whole, 0, end - begin, cell_rule, room, number, around)
        moment_rows(mine, 0, end - begin, shape, first, kind, kind != M_ESTIMATE, room, number, own)
        sums, here = BlockSums(mine, 0, whole, line, cell_rule), tile.codes[begin:end]
        ranks = tile.numbers[begin:end], begin, burned - begin
        lost += write_rows(here, *ranks, number, own, around, sums, values, counted, to)
    return lost


def blocks_of_times(steps: Array | None, layout: "Layout", size: int) -> Blocks:
    """Give the blocks of all times of a call if its rows lose weight, with room for `size` sums."""
    if steps is None:
        return Blocks(NO_NUMBERS, *(np.zeros(0, np.int64) for _ in range(3)))
    of_time = freeze(blocks_of(steps), np.int64)
    bounds = [[columns.start, columns.stop] for _, _, columns in layout.measures()]
    return Blocks(of_time, of_time[:1].copy(), np.zeros(size, np.int64), np.array(bounds, np.int64).reshape(-1))


class Ageing:
    """The form in which the rows of a tile see sums: as they are stored, or multiplied for the step of their time.

    Parameters
    ----------
    layout : Layout
        Layout of the sums.
    n_classes : int
    steps : int64 array (times,), optional
        Step of each time, if rows lose weight.
    """

    def __init__(self, layout: "Layout", n_classes: int, steps: Array | None) -> None:
        self.layout, self.n_classes, self.loses = layout, n_classes, steps is not None
        self.factors = np.zeros((0, 2), np.int64) if steps is None else factors_of(steps)
        self.flat = freeze(self.factors.reshape(-1), np.int64)

    def view(self, peaks: Array, times: Array) -> tuple[Shape, View]:
        """Describe how rows see cells, and how cells are stored; peaks and times are those of a tile, in order."""
        if not self.loses:
            return shape_of(self.layout, self.n_classes), View(NO_NUMBERS, self.flat)
        spans = spans_of(peaks, self.layout, self.factors[times[0] : times[-1] + 1, 1])
        shape = shape_of(layout_of(spans, self.layout), self.n_classes)
        return shape, View(freeze(spans.reshape(-1), np.int64), self.flat)


def encodings_by_age(
    rows: Rows,
    shape: "SumShape",
    order: TimeOrder,
    burn_in: int,
    rule: FusedRule,
    out: RowEncodings,
    /,
) -> int | None:
    """Write the encoding of every row from the rows before it, weighted by age; see `gpu_encode.seam.ops.FusedOps`."""
    if (to := destination(out)) is None:
        return None
    # All rows of one time get encodings, or none of them.
    first = np.searchsorted(order.starts, burn_in)
    burned = int(order.starts[first]) if first < len(order.starts) else len(order.rows)
    n_open = encode_from_pairs(rows, shape, order, burned, rule, to)
    if not n_open:
        return 0
    return encode_from_sums(rows, shape, first_ranks(order, n_open), burned, rule, to)


def encode_from_pairs(
    rows: Rows, shape: "SumShape", order: TimeOrder, burned: int, rule: FusedRule, to: Destination
) -> int:
    """Write encodings by pairs of floats; give the number of first ranks whose rows exact code has to encode."""
    if rows.classes is not None and shape.n_classes == 2 and len(to.columns) == 1 and order.steps is not None:
        # The share of the second of two classes is the mean of their numbers, 0 and 1; windows of counts are quicker.
        rows = Rows(rows.codes, target=rows.classes.astype(np.int64), weight=rows.weight)
    form = form_of(rows, order, rule) if len(rows) else None
    return len(order.rows) if form is None else AgeWalk(rows, shape, order, form, burned, to).encode()


def first_ranks(order: TimeOrder, number: int) -> TimeOrder:
    """Give an order's first ranks, at least so many, up to the end of a time."""
    starts, firsts, steps = order.starts, order.firsts, order.steps
    times = int(order.ties[number - 1]) + 1
    stop = int(starts[times]) if times < len(starts) else len(order.rows)
    parts = (None if part is None else part[:times] for part in (firsts, steps))
    return TimeOrder(order.rows[:stop], order.ties[:stop], starts[:times], *parts)


def encode_from_sums(
    rows: Rows, shape: "SumShape", order: TimeOrder, burned: int, rule: FusedRule, to: Destination
) -> int:
    """Write the encodings of the rows of an order from exact sums; count the lost encodings."""
    (n_categories, _, n_classes, layout), steps, starts = shape, order.steps, order.starts
    held = layout if steps is None else room_for_two_blocks(layout)
    length, first_output = n_classes * held.width, n_classes - len(to.columns)
    tied = len(starts) < len(order.rows)
    cell, table = shape_of(held, n_classes), table_of(n_categories + 3, length, tied)
    given = freeze(order.rows, np.int64), freeze(order.ties, np.int64)
    gone = freeze(np.zeros_like(starts) if order.firsts is None else starts[order.firsts], np.int64)
    blocks, ageing = blocks_of_times(steps, held, len(table.sums)), Ageing(held, n_classes, steps)
    numbers, times = np.empty((2, min(tile_size(length), 2 * len(order.rows))), np.int64)
    tile, state, lost = tile_of(len(numbers), length, held.width), np.zeros(2, np.int64), 0
    while n := merge_rows(*given, gone, state, numbers, times):
        mine, when = freeze(numbers[:n], np.int64), freeze(times[:n], np.int64)
        n_encoded = hand_out_by_age(parts_of(rows.pick(mine), held), mine, when, cell, blocks, table, tile)
        seen_shape, view = ageing.view(tile.peaks, tile.times[:n_encoded])
        fixed = burned, held.width, CellRule(seen_shape, first_output, rule), view, tile
        lost += sum(run_for_rows(blend_by_age, n_encoded, fixed, to))
        burned -= n_encoded
    return lost
