"""Encodings from running sums that are pairs of floats with bounds of their errors: m-estimates and empirical Bayes.

A row sees N and S of its category, and for blends Q around a centre c (`running_pairs`); and T, A and the Q of all
rows.  The functions below compute a pair q and a bound e.  It is proven here that the exact number F is in [q - e, q +
e].  If both ends round to the same number, F rounds to it, too.  Otherwise exact sums of pairs decide (`ties`).  Exact
code encodes all rows up to the last open one.

Let b be 2**-93, let E and E' be the NOISE of S and of T, and L and L' the N_LOST of N and of A.  All products, sums and
quotients of pairs err by less than 2**-100 of the sizes of their terms, if no term is far from one: each number is
between 2**-150 and 2**150, or zero.  With a half-life, a row sees N, S and Q times a factor D.  `scale_pair` tells what
it leaves out, and the bounds of the products have room for it.

Estimates
---------
F is (S + m T / A) / (N + m), rounded once.  mu = T / A is within (E' + abs(mu) L') / A + b abs(mu) of itself, and m mu
within m times that.  The sum of S and m mu is within E, the error of m mu, and b (abs(S) + abs(m mu)), also if it
cancels.  Its quotient by N + m is within

    e = 9/8 ((E + m (E' + abs(mu) L') / A + b (abs(S) + abs(m mu)) + abs(q) L) / (N + m) + b abs(q)),

where 9/8 has room for all rounding of e itself, and for products of errors.  If a category is not seen, the encoding is
mu, rounded once, within 9/8 of its error.

Blends
------
F is the result of the steps of `blend_one` on M = S / N, mu, N, and on V = N Q - (S - N c)**2, of the category and of
all rows, each rounded once.  Each of these is decided on its own, M like mu above.  If Q and its noise G are zero, all
targets are c, and V is zero; so it is for a single row without a weight.  Otherwise P = S - N c is within E + L abs(c)
+ 2**-100 (abs(S) + abs(N c)), which is called h, and V is within

    e = 9/8 (2**-100 (N Q + P**2) + h (2 abs(P) + h) + N G + L Q).

Sums of a few short numbers may be ties.  If no step drops anything, the first number of a pair is V, or N, rounded.
With a half-life, sums of two or three rows are often ties but for rows that have lost nearly all of their weight, which
a pair does not hold.  If only numbers of its category are open, a row is held, and fractions round these numbers.
"""

from typing import NamedTuple

import numpy as np

from cpu_fallback.compiled.border import Array, counting, inlined, separate, set_all, stage
from cpu_fallback.compiled.closed_forms import plus, times, weigh
from cpu_fallback.compiled.estimates import divide_pairs, is_all, marked, mean_pair, weigh_prior
from cpu_fallback.compiled.product_errors import product_error
from cpu_fallback.compiled.rounding import power_of_two
from cpu_fallback.compiled.row_encodings import encoding_without, has_category
from cpu_fallback.compiled.running_pairs import (
    ALL_WIDTH,
    CENTRE,
    N_LOST,
    N_LOW,
    NOISE,
    Q_LOW,
    Q_NOISE,
    S_LOW,
    Form,
    N,
    Q,
    S,
    scale_pair,
)
from cpu_fallback.compiled.shrinkage import blend_near
from cpu_fallback.compiled.ties import decide_estimate, sum_pairs, two_sum
from cpu_fallback.decay import DECLINE
from cpu_fallback.fused_rules import FusedRule

# Rows that are encoded together.
BLOCK = 1 << 9
PAIR_BOUND, QUOTIENT_BOUND = 2.0**-100, 2.0**-93
# Weights of a prior that no step left the normal numbers for.
SMALLEST_WEIGHT, LARGEST_WEIGHT = 2.0**-1000, 2.0**1000
# Rows of a tile, for each thread, that may be left to fractions.
MOST_HELD = 64
# Encodings beyond this number may be lost in a narrower type, so exact code counts them.
LARGEST = 2.0**120
# What rows need of a prior: mu; for estimates m mu as a pair and the noise of it, for blends V and N of all rows;
# whether these are known; and with a half-life the factor of all sums.
MU, MU_KNOWN, PRIOR_WIDTH = 0, 1, 6
PART, PART_LOW, PART_NOISE, FACTOR = 2, 3, 4, 5
SPREAD, WEIGHT, SPREAD_KNOWN = 2, 3, 4
# Where these numbers of a block begin.
MU_KNOWN_AT, PART_AT, PART_LOW_AT, PART_NOISE_AT = (np.uint64(k * BLOCK) for k in range(1, FACTOR))


class Priors(NamedTuple):
    """Sums of the rows of each prior, number by number, the same times the prior's factor, and what rows need of them.

    Without a half-life, there are no factors.
    """

    sums: Array
    scaled: Array
    forms: Array


class Held(NamedTuple):
    """Rows that fractions have to encode: rank in the tile, and prior, V and N of all rows; last is their number.

    Only with a half-life are there such rows.
    """

    ranks: Array
    mu: Array
    spread: Array
    weight: Array


def room_to_hold() -> Held:
    """Give room for the rows of a tile."""
    return Held(np.zeros(MOST_HELD + 1, np.int64), *np.zeros((3, MOST_HELD)))


@inlined
def ends_of(high: float, low: float, error: float) -> tuple[float, bool]:
    """Give the double to which all numbers within `error` of a pair round, and tell whether there is one."""
    below, above = high + (low - error), high + (low + error)
    inside = (abs(below) >= 2.0**-900) & (abs(below) <= 2.0**900)
    return below, (below == above) & (inside | (error == 0.0))


@inlined
def mean_of(
    total: float, total_low: float, noise: float, count: float, count_low: float, lost: float
) -> tuple[float, float, float]:
    """Give the quotient of two pairs as a pair, and the bound of its error."""
    high, low = divide_pairs(total, total_low, count, count_low)
    return high, low, 1.125 * ((noise + abs(high) * lost) / count + abs(high) * QUOTIENT_BOUND)


@inlined
def spread_of(
    total: float,
    total_low: float,
    noise: float,
    count: float,
    count_low: float,
    count_lost: float,
    around: float,
    around_low: float,
    around_noise: float,
    centre: float,
) -> tuple[float, float, bool]:
    """Give V and N, each rounded once, and tell whether both are certain."""
    whole, whole_low = weigh(count, count_low, centre)
    # What is left of a difference that nearly cancels has a large lower number, which `two_sum` makes small again.
    apart, apart_low = two_sum(*plus(total, total_low, -whole, -whole_low))
    moved = noise + count_lost * abs(centre) + PAIR_BOUND * (abs(total) + abs(whole))
    product, product_low = times(count, count_low, around, around_low)
    square, square_low = times(apart, apart_low, apart, apart_low)
    spread, rest = two_sum(product, -square)
    low, low_lost = two_sum(product_low, -square_low)
    rest, lost = two_sum(rest, low)
    spread, spread_low = two_sum(spread, rest)
    error = PAIR_BOUND * (product + square) + moved * (2.0 * abs(apart) + moved)
    error += count * around_noise + count_lost * around
    found, sure = ends_of(spread, spread_low, 1.125 * error)
    exact = (low_lost == 0.0) & (lost == 0.0) & (noise == 0.0) & (around_noise == 0.0) & (count_lost == 0.0)
    exact &= (total_low == 0.0) & (whole_low == 0.0) & (apart_low == 0.0) & (around_low == 0.0) & (count_low == 0.0)
    exact &= (spread >= 2.0**-900) & (spread <= 2.0**900)
    weight, weight_sure = ends_of(count, count_low, 1.125 * count_lost)
    alike = (around == 0.0) & (around_noise == 0.0)
    return (
        0.0 if alike else spread if exact else found,
        count if count_lost == 0.0 else weight,
        (sure | exact | alike) & (weight_sure | (count_lost == 0.0)),
    )


@inlined
def moments_of(sums: Array, at: np.uint64, step: np.uint64, weighted: bool) -> tuple[float, bool, float, float, bool]:
    """Give the mean of sums, V and N, and tell whether the mean, and whether both others, are certain."""
    total, total_low, noise = sums[at], sums[at + np.uint64(S_LOW) * step], sums[at + np.uint64(NOISE) * step]
    count, count_low = sums[at + np.uint64(N) * step], sums[at + np.uint64(N_LOW) * step]
    lost, centre = sums[at + np.uint64(N_LOST) * step], sums[at + np.uint64(CENTRE) * step]
    q, q_low = sums[at + np.uint64(Q) * step], sums[at + np.uint64(Q_LOW) * step]
    q_noise = sums[at + np.uint64(Q_NOISE) * step]
    spread, n, sure = spread_of(total, total_low, noise, count, count_low, lost, q, q_low, q_noise, centre)
    mean, mean_sure = ends_of(*mean_of(total, total_low, noise, count, count_low, lost))
    single = (count == 1.0) & (not weighted)
    return mean, mean_sure, 0.0 if single else spread, n, sure | single


@stage
def factor_of(step: int) -> float:
    """Give the factor of the sums that a step sees."""
    return DECLINE[step & 7] * power_of_two(32 - ((step >> 3) & 63))


@stage
def scale_sum(
    high: Array, low: Array, noise: Array, factors: Array, to_high: Array, to_low: Array, to_noise: Array
) -> None:
    """Multiply the pairs of one of the sums of some rows by the factor of each row."""
    for i in range(len(factors)):
        to_high[i], to_low[i], lost = scale_pair(high[i], low[i], factors[i])
        to_noise[i] = noise[i] * factors[i] + lost


@stage
def scale_rows(sums: Array, at: int, step: int, factors: Array, form: Form, out: Array, to: int, out_step: int) -> None:
    """Write the sums of some rows, number by number, times the factor of each row."""
    n = len(factors)
    for high in range(S, Q + 3 if form.blends else Q, 3):
        parts = at + high * step, at + (high + 1) * step, at + (high + 2) * step
        ends = to + high * out_step, to + (high + 1) * out_step, to + (high + 2) * out_step
        scale_sum(
            *(sums[parts[0] : parts[0] + n], sums[parts[1] : parts[1] + n], sums[parts[2] : parts[2] + n], factors),
            *(out[ends[0] : ends[0] + n], out[ends[1] : ends[1] + n], out[ends[2] : ends[2] + n]),
        )
    for i in range(n if form.blends else 0):
        out[to + CENTRE * out_step + i] = sums[at + CENTRE * step + i]


@separate
def write_priors(priors: Priors, steps: Array, first: int, last: int, form: Form) -> None:
    """Write what rows need of the priors [first, last); with a half-life, each has a step."""
    sums, forms, rule, step = priors.sums, priors.forms, form.rule, np.uint64(len(priors.forms) // PRIOR_WIDTH)
    m, by_mean, prior = rule.blend.shrinkage.first, rule.by_mean, rule.prior
    constant, constant_low = weigh(prior, 0.0, m)
    for i in range(first, last):
        at = np.uint64(i)
        weight, lost = sums[at + np.uint64(N) * step], sums[at + np.uint64(N_LOST) * step]
        mean, mean_low, noise = mean_of(
            *(sums[at], sums[at + np.uint64(S_LOW) * step], sums[at + np.uint64(NOISE) * step]),
            *(weight, sums[at + np.uint64(N_LOW) * step], lost),
        )
        found, sure = ends_of(mean, mean_low, noise)
        found, sure = (np.nan, True) if weight == 0.0 else (found, sure)
        part, part_low = weigh(mean, mean_low, m)
        forms[at], forms[at + step] = found if by_mean else prior, 1.0 if sure | (not by_mean) else 0.0
        forms[at + np.uint64(PART) * step] = part if by_mean else constant
        forms[at + np.uint64(PART_LOW) * step] = part_low if by_mean else constant_low
        forms[at + np.uint64(PART_NOISE) * step] = m * noise if by_mean else 0.0
    if form.decays:
        factors = forms[FACTOR * np.int64(step) + first : FACTOR * np.int64(step) + last]
        for i in range(len(factors)):
            factors[i] = factor_of(steps[first + i])
        if form.blends:
            scale_rows(sums, first, np.int64(step), factors, form, priors.scaled, first, np.int64(step))
    for i in range(first, last if form.blends else first):
        at = np.uint64(i)
        _, _, spread, n, sure = moments_of(priors.scaled, at, step, form.weighted)
        forms[at + np.uint64(SPREAD) * step], forms[at + np.uint64(WEIGHT) * step] = spread, n
        forms[at + np.uint64(SPREAD_KNOWN) * step] = 1.0 if sure else 0.0


@stage
def estimate_block(seen: Array, first: int, size: int, around: Array, m: float, values: Array, sure: Array) -> None:
    """Write the estimates of a block of rows, and which of them are certain."""
    for i in range(len(values)):
        row, step, k = np.uint64(first + i), np.uint64(size), np.uint64(i)
        n, n_low = seen[row + np.uint64(N) * step], seen[row + np.uint64(N_LOW) * step]
        own, own_low, noise = seen[row], seen[row + np.uint64(S_LOW) * step], seen[row + np.uint64(NOISE) * step]
        part, part_low = around[k + PART_AT], around[k + PART_LOW_AT]
        top, top_low = plus(own, own_low, part, part_low)
        bottom, bottom_low = plus(n, n_low, m, 0.0)
        found, found_low = divide_pairs(top, top_low, bottom, bottom_low)
        noise += around[k + PART_NOISE_AT] + (abs(own) + abs(part)) * QUOTIENT_BOUND
        noise += abs(found) * seen[row + np.uint64(N_LOST) * step]
        values[i], sure[i] = ends_of(found, found_low, 1.125 * (noise / bottom + abs(found) * QUOTIENT_BOUND))


@inlined
def is_weight(other: float) -> bool:
    """Tell whether no step that gave a prior's weight left the normal numbers."""
    return (other == 0.0) | ((other >= SMALLEST_WEIGHT) & (other <= LARGEST_WEIGHT))


@inlined
def weight_of_prior(spread: float, n: float, whole: float, n_all: float) -> float:
    """Give the weight of the prior of a blend as `blend_one` does."""
    return 0.0 if spread == 0.0 else spread / n / n / (whole / n_all / n_all * n)


@stage
def blend_block(
    seen: Array,
    first: int,
    size: int,
    around: Array,
    weighted: bool,
    means: Array,
    values: Array,
    sure: Array,
) -> None:
    """Write the means of a block of rows, the weights of their priors, and which blends are certain."""
    for i in range(len(values)):
        row, k = np.uint64(first + i), np.uint64(i)
        means[i], mean_known, own, n, own_sure = moments_of(seen, row, np.uint64(size), weighted)
        values[i] = weight_of_prior(own, n, around[k + PART_AT], around[k + PART_LOW_AT])
        known = own_sure & (around[k + PART_NOISE_AT] > 0.0) & is_weight(values[i])
        sure[i] = known & mean_known & (around[k + MU_KNOWN_AT] > 0.0)


@inlined
def is_near_one(value: float, scale: float) -> bool:
    """Tell whether a number is zero, or within 2**100 of one; a scale makes this range larger at its lower end."""
    return (value == 0.0) | ((abs(value) > 2.0**-100 * scale) & (abs(value) < 2.0**100))


@stage
def settle_mean(sums: Array, at: int, step: int) -> tuple[float, bool]:
    """Give S / N, by an exact sum if its bound leaves it open, and tell whether it is certain."""
    total, count = sums[at], sums[at + N * step]
    total_low, noise = sums[at + S_LOW * step], sums[at + NOISE * step]
    count_low, lost = sums[at + N_LOW * step], sums[at + N_LOST * step]
    value, sure = ends_of(*mean_of(total, total_low, noise, count, count_low, lost))
    if sure:
        return value, True
    total_low, count_low = marked(total_low, noise == 0.0), marked(count_low, lost == 0.0)
    value, doubtful = decide_estimate(total, total_low, count, count_low, 0.0, 0.0, 0.0)
    return value, not doubtful


@inlined
def exact_product(high: float, low: float, factor: float) -> tuple[float, float]:
    """Multiply a marked pair by a number; the lower number of the product is marked, or NaN far from one."""
    product, below = high * factor, low * factor
    errors = product_error(product, high, factor), product_error(below, low, factor)
    top, rest, exact = sum_pairs(product, errors[0], below, errors[1])
    near_one = is_near_one(high, 1.0) & is_near_one(low, 2.0**-100) & is_near_one(factor, 1.0)
    return top, marked(rest, exact & is_all(low)) if near_one else np.nan


@stage
def settle_spread(sums: Array, at: int, step: int, weighted: bool) -> tuple[float, float, bool]:
    """Give V and N, and tell whether both are certain, by exact steps if the bound leaves V open."""
    _, _, spread, n, sure = moments_of(sums, np.uint64(at), np.uint64(step), weighted)
    noise = sums[at + NOISE * step] + sums[at + Q_NOISE * step] + sums[at + N_LOST * step]
    if sure or noise != 0.0 or sums[at + N_LOW * step] != 0.0:
        return spread, n, sure
    whole, whole_low = exact_product(n, 0.0, sums[at + CENTRE * step])
    apart, apart_low, exact = sum_pairs(sums[at], sums[at + S_LOW * step], -whole, -whole_low)
    square, square_low = exact_product(apart, apart_low, apart)
    product, product_low = exact_product(sums[at + Q * step], sums[at + Q_LOW * step], n)
    spread, _, known = sum_pairs(product, product_low, -square, -square_low)
    all_known = is_all(whole_low) & is_all(square_low) & is_all(product_low) & (apart_low == 0.0)
    return spread, n, known & exact & all_known & (spread >= 0.0)


@stage
def settle_from_products(
    s: float, s_low: float, n: float, t: float, t_low: float, a: float, m: float
) -> tuple[float, bool]:
    """Give (S A + m T) / ((N + m) A), and tell whether it is certain; T / A may have endless digits, these have not."""
    own, own_low = exact_product(s, s_low, a)
    prior, prior_low = exact_product(t, t_low, m)
    seen, rest = two_sum(n, m)
    count, count_low = exact_product(seen, rest, a)
    value, doubtful = decide_estimate(own, own_low, count, count_low, 0.0, prior, prior_low)
    return value, not doubtful


@stage
def settle_estimate(
    seen: Array, row: int, size: int, prior: Array, at: int, step: int, rule: FusedRule
) -> tuple[float, bool]:
    """Give an m-estimate that was left open, and tell whether it is certain."""
    m, mu, rest, total_low = rule.blend.shrinkage.first, rule.prior, 0.0, 0.0
    if rule.by_mean:
        total_low = marked(prior[at + S_LOW * step], prior[at + NOISE * step] == 0.0)
        count_low = marked(prior[at + N_LOW * step], prior[at + N_LOST * step] == 0.0)
        mu, rest = mean_pair(prior[at], total_low, prior[at + N * step], count_low)
    part, part_low = weigh_prior(mu, rest, m)
    own_low = marked(seen[row + S_LOW * size], seen[row + NOISE * size] == 0.0)
    count_low = marked(seen[row + N_LOW * size], seen[row + N_LOST * size] == 0.0)
    value, doubtful = decide_estimate(seen[row], own_low, seen[row + N * size], count_low, m, part, part_low)
    whole = seen[row + N_LOW * size] == 0.0 and prior[at + N_LOW * step] == 0.0
    if doubtful and rule.by_mean and whole:
        exact = seen[row + N_LOST * size] == 0.0 and prior[at + N_LOST * step] == 0.0
        value, known = settle_from_products(
            seen[row], own_low, seen[row + N * size], prior[at], total_low, prior[at + N * step], m
        )
        return value, known and exact
    return value, not doubtful


@stage
def spread_priors(prior_of: Array, priors: Array, width: int, around: Array) -> None:
    """Write what each row needs of its prior, number by number."""
    step = len(priors) // PRIOR_WIDTH
    for k in range(width):
        numbers, to = priors[k * step : (k + 1) * step], around[k * BLOCK : k * BLOCK + len(prior_of)]
        if prior_of[0] == prior_of[len(prior_of) - 1]:
            set_all(to, numbers[prior_of[0]])
        else:
            for i in range(len(to)):
                to[i] = numbers[np.uint64(prior_of[i])]


@stage
def finish_block(
    lines: Array, n_lines: int, count: Array, form: Form, around: Array, means: Array, values: Array, counted: Array
) -> None:
    """Write the encodings of rows, from the prior's weights if they are blends, and which of them count."""
    rule, least = form.rule, form.rule.blend.least
    for i in range(len(values)):
        counts = (count[i] > 0.0) & (count[i] >= least)
        code = lines[i] if lines[i] < n_lines - 2 else lines[i] - n_lines
        if code < 0:
            counts &= has_category(code, rule)
        if not counts:
            values[i] = encoding_without(code, around[i], rule)
        elif form.blends:
            values[i] = blend_near(around[i], means[i], 1.0, values[i])
        counted[i] = counts


@stage
def hold_row(held: Held, rank: int, mu: float, spread: float, weight: float) -> bool:
    """Hold a row; tell whether there is room for it."""
    count = held.ranks[MOST_HELD]
    if count == MOST_HELD:
        return False
    held.ranks[count], held.ranks[MOST_HELD] = rank, count + 1
    held.mu[count], held.spread[count], held.weight[count] = mu, spread, weight
    return True


class OpenRow(NamedTuple):
    """A row that its block left open: its rank in the tile, its prior, and where its sums are.

    They are at `row` of what rows see, and times its factor at `place` of the scaled sums, number by number.
    """

    rank: int
    prior: int
    seen: Array
    row: int
    size: int
    scaled: Array
    place: int
    step: int


@stage
def settle_blend(open_row: OpenRow, priors: Priors, form: Form, held: Held) -> tuple[float, bool]:
    """Give a blend that its block left open, and tell whether it is certain, or the row is held."""
    rank, prior, seen, row, size, scaled, place, step = open_row
    prior_step, mu, known = len(priors.forms) // PRIOR_WIDTH, form.rule.prior, True
    if form.rule.by_mean:
        mu, known = settle_mean(priors.sums, prior, prior_step)
    whole, n_all, all_known = settle_spread(priors.scaled, prior, prior_step, form.weighted)
    own, n, own_known = settle_spread(scaled, place, step, form.weighted)
    mean, mean_known = settle_mean(seen, row, size)
    other = weight_of_prior(own, n, whole, n_all)
    sure = own_known & mean_known & is_weight(other)
    if form.decays and known and all_known and not sure:
        return 0.0, hold_row(held, rank, mu, whole, n_all)
    return blend_near(mu, mean, 1.0, other), known & all_known & sure


@stage
def settle_row(
    open_row: OpenRow, priors: Priors, code: int, counts: bool, form: Form, held: Held
) -> tuple[float, bool]:
    """Give the encoding of a row that its block left open, and tell whether it is certain."""
    rule, mu, known, prior_step = form.rule, form.rule.prior, True, len(priors.forms) // PRIOR_WIDTH
    prior = open_row.prior
    if counts and form.blends:
        return settle_blend(open_row, priors, form, held)
    if counts:
        return settle_estimate(open_row.scaled, open_row.place, open_row.step, priors.sums, prior, prior_step, rule)
    if rule.by_mean:
        some = priors.sums[prior + N * prior_step] > 0.0
        mu, known = settle_mean(priors.sums, prior, prior_step) if some else (np.nan, True)
    return encoding_without(code, mu, rule), known


class BlockRoom(NamedTuple):
    """Scratch space for a block: what its rows need of priors, their means and encodings, and what is known of them.

    With a half-life, it also has the sums that they see, number by number, times their factors.
    """

    scaled: Array
    around: Array
    means: Array
    values: Array
    sure: Array
    counted: Array


@counting
def room_for_block() -> BlockRoom:
    """Give room for a block.

    Rows of one array would look to the compiler as if they might overlap, so that it would not use vectors.
    """
    scaled, around = np.zeros(ALL_WIDTH * BLOCK), np.empty(PRIOR_WIDTH * BLOCK)
    means, values = np.empty(BLOCK), np.empty(BLOCK)
    return BlockRoom(scaled, around, means, values, np.empty(BLOCK, np.bool_), np.empty(BLOCK, np.bool_))


@stage
def encode_block(
    seen: Array,
    begin: int,
    size: int,
    prior_of: Array,
    priors: Priors,
    lines: Array,
    n_lines: int,
    ranks: Array,
    burned: int,
    form: Form,
    room: BlockRoom,
    held: Held,
) -> int:
    """Write the encodings of a block of rows to its room; give the rank of the last open row plus one, or zero.

    `seen` has what the rows from `begin` on see.  Rows of ranks below `burned` get NaN.
    """
    around, means, n, last = room.around, room.means, len(lines), 0
    values, sure, counted = room.values[:n], room.sure[:n], room.counted[:n]
    spread_priors(prior_of, priors.forms, PRIOR_WIDTH if form.decays else FACTOR, around)
    sums, at, step = (room.scaled, 0, BLOCK) if form.decays else (seen, begin, size)
    if form.decays:
        scale_rows(seen, begin, size, around[FACTOR * BLOCK : FACTOR * BLOCK + n], form, sums, 0, BLOCK)
    if form.blends:
        blend_block(sums, at, step, around, form.weighted, means, values, sure)
    else:
        estimate_block(sums, at, step, around, form.rule.blend.shrinkage.first, values, sure)
    finish_block(lines, n_lines, seen[N * size + begin : N * size + begin + n], form, around, means, values, counted)
    for i in range(n):
        known = sure[i] if counted[i] else around[i + MU_KNOWN_AT] > 0.0
        if ranks[i] >= burned and (not known or abs(values[i]) > LARGEST):
            code = lines[i] if lines[i] < n_lines - 2 else lines[i] - n_lines
            open_row = OpenRow(ranks[i], prior_of[i], seen, begin + i, size, sums, at + i, step)
            values[i], known = settle_row(open_row, priors, code, counted[i], form, held)
            if not (known and abs(values[i]) <= LARGEST):
                values[i], last = 0.0, ranks[i] + 1
        if ranks[i] < burned:
            values[i] = np.nan
    return last
