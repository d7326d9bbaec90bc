"""StatisticEncoder of columns of X: nulls, types, several columns at once, and pairs of a key and a column."""

import math
from decimal import Decimal
from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone

from gpu_encode import KFold, MergeableStatistic, Ordered, StatisticEncoder
from tests.family.drawn import STATISTICS
from tests.family.members import PAIRS, ROWS, same
from tests.scale.parts.in_parts import encoded_in_parts, parts_of

# Values are sorted and selected on the host, whatever holds them; test_laws.py asks the backends.
pytestmark = pytest.mark.host

VALUES = ["price", "pieces"]


def frame_of(n_rows=60):
    generator = np.random.default_rng(4)
    price = generator.normal(size=n_rows)
    price[::7] = np.nan
    return pd.DataFrame(
        {
            "city": generator.choice(["x", "y", "z", None], n_rows),
            "price": price,
            "zip": generator.integers(0, 5, n_rows),
            "pieces": generator.integers(-9, 9, n_rows),
            "day": generator.integers(0, 20, n_rows),
        }
    )


def encoder_of(**choices):
    return StatisticEncoder(
        **{"statistics": STATISTICS, "values": VALUES, "columns": ["city", ("zip", "city")]} | choices
    )


def test_every_key_value_and_statistic():
    X, numbers = frame_of(), [*STATISTICS, "min", "max", "nunique", "median", "skew"]
    names = [f"{key}_{value}_{name}" for key in ("city", "zip_x_city") for value in VALUES for name in numbers]
    encoder = encoder_of(statistics=numbers).fit(X)
    table = encoder.transform(X)
    assert encoder.get_feature_names_out().tolist() == table.columns.tolist() == [*names, "price", "pieces", "day"]
    groups = X.groupby("city", dropna=False)
    for value, name in product(VALUES, numbers):
        np.testing.assert_allclose(table[f"city_{value}_{name}"], groups[value].transform(name), rtol=1e-12)


def test_a_null_among_the_entries_of_a_dictionary_is_a_missing_value():
    codes, entries = pa.array([0, 1, 2, 1], pa.int32()), pa.array([5, None, 7])
    found = []
    for values in (entries.take(codes), pa.DictionaryArray.from_arrays(codes, entries)):
        table = pa.table({"city": list("aabb"), "pieces": values})
        encoder = StatisticEncoder(["count", "mean"], values=["pieces"], columns=["city"]).fit(table)
        found.append(encoder.transform(table).select([0, 1]).to_pydict())
    assert found[0] == found[1] == {"city_pieces_count": [1.0] * 4, "city_pieces_mean": [5.0, 5.0, 7.0, 7.0]}


def test_rows_without_a_value_take_no_part():
    X = frame_of()
    encoder = encoder_of(values=["price"], columns=["zip"]).fit(X)
    there = X[X["price"].notna()]
    alone = StatisticEncoder(STATISTICS).fit(there[["zip"]], there["price"])
    for mine, theirs in zip(encoder.encodings_, alone.encodings_, strict=True):
        assert mine.tobytes() == theirs.tobytes()


def test_a_category_without_values_is_unseen():
    X = pd.DataFrame({"shop": ["a", "a", "b"], "price": [1.0, 3.0, None]})
    encoder = StatisticEncoder(["count", "sum", "mean"], values=["price"], indicators=True)
    assert encoder.fit_transform(X).to_numpy().tolist() == [[2.0, 4.0, 2.0, 0.0]] * 2 + [[0.0, 0.0, 2.0, 1.0]]


@pytest.mark.parametrize("columns", [None, ["city"]])
def test_new_rows_need_no_values(columns):
    X = frame_of()[["city", "price", "pieces"]]
    encoder = encoder_of(columns=columns).fit(X)
    whole = encoder.transform(X)
    encoded = [name for name in whole.columns if name not in X]
    assert encoder.transform(X[["city"]])[encoded].equals(whole[encoded])
    assert [name for name in whole.columns if name in X] == ([] if columns is None else VALUES)


def test_columns_by_position():
    X = frame_of()
    named = encoder_of(columns=["zip"]).fit(X)
    plain = X.to_numpy(dtype=object)
    encoder = encoder_of(columns=[2], values=[1, -2]).fit(plain)
    assert encoder.get_feature_names_out()[0] == "x2_x1_count"
    for mine, theirs in zip(encoder.encodings_, named.encodings_, strict=True):
        assert mine.tobytes() == theirs.tobytes()


def test_an_order_in_parts_is_refused():
    with pytest.raises(ValueError, match="StatisticEncoder with values takes the rows of Ordered"):
        encoded_in_parts(encoder_of(cv=Ordered()), parts_of(frame_of(), None, cuts=(7,)))


def test_encoders_of_other_values_are_not_merged():
    X = frame_of()
    with pytest.raises(ValueError, match="values"):
        encoder_of().fit(X).merge(encoder_of(values=["pieces"]).fit(X))


KINDS = {
    "integers with nulls": pa.array([1, None, 2**60 + 1, 4]),
    "decimals": pa.array([Decimal("1.5"), None, Decimal("2.25"), Decimal(4)]),
    "booleans": pa.array([True, None, False, True]),
    "dictionary": pa.array([3, None, 3, 7]).dictionary_encode(),
    "floats": pa.array([0.5, float("nan"), 1e300, 2.0], pa.float64()),
    "small floats": pa.array([0.5, None, 1.25, 2.0], pa.float32()),
    "nulls alone": pa.array([None] * 4, pa.float64()),
}


@pytest.mark.parametrize("name", KINDS)
def test_types_of_values(name):
    column = KINDS[name]
    X = pa.table({"key": ["a"] * 4, "value": column})
    encoder = StatisticEncoder(["count", "sum"], values=["value"], handle_unknown=0.0).fit(X)
    there = [value for value in column.to_pylist() if value is not None and not math.isnan(value)]
    assert [codes.tolist() for codes in encoder.encodings_] == [[float(len(there))], [float(sum(there))]]


NAMES = ["zip_price_mean", "zip_price_quantile_0.5", "zip_rank_max", "zip_rank_sum", "zip_x_city_price_sum"]


@pytest.mark.parametrize("choices", [{}, {"indicators": True}, {"cv": KFold(2, blow_up=True)}], ids=str)
def test_pairs_are_some_of_all(choices):
    """A category is unseen by the first column of values that its key has a statistic of."""
    statistics, keys = ["mean", ("quantile", 0.5), "sum", "max"], ["zip", ("zip", "city")]
    encoder = StatisticEncoder(PAIRS, **choices)
    every = StatisticEncoder(statistics, values=["price", "rank"], columns=keys, **choices)
    wide = ["_fold0", "_fold1"] if "cv" in choices else [""]
    flags = ["zip_unseen", "zip_x_city_unseen"] if "indicators" in choices else []
    names = [*(f"{name}{fold}" for name in NAMES for fold in wide), *flags, "price", "rank", "held"]
    training, expected = encoder.fit_transform(ROWS), every.fit_transform(ROWS)
    assert training.columns.tolist() == encoder.get_feature_names_out().tolist() == names
    same(training, expected[names])
    same(encoder.transform(ROWS), every.transform(ROWS)[names])
    assert len(encoder.encodings_) == len(NAMES) * len(wide)


def test_pairs_beside_orders_that_stand_apart():
    cv, pairs = Ordered(2, average=False), {"zip": {"price": ["mean"]}, "city": {"rank": ["sum"]}}
    encoder = StatisticEncoder(pairs, cv=cv)
    training = encoder.fit_transform(ROWS)
    every = StatisticEncoder(["mean", "sum"], values=["price", "rank"], columns=["zip", "city"], cv=cv)
    names = [f"{name}_perm{order}" for name in ("zip_price_mean", "city_rank_sum") for order in (0, 1)]
    assert list(training.columns[:4]) == names
    same(training, every.fit_transform(ROWS)[training.columns])
    assert len(encoder.encodings_) == 2


def test_a_pair_refuses_nothing_of_others():
    X = pd.DataFrame({"k": list("aab"), "small": [1.0, 2.0, 5.0], "large": [1e101, 2.0, -1e101], "id": [2**60, 3, 4]})
    pairs = {"k": {"small": ["skew", "var"], "large": ["mean"], "id": ["max"]}}
    assert StatisticEncoder(pairs).fit(X).encodings_[3].tolist() == [2.0**60, 4.0]
    positive = {"k": {"small": ["median"], "large": ["count"]}}
    encodings = StatisticEncoder(positive, scale="log1p").fit(X).encodings_
    assert encodings[0].tolist() == np.log1p([1.5, 5.0]).tolist()


def test_clones_share_no_statistic():
    """scikit-learn copies every estimator in a dict apart."""
    logs = MergeableStatistic("logs", [np.log1p], lambda count, total: total)
    encoder = StatisticEncoder({"zip": {"rank": [logs, "mean"]}, "city": {"rank": ["sum", logs]}})
    same(clone(encoder).fit_transform(ROWS), encoder.fit_transform(ROWS))


def test_no_target_is_asked_for():
    encoder = StatisticEncoder({"city": {"price": ["mean"]}}).fit(ROWS)
    assert not encoder.__sklearn_tags__().target_tags.required
    assert not hasattr(encoder, "target_type_")
