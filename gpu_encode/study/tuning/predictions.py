"""Encodings as predictions of the target of held-out rows: a mean, or a probability, on the scale of the target."""

import numpy as np

from cpu_fallback.elementary import exp
from cpu_fallback.exact import Floats
from gpu_encode.formulas.catboost import TargetRatios
from gpu_encode.formulas.evidence import Evidence
from gpu_encode.formulas.statistic import Statistic
from gpu_encode.sums.moments import Moments


def predictions_of(statistic: Statistic, encodings: Floats, total: Moments, classes: int) -> list[Floats]:
    """Read encodings as predictions, one for each column of an output: (rows, folds, outputs).

    Parameters
    ----------
    statistic : Statistic
    encodings : float64 array (rows, folds, outputs)
    total : Moments (folds, outputs)
        Moments of all rows that each fold sees.
    classes : int
        Number of labels of the target; 1 for a quantity.
    """
    if isinstance(statistic, Evidence):
        return [chances_by_evidence(encodings, total)]
    if not isinstance(statistic, TargetRatios):
        return [encodings]
    n_priors = len(statistic.priors)
    of_priors = [encodings[..., number::n_priors] for number in range(n_priors)]
    if statistic.statistic == "borders" and classes > 2:
        return [chances_between(above) for above in of_priors]
    return of_priors


def chances_by_evidence(evidence: Floats, total: Moments) -> Floats:
    """Give the probability of the label; its odds are S / (N - S) times exp(evidence) (Good, 1950)."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        odds = (total.total / total.others) * exp(evidence)
        # Computed from the side on which nothing overflows.
        chance = np.where(odds <= 1.0, odds / (1.0 + odds), 1.0 / (1.0 + 1.0 / odds))
    # If all visible rows have the label, or none has it, the evidence does not matter.
    alone = np.broadcast_to((total.total == 0.0) | (total.others == 0.0), chance.shape)
    sure = np.broadcast_to(np.where(total.total > 0.0, 1.0, 0.0), chance.shape)
    return np.where(alone & ~np.isnan(evidence), sure, chance)


def chances_between(above: Floats) -> Floats:
    """Give the probability of each label, from the shares of rows at or above it; for the first label it is 1."""
    shares = [np.ones_like(above[..., 0]), *(above[..., number] for number in range(1, above.shape[-1]))]
    between = [one - other for one, other in zip(shares, [*shares[1:], np.zeros_like(shares[0])], strict=True)]
    return np.stack(between, axis=-1)
