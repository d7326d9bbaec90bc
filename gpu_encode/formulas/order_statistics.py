"""Statistics that follow from how often each value occurs: quantiles, extremes, distinct values, shares, modes."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from math import floor
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.exact import Floats
from cpu_fallback.types import Array
from gpu_encode.sums.distributions import BEFORE, Distribution, added

NAMES = ("min", "max", "median", "nunique", "mode")
# Statistics with a number: the share that it is the quantile of, or the threshold that a share of the rows exceeds.
WITH_NUMBER = ("quantile", "share")
QUANTILES = {"min": 0.0, "median": 0.5, "max": 1.0}

Integers = NDArray[np.int64]


class InOrder(ABC):
    """Groups of rows by their values in order: all that order statistics are read off, an array of groups at a time."""

    @property
    @abstractmethod
    def number(self) -> Integers:
        """Rows of each group."""

    @property
    @abstractmethod
    def n_distinct(self) -> Integers:
        """Distinct values of each group."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Whether there are no values at all."""

    @abstractmethod
    def at_rank(self, ranks: Integers) -> Floats:
        """Value of the row with each rank, counted from zero in its group; groups without rows may have any."""

    @abstractmethod
    def mode(self) -> Floats:
        """Most frequent value; of equally frequent ones the smallest."""

    @abstractmethod
    def n_above(self, threshold: Real) -> Integers:
        """Rows with values above a threshold."""

    def quantile(self, share: float) -> Floats:
        """Quantile by linear interpolation between rows, as ``numpy.quantile`` with ``method="linear"``."""
        number = self.number
        place = (number - 1) * share
        low = np.floor(place)
        rank = np.maximum(low.astype(np.int64), 0)
        below, above = self.at_rank(rank), self.at_rank(np.minimum(rank + 1, np.maximum(number - 1, 0)))
        part = place - low
        with np.errstate(over="ignore"):
            step = above - below
        with np.errstate(over="ignore", invalid="ignore"):
            between: Floats = np.where(part >= 0.5, above - step * (1.0 - part), below + step * part)
        return np.where(part == 0, below, between)

    def share_above(self, threshold: Real) -> Floats:
        """Share of the rows with values above a threshold."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found: Floats = self.n_above(threshold) / self.number
        return found

    def statistic(self, statistic: Any) -> Floats:
        """Give one statistic of each group; NaN of no rows, but nunique is then 0."""
        if statistic == "nunique":
            return self.n_distinct.astype(np.float64)
        if self.is_empty():
            return np.full(self.number.shape, np.nan)
        if statistic == "mode":
            found = self.mode()
        elif isinstance(statistic, str):
            found = self.quantile(QUANTILES[statistic])
        else:
            kind, number = statistic
            found = self.quantile(float(number)) if kind == "quantile" else self.share_above(number)
        return np.where(self.number > 0, found, np.nan)


@dataclass(frozen=True, eq=False)
class Sorted(InOrder):
    """Values of groups of rows, sorted within each group, and how often each occurs; statistics are (groups, views).

    Parameters
    ----------
    starts : int64 array (groups + 1,)
        Place of each group's first value; and their number.
    values : float64 or int64 array (places,)
    counts : int64 array (places, views)
    """

    starts: Integers
    values: Array
    counts: Integers

    @classmethod
    def by_category(cls, distribution: Distribution, n_categories: int) -> Self:
        """Values of each category, in the order of a table: categories, then unknown and missing."""
        starts = np.searchsorted(distribution.category, np.arange(-BEFORE, n_categories + 1))
        # Unknown and missing come first in a distribution.
        ends = np.concatenate([starts[BEFORE:] - starts[BEFORE], starts[1 : BEFORE + 1] + starts[-1] - starts[BEFORE]])
        value, counts = (first_to_end(each, starts[BEFORE]) for each in (distribution.value, distribution.counts))
        return cls(ends, distribution.values[value], counts)

    @classmethod
    def of_all(cls, distribution: Distribution) -> Self:
        """Values of all rows, whatever their category."""
        counts = added(distribution.value, distribution.counts, len(distribution.values))
        return cls(np.array([0, len(counts)]), distribution.values, counts)

    @cached_property
    def running(self) -> Integers:
        """Rows at the places before each one, and all of them at the end: (places + 1, views)."""
        return running_sums(self.counts)

    @cached_property
    def number(self) -> Integers:
        """Rows of each group: (groups, views)."""
        return self.between(self.running)

    @cached_property
    def n_distinct(self) -> Integers:
        """Distinct values of each group: (groups, views)."""
        return self.between(running_sums((self.counts > 0).astype(np.int64)))

    def is_empty(self) -> bool:
        """Whether there are no values at all."""
        return not len(self.values)

    def between(self, running: Integers) -> Integers:
        """Sum what lies between the ends of each group."""
        found: Integers = running[self.starts[1:]] - running[self.starts[:-1]]
        return found

    def at_rank(self, ranks: Integers) -> Floats:
        """Value of the row with each rank, counted from zero in its group; ranks are (groups, views)."""
        before = self.running[self.starts[:-1]]
        found = np.empty(ranks.shape)
        for view in range(ranks.shape[1]):
            place = np.searchsorted(self.running[1:, view], before[:, view] + ranks[:, view], side="right")
            found[:, view] = self.values[np.minimum(place, len(self.values) - 1)]
        return found

    def by_frequency(self, view: int) -> Integers:
        """Places of each group by how often their values occur, the most frequent first, of several the smallest."""
        group = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        return np.lexsort((np.arange(len(group)), -self.counts[:, view], group))

    def mode(self) -> Floats:
        """Most frequent value; of equally frequent ones the smallest."""
        found = np.empty((len(self.starts) - 1, self.counts.shape[1]))
        for view in range(found.shape[1]):
            order = self.by_frequency(view)
            found[:, view] = self.values[order[np.minimum(self.starts[:-1], len(order) - 1)]]
        return found

    def n_above(self, threshold: Real) -> Integers:
        """Rows with values above a threshold: (groups, views)."""
        return self.between(running_sums(np.where(exceeding(self.values, threshold)[:, None], self.counts, 0)))


@dataclass(frozen=True, eq=False)
class OfViews:
    """Order statistics of every category, and of all rows, as each view sees them."""

    by_category: Sorted
    of_all: Sorted

    @classmethod
    def of(cls, distribution: Distribution, n_categories: int) -> Self:
        """Put the values of each category in order, and those of all rows."""
        return cls(Sorted.by_category(distribution, n_categories), Sorted.of_all(distribution))

    def of_category(self, statistic: Any) -> Floats:
        """Give one statistic of each category: (categories + 2, views)."""
        return self.by_category.statistic(statistic)

    def of_everything(self, statistic: Any) -> Floats:
        """Give one statistic of all rows: (views,)."""
        found: Floats = self.of_all.statistic(statistic)[0]
        return found


def first_to_end(lines: Integers, number: int) -> Integers:
    """Move the first lines behind all others."""
    return np.concatenate([lines[number:], lines[:number]]) if number else lines


def exceeding(values: Array, threshold: Real) -> NDArray[np.bool_]:
    """Say which values are above a threshold, as exact numbers: neither is rounded to compare it with the other."""
    if values.dtype.kind == "i":
        bound: Any = floor(threshold)
    else:
        nearest = float(threshold)
        bound = np.nextafter(nearest, -np.inf) if nearest > threshold else nearest
    found: NDArray[np.bool_] = values > bound
    return found


def running_sums(counts: Integers) -> Integers:
    """Sum what lies before each place, and all of it at the end: (places + 1, views), each view in one piece."""
    running = np.zeros((counts.shape[1], len(counts) + 1), np.int64)
    np.cumsum(counts.T, axis=1, out=running[:, 1:])
    return running.T
