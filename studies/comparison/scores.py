"""The two models, their scores, and tests whether scores differ by more than the noise between folds."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.stats import t
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import get_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from studies.comparison.contenders import Encoded

MODELS = ("linear", "tree")
SCORERS = {"binary": "roc_auc", "multiclass": "roc_auc_ovr", "continuous": "r2"}
SCORES = {"binary": "ROC AUC", "multiclass": "ROC AUC, one class against the rest, averaged", "continuous": "R2"}


def make_model(name: str, kind: str, is_sparse: bool, categories: int) -> Any:
    """Make an unfitted model: a tree whose first columns are category numbers, or a linear model on scaled columns."""
    if name == "tree":
        make = HistGradientBoostingRegressor if kind == "continuous" else HistGradientBoostingClassifier
        first = list(range(categories)) if categories else None
        return make(max_iter=60, max_leaf_nodes=15, early_stopping=False, categorical_features=first, random_state=0)
    last = Ridge(alpha=1.0) if kind == "continuous" else LogisticRegression(max_iter=1000)
    # Early rows of an order have no encoding; they get the mean.
    return last if is_sparse else make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler(), last)


def score_both(
    model: str, kind: str, encoded: Encoded, y: np.ndarray, y_new: np.ndarray, categories: int = 0
) -> tuple[float, float]:
    """Fit a model to training encodings; give the score on them and on new rows."""
    X, X_new = encoded
    trained = make_model(model, kind, sparse.issparse(X), categories).fit(X, y)
    score = get_scorer(SCORERS[kind])
    return float(score(trained, X, y)), float(score(trained, X_new, y_new))


@dataclass(frozen=True)
class Difference:
    """Mean of paired differences over folds, and half the width of its interval."""

    mean: float
    half: float

    @property
    def is_noise(self) -> bool:
        """Whether the interval holds zero."""
        return not abs(self.mean) > self.half

    def __str__(self) -> str:
        """Write the difference and its interval, in bold if it is more than noise."""
        text = f"{self.mean:+.4f} ± {self.half:.4f}"
        return text if self.is_noise else f"**{text}**"


def standard_error(scores: list[float], apart: bool = False) -> float:
    """Give the standard error of a mean over folds, or over tables or draws that have no row in common.

    Training rows of folds overlap, so their scores are not independent: the variance of the mean is s² (1/k + 1/(k-1)),
    with k folds and s² the sample variance (Nadeau and Bengio, 2003, "Inference for the generalization error";
    1/(k-1) is test rows over training rows).  Without a row in common it is s² / k.
    """
    k = len(scores)
    return float(np.sqrt(np.var(scores, ddof=1) * (1 / k + (0 if apart else 1 / (k - 1)))))


def compare(one: list[float], other: list[float], n_compared: int = 1, apart: bool = False) -> Difference:
    """Compare the scores of the same outer folds, by Student's t with k - 1 degrees of freedom.

    Parameters
    ----------
    one, other : list of float
        The scores of each outer fold.
    n_compared : int
        Number of comparisons whose intervals hold together with a probability of 95 % (Bonferroni).
    apart : bool
        Whether these are no folds, but tables or draws that have no row in common.
    """
    differences = np.array(one) - np.array(other)
    quantile = t.ppf(1 - 0.025 / n_compared, len(differences) - 1)
    return Difference(float(differences.mean()), float(quantile) * standard_error(list(differences), apart))
