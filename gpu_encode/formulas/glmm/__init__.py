"""Random-intercept models of categories, estimated from the sums of each category alone.

A category's effect is drawn from a normal distribution whose variance is estimated with everything else, so there is
nothing to tune.  `gaussian` is for real targets, `binomial` for targets of 0 and 1.  Both work on the host; their cost
grows with the number of categories that have different sums, and not with the number of rows.
"""

from gpu_encode.formulas.glmm.binomial import BinomialFit, binomial
from gpu_encode.formulas.glmm.gaussian import GaussianFit, gaussian

__all__ = ["BinomialFit", "GaussianFit", "binomial", "gaussian"]
