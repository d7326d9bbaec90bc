"""Seconds from the latest earlier date to a row's own date, among the dates of its category that the row may see."""

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
    """The dates of each category in order, and which of them each view sees; on the host.

    A date is earlier than a row's date if at least one tick lies between them: rows of one moment do not see each
    other, and no row sees itself, under any scheme.

    Parameters
    ----------
    dates : Vocabulary
        Sorted distinct dates of all rows.
    keys : int64 array (dates,)
        For each pair of category and date: the category's table row times the number of dates, plus the date's index;
        ascending.
    latest : int64 array (dates, views)
        For each of these pairs: the index of the last pair, up to this one, that a view sees; -1 if there is none.
    """

    dates: Vocabulary
    n_categories: int
    keys: Integers
    latest: Integers

    @classmethod
    def of(
        cls, distribution: Distribution, dates: Vocabulary, n_categories: int, unseen: NDArray[np.bool_] | None = None
    ) -> Self:
        """Order the dates that each view sees, without those of `unseen` categories (table rows, views)."""
        rows = table_rows(distribution.category, n_categories)
        keys = rows * max(len(dates), 1) + distribution.values[distribution.value].astype(np.int64)
        seen = distribution.counts > 0
        if unseen is not None:
            seen = seen & ~unseen[rows]
        order = np.argsort(keys)
        latest = np.where(seen[order], np.arange(len(keys))[:, None], -1)
        return cls(dates, n_categories, keys[order], np.maximum.accumulate(latest, axis=0))

    def compare(self, given: Vocabulary, column: object) -> "Compared":
        """Compare the distinct dates of rows with all known dates, in the finer of the two units."""
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
        """Give the seconds from the latest earlier date that a row sees in its category to the row's own date.

        Parameters
        ----------
        codes : int32 array (rows,)
            Categories; -1 is missing, -2 unknown.
        views : int array (rows,) or int
        dates : int array (rows,)
            Index of each row's date among the compared dates; -1 for a row without a date.

        Returns
        -------
        float64 array (rows,)
            NaN if there is no earlier date, or if the row has no date.
        """
        if not len(self.keys):
            return np.full(len(codes), np.nan)
        group = table_rows(codes, self.n_categories) * len(compared.known)
        index = np.searchsorted(self.keys, group + compared.earlier[dates]) - 1
        latest = np.where(index >= 0, self.latest[index, views], -1)
        found = (dates >= 0) & (latest >= 0) & (self.keys[latest] >= group)
        before = compared.known[np.where(found, self.keys[latest] - group, 0)]
        # The difference of two dates may be too large for int64, but not for uint64.
        apart = (compared.ticks[dates] - before).view(np.uint64)
        return np.where(found, apart / compared.second, np.nan)


class Compared(NamedTuple):
    """The distinct dates of rows and all known dates, in one unit.

    Parameters
    ----------
    known, ticks : int64 array
        The known dates, and the dates of the rows.
    earlier : int64 array
        For each date of the rows, the number of known dates that are earlier.
    second : float
        Number of units in a second.
    """

    known: Integers
    ticks: Integers
    earlier: Integers
    second: float
