"""The random-intercept model as a smoothing: nothing to tune, and single rows are shrunk too."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.exact import Floats, Scaled
from gpu_encode.formulas.glmm.binomial import binomial
from gpu_encode.formulas.glmm.gaussian import gaussian
from gpu_encode.formulas.smoothing import Smoothing
from gpu_encode.sums.moments import Moments, Needs
from gpu_encode.words.errors.parameters import check_count

if TYPE_CHECKING:
    from gpu_encode.seam.ops import Ops


@dataclass(eq=False, repr=False)
class GLMM(Smoothing):
    """Generalized linear mixed model: categories differ from a common value by normally distributed effects.

    For a continuous target y = b + u + e, u ~ N(0, tau2) and e ~ N(0, sigma2), by restricted maximum likelihood: the
    encoding is b + lam * (mean - b) with lam = n * tau2 / (n * tau2 + sigma2).  For a binary target, and for each class
    of several against the rest, logit P(y = 1) = b + u by maximum likelihood: the encoding is the probability
    1 / (1 + exp(-(b + u))) at the likeliest u.  The prior is the model's own: b, or 1 / (1 + exp(-b)).

    Parameters
    ----------
    points : int, default=1
        Points of the adaptive Gauss-Hermite rule for classes, at most 100.  1 is Laplace's approximation, the default
        of lme4; it makes the variance too small if categories have few rows.

    Notes
    -----
    The model is fitted to the sums of the visible rows, once for each fold, whatever the number of rows.  It looks at
    all categories at once, so leave-one-out and ordered schemes, hierarchies and other priors are refused.

    References
    ----------
    Bates, Maechler, Bolker and Walker (2015), J. Stat. Software 67; Pargent, Pfisterer, Thomas and Bischl (2022),
    Computational Statistics 37, where it is the best of eleven encodings together with 5 folds.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import GLMM, TargetEncoder
    >>> X, y = np.array([list("aabbcc")]).T, np.array([1.0, 2.0, 2.0, 3.0, 6.0, 7.0])
    >>> TargetEncoder(smooth=GLMM(), target_type="continuous").fit(X, y).encodings_[0].round(4).tolist()
    [1.5714, 2.5357, 6.3929]
    """

    needs = Needs(squares=True, table=True)

    points: int = 1

    def check(self) -> None:
        """Raise ValueError unless there are 1 to 100 points."""
        check_count("GLMM", "points", self.points, low=1, high=100)

    def encode_table(
        self, ops: "Ops", visible: Moments, counted: NDArray[np.bool_], total: Moments, of_classes: bool
    ) -> tuple[Floats, Floats]:
        """Fit a model to each view and output."""
        n, mean, present = ops.to_host(visible.n), ops.to_host(visible.mean), ops.to_host(counted)
        if of_classes:
            classes = binomial(n, mean, present, self.points)
            return ops.to_device(classes.values), prior_of(ops, classes.root, total)
        # The host fits the model: there are few numbers, and the bits must not depend on the device.
        deviation = Scaled(ops.to_host(visible.deviation.fraction), ops.to_host(visible.deviation.exponent))
        fit = gaussian(n, mean, deviation, present)
        return ops.to_device(fit.values), prior_of(ops, fit.intercept, total)


def prior_of(ops: "Ops", common: Floats, total: Moments) -> Floats:
    """Give the model's own prior; if no category counts, there is no model, and it is the mean of all rows."""
    return ops.to_device(np.where(np.isnan(common), ops.to_host(total.mean), common))
