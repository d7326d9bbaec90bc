"""What encodings say of the target of rows held out: a mean, or a chance, on the target's own scale."""

import numpy as np

from cpu_fallback.elementary import exp
from cpu_fallback.exact import Floats
from gpu_encode.formulas.catboost import TargetRatios
from gpu_encode.formulas.evidence import Evidence
from gpu_encode.formulas.statistic import Statistic
from gpu_encode.sums.moments import Moments


def predictions_of(statistic: Statistic, encodings: Floats, total: Moments, classes: int) -> list[Floats]:
    """Read encodings as predictions, one for each column that an output has: (rows, folds, outputs).

    Parameters
    ----------
    statistic : Statistic
    encodings : float64 array (rows, folds, outputs)
    total : Moments (folds, outputs)
        All rows that each fold sees.
    classes : int
        Labels of the target; 1 of a quantity.
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
    """Give the chance of the label: of odds S / (N - S) times the exponential of the evidence (Good, 1950)."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        odds = (total.total / total.others) * exp(evidence)
        # From the side on which nothing overflows.
        chance = np.where(odds <= 1.0, odds / (1.0 + odds), 1.0 / (1.0 + 1.0 / odds))
    # Where all that is visible has the label, or none has, no evidence is asked for.
    alone = np.broadcast_to((total.total == 0.0) | (total.others == 0.0), chance.shape)
    sure = np.broadcast_to(np.where(total.total > 0.0, 1.0, 0.0), chance.shape)
    return np.where(alone & ~np.isnan(evidence), sure, chance)


def chances_between(above: Floats) -> Floats:
    """Give the chance of each label by the shares of the rows from each label on; of the first they are all rows."""
    shares = [np.ones_like(above[..., 0]), *(above[..., number] for number in range(1, above.shape[-1]))]
    between = [one - other for one, other in zip(shares, [*shares[1:], np.zeros_like(shares[0])], strict=True)]
    return np.stack(between, axis=-1)
