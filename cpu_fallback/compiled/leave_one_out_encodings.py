"""Encode each row from all other rows, in one pass: see `gpu_encode.seam.ops.FusedOps`.

Closed forms decide nearly all encodings (`closed_forms`); exact code encodes the other rows.
"""

import math
from typing import TYPE_CHECKING

import numpy as np

from cpu_fallback.compiled.addition import add_rows
from cpu_fallback.compiled.block_moments import (
    BLOCK,
    BlockSums,
    moment_rows,
    prior_rows,
    room_for_moments,
    room_for_weights,
)
from cpu_fallback.compiled.border import (
    REAL,
    Array,
    RowParts,
    freeze,
    inlined,
    kernel,
    parts_of,
    set_all,
    stage,
)
from cpu_fallback.compiled.closed_forms import (
    BLEND_WIDTH,
    CONSTANT,
    ESTIMATE_BOUND,
    ESTIMATE_WIDTH,
    FORM,
    MOMENT_BOUND,
    OF_ALL,
    Lines,
    make_blends,
    make_estimates,
    mean_of,
    rounded,
    variance_of,
)
from cpu_fallback.compiled.digits import scratch as digit_room
from cpu_fallback.compiled.estimates import in_range, is_all
from cpu_fallback.compiled.moments import Shape, cell_width, scratch, shape_of
from cpu_fallback.compiled.ordered_digits import SMALLEST_SHARE, run_for_rows, write_rows
from cpu_fallback.compiled.product_errors import product_error
from cpu_fallback.compiled.row_encodings import CellRule, Destination, destination, flag, write
from cpu_fallback.compiled.shrinkage import blend_near
from cpu_fallback.compiled.threads import run, shares
from cpu_fallback.compiled.ties import two_sum
from cpu_fallback.fused_rules import EMPIRICAL_BAYES, M_ESTIMATE, SIGMOID, FusedRule, RowEncodings
from cpu_fallback.memory import empty

if TYPE_CHECKING:
    from cpu_fallback.types import Layout, Rows

# Distances between the numbers of a row, which are held number by number.
P1, P2, P3, P4, P5, P6, P7, P8 = (np.uint64(k * BLOCK) for k in range(1, BLEND_WIDTH + 1))
# All whole numbers below this one are doubles.
WHOLE_BOUND = 2.0**53


@stage
def see_others(accumulators: Array, codes: Array, length: int, mine: Array, seen: Array) -> None:
    """Give the line of each row's category, plus the row's own digits, which are negative here."""
    n_lines = len(accumulators) // length
    for i in range(len(codes)):
        code, target = np.int64(codes[i]), i * length
        source = (code + n_lines if code < 0 else code) * length
        for k in range(length):
            seen[np.uint64(target + k)] = accumulators[np.uint64(source + k)] + mine[np.uint64(target + k)]


@kernel
def leave_out_range(
    accumulators: Array,
    total: Array,
    rows: RowParts,
    numbers: Array,
    cell_rule: CellRule,
    start: int,
    stop: int,
    to: Destination,
) -> int:
    """Write the encodings of the rows [start, stop), in order or by number; give how many the type cannot hold."""
    shape, first, rule = cell_rule
    width, n_outputs, lost = cell_width(shape), shape.n_classes - first, 0
    length = width * shape.n_classes
    room, digits, slots = scratch(shape), digit_room(), np.empty(BLOCK, np.int64)
    seen, mine = np.empty(BLOCK * length, np.int64), np.empty(BLOCK * length, np.int64)
    others, nobody = np.empty(BLOCK * length, np.int64), np.zeros(BLOCK, np.int32)
    own, around = room_for_moments(n_outputs, BLOCK), room_for_moments(n_outputs, BLOCK)
    number = room_for_weights(BLOCK, shape.n_width)
    values, counted = np.empty(BLOCK, np.float64), np.empty(BLOCK, np.bool_)
    kind, sums = rule.blend.shrinkage.kind, BlockSums(seen, 0, others, np.arange(BLOCK), cell_rule)
    for begin in range(start, stop, BLOCK):
        end = min(begin + BLOCK, stop)
        n, here, labels = end - begin, rows.codes[begin:end], rows.classes[begin:end]
        for i in range(n):
            slots[i] = i * length + (np.int64(labels[i]) * width if len(labels) else 0)
        set_all(mine[: n * length], 0)
        add_rows(rows, begin, end, -1, digits, slots[:n], mine)
        if kind == EMPIRICAL_BAYES or rule.by_mean:
            see_others(total, nobody[:n], length, mine, others)
        prior_rows(others, 0, n, cell_rule, room, number, around)
        see_others(accumulators, here, length, mine, seen)
        moment_rows(seen, 0, n, shape, first, kind, kind != M_ESTIMATE, room, number, own)
        lost += write_rows(here, numbers[begin:end], begin, 0, number, own, around, sums, values, counted, to)
    return lost


@stage
def read_rows(codes: Array, target: Array, kind: int, lines: Array, width: int, n_lines: int, held: Array) -> None:
    """Write the numbers of each row's line, number by number, and then the target of each row."""
    to = np.uint64(BLEND_WIDTH * BLOCK)
    for i in range(len(codes)):
        code = np.int64(codes[i])
        at, here = np.uint64((code + n_lines if code < 0 else code) * width), np.uint64(i)
        for k in range(ESTIMATE_WIDTH):
            held[here + np.uint64(k * BLOCK)] = lines[at + np.uint64(k)]
        if width == BLEND_WIDTH:
            for k in range(ESTIMATE_WIDTH, BLEND_WIDTH):
                held[here + np.uint64(k * BLOCK)] = lines[at + np.uint64(k)]
    if kind == REAL:
        for i in range(len(codes)):
            held[to + np.uint64(i)] = np.uint64(target[i]).view(np.float64)
    else:
        for i in range(len(codes)):
            number = np.float64(np.int64(target[i]))
            held[to + np.uint64(i)] = number if abs(number) < WHOLE_BOUND else math.nan


@stage
def estimate_block(held: Array, n: int, weight: float, weight_low: float, values: Array, sure: Array) -> bool:
    """Write the estimates of a block, and which are certain; tell whether all are."""
    every = True
    for i in range(n):
        k = np.uint64(i)
        top, top_low, share, share_low = held[k], held[k + P1], held[k + P2], held[k + P3]
        near = mean_of(held[k + P8], weight, weight_low, top, top_low, share, share_low, ESTIMATE_BOUND)
        values[i], sure[i] = rounded(*near)
        every &= sure[i]
    return every


@inlined
def blend(mean: float, mu: float, noise: float, total: float, count: float, all_count: float) -> tuple[float, bool]:
    """Give the encoding of moments as `bayes_weight` and `blend_one` do, and tell whether no power of two is lost."""
    n, n_all = abs(count - 1.0), abs(all_count - 1.0)
    other = noise / n / n / (total / n_all / n_all * n)
    known = (count == 0.0) | ((other >= 2.0**-1000) & (other <= 2.0**1000))
    return blend_near(mu, mean, 1.0, 0.0 if noise == 0.0 else other), known


@stage
def blend_block(held: Array, n: int, everything: Array, rule: FusedRule, values: Array, sure: Array) -> bool:
    """Write the blends of a block, and which are certain; tell whether all are."""
    every, by_mean, prior = True, rule.by_mean, rule.prior
    total, total_low, part, part_low = everything[0], everything[1], everything[2], everything[3]
    around, around_low, all_count, all_slope = everything[4], everything[5], everything[6], everything[7]
    for i in range(n):
        k = np.uint64(i)
        own, own_low, v = held[k], held[k + P1], held[k + P8]
        mean, mean_known = rounded(*mean_of(v, 1.0, 0.0, own, own_low, held[k + P2], held[k + P3], MOMENT_BOUND))
        mu, mu_known = rounded(*mean_of(v, 1.0, 0.0, total, total_low, part, part_low, MOMENT_BOUND))
        noise, known = variance_of(v, own, own_low, held[k + P4], held[k + P5], held[k + P6], held[k + P7])
        whole, all_known = variance_of(v, total, total_low, around, around_low, all_count, all_slope)
        values[i], near = blend(mean, mu if by_mean else prior, noise, whole, held[k + P6], all_count)
        sure[i] = mean_known & (mu_known | (not by_mean)) & known & all_known & near
        every &= sure[i]
    return every


@stage
def settled_mean(
    v: float, weight: float, weight_low: float, top: float, top_low: float, share: float, share_low: float, bound: float
) -> tuple[float, bool]:
    """Give (A - K v) R, also if it is zero, or if A and K v are known exactly and it is the middle of two floats."""
    high, low, error = mean_of(v, weight, weight_low, top, top_low, share, share_low, bound)
    below, sure = rounded(high, low, error)
    left, left_low = two_sum(top, -weight * v)
    if weight == 1.0 and weight_low == 0.0 and is_all(top_low):
        left_low, lost = two_sum(left_low, top_low)
        if left == 0.0 and left_low == 0.0 and lost == 0.0:
            return 0.0, True
        if not sure and lost == 0.0:
            return round_tie(left, left_low, np.rint(1.0 / share), below, high + (low + error))
    return below, sure


@stage
def round_tie(left: float, left_low: float, n: float, below: float, above: float) -> tuple[float, bool]:
    """Round a quotient to one of two doubles, and tell whether it is in their middle."""
    product = n * below
    rest, lost = two_sum(left_low, n * (below - above) * 0.5)
    first, second = np.float64(below).view(np.int64), np.float64(above).view(np.int64)
    exact = lost == 0.0 and abs(first - second) == 1 and 2.0**-900 <= abs(below) <= 2.0**900
    tied = left - product - product_error(product, n, below) + rest == 0.0
    return above if first & 1 else below, exact and tied


@stage
def settle_row(
    v: float, line: Array, everything: Array, kind: int, blends: bool, rule: FusedRule
) -> tuple[float, bool]:
    """Give the encoding of a row that its block left open, and tell whether it is certain."""
    all_mean = everything[0], everything[1], everything[2], everything[3]
    if kind == CONSTANT:
        return line[1], True
    if not blends and kind == FORM:
        return settled_mean(v, everything[0], everything[1], line[0], line[1], line[2], line[3], ESTIMATE_BOUND)
    if kind == OF_ALL:
        return settled_mean(v, 1.0, 0.0, *all_mean, MOMENT_BOUND)
    if kind != FORM:
        return 0.0, False
    mean, mean_known = settled_mean(v, 1.0, 0.0, line[0], line[1], line[2], line[3], MOMENT_BOUND)
    mu, mu_known = settled_mean(v, 1.0, 0.0, *all_mean, MOMENT_BOUND) if rule.by_mean else (rule.prior, True)
    noise, known = variance_of(v, line[0], line[1], line[4], line[5], line[6], line[7])
    total, all_known = variance_of(
        v, everything[0], everything[1], everything[4], everything[5], everything[6], everything[7]
    )
    value, near = blend(mean, mu, noise, total, line[6], everything[6])
    return value, mean_known and mu_known and known and all_known and near


@stage
def list_rows(start: int, stop: int, listed: Array) -> int:
    """List the rows [start, stop), and give their number."""
    for i in range(stop - start):
        listed[i] = np.int64(start) + i
    return max(stop - start, 0)


@kernel
def encode_by_lines(
    rows: RowParts, lines: Lines, rule: FusedRule, start: int, stop: int, listed: Array, to: Destination
) -> tuple[int, int]:
    """Write the encodings of the rows [start, stop) that lines decide, and list the others from `start` on.

    It gives the number of encodings that the type cannot hold, and the number of listed rows.
    """
    lost, n_listed, in_order, n_lines = 0, 0, np.empty(0, np.int64), len(lines.kinds) - 1
    width, blends = len(lines.numbers) // len(lines.kinds), rule.blend.shrinkage.kind >= SIGMOID
    everything, kind = lines.numbers[n_lines * width :].copy(), rows.numbers.target_kind
    held, values, sure = np.empty((BLEND_WIDTH + 1) * BLOCK), np.empty(BLOCK), np.empty(BLOCK, np.bool_)
    for begin in range(start, stop, BLOCK):
        codes, n = rows.codes[begin : min(begin + BLOCK, stop)], min(BLOCK, stop - begin)
        read_rows(codes, rows.numbers.target[begin : begin + n], kind, lines.numbers, width, n_lines, held)
        if blends:
            every = blend_block(held, n, everything, rule, values, sure)
        else:
            every = estimate_block(held, n, everything[0], everything[1], values, sure)
        for i in range(0 if every else n):
            if not sure[i]:
                line = codes[i] + n_lines if codes[i] < 0 else np.int64(codes[i])
                mine = lines.numbers[line * width : (line + 1) * width]
                v = held[BLEND_WIDTH * BLOCK + i]
                values[i], sure[i] = settle_row(v, mine, everything, lines.kinds[line], blends, rule)
                if not sure[i]:
                    listed[np.uint64(start + n_listed)], values[i] = begin + i, 0.0
                    n_listed += 1
        lost += write(values[:n], to.columns[0], in_order, begin, to.wide, to.narrow)
        for i in range(n if len(to.unseen) else 0):
            sure[i] = lines.counted[codes[i] + n_lines if codes[i] < 0 else codes[i]]
        flag(sure[:n], in_order, begin, to.unseen)
        if 2 * n_listed > begin + n - start:
            # Exact code takes most rows, and the others cost it less than to decide them here.
            return lost, n_listed + list_rows(begin + n, stop, listed[start + n_listed :])
    return lost, n_listed


def has_closed_forms(parts: RowParts, n_lines: int, shape: Shape, rule: FusedRule) -> bool:
    """Tell whether rows have closed forms: at least one for each line, no classes, no weights, no extreme numbers."""
    numbers, prior, m = parts.numbers, 0.0 if rule.by_mean else rule.prior, rule.blend.shrinkage.first
    plain_rows = not (len(parts.classes) or shape.by_class or numbers.weight_kind) and numbers.target_kind
    counted = shape.n_classes == shape.n_width == 1 and shape.n_low == 0
    known = in_range(prior) and (prior != 0.0 or math.copysign(1.0, prior) > 0.0)
    known = known and (rule.blend.shrinkage.kind != M_ESTIMATE or in_range(m))
    return bool(plain_rows and counted and known and len(parts.codes) >= n_lines)


def encode_by_closed_forms(
    accumulators: Array, total: Array, parts: RowParts, cell_rule: CellRule, to: Destination
) -> tuple[int, Array]:
    """Write the encodings that closed forms decide; give the number of lost encodings, and the rows left open."""
    (shape, _, rule), n_rows = cell_rule, len(parts.codes)
    n_lines = len(accumulators) // cell_width(shape)
    if not has_closed_forms(parts, n_lines, shape, rule):
        return 0, np.arange(n_rows)
    blends = rule.blend.shrinkage.kind >= SIGMOID
    numbers = empty((n_lines + 1) * (BLEND_WIDTH if blends else ESTIMATE_WIDTH), np.float64)
    lines = Lines(numbers, empty(n_lines + 1, np.uint8), np.empty(n_lines + 1, np.bool_))
    of_lines, of_rows = (shares(number, smallest=SMALLEST_SHARE) for number in (n_lines + 1, n_rows))
    make = make_blends if blends else make_estimates
    run(lambda share: make(accumulators, total, shape, rule, *of_lines[share], lines), len(of_lines))
    listed, counts = empty(n_rows, np.int64), [(0, 0)] * len(of_rows)

    def encode(share: int) -> None:
        counts[share] = encode_by_lines(parts, lines, rule, *of_rows[share], listed, to)

    run(encode, len(of_rows))
    open_rows = [listed[start : start + n] for (start, _), (_, n) in zip(of_rows, counts, strict=True)]
    return sum(lost for lost, _ in counts), np.concatenate(open_rows)


def leave_one_out_encodings(
    accumulators: Array,
    total: Array,
    rows: "Rows",
    layout: "Layout",
    rule: FusedRule,
    out: RowEncodings,
    /,
) -> int | None:
    """Write the encoding of every row from all others; see `gpu_encode.seam.ops.FusedOps`."""
    n_classes = accumulators.shape[1]
    if (to := destination(out)) is None:
        return None
    sums = freeze(accumulators, np.int64).reshape(-1), freeze(total, np.int64).reshape(-1)
    parts = parts_of(rows, layout)
    cell_rule = CellRule(shape_of(layout, n_classes), n_classes - out.values.shape[1], rule)
    lost, numbers = encode_by_closed_forms(*sums, parts, cell_rule, to)
    if 0 < len(numbers) < len(rows):
        parts = parts_of(rows.pick(numbers), layout)
    if len(numbers):
        lost += sum(
            run_for_rows(leave_out_range, len(numbers), (*sums, parts, freeze(numbers, np.int64), cell_rule), to)
        )
    return lost
