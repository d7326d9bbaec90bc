"""Training encodings of one key and one target, by the plan of the scheme."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cpu_fallback.row_numbers import Permutation
from cpu_fallback.types import Array, Folds
from gpu_encode.fitting.ageing import as_views
from gpu_encode.fitting.elapsed import Elapsed
from gpu_encode.fitting.leave_one_out import leave_one_out
from gpu_encode.fitting.ordered import ordered, ordered_by_age
from gpu_encode.fitting.tasks import EncodingTask, look_up
from gpu_encode.formulas.encoding_rule import EncodingTable, SeenSums
from gpu_encode.schemes.plans import FoldPlan, OrderedPlan, Plan, SplitPlan
from gpu_encode.sums.category_sums import CategorySums
from gpu_encode.sums.distributions import Distribution
from gpu_encode.sums.moments import Moments
from gpu_encode.tables.categories.keys import CategoryIndex


def n_columns(plan: Plan) -> int:
    """Columns of encodings per output: one for each fold's encoder or each order, where these stay separate."""
    if isinstance(plan, FoldPlan) and plan.blow_up:
        return len(plan.new_rows)
    return len(plan.orders) if isinstance(plan, OrderedPlan) and not plan.average else 1


def sum_for_new_rows(task: EncodingTask, plan: Plan) -> CategorySums:
    """Sums that new rows see: those of all rows, except for holdout, blow-up columns, and rows by their age."""
    if isinstance(plan, OrderedPlan) and plan.new_rows is not None:
        plan = plan.new_rows
    if isinstance(plan, FoldPlan) and (plan.blow_up or not plan.new_rows.all() or plan.ageing is not None):
        sums, plan = measure_folds(task, plan)
        return sums.visible(task.ops, plan.new_rows)
    return task.measure(None, 1)


def measure_folds(task: EncodingTask, plan: FoldPlan) -> tuple[CategorySums, FoldPlan]:
    """Sum by category and fold, or by view where rows lose weight with age; gives the plan of these sums, too."""
    sums = task.weighed(plan.weights).measure(plan.folds, plan.n_folds)
    return (sums, plan) if plan.ageing is None else as_views(sums, plan, task.ops)


@dataclass(frozen=True)
class Trained:
    """What training gives beside the encodings of the rows.

    Parameters
    ----------
    statistics : CategorySums
        What new rows see.
    unseen : bool array (rows,) or None
        Rows that see no row of their category; None unless asked for.
    all_see : bool
        Whether it is known that every row sees some rows.
    total : Moments, optional
        All rows that each fold sees, for the next key of the same target; None where the plan has no folds.
    """

    statistics: CategorySums
    unseen: Array | None
    all_see: bool = False
    total: Moments | None = None


def train(task: EncodingTask, plan: Plan, out: Array, want_unseen: bool, total: Moments | None = None) -> Trained:
    """Write the training encodings of every row to `out` (rows, outputs * columns).

    `total` is that of another key of the same target, where there is one: it is the same under every key.
    """
    if not task.n_outputs:
        return Trained(sum_for_new_rows(task, plan), None, True, total)
    if isinstance(plan, FoldPlan):
        return by_folds(task, plan, out, want_unseen, total)
    if isinstance(plan, SplitPlan):
        return by_splits(task, plan, out, want_unseen)
    if isinstance(plan, OrderedPlan) and plan.new_rows is not None:
        return Trained(sum_for_new_rows(task, plan), ordered_by_age(task, plan, out, want_unseen))
    others = task.rows.weight is None and len(task.rows) > 1
    want_unseen = want_unseen or task.rule.needs.dates
    if isinstance(plan, OrderedPlan):
        # The first row of a random order sees all others.
        shuffled = all(isinstance(order, Permutation) for order in plan.orders)
        trained = Trained(*ordered(task, plan, out, want_unseen), others and shuffled)
    else:
        statistics = task.measure(None, 1)
        trained = Trained(statistics, leave_one_out(task, statistics, out, want_unseen), others)
    if task.rule.needs.dates:
        # Earlier dates are those that these rows see in any case: neither a row's own, nor any that come after it.
        write_elapsed(task, trained.statistics.distribution, None, None, out, trained.unseen)
    return trained


def write_elapsed(
    task: EncodingTask,
    visible: Distribution | None,
    encodings: EncodingTable | None,
    folds: Folds,
    out: Array,
    unseen: Array | None = None,
) -> None:
    """Write the seconds since the last date that each row's view sees."""
    for elapsed in Elapsed.of(visible, task.vocabulary, task.rule, encodings, (0, 0), task.key.n_categories, task.ops):
        elapsed.write(task.ops, task.rows.codes, folds, task.dates, out, task.key.entry.name, unseen)


def by_folds(task: EncodingTask, plan: FoldPlan, out: Array, want_unseen: bool, total: Moments | None) -> Trained:
    """Sum by category and fold, make a table of encodings from the sums, and look up every row in it."""
    sums, plan = measure_folds(task, plan)
    seen, leaf = SeenSums(sums, plan.visibility, task.rule, task.ops), None
    if total is None and not plan.blow_up:
        total, leaf = seen.total_and_leaf()
    new, encodings = tables_by_fold(seen, plan, task.key, total, leaf, out.dtype)
    folds, reads_dates = plan.lookup_folds, task.rule.needs.dates
    visible = seen_values(sums, plan) if reads_dates else None
    # What the tables were made of makes room for them in the type of the output.
    del sums, seen, leaf
    unseen = look_up(task.ops, encodings, task.rows.codes, folds, out, want_unseen)
    if reads_dates:
        write_elapsed(task, visible, encodings, folds, out)
    return Trained(new, unseen, total is not None and bool((total.n > 0).all()), total)


def seen_values(sums: CategorySums, plan: FoldPlan) -> Distribution | None:
    """Count the values that each fold sees; one whose rows get NaN sees none."""
    seen = np.array([line * (fold not in plan.blind) for fold, line in enumerate(plan.visibility)])
    return None if sums.distribution is None else sums.distribution.visible(seen)


def tables_by_fold(
    seen: SeenSums,
    plan: FoldPlan,
    key: CategoryIndex,
    total: Moments | None,
    leaf: Moments | None,
    dtype: Any = np.float64,
) -> tuple[CategorySums, EncodingTable]:
    """Give the sums that new rows see, and the encodings of training rows by category and fold.

    Parameters
    ----------
    seen : SeenSums
        Sums by category and fold, and which folds each fold sees.
    plan : FoldPlan
    key : CategoryIndex
    total : Moments or None
        All rows that each fold sees; not needed for blow-up columns, whose encodings do not depend on the row's fold.
    leaf : Moments or None
        What each fold sees of each category, where the caller has it already.
    dtype : dtype, default=float64
        What the encodings will be rounded to.
    """
    if plan.blow_up:
        new = seen.sums.visible(seen.ops, plan.new_rows)
        return new, flatten(SeenSums(new, None, seen.rule, seen.ops).table(key))
    few, backend = seen.sums.few_on_host(seen.ops)
    new = few.visible(backend, plan.new_rows)
    encodings = seen.table(key, total, leaf, dtype)
    for fold in plan.blind:
        encodings.values[:, fold] = np.nan
    return new, encodings


def by_splits(task: EncodingTask, plan: SplitPlan, out: Array, want_unseen: bool) -> Trained:
    """Sum the training rows of each split separately, and look up every row by the split that tests it."""
    splits = [replace(task, rows=task.rows.pick(rows)).measure(None, 1) for rows in plan.training]
    everything = task.measure(None, 1)
    views = replace(everything, accumulators=np.concatenate([split.accumulators for split in splits], axis=1))
    if everything.distribution is not None:
        distributions = [split.distribution for split in splits]
        views = replace(views, distribution=Distribution.side_by_side(distributions))  # type: ignore[arg-type]
    encodings = SeenSums(views, None, task.rule, task.ops).table(task.key)
    unseen = look_up(task.ops, encodings, task.rows.codes, plan.folds, out, want_unseen)
    if task.rule.needs.dates:
        write_elapsed(task, views.distribution, encodings, plan.folds, out)
    return Trained(everything, unseen)


def flatten(encodings: EncodingTable) -> EncodingTable:
    """Give a table with one view, in which the views of this one stand side by side: output by output."""
    values = np.moveaxis(encodings.values, 1, 2).reshape(len(encodings.values), 1, -1)
    whole = values if values.flags.c_contiguous else values.copy()
    return EncodingTable(whole, np.all(encodings.unseen, axis=1, keepdims=True))
