"""Many keys in one call of the backend: training encodings by fold, from cells that no row is sorted or hashed for."""

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from cpu_fallback.fused_rules import LESS_ONE_ROW, PopulationMoments
from cpu_fallback.types import CARRY_AFTER, MISSING, Array, FoldedRows, KeyColumns, KeyEncodings
from gpu_encode.fitting.inputs import FEWEST_TOGETHER
from gpu_encode.fitting.leave_one_out import total_of_others
from gpu_encode.fitting.tasks import EncodingTask, Trained, warn_of_lost
from gpu_encode.formulas.encoding_rule import SeenSums
from gpu_encode.schemes.plans import FoldPlan, LeaveOneOutPlan, Plan
from gpu_encode.seam.ops import Ops, host
from gpu_encode.sums.category_sums import CategorySums, DeferredSums, NarrowCounts
from gpu_encode.tables.categories.keys import JointCodes, LaterTuples

# Counts of a key (cells, folds, classes) for each row, and of few rows: to look through more of them takes longer than
# to number the rows.  A thread holds the counts of one key, at most 32 MB, and its encodings, at most 64.
COUNTS_PER_ROW, FEW_COUNTS, MOST_COUNTS = 8, 1 << 19, 1 << 23
# A row's fold and class are one number of 16 bits.
MOST_WITHIN = 1 << 16


class BatchKey(NamedTuple):
    """One key and one target of a batch: the key's number, what is computed, and the first column of its encodings."""

    entry: int
    task: EncodingTask
    first: int


def joins_batch(task: EncodingTask, plan: Plan) -> bool:
    """Say whether a key can be encoded together with others: by folds, or classes of rows that are left out one by one.

    Keys with levels and rows in an order are encoded one at a time, and so are left-out rows of other targets, each of
    which sees sums of its own.
    """
    key, rule, spec = task.key, task.rule, task.spec
    if isinstance(plan, FoldPlan):
        joins = not (plan.blow_up or plan.blind or plan.ageing is not None)
    else:
        joins = isinstance(plan, LeaveOneOutPlan) and spec.classification and task.rows.weight is None
    if not joins or rule.needs.distribution or not task.n_outputs or task.ops.fused is None:
        return False
    if key.given or key.entry.rule is not None or key.entry.above or rule.describe_fused() is None:
        return False
    return len(task.rows) <= CARRY_AFTER and task.sums is None and has_few_cells(task, n_folds_of(plan))


def has_few_cells(task: EncodingTask, n_folds: int) -> bool:
    """Say whether the sums of all cells of a key, its folds and classes may be looked through."""
    sizes = [len(vocabulary) + 1 for vocabulary in task.key.vocabularies]
    if len(sizes) > 1 and not isinstance(task.rows.codes, JointCodes):
        return False
    within = n_folds * task.n_classes
    most = min(max(COUNTS_PER_ROW * len(task.rows), FEW_COUNTS), MOST_COUNTS)
    return within <= MOST_WITHIN and prod(sizes) * within * task.spec.layout.width <= most


def n_folds_of(plan: Plan) -> int:
    """Give the number of folds that rows are summed by; rows that are left out one by one have one."""
    return plan.n_folds if isinstance(plan, FoldPlan) else 1


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
    batches: dict[tuple[int, int, str], tuple[Plan, list[BatchKey]]] = {}
    column = 0
    for entry, (of_key, plan) in enumerate(zip(tasks, plans, strict=True)):
        for number, task in enumerate(of_key):
            if joins_batch(task, plan):
                # Rules that a user gave for each key may be equal; NaN is equal to itself as text alone.
                alike = batches.setdefault((id(plan), number, repr(task.fused_rule())), (plan, []))
                alike[1].append(BatchKey(entry, task, column))
            column += widths[entry][number]
    found = {}
    for (_, number, _), (shared, keys) in batches.items():
        trained = encode_batch(keys, shared, matrix)
        found.update({(key.entry, number): done for key, done in zip(keys, trained, strict=False)})
    return found


def encode_batch(keys: Sequence[BatchKey], plan: Plan, matrix: Array) -> list[Trained]:
    """Write the training encodings of keys that have plan, target and rule in common, in columns of a matrix.

    Gives nothing, and nothing is written, where keys are few or the backend encodes each alone.
    """
    task, n_rows = keys[0].task, len(keys[0].task.rows)
    ops, rule = host(n_rows * len(keys)), task.fused_rule()
    if len(keys) < FEWEST_TOGETHER or ops.fused is None or rule is None:
        return []
    rows, population, all_see = see_all_rows(task, plan, ops)
    out = KeyEncodings(matrix.T, [key.first for key in keys])
    summed, lost = ops.fused.encode_keys_by_fold(number_columns(keys), rows, rule, population, out)
    warn_of_lost(lost, matrix.dtype)
    found = []
    for key, (cells, counts) in zip(keys, summed, strict=True):
        if isinstance(key.task.key.tuples, LaterTuples):
            key.task.key.tuples.tell(cells)
        found.append(Trained(DeferredSums.later(NarrowCounts(counts), task.spec, n_rows), None, all_see))
    return found


def see_all_rows(task: EncodingTask, plan: Plan, ops: Ops) -> tuple[FoldedRows, PopulationMoments, bool]:
    """Give the rows by fold, what each view sees of all of them, and whether it is known that every row sees some."""
    rows, spec, n_folds = task.rows.with_codes(np.zeros(len(task.rows), np.int32)), task.spec, n_folds_of(plan)
    folds, visibility, new_rows = (
        (plan.folds, plan.visibility, plan.new_rows[0])
        if isinstance(plan, FoldPlan)
        else (None, LESS_ONE_ROW, np.ones(1, np.int64))
    )
    sums = CategorySums.measure(ops, rows, (1, n_folds, task.n_classes), spec, folds)
    if isinstance(plan, FoldPlan):
        everything = SeenSums(sums, plan.visibility, task.rule, ops)
        total = everything.total()
    else:
        everything, total = SeenSums(sums, None, task.rule, ops), total_of_others(task, sums)
    folded = FoldedRows(rows, task.n_classes, spec.layout, folds, visibility, new_rows)
    all_see = bool((total.n > 0).all()) if isinstance(plan, FoldPlan) else len(rows) > 1
    return folded, everything.population(total), all_see


def number_columns(keys: Sequence[BatchKey]) -> KeyColumns:
    """Give the codes of all columns that the keys read, in the smallest type that holds them; missing is the last."""
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
        # A missing value is -1.
        np.copyto(line, column, casting="unsafe")
        missing = column == MISSING
        if bool(missing.any()):
            line[missing] = size - 1
    return KeyColumns(matrix, sizes, members)
