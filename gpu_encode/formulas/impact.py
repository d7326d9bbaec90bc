"""How far a category lies from all rows, how far its rows lie apart, and how often it occurs."""

from typing import Any

import numpy as np

from cpu_fallback.exact import Floats
from gpu_encode.errors.parameters import bad_option, check_option
from gpu_encode.formulas.deviations import plain, square_root
from gpu_encode.formulas.scales import on_scale
from gpu_encode.formulas.smoothing import Smoothing
from gpu_encode.formulas.statistic import Context, Needs, Statistic
from gpu_encode.formulas.summaries import together
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
        """What is asked of the sums and of the target: a quantity has no log-odds."""
        kinds = ("binary", "multiclass") if "logit" in self.parts else ("binary", "continuous", "multiclass")
        return Needs(squares=True, categories=self.smoothing.needs.categories, rows=True, target_kinds=kinds)

    def check(self) -> None:
        """Raise ValueError for parts that there are not, and for a smoothing that looks at all categories at once."""
        if not isinstance(self.parts, (list, tuple)) or not self.parts:
            raise bad_option(OWNER, "parts", self.parts, (f"a list of parts such as {list(PARTS)}",))
        for each in self.parts:
            check_option(OWNER, "parts", each, PARTS)
        if len(set(self.parts)) < len(self.parts):
            raise bad_option(OWNER, "parts", self.parts, ("a list of different parts",))
        if self.smoothing.needs.table:
            raise bad_option(OWNER, "smooth", self.smoothing, ("a smoothing with a formula for each category",))
        self.smoothing.check()

    def suffixes(self) -> list[str]:
        """Names of the parts."""
        return [f"_{each}" for each in self.parts]

    def root(self, total: Moments) -> Floats:
        """No impact, the deviation of all that is visible, and no rows."""
        seen = np.broadcast_to(total.n > 0, total.mean.shape)
        nothing = np.where(seen, 0.0, np.nan)
        found = {"impact": nothing, "logit": nothing, "deviation": deviation_of(total), "prevalence": nothing}
        return together([found[each] for each in self.parts])

    def codes(self, seen: Moments, context: Context, mu: Floats) -> Floats:  # noqa: ARG002
        """Give the parts of what is seen."""
        total = context.total
        mean = self.smoothing.codes(seen, context, total.mean)
        return together([self._part(each, mean, seen, total) for each in self.parts])

    def _part(self, part: str, mean: Floats, seen: Moments, total: Moments) -> Floats:
        if part == "impact":
            return mean - total.mean
        if part == "logit":
            return on_scale(mean, "logit") - on_scale(total.mean, "logit")
        if part == "deviation":
            return np.where(seen.less_one > 0, deviation_of(seen), deviation_of(total))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.broadcast_to(seen.n / total.n, mean.shape)


def deviation_of(seen: Moments) -> Floats:
    """Sample standard deviation, NaN of a single row."""
    return plain(square_root(seen.sample_variance), seen.less_one > 0)
