"""The learned state of votes: the training rows, the weights of subsets of features, and the degree."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cpu_fallback.exact import Floats, Integers, in_one_piece
from cpu_fallback.row_numbers import Permutation
from cpu_fallback.types import Array
from gpu_encode.encoders.codes import CodedRows, Learned
from gpu_encode.methods.proximity.histogram import Histogram
from gpu_encode.methods.proximity.measures import merge_rows, to_floats
from gpu_encode.methods.proximity.objectives import Area, Error
from gpu_encode.methods.proximity.subsets import DENSE, MOST_FEATURES, measure_strengths
from gpu_encode.methods.proximity.voting import Cases, Electorate, score
from gpu_encode.methods.votes.ascent import ascend
from gpu_encode.words.errors.parameters import check_option

# Most cells of a histogram of new rows, and of votes of several candidates at a time; a cell has eight bytes.
MOST_CELLS = 1 << 24
# Numbers that floats can hold are multiples of powers of two up to this one.
MOST_EXPONENT = 1_200
# Unless a user says otherwise, a tuning takes at most so many rounds and products, which are some minutes of a CPU.
MOST_ROUNDS, MOST_PRODUCTS = 200, 1 << 37


@dataclass(frozen=True)
class Ballot:
    """How rows vote.

    Parameters
    ----------
    form : {"ratio", "difference"}
    masks : int64 array (subsets,)
    n_features : int
    """

    form: str
    masks: Integers
    n_features: int

    def strengths(self, patterns: Integers, weights: Floats, degree: float) -> Floats:
        """Give the strength of each pattern, and last the strength of agreement in all features."""
        every = np.append(patterns, (1 << self.n_features) - 1)
        return measure_strengths(every, self.masks, weights, degree, self.n_features, self.form == "ratio")

    def score(self, cases: Cases, candidates: Sequence[tuple[Floats, float]]) -> list[Array]:
        """Give for each pair of weights and degree the scores (outputs, cases) of training rows by all other rows."""
        return cases.score(
            self.form, np.stack([self.strengths(cases.histogram.patterns, *each) for each in candidates])
        )

    def tune(
        self,
        electorate: Electorate,
        degree: float | None,
        tol: float,
        max_rounds: int | None,
        n_rows: int | None,
        seed: int,
    ) -> tuple[Floats, float, list[list[float]]]:
        """Tune the weights, and the degree unless it is given, on all training rows or on `n_rows` random ones."""
        rows = electorate.rows
        most = rows.n_rows if n_rows is None else min(n_rows, rows.n_rows)
        chosen: Any = slice(None)
        if most < rows.n_rows:
            chosen = np.sort(rows.ops.rows_at(Permutation(rows.n_rows, seed), 0, most))
        kind: type[Error | Area] = Error if rows.targets[0].kind == "continuous" else Area
        objective = kind.of(electorate, chosen)
        start = np.zeros(len(self.masks) + (degree is None))
        if degree is None:
            start[-1] = 1.0

        def judge(tried: Floats) -> list[float]:
            pairs = [(each[:-1], float(each[-1])) if degree is None else (each, degree) for each in tried]
            at_once = max(1, MOST_CELLS // objective.cases.full.size)
            return [
                objective.measure(scores)
                for first in range(0, len(pairs), at_once)
                for scores in self.score(objective.cases, pairs[first : first + at_once])
            ]

        if max_rounds is None:
            of_round = len(start) * max(objective.cases.histogram.sums.size, 1)
            max_rounds = max(1, min(MOST_ROUNDS, MOST_PRODUCTS // of_round))
        found = ascend(judge, start, tol, objective.least_rise, max_rounds)
        numbers, path = found.numbers, [[number, step, objective.scale(best)] for number, step, best in found.path]
        return (numbers[:-1], float(numbers[-1]), path) if degree is None else (numbers, degree, path)


@dataclass(frozen=True, eq=False)
class LearnedVotes(Learned):
    """The state that scores rows.

    Parameters
    ----------
    form : {"ratio", "difference"}
    kind : {"binary", "multiclass", "continuous"}
    labels : list of str
        The last part of the names of outputs.
    masks : int64 array (subsets,)
    weights : float64 array (subsets,)
    degree : float
    path : list of list of float
        See `ascend`.
    codes : int32 array (features, different rows)
    sums : int64 array (different rows, n)
    exponents : list of int
    """

    form: str
    kind: str
    labels: list[str]
    masks: Array
    weights: Array
    degree: float
    path: list[list[float]] = field(repr=False)
    codes: Array = field(repr=False)
    sums: Array = field(repr=False)
    exponents: list[int]

    def names(self, keys: Sequence[str]) -> list[str]:  # noqa: ARG002
        """Name the output columns."""
        return [f"proximity{label}" for label in self.labels]

    def check(self, sizes: Sequence[int]) -> None:
        """Raise ValueError if the fields do not fit keys of these sizes, as in a damaged file."""
        check_option("ProximityEncoder", "form", self.form, ("ratio", "difference"))
        check_option("ProximityEncoder", "kind", self.kind, ("binary", "multiclass", "continuous"))
        arrays = (self.codes, self.sums, self.masks, self.weights)
        types = [array.dtype.str[1:] for array in arrays] == ["i4", "i8", "i8", "f8"]
        shapes = self.codes.shape == (len(sizes), len(self.sums)) and self.sums.shape[1:] == (len(self.exponents),)
        if not types or not shapes or self.masks.shape != (len(self.weights),) or self.weights.ndim != 1:
            raise ValueError("the training rows of votes do not fit the columns that are encoded")
        if len(sizes) > MOST_FEATURES:
            raise ValueError(f"votes compare up to {MOST_FEATURES} features, not {len(sizes)}")
        if len(self.masks) and not 0 <= self.masks.min() <= self.masks.max() < 1 << len(sizes):
            raise ValueError("a subset of features has features that there are not")
        if not math.isfinite(self.degree) or any(abs(exponent) > MOST_EXPONENT for exponent in self.exponents):
            raise ValueError("the degree or the exponents of votes are out of range")
        n_outputs = len(self.exponents) if self.kind == "multiclass" else len(self.exponents) - 1
        if len(self.labels) != n_outputs or (self.kind == "continuous" and n_outputs != 1):
            raise ValueError(f"votes have {len(self.labels)} outputs, of {len(self.exponents)} sums a row")
        if any(bool(((row < -1) | (row >= max(size, 1))).any()) for row, size in zip(self.codes, sizes, strict=True)):
            raise ValueError("the training rows of votes have unknown categories")

    def encode(self, rows: CodedRows) -> Array:
        """Score rows: (rows, outputs), float64, on the device of the rows."""
        ops, (known, sums) = rows.ops, map(rows.ops.to_device, (self.codes, self.sums))
        merged, queries = merge_rows(ops, rows.codes, rows.sizes)
        everything = to_floats(ops, sums.sum(axis=0)[:, None], self.exponents)
        ballot = Ballot(self.form, self.masks, len(queries))
        scores = ops.empty((len(self.labels), queries.shape[1]), np.float64)
        at_once = max(1, MOST_CELLS // (len(self.exponents) << min(len(queries), DENSE)))
        for start in range(0, queries.shape[1], at_once):
            block = in_one_piece(queries[:, start : start + at_once])
            histogram = Histogram.of(ops, block, known, sums, self.exponents, rows.sizes)
            strengths = ballot.strengths(histogram.patterns, self.weights, self.degree)
            (others,) = histogram.add_up(ops, strengths[None, :-1])
            votes = others + to_floats(ops, histogram.full, self.exponents) * float(strengths[-1])
            scores[:, start : start + at_once] = score(self.form, votes, everything, self.kind)
        return scores[:, merged].T

    def encode_left_out(self, rows: CodedRows) -> Array:
        """Score each training row by all other rows: (rows, outputs)."""
        electorate = Electorate.of(rows)
        cases = electorate.leave_out(electorate.merged, electorate.measures.values)
        (scores,) = Ballot(self.form, self.masks, len(rows.codes)).score(cases, [(self.weights, self.degree)])
        return scores.T


def learn_votes(rows: CodedRows, form: str, masks: Integers, given: Floats | None, **tuning: Any) -> LearnedVotes:
    """Learn from training rows, with given weights or with weights that `Ballot.tune` finds."""
    ops, target = rows.ops, rows.targets[0]
    electorate = Electorate.of(rows)
    if given is None:
        weights, degree, path = Ballot(form, masks, len(rows.codes)).tune(electorate, **tuning)
    else:
        weights, degree, path = given, 1.0 if tuning["degree"] is None else tuning["degree"], []
    several = target.kind == "multiclass" and target.classes is not None
    labels = [f"_{label}" for label in target.classes] if several else [""]  # type: ignore[union-attr]
    codes, sums = ops.to_host(electorate.codes), ops.to_host(electorate.sums)
    return LearnedVotes(
        form, target.kind, labels, masks, weights, degree, path, codes, sums, electorate.measures.exponents
    )
