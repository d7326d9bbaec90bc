"""What each fold sees, and what it holds out, as sums: rows are read here, once for all smoothings."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from cpu_fallback.exact import Floats
from gpu_encode.errors.tuning import scheme_without_held_out_rows
from gpu_encode.formula import Formula, Visibility, table, total_of_views
from gpu_encode.jobs import Job
from gpu_encode.moments import Moments
from gpu_encode.plans import FoldPlan, Plan, SplitPlan
from gpu_encode.statistics import Statistics
from gpu_encode.training import placed


@dataclass(frozen=True)
class Views:
    """Sums of one column and target.

    Parameters
    ----------
    job : Job
    seen : Statistics
    visibility : int64 array (n_folds, n_folds) or None
        None where `seen` has a view for each fold already.
    held_out : Statistics
        By category and fold.
    total : Moments
        What each fold sees of all rows, whatever their category.
    """

    job: Job
    seen: Statistics
    visibility: Visibility
    held_out: Statistics
    total: Moments

    @classmethod
    def of(cls, job: Job, plan: Plan, scheme: Any) -> "Views":
        """Sum the rows; ValueError where a fold sees rows of its own."""
        plan = placed(plan, job.ops)
        if isinstance(plan, FoldPlan) and not plan.visibility.diagonal().any():
            sums = job.measure(plan.folds, plan.n_folds)
            return cls(job, sums, plan.visibility, sums, job.total_of_views(sums, plan.visibility))
        if not isinstance(plan, SplitPlan):
            raise scheme_without_held_out_rows(scheme)
        held_out = job.measure(plan.folds, len(plan.training))
        parts = []
        for number, rows in enumerate(plan.training):
            if bool((plan.folds[rows] == number).any()):
                raise scheme_without_held_out_rows(scheme)
            parts.append(replace(job, rows=job.rows.pick(rows)).measure(None, 1).cells)
        seen = replace(held_out, cells=np.concatenate(parts, axis=1))
        return cls(job, seen, None, held_out, total_of_views(seen, None, job.formula, job.ops))

    @cached_property
    def leaf(self) -> Moments:
        """What each fold sees of each category: rounded once, where every formula would ask for it again."""
        return self.job.formula.moments_of_views(self.job.ops, self.seen, self.visibility)

    def codes(self, formula: Formula) -> Floats:
        """Codes (categories + 2, folds, outputs) of what the folds hold out, from what they see."""
        job = self.job
        # Infrequent categories together are measured as the formula asks, which need not be what all of them ask for.
        leaf = None if formula.rare.pooled else self.leaf
        values = table(self.seen, self.visibility, job.key, formula, job.ops, self.total, leaf).values
        # Between the categories and the unknown stand the levels above, which rows reach through their categories.
        return values if not job.key.levels else np.concatenate([values[: job.key.n_categories], values[-2:]])
