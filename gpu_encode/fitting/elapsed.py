"""Seconds since the last date: the one statistic that a row does not look up by its category alone."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cpu_fallback.row_numbers import FoldPattern, fold_array
from cpu_fallback.types import Array, Codes, Folds, written
from gpu_encode.formulas.earlier_dates import EarlierDates
from gpu_encode.formulas.encoding_rule import EncodingRule, EncodingTable, Mask
from gpu_encode.formulas.statistic_names import SECONDS_SINCE_LAST
from gpu_encode.seam.ops import Ops, tiles
from gpu_encode.sums.distributions import Distribution
from gpu_encode.tables.categories.vocabulary import FactorizedColumn, Vocabulary


@dataclass(frozen=True, eq=False)
class Elapsed:
    """The column of encodings of a key that holds seconds since the last date.

    Parameters
    ----------
    target : int
        Number of the column of dates among the targets.
    column : int
        Place among the encodings of the key.
    earlier : EarlierDates
    """

    target: int
    column: int
    earlier: EarlierDates

    @classmethod
    def of(
        cls,
        distribution: Distribution | None,
        dates: Vocabulary | None,
        rule: EncodingRule,
        encodings: EncodingTable | None,
        place: tuple[int, int],
        n_categories: int,
        ops: Ops,
    ) -> "list[Elapsed]":
        """Give the column of a rule that has it, for one target.

        Parameters
        ----------
        distribution : Distribution, optional
            What each view sees.
        dates : Vocabulary, optional
            Its values.
        rule : EncodingRule
        encodings : EncodingTable, optional
            By category and view: which of them count as unseen; None where rows tell.
        place : tuple of int
            Number of the target, and encodings of the key before its own.
        n_categories : int
        ops : Ops
            Where the encodings lie.
        """
        statistic: Any = rule.statistic
        if distribution is None or dates is None:
            return []
        unseen = None if encodings is None else ops.to_host(encodings.unseen)
        earlier = EarlierDates.of(distribution, dates, n_categories, unseen)
        return [cls(place[0], place[1] + statistic.statistics.index(SECONDS_SINCE_LAST), earlier)]

    def write(
        self,
        ops: Ops,
        codes: Codes,
        folds: Folds,
        dates: FactorizedColumn,
        out: Array,
        name: object,
        unseen: Mask | None = None,
    ) -> None:
        """Write the seconds of the rows that see an earlier date to their column of `out` (rows, outputs).

        Others keep what stands there, as do rows that are `unseen`.  The host computes, so that every backend has the
        same bits.
        """
        categories, places = ops.to_host(written(codes)), ops.to_host(written(dates.codes))
        by_row = folds if folds is None or isinstance(folds, FoldPattern) else ops.to_host(folds)
        hidden = None if unseen is None else ops.to_host(unseen)
        compared = self.earlier.compare(dates.vocabulary, name)
        for start, stop in tiles(len(categories), ops.TILE):
            rows = slice(start, stop)
            views = fold_array(by_row, start, stop)
            seconds = self.earlier.seconds(categories[rows], 0 if views is None else views, places[rows], compared)
            if hidden is not None:
                seconds[hidden[rows]] = np.nan
            kept = ops.to_host(out[rows, self.column])
            out[rows, self.column] = ops.to_device(np.where(np.isnan(seconds), kept, seconds).astype(kept.dtype))
