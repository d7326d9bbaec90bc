"""How kernels add rows to sums: to which digits, and whether in a block's table in shared memory or in the cells.

A table holds signed 32-bit words, one for each 16-bit half of a digit: each half has the sign of its number, and halves
add up exactly as long as a block adds no more than MOST_ADDED rows.  Words lie measure by measure, half by half, cell
by cell.  If a table is small, a block has several copies of it, so that fewer threads add to the same word at once.
"""

from typing import TYPE_CHECKING

import numpy as np

from cpu_fallback.compiled.border import ABSENT, measures_of

if TYPE_CHECKING:
    from cpu_fallback.types import Array, Layout

# (2**16 - 1) * 2**15 is below 2**31.
MOST_ADDED = 1 << 15
# Numbers in a line of a plan.
LINE = 6


def plan_of(layout: "Layout", weight_kind: int) -> "tuple[Array, int]":
    """One line (kept, whole, low, width, words, columns) for each power of the target, and the words of a cell.

    `words` is the number of words of one measure of a cell, `columns` the number of digits that have words.  The
    highest digit of a window has no words if there are other digits: it is there for carries, and what a row adds to it
    goes to the cells.
    """
    lines = np.zeros((3, LINE), np.int64)
    lines[:, :4] = measures_of(layout)
    for power, (kept, whole, _, width) in enumerate(lines[:, :4].tolist()):
        counts = whole and power == 0 and weight_kind == ABSENT
        columns = 1 if whole else max(width - 1, 1)
        words = 1 if counts else 4 if whole else 2 * columns
        lines[power, 4:] = (words, columns) if kept else (0, 0)
    return lines, int(lines[:, 4].sum())
