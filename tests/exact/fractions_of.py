"""Numbers as fractions, and rounding as in Python."""

from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
from hypothesis import strategies as st

from cpu_fallback.exact import Limbs

LARGEST, SMALLEST = 1.7976931348623157e308, 5e-324
PITFALLS = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.1,
    1 / 3,
    1e16,
    2.0**53 + 2,
    SMALLEST,
    -SMALLEST,
    2.2250738585072014e-308,
    LARGEST,
    -LARGEST,
    1e-170,
)
SPREAD = 1 << 32


def value_of(number: Limbs) -> Any:
    """Return the exact numbers that digits stand for, as an array of fractions."""
    flat = number.digits.reshape(-1, number.digits.shape[-1]).tolist()
    scale = Fraction(SPREAD) ** number.low
    found = np.empty(len(flat), object)
    found[:] = [scale * sum(digit * SPREAD**k for k, digit in enumerate(digits)) for digits in flat]
    return found.reshape(number.digits.shape[:-1])


def nearest(value: Fraction) -> float:
    """Round correctly; infinite where Python raises OverflowError."""
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


def floats(largest: float = LARGEST) -> st.SearchStrategy[float]:
    pitfalls = [number for number in PITFALLS if abs(number) <= largest]
    return st.sampled_from(pitfalls) | st.floats(-largest, largest, allow_subnormal=True) | st.floats(-100, 100)


@st.composite
def limbs(draw: st.DrawFn, size: int | None = None, low: st.SearchStrategy[int] | None = None) -> Limbs:
    """Draw uncarried digits of either sign, anywhere on the grid, sometimes up to the limits of int64."""
    size = draw(st.integers(1, 4)) if size is None else size
    width = draw(st.integers(1, 5))
    digit = st.sampled_from([0, 1, -1, 2**32 - 1, 2**32, 2**62, -(2**62), 2**63 - 1, -(2**63)]) | st.integers(
        -(2**40), 2**40
    )
    entries = draw(st.lists(st.lists(digit, min_size=width, max_size=width), min_size=size, max_size=size))
    return Limbs(np.array(entries, np.int64).reshape(size, width), draw(st.integers(-70, 40) if low is None else low))


@st.composite
def near_ties(draw: st.DrawFn) -> Limbs:
    """Draw numbers near half-way between two doubles; a last digit far below decides."""
    mantissa = draw(st.integers(2**52, 2**53 - 1) | st.integers(0, 9))
    sign, place = draw(st.sampled_from([-1, 1])), draw(st.integers(-1200, 900))
    tail, depth = draw(st.integers(-2, 2)), draw(st.sampled_from([1, 12, 60, 200, 400]))
    low = (place - depth) // 32
    whole = max(((2 * mantissa + draw(st.integers(0, 1))) << depth) + tail, 0) << (place - depth - 32 * low)
    digits = [whole >> 32 * k & (SPREAD - 1) for k in range(whole.bit_length() // 32 + 1)]
    return Limbs(sign * np.array([digits], np.int64), low)
