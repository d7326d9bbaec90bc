"""Seconds since the latest earlier date: what a row's own date makes of the dates that it may see of its category."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.exact import Floats
from cpu_fallback.types import Array
from gpu_encode.formulas.order_statistics import table_rows
from gpu_encode.sums.distributions import Distribution
from gpu_encode.tables.categories.values import UNITS, rescale
from gpu_encode.tables.categories.vocabulary import Vocabulary
from gpu_encode.words.errors.values import different_kinds, out_of_range

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class EarlierDates:
    """Dates of each category in order, and which of them each view sees; on the host.

    A date is earlier than a row's date if at least one tick lies between them: rows of one moment do not see each
    other, and no row sees itself, whatever the scheme.

    Parameters
    ----------
    dates : Vocabulary
        Sorted distinct dates of all rows.
    keys : int64 array (dates,)
        Row of a table by category times the number of dates, plus the date's index; ascending.
    latest : int64 array (dates, views)
        The index of the last date, up to each one, that a view sees; -1 where there is none.
    """

    dates: Vocabulary
    n_categories: int
    keys: Integers
    latest: Integers

    @classmethod
    def of(
        cls, distribution: Distribution, dates: Vocabulary, n_categories: int, unseen: NDArray[np.bool_] | None = None
    ) -> Self:
        """Put the dates that each view sees in order, but those of categories that are unseen (table rows, views)."""
        rows = table_rows(distribution.category, n_categories)
        keys = rows * max(len(dates), 1) + distribution.values[distribution.value].astype(np.int64)
        seen = distribution.counts > 0
        if unseen is not None:
            seen = seen & ~unseen[rows]
        order = np.argsort(keys)
        latest = np.where(seen[order], np.arange(len(keys))[:, None], -1)
        return cls(dates, n_categories, keys[order], np.maximum.accumulate(latest, axis=0))

    def compare(self, given: Vocabulary, column: object) -> "Compared":
        """Compare distinct dates of rows with all known ones, in the finer of their units."""
        mine, theirs = self.dates.values, given.values
        if not len(mine) or not len(theirs):
            return Compared(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64), 1.0)
        if mine.title != theirs.title:
            raise different_kinds(column, mine.title, theirs.title)
        unit = max(str(mine.unit), str(theirs.unit), key=UNITS.__getitem__)
        (known, all_known), (ticks, all_given) = (rescale(part.array, str(part.unit), unit) for part in (mine, theirs))
        if not (all_known.all() and all_given.all()):
            raise out_of_range(column, unit)
        return Compared(known, ticks, np.searchsorted(known, ticks), 10.0 ** UNITS[unit])

    def seconds(self, codes: Array, views: Array | int, dates: Array, compared: "Compared") -> Floats:
        """Give the seconds between each row's date and the latest earlier one that its view sees of its category.

        Parameters
        ----------
        codes : int32 array (rows,)
            Categories; -1 is missing, -2 unknown.
        views : int array (rows,) or int
        dates : int array (rows,)
            Index of each row's date among those compared, -1 where a row has none.

        Returns
        -------
        float64 array (rows,)
            NaN where there is no earlier date, or none of the row's own.
        """
        if not len(self.keys):
            return np.full(len(codes), np.nan)
        group = table_rows(codes, self.n_categories) * len(compared.known)
        index = np.searchsorted(self.keys, group + compared.earlier[dates]) - 1
        latest = np.where(index >= 0, self.latest[index, views], -1)
        found = (dates >= 0) & (latest >= 0) & (self.keys[latest] >= group)
        before = compared.known[np.where(found, self.keys[latest] - group, 0)]
        # Two dates may lie further apart than an int64 says, not than an uint64 does.
        apart = (compared.ticks[dates] - before).view(np.uint64)
        return np.where(found, apart / compared.second, np.nan)


class Compared(NamedTuple):
    """Distinct dates of rows, beside all known ones.

    Parameters
    ----------
    known, ticks : int64 array
        The known dates, and those of the rows, in one unit.
    earlier : int64 array
        How many known dates are earlier than each of the rows'.
    second : float
        Units of a second.
    """

    known: Integers
    ticks: Integers
    earlier: Integers
    second: float
