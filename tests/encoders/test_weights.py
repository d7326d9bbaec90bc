"""Weights are numbers of rows: whole weights repeat rows, and fractions change smoothed encodings continuously."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

from gpu_encode import ImpactEncoder, JamesStein, KFold, PartialPooling, StatisticEncoder, TargetEncoder, encode_dataset
from tests.bits import assert_same_bits
from tests.scale.parts.in_parts import encoded_in_parts, parts_of

KEYS = [*"aaabbbccccdde"]
X = np.array([KEYS]).T
Y = np.array([0.0, 1, 2, 13, 14, 10, 21, 22, 23, 24, 20, 21, 3])
SMOOTHINGS = [PartialPooling(), JamesStein(), JamesStein("independent")]
ENCODERS = [
    *(TargetEncoder(smooth=smooth, target_type="continuous", cv=KFold(2)) for smooth in SMOOTHINGS),
    ImpactEncoder(target_type="continuous", cv=KFold(2)),
    ImpactEncoder(["impact"], JamesStein(), target_type="continuous", cv=KFold(2)),
    ImpactEncoder(["deviation"], 0.0, target_type="continuous", cv=KFold(2)),
]
TOO_LITTLE = "takes weights as numbers of rows.*sums to (0.99|1.0).*Multiply the weights"


@pytest.fixture(params=ENCODERS, ids=str)
def encoder(request):
    return clone(request.param)


@pytest.mark.parametrize("scale", [1, 2.0])
def test_whole_weights_repeat_rows(encoder, scale):
    weights = np.array([1, 0, 2, 1, 1, 1, 3, 1, 1, 1, 1, 0, 1]) * scale
    times = weights.astype(int)
    repeated = encoder.fit(X.repeat(times, axis=0), Y.repeat(times)).encodings_
    assert_same_bits(encoder.fit(X, Y, sample_weight=weights).encodings_, repeated)
    assert_same_bits(encoder.fit(X[:1], Y[:1], sample_weight=[1.0]).encodings_, encoder.fit(X[:1], Y[:1]).encodings_)


@pytest.mark.parametrize("rows", [1.0, 2.0])
def test_encodings_do_not_jump_where_weights_pass_whole_rows(encoder, rows):
    # Each category weighs nearly one row, or nearly two; the last, of one row, is left out.
    weight = np.array([rows / KEYS.count(key) for key in KEYS])[:-1]
    below, at, above = (
        np.array(encoder.fit(X[:-1], Y[:-1], sample_weight=weight * factor).encodings_)
        for factor in (1 - 1e-12, 1, 1 + 1e-12)
    )
    np.testing.assert_allclose(below, above, rtol=1e-9)
    np.testing.assert_allclose(below, at, rtol=1e-9)
    assert np.isfinite(at).all()


def test_a_statistic_of_little_more_than_one_row_is_no_large_number():
    weight = np.array([(1 + 1e-12) / KEYS.count(key) for key in KEYS])
    sample, population = (
        np.array(StatisticEncoder(["var"], ddof=ddof).fit(X, Y, sample_weight=weight).encodings_) for ddof in (1, 0)
    )
    np.testing.assert_allclose(sample, 2 * population, rtol=1e-9)


def test_weights_that_sum_to_one_are_refused(encoder, tmp_path):
    weight = np.full(len(Y), 1 / len(Y))
    with pytest.raises(ValueError, match=TOO_LITTLE):
        encoder.fit(X, Y, sample_weight=weight)
    with pytest.raises(ValueError, match=TOO_LITTLE):
        encoder.fit_transform(X, Y, sample_weight=weight)
    with pytest.raises(ValueError, match=TOO_LITTLE):
        encoded_in_parts(encoder, parts_of(X, Y, weight, None, [5]))
    table = pa.table({"key": KEYS, "y": Y, "weight": weight})
    pq.write_table(table, tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match=TOO_LITTLE):
        encode_dataset(tmp_path / "rows.parquet", tmp_path / "out.parquet", encoder, target="y", weight="weight")
    assert not (tmp_path / "out.parquet").exists()


def test_weights_of_parts_may_sum_to_less(encoder):
    half = np.full(len(Y), 0.75 / len(Y))
    one_by_one = encoder.partial_fit(X, Y, sample_weight=half).partial_fit(X, Y, sample_weight=half)
    twice = clone(encoder).fit(np.vstack([X, X]), [*Y, *Y], sample_weight=[*half, *half])
    assert_same_bits(one_by_one.encodings_, twice.encodings_)


@pytest.mark.parametrize("smooth", [0.0, "auto", 2.0])
def test_smoothings_without_sample_variances_take_any_weights(smooth):
    weight = np.full(len(Y), 1 / len(Y))
    TargetEncoder(smooth=smooth, target_type="continuous").fit(X, Y, sample_weight=weight)


@pytest.mark.parametrize("smooth", [2.0, "auto"])
def test_a_class_without_weight_keeps_its_column(smooth):
    """Classes are the labels of y, whatever they weigh, so the columns of the output do not depend on weights."""
    labels = np.array([*"pqspqrpqspsqr"])
    counted = labels != "r"
    encoder = TargetEncoder(smooth=smooth)
    encodings = encoder.fit(X, labels, sample_weight=counted.astype(float)).transform(X)
    assert encoder.classes_.tolist() == [*"pqrs"]
    assert not encodings[:, 2].any()
    others = TargetEncoder(smooth=smooth).fit(X[counted], labels[counted]).transform(X)
    assert_same_bits(np.delete(encodings, 2, axis=1), others)
