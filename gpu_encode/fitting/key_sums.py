"""Many keys summed in one call of the backend: sums by category and fold, for new rows or for the tables of parts."""

from collections.abc import Callable, Sequence

import numpy as np

from cpu_fallback.fused_rules import FoldedRows
from cpu_fallback.types import CARRY_AFTER
from gpu_encode.fitting.columns import FEWEST_ON
from gpu_encode.fitting.inputs import RowCategories
from gpu_encode.fitting.key_batches import (
    MOST_WITHIN,
    BatchKey,
    NumberedColumns,
    batch_backend,
    count_cells,
    keys_with_room,
)
from gpu_encode.fitting.tasks import EncodingTask
from gpu_encode.schemes.plans import FoldPlan
from gpu_encode.seam.ops import device_of
from gpu_encode.sums.category_sums import CategorySums, DeferredSums, NarrowCounts
from gpu_encode.tables.categories.keys import LaterTuples


def sum_keys(
    found: Sequence[RowCategories],
    plans: Sequence[FoldPlan],
    task_of: Callable[[int, int], EncodingTask],
    n_targets: int,
) -> dict[tuple[int, int], CategorySums]:
    """Sum rows by category, fold and class, of keys that have a plan in common, and leave out other keys.

    Parameters
    ----------
    found : list of RowCategories
        One for each key.
    plans : list of FoldPlan
        One for each key.
    task_of : callable
        Gives the task of a key and a target, by their numbers.
    n_targets : int

    Returns
    -------
    dict
        Sums by the numbers of key and target.
    """
    alike: dict[int, list[BatchKey]] = {}
    for entry, (categories, plan) in enumerate(zip(found, plans, strict=True)):
        if (n_cells := count_cells(categories)) is not None:
            alike.setdefault(id(plan), []).append(BatchKey(entry, categories, n_cells, 0))
    sums: dict[tuple[int, int], CategorySums] = {}
    for keys in alike.values():
        numbered = NumberedColumns()
        for number in range(n_targets):
            entry = keys[0].entry
            together = sum_together(keys, task_of(entry, number), plans[entry], numbered)
            sums.update({(of_key, number): of_rows for of_key, of_rows in together.items()})
    return sums


def sum_together(
    keys: Sequence[BatchKey], task: EncodingTask, plan: FoldPlan, numbered: NumberedColumns
) -> dict[int, CategorySums]:
    """Sum the rows of keys that have a plan in common, by the number of each key; `task` belongs to one of them.

    Keys with too many cells are left out; so are all keys if rows have weights by age, or if values are counted.
    """
    n_rows, within = len(task.rows), plan.n_folds * task.n_classes
    if n_rows > CARRY_AFTER or within > MOST_WITHIN:
        return {}
    if plan.weights is not None or not task.rule.needs.sums or task.rule.needs.distribution:
        return {}
    few, backend = keys_with_room(keys, task, within), batch_backend(keys, task)
    if len(few) < FEWEST_ON[device_of(backend)] or backend.fused is None:
        return {}
    columns = numbered.of(few, backend.fused)
    rows = task.rows.with_codes(np.zeros(0, np.int32))
    folded = FoldedRows(rows, task.n_classes, task.spec.layout, plan.folds, None, np.ones(plan.n_folds, np.int64))
    sums: dict[int, CategorySums] = {}
    for key, of_key in zip(few, backend.fused.sum_keys(columns, folded), strict=True):
        if isinstance(tuples := key.categories.key.tuples, LaterTuples):
            tuples.tell(of_key)
        sums[key.entry] = DeferredSums.later(NarrowCounts(of_key, plan.n_folds), task.spec, n_rows)
    return sums
