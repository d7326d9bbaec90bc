"""How far a category lies from all rows, how far its rows lie apart, and how often it occurs."""

from typing import Any

import numpy as np

from cpu_fallback.exact import Floats
from gpu_encode.errors.parameters import bad_option, check_option
from gpu_encode.formulas.scales import on_scale
from gpu_encode.formulas.smoothing import Smoothing
from gpu_encode.formulas.statistic import Context, Needs, Statistic, side_by_side
from gpu_encode.formulas.summaries import as_floats, square_root
from gpu_encode.sums.moments import Moments

PARTS = ("impact", "logit", "deviation", "prevalence")
OWNER = "ImpactEncoder"


class Impact(Statistic):
    """Parts of vtreat's treatment of a category, a column each.

    Parameters
    ----------
    smoothing : Smoothing
    parts : sequence of str, default=("impact", "deviation", "prevalence")
    """

    def __init__(self, smoothing: Smoothing, parts: Any = ("impact", "deviation", "prevalence")) -> None:
        self.smoothing = smoothing
        self.parts = parts

    @property
    def needs(self) -> Needs:
        """What it needs of the sums and of the target: a quantity has no log-odds."""
        kinds = ("binary", "multiclass") if "logit" in self.parts else ("binary", "continuous", "multiclass")
        of_means = self.smoothing.needs
        return Needs(
            squares=True,
            categories=of_means.categories,
            category_weights=of_means.category_weights,
            rows=True,
            target_kinds=kinds,
        )

    def check(self) -> None:
        """Raise ValueError for parts that there are not, and for a smoothing that looks at all categories at once."""
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

    def find_prior(self, total: Moments) -> Floats:
        """Give no impact, the deviation of all that is visible, and no rows; NaN where nothing is visible."""
        zero = np.where(np.broadcast_to(total.n > 0, total.mean.shape), 0.0, np.nan)
        return side_by_side([deviation_of(total) if part == "deviation" else zero for part in self.parts])

    def encode(self, visible: Moments, context: Context, prior: Floats) -> Floats:
        """Give the parts, by the smoothed mean of what is visible."""
        total = context.total
        mean = self.smoothing.encode(visible, context, total.mean)
        return side_by_side([self._encode_part(part, mean, visible, total) for part in self.parts])

    def _encode_part(self, part: str, mean: Floats, visible: Moments, total: Moments) -> Floats:
        if part == "impact":
            return mean - total.mean
        if part == "logit":
            return on_scale(mean, "logit") - on_scale(total.mean, "logit")
        if part == "deviation":
            # A single row has no deviation of its own.
            return np.where(visible.less_one > 0, deviation_of(visible), deviation_of(total))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.broadcast_to(visible.n / total.n, mean.shape)


def deviation_of(moments: Moments) -> Floats:
    """Give the sample standard deviation, NaN of a single row."""
    return as_floats(square_root(moments.sample_variance), moments.less_one > 0)
