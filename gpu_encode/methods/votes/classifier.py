"""VoteClassifier: the encodings of columns are votes for classes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from sklearn.linear_model import LogisticRegression

from cpu_fallback.elementary import exp, log
from cpu_fallback.exact import Floats
from cpu_fallback.types import Array
from gpu_encode.encoders.base import Encoder, publish_encoder
from gpu_encode.fitting.fit import FitContext
from gpu_encode.formulas.ordered_pairs import PairCounter
from gpu_encode.methods.predictor import ScoringClassifier
from gpu_encode.methods.votes.phi import put_on, sigmoid, take_off
from gpu_encode.methods.votes.rules import Votes, divide_by_sum, log_posteriors, log_products, share_out
from gpu_encode.methods.votes.voter import Voter
from gpu_encode.seam import devices
from gpu_encode.words.annotations import Table, Vector


@dataclass(eq=False, repr=False)
class VoteClassifier(ScoringClassifier, Voter):
    """Classify rows by the votes of their columns: the encoding g of a column is its vote.

    Four rules join the votes g_1, ..., g_n of a row:

    - "naive_bayes": the sum of logit(g_j), minus (n - 1) logit(mu) for the overall share mu, is the log-odds.  A column
      whose category is unseen votes mu, which changes nothing.
    - "product": the product of the g_j, as printed in [1]_.  It counts mu n times, so it ranks rows, but is not a
      probability.
    - "linear": a linear model of phi(g_1), ..., phi(g_n) and of 0/1 columns for unseen categories.
    - "weighted_mean": the mean of phi(g_j) over the columns with a seen category, with weights w_j >= 0.  The weights
      are found by coordinate ascent on the exact area under the ROC curve of training rows.  If no category is seen, or
      no such column has weight, the prediction is the share in all rows.

    The last two rules learn from training encodings, in which no row has seen its own target.  With more than two
    classes, each class has its own votes; the scores are divided by their sum.

    Parameters
    ----------
    encoder : TargetEncoder, optional
        An encoder that encodes by the share of each class; it is cloned.  Its `columns` vote, joint keys included.
        None: ``TargetEncoder()``.
    rule : {"naive_bayes", "product", "linear", "weighted_mean"}, default="naive_bayes"
        How votes become a score; see the formulas above.
    phi : {"identity", "log", "sqrt", "logit"} or float, default="identity"
        Scale of the votes, for "linear" and "weighted_mean": the votes themselves, their logarithm, square root or
        log-odds, or a power.
    estimator : classifier, optional
        For "linear"; it is cloned, and runs on the host.  None: ``LogisticRegression(max_iter=1000)``.
    clip : float, default=1e-6
        For logarithms and log-odds, votes are kept at least this far from 0 and 1.
    tol : float, default=1e-3
        For "weighted_mean": steps of weights begin at 1, and are halved until they are smaller than this.
    max_rounds : int, default=200
        For "weighted_mean": the largest number of rounds; each round tries every weight.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    encoder_ : TargetEncoder
        The fitted encoder.
    weights_ : float64 ndarray of shape (n_keys,) or (n_classes, n_keys)
        For "weighted_mean".
    training_auc_ : float, or float64 ndarray of shape (n_classes,)
        For "weighted_mean": the exact area under the ROC curve of the weights on training encodings; with more than two
        classes, of each class against the rest.
    n_rounds_ : int
        For "weighted_mean": number of rounds; with several classes, the largest one.
    path_ : list of list of float
        For "weighted_mean": for each step that raised a weight the number of the key, the step, and the area after it;
        with more than two classes a list of these for each class.
    estimator_ : classifier
        For "linear".
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Only if X had string column names.

    See Also
    --------
    VoteRegressor : The same for continuous targets.

    Notes
    -----
    Votes, weights and scores are computed on the device of the encoder, with the same bits on every device; "linear"
    trains on the host, as exactly as its estimator does.  Predictions are NumPy arrays.

    References
    ----------
    .. [1] D'yakonov, "Solution methods for classification problems with categorical attributes", Computational
       Mathematics and Modeling 26(3), 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import VoteClassifier
    >>> X = np.array([["a", "x"], ["a", "y"], ["b", "x"], ["b", "y"]] * 10, dtype=object)
    >>> y = np.array([0, 0, 0, 1] * 10)
    >>> voter = VoteClassifier().fit(X, y)
    >>> voter.predict_proba([["a", "x"], ["b", "y"], ["never", "seen"]]).round(3).tolist()
    [[1.0, 0.0], [0.274, 0.726], [0.75, 0.25]]
    >>> VoteClassifier(rule="weighted_mean").fit(X, y).weights_.tolist()
    [1.0, 1.0]
    """

    rule: Literal["naive_bayes", "product", "linear", "weighted_mean"] = "naive_bayes"
    _rules = ("naive_bayes", "product", "linear", "weighted_mean")

    def fit(self, X: Table, y: Table, *, sample_weight: Vector | None = None, groups: Vector | None = None) -> Self:
        """Learn the votes of columns and, if the rule has weights, how much each vote counts.

        Parameters
        ----------
        X, y, sample_weight, groups
            As in `TargetEncoder.fit_transform`.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For bad input, a continuous y, or training encodings that contain each row's own target (`Greedy`).
        """
        self._check(X, y)
        encoder = self._make_encoder()
        with devices.explain_memory():
            if self.rule in ("naive_bayes", "product"):
                classes = self._read_classes(encoder.fit(X, y, sample_weight=sample_weight, groups=groups))
            else:
                context, votes = self._encode_training_rows(encoder, X, y, sample_weight, groups)
                classes = self._read_classes(encoder)
                (self._fit_linear if self.rule == "linear" else self._fit_weights)(context, votes)
        self.classes_: Array = classes
        publish_encoder(self, encoder)
        return self

    def _read_classes(self, encoder: Encoder) -> Array:
        """Give the labels that the encoder found; ValueError unless there is one target with at least two classes."""
        (target, *others) = encoder._fitted().targets
        if others or target.classes is None:
            raise ValueError(
                f"Unknown label type: {type(self).__name__} needs one target of classes, and y is "
                f"{'several targets' if others else target.kind}. VoteRegressor is for quantities."
            )
        if len(target.classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs two classes or more. y has one class: {target.classes.tolist()[0]!r}."
            )
        return target.classes

    def _usual_estimator(self) -> LogisticRegression:
        return LogisticRegression(max_iter=1000)

    def _fit_weights(self, context: FitContext, votes: Votes) -> None:
        """Find the weights of the votes for every output."""
        codes, rows = context.targets[0].values, context.rows
        labels = [1] if len(votes.means) == 1 else range(len(votes.means))
        counters = [PairCounter(rows.ops, codes == label, rows.weight) for label in labels]
        found = [self._weigh(votes, output, counter.count) for output, counter in enumerate(counters)]
        pairs = [2 * counter.pairs for counter in counters]
        areas = [ascent.score / n if n else math.nan for ascent, n in zip(found, pairs, strict=True)]
        paths = [
            [[key, step, count / n] for key, step, count in ascent.path] for ascent, n in zip(found, pairs, strict=True)
        ]
        weights = np.array([ascent.numbers for ascent in found])
        several = len(found) > 1
        self.weights_: Array = weights if several else weights[0]
        self.training_auc_: Any = np.array(areas) if several else areas[0]
        self.path_: list[Any] = paths if several else paths[0]
        self.n_rounds_ = max(ascent.n_rounds for ascent in found)

    def decision_function(self, X: Table) -> Array:
        """Score rows: above zero if the second of two classes is more likely; with more classes, one score for each.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Rows, in the columns of fit.

        Returns
        -------
        float64 ndarray of shape (n_rows,) or (n_rows, n_classes)
            Log-odds, or logarithms, for "naive_bayes" and "product"; the estimator's score for "linear"; for
            "weighted_mean" the mean minus phi(1/2), or with more than two classes the means.
        """
        votes = self._encode_new_rows(X)
        if self.rule == "linear":
            scores: Array = self.estimator_.decision_function(votes.matrix(self.phi, self.clip))
            return scores
        return side_by_side(votes, self._decisions(self._scores(votes)))

    def predict_proba(self, X: Table) -> Array:
        """Give the probability of each class.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Rows, in the columns of fit.

        Returns
        -------
        float64 ndarray of shape (n_rows, n_classes)
        """
        votes = self._encode_new_rows(X)
        if self.rule == "linear":
            chances: Array = self.estimator_.predict_proba(votes.matrix(self.phi, self.clip))
            return chances
        chances_of_rows = self._chances(self._scores(votes))
        if len(chances_of_rows) == 1:
            chances_of_rows = [1.0 - chances_of_rows[0], chances_of_rows[0]]
        return side_by_side(votes, chances_of_rows)

    def predict(self, X: Table) -> Array:
        """Give the most likely class; among equals the first.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Rows, in the columns of fit.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        if self.rule != "linear":
            return super().predict(X)
        votes = self._encode_new_rows(X)
        labels: Array = self.classes_[self.estimator_.predict(votes.matrix(self.phi, self.clip))]
        return labels

    def _scores(self, votes: Votes) -> list[Floats]:
        """Give the score of the rule for each output, on the rule's own scale."""
        if self.rule == "naive_bayes":
            return log_posteriors(votes, self.clip)
        if self.rule == "product":
            return log_products(votes, self.clip)
        weights = np.atleast_2d(self.weights_).tolist()
        return [self._mean(votes, output).at(of_output) for output, of_output in enumerate(weights)]

    def _decisions(self, scores: list[Floats]) -> list[Floats]:
        if self.rule == "weighted_mean":
            half = float(put_on(np.array([0.5]), self.phi, self.clip)[0])
            return [take_off(score, self.phi) for score in scores] if len(scores) > 1 else [scores[0] - half]
        if self.rule == "product" and len(scores) == 1:
            # Log-odds rank rows as the product does, also if the product underflows.
            return [scores[0] - log(1.0 - exp(scores[0]))]
        return scores

    def _chances(self, scores: list[Floats]) -> list[Floats]:
        if self.rule == "weighted_mean":
            means = [take_off(score, self.phi) for score in scores]
            return means if len(means) == 1 else divide_by_sum(means)
        if len(scores) > 1:
            return share_out(scores)
        return [exp(scores[0]) if self.rule == "product" else sigmoid(scores[0])]


def side_by_side(votes: Votes, columns: Sequence[Floats]) -> Array:
    """Give columns as an array on the host; a single column becomes one-dimensional."""
    on_host = [votes.ops.to_host(column) for column in columns]
    return on_host[0] if len(on_host) == 1 else np.column_stack(on_host)
