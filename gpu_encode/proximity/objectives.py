"""How good scores are: the area under the ROC curve, and the squared error."""

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from cpu_fallback.types import Array, Layout, Rows
from gpu_encode.proximity.voting import Cases, Electorate
from gpu_encode.votes.ordered_pairs import PairCounter


@dataclass(frozen=True, eq=False)
class Area:
    """The mean area of all classes, of two the second's, of training rows that are scored by all others.

    Parameters
    ----------
    cases : Cases
    counters : list of PairCounter
        Of each class against all others; of two classes that of the second.
    """

    cases: Cases
    counters: list[PairCounter]
    # Areas change by pairs of rows.
    least_rise: ClassVar[float] = 0.0

    @classmethod
    def of(cls, electorate: Electorate, chosen: Array) -> Self:
        """Take some training rows; without weights, those that agree in everything and in class are one case."""
        rows, measures = electorate.rows, electorate.measures.values
        target, ops = rows.targets[0], rows.ops
        places, classes = electorate.places[chosen], target.values[chosen]
        labels = [1] if target.n_classes == 2 else range(target.n_classes)
        if rows.weight is not None:
            weight = rows.weight[chosen]
            counters = [PairCounter(ops, classes == label, weight) for label in labels]
            return cls(electorate.leave_out(places, measures[:, chosen]), counters)
        numbers, keys = ops.factorize(ops.combine(places, classes, target.n_classes))
        sums = ops.accumulate(Rows(numbers), len(keys), None, 1, 1, Layout())
        keys = ops.to_device(keys)
        places = keys // target.n_classes
        classes = (keys - places * target.n_classes).astype(np.int32)
        own = np.stack([(classes == label).astype(np.int64) for label in range(target.n_classes)])
        n_rows = sums[: len(keys), 0, 0, 0].copy()
        counters = [PairCounter(ops, classes == label, n_rows) for label in labels]
        return cls(electorate.leave_out(places.astype(np.int32), own), counters)

    def measure(self, scores: Array) -> float:
        """Judge scores (outputs, cases)."""
        # A row that no other row judges is like any.
        known = np.where(np.isnan(scores), 0.0, scores)
        judged = known[-len(self.counters) :]
        areas = [counter.area(of_class) for counter, of_class in zip(self.counters, judged, strict=True)]
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
    least_rise: ClassVar[float] = 1e-6

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
