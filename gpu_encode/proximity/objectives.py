"""How good scores are: the area under the ROC curve, and the squared error."""

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from cpu_fallback.types import Array, Layout, Rows, Window
from gpu_encode.ops import Ops
from gpu_encode.proximity.voting import Cases, Electorate

# Twice the pairs of two classes that a sum in an int64 holds.
MOST_PAIRS = 1 << 62


def measure_area(ops: Ops, scores: Array, positive: Array, weight: Array) -> float:
    """Give the share of pairs of two classes that scores order rightly, ties counting half.

    Parameters
    ----------
    ops : Ops
    scores : float64 array (cases,)
    positive : int32 array (cases,)
        1 for cases of the class, 0 for others.
    weight : int64 array (cases,)

    Returns
    -------
    float
        The exact quotient of two integers, rounded once or twice; 0 where there are no pairs.
    """
    groups, distinct = ops.factorize(scores)
    layout = Layout(Window(), Window())
    sums = ops.accumulate(Rows(groups, positive, weight), len(distinct), None, 1, 2, layout)
    others, own = (ops.to_host(sums[: len(distinct), 0, label, 1].copy()) for label in (0, 1))
    pairs = int(others.sum()) * int(own.sum())
    if 2 * pairs >= MOST_PAIRS:
        # Weights with fractions: in a fixed order.
        others, own = others.astype(np.float64), own.astype(np.float64)
    twice = (own * (2 * np.cumsum(others) - others)).cumsum()[-1]
    return float(twice) / float(2 * pairs) if pairs else 0.0


@dataclass(frozen=True, eq=False)
class Area:
    """The mean area of all classes, of two the second's, of training rows that are scored by all others.

    Parameters
    ----------
    cases : Cases
    classes : int32 array (cases,)
    weight : int64 array (cases,)
    two : bool
        Whether there are two classes.
    """

    cases: Cases
    classes: Array
    weight: Array
    two: bool
    # Areas change by pairs of rows.
    least: ClassVar[float] = 0.0

    @classmethod
    def of(cls, electorate: Electorate, chosen: Array) -> Self:
        """Take some training rows; without weights, those that agree in everything and in class are one case."""
        rows, measures = electorate.rows, electorate.measures.values
        target, ops = rows.targets[0], rows.ops
        places, classes = electorate.places[chosen], target.values[chosen]
        two = target.n_classes == 2
        if rows.weight is not None:
            own = measures[:, chosen]
            return cls(electorate.leave_out(places, own), classes, own.sum(axis=0), two)
        numbers, keys = ops.factorize(ops.combine(places, classes, target.n_classes))
        sums = ops.accumulate(Rows(numbers), len(keys), None, 1, 1, Layout())
        keys = ops.to_device(keys)
        places = keys // target.n_classes
        classes = (keys - places * target.n_classes).astype(np.int32)
        own = np.stack([(classes == label).astype(np.int64) for label in range(target.n_classes)])
        cases = electorate.leave_out(places.astype(np.int32), own)
        return cls(cases, classes, sums[: len(keys), 0, 0, 0].copy(), two)

    def measure(self, scores: Array) -> float:
        """Judge scores (outputs, cases)."""
        ops = self.cases.ops
        # A row that no other row judges is like any.
        known = np.where(np.isnan(scores), 0.0, scores)
        areas = [
            measure_area(ops, each, (self.classes == label).astype(np.int32), self.weight)
            for label, each in enumerate(known[-1:] if self.two else known, int(self.two))
        ]
        return sum(areas) / max(len(areas), 1)


@dataclass(frozen=True, eq=False)
class SquaredError:
    """The mean squared error of training rows that are scored by all others, with its sign turned.

    Parameters
    ----------
    cases : Cases
    target, weight : float64 array (cases,)
        On the host.
    """

    cases: Cases
    target: Array
    weight: Array
    # Errors may become less and less for ever.
    least: ClassVar[float] = 1e-6

    @classmethod
    def of(cls, electorate: Electorate, chosen: Array) -> Self:
        """Take some training rows."""
        rows = electorate.rows
        places, own = electorate.places[chosen], electorate.measures.values[:, chosen]
        target = rows.targets[0].values[chosen].astype(np.float64)
        weight = np.ones_like(target) if rows.weight is None else rows.weight[chosen].astype(np.float64)
        return cls(electorate.leave_out(places, own), rows.ops.to_host(target), rows.ops.to_host(weight))

    def measure(self, scores: Array) -> float:
        """Judge scores (1, cases); the sum is exact, so that no bit depends on its order."""
        error = self.cases.ops.to_host(scores[0].copy()) - self.target
        squares = np.where(np.isnan(error), 0.0, self.weight * error * error)
        return -math.fsum(squares.tolist()) / max(math.fsum(self.weight.tolist()), np.finfo(np.float64).tiny)
