"""Exact numbers, read digit by digit from the lowest and rounded once to float64; and their quotients.

These functions correspond to `round_pair` in `cpu_fallback.compiled.rounding`, and to `plain` and `quotient` in its
`moments`.  Numbers of any size pass through a few registers: no thread holds all their digits in memory.
"""

from typing import NamedTuple

import numpy as np

from cpu_fallback.compiled.digits import FRACTION
from cpu_fallback.compiled.extents import bit_length
from cpu_fallback.compiled.moments import DOUBT
from cpu_fallback.compiled.product_errors import SPLITTER
from cpu_fallback.compiled.rounding import DEEPEST, TWO_TO_MINUS_64, TWO_TO_MINUS_128
from gpu_encode.cuda.runtime import device_function

MASK = np.int64(0xFFFFFFFF)
LOW_HALF = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
ZERO = np.uint64(0)
ONE = np.uint64(1)
# A bit above the fifth digit from the top: some lower digit is not zero.
STICKY = np.uint64(1 << 32)
TWO_TO_32 = 2.0**32
TWO_TO_MINUS_53 = 2.0**-53
# Scaled values are between 2**-64 and 2**64, and leave the range of float64 beyond this exponent.
FARTHEST = 1200
BIAS = 1023
FRACTION_BITS = 52


class Digits(NamedTuple):
    """Carried digits of a number in two's complement, as far as they are known.

    Parameters
    ----------
    carry : int64
        Carry to the next column.
    upper, middle, under : uint64
        The last five digits: two, two and one, the newest first; `STICKY` beside the fifth.
    top_upper, top_middle, top_under
        The same digits before the run of equal digits with which the number ends so far.
    end : int64
        Position at which that run begins.
    """

    carry: np.int64
    upper: np.uint64
    middle: np.uint64
    under: np.uint64
    top_upper: np.uint64
    top_middle: np.uint64
    top_under: np.uint64
    end: int


@device_function
def no_digits() -> Digits:
    """Start below the lowest digit, where all digits are zero."""
    return Digits(np.int64(0), ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, 0)


@device_function
def push(digits: Digits, column: np.int64, position: int) -> Digits:
    """Carry the column at the next position, a signed int64, into one more digit."""
    # The two halves are added separately, since a whole int64 may leave no room for a carry.
    low = (column & MASK) + digits.carry
    carry = (column >> 32) + (low >> 32)
    digit = np.uint64(low & MASK)
    top_upper, top_middle, top_under, end = digits.top_upper, digits.top_middle, digits.top_under, digits.end
    if digit != digits.upper >> HALF:
        top_upper, top_middle, top_under, end = digits.upper, digits.middle, digits.under, position
    upper = (digit << HALF) | (digits.upper >> HALF)
    middle = (digits.upper << HALF) | (digits.middle >> HALF)
    under = (digits.middle & LOW_HALF) | (STICKY if digits.under != ZERO else ZERO)
    return Digits(carry, upper, middle, under, top_upper, top_middle, top_under, end)


@device_function
def magnitude_top(given: Digits, end: int) -> tuple[bool, int, np.uint64, np.uint64, np.uint64]:
    """Sign of a number with columns up to `end`; first position and first five digits of its magnitude."""
    # Two digits hold the last carry; the digits that they repeat are the sign.  The digits before this run are the
    # number.
    digits = push(push(given, np.int64(0), end), np.int64(0), end + 1)
    upper, middle, under = digits.top_upper, digits.top_middle, digits.top_under
    if digits.carry >= 0:
        return False, digits.end - 1, upper, middle, under
    if upper | middle | under == ZERO:
        # If only zeros follow, the magnitude is a power of 2**32, and has one digit more.
        return True, digits.end, STICKY, ZERO, ZERO
    upper = ~upper + (ONE if middle | under == ZERO else ZERO)
    middle = ~middle + (ONE if under == ZERO else ZERO)
    sticky = under & STICKY
    under = ((~under & LOW_HALF) + (ONE if sticky == ZERO else ZERO)) & LOW_HALF
    return True, digits.end - 1, upper, middle, under | sticky


@device_function
def round_columns(digits: Digits, end: int) -> tuple[float, float, int]:
    """Round a number with columns up to `end` to (hi, lo, exponent).

    It is (hi + lo) * 2**exponent, hi correctly rounded.
    """
    negative, top, upper, middle, under = magnitude_top(digits, end)
    first = upper >> HALF
    if first == ZERO:
        return 0.0, 0.0, 0
    length = bit_length(first)
    size = np.uint64(length)
    third = middle >> HALF
    head = (upper << (HALF - size)) | (third >> size)
    tail = np.int64(third & ((ONE << size) - ONE))
    deep = (middle << HALF) | (under & LOW_HALF)
    sticky = tail != 0 or deep != ZERO or under & STICKY != ZERO
    mantissa = np.int64(head >> np.uint64(11))
    rest = np.int64(head & np.uint64(0x7FF))
    if rest > 1024 or (rest == 1024 and (sticky or mantissa & 1 == 1)):
        mantissa += 1
        rest -= 2048
    kept = deep & ~DEEPEST
    near, far = float((rest << length) + tail) * TWO_TO_MINUS_64, float(kept) * TWO_TO_MINUS_128
    lower = near + far
    # An even lower number means that nothing else remains.
    odd = ONE if under & STICKY != ZERO or kept != deep or lower - near != far else ZERO
    lower = np.uint64(np.float64(lower).view(np.uint64) | odd).view(np.float64)
    # Both factors are powers of two, so nothing is rounded.
    high = float(mantissa) * TWO_TO_MINUS_53 * float(ONE << size)
    exponent = 32 * top
    return (-high, -lower, exponent) if negative else (high, lower, exponent)


@device_function
def whole_pair(value: np.int64) -> tuple[float, float]:
    """Give an int64 as the sum of (hi, lo), with hi correctly rounded."""
    high = float(value)
    # Neither half, nor any of the differences, is rounded.
    return high, (float(value >> 32) * TWO_TO_32 - high) + float(value & MASK)


@device_function
def power_of_two(exponent: int) -> float:
    """2**exponent, within the normal numbers."""
    return np.int64((exponent + BIAS) << FRACTION_BITS).view(np.float64)


@device_function
def scale(value: float, exponent: int) -> float:
    """Value * 2**exponent, rounded once, for any exponent and for values of `round_columns` and `quotient`."""
    if exponent == 0:
        return value
    power = min(max(exponent, -FARTHEST), FARTHEST)
    half = power >> 1
    # The result of the first step is a normal number, so only the second step rounds.
    return value * power_of_two(half) * power_of_two(power - half)


@device_function
def halve(value: float) -> float:
    """Upper 26 bits of a number (Veltkamp splitting)."""
    wide = value * SPLITTER
    return wide - (wide - value)


@device_function
def quotient(high: float, lower: float, n_high: float, n_lower: float) -> tuple[float, bool]:
    """Quotient of two pairs, the second not zero, and whether it may be rounded wrongly.

    It corresponds to `cpu_fallback.exact.quotient`.
    """
    first = high / n_high
    product = first * n_high
    a, b = halve(first), halve(n_high)
    c, d = first - a, n_high - b
    error = c * d - (((product - a * b) - c * b) - a * d)
    left, right = (high - product) - error, lower - first * n_lower
    rest = left + right
    change = rest / n_high
    near = first + change
    if near + (change - (near - first)) * DOUBT == near:
        return near, False
    again = rest - left
    whole = (left - (rest - again)) + (right - again) == 0.0
    even = (np.float64(lower).view(np.uint64) & ONE) | (np.float64(change).view(np.uint64) & FRACTION) == ZERO
    return near, not (n_lower == 0.0 and even and whole and change * n_high == rest)
