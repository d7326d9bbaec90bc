"""Running sums of the rows of an order, as pairs of floats with bounds of their errors.

A category has a line of numbers: S, the sum of weight times target, and N, the sum of weights, as pairs; for blends
also Q, the sum of weight times (target - c)**2, where the centre c is the target of the category's first row.  So Q
loses nothing if targets are far from zero, and it is exactly zero if all are equal.  If rows lose weight with age, a
line has these sums for the block of the last row, and for the block before it, which a row sees times 2**-64; and c is
the target of the last row, since first rows may have next to no weight.

Errors
------
u is 2**-53.  A pair (h, l) has abs(l) <= u abs(h).  `add_pair` adds two pairs by exact two-sums, and gives the sum of
the magnitudes of all that it drops, which is nearly always zero.  The error of S is at most the sum of these, NOISE,
and that of N at most N_LOST.  Weights are not negative, so each step drops at most 2**-104 of N, and N is within
2**-103 (rows + 2) of itself.  The part of a row of Q is d**2 + 2 d d', where d + d' = v - c exactly, times its weight.
What it leaves out or rounds is nothing if d' is zero, else below 2**-100 of the part; the sum of this, and of what
additions drop, is Q_NOISE.

`recentre` brings Q from a centre c' to c: with x = c' - c, which is a pair, it is Q + 2 x (S - N c') + x**2 N.  Its
steps err by less than 2**-98 of the sizes of their terms, and by 2 x times NOISE and N_LOST c'.
"""

from typing import NamedTuple

import numpy as np

from cpu_fallback.compiled.border import Array, inlined, stage
from cpu_fallback.compiled.closed_forms import plus, times, weigh
from cpu_fallback.compiled.product_errors import product_error
from cpu_fallback.compiled.ties import two_sum
from cpu_fallback.fused_rules import FusedRule

# Numbers of a line.  Only blends have those from Q on, only weights have a rounded N, only ages have blocks.
S, S_LOW, NOISE, N = 0, 1, 2, 3
Q, Q_LOW, Q_NOISE, CENTRE = 4, 5, 6, 7
N_LOW, N_LOST, NOW, OLDER = 8, 9, 10, 11
# Numbers of the sums that a row sees.
SEEN = 10
ESTIMATE_WIDTH, BLEND_WIDTH, WEIGHED_WIDTH, AGEING_WIDTH = 4, 8, SEEN, OLDER + SEEN
BLOCK_BEFORE = 2.0**-64
# A part of Q errs by at most so much of itself; parts that are brought to another centre, by at most the second number.
PART_BOUND, CENTRE_BOUND = 2.0**-100, 2.0**-98


class Form(NamedTuple):
    """What the lines of an order hold.

    Parameters
    ----------
    width : int
        Numbers of a line.
    weighted, blends, by_time, decays : bool
        Whether rows have weights, Q is needed, each time has a prior of its own, and rows lose weight with age.
    lanes : int
        Lines over which the rows of all categories are spread, so that additions need not wait for each other.
    rule : FusedRule
    """

    width: int
    weighted: bool
    blends: bool
    by_time: bool
    decays: bool
    lanes: int
    rule: FusedRule


@inlined
def is_moderate(value: float) -> bool:
    """Tell whether no product or quotient of a few such numbers leaves the normal numbers."""
    return value == 0 or 2.0**-150 < abs(value) < 2.0**150


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
    sums[np.uint64(at + Q_NOISE)] += lost + (0.0 if rest == 0.0 and abs(weight) == 1.0 else part * PART_BOUND)


@inlined
def recentre(sums: Array, at: int, centre: float) -> tuple[float, float, float]:
    """Give the Q of a line around another centre, as a pair, and the bound of its error."""
    own, apart = sums[at + CENTRE], two_sum(sums[at + CENTRE], -centre)
    weight = weigh(sums[at + N], sums[at + N_LOW], own)
    left = two_sum(*plus(sums[at], sums[at + S_LOW], -weight[0], -weight[1]))
    moved = times(apart[0], apart[1], 2.0 * left[0], 2.0 * left[1])
    square = times(apart[0], apart[1], apart[0], apart[1])
    weight = times(square[0], square[1], sums[at + N], sums[at + N_LOW])
    moved = plus(moved[0], moved[1], weight[0], weight[1])
    total = plus(sums[at + Q], sums[at + Q_LOW], moved[0], moved[1])
    size = sums[at + Q] + weight[0] + 2.0 * abs(apart[0]) * (abs(sums[at]) + abs(sums[at + N] * own))
    noise = (
        sums[at + Q_NOISE]
        + 2.0 * abs(apart[0]) * (sums[at + NOISE] + sums[at + N_LOST] * abs(own))
        + size * CENTRE_BOUND
    )
    return total[0], total[1], noise


@inlined
def add_row(v: float, weight: float, product: float, error: float, form: Form, sums: Array, at: int, home: int) -> None:
    """Add a row to a line; the centre is that of the line `home`."""
    if form.blends and form.decays:
        if sums[np.uint64(at + N)] != 0.0:
            total, low, noise = recentre(sums, at, v)
            sums[np.uint64(at + Q)], sums[np.uint64(at + Q_LOW)], sums[np.uint64(at + Q_NOISE)] = total, low, noise
        sums[np.uint64(at + CENTRE)] = v
    elif form.blends:
        if sums[np.uint64(home + N)] == 0.0:
            sums[np.uint64(home + CENTRE)] = v
        add_square(v, weight, sums[np.uint64(home + CENTRE)], sums, at)
    total, low, lost = add_pair(sums[np.uint64(at)], sums[np.uint64(at + S_LOW)], product, error)
    sums[np.uint64(at)], sums[np.uint64(at + S_LOW)] = total, low
    if form.weighted:
        count, low, dropped = add_pair(sums[np.uint64(at + N)], sums[np.uint64(at + N_LOW)], weight, 0.0)
        sums[np.uint64(at + N)], sums[np.uint64(at + N_LOW)] = count, low
        sums[np.uint64(at + N_LOST)] += dropped
    else:
        sums[np.uint64(at + N)] += weight
    sums[np.uint64(at + NOISE)] += lost


@stage
def enter_block(block: float, sums: Array, at: int) -> None:
    """Bring a line to a block; only sums of this block and of the one before are kept."""
    if sums[at + NOW] != block:
        follows = sums[at + NOW] == block - 1.0
        for k in range(at, at + SEEN):
            sums[k + OLDER], sums[k] = sums[k] if follows else 0.0, 0.0
        sums[at + NOW] = block


@inlined
def see_squares(sums: Array, at: int, out: Array, to: int, step: int) -> None:
    """Write the Q of a line as a row of its block sees it."""
    older, centre = at + OLDER, sums[at + CENTRE]
    if sums[at + N] == 0.0 or sums[older + N] == 0.0:
        only, factor = (older, BLOCK_BEFORE) if sums[at + N] == 0.0 else (at, 1.0)
        centre = sums[only + CENTRE]
        total, low, noise = sums[only + Q] * factor, sums[only + Q_LOW] * factor, sums[only + Q_NOISE] * factor
    else:
        other, other_low, other_noise = recentre(sums, older, centre)
        total, low, lost = add_pair(sums[at + Q], sums[at + Q_LOW], other * BLOCK_BEFORE, other_low * BLOCK_BEFORE)
        noise = sums[at + Q_NOISE] + other_noise * BLOCK_BEFORE + lost
    out[np.uint64(to + Q * step)], out[np.uint64(to + Q_LOW * step)] = total, low
    out[np.uint64(to + Q_NOISE * step)], out[np.uint64(to + CENTRE * step)] = noise, centre


@inlined
def see_blocks(sums: Array, at: int, blends: bool, out: Array, to: int, step: int) -> None:
    """Write the sums of a line as a row of its block sees them."""
    older = at + OLDER
    total, low, lost = add_pair(
        sums[at], sums[at + S_LOW], sums[older] * BLOCK_BEFORE, sums[older + S_LOW] * BLOCK_BEFORE
    )
    count, count_low, dropped = add_pair(
        sums[at + N], sums[at + N_LOW], sums[older + N] * BLOCK_BEFORE, sums[older + N_LOW] * BLOCK_BEFORE
    )
    noise = sums[at + NOISE] + sums[older + NOISE] * BLOCK_BEFORE + lost
    out[np.uint64(to)], out[np.uint64(to + S_LOW * step)], out[np.uint64(to + NOISE * step)] = total, low, noise
    out[np.uint64(to + N * step)], out[np.uint64(to + N_LOW * step)] = count, count_low
    out[np.uint64(to + N_LOST * step)] = sums[at + N_LOST] + sums[older + N_LOST] + dropped
    if blends:
        see_squares(sums, at, out, to, step)


@inlined
def see(sums: Array, at: int, form: Form, out: Array, to: int, step: int) -> None:
    """Write the sums of a line as a row sees them, each `step` numbers after the one before it."""
    if form.decays:
        see_blocks(sums, at, form.blends, out, to, step)
    else:
        for k in range(ESTIMATE_WIDTH):
            out[np.uint64(to + k * step)] = sums[np.uint64(at + k)]
        if form.blends:
            for k in range(ESTIMATE_WIDTH, BLEND_WIDTH):
                out[np.uint64(to + k * step)] = sums[np.uint64(at + k)]
        if form.weighted:
            for k in range(BLEND_WIDTH, SEEN):
                out[np.uint64(to + k * step)] = sums[np.uint64(at + k)]


@stage
def see_all(sums: Array, at: int, form: Form, out: Array, to: int) -> None:
    """Write the sums of all lanes, the first of which begins at `at`."""
    see(sums, at, form, out, to, 1)
    for lane in range(1, form.lanes):
        other = at + lane * form.width
        out[to], out[to + S_LOW], lost = add_pair(out[to], out[to + S_LOW], sums[other], sums[other + S_LOW])
        out[to + NOISE] += sums[other + NOISE] + lost
        out[to + N] += sums[other + N]
        if form.blends:
            high, low, lost = add_pair(out[to + Q], out[to + Q_LOW], sums[other + Q], sums[other + Q_LOW])
            out[to + Q], out[to + Q_LOW] = high, low
            out[to + Q_NOISE] += sums[other + Q_NOISE] + lost
