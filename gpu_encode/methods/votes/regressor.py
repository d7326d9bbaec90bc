"""VoteRegressor: the encodings of columns are votes for a quantity."""

from dataclasses import dataclass
from typing import Literal, Self

from sklearn.base import RegressorMixin
from sklearn.linear_model import Ridge

from cpu_fallback.types import Array
from gpu_encode.encoders.base import publish_encoder
from gpu_encode.fitting.fit import FitContext
from gpu_encode.methods.votes.phi import take_off
from gpu_encode.methods.votes.rules import Votes
from gpu_encode.methods.votes.squared_error import SquaredError
from gpu_encode.methods.votes.voter import Voter
from gpu_encode.seam import devices
from gpu_encode.words.annotations import Table, Vector

# If one weight must outgrow all others, errors fall for ever; so a step has to lower them by more than this share.
LEAST_RISE = 1e-4


@dataclass(eq=False, repr=False)
class VoteRegressor(RegressorMixin, Voter):
    """Predict a quantity from the votes of columns: the encoding g of a column is its vote.

    There are two rules for the votes g_1, ..., g_n of a row.  Both learn from training encodings, in which no row has
    seen its own target:

    - "weighted_mean": the mean of phi(g_j) over the columns with a seen category, with weights w_j >= 0, transformed
      back by the inverse of phi.  The weights are found by coordinate ascent, in which each step lowers the squared
      error by more than a ten-thousandth.  If no category is seen, or no such column has weight, the prediction is the
      mean of all rows.
    - "linear": a linear model of phi(g_1), ..., phi(g_n) and of 0/1 columns for unseen categories.

    Parameters
    ----------
    encoder : TargetEncoder, optional
        An encoder that encodes by means of the target; it is cloned, with target_type "continuous".  None:
        ``TargetEncoder()``.
    rule : {"weighted_mean", "linear"}, default="weighted_mean"
        How votes become a prediction; see the formulas above.
    phi : {"identity", "log", "sqrt", "logit"} or float, default="identity"
        Scale of the votes: the votes themselves, their logarithm, square root or log-odds, or a power.  All except
        "identity" need a y of at least 0, and "logit" also needs a y of at most 1.
    estimator : regressor, optional
        For "linear"; it is cloned, and runs on the host.  None: ``Ridge()``.
    clip : float, default=1e-6
        For logarithms and log-odds, votes are kept at least this far from 0 (for "logit", also from 1).
    tol : float, default=1e-3
        For "weighted_mean": steps of weights begin at 1, and are halved until they are smaller than this.
    max_rounds : int, default=200
        For "weighted_mean": the largest number of rounds; each round tries every weight.

    Attributes
    ----------
    encoder_ : TargetEncoder
        The fitted encoder.
    weights_ : float64 ndarray of shape (n_keys,)
        For "weighted_mean".
    n_rounds_ : int
        For "weighted_mean".
    path_ : list of list of float
        For "weighted_mean": for each step that raised a weight the number of the key, the step, and minus the mean
        squared error after it.
    estimator_ : regressor
        For "linear".
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Only if X had string column names.

    See Also
    --------
    VoteClassifier : The same for classes.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import VoteRegressor
    >>> X = np.array([["a", "x"], ["a", "y"], ["b", "x"], ["b", "y"]] * 10, dtype=object)
    >>> y = np.array([1.0, 1.0, 3.0, 3.0] * 10)
    >>> voter = VoteRegressor().fit(X, y)
    >>> voter.weights_.tolist()
    [1.0, 0.0]
    >>> voter.predict([["a", "x"], ["b", "x"], ["never", "seen"]]).round(3).tolist()
    [1.0, 3.0, 2.0]
    """

    rule: Literal["weighted_mean", "linear"] = "weighted_mean"
    _rules = ("weighted_mean", "linear")

    def fit(self, X: Table, y: Table, *, sample_weight: Vector | None = None, groups: Vector | None = None) -> Self:
        """Learn the votes of columns, and how much each vote counts.

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
            For bad input, a y outside of the range of the scale `phi`, or training encodings that contain each row's
            own target (`Greedy`).
        """
        self._check(X, y)
        with devices.explain_memory():
            encoder = self._make_encoder(target_type="continuous")
            context, votes = self._encode_training_rows(encoder, X, y, sample_weight, groups)
            self._check_target(context)
            (self._fit_linear if self.rule == "linear" else self._fit_weights)(context, votes)
        publish_encoder(self, encoder)
        return self

    def _check_target(self, context: FitContext) -> None:
        y = context.targets[0].values
        least, largest = float(y.min()), float(y.max())
        if self.phi != "identity" and (least < 0 or (self.phi == "logit" and largest > 1)):
            raise ValueError(
                f"phi={self.phi!r} of VoteRegressor needs a y of at least 0{' and at most 1' * (self.phi == 'logit')}. "
                f"It lies between {least:g} and {largest:g}: use phi='identity'."
            )

    def _usual_estimator(self) -> Ridge:
        return Ridge()

    def _fit_weights(self, context: FitContext, votes: Votes) -> None:
        error = SquaredError.of(context.rows.ops, context.targets[0].values, context.rows.weight)
        ascent = self._weigh(votes, 0, lambda mean: error.score(take_off(mean, self.phi)), LEAST_RISE)
        self.weights_, self.n_rounds_ = ascent.numbers, ascent.n_rounds
        self.path_ = [[key, step, score * error.unit * error.unit] for key, step, score in ascent.path]

    def predict(self, X: Table) -> Array:
        """Predict the quantity of each row.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Rows, in the columns of fit.

        Returns
        -------
        float64 ndarray of shape (n_rows,)
        """
        votes = self._encode_new_rows(X)
        if self.rule == "linear":
            predictions: Array = self.estimator_.predict(votes.matrix(self.phi, self.clip))
            return predictions
        return votes.ops.to_host(take_off(self._mean(votes, 0).at(self.weights_.tolist()), self.phi))
