"""Encodings in an order from pairs of floats (`pair_encodings`), tile by tile, on all threads.

Each thread has some of the categories: it reads the codes of all rows of a tile, and adds and encodes those of its own
categories, in order.  Before that, all threads together sum the pieces of the tile whose rows share a prior.  A pair
depends on the order of additions, and its bound does, but the encodings that are certain do not.  So they are the same
bits for any number of threads, and exact code encodes all rows up to the last open one.

An addition to a sum of all rows is one of at most 2 rows + 10, so N is within 2**-103 (rows + 5) of itself.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.compiled import threads
from cpu_fallback.compiled.border import (
    REAL,
    Array,
    RowParts,
    freeze,
    kernel,
    parts_of,
    set_all,
    stage,
)
from cpu_fallback.compiled.checkpoints import (
    BEGINS,
    FROM_KEPT,
    KEEP_AFTER,
    KEEP_BEFORE,
    Walk,
    cut_pieces,
    edges_of,
    rises,
    rows_of,
)
from cpu_fallback.compiled.digits import HALF, MASK, parts
from cpu_fallback.compiled.folds import walk_share
from cpu_fallback.compiled.pair_encodings import BLOCK, PRIOR_WIDTH, Priors, encode_block, room_for_block, write_prior
from cpu_fallback.compiled.row_encodings import Destination, flag, write
from cpu_fallback.compiled.running_pairs import (
    BLEND_WIDTH,
    CENTRE,
    ESTIMATE_WIDTH,
    LANES,
    NOISE,
    S_LOW,
    WEIGHED_WIDTH,
    Form,
    N,
    add_line,
    add_row,
    is_moderate,
    number_and_weight,
    see,
    sum_piece,
)
from cpu_fallback.fused_rules import EMPIRICAL_BAYES, M_ESTIMATE, FusedRule
from cpu_fallback.memory import empty, zeros
from cpu_fallback.row_numbers import Order, Permutation, TimeOrder

if TYPE_CHECKING:
    from cpu_fallback.types import Rows, SumShape

# Rows at a time; a time with more rows is one tile.  Of this many rows, those of a thread are worked on together.
TILE, FETCHED = 1 << 17, 1 << 9
ROW_BOUND, OTHER_STEPS = 2.0**-103, 1024
# If rows of a later rank stay open, exact code encodes all rows.
FEW_ROWS = 1 << 16
# Lines of 16 numbers are two lines of a cache, so that no two threads write to one line.
WEIGHED_STEP, CACHE_LINE = 16, 64
GOLDEN = np.uint64(0x9E3779B1)
NO_NUMBERS = freeze(np.zeros(0, np.int64), np.int64)


class Tile(NamedTuple):
    """Rows of neighbouring ranks, from `base` on, and their numbers and times; both may be empty.

    Without numbers, the rows are in their own order.
    """

    rows: RowParts
    base: int
    numbers: Array
    ties: Array
    start: int
    size: int


class Pieces(NamedTuple):
    """Pieces of a tile: the rank at which each ends, its mark, the number of its prior, and its sums."""

    ends: Array
    marks: Array
    prior_of: Array
    sums: Array


class ShareRoom(NamedTuple):
    """What the rows of a thread see, number by number, and for each its place in the tile, line, time and prior."""

    seen: Array
    places: Array
    lines: Array
    ties: Array
    prior_of: Array
    numbers: Array


@kernel
def gather_rows(
    rows: RowParts, numbers: Array, start: int, stop: int, codes: Array, target: Array, weight: Array
) -> None:
    """Copy the rows with the numbers [start, stop)."""
    for i in range(start, stop):
        number = np.uint64(numbers[i])
        codes[i] = rows.codes[number]
        target[i] = rows.numbers.target[number]
        if rows.numbers.weight_kind:
            weight[i] = rows.numbers.weight[number]


@kernel
def sum_pieces(tile: Tile, centre: float, form: Form, pieces: Pieces, first: int, last: int) -> bool:
    """Write the sums of pieces; tell whether all numbers of their rows are in range."""
    known, lanes, shift = True, np.empty(LANES * WEIGHED_WIDTH), tile.base - tile.start
    for piece in range(first, last):
        begin = pieces.ends[piece - 1] if piece else tile.start
        to = pieces.sums[piece * WEIGHED_WIDTH : (piece + 1) * WEIGHED_WIDTH]
        known &= sum_piece(tile.rows.numbers, begin + shift, pieces.ends[piece] + shift, centre, form, lanes, to)
    return known


@stage
def copy_line(sums: Array, at: int, out: Array, to: int) -> None:
    """Copy a line of all numbers."""
    for k in range(WEIGHED_WIDTH):
        out[to + k] = sums[at + k]


@kernel
def find_priors(pieces: Pieces, count: int, form: Form, bound: float, walk_sums: Array, priors: Priors) -> int:
    """Write the priors of a tile, of which the first is that of the last tile; give the number of the last one.

    `walk_sums` has the sums of all rows before the tile, and the sums that were kept.
    """
    prior = 0
    for piece in range(count):
        mark = pieces.marks[piece]
        if mark & BEGINS:
            prior += 1
            copy_line(walk_sums, WEIGHED_WIDTH if mark & FROM_KEPT else 0, priors.sums, prior * WEIGHED_WIDTH)
            write_prior(priors.sums, prior * WEIGHED_WIDTH, bound, form, priors.forms, prior * PRIOR_WIDTH)
        if mark & KEEP_BEFORE:
            copy_line(walk_sums, 0, walk_sums, WEIGHED_WIDTH)
        add_line(pieces.sums, piece * WEIGHED_WIDTH, form, walk_sums, 0)
        if mark & KEEP_AFTER:
            copy_line(walk_sums, 0, walk_sums, WEIGHED_WIDTH)
        pieces.prior_of[piece] = prior
    return prior


@stage
def pick_rows(tile: Tile, begin: int, end: int, n_lines: int, share: tuple[int, int], room: ShareRoom) -> int:
    """Write places and lines of those rows from place `begin` to `end` whose categories a thread has; count them."""
    mine, n_shares = np.uint64(share[0]), np.uint64(share[1])
    count, codes = np.uint64(0), tile.rows.codes[tile.base + begin : tile.base + end]
    for i in range(len(codes)):
        code = np.int64(codes[i])
        line = code + n_lines if code < 0 else code
        room.places[count], room.lines[count] = begin + i, line
        # Two lines may lie in one line of the cache.
        owner = ((np.uint64(line >> 1) * GOLDEN & MASK) * n_shares) >> HALF
        count += np.uint64(owner == mine)
    return np.int64(count)  # type: ignore[return-value]


@stage
def describe_rows(tile: Tile, pieces: Pieces, piece: int, count: int, room: ShareRoom) -> int:
    """Write numbers, times and priors of picked rows; give the piece of the last one."""
    tied, numbered, ends = len(tile.ties) > 0, len(tile.numbers) > 0, pieces.ends
    for i in range(count):
        place = np.uint64(room.places[i])
        room.numbers[i] = tile.numbers[place] if numbered else tile.start + room.places[i]
        if tied:
            room.ties[i] = tile.ties[place]
    if ends[piece] > tile.start + room.places[count - 1]:
        set_all(room.prior_of[:count], pieces.prior_of[piece])
        return piece
    for i in range(count):
        while ends[piece] <= tile.start + room.places[i]:
            piece += 1
        room.prior_of[i] = pieces.prior_of[piece]
    return piece


@stage
def fetch_lines(lines: Array, form: Form, sums: Array) -> bool:
    """Read the line of each row's category, in a loop in which cache misses overlap."""
    any_number = 0.0
    for i in range(len(lines)):
        any_number += sums[np.uint64(lines[i] * form.width + N)]
    # This is always true, but the compiler has to read the numbers for it.
    return any_number == any_number  # noqa: PLR0124


@stage
def pass_rows(tile: Tile, count: int, form: Form, sums: Array, room: ShareRoom) -> None:
    """Let rows see the lines of their categories, then add them, time by time."""
    i, size, tied, width = 0, len(room.lines), len(tile.ties) > 0, form.width
    while i < count:
        end = i + 1
        while tied and end < count and room.ties[end] == room.ties[i]:
            end += 1
        for k in range(i, end):
            see(sums, room.lines[np.uint64(k)] * width, form, room.seen, k, size)
        for k in range(i, end):
            at = room.lines[np.uint64(k)] * width
            place = np.uint64(tile.base + room.places[np.uint64(k)])
            v, weight, product, error = number_and_weight(tile.rows.numbers, place, form)
            centre = 0.0
            if form.blends:
                if sums[np.uint64(at + N)] == 0.0:
                    sums[np.uint64(at + CENTRE)] = v
                centre = sums[np.uint64(at + CENTRE)]
            add_row(v, weight, product, error, centre, form, sums, at)
        i = end


@kernel
def encode_share(
    tile: Tile,
    pieces: Pieces,
    priors: Priors,
    form: Form,
    sums: Array,
    n_lines: int,
    share: tuple[int, int],
    burned: int,
    bound: float,
    room: ShareRoom,
    to: Destination,
) -> int:
    """Add and encode those rows of a tile whose categories a thread has; give the rank of the last open row plus one.

    It is zero if no row stays open.
    """
    block, last, at, piece, size = room_for_block(), 0, 0, 0, len(room.lines)
    while at < tile.size:
        end = min(at + FETCHED * share[1], tile.size)
        while len(tile.ties) and end < tile.size and tile.ties[end] == tile.ties[end - 1]:
            end += 1
        count = pick_rows(tile, at, end, n_lines, share, room)
        at = end
        if not count:
            continue
        piece = describe_rows(tile, pieces, piece, count, room)
        if fetch_lines(room.lines[:count], form, sums):
            pass_rows(tile, count, form, sums, room)
        for first in range(0, count, BLOCK):
            stop = min(first + BLOCK, count)
            mine, numbers = room.prior_of[first:stop], room.numbers[first:stop]
            lines, places = room.lines[first:stop], room.places[first:stop]
            fixed = burned - tile.start, form, bound, block
            open_row = encode_block(room.seen, first, size, mine, priors, lines, n_lines, places, *fixed)
            last = tile.start + open_row if open_row else last
            write(block.values[: stop - first], to.columns[0], numbers, 0, to.wide, to.narrow)
            flag(block.counted[: stop - first], numbers, 0, to.unseen)
    return last


@stage
def add_number(value: float, low: int, last: int, digits: Array) -> None:
    """Add the digits of a float to digits that begin at position `low`."""
    word, sign, exponent = parts(np.float64(value).view(np.uint64), REAL)
    if value == 0.0:
        return
    shift = exponent - 32 * low
    while shift < 0:
        # Only zeros lie below the window.
        word, shift = word >> np.uint64(1), shift + 1
    column, ahead = min(shift >> 5, last), np.uint64(0)
    ahead = np.uint64(shift - 32 * column)
    digits[column] += (np.int64((word << ahead) & MASK) ^ sign) - sign
    rest = word >> np.uint64(1) >> (np.uint64(31) - ahead)
    if rest:
        digits[column + 1] += (np.int64(rest & MASK) ^ sign) - sign
    if rest >> HALF:
        digits[column + 2] += (np.int64(rest >> HALF) ^ sign) - sign


@kernel
def write_sums(sums: Array, form: Form, measures: Array, start: int, stop: int, out: Array) -> bool:
    """Write the digits of the lines [start, stop), carried; False if a line is not exact."""
    whole, low, width = measures[1, 1], measures[1, 2], measures[1, 3]
    for line in range(start, stop):
        at, digits = line * form.width, out[line * (width + 1) : (line + 1) * (width + 1)]
        if sums[at + NOISE] != 0.0:
            return False
        digits[0] = np.int64(sums[at + N])
        high, rest = sums[at], sums[at + S_LOW]
        if whole:
            digits[1] = np.int64(high) + np.int64(rest)
            continue
        for k in range(1, width + 1):
            digits[k] = 0
        add_number(high, low, width - 1, digits[1:])
        add_number(rest, low, width - 1, digits[1:])
        for k in range(1, width):
            over = digits[k] >> 32
            digits[k] -= over << 32
            digits[k + 1] += over
    return True


def form_of(rows: "Rows", order: Order, rule: FusedRule) -> Form | None:
    """Say what lines hold for the encodings of one target without classes; None if pairs do not encode such rows."""
    shrinkage, weighted = rule.blend.shrinkage, rows.weight is not None
    blends = shrinkage.kind == EMPIRICAL_BAYES
    known = blends or (shrinkage.kind == M_ESTIMATE and shrinkage.first > 0 and is_moderate(shrinkage.first))
    known = known and (rule.by_mean or is_moderate(rule.prior)) and not (weighted and rule.blend.least)
    if not known or rows.classes is not None or rows.target is None or rows.target.ndim > 1:
        return None
    if isinstance(order, TimeOrder) and (order.firsts is not None or order.steps is not None):
        return None
    return Form(WEIGHED_STEP if weighted else BLEND_WIDTH if blends else ESTIMATE_WIDTH, weighted, blends, rule)


def lines_of(size: int) -> Array:
    """Give lines of zeros, which begin where a line of the cache begins."""
    room = zeros(size + CACHE_LINE // 8, np.float64)
    begin = -room.ctypes.data % CACHE_LINE // 8
    return room[begin : begin + size]


class PairWalk:
    """A walk through an order that encodes tile after tile.

    Parameters
    ----------
    rows : Rows
    shape : SumShape
    order : Permutation, TimeOrder or RowOrder
    form : Form
    walk : Walk
    to : Destination
    """

    def __init__(self, rows: "Rows", shape: "SumShape", order: Order, form: Form, walk: Walk, to: Destination) -> None:
        self.rows, self.order, self.form, self.walk, self.to = parts_of(rows, shape.layout), order, form, walk, to
        self.shape, self.n_lines, tied = shape, shape.n_categories + 2, len(walk.starts) > 0
        self.edges = edges_of(walk.n_rows, TILE, walk.starts if tied else None)
        self.sums, self.all_rows = lines_of(self.n_lines * form.width), np.zeros(2 * WEIGHED_WIDTH)
        self.bound = ((2 * walk.n_rows if form.weighted else 0) + OTHER_STEPS) * ROW_BOUND
        self.numbers = numbers_of_ranks(order)
        size = max((stop - start for start, stop in self.edges), default=0)
        self.cuts = empty((3, 2 * size), np.int64)
        gathered = 0 if self.numbers is None else size
        self.copies = empty(gathered, np.int32), *empty((3, gathered), np.uint64)
        self.n_shares = len(threads.shares(walk.n_rows))
        longest = FETCHED * self.n_shares + (int(np.diff(walk.starts, append=walk.n_rows).max()) if tied else 0)
        # Without weights, the low part of N stays zero.
        self.rooms = [
            ShareRoom(zeros(WEIGHED_WIDTH * longest, np.float64), *empty((5, longest), np.int64))
            for _ in range(self.n_shares)
        ]
        self.priors = Priors(np.zeros(WEIGHED_WIDTH), np.zeros(PRIOR_WIDTH))
        self.centre = self.all_rows[[CENTRE, WEIGHED_WIDTH + CENTRE]] = self.first_target(rows)

    def first_target(self, rows: "Rows") -> float:
        """Give the target of the first row in the order."""
        assert rows.target is not None
        if isinstance(self.order, Permutation):
            return float(rows.target[rows_of(self.order, 0, 1)[0]])
        return float(rows.target[0 if self.numbers is None else self.numbers[0]])

    def encode(self) -> int:
        """Encode all tiles; give the number of first ranks whose rows exact code has to encode."""
        n_open = 0
        for start, stop in self.edges:
            last = self.encode_tile(start, stop)
            if last is None or last > FEW_ROWS:
                # Exact code has to encode these rows, and so all before them; it does not pay to go on.
                return self.walk.n_rows
            n_open = max(n_open, last)
        return n_open

    def encode_tile(self, start: int, stop: int) -> int | None:
        """Encode a tile; give the rank of the last open row plus one, or zero; None if numbers are out of range."""
        ends, marks, prior_of = self.cuts
        count = cut_pieces(self.walk, start, stop, ends, marks)
        pieces = Pieces(ends, marks, prior_of, np.empty(count * WEIGHED_WIDTH))
        tile = self.tile_of(start, stop)
        goals = start + (stop - start) * np.arange(1, self.n_shares) // self.n_shares
        cuts = [0, *np.searchsorted(ends[:count], goals).tolist(), count]
        known = [True] * self.n_shares

        def read(share: int) -> None:
            first, last = cuts[share : share + 2]
            if first < last:
                self.read(tile, int(ends[first - 1]) - start if first else 0, int(ends[last - 1]) - start)
                known[share] = sum_pieces(tile, self.centre, self.form, pieces, first, last)

        threads.run(read, self.n_shares)
        if not all(known):
            return None
        self.priors = self.find_priors(pieces, count)
        found = [0] * self.n_shares
        given = tile, pieces, self.priors, self.form, self.sums, self.n_lines

        def encode(share: int) -> None:
            room = self.rooms[share]
            found[share] = encode_share(*given, (share, self.n_shares), self.walk.burned, self.bound, room, self.to)

        threads.run(encode, self.n_shares)
        return max(found)

    def tile_of(self, start: int, stop: int) -> Tile:
        """Describe the rows of a tile."""
        ties, size = self.walk.ties[start:stop], stop - start
        if self.numbers is None:
            return Tile(self.rows, start, NO_NUMBERS, ties, start, size)
        codes, target, weight, numbers = self.copies
        if len(self.numbers):
            numbers = self.numbers[start:stop]
        given = self.rows.numbers._replace(target=freeze(target, np.uint64), weight=freeze(weight, np.uint64))
        rows = self.rows._replace(codes=freeze(codes, np.int32), numbers=given)
        return Tile(rows, 0, freeze(numbers.view(np.int64), np.int64), ties, start, size)

    def read(self, tile: Tile, begin: int, end: int) -> None:
        """Copy rows of a tile into their order, from place `begin` to `end`."""
        if self.numbers is None:
            return
        codes, target, weight, numbers = self.copies
        if isinstance(self.order, Permutation):
            walk_share(self.order, False, tile.start, begin, end, numbers.view(np.int64))
        gather_rows(self.rows, tile.numbers, begin, end, codes, target, weight)

    def find_priors(self, pieces: Pieces, count: int) -> Priors:
        """Give the priors of a tile, of which the first is the last one of the tile before."""
        sums, forms = np.empty((count + 1) * WEIGHED_WIDTH), np.empty((count + 1) * PRIOR_WIDTH)
        sums[:WEIGHED_WIDTH], forms[:PRIOR_WIDTH] = self.priors.sums[-WEIGHED_WIDTH:], self.priors.forms[-PRIOR_WIDTH:]
        last = find_priors(pieces, count, self.form, self.bound, self.all_rows, Priors(sums, forms))
        return Priors(sums[: (last + 1) * WEIGHED_WIDTH], forms[: (last + 1) * PRIOR_WIDTH])

    def sums_of_rows(self) -> Array | None:
        """Give the digits of the sums of all rows, or None if the lines do not hold all of them exactly."""
        layout, form = self.shape.layout, self.form
        if form.blends or form.weighted or layout.total is None or layout.square is not None:
            return None
        out = empty((self.n_lines, 1, layout.width), np.int64)
        ranges, exact = threads.shares(self.n_lines), [False] * len(threads.shares(self.n_lines))

        def work(share: int) -> None:
            exact[share] = write_sums(self.sums, form, self.rows.measures, *ranges[share], out.reshape(-1))

        threads.run(work, len(ranges))
        return out if all(exact) else None


def numbers_of_ranks(order: Order) -> Array | None:
    """Give the row of each rank; None if the rows keep their order, and nothing for a random order."""
    if isinstance(order, Permutation):
        return NO_NUMBERS
    if not isinstance(order, TimeOrder):
        return None
    numbers = freeze(order.rows, np.int64)
    same = len(numbers) and numbers[0] == 0 and numbers[-1] == len(numbers) - 1 and rises(numbers)
    return None if same else numbers
