"""Look up the rows of many keys in tables: each thread looks up its keys, one after the other.

The cell of a row is the mixed-radix number of its codes, as in `key_sums`.  First the lines of a key are written to
its cells, so that no row searches for its category.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cpu_fallback.compiled.border import Array, freeze, kernel, set_all, stage
from cpu_fallback.compiled.key_sums import (
    ROW_COST,
    ROWS,
    Keys,
    by_width,
    keys_of,
    narrow_folds,
    number_cells,
    shares_of,
)
from cpu_fallback.compiled.keys_by_fold import take_encodings
from cpu_fallback.compiled.threads import run
from cpu_fallback.types import KeyTables

if TYPE_CHECKING:
    from cpu_fallback.types import Folds, KeyColumns, KeyEncodings


class Viewed(NamedTuple):
    """The view of each row, and whether rows of no category are counted."""

    views: Array
    n_views: int
    are_counted: bool


@stage
def copy_line(line: Array, table: Array, to: int) -> None:
    """Write one line of encodings."""
    for k in range(len(line)):
        table[to + k] = line[k]


@stage
def spread_missing(keys: Keys, key: int, line: Array, is_known: int, table: Array, known: Array) -> None:
    """Write one line to all cells in which any column has its last code but one, which stands for a missing value."""
    n_cells, below = keys.n_cells[key], np.int64(1)
    n_views = len(known) // n_cells
    for k in range(keys.ends[key + 1] - 1, keys.ends[key] - 1, -1):
        radix = keys.radix[keys.members[k]]
        for first in range((radix - 2) * below, n_cells, radix * below):
            for cell in range(first, first + below):
                copy_line(line, table, cell * len(line))
                set_all(known[cell * n_views : (cell + 1) * n_views], is_known)
        below *= radix


@stage
def spread_lines(keys: Keys, key: int, tables: KeyTables, width: int, table: Array, known: Array) -> None:
    """Write the encodings of every cell of a key, and for each of its views whether the cell is a category."""
    n, n_cells, begin = tables.n_categories[key], keys.n_cells[key], tables.first_value[key]
    n_views, values = len(known) // n_cells, tables.values[begin : begin + (n + 2) * width]
    set_all(known, 0)
    if width == 1:
        set_all(table, values[n])
    else:
        for cell in range(n_cells):
            copy_line(values[n * width : (n + 1) * width], table, cell * width)
    cells = tables.cells[tables.first_cell[key] : tables.first_cell[key] + n]
    for i in range(n):
        at = np.int64(cells[i])
        copy_line(values[i * width : (i + 1) * width], table, at * width)
        set_all(known[at * n_views : (at + 1) * n_views], 1)
    missing = tables.missing[key]
    if missing >= 0:
        line = values[missing * width : (missing + 1) * width]
        spread_missing(keys, key, line, np.int64(missing != n), table, known)


@stage
def look_up(keys: Keys, key: int, rows: Viewed, cells: Array, table: Array, known: Array, out: Array) -> int:
    """Write the encodings of all rows, out (outputs, rows), and count rows of no category if this was asked for."""
    unknown = np.int64(0)
    for start in range(0, len(rows.views), ROWS):
        own = cells[: min(ROWS, len(rows.views) - start)]
        number_cells(keys, key, start, rows.views, rows.n_views, own)
        if rows.are_counted:
            for i in range(len(own)):
                unknown += 1 - np.int64(known[np.uint64(own[i])])
        take_encodings(own, table, start, out)
    return unknown  # type: ignore[return-value]


@kernel
def look_up_range(
    keys: Keys,
    sample: Keys,
    rows: tuple[Viewed, Viewed],
    tables: KeyTables,
    start: int,
    stop: int,
    room: tuple[Array, Array],
    unknown: Array,
    out: Array,
) -> None:
    """Look up the keys [start, stop), and count the rows of no category: among all rows, and among a sample."""
    cells = np.empty(ROWS, np.uint32)
    for key in range(start, stop):
        n_outputs, n_known = tables.n_outputs[key], keys.n_cells[key] * rows[0].n_views
        table, known = room[0][: n_known * n_outputs], room[1][:n_known]
        spread_lines(keys, key, tables, rows[0].n_views * n_outputs, table, known)
        own = out[keys.first[key] : keys.first[key] + n_outputs]
        unknown[key] = look_up(keys, key, rows[0], cells, table, known, own)
        unknown[key] += look_up(sample, key, rows[1], cells, table, known, own[:0])


def look_up_keys(keys: "KeyColumns", tables: KeyTables, folds: "Folds", step: int, out: "KeyEncodings", /) -> Array:
    """Write the encodings of rows by many keys; see `gpu_encode.seam.ops.FusedOps`."""
    values, n_rows = out.values, keys.codes.shape[1]
    columns, views = keys_of(keys, out.first), narrow_folds(folds, n_rows)
    arrays: dict[str, Any] = {
        name: freeze(given, given.dtype) for name, given in tables._asdict().items() if name != "n_views"
    }
    tables = tables._replace(**arrays)
    chosen = slice(0, 0 if step == 1 else None, step)
    codes, narrow = by_width(keys.codes[:, chosen])
    sample = columns._replace(codes=codes, narrow=narrow)
    rows = viewed(views, tables.n_views, step == 1), viewed(views[chosen], tables.n_views, True)
    n_known = columns.n_cells * tables.n_views
    sizes = n_known * tables.n_outputs
    parts, unknown = shares_of(sizes + ROW_COST * n_rows), np.zeros(len(keys.members), np.int64)

    def work(number: int) -> None:
        start, stop = parts[number]
        room = np.empty(sizes[start:stop].max(), values.dtype), np.empty(n_known[start:stop].max(), np.uint8)
        look_up_range(columns, sample, rows, tables, start, stop, room, unknown, values)

    run(work, len(parts))
    return unknown


def viewed(views: Array, n_views: int, are_counted: bool) -> Viewed:
    """Describe rows to the kernels."""
    return Viewed(freeze(views, np.uint16), n_views, are_counted)
