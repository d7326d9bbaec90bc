"""The share of the rows of one label that a category has, compared with its share of all other rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.elementary import log_of_quotient
from cpu_fallback.exact import Floats, Integers, Limbs, residual, shift
from gpu_encode.formulas.statistic import Context, Statistic
from gpu_encode.sums.moments import Moments, Needs
from gpu_encode.words.errors.parameters import check_number

# Whole numbers below MOST are exact as floats.  A regularization that is a multiple of 1 / FINEST counts as whole,
# since all numbers can be multiplied by FINEST.
MOST, FINEST = 2.0**53, 1 << 10


@dataclass(eq=False, repr=False)
class Evidence(Statistic):
    """Weight of evidence: log(p / q), where p is the category's share of the rows with a label, and q of other rows.

    Let n be the number of the category's visible rows, and s the number of these rows that have the label; N and S are
    the same two numbers for all visible rows, and r is the regularization.  Then p is ``(s + r) / (S + 2r)`` and q is
    ``((n - s) + r) / ((N - S) + 2r)``; n, s, N and S are exact sums of weights.  The error of the logarithm is at most
    4 ulp or 2**-100, even if p and q are nearly equal.

    Parameters
    ----------
    regularization : float, default=1.0
        Rows added to each side, from 0 to 1e290.  With 0, a category with rows of only one label gives inf or -inf.
    """

    needs = Needs(totals=True, others=True, target_kinds=("binary", "multiclass"))

    regularization: float = 1.0

    def check(self) -> None:
        """Raise ValueError for a regularization out of range."""
        check_number("WeightOfEvidenceEncoder", "regularization", self.regularization, low=0.0, high=1e290)

    def find_prior(self, total: Moments) -> Floats:
        """Give no evidence."""
        return np.zeros_like(total.total)

    def encode(self, visible: Moments, context: Context, prior: Floats) -> Floats:
        """Give log(p / q); 0 if all visible rows have one label, since then categories cannot differ."""
        evidence = self._compare(visible, context.total).evidence
        return np.where(np.isnan(evidence), 0.0, evidence)

    def _compare(self, visible: Moments, total: Moments) -> "Comparison":
        """Compare p and q as the products (s + r) * ((N - S) + 2r) and ((n - s) + r) * (S + 2r)."""
        r, sums = float(self.regularization), (visible.total, total.others, visible.others, total.total)
        added = (r, 2.0 * r, r, 2.0 * r)
        if are_exact(sums, r):
            own, all_others, others, all_own = (number + more for number, more in zip(sums, added, strict=True))
            return Comparison(*log_of_quotient(own * all_others, others * all_own), all_own * all_others, 0)
        (own_rest, rest), (all_rest, all_others_rest) = halves(visible.rests), halves(total.rests)
        rests = (own_rest, all_others_rest, rest, all_rest)
        return compare_factors(*(Factor.of(*number) for number in zip(sums, rests, added, strict=True)))

    def information(self, visible: Moments, counted: NDArray[np.bool_], total: Moments) -> Floats:
        """Give the information value: the sum of (p - q) * log(p / q) over the categories; its error is at most 8 ulp.

        Parameters
        ----------
        visible : Moments (categories, views, outputs)
        counted : bool array (categories, views, 1)
            Categories that take part.
        total : Moments (views, outputs)

        Returns
        -------
        float64 array (views, outputs)
            inf if a category has rows of only one label and there is no regularization.
        """
        comparison = self._compare(visible, total)
        evidence, difference = comparison.evidence, comparison.difference(self._shares(visible, total))
        counted = np.broadcast_to(counted, evidence.shape) & (evidence != 0) & ~np.isnan(evidence)
        finite = counted & np.isfinite(evidence)
        parts = (np.where(finite, numbers, 0.0) for numbers in (difference, evidence))
        exact = Limbs.sum_of(*parts, where=finite).to_floats()
        return np.where((counted & ~finite).any(axis=0), np.inf, exact)

    def _shares(self, visible: Moments, total: Moments) -> tuple[Floats, Floats]:
        """Give the shares p and q; NaN for 0 / 0."""
        r = float(self.regularization)
        with np.errstate(divide="ignore", invalid="ignore"):
            with_label = (visible.total + r) / (total.total + 2.0 * r)
            with_others = (visible.others + r) / (total.others + 2.0 * r)
        return with_label, with_others


class Comparison(NamedTuple):
    """Two shares p and q, compared by numbers that stay accurate if p and q are nearly equal.

    Parameters
    ----------
    evidence : float64 array
        log(p / q); NaN for 0 / 0.
    gap, exponent : float64 array
        As `log_of_quotient` gives them: if the exponent is 0, p - q is gap / scale * 2**power.
    scale : float64 array
    power : int or int array
    """

    evidence: Floats
    gap: Floats
    exponent: Floats
    scale: Floats
    power: Integers | int

    def difference(self, shares: tuple[Floats, Floats]) -> Floats:
        """Give p - q; if p and q are far from each other, it is the difference of `shares`."""
        with np.errstate(divide="ignore", invalid="ignore"):
            near = np.ldexp(self.gap / self.scale, self.power)
            return np.where(self.exponent == 0, near, shares[0] - shares[1])


class Factor(NamedTuple):
    """Numbers (high + low) * 2**exponent with high from 0.5 to 1, so that no product overflows or underflows."""

    high: Floats
    low: Floats
    exponent: Integers

    @classmethod
    def of(cls, number: Floats, rest: Floats, added: float) -> Self:
        """Add `added` to number + rest; only the new rest is rounded (Knuth's sum)."""
        total = number + added
        part = total - number
        low = ((number - (total - part)) + (added - part)) + rest
        high, exponent = np.frexp(total)
        return cls(high, shift(low, -exponent), exponent)

    def times(self, other: "Factor") -> tuple[Floats, Floats]:
        """Give the rounded product and its rounding error."""
        high = self.high * other.high
        return high, (self.high * other.low + self.low * other.high) - residual(high, self.high, other.high)


def compare_factors(own: Factor, all_others: Factor, others: Factor, all_own: Factor) -> Comparison:
    """Compare p = own / all_own with q = others / all_others."""
    (top, top_rest), (bottom, bottom_rest) = own.times(all_others), others.times(all_own)
    apart = own.exponent + all_others.exponent - others.exponent - all_own.exponent
    found = log_of_quotient(top, bottom, (top_rest, bottom_rest), apart)
    return Comparison(*found, all_own.high * all_others.high, own.exponent - all_own.exponent)


def are_exact(sums: Sequence[Floats], r: float) -> bool:
    """Tell whether own + r, all_own + 2r and the like are exact, and so are the two products that are compared."""
    unit = Fraction(r).denominator
    if unit > FINEST:
        return False
    own, all_others, others, all_own = (float(number.max()) if number.size else 0.0 for number in sums)
    if (max(own, others) + r) * (max(all_own, all_others) + 2.0 * r) * unit**2 >= MOST:
        return False
    return all(bool((np.floor(number) == number).all()) for number in sums)


def halves(rests: Floats) -> tuple[Floats, Floats]:
    """Split rounding errors into those of the totals and those of the others."""
    middle = rests.shape[-1] // 2
    return rests[..., :middle], rests[..., middle:]
