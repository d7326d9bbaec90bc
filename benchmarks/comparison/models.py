"""The two models, and how they are scored."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.comparison.contenders import Encoded

MODELS = ("linear", "tree")
SCORES = {"binary": "ROC AUC", "multiclass": "ROC AUC, one class against the rest, averaged", "continuous": "R2"}


def model(name: str, kind: str, is_sparse: bool, categories: int) -> Any:
    """Give an untrained model: a tree whose first columns are category numbers, or a line on scaled dense columns."""
    if name == "tree":
        kinds = HistGradientBoostingRegressor if kind == "continuous" else HistGradientBoostingClassifier
        first = list(range(categories)) if categories else None
        return kinds(max_iter=60, max_leaf_nodes=15, early_stopping=False, categorical_features=first, random_state=0)
    last = Ridge(alpha=1.0) if kind == "continuous" else LogisticRegression(max_iter=1000)
    if is_sparse:
        return last
    # A mean in place of what early rows of an order lack.
    return make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler(), last)


def score(trained: Any, X: Any, y: np.ndarray, kind: str) -> float:
    """R2, or the area under the ROC curve."""
    if kind == "continuous":
        return float(r2_score(y, trained.predict(X)))
    shares = trained.predict_proba(X)
    if kind == "binary":
        return float(roc_auc_score(y, shares[:, 1]))
    return float(roc_auc_score(y, shares, multi_class="ovr", labels=trained.classes_))


def scores(
    name: str, kind: str, encoded: Encoded, y: np.ndarray, y_new: np.ndarray, categories: int = 0
) -> tuple[float, float]:
    """Train on training codes; give the score on them and on new rows."""
    X, X_new = encoded
    trained = model(name, kind, sparse.issparse(X), categories).fit(X, y)
    return score(trained, X, y, kind), score(trained, X_new, y_new, kind)
