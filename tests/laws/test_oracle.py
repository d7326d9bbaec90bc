"""The oracle itself, compared with scikit-learn, category_encoders, fsum and published numbers."""

from math import fsum, isnan

from hypothesis import given
from hypothesis import strategies as st

from tests import naive, strategies


def problem_of(keys, target, **choices):
    targets = [naive.exact(value) for value in target]
    return naive.Problem([(key,) for key in keys], targets, [1] * len(targets), **choices)


@given(st.lists(strategies.finite_numbers(), min_size=1))
def test_a_total_is_fsum(values):
    assert naive.nearest(sum(naive.exact(value) for value in values)) == fsum(values)


@given(strategies.finite_numbers(1e300), st.integers(1, 10**6))
def test_a_constant_is_its_own_mean(value, count):
    assert naive.quotient(naive.exact(value) * count, count) == value


@given(strategies.finite_numbers(1e250), st.lists(st.floats(1e-30, 1e30), min_size=1))
def test_a_constant_of_fractional_weight_is_its_own_mean(value, weights):
    count = sum(naive.exact(weight) for weight in weights)
    assert naive.quotient(naive.exact(value) * count, count) == value


def test_rows_of_equal_time_do_not_see_each_other():
    problem = problem_of("aaaa", [1, 2, 30, 400])
    encodings = naive.timed_codes(problem, [5, 5, 6, 6])
    assert isnan(encodings[0])
    assert isnan(encodings[1])
    assert encodings[2:] == [1.5, 1.5]


def test_top_nine_bits():
    rounded = {0: 0, 1: 1, 511: 511, 513: 512, 1027: 1024, 2**40 + 1: 2**40}
    assert [naive.top_nine_bits(place) for place in rounded] == list(rounded.values())


def test_averaging_leaves_out_what_is_not_given():
    nothing = float("nan")
    assert naive.averaged_codes([[nothing, 1.0], [2.0, 2.0], [4.0, 6.0]]) == [3.0, 3.0]
