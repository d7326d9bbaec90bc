"""Blends of all pairs of several models' predictions, and the similarity of the predictions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from cpu_fallback.exact import Floats
from cpu_fallback.types import Array
from gpu_encode.formulas.auc import read
from gpu_encode.methods.votes.blends import check_columns, choose_share, mix, to_ranks
from gpu_encode.seam import devices
from gpu_encode.tables import frames
from gpu_encode.words.annotations import Table, Vector
from gpu_encode.words.errors.parameters import MOST_COLUMNS, check_count, check_option


@dataclass(frozen=True, eq=False)
class BlendMatrix:
    """The result of `blend_matrix`; all matrices have the shape (n_predictions, n_predictions).

    Parameters
    ----------
    names : list of str
    weights : float64 array
        weights[i, j] is the share of prediction i in its best blend with prediction j.
    auc : float64 array
        Areas under the ROC curve of these blends; on the diagonal, those of single predictions.
    pearson, spearman, cosine : float64 array
        Similarity of the predictions: their correlation, the correlation of their ranks, and the cosine of the vectors
        without centring.  NaN if a vector is constant, or zero.
    """

    names: list[str]
    weights: Floats
    auc: Floats
    pearson: Floats
    spearman: Floats
    cosine: Floats

    def as_dicts(self) -> list[dict[str, Any]]:
        """Give a row for each pair, best first, for `pandas.DataFrame` or `polars.DataFrame`."""
        rows = [
            {
                "first": self.names[i],
                "second": self.names[j],
                "weight": float(self.weights[i, j]),
                "auc": float(self.auc[i, j]),
                "gain": float(self.auc[i, j] - max(self.auc[i, i], self.auc[j, j])),
                "pearson": float(self.pearson[i, j]),
                "spearman": float(self.spearman[i, j]),
                "cosine": float(self.cosine[i, j]),
            }
            for i, j in combinations(range(len(self.names)), 2)
        ]
        return sorted(rows, key=lambda row: -row["auc"])


def blend_matrix(
    predictions: Table,
    y: Vector,
    *,
    sample_weight: Vector | None = None,
    ranks: bool = False,
    grid: int | None = None,
    names: Sequence[str] | None = None,
) -> BlendMatrix:
    """Blend all pairs of several models' predictions, and measure how similar the predictions are.

    Parameters
    ----------
    predictions : table of shape (n_rows, n_predictions)
        Scores of validation rows, all finite.
    y, sample_weight
        As in `ConvexBlend.fit`.
    ranks, grid
        As in `ConvexBlend`, which finds the shares of each pair.
    names : list of str, optional
        Names of the predictions.  None: names of the table's columns, or numbers.

    Returns
    -------
    BlendMatrix
        With matrices `weights`, `auc`, `pearson`, `spearman`, `cosine`; `as_dicts` gives a row for each pair.

    Notes
    -----
    Shares and areas are those of `ConvexBlend`, with the same bits on every device.  Correlations are computed in
    floating point on the host, without weights; their error is about 1e-12.

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
    """
    check_option("blend_matrix", "ranks", ranks, (True, False))
    if grid is not None:
        check_count("blend_matrix", "grid", grid, low=2, high=MOST_COLUMNS)
    with devices.explain_memory():
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
    rank_columns = [counter.ops.to_host(column) for column in ranked]
    return BlendMatrix(
        names_of(predictions, names, len(columns)),
        weights,
        auc,
        alike(on_host, np.mean),
        alike(rank_columns, np.mean),
        alike(on_host, None),
    )


def names_of(predictions: Any, names: Sequence[str] | None, n_predictions: int) -> list[str]:
    """Give a name for each vector of scores."""
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
