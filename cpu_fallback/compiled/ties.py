"""m-estimates in the middle of two floats, or near it, decided by an exact sum of a few floats.

With a prior that the user gives, such ties are frequent: n + m has few bits, S + m * mu has a few more than a float
has, and if n + m is even, many quotients end half a unit after a float.

Proof that `decide_estimate` rounds (total + total_rest + prior + prior_rest) / (count + count_rest + m) to the nearest
float, ties to even, wherever it claims to:

The pairs are exact, since their lower numbers are even (`marked`).  `sum_pairs` makes of them, by two-sums alone,
S + m * mu = top + rest and n + m = bottom + bottom_rest, exactly; or it says that two floats do not hold one of these.
`divide_pairs` gives the quotient as near + off within 2**-90 of itself, where near is the float next to near + off.
So the nearest float is `near`, or its neighbour `other` on the side of `off`.  (If the quotient lies on the other side
of near, both off and its distance from near are tiny.)  Their middle, near + half, decides.  As n + m is above zero,
the quotient lies above the middle, on it or below it as the sign of D is positive, zero or negative:

    D = top + rest - (near + half) * (bottom + bottom_rest).

If bottom_rest is not zero, the product of a middle and the divisor has more than 106 bits, so that S + m * mu hardly
ever equals it: a doubtful quotient is then left to the digits.  Otherwise near * bottom = product + error exactly
(Dekker), half is a power of two, so that half * bottom is exact, and product is within four units of top, so that
top - product is exact (Sterbenz).  D is the exact sum of top - product, rest, -error and -half * bottom.
`sign_of_sum` replaces four floats by four of the same sum (two-sums are exact) until the last of them outweighs all
others.

No number overflows, and no product leaves the normal numbers: total, count, m, mu and m * mu are zero or between
2**-280 and 2**280 (else a lower number is NaN, and so is near), and near must be, too.  Digits of a pair reach 160 bits
below it: all of these numbers are multiples of 2**-440, near is one of 2**-333, products are of 2**-773, and none is
above 2**562.  Numbers outside of these ranges are left to the digits.
"""

import numpy as np

from cpu_fallback.compiled.border import inlined, stage
from cpu_fallback.compiled.digits import ONE, ZERO
from cpu_fallback.compiled.estimates import DOUBT, divide_pairs, in_range, is_all, near_estimate
from cpu_fallback.compiled.product_errors import product_error

# Two turns are nearly always enough.  A sum that needs more turns than these is left to the digits.
TURNS = 8


@inlined
def two_sum(left: float, right: float) -> tuple[float, float]:
    """Give a sum and its exact rounding error (Knuth)."""
    total = left + right
    virtual = total - left
    return total, (left - (total - virtual)) + (right - virtual)


@inlined
def sum_pairs(left: float, left_rest: float, right: float, right_rest: float) -> tuple[float, float, bool]:
    """Give the sum of two pairs as a pair, and tell whether it is exact."""
    total, error = two_sum(left, right)
    below, deep = two_sum(left_rest, right_rest)
    below, over = two_sum(error, below)
    deep, lost = two_sum(over, deep)
    total, error = two_sum(total, below)
    rest, lost_too = two_sum(error, deep)
    high, lower = two_sum(total, rest)
    return high, lower, (lost == 0.0) & (lost_too == 0.0)


@inlined
def sign_of_sum(a: float, b: float, c: float, d: float) -> tuple[float, bool]:
    """Give a number with the sign of a sum of four numbers, and tell whether it was found; the largest comes last."""
    for _ in range(TURNS):
        b, a = two_sum(a, b)
        c, b = two_sum(b, c)
        d, c = two_sum(c, d)
        rest = abs(a) + abs(b) + abs(c)
        if rest == 0.0 or abs(d) > 2.0 * rest:
            return d, True
    return 0.0, False


@inlined
def neighbour(value: float, upwards: bool) -> float:
    """Give the next float above a normal number, or below it."""
    step = ONE if upwards == (value > 0.0) else ~ZERO
    return np.uint64(np.float64(value).view(np.uint64) + step).view(np.float64)


@stage
def decide_estimate(
    total: float, total_rest: float, count: float, count_rest: float, m: float, prior: float, prior_rest: float
) -> tuple[float, bool]:
    """Give (total + prior) / (count + m) by an exact sum, and tell whether it may still be rounded wrongly."""
    top, rest, known = sum_pairs(total, total_rest, prior, prior_rest)
    bottom, bottom_rest, all_known = sum_pairs(count, count_rest, m, 0.0)
    known = known & all_known & is_all(total_rest) & is_all(count_rest) & is_all(prior_rest)
    near, off = divide_pairs(top, rest, bottom, bottom_rest)
    if not (known and in_range(near)):
        return near, True
    if near + off * DOUBT == near:
        # The pairs are exact, so the estimate was in doubt only because its sum nearly cancels.
        return near, False
    if bottom_rest != 0.0:
        return near, True
    other, product = neighbour(near, off > 0.0), near * bottom
    half = (other - near) * 0.5
    sign, found = sign_of_sum(-product_error(product, near, bottom), rest, -half * bottom, top - product)
    if sign == 0.0:
        return near if is_all(near) else other, not found
    return other if (sign > 0.0) == (half > 0.0) else near, False


@inlined
def rounded_estimate(
    total: float, total_rest: float, count: float, count_rest: float, m: float, prior: float, prior_rest: float
) -> tuple[float, bool]:
    """Give (total + prior) / (count + m), and tell whether only the digits can round it."""
    near, doubtful = near_estimate(total, total_rest, count, count_rest, m, prior, prior_rest)
    if doubtful:
        return decide_estimate(total, total_rest, count, count_rest, m, prior, prior_rest)
    return near, False
