"""The formulas for lam as backends know them, which compute codes in one pass."""

from cpu_fallback.fused_rules import EMPIRICAL_BAYES, M_ESTIMATE, PLAIN, SIGMOID, Shrinkage
from gpu_encode.formulas.smoothing import EmpiricalBayes, MEstimate, NoSmoothing, Sigmoid
from gpu_encode.formulas.statistic import Statistic


def shrinkage_of(smoothing: Statistic) -> Shrinkage | None:
    """Describe a formula; None for one that asks for more than a cell and the variance of all that is visible.

    By its exact type: a class derived from one of these may have a formula of its own.
    """
    if type(smoothing) is NoSmoothing:
        return Shrinkage(PLAIN)
    if type(smoothing) is MEstimate:
        return Shrinkage(M_ESTIMATE, float(smoothing.m))
    if type(smoothing) is Sigmoid:
        return Shrinkage(SIGMOID, float(smoothing.k), float(smoothing.f))
    if type(smoothing) is EmpiricalBayes and smoothing.tau == "total":
        return Shrinkage(EMPIRICAL_BAYES)
    return None
