"""Encode each row from the rows before it, in one pass: see `gpu_encode.seam.ops.FusedOps`."""

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
from cpu_fallback.compiled.ordered import table_of
from cpu_fallback.compiled.ordered_counts import encode_from_counts
from cpu_fallback.compiled.ordered_digits import MOST_NUMBERS, encode_from_digits, tile_of
from cpu_fallback.compiled.row_encodings import CellRule, destination
from cpu_fallback.fused_rules import FusedRule, RowEncodings, Written
from cpu_fallback.row_numbers import Order, Permutation, TimeOrder
from cpu_fallback.types import CARRY_AFTER, SumShape

if TYPE_CHECKING:
    from cpu_fallback.types import Layout, Rows

# Number of rows whose numbers in a random order are computed at a time.
TILE = 1 << 16
LEAST_TILE = 1 << 10
# Blocks hold counts as int32.
MOST_COUNTED = 2**31 - 1


def most_ordered_rows(layout: "Layout", /) -> int:
    """Give the number of rows that can be summed without carries; see `gpu_encode.seam.ops.FusedOps`."""
    return MOST_COUNTED if layout.is_whole else CARRY_AFTER


def tile_size(length: int) -> int:
    """Give the number of rows in a tile if each row has sums of this length."""
    return max(min(TILE, MOST_NUMBERS // length), LEAST_TILE)


def rows_of(order: Permutation, start: int, stop: int) -> Array:
    """Give the row at each rank in [start, stop), computed by the calling thread."""
    numbers = np.empty(stop - start, np.int64)
    walk_share(order, False, start, 0, len(numbers), numbers)
    return freeze(numbers, np.int64)


def cut_order(order: Order, n_rows: int, size: int) -> Iterator[tuple[int, int, Array]]:
    """Cut the ranks of an order into tiles, each with its row numbers; these are empty for rows in their own order.

    For a random order, a second thread computes the numbers of the next tile while the caller works on this one.
    """
    edges = [(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]
    if not isinstance(order, Permutation):
        numbers = freeze(order.rows if isinstance(order, TimeOrder) else np.zeros(0), np.int64)
        yield from ((start, stop, numbers[start:stop]) for start, stop in edges)
    elif threads.threads() == 1:
        yield from ((start, stop, rows_of(order, start, stop)) for start, stop in edges)
    else:
        helper, ahead = threads.pool(threads.threads() - 1), deque[Any]()
        for number, edge in enumerate(edges):
            while len(ahead) < min(2, len(edges) - number):
                ahead.append(helper.submit(rows_of, order, *edges[number + len(ahead)]))
            yield *edge, ahead.popleft().result()


def ordered_encodings(
    rows: "Rows",
    shape: SumShape,
    order: Order,
    burn_in: int,
    rule: FusedRule,
    out: RowEncodings,
    /,
) -> Written | None:
    """Write the encoding of every row from the rows before it; see `gpu_encode.seam.ops.FusedOps`."""
    n_rows, (n_categories, _, n_classes, layout) = len(rows.codes), shape
    if (to := destination(out)) is None:
        return None
    length, first_output = n_classes * layout.width, n_classes - out.values.shape[1]
    walk = walk_of(order, n_rows, burn_in, length)
    table = table_of(n_categories + 2, length, bool(len(walk.starts)))
    if rows.classes is not None and rows.weight is None and layout.count.whole:
        # Only for a random order are row numbers computed tile by tile.
        parts = cut_order(order, n_rows, TILE if isinstance(order, Permutation) else n_rows)
        priors, known = room_for_moments(n_classes - first_output, 1), (codes_of(rows.codes), codes_of(rows.classes))
        given = n_classes, first_output, rule, walk, table, priors, np.zeros(n_classes, np.int64), to
        found = [encode_from_counts(*known, numbers, *ranks, *given) for *ranks, numbers in parts]
    else:
        size = tile_size(length)
        parts = cut_order(order, n_rows, size)
        fixed = CellRule(shape_of(layout, n_classes), first_output, rule), walk, table, to
        tile = tile_of(min(size, n_rows), length, n_classes - first_output)
        found = [encode_from_digits(rows, numbers, layout, ranks, tile, fixed) for *ranks, numbers in parts]
    return Written(table.sums.reshape(n_categories + 2, n_classes, layout.width), sum(found))
