"""Who looks at whom, by every scheme."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn import model_selection

from gpu_encode import GroupKFold, Holdout, KFold, Ordered, TargetEncoder, TimeFolds
from gpu_encode.ops import resolve
from gpu_encode.schemes.plans import Request, RowsAtHand, assign
from gpu_encode.sums.targets import Target
from tests.encoders.visibility import FRAME, ROW, SIZE, encoder, folds_of, other_folds, seen_by_new_rows, visible

DEFINED = {
    "interleaved": (KFold(5, order="interleaved"), ROW % 5),
    "contiguous": (KFold(3, order="contiguous"), ROW // 8),
    "contiguous, not a divisor": (KFold(5, order="contiguous"), np.repeat(np.arange(5), [5, 5, 5, 5, 4])),
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
    "an iterable of splits": (
        ((np.flatnonzero(fold != ROW % 4), np.flatnonzero(fold == ROW % 4)) for fold in range(4)),
        ROW % 4,
    ),
    "a list of splits": (
        [(ROW[ROW % 2 == 0].tolist(), ROW[ROW % 2 == 1].tolist()), (ROW[ROW % 2 == 1], ROW[ROW % 2 == 0])],
        ROW % 2,
    ),
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


def test_stratified_folds_are_even_in_every_class():
    labels = np.array([0] * 11 + [1] * 9 + [2] * 4)
    target = Target(None, "multiclass", labels.astype(np.int32), np.arange(3))
    for order in ("random", "contiguous", "interleaved"):
        scheme = KFold(3, stratify=True, order=order)
        backend = resolve(SIZE)
        plan = scheme.plan(Request(SIZE, {}, [np.bincount(labels)]))
        rows = RowsAtHand(backend, SIZE, {}, target.values)
        folds = backend.to_host(assign(plan, rows).folds)
        for label in range(3):
            sizes = np.bincount(folds[labels == label], minlength=3)
            assert sizes.max() - sizes.min() <= 1 + (labels == label).sum() % 3
        codes = TargetEncoder(cv=scheme, columns=["one"]).fit_transform(FRAME, labels)
        assert len(np.unique(codes["one_0"])) <= 3


@pytest.mark.host
@pytest.mark.parametrize(
    ("cv", "metadata"),
    [
        (GroupKFold(3, groups="group"), {}),
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
@pytest.mark.parametrize(("n_splits", "gap"), [(2, 0), (4, 0), (5, 1), (6, 3)])
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
        codes = encoder(cv).fit_transform(FRAME, ROW)
    np.testing.assert_array_equal(codes["one"].isna(), fold <= gap)


@pytest.mark.parametrize("fraction", [0.3, 0.5, 0.125, 0.9])
def test_holdout(fraction):
    cv = Holdout(fraction, random_state=3)
    calibration = seen_by_new_rows(cv)
    assert abs(calibration.sum() - fraction * SIZE) <= 3
    np.testing.assert_array_equal(visible(cv), calibration[:, None] != calibration[None, :])


def test_permutations_are_averaged_or_side_by_side():
    y = np.sin(ROW)
    columns = encoder(Ordered(3, average=False)).fit_transform(FRAME, y).to_numpy()[:, :3]
    assert len({column.tobytes() for column in columns.T}) == 3
    average = encoder(Ordered(3)).fit_transform(FRAME, y)["one"]
    np.testing.assert_allclose(average, columns.mean(axis=1), rtol=0, atol=1e-15)
    np.testing.assert_array_equal(columns[:, 0], encoder(Ordered()).fit_transform(FRAME, y)["one"])
    new = encoder(Ordered(3, average=False)).fit(FRAME, y).transform(FRAME).to_numpy()[:, :3]
    assert len(np.unique(new)) == 1


@pytest.mark.parametrize(("burn_in", "rows"), [(0, 0), (5, 5), (0.25, 6), (100, SIZE)])
def test_the_first_rows_of_an_order_may_be_left_out(burn_in, rows):
    codes = encoder(Ordered(burn_in=burn_in)).fit_transform(FRAME, ROW)["one"]
    assert codes.isna().sum() == rows
    whole = encoder(Ordered()).fit_transform(FRAME, ROW)["one"]
    np.testing.assert_array_equal(codes[codes.notna()], whole[codes.notna()])


@pytest.mark.parametrize("kind", ["continuous", "binary"])
@pytest.mark.parametrize("order", ["random", "contiguous", "interleaved"])
def test_blow_up_columns_are_the_codes_of_each_folds_encoder(frame, y, labels, kind, order):
    target = y if kind == "continuous" else labels
    parameters = {"columns": ["city", ("city", "shop")], "indicators": True}
    blown = TargetEncoder(cv=KFold(3, order=order, blow_up=True), **parameters)
    trained = blown.fit_transform(frame, target)
    # The same columns for training and for new rows, after fit or fit_transform.
    pd.testing.assert_frame_equal(blown.transform(frame), trained, check_exact=True)
    fitted = TargetEncoder(**blown.get_params(deep=False)).fit(frame, target)
    pd.testing.assert_frame_equal(fitted.transform(frame), trained, check_exact=True)
    sees = encoder(KFold(3, order=order)).fit_transform(frame.assign(one="x"), np.eye(12)).to_numpy()[:, :12] > 0
    # Fold k's encoder was fitted on the rows that fold k sees.
    matched = set()
    for others in np.unique(sees, axis=0):
        alone = TargetEncoder(target_type=kind, **parameters).fit(frame[others], target[others]).transform(frame)
        columns = [
            fold
            for fold in range(3)
            if all(trained[f"{name}_fold{fold}"].equals(alone[name]) for name in ("city", "city_x_shop"))
        ]
        assert columns
        matched |= set(columns)
    assert matched == {0, 1, 2}


def test_rows_that_see_nothing_get_nan_whatever_the_code_of_unseen_values():
    X = np.array([["a", 1], ["b", 1], ["a", 2], ["c", 2]], dtype=object)
    encoder = TargetEncoder(cv=Ordered(time=1), handle_unknown=-5.0, target_type="continuous")
    with pytest.warns(UserWarning, match="2 rows see no rows at all"):
        codes = encoder.fit_transform(X, [0.0, 1.0, 1.0, 0.0])[:, 0]
    assert np.isnan(codes[:2]).all()
    assert codes[3] == -5.0
