"""Encodings in an order from pairs of floats (`pair_encodings`), tile by tile, on all threads.

Each thread has some of the categories: it reads the codes of all rows of a tile, and adds and encodes those of its own
categories, in order.  Before that, all threads together sum the pieces of the tile whose rows share a prior.  A pair
depends on the order of additions, and its bound does, but the encodings that are certain do not.  So they are the same
bits for any number of threads, and exact code encodes all rows up to the last open one.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.compiled import threads
from cpu_fallback.compiled.border import REAL, Array, freeze, inlined, kernel, parts_of, set_all, stage
from cpu_fallback.compiled.checkpoints import Walk, cut_pieces, edges_of
from cpu_fallback.compiled.digits import HALF, MASK, parts
from cpu_fallback.compiled.order_pieces import Pieces, find_priors, sum_pieces
from cpu_fallback.compiled.order_tiles import NO_NUMBERS, OrderReader, Tile
from cpu_fallback.compiled.pair_encodings import (
    BLOCK,
    PRIOR_WIDTH,
    Held,
    Priors,
    encode_block,
    room_for_block,
    room_to_hold,
)
from cpu_fallback.compiled.row_encodings import Destination, flag, write
from cpu_fallback.compiled.running_pairs import (
    ALL_WIDTH,
    CENTRE_LINE,
    LARGEST_STEP,
    NOISE,
    PLAIN_STEP,
    S_LOW,
    WEIGHED_STEP,
    Form,
    N,
    add_row,
    centre_line,
    enter_block,
    is_moderate,
    number_and_weight,
    number_of,
    see,
)
from cpu_fallback.decay import STEPS_OF_BLOCK
from cpu_fallback.fused_rules import EMPIRICAL_BAYES, M_ESTIMATE, FusedRule
from cpu_fallback.memory import empty, zeros
from cpu_fallback.row_numbers import Order, TimeOrder

if TYPE_CHECKING:
    from cpu_fallback.types import Rows, SumShape

# Rows at a time; a time with more rows is one tile.  Of this many rows, those of a thread are worked on together.
TILE, FETCHED = 1 << 17, 1 << 9
# If rows of a later rank stay open, exact code encodes all rows.
FEW_ROWS = 1 << 16
CACHE_LINE = 64
GOLDEN = np.uint64(0x9E3779B1)
# How far a thread has picked rows that leave, and taken them away: the index of the next picked row, the number of
# picked rows, and the place of the first row that it has not looked at yet.
NEXT, PICKED, BEYOND = 0, 1, 2


class ShareRoom(NamedTuple):
    """What the rows of a thread see, number by number, and for each its place in the tile, line, time and prior.

    With a window, it also has places and lines of rows that leave, and how far they are taken away.
    """

    seen: Array
    places: Array
    lines: Array
    ties: Array
    prior_of: Array
    numbers: Array
    left_places: Array
    left_lines: Array
    left: Array


@inlined
def owner_of(line: int, n_shares: np.uint64) -> np.uint64:
    """Give the thread that has a line; two lines may lie in one line of the cache."""
    return ((np.uint64(line >> 1) * GOLDEN & MASK) * n_shares) >> HALF


@stage
def pick_rows(
    tile: Tile, begin: int, end: int, n_lines: int, share: tuple[int, int], places: Array, lines: Array
) -> int:
    """Write places and lines of those rows from place `begin` to `end` whose categories a thread has; count them."""
    mine, n_shares = np.uint64(share[0]), np.uint64(share[1])
    count, codes = np.uint64(0), tile.rows.codes[tile.base + begin : tile.base + end]
    for i in range(len(codes)):
        code = np.int64(codes[i])
        line = code + n_lines if code < 0 else code
        places[count], lines[count] = begin + i, line
        count += np.uint64(owner_of(line, n_shares) == mine)
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
    """Read the line of each row's category, and with a half-life that of the block before, so that misses overlap."""
    # The last number of a long line is always zero; it lies in another line of the cache.
    any_number, last = 0.0, form.width - 1 if form.width == LARGEST_STEP else N
    for i in range(len(lines)):
        at = lines[i] * form.width
        any_number += sums[np.uint64(at + N)] + sums[np.uint64(at + last)]
        if form.decays:
            earlier = at + len(sums) // 2
            any_number += sums[np.uint64(earlier + N)] + sums[np.uint64(earlier + last)]
    # This is always true, but the compiler has to read the numbers for it.
    return any_number == any_number  # noqa: PLR0124


@stage
def take_away(
    leaving: Tile, until: int, n_lines: int, share: tuple[int, int], form: Form, sums: Array, room: ShareRoom
) -> None:
    """Take a thread's rows away that leave a window before a place."""
    while True:
        while room.left[NEXT] < room.left[PICKED] and room.left_places[np.uint64(room.left[NEXT])] < until:
            take_row_away(leaving, np.uint64(room.left[NEXT]), form, sums, room)
            room.left[NEXT] += 1
        if room.left[NEXT] < room.left[PICKED] or room.left[BEYOND] >= until:
            break
        begin, end = room.left[BEYOND], min(room.left[BEYOND] + FETCHED * share[1], leaving.size)
        count = pick_rows(leaving, begin, end, n_lines, share, room.left_places, room.left_lines)
        room.left[NEXT], room.left[PICKED], room.left[BEYOND] = 0, count, end
        if not fetch_lines(room.left_lines[:count], form, sums):
            break


@inlined
def take_row_away(leaving: Tile, i: np.uint64, form: Form, sums: Array, room: ShareRoom) -> None:
    """Take a picked row away from the line of its category."""
    numbers, place, at = leaving.rows.numbers, leaving.base + room.left_places[i], room.left_lines[i] * form.width
    v = number_of(numbers.target[np.uint64(place)], numbers.target_kind)
    centre = sums[np.uint64(at + form.around + CENTRE_LINE)] if form.blends else 0.0
    add_row(v, -1.0, -v, 0.0, centre, form, sums, at)
    if sums[np.uint64(at + N)] == 0.0:
        # No error is left of the rows that have left.
        for k in range(form.width):
            sums[np.uint64(at + k)] = 0.0


@stage
def add_picked(tile: Tile, place: int, line: int, form: Form, sums: Array) -> None:
    """Add a picked row to the line of its category."""
    at = line * form.width
    v, weight, product, error = number_and_weight(tile.rows.numbers, np.uint64(tile.base + place), form)
    centre = 0.0
    if form.blends:
        if form.decays:
            centre_line(v, weight, form, sums, at)
        elif sums[np.uint64(at + N)] == 0.0:
            sums[np.uint64(at + form.around + CENTRE_LINE)] = v
        centre = sums[np.uint64(at + form.around + CENTRE_LINE)]
    add_row(v, weight, product, error, centre, form, sums, at)


@stage
def pass_rows(
    tile: Tile,
    leaving: Tile,
    gone: Array,
    steps: Array,
    count: int,
    n_lines: int,
    share: tuple[int, int],
    form: Form,
    sums: Array,
    room: ShareRoom,
) -> None:
    """Let rows see the lines of their categories, then add them, time by time.

    With a window, rows that have left are taken away before.  With a half-life, each prior has a step.
    """
    i, size, tied, width = 0, len(room.lines), len(tile.ties) > 0, form.width
    while i < count:
        end = i + 1
        while tied and end < count and room.ties[end] == room.ties[i]:
            end += 1
        if len(gone):
            now = gone[room.prior_of[np.uint64(i)]] - leaving.start
            take_away(leaving, now, n_lines, share, form, sums, room)
        if form.decays:
            block = np.float64(steps[room.prior_of[np.uint64(i)]] // STEPS_OF_BLOCK)
            for k in range(i, end):
                enter_block(block, form, sums, room.lines[np.uint64(k)] * width)
        for k in range(i, end):
            see(sums, room.lines[np.uint64(k)] * width, form, room.seen, k, size)
        for k in range(i, end):
            add_picked(tile, room.places[np.uint64(k)], room.lines[np.uint64(k)], form, sums)
        i = end


@kernel
def encode_share(
    tile: Tile,
    leaving: Tile,
    pieces: Pieces,
    priors: Priors,
    form: Form,
    sums: Array,
    n_lines: int,
    share: tuple[int, int],
    burned: int,
    room: ShareRoom,
    held: Held,
    to: Destination,
) -> int:
    """Add and encode those rows of a tile whose categories a thread has; give the rank of the last open row plus one.

    It is zero if no row stays open.  With a window, the rows `leaving` leave at the tile's times.
    """
    block, last, at, piece, size = room_for_block(), 0, 0, 0, len(room.lines)
    set_all(room.left, 0)
    while at < tile.size:
        end = min(at + FETCHED * share[1], tile.size)
        while len(tile.ties) and end < tile.size and tile.ties[end] == tile.ties[end - 1]:
            end += 1
        count = pick_rows(tile, at, end, n_lines, share, room.places, room.lines)
        at = end
        if not count:
            continue
        piece = describe_rows(tile, pieces, piece, count, room)
        if fetch_lines(room.lines[:count], form, sums):
            pass_rows(tile, leaving, pieces.gone, pieces.steps, count, n_lines, share, form, sums, room)
        for first in range(0, count, BLOCK):
            stop = min(first + BLOCK, count)
            mine, numbers = room.prior_of[first:stop], room.numbers[first:stop]
            lines, places = room.lines[first:stop], room.places[first:stop]
            fixed = burned - tile.start, form, block
            open_row = encode_block(room.seen, first, size, mine, priors, lines, n_lines, places, *fixed, held)
            last = tile.start + open_row if open_row else last
            write(block.values[: stop - first], to.columns[0], numbers, 0, to.wide, to.narrow)
            flag(block.counted[: stop - first], numbers, 0, to.unseen)
    if len(pieces.gone):
        take_away(leaving, leaving.size, n_lines, share, form, sums, room)
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
    decays = isinstance(order, TimeOrder) and order.steps is not None
    if isinstance(order, TimeOrder) and order.firsts is not None and weighted:
        return None
    around = WEIGHED_STEP if weighted else PLAIN_STEP
    return Form(2 * around if blends else around, around, weighted, blends, decays, rule)


def lines_of(size: int) -> Array:
    """Give lines of zeros, which begin where a line of the cache begins."""
    room = zeros(size + CACHE_LINE // 8, np.float64)
    begin = -room.ctypes.data % CACHE_LINE // 8
    return room[begin : begin + size]


def room_for_share(n_rows: int, n_leaving: int) -> ShareRoom:
    """Give room for rows of a thread; without weights, the low part of N stays zero."""
    places, lines, ties, prior_of, numbers = empty((5, n_rows), np.int64)
    left_places, left_lines = empty((2, n_leaving), np.int64)
    seen, left = zeros(ALL_WIDTH * n_rows, np.float64), np.zeros(3, np.int64)
    return ShareRoom(seen, places, lines, ties, prior_of, numbers, left_places, left_lines, left)


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
    tile : int, optional
        Rows of a tile.
    """

    def __init__(
        self,
        rows: "Rows",
        shape: "SumShape",
        order: Order,
        form: Form,
        walk: Walk,
        to: Destination,
        tile: int | None = None,
    ) -> None:
        self.rows, self.shape, self.form, self.walk, self.to = parts_of(rows, shape.layout), shape, form, walk, to
        self.n_lines, tied = shape.n_categories + 2, len(walk.starts) > 0
        self.edges = edges_of(walk.n_rows, tile or TILE, walk.starts if tied else None)
        self.reader, self.n_shares = OrderReader(self.rows, order, walk.ties), len(threads.shares(walk.n_rows))
        self.sums = lines_of(self.n_lines * form.width * (2 if form.decays else 1))
        longest = FETCHED * self.n_shares + (int(np.diff(walk.starts, append=walk.n_rows).max()) if tied else 0)
        self.rooms = [room_for_share(longest, FETCHED * self.n_shares) for _ in range(self.n_shares)]
        self.held = [room_to_hold() for _ in range(self.n_shares)]
        self.priors, self.last_prior = Priors(*np.zeros((3, 0))), np.zeros(ALL_WIDTH)
        self.all_rows = np.zeros((2, LARGEST_STEP))
        assert rows.target is not None
        self.centre = float(rows.target[self.reader.first_row()])
        self.all_rows[:, form.around + CENTRE_LINE] = self.centre

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
        tile = self.reader.tile(start, stop)
        leaving, pieces = self.sum_tile(tile)
        if pieces is None:
            return None
        found = [0] * self.n_shares
        given = tile, leaving, pieces, self.priors, self.form, self.sums, self.n_lines

        def encode(share: int) -> None:
            room = self.rooms[share]
            found[share] = encode_share(
                *given, (share, self.n_shares), self.walk.burned, room, self.held[share], self.to
            )

        threads.run(encode, self.n_shares)
        return max(found)

    def sum_tile(self, tile: Tile) -> tuple[Tile, Pieces | None]:
        """Read a tile, and set its priors; give the rows that leave, and its pieces, or None if numbers are not known.

        Without a window, no rows leave.
        """
        ends, marks, prior_of = empty((3, 2 * tile.size), np.int64)
        count = cut_pieces(self.walk, tile.start, tile.start + tile.size, ends, marks)
        pieces = Pieces(ends, marks, prior_of, np.empty(count * LARGEST_STEP), NO_NUMBERS, NO_NUMBERS)
        held = [freeze(part, np.int64) for part in (ends, marks, prior_of)]
        given = Pieces(held[0], held[1], held[2], pieces.sums, NO_NUMBERS, NO_NUMBERS)
        cuts = self.share_pieces(tile, ends[:count])
        known = [True] * self.n_shares

        def read(share: int) -> None:
            first, last = cuts[share : share + 2]
            if first < last:
                self.reader.read(tile, *self.places_of(tile, ends, first, last))
                known[share] = sum_pieces(tile, self.centre, self.form, pieces, first, last)

        threads.run(read, self.n_shares)
        self.priors = self.find_priors(pieces, count)
        return tile, given if all(known) else None

    def share_pieces(self, tile: Tile, ends: Array) -> list[int]:
        """Give the piece at which each thread begins, and the number of pieces."""
        goals = tile.start + tile.size * np.arange(1, self.n_shares) // self.n_shares
        return [0, *np.searchsorted(ends, goals).tolist(), len(ends)]

    def places_of(self, tile: Tile, ends: Array, first: int, last: int) -> tuple[int, int]:
        """Give the places at which some pieces of a tile begin and end."""
        return int(ends[first - 1]) - tile.start if first else 0, int(ends[last - 1]) - tile.start

    def find_priors(self, pieces: Pieces, count: int) -> Priors:
        """Give the priors of a tile, of which the first is the last one of the tile before."""
        sums, forms = np.zeros((ALL_WIDTH, count + 1)), np.empty((PRIOR_WIDTH, count + 1))
        sums[:, 0] = self.last_prior
        priors = Priors(sums.reshape(-1), sums.reshape(-1), forms.reshape(-1))
        last = find_priors(pieces, count, self.form, self.all_rows.reshape(-1), priors)
        self.last_prior = sums[:, last].copy()
        return priors

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
