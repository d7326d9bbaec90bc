"""The compared methods: each makes a classifier for a table of categories, for every choice of its parameters.

Encoders that read the target are cross-fitted inside the pipeline: `fit` trains the model on out-of-fold encodings.
A method may count the rows that it will predict, without their targets ("unlabelled").
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import gpu_encode as ge
from studies.methods.classifiers import (
    ChosenConjunctions,
    ConvexBlended,
    EqualRanks,
    MachineOnCodes,
    RandomCodesForest,
    WithUnlabelled,
    boosted_trees,
    forest,
)
from studies.methods.perceptron import DecayingPerceptron

Parameters = dict[str, Any]
Maker = Callable[..., Any]
# Every line with a logistic regression chooses its strength among the same values, and every line with m-estimates
# chooses among the same smoothings and orders: a line must not win because it may choose from more.
STRENGTHS = (1.0, 0.1, 0.01)
ESTIMATES: list[Parameters] = [{"m": m, "order": order} for m in (10, 2) for order in (1, 9)]
SPECTRAL: list[Parameters] = [{"k": k, "order": order} for k in (100, 30, 300) for order in (1, 9)]


@dataclass(frozen=True)
class Method:
    """One line of the comparison.

    Parameters
    ----------
    make : callable
        Makes an unfitted classifier: ``make(task, **choice)``.
    grid : list of dict
        The possible choices of parameters, the usual one first.
    family : str
        Lines of one family are neighbours in the report.
    """

    make: Maker
    family: str
    grid: list[Parameters] = field(default_factory=lambda: [{}])


@dataclass(frozen=True)
class Task:
    """The data for which a classifier is made.

    Parameters
    ----------
    names : list of str
        Names of the columns.
    order : int
        Most columns of a conjunction.
    unlabelled : DataFrame
        Rows without a target, which may be counted.
    """

    names: list[str]
    order: int
    unlabelled: pd.DataFrame

    def keys(self, order: int | None = None) -> list[Any]:
        """List columns and conjunctions."""
        return ge.interactions(self.names, self.order if order is None else min(order, self.order))


def with_strengths(grid: list[Parameters]) -> list[Parameters]:
    """Combine every choice with every strength of a logistic regression."""
    return [choice | {"C": C} for choice in grid for C in STRENGTHS]


def logistic(C: float) -> Any:
    """Make a logistic regression on scaled columns."""
    return make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=1000))


def target_encodings(task: Task, order: int, **given: Any) -> ge.TargetEncoder:
    """Make an encoder that gives cross-fitted encodings of conjunctions."""
    return ge.TargetEncoder(columns=task.keys(order), cv=ge.KFold(5), **given)


def logit_linear(task: Task, m: float = 2.0, C: float = 0.1, order: int = 9) -> Any:
    """A linear model on the logits of m-estimates of conjunctions."""
    encoder = target_encodings(task, order, smooth=m, scale="logit")
    return make_pipeline(encoder, logistic(C))


def one_hot(task: Task, order: int) -> Any:
    """One column for each category and each conjunction, sparse."""
    return ge.OneHotEncoder(columns=task.keys(order), handle_unknown="ignore")


def counted(task: Task, order: int) -> WithUnlabelled:
    """A forest on counts of columns and conjunctions, of rows with and without a target."""
    return WithUnlabelled(ge.CountEncoder("log", columns=task.keys(order)), task.unlabelled)


def three_blended(task: Task) -> EqualRanks:
    """The recipe: logits of conjunctions, random codes, counts of labelled and unlabelled rows."""
    return EqualRanks([logit_linear(task), RandomCodesForest(task.names), counted(task, 9)], task.unlabelled)


def convex_blended(task: Task, ranks: bool) -> ConvexBlended:
    """A convex blend of the logits of conjunctions and of boosted trees on m-estimates of columns."""
    trees = make_pipeline(target_encodings(task, 1, smooth=10), boosted_trees())
    return ConvexBlended([logit_linear(task), trees], ranks)


def spectral(task: Task, k: int, order: int) -> ge.SpectralEncoder:
    """Singular vectors of the one-hot columns; there may be fewer than k."""
    return ge.SpectralEncoder(k, columns=task.keys(order))


def factored_pairs(task: Task, n_components: int, C: float) -> Any:
    """A linear model on the predictions of one matrix factorisation for each pair of columns."""
    pairs = [list(key) for key in task.keys(2) if isinstance(key, tuple)]
    factors = [(ge.FactorizationEncoder(n_components, cv=ge.KFold(5)), pair) for pair in pairs]
    return make_pipeline(make_column_transformer(*factors), logistic(C))


def voted(task: Task, rule: str, order: int = 9, **given: Any) -> ge.VoteClassifier:
    """Votes of the m-estimates of columns and conjunctions."""
    encoder = target_encodings(task, order, smooth=10.0)
    return ge.VoteClassifier(encoder, rule, **given)


METHODS: dict[str, Method] = {
    "one-hot: logistic L2": Method(
        lambda task, order, C: make_pipeline(one_hot(task, order), LogisticRegression(C=C, max_iter=1000)),
        "linear on one-hot columns",
        with_strengths([{"order": 2}, {"order": 1}]),
    ),
    "one-hot: logistic L1": Method(
        lambda task, order, C: make_pipeline(
            one_hot(task, order), LogisticRegression(C=C, l1_ratio=1.0, solver="liblinear", random_state=0)
        ),
        "linear on one-hot columns",
        with_strengths([{"order": 2}, {"order": 1}]),
    ),
    "one-hot: SVM hinge": Method(
        lambda task, order, C: make_pipeline(one_hot(task, order), LinearSVC(C=C, loss="hinge", random_state=0)),
        "linear on one-hot columns",
        [{"order": order, "C": C} for order in (2, 1) for C in (0.01, 0.1)],
    ),
    "one-hot: SVM squared hinge": Method(
        lambda task, order, C: make_pipeline(one_hot(task, order), LinearSVC(C=C, random_state=0)),
        "linear on one-hot columns",
        [{"order": order, "C": C} for order in (2, 1) for C in (0.01, 0.1)],
    ),
    "one-hot: perceptron": Method(
        lambda task, order, passes: make_pipeline(one_hot(task, order), DecayingPerceptron(passes)),
        "linear on one-hot columns",
        [{"order": order, "passes": passes} for order in (2, 1) for passes in (5, 20)],
    ),
    "factorisation machine": Method(lambda _: MachineOnCodes(), "factors"),
    "spectral: logistic": Method(
        lambda task, k, order, C: make_pipeline(spectral(task, k, order), logistic(C)),
        "factors",
        with_strengths(SPECTRAL),
    ),
    "spectral: forest": Method(
        lambda task, k, order: make_pipeline(spectral(task, k, order), forest()), "factors", SPECTRAL
    ),
    "co-occurrence: forest": Method(
        lambda task, k, weighting: WithUnlabelled(
            ge.CooccurrenceEncoder(k, weighting=weighting, scale="sigma"), task.unlabelled
        ),
        "factors",
        [{"k": k, "weighting": weighting} for k in (10, 2, 30) for weighting in (None, "log")],
    ),
    "tensor factors: logistic": Method(
        lambda _, k, C: make_pipeline(ge.FactorizationEncoder(k, output="both", cv=ge.KFold(5)), logistic(C)),
        "factors",
        with_strengths([{"k": 4}, {"k": 1}]),
    ),
    "matrix factors of pairs: logistic": Method(
        factored_pairs, "factors", with_strengths([{"n_components": 2}, {"n_components": 1}])
    ),
    "clusters by target: logistic": Method(
        lambda _, k, C: make_pipeline(ge.ClusterEncoder(k, output="onehot", cv=ge.KFold(5)), logistic(C)),
        "clusters",
        with_strengths([{"k": 8}, {"k": 4}]),
    ),
    "proximity": Method(
        lambda _, order: ge.ProximityClassifier(order, tuning_rows=2_000), "votes", [{"order": k} for k in (2, 1)]
    ),
    "votes: product": Method(
        lambda task, order: voted(task, "product", order), "votes", [{"order": order} for order in (9, 1)]
    ),
    "votes: naive Bayes": Method(
        lambda task, order: voted(task, "naive_bayes", order), "votes", [{"order": order} for order in (9, 1)]
    ),
    "votes: linear": Method(
        lambda task, phi: voted(task, "linear", phi=phi), "votes", [{"phi": phi} for phi in ("logit", "identity")]
    ),
    "votes: weighted mean": Method(
        lambda task, phi: voted(task, "weighted_mean", phi=phi, tol=0.1),
        "votes",
        [{"phi": phi} for phi in ("logit", "identity")],
    ),
    "m-estimates: logistic": Method(
        lambda task, m, order, C: make_pipeline(target_encodings(task, order, smooth=m), logistic(C)),
        "Bayes encodings",
        with_strengths(ESTIMATES),
    ),
    "logits of m-estimates: logistic": Method(logit_linear, "Bayes encodings", with_strengths(ESTIMATES)),
    "m-estimates: forest": Method(
        lambda task, m, order: make_pipeline(target_encodings(task, order, smooth=m), forest()),
        "Bayes encodings",
        ESTIMATES,
    ),
    "m-estimates: boosted trees": Method(
        lambda task, m, order: make_pipeline(target_encodings(task, order, smooth=m), boosted_trees()),
        "Bayes encodings",
        ESTIMATES,
    ),
    "m-estimates of chosen conjunctions: boosted trees": Method(
        lambda task, m: ChosenConjunctions(task.order, m), "Bayes encodings", [{"m": m} for m in (10, 2)]
    ),
    "random codes: forest": Method(
        lambda task, draws: RandomCodesForest(task.names, draws), "forests", [{"draws": 10}, {"draws": 1}]
    ),
    "counts: forest": Method(counted, "forests", [{"order": 9}, {"order": 1}]),
    "equal ranks: logits + random codes + counts": Method(three_blended, "blends"),
    "convex: logits + boosted trees": Method(convex_blended, "blends", [{"ranks": ranks} for ranks in (False, True)]),
}
