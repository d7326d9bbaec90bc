"""ProximityClassifier and ProximityRegressor: predictions from the votes of training rows."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_is_fitted, column_or_1d

from cpu_fallback.types import Array
from gpu_encode.encoders.base import publish_encoder
from gpu_encode.methods.predictor import Predictor, ScoringClassifier
from gpu_encode.methods.proximity.encoder import ProximityEncoder
from gpu_encode.seam import devices
from gpu_encode.words.annotations import ArrayLike, Column, Columns, Device, Seed, Table, TargetType, Vector
from gpu_encode.words.errors.targets import no_target


@dataclass(eq=False, repr=False)
class Voting(Predictor):
    """The base of both estimators: parameters, and an encoder that counts the votes."""

    order: int = 2
    degree: float | Literal["tune"] = "tune"
    form: Literal["ratio", "difference"] = "ratio"
    weights: Literal["tune"] | Mapping[tuple[Column, ...], float] | ArrayLike = "tune"
    tol: float = 0.125
    _: KW_ONLY
    tuning_rows: int | Literal["auto"] | None = "auto"
    max_rounds: int | Literal["auto"] = "auto"
    random_state: Seed = 0
    columns: Columns = None
    handle_missing: Literal["category", "never", "error"] = "category"
    device: Device = "auto"

    def _fit(self, X: Any, y: Any, sample_weight: Any, target_type: TargetType) -> None:
        """Fit the encoder, and set the attributes that scikit-learn expects."""
        encoder = ProximityEncoder(target_type=target_type, **self.get_params(deep=False))
        encoder._called = type(self).__name__
        publish_encoder(self, encoder.fit(X, y, sample_weight=sample_weight))

    def _read_target(self, y: Any) -> Any:
        """Give the target; if it is a column vector, warn as scikit-learn does."""
        if y is None:
            raise no_target(type(self).__name__)
        return y if devices.on_gpu(y) else column_or_1d(y, warn=True)

    def _vote(self, X: Any) -> Array:
        check_is_fitted(self, "encoder_")
        votes: Array = self.encoder_.vote(X)
        return votes


@dataclass(eq=False, repr=False)
class ProximityClassifier(ScoringClassifier, Voting):
    """Classify rows by the votes of training rows, which weigh more the more subsets of features they agree in.

    Parameters
    ----------
    order : int, default=2
        Most features of a subset.
    degree : float or "tune", default="tune"
        Power of the summed weights of the subsets in which two rows agree.
    form : {"ratio", "difference"}, default="ratio"
        "ratio": the share of the votes that are for a class.  "difference": the votes for a class divided by the weight
        of its rows, minus the votes against it divided by the weight of the other rows.
    weights : "tune", dict or array, default="tune"
        Weight of each subset; "tune" raises the leave-one-out area under the ROC curve, one weight at a time.
    tol : float, default=0.125
        Smallest step of the tuning.
    tuning_rows : int, "auto" or None, default="auto"
        Number of random training rows that are scored while tuning; "auto": at most 4,000; None: all.
    max_rounds : int or "auto", default="auto"
        Largest number of rounds of the tuning; "auto": 200, or fewer if a round takes long.
    random_state : int, NumPy generator or None, default=0
        Seed of the choice of these rows.
    columns : list, "categorical", selector, pattern or function, optional
        The features; other columns are ignored.  None: all columns.
    handle_missing : {"category", "never", "error"}, default="category"
        A missing value agrees with other missing values ("category"), or with nothing ("never").
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where votes are counted; predictions are NumPy arrays.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels of y.
    encoder_ : ProximityEncoder
        The fitted encoder, with `subsets_`, `weights_`, `degree_` and the tuning's `path_`.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Only if X had string column names.

    See Also
    --------
    ProximityEncoder : Explains all parameters, with formulas; gives votes as a column, without a leak.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import ProximityClassifier
    >>> X = np.array([["a", "x"], ["a", "y"], ["b", "x"], ["b", "y"]] * 3, dtype=object)
    >>> model = ProximityClassifier().fit(X, ["no", "yes", "yes", "no"] * 3)
    >>> model.predict([["a", "y"], ["b", "y"]]).tolist()
    ['yes', 'no']
    >>> model.encoder_.weights_.tolist()
    [0.0, 0.0, 0.0, 1.0]
    """

    def fit(self, X: Table, y: Table, sample_weight: Vector | None = None) -> Self:
        """Store the training rows, and tune the weights of their votes.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Rows to learn from.
        y : array of shape (n_rows,)
            The target of each row.
        sample_weight : array of shape (n_rows,), optional
            How much each row counts; one each by default.

        Returns
        -------
        self
        """
        y = self._read_target(y)
        if not devices.on_gpu(y):
            assert_all_finite(y, input_name="y")
            check_classification_targets(y)
        self._fit(X, y, sample_weight, "multiclass")
        self.classes_: Array = np.asarray(self.encoder_.classes_)
        return self

    def decision_function(self, X: Table) -> Array:
        """Give the score of the second class, above zero if it is predicted; with more classes, a score for each.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Rows, in the columns of fit.

        Returns
        -------
        float64 ndarray of shape (n_rows,) or (n_rows, n_classes)
            The votes; for a ratio of two classes, minus one half.
        """
        votes = self._vote(X)
        if len(self.classes_) != 2:
            return votes
        return votes[:, 1] - 0.5 if self.form == "ratio" else votes[:, 1]

    @available_if(lambda self: self.form == "ratio")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Table) -> Array:
        """Give the share of each class in the votes: (n_rows, n_classes); only if `form` is "ratio".

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Rows, in the columns of fit.

        Returns
        -------
        float64 ndarray of shape (n_rows, n_classes)
        """
        return self._vote(X)


@dataclass(eq=False, repr=False)
class ProximityRegressor(RegressorMixin, Voting):
    """Predict the mean target of training rows, which weigh more the more subsets of features they agree in.

    Parameters
    ----------
    order : int, default=2
        Most features of a subset.
    degree : float or "tune", default="tune"
        Power of the summed weights of the subsets in which two rows agree.
    form : {"ratio"}, default="ratio"
        Votes for, divided by all votes.
    weights : "tune", dict or array, default="tune"
        Weight of each subset; "tune" lowers the leave-one-out squared error, one weight at a time.
    tol : float, default=0.125
        Smallest step of the tuning.
    tuning_rows : int, "auto" or None, default="auto"
        Number of random training rows that are scored while tuning; "auto": at most 4,000; None: all.
    max_rounds : int or "auto", default="auto"
        Largest number of rounds of the tuning; "auto": 200, or fewer if a round takes long.
    random_state : int, NumPy generator or None, default=0
        Seed of the choice of these rows.
    columns : list, "categorical", selector, pattern or function, optional
        The features; other columns are ignored.  None: all columns.
    handle_missing : {"category", "never", "error"}, default="category"
        A missing value agrees with other missing values ("category"), or with nothing ("never").
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where votes are counted; predictions are NumPy arrays.

    Attributes
    ----------
    encoder_ : ProximityEncoder
        The fitted encoder, with `subsets_`, `weights_`, `degree_` and the tuning's `path_`.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Only if X had string column names.

    See Also
    --------
    ProximityEncoder : Explains all parameters, with formulas; gives votes as a column, without a leak.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import ProximityRegressor
    >>> X = np.array([["a", "x"], ["a", "y"], ["b", "x"], ["b", "y"]] * 3, dtype=object)
    >>> model = ProximityRegressor().fit(X, [1.0, 2.0, 4.0, 8.0] * 3)
    >>> model.predict([["a", "y"], ["b", "never seen"]]).tolist()
    [2.0, 3.75]
    """

    def fit(self, X: Table, y: Table, sample_weight: Vector | None = None) -> Self:
        """Store the training rows, and tune the weights of their votes.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Rows to learn from.
        y : array of shape (n_rows,)
            The target of each row.
        sample_weight : array of shape (n_rows,), optional
            How much each row counts; one each by default.

        Returns
        -------
        self
        """
        self._fit(X, self._read_target(y), sample_weight, "continuous")
        return self

    def predict(self, X: Table) -> Array:
        """Give the mean target of the training rows, weighted by their votes.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Rows, in the columns of fit.

        Returns
        -------
        float64 ndarray of shape (n_rows,)
        """
        return self._vote(X)[:, 0]
