"""Convex blends of predictions, chosen by the exact area under the ROC curve."""

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils.validation import check_is_fitted

from cpu_fallback.elementary import add_in_order
from cpu_fallback.exact import Floats
from cpu_fallback.types import Array
from gpu_encode.formulas.auc import read, read_scores
from gpu_encode.formulas.ordered_pairs import PairCounter
from gpu_encode.methods.votes.ascent import ascend
from gpu_encode.methods.votes.breakpoints import Side, best_interval
from gpu_encode.seam import devices, ops
from gpu_encode.seam.ops import Ops
from gpu_encode.tables import frames
from gpu_encode.words.annotations import Table, Vector
from gpu_encode.words.errors.parameters import MOST_COLUMNS, KnownKeywords, check_count, check_number, check_option
from gpu_encode.words.errors.tables import other_width
from gpu_encode.words.errors.targets import no_target

# With more pairs of a positive and a negative row, comparing all pairs takes hundreds of megabytes, and seconds.
MOST_PAIRS = 1 << 23
GRID = 101
# Differences of two scores below this number do not overflow.
LARGEST = 2.0**1000


@dataclass(eq=False, repr=False)
class ConvexBlend(KnownKeywords, BaseEstimator):
    """Blend predictions of several models, a1 * p1 + a2 * p2 + ..., with shares that add up to 1.

    The shares are chosen on validation rows, by the exact area under the ROC curve.  With two vectors of predictions,
    the area changes only at shares at which a positive and a negative row swap their order.  All these shares are
    compared if there are at most 8,388,608 pairs of such rows (2,896 rows each), and weights, if any, are whole
    numbers. The result is the middle of the best interval that is wider than 2**-40; among equally good intervals the
    widest one, and among these the one with the lowest a1.  If a single vector is better than all blends, it gets all
    the weight. With more pairs, or with `grid`, the shares of a grid are compared.  More than two vectors are weighted
    by coordinate ascent.

    Parameters
    ----------
    ranks : bool, default=False
        Whether ranks among the validation rows, scaled to between 0 and 1, are blended instead of scores; ties share a
        rank.
    grid : int, optional
        Compare only this number of shares of two vectors, from 0 to 1; the result is the middle of the longest run of
        equally good shares.  None: all shares, or 101 if there are too many pairs.
    tol : float, default=1e-3
        For more than two vectors: steps of weights begin at 1, and are halved until they are smaller than this.
    max_rounds : int, default=200
        For more than two vectors: the largest number of rounds; each round tries every weight.

    Attributes
    ----------
    weights_ : float64 ndarray of shape (n_predictions,)
        The shares.
    auc_ : float
        Area under the ROC curve of the blended validation rows.
    interval_ : tuple of float or None
        The interval of the first vector's share in which the area stays the same; None unless all pairs were compared.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import ConvexBlend
    >>> y = [0, 0, 1, 1]
    >>> predictions = np.array([[0.1, 0.5], [0.6, 0.2], [0.4, 0.9], [0.9, 0.4]])
    >>> blend = ConvexBlend().fit(predictions, y)
    >>> blend.interval_, blend.auc_
    ((0.11111111111111108, 0.7777777777777778), 1.0)
    >>> blend.predict([[0.2, 0.4]]).round(3).tolist()
    [0.311]
    """

    _: KW_ONLY
    ranks: bool = False
    grid: int | None = None
    tol: float = 1e-3
    max_rounds: int = 200

    def fit(self, P: Table, y: Table, *, sample_weight: Vector | None = None) -> Self:  # noqa: N803
        """Choose the shares on validation rows.

        Parameters
        ----------
        P : table of shape (n_rows, n_predictions)
            Scores of at least two models, all finite.
        y : array of shape (n_rows,)
            Two labels; the larger one is positive.
        sample_weight : array of shape (n_rows,), optional
            How much each row counts; one each by default.

        Returns
        -------
        self
        """
        self._check()
        if y is None:
            raise no_target("ConvexBlend")
        check_shape("ConvexBlend", P)
        with devices.explain_memory():
            counter, columns = read("ConvexBlend", y, P, sample_weight, "P")
            reference = [np.sort(counter.ops.to_host(column)) for column in columns] if self.ranks else None
            scores = columns if reference is None else to_ranks(columns, reference, counter.ops)
            check_columns("ConvexBlend", scores)
            interval = None
            if len(scores) == 2:
                share, interval = choose_share(counter, scores[0], scores[1], self.grid)
                weights = [share, 1.0 - share]
            else:
                weights = self._climb(counter, scores)
            area = counter.area(mix(scores, weights))
        self.weights_: Array = np.array(weights)
        self.n_features_in_ = len(weights)
        self.auc_, self.interval_, self._reference = area, interval, reference
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        # It predicts scores, so it is no classifier; its y has two classes.
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags

    def _check(self) -> None:
        check_option("ConvexBlend", "ranks", self.ranks, (True, False))
        if self.grid is not None:
            check_count("ConvexBlend", "grid", self.grid, low=2, high=MOST_COLUMNS)
        check_number("ConvexBlend", "tol", self.tol, low=0.0, high=1.0, open_low=True)
        check_count("ConvexBlend", "max_rounds", self.max_rounds, low=1)

    def _climb(self, counter: PairCounter, scores: list[Floats]) -> list[float]:
        """Find shares of more than two vectors; equal shares if no vector improves the area."""

        def judge(weights: Floats, step: float) -> Iterator[int]:
            for tried in weights + step * np.eye(len(weights)):
                yield counter.count(mix(scores, tried.tolist()))

        found = ascend(judge, np.zeros(len(scores)), self.tol, max_rounds=self.max_rounds).numbers.tolist()
        total = sum(found)
        return [weight / total if total else 1.0 / len(scores) for weight in found]

    def predict(self, P: Table) -> Array:  # noqa: N803
        """Blend the predictions of rows.

        Parameters
        ----------
        P : table of shape (n_rows, n_predictions)
            Scores of the models that were given to fit.

        Returns
        -------
        float64 ndarray of shape (n_rows,)
        """
        check_is_fitted(self, "weights_")
        check_shape("ConvexBlend", P)
        given = [values for _, values in frames.read_targets(P, None, "P")]
        if len(given) != len(self.weights_):
            raise other_width("ConvexBlend", len(given), len(self.weights_))
        backend = ops.host(len(given[0]))
        columns = read_scores("ConvexBlend", given, backend, "P")
        if self._reference is None:
            check_columns("ConvexBlend", columns)
            return mix(columns, self.weights_.tolist())
        return mix(to_ranks(columns, self._reference, backend), self.weights_.tolist()) / (2 * len(self._reference[0]))


def check_shape(owner: str, P: Any) -> None:  # noqa: N803
    """Raise ValueError for one vector, and for a table without columns."""
    shape = getattr(P, "shape", ())
    if len(shape) == 1:
        raise ValueError(
            f"{owner} blends predictions, a column for each. Got one vector. Reshape your data with P.reshape(1, -1) "
            "if it is one row."
        )
    if shape[1:] == (0,):
        raise ValueError(f"Found array with 0 feature(s) (shape={shape}) while a minimum of 2 is required.")


def check_columns(owner: str, columns: Sequence[Array], advice: str = "Use ranks=True.") -> None:
    """Raise ValueError unless there are at least two vectors with finite differences."""
    if len(columns) < 2:
        raise ValueError(f"{owner} blends two predictions or more, a column for each. Got n_features={len(columns)}.")
    if any(float(np.abs(column).max()) > LARGEST for column in columns):
        raise ValueError(f"{owner} mixes scores up to {LARGEST:.3g}, not infinite ones. {advice}")


def mix(scores: Sequence[Floats], weights: Sequence[float]) -> Floats:
    """Add up scores, multiplied by their weights."""
    return add_in_order([weight * column for column, weight in zip(scores, weights, strict=True)])


def to_ranks(columns: Sequence[Array], reference: Sequence[Array], ops: Ops) -> list[Array]:
    """Give twice the rank of each score among others, on the host: whole numbers; ties share a rank."""
    ranks = []
    for column, others in zip(columns, reference, strict=True):
        there = ops.to_device(others)
        ranks.append(np.searchsorted(there, column, "left") + np.searchsorted(there, column, "right"))
    return ranks


def choose_share(
    counter: PairCounter, first: Floats, second: Floats, grid: int | None
) -> tuple[float, tuple[float, float] | None]:
    """Choose the share of the first of two vectors; also give the interval in which it is equally good."""
    sides = None if grid is not None else sides_of(counter, first, second)
    if sides is None:
        return choose_from_grid(counter, first, second, GRID if grid is None else grid), None
    best = best_interval(*sides)
    share = (best.low + best.high) / 2
    # In a single vector, pairs may be tied that every blend orders wrongly.
    alone = {1.0: counter.count(first), 0.0: counter.count(second)}
    better = max(alone, key=alone.__getitem__)
    if alone[better] > counter.count(mix([first, second], [share, 1.0 - share])):
        return better, (better, better)
    return share, (best.low, best.high)


def sides_of(counter: PairCounter, first: Floats, second: Floats) -> tuple[Side, Side] | None:
    """Give the rows of both classes, on the host; None if there are too many pairs, or weights are fractions."""
    on_host = counter.ops.to_host
    positive = on_host(counter.positive)
    weight = np.ones(len(positive), np.int64) if counter.weight is None else on_host(counter.weight)
    n_positive = int(positive.sum())
    heavy = float(weight[positive].sum()) * float(weight[~positive].sum())
    if weight.dtype != np.int64 or n_positive * (len(positive) - n_positive) > MOST_PAIRS or heavy > 2.0**60:
        return None
    one, other = (on_host(column).astype(np.float64) for column in (first, second))
    negative = ~positive
    return (
        Side(one[positive], other[positive], weight[positive]),
        Side(one[negative], other[negative], weight[negative]),
    )


def choose_from_grid(counter: PairCounter, first: Floats, second: Floats, n_shares: int) -> float:
    """Choose the share from a grid: the middle of the longest run of equally good ones, the lower of two middles."""
    shares = [number / (n_shares - 1) for number in range(n_shares)]
    counts = [counter.count(mix([first, second], [share, 1.0 - share])) for share in shares]
    best = np.array(counts, dtype=object) == max(counts)
    edges = np.flatnonzero(np.diff(best.astype(np.int8), prepend=0, append=0)).tolist()
    start, stop = max(zip(edges[::2], edges[1::2], strict=True), key=lambda run: run[1] - run[0])
    return shares[(start + stop - 1) // 2]
