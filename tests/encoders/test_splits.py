"""scikit-learn's splitters and iterables of splits, unions of folds or not."""

import numpy as np
import pandas as pd
import pytest
from sklearn import model_selection

from gpu_encode import TargetEncoder
from tests.encoders.visibility import (
    FRAME,
    ROW,
    SIZE,
    encoder,
    seen_by_new_rows,
    shares,
    visible,
)


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
    found = shares(splits)
    assert found[0, 6:9].tolist() == [0.5, 0.25, 0.25]
    assert found[6, :3].tolist() == [1 / 3] * 3


def test_splits_of_several_categories_smoothings_and_indicators(frame, y):
    by_fold = [
        (np.flatnonzero(np.arange(12) % 3 != fold), np.flatnonzero(np.arange(12) % 3 == fold)) for fold in range(3)
    ]
    expected = TargetEncoder(cv=np.arange(12) % 3, indicators=True).fit_transform(frame, y)
    pd.testing.assert_frame_equal(
        TargetEncoder(cv=by_fold, indicators=True).fit_transform(frame, y), expected, check_exact=True
    )
    # One row more in a training set takes the other path, and changes that split's codes alone.
    by_fold[0] = (np.append(by_fold[0][0], 1), by_fold[0][1])
    found = TargetEncoder(cv=by_fold, indicators=True).fit_transform(frame, y)
    others = np.arange(12) % 3 > 0
    pd.testing.assert_frame_equal(found[others], expected[others], check_exact=True)
    assert not found[~others].equals(expected[~others])


@pytest.mark.parametrize("cv", [model_selection.TimeSeriesSplit(3), model_selection.ShuffleSplit(3)])
def test_splitters_that_leave_rows_out_are_refused(cv):
    with pytest.raises(ValueError, match=r"must cover each sample index exactly once .* use TimeFolds or Ordered"):
        encoder(cv).fit_transform(FRAME, ROW)


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
