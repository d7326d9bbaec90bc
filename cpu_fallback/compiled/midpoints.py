"""Round a quotient that lies near the middle of two floats: only its digits can tell which float is nearer.

Digits come one position after the other, from the lowest, as int64 before carries; each backend stores them in its own
way.
"""

from typing import NamedTuple

import numpy as np

from cpu_fallback.compiled.border import Array, stage
from cpu_fallback.compiled.digits import FIELD, FRACTION, HALF, HIDDEN, ONE, SIGN, ZERO

MASK = np.int64(0xFFFFFFFF)
LOW = np.uint64(0xFFFFFFFF)
INFINITE = np.uint64(0x7FF << 52)
# After this number of positions beyond the last digit of a count, its product with a midpoint has no more digits.
AFTER = 4


class Difference(NamedTuple):
    """|S| - midpoint * |N|, as far as its digits are known.

    Parameters
    ----------
    carry, count_carry : int64
        Carries to the next position, of the difference and of |N|.
    above : int64
        Upper halves of the last position's products.
    first, second : uint64
        The last two digits of |N|.
    any : int64
        Not zero if any digit of the difference is not zero.
    """

    carry: np.int64
    count_carry: np.int64
    above: np.int64
    first: np.uint64
    second: np.uint64
    any: np.int64


@stage
def no_difference() -> Difference:
    """Start below the lowest digit."""
    return Difference(np.int64(0), np.int64(0), np.int64(0), ZERO, ZERO, np.int64(0))


@stage
def midpoint(bits: np.uint64, upper: bool) -> tuple[np.uint64, int]:
    """Give the middle of a positive float and the next one, upper or lower, as an integer times a power of two."""
    field, fraction = np.int64(np.uint64(bits) >> FIELD), np.uint64(bits) & FRACTION
    mantissa = fraction if field == 0 else fraction | HIDDEN
    # Below a power of two, neighbouring floats are half as far apart.
    less = ONE if fraction == ZERO and field > 1 else ONE << ONE
    quarters = mantissa << np.uint64(2)
    return quarters + (ONE << ONE) if upper else quarters - less, int(max(field, np.int64(1)) - np.int64(1077))


@stage
def push_columns(
    known: Difference, total: np.int64, count: np.int64, total_sign: int, count_sign: int, factor: np.uint64, bits: int
) -> Difference:
    """Add the columns of S and of N at the next position; the midpoint is factor * 2**bits, and bits is below 32."""
    digit = count_sign * (count & MASK) + known.count_carry
    newest = np.uint64(digit & MASK)
    # The simulator of a GPU passes words as Python's integers.
    word, shift = np.uint64(factor), np.uint64(bits)
    low = (word << shift) & LOW
    middle = (word >> (HALF - shift)) & LOW
    high = (word >> HALF) >> (HALF - shift)
    one, two, three = low * newest, middle * np.uint64(known.first), high * np.uint64(known.second)
    below = np.int64(one & LOW) + np.int64(two & LOW) + np.int64(three & LOW) + known.above
    column = total_sign * (total & MASK) - below + known.carry
    return Difference(
        total_sign * (total >> np.int64(32)) + (column >> np.int64(32)),
        count_sign * (count >> np.int64(32)) + (digit >> np.int64(32)),
        np.int64(one >> HALF) + np.int64(two >> HALF) + np.int64(three >> HALF),
        newest,
        np.uint64(known.first),
        known.any | (column & MASK),
    )


@stage
def side(known: Difference) -> int:
    """Give the sign of a difference whose positions are all known: -1, 0 or 1."""
    if known.carry < 0:
        return -1
    return 1 if known.carry > 0 or known.any != 0 else 0


@stage
def first_guess(mean: float) -> np.uint64:
    """Give the magnitude of a mean as bits; for an infinite mean, the bits of the largest float."""
    bits = np.float64(mean).view(np.uint64) & ~(ONE << SIGN)
    return bits - ONE if bits == INFINITE else bits


@stage
def chosen(bits: np.uint64, above: int, below: int) -> float:
    """Give a float or its neighbour; `above` and `below` tell on which side of each midpoint the number lies."""
    word = np.uint64(bits)
    odd = word & ONE != ZERO
    if above > 0 or (above == 0 and odd):
        word += ONE
    elif below < 0 or (below == 0 and odd):
        word -= ONE
    return np.uint64(word).view(np.float64)


@stage
def compare(
    totals: Array,
    at: int,
    width: int,
    low: int,
    total_sign: int,
    counts: Array,
    count_at: int,
    count_width: int,
    count_low: int,
    count_sign: int,
    factor: np.uint64,
    exponent: int,
) -> int:
    """Give the sign of |S| - factor * 2**exponent * |N|."""
    ahead, bits = exponent >> 5, exponent & 31
    begin = min(low, count_low + ahead)
    end = max(low + width, count_low + ahead + count_width + AFTER)
    known = no_difference()
    for position in range(begin, end):
        mine, its = position - low, position - ahead - count_low
        total = totals[at + mine] if 0 <= mine < width else np.int64(0)
        count = counts[count_at + its] if 0 <= its < count_width else np.int64(0)
        known = push_columns(known, total, count, total_sign, count_sign, factor, bits)
    return int(side(known))


@stage
def settle(
    mean: float,
    totals: Array,
    at: int,
    width: int,
    low: int,
    total_sign: int,
    counts: Array,
    count_at: int,
    count_width: int,
    count_low: int,
    count_sign: int,
) -> float:
    """Round S / N correctly, given a mean that is at most one unit off; the digits of S begin at `at`."""
    bits = first_guess(mean)
    where = totals, at, width, low, total_sign, counts, count_at, count_width, count_low, count_sign
    above = compare(*where, *midpoint(bits, True))
    below = compare(*where, *midpoint(bits, False)) if bits != ZERO else 1
    return total_sign * count_sign * chosen(bits, above, below)
