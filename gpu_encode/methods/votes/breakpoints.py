"""Shares at which a positive and a negative row swap their order, when two vectors of scores are blended."""

from typing import NamedTuple

import numpy as np

from cpu_fallback.exact import Floats, Integers
from gpu_encode.seam.ops import tiles

# The differences of this number of pairs fit into the cache of a processor.
PAIRS_AT_ONCE = 1 << 14
# Shares that differ by less count as equal: scores with few decimals give equal shares that only rounding separates.
NARROWEST = 2.0**-40


class Interval(NamedTuple):
    """Shares of the first vector between which the area under the ROC curve does not change."""

    low: float
    high: float
    twice: int


class Side(NamedTuple):
    """Rows of one class: scores in both vectors, and whole weights."""

    first: Floats
    second: Floats
    weight: Integers


def best_interval(positive: Side, negative: Side) -> Interval:
    """Find the interval of shares a in (0, 1) in which a * first + (1 - a) * second orders most pairs correctly.

    A pair that the two vectors order differently swaps its order at one share, its breakpoint.  So between two
    breakpoints, twice the number of correctly ordered pairs is a constant whole number.  At the breakpoint itself the
    pair is tied, which is never better than both sides.  Neighbouring intervals with the same number are joined.  Among
    equally good intervals the widest is returned, and among these the lowest.  Intervals of at most 2**-40 are left
    out.

    Parameters
    ----------
    positive, negative : Side

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode.methods.votes.breakpoints import Side, best_interval
    >>> one = np.ones(1, np.int64)
    >>> best_interval(Side(np.array([3.0]), np.array([0.0]), one), Side(np.array([0.0]), np.array([1.0]), one))
    Interval(low=0.25, high=1.0, twice=2)
    """
    start, shares, jumps = turns(positive, negative)
    order = np.argsort(shares)
    shares, values = shares[order], start + np.cumsum(jumps[order])
    # Each value holds from its share to the next share with another value.
    edges = np.append(shares, 1.0)
    values = np.append(start, values)
    lows = np.append(0.0, edges[:-1])
    there = edges - lows > NARROWEST
    lows, values = lows[there], values[there]
    begins = np.append(True, values[1:] != values[:-1])
    lows, values = lows[begins], values[begins]
    highs = np.append(lows[1:], 1.0)
    best = np.flatnonzero(values == values.max())
    widest = best[np.argmax(highs[best] - lows[best])]
    return Interval(float(lows[widest]), float(highs[widest]), int(values[widest]))


def turns(positive: Side, negative: Side) -> tuple[int, Floats, Integers]:
    """Give twice the correct pairs at a share just above 0, the shares at which pairs swap, and the change at each."""
    start, shares, jumps = 0, [np.empty(0)], [np.empty(0, np.int64)]
    # For a pair of differences (first, second): correct just above 0 if second > 0, or if second is 0 and first > 0.
    for begin, end in tiles(len(positive.first), max(PAIRS_AT_ONCE // len(negative.first), 1)):
        rows = slice(begin, end)
        first = positive.first[rows, None] - negative.first
        second = positive.second[rows, None] - negative.second
        weight = positive.weight[rows, None] * negative.weight
        leads = np.where(second == 0, first, second)
        start += int((weight * (1 + np.sign(leads).astype(np.int64))).sum())
        rises, falls = (first > 0) & (second < 0), (first < 0) & (second > 0)
        turning = rises | falls
        shares.append(second[turning] / (second[turning] - first[turning]))
        jumps.append(2 * np.where(rises, weight, -weight)[turning])
    return start, np.concatenate(shares), np.concatenate(jumps)
