"""Training encodings of many keys by fold: each thread sums, encodes and looks up a group of keys at a time.

The cell of a row is the mixed-radix number of its codes in the key's columns, so that no row is sorted or hashed.
The cells of a group are those of its keys, key after key.  Cells that no row has are left out once rows are summed.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.compiled.addition import add_rows
from cpu_fallback.compiled.blending import Formula, clear_without_rows, encode_sums, formula_of
from cpu_fallback.compiled.border import BLOCK, Array, RowParts, freeze, kernel, parts_of, set_all, stage
from cpu_fallback.compiled.digits import scratch
from cpu_fallback.compiled.folds import fold_numbers
from cpu_fallback.compiled.sums import take_occupied
from cpu_fallback.compiled.threads import run, threads
from cpu_fallback.compiled.views import LESS_ONE, Views, sum_range, views_of, visible_range
from cpu_fallback.fused_rules import AS_CATEGORY, AS_NAN, AS_PRIOR, FusedRule, PopulationMoments
from cpu_fallback.memory import empty
from cpu_fallback.types import MISSING, KeyCounts, KeyEncodings

if TYPE_CHECKING:
    from cpu_fallback.fused_rules import FoldedRows
    from cpu_fallback.types import Codes, KeyColumns

# Rows whose cells are found at a time, and keys that the digits of rows are made once for.
ROWS, TOGETHER = 1024, 8
# Numbers of the sums of a group, if one key has no more; and of the cells that are encoded at a time.
GROUP, PIECE = 1 << 18, 1 << 16
# A row of a key costs as much as so many numbers of its tables.
ROW_COST = 2


class Keys(NamedTuple):
    """Codes, column after column, and the number of codes that each column has; columns of all keys, key after key.

    Those of key k are members[ends[k]:ends[k + 1]].  `missing` is the key's last cell where that is of missing values
    which are no category, else -1; `first` is the line of its first encodings in the output.
    """

    codes: Array
    radix: Array
    members: Array
    ends: Array
    missing: Array
    n_cells: Array
    first: Array


class RowNumbers(NamedTuple):
    """Where the sums of each row stand among those of its cell, fold * n_classes + class; and the view of each row."""

    within: Array
    views: Array


class Batch(NamedTuple):
    """All that the threads read; `parts` are the rows' numbers, None of rows that are counted alone.

    A cell has `length` sums, of `numbers` int64 each, and encodings of `shape` (views, outputs).  `of_missing` are the
    encodings of missing values, if these are no category.
    """

    keys: Keys
    rows: RowNumbers
    parts: RowParts | None
    length: int
    numbers: int
    shape: tuple[int, int]
    formula: Formula
    new_rows: Views
    of_missing: Array
    out: Array


class Room(NamedTuple):
    """What a thread writes again for each group: sums and encodings of all cells, which cells rows of any weight have.

    And for each piece of a group: cells that any row has, and their sums, encodings, and who sees no row of them.
    """

    table: Array
    encodings: Array
    held: Array
    cells: Array
    sums: Array
    values: Array
    unseen: Array


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


@kernel
def count_keys(keys: Keys, rows: RowNumbers, length: int, start: int, stop: int, table: Array) -> None:
    """Count the rows of every cell, fold and class of the keys [start, stop)."""
    set_all(table, 0)
    cells, at = np.empty(ROWS, np.uint32), np.int64(0)
    for key in range(start, stop):
        counts = table[at : at + keys.n_cells[key] * length]
        for begin in range(0, len(rows.within), ROWS):
            own = cells[: min(ROWS, len(rows.within) - begin)]
            number_cells(keys, key, begin, rows.within, length, own)
            for i in range(len(own)):
                counts[np.uint64(own[i])] += np.int32(1)
        at += len(counts)


@kernel
def sum_keys(
    keys: Keys,
    rows: RowNumbers,
    parts: RowParts,
    length: int,
    numbers: int,
    start: int,
    stop: int,
    table: Array,
    held: Array,
) -> None:
    """Sum the rows of every cell, fold and class of the keys [start, stop); the digits of a row are made once for some.

    Where rows have weights, which may be zero, say which sums are of any row.
    """
    set_all(table, 0)
    set_all(held, 0)
    n_rows, room, cells, first_sum = len(rows.within), scratch(), np.empty(BLOCK, np.uint32), np.int64(0)
    slots = np.empty(TOGETHER * BLOCK, np.int64)
    for first in range(start, stop, TOGETHER):
        last = min(first + TOGETHER, stop)
        for begin in range(0, n_rows, BLOCK):
            n, at = min(BLOCK, n_rows - begin), first_sum
            for key in range(first, last):
                number_cells(keys, key, begin, rows.within, length, cells[:n])
                own = slots[(key - first) * n : (key - first + 1) * n]
                for i in range(n):
                    own[i] = (np.int64(cells[i]) + at) * numbers
                for i in range(n if len(held) else 0):
                    held[np.uint64(np.int64(cells[i]) + at)] = 1
                at += keys.n_cells[key] * length
            add_rows(parts, begin, begin + n, 0, room, slots[: (last - first) * n], table)
        for key in range(first, last):
            first_sum += keys.n_cells[key] * length


@kernel
def spread(cells: Array, values: Array, table: Array) -> int:
    """Round the encodings (cells, width) of some cells to the type of a table, and write them there.

    Gives how many the type cannot hold.
    """
    width, lost = values.shape[1], np.int64(0)
    for i in range(len(cells)):
        at = cells[i] * np.uint64(width)
        for k in range(width):
            table[at] = values[i, k]
            lost += np.int64(np.isinf(table[at]) & np.isfinite(values[i, k]))
            at += np.uint64(1)
    return lost  # type: ignore[return-value]


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


@kernel
def look_up_group(
    keys: Keys, views: Array, shape: tuple[int, int], start: int, stop: int, table: Array, out: Array
) -> None:
    """Write the encodings of all rows by the keys [start, stop), from a table of the cells of all of them."""
    cells, at = np.empty(ROWS, np.uint32), np.int64(0)
    for key in range(start, stop):
        encodings = table[at : at + keys.n_cells[key] * shape[0] * shape[1]]
        look_up(keys, key, views, shape, cells, encodings, out[keys.first[key] : keys.first[key] + shape[1]])
        at += len(encodings)


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
    rows: "FoldedRows",
    rule: FusedRule,
    population: PopulationMoments,
    out: KeyEncodings,
    /,
) -> tuple[list[KeyCounts], int]:
    """Write the training encodings of many keys; see `gpu_encode.seam.ops.FusedOps`."""
    batch = batch_of(keys, rows, rule, population, out)
    n_cells, n_rows = batch.keys.n_cells, len(batch.rows.within)
    numbers = n_cells * batch.length * batch.numbers
    parts = shares_of(numbers + n_cells * prod(batch.shape) + ROW_COST * n_rows)
    found: list[list[KeyCounts]] = [[] for _ in parts]
    lost = [0] * len(parts)

    def work(number: int) -> None:
        groups = [*groups_of(numbers, *parts[number])]
        room = room_for(batch, max(int(n_cells[slice(*group)].sum()) for group in groups))
        for group in groups:
            of_group, lost_here = encode_group(batch, *group, room)
            found[number] += of_group
            lost[number] += lost_here

    run(work, len(parts))
    return [of_key for of_share in found for of_key in of_share], sum(lost)


def encode_group(batch: Batch, start: int, stop: int, room: Room) -> tuple[list[KeyCounts], int]:
    """Encode the keys [start, stop); gives what is found of them, and how many encodings the type cannot hold."""
    keys, rows, (n_views, n_outputs) = batch.keys, batch.rows, batch.shape
    ends, length = np.cumsum(keys.n_cells[start:stop]), batch.length * batch.numbers
    n_cells, lost, at_once = int(ends[-1]), 0, len(room.values)
    table, encodings = room.table[: n_cells * length], room.encodings[: n_cells * n_views * n_outputs]
    held = room.held[: n_cells * batch.length]
    if batch.parts is None:
        count_keys(keys, rows, length, start, stop, table)
    else:
        sum_keys(keys, rows, batch.parts, batch.length, batch.numbers, start, stop, table, held)
    found, n_found = room_for_lines(batch, start, stop), 0
    lacking = ends[keys.missing[start:stop] >= 0] - 1 if len(batch.of_missing) else None
    for begin in range(0, n_cells, at_once):
        n = take_cells(batch, begin, min(begin + at_once, n_cells), table, held, room)
        sums, values = freeze(room.sums[: n * length], np.int64), room.values[:n]
        encode_sums(sums, batch.formula, 0, n, values, room.unseen[:n])
        if batch.formula.views.kind == LESS_ONE:
            clear_without_rows(sums, 0, n * n_views, values.reshape(-1, n_outputs))
        if lacking is not None:
            values[np.isin(room.cells[:n], lacking)] = batch.of_missing.reshape(batch.shape)
        lost += spread(room.cells[:n], values.reshape(n, n_views * n_outputs), encodings)
        found.cells[n_found : n_found + n] = room.cells[:n]
        see_new_rows(batch, sums, found.counts[n_found : n_found + n])
        n_found += n
    look_up_group(keys, rows.views, batch.shape, start, stop, encodings, batch.out)
    return [*split_by_key(found, n_found, ends, keys.missing[start:stop])], lost


def take_cells(batch: Batch, begin: int, end: int, table: Array, held: Array, room: Room) -> int:
    """Copy the sums of the cells [begin, end) that any row has; gives how many there are."""
    length = batch.length * batch.numbers
    sums = table[begin * length : end * length]
    if not len(held):
        return int(take_occupied(sums, length, np.uint64(begin), room.sums, room.cells))
    any_row = held[begin * batch.length : end * batch.length].reshape(-1, batch.length).any(axis=1)
    cells = np.flatnonzero(any_row)
    room.cells[: len(cells)] = cells + begin
    room.sums[: len(cells) * length] = sums.reshape(-1, length)[cells].reshape(-1)
    return len(cells)


def room_for_lines(batch: Batch, start: int, stop: int) -> KeyCounts:
    """Give room for what is found of the keys [start, stop); counts of rows take 32 bits."""
    most = int(np.minimum(batch.keys.n_cells[start:stop], len(batch.rows.within)).sum())
    shape = most, batch.length // batch.new_rows.n_folds, batch.numbers
    return KeyCounts(np.empty(most, np.uint32), np.empty(shape, np.int32 if batch.parts is None else np.int64))


def see_new_rows(batch: Batch, sums: Array, seen: Array) -> None:
    """Write what new rows see of some cells, (cells, classes, numbers of a sum)."""
    views, (n, n_classes, numbers) = batch.new_rows, seen.shape
    if views.matrix.all():
        sum_range(sums, views.n_folds, n_classes * numbers, 0, n, seen.reshape(-1))
    else:
        visible_range(sums, n_classes * numbers, views, 0, n, seen.reshape(-1))


def split_by_key(found: KeyCounts, n_found: int, ends: Array, missing: Array) -> Iterator[KeyCounts]:
    """Give what is found of each key of a group, whose cells end at `ends`; `missing` are cells of keys, or -1."""
    stops = np.searchsorted(found.cells[:n_found], ends).tolist()
    first_cells, last_cells, begin = [0, *ends.tolist()], missing.tolist(), 0
    for end, first, last in zip(stops, first_cells, last_cells, strict=False):
        cells, counts = found.cells[begin:end] - np.uint32(first), found.counts[begin:end]
        # Missing values are no category, and have the last line.
        n = len(cells) - (begin < end and int(cells[-1]) == last)
        lines = np.zeros((n + 2, *counts.shape[1:]), counts.dtype)
        lines[:n] = counts[:n]
        if n < len(cells):
            lines[-1] = counts[n]
        yield KeyCounts(cells[:n], lines)
        begin = end


def batch_of(
    keys: "KeyColumns", rows: "FoldedRows", rule: FusedRule, population: PopulationMoments, out: KeyEncodings
) -> Batch:
    """Describe a batch to the threads."""
    prior, n_folds, layout, given = population.prior, len(rows.new_rows), rows.layout, rows.rows
    views = views_of(rows.visibility, n_folds, rows.n_classes)
    counted = layout.width == 1 and given.weight is None
    of_missing = {AS_CATEGORY: np.zeros(0), AS_PRIOR: prior.reshape(-1), AS_NAN: np.full(prior.size, np.nan)}
    return Batch(
        keys_of(keys, out.first),
        row_numbers(rows, views),
        None if counted else parts_of(given, layout),
        n_folds * rows.n_classes,
        layout.width,
        (views.n_views, prior.shape[1]),
        formula_of(layout, rows.n_classes, views, rule.blend, population),
        views_of(rows.new_rows[None], n_folds),
        of_missing[rule.missing],
        out.values,
    )


def keys_of(keys: "KeyColumns", first: Sequence[int]) -> Keys:
    """Describe keys to the kernels."""
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


def row_numbers(rows: "FoldedRows", views: Views) -> RowNumbers:
    """Number the fold and class of each row, and its view: its fold, or its class where each row is left out."""
    folds, classes = rows.folds, rows.rows.classes
    n_rows = len(np.asarray(rows.rows.target if classes is None else classes))
    if folds is None:
        folds = np.zeros(n_rows, np.int32)
    elif not isinstance(folds, np.ndarray):
        folds = fold_numbers(folds, 0, n_rows)
    within = folds if classes is None else folds * rows.n_classes + classes
    within, view = within.astype(np.uint16), classes if views.kind == LESS_ONE else folds
    return RowNumbers(within, within if view is None else view.astype(np.uint16))


def room_for(batch: Batch, n_cells: int) -> Room:
    """Give room for groups of at most so many cells."""
    n_views, n_outputs = batch.shape
    length = batch.length * batch.numbers
    counted, weighted = batch.parts is None, batch.parts is not None and batch.parts.numbers.weight_kind
    at_once = min(max(PIECE // length, 1), n_cells)
    return Room(
        empty(n_cells * length, np.int32 if counted else np.int64),
        empty(n_cells * n_views * n_outputs, batch.out.dtype),
        empty(n_cells * batch.length if weighted else 0, np.uint8),
        # There is room for one more, which is written before it is known whether any row has it.
        np.empty(at_once + 1, np.uint64),
        np.empty((at_once + 1) * length, np.int64),
        np.empty((at_once, n_views, n_outputs)),
        np.empty((at_once, n_views), np.bool_),
    )


def groups_of(sizes: Array, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Split the keys [start, stop) into groups of at most GROUP numbers, or of one key."""
    while start < stop:
        end = start + max(1, int(np.searchsorted(np.cumsum(sizes[start:stop]), GROUP, side="right")))
        yield start, end
        start = end


def shares_of(costs: Array) -> list[tuple[int, int]]:
    """Split keys into ranges of about equal cost, one for each thread."""
    total = np.cumsum(costs)
    number = min(threads(), len(costs))
    edges = np.searchsorted(total, total[-1] * np.arange(1, number) / number, side="right") if number > 1 else []
    return [(start, stop) for start, stop in pairwise([0, *map(int, edges), len(costs)]) if start < stop]
