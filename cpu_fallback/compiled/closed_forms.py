"""Leave-one-out by closed forms: formulas, bounds of their errors, and the numbers that each category gives them.

A row with target v sees n - 1 rows of its category, whose sum is S - v and whose sum of squares is Q - v**2.  Among all
rows it sees N - 1, with the sums T - v and TQ - v**2.  Its encoding is a function of v and of a few numbers of its
category, which are called its line.  The functions below compute this function as q, with an error bound e; on a GPU
gpu_encode/cuda/raw/closed_forms.cuh does.  It is proven here that the definition's float64 encoding F is in [q - e, q +
e].  Rounding is monotone: if both ends of this interval round to the same number, F rounds to it, too.  All other rows
are listed, and exact code encodes them.  A CPU always computes pairs of floats; a GPU does so for float64 encodings.

**Estimates** (m-estimates; means, with m = 0): the prior is the mean of the others, or a number p.

    encoding = (A - K v) R,    A = S (N - 1) + m T,  K = N - 1 + m,  R = 1 / ((n - 1 + m) (N - 1))
                          or   A = S + m p,          K = 1,          R = 1 / (n - 1 + m)

F is that quotient, rounded once.  If its category does not count, a row has the mean of all others, A = K T and R = 1 /
(K (N - 1)), or a number.

**Blends** (empirical Bayes, sigmoid): with mean M = (S - v) / (n - 1), prior U = (T - v) / (N - 1) or p, the sums of
squares V = (n - 1)(Q - v**2) - (S - v)**2 = c0 + v (c1 - n v), c0 = (n - 1) Q - S**2, c1 = 2 S, and W likewise of all
rows,

    encoding = X = M + s (U - M),    s = O / (W + O),  O = V a,  a = (N - 1)**2 / (n - 1)**3.

F is the result of the steps of `blend_one` on M, U, V and W, each rounded once.  With a sigmoid O is a number, W = 1.

Errors
------
u is 2**-53.  "Within k g" means that the error is at most k u g, where g is a sum of magnitudes; every k is rounded up
by more than the terms of u**2 add.  The numbers of a line are correctly rounded, except for a few u**2, so each is
within 1 of itself.  If a sum (A, S, T) is not exact, the sum, or the low part of its pair, is rounded to odd, within 2.
So an even sum, or an even low part, is exact.

*Estimates as floats.*  With G = abs(A) + abs(K v): K v is within 2.1 G (K, product), A - K v within 3.2 G (A: 2;
difference), times R within 5.3 G R (R, product).  e = 8 u G R = 2**-50 G R.

*Blends as floats.*  Y = (abs(S) + abs(v)) / (n - 1) + (abs(T) + abs(v)) / (N - 1), or with abs(p) as its second term.
M and U are within 5.01 of their part of Y (sum: 2; difference, share, product).  With H = abs(c0) + abs(v) (abs(c1) +
n abs(v)) V is within 4.1 H; a, of four steps, is within 4, so O is within 9.2 H a.  W is within 4.1 H'.  Z = H a + H'
bounds O + W and abs(O) and abs(W), and B, the computed W + O, is within 10.3 Z.  The closed form holds for a row only
if Z <= 2**40 B, so that B is right to one part in 700; then s is within 22 Z / B (O: 9.2, B: 10.3 since s <= 1,
reciprocal and product: 2), and below 1.01.  Hence q is within 5.01 Y + 1.01 (5.01 Y + Y) + 1.02 Y + Y <= 13.2 Y (M; U -
M, rounded; product; sum) and 22.1 D Z / B, D = abs(U - M), of X.  F is within 2.01 Y (M, U, the last sum) and 12 s D of
X: O / W is within 8 (V and W rounded, two divisions each, a product, a division), which moves s by 8 s (1 - s), and 4
more steps follow, with parts of at most one half; s <= Z / B (1 + 1/700).  So e = 16 u Y + 64 u D Z / B.

*Pairs.*  A pair (h, l) that stands for x, abs(x) <= g, is [c, k] if abs(l) <= c u g and abs(h + l - x) <= k u**2 g:

    plus:                 [c1, k1] and [c2, k2] give [1 + c, k + 1 + 2 c], of the larger c and k, for the sum of both g
    times a double:       [1 + c, k + 1 + 2 c]
    times a pair [1, r]: [2 + c, k + r + 4 + 4 c]

since `two_sum` and `two_product` are exact, and each rounding of a low part is at most u times that part.  (A GPU fuses
products and sums of low parts, which saves roundings.)  Sums of digits are [1, 2] (`round_columns`), 1 / (n - 1) is [1,
3], K is exact.

*Estimates as pairs.*  A is computed by `weigh` and `two_sum` within 9 u**2 of its parts' sum; if cancellation leaves
less than 2**-16 of it, there is no line, so A is [1, 2**20].  R is [1, 20].  K v is [2, 3], the difference [3, 2**20
+ 6], times R [5, 2**20 + 42]; rounding the low part takes 5 more.  e = 2**26 u**2 G R = 2**-80 G R.

*Moments as pairs.*  S - v is [2, 5], times 1 / (n - 1) [4, 20]; n v is [1, 0], 2 S - n v [2, 5], times v [3, 10], plus
c0 [4, 17]; rounding the low part takes 4 more.  e is 64 u**2 = 2**-100 of the magnitudes.  If both ends round to one
number, this number is the moment, rounded once, and the steps of `blend_one` follow unchanged.  Here V and W are
doubles, while `blend_one` keeps a power of two separately.  Both give the same result if all quotients are normal
numbers: O / W must be in [2**-1000, 2**1000].

*The ends of the range.*  Products below 2**-1022 add at most 2**-1074 each; without a fused product, 2**-1072.  Every
factor that follows is at most 1 (R, shares and s), or a <= 2**106 after V, so such errors are below 2**-958 in O, where
B >= 2**-900, and below 2**-1068 in M, U and q.  Floats are taken from 2**-126 on, where e >= 2**-177; pairs from
2**-900 on, where e >= 2**-1000.  An e that is infinite or NaN decides nothing.

*Ties.*  The mean of a few doubles is often exactly between two doubles.  If S is known exactly, `round_tie` compares S
- v with n - 1 times the midpoint, and says whether they are equal.  If they are, its steps are exact.

*Exact zeros.*  If S is known exactly and S - v = 0, or if A = 0 (A is never rounded to zero) and v = 0, the encoding or
mean is +0.0.  If a category has two rows, one is left; if all of its rows are equal (n Q = S**2, by digits), the others
are equal, too.  In both cases V is zero, which its line shows by c0 = c1 = n = 0, and F is M.  If all rows of all
categories are equal, W may be any number, such as 1.
"""

import math
from typing import NamedTuple

from cpu_fallback.compiled.border import Array, inlined, kernel, stage
from cpu_fallback.compiled.estimates import in_range, marked, plain_pair
from cpu_fallback.compiled.moments import Room, Shape, cell_width, pair, scratch, spread
from cpu_fallback.compiled.product_errors import product_error
from cpu_fallback.compiled.row_encodings import encoding_without, has_category
from cpu_fallback.compiled.shrinkage import weights_of
from cpu_fallback.compiled.ties import two_sum
from cpu_fallback.fused_rules import EMPIRICAL_BAYES, M_ESTIMATE, FusedRule

# If cancellation leaves less than this share of a sum, its estimates have no closed form.
CANCELLED = 2.0**-16
# Bounds of the errors of estimates and of moments, as parts of the sizes of their terms.
ESTIMATE_BOUND, MOMENT_BOUND = 2.0**-80, 2.0**-100
# Numbers of a line: A and R as pairs; or S, 1 / (n - 1) and c0 as pairs, n (or 0), and c1 as a multiple of S.
ESTIMATE_WIDTH, BLEND_WIDTH = 4, 8
# What a line is: a closed form; none, so that its rows are listed; one number for all rows; the mean of all others.
FORM, LISTED, CONSTANT, OF_ALL = 0, 1, 2, 3


class Lines(NamedTuple):
    """Numbers that the rows of a category share: a line for each category and last for all rows.

    Parameters
    ----------
    numbers : float64 array ((categories + 3) * width)
        ESTIMATE_WIDTH or BLEND_WIDTH numbers for each line; NaN and a constant if it has no closed form.
    kinds : uint8 array (categories + 3,)
        FORM, LISTED, CONSTANT or OF_ALL.
    counted : bool array (categories + 3,)
        Whether the rows of a category see enough of its rows, so that it counts.
    """

    numbers: Array
    kinds: Array
    counted: Array


@inlined
def weigh(high: float, low: float, factor: float) -> tuple[float, float]:
    """Multiply a pair by a number."""
    product = high * factor
    return product, product_error(product, high, factor) + low * factor


@inlined
def invert(high: float, low: float) -> tuple[float, float]:
    """Give the reciprocal of a pair."""
    first = 1.0 / high
    product = first * high
    rest = ((1.0 - product) - product_error(product, first, high)) - first * low
    return first, rest * first


@inlined
def top_and_bottom(
    own: tuple[float, float], everything: tuple[float, float], fewer: float, above: float, m: float, rule: FusedRule
) -> tuple[tuple[float, float], tuple[float, float], float]:
    """Give A of a category that counts, its divisor, and the size of A's parts, from S, T, n - 1 and N - 1."""
    bottom, prior = two_sum(fewer, m), weigh(rule.prior, 0.0, m)
    if rule.by_mean and m > 0.0:
        own, bottom = weigh(own[0], own[1], above), weigh(bottom[0], bottom[1], above)
        prior = weigh(everything[0], everything[1], m)
    top, rest = two_sum(own[0], prior[0])
    return (top, rest + (own[1] + prior[1])), bottom, abs(own[0]) + abs(prior[0])


@inlined
def plus(left: float, left_low: float, right: float, right_low: float) -> tuple[float, float]:
    """Give the sum of two pairs as a pair."""
    total, error = two_sum(left, right)
    return total, error + (left_low + right_low)


@inlined
def times(left: float, left_low: float, right: float, right_low: float) -> tuple[float, float]:
    """Give the product of two pairs as a pair."""
    product = left * right
    return product, product_error(product, left, right) + (left * right_low + left_low * right)


@inlined
def rounded(high: float, low: float, error: float) -> tuple[float, bool]:
    """Give the double to which all numbers within `error` of a pair round, and tell whether there is one."""
    below, above = high + (low - error), high + (low + error)
    return below, (below == above) & (abs(below) >= 2.0**-900) & (abs(below) <= 2.0**900)


@inlined
def mean_of(
    v: float, weight: float, weight_low: float, top: float, top_low: float, share: float, share_low: float, bound: float
) -> tuple[float, float, float]:
    """Give (A - K v) R as a pair, and its error, which is at most `bound` times the sizes of A R and of K v R."""
    own, own_low = weigh(weight, weight_low, v)
    left, left_low = plus(top, top_low, -own, -own_low)
    high, low = times(left, left_low, share, share_low)
    return high, low, (abs(top) + abs(own)) * (share * bound)


@inlined
def variance_of(
    v: float, total: float, total_low: float, around: float, around_low: float, count: float, slope: float
) -> tuple[float, bool]:
    """Give c0 + v (c1 - n v), rounded once, and tell whether it is certain; c0 itself, if n is zero."""
    square = count * v
    linear = slope * total
    left, left_low = plus(linear, slope * total_low, -square, -product_error(square, count, v))
    changed, changed_low = weigh(left, left_low, v)
    high, low = plus(around, around_low, changed, changed_low)
    size = abs(around) + abs(v) * (abs(linear) + abs(square))
    found, sure = rounded(high, low, size * MOMENT_BOUND)
    return around if count == 0.0 else found, sure | (count == 0.0)


@stage
def put_pair(numbers: Array, at: int, high: float, low: float) -> None:
    """Write a pair of numbers that do not overlap."""
    numbers[at] = high + low
    numbers[at + 1] = low - (numbers[at] - high)


@stage
def put_sum(numbers: Array, at: int, high: float, low: float, exact: bool) -> None:
    """Write a sum; if it is not exact, its low part is odd."""
    put_pair(numbers, at, high, low)
    numbers[at + 1] = marked(numbers[at + 1], exact or numbers[at] == 0.0)


@inlined
def total_pair(sums: Array, at: int, shape: Shape) -> tuple[float, float]:
    """Give S of a cell as a pair of numbers; the second one is NaN if they are too large or too small."""
    return plain_pair(*pair(sums, at + shape.n_width, shape.s_width, shape.s_low))


@stage
def write_open(lines: Lines, i: int, kind: int, constant: float) -> None:
    """Write a line without a closed form: all of it is NaN, since rows may read any part of the line of all rows."""
    width = len(lines.numbers) // len(lines.kinds)
    lines.kinds[i], lines.numbers[i * width : (i + 1) * width] = kind, math.nan
    lines.numbers[i * width + 1] = constant


@stage
def write_without_category(code: int, rule: FusedRule, lines: Lines, i: int) -> None:
    """Write the line of a category that does not count."""
    if rule.by_mean and encoding_without(code, 1.0, rule) == 1.0 and encoding_without(code, 2.0, rule) == 2.0:
        write_open(lines, i, OF_ALL, 0.0)
    else:
        write_open(lines, i, CONSTANT, encoding_without(code, rule.prior, rule))


@stage
def write_estimate(
    lines: Lines, i: int, top: tuple[float, float], bottom: tuple[float, float], size: float, exact: bool
) -> None:
    """Write A and 1 / bottom of a category; `size` is the sum of the parts of A."""
    known = top[1] == top[1] and in_range(top[0]) and in_range(bottom[0])
    if not known or abs(top[0]) < CANCELLED * size:
        write_open(lines, i, LISTED, 0.0)
        return
    share, lines.kinds[i] = invert(bottom[0], bottom[1]), FORM
    put_sum(lines.numbers, i * ESTIMATE_WIDTH, top[0], top[1], exact)
    put_pair(lines.numbers, i * ESTIMATE_WIDTH + 2, share[0], share[1])


@kernel
def make_estimates(
    accumulators: Array, total: Array, shape: Shape, rule: FusedRule, start: int, stop: int, lines: Lines
) -> None:
    """Write the lines [start, stop) of m-estimates, or means; the last line has K."""
    cell, n_lines, by_mean = cell_width(shape), len(lines.kinds) - 1, rule.by_mean
    m = rule.blend.shrinkage.first if rule.blend.shrinkage.kind == M_ESTIMATE else 0.0
    above, everything = float(total[0] - 1), total_pair(total, 0, shape)
    weight = two_sum(above, m) if by_mean and m > 0.0 else (1.0, 0.0)
    for i in range(start, stop):
        if i == n_lines:
            put_pair(lines.numbers, i * ESTIMATE_WIDTH, weight[0], weight[1])
            continue
        code, fewer = i if i < n_lines - 2 else i - n_lines, float(accumulators[i * cell] - 1)
        lines.counted[i] = has_category(code, rule) and fewer > 0.0 and fewer >= rule.blend.least
        if not above > 0.0:
            write_open(lines, i, LISTED, 0.0)
        elif lines.counted[i]:
            own = total_pair(accumulators, i * cell, shape)
            top, bottom, size = top_and_bottom(own, everything, fewer, above, m, rule)
            write_estimate(lines, i, top, bottom, size, m == 0.0)
        else:
            write_without_category(code, rule, lines, i)
            if lines.kinds[i] == OF_ALL:
                # (T - v) / (N - 1), with numerator and denominator multiplied by the weight of a row.
                high, low = weigh(everything[0], everything[1], weight[0])
                bottom = weigh(weight[0], weight[1], above)
                write_estimate(lines, i, (high, low + everything[0] * weight[1]), bottom, 0.0, m == 0.0)


@stage
def spread_around(
    sums: Array, at: int, shape: Shape, n: int, all_rows: bool, room: Room
) -> tuple[tuple[float, float], float, float]:
    """Give c0, n, and c1 as a multiple of S: all are 0 without a variance, but for all rows c0 may be any number."""
    s_at = at + shape.n_width
    room.summed[0] = n - 1
    high, low, exponent = spread(sums, s_at, s_at + shape.s_width, shape, n - 1, room)
    alike = n == 2
    if high <= 0.0:
        room.summed[0] = n
        alike = alike or spread(sums, s_at, s_at + shape.s_width, shape, n, room)[0] == 0.0
    # If one row of two is left, or if all rows are equal (then all but one are, too), there is no variance.
    if alike:
        return (1.0 if all_rows else 0.0, 0.0), 0.0, 0.0
    return plain_pair(high, low, exponent), float(n), 2.0


@stage
def write_blend(
    sums: Array, at: int, shape: Shape, rule: FusedRule, all_rows: bool, room: Room, lines: Lines, i: int
) -> None:
    """Write the line of a blend from sums that begin at an index."""
    n, to, own = sums[at], i * BLEND_WIDTH, total_pair(sums, at, shape)
    around, count, slope = (1.0, 0.0), 0.0, 0.0
    if rule.blend.shrinkage.kind == EMPIRICAL_BAYES:
        around, count, slope = spread_around(sums, at, shape, n, all_rows, room)
    elif not all_rows:
        around = weights_of(float(n - 1), rule.blend.shrinkage)[1], 0.0
    known = own[1] == own[1] and around[1] == around[1]
    if not known or around[0] == math.inf:
        write_open(lines, i, OF_ALL if around[0] == math.inf and rule.by_mean else LISTED, 0.0)
        return
    share, lines.kinds[i] = invert(float(n - 1), 0.0), FORM
    put_sum(lines.numbers, to, own[0], own[1], True)
    put_pair(lines.numbers, to + 2, share[0], share[1])
    put_pair(lines.numbers, to + 4, around[0], around[1])
    lines.numbers[to + 6], lines.numbers[to + 7] = count, slope


@kernel
def make_blends(
    accumulators: Array, total: Array, shape: Shape, rule: FusedRule, start: int, stop: int, lines: Lines
) -> None:
    """Write the lines [start, stop) of blends; the last line is that of all rows."""
    cell, n_lines, room = cell_width(shape), len(lines.kinds) - 1, scratch(shape)
    for i in range(start, stop):
        if i == n_lines:
            write_blend(total, 0, shape, rule, True, room, lines, i)
            continue
        code, n = i if i < n_lines - 2 else i - n_lines, accumulators[i * cell]
        lines.counted[i] = has_category(code, rule) and n > 1 and float(n - 1) >= rule.blend.least
        if not total[0] > 1:
            write_open(lines, i, LISTED, 0.0)
        elif lines.counted[i]:
            write_blend(accumulators, i * cell, shape, rule, False, room, lines, i)
        else:
            write_without_category(code, rule, lines, i)
