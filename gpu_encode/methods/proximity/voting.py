"""Scores from the votes of training rows: of queries, and of training rows by all other rows."""

from dataclasses import dataclass

import numpy as np

from cpu_fallback.elementary import add_in_order
from cpu_fallback.exact import Floats
from cpu_fallback.types import Array
from gpu_encode.encoders.codes import CodedRows
from gpu_encode.methods.proximity.histogram import Histogram
from gpu_encode.methods.proximity.measures import Measures, merge_rows, sum_equal_rows, to_floats
from gpu_encode.seam.ops import Ops

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
    if form == "ratio":
        return np.stack(
            [divide(of, votes, divide(all_of, weight, np.nan)) for of, all_of in zip(totals, everything, strict=True)][
                first:
            ]
        )
    return np.stack(
        [
            divide(of, all_of, 0.0) - divide(votes - of, weight - all_of, 0.0)
            for of, all_of in zip(totals, everything, strict=True)
        ][first:]
    )


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
        ops, exponents = self.rows.ops, self.measures.exponents
        asked, distinct = ops.factorize(merged)
        queries = self.codes if len(distinct) == self.codes.shape[1] else self.codes[:, ops.to_device(distinct)]
        histogram = Histogram.of(ops, queries, self.codes, self.sums, exponents, self.rows.sizes)
        full = to_floats(ops, histogram.full[:, asked] - own, exponents)
        everything = to_floats(ops, self.sums.sum(axis=0)[:, None] - own, exponents)
        return Cases(ops, histogram, asked, full, everything, self.rows.targets[0].kind)


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
    ops : Ops
    histogram : Histogram
        Histogram over all distinct rows.
    asked : int32 array (cases,)
        The query of each case.
    full : float64 array (n, cases)
        Sums over the rows that agree with the case in every feature, without the case itself.
    everything : float64 array (n, cases)
        Sums over all rows except the case itself.
    kind : str
        Kind of the target.
    """

    ops: Ops
    histogram: Histogram
    asked: Array
    full: Array
    everything: Array
    kind: str

    def score(self, form: str, strengths: Floats) -> list[Array]:
        """Give the scores (outputs, cases) for each candidate.

        Parameters
        ----------
        form : {"ratio", "difference"}
        strengths : float64 array (candidates, patterns + 1)
            Strength of each pattern, and last that of agreement in all features.
        """
        scores = []
        for others, strength in zip(self.histogram.add_up(self.ops, strengths[:, :-1]), strengths[:, -1], strict=True):
            votes = others[:, self.asked] + self.full * float(strength)
            scores.append(score(form, votes, self.everything, self.kind))
        return scores
