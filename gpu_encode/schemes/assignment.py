"""Fold numbers and orders of the rows at hand, by a plan: of all rows, or of some that follow one another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.row_numbers import FoldPattern
from cpu_fallback.types import Array
from gpu_encode.ops import Ops, device_of, tiles
from gpu_encode.schemes.plans import (
    ByValue,
    FoldPlan,
    FoldRule,
    OrderedPlan,
    Plan,
    SplitPlan,
    TimeOrder,
    WithinClasses,
    by_time,
)

# Their fold numbers fit the fast caches.
FEW_ROWS = 1 << 15


@dataclass(frozen=True)
class RowsAtHand:
    """Rows that a plan is asked about.

    Parameters
    ----------
    ops : Ops
    n_rows : int
    codes : dict of str to int32 array (rows,)
        By what the scheme reads a column as: place of each row's value among the sorted values of all rows, where the
        backend computes.
    labels : array
        Class of each row by the first target, if that is a classification target.
    first_row : int
        Number of the first of them among all rows.
    earlier : int64 array (classes,), optional
        Rows of each class before the first row; 0 unless given.
    """

    ops: Ops
    n_rows: int
    codes: Mapping[str, Array]
    labels: Array
    first_row: int = 0
    earlier: NDArray[np.int64] | None = None


def assign(plan: Plan, rows: RowsAtHand) -> Plan:
    """Give the plan with the fold numbers, or the order in time, of the rows at hand, where the backend computes."""
    plan = upload(find_rows(plan, rows), rows.ops)
    # Every column would ask for the fold numbers again; a GPU is quick to find them.
    few = rows.n_rows <= FEW_ROWS and device_of(rows.ops) == "cpu"
    if few and isinstance(plan, FoldPlan) and isinstance(plan.folds, FoldPattern):
        return replace(plan, folds=rows.ops.fold_numbers(plan.folds, 0, rows.n_rows))
    return plan


def find_rows(plan: Plan, rows: RowsAtHand) -> Plan:
    """Give the plan with the fold numbers, or the order in time, of the rows at hand."""
    if isinstance(plan, FoldPlan) and plan.fold_rule is not None:
        return replace(plan, folds=find_folds(plan.fold_rule, rows), fold_rule=None)
    if isinstance(plan, FoldPlan) and isinstance(plan.folds, FoldPattern) and rows.first_row:
        return replace(plan, folds=plan.folds.at(plan.folds.first_row + rows.first_row))
    if isinstance(plan, OrderedPlan) and plan.time is not None:
        order = by_time(rows.codes[plan.time.role], plan.time.starts)
        return replace(plan, orders=[order], time=None)
    return plan


def upload(plan: Plan, ops: Ops) -> Plan:
    """Move the arrays of a plan that have a number for each row to where the backend computes."""
    if isinstance(plan, FoldPlan) and not (plan.folds is None or isinstance(plan.folds, FoldPattern)):
        return replace(plan, folds=ops.to_device(plan.folds))
    if isinstance(plan, SplitPlan):
        return SplitPlan(ops.to_device(plan.folds), [ops.to_device(rows) for rows in plan.training])
    if isinstance(plan, OrderedPlan):
        orders = [
            TimeOrder(*map(ops.to_device, (order.rows, order.ties, order.starts)))
            if isinstance(order, TimeOrder)
            else order
            for order in plan.orders
        ]
        return replace(plan, orders=orders)
    return plan


def find_folds(rule: FoldRule, rows: RowsAtHand) -> Array:
    """Fold number of each row."""
    if isinstance(rule, WithinClasses):
        return folds_within_classes(rule.patterns, rows)
    fold_of: Array = rows.ops.to_device(rule.fold_of)
    if isinstance(rule, ByValue):
        by_value: Array = fold_of[rows.codes[rule.role]]
        return by_value
    pattern = rule.pattern.at(rows.first_row)
    folds: Array = rows.ops.empty((rows.n_rows,), fold_of.dtype)
    for start, stop in tiles(rows.n_rows, rows.ops.TILE):
        folds[start:stop] = fold_of[rows.ops.fold_numbers(pattern, start, stop)]
    return folds


def folds_within_classes(patterns: Sequence[FoldPattern], rows: RowsAtHand) -> Array:
    """Spread the rows of each class over the folds by the pattern of that class."""
    labels = rows.ops.to_device(rows.labels)
    order = np.argsort(labels, kind="stable")
    counts = rows.ops.to_host(np.bincount(labels, minlength=len(patterns)))
    earlier = np.zeros(len(patterns), np.int64) if rows.earlier is None else rows.earlier
    folds: Array = rows.ops.empty((rows.n_rows,), np.int32)
    for pattern, start, count, before in zip(patterns, np.cumsum(counts) - counts, counts, earlier, strict=True):
        continued = pattern.at(pattern.first_row + int(before))
        folds.put(order[start : start + count], rows.ops.fold_numbers(continued, 0, int(count)))
    return folds
