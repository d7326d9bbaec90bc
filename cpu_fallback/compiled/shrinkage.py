"""Lam of a cell, and the blend of its mean with the prior."""

from cpu_fallback.compiled.border import inlined
from cpu_fallback.compiled.elementary import exp
from cpu_fallback.compiled.moments import plain
from cpu_fallback.fused_rules import M_ESTIMATE, PLAIN, Blend, Shrinkage


@inlined
def weight_of(n: float, shrinkage: Shrinkage) -> float:
    """Lam of a formula that depends on the weight of the cell alone."""
    if shrinkage.kind == PLAIN:
        return 1.0
    if shrinkage.kind == M_ESTIMATE:
        return n / (n + shrinkage.first)
    return 1.0 / (1.0 + exp(-((n - shrinkage.first) / shrinkage.second)))


@inlined
def bayes_weight(n: float, own: float, own_exponent: int, total: float, total_exponent: int) -> float:
    """Lam of empirical Bayes, from N * Q - S**2 of the cell and the variance of all that is visible."""
    noise = own / n / n
    if noise == 0:
        return 1.0
    return 1.0 / (1.0 + plain(noise / (total * n), own_exponent - total_exponent))


@inlined
def blend_one(mu: float, mean: float, lam: float) -> float:
    """Encoding of a cell that counts: its mean where lam is 1, which mean - mu would round beside a large mu."""
    return mean if lam == 1.0 else mu + lam * (mean - mu)


@inlined
def unseen_encoding(mu: float, blend: Blend) -> float:
    """Encoding of what no visible row has; NaN where there is no visible row at all."""
    return blend.unseen if blend.has_unseen and mu == mu else mu  # noqa: PLR0124 - NaN
