"""The random-intercept model of a target of 0 and 1, by maximum likelihood, from counts per category.

    logit P(y = 1) = b + u[category],    u ~ N(0, v)

The likelihood of a category is an integral over u without a closed form; `likelihood.py` approximates it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.elementary import log
from cpu_fallback.exact import Floats
from gpu_encode.formulas.glmm.likelihood import Counts, Likelihood, logistic
from gpu_encode.formulas.glmm.search import FAINT, MOST_STEPS, lowest, total

# Largest variance that is tried.  With a standard deviation of 64 on the scale of logits, categories are not shrunk.
LARGEST_VARIANCE = 2.0**12
# A step of fewer logits ends a search: the next step would be smaller than the rounding errors.
SMALL_STEP = 2.0**-36
# If steps below this size are no longer halved from one to the next, they are rounding errors.
SMALL_ENOUGH = 2.0**-20
# Longest step of the intercept, in logits: farther away, the derivatives at this point say little about the curve.
LONGEST_STEP = 4.0


@dataclass(frozen=True)
class BinomialFit:
    """A fitted model of each view and output.

    Parameters
    ----------
    intercept : float64 array (views, outputs)
        b, on the scale of logits; -inf or inf if only one class occurs, NaN if no category counts.
    root : float64 array (views, outputs)
        1 / (1 + exp(-b)): the encoding of a category that does not count.
    values : float64 array (rows, views, outputs)
        1 / (1 + exp(-(b + u))), where u is the category's likeliest effect; `root` for categories that do not count.
    effects : float64 array (rows, views, outputs)
        u; 0 for categories that do not count.
    between : float64 array (views, outputs)
        Variance v of the effects.
    """

    intercept: Floats
    root: Floats
    values: Floats
    effects: Floats
    between: Floats


def binomial(n: Floats, mean: Floats, counted: NDArray[np.bool_], points: int = 1) -> BinomialFit:
    """Fit logit P(y = 1) = b + u[category] by maximum likelihood, separately for each view and output.

    Parameters
    ----------
    n : float64 array (rows, views, 1)
        Summed weight of each category.  A weight of 2 is two rows, so weights should sum to the number of rows.
    mean : float64 array (rows, views, outputs)
        Share of ones in each category; any number for categories that do not count.
    counted : bool array (rows, views, 1) or (rows, views, outputs)
        Which categories take part.
    points : int, default=1
        Points of the adaptive Gauss-Hermite rule for the integral over u; 1 is Laplace's approximation, lme4's
        default.  The cost grows with the number of points; more points change only encodings of small categories.

    Returns
    -------
    BinomialFit

    Notes
    -----
    With a single category, or with no more rows than categories, the variance cannot be told from the noise: it is
    zero, and all encodings are the share of ones in the categories that count.  It is zero, too, if categories differ
    no more than by chance (a singular fit).  Encodings are exactly 0 or 1 only if a single class occurs at all: a
    category with nothing but ones is drawn towards the others.  The variance is at most 4096; it comes near this bound
    if all categories are large and each has rows of only one class.

    With several classes, each class against the rest is one output; their encodings need not sum to one.

    The same categories in another order give the same bits.

    References
    ----------
    Bates, Maechler, Bolker and Walker (2015), Fitting linear mixed-effects models using lme4, J. Stat. Software 67.
    Pinheiro and Chao (2006), Efficient Laplacian and adaptive Gaussian quadrature algorithms for multilevel generalized
    linear mixed models, JCGS 15.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode.formulas.glmm import binomial
    >>> n, ones = np.full((4, 1, 1), 20.0), np.array([2.0, 9.0, 12.0, 20.0]).reshape(4, 1, 1)
    >>> fit = binomial(n, ones / n, np.full((4, 1, 1), True))
    >>> fit.values.ravel().round(4).tolist(), fit.root.round(4).item()
    ([0.123, 0.4566, 0.6012, 0.9724], 0.6333)
    """
    taking_part = np.broadcast_to(counted & (n > 0), mean.shape)
    shape = mean.shape[1:]
    intercept, root, between = np.full((3, *shape), np.nan)
    effects, values = np.zeros(mean.shape), np.full(mean.shape, np.nan)
    for view, output in np.ndindex(shape):
        here, one = taking_part[:, view, output], (view, output)
        if not here.any():
            continue
        counts, group = Counts.of(n[here, view, 0], mean[here, view, output])
        intercept[one], root[one], between[one], chances, likeliest = fit_one(counts, points)
        values[:, view, output] = root[one]
        values[here, view, output] = chances[group]
        effects[here, view, output] = likeliest[group]
    return BinomialFit(intercept, root, values, effects, between)


def fit_one(counts: Counts, points: int) -> tuple[float, float, float, Floats, Floats]:
    """Fit one view and output: give intercept, root, variance, and the value and effect of each of the counts."""
    ones, zeros = counts.ones_and_zeros()
    rows, none = ones + zeros, np.zeros_like(counts.n)
    share = ones / rows
    if ones == 0 or zeros == 0:
        return np.inf if zeros == 0 else -np.inf, share, 0.0, none + share, none
    start = float(log(np.array([ones]))[0] - log(np.array([zeros]))[0])
    variance = 0.0
    categories = total(counts.number)
    profile = Profile(counts, points, start)
    if categories > 1 and rows > categories:
        variance = lowest(profile.slope, profile.height, FAINT / float(counts.n[-1]), LARGEST_VARIANCE)
    if variance == 0:
        return start, share, 0.0, none + share, none
    b, logits = profile.solve(variance)
    upper, _ = logistic(np.append(logits, b))
    return b, float(upper[-1]), variance, upper[:-1], logits - b


class Profile:
    """Minus the log-likelihood as a function of the variance, at the best intercept for it.

    Each search for an intercept begins where the search before it ended.

    Parameters
    ----------
    start : float
        Intercept without effects.
    """

    def __init__(self, counts: Counts, points: int, start: float) -> None:
        self.blocks = counts.blocks()
        self.points = points
        self.intercept = start
        self.logits: list[Floats] = [np.full_like(block.n, start) for block in self.blocks]

    def best(self, variance: float) -> list[Likelihood]:
        """Find the intercept at which the slope vanishes, and give the likelihood of each block there.

        The first step is Newton's; all later steps are those of the secant method.
        """
        before: tuple[float, float] | None = None
        last = LONGEST_STEP
        b = self.intercept
        pairs = zip(self.blocks, self.logits, strict=True)
        blocks = [Likelihood.at(block, b, variance, self.points, near) for block, near in pairs]
        for _ in range(MOST_STEPS):
            slope, _, information = gradient(blocks)
            if before is not None and b != before[0]:
                bent = (before[1] - slope) / (b - before[0])
                information = bent if bent > 0 else information
            step = min(max(slope / information, -LONGEST_STEP), LONGEST_STEP)
            if abs(step) <= SMALL_STEP or 0.5 * abs(last) < abs(step) < SMALL_ENOUGH:
                break
            last, before = step, (b, slope)
            b = b + step
            blocks = [block.move_to(b) for block in blocks]
        self.intercept, self.logits = b, [block.logits for block in blocks]
        return blocks

    def slope(self, variance: float) -> float:
        """Give the derivative of `height`; at the best intercept, a change of the intercept adds nothing."""
        return -gradient(self.best(variance))[1]

    def height(self, variance: float) -> float:
        """Give minus the log-likelihood, up to a constant."""
        return -total(np.array([block.value() for block in self.best(variance)]))

    def solve(self, variance: float) -> tuple[float, Floats]:
        """Give the intercept, and the likeliest logit of each of the counts."""
        self.best(variance)
        return self.intercept, np.concatenate(self.logits)


def gradient(blocks: list[Likelihood]) -> tuple[float, float, float]:
    """Sum the derivatives over all blocks."""
    by_intercept, by_variance, information = np.array([block.gradient() for block in blocks]).T
    return total(by_intercept), total(by_variance), total(information)
