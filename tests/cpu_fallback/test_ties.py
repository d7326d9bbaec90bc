"""m-estimates at the middle of two floats, and near it, are decided by exact pairs: compared with fractions."""

from fractions import Fraction
from math import inf, nextafter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numba import njit

from cpu_fallback.compiled.border import OPTIONS
from cpu_fallback.compiled.estimates import is_all, marked, mean_pair, near_estimate, plain_pair, weigh_prior
from cpu_fallback.compiled.kernel_parts import Kernel
from cpu_fallback.compiled.moments import pair
from cpu_fallback.compiled.ties import decide_estimate, neighbour, rounded_estimate, sign_of_sum, sum_pairs
from tests.exact.fractions_of import nearest
from tests.strategies import examples

MANTISSAS = st.integers(2**52, 2**53 - 1) | st.sampled_from([2**52, 2**52 + 1, 2**53 - 1])
# m and the rounding error of n + m have few bits, or as many as a float.
WEIGHTS = st.sampled_from([0.5, 1.0, 2.0, 3.0, 10.0, 12.75, 0.1, 10 + 2.0**-40]) | st.floats(1e-3, 1e3)
COUNTS = st.integers(1, 2000) | st.integers(1, 2**31 - 1) | st.sampled_from([1, 2, 6, 2**20, 2**31 - 1])


def split(number):
    """Return the float nearest to a fraction, the float nearest to the remainder, and whether their sum is exact."""
    high = float(number)
    lower = float(number - Fraction(high))
    return high, marked(lower, True), Fraction(high) + Fraction(lower) == number and is_all(lower)


def exact(total, total_rest, count, count_rest, m, prior, prior_rest):
    top = sum(map(Fraction, (total, total_rest, prior, prior_rest)), Fraction())
    return top / sum(map(Fraction, (count, count_rest, m)), Fraction())


def assert_decided(given, must=True):
    """Demand that decided estimates are right; with `must`, that the estimate is decided."""
    expected = nearest(exact(*given))
    for found, doubtful in (decide_estimate(*given), rounded_estimate(*given)):
        assert doubtful or (found == expected and np.signbit(found) == np.signbit(expected + 0.0))
        assert not (must and doubtful)


@st.composite
def beside_middles(draw):
    """Draw S, n and m * mu; the estimate is the middle of two floats, or differs from it by a bit near or far below."""
    count, m = draw(COUNTS), Fraction(draw(st.sampled_from([0.5, 1.0, 2.0, 3.0, 10.0, 12.75])))
    middle = Fraction(2 * draw(MANTISSAS) + 1, 2) * Fraction(2) ** draw(st.integers(-60, 10))
    total = draw(st.integers(-(2**31), 2**31) | st.integers(-9, 9) | st.just(0))
    beside = draw(st.sampled_from([0, 0, 1, -1])) * Fraction(2) ** -draw(st.integers(60, 130))
    sign = draw(st.sampled_from([1, -1]))
    prior = sign * (middle * (count + m) + beside) - total
    return float(total), 0.0, float(count), 0.0, float(m), prior


@examples(300)
@given(beside_middles())
def test_middles_and_what_lies_beside_them(drawn):
    *pairs, prior = drawn
    high, rest, whole = split(prior)
    # Two floats hold most priors and sums.
    if whole:
        assert_decided((*pairs, high, rest), must=split(prior + Fraction(pairs[0]))[2])


def test_ties_of_which_the_float_at_hand_is_odd():
    for count, m, high, rest in ((81, 10.0, 7.214850245843455e17, -41.5), (823, 1.0, 4.2373042112654495e18, 36.0)):
        tie = exact(0.0, 0.0, count, 0.0, m, high, rest)
        assert (2 * tie).denominator == 1
        assert near_estimate(0.0, 0.0, float(count), 0.0, m, high, rest)[0] % 2 == 1
        for sign in (1, -1):
            assert_decided((0.0, 0.0, float(count), 0.0, m, sign * high, sign * rest))


@examples(300)
@given(COUNTS, st.floats(0, 1), WEIGHTS, st.floats(-2, 2) | st.sampled_from([0.3, 0.5, -0.5, -1.0, 0.0, 2.0**-30]))
@example(5, 1.0, 10.0, -0.5)
@example(1000, 0.3, 10.0, -0.3)
def test_counts_with_any_prior(count, share, m, mu):
    total = float(int(count * share))
    high, rest = weigh_prior(mu, 0.0, m)
    if np.isnan(rest):
        assert decide_estimate(total, 0.0, float(count), 0.0, m, high, rest)[1]
        return
    assert Fraction(high) + Fraction(rest) == Fraction(m) * Fraction(mu)
    assert is_all(rest)
    few_bits = (m * 2.0**12).is_integer() and (mu == 0 or abs(mu) > 2.0**-10)
    assert_decided((total, 0.0, float(count), 0.0, m, high, rest), must=few_bits)


@pytest.mark.parametrize("mu", [0.3, -0.3, 0.1 + 2.0**-54, -0.5])
def test_what_sum_and_prior_leave_of_each_other(mu):
    """Draw a sum that cancels the prior, completely or but for the prior's last bits."""
    for m in (10.0, 7.0, 0.5):
        high, rest = weigh_prior(mu, 0.0, m)
        for total in (-high, -high + 1.0, nextafter(-high, inf), -high * (1 + 2.0**-20)):
            for count in (1.0, 7.0, 1000.0):
                assert_decided((total, 0.0, count, 0.0, m, high, rest), must=False)
                if total == -high:
                    assert not decide_estimate(total, 0.0, count, 0.0, m, high, rest)[1]


@examples(300)
@given(st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=30), st.floats(-1, 1), WEIGHTS, st.booleans())
def test_sums_of_reals_and_weights(values, mu, m, weighted):
    weights = [abs(value) + 0.1 for value in values] if weighted else [1.0] * len(values)
    total, total_rest, whole = split(sum(map(Fraction, values), Fraction()))
    count, count_rest, known = split(sum(map(Fraction, weights), Fraction()))
    high, rest = weigh_prior(mu, 0.0, m)
    if whole and known and not np.isnan(rest) and (total == 0 or abs(total) > 2.0**-280):
        assert_decided((total, total_rest, count, count_rest, m, high, rest), must=False)


@examples(300)
@given(st.lists(st.floats(-(2.0**300), 2.0**300), min_size=4, max_size=4), st.booleans(), st.integers(-3, 3))
def test_the_sign_of_a_sum(numbers, cancel, beside):
    numbers = [number if number == 0 or abs(number) > 2.0**-700 else 0.0 for number in numbers]
    if cancel:
        # One number subtracts what another adds, up to a last bit.
        numbers[2:] = [-numbers[0], beside * 2.0**-700]
    sign, found = sign_of_sum(*numbers)
    total = sum(map(Fraction, numbers), Fraction())
    assert found
    assert (sign > 0) - (sign < 0) == (total > 0) - (total < 0)


def test_neighbours():
    for value in (1.0, -1.0, 1.5, -0.1, 2.0**-1000, nextafter(2.0, 0.0)):
        assert [neighbour(value, up) for up in (True, False)] == [nextafter(value, inf), nextafter(value, -inf)]


@examples(100)
@given(*[st.floats(-1e30, 1e30)] * 2, *[st.floats(-1e-10, 1e-10)] * 2)
def test_pairs_are_added_exactly_or_it_is_said(left, right, left_rest, right_rest):
    high, lower, known = sum_pairs(left, left_rest, right, right_rest)
    total = sum(map(Fraction, (left, right, left_rest, right_rest)), Fraction())
    assert not known or Fraction(high) + Fraction(lower) == total
    assert known or not split(total)[2] or split(total)[:2] != (high, lower)


def test_pairs_that_are_not_exact_are_left_to_the_digits():
    """The last digit lies too far down for a pair, and breaks the tie."""
    high, rest = weigh_prior(0.5, 0.0, 2.0)
    # (S + 1) / 4 is the middle of 2**52 and its neighbour.
    tie = 2.0**54, 1.0, 2.0, 0.0, 2.0, high, rest
    assert exact(*tie) == 2**52 + Fraction(1, 2)
    assert decide_estimate(*tie) == (2.0**52, False)
    digits = np.array([1, 0, 0, 0, 0, 0, 0, 1, 1 << 22], np.int64)
    for low in (-7, -8, -6):
        high_of, lower_of = plain_pair(*pair(digits, 0, 9, low))
        assert not is_all(lower_of)
        assert decide_estimate(high_of, lower_of, *tie[2:])[1]
    # Where nothing is between the pair and that digit, not even a lower number is left of it.
    digits[7] = 0
    for low in (-7, -9, -4):
        assert not is_all(plain_pair(*pair(digits, 0, 9, low))[1])
    for lower in (marked(1.0, False), np.nan):
        assert decide_estimate(tie[0], lower, *tie[2:])[1]
    # So is what only a prior's or a count's lower number says; also where nothing but a sum that cancels is in doubt.
    assert decide_estimate(0.0, 0.0, 2.0, 0.0, 2.0, 2.0**54, 2.0) == (2.0**52, False)
    assert decide_estimate(0.0, 0.0, 2.0, 0.0, 2.0, 2.0**54, marked(2.0, False))[1]
    assert not decide_estimate(-3.0, 0.0, 7.0, 2.0**-60, 10.0, 3.0, 2.0**-55)[1]
    assert decide_estimate(-3.0, 0.0, 7.0, marked(2.0**-60, False), 10.0, 3.0, 2.0**-55)[1]


@pytest.mark.parametrize("scale", [2.0**-290, 2.0**290, 2.0**-1000, 5e-324])
def test_beyond_the_range_the_digits_decide(scale):
    for mu, m, total in ((scale, 3.0, 0.0), (0.5, scale, 1.0), (scale, 2.0**-10, scale)):
        high, rest = weigh_prior(mu, 0.0, m)
        found, doubtful = decide_estimate(total, 0.0, 5.0, 0.0, m, high, rest)
        assert doubtful or found == nearest(exact(total, 0.0, 5.0, 0.0, m, Fraction(m) * Fraction(mu), 0.0))
    # Below 2**-280 all are left; sums and priors that are in range may have a quotient that is not.
    high, rest = weigh_prior(2.0**-250, 0.0, 2.0**-20)
    assert decide_estimate(0.0, 0.0, 2.0**40, 0.0, 2.0**-20, high, rest)[1]


@pytest.mark.parametrize(("total", "number"), [(3.0, 1.0), (3.0, 4.0), (7.0, 3.0), (-0.75, 1.0), (0.0, 5.0)])
def test_means_as_priors_are_exact_where_they_are_floats(total, number):
    mu, rest = mean_pair(total, 0.0, number, 0.0)
    assert is_all(rest) == (Fraction(mu) + Fraction(rest) == Fraction(total) / Fraction(number))
    assert is_all(weigh_prior(mu, rest, 10.0)[1]) == is_all(rest)
    assert not is_all(mean_pair(total, 2.0**-60, 3.0, 0.0)[1])


def estimate_all(own, count, m, high, rest, values):
    """Write the estimates of counts; return how many were in doubt, and how many still are."""
    doubts, left = 0, 0
    for i in range(len(own)):
        _, doubtful = near_estimate(float(own[i]), 0.0, float(count[i]), 0.0, m, high, rest)
        values[i], still = rounded_estimate(float(own[i]), 0.0, float(count[i]), 0.0, m, high, rest)
        doubts += doubtful
        left += still
    return doubts, left


def test_no_doubt_is_left_of_a_million_rows():
    """Take as many rows per category as the benchmark of frames, and as many bits of the prior."""
    random, run = np.random.default_rng(0), njit(**OPTIONS, pipeline_class=Kernel)(estimate_all)
    count = random.integers(1, 1000, 1_000_000)
    own, values = random.binomial(count, 0.3), np.empty(1_000_000)
    for mu in 0.3 + random.random(6) * 0.01:
        high, rest = weigh_prior(mu, 0.0, 10.0)
        doubts, left = run(own, count, 10.0, high, rest, values)
        assert doubts > 1000
        assert left == 0
        some = random.integers(0, 1_000_000, 500)
        expected = [float((Fraction(int(own[i])) + 10 * Fraction(mu)) / int(count[i] + 10)) for i in some]
        assert values[some].tolist() == expected
