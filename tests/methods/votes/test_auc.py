"""The exact area under the ROC curve, compared with a loop over all pairs in fractions, and with scikit-learn."""

from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from gpu_encode import roc_auc_score, roc_curve
from gpu_encode.formulas import ordered_pairs
from gpu_encode.formulas.ordered_pairs import PairCounter
from gpu_encode.seam.ops import resolve
from tests.bits import assert_same_bits
from tests.strategies import examples


def area(y, scores, weights=None):
    """The definition: every pair of a positive and a negative row, in fractions."""
    weights = [1] * len(y) if weights is None else weights
    right = pairs = Fraction(0)
    for one, high, heavy in zip(y, scores, weights, strict=True):
        for other, low, light in zip(y, scores, weights, strict=True):
            if one and not other:
                product = Fraction(heavy) * Fraction(light)
                pairs += product
                right += product if high > low else product / 2 if high == low else 0
    return float(right / pairs)


SCORES = st.one_of(
    st.integers(-3, 3),
    st.floats(allow_nan=False, allow_infinity=True),
    st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 1e308, 0.1, 0.1 + 2.0**-57]),
)
WEIGHTS = st.one_of(st.integers(1, 9), st.floats(2.0**-200, 2.0**200), st.sampled_from([5e-324, 1e290, 2.0**-1030]))


ONES = st.just(1)


@st.composite
def rows(draw, weights=ONES, most=12):
    n_rows = draw(st.integers(2, most))
    y = [0, 1, *draw(st.lists(st.integers(0, 1), min_size=n_rows - 2, max_size=n_rows - 2))]
    values = [draw(st.lists(each, min_size=n_rows, max_size=n_rows)) for each in (SCORES, weights)]
    return (np.array(y), *map(np.array, values))


@given(rows())
def test_it_is_the_share_of_pairs(of_rows):
    y, scores, _ = of_rows
    assert roc_auc_score(y, scores) == area(y.tolist(), scores.tolist())


@pytest.mark.host
@given(rows(WEIGHTS))
def test_weights_multiply(of_rows):
    y, scores, weights = of_rows
    found = roc_auc_score(y, scores, sample_weight=weights)
    assert found == area(y.tolist(), scores.tolist(), weights.tolist())


@given(rows(st.integers(0, 4)))
def test_whole_weights_are_repeated_rows(of_rows):
    y, scores, weights = of_rows
    if all(weights[y == label].sum() for label in (0, 1)):
        repeated = [np.repeat(each, weights) for each in (y, scores)]
        assert roc_auc_score(y, scores, sample_weight=weights) == roc_auc_score(*repeated)


@pytest.mark.parametrize("weights", ["none", "whole", "fractions", "wide"])
def test_every_backend_counts_the_same(each_backend, weights):
    rng = np.random.default_rng(3)
    y, scores = rng.integers(0, 2, 257), rng.integers(0, 40, (257, 3)) / 7
    scores[:, 2] = rng.random(257)
    weight = {
        "none": None,
        "whole": rng.integers(0, 5, 257),
        "fractions": rng.random(257),
        "wide": rng.random(257) * 2.0 ** rng.integers(-300, 300, 257),
    }[weights]
    expected = [area(y.tolist(), column.tolist(), None if weight is None else weight.tolist()) for column in scores.T]
    assert roc_auc_score(y, scores, sample_weight=weight).tolist() == expected
    points = roc_curve(y, scores[:, 0], sample_weight=weight)
    assert len(points.fpr) == 41
    weight = np.ones(257) if weight is None else weight
    for label, rates in ((0, points.fpr), (1, points.tpr)):
        of_label = [Fraction(float(part)) for part in weight[y == label]]
        for rate, threshold in zip(rates, points.thresholds, strict=True):
            reached = scores[y == label, 0] >= threshold
            seen = sum(part for part, there in zip(of_label, reached, strict=True) if there)
            assert rate == float(seen / sum(of_label))


@pytest.mark.cuda
def test_arrays_of_a_device_are_read_where_they_lie(xp):
    rng = np.random.default_rng(4)
    y, scores, weight = rng.integers(0, 2, 64), rng.integers(0, 9, (64, 2)).astype(np.float32), rng.random(64)
    there = [xp.asarray(each) for each in (y, scores, weight)]
    expected = roc_auc_score(y, scores, sample_weight=weight)
    assert_same_bits(roc_auc_score(*there[:2], sample_weight=there[2]), expected)
    assert_same_bits(roc_auc_score(y, there[1], sample_weight=weight), expected)
    assert_same_bits(roc_auc_score(*there[:2]), roc_auc_score(y, scores))


@pytest.mark.host
@pytest.mark.parametrize("weighted", [False, True])
def test_scikit_learn_gives_the_same_within_its_rounding(weighted):
    rng = np.random.default_rng(0)
    for n_rows in (10, 1000, 20_000):
        y, scores = rng.integers(0, 2, n_rows), rng.normal(size=n_rows).round(2)
        weight = rng.random(n_rows) if weighted else None
        theirs = metrics.roc_auc_score(y, scores, sample_weight=weight)
        # Sums of as many rounded areas as there are scores, where they have weights.
        assert abs(roc_auc_score(y, scores, sample_weight=weight) - theirs) <= (1e-13 if weighted else 1e-15)
        ours = roc_curve(y, scores, sample_weight=weight)
        for mine, their in zip(
            ours, metrics.roc_curve(y, scores, sample_weight=weight, drop_intermediate=False), strict=True
        ):
            np.testing.assert_allclose(mine, their, rtol=1e-13)


@given(rows())
def test_increasing_maps_change_nothing(of_rows):
    y, scores, _ = of_rows
    area_of_scores = roc_auc_score(y, scores)
    assert roc_auc_score(y, np.unique(scores, return_inverse=True)[1]) == area_of_scores
    assert roc_auc_score(y, -np.asarray(scores, np.float64)) + area_of_scores == pytest.approx(1)


@pytest.mark.host
@examples(25)
@given(rows(WEIGHTS), st.randoms())
def test_the_order_of_rows_changes_nothing(of_rows, random):
    y, scores, weights = of_rows
    order = random.sample(range(len(y)), len(y))
    moved = roc_auc_score(y[order], scores[order], sample_weight=weights[order])
    assert moved == roc_auc_score(y, scores, sample_weight=weights)


def test_weights_in_another_unit_change_nothing():
    rng = np.random.default_rng(1)
    y, scores, weight = rng.integers(0, 2, 50), rng.random(50), rng.random(50)
    expected = roc_auc_score(y, scores, sample_weight=weight)
    for exponent in (-400, -3, 700):
        assert roc_auc_score(y, scores, sample_weight=weight * 2.0**exponent) == expected


def test_whole_weights_may_be_beyond_int64_together():
    y, scores = [0, 0, 1, 1, 1], [1, 3, 2, 3, 4]
    weights = [2**62, 2**62 + 1, 2**62 + 3, 2**62, 2**62 - 1]
    assert roc_auc_score(y, scores, sample_weight=weights) == area(y, scores, weights)


@pytest.mark.host
def test_pairs_may_be_as_many_as_whole_numbers():
    class Huge:
        """The largest possible number of positive rows, all of one score."""

        shape = (ordered_pairs.MOST_ROWS + 1,)

        def __len__(self):
            return self.shape[0]

        def __invert__(self):
            return self

    with pytest.raises(ValueError, match="at most 2147483648 rows"):
        PairCounter(resolve(0), Huge())
    half = ordered_pairs.MOST_ROWS // 2
    assert 2 * half * half < 2**63


def test_one_vector_gives_a_number_and_a_table_gives_an_array():
    y, scores = [0, 1, 1], [0.2, 0.1, 0.3]
    assert roc_auc_score(y, scores) == 0.5
    for table in (
        np.array(scores)[:, None],
        pd.DataFrame({"a": scores}),
        pl.DataFrame({"a": scores}),
        pa.table({"a": scores}),
        [[score] for score in scores],
    ):
        assert roc_auc_score(y, table).tolist() == [0.5]
    for vector in (np.array(scores), pd.Series(scores), pl.Series(scores), pa.array(scores), tuple(scores)):
        assert roc_auc_score(y, vector) == 0.5


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "uint64", "bool"])
def test_scores_of_any_type(dtype):
    scores = np.array([0, 1, 1, 0, 1]).astype(dtype)
    assert roc_auc_score([0, 0, 1, 1, 1], scores) == area([0, 0, 1, 1, 1], [0, 1, 1, 0, 1])


@pytest.mark.parametrize("labels", [["no", "yes"], [-1, 1], [False, True], [0.5, 2.5]])
def test_the_larger_label_is_positive(labels):
    y = np.array(labels)[[0, 1, 0, 1]]
    assert roc_auc_score(y, [1, 2, 3, 4]) == 0.75


@pytest.mark.parametrize(
    ("y", "scores", "weight", "message"),
    [
        ([1, 1, 1], [1, 2, 3], None, "two labels, of which the larger is the positive one. Got 1: 1"),
        ([0, 1, 2], [1, 2, 3], None, "Got 3: 0, 1, 2"),
        ([0, 1, np.nan], [1, 2, 3], None, "missing value"),
        ([0, 1, 1], [1, np.nan, 3], None, "a score for every row"),
        ([0, 1, 1], ["a", "b", "c"], None, "numbers as scores"),
        ([0, 1, 1], [1, 2], None, "inconsistent numbers of samples"),
        ([0, 1, 1], [1, 2, 3], [1, 0, 0], "all weight is on one of them"),
        ([0, 1, 1], [1, 2, 3], [1, -1, 0], "negative weights"),
    ],
)
def test_what_has_no_area_is_refused(y, scores, weight, message):
    with pytest.raises(ValueError, match=message):
        roc_auc_score(y, scores, sample_weight=weight)


def test_a_curve_is_of_one_vector():
    with pytest.raises(ValueError, match=r"one vector of scores\. Got 2"):
        roc_curve([0, 1], [[1, 2], [3, 4]])
