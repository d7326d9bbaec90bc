"""Exact sums, compared with fractions: nothing is lost, and each sum is rounded once."""

from fractions import Fraction
from math import fsum

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cpu_fallback.exact import Limbs, Scaled, deviation, quotient
from tests.exact.fractions_of import LARGEST, floats, limbs, near_ties, nearest, value_of
from tests.strategies import examples

law = examples(150)
small = st.integers(-40, 10)


@pytest.fixture(scope="module", autouse=True)
def few_means_by_pairs():
    """Few means are taken from pairs of floats, too, as many are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cpu_fallback.exact.FEW", 0)
        yield


def bits(values):
    """Return the bits of floats, with -0.0 as 0.0: an integer has no negative zero."""
    return (np.asarray(values, np.float64) + 0.0).view(np.int64).tolist()


@law
@given(data=st.data(), size=st.integers(1, 4))
def test_sums_and_differences_are_exact(data, size):
    left, right = (data.draw(limbs(size)).canonical() for _ in range(2))
    assert (value_of(left + right) == value_of(left) + value_of(right)).all()
    assert (value_of(left - right) == value_of(left) - value_of(right)).all()


@law
@given(data=st.data(), size=st.integers(1, 4))
def test_products_are_exact(data, size):
    left, right = (data.draw(limbs(size)) for _ in range(2))
    assert (value_of(left * right) == value_of(left) * value_of(right)).all()


@law
@given(st.lists(st.tuples(st.integers(-(2**33), 2**33), st.integers(-(2**33), 2**33)), min_size=1, max_size=5))
def test_products_of_plain_integers_are_exact(pairs):
    left, right = (np.array(side, np.int64) for side in zip(*pairs, strict=True))
    product = value_of(Limbs.of_integers(left) * Limbs.of_integers(right))
    assert product.tolist() == [a * b for a, b in pairs]


def test_products_spread_over_axes_of_one():
    product = Limbs.of_integers(np.array([[2**40], [-3]])) * Limbs.of_integers(np.array([[1, 2**40, 5]]))
    assert value_of(product).tolist() == [[2**40, 2**80, 5 * 2**40], [-3, -3 * 2**40, -15]]


@law
@given(number=limbs())
def test_canonical_is_the_same_number_in_its_one_form(number):
    canonical = number.canonical()
    assert (value_of(canonical) == value_of(number)).all()
    assert ((canonical.digits[..., :-1] >= 0) & (canonical.digits[..., :-1] < 2**32)).all()
    wide = Limbs(np.pad(number.digits, ((0, 0), (2, 3))), number.low - 2)
    detour = (wide + Limbs.of_floats(np.full(len(number.digits), LARGEST))) - Limbs.of_floats(
        np.full(len(number.digits), LARGEST)
    )
    for other in (canonical.canonical(), wide.canonical(), detour.canonical()):
        assert other.low == canonical.low
        assert np.array_equal(other.digits, canonical.digits)


@law
@given(number=limbs() | near_ties())
def test_rounded_is_the_nearest_double(number):
    assert bits(number.to_floats()) == bits([nearest(value) for value in value_of(number)])


@law
@given(number=near_ties(), other=near_ties())
def test_products_round_once_into_the_subnormals_too(number, other):
    product = number * other
    assert bits(product.to_floats()) == bits([nearest(value) for value in value_of(product)])


@law
@given(number=limbs(low=st.integers(-30, 25)) | near_ties())
def test_pair_is_the_nearest_double_and_the_rest(number):
    high, low, exponent = number.pair
    for value, head, rest, power in zip(value_of(number), high.tolist(), low.tolist(), exponent.tolist(), strict=True):
        scaled = value / Fraction(2) ** power
        assert head == float(scaled)
        assert abs(Fraction(rest) - (scaled - Fraction(head))) <= abs(scaled) * Fraction(1, 2**100)


@law
@given(number=limbs())
def test_zeros_and_signs(number):
    values = value_of(number)
    sign, digits = number.magnitude()
    assert (digits >= 0).all()
    assert (value_of(Limbs(digits, number.low)) * sign == values).all()


@law
@given(values=st.lists(floats(), min_size=1, max_size=12))
def test_sums_of_floats_are_those_of_fsum(values):
    total = Limbs.sum_of(np.array(values)[:, None], where=np.ones((len(values), 1), bool))
    assert value_of(total)[0] == sum(map(Fraction, values))
    try:
        expected = fsum(values)
    except OverflowError:
        expected = nearest(sum(map(Fraction, values)))
    assert bits(total.to_floats()) == bits([expected])


@law
@given(pairs=st.lists(st.tuples(floats(), floats(), st.booleans()), min_size=1, max_size=8))
def test_sums_of_products_take_the_entries_asked_for(pairs):
    left, right = (np.array([pair[i] for pair in pairs]) for i in range(2))
    wanted = np.array([pair[2] for pair in pairs])
    total = Limbs.sum_of(left[:, None], right[:, None], where=wanted[:, None])
    assert value_of(total)[0] == sum((Fraction(a) * Fraction(b) for a, b, use in pairs if use), Fraction())


def sums(values, weights):
    exact = [(Fraction(value), Fraction(weight)) for value, weight in zip(values, weights, strict=True)]
    where = np.ones((len(values), 1), bool)
    value, weight = np.array(values)[:, None], np.array(weights)[:, None]
    result = (
        Limbs.sum_of(weight, where=where),
        Limbs.sum_of(weight, value, where=where),
        Limbs.sum_of(weight, value, value, where=where),
    )
    expected = [sum((w * v**power for v, w in exact), Fraction()) for power in range(3)]
    return result, expected


weights = st.sampled_from([0.1, 1.0, 1 / 3, 7.0, 1e-10, 1e10, 0.0]) | st.floats(1e-100, 1e100)
samples = st.lists(st.tuples(floats(1e300), weights), min_size=1, max_size=8).filter(
    lambda rows: any(weight for _, weight in rows)
)


@law
@given(value=floats(), given_weights=st.lists(weights.filter(bool), min_size=1, max_size=10))
def test_the_mean_of_a_constant_is_the_constant(value, given_weights):
    (count, total, _), _ = sums([value] * len(given_weights), given_weights)
    assert bits(quotient(total, count)) == bits([value])


@law
@given(rows=samples)
def test_the_mean_is_rounded_once(rows):
    (count, total, _), (weight, expected, _) = sums(*zip(*rows, strict=True))
    assert bits(quotient(total, count)) == bits([nearest(expected / weight)])


@law
@given(rows=samples)
def test_the_deviation_is_exact_but_for_one_rounding(rows):
    result, (weight, total, square) = sums(*zip(*rows, strict=True))
    scaled = deviation(*result)
    exact = weight * square - total**2
    given_ = Fraction(float(scaled.fraction[0])) * Fraction(2) ** int(scaled.exponent[0])
    assert given_ >= 0
    assert abs(given_ - exact) <= exact / 2**53


@law
@given(value=floats(), given_weights=st.lists(weights, min_size=1, max_size=10))
def test_the_deviation_of_a_constant_is_zero(value, given_weights):
    result, _ = sums([value] * len(given_weights), given_weights)
    assert deviation(*result).fraction == 0


def test_no_rows_have_no_mean():
    nothing = Limbs.of_integers(np.zeros(2, np.int64))
    assert np.isnan(quotient(nothing, nothing)).all()


scaled = st.tuples(floats(1e100), st.integers(-6000, 6000))


def exact_value(number):
    return Fraction(number[0]) * Fraction(2) ** number[1]


@law
@given(left=scaled, right=scaled)
def test_scaled_numbers_neither_overflow_nor_vanish(left, right):
    one, other = (Scaled(np.array([fraction]), np.array([exponent])) for fraction, exponent in (left, right))
    total = one.plus(other)
    result, expected = (
        Fraction(float(total.fraction[0])) * Fraction(2) ** int(total.exponent[0]),
        exact_value(left) + exact_value(right),
    )
    assert abs(result - expected) <= abs(expected) / 2**52


@law
@given(left=scaled, right=scaled)
def test_ratios_of_scaled_numbers(left, right):
    assume(min(abs(left[0]), abs(right[0])) > 1e-150)
    expected = exact_value(left) / exact_value(right)
    one, other = (Scaled(np.array([fraction]), np.array([exponent])) for fraction, exponent in (left, right))
    result = one.ratio(other)[0]
    if Fraction(2) ** -1000 < abs(expected) < Fraction(2) ** 1000:
        assert abs(Fraction(float(result)) - expected) <= abs(expected) / 2**51
    else:
        assert (abs(result) > 1e300) == (abs(expected) > 1)


@pytest.mark.parametrize(
    ("left", "right", "expected"), [(0.0, 3.0, 0.0), (3.0, 0.0, np.inf), (-3.0, 0.0, -np.inf), (0.0, 0.0, np.nan)]
)
def test_ratios_with_zero(left, right, expected):
    ratio = Scaled(np.array([left]), np.array([9])).ratio(Scaled(np.array([right]), np.array([-9])))
    assert np.array_equal(ratio, [expected], equal_nan=True)
