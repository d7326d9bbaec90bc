"""Rows in the form that kernels take, and the digits that one row adds to its cell.

Up to three factors are multiplied to a number of three words, which is divided into digits.  This is the scalar version
of `cpu_fallback.compiled.digits`; kernels keep the number in registers.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cpu_fallback.compiled.border import ABSENT, REAL, WHOLE
from cpu_fallback.compiled.border import measures_of as host_measures_of
from cpu_fallback.compiled.digits import FIELD, FRACTION, HALF, MASK, ONE, SIGN, ZERO, parts, product
from cpu_fallback.compiled.extents import bit_length
from gpu_encode.cuda.memory import empty, to_device
from gpu_encode.cuda.runtime import device_function

if TYPE_CHECKING:
    from collections.abc import Callable

    from cpu_fallback.types import Array, Layout, Rows

    Words = tuple[np.uint64, np.uint64, np.uint64]

WORD = np.uint64(64)
# For the raw word of a float32 number: its bits without the sign, the smallest normal number, and the position of the
# sign; then the shift to the bits of a float64 number, and what is added to the exponent and to that of the lowest bit.
SINGLE_MAGNITUDE, SINGLE_NORMAL, SINGLE_SIGN = np.uint64(0x7FFFFFFF), np.uint64(0x00800000), np.uint64(31)
SINGLE_SHIFT, SINGLE_BIAS, SINGLE_LOWEST = np.uint64(29), np.uint64((1023 - 127) << 23), np.uint64(1023 - 150)


class RowParts(NamedTuple):
    """Launch arguments: categories, classes if rows are `labelled`, target and weight with their kinds, measures."""

    codes: Any
    classes: "Array"
    labelled: bool
    target: "Array"
    target_kind: int
    weight: "Array"
    weight_kind: int
    measures: "Array"


def number_words(array: "Array | None") -> "tuple[Array, int]":
    """Raw words of numbers on the device, 32 bits for float32 and 64 for int64 and float64, and their kind."""
    if array is None:
        return empty(1, np.uint64), ABSENT
    if array.dtype == np.float32:
        return to_device(array).view(np.uint32), REAL
    real = array.dtype.kind not in "ib"
    numbers = to_device(array).astype(np.float64 if real else np.int64, copy=False)
    return numbers.view(np.uint64), REAL if real else WHOLE


def measures_of(layout: "Layout") -> "Array":
    """A line (kept, whole, low, width) for the sums of weight, weight * target and weight * target**2, flat."""
    return to_device(host_measures_of(layout).flatten())


def parts_of(rows: "Rows", measures: "Array", read_codes: "Callable[[Array], Any]" = to_device) -> RowParts:
    """Copy rows to the device; `measures` comes from `measures_of`."""
    classes = empty(1, np.int32) if rows.classes is None else to_device(rows.classes)
    numbers = *number_words(rows.target), *number_words(rows.weight)
    return RowParts(read_codes(rows.codes), classes, rows.classes is not None, *numbers, measures)


class Extents(NamedTuple):
    """Extents of sums: lines (categories, unknown and missing), classes, and columns of digits."""

    n_lines: int
    n_classes: int
    width: int


@device_function
def line_of(code: int, n_lines: int) -> np.int64:
    """Line of a category; a negative code counts from the end."""
    line = np.int64(code)
    return line + n_lines if line < 0 else line


@device_function
def widen_bits(word: np.uint64) -> np.uint64:
    """Raw word of the float64 number that equals a finite float32 number, from the raw word of the latter."""
    magnitude = word & SINGLE_MAGNITUDE
    if magnitude >= SINGLE_NORMAL:
        wide = (magnitude + SINGLE_BIAS) << SINGLE_SHIFT
    elif magnitude:
        # A subnormal number has its highest bit at another position.
        length = np.uint64(bit_length(magnitude))
        wide = ((length + SINGLE_LOWEST) << FIELD) + ((magnitude << (FIELD + ONE - length)) & FRACTION)
    else:
        wide = ZERO
    return wide | (word >> SINGLE_SIGN) << SIGN


@device_function
def bits_at(words: "Array", kind: int, row: int) -> np.uint64:
    """Raw 64-bit word of a row; zero if there are no numbers."""
    if kind == ABSENT:
        return ZERO
    word = np.uint64(words[np.uint64(row)])
    return widen_bits(word) if words.itemsize == 4 else word


@device_function
def apply_sign(word: np.uint64, sign: int) -> np.int64:
    """Give a magnitude the sign (0, -1) of its number."""
    return (np.int64(word) ^ sign) - sign


@device_function
def align(bits: np.uint64, kind: int) -> tuple[np.uint64, np.int64]:
    """Magnitude and sign of a whole number that fits int64."""
    word, sign, exponent = parts(bits, kind)
    left = np.uint64(word) << np.uint64(exponent) if 0 <= exponent < 64 else ZERO
    right = np.uint64(word) >> np.uint64(-exponent) if -64 < exponent < 0 else ZERO
    return left | right, sign


@device_function
def whole_number(
    power: int, target: np.uint64, target_kind: int, weight: np.uint64, weight_kind: int
) -> tuple[np.uint64, np.int64]:
    """Magnitude and sign of weight * target**power, all of them whole; without factors it is one."""
    word, sign = ONE, np.int64(0)
    if weight_kind != ABSENT:
        word, sign = align(weight, weight_kind)
    if power:
        other, other_sign = align(target, target_kind)
        for _ in range(power):
            word *= other
            sign ^= other_sign
    return word, sign


@device_function
def product_of(
    power: int, target: np.uint64, target_kind: int, weight: np.uint64, weight_kind: int
) -> "tuple[Words, np.int64, np.int64]":
    """Words, sign and binary exponent of weight * target**power; zero without factors."""
    if power == 0:
        word, sign, exponent = parts(weight, weight_kind)
        return (np.uint64(word), ZERO, ZERO), np.int64(sign), np.int64(exponent)
    word, sign, exponent = parts(target, target_kind)
    first, second, third = np.uint64(word), ZERO, ZERO
    if power == 2:
        low, high = product(first, first)
        first, second, sign, exponent = np.uint64(low), np.uint64(high), np.int64(0), 2 * exponent
    if weight_kind != ABSENT:
        word, other_sign, other_exponent = parts(weight, weight_kind)
        sign ^= other_sign
        exponent += other_exponent
        low, carry = product(first, np.uint64(word))
        middle, high = product(second, np.uint64(word))
        first, second = np.uint64(low), np.uint64(middle) + np.uint64(carry)
        third = np.uint64(high) + (ONE if second < np.uint64(carry) else ZERO)
    return (first, second, third), np.int64(sign), np.int64(exponent)


@device_function
def below(words: "Words", bits: np.uint64) -> "Words":
    """Give the words of a number after a shift that removes its lowest bits, 1 to 32."""
    first, second, third = words
    ahead = WORD - bits
    return (first >> bits) | (second << ahead), (second >> bits) | (third << ahead), third >> bits


@device_function
def number(
    power: int, target: np.uint64, target_kind: int, weight: np.uint64, weight_kind: int, low: int
) -> "tuple[np.uint64, Words, np.int64, np.int64]":
    """Lowest digit of weight * target**power, the words above it, the sign, and the digit's column in the window."""
    words, sign, exponent = product_of(power, target, target_kind, weight, weight_kind)
    shift = exponent - 32 * low
    ahead = np.uint64(shift & 31)
    return (words[0] << ahead) & MASK, below(words, HALF - ahead), sign, shift >> 5


@device_function
def is_left(digit: np.uint64, words: "Words") -> bool:
    """Whether a digit or a digit above it is not zero."""
    return (digit | words[0] | words[1] | words[2]) != ZERO


@device_function
def term(row: int, power: int, rows: RowParts, digits: "Array") -> tuple[int, int]:
    """Write the signed digits of weight * target**power of a row, lowest first; give their first column and number.

    If the window is whole, the only digit is the product itself.  Zeros below and above the digits may be left out; all
    digits outside of the window are zero.
    """
    target_kind, weight_kind = rows.target_kind, rows.weight_kind
    of_target, of_weight = bits_at(rows.target, target_kind, row), bits_at(rows.weight, weight_kind, row)
    low, width = rows.measures[4 * power + 2], rows.measures[4 * power + 3]
    if rows.measures[4 * power + 1]:
        word, sign = whole_number(power, of_target, target_kind, of_weight, weight_kind)
        digits[0] = apply_sign(word, sign)
        return 0, 1
    digit, words, sign, column = number(power, of_target, target_kind, of_weight, weight_kind, low)
    first, n_digits = max(column, 0), 0
    while column < width and is_left(digit, words):
        if column >= 0:
            digits[n_digits] = apply_sign(digit, sign)
            n_digits += 1
        digit, words, column = words[0] & MASK, below(words, HALF), column + 1
    return first, n_digits


@device_function
def add_row(row: int, sign: int, rows: RowParts, digits: "Array", line: "Array", at: int) -> None:
    """Add the digits of a row, times sign (1, -1), to the cell line[at:]; no other thread uses it at the same time."""
    for power in range(3):
        if rows.measures[4 * power]:
            first, n_digits = term(row, power, rows, digits)
            for k in range(n_digits):
                line[at + first + k] += sign * digits[k]
            at += rows.measures[4 * power + 3]


@device_function
def spread_row(row: int, first_power: int, rows: RowParts, digits: "Array", out: "Array", at: int, step: int) -> None:
    """Write the digits of a row, from a power of the target on, to every step-th number of `out`; skip zeros."""
    for power in range(first_power, 3):
        if rows.measures[4 * power]:
            first, n_digits = term(row, power, rows, digits)
            for k in range(n_digits):
                out[at + (first + k) * step] = digits[k]
            at += rows.measures[4 * power + 3] * step
