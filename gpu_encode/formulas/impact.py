"""The distance of a category's mean from the mean of all rows, the spread of its rows, and its share of the rows."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.exact import Floats, Scaled
from gpu_encode.formulas.scales import on_scale
from gpu_encode.formulas.smoothing import Smoothing
from gpu_encode.formulas.statistic import Context, Statistic, side_by_side
from gpu_encode.formulas.summaries import as_floats, square_root
from gpu_encode.sums.moments import Moments, Needs
from gpu_encode.words.errors.parameters import bad_option, check_option

PARTS = ("impact", "logit", "deviation", "prevalence")
OWNER = "ImpactEncoder"
# vtreat adds this number to every variance.
LEAST_VARIANCE = 1e-3


@dataclass(eq=False, repr=False)
class Impact(Statistic):
    """Parts of vtreat's treatment of a category; each part gives a column.

    Parameters
    ----------
    parts : sequence of str, default=("impact", "deviation", "prevalence")
    """

    smoothing: Smoothing
    parts: Any = ("impact", "deviation", "prevalence")

    @property
    def needs(self) -> Needs:
        """The sums and the target that are needed; with "logit", the target must have classes."""
        kinds = ("binary", "multiclass") if "logit" in self.parts else ("binary", "continuous", "multiclass")
        deviation, smoothing = "deviation" in self.parts, self.smoothing.needs
        return Needs(
            squares=True,
            digits=smoothing.digits,
            sample_variances=smoothing.sample_variances or deviation,
            categories=smoothing.categories or deviation,
            rows=True,
            target_kinds=kinds,
        )

    def check(self) -> None:
        """Raise ValueError for parts that do not exist, and for a smoothing that looks at all categories at once."""
        if not isinstance(self.parts, (list, tuple)) or not self.parts:
            raise bad_option(OWNER, "parts", self.parts, (f"a list of parts such as {list(PARTS)}",))
        for part in self.parts:
            check_option(OWNER, "parts", part, PARTS)
        if len(set(self.parts)) < len(self.parts):
            raise bad_option(OWNER, "parts", self.parts, ("a list of different parts",))
        if self.smoothing.needs.table:
            raise bad_option(OWNER, "smooth", self.smoothing, ("a smoothing with a formula for each category",))
        self.smoothing.check()

    def suffixes(self) -> list[str]:
        """Name the parts."""
        return [f"_{part}" for part in self.parts]

    def of_each_category(self, visible: Moments) -> Floats:
        """Give the mean if the smoothing asks for it, then the deviation if it is a part."""
        numbers = [self.smoothing.of_each_category(visible)] if self.smoothing.needs.categories else []
        if "deviation" in self.parts:
            numbers.append(as_floats(square_root(visible.sample_variance), ~is_single(visible)))
        return np.concatenate(numbers, axis=-1)

    def category_weights(self, visible: Moments) -> Floats | None:
        """Give the weights that the smoothing asks for; deviations count once for each category."""
        weights = self.smoothing.category_weights(visible)
        if weights is None or "deviation" not in self.parts:
            return weights
        return np.concatenate([weights, np.ones_like(visible.mean)], axis=-1)

    def find_prior(self, total: Moments) -> Floats:
        """Give no impact, no deviation and no rows; NaN if nothing is visible."""
        zero = np.where(np.broadcast_to(total.n > 0, total.mean.shape), 0.0, np.nan)
        return side_by_side([zero] * len(self.parts))

    def encode(self, visible: Moments, context: Context, prior: Floats) -> Floats:
        """Give the parts, from the smoothed mean of the visible rows."""
        total, sums = context.total, context.categories
        deviations = total.mean.shape[-1] if "deviation" in self.parts else 0
        of_means = None if sums is None else sums.of_numbers(slice(sums.number.digits.shape[-2] - deviations))
        mean = self.smoothing.encode(visible, replace(context, categories=of_means, of_mean=True), total.mean)
        return side_by_side([self._encode_part(part, mean, visible, context) for part in self.parts])

    def _encode_part(self, part: str, mean: Floats, visible: Moments, context: Context) -> Floats:
        total = context.total
        if part == "impact":
            return mean - total.mean
        if part == "logit":
            return on_scale(mean, "logit") - on_scale(total.mean, "logit")
        if part == "deviation":
            return self._deviation(visible, context)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.broadcast_to(visible.n / total.n, mean.shape)

    def _deviation(self, visible: Moments, context: Context) -> Floats:
        """Give the deviation of a category's rows; for a single row, from the mean variance of the other categories."""
        assert context.categories is not None
        own, others = visible.sample_variance, context.categories.of_numbers(slice(-visible.mean.shape[-1], None))
        alone, average = is_single(visible), others.mean_square
        variance = Scaled(
            np.where(alone, average.fraction, own.fraction), np.where(alone, average.exponent, own.exponent)
        )
        root = square_root(variance.plus(Scaled.of(np.full_like(visible.n, LEAST_VARIANCE))))
        return np.where(alone & (others.k == 0), 0.0, as_floats(root))


def is_single(moments: Moments) -> NDArray[np.bool_]:
    """Tell which categories have at most the weight of one row, and no difference between rows."""
    return (moments.less_one <= 0) & (moments.deviation.fraction == 0)
