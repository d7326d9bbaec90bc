"""Many keys in one call of the backend: training encodings by fold, from cells, without sorting or hashing rows."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple

import numpy as np

from cpu_fallback.fused_rules import LESS_ONE_ROW, FoldedRows, PopulationMoments
from cpu_fallback.types import CARRY_AFTER, Array, KeyColumns, KeyEncodings, Rows
from gpu_encode.fitting import columns as limits
from gpu_encode.fitting.columns import FEWEST_ON, MOST_COLUMNS, most_numbers
from gpu_encode.fitting.inputs import RowCategories
from gpu_encode.fitting.leave_one_out import total_of_others
from gpu_encode.fitting.tasks import EncodingTask, Trained, warn_of_lost
from gpu_encode.formulas.encoding_rule import EncodingRule, SeenSums, describe_rules
from gpu_encode.schemes.plans import FoldPlan, LeaveOneOutPlan, Plan
from gpu_encode.seam.ops import FusedOps, Ops, device_of, host
from gpu_encode.sums.category_sums import CategorySums, DeferredSums, NarrowCounts
from gpu_encode.tables.categories.keys import JointCodes, LaterTuples

# A GPU has higher limits: it sorts or hashes the rows of a key outside a batch in many passes.  If a key has more
# numbers than the second limit, the third limit holds for each row, since tables of more cells fill memory and take
# longer than sorting (an estimate).  Cells have 32 bits.
COUNTS_PER_DEVICE_ROW, MANY_DEVICE_COUNTS, MANY_PER_DEVICE_ROW, MOST_DEVICE_COUNTS = 12, 1 << 24, 2, 1 << 31
# The fold and class of a row are one number of 16 bits; this is its largest value.
MOST_WITHIN = (1 << 16) - 1


class BatchKey(NamedTuple):
    """One key of a batch: its number and categories, the number of its cells, and the first column of its encodings."""

    entry: int
    categories: RowCategories
    n_cells: int
    first: int


def count_cells(categories: RowCategories) -> int | None:
    """Count the cells of a key; None if it has levels, or if its codes are not a mixed-radix number."""
    key = categories.key
    if key.given or key.entry.rule is not None or key.entry.above or categories.sums is not None:
        return None
    if len(key.vocabularies) > 1 and not isinstance(categories.found, JointCodes):
        return None
    return prod([len(vocabulary) + 1 for vocabulary in key.vocabularies])


def keys_together(keys: Sequence[BatchKey], task: EncodingTask, plan: Plan) -> list[BatchKey]:
    """Give the keys that can be encoded together for a target; all of them have the same plan and rule.

    Keys are encoded together by folds, and by leave-one-out of classes without weights.  With weights, or in an order,
    each row sees sums of its own, so these keys are encoded one at a time.
    """
    spec, within = task.spec, n_folds_of(plan) * task.n_classes
    if isinstance(plan, FoldPlan):
        serves = not (plan.blow_up or plan.blind or plan.ageing is not None)
    else:
        serves = isinstance(plan, LeaveOneOutPlan) and spec.classification and task.rows.weight is None
    if not serves or within > MOST_WITHIN or len(task.rows) > CARRY_AFTER:
        return []
    if not task.n_outputs or task.fused_rule() is None or batch_backend(keys, task).fused is None:
        return []
    if isinstance(plan, FoldPlan):
        return keys_with_room(keys, task, within)
    # Rows of each class see sums of their own, so there are more encodings than sums.  A GPU has no such batch.
    most = limits.MOST_NUMBERS // (task.n_classes * task.n_outputs) if device_of(task.ops) == "cpu" else 0
    return [key for key in keys_with_room(keys, task, within) if key.n_cells <= most]


def keys_with_room(keys: Sequence[BatchKey], task: EncodingTask, within: int) -> list[BatchKey]:
    """Give the keys whose tables are not too large, with `within` sums a cell; a GPU only counts rows of classes."""
    n_rows, most = len(task.rows), most_numbers(len(task.rows))
    if device_of(task.ops) == "cuda":
        if not task.spec.classification or task.rows.weight is not None:
            return []
        most = min(max(MANY_PER_DEVICE_ROW * n_rows, MANY_DEVICE_COUNTS), MOST_DEVICE_COUNTS)
        most = min(max(COUNTS_PER_DEVICE_ROW * n_rows, limits.FEW_NUMBERS), most)
        keys = [key for key in keys if len(key.categories.key.entry.members) <= MOST_COLUMNS]
    return [key for key in keys if key.n_cells <= most // (within * task.spec.layout.width)]


def batch_backend(keys: Sequence[BatchKey], task: EncodingTask) -> Ops:
    """Give the backend for the rows of all keys together: there are many, even where each key has few."""
    return host(len(task.rows) * len(keys)) if device_of(task.ops) == "cpu" else task.ops


def n_folds_of(plan: Plan) -> int:
    """Give the number of folds by which rows are summed; leave-one-out has one fold."""
    return plan.n_folds if isinstance(plan, FoldPlan) else 1


def encode_batches(
    found: Sequence[RowCategories],
    rules: Sequence[EncodingRule],
    plans: Sequence[Plan],
    task_of: Callable[[int, int], EncodingTask],
    widths: Sequence[Sequence[int]],
    matrix: Array,
) -> dict[tuple[int, int], Trained]:
    """Encode together the keys that have plan, target and rule in common, and leave out all other keys.

    Parameters
    ----------
    found : list of RowCategories
        One for each key.
    rules : list of EncodingRule
        One for each key.
    plans : list of Plan
        One for each key.
    task_of : callable
        Gives the task of a key and a target, by their numbers.
    widths : list of list of int
        Columns of the encodings of each key and target.
    matrix : float array (rows, columns)
        The columns of keys that are encoded together are filled.

    Returns
    -------
    dict
        The training results, by the numbers of key and target.
    """
    batches: dict[tuple[int, str], list[BatchKey]] = {}
    column, done = 0, {}
    texts = describe_rules(rules, len(widths[0]))
    for entry, (categories, rule, plan) in enumerate(zip(found, rules, plans, strict=True)):
        if isinstance(plan, (FoldPlan, LeaveOneOutPlan)) and (n_cells := count_cells(categories)) is not None:
            batches.setdefault((id(plan), texts[id(rule)]), []).append(BatchKey(entry, categories, n_cells, column))
        column += sum(widths[entry])
    for alike in batches.values():
        (entry, *_), before, numbered = alike[0], 0, NumberedColumns()
        for number, width in enumerate(widths[entry]):
            task, plan = task_of(entry, number), plans[entry]
            if keys := keys_together(alike, task, plan):
                out = KeyEncodings(matrix.T, [key.first + before for key in keys])
                trained = encode_batch(keys, task, plan, out, numbered)
                done.update({(key.entry, number): of_key for key, of_key in zip(keys, trained, strict=False)})
            before += width
    return done


def encode_batch(
    keys: Sequence[BatchKey], task: EncodingTask, plan: Plan, out: KeyEncodings, numbered: "NumberedColumns"
) -> list[Trained]:
    """Write the training encodings of keys that have plan, target and rule in common; `task` belongs to one of them.

    If there are too few keys, or if the backend encodes each key alone, the result is empty and nothing is written.
    """
    n_rows, rule, ops = len(task.rows), task.fused_rule(), batch_backend(keys, task)
    if len(keys) < FEWEST_ON[device_of(ops)] or ops.fused is None or rule is None:
        return []
    rows, population, all_see, of_new_rows = see_all_rows(task, plan, ops)
    columns = numbered.of(keys, ops.fused)
    encoded = ops.fused.encode_keys_by_fold(columns, rows, rule, population, out)
    if encoded is None:
        return []
    summed, lost = encoded
    warn_of_lost(lost, out.values.dtype)
    found = []
    for key, of_key in zip(keys, summed, strict=True):
        if isinstance(tuples := key.categories.key.tuples, LaterTuples):
            tuples.tell(of_key)
        later = DeferredSums.later(NarrowCounts(of_key), task.spec, n_rows, everything=of_new_rows)
        found.append(Trained(later, None, all_see))
    return found


class AllRows(NamedTuple):
    """The rows of a batch by fold; moments of all rows by view; whether every row sees a row; sums for new rows."""

    rows: FoldedRows
    population: PopulationMoments
    all_see: bool
    of_new_rows: CategorySums


def see_all_rows(task: EncodingTask, plan: Plan, ops: Ops) -> AllRows:
    """Sum all rows as if they had one category, for each view, and for new rows."""
    rows, n_classes, spec, n_folds = task.rows, task.n_classes, task.spec, n_folds_of(plan)
    folds = plan.folds if isinstance(plan, FoldPlan) else None
    if device_of(ops) == "cuda" and rows.classes is not None:
        # Classes without weights are categories here: a GPU need not write codes of one category.
        by_class = CategorySums.measure(ops, Rows(rows.classes), (n_classes, n_folds, 1), spec, folds)
        sums, backend = by_class.few_on_host(ops)
        of_classes = sums.accumulators
        accumulators = np.zeros_like(of_classes, shape=(3, n_folds, n_classes, of_classes.shape[-1]))
        accumulators[0] = of_classes[:-2, :, 0].transpose(1, 0, 2)
        sums = replace(sums, accumulators=accumulators)
    else:
        # The codes of this one category are freed before keys are encoded.
        one_category = rows.with_codes(ops.zeros(len(rows), np.int32))
        sums, backend = CategorySums.measure(ops, one_category, (1, n_folds, n_classes), spec, folds).few_on_host(ops)
        del one_category
    rows = rows.with_codes(np.zeros(0, np.int32))
    if isinstance(plan, FoldPlan):
        seen = SeenSums(sums, plan.visibility, task.rule, backend)
        total, of_new_rows = seen.total(), sums.visible(backend, plan.new_rows)
        folded = FoldedRows(rows, n_classes, spec.layout, folds, plan.visibility, plan.new_rows[0])
        return AllRows(folded, seen.population(total), bool((total.n > 0).all()), of_new_rows)
    population = SeenSums(sums, None, task.rule, backend).population(total_of_others(replace(task, ops=backend), sums))
    folded = FoldedRows(rows, n_classes, spec.layout, None, LESS_ONE_ROW, np.ones(1, np.int64))
    return AllRows(folded, population, len(task.rows) > 1, sums)


class NumberedColumns:
    """The codes of the columns of some keys, each column once; all targets share them."""

    def __init__(self) -> None:
        self._columns: dict[tuple[int, ...], KeyColumns] = {}

    def of(self, keys: Sequence[BatchKey], fused: FusedOps) -> KeyColumns:
        """Give the columns of keys; only the columns of the last keys are kept."""
        entries = tuple([key.entry for key in keys])
        if entries not in self._columns:
            self._columns.clear()
            self._columns[entries] = number_columns([key.categories for key in keys], fused)
        return self._columns[entries]


def number_columns(keys: Sequence[RowCategories], fused: FusedOps) -> KeyColumns:
    """Give the codes of all columns of the keys, each column once."""
    with_column = {name: key for key in keys for name in key.key.entry.members}
    codes, sizes = [], []
    for name, (key, found, _) in with_column.items():
        codes.append(found.column(name) if isinstance(found, JointCodes) else found)
        sizes.append(len(key.vocabularies[key.entry.members.index(name)]) + 1)
    position = {name: number for number, name in enumerate(with_column)}
    members = [tuple([position[name] for name in key.key.entry.members]) for key in keys]
    return KeyColumns(fused.narrow_codes(codes, sizes), sizes, members)
