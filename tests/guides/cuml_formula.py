"""The computations of cuML 26.10's ``cuml.preprocessing.TargetEncoder`` in plain loops, for comparisons.

It was written from a description of the steps, with pandas and floats, and has only the steps that decide a number.
"""

from collections import defaultdict

import numpy as np
import pandas as pd

# "stat" is always the mean here: the others have no counterpart.
PARAMETERS = {"n_folds", "smooth", "seed", "split_method", "verbose", "output_type", "stat", "multi_feature_mode"}


class TargetEncoder:
    """The peer; a column of NumPy floats comes out, one for each column if "independent"."""

    def __init__(
        self,
        *,
        n_folds=4,
        smooth=0,
        seed=42,
        split_method="interleaved",
        output_type=None,
        multi_feature_mode="combination",
    ):
        self.n_folds = n_folds
        self.smooth = smooth
        self.seed = seed
        self.split_method = split_method
        self.output_type = output_type
        self.multi_feature_mode = multi_feature_mode

    def fit(self, X, y, *, fold_ids=None):
        self.y = self.check_target(pd.Series(y).reset_index(drop=True))
        self.train = self.fitted = X.reset_index(drop=True)
        self.folds = self.make_folds(len(X), fold_ids)
        self.mean = self.y.mean()
        self.train_encode = self.new_rows(X) if self.multi_feature_mode == "independent" else self.out_of_fold()
        return self

    def fit_transform(self, X, y, *, fold_ids=None):
        return self.fit(X, y, fold_ids=fold_ids).train_encode

    def transform(self, X):
        """Out-of-fold encodings for a frame that equals the training frame, those of all rows for any other."""
        # No training frame is none that a frame could equal.
        if self.train is not None and len(X) == len(self.train) and X.reset_index(drop=True).equals(self.train):
            return self.train_encode
        return self.new_rows(X)

    def check_target(self, y):
        """Recode a target of two values to 0 and 1; refuse more whole values; else take it for a quantity."""
        if y.dtype.kind == "f" and not (np.isfinite(y) & (np.floor(y) == y)).all():
            self.target_type_, self.classes_ = "continuous", None
            return y.astype("float64")
        if y.nunique() > 2:
            raise ValueError("TargetEncoder currently only supports 'continuous' and 'binary' target types")
        self.target_type_, self.classes_ = "binary", np.array(sorted(y.unique()))
        return y.map({label: float(code) for code, label in enumerate(self.classes_)})

    def make_folds(self, n_rows, fold_ids):
        n_folds = min(self.n_folds, n_rows)
        if fold_ids is not None:
            return np.asarray(fold_ids)
        if self.split_method == "random":
            # CuPy's generator there: the same law, other numbers.
            return np.random.default_rng(self.seed).integers(0, n_folds, n_rows)
        if self.split_method == "continuous":
            # The fold number is never cut to an integer.
            return (np.arange(n_rows) / (n_rows / n_folds)) % n_folds
        return np.arange(n_rows) % n_folds

    def keys(self, X):
        """One key for each row; None where a part is null, since cuDF's groupby drops those."""
        rows = X.itertuples(index=False, name=None)
        return [None if any(pd.isna(part) for part in row) else row for row in rows]

    def rows_of(self, X):
        """Rows of each key."""
        rows_of_key = defaultdict(list)
        for row, key in enumerate(self.keys(X)):
            if key is not None:
                rows_of_key[key].append(row)
        return rows_of_key

    def out_of_fold(self):
        encodings = np.full((len(self.train), 1), self.mean)
        for rows in self.rows_of(self.train).values():
            for fold in {self.folds[row] for row in rows}:
                seen = self.y[[row for row in rows if self.folds[row] != fold]]
                encodings[[row for row in rows if self.folds[row] == fold], 0] = self.shrink(seen)
        return encodings

    def new_rows(self, X):
        if self.multi_feature_mode == "combination":
            return self.by_all(X, self.fitted)
        return np.hstack([self.by_all(X[[name]], self.fitted[[name]]) for name in self.fitted.columns])

    def by_all(self, X, train):
        encoding = {key: self.shrink(self.y[rows]) for key, rows in self.rows_of(train).items()}
        return np.array([[encoding.get(key, self.mean)] for key in self.keys(X)])

    def shrink(self, seen):
        """Mean of the target of what is seen, shrunk towards the one of all training rows."""
        n, smooth = len(seen), self.smooth
        return (seen.sum() + smooth * self.mean) / (n + smooth) if n + smooth else self.mean
