"""The statements of `docs/from-nvtabular.md` about numbers, compared with NVTabular's formulas."""

import numpy as np
import pandas as pd
import pytest

from gpu_encode import KFold, TargetEncoder
from tests.guides.exact_rows import SMOOTH_OF_FITTED, SMOOTH_OF_TRAINED, fitted_rows, trained_rows
from tests.guides.nvtabular_formula import TargetEncoding, folds_of

GROUPS = ["shop", ["street", "number"]]
COLUMNS = ["shop", ("street", "number")]


def with_target(rows):
    frame, target = rows
    return frame.assign(sold=target)


def encoder(**parameters):
    return TargetEncoder(columns=COLUMNS, **{"target_type": "continuous", "dtype": "float32"} | parameters)


def assert_same_bits(ours, theirs):
    assert (ours.to_numpy().dtype, theirs.to_numpy().dtype) == (np.float32, np.float32)
    np.testing.assert_array_equal(ours.to_numpy(), theirs.to_numpy())
    assert len(np.unique(theirs)) > 5


def test_without_folds_new_rows_get_the_same_bits():
    frame = with_target(fitted_rows())
    new = pd.concat([frame[5:], pd.DataFrame({"shop": ["?"], "street": ["?"], "number": [9]})])
    theirs = TargetEncoding(GROUPS, ["sold"], kfold=1, p_smooth=SMOOTH_OF_FITTED).fit([frame]).transform(new)
    fitted = encoder(smooth=SMOOTH_OF_FITTED).fit(frame.drop(columns="sold"), frame["sold"])
    assert_same_bits(fitted.transform(new.drop(columns="sold")), theirs)


def test_training_rows_get_the_same_bits_with_their_folds_and_the_prior_of_all_rows():
    frame = with_target(trained_rows())
    theirs = TargetEncoding(GROUPS, ["sold"], kfold=4, fold_seed=None, p_smooth=SMOOTH_OF_TRAINED).fit([frame])
    made = encoder(
        smooth=SMOOTH_OF_TRAINED, cv=KFold(4, order="interleaved"), prior=float(frame["sold"].mean())
    ).fit_transform(frame.drop(columns="sold"), frame["sold"])
    assert_same_bits(made, theirs.transform(frame))


def test_folds_of_a_seed_can_be_given():
    frame = with_target(trained_rows())
    theirs = TargetEncoding(["shop"], ["sold"], kfold=3, fold_seed=42, p_smooth=20).fit([frame]).transform(frame)
    folds = np.random.RandomState(42).choice(np.arange(3, dtype="uint8"), len(frame))
    given = TargetEncoder(cv=folds, smooth=20, prior=float(frame["sold"].mean()))
    ours = given.fit_transform(frame[["shop"]], frame["sold"])
    np.testing.assert_allclose(ours, theirs, rtol=2**-24)


def test_the_prior_of_visible_rows_is_what_remains():
    frame = with_target(trained_rows())
    theirs = TargetEncoding(["shop"], ["sold"], kfold=4, fold_seed=None, p_smooth=20).fit([frame]).transform(frame)
    ours = TargetEncoder(cv=KFold(4, order="interleaved"), smooth=20).fit_transform(frame[["shop"]], frame["sold"])
    folds = np.arange(len(frame)) % 4
    seen = np.array([frame["sold"][folds != fold].mean() for fold in range(4)])[folds]
    shops = frame["shop"].to_numpy()
    counts = np.array([((shops == shop) & (folds != fold)).sum() for shop, fold in zip(shops, folds, strict=True)])
    by = 20 / (counts + 20) * (seen - frame["sold"].mean())
    np.testing.assert_allclose((ours.to_numpy() - theirs.to_numpy()).ravel(), by, rtol=0, atol=1e-4)
    assert (np.abs(by) > 1).any()


def test_folds_of_the_peer_depend_on_the_partitions_and_ours_on_the_row_number():
    frame = with_target(trained_rows())
    X, y = frame[["shop"]], frame["sold"]
    whole = TargetEncoding(["shop"], ["sold"]).fit([frame]).transform(frame)
    parts = [frame[:24], frame[24:]]
    by_parts = TargetEncoding(["shop"], ["sold"]).fit(parts)
    assert (pd.concat([by_parts.transform(part) for part in parts]) != whole).any(axis=None)
    assert (folds_of(24, 3, 42) == folds_of(64, 3, 42)[:24]).all()
    made = TargetEncoder().partial_fit(X[:24], y[:24]).partial_fit(X[24:], y[24:])
    np.testing.assert_array_equal(made.transform(X), TargetEncoder().fit(X, y).transform(X))


def test_new_rows_are_encoded_out_of_fold_there():
    frame = with_target(fitted_rows())
    theirs = TargetEncoding(["shop"], ["sold"], kfold=3, p_smooth=SMOOTH_OF_FITTED).fit([frame])
    ten_alike = pd.DataFrame({"shop": ["shop 0"] * 10})
    assert theirs.transform(ten_alike)["TE_shop_sold"].nunique() == 3
    fitted = TargetEncoder(smooth=SMOOTH_OF_FITTED).fit(frame[["shop"]], frame["sold"])
    assert fitted.transform(ten_alike)["shop"].nunique() == 1


def test_a_category_that_a_fold_never_had_gets_the_mean_there():
    frame = pd.DataFrame({"shop": ["a", "b", "b", "b", "b", "b"], "sold": [64.0, 1.5, 1.5, 1.5, 1.5, 1.5]})
    theirs = TargetEncoding(["shop"], ["sold"], kfold=3, fold_seed=None, p_smooth=0).fit([frame])
    new = pd.DataFrame({"shop": ["b", "a"]})
    assert theirs.transform(new)["TE_shop_sold"][1] == np.float32(frame["sold"].mean())
    fitted = TargetEncoder(smooth=0).fit(frame[["shop"]], frame["sold"])
    assert fitted.transform(new)["shop"][1] == 64.0


@pytest.mark.parametrize("kfold", [1, 4])
def test_a_null_key_is_counted_as_no_rows_there_and_is_a_category_here(kfold):
    frame = with_target(fitted_rows())
    frame["shop"] = frame["shop"].astype(object).where(frame["shop"] != "shop 1", None)
    null = frame["shop"].isna().to_numpy()
    sold, folds = frame["sold"].to_numpy(), np.arange(len(frame)) % 4
    theirs = TargetEncoding(["shop"], ["sold"], kfold=kfold, fold_seed=None, p_smooth=20).fit([frame])
    encodings = theirs.transform(frame)["TE_shop_sold"].to_numpy()
    if kfold == 1:
        expected = (sold[null].sum() + 20 * sold.mean()) / (0 + 20)
    else:
        seen, own = null & (folds != folds[null][0]), null & (folds == folds[null][0])
        expected = (sold[seen].sum() + 20 * sold.mean()) / (0 - own.sum() + 20)
    assert encodings[null][0] == np.float32(expected)
    fitted = TargetEncoder(smooth=20, dtype="float32").fit(frame[["shop"]], frame["sold"])
    assert fitted.transform(frame[["shop"]])["shop"][null].nunique() == 1
    correct = (sold[null].sum() + 20 * sold.mean()) / (null.sum() + 20)
    assert fitted.transform(frame[["shop"]])["shop"][null].iloc[0] == pytest.approx(correct, rel=2**-23)


def test_several_targets_keep_their_order():
    frame = with_target(fitted_rows())
    frame["seen"] = frame["sold"][::-1].to_numpy() * 2
    theirs = TargetEncoding(GROUPS, ["sold", "seen"], kfold=1, p_smooth=SMOOTH_OF_FITTED).fit([frame]).transform(frame)
    X, y = frame.drop(columns=["sold", "seen"]), frame[["sold", "seen"]]
    ours = encoder(smooth=SMOOTH_OF_FITTED).fit(X, y).transform(X)
    assert_same_bits(ours, theirs)
    assert theirs.columns.tolist() == ["TE_shop_sold", "TE_shop_seen", "TE_street_number_sold", "TE_street_number_seen"]
    assert ours.columns.tolist() == ["shop_sold", "shop_seen", "street_x_number_sold", "street_x_number_seen"]
