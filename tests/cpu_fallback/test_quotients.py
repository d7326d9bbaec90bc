"""Means are rounded once, on every backend: random sums, and sums that only digits far below decide."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpu_fallback.exact import Limbs, Ratio, quotient, settle
from cpu_fallback.types import Layout, Window
from tests.exact.fractions_of import SMALLEST, limbs, nearest, value_of
from tests.strategies import examples

SPREAD = 1 << 32


def digits_of(number: Fraction, low: int, width: int) -> list[int]:
    """Digits in two's complement, the last one signed."""
    whole = number / Fraction(SPREAD) ** low
    assert whole.denominator == 1
    digits = [whole.numerator >> 32 * i & (SPREAD - 1) for i in range(width)]
    return [*digits[:-1], digits[-1] - (SPREAD if whole < 0 else 0)]


@st.composite
def near_middles(draw):
    """Draw a count, and a total: the count times a float or times the middle of two, but for a last digit far below."""
    count = draw(st.integers(1, 9) | st.integers(1, 2**31) | st.sampled_from([2**53 + 1, 2**70 + 3, 3 * 2**90 + 1]))
    mantissa = draw(st.integers(2**52, 2**53 - 1) | st.sampled_from([2**52, 2**53 - 1]) | st.integers(0, 5))
    quarters = draw(st.sampled_from([-2, -1, 0, 1, 2]))
    place = draw(st.integers(-1080, 960) | st.sampled_from([-1074, -1075, -1076, 971]))
    less = draw(st.integers(-1, 1)) * Fraction(2) ** (place - draw(st.sampled_from([3, 60, 107, 200, 585])))
    total = count * (mantissa + Fraction(quarters, 4)) * Fraction(2) ** place + less
    return Fraction(count), draw(st.sampled_from([1, -1])) * total


@st.composite
def sums_of_floats(draw):
    """Draw a few floats that may cancel, and their number."""
    values = draw(
        st.lists(
            st.floats(allow_nan=False, allow_infinity=False, width=draw(st.sampled_from([32, 64]))),
            min_size=1,
            max_size=6,
        )
    )
    if draw(st.booleans()):
        values += [-value for value in values[1:]]
    return Fraction(len(values)), sum(map(Fraction, values), Fraction(0))


LOW, WIDTH = -56, 96


@pytest.fixture(scope="module", autouse=True)
def few_means_by_pairs():
    """Few means are taken from pairs of floats, too, as many are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cpu_fallback.exact.FEW", 0)
        yield


@examples(150)
@given(st.lists(near_middles() | sums_of_floats(), min_size=1, max_size=4))
def test_means_are_rounded_once(ops, sums):
    expected = [nearest(total / count) + 0.0 for count, total in sums]
    cells = [[*digits_of(count, 0, 4), *digits_of(total, LOW, WIDTH)] for count, total in sums]
    layout = Layout(Window(0, 4, False), Window(LOW, WIDTH, False))
    mean = ops.moments(np.array(cells, np.int64)[:, None], layout, 0, False).mean
    assert (mean.ravel() + 0.0).tolist() == expected


@examples(75)
@given(total=limbs(3), count=limbs(3))
def test_any_digits_over_any_digits(ops, total, count):
    expected = [
        nearest(over / under) + 0.0 if under else np.nan
        for over, under in zip(value_of(total), value_of(count), strict=True)
    ]
    np.testing.assert_array_equal(quotient(total, count) + 0.0, expected)
    layout = Layout(Window(count.low, count.digits.shape[-1], False), Window(total.low, total.digits.shape[-1], False))
    cells = np.concatenate([count.digits, total.digits], axis=-1)[:, None]
    np.testing.assert_array_equal(ops.moments(cells, layout, 0, False).mean[:, 0] + 0.0, expected)


@pytest.mark.parametrize("below", [0, SMALLEST, -SMALLEST])
@pytest.mark.parametrize("last", [0, 1])
def test_the_smallest_number_breaks_a_tie(ops, below, last):
    total = Fraction(2) ** 53 * 3 * 2 + 3 * (1 + 2 * last) + Fraction(below)
    layout = Layout(Window(), Window(-34, 40, False))
    cells = np.array([[[3, *digits_of(total, -34, 40)]], [[-3, *digits_of(-total, -34, 40)]]], np.int64)
    expected = nearest(total / 3)
    assert ops.moments(cells, layout, 0, False).mean.ravel().tolist() == [expected] * 2


@examples(75)
@given(total=limbs(3), count=limbs(3))
def test_integers_give_the_same_as_pairs(total, count):
    by_pairs = quotient(total, count)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cpu_fallback.exact.FEW", 64)
        np.testing.assert_array_equal(quotient(total, count), by_pairs)


def test_integers_beyond_all_floats_give_infinity():
    total, count = Limbs(np.array([[1], [-1], [1], [1]]), 40), Limbs(np.array([[1], [1], [-1], [0]]), 1)
    assert settle(total, count)[:3].tolist() == [np.inf, -np.inf, -np.inf]
    assert np.isnan(settle(total, count)[3])


def test_whole_sums_are_rounded_once(ops):
    random = np.random.default_rng(0)
    count = random.choice([2, 3, 6, 7, 2**53 + 1, 2**62 + 1], 200)
    total = random.integers(-(2**63), 2**63, 200)
    cells = np.stack([count, total], axis=-1)[:, None]
    expected = [float(Fraction(int(s), int(n))) for n, s in zip(count, total, strict=True)]
    assert ops.moments(cells, Layout(Window(), Window()), 0, False).mean.ravel().tolist() == expected


def test_ties_of_short_sums_take_no_digits(monkeypatch):
    """Half of all means of two floats lie half-way between two other floats: they must not be slow."""
    random = np.random.default_rng(1)
    values = random.standard_normal((4, 1000))
    monkeypatch.setattr("cpu_fallback.exact.settle", None)
    for n in (2, 3, 4):
        total, count = Limbs.sum_of(values[:n], where=np.ones((n, 1000), bool)), Limbs.of_integers(np.full(1000, n))
        exact = [float(sum(map(Fraction, column)) / n) for column in values[:n].T]
        assert quotient(total, count).tolist() == exact


@st.composite
def near_middle_estimates(draw):
    """Sums whose m-estimate is the middle of two floats, a float, or a last digit beside it; the prior divides by 3."""
    m, count = draw(st.sampled_from([1, 2, 3, 5, 6, Fraction(0.1), Fraction(2) ** -40])), draw(st.integers(0, 9))
    number = draw(st.sampled_from([1, 2, 3, 2**31 + 1])) * (3 if m % 3 == 0 else 1)
    above = draw(st.integers(-(2**60), 2**60) | st.integers(-3, 3)) * number // (3 if m % 3 == 0 else 1)
    mantissa, quarters = draw(st.integers(2**52, 2**53) | st.integers(0, 5)), draw(st.integers(-2, 2))
    less = draw(st.integers(-1, 1)) * Fraction(2) ** -draw(st.sampled_from([3, 60, 107, 200, 585]))
    total = (count + m) * (mantissa + Fraction(quarters, 4)) - m * Fraction(above, number) + less
    # Only sums of floats have digits: the rest of a third is left out.
    return Fraction(count), Fraction(int(total * 2**600), 2**600), m, Fraction(number), Fraction(above)


@st.composite
def any_estimates(draw):
    (count, total), (number, above) = draw(sums_of_floats()), draw(sums_of_floats())
    return count, total, Fraction(draw(st.floats(1e-12, 1e12) | st.sampled_from([1e-300, 1e200]))), number, above


@examples(150)
@given(near_middle_estimates() | any_estimates(), st.integers(1, 3))
def test_m_estimates_are_rounded_once(ops, sums, n_cells):
    count, total, m, number, above = sums
    expected = nearest((total + m * above / number) / (count + m)) + 0.0
    layout = Layout(Window(0, 4, False), Window(LOW, WIDTH, False))
    cells = np.array([[*digits_of(count, 0, 4), *digits_of(total, LOW, WIDTH)]] * n_cells, np.int64)
    priors = Limbs(np.array([digits_of(above, LOW, WIDTH)]), LOW), Limbs(np.array([digits_of(number, 0, 4)]))
    found = ops.m_estimates(cells[:, None], layout, 0, float(m), Ratio(*priors))
    assert (found.ravel() + 0.0).tolist() == [expected] * n_cells


def test_estimates_without_any_weight_are_nan(ops):
    layout, prior = Layout(Window(), Window()), Ratio(Limbs(np.array([[3]])), Limbs(np.array([[1]])))
    cells = np.array([[[0, 0]], [[2, 5]]], np.int64)
    assert np.isnan(ops.m_estimates(cells, layout, 0, 0.0, prior)).ravel().tolist() == [True, False]
    assert ops.m_estimates(cells, layout, 0, 2.0, prior).ravel().tolist() == [3.0, 2.75]


@pytest.mark.parametrize("m", [1e-300, 1e300, 2.0**70])
def test_no_weight_at_all(ops, m):
    nothing = Ratio(Limbs(np.zeros((1, 1), np.int64)), Limbs(np.zeros((1, 1), np.int64)))
    found = ops.m_estimates(np.array([[[0, 0]], [[2, 5]]], np.int64), Layout(Window(), Window()), 0, m, nothing)
    assert np.isnan(found).all()
