"""Statistics that follow from the counts of the values: quantiles, extremes, distinct values, shares, modes.

`OfViews` gives them for the rows that each view sees.  `OtherRows` leaves out each row in turn, and gives them for the
other rows of its category, and for all other rows.  These follow from the row's category, value and weight, so they are
computed once for all rows of a tile that have the same three.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import floor
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.cached import cached_property
from cpu_fallback.exact import Floats
from cpu_fallback.types import Array, Rows
from gpu_encode.seam.ops import Ops, host
from gpu_encode.sums.category_sums import CategorySums
from gpu_encode.sums.distributions import BEFORE, Distribution, add_counts, numbers_of
from gpu_encode.words.errors.tables import rows_have_changed

NAMES = ("min", "max", "median", "nunique", "mode", "first", "last")
# Statistics that need a number: a quantile needs a share of the rows, a share needs a threshold.
WITH_NUMBER = ("quantile", "share")
QUANTILES = {"min": 0.0, "first": 0.0, "median": 0.5, "max": 1.0, "last": 1.0}

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


class InOrder(ABC):
    """Groups of rows with sorted values, from which order statistics follow; each method serves all groups at once."""

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
        """Give the value of the row with each rank, counted from zero in its group; any value for an empty group."""

    @abstractmethod
    def mode(self) -> Floats:
        """Give the most frequent value; of equally frequent ones, the smallest."""

    @abstractmethod
    def n_above(self, threshold: Real) -> Integers:
        """Count the rows with values above a threshold."""

    def quantile(self, share: float) -> Floats:
        """Give a quantile by linear interpolation between rows, as ``numpy.quantile`` with ``method="linear"``."""
        number = self.number
        position = (number - 1) * share
        low = np.floor(position)
        rank = np.maximum(low.astype(np.int64), 0)
        below, above = self.at_rank(rank), self.at_rank(np.minimum(rank + 1, np.maximum(number - 1, 0)))
        part = position - low
        with np.errstate(over="ignore"):
            step = above - below
        with np.errstate(over="ignore", invalid="ignore"):
            # Interpolation starts from the nearer of the two values, as in NumPy, so that the bits are the same.
            between: Floats = np.where(part >= 0.5, above - step * (1.0 - part), below + step * part)
        return np.where(part == 0, below, between)

    def statistic(self, statistic: Any) -> Floats:
        """Give one statistic of each group; for a group without rows, nunique is 0 and all others are NaN."""
        if statistic == "nunique":
            return self.n_distinct.astype(np.float64)
        if self.is_empty():
            return np.full(self.number.shape, np.nan)
        if statistic == "mode":
            values = self.mode()
        elif isinstance(statistic, str):
            values = self.quantile(QUANTILES[statistic])
        else:
            kind, number = statistic
            with np.errstate(divide="ignore", invalid="ignore"):
                values = self.quantile(float(number)) if kind == "quantile" else self.n_above(number) / self.number
        return np.where(self.number > 0, values, np.nan)


@dataclass(frozen=True, eq=False)
class Sorted(InOrder):
    """Values of groups of rows, sorted within each group, and the count of each; statistics are (groups, views).

    Parameters
    ----------
    starts : int64 array (groups + 1,)
        Index of each group's first value; the last element is the number of all values.
    values : float64 or int64 array (values,)
    counts : int64 array (values, views)
    """

    starts: Integers
    values: Array
    counts: Integers

    @classmethod
    def by_category(cls, distribution: Distribution, n_categories: int) -> Self:
        """Group the values by category, in the order of a table: categories, then unknown and missing."""
        # A category without rows does not occur in a distribution, so categories are found by a search.
        starts = np.searchsorted(distribution.category, np.arange(-BEFORE, n_categories + 1))
        # Unknown and missing come first in a distribution.
        ends = np.concatenate([starts[BEFORE:] - starts[BEFORE], starts[1 : BEFORE + 1] + starts[-1] - starts[BEFORE]])
        value, counts = distribution.value, distribution.counts
        if starts[BEFORE]:
            value, counts = (np.roll(pairs, -starts[BEFORE], axis=0) for pairs in (value, counts))
        return cls(ends, distribution.values[value], counts)

    @classmethod
    def of_all(cls, distribution: Distribution) -> Self:
        """Make one group of all rows, of all categories."""
        if len(distribution.value) == len(distribution.values):
            # Every value has a pair, so that here each has one.
            counts = host(len(distribution.values)).empty(distribution.counts.shape, np.int64)
            counts[distribution.value] = distribution.counts
        else:
            counts = add_counts(distribution.value, distribution.counts, len(distribution.values))
        return cls(np.array([0, len(counts)]), distribution.values, counts)

    @cached_property
    def running(self) -> Integers:
        """Number of rows before each value, and last the number of all rows: (values + 1, views)."""
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
        """Give the sum over each group, by the difference of running sums at its ends."""
        return running[self.starts[1:]] - running[self.starts[:-1]]

    def at_rank(self, ranks: Integers) -> Floats:
        """Give the value of the row with each rank, counted from zero in its group; ranks are (groups, views)."""
        before = self.running[self.starts[:-1]]
        values = np.empty(ranks.shape)
        for view in range(ranks.shape[1]):
            index = np.searchsorted(self.running[1:, view], before[:, view] + ranks[:, view], side="right")
            values[:, view] = self.values[np.minimum(index, len(self.values) - 1)]
        return values

    def by_frequency(self, view: int) -> Integers:
        """Order the values of each group: the most frequent first; of equally frequent ones, the smallest first."""
        group = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        return np.lexsort((np.arange(len(group)), -self.counts[:, view], group))

    def mode(self) -> Floats:
        """Most frequent value; of equally frequent ones the smallest."""
        modes = np.empty((len(self.starts) - 1, self.counts.shape[1]))
        for view in range(modes.shape[1]):
            order = self.by_frequency(view)
            modes[:, view] = self.values[order[np.minimum(self.starts[:-1], len(order) - 1)]]
        return modes

    def n_above(self, threshold: Real) -> Integers:
        """Rows with values above a threshold: (groups, views)."""
        return self.between(running_sums(np.where(is_above(self.values, threshold)[:, None], self.counts, 0)))


@dataclass(frozen=True, eq=False)
class OfViews:
    """Order statistics of the rows that each view sees: of every category, and of all rows."""

    by_category: Sorted
    of_all: Sorted

    @classmethod
    def of(cls, distribution: Distribution, n_categories: int) -> Self:
        """Sort the values of each category, and the values of all rows."""
        return cls(Sorted.by_category(distribution, n_categories), Sorted.of_all(distribution))

    def of_category(self, statistic: Any) -> Floats:
        """Give one statistic of each category: (categories + 2, views)."""
        return self.by_category.statistic(statistic)

    def of_everything(self, statistic: Any) -> Floats:
        """Give one statistic of all rows: (views,)."""
        return self.of_all.statistic(statistic)[0]


@dataclass(frozen=True, eq=False)
class Undivided:
    """Groups of sorted values with all their rows, before any row is left out; computed once for all tiles of rows.

    Parameters
    ----------
    groups : Sorted
        One view.
    keys : int64 array (values,)
        Group * n_values + value, ascending.
    """

    groups: Sorted
    keys: Integers

    @cached_property
    def above(self) -> dict[Real, Integers]:
        """The numbers of rows above thresholds that `n_above` has counted, by threshold."""
        return {}

    @cached_property
    def most_frequent(self) -> tuple[Integers, Integers]:
        """Indices of the most frequent value of each group and of the next one; any index if there is none."""
        order, starts = self.groups.by_frequency(0), self.groups.starts[:-1]
        last = len(order) - 1
        return order[np.minimum(starts, last)], order[np.minimum(starts + 1, last)]

    def n_above(self, threshold: Real) -> Integers:
        """Count the rows of each group with values above a threshold, once for all tiles."""
        # The result is kept, since every tile would otherwise need a pass over all values.
        if threshold not in self.above:
            self.above[threshold] = self.groups.n_above(threshold)[:, 0]
        return self.above[threshold]

    def less(self, group: Integers, value: Integers, n_values: int, copies: Integers | None) -> "LeftOut":
        """Take each row out of its group; `value` is -1 if no counted row has the row's value.

        Raises
        ------
        ValueError
            If more rows of a value are taken out than there are.
        """
        n_keys = len(self.keys)
        index = np.minimum(np.searchsorted(self.keys, group * n_values + value), max(n_keys - 1, 0))
        present = (value >= 0) & (self.keys[index] == group * n_values + value) if n_keys else value < -1
        sizes, number = np.ones(1, np.int64), np.zeros(len(group), np.int64)
        if copies is not None:
            number, sizes = host(len(copies)).factorize(copies)
        # A row of weight 0 may have any value: it sees the whole group.
        source = np.where(present & (sizes[number] > 0), index, n_keys + group)
        kinds = source * len(sizes) + number
        of_row, distinct = host(len(kinds)).factorize(kinds)
        source, number = np.divmod(distinct, len(sizes))
        left_out = LeftOut.of(self, source, sizes[number], of_row)
        if bool((left_out.copies > left_out.owned).any()):
            raise rows_have_changed("values of rows")
        return left_out


@dataclass(frozen=True, eq=False)
class LeftOut(InOrder):
    """Groups without some copies of one value; rows that see the same group are of one kind.  Statistics are (rows,).

    Parameters
    ----------
    group, index, copies : int64 arrays (kinds,)
        The group, the index of the value in `groups`, and the number of rows with this value that are left out.
    owned : int64 array (kinds,)
        Number of rows of the group that have the value.
    of_row : int32 array (rows,)
        Kind of each row.
    """

    undivided: Undivided
    group: Integers
    index: Integers
    copies: Integers
    owned: Integers
    of_row: Array

    @classmethod
    def of(cls, undivided: Undivided, source: Integers, copies: Integers, of_row: Array) -> Self:
        """Leave rows out; `source` is the index of their value or, without one, the group plus the number of values."""
        groups, n_keys = undivided.groups, len(undivided.keys)
        has_value = source < n_keys
        index = np.where(has_value, source, 0)
        group = np.where(has_value, np.searchsorted(groups.starts, index, side="right") - 1, source - n_keys)
        owned = np.where(has_value, groups.counts[index, 0], 0) if n_keys else np.zeros_like(copies)
        return cls(undivided, group, index, copies, owned, of_row)

    @cached_property
    def number(self) -> Integers:
        """Remaining rows of each group."""
        return self.undivided.groups.number[self.group, 0] - self.copies

    @cached_property
    def n_distinct(self) -> Integers:
        """Distinct values of the remaining rows of each group."""
        gone = (self.copies > 0) & (self.copies == self.owned)
        return self.undivided.groups.n_distinct[self.group, 0] - gone

    def is_empty(self) -> bool:
        """Whether there are no values at all."""
        return self.undivided.groups.is_empty()

    def at_rank(self, ranks: Integers) -> Floats:
        """Give the value of the row with each rank among the remaining rows; ranks after left-out rows are shifted."""
        groups = self.undivided.groups
        running = groups.running[:, 0]
        rank = running[groups.starts[self.group]] + ranks
        rank = np.where((self.copies > 0) & (rank >= running[self.index]), rank + self.copies, rank)
        index = np.searchsorted(running[1:], rank, side="right")
        return groups.values[np.minimum(index, len(groups.values) - 1)].astype(np.float64)

    def mode(self) -> Floats:
        """Give the most frequent value of the remaining rows; of equally frequent ones, the smallest."""
        groups, (first, second) = self.undivided.groups, self.undivided.most_frequent
        first, second = first[self.group], second[self.group]
        left = groups.counts[first, 0] - self.copies
        rival = np.where(groups.n_distinct[self.group, 0] > 1, groups.counts[second, 0], 0)
        loses = (self.copies > 0) & (first == self.index) & ((rival > left) | ((rival == left) & (second < first)))
        return groups.values[np.where(loses, second, first)].astype(np.float64)

    def n_above(self, threshold: Real) -> Integers:
        """Count the remaining rows with values above a threshold."""
        lost = np.where(is_above(self.undivided.groups.values[self.index], threshold), self.copies, 0)
        return self.undivided.n_above(threshold)[self.group] - lost

    def statistic(self, statistic: Any) -> Floats:
        """Give one statistic of the group that each row sees."""
        return super().statistic(statistic)[self.of_row]


@dataclass(frozen=True, eq=False)
class OfOthers:
    """Order statistics of the rows that each row of a tile sees: of its category and, if wanted, of all rows."""

    category: LeftOut
    everything: LeftOut
    wanted: Mask

    def of_category(self, statistic: Any) -> Floats:
        """Give one statistic of the other rows of each row's category: (rows,)."""
        return self.category.statistic(statistic)

    def of_everything(self, statistic: Any) -> Floats:
        """Give one statistic of all other rows: (rows,); NaN for rows that do not want it."""
        values = np.full(len(self.wanted), np.nan)
        values[self.wanted] = self.everything.statistic(statistic)
        return values


class OtherRows:
    """Values of all rows in order, from which each row is taken out.

    Parameters
    ----------
    distribution : Distribution
        The values of all rows, in one view.
    """

    def __init__(self, distribution: Distribution, n_categories: int) -> None:
        self.values, self.n_categories = distribution.values, n_categories
        keys = table_rows(distribution.category, n_categories) * len(self.values) + distribution.value
        self.by_category = Undivided(Sorted.by_category(distribution, n_categories), np.sort(keys))
        self.of_all = Undivided(Sorted.of_all(distribution), np.arange(len(self.values)))

    @classmethod
    def of(cls, sums: CategorySums) -> Self | None:
        """Sort the values of all rows; None if they were not counted."""
        return None if sums.distribution is None else cls(sums.distribution, sums.n_categories)

    def seen_by(self, ops: Ops, rows: Rows, wanted: Array) -> OfOthers:
        """Take each row of a tile out of its category and, if it is `wanted`, out of all rows.

        Raises
        ------
        ValueError
            If a row was not counted.
        """
        n_values = len(self.values)
        numbers = ops.to_host(numbers_of(ops, rows)).astype(self.values.dtype)
        value = np.searchsorted(self.values, numbers)
        value[value == n_values] = -1
        if n_values:
            value = np.where(self.values[value] == numbers, value, -1)
        group = table_rows(ops.to_host(rows.codes), self.n_categories)
        copies = None if rows.weight is None else ops.to_host(rows.weight)
        wanted = ops.to_host(wanted)
        only_group = np.zeros(np.count_nonzero(wanted), np.int64)
        return OfOthers(
            self.by_category.less(group, value, n_values, copies),
            self.of_all.less(only_group, value[wanted], n_values, None if copies is None else copies[wanted]),
            wanted,
        )


def is_above(values: Array, threshold: Real) -> Mask:
    """Tell which values are above a threshold, without rounding either of the two numbers."""
    if values.dtype.kind == "i":
        bound: Any = floor(threshold)
    else:
        nearest = float(threshold)
        bound = np.nextafter(nearest, -np.inf) if nearest > threshold else nearest
    return values > bound


def running_sums(counts: Integers) -> Integers:
    """Give the running sums before each value, and last the whole sum: (values + 1, views); each view is contiguous."""
    running = host(len(counts)).empty((counts.shape[1], len(counts) + 1), np.int64)
    running[:, 0] = 0
    np.cumsum(counts.T, axis=1, out=running[:, 1:])
    return running.T


def table_rows(codes: Array, n_categories: int) -> Integers:
    """Give the row of each category in a table: unknown and missing come last."""
    wide = codes.astype(np.int64)
    return np.where(wide < 0, wide + (n_categories + 2), wide)
