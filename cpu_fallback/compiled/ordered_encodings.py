"""Encodings of all rows from the rows before them, in one pass: see `gpu_encode.seam.ops.FusedOps`."""

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from cpu_fallback.compiled import threads
from cpu_fallback.compiled.block_moments import room_for_moments
from cpu_fallback.compiled.border import Array, codes_of, freeze
from cpu_fallback.compiled.checkpoints import walk_of
from cpu_fallback.compiled.folds import walk_share
from cpu_fallback.compiled.moments import shape_of
from cpu_fallback.compiled.ordered_counts import encode_from_counts, table_of
from cpu_fallback.compiled.ordered_digits import MOST_NUMBERS, encode_from_digits, tile_of
from cpu_fallback.compiled.row_encodings import destination
from cpu_fallback.fused_rules import FusedRule, Written
from cpu_fallback.types import CARRY_AFTER

if TYPE_CHECKING:
    from cpu_fallback.row_numbers import Permutation
    from cpu_fallback.types import Layout, Rows

# Rows whose numbers in a random order are known at a time.
TILE = 1 << 16
LEAST_TILE = 1 << 10
# Blocks count in 32 bits, with a sign.
MOST_COUNTED = 2**31 - 1


def most_ordered_rows(layout: "Layout", /) -> int:
    """Give how many rows need no carry on the way; see `gpu_encode.seam.ops.FusedOps`."""
    return MOST_COUNTED if layout.is_whole else CARRY_AFTER


def tile_size(length: int) -> int:
    """Places that are worked on at a time, each with sums of this length."""
    return max(min(TILE, MOST_NUMBERS // length), LEAST_TILE)


def rows_of(order: "Permutation", start: int, stop: int) -> Array:
    """Row at each place in [start, stop), found by the thread that asks."""
    numbers = np.empty(stop - start, np.int64)
    walk_share(order, False, start, 0, len(numbers), numbers)
    return freeze(numbers, np.int64)


def cut_order(order: "Permutation | Array | None", n_rows: int, size: int) -> Iterator[tuple[int, int, Array]]:
    """Cut an order into tiles of places, each with the numbers of its rows; none where rows stand in order.

    Those of the next tile of a random order are computed on a second thread, while the caller works on this one.
    """
    edges = [(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]
    if order is None or isinstance(order, np.ndarray):
        numbers = freeze(np.zeros(0) if order is None else order, np.int64)
        yield from ((start, stop, numbers[start:stop]) for start, stop in edges)
    elif threads.threads() == 1:
        yield from ((start, stop, rows_of(order, start, stop)) for start, stop in edges)
    else:
        helper, ahead = threads.pool(threads.threads() - 1), deque[Any]()
        for place, edge in enumerate(edges):
            while len(ahead) < min(2, len(edges) - place):
                ahead.append(helper.submit(rows_of, order, *edges[place + len(ahead)]))
            yield *edge, ahead.popleft().result()


def ordered_encodings(
    rows: "Rows",
    n_categories: int,
    n_classes: int,
    layout: "Layout",
    first_output: int,
    order: "Permutation | Array | None",
    ties: tuple[Array, Array] | None,
    burn_in: int,
    rule: FusedRule,
    out: Array,
    unseen: Array | None,
    /,
) -> Written | None:
    """Write the encoding of every row from the rows before it; see `gpu_encode.seam.ops.FusedOps`."""
    n_rows = len(rows.codes)
    to = destination(out, unseen, n_classes - first_output)
    if to is None:
        return None
    length = n_classes * layout.width
    walk = walk_of(ties, n_rows, burn_in, length)
    table = table_of(n_categories + 2, length, bool(len(walk.starts)))
    if rows.classes is not None and rows.weight is None and layout.count.whole:
        # Only a random order has numbers that come tile by tile.
        parts = cut_order(order, n_rows, n_rows if order is None or isinstance(order, np.ndarray) else TILE)
        priors, known = room_for_moments(n_classes - first_output, 1), (codes_of(rows.codes), codes_of(rows.classes))
        given = n_classes, first_output, rule, walk, table, priors, np.zeros(n_classes, np.int64), to
        found = [encode_from_counts(*known, numbers, *places, *given) for *places, numbers in parts]
    else:
        size = tile_size(length)
        parts = cut_order(order, n_rows, size)
        fixed = shape_of(layout, n_classes), first_output, rule, walk, table, to
        tile = tile_of(min(size, n_rows), length, n_classes - first_output)
        found = [encode_from_digits(rows, numbers, layout, places, tile, fixed) for *places, numbers in parts]
    return Written(table.sums.reshape(n_categories + 2, n_classes, layout.width), sum(found))
