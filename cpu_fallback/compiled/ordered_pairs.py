"""Encodings in an order from pairs of floats with bounds of their errors: m-estimates and empirical Bayes.

A row sees N and S of its category, and for blends Q around a centre c (`running_pairs`); T, A and the Q of all rows;
and the factor D of its step, which is 1 if rows do not lose weight.  The functions below compute a pair q and a bound
e.  It is proven here that the exact number F is in [q - e, q + e].  If both ends round to the same number, F rounds to
it, too.  Otherwise exact sums of pairs decide (`ties`).  Exact code encodes all rows up to the last open one.

Let b be 2**-103 (rows + 1024), or without weights 2**-93, and let E and E' be the NOISE of S and of T.  All products,
sums and quotients of pairs err by less than 2**-100 of the sizes of their terms, if no term is far from one: each
number is between 2**-150 and 2**150, or zero.  N and A are within b / 2 of themselves.

Estimates
---------
F is (S D + m T / A) / (N D + m), rounded once.  S D is within E D + 2**-100 abs(S D), N D and A are within b / 2 of
themselves, mu = T / A is within E' / A + b abs(mu) of itself, and m mu within m E' / A + b abs(m mu).  The sum of both
is within E D + m E' / A + b (abs(S D) + abs(m mu)), also if it cancels.  Its quotient by N D + m is within

    e = 9/8 ((E D + m E' / A + b (abs(S D) + abs(m mu))) / (N D + m) + b abs(q)),

where 9/8 has room for all rounding of e itself, and for products of errors.  If a category is not seen, the encoding is
mu, rounded once, within 9/8 (E' / A + b abs(mu)).

Blends
------
F is the result of the steps of `blend_one` on M = S / N, mu, N D, and on V = N Q - (S - N c)**2, times D**2, of the
category and of all rows, each rounded once.  Each of these is decided on its own, M like mu above.  If Q and its noise
G are zero, all targets are c, and V is zero.  Otherwise, with the N_LOST L of N, S - N c, times D, is within (E + L
abs(c)) D + 2**-100 (abs(S) + abs(N c)) D, which is called h, and V is within

    e = 9/8 (2**-100 (N Q D**2 + P**2) + h (2 abs(P) + h) + (N G + L Q) D**2),    P = (S - N c) D.

Sums of a few short numbers may be ties.  If no step drops anything, the first number of a pair is V, or N D, rounded.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.compiled.border import (
    REAL,
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
from cpu_fallback.compiled.estimates import divide_pairs, marked, mean_pair, weigh_prior
from cpu_fallback.compiled.ordered_digits import run_for_rows
from cpu_fallback.compiled.product_errors import product_error
from cpu_fallback.compiled.rounding import power_of_two
from cpu_fallback.compiled.row_encodings import Destination, encoding_without, flag, has_category, write
from cpu_fallback.compiled.running_pairs import (
    AGEING_WIDTH,
    BLEND_WIDTH,
    CENTRE,
    ESTIMATE_WIDTH,
    N_LOST,
    N_LOW,
    NOISE,
    Q_LOW,
    Q_NOISE,
    S_LOW,
    SEEN,
    WEIGHED_WIDTH,
    Form,
    N,
    Q,
    add_row,
    enter_block,
    is_moderate,
    see,
    see_all,
)
from cpu_fallback.compiled.shrinkage import blend_near
from cpu_fallback.compiled.ties import decide_estimate, two_sum
from cpu_fallback.decay import DECLINE, STEPS_OF_BLOCK
from cpu_fallback.fused_rules import EMPIRICAL_BAYES, M_ESTIMATE, FusedRule
from cpu_fallback.memory import empty, zeros
from cpu_fallback.row_numbers import Order, TimeOrder

if TYPE_CHECKING:
    from cpu_fallback.types import Rows

# Rows at a time; a time with more rows is one tile.  Rows whose lines are read together, and that are encoded together.
TILE = 1 << 15
FETCHED, BLOCK = 1 << 8, 1 << 9
# Numbers of a prior: the sums that its rows see of all rows, and the factor of its step.
FACTOR, PRIOR = SEEN, SEEN + 1
ROW_BOUND, OTHER_STEPS, PAIR_BOUND = 2.0**-103, 1024, 2.0**-100
# Encodings beyond this number may be lost in a narrower type, so exact code counts them.
LARGEST = 2.0**120
LANES = 4
# If rows of a later tile stay open, exact code encodes all rows.
FEW = 2
# Where the numbers of a block's priors begin.
S_LOW_AT, NOISE_AT, N_AT = (np.uint64(k * BLOCK) for k in (S_LOW, NOISE, N))
N_LOW_AT, F_AT = np.uint64(N_LOW * BLOCK), np.uint64(FACTOR * BLOCK)


class Tile(NamedTuple):
    """What the rows of a tile see, number by number, the lines of their categories, and their priors by number."""

    seen: Array
    lines: Array
    prior_of: Array
    priors: Array


@stage
def factor_of(step: int) -> float:
    """Give the factor of the sums that a step sees."""
    return DECLINE[step & 7] * power_of_two(32 - ((step >> 3) & 63))


@inlined
def number_of(word: np.uint64, kind: int) -> float:
    """Give a number as a float; a whole number that a float may not hold becomes NaN."""
    if kind == REAL:
        return np.uint64(word).view(np.float64)
    whole = np.int64(word)
    return np.float64(whole) if -(1 << 53) < whole < (1 << 53) else np.nan


@stage
def fetch_lines(codes: Array, numbers: Array, sums: Array, width: int, n_lines: int, lines: Array) -> bool:
    """Write the line of each row's category, in a separate loop, in which cache misses overlap."""
    any_number = 0.0
    for i in range(len(lines)):
        code = np.int64(codes[np.uint64(numbers[i])])
        lines[i] = code + n_lines if code < 0 else code
        any_number += sums[np.uint64(lines[i] * width + N)]
    # This is always true, but the compiler has to read the lines for it.
    return any_number == any_number  # noqa: PLR0124


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
    numbers: Array,
    ties: Array,
    steps: Array,
    given: Numbers,
    begin: int,
    prior: int,
    form: Form,
    sums: Array,
    tile: Tile,
) -> tuple[bool, int]:
    """Let rows, which begin with the tile's row `begin`, see their lines, then add them, time by time.

    It tells whether all numbers are in range, and gives the number of the last prior.
    """
    known, i, size, everything = True, 0, len(tile.lines), len(sums) - form.lanes * form.width
    while i < len(numbers):
        end, block = i + 1, 0.0
        while len(ties) and end < len(numbers) and ties[end] == ties[i]:
            end += 1
        if form.decays:
            block = np.float64(steps[ties[i]] // STEPS_OF_BLOCK)
            enter_block(block, sums, everything)
        if form.by_time:
            prior += 1
            see_all(sums, everything, form, tile.priors, prior * PRIOR)
            tile.priors[np.uint64(prior * PRIOR + FACTOR)] = factor_of(steps[ties[i]]) if form.decays else 1.0
        for k in range(i, end):
            at, row = tile.lines[np.uint64(begin + k)] * form.width, begin + k
            if form.decays:
                enter_block(block, sums, at)
            see(sums, at, form, tile.seen, row, size)
            tile.prior_of[np.uint64(row)] = prior
        known &= add_time(numbers[i:end], given, begin + i, form, sums, tile.lines[begin + i : begin + end])
        i = end
    return known, prior


@kernel
def hand_out_pairs(
    rows: RowParts,
    numbers: Array,
    start: int,
    stop: int,
    walk: Walk,
    steps: Array,
    form: Form,
    sums: Array,
    tile: Tile,
) -> tuple[bool, int]:
    """Let the ranks [start, stop), whose rows are `numbers`, see sums, then add them.

    It tells whether all numbers are in range, and gives the number of the last prior; prior 0 is that of the last tile.
    """
    ties, known, at, prior = walk.ties, True, start, 0
    everything = len(sums) - form.lanes * form.width
    while at < stop:
        end = stop
        if not form.by_time:
            if at == walk.state[END]:
                prior += 1
                if enter(walk, at):
                    see_all(walk.held, 0, form, tile.priors, prior * PRIOR)
                else:
                    see_all(sums, everything, form, tile.priors, prior * PRIOR)
                tile.priors[prior * PRIOR + FACTOR] = 1.0
            pause(walk, at)
            end = leg(walk, at, stop)
        end = min(end, at + FETCHED)
        while len(ties) and end < stop and ties[end] == ties[end - 1]:
            end += 1
        begin, last = at - start, end - start
        mine, lines = numbers[begin:last], tile.lines[begin:last]
        known &= fetch_lines(rows.codes, mine, sums, form.width, everything // form.width, lines)
        here = ties[at:end] if len(ties) else ties
        in_range, prior = pass_rows(mine, here, steps, rows.numbers, begin, prior, form, sums, tile)
        known &= in_range
        at = end
        if not form.by_time:
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
    factor: float,
    bound: float,
) -> tuple[float, float, bool]:
    """Give V and N D, each rounded once, and tell whether both are certain."""
    scaled, below = count * factor, count_low * factor
    n_rest, n_lost = two_sum(product_error(scaled, count, factor), below)
    n, n_low = two_sum(scaled, n_rest)
    n_exact = (count_lost == 0.0) & (n_lost == 0.0) & (product_error(below, count_low, factor) == 0.0)
    own, own_low = weigh(total, total_low, factor)
    whole, whole_low = weigh(n, n_low, centre)
    # What is left of a difference that nearly cancels has a large lower number, which `two_sum` makes small again.
    apart, apart_low = two_sum(*plus(own, own_low, -whole, -whole_low))
    moved = (noise + count_lost * abs(centre)) * factor + PAIR_BOUND * (abs(own) + abs(whole))
    q, q_low = weigh(around, around_low, factor)
    product, product_low = times(n, n_low, q, q_low)
    square, square_low = times(apart, apart_low, apart, apart_low)
    spread, rest = two_sum(product, -square)
    low, low_lost = two_sum(product_low, -square_low)
    rest, lost = two_sum(rest, low)
    spread, spread_low = two_sum(spread, rest)
    error = PAIR_BOUND * (product + square) + moved * (2.0 * abs(apart) + moved)
    error += (n * around_noise + count_lost * q) * factor
    found, sure = ends_of(spread, spread_low, 1.125 * error)
    exact = (low_lost == 0.0) & (lost == 0.0) & (noise == 0.0) & (around_noise == 0.0) & n_exact
    exact &= (own_low == 0.0) & (whole_low == 0.0) & (apart_low == 0.0) & (q_low == 0.0) & (n_low == 0.0)
    exact &= (spread >= 2.0**-900) & (spread <= 2.0**900)
    weight, weight_sure = ends_of(n, n_low, n * bound)
    found = spread if exact else found
    alike = (around == 0.0) & (around_noise == 0.0)
    return 0.0 if alike else found, n if n_exact else weight, (sure | exact | alike) & (weight_sure | n_exact)


@inlined
def moments_of(
    sums: Array, at: np.uint64, step: np.uint64, factor: float, bound: float
) -> tuple[float, bool, float, float, bool]:
    """Give the mean of sums, V and N D, and tell whether the mean, and whether both others, are certain."""
    total, total_low, noise = sums[at], sums[at + np.uint64(S_LOW) * step], sums[at + np.uint64(NOISE) * step]
    count, count_low = sums[at + np.uint64(N) * step], sums[at + np.uint64(N_LOW) * step]
    lost, centre = sums[at + np.uint64(N_LOST) * step], sums[at + np.uint64(CENTRE) * step]
    q, q_low = sums[at + np.uint64(Q) * step], sums[at + np.uint64(Q_LOW) * step]
    q_noise = sums[at + np.uint64(Q_NOISE) * step]
    spread, n, sure = spread_of(
        total, total_low, noise, count, count_low, lost, q, q_low, q_noise, centre, factor, bound
    )
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
        factor = around[k + F_AT]
        n, n_low = weigh(seen[row + np.uint64(N) * step], seen[row + np.uint64(N_LOW) * step], factor)
        own, own_low = weigh(seen[row], seen[row + np.uint64(S_LOW) * step], factor)
        noise = seen[row + np.uint64(NOISE) * step] * factor
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
    others: Array,
    values: Array,
    mu_known: Array,
    sure: Array,
) -> None:
    """Write priors and means of a block of rows, the prior's weights, and which priors, or all, are certain.

    `others` gets the weights as well, or NaN if they are not certain.
    """
    by_mean, prior = rule.by_mean, rule.prior
    for i in range(len(values)):
        row, k = np.uint64(first + i), np.uint64(i)
        factor, count = around[k + F_AT], around[k + N_AT]
        means[i], mean_known, own, n, own_sure = moments_of(seen, row, np.uint64(size), factor, bound)
        mean, mean_sure, whole, n_all, all_sure = moments_of(around, k, np.uint64(BLOCK), factor, bound)
        mean, mean_sure = (np.nan, True) if count == 0.0 else (mean, mean_sure)
        mu[i], mu_known[i] = mean if by_mean else prior, mean_sure | (not by_mean)
        other = own / n / n / (whole / n_all / n_all * n)
        known = own_sure & all_sure & ((own == 0.0) | ((other >= 2.0**-1000) & (other <= 2.0**1000)))
        values[i] = 0.0 if own == 0.0 else other
        others[i] = values[i] if known else np.nan
        sure[i] = known & mean_known & mu_known[i]


@stage
def settle_mean(sums: Array, at: int, step: int) -> tuple[float, bool]:
    """Give S / N where it was left open, and tell whether it is certain."""
    total_low = marked(sums[at + S_LOW * step], sums[at + NOISE * step] == 0.0)
    count_low = marked(sums[at + N_LOW * step], sums[at + N_LOST * step] == 0.0)
    value, doubtful = decide_estimate(sums[at], total_low, sums[at + N * step], count_low, 0.0, 0.0, 0.0)
    return value, not doubtful


@stage
def settle_estimate(seen: Array, row: int, size: int, around: Array, i: int, rule: FusedRule) -> tuple[float, bool]:
    """Give an m-estimate that was left open, and tell whether it is certain."""
    m, mu, rest = rule.blend.shrinkage.first, rule.prior, 0.0
    if rule.by_mean:
        total_low = marked(around[i + S_LOW * BLOCK], around[i + NOISE * BLOCK] == 0.0)
        count_low = marked(around[i + N_LOW * BLOCK], around[i + N_LOST * BLOCK] == 0.0)
        mu, rest = mean_pair(around[i], total_low, around[i + N * BLOCK], count_low)
    prior, prior_low = weigh_prior(mu, rest, m)
    own_low = marked(seen[row + S_LOW * size], seen[row + NOISE * size] == 0.0)
    count_low = marked(seen[row + N_LOW * size], seen[row + N_LOST * size] == 0.0)
    value, doubtful = decide_estimate(seen[row], own_low, seen[row + N * size], count_low, m, prior, prior_low)
    return value, not doubtful and around[i + FACTOR * BLOCK] == 1.0


@stage
def spread_priors(prior_of: Array, priors: Array, around: Array) -> None:
    """Write the numbers of each row's prior, number by number."""
    if prior_of[0] == prior_of[len(prior_of) - 1]:
        for k in range(PRIOR):
            set_all(around[k * BLOCK : k * BLOCK + len(prior_of)], priors[prior_of[0] * PRIOR + k])
        return
    for i in range(len(prior_of)):
        source = np.uint64(prior_of[i] * PRIOR)
        for k in range(PRIOR):
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
    seen: Array, row: int, size: int, around: Array, i: int, code: int, counts: bool, form: Form, other: float
) -> tuple[float, bool]:
    """Give the encoding of a row that its block left open, and tell whether it is certain.

    `other` is the weight of the prior of a blend, or NaN if it is not known.
    """
    rule, mu, known = form.rule, form.rule.prior, True
    if rule.by_mean and (form.blends or not counts):
        mu, known = settle_mean(around, i, BLOCK) if around[i + N * BLOCK] > 0.0 else (np.nan, True)
    if not counts:
        return encoding_without(code, mu, rule), known
    if not form.blends:
        return settle_estimate(seen, row, size, around, i, rule)
    mean, mean_known = settle_mean(seen, row, size)
    return blend_near(mu, mean, 1.0, other), known and mean_known and other == other  # noqa: PLR0124 - NaN


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
    mu, means, others, values = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    mu_known, sure, counted = np.empty(BLOCK, np.bool_), np.empty(BLOCK, np.bool_), np.empty(BLOCK, np.bool_)
    around = np.empty(PRIOR * BLOCK)
    for begin in range(start, stop, BLOCK):
        n = min(BLOCK, stop - begin)
        lines, count = tile.lines[begin : begin + n], seen[N * size + begin : N * size + begin + n]
        spread_priors(tile.prior_of[begin : begin + n], tile.priors, around)
        if form.blends:
            blend_block(
                *(seen, begin, size, around, bound, rule),
                *(mu[:n], means[:n], others[:n], values[:n], mu_known[:n], sure[:n]),
            )
        else:
            estimate_block(seen, begin, size, around, bound, rule, mu[:n], values[:n], mu_known[:n], sure[:n])
        finish_block(lines, n_lines, count, form, mu, means, values[:n], counted[:n])
        for i in range(n):
            known = sure[i] if counted[i] else mu_known[i]
            if not known or abs(values[i]) > LARGEST:
                code = lines[i] if lines[i] < n_lines - 2 else lines[i] - n_lines
                values[i], known = settle_row(seen, begin + i, size, around, i, code, counted[i], form, others[i])
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
    decays = isinstance(order, TimeOrder) and order.steps is not None
    known = blends or (shrinkage.kind == M_ESTIMATE and shrinkage.first > 0 and is_moderate(shrinkage.first))
    known = known and (rule.by_mean or is_moderate(rule.prior)) and not (weighted and rule.blend.least)
    if not known or rows.classes is not None or rows.target is None or rows.target.ndim > 1:
        return None
    if isinstance(order, TimeOrder) and order.firsts is not None:
        return None
    width = AGEING_WIDTH if decays else WEIGHED_WIDTH if weighted else BLEND_WIDTH if blends else ESTIMATE_WIDTH
    return Form(width, weighted, blends, decays, decays, 1 if weighted else LANES, rule)


def encode_from_pairs(parts: RowParts, n_lines: int, order: Order, form: Form, walk: Walk, to: Destination) -> int:
    """Write the encodings of all rows; give the number of first ranks whose rows exact code has to encode."""
    starts, steps = (order.starts, order.steps) if isinstance(order, TimeOrder) else (None, None)
    edges, steps = edges_of(walk.n_rows, TILE, starts), freeze(np.zeros(0) if steps is None else steps, np.int64)
    size = max((stop - start for start, stop in edges), default=0)
    sums = zeros((n_lines + form.lanes) * form.width, np.float64)
    everything = sums[n_lines * form.width :]
    walk = walk._replace(state=np.zeros(3, np.int64), totals=everything, held=np.zeros_like(everything))
    # Without weights, the low part of N stays zero.
    seen, numbers = zeros(SEEN * size, np.float64), empty((2, size), np.int64)
    tile, n_open = Tile(seen, numbers[0], numbers[1], np.zeros((size + 1) * PRIOR)), 0
    bound = ((walk.n_rows if form.weighted else 0) + OTHER_STEPS) * ROW_BOUND
    for start, stop, numbers in cut_order(order, edges):
        mine = numbers if len(numbers) else freeze(np.arange(start, stop), np.int64)
        known, n_priors = hand_out_pairs(parts, mine, start, stop, walk, steps, form, sums, tile)
        if not known:
            return walk.n_rows
        last = run_for_rows(encode_pairs, stop - start, (tile, form, n_lines, mine, start, walk.burned, bound), to)
        n_open = start + max(last) if any(last) else n_open
        if any(last) and start > FEW * TILE:
            # Exact code has to encode these rows, and so all before them; it does not pay to go on.
            return walk.n_rows
        tile.priors[:PRIOR] = tile.priors[n_priors * PRIOR : (n_priors + 1) * PRIOR]
    return n_open
