"""Finds from encodings which rows each row sees.

With one category, row i's encoding of row j's own target is 1 / |V(i)| if i sees j, and 0 if not.
"""

import warnings

import numpy as np
import pandas as pd

from gpu_encode import TargetEncoder

SIZE = 24
ROW = np.arange(SIZE)
FRAME = pd.DataFrame({"one": "x", "group": ROW * 5 % 7, "time": ROW * 7 % 10, "fold": ROW * 11 % 4})


def encoder(cv, **parameters):
    return TargetEncoder(cv=cv, columns=["one"], smooth=None, target_type="continuous", **parameters)


def shares(cv, frame=FRAME, **metadata):
    """Return a matrix: the encoding of each row when only one row's target is 1, which is that row's share in it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        encodings = encoder(cv).fit_transform(frame, np.eye(len(frame)), **metadata)
    return encodings.drop(columns=["group", "time", "fold"]).to_numpy()


def visible(cv, frame=FRAME, **metadata):
    """Return the matrix of which row sees which, after a check that all visible rows count alike."""
    weights = shares(cv, frame, **metadata)
    sees = weights > 0
    for mine, theirs in zip(weights, sees, strict=True):
        assert not theirs.any() or set(mine[theirs]) == {1 / theirs.sum()}
    return sees


def seen_by_new_rows(cv):
    """Return the rows that the encoding of a new row depends on."""
    return encoder(cv).fit(FRAME, np.eye(SIZE)).transform(FRAME[:1]).to_numpy()[0, :SIZE] > 0


def other_folds(folds):
    folds = np.asarray(folds)
    return folds[:, None] != folds[None, :]


def folds_of(sees):
    """Return fold numbers: a row's own fold are the rows that it does not see."""
    _, folds = np.unique(sees, axis=0, return_inverse=True)
    np.testing.assert_array_equal(sees, other_folds(folds.reshape(-1)))
    return folds.reshape(-1)
