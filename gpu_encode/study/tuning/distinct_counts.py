"""Categories with the same counts in a fold's view have the same encoding, and are scored as one group.

A column of 100,000 categories has only a few thousand such groups, so a grid of smoothings costs no more than a few.
"""

from dataclasses import dataclass, replace

import numpy as np

from cpu_fallback.exact import Floats, Integers
from gpu_encode.formulas.encoding_rule import EncodingRule, SeenSums
from gpu_encode.seam.ops import Ops
from gpu_encode.study.tuning.views import Views
from gpu_encode.sums.category_sums import CategorySums
from gpu_encode.sums.moments import Moments


@dataclass(frozen=True)
class DistinctCounts:
    """Groups of categories with the same counts in a fold's view; unknown and missing are groups of their own, last.

    Parameters
    ----------
    first : int64 array (groups + 2, folds)
        One category of the group; an arbitrary one if the group is empty in this fold.
    folds : int64 array (1, folds)
        Numbers of the folds.
    seen : CategorySums
        Sums (groups + 2, folds) over the rows that each fold sees.
    leaf : Moments (groups + 2, folds, ...)
        The same sums, rounded.
    held_out : CategorySums
        Sums (groups + 2, folds) over the rows that each fold holds out.
    """

    first: Integers
    folds: Integers
    seen: CategorySums
    leaf: Moments
    held_out: CategorySums

    @classmethod
    def of(cls, views: Views) -> "DistinctCounts | None":
        """Group the categories; None if encodings depend on more than counts, or if there are nearly as many groups."""
        task, ops = views.task, views.task.ops
        spec = task.spec
        if task.key.levels or task.rule.infrequent is not None or not (spec.classification and spec.layout.count.whole):
            return None
        seen = views.seen.visible(ops, views.visibility)
        n_categories, n_folds = seen.n_categories, seen.n_views
        number, size = number_groups(ops, seen.accumulators[:-2, :, :, 0])
        if 2 * size > n_categories:
            return None
        first = np.zeros((size + 2, n_folds), np.int64)
        first[-2:] = [[n_categories], [n_categories + 1]]
        accumulators = []
        for fold in range(n_folds):
            of_fold = number[:, fold].astype(np.int32)
            first[of_fold, fold] = np.arange(n_categories)
            held_out = replace(views.held_out, accumulators=views.held_out.accumulators[:, fold : fold + 1])
            accumulators.append(held_out.sum_by_parent(ops, of_fold, size).accumulators)
        firsts, folds = ops.to_device(first), ops.to_device(np.arange(n_folds)[None])
        seen = replace(seen, accumulators=seen.accumulators[firsts, folds])
        leaf = task.rule.moments(ops, seen.accumulators, seen.spec)
        return cls(
            firsts, folds, seen, leaf, replace(views.held_out, accumulators=np.concatenate(accumulators, axis=1))
        )

    def encode(self, views: Views, rule: EncodingRule) -> Floats:
        """Encode the groups: (groups + 2, folds, outputs)."""
        if rule.needs_categories or rule.statistic.needs.table:
            encodings: Floats = views.encode(rule)[self.first, self.folds]
            return encodings
        # An encoding does not depend on other categories, and so not on the size of its group.
        task = views.task
        return SeenSums(self.seen, None, rule, task.ops).table(task.key, views.total, self.leaf).values


def number_groups(ops: Ops, counts: Integers) -> tuple[Integers, int]:
    """Number the groups of each category and fold, on the host, by counts (categories, folds, classes)."""
    number, distinct = ops.factorize(counts[:, :, 0].ravel())
    for label in range(1, counts.shape[2]):
        codes, of_class = ops.factorize(counts[:, :, label].ravel())
        number, distinct = ops.factorize(ops.combine(number, codes, len(of_class)))
    return ops.to_host(number).reshape(counts.shape[:2]), len(distinct)
