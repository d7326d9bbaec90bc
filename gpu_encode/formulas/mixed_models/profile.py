"""The likelihood as a function of the variance alone, with the best intercept for each."""

import numpy as np

from cpu_fallback.exact import Floats
from gpu_encode.formulas.mixed_models.likelihood import Counts, Likelihood
from gpu_encode.formulas.mixed_models.search import MOST_STEPS, total

# A step of so many logits ends a search; the next would be lost in rounding errors.
SMALL_STEP = 2.0**-36
# Below it, steps that no longer halve are rounding errors.
SMALL_ENOUGH = 2.0**-20
# Longest step of the intercept, in logits: what is known of the curve does not reach further.
LONGEST_STEP = 4.0


class Profile:
    """Minus the log-likelihood by variance; each search begins where the one before ended.

    Parameters
    ----------
    counts : Counts
    points : int
    start : float
        Intercept without effects.
    """

    def __init__(self, counts: Counts, points: int, start: float) -> None:
        self.blocks = counts.blocks()
        self.points = points
        self.intercept = start
        self.logits: list[Floats] = [np.full_like(block.n, start) for block in self.blocks]

    def best(self, variance: float) -> list[Likelihood]:
        """Likelihood of each block at the intercept at which the slope vanishes, by Newton's step and then secants."""
        before: tuple[float, float] | None = None
        last = LONGEST_STEP
        b = self.intercept
        pairs = zip(self.blocks, self.logits, strict=True)
        found = [Likelihood.at(block, b, variance, self.points, near) for block, near in pairs]
        for _ in range(MOST_STEPS):
            slope, _, information = gradient(found)
            if before is not None and b != before[0]:
                bent = (before[1] - slope) / (b - before[0])
                information = bent if bent > 0 else information
            step = min(max(slope / information, -LONGEST_STEP), LONGEST_STEP)
            if abs(step) <= SMALL_STEP or 0.5 * abs(last) < abs(step) < SMALL_ENOUGH:
                break
            last, before = step, (b, slope)
            b = b + step
            found = [each.moved_to(b) for each in found]
        self.intercept, self.logits = b, [each.logits for each in found]
        return found

    def slope(self, variance: float) -> float:
        """Derivative of `height`; the intercept's own change adds nothing, since it is the best."""
        return -gradient(self.best(variance))[1]

    def height(self, variance: float) -> float:
        """Minus the log-likelihood, but for a constant."""
        return -total(np.array([each.value() for each in self.best(variance)]))

    def solved(self, variance: float) -> tuple[float, Floats]:
        """Give the intercept and the likeliest logits by different counts."""
        self.best(variance)
        return self.intercept, np.concatenate(self.logits)


def gradient(parts: list[Likelihood]) -> tuple[float, float, float]:
    """Give the derivatives of all blocks together."""
    by_intercept, by_variance, information = np.array([each.gradient() for each in parts]).T
    return total(by_intercept), total(by_variance), total(information)
