"""Models whose columns vote, compared with the rules in plain loops."""

import math
import pickle
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression

from gpu_encode import (
    CountEncoder,
    Greedy,
    KFold,
    LeakWarning,
    LeaveOneOut,
    Ordered,
    TargetEncoder,
    VoteClassifier,
    VoteRegressor,
    roc_auc_score,
)
from gpu_encode.methods.votes.rules import WeightedMean
from tests.bits import assert_same_bits
from tests.estimator_checks import unexpected
from tests.methods.votes.drawn import draw

CLIP = 1e-6


def logit(share):
    share = min(max(share, CLIP), 1 - CLIP)
    return math.log(share / (1 - share))


PHIS = {
    "identity": (lambda x: x, lambda x: x),
    "log": (lambda x: math.log(max(x, CLIP)), math.exp),
    "sqrt": (math.sqrt, lambda x: x * x),
    "logit": (logit, lambda x: 1 / (1 + math.exp(-x))),
    2.0: (lambda x: x**2, lambda x: x**0.5),
}


def split(table, n_keys, n_outputs):
    """Take encodings (rows, keys, outputs) and what is seen (rows, keys) out of an encoder's table."""
    table = np.array(table, np.float64)
    assert table.shape[1] == n_keys * (n_outputs + 1)
    return table[:, : n_keys * n_outputs].reshape(len(table), n_keys, n_outputs), table[:, n_keys * n_outputs :] == 0


def posterior(votes, means):
    """Naive Bayes for one row, whose votes are (keys, outputs)."""
    if len(means) == 1:
        odds = sum(logit(g) for g in votes[:, 0]) - (len(votes) - 1) * logit(means[0])
        second = 1 / (1 + math.exp(-odds))
        return [1 - second, second]
    clip = [[min(max(g, CLIP), 1 - CLIP) for g in of_class] for of_class in votes.T]
    parts = [math.prod(of_class) / mean ** (len(votes) - 1) for of_class, mean in zip(clip, means, strict=True)]
    return [part / sum(parts) for part in parts]


def product(votes):
    parts = [math.prod(min(max(g, CLIP), 1 - CLIP) for g in of_class) for of_class in votes.T]
    return [1 - parts[0], parts[0]] if len(parts) == 1 else [part / sum(parts) for part in parts]


def weighted_mean(votes, seen, weights, phi, mean):
    """The mean of one row's votes for one output on a scale."""
    there = PHIS[phi][0]
    top = sum(w * there(g) for g, s, w in zip(votes, seen, weights, strict=True) if s)
    bottom = sum(w for s, w in zip(seen, weights, strict=True) if s)
    return top / bottom if bottom else there(mean)


def climb(n_weights, score, tol=1e-3, least=0.0):
    """Coordinate ascent in plain loops."""
    weights, step, best = [0.0] * n_weights, 1.0, score([0.0] * n_weights)
    while step >= tol:
        rises = []
        for chosen in range(n_weights):
            tried = list(weights)
            tried[chosen] += step
            rises.append((score(tried), tried))
        value, tried = max(rises, key=lambda rise: rise[0])
        if value > best + least * abs(best):
            best, weights = value, tried
        else:
            step /= 2
    return weights, best


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
@pytest.mark.parametrize("rule", ["naive_bayes", "product"])
def test_rules_that_weigh_nothing(kind, rule):
    X, y = draw(kind)
    new, _ = draw(kind, 40, seed=1)
    encoder = TargetEncoder(indicators=True, smooth=None).fit(X, y)
    means = np.atleast_1d(encoder.target_mean_).tolist()
    votes, _ = split(encoder.transform(new), 3, len(means))
    voter = VoteClassifier(TargetEncoder(smooth=None), rule=rule).fit(X, y)
    chances = voter.predict_proba(new)
    expected = [posterior(of_row, means) if rule == "naive_bayes" else product(of_row) for of_row in votes]
    np.testing.assert_allclose(chances, expected, rtol=1e-9, atol=1e-15)
    assert (voter.predict(new) == voter.classes_[chances.argmax(axis=1)]).all()
    scores = voter.decision_function(new)
    if kind == "binary":
        np.testing.assert_allclose(scores, np.log(chances[:, 1] / chances[:, 0]), rtol=1e-6)
        assert ((scores > 0) == (chances[:, 1] > 0.5)).all()
    else:
        assert (scores.argmax(axis=1) == chances.argmax(axis=1)).all()


def test_naive_bayes_is_exact_where_columns_are_independent_within_classes():
    # In class 0 the columns have a share of 1/4 and 1/3, in class 1 of 3/4 and 2/3; the classes 12 and 24 rows.
    rows = []
    for label, copies, shares in ((0, 1, ((3, 1), (2, 1))), (1, 2, ((1, 3), (1, 2)))):
        for a in (0, 1):
            for b in (0, 1):
                rows += [(a, b, label)] * (copies * shares[0][a] * shares[1][b])
    X, y = np.array(rows)[:, :2], np.array(rows)[:, 2]
    voter = VoteClassifier(TargetEncoder(smooth=None)).fit(X, y)
    for a in (0, 1):
        for b in (0, 1):
            here = ([a, b] == X).all(axis=1)
            share = Fraction(int(y[here].sum()), int(here.sum()))
            assert voter.predict_proba([[a, b]])[0, 1] == pytest.approx(float(share), rel=1e-12)


@pytest.mark.parametrize("phi", PHIS)
@pytest.mark.parametrize("cv", [KFold(4), LeaveOneOut(), Ordered()], ids=["folds", "one", "order"])
def test_weights_climb_the_area(phi, cv):
    X, y = draw("binary", 60)
    encoder = TargetEncoder(indicators=True, cv=cv)
    votes, seen = split(encoder.fit_transform(X, y), 3, 1)
    mean = encoder.target_mean_
    votes[np.isnan(votes)] = mean

    def score(weights):
        means = [weighted_mean(g[:, 0], s, weights, phi, mean) for g, s in zip(votes, seen, strict=True)]
        return roc_auc_score(y, means)

    weights, best = climb(3, score)
    voter = VoteClassifier(TargetEncoder(cv=cv), rule="weighted_mean", phi=phi).fit(X, y)
    if phi in ("identity", "sqrt"):
        assert voter.weights_.tolist() == weights
        assert voter.training_auc_ == best
    # Logarithms may round differently here, and so order votes that are almost tied.
    assert score(voter.weights_.tolist()) == pytest.approx(voter.training_auc_, abs=1e-3)
    assert voter.training_auc_ == pytest.approx(best, abs=2e-3)

    new, _ = draw("binary", 30, seed=1)
    votes, seen = split(encoder.transform(new), 3, 1)
    expected = [
        PHIS[phi][1](weighted_mean(g[:, 0], s, voter.weights_, phi, mean)) for g, s in zip(votes, seen, strict=True)
    ]
    np.testing.assert_allclose(voter.predict_proba(new)[:, 1], expected, rtol=1e-12)
    np.testing.assert_allclose(
        voter.decision_function(new), [PHIS[phi][0](share) - PHIS[phi][0](0.5) for share in expected], atol=1e-12
    )


def test_means_with_a_raised_weight_are_means_of_these_weights():
    random = np.random.default_rng(8)
    votes, seen = random.random((4, 50)), random.random((4, 50)) < 0.7
    mean = WeightedMean([*votes], [*seen], 0.25)
    for weights in (np.zeros(4), np.array([1.0, 0.0, 2.5, 0.125])):
        raised = list(mean.raised(weights.tolist(), 0.5))
        for number, found in enumerate(raised):
            expected = mean.at((weights + 0.5 * np.eye(4)[number]).tolist())
            np.testing.assert_allclose(found, expected, rtol=1e-14, atol=0)
        assert len(raised) == 4


def test_each_class_has_weights_of_its_own():
    X, y = draw("multiclass")
    voter = VoteClassifier(rule="weighted_mean").fit(X, y)
    assert voter.weights_.shape == (3, 3)
    for number, label in enumerate(voter.classes_):
        encoder = TargetEncoder(target_type="multiclass", indicators=True)
        votes, seen = split(encoder.fit_transform(X, y), 3, 3)
        mean = encoder.target_mean_[number]
        means = [
            weighted_mean(g[:, number], s, voter.weights_[number], "identity", mean)
            for g, s in zip(votes, seen, strict=True)
        ]
        assert roc_auc_score(y == label, means) == pytest.approx(voter.training_auc_[number], abs=1e-3)
    chances = voter.predict_proba(X)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert np.unique(voter.predict(X)).tolist() == [0, 1, 2]


def test_rows_of_which_nothing_is_seen_get_the_mean():
    X, y = draw("binary")
    new = pd.DataFrame([["?", None, "?"]], columns=X.columns)
    share = (y == "yes").mean()
    for rule in ("naive_bayes", "weighted_mean"):
        for phi in ("identity", "logit"):
            voter = VoteClassifier(rule=rule, phi=phi).fit(X, y)
            assert voter.predict_proba(new)[0, 1] == pytest.approx(share, rel=1e-14)
    product_of_means = VoteClassifier(rule="product").fit(X, y).predict_proba(new)[0, 1]
    assert product_of_means == pytest.approx(share**3)
    X, y = draw("continuous")
    assert VoteRegressor().fit(X, y).predict(new)[0] == pytest.approx(y.mean(), rel=1e-14)


@pytest.mark.parametrize("phi", ["identity", "sqrt", "log", 0.5])
@pytest.mark.parametrize("weighted", [False, True])
def test_regression_lowers_the_squared_error(phi, weighted):
    X, y = draw("continuous", 60)
    weight = np.random.default_rng(5).random(60) if weighted else np.ones(60)
    encoder = TargetEncoder(indicators=True, target_type="continuous")
    votes, seen = split(encoder.fit_transform(X, y, sample_weight=weight), 3, 1)
    there = PHIS.get(phi, (lambda x: x**0.5, lambda x: x * x))

    def predict(g, s, weights):
        top = sum(w * there[0](v) for v, there_is, w in zip(g[:, 0], s, weights, strict=True) if there_is)
        bottom = sum(w for there_is, w in zip(s, weights, strict=True) if there_is)
        return there[1](top / bottom if bottom else there[0](encoder.target_mean_))

    def score(weights):
        predictions = [predict(g, s, weights) for g, s in zip(votes, seen, strict=True)]
        return -sum(w * (each - p) ** 2 for w, each, p in zip(weight, y, predictions, strict=True))

    weights, _ = climb(3, score, least=1e-4)
    voter = VoteRegressor(phi=phi).fit(X, y, sample_weight=weight if weighted else None)
    assert voter.weights_.tolist() == weights
    new, _ = draw("continuous", 20, seed=2)
    votes, seen = split(encoder.transform(new), 3, 1)
    expected = [predict(g, s, weights) for g, s in zip(votes, seen, strict=True)]
    np.testing.assert_allclose(voter.predict(new), expected, rtol=1e-12)


class Recorder(BaseEstimator):
    """Keeps its training data."""

    seen: ClassVar[list]

    def fit(self, X, y, sample_weight=None):
        self.seen.append((X, y, sample_weight))
        self.inner_ = LogisticRegression().fit(X, y > y.min(), sample_weight=sample_weight)
        return self

    def predict(self, X):
        return self.inner_.predict(X).astype(int)

    def predict_proba(self, X):
        return self.inner_.predict_proba(X)


class ClassRecorder(ClassifierMixin, Recorder):
    seen: ClassVar[list] = []


class NumberRecorder(RegressorMixin, Recorder):
    seen: ClassVar[list] = []


@pytest.mark.parametrize("phi", ["identity", "logit"])
def test_a_linear_model_sees_votes_and_what_is_unseen(phi):
    X, y = draw("binary")
    weight = np.random.default_rng(2).random(len(y))
    ClassRecorder.seen.clear()
    voter = VoteClassifier(rule="linear", phi=phi, estimator=ClassRecorder()).fit(X, y, sample_weight=weight)
    encoder = TargetEncoder(indicators=True)
    table = np.asarray(encoder.fit_transform(X, y, sample_weight=weight))
    expected = [[*map(PHIS[phi][0], row[:3]), *row[3:]] for row in table.tolist()]
    matrix, codes, weights = ClassRecorder.seen[0]
    np.testing.assert_allclose(matrix, expected, rtol=1e-12, atol=1e-12)
    assert (codes == (y == "yes")).all()
    assert (weights == weight).all()
    new, _ = draw("binary", 30, seed=1)
    matrix = [[*map(PHIS[phi][0], row[:3]), *row[3:]] for row in np.asarray(encoder.transform(new)).tolist()]
    np.testing.assert_allclose(voter.predict_proba(new), voter.estimator_.predict_proba(np.array(matrix)), rtol=1e-9)
    assert set(voter.predict(new)) <= {"no", "yes"}


@pytest.mark.parametrize("kind", ["binary", "continuous"])
def test_no_row_teaches_with_its_own_target(kind):
    X, y = draw(kind)
    recorder = NumberRecorder if kind == "continuous" else ClassRecorder
    voter = {"continuous": VoteRegressor, "binary": VoteClassifier}[kind](rule="linear", estimator=recorder())
    for row in (0, 57, 119):
        changed = y.copy()
        changed[row] = 99.0 if kind == "continuous" else {"no": "yes", "yes": "no"}[y[row]]
        recorder.seen.clear()
        voter.fit(X, y)
        voter.fit(X, changed)
        (before, *_), (after, *_) = recorder.seen
        assert_same_bits(before[row], after[row])
        assert (before != after).any()


def test_encodings_that_leak_are_refused_where_training_rows_hear_them():
    X, y = draw("binary")
    for rule in ("linear", "weighted_mean"):
        with pytest.raises(ValueError, match=r"Greedy hold each row's own target \(a leak\)"):
            VoteClassifier(TargetEncoder(cv=Greedy()), rule=rule).fit(X, y)
        with pytest.warns(LeakWarning):
            VoteClassifier(TargetEncoder(cv=LeaveOneOut()), rule=rule).fit(X, y)
    # These learn from no training encodings.
    for rule in ("naive_bayes", "product"):
        greedy = VoteClassifier(TargetEncoder(cv=Greedy()), rule=rule).fit(X, y)
        assert_same_bits(greedy.predict_proba(X), VoteClassifier(rule=rule).fit(X, y).predict_proba(X))


@pytest.mark.parametrize("rule", ["naive_bayes", "product", "weighted_mean"])
@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_every_backend_gives_the_same_bits(each_backend, kind, rule, request):
    X, y = draw(kind)
    phi = "logit" if kind == "binary" else "identity"
    voter = VoteClassifier(rule=rule, phi=phi).fit(X, y)
    known = request.config.stash.setdefault(KNOWN, {})
    found = voter.predict_proba(X), voter.decision_function(X), getattr(voter, "weights_", np.zeros(1))
    for one, other in zip(found, known.setdefault((kind, rule), found), strict=True):
        assert_same_bits(one, other)


KNOWN = pytest.StashKey[dict]()


@pytest.mark.cuda
def test_tables_of_a_device_vote_there(xp):
    rng = np.random.default_rng(3)
    X, y = rng.integers(0, 5, (80, 2)), rng.integers(0, 2, 80)
    for voter in (VoteClassifier(), VoteClassifier(rule="weighted_mean"), VoteClassifier(rule="linear")):
        there = voter.fit(xp.asarray(X), xp.asarray(y)).predict_proba(xp.asarray(X))
        assert_same_bits(there, clone(voter).fit(X, y).predict_proba(X))
    there = VoteRegressor().fit(xp.asarray(X), xp.asarray(y) * 1.5).predict(xp.asarray(X))
    assert_same_bits(there, VoteRegressor().fit(X, y * 1.5).predict(X))


@pytest.mark.host
def test_tables_of_any_library():
    X, y = draw("binary")
    voter = VoteClassifier(rule="weighted_mean").fit(X, y)
    assert voter.feature_names_in_.tolist() == ["c3", "c12", "c60"]
    assert voter.n_features_in_ == 3
    for table in (X.to_numpy(), pl.from_pandas(X), pa.Table.from_pandas(X)):
        other = VoteClassifier(rule="weighted_mean").fit(table, y)
        assert_same_bits(other.predict_proba(table), voter.predict_proba(X))
    assert not hasattr(VoteClassifier().fit(X.to_numpy(), y), "feature_names_in_")


def test_columns_that_do_not_vote_are_left_out():
    X, y = draw("binary")
    alone = VoteClassifier(TargetEncoder(columns=["c3", ("c3", "c12")]), rule="weighted_mean").fit(X, y)
    assert alone.weights_.shape == (2,)
    assert_same_bits(alone.predict_proba(X.assign(c60=7)), alone.predict_proba(X))


def test_encodings_that_are_no_numbers_say_nothing():
    X, y = draw("binary")
    new = pd.DataFrame([["?", "?", "?"]], columns=X.columns)
    silent = VoteClassifier(TargetEncoder(handle_unknown="nan"), rule="weighted_mean").fit(X, y)
    assert silent.predict_proba(new)[0, 1] == pytest.approx((y == "yes").mean())


@pytest.mark.host
def test_they_are_pickled_and_cloned():
    X, y = draw("multiclass")
    for rule in ("naive_bayes", "linear", "weighted_mean"):
        voter = VoteClassifier(rule=rule, encoder=TargetEncoder(smooth=3.0)).fit(X, y)
        again = pickle.loads(pickle.dumps(voter))
        assert_same_bits(again.predict_proba(X), voter.predict_proba(X))
        assert clone(voter).get_params()["encoder__smooth"] == 3.0
    assert voter.encoder.get_params()["indicators"] is False


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"rule": "majority"}, ValueError, "'rule' parameter of VoteClassifier"),
        ({"phi": "cube"}, ValueError, "'phi' parameter"),
        ({"phi": 0.0}, ValueError, "'phi' parameter"),
        ({"clip": 0.5}, ValueError, "'clip' parameter"),
        ({"tol": 0}, ValueError, "'tol' parameter"),
        ({"max_rounds": 0}, ValueError, "'max_rounds' parameter"),
        ({"encoder": CountEncoder()}, TypeError, "one like TargetEncoder"),
        ({"encoder": LogisticRegression()}, TypeError, "one like TargetEncoder"),
        ({"encoder": "target"}, TypeError, "one like TargetEncoder. Got 'target'"),
        ({"encoder": TargetEncoder(scale="logit")}, ValueError, "scale='identity'"),
        ({"encoder": TargetEncoder(cv=KFold(2, blow_up=True)), "rule": "linear"}, ValueError, "blow_up"),
    ],
)
def test_what_is_refused(parameters, error, message):
    X, y = draw("binary")
    with pytest.raises(error, match=message):
        VoteClassifier(**parameters).fit(X, y)


def test_targets_of_another_kind_are_refused():
    X, y = draw("continuous")
    with pytest.raises(ValueError, match="VoteRegressor is for quantities"):
        VoteClassifier().fit(X, y)
    with pytest.raises(ValueError, match="y has one class"):
        VoteClassifier().fit(X, np.ones(len(y), int))
    with pytest.raises(ValueError, match="several targets"):
        VoteClassifier(TargetEncoder(target_type=["binary", "binary"])).fit(X, np.column_stack([y > 1, y > 2]))
    with pytest.raises(ValueError, match="a y of at least 0"):
        VoteRegressor(phi="sqrt").fit(X, -y)
    with pytest.raises(ValueError, match="at most 1"):
        VoteRegressor(phi="logit").fit(X, y)
    with pytest.raises(ValueError, match="VoteRegressor requires y"):
        VoteRegressor().fit(X, None)
    with pytest.raises(NotFittedError):
        VoteClassifier().predict(X)


@pytest.mark.host
def test_what_fails_while_weights_are_learned_leaves_nothing_behind():
    X, y = draw("binary")
    voter = VoteClassifier(rule="linear", estimator=LogisticRegression(C=-1.0))
    with pytest.raises(ValueError, match="'C' parameter"):
        voter.fit(X, y)
    with pytest.raises(NotFittedError):
        voter.predict(X)
    assert not any(name.endswith("_") and not name.startswith("_") for name in vars(voter))


def test_the_ascent_says_where_it_was_cut_off():
    X, y = draw("binary")
    with pytest.warns(ConvergenceWarning, match="max_rounds=1 rounds"):
        voter = VoteClassifier(rule="weighted_mean", max_rounds=1).fit(X, y)
    assert voter.n_rounds_ == 1
    assert sorted(voter.weights_.tolist()) == [0, 0, 1]


def fails(estimator):
    """Name the checks that an estimator is known to fail, and say why."""
    apart = "folds are functions of the row number, so that repeated rows stand in several"
    return {} if estimator.rule == "naive_bayes" else {"check_sample_weight_equivalence_on_dense_data": apart}


@pytest.mark.host
# scikit-learn's rows have classes of one row.
@pytest.mark.filterwarnings("ignore:The least populated class", "ignore:Some rows see no rows")
@pytest.mark.parametrize(
    "estimator", [VoteClassifier(), VoteRegressor(), VoteClassifier(rule="weighted_mean")], ids=str
)
def test_estimator_checks(estimator):
    assert unexpected(estimator, fails(estimator)) == {}
