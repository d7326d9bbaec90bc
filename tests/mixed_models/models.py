"""Fits of one view and output, reference values, and the likelihoods of the models in plain code."""

import json
from pathlib import Path

import numpy as np
from scipy.integrate import quad

from cpu_fallback.exact import Scaled
from gpu_encode.formulas.glmm import binomial, gaussian

HOME = Path(__file__).parent / "references"
REFERENCES = json.loads((HOME / "lme4.json").read_text())
STATSMODELS = json.loads((HOME / "statsmodels.json").read_text())


def column(values):
    return np.asarray(values, np.float64).reshape(-1, 1, 1)


def to_scaled(values):
    return Scaled(column(values), np.zeros((len(values), 1, 1), np.int64))


def plain(number):
    return np.ldexp(number.fraction, number.exponent)


def fit_gaussian(n, mean, within, counted=None):
    """Fit categories with given numbers of rows, means, and sums of squares around the means."""
    counted = np.ones(len(n), bool) if counted is None else np.asarray(counted)
    deviation = to_scaled(np.asarray(within, np.float64) * np.asarray(n, np.float64))
    return gaussian(column(n), column(mean), deviation, counted.reshape(-1, 1, 1))


def fit_binomial(n, ones, counted=None, points=1):
    counted = np.ones(len(n), bool) if counted is None else np.asarray(counted)
    return binomial(column(n), column(ones) / column(n), counted.reshape(-1, 1, 1), points)


def sums_of(categories):
    """Rows of each category to (n, mean, sum of squares around it)."""
    means = [sum(rows) / len(rows) for rows in categories]
    within = [sum((y - mean) ** 2 for y in rows) for rows, mean in zip(categories, means, strict=True)]
    return [len(rows) for rows in categories], means, within


def restricted_likelihood(categories, ratio):
    """Minus twice the restricted log-likelihood of rows, from the matrix of their covariances."""
    y = np.concatenate(categories).astype(float)
    owner = np.repeat(np.arange(len(categories)), [len(rows) for rows in categories])
    covariance = np.eye(len(y)) + ratio * (owner[:, None] == owner)
    inverse, ones = np.linalg.inv(covariance), np.ones(len(y))
    information = ones @ inverse @ ones
    rest = y - (ones @ inverse @ y) / information
    return (len(y) - 1) * np.log(rest @ inverse @ rest) + np.linalg.slogdet(covariance)[1] + np.log(information)


def log_likelihood(n, ones, b, variance):
    """Log-likelihood of counts, each category's integral by adaptive quadrature to nearly all digits."""
    total = 0.0
    for rows, hits in zip(n, ones, strict=True):

        def height(z, rows=rows, hits=hits):
            logit = b + np.sqrt(variance) * z
            return hits * logit - rows * np.logaddexp(0.0, logit) - z * z / 2

        grid = np.linspace(-12, 12, 2001)
        middle, top = grid[height(grid).argmax()], height(grid).max()
        limits = {"points": [middle], "epsabs": 0, "epsrel": 1e-11, "limit": 400}
        value = quad(lambda z, height=height, top=top: np.exp(height(z) - top), middle - 12, middle + 12, **limits)[0]
        total += top + np.log(value / np.sqrt(2 * np.pi))
    return total


def laplace(n, ones, b, variance):
    """Laplace's approximation, the likeliest effects by halving."""
    n, ones = np.array(n, float), np.array(ones, float)

    def chance(u):
        return 0.5 * (1.0 + np.tanh((b + u) / 2))

    left, right = -variance * n, variance * n
    for _ in range(80):
        u = (left + right) / 2
        above = variance * (ones - n * chance(u)) > u
        left, right = np.where(above, u, left), np.where(above, right, u)
    bent = 1.0 + variance * n * chance(u) * (1.0 - chance(u))
    heights = ones * (b + u) - n * np.logaddexp(0.0, b + u) - u * u / (2 * variance) - np.log(bent) / 2
    return heights.sum()
