"""Blends of all pairs of several models' predictions, and the similarity of the predictions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np

from cpu_fallback.exact import Floats
from cpu_fallback.types import Array
from gpu_encode.formulas.auc import read
from gpu_encode.methods.votes.blends import check_columns, choose_share, mix, to_ranks
from gpu_encode.methods.votes.squared_error_blend import Errors
from gpu_encode.seam import devices, ops
from gpu_encode.tables import frames
from gpu_encode.words.annotations import Table, Vector
from gpu_encode.words.errors.parameters import MOST_COLUMNS, check_count, check_option
from gpu_encode.words.errors.targets import no_target


@dataclass(frozen=True, eq=False)
class BlendMatrix:
    """The result of `blend_matrix`; all matrices have the shape (n_predictions, n_predictions).

    Parameters
    ----------
    names : list of str
    weights : float64 array
        weights[i, j] is the share of prediction i in its best blend with prediction j.
    auc : float64 array or None
        Areas under the ROC curve of these blends; on the diagonal, those of single predictions.
    pearson, spearman, cosine : float64 array
        Similarity of the predictions: their correlation, the correlation of their ranks, and the cosine of the vectors
        without centring.  NaN if a vector is constant, or zero.  Of class probabilities, all numbers of a model are one
        vector.
    squared_error : float64 array or None
        Instead of areas: mean squared errors of these blends, for classes summed over the classes.
    """

    names: list[str]
    weights: Floats
    auc: Floats | None
    pearson: Floats
    spearman: Floats
    cosine: Floats
    squared_error: Floats | None = None

    def as_dicts(self) -> list[dict[str, Any]]:
        """Give a row for each pair, best first, for `pandas.DataFrame` or `polars.DataFrame`.

        "gain" is how much better the blend is than the better of the two; rounding aside, it is not below zero.
        """
        by_area = self.squared_error is None
        name, scores = ("auc", self.auc) if by_area else ("squared_error", self.squared_error)
        matrix, sign = np.asarray(scores), 1 if by_area else -1
        rows = [
            {
                "first": self.names[i],
                "second": self.names[j],
                "weight": float(self.weights[i, j]),
                name: float(matrix[i, j]),
                "gain": float(sign * matrix[i, j] - max(sign * matrix[i, i], sign * matrix[j, j])),
                "pearson": float(self.pearson[i, j]),
                "spearman": float(self.spearman[i, j]),
                "cosine": float(self.cosine[i, j]),
            }
            for i, j in combinations(range(len(self.names)), 2)
        ]
        return sorted(rows, key=lambda row: -sign * row[name])


def blend_matrix(
    predictions: Table,
    y: Vector,
    *,
    score: Literal["auc", "squared_error"] = "auc",
    sample_weight: Vector | None = None,
    ranks: bool = False,
    grid: int | None = None,
    names: Sequence[str] | None = None,
) -> BlendMatrix:
    """Blend all pairs of several models' predictions, and measure how similar the predictions are.

    Parameters
    ----------
    predictions : table of shape (n_rows, n_predictions), or array of shape (n_rows, n_predictions, n_classes)
        Predictions of validation rows, all finite: scores of two classes, a quantity, or the probabilities of classes.
    y, sample_weight
        As in `ConvexBlend.fit` or `SquaredErrorBlend.fit`.
    score : {"auc", "squared_error"}, default="auc"
        What the shares of each pair are chosen by: the area under the ROC curve of two classes, as in `ConvexBlend`, or
        the squared error of a quantity or of class probabilities, as in `SquaredErrorBlend`.
    ranks, grid
        As in `ConvexBlend`; only for score="auc".
    names : list of str, optional
        Names of the predictions.  None: names of the table's columns, or numbers.

    Returns
    -------
    BlendMatrix
        With matrices `weights`, `auc` or `squared_error`, `pearson`, `spearman`, `cosine`; `as_dicts` gives a row for
        each pair.

    Raises
    ------
    ValueError
        If `score` does not suit the target or the predictions, if `ranks` or `grid` is given for the squared error, or
        if predictions are missing or infinite.

    Notes
    -----
    Shares and areas are those of `ConvexBlend`, with the same bits on every device; shares of the least squared error
    are those of `SquaredErrorBlend`, found on the host.  Correlations are computed in floating point on the host,
    without weights; their error is about 1e-12.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import blend_matrix
    >>> y = [0, 0, 1, 1]
    >>> predictions = np.array([[0.1, 0.5], [0.6, 0.2], [0.4, 0.9], [0.9, 0.4]])
    >>> found = blend_matrix(predictions, y, names=["forest", "linear"])
    >>> found.auc.tolist()
    [[0.75, 1.0], [1.0, 0.75]]
    >>> found.weights.round(3).tolist()
    [[1.0, 0.444], [0.556, 1.0]]

    Predictions of a quantity:

    >>> sold = [1.0, 2.0, 4.0]
    >>> found = blend_matrix([[0.0, 3.0], [1.0, 4.0], [3.0, 6.0]], sold, score="squared_error")
    >>> found.squared_error.round(3).tolist(), found.weights.round(3).tolist()
    ([[1.0, 0.0], [0.0, 4.0]], [[1.0, 0.667], [0.333, 1.0]])
    """
    check_option("blend_matrix", "score", score, ("auc", "squared_error"))
    check_option("blend_matrix", "ranks", ranks, (True, False))
    if grid is not None:
        check_count("blend_matrix", "grid", grid, low=2, high=MOST_COLUMNS)
    if y is None:
        raise no_target("blend_matrix")
    if score == "auc" and getattr(predictions, "ndim", 2) == 3:
        raise ValueError(
            'blend_matrix(score="auc") compares scores of two classes, a column for each model. Probabilities of '
            'several classes need score="squared_error".'
        )
    with devices.explain_memory():
        if score == "auc":
            pairs = by_area(predictions, y, sample_weight, ranks, grid)
        elif ranks or grid is not None:
            raise ValueError('ranks and grid of blend_matrix are for score="auc". Leave them out.')
        else:
            pairs = by_error(predictions, y, sample_weight)
    return BlendMatrix(
        names_of(predictions, names, len(pairs.columns)),
        pairs.weights,
        pairs.scores if score == "auc" else None,
        alike(pairs.columns, np.mean),
        alike(pairs.ranked, np.mean),
        alike(pairs.columns, None),
        None if score == "auc" else pairs.scores,
    )


@dataclass(frozen=True, eq=False)
class Pairs:
    """Vectors of predictions and of their ranks, on the host; shares and scores of the blends of two."""

    columns: list[Floats]
    ranked: list[Array]
    weights: Floats
    scores: Floats


def by_area(predictions: Any, y: Any, sample_weight: Any, ranks: bool, grid: int | None) -> Pairs:
    """Blend all pairs by the area under the ROC curve."""
    counter, columns = read("blend_matrix", y, predictions, sample_weight, "predictions")
    on_host = [counter.ops.to_host(column).astype(np.float64) for column in columns]
    ranked = to_ranks(columns, [np.sort(column) for column in on_host], counter.ops)
    scores = ranked if ranks else columns
    check_columns("blend_matrix", scores)
    weights, auc = np.eye(len(scores)), np.zeros((len(scores), len(scores)))
    for i, column in enumerate(scores):
        auc[i, i] = counter.area(column)
    for i, j in combinations(range(len(scores)), 2):
        weights[i, j], _ = choose_share(counter, scores[i], scores[j], grid)
        weights[j, i] = 1.0 - weights[i, j]
        blended = mix([scores[i], scores[j]], [weights[i, j], weights[j, i]])
        auc[i, j] = auc[j, i] = counter.area(blended)
    return Pairs(on_host, [counter.ops.to_host(column) for column in ranked], weights, auc)


def by_error(predictions: Any, y: Any, sample_weight: Any) -> Pairs:
    """Blend all pairs by the squared error."""
    errors = Errors.read("blend_matrix", predictions, y, sample_weight, "predictions")
    models = range(len(errors.columns))
    weights, squared = np.eye(len(models)), np.zeros((len(models), len(models)))
    for i in models:
        squared[i, i] = errors.blend([i])[1]
    for i, j in combinations(models, 2):
        shares, squared[i, j] = errors.blend([i, j])
        weights[i, j], weights[j, i], squared[j, i] = shares[0], shares[1], squared[i, j]
    columns = [column.reshape(-1) for column in errors.columns]
    ranked = to_ranks(columns, [np.sort(column) for column in columns], ops.host(len(columns[0])))
    return Pairs(columns, ranked, weights, squared)


def names_of(predictions: Any, names: Sequence[str] | None, n_predictions: int) -> list[str]:
    """Give a name for each vector of predictions."""
    if names is None and getattr(predictions, "ndim", 2) == 3:
        return [str(number) for number in range(n_predictions)]
    if names is None:
        found = [name for name, _ in frames.read_targets(predictions, None, "predictions")]
        return [str(number) if name is None else name for number, name in enumerate(found)]
    if len(names) != n_predictions:
        raise ValueError(f"names of blend_matrix names {len(names)} predictions, and there are {n_predictions}.")
    return list(names)


def alike(columns: Sequence[Array], center: Callable[[Array], Any] | None) -> Floats:
    """Give the cosines of vectors, after subtracting their centers."""
    centered = [column if center is None else column - center(column) for column in columns]
    # Scaled to about one, so that squares neither overflow nor vanish.
    peaks = [np.abs(column).max() for column in centered]
    matrix = np.array([column / peak if peak else column for column, peak in zip(centered, peaks, strict=True)])
    products = matrix @ matrix.T
    lengths = np.sqrt(np.diagonal(products))
    with np.errstate(invalid="ignore"):
        cosines: Floats = np.clip(products / np.outer(lengths, lengths), -1.0, 1.0)
    return cosines
