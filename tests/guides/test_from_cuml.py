"""The statements of `docs/from-cuml.md` about numbers, compared with cuML's formulas."""

import numpy as np
import pandas as pd
import pytest

from gpu_encode import Greedy, KFold, LeaveOneOut, TargetEncoder
from tests.guides.cuml_formula import TargetEncoder as OfCuML
from tests.guides.exact_rows import FOLDS, SMOOTH_OF_FITTED, SMOOTH_OF_TRAINED, fitted_rows, trained_rows

KEYS = [["shop"], ["street", "number"]]
INTERLEAVED = KFold(FOLDS, order="interleaved")


def entry(names):
    """Encode as one key what cuML's "combination" mode encodes as one."""
    return [names[0] if len(names) == 1 else tuple(names)]


def encoder(names, **parameters):
    return TargetEncoder(columns=entry(names), **{"cv": INTERLEAVED, "handle_missing": "prior"} | parameters)


def encodings(frame):
    return frame.iloc[:, :1].to_numpy()


@pytest.mark.parametrize("names", KEYS)
@pytest.mark.parametrize("smooth", [0, SMOOTH_OF_FITTED])
def test_new_rows_get_the_same_bits(names, smooth):
    frame, target = fitted_rows()
    new = pd.concat([frame[3:40], pd.DataFrame({"shop": ["?"], "street": ["?"], "number": [9]})])
    theirs = OfCuML(smooth=smooth).fit(frame[names], target).transform(new[names])
    ours = encoder(names, smooth=smooth).fit(frame[names], target).transform(new[names])
    np.testing.assert_array_equal(encodings(ours), theirs)
    assert len(np.unique(theirs)) > 5


@pytest.mark.parametrize("names", KEYS)
@pytest.mark.parametrize("smooth", [0, SMOOTH_OF_TRAINED])
def test_training_rows_get_the_same_bits_once_the_prior_is_that_of_all_rows(names, smooth):
    frame, target = trained_rows()
    theirs = OfCuML(smooth=smooth).fit_transform(frame[names], target)
    ours = encoder(names, smooth=smooth, prior=float(target.mean())).fit_transform(frame[names], target)
    np.testing.assert_array_equal(encodings(ours), theirs)


@pytest.mark.parametrize("smooth", [0, SMOOTH_OF_TRAINED])
def test_training_rows_differ_by_the_share_of_the_prior_times_the_difference_of_the_priors(smooth):
    frame, target = trained_rows()
    theirs = OfCuML(smooth=smooth).fit_transform(frame[["shop"]], target)
    ours = encodings(encoder(["shop"], smooth=smooth).fit_transform(frame[["shop"]], target))
    folds = np.arange(len(frame)) % FOLDS
    seen = [target[folds != fold].mean() for fold in range(FOLDS)]
    shops = frame["shop"].to_numpy()
    counts = np.array([((shops == shop) & (folds != fold)).sum() for shop, fold in zip(shops, folds, strict=True)])
    share = np.where(counts == 0, 1.0, smooth / np.maximum(counts + smooth, 1))
    by = share * (np.array(seen)[folds] - target.mean())
    np.testing.assert_allclose((ours - theirs).ravel(), by, rtol=0, atol=1e-12)
    assert (np.abs(by) > 0.1).sum() == (8 if smooth == 0 else len(frame))


def test_a_row_sees_its_own_target_through_their_prior_and_not_through_ours():
    frame, target = trained_rows()
    alone = frame["shop"].map(frame["shop"].value_counts()).to_numpy() == 1
    changed = target.copy()
    changed[np.flatnonzero(alone)[0]] += 1000.0
    moved = [
        made.fit_transform(frame[["shop"]], changed) - made.fit_transform(frame[["shop"]], target)
        for made in (OfCuML(), TargetEncoder(cv=INTERLEAVED, smooth=0))
    ]
    row = np.flatnonzero(alone)[0]
    assert np.asarray(moved[0])[row, 0] == 1000.0 / 64
    assert np.asarray(moved[1])[row, 0] == 0.0


def test_their_folds_can_be_given():
    frame, target = trained_rows()
    folds = np.repeat([2, 0, 1, 0], 16)
    theirs = OfCuML(split_method="customize").fit_transform(frame[["shop"]], target, fold_ids=folds)
    ours = encoder(["shop"], smooth=0, cv=folds, prior=float(target.mean())).fit_transform(frame[["shop"]], target)
    np.testing.assert_allclose(encodings(ours), theirs, rtol=1e-14)
    in_column = frame[["shop"]].assign(fold=folds)
    named = encoder(["shop"], smooth=0, cv="fold", prior=float(target.mean())).fit_transform(in_column, target)
    np.testing.assert_array_equal(encodings(named), encodings(ours))


def test_random_folds_are_drawn_one_by_one_there_and_nearly_even_here():
    rows = pd.DataFrame({"same": np.zeros(1020, int)})
    target = np.arange(1020) ** 1.5
    theirs = np.bincount(OfCuML(split_method="random").fit(rows, target).folds)
    # A column of one value has for its encoding the mean of the other folds, which tells the folds apart.
    ours = np.unique(TargetEncoder(cv=KFold(FOLDS), smooth=0).fit_transform(rows, target), return_counts=True)[1]
    assert len(theirs) == len(ours) == FOLDS
    # Rows are dealt out in blocks of 4, 8, 16, ... 512 rows, as many to each fold.
    assert ours.tolist() == [255] * FOLDS
    assert np.ptp(theirs) > 10


def test_continuous_folds_are_leave_one_out_there_and_blocks_here():
    frame, target = trained_rows()
    theirs = OfCuML(split_method="continuous").fit(frame[["shop"]], target)
    assert len(set(theirs.folds)) == len(frame)
    parameters = {"smooth": 0, "prior": float(target.mean())}
    alike = encoder(["shop"], cv=LeaveOneOut(), **parameters).fit_transform(frame[["shop"]], target)
    np.testing.assert_allclose(encodings(alike), theirs.train_encode, rtol=1e-13)
    blocks = OfCuML().fit_transform(frame[["shop"]], target, fold_ids=np.repeat(range(FOLDS), 16))
    ours = encoder(["shop"], cv=KFold(FOLDS, order="contiguous"), **parameters).fit_transform(frame[["shop"]], target)
    np.testing.assert_allclose(encodings(ours), blocks, rtol=1e-14)
    assert (blocks != theirs.train_encode).any()


def test_independent_columns_are_not_cross_fitted_there():
    frame, target = trained_rows()
    names = ["street", "number"]
    theirs = OfCuML(multi_feature_mode="independent").fit_transform(frame[names], target)
    with pytest.warns(UserWarning, match="Greedy training encodings contain"):
        greedy = TargetEncoder(cv=Greedy(), smooth=0).fit_transform(frame[names], target)
    np.testing.assert_allclose(greedy, theirs, rtol=1e-14)
    cross_fitted = TargetEncoder(cv=INTERLEAVED, smooth=0).fit_transform(frame[names], target)
    assert (cross_fitted != theirs).any(axis=None)


def test_transform_asks_whether_the_frame_is_the_training_frame_there_and_never_here():
    frame, target = fitted_rows()
    X, reversed_rows = frame[["shop"]], frame[["shop"]][::-1]
    theirs = OfCuML().fit(X, target)
    assert (theirs.transform(X) != theirs.transform(reversed_rows)[::-1]).any()
    ours = encoder(["shop"], smooth=0).fit(X, target)
    np.testing.assert_array_equal(encodings(ours.transform(X)), encodings(ours.transform(reversed_rows))[::-1])
    np.testing.assert_array_equal(encodings(ours.transform(X)), theirs.transform(reversed_rows)[::-1])
    assert (encodings(ours.fit_transform(X, target)) != encodings(ours.transform(X))).any()


def test_nulls_get_the_prior_there_and_are_a_category_here():
    frame, target = fitted_rows()
    for names in KEYS:
        X = frame[names].astype(object)
        X.loc[frame["shop"] == "shop 0", names[0]] = None
        theirs = OfCuML().fit(X, target).transform(X[::-1])[::-1]
        null = X[names[0]].isna().to_numpy()
        assert (theirs[null] == target.mean()).all()
        ours = encoder(names, smooth=0, handle_missing="prior").fit(X, target)
        np.testing.assert_array_equal(encodings(ours.transform(X)), theirs)
        by_default = encoder(names, smooth=0, handle_missing="category").fit(X, target)
        assert (encodings(by_default.transform(X))[null] == target[null].mean()).all()


@pytest.mark.parametrize("labels", [(0.0, 3.0), (3, 7), (False, True), ("no", "yes")])
def test_two_values_are_recoded_unless_the_target_is_called_continuous(labels):
    frame, target = fitted_rows()
    two = np.array(labels)[(target > 0).astype(int)]
    theirs = OfCuML(smooth=4).fit(frame[["shop"]], two)
    ours = encoder(["shop"], smooth=4).fit(frame[["shop"]], two)
    assert ours.target_type_ == theirs.target_type_ == "binary"
    assert ours.classes_.tolist() == theirs.classes_.tolist()
    np.testing.assert_allclose(encodings(ours.transform(frame[5:])), theirs.transform(frame[["shop"]][5:]), rtol=1e-15)
    if not isinstance(labels[0], str):
        as_quantity = encoder(["shop"], smooth=4, target_type="continuous").fit(frame[["shop"]], two)
        assert as_quantity.target_mean_ == np.mean(two.astype(float))
