"""`cross_val_transform` gives the bits of a separate fit to the training rows of each outer fold."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GroupKFold as TheirGroupKFold
from sklearn.model_selection import KFold as TheirKFold
from sklearn.model_selection import StratifiedKFold, TimeSeriesSplit

from gpu_encode import (
    CountEncoder,
    GroupKFold,
    KFold,
    Prefixes,
    SpectralEncoder,
    TargetEncoder,
    cross_val_transform,
    interactions,
    tune,
)
from gpu_encode.fitting.inputs import Inputs
from gpu_encode.study import cross_validation
from gpu_encode.tables import frames
from gpu_encode.tables.frames import Frame
from tests.bits import LEARNED, plain
from tests.cases import SMOOTHINGS, pairs, schemes, some
from tests.family.members import MEMBERS, ROWS

pytestmark = pytest.mark.host
N = 150
RNG = np.random.default_rng(3)
SHOPS = RNG.choice([*"abcdefghij", None], N)
SHOPS[140:] = "late"  # in one outer fold alone
X = pd.DataFrame(
    {
        "shop": RNG.integers(0, 20, N),
        "city": pd.array(SHOPS, dtype=object),
        "day": np.arange(N) // 4,
        "fold": np.arange(N) % 4,
        "size": RNG.normal(size=N).round(1),
    }
)
X.loc[::17, "size"] = None
TARGETS = {
    "binary": RNG.integers(0, 2, N),
    "classes": RNG.choice(["x", "y", "z"], N),
    "real": RNG.normal(size=N),
    "rare": np.where(np.arange(N) > 140, 2, np.arange(N) % 2),  # a class that some training rows lack
}
OUTER = TheirKFold(3)
FEW_SMOOTHINGS = some(SMOOTHINGS, "none", "auto", "number", "james-stein", "partial-pooling")
PAIRS = ["city", "size", ("city", "size")]


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def rows_of(table, rows):
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]


def assert_same_encodings(found, expected):
    if sparse.issparse(expected):
        found, expected = found.toarray(), expected.toarray()
    assert type(found) is type(expected)
    if hasattr(expected, "columns"):
        assert [*found.columns] == [*expected.columns]
        assert found.index.equals(expected.index)
        pd.testing.assert_frame_equal(found, expected, check_exact=True)
    else:
        np.testing.assert_array_equal(found, expected)


def assert_law(encoder, table, y, cv=OUTER, splits=None, **vectors):
    folds = list(cross_val_transform(encoder, table, y, cv=cv, **vectors))
    expected = list(OUTER.split(table)) if splits is None else splits
    assert len(folds) == len(expected)
    for fold, (train, test) in zip(folds, expected, strict=True):
        assert np.array_equal(fold.train, train)
        assert np.array_equal(fold.test, test)
        alone, given = clone(encoder), {name: rows_of(vector, train) for name, vector in vectors.items()}
        of_train = None if y is None else rows_of(y, train)
        assert_same_encodings(fold.encoded_train, alone.fit_transform(rows_of(table, train), of_train, **given))
        assert_same_encodings(fold.encoded_test, alone.transform(rows_of(table, test)))
        for name in (*LEARNED, "feature_names_in_", "n_features_in_"):
            if hasattr(alone, name):
                assert plain(getattr(fold.encoder, name)) == plain(getattr(alone, name)), name
    return folds


@pytest.mark.parametrize(("scheme", "smooth", "target"), pairs(schemes(), FEW_SMOOTHINGS, TARGETS))
def test_every_scheme_smoothing_and_target(scheme, smooth, target):
    encoder = TargetEncoder(columns=PAIRS, cv=schemes()[scheme], smooth=SMOOTHINGS[smooth])
    try:
        clone(encoder).fit_transform(X.iloc[:100], TARGETS[target][:100])
    except ValueError as error:
        with pytest.raises(ValueError, match=str(error)[:20].replace("(", ".")):
            list(cross_val_transform(encoder, X, TARGETS[target], cv=OUTER))
        return
    assert_law(encoder, X, TARGETS[target])


@pytest.mark.parametrize("name", MEMBERS)
def test_every_encoder(name):
    make, y = MEMBERS[name]
    splits = [(np.arange(20, 90), np.arange(20)), (np.r_[:40, 60:90], np.arange(40, 60))]
    y = y if y is None else np.asarray(y)
    encoder = make()
    try:
        clone(encoder).fit(ROWS.iloc[20:], None if y is None else y[20:]).transform(ROWS.iloc[:20])
    except (ValueError, TypeError):
        pytest.skip("it refuses these rows, or their unknown values")
    assert_law(encoder, ROWS, y, cv=splits, splits=splits)


@pytest.mark.parametrize(
    "parameters",
    [
        {"handle_unknown": "nan", "handle_missing": "prior", "indicators": ["unseen", "missing"]},
        {"min_count": 3, "max_categories": 4, "handle_infrequent": "category", "columns": ["city", "shop"]},
        {"hierarchy": {"city": Prefixes(1)}, "columns": ["city"]},
        {"hierarchy": {"city": ["shop"]}, "columns": ["city"]},
        {"categories": [[*"abc"], "auto"], "columns": ["city", "shop"]},
        {"cv": {"city": 3, "shop": 4}, "smooth": {"city": 2.0}, "columns": ["city", "shop"]},
        {"columns": interactions(["shop", "city", "size", "day"], order=3)},
    ],
    ids=str,
)
def test_policies_levels_and_many_keys(parameters):
    assert_law(TargetEncoder(**{"columns": PAIRS, **parameters}), X, TARGETS["binary"])


def test_weights_groups_and_several_targets():
    weights, groups = RNG.integers(0, 3, N), RNG.integers(0, 12, N)
    assert_law(TargetEncoder(columns=PAIRS), X, TARGETS["real"], sample_weight=weights)
    both = np.column_stack([TARGETS["real"], TARGETS["binary"]])
    assert_law(TargetEncoder(columns=PAIRS, target_type=["continuous", "binary"]), X, both)
    theirs = TheirGroupKFold(3)
    splits = list(theirs.split(X, groups=groups))
    encoder = TargetEncoder(columns=PAIRS, cv=GroupKFold(3))
    assert_law(encoder, X, TARGETS["real"], cv=theirs, splits=splits, groups=groups)


@pytest.mark.parametrize("kind", ["numpy", "polars", "pyarrow", "lists"])
def test_every_kind_of_table(kind):
    y, columns = TARGETS["real"], ["city", "shop", "size"]
    tables = {
        "numpy": X[["shop", "fold", "day"]].to_numpy(),
        "polars": pl.from_pandas(X[columns]),
        "pyarrow": pa.Table.from_pandas(X[columns]),
        "lists": X[columns].astype(str).to_numpy().tolist(),
    }
    table = tables[kind]
    for encoded in (None, [0, 2], [1]):
        encoder = TargetEncoder(columns=encoded)
        for fold in cross_val_transform(encoder, table, y, cv=OUTER):
            train, test = (
                [table[row] for row in rows] if kind == "lists" else frames.take(table, rows)
                for rows in (fold.train, fold.test)
            )
            alone = clone(encoder)
            expected = alone.fit_transform(train, y[fold.train]), alone.transform(test)
            for found, of_fit in zip((fold.encoded_train, fold.encoded_test), expected, strict=True):
                assert type(found) is type(of_fit)
                both = [t.to_pandas() if hasattr(t, "to_pandas") else pd.DataFrame(t) for t in (found, of_fit)]
                pd.testing.assert_frame_equal(*both, check_exact=True)


@pytest.mark.parametrize("choose", [None, lambda encoder, X, y: encoder])
def test_targets_of_a_fold_go_by_position(choose):
    """The labels of a shuffled pandas Series would give other rows."""
    order = RNG.permutation(N)
    shuffled, y = X.iloc[order], pd.Series(TARGETS["binary"]).iloc[order]
    for fold in cross_val_transform(TargetEncoder(columns=PAIRS), shuffled, y, cv=3, choose=choose):
        pd.testing.assert_series_equal(fold.y_train, y.iloc[fold.train])
        pd.testing.assert_series_equal(fold.y_test, y.iloc[fold.test])
        alone = TargetEncoder(columns=PAIRS).fit(shuffled.iloc[fold.train], fold.y_train)
        pd.testing.assert_frame_equal(alone.transform(shuffled.iloc[fold.test]), fold.encoded_test, check_exact=True)
    without = cross_val_transform(CountEncoder(columns=PAIRS), X, cv=3)
    assert all(fold.y_train is None and fold.y_test is None for fold in without)


def test_columns_are_numbered_once(monkeypatch):
    read, keys = [], Frame.keys

    def counted(frame, column, ops):
        read.append((column, frame.n_rows))
        return keys(frame, column, ops)

    monkeypatch.setattr(Frame, "keys", counted)
    list(cross_val_transform(TargetEncoder(columns=PAIRS), X, TARGETS["binary"], cv=OUTER))
    assert sorted(read) == [(1, N), (4, N)]


def test_values_of_numbered_columns_are_taken_for_messages_alone(monkeypatch):
    taken, column = [], Frame.native_column
    monkeypatch.setattr(Frame, "native_column", lambda frame, at: taken.append(at) or column(frame, at))
    encoder, y = TargetEncoder(columns=PAIRS, cv=KFold(3, by="day")), TARGETS["binary"]
    folds = cross_val_transform(encoder, X, y, cv=OUTER)
    del taken[:]
    list(folds)
    assert set(taken) == {X.columns.get_loc("day")}
    encoder = TargetEncoder(columns=["city"], handle_unknown="error")
    with pytest.raises(ValueError, match=r"Found unknown categories .*'late'"):
        list(cross_val_transform(encoder, X.astype({"city": object}), y, cv=[(np.arange(140), np.arange(140, 150))]))


def test_another_index_is_told_once():
    y = pd.Series(TARGETS["binary"], index=np.arange(N)[::-1])
    with pytest.warns(UserWarning, match="another index") as told:
        list(cross_val_transform(TargetEncoder(columns=["city"]), X, y, cv=OUTER))
    assert len([one for one in told if "another index" in str(one.message)]) == 1


def test_no_test_row_is_seen():
    y = TARGETS["real"]
    first = next(cross_val_transform(TargetEncoder(columns=PAIRS), X, y, cv=OUTER))
    changed, table = y.copy(), X.copy()
    changed[first.test] += 1000.0
    table.loc[first.test, "city"] = "elsewhere"
    second = next(cross_val_transform(TargetEncoder(columns=PAIRS), table, changed, cv=OUTER))
    pd.testing.assert_frame_equal(first.encoded_train[["city", "size"]], second.encoded_train[["city", "size"]])
    assert (second.encoded_test["city"] == second.encoder.target_mean_).all()


def test_folds_are_scikit_learns():
    y = TARGETS["binary"]
    theirs = [test.tolist() for _, test in StratifiedKFold(3).split(X, y)]
    assert [fold.test.tolist() for fold in cross_val_transform(TargetEncoder(columns=PAIRS), X, y, cv=3)] == theirs
    y = TARGETS["real"]
    theirs = [test.tolist() for _, test in TheirKFold(5).split(X)]
    assert [fold.test.tolist() for fold in cross_val_transform(TargetEncoder(columns=PAIRS), X, y)] == theirs
    in_time = list(cross_val_transform(TargetEncoder(columns=PAIRS), X, y, cv=TimeSeriesSplit(3)))
    assert all(fold.train.max() < fold.test.min() for fold in in_time)


@pytest.mark.parametrize("kind", ["pandas", "arrow"])
def test_splits_may_be_masks_lists_or_count_from_the_end(kind):
    y, n = TARGETS["binary"], len(X)
    table = X if kind == "pandas" else pa.Table.from_pandas(X)
    is_test = np.arange(n) >= n - 20
    splits = [(~is_test, is_test), ([*range(n - 20)], [*range(n - 20, n)]), (np.arange(n - 20), np.arange(-20, 0))]
    for fold in cross_val_transform(TargetEncoder(columns=["shop"]), table, y, cv=splits):
        assert fold.train.tolist() == [*range(n - 20)]
        assert fold.test.tolist() == [*range(n - 20, n)]
        assert (len(fold.encoded_train), len(fold.encoded_test)) == (n - 20, 20)


def test_an_encoder_is_chosen_by_training_rows_alone():
    y, seen = TARGETS["binary"], []

    def choose(encoder, table, labels):
        seen.append((len(table), len(labels)))
        return tune(encoder, table, labels, smoothings=[1.0, 100.0]).encoder

    encoder = TargetEncoder(columns=["shop"])
    folds = list(cross_val_transform(encoder, X, y, cv=OUTER, choose=choose))
    assert seen == [(len(fold.train), len(fold.train)) for fold in folds]
    assert encoder.smooth == "auto"
    for fold in folds:
        tuned = tune(encoder, X.iloc[fold.train], y[fold.train], smoothings=[1.0, 100.0]).encoder
        assert fold.encoder.smooth == tuned.smooth
        assert_same_encodings(fold.encoded_train, tuned.fit_transform(X.iloc[fold.train], y[fold.train]))


def test_encoders_of_several_columns_are_fitted_anew():
    inputs = Inputs(X)
    assert not cross_validation.can_share(SpectralEncoder(n_components=2), inputs)
    assert not cross_validation.can_share(TargetEncoder(columns="categorical"), inputs)
    assert not cross_validation.can_share(TargetEncoder(cv=TheirKFold(3)), inputs)
    assert cross_validation.can_share(TargetEncoder(), inputs)


def test_lightgbm_stops_early():
    lightgbm = pytest.importorskip("lightgbm")
    y = TARGETS["binary"]
    fold = next(cross_val_transform(TargetEncoder(columns=["shop", "city"]), X[["shop", "city"]], y, cv=OUTER))
    model = lightgbm.LGBMClassifier(n_estimators=200, min_child_samples=5, verbose=-1)
    validation = [(fold.encoded_test, y[fold.test])]
    model.fit(fold.encoded_train, y[fold.train], eval_set=validation, callbacks=[lightgbm.early_stopping(5)])
    assert 0 < model.best_iteration_ < 200


@pytest.mark.parametrize(
    ("encoder", "table", "given", "error", "said"),
    [
        (StratifiedKFold(), X, {}, TypeError, "must be an encoder of gpu_encode"),
        (TargetEncoder(), X, {"choose": 3}, TypeError, "choose must be a function"),
        (TargetEncoder(), [X, X], {}, TypeError, "one table in memory"),
        (TargetEncoder(columns=["nowhere"]), X, {}, ValueError, "nowhere"),
        (TargetEncoder(columns=["shop"]), X, {"cv": 1}, ValueError, "n_splits"),
        (TargetEncoder(columns=["shop"]), X, {"cv": "five"}, TypeError, "Got 'five' instead. A scheme of"),
        (
            TargetEncoder(columns=["shop"]),
            X,
            {"cv": KFold(3)},
            TypeError,
            r"Got KFold\(n_splits=3\) instead. A scheme of",
        ),
        (TargetEncoder(columns=["shop"]), X, {"cv": {"shop": 3}}, TypeError, "Got {'shop': 3} instead"),
        (TargetEncoder(columns=["shop"]), X, {"cv": np.arange(len(X)) % 3}, ValueError, "PredefinedSplit"),
        (TargetEncoder(columns=["shop"]), X, {"cv": [([0], [1], [2])]}, ValueError, "list of pairs"),
        (TargetEncoder(columns=["shop"]), X, {"cv": [([0, 1, 2, 3], [3, 4])]}, ValueError, "row 3 both as a training"),
        (TargetEncoder(columns=["shop"]), X, {"cv": TheirGroupKFold(3)}, ValueError, "groups"),
    ],
    ids=str,
)
def test_errors_at_the_door(encoder, table, given, error, said):
    with pytest.raises(error, match=said):
        cross_val_transform(encoder, table, TARGETS["binary"], **given)
