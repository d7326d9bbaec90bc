"""Many keys in one call of the backend: training encodings by fold, from cells that no row is sorted or hashed for."""

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from cpu_fallback.types import CARRY_AFTER, Array, FoldedClasses, KeyColumns, KeyEncodings
from gpu_encode.fitting.columns import FEWEST_TOGETHER
from gpu_encode.fitting.tasks import EncodingTask, Trained, warn_of_lost
from gpu_encode.formulas.encoding_rule import SeenSums
from gpu_encode.schemes.plans import FoldPlan, Plan
from gpu_encode.seam.ops import FusedOps, device_of, host
from gpu_encode.sums.category_sums import CategorySums, DeferredSums, NarrowCounts
from gpu_encode.tables.categories.keys import JointCodes, LaterTuples

# Counts of a key (cells, folds, classes) for each row, and of few rows: to look through more of them takes longer than
# to number the rows.  A thread holds the counts of one key, at most 32 MB, and its encodings, at most 64.
COUNTS_PER_ROW, FEW_COUNTS, MOST_COUNTS = 8, 1 << 19, 1 << 23
# On a GPU a key that is not encoded with others is sorted or hashed, in many passes; and cells are of 32 bits.
COUNTS_PER_DEVICE_ROW, MOST_DEVICE_COUNTS = 12, 1 << 31
# A row's fold and class are one number of 16 bits.
MOST_WITHIN = 1 << 16
# Columns of a key that a GPU has room for, beside that of folds.
MOST_COLUMNS = 15


class BatchKey(NamedTuple):
    """One key and one target of a batch: the key's number, what is computed, and the first column of its encodings."""

    entry: int
    task: EncodingTask
    first: int


def joins_batch(task: EncodingTask, plan: FoldPlan) -> bool:
    """Say whether a key can be encoded together with others: rows of weight one, a class target, no levels."""
    key, rule, spec = task.key, task.rule, task.spec
    if plan.blow_up or plan.blind or plan.ageing is not None:
        return False
    if not spec.classification or task.rows.weight is not None or rule.needs.distribution or not task.n_outputs:
        return False
    if key.given or key.entry.rule is not None or key.entry.above or rule.describe_fused() is None:
        return False
    few_rows = len(task.rows) <= CARRY_AFTER and spec.layout.count.whole and task.sums is None
    return few_rows and has_few_cells(task, plan.n_folds)


def has_few_cells(task: EncodingTask, n_folds: int) -> bool:
    """Say whether all cells of a key, its folds and classes may be looked through."""
    sizes = [len(vocabulary) + 1 for vocabulary in task.key.vocabularies]
    if len(sizes) > 1 and not isinstance(task.rows.codes, JointCodes):
        return False
    within = n_folds * task.n_classes
    a_row, most = COUNTS_PER_ROW, MOST_COUNTS
    if device_of(task.ops) == "cuda":
        a_row, most = COUNTS_PER_DEVICE_ROW, MOST_DEVICE_COUNTS
    most = min(max(a_row * len(task.rows), FEW_COUNTS), most)
    return within <= MOST_WITHIN and prod(sizes) * within <= most and len(sizes) <= MOST_COLUMNS


def encode_batches(
    tasks: Sequence[Sequence[EncodingTask]], plans: Sequence[Plan], widths: Sequence[Sequence[int]], matrix: Array
) -> dict[tuple[int, int], Trained]:
    """Encode together the keys that have plan, target and rule in common, and leave out the others.

    Parameters
    ----------
    tasks : list of list of EncodingTask
        tasks[key][target].
    plans : list of Plan
        One a key.
    widths : list of list of int
        Columns of the encodings of each task.
    matrix : float array (rows, columns)
        Filled where keys are encoded together.

    Returns
    -------
    dict
        What training gives, by the numbers of key and target.
    """
    batches: dict[tuple[int, int, int], tuple[FoldPlan, list[BatchKey]]] = {}
    column = 0
    for entry, (of_key, plan) in enumerate(zip(tasks, plans, strict=True)):
        for number, task in enumerate(of_key):
            if isinstance(plan, FoldPlan) and joins_batch(task, plan):
                alike = batches.setdefault((id(plan), number, id(task.rule)), (plan, []))
                alike[1].append(BatchKey(entry, task, column))
            column += widths[entry][number]
    found = {}
    for (_, number, _), (shared, keys) in batches.items():
        trained = encode_batch(keys, shared, matrix)
        found.update({(key.entry, number): done for key, done in zip(keys, trained, strict=False)})
    return found


def encode_batch(keys: Sequence[BatchKey], plan: FoldPlan, matrix: Array) -> list[Trained]:
    """Write the training encodings of keys that have plan, target and rule in common, in columns of a matrix.

    Gives nothing, and nothing is written, where keys are few or the backend encodes each alone.
    """
    task, n_rows = keys[0].task, len(keys[0].task.rows)
    ops = host(n_rows * len(keys)) if device_of(task.ops) == "cpu" else task.ops
    rule = task.fused_rule()
    if len(keys) < FEWEST_TOGETHER or ops.fused is None or rule is None:
        return []
    one_key = ops.zeros(n_rows, np.int32)
    shape = (1, plan.n_folds, task.n_classes)
    sums = CategorySums.measure(ops, task.rows.with_codes(one_key), shape, task.spec, plan.folds)
    everything = SeenSums(sums, plan.visibility, task.rule, ops)
    total = everything.total()
    assert task.rows.classes is not None
    folded = FoldedClasses(task.rows.classes, task.n_classes, plan.folds, plan.visibility, plan.new_rows[0])
    out = KeyEncodings(matrix.T, [key.first for key in keys])
    columns = number_columns(keys, ops.fused)
    encoded = ops.fused.encode_keys_by_fold(columns, folded, rule, everything.population(total), out)
    if encoded is None:
        return []
    counted, lost = encoded
    warn_of_lost(lost, matrix.dtype)
    found, all_see = [], bool((total.n > 0).all())
    for key, of_key in zip(keys, counted, strict=True):
        if isinstance(key.task.key.tuples, LaterTuples):
            key.task.key.tuples.tell(of_key)
        found.append(Trained(DeferredSums.later(NarrowCounts(of_key), task.spec, n_rows), None, all_see))
    return found


def number_columns(keys: Sequence[BatchKey], fused: FusedOps) -> KeyColumns:
    """Give the codes of all columns that the keys read, each once."""
    position: dict[Any, int] = {}
    codes: list[Array] = []
    sizes: list[int] = []
    members = []
    for _, task, _ in keys:
        entry = task.key.entry
        columns = task.rows.codes.columns if isinstance(task.rows.codes, JointCodes) else [task.rows.codes]
        for name, column, vocabulary in zip(entry.members, columns, task.key.vocabularies, strict=True):
            if name not in position:
                position[name] = len(codes)
                codes.append(column)
                sizes.append(len(vocabulary) + 1)
        members.append(tuple(position[name] for name in entry.members))
    return KeyColumns(fused.narrow_codes(codes, sizes), sizes, members)
