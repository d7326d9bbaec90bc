"""Count the pairs of a positive and a negative row by the order of their scores, exactly for any weights."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from cpu_fallback.types import Array, Layout, Rows, digit_window
from gpu_encode.seam.ops import Ops

# A sum of this many digits, before and after carries, stays below 2**63; so does twice the number of pairs of rows.
MOST_ROWS = 1 << 31
DIGIT_BITS = 32
MASK = np.int64(0xFFFFFFFF)
SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")


class PairCounter:
    """Counts pairs of rows for one y and any scores.

    Parameters
    ----------
    positive : bool array (rows,)
        On the device of `ops`, as all arrays here.
    weight : float64 or int64 array (rows,), optional
        Finite weights of at least zero.

    Attributes
    ----------
    positive, weight
        As given.
    positives, negatives : int
        Number of rows of each kind; with weights, the sums of the weights, in units of a power of two.
    """

    def __init__(self, ops: Ops, positive: Array, weight: Array | None = None) -> None:
        if len(positive) > MOST_ROWS:
            raise ValueError(f"Pairs of at most {MOST_ROWS} rows can be counted. Got {len(positive)} rows.")
        self.ops = ops
        self.positive, self.weight = positive, weight
        self._negative = ~positive
        self._of_positives: list[Array] | None = None
        self._of_negatives: list[Array] | None = None
        if weight is None:
            self.positives = int(positive.sum())
            self.negatives = len(positive) - self.positives
        else:
            digits = split(ops, weight)
            self._of_positives = [column[self.positive] for column in digits]
            self._of_negatives = [column[self._negative] for column in digits]
            self.positives, self.negatives = total(self._of_positives), total(self._of_negatives)

    @property
    def pairs(self) -> int:
        """Number of all pairs; with weights, the sum of the products of weights."""
        return self.positives * self.negatives

    def count(self, scores: Array) -> int:
        """Count each pair whose positive row has the higher score twice, and each pair of equal scores once.

        Parameters
        ----------
        scores : array (rows,) of numbers, none of them NaN
        """
        below, above = scores[self._negative], scores[self.positive]
        if self._of_positives is None or self._of_negatives is None:
            # The rarer class is searched for in the other one, since there are fewer searches.
            few, many = np.sort(below), np.sort(above)
            fewer_below = len(below) <= len(above)
            if not fewer_below:
                few, many = many, few
            counted = sum(int(np.searchsorted(many, few, side).sum()) for side in SIDES)
            return 2 * self.pairs - counted if fewer_below else counted
        below, running = in_order(below, self._of_negatives)
        # If `above` is sorted, one search after the other reads neighbouring memory.
        order = np.argsort(above)
        above, weights = above[order], [column[order] for column in self._of_positives]
        twice = 0
        for side in SIDES:
            ranks = np.searchsorted(below, above, side)
            twice += sum_of_products(weights, [column[ranks] for column in running])
        return twice

    def area(self, scores: Array) -> float:
        """Give the area under the ROC curve: a quotient of whole numbers, rounded once; 0 if there are no pairs."""
        return self.count(scores) / (2 * self.pairs) if self.pairs else 0.0

    def reached(self, scores: Array, thresholds: Array) -> tuple[list[int], list[int]]:
        """Count the positive and the negative rows whose score is at least each threshold."""
        return (
            self._reached(scores[self.positive], self._of_positives, self.positives, thresholds),
            self._reached(scores[self._negative], self._of_negatives, self.negatives, thresholds),
        )

    def _reached(self, scores: Array, digits: list[Array] | None, every: int, thresholds: Array) -> list[int]:
        if digits is None:
            ranks = np.searchsorted(np.sort(scores), thresholds, "left")
            return [every - below for below in self.ops.to_host(ranks).tolist()]
        scores, running = in_order(scores, digits)
        ranks = np.searchsorted(scores, thresholds, "left")
        columns = [self.ops.to_host(column[ranks]).tolist() for column in running]
        return [every - join(below) for below in zip(*columns, strict=True)]


def split(ops: Ops, weight: Array) -> list[Array]:
    """Give weights as digits of 32 bits, lowest first, in units of one power of two: columns of int64 (rows,)."""
    layout = Layout(digit_window(ops.extents(None, weight, (0,))[0]))
    # Subtract each row from the sums of no rows.
    nothing = ops.zeros((3, 1, layout.width), np.int64)
    negative = ops.leave_one_out(nothing, Rows(ops.zeros(len(weight), np.int32), weight=weight), layout)
    # The last column has room for carries, which one row does not need.
    return [-negative[:, 0, column] for column in range(layout.width - 1)]


def in_order(scores: Array, digits: Sequence[Array]) -> tuple[Array, list[Array]]:
    """Sort scores, and give the sum of weights before each rank; its digits have one more, for carries."""
    order = np.argsort(scores)
    running: list[Array] = []
    above: Any = 0
    for column in digits:
        sums = np.concatenate([np.zeros_like(column[:1]), np.cumsum(column[order])]) + above
        running.append(sums & MASK)
        above = sums >> DIGIT_BITS
    return scores[order], [*running, above]


def sum_of_products(left: Sequence[Array], right: Sequence[Array]) -> int:
    """Sum the products of pairs of numbers, all given as digits of 32 bits."""
    result = 0
    for i, one in enumerate(left):
        for j, other in enumerate(right):
            product = one.astype(np.uint64) * other.astype(np.uint64)
            halves = int((product & np.uint64(MASK)).sum()), int((product >> np.uint64(DIGIT_BITS)).sum())
            result += join(halves) << (DIGIT_BITS * (i + j))
    return result


def total(digits: Sequence[Array]) -> int:
    """Sum numbers that are given as digits of 32 bits."""
    return join([int(column.sum()) for column in digits])


def join(digits: Sequence[int]) -> int:
    """Give the whole number that digits of 32 bits make; before carries, a digit may have more than 32 bits."""
    return sum(digit << (DIGIT_BITS * position) for position, digit in enumerate(digits))
