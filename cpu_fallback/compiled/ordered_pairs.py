"""Encodings in an order from pairs of floats with bounds of their errors: m-estimates and empirical Bayes.

A row sees N and S of its category, and for blends Q around a centre c (`running_pairs`); and T, A and the Q of all
rows.  The functions below compute a pair q and a bound e.  It is proven here that the exact number F is in [q - e, q +
e].  If both ends round to the same number, F rounds to it, too.  Otherwise exact sums of pairs decide (`ties`).  Exact
code encodes all rows up to the last open one.

Let b be 2**-103 (rows + 1024), or without weights 2**-93, and let E and E' be the NOISE of S and of T.  All products,
sums and quotients of pairs err by less than 2**-100 of the sizes of their terms, if no term is far from one: each
number is between 2**-150 and 2**150, or zero.  N and A are within b / 2 of themselves.

Estimates
---------
F is (S + m T / A) / (N + m), rounded once.  mu = T / A is within E' / A + b abs(mu) of itself, and m mu within m E' / A
+ b abs(m mu).  The sum of S and m mu is within E + m E' / A + b (abs(S) + abs(m mu)), also if it cancels.  Its quotient
by N + m is within

    e = 9/8 ((E + m E' / A + b (abs(S) + abs(m mu))) / (N + m) + b abs(q)),

where 9/8 has room for all rounding of e itself, and for products of errors.  If a category is not seen, the encoding is
mu, rounded once, within 9/8 (E' / A + b abs(mu)).

Blends
------
F is the result of the steps of `blend_one` on M = S / N, mu, N, and on V = N Q - (S - N c)**2, of the category and of
all rows, each rounded once.  Each of these is decided on its own, M like mu above.  If Q and its noise G are zero, all
targets are c, and V is zero.  Otherwise, with the N_LOST L of N, P = S - N c is within E + L abs(c) + 2**-100 (abs(S) +
abs(N c)), which is called h, and V is within

    e = 9/8 (2**-100 (N Q + P**2) + h (2 abs(P) + h) + N G + L Q).

Sums of a few short numbers may be ties.  If no step drops anything, the first number of a pair is V, or N, rounded.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.compiled.border import (
    Array,
    Numbers,
    RowParts,
    freeze,
    inlined,
    kernel,
    set_all,
    stage,
)
from cpu_fallback.compiled.checkpoints import END, Walk, cut_order, edges_of, enter, leg, pause
from cpu_fallback.compiled.closed_forms import plus, times, weigh
from cpu_fallback.compiled.estimates import divide_pairs, is_all, marked, mean_pair, weigh_prior
from cpu_fallback.compiled.ordered_digits import run_for_rows
from cpu_fallback.compiled.product_errors import product_error
from cpu_fallback.compiled.row_encodings import Destination, encoding_without, flag, has_category, write
from cpu_fallback.compiled.running_pairs import (
    BLEND_WIDTH,
    CENTRE,
    ESTIMATE_WIDTH,
    N_LOST,
    N_LOW,
    NOISE,
    Q_LOW,
    Q_NOISE,
    S_LOW,
    WEIGHED_WIDTH,
    Form,
    N,
    Q,
    add_row,
    is_moderate,
    number_of,
    see,
    see_all,
)
from cpu_fallback.compiled.shrinkage import blend_near
from cpu_fallback.compiled.ties import decide_estimate, sum_pairs, two_sum
from cpu_fallback.fused_rules import EMPIRICAL_BAYES, M_ESTIMATE, FusedRule
from cpu_fallback.memory import empty, zeros
from cpu_fallback.row_numbers import Order, Permutation, TimeOrder

if TYPE_CHECKING:
    from cpu_fallback.types import Rows

# Rows at a time; a time with more rows is one tile.  Rows whose lines are read together, and that are encoded together.
TILE = 1 << 15
FETCHED, BLOCK = 1 << 8, 1 << 9
ROW_BOUND, OTHER_STEPS, PAIR_BOUND = 2.0**-103, 1024, 2.0**-100
# Encodings beyond this number may be lost in a narrower type, so exact code counts them.
LARGEST = 2.0**120
LANES = 4
# If rows of a later tile stay open, exact code encodes all rows.
FEW = 2
# Where the numbers of a block's priors begin.
S_LOW_AT, NOISE_AT, N_AT, N_LOW_AT = (np.uint64(k * BLOCK) for k in (S_LOW, NOISE, N, N_LOW))


class Tile(NamedTuple):
    """What the rows of a tile see, number by number, the lines of their categories, and their priors by number."""

    seen: Array
    lines: Array
    prior_of: Array
    priors: Array


@stage
def fetch_rows(rows: RowParts, numbers: Array, form: Form, sums: Array, n_lines: int, lines: Array) -> bool:
    """Write the line of each row's category, and read all of its numbers, in a loop in which cache misses overlap."""
    any_number, any_word = 0.0, np.uint64(0)
    for i in range(len(lines)):
        number = np.uint64(numbers[i])
        code = np.int64(rows.codes[number])
        lines[i] = code + n_lines if code < 0 else code
        any_number += sums[np.uint64(lines[i] * form.width + N)]
        any_word |= np.uint64(rows.numbers.target[number])
        if form.weighted:
            any_word |= np.uint64(rows.numbers.weight[number])
    # This is always true, but the compiler has to read the numbers for it.
    return (any_number == any_number) | (any_word == np.uint64(1))  # noqa: PLR0124


@stage
def add_time(numbers: Array, given: Numbers, begin: int, form: Form, sums: Array, lines: Array) -> bool:
    """Add the rows of a time, which begin with a tile's row `begin`; tell whether all of their numbers are in range."""
    known, everything = True, len(sums) - form.lanes * form.width
    for k in range(len(numbers)):
        number, weight, error = np.uint64(numbers[k]), 1.0, 0.0
        v = number_of(given.target[number], given.target_kind)
        product = v
        if form.weighted:
            weight = number_of(given.weight[number], given.weight_kind)
            product = weight * v
            error = product_error(product, weight, v)
            known &= is_moderate(weight) & (weight >= 0.0) & is_moderate(product)
        known &= is_moderate(v)
        at = lines[k] * form.width
        add_row(v, weight, product, error, form, sums, at, at)
        lane = everything + ((begin + k) & (form.lanes - 1)) * form.width
        add_row(v, weight, product, error, form, sums, lane, everything)
    return known


@stage
def pass_rows(
    numbers: Array, ties: Array, given: Numbers, begin: int, prior: int, form: Form, sums: Array, tile: Tile
) -> bool:
    """Let rows, which begin with the tile's row `begin`, see their lines, then add them, time by time.

    It tells whether all numbers are in range.
    """
    known, i, size = True, 0, len(tile.lines)
    while i < len(numbers):
        end = i + 1
        while len(ties) and end < len(numbers) and ties[end] == ties[i]:
            end += 1
        for row in range(begin + i, begin + end):
            see(sums, tile.lines[np.uint64(row)] * form.width, form, tile.seen, row, size)
            tile.prior_of[np.uint64(row)] = prior
        known &= add_time(numbers[i:end], given, begin + i, form, sums, tile.lines[begin + i : begin + end])
        i = end
    return known


@kernel
def hand_out_pairs(
    rows: RowParts, numbers: Array, start: int, stop: int, walk: Walk, form: Form, sums: Array, tile: Tile
) -> tuple[bool, int]:
    """Let the ranks [start, stop), whose rows are `numbers`, see sums, then add them.

    It tells whether all numbers are in range, and gives the number of the last prior; prior 0 is that of the last tile.
    """
    ties, known, at, prior = walk.ties, True, start, 0
    everything = len(sums) - form.lanes * form.width
    while at < stop:
        if at == walk.state[END]:
            prior += 1
            if enter(walk, at):
                see_all(walk.held, 0, form, tile.priors, prior * WEIGHED_WIDTH)
            else:
                see_all(sums, everything, form, tile.priors, prior * WEIGHED_WIDTH)
        pause(walk, at)
        end = min(leg(walk, at, stop), at + FETCHED)
        while len(ties) and end < stop and ties[end] == ties[end - 1]:
            end += 1
        begin, last = at - start, end - start
        mine, lines = numbers[begin:last], tile.lines[begin:last]
        known &= fetch_rows(rows, mine, form, sums, everything // form.width, lines)
        here = ties[at:end] if len(ties) else ties
        known &= pass_rows(mine, here, rows.numbers, begin, prior, form, sums, tile)
        at = end
        pause(walk, at)
    return known, prior


@inlined
def ends_of(high: float, low: float, error: float) -> tuple[float, bool]:
    """Give the double to which all numbers within `error` of a pair round, and tell whether there is one."""
    below, above = high + (low - error), high + (low + error)
    inside = (abs(below) >= 2.0**-900) & (abs(below) <= 2.0**900)
    return below, (below == above) & (inside | (error == 0.0))


@inlined
def mean_of(
    total: float, total_low: float, noise: float, count: float, count_low: float, bound: float
) -> tuple[float, float, float]:
    """Give the quotient of two pairs as a pair, and the bound of its error."""
    high, low = divide_pairs(total, total_low, count, count_low)
    return high, low, 1.125 * (noise / count + abs(high) * bound)


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
    bound: float,
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
    weight, weight_sure = ends_of(count, count_low, count * bound)
    found = spread if exact else found
    alike = (around == 0.0) & (around_noise == 0.0)
    return (
        0.0 if alike else found,
        count if count_lost == 0.0 else weight,
        (sure | exact | alike) & (weight_sure | (count_lost == 0.0)),
    )


@inlined
def moments_of(sums: Array, at: np.uint64, step: np.uint64, bound: float) -> tuple[float, bool, float, float, bool]:
    """Give the mean of sums, V and N, and tell whether the mean, and whether both others, are certain."""
    total, total_low, noise = sums[at], sums[at + np.uint64(S_LOW) * step], sums[at + np.uint64(NOISE) * step]
    count, count_low = sums[at + np.uint64(N) * step], sums[at + np.uint64(N_LOW) * step]
    lost, centre = sums[at + np.uint64(N_LOST) * step], sums[at + np.uint64(CENTRE) * step]
    q, q_low = sums[at + np.uint64(Q) * step], sums[at + np.uint64(Q_LOW) * step]
    q_noise = sums[at + np.uint64(Q_NOISE) * step]
    spread, n, sure = spread_of(total, total_low, noise, count, count_low, lost, q, q_low, q_noise, centre, bound)
    mean, mean_sure = ends_of(*mean_of(total, total_low, noise, count, count_low, bound))
    return mean, mean_sure, spread, n, sure


@stage
def estimate_block(
    seen: Array,
    first: int,
    size: int,
    around: Array,
    bound: float,
    rule: FusedRule,
    mu: Array,
    values: Array,
    mean_known: Array,
    sure: Array,
) -> None:
    """Write priors and estimates of a block of rows, and which of both are certain."""
    m, by_mean, prior = rule.blend.shrinkage.first, rule.by_mean, rule.prior
    constant, constant_low = weigh(prior, 0.0, m)
    for i in range(len(values)):
        row, step, k = np.uint64(first + i), np.uint64(size), np.uint64(i)
        n, n_low = seen[row + np.uint64(N) * step], seen[row + np.uint64(N_LOW) * step]
        own, own_low, noise = seen[row], seen[row + np.uint64(S_LOW) * step], seen[row + np.uint64(NOISE) * step]
        weight, mean_noise = around[k + N_AT], around[k + NOISE_AT] / around[k + N_AT]
        mean, mean_low = divide_pairs(around[k], around[k + S_LOW_AT], weight, around[k + N_LOW_AT])
        mean_found, mean_sure = ends_of(mean, mean_low, 1.125 * (mean_noise + abs(mean) * bound))
        part, part_low = weigh(mean, mean_low, m)
        part, part_low = part if by_mean else constant, part_low if by_mean else constant_low
        noise += m * mean_noise if by_mean else 0.0
        top, top_low = plus(own, own_low, part, part_low)
        bottom, bottom_low = plus(n, n_low, m, 0.0)
        found, found_low = divide_pairs(top, top_low, bottom, bottom_low)
        noise += (abs(own) + abs(part)) * bound
        values[i], sure[i] = ends_of(found, found_low, 1.125 * (noise / bottom + abs(found) * bound))
        mean_found, mean_sure = (np.nan, True) if weight == 0.0 else (mean_found, mean_sure)
        mu[i], mean_known[i] = mean_found if by_mean else prior, mean_sure | (not by_mean)


@inlined
def is_weight(other: float) -> bool:
    """Tell whether no step that gave a prior's weight left the normal numbers."""
    return (other == 0.0) | ((other >= 2.0**-1000) & (other <= 2.0**1000))


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
    bound: float,
    rule: FusedRule,
    mu: Array,
    means: Array,
    values: Array,
    mu_known: Array,
    sure: Array,
) -> None:
    """Write priors and means of a block of rows, the prior's weights, and which priors, or all, are certain."""
    by_mean, prior = rule.by_mean, rule.prior
    for i in range(len(values)):
        row, k = np.uint64(first + i), np.uint64(i)
        means[i], mean_known, own, n, own_sure = moments_of(seen, row, np.uint64(size), bound)
        mean, mean_sure, whole, n_all, all_sure = moments_of(around, k, np.uint64(BLOCK), bound)
        mean, mean_sure = (np.nan, True) if around[k + N_AT] == 0.0 else (mean, mean_sure)
        mu[i], mu_known[i] = mean if by_mean else prior, mean_sure | (not by_mean)
        values[i] = weight_of_prior(own, n, whole, n_all)
        known = own_sure & all_sure & is_weight(values[i])
        sure[i] = known & mean_known & mu_known[i]


@inlined
def is_near_one(value: float, scale: float) -> bool:
    """Tell whether a number is zero, or within 2**100 of one; a scale makes this range larger at its lower end."""
    return (value == 0.0) | ((abs(value) > 2.0**-100 * scale) & (abs(value) < 2.0**100))


@stage
def settle_mean(sums: Array, at: int, step: int) -> tuple[float, bool]:
    """Give S / N where it was left open, and tell whether it is certain."""
    total_low = marked(sums[at + S_LOW * step], sums[at + NOISE * step] == 0.0)
    count_low = marked(sums[at + N_LOW * step], sums[at + N_LOST * step] == 0.0)
    value, doubtful = decide_estimate(sums[at], total_low, sums[at + N * step], count_low, 0.0, 0.0, 0.0)
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
def settle_spread(sums: Array, at: int, step: int, bound: float) -> tuple[float, float, bool]:
    """Give V and N, and tell whether both are certain, by exact steps if the bound leaves V open."""
    _, _, spread, n, sure = moments_of(sums, np.uint64(at), np.uint64(step), bound)
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
def settle_estimate(seen: Array, row: int, size: int, around: Array, i: int, rule: FusedRule) -> tuple[float, bool]:
    """Give an m-estimate that was left open, and tell whether it is certain."""
    m, mu, rest, total_low = rule.blend.shrinkage.first, rule.prior, 0.0, 0.0
    if rule.by_mean:
        total_low = marked(around[i + S_LOW * BLOCK], around[i + NOISE * BLOCK] == 0.0)
        count_low = marked(around[i + N_LOW * BLOCK], around[i + N_LOST * BLOCK] == 0.0)
        mu, rest = mean_pair(around[i], total_low, around[i + N * BLOCK], count_low)
    prior, prior_low = weigh_prior(mu, rest, m)
    own_low = marked(seen[row + S_LOW * size], seen[row + NOISE * size] == 0.0)
    count_low = marked(seen[row + N_LOW * size], seen[row + N_LOST * size] == 0.0)
    value, doubtful = decide_estimate(seen[row], own_low, seen[row + N * size], count_low, m, prior, prior_low)
    whole = seen[row + N_LOW * size] == 0.0 and around[i + N_LOW * BLOCK] == 0.0
    if doubtful and rule.by_mean and whole:
        exact = seen[row + N_LOST * size] == 0.0 and around[i + N_LOST * BLOCK] == 0.0
        value, known = settle_from_products(
            seen[row], own_low, seen[row + N * size], around[i], total_low, around[i + N * BLOCK], m
        )
        return value, known and exact
    return value, not doubtful


@stage
def spread_priors(prior_of: Array, priors: Array, around: Array) -> None:
    """Write the numbers of each row's prior, number by number."""
    if prior_of[0] == prior_of[len(prior_of) - 1]:
        for k in range(WEIGHED_WIDTH):
            set_all(around[k * BLOCK : k * BLOCK + len(prior_of)], priors[prior_of[0] * WEIGHED_WIDTH + k])
        return
    for i in range(len(prior_of)):
        source = np.uint64(prior_of[i] * WEIGHED_WIDTH)
        for k in range(WEIGHED_WIDTH):
            around[np.uint64(k * BLOCK + i)] = priors[source + np.uint64(k)]


@stage
def finish_block(
    lines: Array, n_lines: int, count: Array, form: Form, mu: Array, means: Array, values: Array, counted: Array
) -> None:
    """Write the encodings of rows, from the prior's weights if they are blends, and which of them count."""
    rule, least = form.rule, form.rule.blend.least
    for i in range(len(values)):
        counts = (count[i] > 0.0) & (count[i] >= least)
        code = lines[i] if lines[i] < n_lines - 2 else lines[i] - n_lines
        if code < 0:
            counts &= has_category(code, rule)
        if not counts:
            values[i] = encoding_without(code, mu[i], rule)
        elif form.blends:
            values[i] = blend_near(mu[i], means[i], 1.0, values[i])
        counted[i] = counts


@stage
def settle_row(
    seen: Array, row: int, size: int, around: Array, i: int, code: int, counts: bool, form: Form, bound: float
) -> tuple[float, bool]:
    """Give the encoding of a row that its block left open, and tell whether it is certain."""
    rule, mu, known = form.rule, form.rule.prior, True
    if rule.by_mean and (form.blends or not counts):
        mu, known = settle_mean(around, i, BLOCK) if around[i + N * BLOCK] > 0.0 else (np.nan, True)
    if not counts:
        return encoding_without(code, mu, rule), known
    if not form.blends:
        return settle_estimate(seen, row, size, around, i, rule)
    mean, mean_known = settle_mean(seen, row, size)
    own, n, own_known = settle_spread(seen, row, size, bound)
    whole, n_all, all_known = settle_spread(around, i, BLOCK, bound)
    other = weight_of_prior(own, n, whole, n_all)
    return blend_near(mu, mean, 1.0, other), known & mean_known & own_known & all_known & is_weight(other)


@kernel
def encode_pairs(
    tile: Tile,
    form: Form,
    n_lines: int,
    numbers: Array,
    rank: int,
    burned: int,
    bound: float,
    start: int,
    stop: int,
    to: Destination,
) -> int:
    """Write the encodings of the rows [start, stop) of a tile; give the number of the last open row plus one, or zero.

    `rank` is the rank of the first row of the tile.
    """
    rule, size, seen, last = form.rule, len(tile.lines), tile.seen, 0
    # Rows of one array would look to the compiler as if they might overlap, so that it would not use vectors.
    mu, means, values = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    mu_known, sure, counted = np.empty(BLOCK, np.bool_), np.empty(BLOCK, np.bool_), np.empty(BLOCK, np.bool_)
    around = np.empty(WEIGHED_WIDTH * BLOCK)
    for begin in range(start, stop, BLOCK):
        n = min(BLOCK, stop - begin)
        lines, count = tile.lines[begin : begin + n], seen[N * size + begin : N * size + begin + n]
        spread_priors(tile.prior_of[begin : begin + n], tile.priors, around)
        if form.blends:
            parts = mu[:n], means[:n], values[:n], mu_known[:n], sure[:n]
            blend_block(seen, begin, size, around, bound, rule, *parts)
        else:
            estimate_block(seen, begin, size, around, bound, rule, mu[:n], values[:n], mu_known[:n], sure[:n])
        finish_block(lines, n_lines, count, form, mu, means, values[:n], counted[:n])
        for i in range(n):
            known = sure[i] if counted[i] else mu_known[i]
            if not known or abs(values[i]) > LARGEST:
                code = lines[i] if lines[i] < n_lines - 2 else lines[i] - n_lines
                values[i], known = settle_row(seen, begin + i, size, around, i, code, counted[i], form, bound)
                if rank + begin + i >= burned and not (known and abs(values[i]) <= LARGEST):
                    values[i], last = 0.0, begin + i + 1
        set_all(values[: max(min(burned - rank - begin, n), 0)], np.nan)
        write(values[:n], to.columns[0], numbers[begin : begin + n], begin, to.wide, to.narrow)
        flag(counted[:n], numbers[begin : begin + n], begin, to.unseen)
    return last


def form_of(rows: "Rows", order: Order, rule: FusedRule) -> Form | None:
    """Say what lines hold for the encodings of one target without classes; None if pairs do not encode such rows."""
    shrinkage, weighted = rule.blend.shrinkage, rows.weight is not None
    blends = shrinkage.kind == EMPIRICAL_BAYES
    known = blends or (shrinkage.kind == M_ESTIMATE and shrinkage.first > 0 and is_moderate(shrinkage.first))
    known = known and (rule.by_mean or is_moderate(rule.prior)) and not (weighted and rule.blend.least)
    if not known or rows.classes is not None or rows.target is None or rows.target.ndim > 1:
        return None
    # For m-estimates, digits are as fast in other orders, and they give the sums for new rows as well.
    if not (blends or weighted or isinstance(order, Permutation)):
        return None
    if isinstance(order, TimeOrder) and (order.firsts is not None or order.steps is not None):
        return None
    width = WEIGHED_WIDTH if weighted else BLEND_WIDTH if blends else ESTIMATE_WIDTH
    return Form(width, weighted, blends, 1 if weighted else LANES, rule)


def encode_from_pairs(parts: RowParts, n_lines: int, order: Order, form: Form, walk: Walk, to: Destination) -> int:
    """Write the encodings of all rows; give the number of first ranks whose rows exact code has to encode."""
    edges = edges_of(walk.n_rows, TILE, order.starts if isinstance(order, TimeOrder) else None)
    size = max((stop - start for start, stop in edges), default=0)
    sums = zeros((n_lines + form.lanes) * form.width, np.float64)
    everything = sums[n_lines * form.width :]
    walk = walk._replace(state=np.zeros(3, np.int64), totals=everything, held=np.zeros_like(everything))
    # Without weights, the low part of N stays zero.
    seen, numbers = zeros(WEIGHED_WIDTH * size, np.float64), empty((2, size), np.int64)
    tile, n_open = Tile(seen, numbers[0], numbers[1], np.zeros((size + 1) * WEIGHED_WIDTH)), 0
    bound = ((walk.n_rows if form.weighted else 0) + OTHER_STEPS) * ROW_BOUND
    for start, stop, numbers in cut_order(order, edges):
        mine = numbers if len(numbers) else freeze(np.arange(start, stop), np.int64)
        known, n_priors = hand_out_pairs(parts, mine, start, stop, walk, form, sums, tile)
        if not known:
            return walk.n_rows
        last = run_for_rows(encode_pairs, stop - start, (tile, form, n_lines, mine, start, walk.burned, bound), to)
        n_open = start + max(last) if any(last) else n_open
        if any(last) and start > FEW * TILE:
            # Exact code has to encode these rows, and so all before them; it does not pay to go on.
            return walk.n_rows
        tile.priors[:WEIGHED_WIDTH] = tile.priors[n_priors * WEIGHED_WIDTH : (n_priors + 1) * WEIGHED_WIDTH]
    return n_open
