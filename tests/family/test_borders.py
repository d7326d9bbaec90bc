"""Targets cut at borders: given borders and quantiles, for rows in memory, parts and files."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from gpu_encode import CatBoostEncoder, KFold, load
from gpu_encode.scale.parts import Part, profile
from gpu_encode.seam import ops
from tests.backends import ON_CUDA
from tests.family.members import ROWS, N
from tests.family.test_catboost import ALL_WEIGHTS, BORDERS, FRACTIONS, X, Y


def quantile_border(values, weights, number, of):
    """Return the smallest value with at least `number / of` of the weight up to it, below the largest value."""
    rows = sorted(zip(values, map(Fraction, weights), strict=True))
    whole = sum(weight for _, weight in rows)
    border = next(
        value
        for place, (value, _) in enumerate(rows)
        if sum(weight for _, weight in rows[: place + 1]) * of >= whole * number
    )
    return min(border, max(value for value, weight in rows if weight and value < rows[-1][0]))


@pytest.mark.parametrize("weights", ALL_WEIGHTS)
@pytest.mark.parametrize("number", [1, 3, 7])
def test_borders_at_quantiles(number, weights):
    weight = np.ones(N) if weights == "unweighted" else ALL_WEIGHTS[weights]
    borders = [quantile_border(Y.tolist(), weight.tolist(), each, number + 1) for each in range(1, number + 1)]
    borders = sorted(set(borders))
    for statistic in ("borders", "buckets", "mean"):
        encodings, expected = (
            CatBoostEncoder(statistic, cv=KFold(2), borders=each).fit_transform(X, Y, sample_weight=weight)
            for each in (number, borders)
        )
        pd.testing.assert_frame_equal(encodings, expected, check_exact=True)


def test_no_border_is_the_largest_value():
    encoder = CatBoostEncoder("borders", [0.0], 0.0, borders=4).fit([["a"]] * 5, [0, 1, 1, 1, 1])
    assert encoder.get_feature_names_out().tolist() == ["x0_above_0.0"]
    assert encoder.encodings_[0].tolist() == [0.8]
    with pytest.raises(ValueError, match="CatBoostEncoder finds no border in y, whose rows all hold 2"):
        CatBoostEncoder("borders", borders=1).fit([["a"]] * 3, [2.0, 2.0, 5.0], sample_weight=[1, 1, 0])


@pytest.mark.parametrize("y", [Y, Y > 0.3, np.round(Y).astype(np.int64), Y.astype(np.float32), Y.tolist()])
def test_numbers_of_every_type_are_cut(y):
    values = np.asarray(y, dtype=np.float64)
    encoder = CatBoostEncoder("borders", [0.0], 0.0, borders=[0.0, 2.0]).fit([["a"]] * N, y)
    assert [codes.item() for codes in encoder.encodings_] == [np.sum(values > border) / N for border in (0.0, 2.0)]


@pytest.mark.skipif(not ON_CUDA, reason="arrays of a device need one")
@pytest.mark.parametrize("borders", [BORDERS, 3], ids=["given", "quantiles"])
@pytest.mark.parametrize(
    ("statistic", "y"),
    [
        ("borders", Y),
        ("buckets", Y),
        ("mean", Y),
        ("borders", Y.astype(np.float32)),
        ("borders", np.round(Y).astype(np.int64)),
    ],
)
def test_targets_on_a_device(statistic, borders, y):
    device, keys = ops.resolve(N), ROWS[["zip"]].to_numpy()
    encoder = CatBoostEncoder(statistic, borders=borders)
    expected = encoder.fit_transform(keys, y, sample_weight=FRACTIONS)
    encodings = encoder.fit_transform(*map(device.to_device, (keys, y)), sample_weight=device.to_device(FRACTIONS))
    assert device.to_host(encodings).tobytes() == expected.tobytes()


def test_numbers_of_borders_need_all_rows():
    encoder = CatBoostEncoder("borders", borders=2, columns=["city"])
    message = "borders=2 of CatBoostEncoder are quantiles of all rows"
    with pytest.raises(ValueError, match=message):
        profile(encoder, Part(ROWS, Y))
    encoder.partial_fit(ROWS, Y)
    expected = encoder.transform(ROWS)
    with pytest.raises(ValueError, match=message):
        encoder.partial_fit(ROWS, Y)
    with pytest.raises(ValueError, match=message):
        encoder.merge(CatBoostEncoder("borders", borders=2, columns=["city"]).fit(ROWS, Y))
    pd.testing.assert_frame_equal(encoder.transform(ROWS), expected)
    pieces = CatBoostEncoder("borders", borders=2, columns=["city"]).fit([ROWS[:9], ROWS[9:]], [Y[:9], Y[9:]])
    pd.testing.assert_frame_equal(pieces.transform(ROWS), expected)


def test_saved_with_borders(tmp_path):
    for statistic in ("borders", "buckets", "mean"):
        encoder = CatBoostEncoder(statistic, borders=2).fit(X, Y)
        encoder.save(tmp_path / "encoder")
        pd.testing.assert_frame_equal(load(tmp_path / "encoder").transform(X), encoder.transform(X))
