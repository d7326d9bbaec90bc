"""The area under the ROC curve as a quotient of whole numbers, and the points of the curve."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cpu_fallback.types import Array
from gpu_encode.formulas.ordered_pairs import PairCounter
from gpu_encode.seam import devices, ops
from gpu_encode.seam.ops import Ops
from gpu_encode.sums.targets import Labels, check_weight
from gpu_encode.tables import frames
from gpu_encode.words.annotations import Table, Vector


def roc_auc_score(y_true: Vector, y_score: Table, *, sample_weight: Vector | None = None) -> float | Array:
    """Area under the ROC curve, for many vectors of scores in one call: exact, and rounded once.

    It is the share of pairs of a positive and a negative row in which the positive row has the higher score; a tie
    counts one half.  With weights, a pair counts the product of its rows' weights.  The sum over all pairs is an exact
    whole number, even if weights have fractions, so neither the order of rows nor the device changes a bit.  Only the
    order of the scores matters, not their size.

    Parameters
    ----------
    y_true : array of shape (n_rows,)
        Two labels, of which the larger is the positive one.
    y_score : array or table of shape (n_rows,) or (n_rows, n_scores)
        Numbers; they may be infinite.  One column for each vector of scores.
    sample_weight : array of shape (n_rows,), optional
        Weights of at least zero; whole weights equal repeated rows.

    Returns
    -------
    float, or float64 ndarray of shape (n_scores,)
        An array if `y_score` has two dimensions.

    Raises
    ------
    ValueError
        If there are not two classes whose rows have weight, if a score is NaN, or if there are more than 2**31 rows.

    See Also
    --------
    sklearn.metrics.roc_auc_score : Sums rounded areas, so its last digits differ; takes more than two classes, too.

    Notes
    -----
    Arrays may come from any library and lie on any device.  They are not moved; each vector of scores is sorted there.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import roc_auc_score
    >>> y = [0, 0, 1, 1]
    >>> roc_auc_score(y, [0.1, 0.4, 0.35, 0.8])
    0.75
    >>> roc_auc_score(y, np.array([[0.1, 1], [0.4, 1], [0.35, 1], [0.8, 1]])).tolist()
    [0.75, 0.5]
    >>> roc_auc_score(y, [0.1, 0.4, 0.35, 0.8], sample_weight=[1, 1, 0.5, 1])
    0.8333333333333334
    """
    with devices.explain_memory():
        counter, scores = read("roc_auc_score", y_true, y_score, sample_weight)
        areas = [counter.area(column) for column in scores]
    shape = np.shape(y_score) if isinstance(y_score, (list, tuple)) else getattr(y_score, "shape", (0,))
    return areas[0] if len(shape) == 1 else np.array(areas)


class RocCurve(NamedTuple):
    """Points of a ROC curve."""

    fpr: Array
    tpr: Array
    thresholds: Array


def roc_curve(y_true: Vector, y_score: Vector, *, sample_weight: Vector | None = None) -> RocCurve:
    """Points of the ROC curve at all distinct scores; each rate is the exact quotient, rounded once.

    Parameters
    ----------
    y_true : array of shape (n_rows,)
        Two labels, of which the larger is the positive one.
    y_score : array of shape (n_rows,)
    sample_weight : array of shape (n_rows,), optional

    Returns
    -------
    fpr, tpr, thresholds : float64 ndarray of shape (n_distinct + 1,)
        The shares of the negative and of the positive rows whose score is at least the threshold, and the thresholds:
        first infinity, which no score reaches, then the distinct scores, the highest first.

    Raises
    ------
    ValueError
        As in `roc_auc_score`.

    See Also
    --------
    sklearn.metrics.roc_curve : With ``drop_intermediate=False`` it gives the same points.

    Examples
    --------
    >>> from gpu_encode import roc_curve
    >>> fpr, tpr, thresholds = roc_curve([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> fpr.tolist(), tpr.tolist(), thresholds.tolist()
    ([0.0, 0.0, 0.5, 0.5, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0], [inf, 0.8, 0.4, 0.35, 0.1])
    """
    with devices.explain_memory():
        counter, scores = read("roc_curve", y_true, y_score, sample_weight)
        if len(scores) != 1:
            raise ValueError(f"roc_curve takes one vector of scores. Got {len(scores)}: call it for each.")
        thresholds = np.unique(scores[0])[::-1]
        true, false = counter.reached(scores[0], thresholds)
    return RocCurve(
        np.array([0, *(count / counter.negatives for count in false)]),
        np.array([0, *(count / counter.positives for count in true)]),
        np.append(np.inf, counter.ops.to_host(thresholds).astype(np.float64)),
    )


def read(owner: str, y: Any, scores: Any, sample_weight: Any, role: str = "y_score") -> tuple[PairCounter, list[Array]]:
    """Read labels, weights and vectors of scores, and bring them to one device; `role` is the name of the scores."""
    labels = frames.read_vector(y, "y")
    columns = [values for _, values in frames.read_targets(scores, None, role)]
    n_rows, n_scores = (
        len(each.codes if isinstance(each, frames.NumberedLabels) else each) for each in (labels, columns[0])
    )
    if n_scores != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {[n_rows, n_scores]}. {owner} needs a "
            f"label for every row of scores: y has {n_rows}, and {role} {n_scores}."
        )
    backend = ops.resolve(n_rows, devices.choose("auto", y, scores, sample_weight, n_rows=n_rows))
    positive = read_positive(owner, frames.move_to_reader(labels, backend), backend)
    weight = None
    if sample_weight is not None:
        given = frames.read_vector(sample_weight, "sample_weight", n_rows)
        weight = backend.to_device(check_weight(backend, frames.move_to_reader(given, backend)))
    counter = PairCounter(backend, positive, weight)
    if not counter.pairs:
        raise ValueError(
            f"{owner} compares two classes, and all weight is on one of them. Leave these rows out of sample_weight."
        )
    return counter, read_scores(owner, columns, backend, role)


def read_positive(owner: str, labels: Any, backend: Ops) -> Array:
    """Tell which rows have the larger of two labels."""
    names, codes = Labels(backend, labels).distinct
    if len(names) != 2:
        shown = ", ".join(repr(name) for name in names[:3].tolist())
        raise ValueError(
            f"{owner} compares two classes: y must hold two labels, of which the larger is the positive one. Got "
            f"{len(names)}: {shown}{', ...' if len(names) > 3 else ''}, of n_samples={len(codes)}."
        )
    return backend.to_device(codes == 1)


def read_scores(owner: str, columns: Sequence[Any], backend: Ops, role: str) -> list[Array]:
    """Give vectors of scores as numbers, on the device of the backend; raise ValueError for NaN."""
    scores = []
    for number, values in enumerate(columns):
        if isinstance(values, frames.NumberedLabels) or values.dtype.kind not in "biuf":
            raise ValueError(f"{owner} needs numbers as scores. Column {number} of {role} holds others: convert it.")
        column = backend.to_device(frames.move_to_reader(values, backend))
        # CuPy treats very small float32 numbers as zero.
        column = backend.cast(column, np.float64) if column.dtype.kind == "f" else column
        column = column.astype(np.int64) if column.dtype.kind == "b" else column
        if column.dtype.kind == "f" and bool(np.isnan(column).any()):
            raise ValueError(f"{owner} needs a score for every row. Column {number} of {role} holds NaN.")
        scores.append(column)
    return scores
