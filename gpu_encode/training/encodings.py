"""Training codes of one entry and one target, by the plan of the scheme."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.row_numbers import FoldPattern
from cpu_fallback.types import Array, Folds
from gpu_encode.formulas.encoding_rule import EncodingTable, table
from gpu_encode.ops import Ops, device_of
from gpu_encode.schemes.plans import FoldPlan, Order, OrderedPlan, Plan, SplitPlan, TimeOrder
from gpu_encode.sums.category_sums import CategorySums
from gpu_encode.sums.distributions import Distribution
from gpu_encode.training.indicators import indicator
from gpu_encode.training.leave_one_out import leave_one_out
from gpu_encode.training.ordered import ordered
from gpu_encode.training.outputs import in_type
from gpu_encode.training.tasks import EncodingTask

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


def lasting(task: EncodingTask, plan: Plan) -> CategorySums:
    """Sums that new rows see: over all rows, but for holdout and blow-up columns."""
    if isinstance(plan, FoldPlan) and (plan.blow_up or not plan.new_rows.all()):
        return task.measure(plan.folds, plan.n_folds).visible(task.ops, plan.new_rows)
    return task.measure(None, 1)


@dataclass(frozen=True)
class Trained:
    """Result of a training pass.

    Parameters
    ----------
    statistics : CategorySums
        What new rows see.
    unseen : bool array (rows,) or None
        Rows whose category nobody they see has; None unless asked for.
    all_see : bool
        Whether it is known that every row sees some rows.
    """

    statistics: CategorySums
    unseen: Array | None
    all_see: bool = False


def train(task: EncodingTask, plan: Plan, out: Array, want_unseen: bool) -> Trained:
    """Write the training codes of every row to `out` (rows, outputs * columns)."""
    if not task.n_outputs:
        return Trained(lasting(task, plan), None, all_see=True)
    if isinstance(plan, FoldPlan):
        return by_folds(task, plan, out, want_unseen)
    if isinstance(plan, SplitPlan):
        return by_splits(task, plan, out, want_unseen)
    if isinstance(plan, OrderedPlan):
        return Trained(*ordered(task, plan, out, want_unseen))
    statistics = task.measure(None, 1)
    return Trained(statistics, leave_one_out(task, statistics, out, want_unseen))


def by_folds(task: EncodingTask, plan: FoldPlan, out: Array, want_unseen: bool) -> Trained:
    """One scatter-add, one tiny matrix product, one gather."""
    sums = task.measure(plan.folds, plan.n_folds)
    new = sums.visible(task.ops, plan.new_rows)
    if plan.blow_up:
        codes = table(new, None, task.key, task.rule, task.ops)
        return Trained(new, looked_up(task, flat(codes), None, out, want_unseen))
    total = task.total_of_views(sums, plan.visibility)
    codes = table(sums, plan.visibility, task.key, task.rule, task.ops, total)
    return Trained(new, looked_up(task, codes, plan.folds, out, want_unseen), bool((total.n > 0).all()))


def by_splits(task: EncodingTask, plan: SplitPlan, out: Array, want_unseen: bool) -> Trained:
    """Sum the training rows of each split on their own."""
    parts = [replace(task, rows=task.rows.pick(rows)).measure(None, 1) for rows in plan.training]
    everything = task.measure(None, 1)
    views = replace(everything, accumulators=np.concatenate([each.accumulators for each in parts], axis=1))
    if everything.distribution is not None:
        views = replace(views, distribution=Distribution.side_by_side([each.distribution for each in parts]))  # type: ignore[misc]
    return Trained(
        everything, looked_up(task, table(views, None, task.key, task.rule, task.ops), plan.folds, out, want_unseen)
    )


def flat(codes: EncodingTable) -> EncodingTable:
    """Give a table whose views stand side by side as outputs: output-major, one view in all."""
    values = np.moveaxis(codes.values, 1, 2).reshape(len(codes.values), 1, -1)
    whole = values if values.flags.c_contiguous else values.copy()
    return EncodingTable(whole, np.all(codes.unseen, axis=1, keepdims=True))


def looked_up(
    task: EncodingTask, codes: EncodingTable, folds: Folds, out: Array, want_unseen: bool
) -> NDArray[np.bool_] | None:
    """Look every row up, and its indicator where asked for."""
    task.ops.gather(in_type(codes.values, out.dtype.name, task.ops), task.rows.codes, folds, out)
    return indicator(task.ops, codes.unseen, task.rows.codes, folds) if want_unseen else None
