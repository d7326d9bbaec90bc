"""Rows that are forgotten: the bits of an encoder that has never seen them, or an error that changes nothing."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import gpu_encode as ge
from tests.encoders.pieces import saved
from tests.family.members import AMOUNT, MERGEABLE, QUANTITY, ROWS, WEIGHTS, N
from tests.family.test_laws import fitted_attributes, members

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
FRACTIONS = np.random.default_rng(3).integers(1, 9, N) / 8
X = pd.DataFrame({"city": [*"aabbc", None], "zip": [1, 2, 2, 2, 1, 7]})
Y = np.array([1.0, 0.5, 2.0, 1e20, -3.0, 4.0])

# Encoders that count pairs of categories can only add rows.
FORGETTING = {name: entry for name, entry in MERGEABLE.items() if hasattr(entry[0](), "forget")}
ALL_COUNT = {name: entry for name, entry in FORGETTING.items() if "targets missing" not in name}
SOME_COUNT = {name: entry for name, entry in FORGETTING.items() if "targets missing" in name}


def take(y, rows):
    return None if y is None else y[rows]


def test_what_is_left_are_the_exact_means_of_the_other_rows():
    encoder = ge.TargetEncoder(smooth=0.0, columns=["zip"]).fit(X, Y).forget(X.iloc[[3, 0]], Y[[3, 0]])
    left = {1: [-3.0], 2: [0.5, 2.0], 7: [4.0]}
    means = [float(sum(map(Fraction, values)) / len(values)) for values in left.values()]
    assert encoder.categories_[0].tolist() == list(left)
    assert encoder.encodings_[0].tolist() == means


@pytest.mark.parametrize(("make", "y"), members(ALL_COUNT))
def test_forgetting_is_never_having_seen(make, y, tmp_path):
    for gone, weights in ((np.arange(30, N), None), (np.arange(0, N, 3), WEIGHTS + 1)):
        left = np.setdiff1d(np.arange(N), gone)
        expected = make().partial_fit(ROWS.iloc[left], take(y, left), sample_weight=take(weights, left))
        encoder = make().fit(ROWS, y, sample_weight=weights)
        encoder.forget(ROWS.iloc[gone], take(y, gone), sample_weight=take(weights, gone))
        assert fitted_attributes(encoder) == fitted_attributes(expected)
        pd.testing.assert_frame_equal(
            encoder.transform(ROWS.iloc[left]), expected.transform(ROWS.iloc[left]), check_exact=True
        )
        assert saved(encoder, tmp_path) == saved(expected, tmp_path)


@pytest.mark.parametrize(("make", "y"), members(SOME_COUNT))
def test_rows_without_a_target_do_not_keep_a_category(make, y):
    gone = np.arange(0, N, 3)
    left = np.setdiff1d(np.arange(N), gone)
    expected = make().partial_fit(ROWS.iloc[left], take(y, left))
    encoder = make().fit(ROWS, y).forget(ROWS.iloc[gone], take(y, gone))
    for mine, theirs in zip(encoder.categories_, expected.categories_, strict=True):
        assert set(map(str, mine)) <= set(map(str, theirs))
    # The ordinal encoder refuses an unknown category.
    rows = (
        ROWS.iloc[left][~pd.isna(take(y, left)).reshape(len(left), -1).any(axis=1)]
        if "order" in vars(encoder)
        else ROWS
    )
    pd.testing.assert_frame_equal(encoder.transform(rows), expected.transform(rows), check_exact=True)


def test_a_window_slides(tmp_path):
    labels = np.array(["x", "y", "z"])[np.arange(N) % 7 % 3]
    labels[:20] = "only at first"
    encoder = ge.TargetEncoder(columns=["city", ("zip", "city")], target_type="multiclass", indicators=True)
    sliding = ge.load(tmp_path / "model") if saved(encoder.fit(ROWS[:30], labels[:30]), tmp_path) else None
    for start in range(0, 60, 10):
        old, new = slice(start, start + 10), slice(start + 30, start + 40)
        sliding.partial_fit(ROWS[new], labels[new]).forget(ROWS[old], labels[old])
        held = slice(start + 10, start + 40)
        whole = ge.TargetEncoder(**encoder.get_params()).fit(ROWS[held], labels[held])
        assert saved(sliding, tmp_path) == saved(whole, tmp_path)
        assert fitted_attributes(sliding) == fitted_attributes(whole)


def test_weights_with_fractions_and_given_categories(tmp_path):
    y = np.sin(np.arange(N)) * 10.0 ** (np.arange(N) % 30)
    parameters = {"columns": ["city", "zip"], "categories": [["a", "zz", None], list(range(150))]}
    first, rest = slice(0, 50), slice(50, N)
    encoder = ge.TargetEncoder(**parameters).fit(ROWS, y, sample_weight=FRACTIONS)
    encoder.forget(ROWS[rest], y[rest], sample_weight=FRACTIONS[rest])
    other = ge.TargetEncoder(**parameters).partial_fit(ROWS[first], y[first], sample_weight=FRACTIONS[first])
    assert saved(encoder, tmp_path) == saved(other, tmp_path)


NEVER_THERE = {
    "a category": (X.iloc[[0]].assign(city="new"), [1.0], "'new'"),
    "a missing value": (X.iloc[[5]].assign(zip=[1]), [4.0], "not learned so many"),
    "too many rows": (X.iloc[[4, 4]], [-3.0, -3.0], "not learned so many of: the rows of 'c'"),
    "another target": (X.iloc[[4]], [-2.0], "would leave impossible sums"),
    "squares": (X.iloc[[0]], [1e9], "would leave impossible sums"),
    "all rows": (X, Y, "would leave no rows"),
}


@pytest.mark.parametrize(("rows", "y", "message"), NEVER_THERE.values(), ids=NEVER_THERE)
def test_rows_that_were_never_there_change_nothing(rows, y, message, tmp_path):
    encoder = ge.TargetEncoder(target_type="continuous").fit(X, Y)
    before = saved(encoder, tmp_path)
    with pytest.raises(ValueError, match=message):
        encoder.forget(rows, y)
    assert saved(encoder, tmp_path) == before


def test_labels_that_were_never_there(tmp_path):
    encoder = ge.TargetEncoder(target_type="multiclass", columns=["zip"]).fit(X, list("pqrppq"))
    before = saved(encoder, tmp_path)
    for label in "zr":
        with pytest.raises(ValueError, match="has not learned"):
            encoder.forget(X.iloc[[0]], [label])
    assert saved(encoder, tmp_path) == before


def test_who_cannot_forget():
    with pytest.raises(ValueError, match="not fitted"):
        ge.TargetEncoder().forget(X, Y)
    assert not hasattr(ge.SpectralEncoder(), "forget")
    assert not hasattr(ge.FactorizationEncoder(), "forget")
    with pytest.raises(ValueError, match="forget has no folds"):
        ge.TargetEncoder(cv=ge.KFold(2, blow_up=True)).fit(X, Y).forget(X[:1], Y[:1])


@pytest.mark.parametrize("cv", [ge.Holdout(), ge.Holdout(mask="held"), {"city": 3, "zip": ge.Holdout(0.3)}], ids=str)
def test_calibration_rows_are_not_told_from_others(cv):
    encoder = ge.TargetEncoder(columns=["city", "zip"], cv=cv, **QUANTITY).fit(ROWS, AMOUNT)
    for call in (encoder.forget, encoder.partial_fit):
        with pytest.raises(ValueError, match=r"cannot tell which rows .* calibrate.*Holdout\(new_rows=\"all\"\)"):
            call(ROWS[:9], AMOUNT[:9])


def test_a_kind_that_auto_would_not_find_again_is_named():
    X, rows = [["a"], ["a"], ["b"], ["b"], ["a"]], slice(4, 5)
    for y, kind in ([*"xyxyz"], "multiclass"), ([1, 2, 1, 2, 0.5], "continuous"):
        encoder, left = ge.TargetEncoder(smooth=None).fit(X, y), slice(0, 4)
        with pytest.raises(ValueError, match=f'set_params\\(target_type="{kind}"'):
            encoder.forget(X[rows], y[rows])
        expected = ge.TargetEncoder(smooth=None, target_type=kind).fit(X[left], y[left])
        encoder.set_params(target_type=kind).forget(X[rows], y[rows])
        assert encoder.transform(X).tolist() == expected.transform(X).tolist()


def test_buckets_of_given_borders_stay():
    y, made = np.array([0.0, 1.0, 0.0, 2.0]), ge.CatBoostEncoder("buckets", borders=[0.5, 1.5])
    expected = ge.CatBoostEncoder("buckets", borders=[0.5, 1.5]).fit(X[["zip"]][:2], y[:2])
    made.fit(X[["zip"]][:4], y).forget(X[["zip"]][2:4], y[2:])
    pd.testing.assert_frame_equal(made.transform(X[["zip"]]), expected.transform(X[["zip"]]), check_exact=True)
