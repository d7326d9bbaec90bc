"""Variance within and between categories, by a one-way analysis of variance of the categories that count."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from cpu_fallback.exact import Floats, Scaled, deviation
from gpu_encode.formulas.summaries import as_floats, square_root
from gpu_encode.sums.moments import CategoryMoments, Moments


@dataclass(frozen=True)
class VarianceComponents:
    """Variance within and between categories.

    Parameters
    ----------
    within : Scaled (..., outputs)
        sW2 = SSW / (N - C), for C categories with N rows; zero if no category has two rows.
    between : Scaled (..., outputs)
        tau2 = max(0, (SSB - (C - 1) * sW2) / (N - sum of n**2 / N)); zero for a single category.
    """

    within: Scaled
    between: Scaled

    @staticmethod
    def of_each_category(visible: Moments) -> Floats:
        """Give the numbers that are summed over categories: the mean, the mean again, the root of SSW's part, and n."""
        with np.errstate(divide="ignore", invalid="ignore"):
            root = as_floats(square_root(visible.deviation.over(visible.n)), visible.n > 0)
        return np.concatenate([visible.mean, visible.mean, root, visible.n], axis=-1)

    @staticmethod
    def weights(visible: Moments) -> Floats:
        """Give the weights of these numbers: the second time, a mean is weighted by the rows of its category."""
        ones, rows = np.ones_like(visible.mean), np.broadcast_to(visible.n, visible.mean.shape)
        return np.concatenate([ones, rows, ones, np.ones_like(visible.n)], axis=-1)

    @classmethod
    def of(cls, categories: CategoryMoments, n_outputs: int) -> Self:
        """Compute both variances from the sums of these numbers."""
        means, roots, rows = (
            categories.of_numbers(part)
            for part in (
                slice(n_outputs, 2 * n_outputs),
                slice(2 * n_outputs, 3 * n_outputs),
                slice(3 * n_outputs, None),
            )
        )
        total = rows.first.to_floats()
        with np.errstate(divide="ignore", invalid="ignore"):
            free = (rows.first - rows.number).to_floats()
            within = roots.second.to_scaled().over(free).where(free > 0)
            scatter = deviation(means.number, means.first, means.second).over(total)
            excess = scatter.plus(within.times(1.0 - rows.k))
            share = (rows.first * rows.first - rows.second).to_scaled().over(total)
            between = Scaled(excess.fraction / share.fraction, excess.exponent - share.exponent)
            return cls(within, between.where((excess.fraction > 0) & (share.fraction > 0)))
