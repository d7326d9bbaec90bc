"""Encodings in an order from counts of classes: rows get the counts that they see one by one, and encodings by blocks.

One thread lets rows see counts, since rows depend on earlier ones.  There are separate loops over a block: cache misses
overlap in loops that only read rows and cells, and the compiler turns loops that divide into vector instructions.
"""

from typing import NamedTuple

import numpy as np

from cpu_fallback.compiled.block_moments import BlockMoments
from cpu_fallback.compiled.border import BLOCK, Array, counting, kernel, set_all, stage
from cpu_fallback.compiled.checkpoints import END, Walk, enter, leg, pause
from cpu_fallback.compiled.estimates import mean_pair, near_estimate, prior_of_line, settle_count, weigh_prior
from cpu_fallback.compiled.moments import shape_of_counts
from cpu_fallback.compiled.ordered import Table
from cpu_fallback.compiled.row_encodings import (
    Destination,
    encoding_without,
    flag,
    has_category,
    write,
)
from cpu_fallback.compiled.shrinkage import bayes_weight_of_count, blend_near, unseen_encoding, weights_of
from cpu_fallback.compiled.ties import decide_estimate
from cpu_fallback.fused_rules import AS_CATEGORY, EMPIRICAL_BAYES, M_ESTIMATE, PLAIN, Blend, FusedRule

LEAST_BLOCK = 64


class Block(NamedTuple):
    """Scratch space of a block: categories and classes of its rows, the counts that they see, and their encodings."""

    code: Array
    label: Array
    number: Array
    own: Array
    value: Array
    counted: Array


@counting
def block_of(n_classes: int) -> Block:
    """Allocate a block; it has fewer rows if there are many classes."""
    size = max(BLOCK // n_classes, LEAST_BLOCK)
    return Block(
        np.empty(size, np.int32),
        np.empty(size, np.int32),
        np.empty(size, np.int32),
        np.empty((n_classes, size), np.int32),
        np.empty(size, np.float64),
        np.empty(size, np.bool_),
    )


@stage
def read_rows(codes: Array, numbers: Array, begin: int, out: Array) -> None:
    """Read categories or classes of a block in a separate loop, in which cache misses overlap."""
    if len(numbers):
        for i in range(len(numbers)):
            out[i] = codes[np.uint64(numbers[i])]
    else:
        for i in range(len(out)):
            out[i] = codes[np.uint64(begin + i)]


@stage
def pass_pairs(codes: Array, labels: Array, n_lines: int, sums: Array, count: Array, own: Array) -> int:
    """Let each row see the counts of both classes, then count it; give the number of rows of the second class."""
    ones = np.int64(0)
    for i in range(len(codes)):
        code, label = np.int64(codes[i]), np.int64(labels[i])
        line = np.uint64(2 * (code + n_lines if code < 0 else code))
        zero, one = sums[line], sums[line + np.uint64(1)]
        count[i], own[i] = zero + one, one
        # Both counts are known, so the processor waits only once for the last row's store.
        sums[line + np.uint64(label)] = (one if label else zero) + 1
        ones += label
    return ones  # type: ignore[return-value]


@stage
def pass_lines(
    codes: Array,
    labels: Array,
    k: int,
    ties: Array,
    sums: Array,
    at_tie: Array,
    last_tie: Array,
    totals: Array,
    count: Array,
    own: Array,
) -> None:
    """Let each row see the counts of all classes, then count it; rows of a tie see the counts of its first row."""
    source, n_lines = at_tie if len(ties) else sums, len(sums) // k
    for i in range(len(codes)):
        code, total = np.int64(codes[i]), np.int64(0)
        category = code + n_lines if code < 0 else code
        line = category * k
        if len(ties) and ties[i] != last_tie[category]:
            last_tie[category] = ties[i]
            for label in range(k):
                at_tie[line + label] = sums[line + label]
        for label in range(k):
            found = source[np.uint64(line + label)]
            own[label, i] = found
            total += found
        count[i] = total
        sums[np.uint64(line + labels[i])] += 1
        totals[labels[i]] += 1


@stage
def least_of(numbers: Array) -> int:
    """Give the smallest number, or zero."""
    least = np.int32(0)
    for i in range(len(numbers)):
        least = min(least, numbers[i])
    return least  # type: ignore[return-value]


@stage
def blend_block(
    count: Array, own: Array, mu: float, nothing: float, blend: Blend, variance: tuple[float, int], value: Array
) -> None:
    """Write the encodings of one class from small counts, whose quotients plain division rounds correctly."""
    shrinkage = blend.shrinkage
    least = max(blend.least, 1.0)
    if shrinkage.kind == PLAIN:
        for i in range(len(count)):
            weight = np.float64(count[i])
            value[i] = np.float64(own[i]) / weight if weight >= least else nothing
        return
    for i in range(len(count)):
        weight = np.float64(count[i])
        if weight < least:
            value[i] = nothing
            continue
        if shrinkage.kind == EMPIRICAL_BAYES:
            spread = np.float64(np.int64(own[i]) * np.int64(count[i] - own[i]))
            mine, other = 1.0, bayes_weight_of_count(weight, spread, 0, variance[0], variance[1])
        else:
            mine, other = weights_of(weight, shrinkage)
        value[i] = blend_near(mu, np.float64(own[i]) / weight, mine, other)


@stage
def estimate_block(
    count: Array, own: Array, high: float, lower: float, nothing: float, blend: Blend, value: Array
) -> bool:
    """Write the m-estimates of one class from small counts; tell whether all are rounded correctly."""
    least, m, sure = max(blend.least, 1.0), blend.shrinkage.first, True
    for i in range(len(count)):
        weight = np.float64(count[i])
        near, doubtful = near_estimate(np.float64(own[i]), 0.0, weight, 0.0, m, high, lower)
        value[i] = near if weight >= least else nothing
        sure &= ~(doubtful & (weight >= least))
    return sure


@counting
def settle_block(
    count: Array, own: Array, high: float, lower: float, totals: Array, label: int, rule: FusedRule, value: Array
) -> None:
    """Round the doubtful m-estimates of one class by exact pairs, or else by digits."""
    least, m = max(rule.blend.least, 1.0), rule.blend.shrinkage.first
    for i in range(len(count)):
        weight = np.float64(count[i])
        pairs = np.float64(own[i]), 0.0, weight, 0.0, m, high, lower
        _, doubtful = near_estimate(*pairs)
        if doubtful and weight >= least:
            value[i], doubtful = decide_estimate(*pairs)
            if doubtful:
                prior = prior_of_line(totals, 0, label, shape_of_counts(len(totals)), rule)
                value[i] = settle_count(own[i], count[i], prior, 0, 0, m)


@stage
def write_block(
    block: Block,
    n: int,
    numbers: Array,
    begin: int,
    burned: int,
    first: int,
    rule: FusedRule,
    priors: BlockMoments,
    around: Array,
    to: Destination,
) -> int:
    """Write the encodings of a block, but not of the first `burned` rows; count the lost encodings."""
    lost, value, own, count, codes = 0, block.value[:n], block.own, block.number[:n], block.code[:n]
    negative = least_of(codes) < 0
    for i in range(n if negative else 0):
        if not has_category(codes[i], rule):
            count[i] = 0
    for output in range(len(own) - first):
        mu, variance = priors.mean[output, 0], (priors.fraction[output, 0], priors.exponent[output, 0])
        nothing, mine = unseen_encoding(mu, rule.blend), own[first + output, :n]
        if rule.blend.shrinkage.kind == M_ESTIMATE:
            high, lower = priors.high[output, 0], priors.lower[output, 0]
            if not estimate_block(count[:n], mine, high, lower, nothing, rule.blend, value):
                settle_block(count[:n], mine, high, lower, around, first + output, rule, value)
        else:
            blend_block(count, mine, mu, nothing, rule.blend, variance, value)
        for i in range(n if negative and rule.missing != AS_CATEGORY else 0):
            if codes[i] == -1:
                value[i] = encoding_without(-1, mu, rule)
        set_all(value[: max(min(burned, n), 0)], np.nan)
        lost += write(value, to.columns[output], numbers, begin, to.wide, to.narrow)
    if len(to.unseen):
        for i in range(n):
            block.counted[i] = np.float64(count[i]) >= max(rule.blend.least, 1.0)
        flag(block.counted[:n], numbers, begin, to.unseen)
    return lost


@stage
def count_priors(totals: Array, first: int, rule: FusedRule, priors: BlockMoments) -> None:
    """Compute the priors, and the moments that the kind of lam needs, from the counts of all classes."""
    count, mean, fraction = np.int64(0), priors.mean, priors.fraction
    for label in range(len(totals)):
        count += totals[label]
    weight, bayes = np.float64(count), rule.blend.shrinkage.kind == EMPIRICAL_BAYES
    for label in range(first, len(totals)):
        own = totals[label]
        mean[label - first, 0] = rule.prior
        if rule.by_mean:
            mean[label - first, 0] = np.float64(own) / weight if count else np.nan
        if bayes:
            fraction[label - first, 0] = np.float64(own * (count - own)) / weight / weight if count else 0.0
        if rule.blend.shrinkage.kind == M_ESTIMATE:
            mu, rest = mean_pair(np.float64(own), 0.0, weight, 0.0) if rule.by_mean else (rule.prior, 0.0)
            high, lower = weigh_prior(mu, rest, rule.blend.shrinkage.first)
            priors.high[label - first, 0], priors.lower[label - first, 0] = high, lower


@stage
def pass_block(block: Block, n: int, pairs: bool, ties: Array, table: Table, totals: Array) -> None:
    """Let the rows of a block see counts, and count them."""
    codes, labels, k = block.code[:n], block.label[:n], len(block.own)
    if pairs:
        ones = pass_pairs(codes, labels, len(table.sums) // 2, table.sums, block.number, block.own[1])
        totals[0] += n - ones
        totals[1] += ones
    else:
        pass_lines(codes, labels, k, ties, table.sums, table.at_tie, table.last_tie, totals, block.number, block.own)


@kernel
def encode_from_counts(
    codes: Array,
    classes: Array,
    numbers: Array,
    start: int,
    stop: int,
    n_classes: int,
    first: int,
    rule: FusedRule,
    walk: Walk,
    table: Table,
    priors: BlockMoments,
    around: Array,
    to: Destination,
) -> int:
    """Write the encodings of the ranks [start, stop), whose rows are `numbers`; count the lost encodings."""
    block, lost, at = block_of(n_classes), 0, start
    pairs = n_classes == 2 and first == 1 and not len(walk.starts)
    while at < stop:
        if at == walk.state[END]:
            source = walk.held if enter(walk, at) else walk.totals
            count_priors(source, first, rule, priors)
            for i in range(len(source)):
                around[i] = source[i]
            pause(walk, at)
        end = min(leg(walk, at, stop), at + len(block.code))
        n = end - at
        mine = numbers[at - start : end - start] if len(numbers) else numbers
        read_rows(codes, mine, at, block.code[:n])
        read_rows(classes, mine, at, block.label[:n])
        ties = walk.ties[at:end] if len(walk.starts) else walk.ties
        pass_block(block, n, pairs, ties, table, walk.totals)
        lost += write_block(block, n, mine, at, walk.burned - at, first, rule, priors, around, to)
        at = end
        pause(walk, at)
    return lost
