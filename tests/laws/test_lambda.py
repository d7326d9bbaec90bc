"""Laws of every smoothing; with a prior of 0 and category means of 1, encodings are lambda itself."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_encode
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
    shares = lambdas(smoothing, sorted(counts), backend)
    assert ((shares >= 0) & (shares <= 1)).all()
    assert (np.diff(shares) >= 0).all()


@pytest.mark.parametrize("backend", encoding.BACKENDS)
# The independent James-Stein estimate keeps shrinking by v / (V + v), however many rows there are; where the many rows
# have one mean, an analysis of variance finds the less between categories the more they are.
@pytest.mark.parametrize(
    "smoothing", sorted(set(encoding.SMOOTHINGS) - {"james-stein-independent", "anova", "anova-pooled"})
)
def test_many_rows_give_the_category_mean(smoothing, backend):
    shares = lambdas(smoothing, [2.0**44] * 3, backend)
    np.testing.assert_allclose(shares, 1, atol=1e-9)


@pytest.mark.parametrize("backend", encoding.BACKENDS)
@pytest.mark.parametrize("smoothing", [None, 0.0, gpu_encode.MEstimate(0.0), "constant"])
@examples(50)
@given(
    keys=st.lists(st.integers(0, 3), min_size=4, max_size=12),
    values=st.lists(strategies.finite_numbers(), min_size=12, max_size=12),
)
def test_where_lambda_is_one_the_encoding_is_the_mean(smoothing, backend, keys, values):
    values = values[: len(keys)]
    if smoothing == "constant":
        # Categories without variance: empirical Bayes does not shrink them.
        values, smoothing = [values[key] for key in keys], "auto"
    names = np.array([f"k{key}" for key in keys], object)
    drawn = strategies.Drawn(names, np.array(values), None, "continuous")
    encodings = encoding.new_row_encodings(drawn, names, 5, smoothing, backend)
    with gpu_encode.seam.ops.use_backend(backend):
        means = gpu_encode.StatisticEncoder(["mean"]).fit(names[:, None], values).transform(names[:, None])
    assert_same_bits(encodings, means)


@pytest.mark.parametrize("backend", encoding.BACKENDS)
@pytest.mark.parametrize(
    ("keys", "values"),
    [
        ([0, 1, 1], [1e17, 0.1, 0.3]),
        ([0, 1], [1e9, 1e-3]),
        ([0] * 3 + [1] * 4, [0.1] * 3 + [0.7] * 4),
        ([0, 0, 1, 1, 1], [1e300, -1e300, 0.1, 0.2, 0.4]),
    ],
)
@pytest.mark.parametrize("scheme", [None, gpu_encode.LeaveOneOut(), gpu_encode.KFold(2)])
def test_a_large_prior_takes_nothing_from_a_mean(keys, values, backend, scheme):
    drawn = strategies.Drawn(np.array([f"k{key}" for key in keys], object), np.array(values), None, "continuous")
    present = sorted(set(keys))
    encodings = encoding.new_row_encodings(drawn, [f"k{key}" for key in present], scheme, None, backend)[:, 0]
    rows = [[Fraction(value) for value, own in zip(values, keys, strict=True) if own == key] for key in present]
    assert encodings.tolist() == [float(sum(own) / len(own)) for own in rows]
