"""Rows of many keys counted by cell, fold and class, key after key: each thread counts keys of its own.

The cell of a row is the mixed-radix number of its codes, as in `keys_by_fold`.
"""

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.compiled.border import Array, freeze, kernel, set_all, stage
from cpu_fallback.compiled.folds import fold_numbers
from cpu_fallback.compiled.keys_by_fold import ROW_COST, ROWS, Keys, keys_of, number_cells, shares_of
from cpu_fallback.compiled.threads import run
from cpu_fallback.types import KeyCounts

if TYPE_CHECKING:
    from cpu_fallback.types import Array as AnyArray
    from cpu_fallback.types import Folds, KeyColumns

# Lines of categories that there is room for at a time, if one key has no more.
MOST_LINES = 1 << 20


class Found(NamedTuple):
    """Cells that rows have, key after key, and their counts; two more lines a key are of unknown and missing values.

    `ends` are the lines where keys end.
    """

    cells: Array
    counts: Array
    ends: Array


@stage
def count_rows(keys: Keys, key: int, within: Array, length: int, cells: Array, table: Array) -> None:
    """Count the rows of every cell of a key, by their number within the cell."""
    set_all(table, 0)
    for start in range(0, len(within), ROWS):
        own = cells[: min(ROWS, len(within) - start)]
        number_cells(keys, key, start, within, length, own)
        for i in range(len(own)):
            table[np.uint64(own[i])] += np.int32(1)


@kernel
def count_range(keys: Keys, within: Array, start: int, stop: int, table: Array, found: Found) -> None:
    """Count the rows of the keys [start, stop), and write the cells that any row has."""
    cells, length, at = np.empty(ROWS, np.uint32), found.counts.shape[1], np.int64(0)
    for key in range(start, stop):
        n_cells = keys.n_cells[key]
        count_rows(keys, key, within, length, cells, table[: n_cells * length])
        last = keys.missing[key] if keys.missing[key] >= 0 else n_cells
        for cell in range(last):
            counts, any_row = table[cell * length : (cell + 1) * length], np.int32(0)
            for k in range(length):
                found.counts[at, k] = counts[k]
                any_row |= counts[k]
            found.cells[at] = cell
            at += np.int64(any_row != 0)
        set_all(found.counts[at], 0)
        for k in range(length):
            found.counts[at + 1, k] = table[last * length + k] if last < n_cells else 0
        at += 2
        found.ends[key - start] = at


def count_keys(
    keys: "KeyColumns", classes: "AnyArray", n_classes: int, folds: "Folds", n_folds: int, /
) -> list[KeyCounts]:
    """Count the rows of many keys; see `gpu_encode.seam.ops.FusedOps`."""
    n_rows, length, within = keys.codes.shape[1], n_classes * n_folds, classes
    if folds is not None:
        numbers = folds if isinstance(folds, np.ndarray) else fold_numbers(folds, 0, n_rows)
        within = numbers * n_classes + classes
    within, given = freeze(within.astype(np.uint16), np.uint16), keys_of(keys, [0] * len(keys.members))
    lines, parts = np.minimum(given.n_cells, n_rows) + 3, shares_of(given.n_cells * length + ROW_COST * n_rows)
    counted: list[list[KeyCounts]] = [[] for _ in parts]

    def work(number: int) -> None:
        start, stop = parts[number]
        table = np.empty(int(given.n_cells[start:stop].max()) * length, np.int32)
        while start < stop:
            end = start + max(1, int(np.searchsorted(np.cumsum(lines[start:stop]), MOST_LINES, side="right")))
            size = int(lines[start:end].sum())
            found = Found(
                np.empty(size, np.uint32), np.empty((size, length), np.int32), np.empty(end - start, np.int64)
            )
            count_range(given, within, start, end, table, found)
            counted[number] += keep(found)
            start = end

    run(work, len(parts))
    return [of_key for of_share in counted for of_key in of_share]


def keep(found: Found) -> list[KeyCounts]:
    """Give what was found of each key, without the room that was left."""
    ends = found.ends.tolist()
    cells, counts = found.cells[: ends[-1]].copy(), found.counts[: ends[-1]].copy()
    return [KeyCounts(cells[begin : end - 2], counts[begin:end]) for begin, end in pairwise([0, *ends])]
