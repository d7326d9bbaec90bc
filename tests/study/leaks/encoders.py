"""Hand-written encoders that leak, as users write them."""

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin


class MapOfMeans(TransformerMixin, BaseEstimator):
    """The means of all rows, mapped back to the rows."""

    def fit(self, X, y):
        self.means_ = [pd.Series(np.asarray(y, float)).groupby(X[name].to_numpy()).mean() for name in X]
        self.mean_ = np.mean(y)
        return self

    def transform(self, X):
        columns = zip(X, self.means_, strict=True)
        return pd.DataFrame({name: X[name].map(means).fillna(self.mean_).to_numpy(float) for name, means in columns})


class NamesOfTarget(TransformerMixin, BaseEstimator):
    """A column whose name depends on the target."""

    def fit(self, X, y):
        self.name_ = f"k{sum(y[: len(y) // 2])}"
        return self

    def transform(self, X):
        return pd.DataFrame({self.name_: np.zeros(len(X))})


class RowsDropped(TransformerMixin, BaseEstimator):
    """All training rows but the first three."""

    def fit(self, X, y):
        return self

    def fit_transform(self, X, y):
        return X[3:]

    def transform(self, X):
        return X


class PriorOfAllRows(TransformerMixin, BaseEstimator):
    """Means of the other folds, shrunk to the mean of all rows, as cuML's TargetEncoder computes them.

    (sum of the other folds + smooth * mean of all rows) / (rows of the other folds + smooth), folds by row number.
    """

    def __init__(self, n_folds=4, smooth=10.0):
        self.n_folds = n_folds
        self.smooth = smooth

    def fit(self, X, y):
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X, y):
        y, folds = np.asarray(y, float), np.arange(len(X)) % self.n_folds
        self.mean_, self.all_, out = y.mean(), {}, {}
        for name in X:
            values, codes = np.unique(X[name].to_numpy(), return_inverse=True)
            sums, counts = np.zeros((2, self.n_folds, len(values)))
            np.add.at(sums, (folds, codes), y)
            np.add.at(counts, (folds, codes), 1)
            others = 1 - np.eye(self.n_folds)
            out[name] = self.shrink(others @ sums, others @ counts)[folds, codes]
            self.all_[name] = pd.Series(self.shrink(sums.sum(axis=0), counts.sum(axis=0)), values)
        return pd.DataFrame(out)

    def shrink(self, sums, counts):
        return (sums + self.smooth * self.mean_) / (counts + self.smooth)

    def transform(self, X):
        return pd.DataFrame({name: X[name].map(self.all_[name]).fillna(self.mean_).to_numpy(float) for name in X})
