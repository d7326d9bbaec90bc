"""Encode many keys in one call of the backend: training encodings by fold, without sorting or hashing of rows."""

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from cpu_fallback.types import CARRY_AFTER, Array, FoldedClasses, KeyColumns, KeyEncodings
from gpu_encode.fitting.columns import FEWEST_TOGETHER
from gpu_encode.fitting.inputs import RowCategories
from gpu_encode.fitting.tasks import EncodingTask, Trained, warn_of_lost
from gpu_encode.formulas.encoding_rule import EncodingRule, SeenSums
from gpu_encode.schemes.plans import FoldPlan, Plan
from gpu_encode.seam.ops import FusedOps, device_of, host
from gpu_encode.sums.category_sums import CategorySums, DeferredSums, NarrowCounts
from gpu_encode.tables.categories.keys import JointCodes, LaterTuples

# Largest number of counts (cells x folds x classes) of a key: for each row, for a table of few rows, and in all.  With
# more counts, it is faster to number the categories that occur.  A thread holds the counts of one key, at most 32 MB,
# and its encodings, at most 64 MB.
COUNTS_PER_ROW, FEW_COUNTS, MOST_COUNTS = 8, 1 << 19, 1 << 23
# The same for a GPU: there, numbering the categories that occur takes many passes, and a cell is a number of 32 bits.
COUNTS_PER_DEVICE_ROW, MOST_DEVICE_COUNTS = 12, 1 << 31
# A row's fold and class are one number of 16 bits.
MOST_WITHIN = 1 << 16
# Largest number of columns of a key on a GPU, the column of folds not counted.
MOST_COLUMNS = 15


class BatchKey(NamedTuple):
    """One key of a batch: its number, its categories, its number of cells, and the first column of its encodings."""

    entry: int
    categories: RowCategories
    n_cells: int
    first: int


def count_cells(categories: RowCategories) -> int | None:
    """Count the cells of a key; None if it has levels, or if its codes are not mixed-radix numbers of its columns."""
    key = categories.key
    if key.given or key.entry.rule is not None or key.entry.above or categories.sums is not None:
        return None
    if len(key.vocabularies) > 1 and not isinstance(categories.found, JointCodes):
        return None
    return prod([len(vocabulary) + 1 for vocabulary in key.vocabularies])


def keys_together(keys: Sequence[BatchKey], task: EncodingTask, plan: FoldPlan) -> list[BatchKey]:
    """Give those of some keys with the same plan and rule that can be encoded together for a target.

    Rows must have weight one, the target must have classes, and a count for each cell, fold and class must fit.
    """
    rule, spec, within = task.rule, task.spec, plan.n_folds * task.n_classes
    if plan.blow_up or plan.blind or plan.ageing is not None or within > MOST_WITHIN:
        return []
    if not spec.classification or task.rows.weight is not None or rule.needs.distribution or not task.n_outputs:
        return []
    if len(task.rows) > CARRY_AFTER or not spec.layout.count.whole or rule.describe_fused() is None:
        return []
    a_row, most = COUNTS_PER_ROW, MOST_COUNTS
    if device_of(task.ops) == "cuda":
        a_row, most = COUNTS_PER_DEVICE_ROW, MOST_DEVICE_COUNTS
        keys = [key for key in keys if len(key.categories.key.entry.members) <= MOST_COLUMNS]
    most = min(max(a_row * len(task.rows), FEW_COUNTS), most) // within
    return [key for key in keys if key.n_cells <= most]


def encode_batches(
    found: Sequence[RowCategories],
    rules: Sequence[EncodingRule],
    plans: Sequence[Plan],
    task_of: Callable[[int, int], EncodingTask],
    widths: Sequence[Sequence[int]],
    matrix: Array,
) -> dict[tuple[int, int], Trained]:
    """Encode keys together that share plan, target and rule; leave out the other keys.

    Parameters
    ----------
    found : list of RowCategories
        One for each key.
    rules : list of EncodingRule
        One for each key.
    plans : list of Plan
        One plan for each key.
    task_of : callable
        Gives the task of a key and a target, by their numbers.
    widths : list of list of int
        Number of columns of the encodings of each key and target.
    matrix : float array (rows, columns)
        The columns of keys that are encoded together are filled.

    Returns
    -------
    dict
        The results of training, by the numbers of key and target.
    """
    batches: dict[tuple[int, int], list[BatchKey]] = {}
    column, done = 0, {}
    for entry, (categories, rule, plan) in enumerate(zip(found, rules, plans, strict=True)):
        if isinstance(plan, FoldPlan) and (n_cells := count_cells(categories)) is not None:
            batches.setdefault((id(plan), id(rule)), []).append(BatchKey(entry, categories, n_cells, column))
        column += sum(widths[entry])
    for alike in batches.values():
        (entry, *_), before = alike[0], 0
        for number, width in enumerate(widths[entry]):
            task, plan = task_of(entry, number), plans[entry]
            assert isinstance(plan, FoldPlan)
            if keys := keys_together(alike, task, plan):
                out = KeyEncodings(matrix.T, [key.first + before for key in keys])
                trained = encode_batch(keys, task, plan, out)
                done.update({(key.entry, number): of_key for key, of_key in zip(keys, trained, strict=False)})
            before += width
    return done


def encode_batch(keys: Sequence[BatchKey], task: EncodingTask, plan: FoldPlan, out: KeyEncodings) -> list[Trained]:
    """Write the training encodings of keys that share plan, target and rule; `task` is the task of one of them.

    It returns an empty list, and the caller has to encode each key alone, if there are few keys or if the backend
    cannot encode them together.
    """
    n_rows, rule = len(task.rows), task.fused_rule()
    ops = host(n_rows * len(keys)) if device_of(task.ops) == "cpu" else task.ops
    if len(keys) < FEWEST_TOGETHER or ops.fused is None or rule is None:
        return []
    shape = (1, plan.n_folds, task.n_classes)
    # The codes of this one category are gone by the time that keys are encoded.
    one_category = task.rows.with_codes(ops.zeros(n_rows, np.int32))
    sums, backend = CategorySums.measure(ops, one_category, shape, task.spec, plan.folds).few_on_host(ops)
    del one_category
    everything, of_new_rows = SeenSums(sums, plan.visibility, task.rule, backend), sums.visible(backend, plan.new_rows)
    total = everything.total()
    assert task.rows.classes is not None
    folded = FoldedClasses(task.rows.classes, task.n_classes, plan.folds, plan.visibility, plan.new_rows[0])
    columns = number_columns([key.categories for key in keys], ops.fused)
    encoded = ops.fused.encode_keys_by_fold(columns, folded, rule, everything.population(total), out)
    if encoded is None:
        return []
    counted, lost = encoded
    warn_of_lost(lost, out.values.dtype)
    found, all_see = [], bool((total.n > 0).all())
    for key, of_key in zip(keys, counted, strict=True):
        if isinstance(tuples := key.categories.key.tuples, LaterTuples):
            tuples.tell(of_key)
        later = DeferredSums.later(NarrowCounts(of_key), task.spec, n_rows, everything=of_new_rows)
        found.append(Trained(later, None, all_see))
    return found


def number_columns(keys: Sequence[RowCategories], fused: FusedOps) -> KeyColumns:
    """Give the codes of all columns that the keys read, each once."""
    with_column = {name: key for key in keys for name in key.key.entry.members}
    codes, sizes = [], []
    for name, (key, found, _) in with_column.items():
        codes.append(found.column(name) if isinstance(found, JointCodes) else found)
        sizes.append(len(key.vocabularies[key.entry.members.index(name)]) + 1)
    position = {name: number for number, name in enumerate(with_column)}
    members = [tuple([position[name] for name in key.key.entry.members]) for key in keys]
    return KeyColumns(fused.narrow_codes(codes, sizes), sizes, members)
