"""Count, mean and deviations of cells, compared with fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpu_fallback.types import Layout, Window
from tests.cpu_fallback.definitions import digits

DIGIT = st.integers(-(2**40), 2**40)
LOWS = st.integers(-6, 4)


def value(digits: list[int], low: int) -> Fraction:
    return sum((Fraction(digit) * Fraction(2) ** (32 * (low + i)) for i, digit in enumerate(digits)), Fraction(0))


def window(data: st.DataObject) -> Window:
    if data.draw(st.booleans()):
        return Window()
    return Window(data.draw(LOWS), data.draw(st.integers(1, 4)), False)


def check(moments, number: int, n: Fraction, s: Fraction, q: Fraction, output: int) -> None:
    assert moments.n[number, 0] == float(n)
    assert moments.less_one[number, 0] == float(n - 1)
    spread = n * q - s * s
    mantissa, exponent = math.frexp(moments.fraction[number, output])
    if spread == 0:
        assert mantissa == 0
    else:
        power = exponent + int(moments.exponent[number, output])
        # The fraction is rounded to 53 bits, whatever the exponent.
        assert Fraction(mantissa) == Fraction(float(spread / Fraction(2) ** power))
    if n:
        exact = s / n
        assert abs(Fraction(moments.mean[number, output]) - exact) <= abs(exact) * Fraction(1, 2**52)
    else:
        assert s == 0 or not np.isfinite(moments.mean[number, output])


@given(data=st.data())
def test_moments_of_numbers(ops, data) -> None:
    layout = Layout(window(data), window(data), window(data))
    rows = data.draw(st.lists(st.lists(DIGIT, min_size=layout.width, max_size=layout.width), min_size=1, max_size=4))
    with np.errstate(all="ignore"):
        moments = ops.moments(np.array(rows, dtype=np.int64)[:, None], layout, 0, True)
    for number, row in enumerate(rows):
        n, s, q = (value(row[columns], part.low) for part, _, columns in layout.measures())
        check(moments, number, n, s, q, 0)


@given(data=st.data(), first=st.integers(0, 1), n_classes=st.integers(2, 3))
def test_moments_of_classes(ops, data, first, n_classes) -> None:
    layout = Layout(window(data))
    cell = st.lists(
        st.lists(DIGIT, min_size=layout.width, max_size=layout.width), min_size=n_classes, max_size=n_classes
    )
    rows = data.draw(st.lists(cell, min_size=1, max_size=4))
    with np.errstate(all="ignore"):
        moments = ops.moments(np.array(rows, dtype=np.int64), layout, first, True)
    for number, row in enumerate(rows):
        counts = [value(count, layout.count.low) for count in row]
        for output, count in enumerate(counts[first:]):
            check(moments, number, sum(counts), count, count, output)


@pytest.mark.parametrize("weight", [1, 3, 2**40 + 1])
def test_equal_targets_have_their_own_mean_and_no_deviation(ops, weight) -> None:
    target = Fraction(0.1)
    layout = Layout(Window(), Window(-2, 6, False), Window(-4, 9, False))
    sums = [digits(weight * target**power, window) for window, power, _ in layout.measures()]
    moments = ops.moments(np.concatenate(sums).astype(np.int64)[None, None], layout, 0, True)
    assert moments.mean.tolist() == [[0.1]]
    assert moments.fraction.tolist() == [[0.0]]


def test_variances_are_left_out_unless_asked_for(ops) -> None:
    moments = ops.moments(np.array([[[4, 2, 2]]], dtype=np.int64), Layout(Window(), Window(), Window()), 0, False)
    assert moments.mean.tolist() == [[0.5]]
    assert moments.less_one.size == moments.fraction.size == moments.exponent.size == 0
