"""Adding a row to its cell by atomics: in a block's table in shared memory, or in the cells themselves.

A table holds signed 32-bit words, one for each 16-bit half of a digit: halves with the sign of their number add up
exactly while a block adds no more than MOST_ADDED rows.  Words lie measure by measure, half by half, cell by cell, and
where a table is small a block has several copies, so that fewer threads meet at a word.
"""

from typing import TYPE_CHECKING

import numpy as np

from cpu_fallback.compiled.border import ABSENT, measures_of
from cpu_fallback.compiled.digits import HALF, MASK
from gpu_encode.cuda.digits import apply_sign, below, is_left, number, whole_number
from gpu_encode.cuda.runtime import cuda, device_function

if TYPE_CHECKING:
    from cpu_fallback.types import Array, Layout

    Factors = tuple[np.uint64, int, np.uint64, int]
    Measure = tuple[int, int, int, int, int]

# (2**16 - 1) * 2**15 is below 2**31.
MOST_ADDED = 1 << 15
HALF_MASK = np.uint64(0xFFFF)
HALF_BITS = np.uint64(16)

# Numbers in a line of a plan.
LINE = 6


def plan_of(layout: "Layout", weight_kind: int) -> "tuple[Array, int]":
    """One line (kept, whole, low, width, words, columns) for each power of the target, and the words of a cell.

    Words are those of a measure of a cell, columns its digits that have words.  The highest digit of a window has none
    if there are others: it is there for carries, and whatever a row adds to it goes to the cells.
    """
    lines = np.zeros((3, LINE), np.int64)
    lines[:, :4] = measures_of(layout)
    for power, (kept, whole, _, width) in enumerate(lines[:, :4].tolist()):
        counts = whole and power == 0 and weight_kind == ABSENT
        columns = 1 if whole else max(width - 1, 1)
        words = 1 if counts else 4 if whole else 2 * columns
        lines[power, 4:] = (words, columns) if kept else (0, 0)
    return lines, int(lines[:, 4].sum())


@device_function
def measure_of(plan: "Array", power: int) -> "Measure":
    """Line of a plan, without the first number."""
    line = np.uint64(LINE * power)
    return (
        plan[line + np.uint64(1)],
        plan[line + np.uint64(2)],
        plan[line + np.uint64(3)],
        plan[line + np.uint64(4)],
        plan[line + np.uint64(5)],
    )


@device_function
def add_halves(digit: np.uint64, sign: int, table: "Array", at: int, step: int) -> None:
    """Add the two halves of a digit to their words."""
    low, high = digit & HALF_MASK, digit >> HALF_BITS
    if low:
        cuda.atomic.add(table, np.uint64(at), np.int32(apply_sign(low, sign)))
    if high:
        cuda.atomic.add(table, np.uint64(at + step), np.int32(apply_sign(high, sign)))


@device_function
def add_to_table(
    power: int, factors: "Factors", plan: "Array", table: "Array", at: int, step: int, accumulators: "Array", cell: int
) -> None:
    """Add weight * target**power of a row to the words from `at` on, `step` apart; what has no word, to the cell."""
    whole, low, width, n_words, columns = measure_of(plan, power)
    if n_words == 1:
        cuda.atomic.add(table, np.uint64(at), np.int32(1))
        return
    if whole:
        word, sign = whole_number(power, *factors)
        add_halves(word & MASK, sign, table, at, step)
        add_halves(word >> HALF, sign, table, at + 2 * step, step)
        return
    digit, words, sign, column = number(power, *factors, low)
    while column < width and is_left(digit, words):
        if digit and 0 <= column < columns:
            add_halves(digit, sign, table, at + 2 * column * step, step)
        elif digit and column >= columns:
            cuda.atomic.add(accumulators, np.uint64(cell + column), apply_sign(digit, sign))
        digit, words, column = words[0] & MASK, below(words, HALF), column + 1


@device_function
def add_to_cell(power: int, factors: "Factors", plan: "Array", accumulators: "Array", cell: int) -> None:
    """Add weight * target**power of a row to the columns of its cell from `cell` on."""
    whole, low, width, _, _ = measure_of(plan, power)
    if whole:
        word, sign = whole_number(power, *factors)
        if word:
            cuda.atomic.add(accumulators, np.uint64(cell), apply_sign(word, sign))
        return
    digit, words, sign, column = number(power, *factors, low)
    while column < width and is_left(digit, words):
        if digit and column >= 0:
            cuda.atomic.add(accumulators, np.uint64(cell + column), apply_sign(digit, sign))
        digit, words, column = words[0] & MASK, below(words, HALF), column + 1


@device_function
def take(table: "Array", at: int, copies: int, size: int) -> np.int64:
    """Sum of a word's copies, which are set to zero."""
    total = np.int64(0)
    for copy in range(copies):
        place = np.uint64(at + copy * size)
        total += np.int64(table[place])
        table[place] = 0
    return total
