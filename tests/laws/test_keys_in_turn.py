"""Keys that are encoded a few at a time: every bit is that of one call, and memory does not grow with the keys."""

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from gpu_encode import (
    CountEncoder,
    GroupKFold,
    Holdout,
    KFold,
    LeakWarning,
    LeaveOneOut,
    Ordered,
    StatisticEncoder,
    TargetEncoder,
    interactions,
)
from gpu_encode.encoders import keys_in_turn
from gpu_encode.fitting import fit
from gpu_encode.seam.ops import use_backend
from tests.bits import assert_same_encoder
from tests.laws.test_key_lookups import KEYS, TARGETS, make_rows

pytestmark = [pytest.mark.host, pytest.mark.filterwarnings("ignore::UserWarning")]
X, Y = make_rows(0, 200), TARGETS["binary"]
SCHEMES = [3, KFold(3, random_state=1), Holdout(0.4), LeaveOneOut(), Ordered(), GroupKFold(3)]


def assert_as_one_call(encoder, y=Y, n_keys=8, **vectors):
    together = encoder.fit_transform(X, y, **vectors)
    tables, encoders = zip(*encoder.iter_fit_transform(X, y, n_keys=n_keys, **vectors), strict=True)
    found = pd.concat(tables, axis=1)
    assert sorted(found) == sorted(set(together) - {"beside"})
    pd.testing.assert_frame_equal(found, together[[*found]], check_exact=True)
    assert [key for fitted in encoders for key in fitted.columns] == encoder.columns
    for fitted in encoders:
        assert_same_encoder(fitted, alone(fitted).fit(X, y, **vectors))


def alone(fitted):
    """Return an unfitted encoder with the same parameters."""
    return type(fitted)(**fitted.get_params(deep=False))


@pytest.mark.parametrize("cv", SCHEMES, ids=str)
@pytest.mark.parametrize("target", TARGETS)
def test_every_scheme(cv, target):
    groups = {"groups": np.arange(200) % 7} if isinstance(cv, GroupKFold) else {}
    with use_backend("compiled"):
        assert_as_one_call(TargetEncoder(columns=KEYS, cv=cv, dtype="float32"), TARGETS[target], **groups)


@pytest.mark.parametrize("n_keys", [1, 7, 24, 25, 10**6])
def test_any_number_of_keys_at_a_time(n_keys):
    assert_as_one_call(TargetEncoder(columns=KEYS), n_keys=n_keys)
    tables = [*TargetEncoder(columns=KEYS).iter_fit_transform(X, Y, n_keys=n_keys)]
    assert len(tables) == -(-len(KEYS) // n_keys)


@pytest.mark.parametrize(
    "encoder",
    [
        CountEncoder(columns=KEYS, min_count=2, indicators=True),
        StatisticEncoder(["mean", "max"], columns=KEYS, cv=3),
        TargetEncoder(columns=KEYS, smooth={"text": None, ("n2", "n7"): 3.0}, cv={"kind": LeaveOneOut()}),
        TargetEncoder(columns=KEYS, hierarchy={"text": "kind"}, handle_unknown={"n2": "nan"}),
        TargetEncoder(columns=KEYS, categories=[["a", "b", None] if key == "text" else "auto" for key in KEYS]),
    ],
    ids=["counts", "statistics", "by key", "hierarchy", "given"],
)
def test_parameters_by_key(encoder):
    assert_as_one_call(encoder)


def test_weights_and_several_targets():
    y = np.column_stack([Y, np.arange(200) / 3])
    assert_as_one_call(TargetEncoder(columns=KEYS, target_type=["binary", "continuous"]), y)
    assert_as_one_call(TargetEncoder(columns=KEYS), sample_weight=np.arange(200) % 5 / 4)


def test_columns_that_pass_through_are_left_out():
    encoder = TargetEncoder(columns=[key for key in KEYS if "kind" not in key and key != "kind"])
    names = [name for table, _ in encoder.iter_fit_transform(X, Y) for name in table]
    assert "kind" not in names
    assert "kind" in encoder.fit_transform(X, Y)
    fitted = next(encoder.iter_fit_transform(X, Y))[1]
    assert "kind" in fitted.transform(X)


@pytest.mark.parametrize("columns", [None, [0, 1, (0, 1)]], ids=["all", "positions"])
def test_arrays_and_columns_that_no_list_names(columns):
    array = np.arange(400).reshape(-1, 4) % [2, 3, 4, 5]
    encoder = TargetEncoder(columns=columns)
    expected = encoder.fit_transform(array, Y[:100])[:, : len(columns or range(4))]
    tables = [table for table, _ in encoder.iter_fit_transform(array, Y[:100], n_keys=2)]
    assert np.hstack(tables).tobytes() == np.asarray(expected).tobytes("C")
    assert [table for table, _ in TargetEncoder(columns=columns).iter_fit_transform(pl.DataFrame(array), Y[:100])]


def test_the_encoder_itself_stays_as_it_was():
    encoder = TargetEncoder(columns=KEYS).fit(X, Y)
    before = encoder.transform(X)
    for _, fitted in encoder.iter_fit_transform(X, 1 - Y):
        assert fitted is not encoder
    pd.testing.assert_frame_equal(encoder.transform(X), before)
    assert encoder.columns == KEYS


def test_what_all_keys_share_is_read_once(monkeypatch):
    calls = []

    def note(module, name):
        original = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given: (calls.append(name), original(*given))[1])

    for module, name in ((fit, "read_rows"), (fit, "read_summed"), (keys_in_turn, "plan_keys")):
        note(module, name)
    tables = [*TargetEncoder(columns=KEYS, cv=KFold(3, random_state=None)).iter_fit_transform(X, Y, n_keys=3)]
    assert len(tables) == 9
    assert calls == ["read_rows", "read_summed", "plan_keys"]


def test_splits_that_can_be_read_once():
    splits = [
        (np.flatnonzero(np.arange(200) % 4 != fold), np.flatnonzero(np.arange(200) % 4 == fold)) for fold in range(4)
    ]
    expected = TargetEncoder(columns=KEYS, cv=splits).fit_transform(X, Y)
    tables = [table for table, _ in TargetEncoder(columns=KEYS, cv=splits).iter_fit_transform(X, Y)]
    pd.testing.assert_frame_equal(pd.concat(tables, axis=1), expected, check_exact=True)


def test_each_warning_is_told_once():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        [*TargetEncoder(columns=KEYS, cv=LeaveOneOut()).iter_fit_transform(X, Y, n_keys=5)]
    assert [warning.category for warning in told] == [LeakWarning]
    assert told[0].filename == __file__


@pytest.mark.parametrize("n_keys", [0, -1, 2.5, True, "all"])
def test_the_number_of_keys_is_checked_at_the_call(n_keys):
    with pytest.raises(ValueError, match="n_keys must be a whole number of at least 1"):
        TargetEncoder(columns=KEYS).iter_fit_transform(X, Y, n_keys=n_keys)


def test_bad_input_is_refused_at_the_call():
    with pytest.raises(ValueError, match="nowhere"):
        TargetEncoder(columns=[*KEYS, ("n2", "nowhere")]).iter_fit_transform(X, Y)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        TargetEncoder(columns=KEYS).iter_fit_transform(X, Y[:100])


def test_values_that_a_policy_refuses_are_refused_at_the_table_of_their_key():
    rows = pd.DataFrame({"whole": [1.0, 2.0], "lacks": [1.0, np.nan]})
    tables = TargetEncoder(columns=[*rows], cv=2, handle_missing="error").iter_fit_transform(rows, [0, 1], n_keys=1)
    assert [*next(tables)[0]] == ["whole"]
    with pytest.raises(ValueError, match="'lacks' holds 1 missing"):
        next(tables)


def test_rows_of_an_engine_are_refused():
    dask = pytest.importorskip("dask.dataframe")
    with pytest.raises(TypeError, match="takes rows in memory"):
        TargetEncoder(columns=KEYS).iter_fit_transform(dask.from_pandas(X, npartitions=2), Y)


def peak_of(n_columns):
    """Return the peak bytes of Python and NumPy while encoding all keys of `n_columns` columns."""
    random = np.random.default_rng(0)
    rows = pd.DataFrame(
        random.integers(0, 6, (20_000, 24)).astype(np.int8), columns=[f"c{number}" for number in range(24)]
    )
    y = random.integers(0, 2, len(rows))
    encoder = TargetEncoder(columns=interactions([*rows][:n_columns], 2)[n_columns:], dtype="float32")
    with use_backend("compiled"):
        for _ in range(2):
            tracemalloc.start()
            for table, fitted in encoder.iter_fit_transform(rows, y, n_keys=16):
                assert len(table.columns) <= len(fitted.columns)
                del table, fitted
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
    return peak


def test_memory_does_not_grow_with_the_number_of_keys():
    few, many = peak_of(8), peak_of(24)
    # Ten times as many keys: only the data of each column grows.
    assert many - few < 24 * 20_000 * 8 < 276 * 20_000 * 4
