"""Sums that are found together with the categories of a column of numbers, against those by the code of each row."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from gpu_encode import CountEncoder, Holdout, OneHotEncoder, StatisticEncoder, TargetEncoder
from gpu_encode.fitting import categories
from gpu_encode.frames.frame import Frame

pytestmark = pytest.mark.host

N = 3000
RNG = np.random.default_rng(4)
ENCODERS = {
    "counts": CountEncoder,
    "two classes": lambda: TargetEncoder(target_type="binary"),
    "three classes": lambda: TargetEncoder(target_type="multiclass"),
    "a quantity": lambda: TargetEncoder(target_type="continuous"),
    "squares": lambda: StatisticEncoder(["var"]),
    "other policies": lambda: TargetEncoder(min_frequency=3, handle_missing="nan", smooth="auto"),
}
TARGETS = {"three classes": RNG.integers(0, 3, N), "a quantity": RNG.random(N), "squares": RNG.standard_normal(N)}


@pytest.fixture
def found(monkeypatch):
    """Sums that were found together with categories, call by call."""
    calls, original = [], categories.sum_whole_numbers
    monkeypatch.setattr(categories, "sum_whole_numbers", lambda *given: calls.append(original(*given)) or calls[-1])
    return calls


def learned(encoder):
    model = encoder._model
    sums = [
        (each.accumulators.tobytes(), each.accumulators.shape, each.measured, each.added)
        for (each,) in model.statistics
    ]
    return sums, [
        (key.has_missing, key.vocabularies[0].to_arrow(), key.vocabularies[0].metadata()) for key in model.keys
    ]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint64])
@pytest.mark.parametrize("name", ENCODERS)
def test_the_model_is_that_of_codes(name, dtype, weighted, found, monkeypatch):
    X = np.column_stack([RNG.integers(3, 90, N), RNG.choice([0, 2, 127], N)]).astype(dtype)
    y, weight = TARGETS.get(name, RNG.integers(0, 2, N)), RNG.integers(0, 3, N) / 4 if weighted else None
    one_pass = learned(ENCODERS[name]().fit(X, y, sample_weight=weight))
    assert len(found) == 2
    assert all(found)
    monkeypatch.setattr(Frame, "whole_numbers", lambda *_: None)
    assert learned(ENCODERS[name]().fit(X, y, sample_weight=weight)) == one_pass
    assert not any(found[2:])


@pytest.mark.parametrize(
    "column",
    [
        np.arange(N) % 7 / 2,
        np.arange(N) % 2 == 0,
        pd.array([1, None, 2] * (N // 3), dtype="Int64"),
        pd.Categorical(np.arange(N) % 7),
        pa.array((np.arange(N) % 7).astype(str)),
        pd.date_range("2024", periods=N, freq="h"),
    ],
    ids=["reals", "truth values", "nulls", "categories", "text", "dates"],
)
def test_other_columns_are_left_to_codes(column, found):
    CountEncoder().fit(pd.DataFrame({"c": column}))
    assert found == [None]


def test_entries_of_one_name_have_sums_of_their_own():
    frame = pd.DataFrame({"a": RNG.integers(0, 10, N), "b": RNG.integers(0, 3, N), "a_x_b": RNG.integers(0, 4, N) ** 2})
    columns = [("a", "b"), "a_x_b"]
    both, joint, single = (
        OneHotEncoder(columns=own, max_categories=3).fit(frame[names]).transform(frame[names]).toarray()
        for own, names in ((columns, list(frame)), (columns[:1], ["a", "b"]), (columns[1:], ["a_x_b"]))
    )
    assert np.array_equal(both, np.hstack([joint, single]))


def test_who_asks_for_rows_gets_their_codes(found):
    X, y = np.arange(N).reshape(-1, 1) % 7, np.arange(N) % 2
    CountEncoder().fit_transform(X)
    TargetEncoder(cv=Holdout(0.3)).fit(X, y)
    TargetEncoder(categories=[list(range(7))]).fit(X, y)
    StatisticEncoder(["median"]).fit(X, y)
    TargetEncoder(target_type="continuous").fit(X, np.column_stack([y, y]))
    TargetEncoder().partial_fit(X, y)
    assert found == []
