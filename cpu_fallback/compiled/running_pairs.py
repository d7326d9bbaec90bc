"""Running sums of the rows of an order, as pairs of floats with bounds of their errors.

A category has a line of numbers: S, the sum of weight times target, and N, the sum of weights, as pairs; for blends
also Q, the sum of weight times (target - c)**2, where the centre c is the target of the category's first row.  So Q
loses nothing if targets are far from zero, and it is exactly zero if all are equal.

Errors
------
u is 2**-53.  A pair (h, l) has abs(l) <= u abs(h).  `add_pair` adds two pairs by exact two-sums, and gives the sum of
the magnitudes of all that it drops, which is nearly always zero.  The error of S is at most the sum of these, NOISE,
and that of N at most N_LOST.  Weights are not negative, so each step drops at most 2**-104 of N, and N is within
2**-103 (rows + 2) of itself.  The part of a row of Q is d**2 + 2 d d', where d + d' = v - c exactly, times its weight.
What it leaves out or rounds is nothing if d' is zero, else below 2**-100 of the part; the sum of this, and of what
additions drop, is Q_NOISE.
"""

from typing import NamedTuple

import numpy as np

from cpu_fallback.compiled.border import REAL, Array, Numbers, inlined, set_all, stage
from cpu_fallback.compiled.closed_forms import weigh
from cpu_fallback.compiled.product_errors import product_error
from cpu_fallback.compiled.ties import two_sum
from cpu_fallback.fused_rules import FusedRule

# Numbers of a line.  Only blends have those from Q on, only weights have a rounded N.
S, S_LOW, NOISE, N = 0, 1, 2, 3
Q, Q_LOW, Q_NOISE, CENTRE = 4, 5, 6, 7
N_LOW, N_LOST = 8, 9
ESTIMATE_WIDTH, BLEND_WIDTH, WEIGHED_WIDTH = 4, 8, 10
# A part of Q errs by at most so much of itself.
PART_BOUND = 2.0**-100
# Lines over which neighbouring rows are spread, so that additions need not wait for each other.
LANES = 4


class Form(NamedTuple):
    """What the lines of an order hold.

    Parameters
    ----------
    width : int
        Numbers from one line to the next.
    weighted, blends : bool
        Whether rows have weights, and whether Q is needed.
    rule : FusedRule
    """

    width: int
    weighted: bool
    blends: bool
    rule: FusedRule


@inlined
def is_moderate(value: float) -> bool:
    """Tell whether no product or quotient of a few such numbers leaves the normal numbers."""
    return value == 0 or 2.0**-150 < abs(value) < 2.0**150


@inlined
def number_of(word: np.uint64, kind: int) -> float:
    """Give a number as a float; a whole number that a float may not hold becomes NaN."""
    if kind == REAL:
        return np.uint64(word).view(np.float64)
    whole = np.int64(word)
    return np.float64(whole) if -(1 << 53) < whole < (1 << 53) else np.nan


@inlined
def add_pair(high: float, low: float, other: float, other_low: float) -> tuple[float, float, float]:
    """Give the sum of two pairs as a pair, and the magnitude of what it leaves out."""
    total, error = two_sum(high, other)
    rest, lost = two_sum(low, other_low)
    rest, dropped = two_sum(rest, error)
    total, rest = two_sum(total, rest)
    return total, rest, abs(lost) + abs(dropped)


@inlined
def add_square(v: float, weight: float, centre: float, sums: Array, at: int) -> None:
    """Add the part of Q of one row to a line."""
    apart, rest = two_sum(v, -centre)
    square = apart * apart
    part, part_low = weigh(square, product_error(square, apart, apart) + 2.0 * apart * rest, weight)
    total, low, lost = add_pair(sums[np.uint64(at + Q)], sums[np.uint64(at + Q_LOW)], part, part_low)
    sums[np.uint64(at + Q)], sums[np.uint64(at + Q_LOW)] = total, low
    sums[np.uint64(at + Q_NOISE)] += lost + (0.0 if rest == 0.0 and abs(weight) == 1.0 else abs(part) * PART_BOUND)


@inlined
def add_row(
    v: float, weight: float, product: float, error: float, centre: float, form: Form, sums: Array, at: int
) -> None:
    """Add a row to a line, or take it away if its weight and product are negative."""
    if form.blends:
        add_square(v, weight, centre, sums, at)
    total, low, lost = add_pair(sums[np.uint64(at)], sums[np.uint64(at + S_LOW)], product, error)
    sums[np.uint64(at)], sums[np.uint64(at + S_LOW)] = total, low
    if form.weighted:
        count, low, dropped = add_pair(sums[np.uint64(at + N)], sums[np.uint64(at + N_LOW)], weight, 0.0)
        sums[np.uint64(at + N)], sums[np.uint64(at + N_LOW)] = count, low
        sums[np.uint64(at + N_LOST)] += dropped
    else:
        sums[np.uint64(at + N)] += weight
    sums[np.uint64(at + NOISE)] += lost


@inlined
def see(sums: Array, at: int, form: Form, out: Array, to: int, step: int) -> None:
    """Write the sums of a line as a row sees them, each `step` numbers after the one before it."""
    for k in range(ESTIMATE_WIDTH):
        out[np.uint64(to + k * step)] = sums[np.uint64(at + k)]
    if form.blends:
        for k in range(ESTIMATE_WIDTH, BLEND_WIDTH):
            out[np.uint64(to + k * step)] = sums[np.uint64(at + k)]
    if form.weighted:
        for k in range(BLEND_WIDTH, WEIGHED_WIDTH):
            out[np.uint64(to + k * step)] = sums[np.uint64(at + k)]


@stage
def add_line(sums: Array, at: int, form: Form, out: Array, to: int) -> None:
    """Add a line to another one, which has the same centre."""
    out[to], out[to + S_LOW], lost = add_pair(out[to], out[to + S_LOW], sums[at], sums[at + S_LOW])
    out[to + NOISE] += sums[at + NOISE] + lost
    if form.blends:
        out[to + Q], out[to + Q_LOW], lost = add_pair(out[to + Q], out[to + Q_LOW], sums[at + Q], sums[at + Q_LOW])
        out[to + Q_NOISE] += sums[at + Q_NOISE] + lost
    if form.weighted:
        out[to + N], out[to + N_LOW], lost = add_pair(out[to + N], out[to + N_LOW], sums[at + N], sums[at + N_LOW])
        out[to + N_LOST] += sums[at + N_LOST] + lost
    else:
        out[to + N] += sums[at + N]


@inlined
def number_and_weight(numbers: Numbers, row: np.uint64, form: Form) -> tuple[float, float, float, float]:
    """Give target and weight of a row, their product, and its rounding error."""
    v = number_of(numbers.target[row], numbers.target_kind)
    if not form.weighted:
        return v, 1.0, v, 0.0
    weight = number_of(numbers.weight[row], numbers.weight_kind)
    product = weight * v
    return v, weight, product, product_error(product, weight, v)


@stage
def sum_piece(numbers: Numbers, begin: int, end: int, centre: float, form: Form, lanes: Array, to: Array) -> bool:
    """Write the sums of neighbouring rows; tell whether all of their numbers are in range."""
    known, line = True, len(lanes) // LANES
    set_all(lanes, 0.0)
    for i in range(begin, end):
        v, weight, product, error = number_and_weight(numbers, np.uint64(i), form)
        known &= is_moderate(v) & is_moderate(weight) & (weight >= 0.0) & is_moderate(product)
        add_row(v, weight, product, error, centre, form, lanes, (i & (LANES - 1)) * line)
    set_all(to, 0.0)
    if form.blends:
        to[CENTRE] = centre
    for lane in range(LANES):
        add_line(lanes, lane * line, form, to, 0)
    return known
