"""Bad rows get an error that says what, where and what to do, and leave the encoder as it was."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array

import gpu_encode as ge
from tests.encoders.unchanged import Unchanged

pytestmark = pytest.mark.host

LEARN = ("fit", "fit_transform", "partial_fit")


def changed(values, row, value):
    values = np.array(values, dtype=float)
    values[row] = value
    return values


DATA = [
    ("y too short", {"y": np.ones(11)}, ValueError, r"\[12, 11\]. X has 12 rows and y 11; .* one value per row"),
    ("weights too long", {"sample_weight": np.ones(13)}, ValueError, r"X has 12 rows and sample_weight 13"),
    ("y with NaN", {"y": changed(np.arange(12), 4, np.nan)}, ValueError, "y has 1 missing value, in row 4. Drop or"),
    ("y with null", {"y": pl.Series([1.0, None] * 6)}, ValueError, "6 missing values, the first in row 1. Drop or"),
    ("y infinite", {"y": changed(np.arange(12), 7, np.inf)}, ValueError, "infinity.* 1 of 12 rows, the first in row 7"),
    ("y with text", {"y": list("abcdefghijkl")}, ValueError, "continuous.* needs numbers in y, but it holds 'a'"),
    ("y of dates", {"y": pd.date_range("2024", periods=12)}, TypeError, "y holds dates.* Convert them to numbers"),
    ("y of three dimensions", {"y": np.ones((2, 2, 3))}, ValueError, "y should be a 1d array"),
    ("y sparse", {"y": csr_array(np.ones((12, 1)))}, TypeError, "y is sparse.* dense array"),
    ("y absent", {"y": None}, ValueError, "TargetEncoder requires y to be passed, but the target y is None"),
    ("weight NaN", {"sample_weight": changed(np.ones(12), 3, np.nan)}, ValueError, r"1 NaN .* row 3 \(nan\). .* drop"),
    ("weight infinite", {"sample_weight": changed(np.ones(12), 3, np.inf)}, ValueError, r"first in row 3 \(inf\)"),
    ("weight negative", {"sample_weight": changed(np.ones(12), 5, -2)}, ValueError, r"1 negative .* row 5 \(-2.0\)"),
    ("weights all zero", {"sample_weight": np.zeros(12)}, ValueError, "non-zero number.* Leave sample_weight out"),
    ("weights of text", {"sample_weight": list("abcdefghijkl")}, ValueError, "must hold numbers, .* Got 'a'"),
    ("weights in two columns", {"sample_weight": np.ones((12, 2))}, ValueError, "sample_weight should be a 1d array"),
]


@pytest.mark.parametrize("method", LEARN)
@pytest.mark.parametrize(("change", "error", "match"), [case[1:] for case in DATA], ids=[case[0] for case in DATA])
def test_targets_and_weights(fitted, frame, y, method, change, error, match):
    with Unchanged(fitted, frame), pytest.raises(error, match=match):
        getattr(fitted, method)(frame, **{"y": y, **change})


def test_floats_that_are_missing_are_counted_among_several_targets():
    with pytest.raises(ValueError, match=r"y has 1 missing value, in row 2\. Drop or"):
        ge.TargetEncoder().fit([[1], [2], [1]], np.array([[0.5, 1.0], [1.0, 2.0], [1.0, np.nan]]))


@pytest.mark.parametrize("kind", ["auto", "continuous"])
@pytest.mark.parametrize(
    "make",
    [ge.TargetEncoder, ge.StatisticEncoder, partial(ge.CatBoostEncoder, "buckets")],
    ids=["mean", "statistics", "buckets"],
)
def test_floats_that_are_missing_are_counted_whoever_reads_them(make, kind):
    encoder = make() if kind == "auto" else make(target_type=kind)
    with pytest.raises(ValueError, match=r"y has 1 missing value, in row 1\. Drop or"):
        encoder.fit([[1], [2], [1]], np.array([0.5, np.nan, 1.0]))


TABLES = [
    ("no rows", lambda frame: frame[:0], ValueError, r"0 sample\(s\).* minimum of 1 is required by TargetEncoder"),
    ("no columns", lambda frame: frame[[]], ValueError, r"0 feature\(s\)"),
    ("twice the same name", lambda frame: frame.set_axis(["a", "a", "b", "b"], axis=1), ValueError, "names: a, b. Ren"),
    ("names of two types", lambda frame: frame.set_axis(["a", 1, "b", "c"], axis=1), TypeError, "have string names"),
    ("mixed types", lambda frame: frame.assign(zip=["a", 1] * 6), TypeError, "'zip' mixes str and int.* astype"),
    ("lists", lambda frame: frame.assign(zip=[[1]] * 12), TypeError, "'zip' holds list values, .* Convert the column"),
    ("infinity", lambda frame: frame.assign(zip=[np.inf] * 12), ValueError, "'zip', the first in row 0. Replace"),
    ("sparse", lambda frame: csr_array(np.eye(12)), TypeError, r"X is sparse.* dense array with .toarray\(\)"),
    ("dicts", lambda frame: frame.to_dict("records"), TypeError, "X holds dicts, not a table. Build one first"),
    ("one dimension", lambda frame: np.arange(12), ValueError, "Expected 2D array, got 1D array"),
    ("lazy", lambda frame: pl.from_pandas(frame).lazy(), TypeError, r"without rows yet. Call .collect\(\) first"),
    ("complex", lambda frame: np.ones((12, 1)) * 1j, ValueError, "Complex data not supported"),
    ("ragged", lambda frame: [[1], [1, 2]] * 6, ValueError, "rows have different lengths"),
    ("no table", lambda frame: object(), TypeError, "X of type object is not understood. Give a NumPy array"),
]


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
@pytest.mark.parametrize(("make", "error", "match"), [case[1:] for case in TABLES], ids=[case[0] for case in TABLES])
def test_tables(fitted, frame, y, method, make, error, match):
    with Unchanged(fitted, frame), pytest.raises(error, match=match):
        getattr(fitted, method)(make(frame), y)


def with_null(frame):
    return frame.assign(day=frame["day"].where(frame.index != 3))


SCHEMES = [
    ("more folds than rows", {"cv": 13}, "splits n_splits=13 greater than .* n_samples=12. Take fewer splits in KFold"),
    (
        "more folds than groups",
        {"cv": ge.GroupKFold(4, groups="shop")},
        "greater than the number of groups: n_groups=3",
    ),
    ("more times than rows", {"cv": ge.TimeFolds(13, time="day")}, "n_splits=13 greater than the number of samples"),
    ("no groups", {"cv": ge.GroupKFold(2)}, r"needs groups: name their column, .* or pass fit_transform\(X, y, groups"),
    ("no labels to stratify", {"cv": ge.KFold(2, stratify=True)}, "needs one classification target"),
    ("negative folds", {"cv": np.array([0, 1, -1] * 4)}, "fold numbers must not be negative. Row 2 has -1"),
    ("fractional folds", {"cv": np.array([0, 0.5, 1] * 4)}, "fold numbers must be integers. Row 1 has 0.5"),
    ("missing folds", {"cv": [0, 1, None] * 4}, "fold numbers holds 4 missing values, the first in row 2. Fill or"),
    ("folds of text", {"cv": list("aabbaabbaabb")}, "fold numbers must be integers. Row 0 has a"),
    ("a fold column of text", {"cv": "shop"}, "The fold numbers column 'shop' must be integers. Row 0 has p"),
    ("a fold column of dates", {"cv": "day"}, "The fold numbers column 'day' must be integers.* Got datetime values"),
    ("a single fold", {"cv": np.zeros(12, int)}, "hold a single fold, .* Give at least two folds"),
    ("too few fold numbers", {"cv": [0, 1]}, "X has 12 rows and fold numbers 2"),
    ("rows in no test set", {"cv": [(np.arange(6), np.arange(6, 12))]}, "cover each sample index exactly once"),
    ("no splits", {"cv": []}, "cv must give at least one split"),
    ("half a split", {"cv": [(1, 2, 3)]}, "each a pair of training rows and validation rows"),
    (
        "a row that is not there",
        {"cv": [([0, 12], np.arange(12))]},
        r"training rows of a split must lie in 0 \.\. 11. Got 12",
    ),
    ("half a row", {"cv": [([0.5], np.arange(12))]}, "training rows of a split must be integers or a mask"),
    ("a short mask", {"cv": [([0], np.ones(3, bool))]}, "validation mask of a split has 3 entries for 12 rows"),
]


@pytest.mark.parametrize(("parameters", "match"), [case[1:] for case in SCHEMES], ids=[case[0] for case in SCHEMES])
def test_schemes_against_rows(fitted, frame, y, parameters, match):
    with Unchanged(fitted, frame), pytest.raises(ValueError, match=match):
        fitted.set_params(**parameters).fit_transform(frame, y)
    # `fit` alone has no folds.
    fitted.set_params(**parameters).fit(frame, y)


@pytest.mark.parametrize("cv", [ge.TimeFolds(2, time="day"), ge.Ordered(time="day")])
def test_times_with_nulls(fitted, frame, y, cv):
    with Unchanged(fitted, frame), pytest.raises(ValueError, match="'day' holds 1 missing values, the first in row 3"):
        fitted.set_params(cv=cv).fit_transform(with_null(frame), y)


@pytest.mark.parametrize(
    ("groups", "match"),
    [(np.arange(11), "X has 12 rows and groups 11"), (["a", None] * 6, "given as groups holds 6 missing values")],
)
def test_groups(fitted, frame, y, groups, match):
    with Unchanged(fitted, frame), pytest.raises(ValueError, match=match):
        fitted.set_params(cv=ge.GroupKFold(2)).fit_transform(frame, y, groups=groups)


def test_a_fold_for_every_row_is_refused_before_memory_runs_out():
    X = np.zeros((20_000, 1))
    with pytest.raises(ValueError, match=r"20000 folds are more than the 10000 .* LeaveOneOut"):
        ge.TargetEncoder(cv=np.arange(20_000), target_type="continuous").fit_transform(X, np.arange(20_000.0))


def test_labels_that_cannot_be_compared(fitted, frame):
    with Unchanged(fitted, frame):
        for kind in ("auto", "binary"):
            with pytest.raises(TypeError, match=r"y mixes labels that cannot be compared: int, str. Convert them"):
                fitted.set_params(target_type=kind).fit(frame, np.array([1, "a"] * 6, dtype=object))


def test_several_targets_need_their_kinds(fitted, frame, labels):
    both = np.column_stack([labels, labels])
    with Unchanged(fitted, frame):
        with pytest.raises(
            ValueError, match=r"y holds 2 targets, .*'multilabel-indicator'.* list of one kind per target"
        ):
            fitted.set_params(target_type="auto").fit(frame, both)
        with pytest.raises(ValueError, match="y holds 2 targets, and target_type='binary' is for one"):
            fitted.set_params(target_type="binary").fit(frame, both)


def test_no_error_comes_with_a_warning_before_it(frame, labels):
    # Warnings are errors here: of too many folds the error is said, not the warning of rare classes.
    with pytest.raises(ValueError, match="n_splits=13 greater than"):
        ge.TargetEncoder(cv=13).fit_transform(frame, labels)
