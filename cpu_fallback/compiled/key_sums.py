"""Sums of the rows of many keys by cell, fold and class: each thread sums a group of keys at a time.

The cell of a row is the mixed-radix number of its codes in the key's columns, so that no row is sorted or hashed.
The cells of a group are those of its keys, key after key.  Cells that no row has are left out once rows are summed.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.compiled.addition import add_rows
from cpu_fallback.compiled.border import (
    BLOCK,
    NO_CODES,
    Array,
    RowParts,
    freeze,
    kernel,
    parts_of,
    separate,
    set_all,
    stage,
)
from cpu_fallback.compiled.digits import scratch
from cpu_fallback.compiled.folds import fold_numbers
from cpu_fallback.compiled.sums import take_occupied
from cpu_fallback.compiled.threads import run, threads
from cpu_fallback.memory import empty
from cpu_fallback.types import KeyCounts

if TYPE_CHECKING:
    from cpu_fallback.fused_rules import FoldedRows
    from cpu_fallback.types import Folds, KeyColumns

# Rows whose cells are found at a time, and keys for which the digits of rows are made once.
ROWS, TOGETHER = 1024, 8
# The most numbers in the sums of a group, unless one key has more; and in the sums that are copied at a time.
GROUP, PIECE = 1 << 18, 1 << 16
# A row of a key costs as much as two numbers in its tables.
ROW_COST = 2
NO_BYTES = freeze(np.zeros(0, np.uint8), np.uint8)


class Keys(NamedTuple):
    """Codes, column after column, and the number of codes that each column has; columns of all keys, key after key.

    The codes are in `narrow` if those of all columns fit one byte, else in `codes`; the other array is empty.  The
    columns of key k are members[ends[k]:ends[k + 1]].  `missing` is the key's last cell if that cell is for missing
    values that are no category, else -1; `first` is the line of the key's first encodings in the output.
    """

    codes: Array
    narrow: Array
    radix: Array
    members: Array
    ends: Array
    missing: Array
    n_cells: Array
    first: Array


class Summing(NamedTuple):
    """The arrays from which the rows of keys are summed.

    A cell has `length` sums (folds * classes) of `numbers` int64 each.  `folds` is the fold of each row, and `within`
    says which sum of its cell the row belongs to.  `parts` are None if rows are only counted.
    """

    keys: Keys
    folds: Array
    within: Array
    parts: RowParts | None
    length: int
    numbers: int


class SumRoom(NamedTuple):
    """Memory that a thread uses again for each group: the sums of all cells, and which of them have a row.

    `cells` and `sums` are the cells that have a row, and their sums, of one piece of the group.
    """

    table: Array
    held: Array
    cells: Array
    sums: Array


@stage
def join_column(codes: Array, radix: np.uint32, is_first: bool, cells: Array) -> None:
    """Write the codes of the key's first column, or join those of another column to the cells."""
    if is_first:
        for i in range(len(cells)):
            cells[i] = codes[i]
    else:
        for i in range(len(cells)):
            cells[i] = cells[i] * radix + np.uint32(codes[i])


@separate
def join_codes(keys: Keys, key: int, start: int, cells: Array) -> None:
    """Write the mixed-radix number of the codes of the rows from `start` on, in the key's columns."""
    begin, end, n = keys.ends[key], keys.ends[key + 1], len(cells)
    n_rows = (len(keys.codes) + len(keys.narrow)) // len(keys.radix)
    for k in range(begin, end):
        at, radix = keys.members[k] * n_rows + start, np.uint32(keys.radix[keys.members[k]])
        if len(keys.narrow):
            join_column(keys.narrow[at : at + n], radix, k == begin, cells)
        else:
            join_column(keys.codes[at : at + n], radix, k == begin, cells)


@stage
def number_cells(keys: Keys, key: int, start: int, within: Array, length: int, cells: Array) -> None:
    """Write cell * length + within of the rows from `start` on."""
    join_codes(keys, key, start, cells)
    inner, factor = within[start : start + len(cells)], np.uint32(length)
    for i in range(len(cells)):
        cells[i] = cells[i] * factor + inner[i]


@kernel
def count_group(keys: Keys, within: Array, length: int, start: int, stop: int, table: Array) -> None:
    """Count the rows of the keys [start, stop) by cell, fold and class."""
    set_all(table, 0)
    cells, at = np.empty(ROWS, np.uint32), np.int64(0)
    for key in range(start, stop):
        counts = table[at : at + keys.n_cells[key] * length]
        for begin in range(0, len(within), ROWS):
            own = cells[: min(ROWS, len(within) - begin)]
            number_cells(keys, key, begin, within, length, own)
            for i in range(len(own)):
                counts[np.uint64(own[i])] += np.int32(1)
        at += len(counts)


@kernel
def sum_group(
    keys: Keys,
    within: Array,
    parts: RowParts,
    length: int,
    numbers: int,
    start: int,
    stop: int,
    table: Array,
    held: Array,
) -> None:
    """Sum the rows of the keys [start, stop) by cell, fold and class; digits of a row are made once for several keys.

    If rows have weights, which may be zero, `held` becomes 1 for each sum that has a row.
    """
    set_all(table, 0)
    set_all(held, 0)
    n_rows, room, cells, first_sum = len(within), scratch(), np.empty(BLOCK, np.uint32), np.int64(0)
    slots = np.empty(TOGETHER * BLOCK, np.int64)
    for first in range(start, stop, TOGETHER):
        last = min(first + TOGETHER, stop)
        for begin in range(0, n_rows, BLOCK):
            n, at = min(BLOCK, n_rows - begin), first_sum
            for key in range(first, last):
                number_cells(keys, key, begin, within, length, cells[:n])
                own = slots[(key - first) * n : (key - first + 1) * n]
                for i in range(n):
                    own[i] = (np.int64(cells[i]) + at) * numbers
                for i in range(n if len(held) else 0):
                    held[np.uint64(np.int64(cells[i]) + at)] = 1
                at += keys.n_cells[key] * length
            add_rows(parts, begin, begin + n, 0, room, slots[: (last - first) * n], table)
        for key in range(first, last):
            first_sum += keys.n_cells[key] * length


def sum_cells(summing: Summing, start: int, stop: int, room: SumRoom) -> int:
    """Sum the rows of the keys [start, stop), and give the number of cells."""
    keys, within, parts, length, numbers = summing.keys, summing.within, summing.parts, summing.length, summing.numbers
    n_cells = int(keys.n_cells[start:stop].sum())
    table, held = room.table[: n_cells * length * numbers], room.held[: n_cells * length]
    if parts is None:
        count_group(keys, within, length, start, stop, table)
    else:
        sum_group(keys, within, parts, length, numbers, start, stop, table, held)
    return n_cells


def take_pieces(summing: Summing, n_cells: int, room: SumRoom) -> Iterator[tuple[Array, Array]]:
    """Give the cells of a group that have a row, and their sums, piece by piece; each piece overwrites the last one."""
    length, at_once = summing.length * summing.numbers, len(room.cells) - 1
    for begin in range(0, n_cells, at_once):
        end = min(begin + at_once, n_cells)
        sums = room.table[begin * length : end * length]
        if len(room.held):
            held = room.held[begin * summing.length : end * summing.length]
            cells = np.flatnonzero(held.reshape(-1, summing.length).any(axis=1))
            n = len(cells)
            room.cells[:n] = cells + begin
            room.sums[: n * length] = sums.reshape(-1, length)[cells].reshape(-1)
        else:
            n = int(take_occupied(sums, length, np.uint64(begin), room.sums, room.cells))
        yield room.cells[:n], freeze(room.sums[: n * length], np.int64)


def sum_keys(keys: "KeyColumns", rows: "FoldedRows", /) -> list[KeyCounts]:
    """Sum the rows of many keys by fold and class; see `gpu_encode.seam.ops.FusedOps`."""
    summing = summing_of(keys, rows, [0] * len(keys.members))
    n_cells, shape = summing.keys.n_cells, (summing.length, summing.numbers)
    sizes = n_cells * prod(shape)
    parts = shares_of(sizes + ROW_COST * len(summing.within))
    found: list[list[KeyCounts]] = [[] for _ in parts]

    def work(number: int) -> None:
        groups = [*groups_of(sizes, *parts[number])]
        room = room_for_sums(summing, max(int(n_cells[slice(*group)].sum()) for group in groups))
        for group in groups:
            of_group, n = room_for_lines(summing, *group, summing.length), 0
            for cells, sums in take_pieces(summing, sum_cells(summing, *group, room), room):
                of_group.cells[n : n + len(cells)] = cells
                of_group.counts[n : n + len(cells)] = sums.reshape(-1, *shape)
                n += len(cells)
            found[number] += split_by_key(summing.keys, *group, of_group, n)

    run(work, len(parts))
    return [of_key for of_share in found for of_key in of_share]


def room_for_sums(summing: Summing, n_cells: int) -> SumRoom:
    """Allocate memory for groups of at most `n_cells` cells."""
    length, parts = summing.length * summing.numbers, summing.parts
    is_weighted = parts is not None and parts.numbers.weight_kind
    at_once = min(max(PIECE // length, 1), n_cells)
    return SumRoom(
        empty(n_cells * length, np.int32 if parts is None else np.int64),
        empty(n_cells * summing.length if is_weighted else 0, np.uint8),
        # There is room for one more cell, which is written before it is known whether any row has it.
        np.empty(at_once + 1, np.uint64),
        np.empty((at_once + 1) * length, np.int64),
    )


def room_for_lines(summing: Summing, start: int, stop: int, n_sums: int) -> KeyCounts:
    """Allocate memory for cells of the keys [start, stop), and `n_sums` sums of each; counts of rows take 32 bits."""
    most = int(np.minimum(summing.keys.n_cells[start:stop], len(summing.within)).sum())
    counts = np.empty((most, n_sums, summing.numbers), np.int32 if summing.parts is None else np.int64)
    return KeyCounts(np.empty(most, np.uint32), counts)


def split_by_key(keys: Keys, start: int, stop: int, found: KeyCounts, n_found: int) -> Iterator[KeyCounts]:
    """Give the counts of each of the keys [start, stop)."""
    n_cells, missing = keys.n_cells[start:stop], keys.missing[start:stop]
    ends = np.cumsum(n_cells)
    stops = np.searchsorted(found.cells[:n_found], ends)
    n_of_key = np.diff(stops, prepend=0)
    cells = found.cells[:n_found] - np.repeat(ends - n_cells, n_of_key).astype(np.uint32)
    # Missing values are no category, and have the last line.
    lacking = (n_of_key > 0) & (missing >= 0)
    lacking[lacking] = cells[stops[lacking] - 1] == missing[lacking]
    known = n_of_key - lacking
    # The keys of a group share two arrays: to make some for each key takes longer than to fill them.
    lines = np.zeros((int(known.sum()) + 2 * len(known), *found.counts.shape[1:]), found.counts.dtype)
    begin = at = 0
    for n, is_lacking, end in zip(known.tolist(), lacking.tolist(), stops.tolist(), strict=True):
        lines[at : at + n] = found.counts[begin : begin + n]
        if is_lacking:
            lines[at + n + 1] = found.counts[end - 1]
        yield KeyCounts(cells[begin : begin + n], lines[at : at + n + 2])
        begin, at = end, at + n + 2


def narrow_folds(folds: "Folds", n_rows: int) -> Array:
    """Give the fold of each row in 16 bits, which also hold folds * classes; 0 if there are no folds."""
    if folds is None:
        return np.zeros(n_rows, np.uint16)
    return (folds if isinstance(folds, np.ndarray) else fold_numbers(folds, 0, n_rows)).astype(np.uint16)


def summing_of(keys: "KeyColumns", rows: "FoldedRows", first: Sequence[int]) -> Summing:
    """Describe keys and rows to the kernels; `first` are the lines of the keys' first encodings."""
    given, layout, folds = rows.rows, rows.layout, narrow_folds(rows.folds, keys.codes.shape[1])
    within = folds
    if given.classes is not None:
        within = folds * np.uint16(rows.n_classes) + given.classes.astype(np.uint16)
    is_counted = layout.width == 1 and given.weight is None
    return Summing(
        keys_of(keys, first),
        folds,
        within,
        None if is_counted else parts_of(given, layout),
        len(rows.new_rows) * rows.n_classes,
        layout.width,
    )


def keys_of(keys: "KeyColumns", first: Sequence[int]) -> Keys:
    """Describe keys to the kernels."""
    members = np.array([column for of_key in keys.members for column in of_key], np.int64)
    ends = np.array([0, *accumulate(map(len, keys.members))], np.int64)
    n_cells = np.array(keys.n_cells, np.int64)
    return Keys(
        *by_width(keys.codes),
        np.array(keys.sizes, np.int64),
        members,
        ends,
        np.array(keys.missing, np.int64),
        n_cells,
        np.array(first, np.int64),
    )


def by_width(codes: Array) -> tuple[Array, Array]:
    """Give codes of four bytes and codes of one, column after column: one of the two arrays is empty."""
    given = freeze(codes, codes.dtype).reshape(-1)
    return (NO_CODES, given) if given.dtype == np.uint8 else (given, NO_BYTES)


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
