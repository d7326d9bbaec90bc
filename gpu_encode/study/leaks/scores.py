"""How well a small tree predicts shuffled targets from training encodings, compared with encodings of new rows."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.types import Array
from gpu_encode.formulas.auc import roc_auc_score

# Leaves of a tree, and most rows of a trial: the tree is fitted on half of these rows and scored on the other half.
LEAVES, MOST_ROWS = 16, 20_000
# A difference of scores counts only above this number of standard errors of a score, and above this value.  Folds leave
# out sums of many rows, and a tree detects a trace of these sums in any k-fold encodings: with 5 folds the difference
# is about one standard error.
STANDARD_ERRORS, SMALLEST = 3.0, 0.03
# Up to this number of shuffles, all patterns of signs are tried; with more shuffles, as many random patterns.
MOST_SIGNS = 12


@dataclass(frozen=True)
class Interval:
    """A mean over shuffles, and its interval by Student's t.

    Parameters
    ----------
    mean, low, high : float
    """

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float], level: float) -> "Interval":
        """Average values; the interval misses the expected value with probability `level`.

        Examples
        --------
        >>> Interval.of([0.5, 0.6], 0.5)
        Interval(mean=0.55, low=0.5, high=0.6)
        """
        from scipy.stats import t

        mean, number = float(np.mean(values)), len(values)
        half = float(t.ppf(1 - level / 2, number - 1) * np.std(values, ddof=1) / np.sqrt(number))
        low, high = (round(min(max(bound, 0.0), 1.0), 12) for bound in (mean - half, mean + half))
        return cls(mean, low, high)


class Predicted(NamedTuple):
    """Scores of trees that predict shuffled targets from a column: on training encodings, and on new rows."""

    training: Interval | None = None
    new: Interval | None = None
    p_value: float = 1.0
    significant: bool = False


def read_by_tree(
    training: tuple[Array, Array], new: tuple[Array, Array], random: np.random.Generator
) -> tuple[float, float]:
    """Score trees on rows to which they were not fitted.

    Parameters
    ----------
    training, new : tuple of array (rows,)
        Encodings and labels of training rows, and of new rows with the same values.
    random : Generator
        Draws two halves: trees are fitted to the training encodings of one half, and scored on both encodings of the
        other.

    Returns
    -------
    tuple of float
        ROC AUC on training encodings, and on those of new rows; the mean over the classes.
    """
    from sklearn.tree import DecisionTreeClassifier

    rows = random.permutation(len(training[1]))[:MOST_ROWS]
    encodings = np.concatenate([training[0][rows], new[0][rows]])
    # A tree uses only the order of values, and at most 24 bits of each value.
    comparable = encodings if encodings.dtype.kind == "f" else encodings.astype(str)
    X, X_new = np.unique(comparable, return_inverse=True)[1].astype(np.float64).reshape(2, -1, 1)
    y, y_new = training[1][rows], new[1][rows]
    halves, scores = np.array_split(np.arange(len(rows)), 2), []
    for grown, scored in (halves, halves[::-1]):
        tree = DecisionTreeClassifier(max_leaf_nodes=LEAVES, min_samples_leaf=max(5, len(rows) // 100), random_state=0)
        with warnings.catch_warnings():
            # scikit-learn warns of classes with few rows, but the caller has chosen the target.
            warnings.simplefilter("ignore", UserWarning)
            tree.fit(X[grown], y[grown])
        pairs = ((X, y), (X_new, y_new))
        scores.append([mean_auc(told[scored], tree.predict_proba(of[scored]), tree.classes_) for of, told in pairs])
    of_training, of_new = np.mean(scores, axis=0)
    return float(of_training), float(of_new)


def mean_auc(labels: Array, probabilities: Array, classes: Array) -> float:
    """Mean of the ROC AUC of each class against all others; with two classes, the AUC of the second."""
    told = list(enumerate(classes))[-1:] if len(classes) == 2 else list(enumerate(classes))
    areas = [
        float(roc_auc_score(labels == label, probabilities[:, number]))
        for number, label in told
        if 0 < (labels == label).sum() < len(labels)
    ]
    return float(np.mean(areas)) if areas else 0.5


def allowance(labels: Array) -> float:
    """Give the difference of two scores that does not count.

    The standard error of an AUC without any information is sqrt((n + 1) / (12 n1 n0)) (Mann and Whitney, 1947).

    Examples
    --------
    >>> round(allowance(np.arange(1000) % 2), 4)
    0.0548
    """
    counts, n = np.bincount(labels), min(len(labels), MOST_ROWS)
    sizes = counts[counts > 0] * (n / len(labels))
    return max(STANDARD_ERRORS * float(np.sqrt((n + 1) / (12 * sizes * (n - sizes))).mean()), SMALLEST)


def p_values(differences: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.float64]:
    """Test, for all columns together, whether the differences of a column are above zero by more than chance.

    Parameters
    ----------
    differences : float64 array (shuffles, columns)
        After subtraction of the allowance.  If nothing leaks, both signs of a shuffle's differences are equally likely.
    random : Generator
        Draws patterns of signs if there are too many of them.

    Returns
    -------
    float64 array (columns,)
        Share of the patterns of signs for which the largest mean, among this column and all columns with lower means,
        is at least the mean of this column; and at least the value of any column with a higher mean.  A pattern applies
        to all columns of a shuffle, so the chance that any of these values is at most p is at most p (Westfall and
        Young, 1993, step-down).

    Examples
    --------
    >>> p_values(np.array([[0.2, 0.0], [0.3, -0.1], [0.1, 0.1]]), np.random.default_rng(0)).tolist()
    [0.125, 0.75]
    """
    number = len(differences)
    if number <= MOST_SIGNS:
        signs = np.array(list(product((1.0, -1.0), repeat=number)))
    else:
        signs = random.choice((1.0, -1.0), (1 << MOST_SIGNS, number))
        signs[0] = 1.0
    # The first pattern is the observed one: each mean is compared with itself, too.
    means = signs @ differences / number
    order = np.argsort(-means[0], kind="stable")
    largest = np.maximum.accumulate(means[:, order[::-1]], axis=1)[:, ::-1]
    shares = (largest >= means[0, order] - 1e-12).mean(axis=0)
    chances = np.empty(len(order))
    chances[order] = np.maximum.accumulate(shares)
    return chances
