"""Every scheme, with every smoothing, kind of target and weighting, gives the bits of its definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import naive, strategies
from tests.bits import assert_same_bits
from tests.cases import pairs
from tests.laws import encoding
from tests.strategies import examples


@pytest.mark.parametrize(
    ("scheme", "smoothing", "kind"), pairs(encoding.SCHEMES, encoding.SMOOTHINGS, strategies.KINDS)
)
@examples(4)
@given(data=st.data())
def test_training_encodings(scheme, smoothing, kind, data):
    drawn = data.draw(encoding.sized_rows(kind, nulls=True))
    encoding.check_training_encodings(drawn, scheme, smoothing)


@pytest.mark.parametrize("kind", strategies.KINDS)
@pytest.mark.parametrize("smoothing", encoding.SMOOTHINGS)
@examples(5)
@given(data=st.data())
def test_training_encodings_of_given_folds(smoothing, kind, data):
    drawn = data.draw(strategies.drawn_rows(kind, largest_size=40, nulls=True))
    folds = data.draw(strategies.fold_numbers(drawn.size))
    visible = naive.fold_visibility(folds)
    stated = encoding.problems(drawn, smoothing=encoding.DEFINITIONS[smoothing])
    expected = np.array([problem.codes(visible) for problem in stated]).T
    frame = encoding.key_frame(drawn.keys)
    encoding.check_encodings(expected, frame, drawn, np.array(folds), smoothing, columns=["key"])


NEW_ROWS = ["greedy", "k-fold", "holdout", "leave-one-out", "ordered"]


@pytest.mark.parametrize(("scheme", "smoothing", "kind"), pairs(NEW_ROWS, encoding.SMOOTHINGS, strategies.KINDS))
@examples(4)
@given(data=st.data())
def test_encodings_of_new_rows(scheme, smoothing, kind, data):
    drawn = data.draw(encoding.sized_rows(kind, nulls=True))
    smooth, prior = encoding.SMOOTHINGS[smoothing], data.draw(st.sampled_from(["mean", "category_mean", -3.5]))
    keys = [*strategies.KEYS, None, "never seen"]
    visible = tuple(np.flatnonzero(encoding.new_row_sees(scheme, drawn.size)).tolist())
    stated = encoding.problems(drawn, smoothing=encoding.DEFINITIONS[smoothing], prior=prior)
    expected = np.array([[problem.code((key,), visible) for problem in stated] for key in keys])
    for backend in encoding.BACKENDS:
        cv = encoding.SCHEMES[scheme]
        assert_same_bits(encoding.new_row_encodings(drawn, keys, cv, smooth, backend, prior=prior), expected)


@pytest.mark.parametrize("scheme", ["k-fold", "leave-one-out", "ordered", "ordered-time"])
@examples(10)
@given(data=st.data())
def test_targets_near_the_largest_double(scheme, data):
    # Without squares nothing overflows before the mean of the extremes itself.
    drawn = data.draw(encoding.sized_rows("continuous"))
    drawn.target = np.array(data.draw(strategies.numbers(drawn.size, 1e300)))
    encoding.check_training_encodings(drawn, scheme, "m-estimate")
