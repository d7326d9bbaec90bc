"""The likelihood of the rows of a fold, given encodings from other folds, computed from the sums of the fold.

All rows of a category in a fold have the same encoding.  So their likelihood depends only on their sums: the weight of
each class, or weight, mean and squared deviations.  What each category and fold adds is rounded separately, and these
numbers are summed as integers.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from cpu_fallback.elementary import add_in_order, log
from cpu_fallback.exact import Floats, Scaled
from gpu_encode.formulas.encoding_rule import EncodingRule, SeenSums
from gpu_encode.seam.ops import Ops
from gpu_encode.study.tuning.areas_of_sums import Areas
from gpu_encode.study.tuning.distinct_counts import DistinctCounts
from gpu_encode.study.tuning.predictions import predictions_of
from gpu_encode.study.tuning.sums import Mask, sums_by_fold
from gpu_encode.study.tuning.views import Views
from gpu_encode.study.tuning.working_response import LOG_OF_TWO, LOG_OF_TWO_PI
from gpu_encode.sums.moments import totals_of

# The mean of a single row is 0 or 1: without this limit, one wrong row would outweigh all other rows.
LEAST = 1e-15
# Powers of two beyond these are not float64 numbers.
FARTHEST = 1000


@dataclass(frozen=True)
class Likelihood:
    """Log-likelihood of the rows of one column and target, each fold held out in turn.

    Parameters
    ----------
    mean : float
        Log-likelihood per unit of weight.
    by_fold : tuple of float
        The same for each fold; NaN for a fold in which no row has an encoding.
    squared_error : float or None
        Mean squared error of a continuous target.
    roc_auc : float or None
        Area under the ROC curve, if it was asked for.
    """

    mean: float
    by_fold: tuple[float, ...]
    squared_error: float | None = None
    roc_auc: float | None = None


@dataclass(frozen=True)
class OfClasses:
    """Rows of a binary or multiclass target.

    Parameters
    ----------
    views : Views
    alike : DistinctCounts or None
        Groups of categories with the same counts.
    weight : float64 array (rows, folds, classes)
    scored : bool array (rows, folds)
        Whether there is a weight and an encoding.
    weights : list of Fraction (folds,)
    areas : Areas or None
    """

    views: Views
    alike: DistinctCounts | None
    weight: Floats
    scored: Mask
    weights: list[Fraction]
    areas: Areas | None

    @classmethod
    def of(cls, views: Views, rule: EncodingRule, with_areas: bool) -> "OfClasses":
        """Take weights from sums; any rule shows which categories have encodings."""
        ops, alike = views.task.ops, DistinctCounts.of(views)
        held_out = views.held_out if alike is None else alike.held_out
        weight = at_most_one(totals_of(held_out.accumulators, replace(held_out.spec, first_output=0)).to_floats())
        encodings = views.encode(rule) if alike is None else alike.encode(views, rule)
        scored = ~np.isnan(encodings[..., 0]) & (weight > 0).any(axis=-1)
        weights = [Fraction(0)] * weight.shape[1]
        for number in range(weight.shape[2]):
            of_class = weight[..., number]
            sums = sums_by_fold(ops, lambda start, stop, of_class=of_class: of_class[start:stop], scored)  # type: ignore[misc]
            weights = [one + other for one, other in zip(weights, sums, strict=True)]
        return cls(views, alike, weight, scored, weights, Areas.of(ops, weight, scored) if with_areas else None)

    def likelihoods(self, rule: EncodingRule) -> list[Likelihood]:
        """Give the likelihood of each prediction of a rule."""
        encodings = self.views.encode(rule) if self.alike is None else self.alike.encode(self.views, rule)
        predictions = predictions_of(rule.statistic, encodings, self.views.total, self.weight.shape[2])
        return [self._likelihood(prediction) for prediction in predictions]

    def _likelihood(self, encodings: Floats) -> Likelihood:
        """Sum weight * log(probability) over the classes."""
        if lacks_encodings(encodings, self.scored):
            return unlikely(self.weights, self.areas is not None)

        def addends(start: int, stop: int) -> Floats:
            chances = chances_of(encodings[start:stop])
            return add_in_order([self.weight[start:stop, :, i] * log(chance) for i, chance in enumerate(chances)])

        sums = sums_by_fold(self.views.task.ops, addends, self.scored, self.weight.shape[2])
        folds = zip(sums, self.weights, strict=True)
        by_fold = (float(of_fold / weight) if weight else math.nan for of_fold, weight in folds)
        area = None if self.areas is None else self.areas.mean(encodings)
        return Likelihood(float(share(sums, self.weights)), tuple(by_fold), roc_auc=area)


@dataclass(frozen=True)
class OfNumbers:
    """Rows of a continuous target, normally distributed around the encodings; the variance is the mean squared error.

    Parameters
    ----------
    views : Views
    weight, mean : float64 array (categories + 2, folds)
    exponent : int
        The unit of the means is 2**exponent, so that squares of numbers up to 1e200 do not overflow.
    scored : bool array (categories + 2, folds)
        Whether there is a weight and an encoding.
    weights : list of Fraction (folds,)
    spread : list of Fraction (folds,)
        Squared deviations from the means of categories, which no encoding can explain.
    """

    views: Views
    weight: Floats
    mean: Floats
    exponent: int
    scored: Mask
    weights: list[Fraction]
    spread: list[Fraction]

    @classmethod
    def of(cls, views: Views, rule: EncodingRule, with_areas: bool = False) -> "OfNumbers":  # noqa: ARG003 - no classes
        """Take means and deviations from sums; any rule shows which categories have encodings."""
        ops, wide, held_out = views.task.ops, views.task.rule, views.held_out
        moments = SeenSums(held_out, None, wide, ops).moments()
        everything = np.ones((1, held_out.n_views), np.int64)
        of_all = SeenSums(held_out.totals(ops), everything, wide, ops).moments()
        exponent = exponent_of(of_all.at(0).variance, ops)
        weight = at_most_one(moments.n[..., 0])
        scored = ~np.isnan(views.encode(rule)[..., 0]) & (weight > 0)
        variance = moments.variance
        unit = Scaled(np.ones_like(variance.fraction), np.full_like(variance.exponent, 2 * exponent))
        spread = weight * variance.ratio(unit)[..., 0]
        return cls(
            views,
            weight,
            moments.mean[..., 0] * 2.0**-exponent,
            exponent,
            scored,
            sums_by_fold(ops, lambda start, stop: weight[start:stop], scored),
            sums_by_fold(ops, lambda start, stop: spread[start:stop], scored),
        )

    def likelihoods(self, rule: EncodingRule) -> list[Likelihood]:
        """Give the likelihood of each prediction of a rule."""
        predictions = predictions_of(rule.statistic, self.views.encode(rule), self.views.total, 1)
        return [self._likelihood(prediction) for prediction in predictions]

    def _likelihood(self, encodings: Floats) -> Likelihood:
        """-log(2 pi e s2) / 2, where s2 is the mean squared error; folds are scored with the s2 of all folds."""
        if lacks_encodings(encodings, self.scored):
            return unlikely(self.weights)

        def addends(start: int, stop: int) -> Floats:
            off = self.mean[start:stop] - encodings[start:stop, :, 0] * 2.0**-self.exponent
            return self.weight[start:stop] * (off * off)

        off_mean = sums_by_fold(self.views.task.ops, addends, self.scored)
        sums = [between + within for between, within in zip(off_mean, self.spread, strict=True)]
        error = share(sums, self.weights)
        if not error:
            return Likelihood(math.inf, tuple(math.inf if weight else math.nan for weight in self.weights), 0.0)
        constant = LOG_OF_TWO_PI + logarithm(error) + 2.0 * self.exponent * LOG_OF_TWO
        by_fold = (
            -0.5 * (constant + float(of_fold / weight / error)) if weight else math.nan
            for of_fold, weight in zip(sums, self.weights, strict=True)
        )
        return Likelihood(-0.5 * (constant + 1.0), tuple(by_fold), as_float(error * Fraction(4) ** self.exponent))


def chances_of(encodings: Floats) -> list[Floats]:
    """Give the probability of each class, away from 0 and 1; with several classes they are made to add up to 1."""
    chances = [np.clip(encodings[..., number], LEAST, 1.0 - LEAST) for number in range(encodings.shape[-1])]
    if len(chances) == 1:
        return [1.0 - chances[0], chances[0]]
    total = add_in_order(chances)
    return [chance / total for chance in chances]


def share(sums: list[Fraction], weights: list[Fraction]) -> Fraction:
    """Give the sum over all folds per unit of weight."""
    return sum(sums, Fraction(0)) / sum(weights, Fraction(0))


def at_most_one(weight: Floats) -> Floats:
    """Divide weights by a power of two, which changes no mean, so that weights up to 1e300 do not overflow."""
    exponent = int(np.frexp(float(weight.max()))[1])
    half = exponent // 2
    return weight * 2.0**-half * 2.0 ** (half - exponent)


def exponent_of(variance: Scaled, ops: Ops) -> int:
    """Give the binary exponent of a standard deviation, within the range of float64; 0 for a constant."""
    fraction, power = np.frexp(float(ops.to_host(variance.fraction)[0, 0]))
    exponent = (int(power) + int(ops.to_host(variance.exponent)[0, 0])) // 2
    return max(min(exponent, FARTHEST), -FARTHEST) if fraction else 0


def lacks_encodings(encodings: Floats, scored: Mask) -> bool:
    """Whether some rows to be scored have an encoding that is not finite."""
    return bool((scored[..., None] & ~np.isfinite(encodings)).any())


def unlikely(weights: list[Fraction], with_area: bool = False) -> Likelihood:
    """Give the likelihood for rows without an encoding, if other smoothings give them one."""
    by_fold = tuple(-math.inf if weight else math.nan for weight in weights)
    return Likelihood(-math.inf, by_fold, math.inf, -math.inf if with_area else None)


def logarithm(number: Fraction) -> float:
    """Give the natural logarithm of a positive number of any size, with our own series."""
    exponent = number.numerator.bit_length() - number.denominator.bit_length()
    return float(log(np.array([float(number / Fraction(2) ** exponent)]))[0] + exponent * LOG_OF_TWO)


def as_float(number: Fraction) -> float:
    """Give the nearest float64; infinity if the number is too large."""
    try:
        return float(number)
    except OverflowError:
        return math.inf
