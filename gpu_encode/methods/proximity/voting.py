"""Scores from the votes of training rows: of queries, and of training rows by all other rows."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cpu_fallback.elementary import add_in_order
from cpu_fallback.types import Array
from gpu_encode.encoders.codes import CodedRows
from gpu_encode.methods.proximity.histogram import Histogram, count_in_blocks
from gpu_encode.methods.proximity.measures import Measures, merge_rows, sum_equal_rows, to_floats

FORMS = ("ratio", "difference")


def score_classes(form: str, totals: Array, everything: Array, first: int) -> Array:
    """Give the scores of classes, from the class numbered `first` on: (outputs, queries).

    Parameters
    ----------
    form : {"ratio", "difference"}
    totals : float64 array (classes, queries)
        Strength of the votes for each class.
    everything : float64 array (classes, queries)
        Weight of all rows of each class: for each query, or one column for all queries.
    first : int
    """
    votes, weight = add_in_order(totals), add_in_order(everything)
    classes = list(zip(totals[first:], everything[first:], strict=True))
    if form == "ratio":
        return np.stack([divide(of, votes, divide(all_of, weight, np.nan)) for of, all_of in classes])
    return np.stack([divide(of, all_of, 0.0) - divide(votes - of, weight - all_of, 0.0) for of, all_of in classes])


def divide(dividend: Array, divisor: Array, otherwise: Array | float) -> Array:
    """Divide; give `otherwise` if the divisor is zero."""
    nothing = divisor == 0
    quotient: Array = np.where(nothing, otherwise, dividend / np.where(nothing, 1.0, divisor))
    return quotient


@dataclass(frozen=True, eq=False)
class Electorate:
    """Training rows, with equal ones merged.

    Parameters
    ----------
    rows : CodedRows
    measures : Measures
    merged : int32 array (rows,)
        The number of the distinct row of each row.
    codes : int32 array (features, different rows)
    sums : int64 array (different rows, n)
    """

    rows: CodedRows
    measures: Measures
    merged: Array
    codes: Array
    sums: Array

    @classmethod
    def of(cls, rows: CodedRows) -> "Electorate":
        """Merge rows."""
        measures = Measures.of(rows)
        merged, codes = merge_rows(rows.ops, rows.codes, rows.sizes)
        sums = sum_equal_rows(rows.ops, merged, codes.shape[1], measures.values)
        return cls(rows, measures, merged, codes, sums)

    def leave_out(self, merged: Array, own: Array) -> "Cases":
        """Make cases, from the number of each case's distinct row and its own sums (n, cases)."""
        ops = self.rows.ops
        asked, distinct = ops.factorize(merged)
        queries = self.codes if len(distinct) == self.codes.shape[1] else self.codes[:, ops.to_device(distinct)]
        everything = to_floats(ops, self.sums.sum(axis=0)[:, None] - own, self.measures.exponents)
        return Cases(self, queries, asked, own, everything)


def score(form: str, totals: Array, everything: Array, kind: str) -> Array:
    """Give the scores (outputs, queries) for a kind of target; with two classes, only those of the second."""
    if kind == "continuous":
        # The weighted mean, from the sums of weights and of weighted targets.
        return divide(totals[1], totals[0], divide(everything[1], everything[0], np.nan))[None]
    return score_classes(form, totals, everything, int(kind == "binary"))


@dataclass(frozen=True, eq=False)
class Cases:
    """Training rows that are scored by all others.

    Parameters
    ----------
    electorate : Electorate
    queries : int32 array (features, queries)
        Distinct rows.
    asked : int32 array (cases,)
        The query of each case.
    own : int64 array (n, cases)
        Sums of the case itself.
    everything : float64 array (n, cases)
        Sums over all rows except the case itself.
    """

    electorate: Electorate
    queries: Array
    asked: Array
    own: Array
    everything: Array

    def histograms(self) -> Iterator[Histogram]:
        """Compare blocks of queries with all distinct rows."""
        rows, known = self.electorate.rows, self.electorate
        exponents = known.measures.exponents
        return (
            histogram
            for _, histogram in count_in_blocks(rows.ops, self.queries, known.codes, known.sums, exponents, rows.sizes)
        )

    def leave_out(self, full: Array) -> Array:
        """Give the sums of rows that agree with a case in every feature, without itself, from those of its query."""
        electorate = self.electorate
        return to_floats(electorate.rows.ops, full[:, self.asked] - self.own, electorate.measures.exponents)

    def score(self, form: str, others: Array, agreeing: Array) -> Array:
        """Score cases (outputs, cases) by votes of rows that differ (n, queries) and of rows that agree (n, cases)."""
        kind = self.electorate.rows.targets[0].kind
        return score(form, others[:, self.asked] + agreeing, self.everything, kind)
