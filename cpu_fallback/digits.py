"""Floating-point numbers, and products of them, as digits on the absolute grid of base 2**32.

A finite number is an integer mantissa times a power of two.  Shifted onto the grid, a float64 needs at most three
digits, a product of two at most six.  Digits carry the number's sign, so sums of digits are sums of numbers.

Arrays may be NumPy's or CuPy's, here and in `exact`: NumPy's functions leave the work to the library of their
arguments, and new arrays are made like an existing one.
"""

import numpy as np
from numpy.typing import NDArray

DIGIT_BITS = 32
MASK = np.uint64(0xFFFFFFFF)


def mantissas(values: NDArray[np.generic], /) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int64]]:
    """Split numbers into sign (-1, 1), unsigned mantissa and binary exponent: value = sign * mantissa * 2**exponent."""
    if values.dtype.kind == "i":
        signed = values.astype(np.int64, copy=False)
        sign = np.where(signed < 0, np.int64(-1), np.int64(1))
        # Only an unsigned integer can hold the magnitude of the smallest int64.
        return sign, np.abs(signed).view(np.uint64), np.zeros_like(signed)
    bits = values.astype(np.float64, copy=False).view(np.uint64)
    sign = np.where(bits >> np.uint64(63) != 0, np.int64(-1), np.int64(1))
    field = ((bits >> np.uint64(52)) & np.uint64(0x7FF)).astype(np.int64)
    fraction = bits & np.uint64((1 << 52) - 1)
    mantissa = np.where(field == 0, fraction, fraction | np.uint64(1 << 52))
    return sign, mantissa, np.maximum(field, 1) - 1075


def on_grid(
    mantissa: NDArray[np.uint64], exponent: NDArray[np.int64], /
) -> tuple[list[NDArray[np.uint64]], NDArray[np.int64]]:
    """Give the three digits of each mantissa, lowest first, and the grid position of the first."""
    base = exponent >> 5
    shift = (exponent & 31).astype(np.uint64)
    back = np.uint64(DIGIT_BITS) - shift
    low = (mantissa << shift) & MASK
    middle = (mantissa >> back) & MASK
    high = mantissa >> np.uint64(DIGIT_BITS) >> back
    return [low, middle, high], base


def digit_products(left: list[NDArray[np.uint64]], right: list[NDArray[np.uint64]], /) -> list[NDArray[np.uint64]]:
    """Multiply digit by digit; columns are sums of 32-bit halves, not yet carried."""
    columns = [np.zeros_like(left[0]) for _ in range(len(left) + len(right))]
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            product = a * b
            columns[i + j] += product & MASK
            columns[i + j + 1] += product >> np.uint64(DIGIT_BITS)
    return columns


def carry(columns: list[NDArray[np.uint64]], /) -> list[NDArray[np.uint64]]:
    """Propagate carries so that every digit is below 2**32; the number must fit the columns."""
    above = np.zeros_like(columns[0])
    digits = []
    for column in columns:
        total = column + above
        digits.append(total & MASK)
        above = total >> np.uint64(DIGIT_BITS)
    return digits


def signed_digits(factors: list[NDArray[np.generic]], /) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
    """Give the exact product of the factors as signed digits, lowest first, and the grid position of the first."""
    sign, mantissa, exponent = mantissas(factors[0])
    digits, base = on_grid(mantissa, exponent)
    for factor in factors[1:]:
        other_sign, mantissa, exponent = mantissas(factor)
        other, other_base = on_grid(mantissa, exponent)
        digits = carry(digit_products(digits, other))
        base = base + other_base
        sign = sign * other_sign
    return [sign * digit.view(np.int64) for digit in digits], base


def bit_range(factors: list[NDArray[np.generic]], /) -> tuple[int, int]:
    """Give the range of binary positions [lowest, highest) of all products of the factors; (0, 0) if all are zero."""
    lowest = np.zeros_like(factors[0], np.int64)
    highest = np.zeros_like(factors[0], np.int64)
    nonzero = np.ones_like(factors[0], bool)
    for factor in factors:
        _, mantissa, exponent = mantissas(factor)
        nonzero &= mantissa != 0
        lowest_bit = mantissa & (~mantissa + np.uint64(1))
        lowest += exponent + bit_length(lowest_bit) - 1
        highest += exponent + bit_length(mantissa)
    if not nonzero.any():
        return 0, 0
    return int(lowest[nonzero].min()), int(highest[nonzero].max())


def bit_length(values: NDArray[np.uint64], /) -> NDArray[np.int64]:
    """Give the number of bits of each value; 0 for zero."""
    high = values >> np.uint64(DIGIT_BITS)
    of_high = np.frexp(high.astype(np.float64))[1]
    of_low = np.frexp((values & MASK).astype(np.float64))[1]
    return np.where(high != 0, of_high + DIGIT_BITS, of_low).astype(np.int64)
