"""The number that each row of a block adds to its cell: it is unpacked, multiplied and cut into digits.

A number is up to three 64-bit words times 2**exponent; its sign is a mask, 0 or -1.  Loops over the rows of a block
have no branches, so that the compiler turns them into vector instructions.
"""

from typing import NamedTuple

import numpy as np

from cpu_fallback.compiled.border import BLOCK, REAL, Array, Numbers, counting, stage

ONE = np.uint64(1)
ZERO = np.uint64(0)
MASK = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
SIGN = np.uint64(63)
FIELD = np.uint64(52)
FIELD_MASK = np.uint64(0x7FF)
FRACTION = np.uint64((1 << 52) - 1)
HIDDEN = np.uint64(1 << 52)
MOST_DIGITS = 7


class Room(NamedTuple):
    """Scratch space for the numbers of a block.

    `word` has three lines for the number and one for a factor; `other` holds the sign and the exponent of this factor;
    `lowest` is the column of a number's lowest digit.
    """

    word: Array
    sign: Array
    exponent: Array
    other: Array
    digit: Array
    lowest: Array


@counting
def scratch() -> Room:
    """Give room for one block."""
    return Room(
        np.empty((4, BLOCK), np.uint64),
        np.empty(BLOCK, np.int64),
        np.empty(BLOCK, np.int64),
        np.empty((2, BLOCK), np.int64),
        np.empty((MOST_DIGITS, BLOCK), np.int64),
        np.empty(BLOCK, np.int64),
    )


@stage
def parts(bits: np.uint64, kind: int) -> tuple[np.uint64, np.int64, np.int64]:
    """Split a number into mantissa, sign (0, -1) and binary exponent."""
    sign = -np.int64(bits >> SIGN)
    if kind == REAL:
        field = (bits >> FIELD) & FIELD_MASK
        fraction = bits & FRACTION
        return fraction if field == 0 else fraction | HIDDEN, sign, max(np.int64(field), np.int64(1)) - np.int64(1075)
    # Only unsigned integers hold the magnitude of the smallest int64.
    return ~bits + ONE if sign else bits, sign, np.int64(0)


@stage
def unpack(bits: Array, kind: int, word: Array, sign: Array, exponent: Array) -> None:
    """Split the numbers of a block."""
    for i in range(len(bits)):
        word[i], sign[i], exponent[i] = parts(bits[i], kind)


@stage
def product(left: np.uint64, right: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Give the low and the high word of a product of two words."""
    left_low, left_high, right_low, right_high = left & MASK, left >> HALF, right & MASK, right >> HALF
    low = left_low * right_low
    cross = left_low * right_high
    other = left_high * right_low
    middle = (low >> HALF) + (cross & MASK) + (other & MASK)
    high = left_high * right_high + (cross >> HALF) + (other >> HALF) + (middle >> HALF)
    return (low & MASK) | (middle << HALF), high


@stage
def multiply(word: Array, n_words: int, factor: Array) -> None:
    """Multiply numbers of one or two words by numbers of one word, in place; the results have one word more."""
    for i in range(len(factor)):
        low, high = product(word[0, i], factor[i])
        word[0, i] = low
        if n_words == 1:
            word[1, i] = high
        else:
            second_low, second_high = product(word[1, i], factor[i])
            total = second_low + high
            word[1, i] = total
            word[2, i] = second_high + (ONE if total < high else np.uint64(0))


@counting
def factor_of(numbers: Numbers, index: int, start: int, stop: int) -> tuple[Array, int]:
    """Give one factor of a measure for a block of rows: the weight, if there is one, comes before the target."""
    if index == 0 and numbers.weight_kind:
        return numbers.weight[start:stop], numbers.weight_kind
    return numbers.target[start:stop], numbers.target_kind


@counting
def load(numbers: Numbers, n_factors: int, start: int, stop: int, flip: int, room: Room) -> None:
    """Unpack the first factor and multiply it by the other factors."""
    n = stop - start
    for index in range(n_factors):
        bits, kind = factor_of(numbers, index, start, stop)
        if index == 0:
            unpack(bits, kind, room.word[0, :n], room.sign[:n], room.exponent[:n])
            for i in range(n):
                room.sign[i] ^= flip
        else:
            unpack(bits, kind, room.word[3, :n], room.other[0, :n], room.other[1, :n])
            multiply(room.word, index, room.word[3, :n])
            for i in range(n):
                room.sign[i] ^= room.other[0, i]
                room.exponent[i] += room.other[1, i]


@stage
def aim(word: Array, n_words: int, exponent: Array, low: int, last: int, lowest: Array) -> None:
    """Choose the column of each number's first digit, at most `last`, and leave in `exponent` the shift from there."""
    for i in range(len(lowest)):
        shift = exponent[i] - 32 * low
        if n_words == 1:
            # Only zeros below the window are shifted out, and no other bits.
            back = max(-shift, 0)
            word[0, i] = word[0, i] >> np.uint64(back) if back < 64 else ZERO
            shift = shift + back if word[0, i] else 0
        elif n_words == 2:
            shift = shift if word[0, i] | word[1, i] else 0
        lowest[i] = min(max(shift >> 5, 0), last)
        exponent[i] = shift - 32 * lowest[i]


@stage
def cut_any(word: Array, n_words: int, shift: Array, sign: Array, n_digits: int, digit: Array) -> None:
    """Cut numbers of any length with any shift."""
    for k in range(n_digits):
        for j in range(n_words):
            for i in range(len(shift)):
                # Each word gives different bits of the digit.
                ahead = shift[i] - 32 * k + 64 * j
                left = (word[j, i] << np.uint64(ahead)) & MASK if 0 <= ahead < 32 else ZERO
                right = (word[j, i] >> np.uint64(-ahead)) & MASK if -64 < ahead < 0 else ZERO
                part = (np.int64(left | right) ^ sign[i]) - sign[i]
                digit[k, i] = part if j == 0 else digit[k, i] + part


@stage
def apply_sign(digit: np.uint64, sign: np.int64) -> np.int64:
    """Give a digit the sign of its number."""
    return (np.int64(digit) ^ sign) - sign


@stage
def cut_singles(bits: Array, kind: int, flip: int, low: int, last: int, digit: Array, lowest: Array) -> int:
    """Unpack, aim and cut numbers into three digits at once.

    The result is all shifts joined by `or`; it is below 32 if every digit is in its position.
    """
    every = 0
    for i in range(len(bits)):
        word, sign, exponent = parts(bits[i], kind)
        sign ^= flip
        shift = exponent - 32 * low
        back = max(-shift, 0)
        word = word >> np.uint64(back) if back < 64 else ZERO
        shift = shift + back if word else 0
        lowest[i] = min(shift >> 5, last)
        shift -= 32 * lowest[i]
        every |= shift
        ahead = np.uint64(shift & 31)
        behind = HALF - ahead
        digit[0, i] = apply_sign((word << ahead) & MASK, sign)
        digit[1, i] = apply_sign((word >> behind) & MASK, sign)
        digit[2, i] = apply_sign(word >> HALF >> behind, sign)
    return every


@stage
def cut_products(
    left: Array,
    left_kind: int,
    right: Array,
    right_kind: int,
    flip: int,
    low: int,
    last: int,
    digit: Array,
    lowest: Array,
) -> int:
    """Unpack, multiply, aim and cut products of two numbers into five digits at once.

    The result is all shifts joined by `or`, as in `cut_singles`.
    """
    every = 0
    for i in range(len(left)):
        word, sign, exponent = parts(left[i], left_kind)
        other, other_sign, other_exponent = parts(right[i], right_kind)
        sign ^= other_sign ^ flip
        first, second = product(word, other)
        shift = exponent + other_exponent - 32 * low if first | second else 0
        lowest[i] = min(max(shift >> 5, 0), last)
        shift -= 32 * lowest[i]
        every |= shift
        ahead = np.uint64(shift & 31)
        behind = HALF - ahead
        digit[0, i] = apply_sign((first << ahead) & MASK, sign)
        digit[1, i] = apply_sign((first >> behind) & MASK, sign)
        digit[2, i] = apply_sign((first >> HALF >> behind) | ((second << ahead) & MASK), sign)
        digit[3, i] = apply_sign((second >> behind) & MASK, sign)
        digit[4, i] = apply_sign(second >> HALF >> behind, sign)
    return every


@stage
def cut_triples(
    left: Array,
    left_kind: int,
    right: Array,
    right_kind: int,
    flip: int,
    low: int,
    last: int,
    digit: Array,
    lowest: Array,
) -> int:
    """Unpack, multiply, aim and cut left * right**2 into seven digits; the last is zero if all numbers are float64.

    The result is all shifts joined by `or`, as in `cut_singles`.
    """
    every = 0
    for i in range(len(left)):
        word, sign, exponent = parts(left[i], left_kind)
        other, _, other_exponent = parts(right[i], right_kind)
        sign ^= flip
        first, carry = product(word, other)
        first, above = product(first, other)
        second, third = product(carry, other)
        second += above
        third += ONE if second < above else ZERO
        shift = exponent + 2 * other_exponent - 32 * low if first | second | third else 0
        lowest[i] = min(max(shift >> 5, 0), last)
        shift -= 32 * lowest[i]
        every |= shift
        ahead = np.uint64(shift & 31)
        behind = HALF - ahead
        digit[0, i] = apply_sign((first << ahead) & MASK, sign)
        digit[1, i] = apply_sign((first >> behind) & MASK, sign)
        digit[2, i] = apply_sign((first >> HALF >> behind) | ((second << ahead) & MASK), sign)
        digit[3, i] = apply_sign((second >> behind) & MASK, sign)
        digit[4, i] = apply_sign((second >> HALF >> behind) | ((third << ahead) & MASK), sign)
        digit[5, i] = apply_sign((third >> behind) & MASK, sign)
        digit[6, i] = apply_sign(third >> HALF >> behind, sign)
    return every


@counting
def cut(numbers: Numbers, n_factors: int, start: int, stop: int, flip: int, low: int, width: int, room: Room) -> int:
    """Cut the products of a block into digits, the lowest digit first; give the number of digits of each product."""
    left, left_kind = factor_of(numbers, 0, start, stop)
    right, right_kind = factor_of(numbers, 1, start, stop)
    digit, lowest = room.digit, room.lowest[: stop - start]
    every, n_digits = -1, 2 * n_factors + 1
    if n_factors == 3 and left_kind == REAL and right_kind == REAL:
        n_digits = 6
    last = width - n_digits
    # The quick ways need all digits in the window, as in windows that were made for these numbers.
    if last >= 0 and n_factors == 1:
        every = cut_singles(left, left_kind, flip, low, last, digit, lowest)
    elif last >= 0 and n_factors == 2:
        every = cut_products(left, left_kind, right, right_kind, flip, low, last, digit, lowest)
    elif last >= 0:
        every = cut_triples(left, left_kind, right, right_kind, flip, low, last, digit, lowest)
    if 0 <= every < 32:
        return n_digits
    load(numbers, n_factors, start, stop, flip, room)
    n_digits = min(width, 2 * n_factors + 1)
    shift = room.exponent[: stop - start]
    aim(room.word, n_factors, shift, low, width - n_digits, lowest)
    cut_any(room.word, n_factors, shift, room.sign, n_digits, digit)
    return n_digits
