"""Objectives of the tuning: the area under the ROC curve, and the squared error."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from cpu_fallback.types import Array, Rows, SumShape
from gpu_encode.formulas.ordered_pairs import PairCounter
from gpu_encode.methods.proximity.voting import Cases, Electorate
from gpu_encode.methods.votes.squared_error import SquaredError


@dataclass(frozen=True, eq=False)
class Area:
    """The mean area over all classes (with two, the area of the second), for training rows scored by all other rows.

    Parameters
    ----------
    cases : Cases
    counters : list of PairCounter
        One for each class against all others; with two classes only for the second.
    """

    cases: Cases
    counters: list[PairCounter]
    # An area can only take finitely many values.
    least_rise: ClassVar[float] = 0.0

    @classmethod
    def of(cls, electorate: Electorate, chosen: Array) -> Self:
        """Choose training rows; without weights, rows that agree in everything and in class become one case."""
        rows, measures = electorate.rows, electorate.measures.values
        target, ops = rows.targets[0], rows.ops
        merged, classes = electorate.merged[chosen], target.values[chosen]
        labels = [1] if target.n_classes == 2 else range(target.n_classes)
        if rows.weight is not None:
            weight = rows.weight[chosen]
            counters = [PairCounter(ops, classes == label, weight) for label in labels]
            return cls(electorate.leave_out(merged, measures[:, chosen]), counters)
        numbers, keys = ops.factorize(ops.combine(merged, classes, target.n_classes))
        sums = ops.accumulate(Rows(numbers), SumShape(len(keys)))
        keys = ops.to_device(keys)
        merged = keys // target.n_classes
        classes = (keys - merged * target.n_classes).astype(np.int32)
        own = np.stack([(classes == label).astype(np.int64) for label in range(target.n_classes)])
        n_rows = sums[: len(keys), 0, 0, 0].copy() if len(keys) < len(numbers) else None
        counters = [PairCounter(ops, classes == label, n_rows) for label in labels]
        return cls(electorate.leave_out(merged.astype(np.int32), own), counters)

    def measure(self, scores: Array) -> float:
        """Measure the area of scores (outputs, cases)."""
        # A row that no other row can score gets the score 0.
        known = np.where(np.isnan(scores), 0.0, scores)
        judged = known[-len(self.counters) :]
        areas = [counter.area(of_class) for counter, of_class in zip(self.counters, judged, strict=True)]
        return sum(areas) / max(len(areas), 1)

    def scale(self, measured: float) -> float:
        """Give the measured area unchanged, since it has no unit."""
        return measured


@dataclass(frozen=True, eq=False)
class Error:
    """Minus the mean squared error, for training rows scored by all other rows.

    Parameters
    ----------
    cases : Cases
    squared : SquaredError
    """

    cases: Cases
    squared: SquaredError
    # Errors may fall for ever by smaller and smaller amounts.
    least_rise: ClassVar[float] = 1e-6

    @classmethod
    def of(cls, electorate: Electorate, chosen: Array) -> Self:
        """Choose training rows."""
        rows = electorate.rows
        merged, own = electorate.merged[chosen], electorate.measures.values[:, chosen]
        weight = None if rows.weight is None else rows.weight[chosen]
        squared = SquaredError.of(rows.ops, rows.targets[0].values[chosen], weight)
        return cls(electorate.leave_out(merged, own), squared)

    def measure(self, scores: Array) -> float:
        """Measure minus the squared error of scores (1, cases)."""
        return self.squared.score(scores[0])

    def scale(self, measured: float) -> float:
        """Give the measured error in the unit of the target."""
        return measured * self.squared.unit * self.squared.unit
