"""The paper's perceptron: a step for each mistake; steps become smaller from pass to pass."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin


class DecayingPerceptron(ClassifierMixin, BaseEstimator):
    """w += (2y - 1) x / log(s + 1) where pass s gets a row wrong; passes go through the rows in random orders.

    Parameters
    ----------
    passes : int
    random_state : int
    """

    def __init__(self, passes: int = 10, random_state: int = 0) -> None:
        self.passes, self.random_state = passes, random_state

    def fit(self, X: Any, y: np.ndarray) -> "DecayingPerceptron":
        """Learn the weights of sparse rows of ones."""
        rows, random = sparse.csr_matrix(X), np.random.default_rng(self.random_state)
        signs, weights, bias = 2 * np.asarray(y) - 1, np.zeros(rows.shape[1]), 0.0
        columns, ends = rows.indices, rows.indptr
        for number in range(1, self.passes + 1):
            step = 1 / np.log(number + 1)
            for row in random.permutation(rows.shape[0]):
                ones = columns[ends[row] : ends[row + 1]]
                if signs[row] * (weights[ones].sum() + bias) <= 0:
                    weights[ones] += step * signs[row]
                    bias += step * signs[row]
        self.coef_, self.intercept_, self.classes_ = weights, bias, np.unique(y)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Give the signed distance from the border."""
        return np.asarray(sparse.csr_matrix(X) @ self.coef_ + self.intercept_)
