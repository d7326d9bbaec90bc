"""Weights of a cell's mean and of the prior, and the blend of both."""

import math

from cpu_fallback.compiled.border import inlined
from cpu_fallback.compiled.elementary import exp
from cpu_fallback.compiled.moments import plain
from cpu_fallback.fused_rules import PLAIN, Blend, Shrinkage

# Within these bounds, a variance stays a normal float after any products and quotients with three weights.
LIGHT, HEAVY = 2.0**-150, 2.0**150


@inlined
def weights_of(n: float, shrinkage: Shrinkage) -> tuple[float, float]:
    """Give the weights of mean and prior that follow from the cell's weight: without smoothing, or by the sigmoid."""
    if shrinkage.kind == PLAIN:
        return 1.0, 0.0
    return 1.0, exp(-((n - shrinkage.first) / shrinkage.second))


@inlined
def bayes_weight_of_count(n: float, own: float, own_exponent: int, total: float, total_exponent: int) -> float:
    """Give the weight of the prior as `bayes_weight` does, if n is neither tiny nor huge."""
    noise = own / n / n
    return 0.0 if noise == 0 else plain(noise / (total * n), own_exponent - total_exponent)


@inlined
def bayes_weight(n: float, own: float, own_exponent: int, total: float, total_exponent: int) -> float:
    """Give the prior's weight by empirical Bayes (the mean has 1), from N * Q - S**2 and the variance of all."""
    if not LIGHT < n < HEAVY:
        n, power = math.frexp(n)
        own_exponent -= 3 * power
    return bayes_weight_of_count(n, own, own_exponent, total, total_exponent)


@inlined
def blend_near(mu: float, mean: float, own: float, other: float) -> float:
    """Give the encoding of a cell as `blend_one` does, if a float can hold the distance of mean and prior."""
    nearer = own >= other
    part = (other if nearer else own) / (own + other)
    start, end = (mean, mu) if nearer else (mu, mean)
    blended = start + part * (end - start)
    return mean if other == 0 else blended


@inlined
def blend_one(mu: float, mean: float, own: float, other: float) -> float:
    """Give the encoding of a cell that counts, from the weights of mean and prior, as `Smoothing.encode` does."""
    nearer = own >= other
    part = (other if nearer else own) / (own + other)
    start, end = (mean, mu) if nearer else (mu, mean)
    distance = end - start
    blended = start + part * distance
    if abs(distance) == math.inf:
        blended = start + 2.0 * part * (0.5 * end - 0.5 * start)
    return mean if other == 0 else blended


@inlined
def unseen_encoding(mu: float, blend: Blend) -> float:
    """Give the encoding of a category that no visible row has; NaN if there is no visible row at all."""
    return blend.unseen if blend.has_unseen and mu == mu else mu  # noqa: PLR0124 - NaN
