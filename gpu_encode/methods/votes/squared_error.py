"""The squared error of predictions, as a score that does not depend on the order of rows."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from cpu_fallback.exact import Floats
from cpu_fallback.types import Array
from gpu_encode.seam.ops import Ops


@dataclass(frozen=True, eq=False)
class SquaredError:
    """Minus the weighted mean of squared errors, in units of a power of two.

    The unit does not change comparisons, and lets float64 hold the squares of numbers as large as 1e200.

    Parameters
    ----------
    ops : Ops
    y : float64 array (rows,)
        The targets divided by `unit`, on the device of `ops`.
    weight : float64 array (rows,), optional
        The weights divided by a power of two.
    total : float
        Sum of the weights.
    unit : float
    """

    ops: Ops
    y: Floats
    weight: Floats | None
    total: float
    unit: float

    @classmethod
    def of(cls, ops: Ops, y: Array, weight: Array | None) -> Self:
        """Store the numbers to predict, and weights of any kind."""
        numbers = ops.cast(y, np.float64)
        unit = power_above(float(np.abs(numbers).max()))
        if weight is None:
            return cls(ops, numbers / unit, None, float(len(numbers)), unit)
        weight = ops.cast(weight, np.float64)
        weight = weight / power_above(float(weight.max()))
        return cls(ops, numbers / unit, weight, math.fsum(ops.to_host(weight).tolist()), unit)

    def score(self, predictions: Floats) -> float:
        """Give minus the mean of the rounded squares, in units of unit**2; a prediction of NaN counts as no error."""
        error = self.y - predictions / self.unit
        square = np.where(np.isnan(error), 0.0, error * error)
        weighted = square if self.weight is None else square * self.weight
        return -math.fsum(self.ops.to_host(weighted).tolist()) / (self.total or 1.0)


def power_above(number: float) -> float:
    """Give a power of two near a number, by which division is exact."""
    return math.ldexp(1.0, min(math.frexp(number)[1], 1023)) if number else 1.0
