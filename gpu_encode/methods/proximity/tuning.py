"""Tuning of the weights of subsets and of the degree: each is raised in turn, and only what changes is computed."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cpu_fallback.exact import Floats, Integers, in_one_piece
from cpu_fallback.row_numbers import Permutation
from cpu_fallback.types import Array
from gpu_encode.methods.proximity.folding import PatternSums
from gpu_encode.methods.proximity.objectives import Area, Error
from gpu_encode.methods.proximity.subsets import add_subsets, raise_to_degree
from gpu_encode.methods.proximity.voting import Cases, Electorate
from gpu_encode.methods.votes.ascent import ascend
from gpu_encode.seam.ops import host

# Unless a user says otherwise, a tuning takes at most so many rounds and additions, which are some minutes of a CPU.
MOST_ROUNDS, MOST_ADDITIONS = 200, 1 << 35
# So many pairs of rows take about as long in a tuning as a row in one of NumPy's calls.
PAIRS_PER_ROW = 8


@dataclass(frozen=True)
class Tuning:
    """How votes are tuned.

    Parameters
    ----------
    form : {"ratio", "difference"}
    degree : float, optional
        None: it is tuned.
    tol : float
    max_rounds : int, optional
    n_rows : int, optional
        Number of random rows that are scored; None: all.
    seed : int
    """

    form: str
    degree: float | None
    tol: float
    max_rounds: int | None
    n_rows: int | None
    seed: int

    def run(self, electorate: Electorate, masks: Integers) -> tuple[Floats, float, list[list[float]]]:
        """Tune the weights of subsets, and the degree unless it is given: give them, and the path."""
        rows = electorate.rows
        most = rows.n_rows if self.n_rows is None else min(self.n_rows, rows.n_rows)
        chosen: Any = slice(None)
        if most < rows.n_rows:
            chosen = np.sort(rows.ops.rows_at(Permutation(rows.n_rows, self.seed), 0, most))
        if isinstance(rows.codes[0], np.ndarray):
            backend = host(most * electorate.codes.shape[1] // PAIRS_PER_ROW)
            electorate = replace(electorate, rows=replace(rows, ops=backend))
        kind: type[Error | Area] = Error if rows.targets[0].kind == "continuous" else Area
        objective = kind.of(electorate, chosen)
        raised = RaisedVotes(objective.cases, self.form, masks)

        def judge(numbers: Floats, step: float) -> Iterator[float]:
            weights, degree = (numbers, self.degree) if self.degree is not None else (numbers[:-1], float(numbers[-1]))
            for scores in raised.scores(weights, degree, step):
                yield objective.measure(scores)
            if self.degree is None:
                yield objective.measure(raised.score(weights, degree + step))

        start = np.zeros(len(masks) + (self.degree is None))
        if self.degree is None:
            start[-1] = 1.0
        max_rounds = self.max_rounds or max(1, min(MOST_ROUNDS, MOST_ADDITIONS // max(raised.additions, 1)))
        found = ascend(judge, start, self.tol, objective.least_rise, max_rounds)
        path = [[number, step, objective.scale(best)] for number, step, best in found.path]
        if self.degree is None:
            return found.numbers[:-1], float(found.numbers[-1]), path
        return found.numbers, self.degree, path


class RaisedVotes:
    """The scores of training rows by all others after the weight of a subset, or the degree, has been raised.

    A pattern gains (its summed weights + step) ** degree - (its summed weights) ** degree, if it has the subset.  With
    a degree of 1 this is the step, so the sums for all subsets are folded only once.
    """

    def __init__(self, cases: Cases, form: str, masks: Integers) -> None:
        self._cases, self._form, self._masks = cases, form, masks
        ops, self._n_features = cases.electorate.rows.ops, len(cases.queries)
        # Folded sums have the subsets in rising order of their masks.
        rising = np.sort(masks)
        self._ranks = np.searchsorted(rising, masks).tolist()
        self._parts: list[PatternSums] = []
        full, first = [], 0
        for histogram in cases.histograms():
            self._parts.append(PatternSums.of(ops, histogram, first, rising))
            full.append(histogram.full)
            first += histogram.full.shape[1]
        self._full = cases.leave_out(np.concatenate(full, axis=1))
        every = [(1 << self._n_features) - 1]
        self._patterns = np.unique(np.concatenate([*(part.patterns for part in self._parts), every]))
        self._numbers = [np.searchsorted(self._patterns, part.patterns) for part in self._parts]
        blocks = [block for part in self._parts for block in part.blocks]
        subsets = np.concatenate([np.repeat(rising, np.diff(block.bounds)) for block in blocks])
        self._in_order = ops.to_device(np.argsort(subsets, kind="stable"))
        self._queries = np.concatenate([block.queries for block in blocks])[self._in_order]
        self._bounds = np.sum([block.bounds for block in blocks], axis=0).tolist()
        self._agreeing: Array | None = None

    @property
    def additions(self) -> int:
        """Number of additions of one round."""
        n_measures = len(self._full)
        of_blocks = (block.additions for part in self._parts for block in part.blocks)
        return n_measures * (sum(of_blocks) + len(self._masks) * self._full.shape[1])

    def scores(self, weights: Floats, degree: float, step: float) -> Iterator[Array]:
        """Give the scores (outputs, cases) with the step added to each weight in turn."""
        agreed = self._agreed(weights)
        both = raise_to_degree(np.concatenate([agreed, agreed + step]), degree, self._form == "ratio")
        before, after = both[: len(agreed)], both[len(agreed) :]
        others, full = self._add_up(before), self._full * float(after[-1])
        rises = self._fold(None) * step if degree == 1.0 else self._fold(after - before)
        lines = self._cases.electorate.rows.ops.xp.arange(len(others))[:, None] * others.shape[1]
        for rank in self._ranks:
            votes, part = others.copy(), slice(*self._bounds[rank : rank + 2])
            raised = self._queries[part]
            votes.put(lines + raised, votes.take(raised, axis=1) + rises[:, part])
            yield self._cases.score(self._form, votes, full)

    def score(self, weights: Floats, degree: float) -> Array:
        """Give the scores (outputs, cases)."""
        strengths = raise_to_degree(self._agreed(weights), degree, self._form == "ratio")
        return self._cases.score(self._form, self._add_up(strengths), self._full * float(strengths[-1]))

    def _agreed(self, weights: Floats) -> Floats:
        """Sum the weights of each pattern; the last one is agreement in all features."""
        return add_subsets(self._patterns, self._masks, weights, self._n_features)

    def _add_up(self, strengths: Floats) -> Array:
        """Add up the votes of rows that differ in some feature: (n, queries)."""
        of_parts = [part.add_up(strengths[numbers]) for part, numbers in zip(self._parts, self._numbers, strict=True)]
        return np.concatenate(of_parts, axis=1)

    def _fold(self, gains: Floats | None) -> Array:
        """Fold gains of patterns into sums (n, ends) in the order of subsets; None: gains of 1, folded only once."""
        if gains is None and self._agreeing is not None:
            return self._agreeing
        folded = [
            of_block
            for part, numbers in zip(self._parts, self._numbers, strict=True)
            for of_block in part.fold(None if gains is None else gains[numbers])
        ]
        in_order = in_one_piece(np.concatenate(folded).take(self._in_order, axis=0).T)
        if gains is None:
            self._agreeing = in_order
        return in_order
