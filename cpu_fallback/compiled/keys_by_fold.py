"""Training encodings of many keys by fold: each thread counts, encodes and looks up its keys, one after the other.

The cell of a row is the mixed-radix number of its codes in the key's columns, so no row is sorted or hashed.  Cells
without rows are left out after the rows are counted.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.compiled.blending import Around, around_of, blend_binary, blend_counts, estimate_counts
from cpu_fallback.compiled.border import Array, counting, freeze, kernel, set_all, stage
from cpu_fallback.compiled.folds import fold_numbers
from cpu_fallback.compiled.threads import run, threads
from cpu_fallback.compiled.views import CHOSEN, Views, views_of
from cpu_fallback.fused_rules import (
    AS_CATEGORY,
    AS_NAN,
    AS_PRIOR,
    M_ESTIMATE,
    Blend,
    FusedRule,
    PopulationMoments,
)
from cpu_fallback.types import MISSING, KeyCounts, KeyEncodings

if TYPE_CHECKING:
    from cpu_fallback.types import Codes, FoldedClasses, KeyColumns

# Number of rows whose cells are computed, and of categories that are encoded, at a time.
ROWS, CATEGORIES = 1024, 512
# Number of lines of categories for which there is room at a time, unless a single key has more.
MOST_LINES = 1 << 20
# A row of a key costs about as much as so many numbers of its tables.
ROW_COST = 2


class Keys(NamedTuple):
    """Codes, column after column, and the number of codes that each column has; columns of all keys, key after key.

    The columns of key k are members[ends[k]:ends[k + 1]].  `missing` is the key's last cell if it holds missing values
    that are no category, else -1; `first` is the line of its first encodings in the output.
    """

    codes: Array
    radix: Array
    members: Array
    ends: Array
    missing: Array
    n_cells: Array
    first: Array


class FoldedRows(NamedTuple):
    """The rows of all keys: fold * n_classes + class, and fold; and the folds that new rows see (n_folds,)."""

    within: Array
    folds: Array
    n_classes: int
    new_rows: Array


class Formula(NamedTuple):
    """What turns counts into encodings; `of_missing` (outputs * views,) encodes missing values that are no category."""

    first: int
    views: Views
    blend: Blend
    around: Around
    of_missing: Array


class Block(NamedTuple):
    """Room for some categories: their cells, counts (categories, folds, classes), encodings, and which are unseen."""

    cells: Array
    counts: Array
    values: Array
    unseen: Array
    rounded: Array


class Found(NamedTuple):
    """Categories of keys, one key after the other: their cells, and the rows of each class that new rows see.

    Each key has two more lines, for unknown and for missing values; `ends` are the lines at which keys end.
    """

    cells: Array
    counts: Array
    ends: Array


@stage
def join_codes(keys: Keys, key: int, start: int, cells: Array) -> None:
    """Write the mixed-radix number of the codes of the rows from `start` on, in the key's columns."""
    begin, end, stop = keys.ends[key], keys.ends[key + 1], start + len(cells)
    n_rows = len(keys.codes) // len(keys.radix)
    at = keys.members[begin] * n_rows
    first = keys.codes[at + start : at + stop]
    for i in range(len(cells)):
        cells[i] = first[i]
    for k in range(begin + 1, end):
        at, radix = keys.members[k] * n_rows, np.uint32(keys.radix[keys.members[k]])
        codes = keys.codes[at + start : at + stop]
        for i in range(len(cells)):
            cells[i] = cells[i] * radix + codes[i]


@stage
def number_cells(keys: Keys, key: int, start: int, within: Array, length: int, cells: Array) -> None:
    """Write cell * length + within of the rows from `start` on."""
    join_codes(keys, key, start, cells)
    inner, factor = within[start : start + len(cells)], np.uint32(length)
    for i in range(len(cells)):
        cells[i] = cells[i] * factor + inner[i]


@stage
def count_rows(keys: Keys, key: int, rows: FoldedRows, length: int, cells: Array, table: Array) -> None:
    """Count the rows of every cell, fold and class of a key."""
    set_all(table, 0)
    for start in range(0, len(rows.within), ROWS):
        own = cells[: min(ROWS, len(rows.within) - start)]
        number_cells(keys, key, start, rows.within, length, own)
        for i in range(len(own)):
            table[np.uint64(own[i])] += np.int32(1)


@stage
def take_cells(table: Array, first: int, length: int, block: Block) -> tuple[int, int]:
    """Copy the counts of cells with rows, from cell `first` on; give the cell after them, and how many there are."""
    stop, n, place = min(len(table) // length, first + CATEGORIES), np.uint64(0), np.uint64(first * length)
    for cell in range(first, stop):
        any_row, to = np.int32(0), n * np.uint64(length)
        for _ in range(length):
            any_row |= table[place]
            block.counts[to] = table[place]
            place += np.uint64(1)
            to += np.uint64(1)
        block.cells[n] = cell
        n += np.uint64(any_row != 0)
    return stop, np.int64(n)  # type: ignore[return-value]


@stage
def keep_sums(rows: FoldedRows, block: Block, n: int, found: Found, at: int) -> None:
    """Write categories from line `at` on, with the rows of each class that new rows see."""
    n_classes, n_folds, place = rows.n_classes, len(rows.new_rows), np.uint64(0)
    for i in range(n):
        counts = found.counts[at + i]
        for label in range(n_classes):
            counts[label] = 0
        for fold in range(n_folds):
            for label in range(n_classes):
                counts[label] += rows.new_rows[fold] * block.counts[place]
                place += np.uint64(1)
        found.cells[at + i] = block.cells[i]


@counting
def encode_block(formula: Formula, n_classes: int, n: int, block: Block) -> None:
    """Encode some categories by their counts."""
    first, views, blend, around, _ = formula
    if blend.shrinkage.kind == M_ESTIMATE:
        estimate_counts(block.counts, n_classes, first, views, blend, around, 0, n, block.values, block.unseen)
    elif n_classes == 2 and first == 1 and views.kind != CHOSEN:
        blend_binary(block.counts, views, blend, around, 0, n, block.values, block.unseen)
    else:
        blend_counts(block.counts, n_classes, first, views, blend, around, 0, n, block.values, block.unseen)


@stage
def round_block(block: Block, n: int) -> int:
    """Round encodings to the type of the output; give the number of those that it cannot hold."""
    values, rounded, lost = block.values.reshape(-1), block.rounded, np.int64(0)
    for i in range(n * block.values.shape[1]):
        rounded[i] = values[i]
        lost += np.int64(np.isinf(rounded[i]) & np.isfinite(values[i]))
    return lost  # type: ignore[return-value]


@stage
def spread(block: Block, n: int, table: Array) -> None:
    """Write encodings to the cells of their categories."""
    width, place = block.values.shape[1], np.uint64(0)
    for i in range(n):
        to = np.uint64(block.cells[i] * width)
        for _ in range(width):
            table[to] = block.rounded[place]
            place += np.uint64(1)
            to += np.uint64(1)


@stage
def look_up(keys: Keys, key: int, folds: Array, shape: tuple[int, int], cells: Array, table: Array, out: Array) -> None:
    """Write the encodings of all rows, out (outputs, rows), by a table (cells, views, outputs)."""
    n_views, n_outputs = shape
    for start in range(0, len(folds), ROWS):
        own = cells[: min(ROWS, len(folds) - start)]
        number_cells(keys, key, start, folds, n_views, own)
        for output in range(n_outputs):
            lines = out[output, start : start + len(own)]
            if n_outputs == 1:
                for i in range(len(own)):
                    lines[i] = table[np.uint64(own[i])]
            else:
                for i in range(len(own)):
                    lines[i] = table[np.uint64(own[i]) * np.uint64(n_outputs) + np.uint64(output)]


@counting
def room_for(rows: FoldedRows, formula: Formula, table: Array) -> Block:
    """Give room for a block of categories."""
    n_views = formula.views.n_views
    width = n_views * (rows.n_classes - formula.first)
    counts = np.empty((CATEGORIES + 1) * len(rows.new_rows) * rows.n_classes, np.int64)
    unseen, rounded = np.empty((CATEGORIES, n_views), np.bool_), np.empty(CATEGORIES * width, table.dtype)
    return Block(np.empty(CATEGORIES + 1, np.int64), counts, np.empty((CATEGORIES, width)), unseen, rounded)


@kernel
def encode_range(
    keys: Keys,
    rows: FoldedRows,
    formula: Formula,
    start: int,
    stop: int,
    tables: tuple[Array, Array],
    found: Found,
    out: Array,
) -> int:
    """Encode the keys [start, stop), and write their categories; give how many encodings became infinite."""
    shape, lost, at = (formula.views.n_views, rows.n_classes - formula.first), np.int64(0), np.int64(0)
    length, width = len(rows.new_rows) * rows.n_classes, shape[0] * shape[1]
    block, cells = room_for(rows, formula, tables[1]), np.empty(ROWS, np.uint32)
    for key in range(start, stop):
        n_cells = keys.n_cells[key]
        counts, encodings = tables[0][: n_cells * length], tables[1][: n_cells * width]
        count_rows(keys, key, rows, length, cells, counts)
        cell, unknown = np.int64(0), at
        while cell < n_cells:
            cell, n = take_cells(counts, cell, length, block)
            keep_sums(rows, block, n, found, at)
            encode_block(formula, rows.n_classes, n, block)
            at += n
            unknown = at
            if n > 0 and block.cells[n - 1] == keys.missing[key]:
                unknown = at - 1
                for k in range(len(formula.of_missing)):
                    block.values[n - 1, k] = formula.of_missing[k]
            lost += round_block(block, n)
            spread(block, n, encodings)
        # The lines of unknown and missing values; that of missing ones is there already if a row has any.
        if unknown < at:
            found.counts[at] = found.counts[unknown]
        else:
            set_all(found.counts[at + 1], 0)
        set_all(found.counts[unknown], 0)
        at = unknown + 2
        found.ends[key] = at
        look_up(keys, key, rows.folds, shape, cells, encodings, out[keys.first[key] : keys.first[key] + shape[1]])
    return lost  # type: ignore[return-value]


def narrow_codes(columns: "Sequence[Codes]", sizes: Sequence[int], /) -> Array:
    """Give codes of columns as `encode_keys_by_fold` reads them; see `gpu_encode.seam.ops.FusedOps`."""
    matrix = np.empty((len(columns), len(columns[0])), np.uint8 if max(sizes) <= 1 << 8 else np.int32)
    for line, column, size in zip(matrix, columns, sizes, strict=True):
        np.copyto(line, column, casting="unsafe")
        missing = column == MISSING
        if bool(missing.any()):
            line[missing] = size - 1
    return matrix


def encode_keys_by_fold(
    keys: "KeyColumns",
    rows: "FoldedClasses",
    rule: FusedRule,
    population: PopulationMoments,
    out: KeyEncodings,
    /,
) -> tuple[list[KeyCounts], int]:
    """Write the training encodings of many keys; see `gpu_encode.seam.ops.FusedOps`."""
    n_rows = len(rows.classes)
    given, of_rows, prior = keys_of(keys, out.first), rows_of(rows), population.prior
    of_missing = {AS_CATEGORY: np.zeros(0), AS_PRIOR: prior.reshape(-1), AS_NAN: np.full(prior.size, np.nan)}
    blend, around = rule.blend, around_of(population, rule.blend.shrinkage)
    views = views_of(rows.visibility, len(rows.new_rows))
    formula = Formula(rows.n_classes - prior.shape[1], views, blend, around, of_missing[rule.missing])
    length, width = len(rows.new_rows) * rows.n_classes, prior.size
    lines = np.minimum(given.n_cells, n_rows) + 2
    parts = shares_of(given.n_cells * (length + width) + ROW_COST * n_rows)
    counted: list[list[KeyCounts]] = [[] for _ in parts]
    lost = [0] * len(parts)

    def work(number: int) -> None:
        start, stop = parts[number]
        most = int(given.n_cells[start:stop].max())
        tables = np.empty(most * length, np.int32), np.empty(most * width, out.values.dtype)
        while start < stop:
            end = start + max(1, int(np.searchsorted(np.cumsum(lines[start:stop]), MOST_LINES, side="right")))
            size = int(lines[start:end].sum())
            room = Found(np.empty(size, np.uint32), np.empty((size, rows.n_classes), np.int32), np.empty(end, np.int64))
            lost[number] += encode_range(given, of_rows, formula, start, end, tables, room, out.values)
            counted[number] += keep(room, start)
            start = end

    run(work, len(parts))
    return [of_key for of_share in counted for of_key in of_share], sum(lost)


def keep(found: Found, start: int) -> list[KeyCounts]:
    """Give the categories of each key from `start` on, without unused room."""
    ends = found.ends[start:].tolist()
    cells, counts = found.cells[: ends[-1]].copy(), found.counts[: ends[-1]].copy()
    return [KeyCounts(cells[begin : end - 2], counts[begin:end]) for begin, end in pairwise([0, *ends])]


def keys_of(keys: "KeyColumns", first: Sequence[int]) -> Keys:
    """Describe keys for the kernels."""
    members = np.array([column for of_key in keys.members for column in of_key], np.int64)
    ends = np.array([0, *accumulate(map(len, keys.members))], np.int64)
    # Missing values of a single column have a line of their own; of joint keys they are one more value.
    n_cells = np.array([prod(keys.sizes[column] for column in of_key) for of_key in keys.members], np.int64)
    missing = np.where([len(of_key) == 1 for of_key in keys.members], n_cells - 1, -1)
    codes = freeze(keys.codes, keys.codes.dtype).reshape(-1)
    return Keys(
        codes,
        np.array(keys.sizes, np.int64),
        members,
        ends,
        missing,
        n_cells,
        np.array(first, np.int64),
    )


def rows_of(rows: "FoldedClasses") -> FoldedRows:
    """Give the rows in the form that kernels take: one number for fold and class, and the fold."""
    n_rows, folds = len(rows.classes), rows.folds
    if folds is None:
        folds = np.zeros(n_rows, np.int32)
    elif not isinstance(folds, np.ndarray):
        folds = fold_numbers(folds, 0, n_rows)
    within = (folds * rows.n_classes + rows.classes).astype(np.uint16)
    return FoldedRows(within, folds.astype(np.uint16), rows.n_classes, np.array(rows.new_rows, np.int64))


def shares_of(costs: Array) -> list[tuple[int, int]]:
    """Split keys into ranges of about equal cost, one for each thread."""
    total = np.cumsum(costs)
    number = min(threads(), len(costs))
    edges = np.searchsorted(total, total[-1] * np.arange(1, number) / number, side="right") if number > 1 else []
    return [(start, stop) for start, stop in pairwise([0, *map(int, edges), len(costs)]) if start < stop]
