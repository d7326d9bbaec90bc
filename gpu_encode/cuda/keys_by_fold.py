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
from gpu_encode.cuda.memory import empty, to_device, to_host
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
    n_folds, shape = len(rows.new_rows), population.prior.shape
    priors, counters = priors_of(population, rule.blend.shrinkage)
    # Both arrays are copied to the device at once.
    both = to_device(np.concatenate([totals_of(rule, population).reshape(-1).view(np.int64), rows.new_rows]))
    new_rows, totals = both[-n_folds:], both[:-n_folds].view(np.float64)
    views, first = views_of(rows.visibility, n_folds, rows.n_classes), rows.n_classes - shape[1]
    formula = Formula(first, views, new_rows, rule_words(rule), priors, totals, counters)
    numbers, tables = number_rows(rows, views.n_views), []
    cell_bytes = 4 * n_folds * rows.n_classes + out.values.itemsize * population.prior.size
    for start, stop in split_keys(keys.n_cells, cell_bytes):
        some = keys._replace(members=keys.members[start:stop])
        batch = batch_of(some, out.first[start:stop], n_folds * rows.n_classes, numbers.n_rows)
        tables.append((some.members, batch.cells, encode_batch(batch, keys.codes, numbers, rows, formula, out)))
    lost, doubtful, _ = to_host(counters).tolist()
    if doubtful:
        leave_to_arrays("encode_keys_by_fold", DOUBTS)
        return None
    return [of_key for table in tables for of_key in defer_counts(*table)], lost


def encode_batch(
    batch: Batch,
    codes: NarrowCodes,
    numbers: NarrowCodes,
    rows: "FoldedRows",
    formula: Formula,
    out: "KeyEncodings",
) -> "Array":
    """Count, encode and look up the rows of some keys; give, by cell, the rows of each class that new rows see."""
    n_keys, n_cells, itemsize = len(batch.cells), sum(batch.cells), out.values.itemsize
    by_fold, n_outputs = numbers.columns[0], rows.n_classes - formula.first
    counts, kept = count_rows(batch, codes, numbers), empty((n_cells, rows.n_classes), np.int32)
    entries = empty(n_cells * by_fold.radix * n_outputs, out.values.dtype)
    first, views, *others = formula
    variant = {"ENCODING": raw.ENCODINGS[itemsize], "ESTIMATES": str(int(formula.rule[0] == M_ESTIMATE))}
    of_cells = batch.plan, n_keys, n_cells, counts, len(rows.new_rows), rows.n_classes, first, views.kind, views.n_views
    results = views.matrix, *others, entries, kept.reshape(-1)
    raw.run("encode_keys", blocks_for(n_cells, CELL_THREADS), CELL_THREADS, *of_cells, *results, variant=variant)
    del counts
    given, blocks = (codes.held, batch.plan, n_keys, numbers.n_rows, batch.chunk), batch.blocks(numbers.n_rows)
    last, variant = (codes_at(numbers, 0), by_fold.bytes, by_fold.radix), {"ENTRY": raw.TYPES[itemsize]}
    variant["OUTPUTS"] = "1" if n_outputs == 1 else "0"
    written = n_outputs, entries.view(f"u{itemsize}"), out.values.reshape(-1).view(f"u{itemsize}")
    raw.run("gather_keys", blocks, THREADS, *given, *last, *written, shared=PLAN_BYTES, variant=variant)
    return kept
