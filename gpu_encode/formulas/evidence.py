"""How much more of the rows of one label than of the others are of a category."""

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.elementary import log
from cpu_fallback.exact import Floats, Limbs
from gpu_encode.errors.parameters import check_number
from gpu_encode.formulas.statistic import Context, Needs, Statistic
from gpu_encode.sums.moments import Moments


class Evidence(Statistic):
    """Weight of evidence: log(p / q), p and q the category's shares of the rows with a label and of all others.

    With n rows of the category, s of them with the label, N and S those of all visible rows, and regularization r, p is
    ``(s + r) / (S + 2r)`` and q is ``((n - s) + r) / ((N - S) + 2r)``; all of them summed weights, n - s and N - S as s
    and S exact and then rounded once.

    Parameters
    ----------
    regularization : float, default=1.0
        Rows added to each side, at least 0.  At 0 a category of one label alone gives inf or -inf.
    """

    needs = Needs(totals=True, others=True, target_kinds=("binary", "multiclass"))

    def __init__(self, regularization: float = 1.0) -> None:
        self.regularization = regularization

    def check(self) -> None:
        """Raise ValueError for a negative regularization."""
        check_number("WeightOfEvidenceEncoder", "regularization", self.regularization, low=0.0)

    def find_prior(self, total: Moments) -> Floats:
        """Give no evidence."""
        return np.zeros_like(total.total)

    def encode(self, visible: Moments, context: Context, prior: Floats) -> Floats:
        """Give log(p / q); 0 where all visible rows have one label, by which no category differs from another."""
        with_label, with_others = self.shares(visible, context.total)
        with np.errstate(divide="ignore", invalid="ignore"):
            evidence = log(with_label / with_others)
        return np.where(np.isnan(evidence), 0.0, evidence)

    def shares(self, visible: Moments, total: Moments) -> tuple[Floats, Floats]:
        """Give the shares p and q; NaN for 0 / 0."""
        r = float(self.regularization)
        with np.errstate(divide="ignore", invalid="ignore"):
            with_label = (visible.total + r) / (total.total + 2.0 * r)
            with_others = (visible.others + r) / (total.others + 2.0 * r)
        return with_label, with_others

    def information(self, visible: Moments, counted: NDArray[np.bool_], total: Moments) -> Floats:
        """Give the information value: the sum of (p - q) * log(p / q) over the categories.

        Of p - q and of the logarithm as floats the sum is exact, and then rounded once.

        Parameters
        ----------
        visible : Moments (categories, views, outputs)
        counted : bool array (categories, views, 1)
            Categories that take part.
        total : Moments (views, outputs)

        Returns
        -------
        float64 array (views, outputs)
            inf where a category has one label alone, and there is no regularization.
        """
        with_label, with_others = self.shares(visible, total)
        evidence = self.encode(visible, Context(total), self.find_prior(total))
        counted = np.broadcast_to(counted, evidence.shape) & (evidence != 0)
        finite = counted & np.isfinite(evidence)
        difference = np.where(finite, with_label - with_others, 0.0)
        exact = Limbs.sum_of(difference, np.where(finite, evidence, 0.0), where=finite).to_floats()
        return np.where((counted & ~finite).any(axis=0), np.inf, exact)
