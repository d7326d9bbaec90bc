"""Encodings of rows without weights, for numeric targets, from the exact sums of earlier rows.

Ranks are sorted by buckets of categories, tile by tile; then one warp alone uses the sums of a bucket: see
raw/ordered_sums.cu.
"""

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cpu_fallback.compiled.border import REAL
from cpu_fallback.fused_rules import EMPIRICAL_BAYES, M_ESTIMATE
from gpu_encode.cuda import raw
from gpu_encode.cuda.digits import number_words
from gpu_encode.cuda.indexed import source_of
from gpu_encode.cuda.memory import empty, zeros
from gpu_encode.cuda.order_tiles import courses_of
from gpu_encode.cuda.ordered_counts import rule_words
from gpu_encode.cuda.runtime import MULTIPROCESSORS, SIMULATED

if TYPE_CHECKING:
    from collections.abc import Callable

    from cpu_fallback.fused_rules import FusedRule
    from cpu_fallback.types import Array, Layout, Rows
    from gpu_encode.cuda.order_segments import OrderedPass
    from gpu_encode.cuda.row_encodings import Destination

WARP = 32
# Ranks that are sorted at a time, called a slab: each needs 16 bytes, with its row in a random order.
RANKS = 4096 if SIMULATED else 1 << 25
# Threads of a block that sorts a tile, and ranks for each: with few buckets, two blocks fit on a multiprocessor, so
# that one reads while the other sorts.
SORTERS, SORTERS_OF_FEW = (2 * WARP, WARP) if SIMULATED else (512, 256)
FEW_BUCKETS = 4 if SIMULATED else 512
TURNS = 16
# Lines of a bucket (log2), so that the sums of several warps fit into shared memory; more lines if there would be too
# many buckets.
SHIFTS = (2, 3, 4, 5, 6) if SIMULATED else (8, 9)
MOST_BUCKETS = 64 if SIMULATED else 4096
# Shared memory that a block has on any GPU.
LEAST_SHARED = 48 << 10
MOST_WARPS = 2 if SIMULATED else 4
SCANNERS = WARP if SIMULATED else 64
# The approximate number of pieces of all buckets; the fewest rows of a piece for each line of a bucket.
PIECES = 6 if SIMULATED else 4096
ROWS_A_LINE = 2 if SIMULATED else 16
# Range of digits in which neither a square nor a number that divides it overflows or vanishes.
LOWEST, HIGHEST = -6, 6
WORDS = (4, 5)
MOST_COUNTED = 2**31 - 1
FLOATS, DOUBLES, INTEGERS = range(3)


class Windows(NamedTuple):
    """The positions of sums among the digits of a layout, in the form that raw/ordered_sums.cu reads."""

    low: int
    target_kind: int
    sum_width: int
    square_width: int
    sum_whole: bool
    square_whole: bool
    above: int


class Pieces(NamedTuple):
    """Sizes of launches: lines of a bucket (log2), buckets, words of a line's sums, warps of a block that walks."""

    shift: int
    n_buckets: int
    words: int
    warps: int

    @property
    def sorters(self) -> int:
        """Threads of a block that sorts a tile."""
        return sorters_of(self.n_buckets)

    @property
    def tile(self) -> int:
        """Number of ranks in a tile."""
        return TURNS * self.sorters

    @property
    def bytes_of_warp(self) -> int:
        """Shared memory of a warp, and the memory that a piece keeps."""
        return 4 * self.words << self.shift

    def rows_of(self, n_ranks: int) -> int:
        """The approximate number of rows of a piece, for this number of ranks: some rows for each line."""
        return max(n_ranks // PIECES, ROWS_A_LINE << self.shift)

    def most(self, n_ranks: int) -> int:
        """Largest number of pieces for this number of ranks."""
        return n_ranks // self.rows_of(n_ranks) + self.n_buckets

    def bytes_of(self, n_ranks: int) -> int:
        """Device memory for this number of ranks at a time, with the rows of a random order."""
        runs = 4 * -(-n_ranks // self.tile) * self.n_buckets
        return 16 * n_ranks + runs + self.most(n_ranks) * self.bytes_of_warp


class Room(NamedTuple):
    """Memory for all slabs: sorted rows, rows of a piece, ends and sums of pieces, and sums of all rows so far."""

    words: "Array"
    values: "Array"
    rows_of_piece: int
    ends: "Array"
    of_pieces: "Array"
    so_far: "Array"


def windows_of(layout: "Layout", target_kind: int) -> Windows | None:
    """Give the positions of sums; None if they have too many digits."""
    total, square = layout.total, layout.square
    if total is None or not (total.low >= LOWEST and total.low + total.width <= HIGHEST):
        return None
    if total.width > max(WORDS) or (target_kind == INTEGERS and total.low):
        return None
    width, whole, above = (square.width, square.whole, square.low - 2 * total.low) if square else (0, False, 0)
    room = 2 * words_of(total.width) - 1
    if above < 0 or above + width > room:
        return None
    return Windows(total.low, target_kind, total.width, width, total.whole, whole, above)


def words_of(width: int) -> int:
    """Number of words for a sum of this many digits, among the numbers for which kernels are compiled."""
    return next(words for words in WORDS if words >= width)


def pieces_of(n_lines: int, sum_words: int, squares: bool) -> Pieces | None:
    """Choose the buckets; None if there are too many."""
    words = 1 + sum_words + (2 * sum_words - 1 if squares else 0)
    for shift in SHIFTS:
        n_buckets = -(-n_lines >> shift)
        room = raw.table_bytes() - 4 * (WARP + n_buckets + 4)
        warps = min(room // (4 * words << shift), MOST_WARPS)
        if n_buckets <= MOST_BUCKETS and warps and sorting_bytes(n_buckets) <= max(raw.table_bytes(), LEAST_SHARED):
            return Pieces(shift, n_buckets, words, warps)
    return None


def sorters_of(n_buckets: int) -> int:
    """Threads of a block that sorts a tile."""
    return SORTERS_OF_FEW if n_buckets <= FEW_BUCKETS else SORTERS


def sorting_bytes(n_buckets: int) -> int:
    """Shared memory of a block that sorts a tile: words of a scan, counts of each warp, and the rows."""
    sorters = sorters_of(n_buckets)
    return 4 * WARP + 8 * -(-sorters // WARP * n_buckets // 4) + 8 * TURNS * sorters


def fits(rows: "Rows", n_lines: int, n_classes: int, layout: "Layout", rule: "FusedRule") -> bool:
    """Say whether warps can walk over these rows."""
    bayes = rule.blend.shrinkage.kind == EMPIRICAL_BAYES
    plain = rows.classes is None and rows.weight is None and rows.target is not None and n_classes == 1
    if not plain or not layout.count.whole or (layout.square is not None) != bayes or len(rows) > MOST_COUNTED:
        return False
    windows = windows_of(layout, kind_of(rows))
    return windows is not None and pieces_of(n_lines, words_of(windows.sum_width), bayes) is not None


def kind_of(rows: "Rows") -> int:
    """Give the kind of the numbers of rows."""
    words, kind = number_words(rows.target)
    return FLOATS if words.itemsize == 4 else DOUBLES if kind == REAL else INTEGERS


def room_for(pieces: Pieces, n_rows: int) -> Room:
    """Allocate memory for slabs of at most `n_rows` rows."""
    most = min(RANKS, n_rows)
    return Room(
        empty(most, np.uint32),
        empty(most, np.uint64),
        pieces.rows_of(most),
        empty(pieces.n_buckets, np.uint32),
        empty(pieces.most(most) * pieces.bytes_of_warp // 4, np.uint32),
        zeros(pieces.n_buckets * pieces.bytes_of_warp // 4, np.uint32),
    )


def variant_of(to: "Destination", rule: "FusedRule", words: int) -> dict[str, str]:
    """Name the variant for which the kernels are compiled."""
    kind = rule.blend.shrinkage.kind
    squares, estimates = int(kind == EMPIRICAL_BAYES), int(kind == M_ESTIMATE)
    encoding = raw.ENCODINGS[to.out.itemsize]
    return {"ENCODING": encoding, "ESTIMATES": str(estimates), "SQUARES": str(squares), "SUM_WORDS": str(words)}


def sort_slab(run: "Callable[..., None]", n_ranks: int, pieces: Pieces, room: Room, *given: Any) -> tuple[Any, ...]:
    """Sort the ranks of a slab by bucket, tile by tile, and add their rows to the sums of segments."""
    n_tiles, n_buckets = -(-n_ranks // pieces.tile), pieces.n_buckets
    runs, sizes = empty(n_tiles * n_buckets, np.uint32), zeros(n_buckets, np.uint32)
    slab = room.words, room.values, runs, sizes, pieces.tile
    blocks = min(n_tiles, 2 * MULTIPROCESSORS)
    run("sort_places", blocks, pieces.sorters, *given, slab, shared=sorting_bytes(n_buckets))
    return slab


def encode_sums(rows: "Rows", n_lines: int, layout: "Layout", given: "OrderedPass") -> "Array":
    """Write the encodings of rows of numbers; give the sums of all rows, flat."""
    order, burned, segments, to, doubts = given
    rule, windows = segments.cell_rule.rule, windows_of(layout, kind_of(rows))
    assert windows is not None
    words = words_of(windows.sum_width)
    pieces = pieces_of(n_lines, words, layout.square is not None)
    assert pieces is not None
    run = partial(raw.run, variant=variant_of(to, rule, words))
    sources, room = (source_of(rows.codes), number_words(rows.target)[0].view(np.uint32)), room_for(pieces, len(rows))
    sums, (shift, n_buckets, _, warps) = empty(n_lines * layout.width, np.int64), pieces
    blocks, shared = min(-(-pieces.most(len(room.words)) // warps), 16 * MULTIPROCESSORS), warps * pieces.bytes_of_warp
    output = *rule_words(rule), segments.priors, to.out, to.by_row, to.by_output, to.flagged, to.unseen, doubts
    for start, stop, course in courses_of(order, len(rows), len(room.words)):
        fixed = stop - start, n_lines, shift, segments.bits, windows, segments.sums
        slab = sort_slab(run, stop - start, pieces, room, *sources, course, *fixed)
        counted = slab, shift, room.rows_of_piece, windows, room.ends, room.of_pieces
        plan_bytes = 4 * (WARP + -(-n_buckets // 4) * 4)
        run("sum_pieces", blocks, WARP * warps, *counted, shared=plan_bytes + shared)
        behind = room.ends, shift, n_lines, windows, room.so_far, room.of_pieces, sums
        run("scan_pieces", -(-n_lines // SCANNERS), SCANNERS, *behind)
        segments.find_priors(start, stop)
        walked = course, slab, room.ends, shift, n_lines, segments.bits, burned, windows, room.of_pieces
        run("walk_pieces", blocks, WARP * warps, *walked, *output, shared=shared)
    return sums
