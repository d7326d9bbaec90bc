"""How count, mean and prior become an encoding: every smoothing of the library, each written once.

An encoding is ``lam * mean + (1 - lam) * prior``, where the prior is that of all rows (or the parent's encoding in a
hierarchy), `mean` the category's mean, and lam, in [0, 1], the weight of that mean: ``own / (own + other)``, with the
two weights that the classes here compute.

Where mean and prior have one sign, an encoding lies within k ulp of the real number that the formula gives; where they
have not and cancel, within k ulp of the larger of its two terms.  Each class says its k.  A weight of less than
2**-1022 of the other's may count for less, or for nothing.
"""

from dataclasses import dataclass
from numbers import Real
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from cpu_fallback.elementary import exp
from cpu_fallback.exact import Floats, Limbs, Ratio, Scaled
from cpu_fallback.fused_rules import EMPIRICAL_BAYES, M_ESTIMATE, PLAIN, SIGMOID, Shrinkage
from gpu_encode.formulas.statistic import Context, Statistic
from gpu_encode.formulas.variance_components import VarianceComponents
from gpu_encode.sums.moments import Moments, Needs
from gpu_encode.words.errors.parameters import KnownKeywords, bad_option, check_number, check_option

# What empirical Bayes asks for: the variance of all targets, or of the means of categories as well.
OF_TARGETS, OF_MEANS = Needs(squares=True), Needs(squares=True, categories=True)


class Smoothing(KnownKeywords, Statistic):
    """A statistic that draws the mean of a category towards the prior, by a weight lam of its own."""

    takes_prior = True

    def encode(self, visible: Moments, context: Context, prior: Floats) -> Floats:
        """Give the mean where the prior weighs nothing, else what lies between mean and prior."""
        with np.errstate(invalid="ignore", divide="ignore", over="ignore", under="ignore"):
            own, other = self.weights(visible, context)
            # From the end that weighs more: a large number at the other end is then not subtracted again.
            part = np.where(own >= other, other, own) / (own + other)
            start = np.where(own >= other, visible.mean, prior)
            end = np.where(own >= other, prior, visible.mean)
            distance = end - start
            blended = start + part * distance
            if (far := np.isinf(distance)).any():
                # Farther apart than the largest float, and what lies between them is none the less one.
                blended = np.where(far, start + 2.0 * part * (0.5 * end - 0.5 * start), blended)
            return np.where(other == 0.0, visible.mean, blended)

    def weights(self, visible: Moments, context: Context) -> tuple[Floats, Floats]:
        """Give the weights of the category's own mean and of the prior; where nothing is visible, any."""
        raise NotImplementedError


class NoSmoothing(Smoothing):
    """The plain category mean: lam = 1, and the exact quotient of the exact sums, rounded once."""

    def weights(self, visible: Moments, context: Context) -> tuple[Floats, Floats]:
        """Give all weight to the mean."""
        return np.ones_like(visible.n), np.zeros_like(visible.n)


@dataclass(eq=False, repr=False)
class MEstimate(Smoothing):
    """m-estimate: (s + m * mu) / (n + m), so that lam = n / (n + m), rounded once.

    A prior mu that is the mean of all rows is exact; in a hierarchy it is the parent's encoding, as it is rounded.

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
            # Without a prior's weight it is the mean, also where no prior is visible.
            return super().encode(visible, context, prior)
        assert visible.sums is not None
        assert context.ops is not None
        estimates = visible.sums.m_estimates(context.ops, float(self.m), exact_prior(context, prior))
        # Where a prior is no number, nothing is visible.
        return np.where(np.isfinite(prior), estimates, prior)

    def weights(self, visible: Moments, context: Context) -> tuple[Floats, Floats]:
        """N and m."""
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
        """1 and exp(-(n - k) / f)."""
        return np.ones_like(visible.n), exp(-((visible.n - float(self.k)) / float(self.f)))


@dataclass(eq=False, repr=False)
class EmpiricalBayes(Smoothing):
    """Empirical Bayes: lam = n * tau2 / (sigma2 + n * tau2), sigma2 the category's own variance.

    Parameters
    ----------
    tau : {"total", "between", "anova"}, default="total"
        tau2 is the variance of all visible targets (as scikit-learn's ``smooth="auto"``) or of the category means, both
        population variances; or what a one-way analysis of variance finds between categories beyond chance: max(0,
        (SSB - (C - 1) * sW2) / (N - sum of n**2 / N)) of the C categories that count and their N rows.
    pooled : bool, default=False
        Whether sigma2 is sW2 = SSW / (N - C), the variance within all categories that count, in place of each one's
        own: single rows are then shrunk as others are.

    Notes
    -----
    A category without variance of its own, a single row among them, is not shrunk (lam = 1), as in scikit-learn;
    ``pooled=True`` and `PartialPooling` shrink those too.  Where the means of categories differ by no more than chance,
    as where all are equal, "anova" has tau2 = 0: every category with sigma2 > 0 gets the prior.  Where no category has
    two rows nothing tells chance from difference: sW2 is then 0, and nothing is shrunk.

    Encodings lie within k = 20 ulp; the variance between categories is that of their means as they are rounded.  With
    "anova", where SSB is little more than chance, what rounding takes from it (some 1e-15 of it) weighs more in tau2.

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
        """What is asked of the sums and of the target."""
        return OF_TARGETS if self.tau == "total" and not self.pooled else OF_MEANS

    @property
    def _has_components(self) -> bool:
        """Whether variances within and between all categories play a part."""
        return bool(self.pooled) or self.tau == "anova"

    def check(self) -> None:
        """Raise ValueError for an unknown tau, or a `pooled` that is not one of two."""
        check_option("EmpiricalBayes", "tau", self.tau, ("total", "between", "anova"))
        check_option("EmpiricalBayes", "pooled", self.pooled, (True, False))

    def of_each_category(self, visible: Moments) -> Floats:
        """Give the mean, and all that an analysis of variance sums."""
        return VarianceComponents.of_each_category(visible) if self._has_components else visible.mean

    def category_weights(self, visible: Moments) -> Floats | None:
        """Give the weights that an analysis of variance has; None without one."""
        return VarianceComponents.weights(visible) if self._has_components else None

    def weights(self, visible: Moments, context: Context) -> tuple[Floats, Floats]:
        """1 and sigma2 / (n * tau2)."""
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
    """James-Stein: one weight for all categories, from how far their means lie apart.

    ``model="pooled"``: lam = 1 - (K - 3) * (V / nbar) / D, clipped to [0, 1], with K categories, V the sample variance
    of all visible targets, nbar the mean rows of these categories, D the sum of (mean - mu)**2.
    ``model="independent"``: lam = 1 - v / (V + v) * (K - 3) / (K - 1), clipped, v the category's sample variance; as in
    category_encoders it does not tend to 1 for many rows.  With three categories or fewer there is no shrinkage.
    Encodings lie within 20 ulp of the larger of mean and prior; D is computed from means as they are rounded.  Weights
    are numbers of rows, as `PartialPooling` says.

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
        """Give the mean, and for the pooled model the weight, whose mean over the categories it takes."""
        return visible.mean if self.model != "pooled" else np.concatenate([visible.mean, visible.n], axis=-1)

    def weights(self, visible: Moments, context: Context) -> tuple[Floats, Floats]:
        """Lam and 1 - lam."""
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
    """Partial pooling: lam = 1 / (1 + within / (n * between)); no tuning parameter, single rows are shrunk too.

    within = (n * v + V) / (n + 1) with v the sample variance of the category's rows and V the population variance of
    all rows; between is the sample variance of the category means, as they are rounded; lam = 0 where the means do not
    differ.  Encodings lie within k = 32 ulp.

    Notes
    -----
    Weights are numbers of rows: whole ones equal repeated rows.  A sample variance has N - 1 in its denominator, of
    fractions that sum to less than two rows N / 2, what it is of two.  Where all of them sum to one or less, `fit`
    raises; `partial_fit` does not, since more rows may come.

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
        """1 and within / (n * between); 0 and 1 where between is zero."""
        assert context.categories is not None
        within = visible.sample_variance.times(visible.n).plus(context.total.variance).over(visible.n + 1.0)
        between = context.categories.between(1.0)
        own, other = one_and_ratio(within, between.times(visible.n))
        differ = between.fraction > 0
        return np.where(differ, own, 0.0), np.where(differ, other, 1.0)


def one_and_ratio(noise: Scaled, signal: Scaled) -> tuple[Floats, Floats]:
    """1 and noise / signal; 0 without noise, inf with noise and no signal."""
    ratio = np.where(noise.fraction == 0, 0.0, noise.ratio(signal))
    return np.ones_like(ratio), ratio


def exact_prior(context: Context, prior: Floats) -> Ratio:
    """Give the prior as the exact mean of all that is visible, if it is that, else as the number that it is."""
    if context.of_mean:
        assert context.total.sums is not None
        return context.total.sums.ratio
    # A prior that all categories share is one line.
    line = prior[0] if prior.ndim > 2 and len(prior) and prior.strides[0] == 0 else prior
    number = Limbs.of_floats(np.where(np.isfinite(line), line, 0.0))
    return Ratio(number, Limbs.of_integers(np.ones_like(line[..., :1], np.int64)))


# What a user gives as `smooth`.
Smooth = Smoothing | float | Literal["auto"] | None


def resolve(smooth: Any, name: str = "smooth", owner: str = "TargetEncoder") -> Smoothing:
    """Turn what the user gave as `smooth` into a smoothing, whose own parameters are not checked yet."""
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
    """Describe a smoothing to backends that compute encodings in one pass.

    None for one that asks for more than a category's own sums and the variance of all that is visible.
    """
    # By its exact type: a class that a user derives from one of these may weigh the mean in another way.
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
