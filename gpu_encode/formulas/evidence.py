"""How much more of the rows of one label than of the others are of a category."""

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

# Products of whole numbers below it are exact, and a regularization in such parts of a row is as good as whole.
MOST, FINEST = 2.0**53, 1 << 10


@dataclass(eq=False, repr=False)
class Evidence(Statistic):
    """Weight of evidence: log(p / q), p and q the category's shares of the rows with a label and of all others.

    With n rows of the category, s of them with the label, N and S those of all visible rows, and regularization r, p is
    ``(s + r) / (S + 2r)`` and q is ``((n - s) + r) / ((N - S) + 2r)``, all of them exact sums of weights.  The
    logarithm is within 4 ulp also where p and q are nearly the same, or within 2**-100.

    Parameters
    ----------
    regularization : float, default=1.0
        Rows added to each side, from 0 to 1e290.  At 0 a category of one label alone gives inf or -inf.
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
        """Give log(p / q); 0 where all visible rows have one label, by which no category differs from another."""
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
        """Give the information value: the sum of (p - q) * log(p / q) over the categories, within 8 ulp.

        Parameters
        ----------
        visible : Moments (categories, views, outputs)
        counted : bool array (categories, views, 1)
            Categories that take part.
        total : Moments (views, outputs)

        Returns
        -------
        float64 array (views, outputs)
            inf where a category has one label alone, and there is no regularization.
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
    """Two shares p and q, with numbers that stay exact where p and q are nearly the same.

    Parameters
    ----------
    evidence : float64 array
        log(p / q); NaN for 0 / 0.
    gap, exponent : float64 array
        What `log_of_quotient` gives: where the exponent is 0, p - q is gap / scale * 2**power.
    scale : float64 array
    power : int or int array
    """

    evidence: Floats
    gap: Floats
    exponent: Floats
    scale: Floats
    power: Integers | int

    def difference(self, shares: tuple[Floats, Floats]) -> Floats:
        """Give p - q, by the shares as floats where these are far from each other."""
        with np.errstate(divide="ignore", invalid="ignore"):
            near = np.ldexp(self.gap / self.scale, self.power)
            return np.where(self.exponent == 0, near, shares[0] - shares[1])


class Factor(NamedTuple):
    """Numbers (high + low) * 2**exponent, high from 0.5 to 1, so that no product overflows or vanishes."""

    high: Floats
    low: Floats
    exponent: Integers

    @classmethod
    def of(cls, number: Floats, rest: Floats, added: float) -> Self:
        """Add a plain number to one with a rest; nothing is rounded but the new rest (Knuth's sum)."""
        total = number + added
        part = total - number
        low = ((number - (total - part)) + (added - part)) + rest
        high, exponent = np.frexp(total)
        return cls(high, shift(low, -exponent), exponent)

    def times(self, other: "Factor") -> tuple[Floats, Floats]:
        """Give the product, and its rest."""
        high = self.high * other.high
        return high, (self.high * other.low + self.low * other.high) - residual(high, self.high, other.high)


def compare_factors(own: Factor, all_others: Factor, others: Factor, all_own: Factor) -> Comparison:
    """Compare p = own / all_own with q = others / all_others."""
    (top, top_rest), (bottom, bottom_rest) = own.times(all_others), others.times(all_own)
    apart = own.exponent + all_others.exponent - others.exponent - all_own.exponent
    found = log_of_quotient(top, bottom, (top_rest, bottom_rest), apart)
    return Comparison(*found, all_own.high * all_others.high, own.exponent - all_own.exponent)


def are_exact(sums: Sequence[Floats], r: float) -> bool:
    """Whether the four sums with r or 2r, and the products of the first two and of the last two, need no rounding."""
    unit = Fraction(r).denominator
    if unit > FINEST:
        return False
    own, all_others, others, all_own = (float(number.max()) if number.size else 0.0 for number in sums)
    if (max(own, others) + r) * (max(all_own, all_others) + 2.0 * r) * unit**2 >= MOST:
        return False
    return all(bool((np.floor(number) == number).all()) for number in sums)


def halves(rests: Floats) -> tuple[Floats, Floats]:
    """Give the rests of the totals and of the others."""
    middle = rests.shape[-1] // 2
    return rests[..., :middle], rests[..., middle:]
