"""Bases of the classifiers and regressors of `methods`: how they read categories, and how scores become classes."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import Tags

from cpu_fallback.types import Array
from gpu_encode.encoders.base import accept_categories
from gpu_encode.words.annotations import Table
from gpu_encode.words.errors.parameters import KnownKeywords
from gpu_encode.words.notices import warn


class Predictor(KnownKeywords, BaseEstimator):
    """A classifier or regressor that takes categories."""

    # The fitted encoder that reads rows.
    encoder_: Any

    def _warn_of_column(self, y: Any) -> None:
        """Warn, in the words of scikit-learn, if y is a table of one column."""
        if len(getattr(y, "shape", ())) == 2 and y.shape[1] == 1:
            warn("A column-vector y was passed when a 1d array was expected.", DataConversionWarning)

    def __sklearn_tags__(self) -> Tags:
        return accept_categories(super().__sklearn_tags__())


class ScoringClassifier(ClassifierMixin):
    """A classifier that gives each class a score; subclasses say how."""

    classes_: Array

    def predict(self, X: Table) -> Array:
        """Give the class with the highest score; if several are equal, the first of them.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Rows, in the columns of fit.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        labels: Array = self.classes_[chosen]
        return labels
