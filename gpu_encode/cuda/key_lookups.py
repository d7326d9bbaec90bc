"""Encodings of many keys by the categories of a model: one launch spreads encodings over cells, one looks rows up."""

from typing import TYPE_CHECKING

import numpy as np

from cpu_fallback.types import KeyTables
from gpu_encode.cuda import raw
from gpu_encode.cuda.columns import NarrowCodes, codes_at
from gpu_encode.cuda.folds import fold_numbers
from gpu_encode.cuda.key_sums import CELL_THREADS, PLAN_BYTES, THREADS, batch_of, split_keys
from gpu_encode.cuda.keys_by_fold import narrow_codes
from gpu_encode.cuda.memory import empty, to_device, to_host
from gpu_encode.cuda.runtime import blocks_for, xp

if TYPE_CHECKING:
    from cpu_fallback.types import Array, Folds, KeyColumns, KeyEncodings


def look_up_keys(keys: "KeyColumns", tables: KeyTables, folds: "Folds", step: int, out: "KeyEncodings", /) -> "Array":
    """Write the encodings of rows by many keys; see `gpu_encode.seam.ops.FusedOps`."""
    codes, unknown = keys.codes, np.zeros(len(keys.members), np.int64)
    tables = tables._replace(cells=to_device(tables.cells), values=to_device(tables.values))
    views = narrow_codes([written_folds(folds, codes.n_rows)], [tables.n_views]) if tables.n_views > 1 else None
    waiting: list[tuple[Array, Array]] = []
    for width in np.unique(tables.n_outputs).tolist():
        alike = np.flatnonzero(tables.n_outputs == width)
        some = keys._replace(members=[keys.members[key] for key in alike.tolist()])
        for start, stop in split_keys(some.n_cells, tables.values.itemsize * tables.n_views * width):
            chosen = alike[start:stop]
            waiting.append((chosen, look_up_batch(keys, chosen, tables, views, step, out)))
    # The host waits once.
    counts = xp.concatenate([found for _, found in waiting]) if len(waiting) > 1 else waiting[0][1]
    unknown[np.concatenate([chosen for chosen, _ in waiting])] = to_host(counts).view(np.int64)
    return unknown


def written_folds(folds: "Folds", n_rows: int) -> "Array":
    """Give the fold of each row as an array."""
    if folds is None or hasattr(folds, "dtype"):
        return to_device(np.zeros(n_rows, np.int32) if folds is None else folds)
    return fold_numbers(folds, 0, n_rows)


def look_up_batch(
    keys: "KeyColumns",
    chosen: "Array",
    tables: KeyTables,
    views: NarrowCodes | None,
    step: int,
    out: "KeyEncodings",
) -> "Array":
    """Look up the rows of some keys that have equally many outputs; give the number of unknown rows of each."""
    n_keys, n_rows, codes = len(chosen), keys.codes.n_rows, keys.codes
    described = np.stack([tables.first_cell, tables.n_categories, tables.first_value, tables.missing], axis=1)[chosen]
    some = keys._replace(members=[keys.members[key] for key in chosen.tolist()])
    batch = batch_of(some, [out.first[key] for key in chosen.tolist()], 1, n_rows, described.reshape(-1).tolist())
    batch = batch._replace(plan=to_device(batch.plan))
    n_cells, n_outputs, itemsize = sum(batch.cells), int(tables.n_outputs[chosen[0]]), tables.values.itemsize
    width, unknown = tables.n_views * n_outputs, empty(n_keys, np.uint64)
    entries, variant = empty(n_cells * width, f"u{itemsize}"), {"ENTRY": raw.TYPES[itemsize]}
    categories = batch.plan[-described.size :], tables.cells
    given = batch.plan, n_keys, n_cells, *categories, width, tables.values.view(f"u{itemsize}"), entries, unknown
    raw.run("spread_keys", blocks_for(n_cells, CELL_THREADS), CELL_THREADS, *given, variant=variant)
    last: tuple[Array, int, int] = (empty(0, np.uint8), 1, 1)
    if views is not None:
        last = codes_at(views, 0), views.columns[0].bytes, views.columns[0].radix
    rows = codes.held, batch.plan, n_keys, n_rows, batch.chunk, *last
    written = n_outputs, entries, out.values.reshape(-1).view(f"u{itemsize}")
    of_outputs = variant | {"OUTPUTS": "1" if n_outputs == 1 else "0"}
    raw.run("gather_keys", batch.blocks(n_rows), THREADS, *rows, *written, shared=PLAN_BYTES, variant=of_outputs)
    of_sample = *rows, step, *categories, unknown
    raw.run("count_unknown", batch.blocks(-(-n_rows // step)), THREADS, *of_sample, shared=PLAN_BYTES, variant=variant)
    return unknown
