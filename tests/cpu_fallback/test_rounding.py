"""The compiled ways of rounding sums, those of a few words included, against the definition: bit for bit."""

import math
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from numba import config

import cpu_fallback
from cpu_fallback.exact import Limbs
from cpu_fallback.types import Layout, Window
from tests.backends import backend

SEEDS = range(3)
LOWS = (-33, -3, -1, 0, 4)
EDGES = (0, 1, -1, 2**31, -(2**31), 2**32 - 1, 2**32, 2**27, 2**59, 2**62, -(2**62), 2**63 - 1, -(2**63))


@pytest.fixture(scope="module")
def compiled():
    with backend("compiled-1") as found:
        yield found


@pytest.fixture(scope="module")
def moments_module():
    return import_module("cpu_fallback.compiled.moments")


def digits_of(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Signed digits of all sizes, with many zeros and edges among them."""
    bits = random.integers(0, random.choice([1, 20, 33, 41, 55, 63]), shape)
    found = random.integers(-(2**62), 2**62, shape) >> (62 - bits)
    return np.where(random.random(shape) < random.choice([0, 0.3, 0.8]), random.choice(EDGES, shape), found)


def words(values: Any) -> list[int]:
    """Bits of floats, in which 0.0 and -0.0 differ."""
    return np.asarray(values, np.float64).view(np.int64).tolist()


def check_pair(module: Any, digits: np.ndarray[Any, Any], low: int) -> None:
    high, lower, exponent = Limbs(digits[None], low).pair()
    found = module.pair(np.concatenate([[7], digits]), 1, len(digits), low)
    assert words(found[:2]) == words([high[0], lower[0]])
    if high[0]:
        assert found[2] == exponent[0]


@pytest.mark.parametrize("width", range(1, 9))
def test_pairs_are_those_of_the_definition(moments_module, width):
    random = np.random.default_rng(width)
    for low in LOWS:
        for _ in range(12):
            check_pair(moments_module, digits_of(random, (width,)), low)


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


def plainly(found: Any) -> list[list[int]]:
    """Moments with one form for each number: fraction and exponent may be split in several ways."""
    fraction, exponent = np.frexp(found.fraction)
    exponent = np.where(fraction == 0, 0, found.exponent + exponent)
    return [words(part + 0.0) for part in (found.n, found.mean, found.less_one, fraction)] + [exponent.tolist()]


def check_moments(compiled: Any, accumulators: np.ndarray[Any, Any], layout: Layout) -> None:
    with np.errstate(all="ignore"):
        expected = plainly(cpu_fallback.moments(accumulators, layout, 0, True))
        assert plainly(compiled.moments(accumulators, layout, 0, True)) == expected


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("s_width", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("q_width", [1, 2, 4, 5, 6, 7])
def test_moments_of_every_width_are_those_of_the_definition(compiled, seed, s_width, q_width):
    random = np.random.default_rng([seed, s_width, q_width])
    for ahead in (-1, 0, 1, 2):
        s_low = int(random.integers(-30, 4))
        layout = Layout(Window(), Window(s_low, s_width, False), Window(2 * s_low + ahead, q_width, False))
        accumulators = digits_of(random, (12, 1, layout.width))
        accumulators[..., 0] = np.abs(accumulators[..., 0]) >> random.integers(0, 63, (12, 1))
        check_moments(compiled, accumulators, layout)


@pytest.mark.parametrize("count", [0, 1, 2**31, 2**32 - 1, 2**32, -1])
@pytest.mark.parametrize("top", EDGES)
def test_moments_at_the_edges_of_the_words(compiled, count, top):
    layout = Layout(Window(), Window(-3, 4, False), Window(-5, 6, False))
    rows = [
        [count, *total, *square]
        for total in ([0, 0, 0, top], [2**32 - 1, 0, top, ~top], [0, 0, -(2**62), 2**31], [-1, -1, -1, -(2**31)])
        for square in (
            [0, 0, 0, 0, top, 0],
            [0, 0, 0, 0, 0, top],
            [-1, 0, 0, -(2**40), top, 2**26],
            [0, top, 0, 0, 0, 0],
        )
    ]
    check_moments(compiled, np.array(rows, np.int64)[:, None], layout)


@pytest.mark.parametrize("square", [1, -1])
@pytest.mark.parametrize("last", [0, 1])
def test_the_lowest_word_of_a_deviation_decides_a_tie(compiled, square, last):
    number = square * ((1 << 53) + 2 * last + 1) << 132
    digits = [*(number >> 32 * i & 0xFFFFFFFF for i in range(5)), number >> 160]
    layout = Layout(Window(), Window(0, 4, False), Window(0, 6, False))
    check_moments(compiled, np.array([[[2**31, total, 0, 0, 0, *digits]] for total in (0, 1, -1)]), layout)


def test_squares_carry_through_every_word():
    # The sum of the middle products is all ones before the carry from below comes in.
    square_words = import_module("cpu_fallback.compiled.rounding").square_words
    pairs = [(0x3C7288307311D8A3, 0xB69C07F9BA9625A3), (0x623238ACC324C985, 0xB8B393AD1DD2CC8F), (2**63 - 1, 2**64 - 1)]
    for high, low in pairs:
        exact = (high << 64 | low) ** 2
        expected = [exact >> 64 * (3 - i) & 0xFFFFFFFFFFFFFFFF for i in range(4)]
        assert [int(word) for word in square_words(np.uint64(high), np.uint64(low))] == expected


def test_many_rows_of_one_value_have_no_deviation(compiled):
    value = 0x1234567890ABC
    layout = Layout(Window(), Window(-2, 3, False), Window(-4, 6, False))
    for count in (1, 3, 2**20 + 1, 2**31 - 1):
        total, square = count * value, count * value * value
        digits = [[number >> 32 * i & 0xFFFFFFFF for i in range(n)] for number, n in ((total, 3), (square, 6))]
        accumulators = np.array([[[count, *digits[0], *digits[1]]]], np.int64)
        assert compiled.moments(accumulators, layout, 0, True).fraction.tolist() == [[0.0]]
        check_moments(compiled, accumulators, layout)


@pytest.mark.parametrize("exponent", [-6000, -1074, -1030, -1001, -1000, -999, -32, 0, 32, 999, 1000, 1023, 6000])
@pytest.mark.parametrize("value", [1.0, -1.5, 1 + 2.0**-52, 4503599627370497.0, 0.0, math.inf, math.nan])
def test_scaling_rounds_once_where_results_are_subnormal(moments_module, value, exponent):
    with np.errstate(all="ignore"):
        expected = np.ldexp(value, min(max(exponent, -5000), 5000))
    if config.DISABLE_JIT and np.isinf(expected) and np.isfinite(value):
        pytest.skip("Python's own ldexp refuses to overflow")
    assert words(moments_module.plain(value, exponent)) == words(expected)
