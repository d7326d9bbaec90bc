"""The score of a set of keys by the area under the ROC curve, without an estimator."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cpu_fallback.types import Array
from gpu_encode.encoders.codes import CodedRows
from gpu_encode.formulas.ordered_pairs import PairCounter
from gpu_encode.study.tuning.scorers import Gain, Key, State, SumsScorer
from gpu_encode.study.tuning.sums import mean
from gpu_encode.study.tuning.working_response import HeldOut, WorkingResponse


class AreaScorer(SumsScorer):
    """Scores the additive model of the keys by the exact area of its out-of-fold offsets, in every fold.

    Steps are those of `SumsScorer`: rows are moved and nothing is fitted.  No sample is used, since what a sample shows
    about the likelihood does not bound an area.

    Parameters
    ----------
    rows, held_out, outcomes, m
        As in `SumsScorer`; all outcomes are 0 and 1.
    """

    def __init__(
        self, rows: CodedRows, held_out: HeldOut, outcomes: Sequence[tuple[Array, bool]], m: float | None = None
    ) -> None:
        super().__init__(rows, held_out, outcomes, m)
        weight = held_out.weight
        self._own = [np.flatnonzero(held_out.folds == fold) for fold in range(held_out.n_folds)]
        self._counters = [
            [PairCounter(rows.ops, values[own] > 0, None if weight is None else weight[own]) for own in self._own]
            for values, _ in outcomes
        ]

    def _score(self, responses: Sequence[WorkingResponse]) -> Gain:
        return self._areas([working.offset for working in responses])

    def _areas(self, offsets: Sequence[Array]) -> Gain:
        """Average areas over outcomes; a fold without pairs has no area."""
        by_fold = []
        for fold, own in enumerate(self._own):
            known = [
                counters[fold].area(offset[own])
                for counters, offset in zip(self._counters, offsets, strict=True)
                if counters[fold].pairs
            ]
            by_fold.append(mean(known) if known else math.nan)
        return Gain(mean([area for area in by_fold if not math.isnan(area)] or [math.nan]), tuple(by_fold))

    def gain(self, state: State, key: Key) -> Gain:
        """Measure the gain of a key before it is added, by the area after its steps."""
        codes, size = self.keys.codes(key)
        steps = [self._steps(working, key) for working in state.responses]
        offsets = [
            working.moved_offset(codes, taken.table(working, size))
            for working, taken in zip(state.responses, steps, strict=True)
        ]
        gain = State((), self._areas(offsets)).minus(state)
        return replace(gain, surprise=max(taken.surprise for taken in steps))
