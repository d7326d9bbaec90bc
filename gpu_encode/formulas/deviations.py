"""Roots and ratios of exact deviations, whose exponents may be beyond those of float64."""

from typing import Any

import numpy as np

from cpu_fallback.exact import Floats, Scaled
from gpu_encode.sums.moments import Moments


def skewness(seen: Moments, ddof: int) -> Floats:
    """Third standardized moment, with pandas' correction for the sample's size where ddof is 1; 0 of equal values."""
    spread, n = seen.deviation, np.broadcast_to(seen.n, seen.mean.shape)
    root = square_root(spread)
    below = Scaled(spread.fraction * root.fraction, spread.exponent + root.exponent)
    found = np.where(spread.fraction == 0, 0.0, seen.third.ratio(below))
    if not ddof:
        return np.where(n > 0, found, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(n > 2, found * (np.sqrt(n * seen.less_one) / (n - 2.0)), np.nan)


def plain(number: Scaled, where: Any) -> Floats:
    """Numbers as float64, NaN elsewhere."""
    one = Scaled(np.ones_like(number.fraction), np.zeros_like(number.exponent))
    return np.where(where, number.ratio(one), np.nan)


def square_root(number: Scaled) -> Scaled:
    """Square root, rounded once, of numbers whose exponents may be beyond those of float64."""
    odd = number.exponent & 1
    return Scaled(np.sqrt(np.where(odd == 1, 2.0 * number.fraction, number.fraction)), (number.exponent - odd) >> 1)
