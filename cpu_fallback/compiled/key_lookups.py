"""Look up the rows of many keys in tables: each thread looks up its keys, one after the other.

The cell of a row is the mixed-radix number of its codes, as in `keys_by_fold`.  First the lines of a key are written to
its cells, so that no row searches for its category.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.compiled.border import Array, freeze, kernel, set_all, stage
from cpu_fallback.compiled.folds import fold_numbers
from cpu_fallback.compiled.keys_by_fold import ROW_COST, ROWS, Keys, keys_of, look_up, number_cells, shares_of
from cpu_fallback.compiled.threads import run

if TYPE_CHECKING:
    from cpu_fallback.types import Folds, KeyColumns, KeyEncodings, KeyTables


class Lines(NamedTuple):
    """Cells of the categories of all keys, and lines of encodings, as two flat arrays.

    The cells of key k begin at first_cell[k], and its encodings at first_value[k].  `missing` is the line of rows that
    lack a value, or -1 if a missing value is one more value of its column.
    """

    cells: Array
    values: Array
    first_cell: Array
    first_value: Array
    n_categories: Array
    n_outputs: Array
    missing: Array


@stage
def copy_line(line: Array, table: Array, to: int) -> None:
    """Write one line of encodings."""
    for k in range(len(line)):
        table[to + k] = line[k]


@stage
def spread_missing(keys: Keys, key: int, line: Array, is_known: int, table: Array, known: Array) -> None:
    """Write one line to all cells in which some column has its last but one code, which is that of a missing value."""
    n_cells, below = keys.n_cells[key], np.int64(1)
    for k in range(keys.ends[key + 1] - 1, keys.ends[key] - 1, -1):
        radix = keys.radix[keys.members[k]]
        for first in range((radix - 2) * below, n_cells, radix * below):
            for cell in range(first, first + below):
                copy_line(line, table, cell * len(line))
                known[cell] = is_known
        below *= radix


@stage
def spread_lines(keys: Keys, key: int, lines: Lines, width: int, table: Array, known: Array) -> None:
    """Write the encodings of every cell of a key, and whether fit has seen the cell."""
    n, n_cells, begin = lines.n_categories[key], keys.n_cells[key], lines.first_value[key]
    values = lines.values[begin : begin + (n + 2) * width]
    set_all(known, 0)
    if width == 1:
        set_all(table, values[n])
    else:
        for cell in range(n_cells):
            copy_line(values[n * width : (n + 1) * width], table, cell * width)
    cells = lines.cells[lines.first_cell[key] : lines.first_cell[key] + n]
    for i in range(n):
        copy_line(values[i * width : (i + 1) * width], table, np.int64(cells[i]) * width)
        known[cells[i]] = 1
    missing = lines.missing[key]
    if missing >= 0:
        line = values[missing * width : (missing + 1) * width]
        spread_missing(keys, key, line, np.int64(missing != n), table, known)


@stage
def count_unknown(keys: Keys, key: int, zeros: Array, cells: Array, known: Array) -> int:
    """Count the rows whose cells fit has not seen."""
    unknown = np.int64(0)
    for start in range(0, len(zeros), ROWS):
        own = cells[: min(ROWS, len(zeros) - start)]
        number_cells(keys, key, start, zeros, 1, own)
        for i in range(len(own)):
            unknown += 1 - np.int64(known[np.uint64(own[i])])
    return unknown  # type: ignore[return-value]


@kernel
def look_up_range(
    keys: Keys,
    sample: Keys,
    lines: Lines,
    folds: tuple[Array, int, Array],
    start: int,
    stop: int,
    room: tuple[Array, Array],
    unknown: Array,
    out: Array,
) -> None:
    """Look up the keys [start, stop), and count the rows of the sample whose cells fit has not seen."""
    of_rows, n_views, zeros = folds
    cells = np.empty(ROWS, np.uint32)
    for key in range(start, stop):
        n_cells, n_outputs = keys.n_cells[key], lines.n_outputs[key]
        width = n_views * n_outputs
        table, known = room[0][: n_cells * width], room[1][:n_cells]
        spread_lines(keys, key, lines, width, table, known)
        own = out[keys.first[key] : keys.first[key] + n_outputs]
        look_up(keys, key, of_rows, (n_views, n_outputs), cells, table, own)
        unknown[key] = count_unknown(sample, key, zeros, cells, known)


def look_up_keys(keys: "KeyColumns", tables: "KeyTables", folds: "Folds", step: int, out: "KeyEncodings", /) -> Array:
    """Write the encodings of rows by many keys; see `gpu_encode.seam.ops.FusedOps`."""
    values, n_rows = out.values, keys.codes.shape[1]
    sampled = keys if step == 1 else keys._replace(codes=np.ascontiguousarray(keys.codes[:, ::step]))
    given, sample, lines = keys_of(keys, out.first), keys_of(sampled, out.first), lines_of(tables)
    if folds is None:
        folds = np.zeros(n_rows, np.uint16)
    elif not isinstance(folds, np.ndarray):
        folds = fold_numbers(folds, 0, n_rows)
    zeros = freeze(np.zeros(sampled.codes.shape[1], np.uint16), np.uint16)
    of_rows = freeze(folds.astype(np.uint16, copy=False), np.uint16), tables.n_views, zeros
    sizes = given.n_cells * lines.n_outputs * tables.n_views
    parts, unknown = shares_of(sizes + ROW_COST * n_rows), np.zeros(len(keys.members), np.int64)

    def work(number: int) -> None:
        start, stop = parts[number]
        room = np.empty(sizes[start:stop].max(), values.dtype), np.empty(given.n_cells[start:stop].max(), np.uint8)
        look_up_range(given, sample, lines, of_rows, start, stop, room, unknown, values)

    run(work, len(parts))
    return unknown


def lines_of(tables: "KeyTables") -> Lines:
    """Describe tables for the kernels."""
    numbers = (freeze(given, np.int64) for given in tables[2:7])
    return Lines(freeze(tables.cells, np.uint32), freeze(tables.values, tables.values.dtype), *numbers)
