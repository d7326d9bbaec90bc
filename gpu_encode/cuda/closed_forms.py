"""Leave-one-out by closed forms: the numbers that the rows of each category share.

`cpu_fallback.compiled.closed_forms` states and proves the formulas and the bounds of their errors;
gpu_encode/cuda/raw/closed_forms.cuh computes them.  Lines for float32 encodings have floats instead of pairs.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.compiled.border import ABSENT, REAL
from cpu_fallback.compiled.closed_forms import CANCELLED, invert, top_and_bottom, weigh
from cpu_fallback.compiled.estimates import in_range, plain_pair
from cpu_fallback.compiled.moments import Shape
from cpu_fallback.compiled.row_encodings import encoding_without, has_category
from cpu_fallback.compiled.shrinkage import weights_of
from cpu_fallback.compiled.ties import two_sum
from cpu_fallback.fused_rules import EMPIRICAL_BAYES, M_ESTIMATE, SIGMOID, FusedRule
from gpu_encode.cuda import raw
from gpu_encode.cuda.digits import RowParts
from gpu_encode.cuda.memory import empty
from gpu_encode.cuda.moments import ROOM, Rooms, class_width, difference, magnitude, sum_pair
from gpu_encode.cuda.row_encodings import Destination
from gpu_encode.cuda.runtime import blocks_for, cuda, device_function, kernel, launch_rows, types
from gpu_encode.cuda.table_encodings import code_of
from gpu_encode.cuda.tiles import PLAN_BYTES, slots_of

if TYPE_CHECKING:
    from cpu_fallback.types import Array

# A first word with this value marks a line without a closed form: it is NaN.
LISTED = np.int64(0x7FF8 << 48)
CONSTANT, OF_ALL = LISTED + 1, LISTED + 2
# Number of doubles in a line, by the number of bytes of an encoding.
NARROW_BLEND, WIDE_BLEND = 6, 8
ESTIMATE_WIDTHS, BLEND_WIDTHS = {4: 2, 8: 4}, {4: NARROW_BLEND, 8: WIDE_BLEND}
# Threads of a block: there are enough registers for two or three such blocks.
THREADS = min(raw.THREADS, 256)
# Making a line takes as long as the exact encodings of this many rows.
ROWS_OF_A_LINE = 4


class Sums(NamedTuple):
    """Flat sums of each category and of all rows, and the number of categories, unknown and missing included."""

    accumulators: "Array"
    total: "Array"
    n_lines: int


class Lines(NamedTuple):
    """Data that the rows of a category share: a line of doubles as words for each category, and last for all rows.

    Parameters
    ----------
    words : int64 array ((categories + 3) * doubles of a line)
    uncounted : uint8 array (categories + 2)
        Whether the rows of a category see too few of its rows, so that it does not count.
    """

    words: "Array"
    uncounted: "Array"


@device_function
def put(words: "Array", at: int, first: float, second: float) -> None:
    """Write two doubles."""
    words[at] = np.float64(first).view(np.int64)
    words[at + 1] = np.float64(second).view(np.int64)


@device_function
def put_pair(words: "Array", at: int, wide: bool, high: float, low: float) -> None:
    """Write a pair; if lines are not wide, round it to one double."""
    total = high + low
    words[at] = np.float64(total).view(np.int64)
    if wide:
        words[at + 1] = np.float64(low - (total - high)).view(np.int64)


@device_function
def put_sum(words: "Array", at: int, wide: bool, high: float, low: float, exact: bool) -> None:
    """Write a sum as a pair, exact or with an odd low part, or as one double, exact or rounded to an odd one."""
    total = high + low
    rest = low - (total - high)
    bits = np.float64(total).view(np.int64)
    if wide:
        words[at + 1] = np.float64(rest).view(np.int64) | (total != 0.0 and not exact)
    elif total != 0.0 and not (exact and rest == 0.0):
        bits = (bits - ((rest < 0.0) != (total < 0.0) and rest != 0.0)) | 1
    words[at] = bits


@device_function
def total_pair(sums: "Array", at: int, shape: Shape) -> tuple[float, float]:
    """Give S of a cell as a pair of numbers; the second one is NaN if they are too large or too small."""
    high, lower, exponent = sum_pair(sums, at + shape.n_width, shape)
    return plain_pair(high, lower, exponent)


@device_function
def without_category(code: int, rule: FusedRule, words: "Array", at: int) -> bool:
    """Write the line of a category that does not count; if its rows get the mean of all others, only return True."""
    if rule.by_mean and encoding_without(code, 1.0, rule) == 1.0 and encoding_without(code, 2.0, rule) == 2.0:
        return True
    words[at] = CONSTANT
    words[at + 1] = np.float64(encoding_without(code, rule.prior, rule)).view(np.int64)
    return False


@device_function
def write_estimate(
    words: "Array", at: int, wide: bool, top: tuple[float, float], bottom: tuple[float, float], size: float, exact: bool
) -> None:
    """Write A and 1 / bottom of a category; `size` is the sum of the parts of A."""
    known = top[1] == top[1] and in_range(top[0]) and in_range(bottom[0])
    if known and abs(top[0]) >= CANCELLED * size:
        share = invert(bottom[0], bottom[1])
        put_sum(words, at, wide, top[0], top[1], exact)
        put_pair(words, at + (2 if wide else 1), wide, share[0], share[1])
    else:
        words[at] = LISTED


@kernel
def make_estimates(sums: Sums, shape: Shape, rule: FusedRule, wide: bool, lines: Lines) -> None:
    """Write the lines of m-estimates, or means, of every category."""
    (accumulators, total, n_lines), (words, uncounted) = sums, lines
    cell, width, m = class_width(shape), 4 if wide else 2, rule.blend.shrinkage.first
    if rule.blend.shrinkage.kind != M_ESTIMATE:
        m = 0.0
    above = float(total[0] - 1)
    for i in range(cuda.grid(1), n_lines + 1, cuda.gridsize(1)):
        at = i * width
        # The weight of a row: N - 1 + m if the prior is the mean of the others.
        weight = (1.0, 0.0)
        if rule.by_mean and m > 0.0:
            weight = two_sum(above, m)
        if i == n_lines:
            put_pair(words, at, wide, weight[0], weight[1])
            continue
        code, fewer = code_of(i, n_lines), float(accumulators[i * cell] - 1)
        counts = has_category(code, rule) and fewer > 0.0 and fewer >= rule.blend.least
        uncounted[i] = not counts
        s_high, s_low = total_pair(accumulators, i * cell, shape)
        t_high, t_low = total_pair(total, 0, shape)
        if not above > 0.0:
            words[at] = LISTED
        elif not counts:
            if without_category(code, rule, words, at):
                # (T - v) / (N - 1), with numerator and denominator multiplied by the weight of a row.
                high, low = weigh(t_high, t_low, weight[0])
                bottom = weigh(weight[0], weight[1], above)
                write_estimate(words, at, wide, (high, low + t_high * weight[1]), bottom, 0.0, m == 0.0)
        else:
            top, bottom, size = top_and_bottom((s_high, s_low), (t_high, t_low), fewer, above, m, rule)
            write_estimate(words, at, wide, top, bottom, size, m == 0.0)


@device_function
def count_digits(count: np.int64, room: "Array") -> int:
    """Write the digits of a count, which is not negative; give their number."""
    room[0], room[1] = count & np.int64(0xFFFFFFFF), count >> np.int64(32)
    return 2 if room[1] else (1 if room[0] else 0)


@device_function
def spread_around(sums: "Array", at: int, shape: Shape, rooms: Rooms) -> tuple[float, float, int, bool]:
    """Give (n - 1) * Q - S**2 of a cell as (hi, lo, exponent), and whether all of its rows are alike."""
    s_at, line = at + shape.n_width, class_width(shape)
    q_at, count = s_at + shape.s_width, sums[at]
    _, n_s = magnitude(sums, s_at, line, 1, shape.s_width, rooms.s)
    sign, n_q = magnitude(sums, q_at, line, 1, shape.q_width, rooms.q)
    n = count_digits(count - 1, rooms.n)
    high, lower, exponent = difference(rooms, (n, n_s, n_q), sign, shape)
    alike = False
    if high <= 0.0:
        n = count_digits(count, rooms.n)
        whole, _, _ = difference(rooms, (n, n_s, n_q), sign, shape)
        alike = whole == 0.0
    return high, lower, exponent, alike


@device_function
def list_rows(words: "Array", at: int, wide: bool) -> None:
    """Write a line without a closed form; all of it is NaN, since rows may read any part of the line of all rows."""
    for k in range(WIDE_BLEND if wide else NARROW_BLEND):
        words[at + k] = LISTED


class Blended(NamedTuple):
    """The line of a category: S and c0 as pairs, n, the n beside c1 (or 0), c1 as a multiple of S, and the weight."""

    own: tuple[float, float]
    spread: tuple[float, float]
    n: float
    n_of_slope: float
    slope: float
    weight: float


@device_function
def write_blend(words: "Array", at: int, wide: bool, line: Blended) -> None:
    """Write S, 1 / (n - 1), the variance as c0, c1 = slope * S and n, and its weight."""
    share, step = invert(line.n - 1.0, 0.0), 2 if wide else 1
    put_sum(words, at, wide, line.own[0], line.own[1], True)
    put_pair(words, at + step, wide, share[0], share[1])
    put_pair(words, at + 2 * step, wide, line.spread[0], line.spread[1])
    if wide:
        put(words, at + 6, line.n_of_slope, line.slope)
    else:
        words[at + 3] = np.float64(line.slope * (line.own[0] + line.own[1])).view(np.int64)
        put(words, at + 4, line.n_of_slope, line.weight)


@device_function
def variance_of(
    sums: "Array", at: int, shape: Shape, n: float, all_rows: bool, rooms: Rooms
) -> tuple[tuple[float, float], float, float]:
    """Give c0, n, and c1 as a multiple of S: all are 0 without a variance, but for all rows c0 may be any number."""
    high, low, exponent, alike = spread_around(sums, at, shape, rooms)
    # If one row of two is left, or if all rows are equal (then all but one are, too), there is no variance.
    if alike or n == 2.0:
        return (1.0 if all_rows else 0.0, 0.0), 0.0, 0.0
    return plain_pair(high, low, exponent), n, 2.0


@kernel
def make_blends(sums: Sums, shape: Shape, rule: FusedRule, wide: bool, lines: Lines) -> None:
    """Write the lines of blends of every category, and of all rows."""
    (accumulators, total, n_lines), (words, uncounted) = sums, lines
    n_room = cuda.local.array(ROOM, types.int64)
    s_room = cuda.local.array(ROOM, types.int64)
    q_room = cuda.local.array(ROOM, types.int64)
    cell, width, above = class_width(shape), WIDE_BLEND if wide else NARROW_BLEND, float(total[0] - 1)
    bayes = rule.blend.shrinkage.kind == EMPIRICAL_BAYES
    for i in range(cuda.grid(1), n_lines + 1, cuda.gridsize(1)):
        at, all_rows, code = i * width, i == n_lines, code_of(i, n_lines)
        n = float(total[0]) if all_rows else float(accumulators[i * cell])
        if not all_rows:
            counts = has_category(code, rule) and n > 1.0 and n - 1.0 >= rule.blend.least
            uncounted[i] = not counts
            if not counts and above > 0.0:
                if without_category(code, rule, words, at):
                    words[at] = OF_ALL
                continue
        if not above > 0.0:
            list_rows(words, at, wide)
            continue
        source, begin = (total, 0) if all_rows else (accumulators, i * cell)
        own, spread, count, slope, weight = total_pair(source, begin, shape), (1.0, 0.0), 0.0, 0.0, 1.0
        if bayes:
            spread, count, slope = variance_of(source, begin, shape, n, all_rows, Rooms(n_room, s_room, q_room))
            ratio = above / (n - 1.0)
            weight = 1.0 if all_rows else ratio * ratio / (n - 1.0)
        elif not all_rows:
            spread = (weights_of(n - 1.0, rule.blend.shrinkage)[1], 0.0)
            if spread[0] == math.inf and rule.by_mean:
                words[at] = OF_ALL
                continue
        if own[1] == own[1] and spread[1] == spread[1] and spread[0] < math.inf:
            write_blend(words, at, wide, Blended(own, spread, n, count, slope, weight))
        else:
            list_rows(words, at, wide)


def has_closed_forms(parts: RowParts, n_lines: int, shape: Shape, rule: FusedRule) -> bool:
    """Say whether rows have closed forms: categories have many rows, no weights, and no extreme numbers.

    Only with many rows does it pay to make the line of a category, which takes as long as exact encodings of some rows.
    """
    plain_rows = not (parts.labelled or shape.by_class) and parts.weight_kind == ABSENT and parts.target_kind != ABSENT
    counted = shape.n_classes == shape.n_width == 1 and shape.n_low == 0
    m, prior = rule.blend.shrinkage.first, 0.0 if rule.by_mean else rule.prior
    known = in_range(prior) and (prior != 0.0 or math.copysign(1.0, prior) > 0.0)
    if rule.blend.shrinkage.kind == M_ESTIMATE:
        known = known and in_range(m)
    return plain_rows and counted and known and len(parts.codes.words) >= ROWS_OF_A_LINE * n_lines


def make_lines(sums: Sums, shape: Shape, rule: FusedRule, to: Destination) -> Lines:
    """Make the lines of all categories from flat sums."""
    blends = rule.blend.shrinkage.kind in (EMPIRICAL_BAYES, SIGMOID)
    width = (BLEND_WIDTHS if blends else ESTIMATE_WIDTHS)[to.out.itemsize]
    lines = Lines(empty((sums.n_lines + 1) * width, np.int64), empty(sums.n_lines, np.uint8))
    given = sums, shape, rule, to.out.itemsize == 8, lines
    launch_rows(make_blends if blends else make_estimates, sums.n_lines + 1, *given)
    return lines


def encode_by_closed_forms(
    parts: RowParts, lines: Lines, rule: FusedRule, to: Destination, listed: "Array", count: "Array"
) -> None:
    """Write the encodings that lines decide; list and count all other rows."""
    value = raw.value_type(parts.target.itemsize, parts.target_kind == REAL)
    slots = slots_of(parts.codes, len(lines.uncounted))
    variant = {**raw.key_of(slots.keys), "VALUE": value, "ENCODING": raw.ENCODINGS[to.out.itemsize]}
    blocks = blocks_for(len(to.out), 4 * THREADS, 3 * raw.BLOCKS)
    given = slots, parts.target, *lines, to.out, to.flagged, to.unseen, listed, count
    blends = rule.blend.shrinkage.kind in (EMPIRICAL_BAYES, SIGMOID)
    name, more = ("leave_out_blend", (rule.by_mean, rule.prior)) if blends else ("leave_out_estimate", ())
    raw.run(name, blocks, THREADS, *given, *more, shared=PLAN_BYTES, variant=variant)
