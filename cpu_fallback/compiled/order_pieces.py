"""Pieces of an order whose rows share a prior: their sums as pairs of floats, and the priors."""

from typing import NamedTuple

from cpu_fallback.compiled.border import Array, kernel, stage
from cpu_fallback.compiled.checkpoints import BEGINS, FROM_KEPT, KEEP_AFTER, KEEP_BEFORE
from cpu_fallback.compiled.neighbour_sums import room_for_piece, sum_piece
from cpu_fallback.compiled.order_tiles import Tile
from cpu_fallback.compiled.pair_encodings import Priors, write_priors
from cpu_fallback.compiled.running_pairs import ALL_WIDTH, LARGEST_STEP, Form, add_line, see


class Pieces(NamedTuple):
    """Pieces of a tile: the rank at which each ends, its mark, the number of its prior, and its sums.

    With a window or a half-life, each piece is a time.  With a window, `gone` has the rank before which rows have left
    by this time; with a half-life, `steps` has its step.
    """

    ends: Array
    marks: Array
    prior_of: Array
    sums: Array
    gone: Array
    steps: Array


@kernel
def sum_pieces(tile: Tile, centre: float, form: Form, pieces: Pieces, first: int, last: int) -> bool:
    """Write the sums of pieces; tell whether all numbers of their rows are in range."""
    known, room, shift = True, room_for_piece(), tile.base - tile.start
    for piece in range(first, last):
        begin = pieces.ends[piece - 1] if piece else tile.start
        to = pieces.sums[piece * LARGEST_STEP : (piece + 1) * LARGEST_STEP]
        known &= sum_piece(tile.rows.numbers, begin + shift, pieces.ends[piece] + shift, centre, form, room, to)
    return known


@stage
def copy_line(sums: Array, at: int, out: Array, to: int) -> None:
    """Copy a line of all numbers."""
    for k in range(LARGEST_STEP):
        out[to + k] = sums[at + k]


@kernel
def find_priors(pieces: Pieces, count: int, form: Form, walk_sums: Array, priors: Priors) -> int:
    """Write the priors of a tile, of which the first is that of the last tile; give the number of the last one.

    `walk_sums` has the sums of all rows before the tile, and the sums that were kept.
    """
    prior, step = 0, len(priors.sums) // ALL_WIDTH
    for piece in range(count):
        mark = pieces.marks[piece]
        if mark & BEGINS:
            prior += 1
            see(walk_sums, LARGEST_STEP if mark & FROM_KEPT else 0, form, priors.sums, prior, step)
        if mark & KEEP_BEFORE:
            copy_line(walk_sums, 0, walk_sums, LARGEST_STEP)
        add_line(pieces.sums, piece * LARGEST_STEP, form, walk_sums, 0)
        if mark & KEEP_AFTER:
            copy_line(walk_sums, 0, walk_sums, LARGEST_STEP)
        pieces.prior_of[piece] = prior
    write_priors(priors, pieces.steps, 0, prior + 1, form)
    return prior
