"""Columns of numbers that are summed and looked up without category codes: the same bits and errors."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from gpu_encode import Bits, CountEncoder, Holdout, OneHotEncoder, StatisticEncoder, TargetEncoder
from gpu_encode.fitting import inputs
from gpu_encode.tables.frames.frame import Frame

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
def summed(monkeypatch):
    """Return a list that collects, per call, the sums made together with categories."""
    calls, original = [], inputs.sum_whole_numbers
    monkeypatch.setattr(inputs, "sum_whole_numbers", lambda *given: calls.append(original(*given)) or calls[-1])
    return calls


def learned(encoder):
    sums = [sums for (sums,) in encoder._model.statistics]
    words = [(key.has_missing, key.vocabularies[0]) for key in encoder._model.keys]
    return [(one.accumulators.tobytes(), one.accumulators.shape, one.spec, one.added) for one in sums], [
        (has_missing, vocabulary.to_arrow(), vocabulary.metadata()) for has_missing, vocabulary in words
    ]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint64])
@pytest.mark.parametrize("name", ENCODERS)
def test_the_model_is_that_of_codes(name, dtype, weighted, summed, monkeypatch):
    X = np.column_stack([RNG.integers(3, 90, N), RNG.choice([0, 2, 127], N)]).astype(dtype)
    y, weight = TARGETS.get(name, RNG.integers(0, 2, N)), RNG.integers(0, 3, N) / 4 if weighted else None
    one_pass = learned(ENCODERS[name]().fit(X, y, sample_weight=weight))
    assert len(summed) == 2
    assert all(summed)
    monkeypatch.setattr(Frame, "whole_numbers", lambda *_: None)
    assert learned(ENCODERS[name]().fit(X, y, sample_weight=weight)) == one_pass
    assert not any(summed[2:])


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
def test_other_columns_are_left_to_codes(column, summed):
    CountEncoder().fit(pd.DataFrame({"c": column}))
    assert summed == [None]


def test_entries_of_one_name_have_sums_of_their_own():
    frame = pd.DataFrame({"a": RNG.integers(0, 10, N), "b": RNG.integers(0, 3, N), "a_x_b": RNG.integers(0, 4, N) ** 2})
    columns = [("a", "b"), "a_x_b"]
    both, joint, single = (
        OneHotEncoder(columns=keys, max_categories=3).fit(frame[names]).transform(frame[names]).toarray()
        for keys, names in ((columns, list(frame)), (columns[:1], ["a", "b"]), (columns[1:], ["a_x_b"]))
    )
    assert np.array_equal(both, np.hstack([joint, single]))


def test_who_asks_for_rows_gets_their_codes(summed):
    X, y = np.arange(N).reshape(-1, 1) % 7, np.arange(N) % 2
    CountEncoder().fit_transform(X)
    TargetEncoder(cv=Holdout(0.3)).fit(X, y)
    TargetEncoder(categories=[list(range(7))]).fit(X, y)
    StatisticEncoder(["median"]).fit(X, y)
    TargetEncoder(target_type="continuous").fit(X, np.column_stack([y, y]))
    TargetEncoder().partial_fit(X, y)
    assert summed == []


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "uint64", "float32", "float64"])
@pytest.mark.parametrize(
    "options", [{}, {"indicators": True}, {"dtype": "float32"}, {"handle_missing": "error"}], ids=str
)
def test_new_numbers_get_the_encodings_of_equal_ones(dtype, options):
    random = np.random.default_rng(0)
    known, given = random.integers(3, 60, 1000).astype(dtype), random.integers(0, 70, 3000).astype(dtype)
    y = random.integers(0, 2, 1000)
    encoder = TargetEncoder(target_type="binary", device="cpu", **options).fit(known[:, None], y)
    learned = dict(zip(encoder.categories_[0].tolist(), encoder.encodings_[0].tolist(), strict=True))
    encodings = encoder.transform(given[:, None])
    expected = [[learned.get(value, encoder.target_mean_), value not in learned] for value in given.tolist()]
    assert encodings.tolist() == np.array(expected)[:, : encodings.shape[1]].astype(encodings.dtype).tolist()
    assert len(learned) < 70


@pytest.mark.parametrize("options", [{}, {"hierarchy": {"x": Bits(3)}}, {"handle_unknown": -1.0}], ids=str)
def test_asking_for_indicators_changes_no_encoding(options):
    random = np.random.default_rng(1)
    known, given = (pa.table({"x": random.choice(64, 4000) * 3 // step}) for step in (2, 1))
    y = random.integers(0, 2, 4000)
    plain, flagged = (
        TargetEncoder(columns=["x"], target_type="binary", device="cpu", indicators=flags, **options).fit(known, y)
        for flags in (False, True)
    )
    encodings = flagged.transform(given)
    assert plain.transform(given)["x"].equals(encodings["x"])
    assert 0 < sum(encodings["x_unseen"].to_pylist()) < 4000


def test_unknown_numbers_are_refused_where_they_are_errors():
    known, new = np.arange(2000) % 90, np.arange(2000) % 91
    encoder = TargetEncoder(target_type="binary", device="cpu", handle_unknown="error").fit(known[:, None], known % 2)
    with pytest.raises(ValueError, match=r"90"):
        encoder.transform(new[:, None])
    assert encoder.transform(known[:, None]).shape == (2000, 1)


def test_a_null_among_numbers_keeps_its_policy():
    known = np.arange(2000) % 90
    table, with_null = pa.table({"x": known}), pa.table({"x": pa.array([None, *known[1:].tolist()])})

    def fitted(policy):
        encoder = TargetEncoder(columns=["x"], target_type="binary", device="cpu", handle_missing=policy)
        return encoder.fit(table, known % 2)

    for policy, expected in (("category", 0.5), ("nan", np.nan)):
        encodings, others = (fitted(policy).transform(rows)["x"].to_numpy() for rows in (with_null, table))
        np.testing.assert_array_equal(encodings, [expected, *others[1:]])
    with pytest.raises(ValueError, match="row 0"):
        fitted("error").transform(with_null)
