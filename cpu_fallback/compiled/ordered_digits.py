"""Encodings from sums of any kind: first each row of a tile gets the sums that it sees, then all threads encode."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cpu_fallback.compiled import threads
from cpu_fallback.compiled.addition import add_rows
from cpu_fallback.compiled.block_moments import (
    BLOCK,
    BlockMoments,
    BlockSums,
    BlockWeights,
    blend_rows,
    moment_rows,
    prior_rows,
    room_for_moments,
    room_for_weights,
)
from cpu_fallback.compiled.border import Array, RowParts, kernel, parts_of, separate, set_all, stage
from cpu_fallback.compiled.checkpoints import END, Walk, enter, leg, pause
from cpu_fallback.compiled.digits import scratch as digit_room
from cpu_fallback.compiled.moments import cell_width, scratch
from cpu_fallback.compiled.ordered import Table, find_cells, pass_rows, pass_tied_rows, room_for_added
from cpu_fallback.compiled.row_encodings import CellRule, Destination, flag, write
from cpu_fallback.fused_rules import M_ESTIMATE

if TYPE_CHECKING:
    from cpu_fallback.types import Layout, Rows

# The most segments of one prior at a time, and the most numbers that a tile may hold.
MOST_SEGMENTS = 1 << 10
MOST_NUMBERS = 1 << 18
# A row costs about as much as ten rows of other kernels.
SMALLEST_SHARE = 1 << 11


class Tile(NamedTuple):
    """The digits that the rows of a tile see, where the rows of each prior end, the priors, and their digits."""

    seen: Array
    ends: Array
    priors: BlockMoments
    around: Array


@stage
def add_lines(own: Array, accumulators: Array, lines: Array, n: int, width: int, totals: Array) -> None:
    """Add the rows of a block to the sums over all categories."""
    for column in range(width):
        total = np.int64(0)
        if len(totals) == width:
            for i in range(n):
                total += own[i * width + column]
            totals[column] += total
        else:
            for i in range(n):
                totals[accumulators[i] - lines[i] + column] += own[i * width + column]


@stage
def keep(prior: BlockMoments, source: Array, tile: Tile, segment: int) -> None:
    """Keep the priors of a segment, and the digits that they come from."""
    priors, length = tile.priors, len(source)
    for output in range(len(prior.mean)):
        priors.mean[output, segment] = prior.mean[output, 0]
        priors.fraction[output, segment] = prior.fraction[output, 0]
        priors.exponent[output, segment] = prior.exponent[output, 0]
        priors.high[output, segment] = prior.high[output, 0]
        priors.lower[output, segment] = prior.lower[output, 0]
    for i in range(length):
        tile.around[segment * length + i] = source[i]


@kernel
def hand_out(
    rows: RowParts, start: int, stop: int, cell_rule: CellRule, walk: Walk, table: Table, tile: Tile
) -> tuple[int, int]:
    """Let the ranks [start, stop) see sums while there is room for priors; give the next rank, and count the priors."""
    shape, first = cell_rule.shape, cell_rule.first
    width, at, segments, room, digits = cell_width(shape), start, 0, scratch(shape), digit_room()
    totals, ends, number = walk.totals, tile.ends, room_for_weights(1, shape.n_width)
    prior = room_for_moments(shape.n_classes - first, 1)
    block, slots, length = room_for_added(width), np.arange(BLOCK) * width, width * shape.n_classes
    extents = len(table.sums) // length, shape.n_classes, width
    while at < stop:
        entering = at == walk.state[END]
        if (entering or at == start) and segments == len(ends):
            break
        if entering:
            source = walk.held if enter(walk, at) else totals
            prior_rows(source, 0, 1, cell_rule, room, number, prior)
            keep(prior, source, tile, segments)
            pause(walk, at)
        segments += 1 if entering or at == start else 0
        end = min(leg(walk, at, stop), at + BLOCK)
        begin, n = at - start, end - at
        set_all(block.own[: n * width], 0)
        add_rows(rows, begin, begin + n, 0, digits, slots[:n], block.own)
        find_cells(rows.codes[begin : begin + n], rows.classes[begin : begin + n], extents, block)
        if len(walk.starts):
            pass_tied_rows(walk.ties[at:end], block, width, length, begin, table, tile.seen)
        else:
            pass_rows(n, block, width, length, begin, table.sums, tile.seen)
        add_lines(block.own, block.accumulators, block.lines, n, width, totals)
        at = end
        pause(walk, at)
        ends[segments - 1] = at
    return at, segments


@stage
def spread_priors(
    ends: Array, rank: int, segment: int, n: int, priors: BlockMoments, out: BlockMoments, line: Array
) -> int:
    """Write for each of n rows from `rank` on its segment's priors and number; give the segment of the last row."""
    at = 0
    while at < n:
        while ends[segment] <= rank + at:
            segment += 1
        end = min(ends[segment] - rank, n)
        for output in range(len(out.mean)):
            set_all(out.mean[output, at:end], priors.mean[output, segment])
            set_all(out.fraction[output, at:end], priors.fraction[output, segment])
            set_all(out.exponent[output, at:end], priors.exponent[output, segment])
            set_all(out.high[output, at:end], priors.high[output, segment])
            set_all(out.lower[output, at:end], priors.lower[output, segment])
        set_all(line[at:end], segment)
        at = end
    return segment


@separate
def write_rows(
    codes: Array,
    numbers: Array,
    begin: int,
    burned: int,
    number: BlockWeights,
    own: BlockMoments,
    around: BlockMoments,
    sums: BlockSums,
    values: Array,
    counted: Array,
    to: Destination,
) -> int:
    """Write the encodings of a block, but not of the first `burned` rows; count the lost encodings."""
    lost, n = 0, len(codes)
    for output in range(len(own.mean)):
        blend_rows(codes, number, own, around, output, sums, values[:n], counted[:n])
        set_all(values[: max(min(burned, n), 0)], np.nan)
        lost += write(values[:n], to.columns[output], numbers, begin, to.wide, to.narrow)
    flag(counted[:n], numbers, begin, to.unseen)
    return lost


@kernel
def blend_seen(
    codes: Array,
    numbers: Array,
    rank: int,
    burned: int,
    cell_rule: CellRule,
    tile: Tile,
    start: int,
    stop: int,
    to: Destination,
) -> int:
    """Write the encodings of the rows [start, stop) of a tile that begins at `rank`; count the lost encodings."""
    shape, first, rule = cell_rule
    room, length, n_outputs = scratch(shape), cell_width(shape) * shape.n_classes, shape.n_classes - first
    own, around, number = (
        room_for_moments(n_outputs, BLOCK),
        room_for_moments(n_outputs, BLOCK),
        room_for_weights(BLOCK, shape.n_width),
    )
    values, counted, line = np.empty(BLOCK, np.float64), np.empty(BLOCK, np.bool_), np.empty(BLOCK, np.int64)
    kind, lost, segment = rule.blend.shrinkage.kind, 0, 0
    for begin in range(start, stop, BLOCK):
        n, at = min(BLOCK, stop - begin), rank + begin
        segment = spread_priors(tile.ends, at, segment, n, tile.priors, around, line)
        moment_rows(tile.seen, begin * length, n, shape, first, kind, kind != M_ESTIMATE, room, number, own)
        sums = BlockSums(tile.seen, begin * length, tile.around, line, cell_rule)
        mine = numbers[begin : begin + n] if len(numbers) else numbers
        here = codes[begin : begin + n]
        lost += write_rows(here, mine, at, burned - at, number, own, around, sums, values, counted, to)
    return lost


def tile_of(n_rows: int, length: int, n_outputs: int) -> Tile:
    """Give room for the rows of a tile."""
    return Tile(
        np.empty(n_rows * length, np.int64),
        np.zeros(MOST_SEGMENTS, np.int64),
        room_for_moments(n_outputs, MOST_SEGMENTS),
        np.empty(MOST_SEGMENTS * length, np.int64),
    )


def encode_from_digits(
    rows: "Rows", numbers: Array, layout: "Layout", ranks: Sequence[int], tile: Tile, fixed: tuple[Any, ...]
) -> int:
    """Write the encodings of the ranks of one tile; count the lost encodings."""
    cell_rule, walk, table, to = fixed
    at, stop = ranks
    here = rows.pick(numbers) if len(numbers) else rows.block(at, stop)
    lost = 0
    while at < stop:
        parts = parts_of(here, layout)
        reached, segments = hand_out(parts, at, stop, cell_rule, walk, table, tile)
        given = parts.codes, numbers, at, walk.burned, cell_rule, tile
        lost += sum(run_for_rows(blend_seen, reached - at, given, to))
        for part in tile.priors:
            part[:, 0] = part[:, segments - 1]
        lines = tile.around.reshape(MOST_SEGMENTS, -1)
        lines[0] = lines[segments - 1]
        here, numbers = here.block(reached - at, stop - at), numbers[reached - at :]
        at = reached
    return lost


def run_for_rows(work: Callable[..., int], n_rows: int, given: tuple[Any, ...], to: Destination) -> list[int]:
    """Call work(*given, start, stop, to) for shares of the rows, and give the results."""
    parts = threads.shares(n_rows, smallest=SMALLEST_SHARE)
    results = [0] * len(parts)

    def one(share: int) -> None:
        results[share] = work(*given, *parts[share], to)

    threads.run(one, len(parts))
    return results
