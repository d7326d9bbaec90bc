"""Adding the rows of a block to their cells, or taking them away."""

import numpy as np

from cpu_fallback.compiled.border import REAL, Array, Numbers, RowParts, counting, separate, set_all, stage
from cpu_fallback.compiled.digits import (
    FIELD,
    FIELD_MASK,
    FRACTION,
    HIDDEN,
    ONE,
    SIGN,
    Room,
    cut,
    factor_of,
)


@stage
def add_digits(digit: Array, n_digits: int, lowest: Array, slots: Array, first: int, accumulators: Array) -> None:
    """Add the digits of each row to its cell, from column `first` + lowest on."""
    if n_digits == 3:
        for i in range(len(slots)):
            cell = np.uint64(slots[i] + lowest[i] + first)
            accumulators[cell] += digit[0, i]
            accumulators[cell + ONE] += digit[1, i]
            accumulators[cell + np.uint64(2)] += digit[2, i]
    elif n_digits == 5:
        for i in range(len(slots)):
            cell = np.uint64(slots[i] + lowest[i] + first)
            accumulators[cell] += digit[0, i]
            accumulators[cell + ONE] += digit[1, i]
            accumulators[cell + np.uint64(2)] += digit[2, i]
            accumulators[cell + np.uint64(3)] += digit[3, i]
            accumulators[cell + np.uint64(4)] += digit[4, i]
    else:
        for i in range(len(slots)):
            cell = np.uint64(slots[i] + lowest[i] + first)
            for k in range(n_digits):
                accumulators[cell + np.uint64(k)] += digit[k, i]


@stage
def times_whole(bits: Array, kind: int, column: Array) -> None:
    """Multiply by numbers that are whole and fit int64."""
    for i in range(len(column)):
        if kind == REAL:
            field = (bits[i] >> FIELD) & FIELD_MASK
            shift = np.int64(field) - 1075
            mantissa = (bits[i] & FRACTION) | HIDDEN
            left = mantissa << np.uint64(shift) if 0 <= shift < 64 else np.uint64(0)
            right = mantissa >> np.uint64(-shift) if -64 < shift < 0 else np.uint64(0)
            column[i] *= (1 - 2 * np.int64(bits[i] >> SIGN)) * np.int64(left | right)
        else:
            column[i] *= np.int64(bits[i])


@counting
def add_whole(
    numbers: Numbers,
    n_factors: int,
    start: int,
    stop: int,
    flip: int,
    value: Array,
    slots: Array,
    first: int,
    accumulators: Array,
) -> None:
    """Add products that are whole and fit int64; without any factor, count."""
    if not n_factors:
        one = 1 - 2 * (flip & 1)
        for i in range(len(slots)):
            accumulators[np.uint64(slots[i] + first)] += one
        return
    set_all(value, 1 - 2 * (flip & 1))
    for index in range(n_factors):
        bits, kind = factor_of(numbers, index, start, stop)
        times_whole(bits, kind, value)
    for line in range(0, len(slots), stop - start):
        own = slots[line : line + stop - start]
        for i in range(len(own)):
            accumulators[np.uint64(own[i] + first)] += value[i]


@separate
def add_rows(rows: RowParts, start: int, stop: int, flip: int, room: Room, slots: Array, accumulators: Array) -> None:
    """Add the digits of each row in [start, stop) to the cell that begins at its slot; with `flip` -1, subtract them.

    A row may have several slots, for which its digits are made once; `slots` has the first slots of all rows first.
    """
    first, numbers, measures = 0, rows.numbers, rows.measures
    for power in range(3):
        if not measures[power, 0]:
            continue
        n_factors = power + (1 if numbers.weight_kind else 0)
        low, width = measures[power, 2], measures[power, 3]
        if measures[power, 1]:
            add_whole(numbers, n_factors, start, stop, flip, room.exponent[: stop - start], slots, first, accumulators)
        elif n_factors:
            n_digits = cut(numbers, n_factors, start, stop, flip, low, width, room)
            for line in range(0, len(slots), stop - start):
                own = slots[line : line + stop - start]
                add_digits(room.digit, n_digits, room.lowest, own, first, accumulators)
        first += width
