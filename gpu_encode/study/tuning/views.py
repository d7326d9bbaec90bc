"""The sums that each fold sees and holds out: rows are read here, once for all smoothings."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cpu_fallback.cached import cached_property
from cpu_fallback.exact import Floats
from gpu_encode.fitting.fit import FitContext, sum_folds
from gpu_encode.fitting.tasks import EncodingTask
from gpu_encode.formulas.encoding_rule import EncodingRule, SeenSums, Visibility
from gpu_encode.schemes.plans import FoldPlan, Plan, SplitPlan
from gpu_encode.sums.category_sums import CategorySums
from gpu_encode.sums.moments import Moments
from gpu_encode.words.errors.parameters import scheme_without_held_out_rows


@dataclass(frozen=True)
class Views:
    """Sums of one column and target.

    Parameters
    ----------
    task : EncodingTask
    seen : CategorySums
    visibility : int64 array (n_folds, n_folds) or None
        None if `seen` already has a view for each fold.
    held_out : CategorySums
        By category and fold.
    total : Moments
        Moments of all rows that each fold sees, whatever their category.
    """

    task: EncodingTask
    seen: CategorySums
    visibility: Visibility
    held_out: CategorySums
    total: Moments

    @classmethod
    def of_keys(cls, context: FitContext, plan: Plan, scheme: Any) -> Iterator[list["Views"]]:
        """Sum the rows of each key and target, of many keys in one pass; ValueError if a fold sees rows of its own."""
        sums = None
        if isinstance(plan, FoldPlan) and not plan.visibility.diagonal().any():
            sums = sum_folds(context, [plan] * len(context.categories))
        elif not isinstance(plan, SplitPlan):
            raise scheme_without_held_out_rows(scheme)
        for entry in range(len(context.categories)):
            tasks = [context.task(entry, number) for number in range(len(context.summed))]
            if sums is None:
                yield [cls.of_splits(task.joined(), plan, scheme) for task in tasks]  # type: ignore[arg-type]
            else:
                yield [cls.of_folds(task, plan, sums[entry].pop(0)) for task in tasks]  # type: ignore[arg-type]

    @classmethod
    def of_folds(cls, task: EncodingTask, plan: FoldPlan, sums: CategorySums) -> "Views":
        """Let each fold see the sums of other folds."""
        return cls(task, sums, plan.visibility, sums, SeenSums(sums, plan.visibility, task.rule, task.ops).total())

    @classmethod
    def of_splits(cls, task: EncodingTask, plan: SplitPlan, scheme: Any) -> "Views":
        """Sum the rows that each split trains on; ValueError if a split trains on rows that it tests."""
        held_out = task.measure(plan.folds, len(plan.training))
        parts = []
        for number, rows in enumerate(plan.training):
            if bool((plan.folds[rows] == number).any()):
                raise scheme_without_held_out_rows(scheme)
            parts.append(replace(task, rows=task.rows.pick(rows)).measure(None, 1).accumulators)
        seen = replace(held_out, accumulators=np.concatenate(parts, axis=1))
        return cls(task, seen, None, held_out, SeenSums(seen, None, task.rule, task.ops).total())

    @cached_property
    def leaf(self) -> Moments:
        """Moments of each category in each fold's view, rounded once for all rules."""
        return SeenSums(self.seen, self.visibility, self.task.rule, self.task.ops).moments()

    def encode(self, rule: EncodingRule) -> Floats:
        """Encode the held-out rows of each fold from what it sees: (categories + 2, folds, outputs)."""
        task = self.task
        # Infrequent categories together have the sums that this rule needs, which may be fewer than all rules need.
        leaf = None if rule.pools_infrequent else self.leaf
        values = SeenSums(self.seen, self.visibility, rule, task.ops).table(task.key, self.total, leaf).values
        # After the categories, and before unknown, are the levels above, which rows reach through their categories.
        return values if not task.key.levels else np.concatenate([values[: task.key.n_categories], values[-2:]])
