"""Turn the sums that the rows of a block see, as digits, into encodings: stage by stage, each a loop over the block.

A stage gets its arrays one by one, once for each block.  If a loop took an array out of a tuple, or passed it to a
function, it would count a reference for every row, for which threads have to wait.
"""

import math
from typing import NamedTuple

import numpy as np

from cpu_fallback.compiled.border import Array, counting, separate, set_all, stage
from cpu_fallback.compiled.digits import HALF, SIGN, ZERO
from cpu_fallback.compiled.estimates import (
    is_all,
    marked,
    mean_pair,
    near_estimate,
    settle_estimate,
    weigh_prior,
)
from cpu_fallback.compiled.moments import (
    SAFE,
    Room,
    Shape,
    cell_width,
    pair,
    plain,
    quotient,
    settled_mean,
    spread,
    total_of,
)
from cpu_fallback.compiled.rounding import WORD_DIGITS, absolute, join_words, power_of_two, round_words
from cpu_fallback.compiled.row_encodings import CellRule, encoding_without, has_category
from cpu_fallback.compiled.shrinkage import HEAVY, LIGHT, bayes_weight, blend_one, unseen_encoding, weights_of
from cpu_fallback.compiled.ties import decide_estimate
from cpu_fallback.fused_rules import EMPIRICAL_BAYES, M_ESTIMATE, PLAIN, SIGMOID, Blend

BLOCK = 256
MIDDLE, BOTTOM = BLOCK, 2 * BLOCK


class Pairs(NamedTuple):
    """Numbers of a block as pairs and exponents, and room for their words: first high, then middle, then low words."""

    high: Array
    lower: Array
    power: Array
    word: Array


class BlockWeights(NamedTuple):
    """N of each row of a block as digits, as a pair and as a plain pair, and room for the pairs of S."""

    summed: Array
    pair: Pairs
    weight: Array
    rest: Array
    total: Pairs


class BlockMoments(NamedTuple):
    """Mean, and spread or variance as fraction * 2**exponent, for each output and row of a block.

    For m-estimates there is also a plain pair: S, or for a prior m * mu.
    """

    mean: Array
    fraction: Array
    exponent: Array
    high: Array
    lower: Array


class BlockSums(NamedTuple):
    """The digits of a block's numbers: sums that its rows see, from an index on; lines of all sums; each row's line."""

    seen: Array
    start: int
    around: Array
    line: Array
    cell_rule: CellRule


@counting
def pairs_of(size: int) -> Pairs:
    """Give room for a block."""
    return Pairs(np.empty(size), np.empty(size), np.empty(size, np.int64), np.empty(3 * BLOCK, np.uint64))


@counting
def room_for_weights(size: int, n_width: int) -> BlockWeights:
    """Give room for a block."""
    return BlockWeights(
        np.empty(size * n_width, np.int64), pairs_of(size), np.empty(size), np.empty(size), pairs_of(size)
    )


@counting
def room_for_moments(n_outputs: int, size: int) -> BlockMoments:
    """Give room for a block."""
    shape = n_outputs, size
    mean, fraction, exponent = np.zeros(shape), np.zeros(shape), np.zeros(shape, np.int64)
    return BlockMoments(mean, fraction, exponent, np.zeros(shape), np.zeros(shape))


@stage
def word_rows(digits: Array, at: int, n: int, step: int, width: int, word: Array) -> bool:
    """Carry up to seven signed digits of n rows to three words each, as `carry_to_words` does; tell whether all fit.

    For digits that a number does not have, other digits are read and masked, since branches would cost more.
    """
    last = width - 1
    p1, p2, p3 = np.uint64(min(1, last)), np.uint64(min(2, last)), np.uint64(min(3, last))
    p4, p5, p6 = np.uint64(min(4, last)), np.uint64(min(5, last)), np.uint64(last)
    m1, m2, m3 = -np.int64(width > 1), -np.int64(width > 2), -np.int64(width > 3)
    m4, m5, m6 = -np.int64(width > 4), -np.int64(width > 5), -np.int64(width > 6)
    over_all, sign = np.int64(0), np.int64(63)
    for i in range(n):
        p = np.uint64(at + i * step)
        low, over = join_words(digits[p], digits[p + p1] & m1)
        middle, above = join_words(digits[p + p2] & m2, digits[p + p3] & m3)
        total = middle + np.uint64(over)
        above += (over >> sign) + np.int64(total < middle)
        fifth, sixth = digits[p + p4] & m4, digits[p + p5] & m5
        # This is not zero if a magnitude is beyond FIFTH_BOUND or SIXTH_BOUND.
        over_all |= ((fifth ^ (fifth >> sign)) >> np.int64(59)) | ((sixth ^ (sixth >> sign)) >> np.int64(27))
        over_all |= digits[p + p6] & m6
        word[i] = np.uint64(above + fifth) + (np.uint64(sixth) << HALF)
        word[MIDDLE + i], word[BOTTOM + i] = total, low
    return over_all == 0


@stage
def round_rows(word: Array, n: int, low: int, high: Array, lower: Array, power: Array) -> None:
    """Round the words of n rows, as `pair_of_words` does, without branches."""
    for i in range(n):
        first, second, third = word[i], word[MIDDLE + i], word[BOTTOM + i]
        sign = 1.0 - 2.0 * np.float64(first >> SIGN)
        first, second, third = absolute(first, second, third)
        top = np.int64(5)
        for _ in range(2):
            empty = ZERO - np.uint64(first == ZERO)
            first |= second & empty
            second ^= (second ^ third) & empty
            third &= ~empty
            top += np.int64(empty) << np.int64(1)
        nothing = first == ZERO
        upper, rest, exponent = round_words(first | np.uint64(nothing), second, third, top)
        high[i] = 0.0 if nothing else sign * upper
        lower[i] = 0.0 if nothing else sign * rest
        power[i] = 0 if nothing else exponent + 32 * low


@stage
def pair_rows(
    digits: Array,
    at: int,
    n: int,
    step: int,
    width: int,
    low: int,
    high: Array,
    lower: Array,
    power: Array,
    word: Array,
) -> None:
    """Give (hi, lo, exponent) of a number of n rows; the first one begins at `at`."""
    if width == 1 and low == 0:
        small = True
        for i in range(n):
            digit = digits[np.uint64(at + i * step)]
            small &= -SAFE < digit < SAFE
            high[i], lower[i], power[i] = float(digit), 0.0, 0
        if small:
            return
    elif 0 < width <= WORD_DIGITS and word_rows(digits, at, n, step, width, word):
        round_rows(word, n, low, high, lower, power)
        return
    for i in range(n):
        high[i], lower[i], power[i] = pair(digits, at + i * step, width, low)


@stage
def sum_rows(seen: Array, line: int, n: int, shape: Shape, summed: Array) -> None:
    """Sum the digits of the weights of all classes of n rows."""
    width, n_width = cell_width(shape), shape.n_width
    single = shape.n_classes == 1 and n_width == 1
    for i in range(n if single else 0):
        summed[i] = seen[np.uint64(line + i * width)]
    for i in range(0 if single else n):
        at = line + i * width * shape.n_classes
        for column in range(n_width):
            total = np.int64(0)
            for label in range(shape.n_classes):
                total += seen[at + label * width + column]
            summed[i * n_width + column] = total


@stage
def plain_rows(n: int, high: Array, power: Array, weight: Array) -> None:
    """Give the plain numbers of n rows, as `plain` does."""
    near = True
    for i in range(n):
        near &= -1000 < power[i] < 1000
        weight[i] = high[i] * power_of_two(power[i])
    for i in range(0 if near else n):
        weight[i] = plain(high[i], power[i])


@stage
def plain_pairs(n: int, high: Array, lower: Array, power: Array, plain_high: Array, plain_lower: Array) -> None:
    """Give pairs of n rows as plain numbers; the second one is NaN if the digits have to decide."""
    for i in range(n):
        near = -250 < power[i] < 250
        scale = power_of_two(power[i] if near else 0)
        plain_high[i], rest = high[i] * scale, marked(lower[i] * scale, is_all(lower[i]))
        plain_lower[i] = rest if near else math.nan


@stage
def weigh_rows(n: int, m: float, weight: Array, rest: Array, high: Array, lower: Array) -> None:
    """Turn the S of n rows, given as plain pairs, into m * S / N."""
    for i in range(n):
        mu, mu_rest = mean_pair(high[i], lower[i], weight[i], rest[i])
        high[i], lower[i] = weigh_prior(mu, mu_rest, m)


@stage
def divide_rows(
    n: int, high: Array, lower: Array, power: Array, n_high: Array, n_lower: Array, n_power: Array, mean: Array
) -> bool:
    """Give quotients of the pairs of n rows as plain numbers, and tell whether all are certainly rounded correctly."""
    sure = True
    for i in range(n):
        exponent = power[i] - n_power[i]
        near, doubtful = quotient(high[i], lower[i], n_high[i], n_lower[i])
        # With other exponents, quotients underflow, overflow, or are rounded twice.
        sure &= (-900 < exponent < 900) & ~doubtful
        mean[i] = near * power_of_two(exponent)
    return sure


@stage
def settle_rows(
    seen: Array, line: int, n: int, step: int, shape: Shape, summed: Array, total: Pairs, count: Pairs, mean: Array
) -> None:
    """Round the quotients of n rows, whose S begin at `line`, by their digits if necessary."""
    for i in range(n):
        mean[i] = settled_mean(
            *(total.high[i], total.lower[i], total.power[i], count.high[i], count.lower[i], count.power[i]),
            *(seen, line + i * step, shape.s_width, shape.s_low),
            *(summed, i * shape.n_width, shape.n_width, shape.n_low),
        )


@stage
def spread_rows(
    seen: Array, line: int, own: int, n: int, shape: Shape, room: Room, summed: Array, fraction: Array, exponent: Array
) -> None:
    """Give N * Q - S**2 of one output of n rows; their sums begin at `line`, and S begins `own` numbers later."""
    length, n_width, held = cell_width(shape) * shape.n_classes, shape.n_width, room.summed
    q_own = own if shape.by_class else own + shape.s_width
    for i in range(n):
        for column in range(n_width):
            held[column] = summed[i * n_width + column]
        fraction[i], _, exponent[i] = spread(seen, line + own, line + q_own, shape, held[0], room)
        line += length


@stage
def variances(n: int, weight: Array, fraction: Array, exponent: Array) -> None:
    """Turn N * Q - S**2 of n rows into their variances."""
    for i in range(n):
        divisor = weight[i]
        if not LIGHT < divisor < HEAVY:
            divisor, power = math.frexp(divisor)
            exponent[i] -= 2 * power
        fraction[i] = fraction[i] / divisor / divisor if divisor > 0 else 0.0


@separate
def moment_rows(
    seen: Array,
    line: int,
    n: int,
    shape: Shape,
    first: int,
    kind: int,
    means: bool,
    room: Room,
    number: BlockWeights,
    out: BlockMoments,
) -> None:
    """Give N of n rows, whose sums begin at `line`, and for each output the mean and the numbers that lam needs.

    This is the spread, or S as a plain pair.  Means may be left out.
    """
    width, (summed, count, weight, rest, total) = cell_width(shape), number
    sum_rows(seen, line, n, shape, summed)
    pair_rows(summed, 0, n, shape.n_width, shape.n_width, shape.n_low, count.high, count.lower, count.power, count.word)
    if kind == M_ESTIMATE:
        plain_pairs(n, count.high, count.lower, count.power, weight, rest)
    plain_rows(n, count.high, count.power, weight)
    high, lower, power = total.high, total.lower, total.power
    for output in range(shape.n_classes - first):
        own = total_of(shape, first + output)
        step, s_width, low = width * shape.n_classes, shape.s_width, shape.s_low
        pair_rows(seen, line + own, n, step, s_width, low, high, lower, power, total.word)
        if kind == M_ESTIMATE:
            plain_pairs(n, high, lower, power, out.high[output], out.lower[output])
        if means and not divide_rows(n, high, lower, power, count.high, count.lower, count.power, out.mean[output]):
            settle_rows(seen, line + own, n, step, shape, summed, total, count, out.mean[output])
        if kind == EMPIRICAL_BAYES:
            spread_rows(seen, line, own, n, shape, room, summed, out.fraction[output], out.exponent[output])


@separate
def prior_rows(
    seen: Array, line: int, n: int, cell_rule: CellRule, room: Room, number: BlockWeights, out: BlockMoments
) -> None:
    """Give the prior of n rows and, if lam needs it, the variance, from the sums of all rows that they see."""
    shape, first, rule = cell_rule
    kind, m = rule.blend.shrinkage.kind, rule.blend.shrinkage.first
    if rule.by_mean or kind == EMPIRICAL_BAYES:
        moment_rows(seen, line, n, shape, first, kind, True, room, number, out)
    for output in range(shape.n_classes - first):
        if not rule.by_mean:
            set_all(out.mean[output, :n], rule.prior)
        if kind == EMPIRICAL_BAYES:
            variances(n, number.weight, out.fraction[output], out.exponent[output])
        elif kind == M_ESTIMATE and rule.by_mean:
            weigh_rows(n, m, number.weight, number.rest, out.high[output], out.lower[output])
        elif kind == M_ESTIMATE:
            high, lower = weigh_prior(rule.prior, 0.0, m)
            set_all(out.high[output, :n], high)
            set_all(out.lower[output, :n], lower)


@stage
def blend_means(weight: Array, mean: Array, mu: Array, blend: Blend, values: Array, counted: Array) -> None:
    """Write the blended means of rows that have a category, without branches."""
    least = blend.least
    for i in range(len(counted)):
        counts = (weight[i] > 0) & (weight[i] >= least)
        values[i] = mean[i] if counts else unseen_encoding(mu[i], blend)
        counted[i] = counts


@stage
def estimate_rows(
    weight: Array,
    rest: Array,
    high: Array,
    lower: Array,
    prior: Array,
    prior_rest: Array,
    mu: Array,
    blend: Blend,
    values: Array,
    counted: Array,
) -> bool:
    """Write the m-estimates of rows that have a category, without branches; tell whether all are rounded correctly."""
    m, least, sure = blend.shrinkage.first, blend.least, True
    for i in range(len(counted)):
        counts = (weight[i] > 0) & (weight[i] >= least)
        near, doubtful = near_estimate(high[i], lower[i], weight[i], rest[i], m, prior[i], prior_rest[i])
        values[i] = near if counts else unseen_encoding(mu[i], blend)
        counted[i] = counts
        sure &= ~(doubtful & counts)
    return sure


@stage
def settle_estimates(
    number: BlockWeights,
    own: BlockMoments,
    around: BlockMoments,
    output: int,
    sums: BlockSums,
    values: Array,
    counted: Array,
) -> None:
    """Round the doubtful m-estimates of one output of a block by exact pairs, or else by their digits."""
    shape, first, rule = sums.cell_rule
    length, m = cell_width(shape) * shape.n_classes, rule.blend.shrinkage.first
    weight, rest, high, lower = number.weight, number.rest, own.high[output], own.lower[output]
    prior, prior_rest = around.high[output], around.lower[output]
    for i in range(len(counted)):
        pairs = high[i], lower[i], weight[i], rest[i], m, prior[i], prior_rest[i]
        _, doubtful = near_estimate(*pairs)
        if counted[i] and doubtful:
            values[i], doubtful = decide_estimate(*pairs)
            at, above = sums.start + i * length, sums.line[i] * length
            if doubtful:
                values[i] = settle_estimate(sums.seen, at, first + output, sums.around, above, shape, rule)


@stage
def blend_rows(
    codes: Array,
    number: BlockWeights,
    own: BlockMoments,
    around: BlockMoments,
    output: int,
    sums: BlockSums,
    values: Array,
    counted: Array,
) -> None:
    """Write the encodings of one output of a block, and whether the category of each row counts."""
    rule = sums.cell_rule.rule
    n, kind, blend, weight, mu = len(codes), rule.blend.shrinkage.kind, rule.blend, number.weight, around.mean[output]
    if kind < SIGMOID:
        if kind == PLAIN:
            blend_means(weight, own.mean[output], mu, blend, values, counted)
        else:
            pairs = own.high[output], own.lower[output], around.high[output], around.lower[output]
            if not estimate_rows(weight, number.rest, *pairs, mu, blend, values, counted):
                settle_estimates(number, own, around, output, sums, values, counted)
        for i in range(n):
            if codes[i] < 0 and not has_category(codes[i], rule):
                counted[i], values[i] = False, encoding_without(codes[i], mu[i], rule)
        return
    mean, fraction, exponent = own.mean[output], own.fraction[output], own.exponent[output]
    total, total_exponent = around.fraction[output], around.exponent[output]
    for i in range(n):
        counts = has_category(codes[i], rule) and weight[i] > 0 and weight[i] >= blend.least
        counted[i] = counts
        if not counts:
            values[i] = encoding_without(codes[i], mu[i], rule)
        elif kind == EMPIRICAL_BAYES:
            other = bayes_weight(weight[i], fraction[i], exponent[i], total[i], total_exponent[i])
            values[i] = blend_one(mu[i], mean[i], 1.0, other)
        else:
            mine, other = weights_of(weight[i], blend.shrinkage)
            values[i] = blend_one(mu[i], mean[i], mine, other)
