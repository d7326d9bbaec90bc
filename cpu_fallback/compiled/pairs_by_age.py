"""Encodings by age, by pairs of floats: as `ordered_pairs`, but rows leave a window, or lose weight.

A row that leaves is added with a negative sign.  Sums are exact as long as no addition drops anything, so that they
cancel; what additions drop, and what the parts of Q leave out, is in the bounds as for rows that come.  If the last row
of a category leaves, its sums are exactly zero.  With a half-life, lines go from block to block (`running_pairs`).

Each time has a prior of its own.  Each thread has some of the times of a tile, and gives each of them the sums of its
rows so far, in vectors (`neighbour_sums`).  Then it adds the sums before its first time.
"""

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.compiled import threads
from cpu_fallback.compiled.border import Array, freeze, kernel, set_all, stage
from cpu_fallback.compiled.checkpoints import walk_of
from cpu_fallback.compiled.neighbour_sums import add_before_places, add_everywhere, room_for_piece
from cpu_fallback.compiled.order_pieces import Pieces
from cpu_fallback.compiled.order_tiles import NO_NUMBERS, OrderReader, Tile
from cpu_fallback.compiled.ordered_pairs import PairWalk
from cpu_fallback.compiled.pair_encodings import (
    LARGEST_WEIGHT,
    MOST_HELD,
    PRIOR_WIDTH,
    SMALLEST_WEIGHT,
    Priors,
    weight_of_prior,
    write_priors,
)
from cpu_fallback.compiled.row_encodings import Destination
from cpu_fallback.compiled.running_pairs import (
    ALL_WIDTH,
    BLOCK_BEFORE,
    BLOCK_NUMBER,
    CENTRE,
    CENTRE_LINE,
    LARGEST_STEP,
    N_EARLIER,
    Form,
    N,
    Q,
    S,
    add_line,
    enter_block,
)
from cpu_fallback.compiled.shrinkage import blend_near
from cpu_fallback.decay import STEPS_OF_BLOCK, blocks_of, factors_of
from cpu_fallback.row_numbers import TimeOrder

if TYPE_CHECKING:
    from cpu_fallback.types import Rows, SumShape

# Rows at a time, and numbers of a thread's lines: its own, and with a half-life that of the block before.
TILE, LINES = 1 << 16, 2 * LARGEST_STEP


@stage
def see_block(sums: Array, form: Form, priors: Array, first: int, last: int) -> None:
    """Add the sums of the block before to those of the times [first, last)."""
    if form.decays and sums[N_EARLIER] != 0.0:
        add_before(sums, LARGEST_STEP, BLOCK_BEFORE, form, priors, first, last)


@kernel
def pass_times(
    tile: Tile,
    leaving: Tile,
    starts: Array,
    pieces: Pieces,
    first: int,
    last: int,
    centre: float,
    form: Form,
    sums: Array,
    priors: Priors,
) -> bool:
    """Write the sums of a thread's rows before each of its times [first, last); tell whether all are in range."""
    known, room, dealt, out, steps = True, room_for_piece(), room_for_piece(), priors.sums, pieces.steps
    step, shift = len(priors.forms) // PRIOR_WIDTH, tile.base - tile.start
    for k in range(ALL_WIDTH if form.blends or form.weighted else N + 1):
        set_all(out[k * step + first : k * step + last], centre if k == CENTRE else 0.0)
    time = first
    while time < last:
        end = time + 1 if form.decays else last
        if form.decays:
            block = steps[time] // STEPS_OF_BLOCK
            enter_block(np.float64(block), form, sums, 0)
            while end < last and steps[end] // STEPS_OF_BLOCK == block:
                end += 1
        known &= add_before_places(
            *(tile.rows.numbers, shift, starts[time], pieces.ends[end - 1], starts[time:end], 1.0),
            *(centre, form, room, dealt, sums, 0, out, time, step),
        )
        see_block(sums, form, out, time, end)
        time = end
    if len(pieces.gone):
        gone, begin = pieces.gone[first:last], pieces.gone[first - 1] if first else leaving.start
        # When these rows came, it was found that they are in range.
        add_before_places(
            *(leaving.rows.numbers, leaving.base - leaving.start, begin, gone[last - first - 1], gone, -1.0),
            *(centre, form, room, dealt, sums, LARGEST_STEP, out, first, step),
        )
        add_line(sums, LARGEST_STEP, form, sums, 0)
    return known


@stage
def add_before(sums: Array, at: int, scale: float, form: Form, priors: Array, first: int, last: int) -> None:
    """Add the sums of a line, times a power of two, to those of the times [first, last)."""
    step, n = len(priors) // ALL_WIDTH, last - first
    for k in range(3 if form.blends else 2):
        high, line = (S, S) if k == 0 else (N, N) if k == 1 else (Q, form.around)
        begins = high * step + first, (high + 1) * step + first, (high + 2) * step + first
        # Without weights, N has no lower number.
        rest = 0.0 if k == 1 and not form.weighted else scale
        parts = sums[at + line] * scale, sums[at + line + 1] * rest, sums[at + line + 2] * rest
        add_everywhere(
            *(priors[begins[0] : begins[0] + n], priors[begins[1] : begins[1] + n]),
            *(priors[begins[2] : begins[2] + n], *parts),
        )


@stage
def clear_empty(count: Array, numbers: Array) -> None:
    """Clear what is left of the sums of windows without rows."""
    for i in range(len(count)):
        numbers[i] = 0.0 if count[i] == 0.0 else numbers[i]


@stage
def add_blocks(sums: Array, steps: Array, form: Form, priors: Array, first: int, last: int) -> None:
    """Add the sums of a line and of its block before to those of the times [first, last), as they see them."""
    block, begin = np.int64(sums[BLOCK_NUMBER]), first
    for age in range(2):
        end = begin
        while end < last and steps[end] // STEPS_OF_BLOCK == block + age:
            end += 1
        add_before(sums, 0, 1.0 if age == 0 else BLOCK_BEFORE, form, priors, begin, end)
        if age == 0:
            see_block(sums, form, priors, begin, end)
        begin = end


@kernel
def finish_times(pieces: Pieces, first: int, last: int, form: Form, sums: Array, priors: Priors) -> None:
    """Add the sums before the times [first, last) to theirs, and write what rows need of the priors."""
    size, step = last - first, len(priors.forms) // PRIOR_WIDTH
    if form.decays:
        add_blocks(sums, pieces.steps, form, priors.sums, first, last)
    else:
        add_before(sums, 0, 1.0, form, priors.sums, first, last)
    for k in range(CENTRE if len(pieces.gone) else 0):
        if k != N:
            begin, count = k * step + first, N * step + first
            clear_empty(priors.sums[count : count + size], priors.sums[begin : begin + size])
    write_priors(priors, pieces.steps, first, last, form)


@kernel
def begin_shares(sums: Array, form: Form, all_rows: Array, own: Array) -> None:
    """Turn the sums of threads into the sums before them; `all_rows` has the sums before and becomes those after.

    `own` has room for the lines of a thread.
    """
    for at in range(0, len(sums), LINES):
        for k in range(LINES):
            own[k], sums[at + k] = sums[at + k], all_rows[k]
        block = own[BLOCK_NUMBER]
        # A thread without times is in no block.
        if form.decays and block == block:  # noqa: PLR0124
            enter_block(block, form, all_rows, 0)
            if all_rows[N_EARLIER] == 0.0:
                set_all(all_rows[LARGEST_STEP:], 0.0)
            if own[N_EARLIER] != 0.0:
                add_line(own, LARGEST_STEP, form, all_rows, LARGEST_STEP)
                all_rows[N_EARLIER] += own[N_EARLIER]
        add_line(own, 0, form, all_rows, 0)
        if all_rows[N] == 0.0 and not form.decays:
            # No error is left of the rows that have left.
            for k in range(LARGEST_STEP):
                all_rows[k] = all_rows[k] if k == form.around + CENTRE_LINE else 0.0


class HeldRow(NamedTuple):
    """The rank of a row that is held, its prior, and V and N of all rows that it sees."""

    rank: int
    mu: float
    spread: float
    weight: float


class AgeWalk(PairWalk):
    """A walk through an order of time whose rows see a window, or lose weight; otherwise as `PairWalk`."""

    def __init__(
        self, rows: "Rows", shape: "SumShape", order: TimeOrder, form: Form, burned: int, to: Destination
    ) -> None:
        walk = walk_of(order, len(order.rows), 0, 0)._replace(burned=burned)
        super().__init__(rows, shape, order, form, walk, to, TILE)
        self.leaver, self.n_gone = OrderReader(self.rows, order, walk.ties[:0]), 0
        self.starts = freeze(order.starts, np.int64)
        self.ends = freeze(np.append(order.starts[1:], walk.n_rows), np.int64)
        self.gone = NO_NUMBERS if order.firsts is None else freeze(order.starts[order.firsts], np.int64)
        self.steps = NO_NUMBERS if order.steps is None else freeze(order.steps, np.int64)
        self.given, self.order = rows, order
        self.held_rows: list[HeldRow] = []

    def encode(self) -> int:
        """Encode all tiles, and then those that were held; give the number of first ranks for exact code."""
        n_open = super().encode()
        return max(n_open, settle_held(self.given, self.order, self.held_rows, self.to))

    def encode_tile(self, start: int, stop: int) -> int | None:
        """Encode a tile as `PairWalk` does, and note the rows that are held."""
        last = super().encode_tile(start, stop)
        for ranks, *numbers in self.held:
            count = int(ranks[MOST_HELD])
            held = (ranks[:count] + start).tolist(), *(part[:count].tolist() for part in numbers)
            self.held_rows += map(HeldRow, *held)
            ranks[MOST_HELD] = 0
        return last

    def sum_tile(self, tile: Tile) -> tuple[Tile, Pieces | None]:
        """Read a tile, and set its priors; give the rows that leave, and its times; None if numbers are unknown."""
        ties = self.order.ties
        first, last = int(ties[tile.start]), int(ties[tile.start + tile.size - 1]) + 1
        starts, ends = self.starts[first:last], self.ends[first:last]
        gone, steps = self.gone[first:last], self.steps[first:last]
        pieces = Pieces(ends, ends, freeze(np.arange(last - first), np.int64), np.empty(0), gone, steps)
        leaving = self.leaver.tile(self.n_gone, int(gone[-1]) if len(gone) else 0)
        self.n_gone, cuts = leaving.start + leaving.size, self.share_pieces(tile, ends)
        sums, known = np.zeros((self.n_shares, LINES)), [True] * self.n_shares
        sums[:, self.form.around + CENTRE_LINE :: LARGEST_STEP] = self.centre
        if self.form.decays:
            sums[:, BLOCK_NUMBER] = np.nan
        if len(self.priors.forms) < len(ends) * PRIOR_WIDTH:
            self.priors = self.make_priors(len(ends))

        def add(share: int) -> None:
            begin, end = cuts[share : share + 2]
            if begin < end:
                self.reader.read(tile, *self.places_of(tile, ends, begin, end))
                if len(gone):
                    self.leaver.read(leaving, *self.places_of(leaving, gone, begin, end))
                fixed = self.centre, self.form, sums[share], self.priors
                known[share] = pass_times(tile, leaving, starts, pieces, begin, end, *fixed)

        def finish(share: int) -> None:
            finish_times(pieces, *cuts[share : share + 2], self.form, sums[share], self.priors)

        threads.run(add, self.n_shares)
        begin_shares(sums.reshape(-1), self.form, self.all_rows.reshape(-1), np.empty(LINES))
        threads.run(finish, self.n_shares)
        return leaving, pieces if all(known) else None

    def make_priors(self, count: int) -> Priors:
        """Give room for the priors of so many times; without weights, some numbers stay zero."""
        sums, forms = np.zeros(count * ALL_WIDTH), np.empty(count * PRIOR_WIDTH)
        return Priors(sums, np.zeros(count * ALL_WIDTH) if self.form.decays else sums, forms)


def settle_held(rows: "Rows", order: TimeOrder, held: list[HeldRow], to: Destination) -> int:
    """Write the blends of rows with a half-life by fractions; give the number of first ranks for exact code."""
    if not held:
        return 0
    # As Python, since these would be kernels for a few rows.
    blend, weigh = (getattr(step, "py_func", step) for step in (blend_near, weight_of_prior))
    codes, n_open = rows.codes[order.rows].astype(np.int64), 0
    ranks = np.flatnonzero(np.isin(codes, codes[[row.rank for row in held]]))
    ranks = ranks[np.argsort(codes[ranks], kind="stable")]
    # Codes and ranks as one number, in rising order.
    keys, out = codes[ranks] * len(codes) + ranks, to.wide if len(to.wide) else to.narrow
    for rank, mu, whole, n_all in held:
        first = codes[rank] * len(codes)
        begin, end = np.searchsorted(keys, [first, first + order.starts[order.ties[rank]]])
        mean, spread, n = moments_of_ranks(rows, order, ranks[begin:end], rank)
        other = weigh(spread, n, whole, n_all)
        if other == 0.0 or SMALLEST_WEIGHT <= other <= LARGEST_WEIGHT:
            out[to.columns[0] + order.rows[rank]] = blend(mu, mean, 1.0, other)
        else:
            n_open = max(n_open, rank + 1)
    return n_open


def moments_of_ranks(rows: "Rows", order: TimeOrder, ranks: Array, at: int) -> tuple[float, float, float]:
    """Give M, V and N of earlier ranks as the row at a rank sees them, each rounded once."""
    assert order.steps is not None
    assert rows.target is not None
    assert rows.weight is not None
    steps = order.steps[order.ties[[*ranks, at]]]
    blocks, ((factor, power),) = blocks_of(steps).tolist(), factors_of(steps[-1:]).tolist()
    n, s, q = Fraction(0), Fraction(0), Fraction(0)
    for number, block in zip(order.rows[ranks], blocks, strict=False):
        if block >= blocks[-1] - 1:
            weight = Fraction(rows.weight[number].item()) / (1 << 64 * (blocks[-1] - block))
            v = Fraction(rows.target[number].item())
            n, s, q = n + weight, s + weight * v, q + weight * v * v
    scale = Fraction(factor << power, 1 << 32)
    return float(s / n), float((n * q - s * s) * scale**2), float(n * scale)
