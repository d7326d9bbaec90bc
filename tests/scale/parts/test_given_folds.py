"""Folds that the user gives as an array, a splitter or splits: parts, files and Dask use the folds of one table."""

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from sklearn import model_selection

import gpu_encode as ge
from gpu_encode.scale.parts.plans import FOLD_COLUMN
from tests.bits import assert_same_encoder
from tests.encoders.pieces import TARGETS, WHOLE, encoder
from tests.scale.parts.in_parts import encoded_in_parts, parts_of
from tests.scale.parts.test_laws import CUTS, QUANTITY, assert_alike

pytestmark = [pytest.mark.host, pytest.mark.filterwarnings("ignore::UserWarning")]
N = len(WHOLE)
FOLDS = np.random.default_rng(5).integers(0, 4, N) * 3
SPLITS = [(np.flatnonzero(fold != FOLDS), np.flatnonzero(fold == FOLDS)) for fold in np.unique(FOLDS)]
GIVEN = {
    "numbers": FOLDS,
    "list": FOLDS.tolist(),
    "series": pd.Series(FOLDS, name="fold"),
    "mask": ge.Holdout(mask=FOLDS > 3, calibration_rows="nan"),
    "contiguous": model_selection.KFold(5),
    "shuffled": model_selection.KFold(3, shuffle=True, random_state=2),
    "predefined": model_selection.PredefinedSplit(FOLDS),
    "splits": SPLITS,
    "masks": [(fold != FOLDS, fold == FOLDS) for fold in np.unique(FOLDS)],
}


@pytest.mark.parametrize("name", GIVEN)
def test_parts(name, tmp_path):
    for cuts in (1, 7):
        assert_alike(cuts=cuts, cv=GIVEN[name], folder=tmp_path)


@pytest.mark.parametrize("name", GIVEN)
def test_dask_and_files(name, tmp_path):
    dd = pytest.importorskip("dask.dataframe")
    rows = WHOLE.reset_index(drop=True)[["zip", "shop"]].astype({"shop": str})
    one, cut = encoder(cv=GIVEN[name], columns=["zip"]), encoder(cv=GIVEN[name], columns=["zip"])
    expected = one.fit_transform(rows, QUANTITY)
    found = cut.fit_transform(dd.from_pandas(rows, npartitions=3), dd.from_pandas(pd.Series(QUANTITY), npartitions=3))
    assert found.compute(scheduler="synchronous")["zip"].to_numpy().tobytes() == expected["zip"].to_numpy().tobytes()
    assert_same_encoder(cut, one)
    pa.parquet.write_table(pa.Table.from_pandas(rows.assign(y=QUANTITY)), tmp_path / "rows.parquet")
    ge.encode_dataset(tmp_path / "rows.parquet", tmp_path / "codes.parquet", cut, target="y")
    written = pa.parquet.read_table(tmp_path / "codes.parquet")["zip"].to_numpy()
    assert written.tobytes() == expected["zip"].to_numpy().tobytes()


def test_fold_numbers_are_those_of_all_parts_together():
    """A fold number without rows in a part is a fold all the same."""
    folds = np.repeat([7, 0, 3], [N - 50, 30, 20])
    assert_alike(cuts=64, cv=folds)


def test_splits_that_are_read_once():
    one, other = encoder(cv=iter(SPLITS)), encoder(cv=iter(SPLITS))
    expected = one.fit_transform(WHOLE, QUANTITY)
    found = pd.concat(encoded_in_parts(other, parts_of(WHOLE, QUANTITY, cuts=CUTS[7])))
    pd.testing.assert_frame_equal(found, expected, check_exact=True)


STRATIFIED = model_selection.StratifiedKFold(3, shuffle=True, random_state=1)
OTHER_ROWS = [(np.flatnonzero(fold != FOLDS)[::2], np.flatnonzero(fold == FOLDS)) for fold in np.unique(FOLDS)]


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (
            STRATIFIED,
            r"cv=StratifiedKFold\(.* all rows at once, but these come in parts.*name it, cv=\"fold\":\n",
        ),
        (model_selection.GroupKFold(3), "looks at all rows at once"),
        (OTHER_ROWS, "splits that train on some validation rows of another split"),
        (FOLDS[:-1], rf"inconsistent numbers of samples: \[{N}, {N - 1}\]"),
        (model_selection.PredefinedSplit(FOLDS[:-1]), "must cover each sample index exactly once"),
    ],
)
def test_what_is_not_carried_is_refused(cv, message):
    with pytest.raises(ValueError, match=message):
        encoded_in_parts(encoder(cv=cv), parts_of(WHOLE, QUANTITY, cuts=CUTS[2]))


def test_the_column_that_the_message_tells_of_gives_the_same_bits():
    y = TARGETS["binary"]
    expected = encoder(cv=STRATIFIED).fit_transform(WHOLE, y)
    with pytest.raises(ValueError, match=re.escape(FOLD_COLUMN)):
        encoded_in_parts(encoder(cv=STRATIFIED), parts_of(WHOLE, y))
    names = {"numpy": np, "cv": STRATIFIED, "X": WHOLE.copy(), "y": y}
    exec("\n".join(line[4:] for line in FOLD_COLUMN.splitlines()), names)
    X = names["X"]
    found = pd.concat(encoded_in_parts(encoder(cv="fold"), parts_of(X, y, cuts=CUTS[7])))
    pd.testing.assert_frame_equal(found.drop(columns="fold"), expected.drop(columns="fold"), check_exact=True)
