"""m-estimates from the rows before, weighted by age, as pairs of floats with bounds of their errors.

A row sees N and S of its category, T and A, the sum of targets and the weight of all rows, and the factor D of its
step.  Its encoding (S D + m T / A) / (N D + m) is the exact quotient F, rounded once.  The functions below compute a
pair q and a bound e, and it is proven here that F is in [q - e, q + e].  If both ends round to the same number, F
rounds to it, too.  Exact code encodes all rows up to the last row that is still open.

Sums
----
u is 2**-53.  A sum is a pair (h, l) with abs(l) <= u abs(h).  `add_pair` adds (x, y), abs(y) <= u abs(x), by exact
two-sums; only l + y, and its sum with the error of h + x, are rounded.  So a step errs by at most u (abs(l) + abs(y)) +
u (u abs(h + x) + abs(l) + abs(y)) (1 + u) <= 4 u**2 (abs(h) + abs(x)) = 2**-104 (abs(h) + abs(x)).  The products of
weight and target are exact pairs.  The errors of S and T are summed step by step; those of N and A are at most 2**-104
of them times the number of rows, since weights are not negative.  A category keeps the sums of the block of the last
row, and of the block before it, which it sees times 2**-64; `see` adds both.

Estimates
---------
Let b be 2**-103 (rows + 1024), and let E and E' be the bounds of the errors of S and T.  All products, sums and
quotients of pairs err by less than 2**-100 of the sizes of their terms, if no term is far from one: each number
is between 2**-150 and 2**150, or zero.  So S D is within E D + 2**-100 abs(S D), N D and A are within b / 2 of
themselves, mu = T / A is within E' / A + b abs(mu) of itself, and m mu within m E' / A + b abs(m mu).  The sum of both
is within E D + m E' / A + b (abs(S D) + abs(m mu)), also if it cancels.  Its quotient by N D + m is within

    e = 9/8 ((E D + m E' / A + b (abs(S D) + abs(m mu))) / (N D + m) + b abs(q)),

where 9/8 has room for all rounding of e itself, and for products of errors.  If a category is not seen, the encoding is
mu, rounded once, within 9/8 (E' / A + b abs(mu)).
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.compiled.border import BLOCK, Array, Numbers, RowParts, freeze, inlined, kernel, parts_of, stage
from cpu_fallback.compiled.checkpoints import edges_of
from cpu_fallback.compiled.closed_forms import plus, weigh
from cpu_fallback.compiled.estimates import divide_pairs
from cpu_fallback.compiled.ordered_digits import run_for_rows
from cpu_fallback.compiled.product_errors import product_error
from cpu_fallback.compiled.rounding import power_of_two
from cpu_fallback.compiled.row_encodings import Destination, encoding_without, flag, has_category, write
from cpu_fallback.compiled.running_pairs import is_moderate, number_of
from cpu_fallback.compiled.shrinkage import unseen_encoding
from cpu_fallback.compiled.ties import two_sum
from cpu_fallback.decay import DECLINE, STEPS_OF_BLOCK
from cpu_fallback.fused_rules import M_ESTIMATE, FusedRule
from cpu_fallback.memory import empty, zeros
from cpu_fallback.row_numbers import TimeOrder

if TYPE_CHECKING:
    from cpu_fallback.types import Layout, Rows

# Rows at a time.  A time with more rows is one tile.
TILE = 1 << 15
# Rows whose lines are read together.
FETCHED = 1 << 8
# Numbers of a line: N and S as pairs, the bound of S, all of these again for the block before, and the block.
OLDER, NOW, LINE = 5, 10, 11
# Numbers that a row sees: N, S and a bound of its category, the same of all rows, and the factor of its step.
AROUND, FACTOR, SEEN = 5, 10, 11
STEP_BOUND, ROW_BOUND, OTHER_STEPS = 2.0**-104, 2.0**-103, 1024
BLOCK_BEFORE = 2.0**-64
# Encodings beyond this number may be lost in a narrower type, so exact code counts them.
LARGEST = 2.0**120


class SeenSums(NamedTuple):
    """What the rows of a tile see, number by number, and where the lines of their categories begin."""

    sums: Array
    lines: Array


@inlined
def add_pair(high: float, low: float, other: float, other_low: float) -> tuple[float, float]:
    """Give the sum of two pairs as a pair whose second number is the rounding error of the first."""
    total, error = two_sum(high, other)
    return two_sum(total, error + (low + other_low))


@stage
def enter_block(block: float, sums: Array, at: int) -> None:
    """Bring a line to a block; only sums of this block and of the one before are kept."""
    if sums[at + NOW] != block:
        follows = sums[at + NOW] == block - 1.0
        for k in range(at, at + OLDER):
            sums[k + OLDER], sums[k] = sums[k] if follows else 0.0, 0.0
        sums[at + NOW] = block


@inlined
def see(sums: Array, at: int, first: int, row: int, size: int, seen: Array) -> None:
    """Write the sums of a line as a row of its block sees them."""
    source, target = np.uint64(at), np.uint64(first * size + row)
    older, step = source + np.uint64(OLDER), np.uint64(size)
    for _ in range(2):
        high, other = sums[source], sums[older] * BLOCK_BEFORE
        total, low = add_pair(high, sums[source + np.uint64(1)], other, sums[older + np.uint64(1)] * BLOCK_BEFORE)
        seen[target], seen[target + step] = total, low
        source, older, target = source + np.uint64(2), older + np.uint64(2), target + np.uint64(2) * step
    # The last sum is S, whose bound follows.
    seen[target] = sums[source] + sums[older] * BLOCK_BEFORE + (abs(high) + abs(other)) * STEP_BOUND


@inlined
def add_row(weight: float, product: float, error: float, sums: Array, at: int) -> None:
    """Add a row to a line."""
    sums[at], sums[at + 1] = add_pair(sums[at], sums[at + 1], weight, 0.0)
    sums[at + 4] += (abs(sums[at + 2]) + abs(product)) * STEP_BOUND
    sums[at + 2], sums[at + 3] = add_pair(sums[at + 2], sums[at + 3], product, error)


@stage
def factor_of(step: int) -> float:
    """Give the factor of the sums that a step sees."""
    return DECLINE[step & 7] * power_of_two(32 - ((step >> 3) & 63))


@stage
def fetch_lines(codes: Array, numbers: Array, sums: Array, lines: Array) -> bool:
    """Write where the line of each row's category begins, in a separate loop, in which cache misses overlap."""
    n_lines, any_number = len(sums) // LINE - 1, 0.0
    for i in range(len(lines)):
        code = np.int64(codes[np.uint64(numbers[i])])
        lines[i] = (code + n_lines if code < 0 else code) * LINE
        any_number += sums[np.uint64(lines[i] + NOW)]
    # This is always true, but the compiler has to read the lines for it.
    return any_number == any_number  # noqa: PLR0124


@stage
def see_time(lines: Array, first: int, step: int, sums: Array, tile: SeenSums) -> None:
    """Let the rows of a time, which begin with the tile's row `first`, see the sums of the rows before."""
    everything, size = len(sums) - LINE, len(tile.lines)
    block, factor = np.float64(step // STEPS_OF_BLOCK), factor_of(step)
    enter_block(block, sums, everything)
    for i in range(len(lines)):
        enter_block(block, sums, lines[i])
        see(sums, lines[i], 0, first + i, size, tile.sums)
        see(sums, everything, AROUND, first + i, size, tile.sums)
        tile.sums[np.uint64(FACTOR * size + first + i)] = factor


@stage
def add_time(lines: Array, numbers: Array, given: Numbers, sums: Array) -> bool:
    """Add the rows of a time; tell whether all of their numbers are in range."""
    known, everything = True, len(sums) - LINE
    for i in range(len(lines)):
        number = np.uint64(numbers[i])
        v = number_of(given.target[number], given.target_kind)
        weight = number_of(given.weight[number], given.weight_kind)
        product = weight * v
        error = product_error(product, weight, v)
        known &= is_moderate(v) & is_moderate(weight) & (weight >= 0.0) & is_moderate(product)
        add_row(weight, product, error, sums, lines[i])
        add_row(weight, product, error, sums, everything)
    return known


@kernel
def hand_out_pairs(
    rows: RowParts, numbers: Array, ties: Array, steps: Array, start: int, stop: int, sums: Array, tile: SeenSums
) -> bool:
    """Let the ranks [start, stop) see sums, then add them, time by time; tell whether all numbers are in range."""
    ranks, times, lines = numbers[start:stop], ties[start:stop], tile.lines
    known, at, fetched = True, 0, 0
    while at < len(ranks):
        end = at + 1
        while end < len(ranks) and times[end] == times[at]:
            end += 1
        while fetched < end:
            ahead = min(fetched + FETCHED, len(ranks))
            known &= fetch_lines(rows.codes, ranks[fetched:ahead], sums, lines[fetched:ahead])
            fetched = ahead
        see_time(lines[at:end], at, steps[times[at]], sums, tile)
        known &= add_time(lines[at:end], ranks[at:end], rows.numbers, sums)
        at = end
    return known


@inlined
def ends_of(high: float, low: float, error: float) -> tuple[float, bool]:
    """Give the double to which all numbers within `error` of a pair round, and tell whether there is one."""
    below, above = high + (low - error), high + (low + error)
    inside = (abs(below) >= 2.0**-900) & (abs(below) <= LARGEST)
    return below, (below == above) & (inside | (error == 0.0))


@stage
def estimate_block(
    seen: Array,
    first: int,
    size: int,
    bound: float,
    rule: FusedRule,
    mu: Array,
    values: Array,
    mean_known: Array,
    sure: Array,
    counted: Array,
) -> None:
    """Write priors and estimates of a block of rows, which of both are certain, and which rows see their category."""
    m, by_mean, prior = rule.blend.shrinkage.first, rule.by_mean, rule.prior
    constant, constant_low = weigh(prior, 0.0, m)
    for i in range(len(values)):
        row, step = np.uint64(first + i), np.uint64(size)
        factor = seen[row + np.uint64(FACTOR) * step]
        n, n_low = weigh(seen[row], seen[row + step], factor)
        own, own_low = weigh(seen[row + np.uint64(2) * step], seen[row + np.uint64(3) * step], factor)
        noise = seen[row + np.uint64(4) * step] * factor
        weight, weight_low = seen[row + np.uint64(5) * step], seen[row + np.uint64(6) * step]
        total, total_low = seen[row + np.uint64(7) * step], seen[row + np.uint64(8) * step]
        mean, mean_low = divide_pairs(total, total_low, weight, weight_low)
        mean_noise = seen[row + np.uint64(9) * step] / weight
        mean_found, mean_sure = ends_of(mean, mean_low, 1.125 * (mean_noise + abs(mean) * bound))
        part, part_low = weigh(mean, mean_low, m)
        part, part_low = part if by_mean else constant, part_low if by_mean else constant_low
        noise += m * mean_noise if by_mean else 0.0
        top, top_low = plus(own, own_low, part, part_low)
        bottom, bottom_low = plus(n, n_low, m, 0.0)
        found, found_low = divide_pairs(top, top_low, bottom, bottom_low)
        noise += (abs(own) + abs(part)) * bound
        value, known = ends_of(found, found_low, 1.125 * (noise / bottom + abs(found) * bound))
        mean_found, mean_sure = (np.nan, True) if weight == 0.0 else (mean_found, mean_sure | (not by_mean))
        counts = n > 0.0
        mu[i], values[i], counted[i] = mean_found if by_mean else prior, value, counts
        mean_known[i], sure[i] = mean_sure, known


@kernel
def encode_pairs(
    tile: SeenSums,
    n_lines: int,
    numbers: Array,
    first: int,
    burned: int,
    rule: FusedRule,
    bound: float,
    start: int,
    stop: int,
    to: Destination,
) -> int:
    """Write the encodings of the rows [start, stop) of a tile; give the number of the last open row plus one, or zero.

    `first` is the rank of the first row of the tile.
    """
    (sums, lines), last = tile, 0
    mu, values, sure, counted = (
        np.empty(BLOCK),
        np.empty(BLOCK),
        np.empty((2, BLOCK), np.bool_),
        np.empty(BLOCK, np.bool_),
    )
    for begin in range(start, stop, BLOCK):
        n, rank = min(BLOCK, stop - begin), first + begin
        estimate_block(sums, begin, len(lines), bound, rule, mu[:n], values[:n], sure[0, :n], sure[1, :n], counted[:n])
        for i in range(n):
            line = lines[np.uint64(begin + i)] // LINE
            code = line if line < n_lines - 2 else line - n_lines
            known = sure[1, i] if counted[i] else sure[0, i]
            if not has_category(code, rule):
                counted[i], values[i], known = False, encoding_without(code, mu[i], rule), sure[0, i]
            elif not counted[i]:
                values[i] = unseen_encoding(mu[i], rule.blend)
            if rank + i < burned:
                values[i] = np.nan
            elif not known:
                values[i], last = 0.0, begin + i + 1
        write(values[:n], to.columns[0], numbers[rank : rank + n], begin, to.wide, to.narrow)
        flag(counted[:n], numbers[rank : rank + n], begin, to.unseen)
    return last


def has_pairs(rows: "Rows", order: TimeOrder, rule: FusedRule) -> bool:
    """Tell whether rows have m-estimates of one target without classes, weighted by age, with any weight."""
    shrinkage = rule.blend.shrinkage
    known = shrinkage.kind == M_ESTIMATE and shrinkage.first > 0 and is_moderate(shrinkage.first)
    known = known and rule.blend.least == 0 and (rule.by_mean or is_moderate(rule.prior))
    plain = rows.classes is None and rows.target is not None and rows.target.ndim == 1 and rows.weight is not None
    return plain and known and order.steps is not None and order.firsts is None


def estimates_by_age(
    rows: "Rows", n_lines: int, layout: "Layout", order: TimeOrder, burned: int, rule: FusedRule, to: Destination
) -> int:
    """Write the m-estimates of all rows; give the number of first ranks whose rows exact code has to encode."""
    assert order.steps is not None
    n_rows = len(order.rows)
    in_order = tuple(freeze(part, np.int64) for part in (order.rows, order.ties, order.steps))
    given = parts_of(rows, layout), *in_order
    edges = edges_of(n_rows, TILE, order.starts)
    size = max((stop - start for start, stop in edges), default=0)
    sums = zeros((n_lines + 1) * LINE, np.float64)
    tile = SeenSums(empty(SEEN * size, np.float64), empty(size, np.int64))
    bound, n_open = (n_rows + OTHER_STEPS) * ROW_BOUND, 0
    for start, stop in edges:
        if not hand_out_pairs(*given, start, stop, sums, tile):
            return n_rows
        last = run_for_rows(encode_pairs, stop - start, (tile, n_lines, given[1], start, burned, rule, bound), to)
        n_open = start + max(last) if any(last) else n_open
    return int(np.append(order.starts, n_rows)[np.searchsorted(order.starts, n_open)])
