"""Order statistics of what rows see that are left out: their category, and all rows, less themselves.

What such a row sees follows from its category, its value and its weight alone, so it is found out once for all rows of
a tile that have the same three.
"""

from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.exact import Floats
from cpu_fallback.types import Array, Rows
from gpu_encode.errors.parts import rows_have_changed
from gpu_encode.formulas.order_statistics import InOrder, Sorted, exceeding
from gpu_encode.ops import Ops, host
from gpu_encode.sums.category_sums import CategorySums
from gpu_encode.sums.distributions import Distribution, Integers, numbers_of

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class TotalSums:
    """Groups of sorted values that rows are left out of, and what is asked of them for every tile of rows.

    Parameters
    ----------
    groups : Sorted
        One view.
    keys : int64 array (places,)
        Group * n_values + value of each place, ascending.
    """

    groups: Sorted
    keys: Integers

    @cached_property
    def above(self) -> dict[Real, Integers]:
        """Rows of each group with values above each threshold that was asked for."""
        return {}

    @cached_property
    def most_frequent(self) -> tuple[Integers, Integers]:
        """Places of the most frequent value of each group, and of the next one; where there is none, of any."""
        order, starts = self.groups.by_frequency(0), self.groups.starts[:-1]
        last = len(order) - 1
        return order[np.minimum(starts, last)], order[np.minimum(starts + 1, last)]

    def n_above(self, threshold: Real) -> Integers:
        """Rows of each group with values above a threshold; counted once for all tiles."""
        if threshold not in self.above:
            self.above[threshold] = self.groups.n_above(threshold)[:, 0]
        return self.above[threshold]

    def less(self, group: Integers, value: Integers, n_values: int, copies: Integers | None) -> "LeftOut":
        """Take each row out of its group; `value` is -1 where nobody has it.

        Raises
        ------
        ValueError
            If there are fewer of such rows than are taken out.
        """
        n_places = len(self.keys)
        place = np.minimum(np.searchsorted(self.keys, group * n_values + value), max(n_places - 1, 0))
        there = (value >= 0) & (self.keys[place] == group * n_values + value) if n_places else value < -1
        sizes, number = np.ones(1, np.int64), np.zeros(len(group), np.int64)
        if copies is not None:
            number, sizes = host(len(copies)).factorize(copies)
        # Rows that weigh nothing may have any value: what they see is the whole group.
        source = np.where(there & (sizes[number] > 0), place, n_places + group)
        alike = source * len(sizes) + number
        of_row, distinct = host(len(alike)).factorize(alike)
        source, number = np.divmod(distinct, len(sizes))
        found = LeftOut.of(self, source, sizes[number], of_row)
        if bool((found.copies > found.owned).any()):
            raise rows_have_changed("values of rows")
        return found


@dataclass(frozen=True, eq=False)
class LeftOut(InOrder):
    """Groups, each less some copies of one value: one for each kind of rows; statistics are (rows,).

    Parameters
    ----------
    whole : TotalSums
    group, place, copies : int64 arrays (kinds,)
        The group, the place of the value, and how many of them are left out.
    owned : int64 array (kinds,)
        How many of the value there are in all.
    of_row : int32 array (rows,)
        Kind of each row.
    """

    whole: TotalSums
    group: Integers
    place: Integers
    copies: Integers
    owned: Integers
    of_row: Array

    @classmethod
    def of(cls, whole: TotalSums, source: Integers, copies: Integers, of_row: Array) -> Self:
        """Make it of the place that each kind of rows is taken from, or of the number of places plus the group."""
        groups, n_places = whole.groups, len(whole.keys)
        own = source < n_places
        place = np.where(own, source, 0)
        group = np.where(own, np.searchsorted(groups.starts, place, side="right") - 1, source - n_places)
        owned = np.where(own, groups.counts[place, 0], 0) if n_places else np.zeros_like(copies)
        return cls(whole, group, place, copies, owned, of_row)

    @cached_property
    def number(self) -> Integers:
        """Rows that are left in each group."""
        found: Integers = self.whole.groups.number[self.group, 0] - self.copies
        return found

    @cached_property
    def n_distinct(self) -> Integers:
        """Distinct values of what is left."""
        gone = (self.copies > 0) & (self.copies == self.owned)
        found: Integers = self.whole.groups.n_distinct[self.group, 0] - gone
        return found

    def is_empty(self) -> bool:
        """Whether there are no values at all."""
        return self.whole.groups.is_empty()

    def at_rank(self, ranks: Integers) -> Floats:
        """Value of the row with each rank in what is left: from the value left out on, ranks were higher before."""
        groups = self.whole.groups
        running = groups.running[:, 0]
        at = running[groups.starts[self.group]] + ranks
        at = np.where((self.copies > 0) & (at >= running[self.place]), at + self.copies, at)
        place = np.searchsorted(running[1:], at, side="right")
        return groups.values[np.minimum(place, len(groups.values) - 1)].astype(np.float64)

    def mode(self) -> Floats:
        """Most frequent value of what is left; of equally frequent ones the smallest."""
        groups, (first, second) = self.whole.groups, self.whole.most_frequent
        first, second = first[self.group], second[self.group]
        left = groups.counts[first, 0] - self.copies
        rival = np.where(groups.n_distinct[self.group, 0] > 1, groups.counts[second, 0], 0)
        loses = (self.copies > 0) & (first == self.place) & ((rival > left) | ((rival == left) & (second < first)))
        return groups.values[np.where(loses, second, first)].astype(np.float64)

    def n_above(self, threshold: Real) -> Integers:
        """Rows of what is left with values above a threshold."""
        lost = np.where(exceeding(self.whole.groups.values[self.place], threshold), self.copies, 0)
        return self.whole.n_above(threshold)[self.group] - lost

    def statistic(self, statistic: Any) -> Floats:
        """Give one statistic of what each row sees."""
        return super().statistic(statistic)[self.of_row]


@dataclass(frozen=True, eq=False)
class OfOthers:
    """Order statistics of what each row of a tile sees of its category, and of all rows where these are wanted."""

    category: LeftOut
    everything: LeftOut
    wanted: Mask

    def of_category(self, statistic: Any) -> Floats:
        """Give one statistic of the other rows of each row's category: (rows,)."""
        return self.category.statistic(statistic)

    def of_everything(self, statistic: Any) -> Floats:
        """Give one statistic of all other rows: (rows,); NaN where nobody wants it."""
        found = np.full(len(self.wanted), np.nan)
        found[self.wanted] = self.everything.statistic(statistic)
        return found


class OtherRows:
    """Values of all rows in order, from which each row is taken out.

    Parameters
    ----------
    distribution : Distribution
        Of all rows, one view.
    n_categories : int
    """

    def __init__(self, distribution: Distribution, n_categories: int) -> None:
        self.values, self.n_categories = distribution.values, n_categories
        keys = table_rows(distribution.category, n_categories) * len(self.values) + distribution.value
        self.by_category = TotalSums(Sorted.by_category(distribution, n_categories), np.sort(keys))
        self.of_all = TotalSums(Sorted.of_all(distribution), np.arange(len(self.values)))

    @classmethod
    def of(cls, statistics: CategorySums) -> Self | None:
        """Put the values of all rows in order; None where they were not counted."""
        values = statistics.distribution
        return None if values is None else cls(values, statistics.n_categories)

    def seen_by(self, ops: Ops, rows: Rows, wanted: Array) -> OfOthers:
        """Take each row of a tile out of its category, and out of all rows where these are `wanted`.

        Raises
        ------
        ValueError
            If some row is none of those that were counted.
        """
        n_values = len(self.values)
        numbers = ops.to_host(numbers_of(rows)).astype(self.values.dtype)
        value = np.searchsorted(self.values, numbers)
        value[value == n_values] = -1
        if n_values:
            value = np.where(self.values[value] == numbers, value, -1)
        group = table_rows(ops.to_host(rows.codes), self.n_categories)
        copies = None if rows.weight is None else ops.to_host(rows.weight)
        wanted = ops.to_host(wanted)
        those = np.zeros(np.count_nonzero(wanted), np.int64)
        return OfOthers(
            self.by_category.less(group, value, n_values, copies),
            self.of_all.less(those, value[wanted], n_values, None if copies is None else copies[wanted]),
            wanted,
        )


def table_rows(codes: Array, n_categories: int) -> Integers:
    """Place of each category in a table: unknown and missing come last."""
    wide = codes.astype(np.int64)
    return np.where(wide < 0, wide + (n_categories + 2), wide)
