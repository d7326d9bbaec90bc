"""Encode each row from the rows before it, in one pass: see `gpu_encode.seam.ops.FusedOps`."""

from typing import TYPE_CHECKING

import numpy as np

from cpu_fallback.compiled.block_moments import room_for_moments
from cpu_fallback.compiled.border import codes_of
from cpu_fallback.compiled.checkpoints import cut_order, edges_of, walk_of
from cpu_fallback.compiled.moments import shape_of
from cpu_fallback.compiled.ordered import table_of
from cpu_fallback.compiled.ordered_counts import encode_from_counts
from cpu_fallback.compiled.ordered_digits import MOST_NUMBERS, encode_from_digits, tile_of
from cpu_fallback.compiled.ordered_pairs import PairWalk, form_of
from cpu_fallback.compiled.row_encodings import CellRule, destination
from cpu_fallback.compiled.sums import accumulate
from cpu_fallback.fused_rules import FusedRule, RowEncodings, Written
from cpu_fallback.row_numbers import Order, Permutation
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
    if n_rows and (form := form_of(rows, order, rule)) is not None:
        pairs = PairWalk(rows, shape, order, form, walk, to)
        n_rows = pairs.encode()
        if not n_rows:
            sums = pairs.sums_of_rows()
            return Written(accumulate(rows, shape)[:, 0] if sums is None else sums, 0)
        walk = walk_of(order, len(rows), burn_in, length)
    table = table_of(n_categories + 2, length, bool(len(walk.starts)))
    if rows.classes is not None and rows.weight is None and layout.count.whole:
        # Only for a random order are row numbers computed tile by tile.
        parts = cut_order(order, edges_of(n_rows, TILE if isinstance(order, Permutation) else n_rows))
        priors, known = room_for_moments(n_classes - first_output, 1), (codes_of(rows.codes), codes_of(rows.classes))
        given = n_classes, first_output, rule, walk, table, priors, np.zeros(n_classes, np.int64), to
        found = [encode_from_counts(*known, numbers, *ranks, *given) for *ranks, numbers in parts]
    else:
        size = tile_size(length)
        parts = cut_order(order, edges_of(n_rows, size))
        fixed = CellRule(shape_of(layout, n_classes), first_output, rule), walk, table, to
        tile = tile_of(min(size, n_rows), length, n_classes - first_output)
        found = [encode_from_digits(rows, numbers, layout, ranks, tile, fixed) for *ranks, numbers in parts]
    if n_rows < len(rows):
        return Written(accumulate(rows, shape)[:, 0], sum(found))
    return Written(table.sums.reshape(n_categories + 2, n_classes, layout.width), sum(found))
