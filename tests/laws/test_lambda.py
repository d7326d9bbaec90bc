"""Laws of every smoothing, seen through encodings: with prior 0 and category means of 1 these are lambda itself."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests import strategies
from tests.bits import assert_same_bits
from tests.laws import encoding
from tests.strategies import examples


def lambdas(smoothing, counts, backend):
    """Return lambda for categories of mean 1 and variance 1 of the given sizes, among categories that differ."""
    keys = [f"own{place}" for place in range(len(counts)) for _ in range(2)] + ["low", "low", "high", "high"]
    target = [0.0, 2.0] * len(counts) + [-6.0, -5.0, 4.0, 6.0]
    weight = [count / 2 for count in counts for _ in range(2)] + [1.0] * 4
    drawn = strategies.Drawn(np.array(keys, dtype=object), np.array(target), np.array(weight), "continuous")
    smooth = encoding.SMOOTHINGS[smoothing]
    asked = [f"own{place}" for place in range(len(counts))]
    return encoding.new_row_encodings(drawn, asked, 5, smooth, backend, prior=0.0)[:, 0]


@pytest.mark.parametrize("backend", encoding.BACKENDS)
@pytest.mark.parametrize("smoothing", encoding.SMOOTHINGS)
@examples(15)
@given(counts=st.lists(st.integers(1, 5000).map(lambda half: 2.0 * half), min_size=2, max_size=12))
def test_lambda_is_a_share_and_does_not_fall_as_rows_are_added(smoothing, backend, counts):
    found = lambdas(smoothing, sorted(counts), backend)
    assert ((found >= 0) & (found <= 1)).all()
    assert (np.diff(found) >= 0).all()


@pytest.mark.parametrize("backend", encoding.BACKENDS)
# The independent James-Stein estimate keeps shrinking by v / (V + v), however many rows there are.
@pytest.mark.parametrize("smoothing", [name for name in encoding.SMOOTHINGS if name != "james-stein-independent"])
def test_many_rows_give_the_category_mean(smoothing, backend):
    found = lambdas(smoothing, [2.0**44] * 3, backend)
    np.testing.assert_allclose(found, 1, atol=1e-9)


@pytest.mark.parametrize("backend", encoding.BACKENDS)
@pytest.mark.parametrize("prior", ["mean", "category_mean", -3.5])
@pytest.mark.parametrize("smoothing", encoding.SMOOTHINGS)
@examples(5)
@given(data=st.data())
def test_no_rows_give_the_prior(smoothing, prior, backend, data):
    drawn = data.draw(strategies.drawn_rows("continuous"))
    smooth, definition = encoding.SMOOTHINGS[smoothing], encoding.DEFINITIONS[smoothing]
    (problem,) = encoding.problems(drawn, smoothing=definition, prior=prior)
    expected = problem.prior_code(tuple(range(drawn.size)))
    found = encoding.new_row_encodings(drawn, ["never seen"], 5, smooth, backend, prior=prior)
    assert_same_bits(found, [[expected]])


@pytest.mark.parametrize("smoothing", encoding.SMOOTHINGS)
@examples(10)
@given(data=st.data())
def test_encodings_lie_between_prior_and_category_mean(smoothing, data):
    drawn = data.draw(strategies.drawn_rows("continuous"))
    assume(drawn.weight is None or (drawn.weight > 0).all())
    smooth = encoding.SMOOTHINGS[smoothing]
    keys = list(dict.fromkeys(drawn.keys))
    encodings = encoding.new_row_encodings(drawn, keys, 5, smooth)[:, 0]
    means = encoding.new_row_encodings(drawn, keys, 5, None)[:, 0]
    (prior,) = encoding.new_row_encodings(drawn, ["never seen"], 5, None)[:, 0]
    # Each of the two roundings of an encoding costs half a unit of the larger of its parts.
    room = 2 * np.spacing(np.maximum(np.abs(means), abs(prior)))
    assert (encodings >= np.minimum(means, prior) - room).all()
    assert (encodings <= np.maximum(means, prior) + room).all()
