"""Running sums of the rows of an order, as pairs of floats with bounds of their errors.

A category has a line of numbers: S, the sum of weight times target, and N, the sum of weights, as pairs; for blends
also Q, the sum of weight times (target - c)**2, where the centre c is the target of the category's first row.  So Q
loses nothing if targets are far from zero, and it is exactly zero if all are equal.

Errors
------
u is 2**-53.  A pair (h, l) has abs(l) <= u abs(h).  `add_pair` adds two pairs by exact two-sums, and gives the sum of
the magnitudes of all that it drops, which is nearly always zero.  The error of S is at most the sum of these, NOISE,
and that of N at most N_LOST.  The part of a row of Q is d**2 + 2 d d', where d + d' = v - c exactly, times its weight.
What it leaves out or rounds is nothing if d' is zero, else below 2**-100 of the part; the sum of this, and of what
additions drop, is Q_NOISE.

Half-lives
----------
Weights are on the scale of a block of steps (`cpu_fallback.decay`), and a row sees the rows of its block and, times
2**-64, those of the block before.  Both have lines of their own, so that rows which no longer count leave no error
behind.  While both hold rows, they have the same centre: the target of the first row of the block, and later that of a
row that outweighs all others, or of any row when nearly all of N Q is due to the distance of mean and centre.  So V
hardly cancels.  With d + d' = c - c' exactly and P = S - N c, Q around c' is Q + 2 d P + d**2 N.  P errs by less than h
= NOISE + N_LOST abs(c) + 2**-100 (abs(S) + abs(N c)); so 2 d h, d**2 N_LOST, and 2**-100 of both parts go to Q_NOISE.
"""

from typing import NamedTuple

import numpy as np

from cpu_fallback.compiled.border import REAL, Array, Numbers, inlined, stage
from cpu_fallback.compiled.closed_forms import plus, times, weigh
from cpu_fallback.compiled.product_errors import product_error
from cpu_fallback.compiled.ties import two_sum
from cpu_fallback.fused_rules import FusedRule

# Numbers of sums.  Only weights have a rounded N, only blends have those from Q on.
S, S_LOW, NOISE, N, N_LOW, N_LOST = 0, 1, 2, 3, 4, 5
Q, Q_LOW, Q_NOISE, CENTRE = 6, 7, 8, 9
PLAIN_WIDTH, WEIGHED_WIDTH, ALL_WIDTH = 4, 6, 10
# With a half-life, a line has the number of its block, and N of the block before times 2**-64.
BLOCK_NUMBER, N_EARLIER = 6, 7
# Numbers from one line to the next, and where those from Q on begin.
PLAIN_STEP, WEIGHED_STEP, LARGEST_STEP = 4, 8, 16
Q_LINE_LOW, Q_LINE_NOISE, CENTRE_LINE = 1, 2, 3
BLOCK_BEFORE = 2.0**-64
# A row outweighs all others if its weight is so many times theirs; and what part of N Q is nearly all of it.
OUTWEIGHS, NEARLY_ALL = 16.0, 0.999
# A part of Q errs by at most so much of itself.
PART_BOUND = 2.0**-100


class Form(NamedTuple):
    """What the lines of an order hold.

    Parameters
    ----------
    width, around : int
        Numbers from one line to the next, and where those from Q on begin in a line.
    weighted, blends, decays : bool
        Whether rows have weights, whether Q is needed, and whether there is a half-life.
    rule : FusedRule
    """

    width: int
    around: int
    weighted: bool
    blends: bool
    decays: bool
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
def scale_pair(high: float, low: float, factor: float) -> tuple[float, float, float]:
    """Give a pair times a number as a pair, and the magnitude of what it leaves out."""
    product, below = high * factor, low * factor
    rest, lost = two_sum(product_error(product, high, factor), below)
    product, rest = two_sum(product, rest)
    return product, rest, abs(lost) + abs(product_error(below, low, factor))


@inlined
def square_of(v: float, weight: float, centre: float) -> tuple[float, float, float]:
    """Give the part of Q of one row as a pair, and the bound of what it leaves out."""
    apart, rest = two_sum(v, -centre)
    square = apart * apart
    part, part_low = weigh(square, product_error(square, apart, apart) + 2.0 * apart * rest, weight)
    return part, part_low, 0.0 if (rest == 0.0) & (abs(weight) == 1.0) else abs(part) * PART_BOUND


@inlined
def add_square(v: float, weight: float, centre: float, sums: Array, at: int) -> None:
    """Add the part of Q of one row to a line whose Q is at `at`."""
    part, part_low, noise = square_of(v, weight, centre)
    total, low, lost = add_pair(sums[np.uint64(at)], sums[np.uint64(at + Q_LINE_LOW)], part, part_low)
    sums[np.uint64(at)], sums[np.uint64(at + Q_LINE_LOW)] = total, low
    sums[np.uint64(at + Q_LINE_NOISE)] += lost + noise


@inlined
def add_row(
    v: float, weight: float, product: float, error: float, centre: float, form: Form, sums: Array, at: int
) -> None:
    """Add a row to a line, or take it away if its weight and product are negative."""
    if form.blends:
        add_square(v, weight, centre, sums, at + form.around)
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
    for k in range(PLAIN_WIDTH):
        out[np.uint64(to + k * step)] = sums[np.uint64(at + k)]
    if form.weighted:
        for k in range(PLAIN_WIDTH, WEIGHED_WIDTH):
            out[np.uint64(to + k * step)] = sums[np.uint64(at + k)]
    if form.blends:
        for k in range(ALL_WIDTH - WEIGHED_WIDTH):
            out[np.uint64(to + (k + Q) * step)] = sums[np.uint64(at + form.around + k)]
    if form.decays and sums[np.uint64(at + N_EARLIER)] != 0.0:
        earlier = at + len(sums) // 2
        see_earlier(sums, earlier + S, S_LOW - S, NOISE - S, out, to + S * step, step)
        see_earlier(sums, earlier + N, N_LOW - N, N_LOST - N, out, to + N * step, step)
        if form.blends:
            see_earlier(sums, earlier + form.around, Q_LOW - Q, Q_NOISE - Q, out, to + Q * step, step)


@inlined
def see_earlier(sums: Array, at: int, low: int, noise: int, out: Array, to: int, step: int) -> None:
    """Add one of the sums of the block before to what a row sees; its lower number and bound follow it."""
    first, second, third = np.uint64(to), np.uint64(to + low * step), np.uint64(to + noise * step)
    total, rest = sums[np.uint64(at)] * BLOCK_BEFORE, sums[np.uint64(at + low)] * BLOCK_BEFORE
    out[first], out[second], lost = add_pair(out[first], out[second], total, rest)
    out[third] += sums[np.uint64(at + noise)] * BLOCK_BEFORE + lost


@stage
def change_block(block: float, form: Form, sums: Array, at: int) -> None:
    """Bring a line to another block; the second half of `sums` has the lines of the block before."""
    follows, earlier = sums[at + BLOCK_NUMBER] == block - 1.0, at + len(sums) // 2
    sums[at + BLOCK_NUMBER] = block
    sums[at + N_EARLIER] = sums[at + N] * BLOCK_BEFORE if follows else 0.0
    for k in range(form.width):
        if k in (BLOCK_NUMBER, N_EARLIER):
            continue
        if follows:
            sums[earlier + k] = sums[at + k]
        if k != form.around + CENTRE_LINE:
            sums[at + k] = 0.0


@inlined
def enter_block(block: float, form: Form, sums: Array, at: int) -> None:
    """Bring a line to a block."""
    if sums[np.uint64(at + BLOCK_NUMBER)] != block:
        change_block(block, form, sums, at)


@stage
def move_centre(sums: Array, at: int, around: int, centre: float) -> None:
    """Turn the Q of a line into that around another centre."""
    count, count_low, before = sums[at + N], sums[at + N_LOW], sums[at + around + CENTRE_LINE]
    step, step_low = two_sum(before, -centre)
    whole, whole_low = weigh(count, count_low, before)
    apart, apart_low = two_sum(*plus(sums[at], sums[at + S_LOW], -whole, -whole_low))
    moved = sums[at + NOISE] + sums[at + N_LOST] * abs(before) + PART_BOUND * (abs(sums[at]) + abs(whole))
    first, first_low = times(step, step_low, 2.0 * apart, 2.0 * apart_low)
    second, second_low = times(*times(step, step_low, step, step_low), count, count_low)
    change, change_low = two_sum(*plus(first, first_low, second, second_low))
    high, low, lost = add_pair(sums[at + around], sums[at + around + Q_LINE_LOW], change, change_low)
    lost += PART_BOUND * (abs(first) + second) + 2.0 * abs(step) * moved + step * step * sums[at + N_LOST]
    sums[at + around], sums[at + around + Q_LINE_LOW] = high, low
    sums[at + around + Q_LINE_NOISE] += lost
    sums[at + around + CENTRE_LINE] = centre


@inlined
def is_far(sums: Array, at: int, form: Form, weight: float) -> bool:
    """Tell whether a row that comes to a line should be its centre."""
    centre, total, around = sums[np.uint64(at + form.around + CENTRE_LINE)], sums[np.uint64(at)], form.around
    n, squares = sums[np.uint64(at + N)] + sums[np.uint64(at + N_EARLIER)], sums[np.uint64(at + around)]
    if sums[np.uint64(at + N_EARLIER)] != 0.0:
        earlier = at + len(sums) // 2
        total += sums[np.uint64(earlier)] * BLOCK_BEFORE
        squares += sums[np.uint64(earlier + around)] * BLOCK_BEFORE
    apart = total - n * centre
    return (weight >= OUTWEIGHS * n) | (apart * apart > NEARLY_ALL * n * squares)


@inlined
def centre_line(v: float, weight: float, form: Form, sums: Array, at: int) -> None:
    """Move the centre of a line with a half-life to a row that comes, if it is the first one, or the centre is far."""
    first, centre = sums[np.uint64(at + N)] == 0.0, sums[np.uint64(at + form.around + CENTRE_LINE)]
    if centre != v and (first or is_far(sums, at, form, weight)):
        move_centre(sums, at, form.around, v)
        if sums[np.uint64(at + N_EARLIER)] != 0.0:
            move_centre(sums, at + len(sums) // 2, form.around, v)


@stage
def add_line(sums: Array, at: int, form: Form, out: Array, to: int) -> None:
    """Add a line to another one, which has the same centre."""
    out[to], out[to + S_LOW], lost = add_pair(out[to], out[to + S_LOW], sums[at], sums[at + S_LOW])
    out[to + NOISE] += sums[at + NOISE] + lost
    if form.blends:
        from_, into = at + form.around, to + form.around
        low = into + Q_LINE_LOW
        out[into], out[low], lost = add_pair(out[into], out[low], sums[from_], sums[from_ + Q_LINE_LOW])
        out[into + Q_LINE_NOISE] += sums[from_ + Q_LINE_NOISE] + lost
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


@inlined
def are_in_range(v: float, weight: float, product: float) -> bool:
    """Tell whether pairs can hold the numbers of a row."""
    return is_moderate(v) & is_moderate(weight) & (weight >= 0.0) & is_moderate(product)
