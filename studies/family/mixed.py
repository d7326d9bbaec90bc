"""The random-intercept model by its likelihood, maximized over one number."""

import numpy as np

from benchmarks.harness.rows import Array, Rows

# The range of the ratio of the variances, as powers of e, and the accuracy of its logarithm.
LOWEST, HIGHEST, WIDTH = -25.0, 25.0, 1e-10


def effects(rows: Rows) -> tuple[Array, float]:
    """Give the effect of each category, and the common value: restricted maximum likelihood of y = b + u + e.

    With r the ratio of both variances, twice the negative log-likelihood is, but for a constant,
    (N - 1) log(W + sum w (mean - b)^2) + sum log(1 + n r) + log sum w, where w = n / (1 + n r), b is the mean of the
    means under w, and W the sum of squares within categories (Searle, Casella, McCulloch: Variance Components, 1992).
    """
    from scipy.optimize import minimize_scalar

    values, n = rows.values, np.bincount(rows.codes, minlength=rows.categories)
    mean = np.bincount(rows.codes, values, minlength=rows.categories) / np.maximum(n, 1)
    within = np.sum((values - mean[rows.codes]) ** 2)

    def loss(power: float) -> float:
        ratio = np.exp(power)
        weights = n / (1 + n * ratio)
        common = np.sum(weights * mean) / np.sum(weights)
        between = np.sum(weights * (mean - common) ** 2)
        spare = np.sum(np.log1p(n * ratio)) + np.log(np.sum(weights))
        return float((len(values) - 1) * np.log(within + between) + spare)

    ratio = np.exp(minimize_scalar(loss, bounds=(LOWEST, HIGHEST), method="bounded", options={"xatol": WIDTH}).x)
    weights = n / (1 + n * ratio)
    common = float(np.sum(weights * mean) / np.sum(weights))
    return n * ratio / (1 + n * ratio) * (mean - common), common


def values_of(rows: Rows) -> list[Array]:
    """Give the common value plus the effect of each row's category."""
    found, common = effects(rows)
    return [(common + found)[rows.codes]]


def effects_of(rows: Rows) -> list[Array]:
    """Give the effect of each row's category."""
    return [effects(rows)[0][rows.codes]]
