"""Training encodings of many keys by fold: one launch counts rows, one encodes cells, one looks up rows.

A row's cell is the mixed-radix number of its codes in the key's columns; kernels compute it, see raw/keys.cuh.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cpu_fallback.compiled.views import Views
from cpu_fallback.fused_rules import M_ESTIMATE, FusedRule, PopulationMoments
from gpu_encode.cuda import raw
from gpu_encode.cuda.columns import NarrowCodes, bytes_of, codes_at, room_for, write_codes
from gpu_encode.cuda.encodings import Priors
from gpu_encode.cuda.fallbacks import DOUBTS, leave_to_arrays
from gpu_encode.cuda.indexed import narrow_source_of
from gpu_encode.cuda.key_sums import (
    CELL_THREADS,
    PLAN_BYTES,
    THREADS,
    Batch,
    DeferredCounts,
    batch_of,
    count_rows,
    defer_counts,
    number_rows,
    split_keys,
)
from gpu_encode.cuda.memory import empty, to_host, zeros
from gpu_encode.cuda.ordered_counts import rule_words
from gpu_encode.cuda.runtime import blocks_for
from gpu_encode.cuda.table_encodings import priors_of, views_of

if TYPE_CHECKING:
    from cpu_fallback.fused_rules import FoldedRows
    from cpu_fallback.types import Array, Codes, KeyColumns, KeyEncodings


def narrow_codes(columns: "Sequence[Codes]", sizes: Sequence[int], /) -> NarrowCodes:
    """Give codes of columns as `encode_keys_by_fold` reads them; see `gpu_encode.seam.ops.FusedOps`."""
    codes = room_for(sizes, [*map(bytes_of, sizes)], len(columns[0]))
    write_codes([*map(narrow_source_of, columns)], codes)
    return codes


class Formula(NamedTuple):
    """Arguments with which raw/encode_keys.cu turns counts into encodings; exact priors are quotients of `totals`."""

    first: int
    views: Views
    new_rows: "Array"
    rule: tuple[Any, ...]
    priors: Priors
    totals: "Array"
    counters: "Array"


def totals_of(rule: FusedRule, population: PopulationMoments) -> "Array":
    """Give the numerators of priors: the sums of the rows that each view sees, or the prior itself (views, outputs)."""
    if not rule.by_mean or population.exact is None:
        return np.full(population.prior.shape, rule.prior)
    total = population.exact.total
    digits = to_host(total.digits)
    powers = 2.0 ** (32 * (total.low + np.arange(digits.shape[-1])))
    return np.ascontiguousarray(np.broadcast_to((digits * powers).sum(axis=-1), population.prior.shape))


def encode_keys_by_fold(
    keys: "KeyColumns",
    rows: "FoldedRows",
    rule: FusedRule,
    population: PopulationMoments,
    out: "KeyEncodings",
    /,
) -> tuple[list[DeferredCounts], int] | None:
    """Write the training encodings of many keys; see `gpu_encode.seam.ops.FusedOps`."""
    n_folds, shape, batches = len(rows.new_rows), population.prior.shape, []
    cell_bytes = 4 * n_folds * rows.n_classes + out.values.itemsize * population.prior.size
    for start, stop in split_keys(keys.n_cells, cell_bytes):
        some = keys._replace(members=keys.members[start:stop])
        batches.append(batch_of(some, out.first[start:stop], n_folds * rows.n_classes, keys.codes.n_rows))
    # All arrays are copied to the device at once.
    given = totals_of(rule, population).reshape(-1), rows.new_rows, *[batch.plan for batch in batches]
    priors, counters, (totals, new_rows, *plans) = priors_of(population, rule.blend.shrinkage, *given)
    views, first = views_of(rows.visibility, n_folds, rows.n_classes), rows.n_classes - shape[1]
    formula = Formula(first, views, new_rows, rule_words(rule), priors, totals.view(np.float64), counters)
    numbers, counts = number_rows(rows, keys.codes.n_rows, views.n_views, sum(batches[0].cells))
    tables: list[Array] = []
    for batch, plan in zip(batches, plans, strict=True):
        if tables:
            counts = zeros(sum(batch.cells) * numbers.columns[1].radix, np.uint32)
        count_rows(batch._replace(plan=plan), keys.codes, numbers, counts)
        tables.append(encode_batch(batch._replace(plan=plan), keys.codes, numbers, counts, formula, out))
        del counts
    lost, doubtful, _ = to_host(counters).tolist()
    if doubtful:
        leave_to_arrays("encode_keys_by_fold", DOUBTS)
        return None
    found: list[DeferredCounts] = []
    for batch, table in zip(batches, tables, strict=True):
        found += defer_counts(keys.members[len(found) : len(found) + len(batch.cells)], batch.cells, table)
    return found, lost


def encode_batch(
    batch: Batch,
    codes: NarrowCodes,
    numbers: NarrowCodes,
    counts: "Array",
    formula: Formula,
    out: "KeyEncodings",
) -> "Array":
    """Encode and look up the rows of some keys; give, by cell, the rows of each class that new rows see."""
    n_keys, n_cells, itemsize = len(batch.cells), sum(batch.cells), out.values.itemsize
    n_folds, by_fold = len(formula.new_rows), numbers.columns[0]
    n_classes = numbers.columns[1].radix // n_folds
    n_outputs, kept = n_classes - formula.first, empty((n_cells, n_classes), np.int32)
    entries = empty(n_cells * by_fold.radix * n_outputs, out.values.dtype)
    first, views, *others = formula
    variant = {"ENCODING": raw.ENCODINGS[itemsize], "ESTIMATES": str(int(formula.rule[0] == M_ESTIMATE))}
    of_cells = batch.plan, n_keys, n_cells, counts, n_folds, n_classes, first, views.kind, views.n_views
    results = views.matrix, *others, entries, kept.reshape(-1)
    raw.run("encode_keys", blocks_for(n_cells, CELL_THREADS), CELL_THREADS, *of_cells, *results, variant=variant)
    given, blocks = (codes.held, batch.plan, n_keys, numbers.n_rows, batch.chunk), batch.blocks(numbers.n_rows)
    last, variant = (codes_at(numbers, 0), by_fold.bytes, by_fold.radix), {"ENTRY": raw.TYPES[itemsize]}
    variant["OUTPUTS"] = "1" if n_outputs == 1 else "0"
    written = n_outputs, entries.view(f"u{itemsize}"), out.values.reshape(-1).view(f"u{itemsize}")
    raw.run("gather_keys", blocks, THREADS, *given, *last, *written, shared=PLAN_BYTES, variant=variant)
    return kept
