"""What a plan says of the rows at hand, which may be all rows or some that follow one another: fold numbers, orders."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.row_numbers import FoldPattern
from cpu_fallback.types import Array
from gpu_encode.ops import Ops, tiles
from gpu_encode.schemes.plans import ByValue, Dealt, FoldPlan, OrderedPlan, Plan, WithinClasses, by_time


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


def assigned(plan: Plan, rows: RowsAtHand) -> Plan:
    """Give the plan with the fold numbers, or the order in time, of the rows at hand."""
    if isinstance(plan, FoldPlan) and plan.dealt is not None:
        return replace(plan, folds=dealt(plan.dealt, rows), dealt=None)
    if isinstance(plan, FoldPlan) and isinstance(plan.folds, FoldPattern) and rows.first_row:
        return replace(plan, folds=plan.folds.at(plan.folds.first_row + rows.first_row))
    if isinstance(plan, OrderedPlan) and plan.time is not None:
        order = by_time(rows.codes[plan.time.role], plan.time.starts)
        return replace(plan, orders=[order], time=None)
    return plan


def dealt(how: Dealt, rows: RowsAtHand) -> Array:
    """Fold number of each row."""
    if isinstance(how, WithinClasses):
        return within_classes(how.patterns, rows)
    fold_of: Array = rows.ops.to_device(how.fold_of)
    if isinstance(how, ByValue):
        found: Array = fold_of[rows.codes[how.role]]
        return found
    pattern = how.pattern.at(rows.first_row)
    folds: Array = rows.ops.empty((rows.n_rows,), fold_of.dtype)
    for start, stop in tiles(rows.n_rows, rows.ops.TILE):
        folds[start:stop] = fold_of[rows.ops.fold_numbers(pattern, start, stop)]
    return folds


def within_classes(patterns: Sequence[FoldPattern], rows: RowsAtHand) -> Array:
    """Deal out the rows of each class by a pattern of its own."""
    labels = rows.ops.to_device(rows.labels)
    order = np.argsort(labels, kind="stable")
    counts = rows.ops.to_host(np.bincount(labels, minlength=len(patterns)))
    earlier = np.zeros(len(patterns), np.int64) if rows.earlier is None else rows.earlier
    folds: Array = rows.ops.empty((rows.n_rows,), np.int32)
    for pattern, start, count, before in zip(patterns, np.cumsum(counts) - counts, counts, earlier, strict=True):
        own = pattern.at(pattern.first_row + int(before))
        folds.put(order[start : start + count], rows.ops.fold_numbers(own, 0, int(count)))
    return folds
