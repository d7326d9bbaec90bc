"""Round exact numbers: of any number of digits, and, without loops or arrays, of three or four 64-bit words.

Most sums fit three words; arguments have the highest word first.  Numbers are cut at their digits of 32 bits, as in
`cpu_fallback.exact.split`: the pair to which a number is rounded depends on the position of its top digit.
"""

import math

import numpy as np

from cpu_fallback.compiled.border import Array, inlined, stage
from cpu_fallback.compiled.digits import HALF, ONE, SIGN, ZERO, product

FIELD = np.uint64(52)
BIAS = 1023
MASK = np.int64(0xFFFFFFFF)
LOW = np.uint64(MASK)
# Three words hold this number of digits; the highest is the spare digit of a window, for carries, and rarely used.
WORD_DIGITS = 7
# If digits are at most this large, the highest word has room for carries, and for a product with a count below 2**32.
FIFTH_BOUND = np.int64(1) << np.int64(59)
SIXTH_BOUND = np.int64(1) << np.int64(27)
TWO_TO_MINUS_64 = 2.0**-64
TWO_TO_MINUS_128 = 2.0**-128
# The lower bits of two digits that do not fit a float together with the upper bits.
DEEPEST = np.uint64(0x7FF)
Three = tuple[np.uint64, np.uint64, np.uint64]
Four = tuple[np.uint64, np.uint64, np.uint64, np.uint64]


@stage
def magnitude(digits: Array, at: int, n: int, out: Array) -> int:
    """Carry signed digits to digits of at least 0, one more than before; give the sign."""
    carry = np.int64(0)
    for i in range(n):
        low = (digits[at + i] & MASK) + carry
        out[i] = low & MASK
        carry = (digits[at + i] >> 32) + (low >> 32)
    out[n] = carry
    if carry >= 0:
        return 1
    carry = np.int64(1)
    for i in range(n):
        low = (~out[i] & MASK) + carry
        out[i] = low & MASK
        carry = low >> 32
    out[n] = ~out[n] + carry
    return -1


@stage
def digit(digits: Array, i: int) -> np.uint64:
    """Give a digit; zero below the first digit."""
    return np.uint64(digits[i]) if i >= 0 else np.uint64(0)


@stage
def lower_half(rest: np.int64, deep: np.uint64, lost: bool) -> float:
    """Give the lower number of a pair, from the rest of the third digit and the next two digits.

    Its last bit is set if it is not the whole rest, so an even number is exact.
    """
    kept = deep & ~DEEPEST
    near, far = np.float64(rest) * TWO_TO_MINUS_64, np.float64(kept) * TWO_TO_MINUS_128
    lower = near + far
    odd = np.uint64(lost | (kept != deep) | (lower - near != far))
    return np.uint64(np.float64(lower).view(np.uint64) | odd).view(np.float64)


@stage
def round_pair(digits: Array, n: int, low: int) -> tuple[float, float, int]:
    """Round non-negative digits to (hi, lo, exponent): the number is (hi + lo) * 2**exponent, hi correctly rounded."""
    top = n - 1
    while top > 0 and digits[top] == 0:
        top -= 1
    if digits[top] == 0:
        return 0.0, 0.0, 0
    first, second, third = digit(digits, top), digit(digits, top - 1), digit(digits, top - 2)
    fourth, fifth = digit(digits, top - 3), digit(digits, top - 4)
    _, length = math.frexp(float(first))
    size = np.uint64(length)
    head = (first << (np.uint64(64) - size)) | (second << (np.uint64(32) - size)) | (third >> size)
    tail = np.int64(third & ((np.uint64(1) << size) - np.uint64(1)))
    lost = False
    for i in range(top - 4):
        lost = lost or digits[i] != 0
    sticky = tail != 0 or fourth != 0 or fifth != 0 or lost
    mantissa = np.int64(head >> np.uint64(11))
    rest = np.int64(head & np.uint64(0x7FF))
    if rest > 1024 or (rest == 1024 and (sticky or mantissa & 1 == 1)):
        mantissa += 1
        rest -= 2048
    deep = (fourth << np.uint64(32)) | fifth
    lower = lower_half((rest << length) + tail, deep, lost)
    return math.ldexp(float(mantissa), length - 53), lower, 32 * (top + low)


@stage
def power_of_two(exponent: int) -> float:
    """Give 2**exponent, if this is a normal number."""
    return np.uint64((exponent + BIAS) << 52).view(np.float64)


@stage
def length_of(digit: np.uint64) -> int:
    """Give the number of bits of a number from 1 to 2**53, from its exponent as a float."""
    return int(np.int64(np.float64(digit).view(np.uint64) >> FIELD)) - (BIAS - 1)


@inlined
def join_words(first: np.int64, second: np.int64) -> tuple[np.uint64, np.int64]:
    """Give first + second * 2**32 as a low and a signed high word."""
    low = np.uint64(first) + (np.uint64(second) << HALF)
    carry = np.int64(low < np.uint64(first))
    return low, (first >> np.int64(63)) + (second >> np.int64(32)) + carry


@inlined
def carry_to_words(digits: Array, at: int, n: int) -> tuple[bool, np.uint64, np.uint64, np.uint64]:
    """Carry up to seven signed digits to three words, in two's complement; the first result tells whether they fit."""
    low, over = join_words(digits[at], digits[at + 1] if n > 1 else np.int64(0))
    middle, above = join_words(digits[at + 2] if n > 2 else np.int64(0), digits[at + 3] if n > 3 else np.int64(0))
    total = middle + np.uint64(over)
    above += (over >> np.int64(63)) + np.int64(total < middle)
    if n <= 4:
        return True, np.uint64(above), total, low
    fifth, sixth = digits[at + 4], digits[at + 5] if n > 5 else np.int64(0)
    fits = (-FIFTH_BOUND < fifth < FIFTH_BOUND) and (-SIXTH_BOUND < sixth < SIXTH_BOUND)
    fits = fits and (n < WORD_DIGITS or digits[at + 6] == 0)
    return bool(fits), np.uint64(above + fifth) + (np.uint64(sixth) << HALF), total, low


@inlined
def absolute(high: np.uint64, middle: np.uint64, low: np.uint64) -> Three:
    """Give the magnitude of a number in two's complement."""
    mask = ZERO - (high >> SIGN)
    low = (low ^ mask) - mask
    carry = mask & np.uint64(low == ZERO)
    middle = (middle ^ mask) + carry
    return (high ^ mask) + (carry & np.uint64(middle == ZERO)), middle, low


@inlined
def round_words(high: np.uint64, middle: np.uint64, low: np.uint64, top: int) -> tuple[float, float, int]:
    """Round words to (hi, lo, exponent); `top` is the position of the upper digit of `high`, which is not zero."""
    # This is a mask, since a branch cannot be predicted if sums of both sizes take turns.
    short = ZERO - np.uint64(high >> HALF == ZERO)
    high ^= (high ^ ((high << HALF) | (middle >> HALF))) & short
    middle ^= (middle ^ ((middle << HALF) | (low >> HALF))) & short
    low ^= (low ^ (low << HALF)) & short
    length = length_of(high >> HALF)
    size = np.uint64(length)
    third = middle >> HALF
    head = (high << (HALF - size)) | (third >> size)
    tail = third & ((ONE << size) - ONE)
    sticky = (tail | (middle & LOW) | low) != ZERO
    mantissa, rest = np.int64(head >> np.uint64(11)), np.int64(head & np.uint64(0x7FF))
    up = np.int64((rest > 1024) | ((rest == 1024) & (sticky | (mantissa & np.int64(1) != 0))))
    rest -= up << np.int64(11)
    deep = (middle << HALF) | (low >> HALF)
    lower = lower_half((rest << np.int64(length)) + np.int64(tail), deep, low & LOW != ZERO)
    return float(mantissa + up) * power_of_two(length - 53), lower, 32 * (top + int(np.int64(short)))


@inlined
def pair_of_words(high: np.uint64, middle: np.uint64, low: np.uint64) -> tuple[float, float, int]:
    """Round a number in two's complement whose lowest digit is at position 0."""
    sign = 1.0 - 2.0 * np.float64(high >> SIGN)
    high, middle, low = absolute(high, middle, low)
    top = 5
    if high == ZERO:
        high, middle, low, top = middle, low, ZERO, 3
        if high == ZERO:
            high, middle, top = middle, ZERO, 1
            if high == ZERO:
                return 0.0, 0.0, 0
    first, second, exponent = round_words(high, middle, low, top)
    return sign * first, sign * second, exponent


@inlined
def times_count(high: np.uint64, middle: np.uint64, low: np.uint64, count: np.uint64) -> Four:
    """Multiply by a number below 2**32."""
    first = (low & LOW) * count
    second = (low >> HALF) * count + (first >> HALF)
    third = (middle & LOW) * count + (second >> HALF)
    fourth = (middle >> HALF) * count + (third >> HALF)
    fifth = (high & LOW) * count + (fourth >> HALF)
    sixth = (high >> HALF) * count + (fifth >> HALF)
    return (
        sixth >> HALF,
        (sixth << HALF) | (fifth & LOW),
        (fourth << HALF) | (third & LOW),
        (second << HALF) | (first & LOW),
    )


@inlined
def square_words(high: np.uint64, low: np.uint64) -> Four:
    """Square a number below 2**127."""
    first, second = product(low, low)
    cross, above = product(low, high)
    third, fourth = product(high, high)
    above, cross = (above << ONE) | (cross >> SIGN), cross << ONE
    second += cross
    carry = np.uint64(second < cross)
    third += above
    over = np.uint64(third < above)
    third += carry
    return fourth + over + np.uint64(third < carry), third, second, first


@inlined
def less(left: Four, right: Four) -> Four:
    """Give the difference, in two's complement."""
    low = left[3] - right[3]
    borrow = np.uint64(left[3] < right[3])
    second = left[2] - right[2] - borrow
    borrow = np.uint64((left[2] < right[2]) | ((left[2] == right[2]) & (borrow != ZERO)))
    third = left[1] - right[1] - borrow
    borrow = np.uint64((left[1] < right[1]) | ((left[1] == right[1]) & (borrow != ZERO)))
    return left[0] - right[0] - borrow, third, second, low


@inlined
def round_four(number: Four) -> tuple[float, float, int]:
    """Round four words in two's complement, with their lowest digit at position 0, to (hi, lo, exponent)."""
    negative = number[0] >> SIGN != ZERO
    high, third, second, low = less((ZERO, ZERO, ZERO, ZERO), number) if negative else number
    top = 7
    while high == ZERO and top > 1:
        high, third, second, low, top = third, second, low, ZERO, top - 2
    if high == ZERO:
        return 0.0, 0.0, 0
    # Bits below the third word only decide ties.
    sign = -1.0 if negative else 1.0
    upper, lower, exponent = round_words(high, third, second | np.uint64(low != ZERO), top)
    return sign * upper, sign * lower, exponent


@inlined
def spread_of_words(count: np.uint64, total: Three, square: Three, ahead: int) -> tuple[float, float, int]:
    """Give count * square * 2**(32 * ahead) - total**2 as a pair; `ahead` is 0 or 1, |total| is below 2**127."""
    negative = square[0] >> SIGN != ZERO
    high, middle, low = absolute(*square)
    left = times_count(high, middle, low, count)
    if ahead:
        left = (
            (left[0] << HALF) | (left[1] >> HALF),
            (left[1] << HALF) | (left[2] >> HALF),
            (left[2] << HALF) | (left[3] >> HALF),
            left[3] << HALF,
        )
    _, middle, low = absolute(*total)
    if negative:
        left = less((ZERO, ZERO, ZERO, ZERO), left)
    return round_four(less(left, square_words(middle, low)))
