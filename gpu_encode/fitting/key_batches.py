"""Encode many keys in one call of the backend: training encodings by fold, without sorting or hashing of rows."""

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from cpu_fallback.types import CARRY_AFTER, MISSING, Array, FoldedClasses, KeyColumns, KeyEncodings
from gpu_encode.fitting.columns import FEWEST_TOGETHER
from gpu_encode.fitting.tasks import EncodingTask, Trained, warn_of_lost
from gpu_encode.formulas.encoding_rule import SeenSums
from gpu_encode.schemes.plans import FoldPlan, Plan
from gpu_encode.seam.ops import host
from gpu_encode.sums.category_sums import CategorySums, DeferredSums, NarrowCounts
from gpu_encode.tables.categories.keys import JointCodes, LaterTuples

# Largest number of counts (cells x folds x classes) of a key: for each row, for a table of few rows, and in all.  With
# more counts, it is faster to number the categories that occur.  A thread holds the counts of one key, at most 32 MB,
# and its encodings, at most 64 MB.
COUNTS_PER_ROW, FEW_COUNTS, MOST_COUNTS = 8, 1 << 19, 1 << 23
# A row's fold and class are one number of 16 bits.
MOST_WITHIN = 1 << 16


class BatchKey(NamedTuple):
    """One key and one target of a batch: the key's number, its task, and the first column of its encodings."""

    entry: int
    task: EncodingTask
    first: int


def joins_batch(task: EncodingTask, plan: FoldPlan) -> bool:
    """Tell whether a key can be encoded together with others: rows of weight one, a target with classes, no levels."""
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
    """Tell whether a key has so few cells, folds and classes that a count for each combination is affordable."""
    sizes = [len(vocabulary) + 1 for vocabulary in task.key.vocabularies]
    if len(sizes) > 1 and not isinstance(task.rows.codes, JointCodes):
        return False
    within = n_folds * task.n_classes
    most = min(max(COUNTS_PER_ROW * len(task.rows), FEW_COUNTS), MOST_COUNTS)
    return within <= MOST_WITHIN and prod(sizes) * within <= most


def encode_batches(
    tasks: Sequence[Sequence[EncodingTask]], plans: Sequence[Plan], widths: Sequence[Sequence[int]], matrix: Array
) -> dict[tuple[int, int], Trained]:
    """Encode keys together that share plan, target and rule; leave out the other keys.

    Parameters
    ----------
    tasks : list of list of EncodingTask
        tasks[key][target].
    plans : list of Plan
        One plan for each key.
    widths : list of list of int
        Number of columns of each task's encodings.
    matrix : float array (rows, columns)
        The columns of keys that are encoded together are filled.

    Returns
    -------
    dict
        The results of training, by the numbers of key and target.
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
    """Write the training encodings of keys that share plan, target and rule to columns of a matrix.

    If there are few keys, or if the backend encodes each key alone, it writes nothing and returns an empty list.
    """
    task, n_rows = keys[0].task, len(keys[0].task.rows)
    ops, rule = host(n_rows * len(keys)), task.fused_rule()
    if len(keys) < FEWEST_TOGETHER or ops.fused is None or rule is None:
        return []
    one_key = np.zeros(n_rows, np.int32)
    shape = (1, plan.n_folds, task.n_classes)
    sums = CategorySums.measure(ops, task.rows.with_codes(one_key), shape, task.spec, plan.folds)
    everything = SeenSums(sums, plan.visibility, task.rule, ops)
    total = everything.total()
    assert task.rows.classes is not None
    folded = FoldedClasses(task.rows.classes, task.n_classes, plan.folds, plan.visibility, plan.new_rows[0])
    out = KeyEncodings(matrix.T, [key.first for key in keys])
    counted, lost = ops.fused.encode_keys_by_fold(number_columns(keys), folded, rule, everything.population(total), out)
    warn_of_lost(lost, matrix.dtype)
    found, all_see = [], bool((total.n > 0).all())
    for key, (cells, counts) in zip(keys, counted, strict=True):
        if isinstance(key.task.key.tuples, LaterTuples):
            key.task.key.tuples.tell(cells)
        found.append(Trained(DeferredSums.later(NarrowCounts(counts), task.spec, n_rows), None, all_see))
    return found


def number_columns(keys: Sequence[BatchKey]) -> KeyColumns:
    """Give the codes of all columns that the keys read, in the smallest type; a missing value is the last code."""
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
    matrix = np.empty((len(codes), len(codes[0])), np.uint8 if max(sizes) <= 1 << 8 else np.int32)
    for line, column, size in zip(matrix, codes, sizes, strict=True):
        # The cast wraps -1, the code of a missing value, which is replaced next.
        np.copyto(line, column, casting="unsafe")
        missing = column == MISSING
        if bool(missing.any()):
            line[missing] = size - 1
    return KeyColumns(matrix, sizes, members)
