"""Statistics by pairs of a key and a column of values: those of all pairs, but for those that nobody asked for."""

import numpy as np
import pandas as pd
import pytest

from gpu_encode import Greedy, KFold, Ordered, StatisticEncoder, load
from tests.family.members import ROWS, same
from tests.parts.in_parts import encoded_in_parts, parts_of

# Pairs choose among columns that all are computed.
pytestmark = pytest.mark.host

X = ROWS.assign(pieces=np.arange(len(ROWS)) % 11)
PAIRS = {
    ("zip", "price"): ["mean", ("quantile", 0.5)],
    (("zip", "city"), "pieces"): ["sum"],
    ("zip", "pieces"): ["max", "sum"],
}
NAMES = [
    "zip_price_mean",
    "zip_price_quantile_0.5",
    "zip_pieces_sum",
    "zip_pieces_max",
    "zip_x_city_pieces_sum",
]


def whole(**choices):
    statistics = ["mean", ("quantile", 0.5), "sum", "max"]
    return StatisticEncoder(statistics, values=["price", "pieces"], columns=["zip", ("zip", "city")], **choices)


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
