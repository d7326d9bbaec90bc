"""The rows that each row sees, for every scheme and splitter."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn import model_selection

from gpu_encode import GroupKFold, KFold, Ordered, TargetEncoder, TimeFolds
from gpu_encode.schemes.plans import Request, RowsAtHand, assign
from gpu_encode.seam.ops import resolve
from tests.encoders.visibility import (
    FRAME,
    ROW,
    SIZE,
    encoder,
    folds_of,
    other_folds,
    seen_by_new_rows,
    shares,
    visible,
)

EVEN, ODD = ROW[ROW % 2 == 0], ROW[ROW % 2 == 1]
DEFINED = {
    "a column": ("fold", FRAME["fold"]),
    "an array": (ROW % 3, ROW % 3),
    "a list": ((ROW % 3).tolist(), ROW % 3),
    "a tuple of floats": (tuple((ROW % 3).astype(float)), ROW % 3),
    "pandas": (pd.Series(ROW % 3, index=ROW[::-1], dtype="Int8"), ROW % 3),
    "polars": (pl.Series(ROW % 3), ROW % 3),
    "arrow": (pa.array(ROW % 3), ROW % 3),
    "objects": (np.array((ROW % 3).tolist(), dtype=object), ROW % 3),
    "far apart": (ROW % 3 * 10**9, ROW % 3),
    "two of them": (ROW > 5, ROW > 5),
    "scikit-learn's": (model_selection.KFold(3), ROW // 8),
    "predefined": (model_selection.PredefinedSplit(ROW % 4), ROW % 4),
    "an iterable of splits": (((ROW[fold != ROW % 4], ROW[fold == ROW % 4]) for fold in range(4)), ROW % 4),
    "a list of splits": ([(EVEN.tolist(), ODD.tolist()), (ODD, EVEN)], ROW % 2),
    "masks": ([(ROW % 2 == 0, ROW % 2 == 1), (ROW % 2 == 1, ROW % 2 == 0)], ROW % 2),
}


@pytest.mark.host
@pytest.mark.parametrize(("cv", "folds"), DEFINED.values(), ids=DEFINED.keys())
def test_folds_see_all_others(cv, folds):
    np.testing.assert_array_equal(visible(cv), other_folds(folds))


@pytest.mark.host
def test_an_integer_is_so_many_stateless_folds():
    np.testing.assert_array_equal(visible(3), visible(KFold(3)))
    np.testing.assert_array_equal(visible(None), visible(KFold(5)))
    whole = encoder(3, shuffle=False).fit_transform(FRAME, np.eye(SIZE)).to_numpy()[:, :SIZE] > 0
    np.testing.assert_array_equal(whole, other_folds(ROW // 8))


@pytest.mark.long
def test_random_folds_depend_on_the_seed_alone():
    def folds(seed, frame=FRAME):
        return visible(KFold(3, random_state=seed), frame)

    np.testing.assert_array_equal(folds(4), folds(4))
    assert (folds(4) != folds(5)).any()
    assert len({folds(None).tobytes() for _ in range(4)}) > 1
    for make in (np.random.RandomState, np.random.default_rng):
        np.testing.assert_array_equal(folds(make(7)), folds(make(7)))
        assert (folds(make(7)) != folds(make(8))).any()
    # A row's fold is a function of its number: fewer rows, the same folds.
    np.testing.assert_array_equal(folds(4, FRAME[:15]), folds(4)[:15, :15])


@pytest.mark.parametrize("order", ["random", "contiguous", "interleaved"])
def test_stratified_folds_are_even_in_every_class(order):
    labels, backend = np.repeat([0, 1, 2], [11, 9, 4]).astype(np.int32), resolve(SIZE)
    plan = KFold(3, stratify=True, order=order).plan(Request(SIZE, {}, [np.bincount(labels)], {}))
    folds = backend.to_host(assign(plan, RowsAtHand(backend, SIZE, {}, labels)).folds)
    for label in range(3):
        sizes = np.bincount(folds[labels == label], minlength=3)
        assert sizes.max() - sizes.min() <= 1 + (labels == label).sum() % 3


@pytest.mark.host
@pytest.mark.parametrize(
    ("cv", "metadata"),
    [
        (GroupKFold(3, groups=1), {}),
        (GroupKFold(3), {"groups": FRAME["group"]}),
        (GroupKFold(3), {"groups": [f"g{group}" for group in FRAME["group"]]}),
        (model_selection.GroupKFold(3), {"groups": FRAME["group"]}),
        (model_selection.LeaveOneGroupOut(), {"groups": FRAME["group"]}),
    ],
)
def test_groups_are_never_split(cv, metadata):
    sees = visible(cv, **metadata)
    group = FRAME["group"].to_numpy()
    assert not sees[group[:, None] == group[None, :]].any()
    folds = folds_of(sees)
    assert len(set(folds)) == (7 if isinstance(cv, model_selection.LeaveOneGroupOut) else 3)


@pytest.mark.host
@pytest.mark.parametrize(("n_splits", "gap"), [(2, 0), (6, 3)])
@pytest.mark.parametrize(
    "make", [lambda time: time, lambda time: pd.to_datetime(time, unit="D"), lambda time: time / 7]
)
def test_time_folds_see_earlier_folds_but_for_the_gap(n_splits, gap, make):
    time = FRAME["time"].to_numpy()
    earlier = (time[None, :] < time[:, None]).sum(axis=1)
    fold = earlier * n_splits // SIZE
    cv = TimeFolds(n_splits, time="time", gap=gap)
    sees = visible(cv, FRAME.assign(time=make(FRAME["time"])))
    np.testing.assert_array_equal(sees, fold[None, :] < fold[:, None] - gap)
    with pytest.warns(UserWarning, match=f"{(fold <= gap).sum()} rows see no rows at all and get NaN"):
        encodings = encoder(cv).fit_transform(FRAME, ROW)
    np.testing.assert_array_equal(encodings["one"].isna(), fold <= gap)


@pytest.mark.parametrize(("burn_in", "rows"), [(0.25, 6), (100, SIZE)])
def test_the_first_rows_of_an_order_may_be_left_out(burn_in, rows):
    encodings = encoder(Ordered(burn_in=burn_in)).fit_transform(FRAME, ROW)["one"]
    assert encodings.isna().sum() == rows
    whole = encoder(Ordered()).fit_transform(FRAME, ROW)["one"]
    np.testing.assert_array_equal(encodings[encodings.notna()], whole[encodings.notna()])


@pytest.mark.parametrize("kind", ["continuous", "binary"])
def test_blow_up_columns_are_the_encodings_of_each_folds_encoder(frame, y, labels, kind):
    target = y if kind == "continuous" else labels
    parameters = {"columns": ["city", ("city", "shop")], "indicators": True}
    blown = TargetEncoder(cv=KFold(3, order="interleaved", blow_up=True), **parameters)
    trained = blown.fit_transform(frame, target)
    # The same columns for training and for new rows, after fit or fit_transform.
    pd.testing.assert_frame_equal(blown.transform(frame), trained, check_exact=True)
    pd.testing.assert_frame_equal(blown.fit(frame, target).transform(frame), trained, check_exact=True)
    for fold in range(3):
        others = np.arange(12) % 3 != fold
        alone = TargetEncoder(target_type=kind, **parameters).fit(frame[others], target[others]).transform(frame)
        for name in ("city", "city_x_shop"):
            assert trained[f"{name}_fold{fold}"].equals(alone[name])


def test_rows_that_see_nothing_get_nan_whatever_the_encoding_of_unseen_values():
    X = np.array([["a", 1], ["b", 1], ["a", 2], ["c", 2]], dtype=object)
    encoder = TargetEncoder(cv=Ordered(time=1), handle_unknown=-5.0, target_type="continuous")
    with pytest.warns(UserWarning, match="2 rows see no rows at all"):
        encodings = encoder.fit_transform(X, [0.0, 1.0, 1.0, 0.0])[:, 0]
    assert np.isnan(encodings[:2]).all()
    assert encodings[3] == -5.0


def purged(gap):
    """Split into four blocks; rows within `gap` of the test rows are in no training set."""
    for block in range(4):
        test = np.flatnonzero(block == ROW // 6)
        yield np.flatnonzero((test[0] - gap > ROW) | (test[-1] + gap < ROW)), test


@pytest.mark.parametrize("masks", [False, True])
def test_splits_that_are_no_unions_of_folds(masks):
    splits = list(purged(2))
    expected = np.zeros((SIZE, SIZE), bool)
    for train, test in splits:
        expected[np.ix_(test, train)] = True
    given = [(np.isin(ROW, train), test) for train, test in splits] if masks else splits
    np.testing.assert_array_equal(visible(given), expected)
    assert seen_by_new_rows(given).all()


def test_splits_may_see_a_row_twice():
    splits = [(np.array([6, 6, 7, 8]), ROW[:6]), (ROW[:3], ROW[6:])]
    weights = shares(splits)
    assert weights[0, 6:9].tolist() == [0.5, 0.25, 0.25]
    assert weights[6, :3].tolist() == [1 / 3] * 3


def test_splits_of_several_categories_smoothings_and_indicators(frame, y):
    fold = np.arange(12) % 3
    by_fold = [(np.flatnonzero(fold != number), np.flatnonzero(fold == number)) for number in range(3)]
    # One row more in a training set takes the path of any splits, and changes that split's encodings alone.
    by_fold[0] = (np.append(by_fold[0][0], 1), by_fold[0][1])
    expected = TargetEncoder(cv=fold, indicators=True).fit_transform(frame, y)
    encodings = TargetEncoder(cv=by_fold, indicators=True).fit_transform(frame, y)
    pd.testing.assert_frame_equal(encodings[fold > 0], expected[fold > 0], check_exact=True)
    assert not encodings[fold == 0].equals(expected[fold == 0])


class Counted:
    """A splitter that counts its calls."""

    calls = 0

    def split(self, X, y=None, groups=None):
        self.calls += 1
        self.given = X, y
        return model_selection.KFold(2).split(X, y)


def test_a_splitter_is_asked_once_with_what_was_given():
    cv, y = Counted(), np.column_stack([ROW, ROW])
    encoder(cv).fit_transform(FRAME, y)
    assert cv.calls == 1
    assert cv.given[0] is FRAME
    assert cv.given[1] is y
    encoder(cv).fit(FRAME, y)
    assert cv.calls == 1
