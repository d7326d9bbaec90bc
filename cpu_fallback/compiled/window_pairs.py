"""Encodings from the rows of a window of time, by pairs of floats: as `ordered_pairs`, and rows leave again.

A row that leaves is added with a negative sign.  Sums are exact as long as no addition drops anything, so that they
cancel; what additions drop, and what the parts of Q leave out, is in the bounds as for rows that come.  If the last row
of a category leaves, its sums are exactly zero.  Each time has a prior of its own.  The sums of all rows at each time
come from two passes over the times of a tile: each of several runs of times is added up by itself, and then, from the
sums of the runs before it, time by time.  The runs take turns, so that additions need not wait for each other.
"""

from typing import TYPE_CHECKING

import numpy as np

from cpu_fallback.compiled import threads
from cpu_fallback.compiled.border import Array, freeze, kernel, set_all, stage
from cpu_fallback.compiled.checkpoints import walk_of
from cpu_fallback.compiled.order_pieces import Pieces, copy_line
from cpu_fallback.compiled.order_tiles import OrderReader, Tile
from cpu_fallback.compiled.ordered_pairs import PairWalk
from cpu_fallback.compiled.pair_encodings import PRIOR_WIDTH, Priors, write_priors
from cpu_fallback.compiled.row_encodings import Destination
from cpu_fallback.compiled.running_pairs import (
    CENTRE,
    WEIGHED_WIDTH,
    Form,
    N,
    add_line,
    add_row,
    is_moderate,
    number_of,
    see,
)
from cpu_fallback.row_numbers import TimeOrder

if TYPE_CHECKING:
    from cpu_fallback.types import Rows, SumShape

# Rows at a time, and runs of times of a thread that take turns.
TILE, RUNS = 1 << 15, 8


@stage
def add_signed(tile: Tile, begin: int, end: int, sign: float, centre: float, form: Form, sums: Array, at: int) -> bool:
    """Add the rows of neighbouring places to a line, or take them away; tell whether their numbers are in range."""
    known = True
    for place in range(tile.base + begin, tile.base + end):
        v = number_of(tile.rows.numbers.target[np.uint64(place)], tile.rows.numbers.target_kind)
        known &= is_moderate(v)
        add_row(v, sign, sign * v, 0.0, centre, form, sums, at)
    return known


@kernel
def pass_times(
    tile: Tile,
    leaving: Tile,
    pieces: Pieces,
    first: int,
    last: int,
    centre: float,
    bound: float,
    form: Form,
    sums: Array,
    priors: Priors,
) -> bool:
    """Add the rows of the times [first, last) to the sums of their runs; tell whether their numbers are in range.

    If there is room for priors, those of each time are written before its rows are added.
    """
    known, ends, gone, size = True, pieces.ends, pieces.gone, last - first
    for turn in range((size + RUNS - 1) // RUNS):
        for run in range(RUNS):
            piece, at = first + size * run // RUNS + turn, run * WEIGHED_WIDTH
            if piece >= first + size * (run + 1) // RUNS:
                continue
            left = gone[piece - 1] - leaving.start if piece else 0
            add_signed(leaving, left, gone[piece] - leaving.start, -1.0, centre, form, sums, at)
            if len(priors.forms):
                if sums[at + N] == 0.0:
                    set_all(sums[at : at + WEIGHED_WIDTH], 0.0)
                    sums[at + CENTRE] = centre
                see(sums, at, form, priors.sums, piece, len(priors.forms) // PRIOR_WIDTH)
            begin = ends[piece - 1] - tile.start if piece else 0
            known &= add_signed(tile, begin, ends[piece] - tile.start, 1.0, centre, form, sums, at)
    if len(priors.forms):
        write_priors(priors, first, last, bound, form)
    return known


@kernel
def begin_runs(sums: Array, form: Form, all_rows: Array) -> None:
    """Turn the sums of runs into the sums before each run; `all_rows` has the sums before and becomes those after."""
    for at in range(0, len(sums), WEIGHED_WIDTH):
        copy_line(sums, at, all_rows, WEIGHED_WIDTH)
        copy_line(all_rows, 0, sums, at)
        add_line(all_rows, WEIGHED_WIDTH, form, all_rows, 0)


class WindowWalk(PairWalk):
    """A walk through an order of time whose rows see only a window; otherwise as `PairWalk`."""

    def __init__(
        self, rows: "Rows", shape: "SumShape", order: TimeOrder, form: Form, burned: int, to: Destination
    ) -> None:
        walk = walk_of(order, len(order.rows), 0, 0)._replace(burned=burned)
        super().__init__(rows, shape, order, form, walk, to, TILE)
        assert order.firsts is not None
        self.leaver, self.n_gone = OrderReader(self.rows, order, walk.ties[:0]), 0
        self.ends = freeze(np.append(order.starts[1:], walk.n_rows), np.int64)
        self.gone = freeze(order.starts[order.firsts], np.int64)
        self.ties = order.ties

    def sum_tile(self, tile: Tile) -> tuple[Tile, Pieces | None]:
        """Read a tile, and set its priors; give the rows that leave, and its times; None if numbers are unknown."""
        first, last = int(self.ties[tile.start]), int(self.ties[tile.start + tile.size - 1]) + 1
        ends, gone, prior_of = self.ends[first:last], self.gone[first:last], np.arange(last - first)
        pieces = Pieces(ends, ends, freeze(prior_of, np.int64), np.empty(0), gone)
        leaving = self.leaver.tile(self.n_gone, int(gone[-1]))
        self.n_gone, cuts, none = int(gone[-1]), self.share_pieces(tile, ends), Priors(np.empty(0), np.empty(0))
        runs, known = np.zeros((self.n_shares, RUNS * WEIGHED_WIDTH)), [True] * self.n_shares
        if len(self.priors.forms) < len(ends) * PRIOR_WIDTH:
            # Without weights, some numbers stay zero.
            self.priors = Priors(np.zeros(len(ends) * WEIGHED_WIDTH), np.empty(len(ends) * PRIOR_WIDTH))
        left = (leaving.size * np.arange(self.n_shares + 1) // self.n_shares).tolist()

        def read(share: int) -> None:
            self.leaver.read(leaving, *left[share : share + 2])
            if cuts[share] < cuts[share + 1]:
                self.reader.read(tile, *self.places_of(tile, ends, *cuts[share : share + 2]))

        def pass_share(share: int, priors: Priors) -> None:
            fixed = self.centre, self.bound, self.form, runs[share], priors
            known[share] &= pass_times(tile, leaving, pieces, *cuts[share : share + 2], *fixed)

        threads.run(read, self.n_shares)
        threads.run(lambda share: pass_share(share, none), self.n_shares)
        begin_runs(runs.reshape(-1), self.form, self.all_rows)
        threads.run(lambda share: pass_share(share, self.priors), self.n_shares)
        return leaving, pieces if all(known) else None
