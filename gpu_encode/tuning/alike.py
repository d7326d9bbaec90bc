"""Categories of which a fold sees the same counts have the same code, and are scored as one.

A column of 100,000 categories has a few thousand groups, so that a grid of smoothings costs what a few do.
"""

from dataclasses import dataclass, replace

import numpy as np

from cpu_fallback.exact import Floats, Integers
from gpu_encode.formula import Formula, table
from gpu_encode.moments import Moments
from gpu_encode.ops import Ops
from gpu_encode.statistics import Statistics
from gpu_encode.tuning.views import Views


@dataclass(frozen=True)
class Alike:
    """Groups of categories that are alike to a fold; unknown and missing stand alone, last.

    Parameters
    ----------
    first : int64 array (groups + 2, folds)
        A category of the group; any, where the fold has none.
    folds : int64 array (1, folds)
        Numbers of the folds.
    seen : Statistics
        Sums (groups + 2, folds) of what the folds see.
    leaf : Moments (groups + 2, folds, ...)
        The same, rounded.
    held_out : Statistics
        Sums (groups + 2, folds) of what the folds hold out.
    """

    first: Integers
    folds: Integers
    seen: Statistics
    leaf: Moments
    held_out: Statistics

    @classmethod
    def of(cls, views: Views) -> "Alike | None":
        """Group the categories; None where codes depend on more than counts, or groups are hardly fewer."""
        job, ops = views.job, views.job.ops
        if job.key.levels or job.formula.rare.asked or not job.measured.classification:
            return None
        if not job.measured.layout.count.whole:
            return None
        seen = views.seen.visible(ops, views.visibility)
        n_categories, n_folds = seen.n_categories, seen.n_views
        number, size = numbered(ops, seen.cells[:-2, :, :, 0])
        if 2 * size > n_categories:
            return None
        first = np.zeros((size + 2, n_folds), np.int64)
        first[-2:] = [[n_categories], [n_categories + 1]]
        cells = []
        for fold in range(n_folds):
            of_fold = number[:, fold].astype(np.int32)
            first[of_fold, fold] = np.arange(n_categories)
            own = replace(views.held_out, cells=views.held_out.cells[:, fold : fold + 1])
            cells.append(own.grouped(ops, of_fold, size).cells)
        places, folds = ops.to_device(first), ops.to_device(np.arange(n_folds)[None])
        seen = replace(seen, cells=seen.cells[places, folds])
        leaf = job.formula.moments(ops, seen.cells, seen.measured)
        return cls(places, folds, seen, leaf, replace(views.held_out, cells=np.concatenate(cells, axis=1)))

    def codes(self, views: Views, formula: Formula) -> Floats:
        """Codes (groups + 2, folds, outputs) of the groups."""
        if formula.needs_categories or formula.readout.needs_table:
            found: Floats = views.codes(formula)[self.first, self.folds]
            return found
        # What a category's code is does not depend on other categories, and so not on how many are alike.
        return table(self.seen, None, views.job.key, formula, views.job.ops, views.total, self.leaf).values


def numbered(ops: Ops, counts: Integers) -> tuple[Integers, int]:
    """Group of each category and fold, on the host, by its counts (categories, folds, classes); and how many."""
    number, distinct = ops.factorize(counts[:, :, 0].ravel())
    for each in range(1, counts.shape[2]):
        codes, own = ops.factorize(counts[:, :, each].ravel())
        number, distinct = ops.factorize(ops.combine(number, codes, len(own)))
    return ops.to_host(number).reshape(counts.shape[:2]), len(distinct)
