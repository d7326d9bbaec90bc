"""m-estimates, rounded once: quickly if the result is certain, else by their digits.

With mu = T / N an estimate is (S * N + m * T) / ((n + m) * N).  If counts are small and m has few bits, only this
quotient is rounded.  Otherwise it is computed as (S + p) / (n + m) with p = m * mu, all as pairs of floats; this nearly
always tells which float is nearest.  If it does not, exact pairs decide (`ties`), or else the digits of the first form.

The last bit of a pair's lower number tells whether the pair is exact: it is set if it is not (`marked`).
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.compiled import threads
from cpu_fallback.compiled.border import Array, counting, freeze, inlined, kernel, separate, stage
from cpu_fallback.compiled.digits import ONE, ZERO
from cpu_fallback.compiled.moments import (
    Shape,
    add_product,
    cell_width,
    pair,
    plain,
    settled_mean,
    shape_of,
    sum_classes,
    total_of,
)
from cpu_fallback.compiled.product_errors import product_error
from cpu_fallback.compiled.rounding import magnitude
from cpu_fallback.exact import Ratio
from cpu_fallback.fused_rules import FusedRule

if TYPE_CHECKING:
    from cpu_fallback.types import Layout

# An estimate that is farther from the middle of two floats than the error of the pairs is rounded correctly.  S and p
# are known within 2**-100 of themselves, and their sum after cancellation within 2**-84: 2**-30 of half a unit.
DOUBT = 1.0 + 2.0**-24
# If S and p cancel to a smaller part than this, the pairs are not accurate enough.
LEFT = 2.0**-16
# Powers of two between which neither squares nor remainders leave the normal numbers.
NEAREST, FARTHEST = 2.0**-280, 2.0**280
MANTISSA = 2.0**53
# Digits of a float on the grid.
FLOAT_DIGITS = 3
SMALLEST_SHARE = 1 << 10


class Prior(NamedTuple):
    """Exact priors T / N as flat digits: for each prior a line of T and of N, whose windows begin at `low`."""

    total: Array
    width: int
    low: int
    number: Array
    n_width: int
    n_low: int


@inlined
def in_range(value: float) -> bool:
    """Tell whether a number is zero, or far from the smallest and largest floats."""
    return value == 0 or NEAREST < abs(value) < FARTHEST


@inlined
def marked(rest: float, exact: bool) -> float:
    """Give the lower number of a pair, with its last bit set if it is not the whole rest.

    The whole rest of a product of two floats, or of digits, is always even.
    """
    return np.uint64(np.float64(rest).view(np.uint64) | np.uint64(not exact)).view(np.float64)


@inlined
def is_all(rest: float) -> bool:
    """Tell whether the lower number of a pair is the whole rest."""
    return np.float64(rest).view(np.uint64) & ONE == ZERO


@inlined
def weigh_prior(mu: float, rest: float, m: float) -> tuple[float, float]:
    """Give m * (mu + rest) as a pair; the second number is NaN if the digits have to decide."""
    high = m * mu
    sure = in_range(mu) and in_range(m) and in_range(high)
    return high, marked(product_error(high, m, mu) + m * rest, rest == 0.0) if sure else math.nan


@inlined
def divide_pairs(top: float, rest: float, bottom: float, bottom_rest: float) -> tuple[float, float]:
    """Give the quotient of two pairs, the second not zero: nearly always the nearest float, and its error."""
    share = 1.0 / bottom
    first = top * share
    product = first * bottom
    left = (top - product) - product_error(product, first, bottom)
    change = (left + (rest - first * bottom_rest)) * share
    near = first + change
    return near, change - (near - first)


@inlined
def near_estimate(
    total: float, total_rest: float, count: float, count_rest: float, m: float, prior: float, prior_rest: float
) -> tuple[float, bool]:
    """Give (total + prior) / (count + m), and tell whether it may be rounded wrongly."""
    top = total + prior
    virtual = top - total
    rest = ((total - (top - virtual)) + (prior - virtual)) + (total_rest + prior_rest)
    bottom = count + m
    virtual = bottom - count
    bottom_rest = ((count - (bottom - virtual)) + (m - virtual)) + count_rest
    near, off = divide_pairs(top, rest, bottom, bottom_rest)
    # This is also true if a number is NaN, and so not known.
    return near, (near + off * DOUBT != near) | (abs(top) < LEFT * abs(total))


@stage
def float_digits(value: float, out: Array) -> tuple[int, int]:
    """Write the magnitude of a float as three digits; give its sign and the position of the first digit."""
    fraction, exponent = math.frexp(abs(value))
    mantissa, power = np.uint64(math.ldexp(fraction, 53)), exponent - 53
    low, shift = power >> 5, np.uint64(power & 31)
    half = np.uint64(32)
    out[0] = np.int64((mantissa << shift) & np.uint64(0xFFFFFFFF))
    out[1] = np.int64((mantissa >> (half - shift)) & np.uint64(0xFFFFFFFF))
    out[2] = np.int64((mantissa >> half) >> (half - shift))
    return (-1 if value < 0 else 1), low


@separate
def exact_estimate(
    digits: Array, low: int, counts: Array, n_low: int, prior: Prior, t_at: int, c_at: int, m: float
) -> float:
    """Round (S * N + m * T) / ((n + m) * N) by the digits of S and n, and those of T from `t_at` and N from `c_at`."""
    width, n_width = len(digits), len(counts)
    weight, own = np.empty(FLOAT_DIGITS, np.int64), np.empty(width + 1, np.int64)
    _, m_low = float_digits(m, weight)
    above, number = np.empty(prior.width + 1, np.int64), np.empty(prior.n_width + 1, np.int64)
    sign, above_sign = magnitude(digits, 0, width, own), magnitude(prior.total, t_at, prior.width, above)
    number_sign = magnitude(prior.number, c_at, prior.n_width, number)
    first, second = low + prior.n_low, m_low + prior.low
    begin = min(first, second)
    ends = first + len(own) + len(number), second + FLOAT_DIGITS + len(above)
    top = np.zeros(max(ends[0], ends[1]) - begin, np.int64)
    add_product(own, len(own), number, len(number), sign * number_sign, top, first - begin)
    add_product(weight, FLOAT_DIGITS, above, len(above), above_sign, top, second - begin)
    bottom_low = min(n_low, m_low)
    summed = np.zeros(max(n_low + n_width, m_low + FLOAT_DIGITS) - bottom_low, np.int64)
    for i in range(n_width):
        summed[n_low - bottom_low + i] = counts[i]
    for i in range(FLOAT_DIGITS):
        summed[m_low - bottom_low + i] += weight[i]
    seen = np.empty(len(summed) + 1, np.int64)
    seen_sign = magnitude(summed, 0, len(summed), seen)
    bottom = np.zeros(len(seen) + len(number), np.int64)
    add_product(seen, len(seen), number, len(number), seen_sign * number_sign, bottom, 0)
    high, lower, power = pair(top, 0, len(top), begin)
    n_high, n_lower, n_power = pair(bottom, 0, len(bottom), bottom_low + prior.n_low)
    sums = high, lower, power, n_high, n_lower, n_power
    return settled_mean(*sums, top, 0, len(top), begin, bottom, 0, len(bottom), bottom_low + prior.n_low)


@counting
def settle_count(own: int, count: int, prior: Prior, prior_at: int, number_at: int, m: float) -> float:
    """Round an estimate of whole counts by digits, with one of several priors."""
    digits, counts = np.empty(1, np.int64), np.empty(1, np.int64)
    digits[0], counts[0] = own, count
    return float(exact_estimate(digits, 0, counts, 0, prior, prior_at * prior.width, number_at * prior.n_width, m))


@counting
def prior_of_line(line: Array, at: int, output: int, shape: Shape, rule: FusedRule) -> Prior:
    """Give the exact prior of one output: the rule's number, or from sums of all visible rows, which begin at `at`."""
    if not rule.by_mean:
        digits, one = np.empty(FLOAT_DIGITS, np.int64), np.ones(1, np.int64)
        sign, low = float_digits(rule.prior, digits)
        return Prior(digits * sign, FLOAT_DIGITS, low, one, 1, 0)
    width, count = cell_width(shape), np.empty(shape.n_width, np.int64)
    sum_classes(line, at, shape.n_classes, width, shape.n_width, count)
    own = at + total_of(shape, output)
    return Prior(line[own : own + shape.s_width].copy(), shape.s_width, shape.s_low, count, shape.n_width, shape.n_low)


@counting
def settle_line(
    seen: Array, at: int, output: int, shape: Shape, prior: Prior, prior_at: int, number_at: int, m: float
) -> float:
    """Round an estimate of one output by the digits of sums that begin at `at`, with one of several priors."""
    width, count = cell_width(shape), np.empty(shape.n_width, np.int64)
    sum_classes(seen, at, shape.n_classes, width, shape.n_width, count)
    own = at + total_of(shape, output)
    sums = seen[own : own + shape.s_width].copy(), shape.s_low, count, shape.n_low
    return float(exact_estimate(*sums, prior, prior_at * prior.width, number_at * prior.n_width, m))


@counting
def settle_estimate(seen: Array, at: int, output: int, line: Array, above: int, shape: Shape, rule: FusedRule) -> float:
    """Round an estimate of one output by digits: sums of its category begin at `at`, sums of all rows at `above`."""
    prior, m = prior_of_line(line, above, output, shape, rule), rule.blend.shrinkage.first
    return float(settle_line(seen, at, output, shape, prior, 0, 0, m))


@inlined
def plain_pair(high: float, lower: float, exponent: int) -> tuple[float, float]:
    """Give a pair as plain numbers; the second is NaN if the digits have to decide."""
    value = plain(high, exponent)
    # A number that underflows to zero is no zero.  If the lower number underflows, its mark stays.
    known = in_range(value) and (value != 0.0 or high == 0.0)
    return value, marked(plain(lower, exponent), is_all(lower)) if known else math.nan


@inlined
def mean_pair(total: float, total_rest: float, count: float, count_rest: float) -> tuple[float, float]:
    """Give total / count as a pair, from plain pairs; it is exact only if the quotient is a float."""
    first = total / count
    product = first * count
    left = (total - product) - product_error(product, first, count)
    change = (left + (total_rest - first * count_rest)) / count
    near = first + change
    exact = (left == 0.0) & (total_rest == 0.0) & ((count_rest == 0.0) | (total == 0.0))
    return near, marked(change - (near - first), exact)


@stage
def exact_below(m: float) -> float:
    """Give the number below which sums of whole numbers and of multiples of m are not rounded."""
    scale = 1.0
    while scale < MANTISSA and math.floor(m * scale) != m * scale:
        scale *= 2.0
    return MANTISSA / scale


@inlined
def whole_prior(total: float, number: float, m: float) -> tuple[float, float]:
    """Give m * T and N for an estimate by one division; the second number is NaN if this would not be exact."""
    # The bound `exact_below` holds only if |T| is at most N, and a prior that the user gave may be any number.
    return m * total, number if 0.0 < number < MANTISSA and abs(total) <= number else math.nan


@inlined
def whole_estimate(
    own: float, count: float, m: float, weighed: float, number: float, below: float
) -> tuple[float, bool]:
    """Give (S * N + m * T) / ((n + m) * N), and tell whether only the quotient is rounded."""
    bottom = (count + m) * number
    return (own * number + weighed) / bottom, bottom < below


@kernel
def weigh_priors(prior: Prior, m: float, high: Array, lower: Array) -> None:
    """Write m * mu of each prior as a pair; priors have one N for all outputs (priors, outputs)."""
    n_outputs = high.shape[1]
    for i in range(len(high)):
        number = plain_pair(*pair(prior.number, i * prior.n_width, prior.n_width, prior.n_low))
        for k in range(n_outputs):
            total = plain_pair(*pair(prior.total, (i * n_outputs + k) * prior.width, prior.width, prior.low))
            high[i, k], lower[i, k] = 0.0, math.nan
            if number[0] != 0.0:
                mu, rest = mean_pair(total[0], total[1], number[0], number[1])
                high[i, k], lower[i, k] = weigh_prior(mu, rest, m)


@kernel
def estimate_range(
    accumulators: Array,
    shape: Shape,
    first: int,
    prior: Prior,
    n_priors: int,
    m: float,
    start: int,
    stop: int,
    out: Array,
) -> None:
    """Write the estimates of the cells [start, stop); priors repeat after `n_priors` cells."""
    line, summed, n_outputs = cell_width(shape), np.empty(shape.n_width, np.int64), shape.n_classes - first
    n_low, n_width = shape.n_low, shape.n_width
    for i in range(start, stop):
        cell, to = i * shape.n_classes * line, out[np.uint64(i)]
        sum_classes(accumulators, cell, shape.n_classes, line, n_width, summed)
        n_high, n_rest = plain_pair(*pair(summed, 0, n_width, n_low))
        above = i % n_priors
        number = plain_pair(*pair(prior.number, above * prior.n_width, prior.n_width, prior.n_low))
        for output in range(n_outputs):
            s_at = cell + total_of(shape, first + output)
            s_high, s_rest = plain_pair(*pair(accumulators, s_at, shape.s_width, shape.s_low))
            t_at = (above * n_outputs + output) * prior.width
            total = plain_pair(*pair(prior.total, t_at, prior.width, prior.low))
            near, doubtful = 0.0, True
            if number[0] != 0.0:
                mu, rest = mean_pair(total[0], total[1], number[0], number[1])
                high, lower = weigh_prior(mu, rest, m)
                near, doubtful = near_estimate(s_high, s_rest, n_high, n_rest, m, high, lower)
            if doubtful:
                at = above * n_outputs + output
                near = settle_line(accumulators, cell, first + output, shape, prior, at, above, m)
            to[output] = near


def prior_of(ratio: Ratio, shape: tuple[int, ...]) -> Prior:
    """Give exact priors in the form that kernels take: one for each cell of the last axes that they have."""
    n_axes = max(ratio.total.digits.ndim, ratio.number.digits.ndim) - 1
    axes = shape[len(shape) - n_axes :]
    total, count = ratio.total, ratio.number
    spread = np.broadcast_to(total.digits, (*axes, total.digits.shape[-1]))
    counts = np.broadcast_to(count.digits, (*axes[:-1], 1, count.digits.shape[-1]))
    # Copies can be written to, like arrays that a kernel makes, so that both have one type.
    given = (np.array(digits, np.int64, order="C").reshape(-1) for digits in (spread, counts))
    return Prior(next(given), total.digits.shape[-1], total.low, next(given), count.digits.shape[-1], count.low)


def m_estimates(accumulators: Array, layout: "Layout", first_output: int, m: float, prior: Ratio, /) -> Array:
    """Give (S + m * mu) / (n + m) of every cell; see `gpu_encode.seam.ops.Ops`."""
    n_outputs = accumulators.shape[-2] - first_output
    out = np.empty((*accumulators.shape[:-2], n_outputs), np.float64)
    lines, shape = out.reshape(-1, n_outputs), shape_of(layout, accumulators.shape[-2])
    flat, given = freeze(accumulators, np.int64).reshape(-1), prior_of(prior, out.shape)
    n_priors = len(given.total) // (given.width * n_outputs)
    parts = threads.shares(len(lines), smallest=SMALLEST_SHARE)

    def work(number: int) -> None:
        estimate_range(flat, shape, first_output, given, n_priors, float(m), *parts[number], lines)

    threads.run(work, len(parts))
    return out
