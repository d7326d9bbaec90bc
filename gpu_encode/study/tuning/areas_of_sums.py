"""The exact area under the ROC curve of held-out rows, counted from sums by category and fold, without the rows."""

import math
from dataclasses import dataclass

import numpy as np

from cpu_fallback.elementary import add_in_order
from cpu_fallback.exact import Floats
from gpu_encode.formulas.ordered_pairs import PairCounter
from gpu_encode.seam.ops import Ops
from gpu_encode.study.tuning.sums import Mask, mean


@dataclass(frozen=True)
class Areas:
    """Pairs of a row of a class and a row of another, by fold: all rows of a category in a fold have one encoding.

    Parameters
    ----------
    scored : bool array (rows, folds)
        Cells that have a weight and an encoding.
    counters : list of list of PairCounter
        For each fold, of each class; only of the second if there are two.
    """

    scored: Mask
    counters: list[list[PairCounter]]

    @classmethod
    def of(cls, ops: Ops, weight: Floats, scored: Mask) -> "Areas":
        """Take the weights of each class in each cell (rows, folds, classes); sums of whole weights are exact."""
        n_folds, n_classes = weight.shape[1:]
        counters: list[list[PairCounter]] = []
        for fold in range(n_folds):
            cells = weight[scored[:, fold], fold]
            # A cell stands for two rows: those of the class, and all others.
            of_class = np.repeat(ops.to_device(np.array([True, False])), len(cells))
            counters.append([])
            for number in [1] if n_classes == 2 else range(n_classes):
                others = [cells[:, other] for other in range(n_classes) if other != number]
                both = [cells[:, number], add_in_order(others)]
                counters[-1].append(PairCounter(ops, of_class, np.concatenate(both)))
        return cls(scored, counters)

    def mean(self, encodings: Floats) -> float:
        """Average the areas of encodings (rows, folds, outputs) over classes and folds that have pairs."""
        by_fold = []
        for fold, counters in enumerate(self.counters):
            cells = encodings[self.scored[:, fold], fold]
            areas = [
                counter.area(np.concatenate([cells[:, number]] * 2))
                for number, counter in enumerate(counters)
                if counter.pairs
            ]
            by_fold += [mean(areas)] if areas else []
        return mean(by_fold) if by_fold else math.nan
