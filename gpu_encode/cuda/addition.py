"""Adding rows to sums in kernels: the digits, and the choice between a block's table in shared memory and the cells.

A table holds signed 32-bit words, one for each 16-bit half of a digit.  Each half has the sign of its number, and sums
of halves are exact as long as a block adds at most MOST_ADDED rows.  Words are ordered by measure, then half, then
cell.  If a table is small, a block has several copies of it, so that fewer threads add to the same word at the same
time.
"""

from typing import TYPE_CHECKING

import numpy as np

from cpu_fallback.compiled.border import ABSENT, measures_of

if TYPE_CHECKING:
    from cpu_fallback.types import Array, Layout

# (2**16 - 1) * 2**15 is below 2**31.
MOST_ADDED = 1 << 15
# Numbers in one line of a plan.
LINE = 6


def plan_of(layout: "Layout", weight_kind: int) -> "tuple[Array, int]":
    """Give a line (kept, whole, low, width, words, columns) for each power of the target, and the words of a cell.

    `words` is the number of words of one measure of a cell, `columns` the number of digits that have words.  The
    highest digit of a window has no words if there are other digits: it is only for carries, and the part that a row
    adds to it goes directly to the cells.
    """
    lines = np.zeros((3, LINE), np.int64)
    lines[:, :4] = measures_of(layout)
    for power, (kept, whole, _, width) in enumerate(lines[:, :4].tolist()):
        counts = whole and power == 0 and weight_kind == ABSENT
        columns = 1 if whole else max(width - 1, 1)
        words = 1 if counts else 4 if whole else 2 * columns
        lines[power, 4:] = (words, columns) if kept else (0, 0)
    return lines, int(lines[:, 4].sum())
