"""Every scheme with every smoothing, target kind and weighting gives the bits of its definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import naive, strategies
from tests.laws import encoding


@pytest.mark.parametrize("kind", strategies.KINDS)
@pytest.mark.parametrize("smoothing", encoding.SMOOTHINGS)
@pytest.mark.parametrize("scheme", encoding.SCHEMES)
@encoding.examples(4)
@given(data=st.data())
def test_training_codes(scheme, smoothing, kind, data):
    size = data.draw(st.sampled_from(encoding.SIZES))
    drawn = data.draw(strategies.drawn_rows(kind, size, nulls=True))
    make, definition = encoding.SMOOTHINGS[smoothing]
    expected = encoding.expected_codes(scheme, drawn, smoothing=definition)
    for backend in encoding.BACKENDS:
        found = encoding.training_codes(drawn, encoding.SCHEMES[scheme](), make(), backend)
        encoding.assert_same_bits(found, expected)


@pytest.mark.parametrize("kind", strategies.KINDS)
@pytest.mark.parametrize("smoothing", encoding.SMOOTHINGS)
@encoding.examples(10)
@given(data=st.data())
def test_training_codes_of_given_folds(smoothing, kind, data):
    drawn = data.draw(strategies.drawn_rows(kind, largest_size=40, nulls=True))
    folds = data.draw(strategies.fold_numbers(drawn.size))
    make, definition = encoding.SMOOTHINGS[smoothing]
    visible = naive.fold_visibility(folds)
    expected = np.array([problem.codes(visible) for problem in encoding.problems(drawn, smoothing=definition)]).T
    for backend in encoding.BACKENDS:
        found = encoding.training_codes(drawn, np.array(folds), make(), backend)
        encoding.assert_same_bits(found, expected)


@pytest.mark.parametrize("kind", strategies.KINDS)
@pytest.mark.parametrize("smoothing", encoding.SMOOTHINGS)
@pytest.mark.parametrize("scheme", ["greedy", "k-fold", "holdout", "leave-one-out", "ordered"])
@encoding.examples(4)
@given(data=st.data())
def test_codes_of_new_rows(scheme, smoothing, kind, data):
    size = data.draw(st.sampled_from(encoding.SIZES))
    drawn = data.draw(strategies.drawn_rows(kind, size, nulls=True))
    make, definition = encoding.SMOOTHINGS[smoothing]
    keys = [*strategies.KEYS, None, "never seen"]
    visible = encoding.transform_visibility(scheme, size)
    stated = encoding.problems(drawn, smoothing=definition)
    expected = np.array([[problem.code((key,), visible) for problem in stated] for key in keys])
    for backend in encoding.BACKENDS:
        found = encoding.transformed_codes(drawn, keys, encoding.SCHEMES[scheme](), make(), backend)
        encoding.assert_same_bits(found, expected)


@pytest.mark.parametrize("scheme", ["k-fold", "leave-one-out", "ordered", "ordered-time"])
@encoding.examples(10)
@given(data=st.data())
def test_targets_near_the_largest_double(scheme, data):
    # Without squares nothing overflows before the mean of the extremes itself.
    size = data.draw(st.sampled_from(encoding.SIZES))
    target = np.array(data.draw(strategies.numbers(size, 1e300)))
    drawn = data.draw(strategies.drawn_rows("continuous", size))
    drawn.target = target
    expected = encoding.expected_codes(scheme, drawn, smoothing=naive.m_estimate(0.3))
    make, _ = encoding.SMOOTHINGS["m-estimate"]
    for backend in encoding.BACKENDS:
        found = encoding.training_codes(drawn, encoding.SCHEMES[scheme](), make(), backend)
        encoding.assert_same_bits(found, expected)
