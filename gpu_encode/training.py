"""Training codes of one entry and one target, by the plan of the scheme."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpu_encode.cells import Array, Folds
from gpu_encode.distributions import Distribution
from gpu_encode.formula import CodeTable, table
from gpu_encode.indicators import indicator
from gpu_encode.jobs import Job
from gpu_encode.leave_one_out import leave_one_out
from gpu_encode.ops import Ops, device_of
from gpu_encode.ordered import ordered
from gpu_encode.outputs import in_type
from gpu_encode.plans import FoldPlan, Order, OrderedPlan, Plan, SplitPlan, TimeOrder
from gpu_encode.rows import FoldPattern
from gpu_encode.statistics import Statistics

# Their fold numbers fit the fast caches.
FEW_ROWS = 1 << 15


def n_columns(plan: Plan) -> int:
    """Columns of codes per output: one a fold's encoder or a permutation where these stand apart."""
    if isinstance(plan, FoldPlan) and plan.blow_up:
        return len(plan.new_rows)
    return len(plan.orders) if isinstance(plan, OrderedPlan) and not plan.average else 1


def placed(plan: Plan, ops: Ops) -> Plan:
    """Give the plan with what it says of each row where the backend computes."""
    if isinstance(plan, FoldPlan) and not (plan.folds is None or isinstance(plan.folds, FoldPattern)):
        return replace(plan, folds=ops.to_device(plan.folds))
    if isinstance(plan, SplitPlan):
        return SplitPlan(ops.to_device(plan.folds), [ops.to_device(rows) for rows in plan.training])
    if isinstance(plan, OrderedPlan):
        return replace(plan, orders=[placed_order(order, ops) for order in plan.orders])
    return plan


def numbered(plan: Plan, n_rows: int, ops: Ops) -> Plan:
    """Write down the fold numbers of few rows, which every column would ask for again; a GPU is quick to find them."""
    few = n_rows <= FEW_ROWS and device_of(ops) == "cpu"
    if few and isinstance(plan, FoldPlan) and isinstance(plan.folds, FoldPattern):
        return replace(plan, folds=ops.fold_numbers(plan.folds, 0, n_rows))
    return plan


def placed_order(order: Order, ops: Ops) -> Order:
    """Give an order in time where the backend computes; others are functions of the row number."""
    if not isinstance(order, TimeOrder):
        return order
    return TimeOrder(*(ops.to_device(each) for each in (order.rows, order.ties, order.starts)))


def lasting(job: Job, plan: Plan) -> Statistics:
    """Sums that new rows see: over all rows, but for holdout and blow-up columns."""
    plan = placed(plan, job.ops)
    if isinstance(plan, FoldPlan) and (plan.blow_up or not plan.new_rows.all()):
        return job.measure(plan.folds, plan.n_folds).visible(job.ops, plan.new_rows)
    return job.measure(None, 1)


@dataclass(frozen=True)
class Trained:
    """Result of a training pass.

    Parameters
    ----------
    statistics : Statistics
        What new rows see.
    unseen : bool array (rows,) or None
        Rows whose category nobody they see has; None unless asked for.
    all_see : bool
        Whether it is known that every row sees some rows.
    """

    statistics: Statistics
    unseen: Array | None
    all_see: bool = False


def train(job: Job, plan: Plan, out: Array, want_unseen: bool) -> Trained:
    """Write the training codes of every row to `out` (rows, outputs * columns)."""
    if not job.n_outputs:
        return Trained(lasting(job, plan), None, all_see=True)
    plan = placed(plan, job.ops)
    if isinstance(plan, FoldPlan):
        return by_folds(job, plan, out, want_unseen)
    if isinstance(plan, SplitPlan):
        return by_splits(job, plan, out, want_unseen)
    if isinstance(plan, OrderedPlan):
        return Trained(*ordered(job, plan, out, want_unseen))
    statistics = job.measure(None, 1)
    return Trained(statistics, leave_one_out(job, statistics, out, want_unseen))


def by_folds(job: Job, plan: FoldPlan, out: Array, want_unseen: bool) -> Trained:
    """One scatter-add, one tiny matrix product, one gather."""
    sums = job.measure(plan.folds, plan.n_folds)
    new = sums.visible(job.ops, plan.new_rows)
    if plan.blow_up:
        codes = table(new, None, job.key, job.formula, job.ops)
        return Trained(new, looked_up(job, flat(codes), None, out, want_unseen))
    total = job.total_of_views(sums, plan.visibility)
    codes = table(sums, plan.visibility, job.key, job.formula, job.ops, total)
    return Trained(new, looked_up(job, codes, plan.folds, out, want_unseen), bool((total.n > 0).all()))


def by_splits(job: Job, plan: SplitPlan, out: Array, want_unseen: bool) -> Trained:
    """Sum the training rows of each split on their own."""
    parts = [replace(job, rows=job.rows.pick(rows)).measure(None, 1) for rows in plan.training]
    everything = job.measure(None, 1)
    views = replace(everything, cells=np.concatenate([each.cells for each in parts], axis=1))
    if everything.distribution is not None:
        views = replace(views, distribution=Distribution.side_by_side([each.distribution for each in parts]))  # type: ignore[misc]
    return Trained(
        everything, looked_up(job, table(views, None, job.key, job.formula, job.ops), plan.folds, out, want_unseen)
    )


def flat(codes: CodeTable) -> CodeTable:
    """Give a table whose views stand side by side as outputs: output-major, one view in all."""
    values = np.moveaxis(codes.values, 1, 2).reshape(len(codes.values), 1, -1)
    whole = values if values.flags.c_contiguous else values.copy()
    return CodeTable(whole, np.all(codes.unseen, axis=1, keepdims=True))


def looked_up(job: Job, codes: CodeTable, folds: Folds, out: Array, want_unseen: bool) -> NDArray[np.bool_] | None:
    """Look every row up, and its indicator where asked for."""
    job.ops.gather(in_type(codes.values, out.dtype.name, job.ops), job.rows.codes, folds, out)
    return indicator(job.ops, codes.unseen, job.rows.codes, folds) if want_unseen else None
