"""The random-intercept model of a real target, by restricted maximum likelihood, from sums per category.

    y = b + u[category] + e,    u ~ N(0, tau2),    e ~ N(0, sigma2)

With g = tau2 / sigma2, w = n / (1 + g * n), b = sum(w * mean) / sum(w), and R = sum of squares within categories +
sum(w * (mean - b)**2), minus twice the restricted log-likelihood, profiled over b and sigma2 = R / (N - 1), is

    (N - 1) * log R + sum(log(1 + g * n)) + log sum(w) + constant

(Harville 1977; Bates et al. 2015, eq. 41, in Theta = sqrt(g)).  It depends on categories through n and mean alone, so
categories of the same size count as one.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.cached import cached_property
from cpu_fallback.elementary import log
from cpu_fallback.exact import Floats, Scaled
from gpu_encode.formulas.glmm.search import FAINT, lowest, total

# If squares within categories are this much smaller than those between them, they count as zero: lam would round to 1.
NO_NOISE = 2.0**-100


@dataclass(frozen=True)
class GaussianFit:
    """A fitted model of each view and output.

    Parameters
    ----------
    intercept : float64 array (views, outputs)
        b; NaN if no category counts.
    values : float64 array (rows, views, outputs)
        b + lam * (mean - b) for categories that count, b for all others.
    lam : float64 array (rows, views, outputs)
        n * tau2 / (n * tau2 + sigma2); 0 for categories that do not count.
    within, between : Scaled (views, outputs)
        sigma2 and tau2.
    """

    intercept: Floats
    values: Floats
    lam: Floats
    within: Scaled
    between: Scaled


def gaussian(n: Floats, mean: Floats, deviation: Scaled, counted: NDArray[np.bool_]) -> GaussianFit:
    """Fit y = b + u[category] + e by restricted maximum likelihood (REML), separately for each view and output.

    Parameters
    ----------
    n : float64 array (rows, views, 1)
        Summed weight of each category.  A weight of 2 is two rows, so weights should sum to the number of rows.
    mean : float64 array (rows, views, outputs)
        Mean of each category; any number for categories that do not count.
    deviation : Scaled (rows, views, outputs)
        N * Q - S**2 of each category: n times the sum of squared deviations from its mean.
    counted : bool array (rows, views, 1) or (rows, views, outputs)
        Which categories take part.

    Returns
    -------
    GaussianFit

    Notes
    -----
    With a single category, or with no more rows than categories, the two variances cannot be told apart: tau2 is zero,
    and all encodings are the mean of the categories that count.  (lme4 refuses such data.)  tau2 is zero, too, if the
    categories differ no more than their rows do (a singular fit).  If rows do not differ within categories, sigma2 is
    zero and encodings are the categories' means.  A constant target gives exactly this constant.

    The same categories in another order give the same bits.  Targets are scaled by a power of two, so that squares
    neither overflow nor underflow.

    References
    ----------
    Harville (1977), Maximum likelihood approaches to variance component estimation, JASA 72.
    Bates, Maechler, Bolker and Walker (2015), Fitting linear mixed-effects models using lme4, J. Stat. Software 67.

    Examples
    --------
    Three categories of two rows: (1, 2), (2, 3), (6, 7).

    >>> import numpy as np
    >>> from cpu_fallback.exact import Scaled
    >>> from gpu_encode.formulas.glmm import gaussian
    >>> n, mean = np.full((3, 1, 1), 2.0), np.array([1.5, 2.5, 6.5]).reshape(3, 1, 1)
    >>> deviation = Scaled(np.full((3, 1, 1), 1.0), np.zeros((3, 1, 1), np.int64))
    >>> fit = gaussian(n, mean, deviation, np.full((3, 1, 1), True))
    >>> fit.intercept.item(), fit.values.ravel().round(4).tolist()
    (3.5, [1.5714, 2.5357, 6.3929])
    """
    taking_part = np.broadcast_to(counted & (n > 0), mean.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        squares = deviation.over(n)
    views, outputs = mean.shape[1:]
    intercept = np.full((views, outputs), np.nan)
    within, between = np.full((2, views, outputs), np.nan)
    exponent = np.zeros((views, outputs), np.int64)
    lam, values = np.zeros(mean.shape), np.full(mean.shape, np.nan)
    for view, output in np.ndindex(views, outputs):
        here, one = taking_part[:, view, output], (view, output)
        if not here.any():
            continue
        own = mean[:, view, output][here]
        within_rows = Scaled(squares.fraction[:, view, output][here], squares.exponent[:, view, output][here])
        scale = scale_of(own, within_rows)
        sizes, means = n[:, view, 0][here], np.ldexp(own, -scale)
        model = Sizes.of(sizes, means, within_rows.ratio(Scaled(np.ones(1), np.full(1, 2 * scale))))
        ratio = model.best_ratio()
        b = model.center + model.intercept(ratio)
        weights = shares(sizes, ratio)
        shrunk = np.ldexp(b + weights * (means - b), scale)
        values[:, view, output] = intercept[one] = np.ldexp(b, scale)
        values[:, view, output][here] = np.where(weights == 1, own, shrunk)
        lam[:, view, output][here] = weights
        within[one], between[one] = model.variances(ratio)
        exponent[one] = 2 * scale
    return GaussianFit(intercept, values, lam, Scaled(within, exponent), Scaled(between, exponent))


def scale_of(mean: Floats, squares: Scaled) -> int:
    """Give the exponent that brings all means, and the roots of all sums of squares, to at most 1."""
    _, of_mean = np.frexp(mean[mean != 0])
    some = squares.fraction != 0
    _, of_squares = np.frexp(squares.fraction[some])
    half = (of_squares + squares.exponent[some] + 1) >> 1
    return int(max(of_mean.max(initial=-5000), half.max(initial=-5000))) if len(of_mean) or len(half) else 0


def shares(n: Floats, ratio: float) -> Floats:
    """Give the weight of a category's own mean, n * g / (1 + n * g)."""
    return np.ones_like(n) if ratio == np.inf else n * ratio / (1.0 + n * ratio)


@dataclass(frozen=True)
class Sizes:
    """Categories grouped by their size, and the likelihood, which depends only on these groups.

    Parameters
    ----------
    n, number : float64 array (sizes,)
        The different sizes, rising, and the number of categories of each.
    mean, scatter : float64 array (sizes,)
        For the categories of each size: the mean of their means, less `center`, and the sum of squared deviations from
        it.
    center : float
        A number within the range of the means.
    inside : float
        Sum of squares within all categories.
    """

    n: Floats
    number: Floats
    mean: Floats
    scatter: Floats
    center: float
    inside: float

    @classmethod
    def of(cls, n: Floats, mean: Floats, squares: Floats) -> "Sizes":
        """Group categories by size.  Sums run over sorted numbers, so the order of the categories does not matter."""
        order = np.argsort(mean)
        center = float(mean[order[len(mean) // 2]])
        # NumPy sorts small whole numbers by their digits, without comparisons.
        small = bool((n == np.floor(n)).all()) and n.max() <= np.iinfo(np.uint16).max
        order = order[np.argsort((n.astype(np.uint16) if small else n)[order], kind="stable")]
        n, mean = n[order], mean[order]
        new = np.concatenate([[True], n[1:] != n[:-1]])
        size = np.cumsum(new) - 1
        apart = mean - center
        # bincount adds from the first to the last.
        number = np.bincount(size).astype(np.float64)
        middle = np.bincount(size, apart) / number
        rest = apart - middle[size]
        scatter = np.bincount(size, rest * rest).astype(np.float64, copy=False)
        return cls(n[new], number, middle, scatter, center, total(np.sort(squares)))

    @cached_property
    def rows(self) -> float:
        """The number N of all rows."""
        return total(self.number * self.n)

    @cached_property
    def categories(self) -> float:
        """The number K of all categories."""
        return total(self.number)

    def weights(self, ratio: float) -> Floats:
        """Give the weight w of a category's mean; if g is infinite, give w * g."""
        return np.ones_like(self.n) if ratio == np.inf else self.n / (1.0 + ratio * self.n)

    def intercept(self, ratio: float) -> float:
        """Give b less `center`."""
        weights = self.number * self.weights(ratio)
        return total(weights * self.mean) / total(weights)

    def squares(self, ratio: float) -> Floats:
        """Give the sum of (mean - b)**2 over the categories of each size."""
        apart = self.mean - self.intercept(ratio)
        return self.scatter + self.number * (apart * apart)

    def slope(self, ratio: float) -> float:
        """Give the derivative of `height`: -(N - 1) * sum(w**2 * (mean - b)**2) / R + sum(w) - sum(w**2) / sum(w)."""
        weights, squares = self.weights(ratio), self.squares(ratio)
        pulled = weights * squares
        spread = self.inside + total(pulled)
        whole = total(self.number * weights)
        twice = total(self.number * weights * weights)
        return (whole - twice / whole) - (self.rows - 1.0) * (total(weights * pulled) / spread)

    def height(self, ratio: float) -> float:
        """Give minus twice the restricted log-likelihood, up to a constant."""
        weights = self.weights(ratio)
        spread = self.inside + total(weights * self.squares(ratio))
        both = log(np.array([spread, total(self.number * weights)]))
        return (self.rows - 1.0) * float(both[0]) + total(self.number * log(1.0 + ratio * self.n)) + float(both[1])

    def best_ratio(self) -> float:
        """Find the g = tau2 / sigma2 with the largest restricted likelihood; inf without noise."""
        apart = total(self.squares(0.0))
        if self.categories < 2 or self.rows <= self.categories or apart == 0:
            return 0.0
        if self.inside <= NO_NOISE * self.rows * apart:
            return np.inf
        # Beyond the ceiling, all weights are equal to their limits, and the likelihood falls.
        ceiling = max(1.0 / float(self.n[0]), self.rows * (apart / self.inside)) / FAINT
        return lowest(self.slope, self.height, FAINT / float(self.n[-1]), ceiling)

    def variances(self, ratio: float) -> tuple[float, float]:
        """Give sigma2 and tau2."""
        if ratio == np.inf:
            return 0.0, total(self.squares(ratio)) / (self.categories - 1.0)
        spread = self.inside + total(self.weights(ratio) * self.squares(ratio))
        within = spread / (self.rows - 1.0) if self.rows > 1 else 0.0
        return within, within * ratio
