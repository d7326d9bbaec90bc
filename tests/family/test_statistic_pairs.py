"""Statistics by pairs of a key and a column of values: those of all pairs, but for those that nobody asked for."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from gpu_encode import Greedy, KFold, LeaveOneOut, MergeableStatistic, Ordered, StatisticEncoder, TimeFolds, load
from tests.family.members import ROWS, N, same
from tests.parts.in_parts import encoded_in_parts, parts_of

# The backend sums the same columns as without pairs.
pytestmark = pytest.mark.host

X = ROWS.assign(pieces=np.arange(len(ROWS)) % 11)
PAIRS = {
    ("zip", "price"): ["mean", ("quantile", 0.5)],
    (("zip", "city"), "pieces"): ["sum"],
    ("zip", "pieces"): ["max", "sum"],
}
NAMES = ["zip_price_mean", "zip_price_quantile_0.5", "zip_pieces_max", "zip_pieces_sum", "zip_x_city_pieces_sum"]


def whole(**choices):
    statistics = ["mean", ("quantile", 0.5), "sum", "max"]
    return StatisticEncoder(statistics, values=["price", "pieces"], columns=["zip", ("zip", "city")], **choices)


@pytest.mark.filterwarnings("ignore:.*see no rows")
@pytest.mark.parametrize("cv", [LeaveOneOut(), TimeFolds(3, time="day")], ids=repr)
def test_parts(cv):
    table, choices = X.assign(day=np.arange(N) // 5), {"cv": cv, "indicators": True}
    found = encoded_in_parts(StatisticEncoder(PAIRS, **choices), parts_of(table, None, None, None, [1, 30]))
    same(pd.concat(found), StatisticEncoder(PAIRS, **choices).fit_transform(table))


@pytest.mark.parametrize("choices", [{}, {"indicators": True}, {"cv": KFold(2, blow_up=True)}], ids=str)
def test_pairs_are_some_of_all(choices, tmp_path):
    encoder, every = StatisticEncoder(PAIRS, **choices), whole(**choices)
    found, expected = encoder.fit_transform(X), every.fit_transform(X)
    wide = ["_fold0", "_fold1"] if "cv" in choices else [""]
    flags = ["zip_unseen", "zip_x_city_unseen"] if "indicators" in choices else []
    names = [*(f"{name}{each}" for name in NAMES for each in wide), *flags, "price", "pieces"]
    assert found.columns.tolist() == names
    same(found, expected[names])
    same(encoder.transform(X), every.transform(X)[names])
    assert encoder.get_feature_names_out().tolist() == names
    assert len(encoder.encodings_) == len(NAMES) * len(wide)
    encoder.save(tmp_path / "model")
    same(load(tmp_path / "model").transform(X), encoder.transform(X))
    in_parts = StatisticEncoder(PAIRS, **choices)
    same(pd.concat(encoded_in_parts(in_parts, parts_of(X, None, None, None, [1, 30]))), found)


def test_pairs_beside_orders_that_stand_apart():
    cv = Ordered(2, average=False)
    found = StatisticEncoder({("zip", "price"): ["mean"], ("city", "pieces"): ["sum"]}, cv=cv)
    codes = found.fit_transform(X)
    assert list(codes.columns[:4]) == [
        f"{name}_perm{i}" for name in ("zip_price_mean", "city_pieces_sum") for i in (0, 1)
    ]
    every = StatisticEncoder(["mean", "sum"], values=["price", "pieces"], columns=["zip", "city"], cv=cv).fit_transform(
        X
    )
    same(codes, every[codes.columns])
    assert len(found.encodings_) == 2


@pytest.mark.parametrize("cv", [LeaveOneOut(), Ordered(shuffle=False), TimeFolds(3, time="day")], ids=repr)
def test_schemes_and_indicators(cv):
    """A category is unseen by the first column of values that its key has a statistic of."""
    X = ROWS.assign(pieces=np.arange(N) % 11, day=np.arange(N) // 5)
    X.loc[::4, "price"] = None
    pairs = {("zip", "pieces"): ["sum", "count"], ("city", "price"): ["mean", "skew"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = StatisticEncoder(pairs, cv=cv, indicators=True).fit_transform(X)
        for (key, value), names in pairs.items():
            made = StatisticEncoder(names, values=[value], columns=[key], cv=cv, indicators=True)
            expected = made.fit_transform(X)
            columns = [*(f"{key}_{value}_{name}" for name in names), f"{key}_unseen"]
            same(found[columns], expected[columns])


def test_a_pair_refuses_nothing_of_others():
    X = pd.DataFrame({"k": list("aab"), "small": [1.0, 2.0, 5.0], "large": [1e101, 2.0, -1e101], "id": [2**60, 3, 4]})
    pairs = {("k", "small"): ["skew", "var"], ("k", "large"): ["mean"], ("k", "id"): ["max"]}
    assert StatisticEncoder(pairs).fit(X).encodings_[3].tolist() == [2.0**60, 4.0]
    positive = {("k", "small"): ["median"], ("k", "large"): ["count"]}
    found = StatisticEncoder(positive, scale="log1p").fit(X).encodings_
    assert found[0].tolist() == np.log1p([1.5, 5.0]).tolist()


def test_clones_share_no_statistic():
    """scikit-learn copies every estimator in a dict apart."""
    logs = MergeableStatistic("logs", [np.log1p], lambda count, total: total)
    encoder = StatisticEncoder({("zip", "pieces"): [logs, "mean"], ("city", "pieces"): ["sum", logs]})
    same(clone(encoder).fit_transform(X), encoder.fit_transform(X))


def test_no_target_is_asked_for():
    encoder = StatisticEncoder({("city", "price"): ["mean"]}).fit(X)
    assert not encoder.__sklearn_tags__().target_tags.required
    assert not hasattr(encoder, "target_type_")
    same(encoder.transform(X), StatisticEncoder({("city", "price"): ["mean"]}, cv=Greedy()).fit_transform(X))


@pytest.mark.parametrize(
    ("statistics", "choices", "message"),
    [
        ({}, {}, "statistics is an empty dict"),
        ({"zip": ["mean"]}, {}, r"Got 'zip': \['mean'\]"),
        ({("zip", "price"): "mean"}, {}, r"Got \('zip', 'price'\): 'mean'"),
        ({("zip", "price"): ("quantile", 0.5)}, {}, r"Got \('zip', 'price'\): \('quantile', 0.5\)"),
        ({("zip", ("price", "pieces")): ["mean"]}, {}, r"Got \('zip', \('price', 'pieces'\)\)"),
        ({("zip", "price"): ["mode", "average"]}, {}, "names 'average', which is none of"),
        ({("zip", "cost"): ["mean"]}, {}, "'cost' is not a column of X"),
        ({("zap", "price"): ["mean"]}, {}, "'zap' is not a column of X"),
        ({("zip", "price"): ["mean"]}, {"columns": ["zip"]}, r"leave out columns=\['zip'\]"),
        ({("zip", "price"): ["mean"]}, {"values": ["price"]}, r"leave out values=\['price'\]"),
    ],
)
def test_mistakes(statistics, choices, message):
    with pytest.raises(ValueError, match=message):
        StatisticEncoder(statistics, **choices).fit(X)
