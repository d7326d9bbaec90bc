"""StatisticEncoder of the target: labels, functions of a user, and rows that see no other rows."""

import math
import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest

import gpu_encode as ge
from gpu_encode import LeaveOneOut, Ordered, StatisticEncoder
from tests.bits import assert_same_bits
from tests.family.drawn import quietly
from tests.family.members import AMOUNT, ROWS, N, same


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_labels_are_counted_as_zero_and_one(kind):
    y = np.array(list("uvuuvvuu" if kind == "binary" else "uvwuvvuw"))
    X = np.array([list("aaabbbcc")]).T
    encoder = StatisticEncoder(["sum", "var"], target_type=kind).fit(X, y)
    labels = ["v"] if kind == "binary" else ["u", "v", "w"]
    expected = [StatisticEncoder(["sum", "var"]).fit(X, (y == label).astype(float)).encodings_ for label in labels]
    for mine, theirs in zip(encoder.encodings_, [table for pair in expected for table in pair], strict=True):
        assert mine.tobytes() == theirs.tobytes()
    names = encoder.get_feature_names_out().tolist()
    parts = [""] if kind == "binary" else ["_u", "_v", "_w"]
    assert names == [f"x0{part}_{name}" for part in parts for name in ("sum", "var")]


def spread_over_mean(count, mean, variance):
    return variance / (mean * count)


def test_a_statistic_of_the_users_own(tmp_path):
    encoder = StatisticEncoder(["count", spread_over_mean, "mean", "var"], cv=LeaveOneOut(), columns=["city", "zip"])
    training = encoder.fit_transform(ROWS, AMOUNT)
    for key in ("city", "zip"):
        count, spread, mean, variance = (
            training[f"{key}_{name}"] for name in ("count", "spread_over_mean", "mean", "var")
        )
        assert (spread == variance / (mean * count))[(count > 0) & variance.notna()].all()
    same(pickle.loads(pickle.dumps(encoder)).transform(ROWS), encoder.transform(ROWS))
    message = "statistics cannot be saved: it holds <function spr.* Pickle it instead, with functions that have names"
    with pytest.raises(TypeError, match=message):
        encoder.save(tmp_path / "encoder")


def test_unseen_categories():
    X, y = [["a"], ["a"], ["b"], ["b"]], [1.0, 2.0, 4.0, 9.0]
    statistics = ["count", "sum", "mean", "var"]
    prior = StatisticEncoder(statistics).fit(X, y).transform([["c"]])
    assert prior.tolist() == [[0.0, 0.0, 4.0, 38 / 3]]
    assert_same_bits(StatisticEncoder(statistics, handle_unknown="nan").fit(X, y).transform([["c"]]), [[math.nan] * 4])
    assert StatisticEncoder(statistics, handle_unknown=-1).fit(X, y).transform([["c"]]).tolist() == [[-1.0] * 4]


def test_a_function_cannot_write_over_its_neighbours():
    def empty(count, mean, variance):
        result = mean + 1
        for array in (count, mean, variance):
            array[...] = 0.0
        return result

    X, y = np.array([list("aabcbc")]).T, np.arange(1.0, 7.0)
    statistics = ["count", empty, "mean", "var"]
    for cv in (3, LeaveOneOut(), Ordered()):
        alone = quietly(StatisticEncoder(["count", "mean", "var"], cv=cv).fit_transform, X, y)
        beside = quietly(StatisticEncoder(statistics, cv=cv).fit_transform, X, y)
        assert_same_bits(beside[:, [0, 2, 3]], alone)
        assert_same_bits(beside[:, 1], alone[:, 1] + 1)
    assert [table.tolist() for table in StatisticEncoder([empty, "mean"]).fit(X, y).encodings_] == [
        [2.5, 5.0, 6.0],
        [1.5, 4.0, 5.0],
    ]


CITIES = ROWS[["city"]]


def test_the_first_row_of_a_random_order_has_what_all_others_say():
    training = ge.StatisticEncoder(["mean"], cv=ge.Ordered()).fit_transform(CITIES, AMOUNT)
    others = [np.delete(AMOUNT, row).mean() for row in range(N)]
    assert np.isclose(training.iloc[:, 0], others, rtol=1e-12).sum() == 1
    impact = ge.ImpactEncoder(cv=ge.Ordered(), target_type="continuous").fit_transform(CITIES, AMOUNT)
    assert not impact.isna().any(axis=None)


@pytest.mark.parametrize("make", [partial(ge.ImpactEncoder, target_type="continuous"), ge.StatisticEncoder])
def test_rows_that_see_nothing_are_told_of(make):
    with pytest.warns(UserWarning, match=r"^1 rows see no rows at all and get NaN: their earlier folds or times"):
        training = make(cv=ge.Ordered(shuffle=False)).fit_transform(CITIES, AMOUNT)
    assert training.iloc[0, :2].isna().all()
    weights = np.where(np.arange(N) % 2, 1.0, 0.0)
    with pytest.warns(UserWarning, match=r"^Some rows see no rows at all and get NaN"):
        make(cv=ge.KFold(2, order="interleaved")).fit_transform(CITIES, AMOUNT, sample_weight=weights)


def test_the_users_number_stands_for_what_nobody_has_seen():
    X = pd.DataFrame({"shop": ["a", "b"], "price": [1.0, None]})
    encoder = ge.StatisticEncoder(["std"], values=["price"], handle_unknown=0.0).fit(X)
    assert encoder.transform(pd.DataFrame({"shop": ["never seen"]})).iloc[0, 0] == 0.0


def test_less_than_one_row_has_no_sample_variance():
    weights = [0.25, 0.25, 1.0, 1.0]
    encoder = StatisticEncoder(["mean", "var", "std", "sem"]).fit(
        [["a"], ["a"], ["b"], ["b"]], [1.0, 2.0, 3.0, 5.0], sample_weight=weights
    )
    of_a, of_b = encoder.transform([["a"], ["b"]])
    assert of_a[0] == 1.5
    assert np.isnan(of_a[1:]).all()
    assert of_b.tolist() == [4.0, 2.0, math.sqrt(2), 1.0]
