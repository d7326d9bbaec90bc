"""From count, mean and prior to an encoding: all smoothings of the library.

An encoding is ``lam * mean + (1 - lam) * prior``.  `mean` is the category's mean, and `prior` is that of all rows (or
the parent's encoding in a hierarchy).  lam, in [0, 1], is the weight of the mean: ``own / (own + other)``, from the two
weights that the classes here compute.

If mean and prior have the same sign, an encoding lies within k ulp of the real number that the formula gives.  If their
signs differ, so that they cancel, it lies within k ulp of the larger of the two terms.  Each class names its k.  A
weight of less than 2**-1022 of the other weight may count for less, or for nothing.
"""

from dataclasses import dataclass
from numbers import Real
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from typing_extensions import TypeAliasType

from cpu_fallback.elementary import exp
from cpu_fallback.exact import Floats, Limbs, Ratio, Scaled
from cpu_fallback.fused_rules import EMPIRICAL_BAYES, M_ESTIMATE, PLAIN, SIGMOID, Shrinkage
from gpu_encode.formulas.statistic import Context, Statistic
from gpu_encode.formulas.variance_components import VarianceComponents
from gpu_encode.sums.moments import Moments, Needs
from gpu_encode.words.errors.parameters import KnownKeywords, bad_option, check_number, check_option

# Empirical Bayes needs the variance of all targets; some of its forms also need the variance of the category means.
OF_TARGETS, OF_MEANS = Needs(squares=True), Needs(squares=True, categories=True)


class Smoothing(KnownKeywords, Statistic):
    """A statistic that moves the mean of a category towards the prior; each class has its own weight lam."""

    takes_prior = True

    def encode(self, visible: Moments, context: Context, prior: Floats) -> Floats:
        """Give a number between mean and prior, by their weights; the mean itself if the prior has no weight."""
        with np.errstate(invalid="ignore", divide="ignore", over="ignore", under="ignore"):
            own, other = self.weights(visible, context)
            # Start from the end with more weight: a large number at the other end is then not added and subtracted.
            part = np.where(own >= other, other, own) / (own + other)
            start = np.where(own >= other, visible.mean, prior)
            end = np.where(own >= other, prior, visible.mean)
            distance = end - start
            blended = start + part * distance
            if (far := np.isinf(distance)).any():
                # The distance may be more than the largest float, although every number between the ends is a float.
                blended = np.where(far, start + 2.0 * part * (0.5 * end - 0.5 * start), blended)
            return np.where(other == 0.0, visible.mean, blended)

    def weights(self, visible: Moments, context: Context) -> tuple[Floats, Floats]:
        """Give the weights of the category's own mean and of the prior; any weights if no row is visible."""
        raise NotImplementedError


class NoSmoothing(Smoothing):
    """The plain category mean: lam = 1.  It is the exact quotient of the exact sums, rounded once."""

    def weights(self, visible: Moments, context: Context) -> tuple[Floats, Floats]:
        """Give all weight to the mean."""
        return np.ones_like(visible.n), np.zeros_like(visible.n)


@dataclass(eq=False, repr=False)
class MEstimate(Smoothing):
    """m-estimate: (s + m * mu) / (n + m), rounded once, so that lam = n / (n + m).

    If the prior mu is the mean of all rows, it is exact; in a hierarchy it is the rounded encoding of the parent.

    Parameters
    ----------
    m : float, default=10.0
        Weight of the prior, in rows; at least 0.

    References
    ----------
    Micci-Barreca (2001), eq. 7; Cestnik (1990); Prokhorenkova et al. (2018), a * P in CatBoost.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import MEstimate, TargetEncoder
    >>> X, y = np.array([["a"], ["a"], ["b"]]), np.array([1.0, 2.0, 6.5])
    >>> TargetEncoder(smooth=MEstimate(m=1.0), target_type="continuous").fit(X, y).transform(X).ravel().tolist()
    [2.0555555555555554, 2.0555555555555554, 4.833333333333333]
    """

    needs = Needs(digits=True)

    m: float = 10.0

    def check(self) -> None:
        """Raise ValueError for a negative m."""
        check_number("MEstimate", "m", self.m, low=0.0)

    def encode(self, visible: Moments, context: Context, prior: Floats) -> Floats:
        """Give the exact quotient of exact numbers, rounded once."""
        if self.m == 0 or type(self).weights is not MEstimate.weights:
            # If the prior has no weight, the encoding is the mean, even if there is no prior.
            return super().encode(visible, context, prior)
        assert visible.sums is not None
        estimates = visible.sums.m_estimates(float(self.m), exact_prior(context, prior))
        # If the prior is not a number, no row is visible.
        return np.where(np.isfinite(prior), estimates, prior)

    def weights(self, visible: Moments, context: Context) -> tuple[Floats, Floats]:
        """Give n and m."""
        return visible.n, np.full_like(visible.n, float(self.m))


@dataclass(eq=False, repr=False)
class Sigmoid(Smoothing):
    """Sigmoid: lam = 1 / (1 + exp(-(n - k) / f)); the encoding lies within 8 + 3 * abs(n - k) / f ulp.

    Parameters
    ----------
    k : float, default=20.0
        Count at which category and prior weigh the same.
    f : float, default=10.0
        Width of the transition, in rows; above 0.

    References
    ----------
    Micci-Barreca (2001), eq. 4; category_encoders' TargetEncoder(min_samples_leaf=k, smoothing=f).

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import Sigmoid, TargetEncoder
    >>> X, y = np.array([["a"], ["a"], ["b"]]), np.array([1.0, 2.0, 6.0])
    >>> TargetEncoder(smooth=Sigmoid(k=2.0, f=1.0), target_type="continuous").fit(X, y).transform(X)[0].tolist()
    [2.25]
    """

    k: float = 20.0
    f: float = 10.0

    def check(self) -> None:
        """Raise ValueError for a negative k or an f that is not above zero."""
        check_number("Sigmoid", "k", self.k, low=0.0)
        check_number("Sigmoid", "f", self.f, low=0.0, open_low=True)

    def weights(self, visible: Moments, context: Context) -> tuple[Floats, Floats]:
        """Give 1 and exp(-(n - k) / f)."""
        return np.ones_like(visible.n), exp(-((visible.n - float(self.k)) / float(self.f)))


@dataclass(eq=False, repr=False)
class EmpiricalBayes(Smoothing):
    """Empirical Bayes: lam = n * tau2 / (sigma2 + n * tau2), where sigma2 is the category's own variance.

    Parameters
    ----------
    tau : {"total", "between", "anova"}, default="total"
        "total": tau2 is the population variance of all visible targets, as in scikit-learn's ``smooth="auto"``.
        "between": tau2 is the population variance of the category means.  "anova": tau2 is the variance between
        categories by a one-way analysis of variance, max(0, (SSB - (C - 1) * sW2) / (N - sum of n**2 / N)), for the C
        categories that count and their N rows.
    pooled : bool, default=False
        True: sigma2 is the same for all categories, sW2 = SSW / (N - C), the variance within all categories that count.
        Categories of a single row are then shrunk as others are.

    Notes
    -----
    A category without variance of its own, such as a single row, is not shrunk (lam = 1), as in scikit-learn;
    ``pooled=True`` and `PartialPooling` shrink such categories, too.  If the means of categories differ no more than by
    chance, "anova" has tau2 = 0, and every category with sigma2 > 0 gets the prior.  If no category has two rows,
    chance and real differences cannot be told apart: sW2 is then 0, and no category is shrunk.

    Encodings lie within k = 20 ulp; the variance between categories is computed from their rounded means.  With
    "anova", if SSB is little more than chance, the rounding error of SSB (some 1e-15 of it) weighs more in tau2.

    References
    ----------
    Micci-Barreca (2001), eq. 5 and 6; Searle, Casella and McCulloch, Variance Components (1992), section 3.6 (analysis
    of variance of unbalanced data).

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import EmpiricalBayes, TargetEncoder
    >>> X, y = np.array([["a"], ["a"], ["b"]]), np.array([1.0, 2.0, 6.0])
    >>> TargetEncoder(smooth=EmpiricalBayes(), target_type="continuous").fit(X, y).transform(X)[0].round(4).tolist()
    [1.5391]
    >>> by_anova = TargetEncoder(smooth=EmpiricalBayes("anova", pooled=True), target_type="continuous").fit(X, y)
    >>> by_anova.transform([["a"], ["b"]]).round(4).tolist()
    [[1.5375], [5.8537]]
    """

    parameters_before = MappingProxyType({"pooled": False})

    tau: Literal["total", "between", "anova"] = "total"
    pooled: bool = False

    @property
    def needs(self) -> Needs:
        """The sums and targets that the smoothing needs."""
        return OF_TARGETS if self.tau == "total" and not self.pooled else OF_MEANS

    @property
    def _has_components(self) -> bool:
        """Whether the variances within and between all categories are needed."""
        return bool(self.pooled) or self.tau == "anova"

    def check(self) -> None:
        """Raise ValueError for an unknown tau, or if `pooled` is neither True nor False."""
        check_option("EmpiricalBayes", "tau", self.tau, ("total", "between", "anova"))
        check_option("EmpiricalBayes", "pooled", self.pooled, (True, False))

    def of_each_category(self, visible: Moments) -> Floats:
        """Give the mean; for an analysis of variance, the numbers that it sums."""
        return VarianceComponents.of_each_category(visible) if self._has_components else visible.mean

    def category_weights(self, visible: Moments) -> Floats | None:
        """Give the weights for an analysis of variance; None without one."""
        return VarianceComponents.weights(visible) if self._has_components else None

    def weights(self, visible: Moments, context: Context) -> tuple[Floats, Floats]:
        """Give 1 and sigma2 / (n * tau2)."""
        sigma2, tau2, categories = visible.variance, context.total.variance, context.categories
        if categories is not None:
            n_outputs = visible.mean.shape[-1]
            if self.tau == "between":
                tau2 = categories.of_numbers(slice(n_outputs)).between(0.0)
            if self._has_components:
                components = VarianceComponents.of(categories, n_outputs)
                tau2 = components.between if self.tau == "anova" else tau2
                sigma2 = components.within if self.pooled else sigma2
        return one_and_ratio(sigma2, tau2.times(visible.n))


@dataclass(eq=False, repr=False)
class JamesStein(Smoothing):
    """James-Stein: shrinkage by how far the means of the categories are apart.

    Let K be the number of categories, V the sample variance of all visible targets, nbar the mean number of rows of a
    category, D the sum of (mean - mu)**2 over the categories, and v a category's sample variance.
    ``model="pooled"``: lam = 1 - (K - 3) * (V / nbar) / D, the same for all categories.
    ``model="independent"``: lam = 1 - v / (V + v) * (K - 3) / (K - 1); as in category_encoders, it does not tend to 1
    for many rows.  Both are clipped to [0, 1].  With three categories or fewer there is no shrinkage.

    Encodings lie within 20 ulp of the larger of mean and prior; D is computed from rounded means.  A weight counts as a
    number of rows, as `PartialPooling` says.

    Parameters
    ----------
    model : {"pooled", "independent"}, default="pooled"

    References
    ----------
    Efron and Morris (1975); Zhou (2015); category_encoders' JamesSteinEncoder(model=...).

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import JamesStein, TargetEncoder
    >>> X, y = np.array([list("aabbccddee")]).T, np.array([1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0, 5.0, 9.0, 9.0])
    >>> encoder = TargetEncoder(smooth=JamesStein(), target_type="continuous").fit(X, y)
    >>> encoder.transform(X)[[0, -1], 0].round(3).tolist()
    [2.118, 7.902]
    """

    needs = Needs(squares=True, sample_variances=True, categories=True)

    model: Literal["pooled", "independent"] = "pooled"

    def check(self) -> None:
        """Raise ValueError for an unknown model."""
        check_option("JamesStein", "model", self.model, ("pooled", "independent"))

    def of_each_category(self, visible: Moments) -> Floats:
        """Give the mean; for the pooled model also the weight, since it needs the mean weight of the categories."""
        return visible.mean if self.model != "pooled" else np.concatenate([visible.mean, visible.n], axis=-1)

    def weights(self, visible: Moments, context: Context) -> tuple[Floats, Floats]:
        """Give lam and 1 - lam."""
        assert context.categories is not None
        total, n_outputs = context.total, visible.mean.shape[-1]
        means = context.categories.of_numbers(slice(n_outputs))
        k = means.k
        if self.model == "pooled":
            scatter, rows = means.about(total.mean), context.categories.of_numbers(slice(n_outputs, None)).mean
            with np.errstate(divide="ignore", invalid="ignore"):
                pulled = total.sample_variance.over(rows).times(k - 3.0).ratio(scatter)
            alike = (total.sample_variance.fraction > 0).astype(np.float64)
            pulled = np.where(scatter.fraction == 0, alike, pulled)
        else:
            noise = visible.sample_variance
            share = noise.ratio(total.sample_variance.plus(noise))
            with np.errstate(divide="ignore", invalid="ignore"):
                pulled = np.where(noise.fraction == 0, 0.0, share) * ((k - 3.0) / (k - 1.0))
        pulled = np.where(k <= 3.0, 0.0, pulled)
        pulled = np.broadcast_to(np.clip(pulled, 0.0, 1.0), visible.mean.shape)
        return 1.0 - pulled, pulled


class PartialPooling(Smoothing):
    """Partial pooling: lam = 1 / (1 + within / (n * between)); nothing is tuned, and single rows are shrunk too.

    within = (n * v + V) / (n + 1), where v is the sample variance of the category's rows, and V the population variance
    of all rows.  between is the sample variance of the rounded category means; if the means do not differ, lam = 0.
    Encodings lie within k = 32 ulp.

    Notes
    -----
    A weight counts as a number of rows: whole weights equal repeated rows.  The denominator of a sample variance is
    N - 1, where N is the summed weight; if weights have fractions and N is below 2, it is N / 2, which is the same at
    N = 2.  If the weights of all rows sum to one or less, `fit` raises ValueError; `partial_fit` does not, since more
    rows may come.

    References
    ----------
    Mount and Zumel, vtreat (pyvtreat's pooled estimate, with the numbers of its test_partial_pooling.py).

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import PartialPooling, TargetEncoder
    >>> X, y = np.array([["a"], ["a"], ["b"]]), np.array([1.0, 2.0, 6.0])
    >>> TargetEncoder(smooth=PartialPooling(), target_type="continuous").fit(X, y).transform(X)[0].round(4).tolist()
    [1.628]
    """

    needs = Needs(squares=True, sample_variances=True, categories=True)

    def weights(self, visible: Moments, context: Context) -> tuple[Floats, Floats]:
        """Give 1 and within / (n * between); 0 and 1 if between is zero."""
        assert context.categories is not None
        within = visible.sample_variance.times(visible.n).plus(context.total.variance).over(visible.n + 1.0)
        between = context.categories.between(1.0)
        own, other = one_and_ratio(within, between.times(visible.n))
        differ = between.fraction > 0
        return np.where(differ, own, 0.0), np.where(differ, other, 1.0)


def one_and_ratio(noise: Scaled, signal: Scaled) -> tuple[Floats, Floats]:
    """Give 1 and noise / signal; the quotient is 0 without noise, and inf with noise and no signal."""
    ratio = np.where(noise.fraction == 0, 0.0, noise.ratio(signal))
    return np.ones_like(ratio), ratio


def exact_prior(context: Context, prior: Floats) -> Ratio:
    """Give the prior as an exact number: the exact mean of all visible rows if it is their mean."""
    if context.of_mean:
        assert context.total.sums is not None
        return context.total.sums.ratio
    # A prior that all categories share is one row, repeated.
    line = prior[0] if prior.ndim > 2 and len(prior) and prior.strides[0] == 0 else prior
    number = Limbs.of_floats(np.where(np.isfinite(line), line, 0.0))
    return Ratio(number, Limbs.of_integers(np.ones_like(line[..., :1], np.int64)))


# Values of the parameter `smooth`.
Smooth = TypeAliasType("Smooth", Smoothing | float | Literal["auto"] | None)


def resolve(smooth: Any, name: str = "smooth", owner: str = "TargetEncoder") -> Smoothing:
    """Turn a user's `smooth` into a smoothing, without checking the parameters of the smoothing."""
    if smooth is None:
        return NoSmoothing()
    if isinstance(smooth, str) and smooth == "auto":
        return EmpiricalBayes()
    if isinstance(smooth, Smoothing):
        return smooth
    if isinstance(smooth, Real) and not isinstance(smooth, bool):
        check_number(owner, name, smooth, low=0.0)
        return MEstimate(float(smooth))
    raise bad_option(
        owner,
        name,
        smooth,
        (
            '"auto"',
            "a number of at least 0",
            "None",
            "MEstimate(m)",
            "Sigmoid(k, f)",
            "EmpiricalBayes(tau, pooled)",
            "JamesStein()",
            "PartialPooling()",
            "GLMM(points)",
            *(["a dict of one per column"] if name == "smooth" else []),
        ),
    )


def describe_shrinkage(statistic: Statistic) -> Shrinkage | None:
    """Describe a smoothing for backends that compute encodings in one pass.

    None if it needs more than a category's own sums and the variance of all visible rows.
    """
    # The exact type decides: a class that a user derives from one of these may have other weights.
    if type(statistic) is NoSmoothing:
        return Shrinkage(PLAIN)
    if type(statistic) is MEstimate and statistic.m == 0:
        return Shrinkage(PLAIN)
    if type(statistic) is MEstimate:
        return Shrinkage(M_ESTIMATE, float(statistic.m))
    if type(statistic) is Sigmoid:
        return Shrinkage(SIGMOID, float(statistic.k), float(statistic.f))
    if type(statistic) is EmpiricalBayes and statistic.tau == "total" and not statistic.pooled:
        return Shrinkage(EMPIRICAL_BAYES)
    return None
