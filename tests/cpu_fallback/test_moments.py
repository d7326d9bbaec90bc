"""Count, mean and deviations of cells against fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpu_fallback.types import Layout, Window

DIGIT = st.integers(-(2**40), 2**40)
LOWS = st.integers(-6, 4)


def value(digits: list[int], low: int) -> Fraction:
    return sum((Fraction(digit) * Fraction(2) ** (32 * (low + i)) for i, digit in enumerate(digits)), Fraction(0))


def window(data: st.DataObject) -> Window:
    if data.draw(st.booleans()):
        return Window()
    return Window(data.draw(LOWS), data.draw(st.integers(1, 4)), False)


def check(found, number: int, n: Fraction, s: Fraction, q: Fraction, output: int) -> None:
    assert found.n[number, 0] == float(n)
    assert found.less_one[number, 0] == float(n - 1)
    spread = n * q - s * s
    mantissa, exponent = math.frexp(found.fraction[number, output])
    if spread == 0:
        assert mantissa == 0
    else:
        power = exponent + int(found.exponent[number, output])
        # The fraction is rounded to 53 bits, whatever the exponent.
        assert Fraction(mantissa) == Fraction(float(spread / Fraction(2) ** power))
    if n:
        exact = s / n
        assert abs(Fraction(found.mean[number, output]) - exact) <= abs(exact) * Fraction(1, 2**52)
    else:
        assert s == 0 or not np.isfinite(found.mean[number, output])


@given(data=st.data())
def test_moments_of_numbers(ops, data) -> None:
    layout = Layout(window(data), window(data), window(data))
    rows = data.draw(st.lists(st.lists(DIGIT, min_size=layout.width, max_size=layout.width), min_size=1, max_size=4))
    with np.errstate(all="ignore"):
        found = ops.moments(np.array(rows, dtype=np.int64)[:, None], layout, 0, True)
    for number, row in enumerate(rows):
        n, s, q = (value(row[columns], part.low) for part, _, columns in layout.measures())
        check(found, number, n, s, q, 0)


@given(data=st.data(), first=st.integers(0, 1), n_classes=st.integers(2, 3))
def test_moments_of_classes(ops, data, first, n_classes) -> None:
    layout = Layout(window(data))
    cell = st.lists(
        st.lists(DIGIT, min_size=layout.width, max_size=layout.width), min_size=n_classes, max_size=n_classes
    )
    rows = data.draw(st.lists(cell, min_size=1, max_size=4))
    with np.errstate(all="ignore"):
        found = ops.moments(np.array(rows, dtype=np.int64), layout, first, True)
    for number, row in enumerate(rows):
        counts = [value(digits, layout.count.low) for digits in row]
        for output, count in enumerate(counts[first:]):
            check(found, number, sum(counts), count, count, output)


@pytest.mark.parametrize("weight", [1, 3, 2**40 + 1])
def test_equal_targets_have_their_own_mean_and_no_deviation(ops, weight) -> None:
    target = Fraction(0.1)
    layout = Layout(Window(), Window(-2, 6, False), Window(-4, 9, False))
    accumulators = np.array(
        [[[weight, *digits(weight * target, -2, 6), *digits(weight * target**2, -4, 9)]]], dtype=np.int64
    )
    found = ops.moments(accumulators, layout, 0, True)
    assert found.mean.tolist() == [[0.1]]
    assert found.fraction.tolist() == [[0.0]]


def digits(number: Fraction, low: int, width: int) -> list[int]:
    scaled = number / Fraction(2) ** (32 * low)
    assert scaled.denominator == 1
    return [int(scaled) >> (32 * i) & 0xFFFFFFFF for i in range(width)]


def test_variances_are_left_out_unless_asked_for(ops) -> None:
    found = ops.moments(np.array([[[4, 2, 2]]], dtype=np.int64), Layout(Window(), Window(), Window()), 0, False)
    assert found.mean.tolist() == [[0.5]]
    assert found.less_one.size == found.fraction.size == found.exponent.size == 0


def test_no_cells_have_no_moments(ops) -> None:
    found = ops.moments(np.zeros((0, 3, 1, 3), np.int64), Layout(Window(), Window(), Window()), 0, True)
    assert found.mean.shape == found.fraction.shape == (0, 3, 1)
