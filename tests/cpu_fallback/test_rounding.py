"""Steps of the compiled moments, compared bit for bit with the definition; test_moment_bits.py tests whole moments."""

import math
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from numba import config

from cpu_fallback.exact import Limbs, split


@pytest.fixture(scope="module")
def moments_module():
    return import_module("cpu_fallback.compiled.moments")


def words(values: Any) -> list[int]:
    """Bits of floats, in which 0.0 and -0.0 differ."""
    return np.asarray(values, np.float64).view(np.int64).tolist()


def check_pair(module: Any, digits: np.ndarray[Any, Any], low: int) -> None:
    number = Limbs(digits[None], low)
    sign, magnitude = number.magnitude()
    high, lower, exponent = split(magnitude, sign, low)
    # Up to four digits are added up first: the same number at another power.
    added = number.pair
    assert np.ldexp(added[0], added[2]) == np.ldexp(high, exponent)
    assert np.ldexp(added[1], added[2]) == np.ldexp(lower, exponent)
    pair = module.pair(np.concatenate([[7], digits]), 1, len(digits), low)
    assert words(pair[:2]) == words([high[0], lower[0]])
    if high[0]:
        assert pair[2] == exponent[0]


@pytest.mark.parametrize("width", [3, 4, 5, 6])
@pytest.mark.parametrize("top_bits", [1, 20, 21, 22, 31, 32])
def test_ties_are_rounded_to_even_unless_anything_lies_below(moments_module, width, top_bits):
    for last in (0, 1):
        tie = (1 << 53) + (last << 1) + 1
        number = tie << (32 * (width - 1) + top_bits - 54)
        for below in (0, 1, -1, 1 << 31, -(1 << 32)):
            for sign in (1, -1):
                value = sign * (number + below)
                digits = np.array(
                    [value >> 32 * i & 0xFFFFFFFF for i in range(width - 1)] + [value >> 32 * (width - 1)]
                )
                check_pair(moments_module, digits, -2)


def test_squares_carry_through_every_word():
    # The sum of the middle products is all ones before the carry from below is added.
    square_words = import_module("cpu_fallback.compiled.rounding").square_words
    pairs = [(0x3C7288307311D8A3, 0xB69C07F9BA9625A3), (0x623238ACC324C985, 0xB8B393AD1DD2CC8F), (2**63 - 1, 2**64 - 1)]
    for high, low in pairs:
        exact = (high << 64 | low) ** 2
        expected = [exact >> 64 * (3 - i) & 0xFFFFFFFFFFFFFFFF for i in range(4)]
        assert [int(word) for word in square_words(np.uint64(high), np.uint64(low))] == expected


@pytest.mark.parametrize("exponent", [-6000, -1074, -1030, -1001, -1000, -999, -32, 0, 32, 999, 1000, 1023, 6000])
@pytest.mark.parametrize("value", [1.0, -1.5, 1 + 2.0**-52, 4503599627370497.0, 0.0, math.inf, math.nan])
def test_scaling_rounds_once_where_results_are_subnormal(moments_module, value, exponent):
    with np.errstate(all="ignore"):
        expected = np.ldexp(value, min(max(exponent, -5000), 5000))
    if config.DISABLE_JIT and np.isinf(expected) and np.isfinite(value):
        pytest.skip("Python's own ldexp refuses to overflow")
    assert words(moments_module.plain(value, exponent)) == words(expected)
