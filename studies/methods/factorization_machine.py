"""A second-order factorisation machine on one-hot codes (Rendle 2010, LibFM), only for the comparison."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.integer]


class FactorizationMachine:
    """Log-odds w0 + sum w_i + sum over pairs <v_i, v_j> of a row's categories, fitted by gradient descent.

    Parameters
    ----------
    n_components : int, default=8
        Length of every v.
    learning_rate, regularization : float
        The steps of all rows of a batch are computed from the same parameters, and added up.  The step of a row is
        ``learning_rate * (gradient + regularization * parameter)``, for the parameters of its categories.
    epochs, batch_size : int
    random_state : int, default=0
        Seed of the start and of the orders of rows.
    """

    def __init__(
        self,
        n_components: int = 8,
        learning_rate: float = 0.02,
        regularization: float = 0.002,
        epochs: int = 20,
        batch_size: int = 16,
        random_state: int = 0,
    ) -> None:
        self.n_components = n_components
        self.learning_rate = learning_rate
        self.regularization = regularization
        self.epochs = epochs
        self.batch_size = batch_size
        self.random_state = random_state

    def fit(self, codes: Codes, y: NDArray[np.integer]) -> "FactorizationMachine":
        """Learn from codes (rows, columns), -1 for no category, and labels 0 and 1."""
        random = np.random.default_rng(self.random_state)
        self.sizes = codes.max(axis=0) + 1
        n_lines = int(self.sizes.sum()) + 1
        self.intercept, self.weights = 0.0, np.zeros(n_lines)
        self.factors = random.normal(0.0, 0.05, (n_lines, self.n_components))
        self.factors[-1] = 0.0
        lines = self.lines_of(codes)
        for _ in range(self.epochs):
            order = random.permutation(len(y))
            for start in range(0, len(y), self.batch_size):
                rows = order[start : start + self.batch_size]
                self.step(lines[rows], y[rows])
        return self

    def lines_of(self, codes: Codes) -> Codes:
        """Give the line of every category among the parameters of all columns; -1 becomes the last line."""
        first = np.cumsum(self.sizes) - self.sizes
        known = (codes >= 0) & (codes < self.sizes)
        return np.where(known, codes + first, -1)

    def score(self, lines: Codes) -> Floats:
        """Give the log-odds of rows, by the lines of their categories."""
        held = self.factors[lines]
        pairs = held.sum(axis=1) ** 2 - (held**2).sum(axis=1)
        scores: Floats = self.intercept + self.weights[lines].sum(axis=1) + 0.5 * pairs.sum(axis=1)
        return scores

    def slopes(self, lines: Codes, y: NDArray[np.integer]) -> tuple[Floats, Floats]:
        """Give the derivative of each row's loss by its score, and by the v of each of its categories."""
        held = self.factors[lines]
        of_score = probability(self.score(lines)) - y
        return of_score, of_score[:, None, None] * (held.sum(axis=1, keepdims=True) - held)

    def step(self, lines: Codes, y: NDArray[np.integer]) -> None:
        """Take a step against the gradient of some rows."""
        of_score, of_factors = self.slopes(lines, y)
        rate, penalty = self.learning_rate, self.regularization
        of_weights = of_score[:, None] + penalty * self.weights[lines]
        of_factors = of_factors + penalty * self.factors[lines]
        self.intercept -= rate * float(of_score.sum())
        np.subtract.at(self.weights, lines, rate * of_weights)
        np.subtract.at(self.factors, lines, rate * of_factors)
        # The line for no category stays zero, so that it adds nothing to a score.
        self.weights[-1], self.factors[-1] = 0.0, 0.0

    def predict_proba(self, codes: Codes) -> Floats:
        """Give the probability of label 1 for each row."""
        return probability(self.score(self.lines_of(codes)))


def probability(scores: Floats) -> Floats:
    """Turn log-odds into probabilities."""
    return 1.0 / (1.0 + np.exp(-np.clip(scores, -500.0, 500.0)))
