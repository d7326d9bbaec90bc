"""The best partition of numbers into clusters; its clusters are intervals of the sorted numbers."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from cpu_fallback.exact import Floats, Integers


def partition(values: Floats, weights: Floats, n_clusters: int) -> Integers:
    """Give the cluster of each number, numbered by rank, with the least weighted sum of squares within clusters.

    Parameters
    ----------
    values : float64 array (n,)
        Finite numbers, in any order.
    weights : float64 array (n,)
        Above zero.
    n_clusters : int
        There are fewer if there are fewer distinct numbers, since equal numbers are never separated.

    Returns
    -------
    int64 array (n,)

    Notes
    -----
    Dynamic programming over the sorted numbers, with divide and conquer in each step: O(K n log n).  Costs are
    differences of running sums in float64.  So partitions count as equal if their costs differ by less than the
    rounding of these sums. Among equal ones, the last cluster begins as early as possible, then the one before it, and
    so on.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode.methods.cluster.partition import partition
    >>> partition(np.array([0.5, 0.0, 0.0, 1.0, 0.5, 1.0]), np.full(6, 10.0), 3).tolist()
    [1, 0, 0, 2, 1, 2]
    """
    distinct, codes = np.unique(values, return_inverse=True)
    of_distinct = np.bincount(codes, weights, len(distinct)).astype(np.float64)
    borders = find_borders(distinct, of_distinct, min(n_clusters, len(distinct)))
    return np.searchsorted(borders, np.arange(len(distinct)), side="right")[codes]


def find_borders(values: Floats, weights: Floats, n_clusters: int) -> Integers:
    """Give the positions at which clusters other than the first begin, for distinct numbers in rising order."""
    sums = RunningSums.of(values, weights)
    ends = np.arange(len(values) + 1)
    costs, starts = sums.costs(np.zeros_like(ends), ends), []
    for number in range(1, n_clusters):
        costs, start = add_cluster(costs, sums, number)
        starts.append(start)
    borders = [len(values)]
    for start in reversed(starts):
        borders.append(int(start[borders[-1]]))
    return np.array(borders[:0:-1], np.int64)


@dataclass(frozen=True)
class RunningSums:
    """Sums of the weights, numbers and squares before each position: (n + 1,)."""

    weight: Floats
    first: Floats
    second: Floats

    @classmethod
    def of(cls, values: Floats, weights: Floats) -> Self:
        """Sum numbers after subtracting one from their middle, so that differences of sums lose few digits."""
        # Dividing by a power of two rounds nothing, and keeps squares in the range of floats.
        near = np.ldexp(values, -int(np.frexp(np.abs(values).max(initial=0.0))[1]))
        middle = np.average(near, weights=weights) if len(near) else 0.0
        if len(near):
            near = near - near[np.abs(near - middle).argmin()]
        terms = weights, weights * near, weights * near * near
        return cls(*(np.append(0.0, np.cumsum(term)) for term in terms))

    def costs(self, starts: Integers, stops: Integers) -> Floats:
        """Give the weighted sums of squares of numbers [start, stop) about their means; for a single number it is 0."""
        weight, first, second = (array[stops] - array[starts] for array in (self.weight, self.first, self.second))
        several = stops - starts > 1
        return np.where(several, np.maximum(second - first * first / np.where(several, weight, 1.0), 0.0), 0.0)


def add_cluster(previous: Floats, sums: RunningSums, number: int) -> tuple[Floats, Integers]:
    """Add a cluster after `number` others.

    Parameters
    ----------
    previous : float64 array (n + 1,)
        For each count of first numbers, their least cost in `number` clusters.
    sums : RunningSums
    number : int

    Returns
    -------
    costs : float64 array (n + 1,)
        The least cost with one more cluster.
    starts : int64 array (n + 1,)
        The position at which the last cluster begins.
    """
    n = len(previous) - 1
    costs, starts = np.full(n + 1, np.inf), np.zeros(n + 1, np.int64)
    half = (1 << (n - number).bit_length()) >> 1
    while half:
        # With more numbers the last cluster begins no earlier, with fewer numbers no later.
        stops = np.arange(number + half, n + 1, 2 * half)
        below, above = stops - half, stops + half
        lows = np.where(below > number, starts[below], number)
        highs = np.minimum(np.where(above <= n, starts[np.minimum(above, n)], n), stops - 1)
        costs[stops], starts[stops] = best_starts(previous, sums, stops, lows, highs)
        half >>= 1
    return costs, starts


def best_starts(
    previous: Floats, sums: RunningSums, stops: Integers, lows: Integers, highs: Integers
) -> tuple[Floats, Integers]:
    """Give the least cost for each stop, over all starts from low to high, and the first start with this cost."""
    lengths = highs - lows + 1
    begins = np.cumsum(lengths) - lengths
    starts = np.arange(int(lengths.sum())) - np.repeat(begins - lows, lengths)
    costs = previous[starts] + sums.costs(starts, np.repeat(stops, lengths))
    least = np.minimum.reduceat(costs, begins)
    hits = np.flatnonzero(costs == np.repeat(least, lengths))
    return least, starts[hits[np.searchsorted(hits, begins)]]
