"""The likelihood of counts of ones, given the intercept b and the variance v of the categories' effects.

For a category with n rows and the share p of ones, h(u) = n * (p * (b + u) - log(1 + exp(b + u))) - u**2 / (2 * v).
Two numbers give Laplace's approximation of the log of the integral of exp(h): the highest point u, and the curvature
there, (1 + v * n * P * (1 - P)) / v.  They also give the position and the width of the adaptive Gauss-Hermite rule,
which with one point is Laplace's approximation.  Derivatives are those of the approximation itself, and include the
changes of u and of the width.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from cpu_fallback.elementary import add_in_order, exp, log
from cpu_fallback.exact import Floats
from gpu_encode.formulas.glmm.quadrature import gauss_hermite
from gpu_encode.formulas.glmm.search import MOST_STEPS, total

# If a step is this small, the result is good enough: Newton's next step would be about its square.
LAST_STEP = 2.0**-26
# Number of counts in a block.  The sums of blocks are added, so another number would give other bits.
BLOCK = 1 << 14


def logistic(logits: Floats) -> tuple[Floats, Floats]:
    """Give P = 1 / (1 + exp(-logit)) and 1 - P, both to full precision."""
    small = exp(-np.abs(logits))
    near, far = 1.0 / (1.0 + small), small / (1.0 + small)
    above = logits >= 0
    return np.where(above, near, far), np.where(above, far, near)


def log_of_one_plus_exp(logits: Floats) -> Floats:
    """Log(1 + exp(logit))."""
    return np.maximum(logits, 0.0) + log(1.0 + exp(-np.abs(logits)))


@dataclass(frozen=True)
class Counts:
    """The different counts of categories, since categories with the same counts have the same likelihood.

    Parameters
    ----------
    n, share, number : float64 array (different counts,)
        Number of rows and share of ones, in rising order, and the number of categories that have both.
    """

    n: Floats
    share: Floats
    number: Floats

    @classmethod
    def of(cls, n: Floats, share: Floats) -> "tuple[Counts, np.ndarray[tuple[int], np.dtype[np.intp]]]":
        """Group categories, and give the index of each category's counts."""
        order = np.lexsort((share, n))
        n, share = n[order], share[order]
        new = np.concatenate([[True], (n[1:] != n[:-1]) | (share[1:] != share[:-1])])
        number = np.cumsum(new) - 1
        group = np.empty(len(order), np.intp)
        group[order] = number
        return cls(n[new], share[new], np.bincount(number).astype(np.float64)), group

    def blocks(self) -> "list[Counts]":
        """Cut the counts into blocks that stay in a processor's cache."""
        starts = range(0, len(self.n), BLOCK)
        parts = (slice(start, start + BLOCK) for start in starts)
        return [Counts(self.n[part], self.share[part], self.number[part]) for part in parts]

    def ones_and_zeros(self) -> tuple[float, float]:
        """Count the rows with a one, and all others."""
        rows = self.number * self.n
        return total(rows * self.share), total(rows * (1.0 - self.share))


@dataclass(frozen=True)
class Bend:
    """A category's log-likelihood at some logits: the slope n * (p - P), and the curvature W = n * P * (1 - P)."""

    slope: Floats
    curvature: Floats
    # The derivative of W with respect to the logit.
    change: Floats

    @classmethod
    def at(cls, counts: Counts, logits: Floats) -> "Bend":
        """Compute the derivatives with respect to the logit."""
        upper, lower = logistic(logits)
        slope = counts.n * (counts.share * lower - (1.0 - counts.share) * upper)
        curvature = counts.n * (upper * lower)
        return cls(slope, curvature, curvature * (lower - upper))


@dataclass(frozen=True)
class Likelihood:
    """The approximate log-likelihood at one intercept and variance.

    Parameters
    ----------
    logits : float64 array (different counts,)
        b + u, where u is the likeliest effect.
    """

    counts: Counts
    intercept: float
    variance: float
    logits: Floats
    points: int

    @classmethod
    def at(cls, counts: Counts, intercept: float, variance: float, points: int, near: Floats) -> "Likelihood":
        """Find the likeliest effects, starting from the logits `near` them."""
        return cls(counts, intercept, variance, likeliest(counts, intercept, variance, near), points)

    def move_to(self, intercept: float) -> "Likelihood":
        """Give the likelihood at another intercept."""
        height = 1.0 + self.variance * Bend.at(self.counts, self.logits).curvature
        near = self.logits + (intercept - self.intercept) / height
        return Likelihood.at(self.counts, intercept, self.variance, self.points, near)

    def gradient(self) -> tuple[float, float, float]:
        """Give the derivatives with respect to intercept and variance, and about the information of the intercept."""
        bend, number = Bend.at(self.counts, self.logits), self.counts.number
        height = 1.0 + self.variance * bend.curvature
        moved = bend.slope / height
        by_intercept = self.variance * bend.change / height
        by_variance = bend.curvature + self.variance * bend.change * moved
        if self.points == 1 or self.variance == 0:
            inner = bend.slope, 0.5 * (bend.slope * bend.slope)
        else:
            inner = self.average(bend, height, by_intercept / height, by_variance / height)
        return (
            total(number * (inner[0] - 0.5 * (by_intercept / height))),
            total(number * (inner[1] - 0.5 * (by_variance / height))),
            total(number * (bend.curvature / height)),
        )

    def average(self, bend: Bend, height: Floats, by_intercept: Floats, by_variance: Floats) -> tuple[Floats, Floats]:
        """Give the derivatives of the log of the rule's sum; its points move with the effect and the width.

        `by_intercept` and `by_variance` are the derivatives of log(height).
        """
        root = sqrt(self.variance)
        width = np.sqrt(2.0 / height)
        shares = self.shares(bend, width)
        whole = add_in_order(shares)
        averages = np.zeros_like(width), np.zeros_like(width)
        shift = -root * bend.curvature / height, bend.slope * (0.5 / root - root * bend.curvature / height)
        for (x, _), share in zip(gauss_hermite(self.points), shares, strict=True):
            z = root * bend.slope + x * width
            slope = Bend.at(self.counts, self.intercept + root * z).slope
            pull, weight = root * slope - z, share / whole
            narrower = -0.5 * x * width
            averages = (
                averages[0] + weight * (slope + pull * (shift[0] + narrower * by_intercept)),
                averages[1] + weight * (slope * z * (0.5 / root) + pull * (shift[1] + narrower * by_variance)),
            )
        return averages

    def shares(self, bend: Bend, width: Floats) -> list[Floats]:
        """Give the addends of the rule: weight * exp(x**2 + h at the point - h at the likeliest effect)."""
        root = sqrt(self.variance)
        top = self.exponent(self.logits, root * bend.slope)
        shares = []
        for x, weight in gauss_hermite(self.points):
            z = root * bend.slope + x * width
            shares.append(weight * exp(x * x + (self.exponent(self.intercept + root * z, z) - top)))
        return shares

    def exponent(self, logits: Floats, z: Floats) -> Floats:
        """Give h at some logits, whose effects are sqrt(v) * z."""
        counts = self.counts
        return counts.n * (counts.share * logits - log_of_one_plus_exp(logits)) - 0.5 * (z * z)

    def value(self) -> float:
        """Give the logarithm of the likelihood."""
        bend = Bend.at(self.counts, self.logits)
        height = 1.0 + self.variance * bend.curvature
        values = self.exponent(self.logits, sqrt(self.variance) * bend.slope) - 0.5 * log(height)
        if self.points > 1 and self.variance > 0:
            values = values + log(add_in_order(self.shares(bend, np.sqrt(2.0 / height))))
        return total(self.counts.number * values)


def likeliest(counts: Counts, intercept: float, variance: float, near: Floats) -> Floats:
    """Find the logits at which u = v * n * (p - P) by Newton's steps, which always converge here.

    The logit 0 divides the curve n * (p - P) into a concave and a convex part.  From any start in the part that holds
    the solution, the first step leads to a known side of the solution; later steps come nearer and never pass it.

    Parameters
    ----------
    near : float64 array (different counts,)
        The logits to start from.
    """
    above = intercept + variance * (counts.n * (counts.share - 0.5)) > 0
    logits = np.where(above, np.maximum(near, 0.0), np.minimum(near, 0.0))
    for _ in range(MOST_STEPS):
        bend = Bend.at(counts, logits)
        to = logits + (variance * bend.slope - (logits - intercept)) / (1.0 + variance * bend.curvature)
        to = np.where(above, np.maximum(to, 0.0), np.minimum(to, 0.0))
        done = (np.abs(to - logits) <= LAST_STEP * (1.0 + np.abs(to))).all()
        logits = to
        if done:
            break
    return logits
