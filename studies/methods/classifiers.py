"""Classifiers for the comparison that a pipeline of scikit-learn alone cannot express."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

import gpu_encode as ge
from studies.methods.factorization_machine import FactorizationMachine

TREES = {"n_estimators": 100, "min_samples_leaf": 3, "random_state": 0}


def scores_of(model: Any, X: pd.DataFrame) -> np.ndarray:
    """Give the score of class 1."""
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X))[:, 1]
    return np.asarray(model.decision_function(X))


def forest(**given: Any) -> RandomForestClassifier:
    """Make a forest, of the same size in every line."""
    return RandomForestClassifier(**TREES | given)


def boosted_trees() -> HistGradientBoostingClassifier:
    """Make boosted trees, of the same size in every line."""
    return HistGradientBoostingClassifier(max_iter=60, random_state=0)


class WithUnlabelled(ClassifierMixin, BaseEstimator):
    """A forest on encodings that read no target; they are learned also from rows without a target.

    Parameters
    ----------
    encoder : encoder
    unlabelled : DataFrame
    """

    def __init__(self, encoder: Any, unlabelled: pd.DataFrame) -> None:
        self.encoder, self.unlabelled = encoder, unlabelled

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> "WithUnlabelled":
        """Learn encodings from all rows, and fit the forest to the rows with a target."""
        self.encoder_ = clone(self.encoder).fit(pd.concat([X, self.unlabelled], ignore_index=True))
        self.model_ = forest().fit(self.encoder_.transform(X), y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """Give the share of the trees for each class."""
        return np.asarray(self.model_.predict_proba(self.encoder_.transform(X)))


class RandomCodesForest(ClassifierMixin, BaseEstimator):
    """Forests on category numbers in random orders, averaged.

    Parameters
    ----------
    keys : list
    draws : int
        Number of random orders; each gets the same share of the trees.
    """

    def __init__(self, keys: list[Any], draws: int = 10) -> None:
        self.keys, self.draws = keys, draws

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> "RandomCodesForest":
        """Fit one forest to each draw."""
        trees = max(TREES["n_estimators"] // self.draws, 1)
        self.models_ = []
        for draw in range(self.draws):
            codes = ge.OrdinalEncoder(
                order="random",
                random_state=draw,
                columns=self.keys,
                handle_unknown="use_encoded_value",
                unknown_value=-1,
                encoded_missing_value=-2,
            )
            self.models_.append(make_pipeline(codes, forest(n_estimators=trees, random_state=draw)).fit(X, y))
        self.classes_ = self.models_[0].classes_
        return self

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """Give the average over the draws."""
        return np.mean([model.predict_proba(X) for model in self.models_], axis=0)


class EqualRanks(ClassifierMixin, BaseEstimator):
    """A blend of several classifiers: the mean of the ranks of their scores, with equal weights.

    Ranks are ranks among the scores of rows without a target, so that the answer for a row does not depend on the other
    rows of the call; scores of training rows would be closer to 0 and 1 than scores of new rows.

    Parameters
    ----------
    models : list of classifiers
    unlabelled : DataFrame
    """

    def __init__(self, models: list[Any], unlabelled: pd.DataFrame) -> None:
        self.models, self.unlabelled = models, unlabelled

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> "EqualRanks":
        """Fit every classifier."""
        self.models_ = [model.fit(X, y) for model in self.models]
        self.sorted_ = [np.sort(scores_of(model, self.unlabelled)) for model in self.models_]
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X: pd.DataFrame) -> np.ndarray:
        """Give the mean rank, between 0 and 1."""
        ranks = [
            (np.searchsorted(known, scores) + np.searchsorted(known, scores, side="right")) / (2 * len(known))
            for known, scores in zip(self.sorted_, (scores_of(model, X) for model in self.models_), strict=True)
        ]
        return np.mean(ranks, axis=0)


class ChosenConjunctions(ClassifierMixin, BaseEstimator):
    """Boosted trees on m-estimates of the columns, and of the conjunctions that `choose_interactions` chooses.

    Parameters
    ----------
    order : int
    m : float
    """

    def __init__(self, order: int = 2, m: float = 10.0) -> None:
        self.order, self.m = order, m

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> "ChosenConjunctions":
        """Choose conjunctions, and fit the trees."""
        encoder = ge.TargetEncoder(smooth=self.m, cv=ge.KFold(5))
        self.chosen_ = ge.choose_interactions(encoder, X, y, order=self.order)
        self.model_ = make_pipeline(self.chosen_.encoder, boosted_trees()).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """Give the probabilities of both classes."""
        return np.asarray(self.model_.predict_proba(X))


class ConvexBlended(ClassifierMixin, BaseEstimator):
    """A convex blend of classifiers; its shares are chosen on a fifth of the rows, then all are fitted to all rows.

    Parameters
    ----------
    models : list of classifiers
    ranks : bool
        As in `ConvexBlend`.
    """

    def __init__(self, models: list[Any], ranks: bool = False) -> None:
        self.models, self.ranks = models, ranks

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> "ConvexBlended":
        """Choose the shares, and fit every classifier to all rows."""
        kept, held = train_test_split(np.arange(len(y)), test_size=0.2, stratify=y, random_state=0)
        parts = X.iloc[kept].reset_index(drop=True), X.iloc[held].reset_index(drop=True)
        fitted = [clone(model).fit(parts[0], y[kept]) for model in self.models]
        held_scores = np.column_stack([scores_of(model, parts[1]) for model in fitted])
        self.blend_ = ge.ConvexBlend(ranks=self.ranks).fit(held_scores, y[held])
        self.models_ = [clone(model).fit(X, y) for model in self.models]
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X: pd.DataFrame) -> np.ndarray:
        """Give the blended scores."""
        return np.asarray(self.blend_.predict(np.column_stack([scores_of(model, X) for model in self.models_])))


class MachineOnCodes(ClassifierMixin, BaseEstimator):
    """A second-order factorisation machine on the categories of the columns."""

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> "MachineOnCodes":
        """Number the categories, and learn."""
        numbers = ge.OrdinalEncoder(
            handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-1, dtype="int32"
        )
        self.numbers_ = numbers.fit(X)
        self.machine_ = FactorizationMachine().fit(self._codes(X), y)
        self.classes_ = np.unique(y)
        return self

    def _codes(self, X: pd.DataFrame) -> np.ndarray:
        return np.asarray(self.numbers_.transform(X), np.int32)

    def decision_function(self, X: pd.DataFrame) -> np.ndarray:
        """Give the probability of class 1."""
        return np.asarray(self.machine_.predict_proba(self._codes(X)))
