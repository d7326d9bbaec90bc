"""Laws of every smoothing, seen through encodings: with prior 0 and category means of 1 these are lambda itself."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
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
    shares = lambdas(smoothing, sorted(counts), backend)
    assert ((shares >= 0) & (shares <= 1)).all()
    assert (np.diff(shares) >= 0).all()


@pytest.mark.parametrize("backend", encoding.BACKENDS)
# The independent James-Stein estimate keeps shrinking by v / (V + v), however many rows there are.
@pytest.mark.parametrize("smoothing", [name for name in encoding.SMOOTHINGS if name != "james-stein-independent"])
def test_many_rows_give_the_category_mean(smoothing, backend):
    shares = lambdas(smoothing, [2.0**44] * 3, backend)
    np.testing.assert_allclose(shares, 1, atol=1e-9)
