"""The floating-point steps of exact numbers: scaling, rounding digits once, and what a product leaves over."""

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.digits import bit_length

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LOWEST_EXPONENT = -1074


def shifted(values: Floats, exponent: Integers) -> Floats:
    """Values * 2**exponent, for any exponent."""
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(values, np.clip(exponent, -5000, 5000).astype(np.int32))


def split(digits: Integers, sign: Integers, low: int) -> tuple[Floats, Floats, Integers]:
    """Round carried, non-negative digits to (hi, lo, exponent)."""
    columns = [digits[..., i] for i in range(digits.shape[-1])]
    padded = np.stack([*(np.zeros_like(columns[0]) for _ in range(4)), *columns])
    top = np.zeros_like(columns[0])
    bottom = np.full_like(columns[0], len(columns))
    for i, column in enumerate(columns):
        filled = column != 0
        top = np.where(filled, i, top)
        bottom = np.where(filled & (bottom == len(columns)), i, bottom)
    window = [np.take_along_axis(padded, (top + 4 - back)[None], axis=0)[0].view(np.uint64) for back in range(5)]
    length = bit_length(window[0]).astype(np.uint64)
    head = (window[0] << (np.uint64(64) - length)) | (window[1] << (np.uint64(32) - length)) | (window[2] >> length)
    # A zero number has length 0, where the first shift by 64 means nothing; its window is zero all the same.
    head = np.where(length == 0, np.uint64(0), head)
    tail = window[2] & ((np.uint64(1) << length) - np.uint64(1))
    sticky = (tail != 0) | (window[3] != 0) | (window[4] != 0) | (bottom < top - 4)
    mantissa, rest = head >> np.uint64(11), (head & np.uint64(0x7FF)).astype(np.int64)
    up = (rest > 1024) | ((rest == 1024) & (sticky | (mantissa & np.uint64(1) != 0)))
    size = length.astype(np.int32)
    high = np.ldexp((mantissa + up).astype(np.float64), size - 53)
    rest = np.where(up, rest - 2048, rest) * (np.int64(1) << length.astype(np.int64)) + tail.astype(np.int64)
    deep = (window[3] << np.uint64(32)) | window[4]
    lower = np.ldexp(rest.astype(np.float64), -64) + np.ldexp(deep.astype(np.float64), -128)
    signs = sign.astype(np.float64)
    return signs * high, signs * lower, 32 * (top + low)


def round_subnormal(high: Floats, low: Floats, exponent: Integers) -> Floats:
    """Round (high + low) * 2**exponent to a multiple of 2**-1074, ties to even, with one rounding in all."""
    units = shifted(high, exponent - LOWEST_EXPONENT)
    whole = np.floor(units)
    # Beside tiny numbers stand others, which overflow here and are thrown away.
    with np.errstate(invalid="ignore"):
        part = units - whole
        above = (part > 0.5) | ((part == 0.5) & ((low > 0) | ((low == 0) & (np.fmod(whole, 2.0) != 0))))
    return shifted(whole + above, np.full_like(exponent, LOWEST_EXPONENT))


def residual(high: Floats, first: Floats, divisor: Floats) -> Floats:
    """High - first * divisor, exactly, without a fused multiply-add (Dekker 1971)."""
    product = first * divisor
    first_top, divisor_top = halved(first), halved(divisor)
    first_rest, divisor_rest = first - first_top, divisor - divisor_top
    error = first_rest * divisor_rest - (
        ((product - first_top * divisor_top) - first_rest * divisor_top) - first_top * divisor_rest
    )
    return (high - product) - error


def halved(values: Floats) -> Floats:
    """Upper 26 bits of each number (Veltkamp's splitting)."""
    wide = values * 134217729.0
    return wide - (wide - values)
