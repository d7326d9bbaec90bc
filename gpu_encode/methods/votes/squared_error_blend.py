"""Convex blends of predictions of quantities or of class probabilities, chosen by their squared error."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.optimize import nnls
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from cpu_fallback.exact import Floats
from cpu_fallback.types import Array
from gpu_encode.formulas.auc import read_scores
from gpu_encode.methods.votes.blends import check_columns, check_shape, mix
from gpu_encode.methods.votes.squared_error import power_above
from gpu_encode.seam import devices, ops
from gpu_encode.sums.targets import Labels, check_weight
from gpu_encode.tables import frames
from gpu_encode.words.annotations import Table, Vector
from gpu_encode.words.errors.parameters import KnownKeywords
from gpu_encode.words.errors.tables import other_width
from gpu_encode.words.errors.targets import no_target

OWNER = "SquaredErrorBlend"
NO_INFINITY = "Drop these rows, or clip the predictions."


@dataclass(eq=False, repr=False)
class SquaredErrorBlend(KnownKeywords, BaseEstimator):
    """Blend predictions of a quantity, or class probabilities, with shares of the least squared error.

    The blend is a1 * p1 + a2 * p2 + ..., with shares of at least 0 that add up to 1.  Of all such shares, those with
    the least sum of squared errors on validation rows are taken.  For classes this is the Brier score, the sum over all
    classes of squared differences between the probability and 0 or 1.

    Attributes
    ----------
    weights_ : float64 ndarray of shape (n_predictions,)
        The shares.
    squared_error_ : float
        Mean squared error of the blended validation rows; for classes summed over the classes.
    classes_ : ndarray of shape (n_classes,)
        Only for class probabilities: the sorted labels, in the order of the probabilities.

    See Also
    --------
    ConvexBlend : Scores of two classes, chosen by the area under the ROC curve.

    Notes
    -----
    Since shares add up to 1, the error of a blend is the blend of the errors, and its squared length is a' G a, where G
    holds the products of the vectors of errors.  Each product is the rounded sum of rounded products, whatever the
    order of rows.  The best a is a solution of non-negative least squares, divided by its sum (Lawson and Hanson,
    "Solving Least Squares Problems", 1974, chapter 23; SciPy's ``nnls``).  It is not exact: its error is about 1e-8.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import SquaredErrorBlend
    >>> y = [1.0, 2.0, 4.0]
    >>> blend = SquaredErrorBlend().fit([[0.0, 3.0], [1.0, 4.0], [3.0, 6.0]], y)
    >>> blend.weights_.round(6).tolist(), round(blend.squared_error_, 6)
    ([0.666667, 0.333333], 0.0)
    >>> blend.predict([[5.0, 8.0]]).round(6).tolist()
    [6.0]

    Probabilities of two models for three classes, in the order of the sorted labels:

    >>> sure = [[0.8, 0.1, 0.1], [0.6, 0.4, 0.0], [0.2, 0.2, 0.6]]
    >>> unsure = [[0.4, 0.3, 0.3], [0.2, 0.5, 0.3], [0.2, 0.3, 0.5]]
    >>> P = np.stack([sure, unsure], axis=1)
    >>> blend = SquaredErrorBlend().fit(P, ["bus", "car", "train"])
    >>> blend.weights_.round(3).tolist()
    [0.769, 0.231]
    >>> blend.classes_.tolist(), blend.predict(P)[0].round(2).tolist()
    (['bus', 'car', 'train'], [0.71, 0.15, 0.15])
    """

    def fit(self, P: Table, y: Vector, *, sample_weight: Vector | None = None) -> Self:  # noqa: N803
        """Choose the shares on validation rows.

        Parameters
        ----------
        P : table of shape (n_rows, n_predictions), or array of shape (n_rows, n_predictions, n_classes)
            Predictions of a quantity by at least two models, or the probabilities of each class; all finite.
            ``np.stack([model.predict_proba(X) for model in models], axis=1)`` makes such an array.
        y : array of shape (n_rows,)
            The quantity, or a label for each row.
        sample_weight : array of shape (n_rows,), optional
            How much each row counts; one each by default.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If predictions are missing or infinite, or if there are not as many labels as classes.
        """
        if y is None:
            raise no_target(OWNER)
        with devices.explain_memory():
            errors = Errors.read(OWNER, P, y, sample_weight, "P")
        self.weights_, self.squared_error_ = errors.blend(range(len(errors.columns)))
        self.n_features_in_ = len(self.weights_)
        # A blend that was fitted to classes before may be fitted to a quantity.
        if errors.classes is not None:
            self.classes_: Array = errors.classes
        elif hasattr(self, "classes_"):
            del self.classes_
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def predict(self, P: Table) -> Array:  # noqa: N803
        """Blend the predictions of rows.

        Parameters
        ----------
        P : table of shape (n_rows, n_predictions), or array of shape (n_rows, n_predictions, n_classes)
            Predictions of the models that were given to fit.

        Returns
        -------
        float64 ndarray of shape (n_rows,) or (n_rows, n_classes)

        Raises
        ------
        ValueError
            If there are other numbers of models or classes than in fit, or if predictions are missing or infinite.
        """
        check_is_fitted(self, "weights_")
        columns = read_predictions(OWNER, P, "P")
        if len(columns) != len(self.weights_):
            raise other_width(OWNER, len(columns), len(self.weights_))
        n_classes = len(self.classes_) if hasattr(self, "classes_") else None
        found = columns[0].shape[1] if columns[0].ndim == 2 else None
        if found != n_classes:
            raise ValueError(f"{OWNER} was fitted to {kind_of(n_classes)}. P holds {kind_of(found)}.")
        check_columns(OWNER, columns, NO_INFINITY)
        return mix(columns, self.weights_.tolist())


@dataclass(frozen=True, eq=False)
class Errors:
    """Predictions of models, and the sums of products of their errors.

    Parameters
    ----------
    columns : list of float64 array
        The predictions of each model, of shape (rows,) or (rows, classes), on the host.
    classes : array or None
        The sorted labels, if classes are predicted.
    products : float64 array (models, models)
        In units of unit**2.
    total : float
        Sum of the weights.
    unit : float
        A power of two.
    """

    columns: list[Floats]
    classes: Array | None
    products: Floats
    total: float
    unit: float

    @classmethod
    def read(cls, owner: str, P: Any, y: Any, sample_weight: Any, role: str) -> Self:  # noqa: N803
        """Read predictions, the target and weights; `role` is the name of the predictions."""
        columns = read_predictions(owner, P, role)
        check_columns(owner, columns, NO_INFINITY)
        wanted, classes = read_wanted(owner, y, columns, role)
        weight = np.ones(len(wanted))
        if sample_weight is not None:
            given = frames.on_host([(None, frames.read_vector(sample_weight, "sample_weight", len(wanted)))])
            weight = np.asarray(check_weight(ops.host(len(wanted)), given), np.float64)
        errors = [column - wanted for column in columns]
        unit = power_above(max(float(np.abs(error).max()) for error in errors))
        products = gram([error / unit for error in errors], weight)
        return cls(columns, classes, products, math.fsum(weight.tolist()) or 1.0, unit)

    def blend(self, models: Sequence[int]) -> tuple[Floats, float]:
        """Give the best shares of some of the models, and the mean squared error of their blend."""
        products = self.products[np.ix_(models, models)]
        shares = least_on_simplex(products)
        return shares, float(shares @ products @ shares) / self.total * self.unit**2


def read_predictions(owner: str, P: Any, role: str) -> list[Floats]:  # noqa: N803
    """Give the predictions of each model, of shape (rows,) or (rows, classes), on the host."""
    check_shape(owner, P)
    is_list_of_tables = isinstance(P, (list, tuple)) and len(P) > 0 and np.ndim(P[0]) > 1
    if is_list_of_tables or len(getattr(P, "shape", ())) > 3:
        raise ValueError(
            f"{owner} takes a column for each model, or class probabilities as an array (rows, models, classes). Join "
            f"those of several models by {role} = np.stack([model.predict_proba(X) for model in models], axis=1)."
        )
    if getattr(P, "ndim", 2) != 3:
        given = [values for _, values in frames.read_targets(P, None, role)]
        columns = [column.astype(np.float64) for column in read_scores(owner, given, ops.host(len(given[0])), role)]
    else:
        stacked = np.asarray(frames.to_host(P))
        if stacked.dtype.kind not in "biuf":
            raise ValueError(f"{owner} needs numbers as probabilities. {role} holds {stacked.dtype}: convert it.")
        stacked = stacked.astype(np.float64)
        if np.isnan(stacked).any():
            raise ValueError(f"{owner} needs all probabilities. {role} holds NaN.")
        columns = [stacked[:, number] for number in range(stacked.shape[1])]
    return columns


def read_wanted(owner: str, y: Any, columns: Sequence[Floats], role: str) -> tuple[Floats, Array | None]:
    """Give the numbers to predict, for classes 0 and 1 by row and class; also the sorted labels."""
    n_rows, of_classes = len(columns[0]), columns[0].ndim == 2
    values = frames.on_host([(None, frames.read_vector(y, "y"))])
    if len(values) != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {[len(values), n_rows]}. {owner} needs a "
            f"target for every row: y has {len(values)}, and {role} {n_rows}."
        )
    labels = Labels(ops.host(n_rows), values)
    if not of_classes:
        if values.dtype.kind not in "biuf":
            raise ValueError(
                f"{owner} blends predictions of numbers. y holds others: for classes, {role} has three axes."
            )
        return np.asarray(labels.checked, np.float64), None
    names, codes = labels.distinct
    if len(names) != columns[0].shape[1]:
        raise ValueError(
            f"{owner} needs a label for each of {columns[0].shape[1]} classes of {role}. y has {len(names)}."
        )
    return np.eye(len(names))[codes], names


def kind_of(n_classes: int | None) -> str:
    """Say what predictions are of; None: of a quantity."""
    return "predictions of a quantity" if n_classes is None else f"probabilities of {n_classes} classes"


def gram(errors: Sequence[Floats], weight: Floats) -> Floats:
    """Give the weighted sums of products of vectors of errors; the order of rows changes no bit."""
    products = np.empty((len(errors), len(errors)))
    for i, one in enumerate(errors):
        for j, other in enumerate(errors[: i + 1]):
            by_row = one * other if one.ndim == 1 else (one * other).sum(axis=1)
            products[i, j] = products[j, i] = math.fsum((by_row * weight).tolist())
    return products


def least_on_simplex(products: Floats) -> Floats:
    """Find the vector a of at least 0, with sum 1, and the least a' G a."""
    values, vectors = np.linalg.eigh(products)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    # Whatever factor the row of ones has, the solution is the best a times a number; this factor has the size of G.
    ones = math.sqrt(float(np.trace(products)) / len(products)) or 1.0
    matrix = np.vstack([root, np.full(len(products), ones)])
    found, _ = nnls(matrix, np.append(np.zeros(len(products)), ones))
    shares: Floats = found / found.sum()
    return shares
