"""Random-intercept models of categories, estimated from the sums of each category alone.

A category's effect is drawn from a normal law whose variance is estimated with everything else, so there is nothing to
tune.  `gaussian` is for real targets, `binomial` for targets of 0 and 1.  Both work on the host, and cost what the
number of different categories' sums asks for, however many rows there were.
"""

from gpu_encode.formulas.glmm.binomial import BinomialFit, binomial
from gpu_encode.formulas.glmm.gaussian import GaussianFit, gaussian

__all__ = ["BinomialFit", "GaussianFit", "binomial", "gaussian"]
