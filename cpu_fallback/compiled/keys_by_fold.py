"""Training encodings of many keys by fold: each thread sums, encodes and looks up a group of keys at a time."""

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.compiled.blending import Formula, clear_without_rows, encode_sums, formula_of
from cpu_fallback.compiled.border import Array, kernel, stage
from cpu_fallback.compiled.key_sums import (
    ROW_COST,
    ROWS,
    Keys,
    Summing,
    SumRoom,
    groups_of,
    number_cells,
    room_for_lines,
    room_for_sums,
    shares_of,
    split_by_key,
    sum_cells,
    summing_of,
    take_pieces,
)
from cpu_fallback.compiled.threads import run
from cpu_fallback.compiled.views import LESS_ONE, Views, sum_range, views_of, visible_range
from cpu_fallback.fused_rules import AS_CATEGORY, AS_NAN, AS_PRIOR, FusedRule, PopulationMoments
from cpu_fallback.memory import empty
from cpu_fallback.types import MISSING, KeyCounts, KeyEncodings

if TYPE_CHECKING:
    from cpu_fallback.fused_rules import FoldedRows
    from cpu_fallback.types import Codes, KeyColumns


class Batch(NamedTuple):
    """The arguments that all threads read.

    A cell has encodings of `shape` (views, outputs), and `views` is the view of each row.  `of_missing` are the
    encodings of missing values, if these are no category; else it is empty.  `new_rows` is None if new rows see all.
    """

    summing: Summing
    views: Array
    shape: tuple[int, int]
    formula: Formula
    new_rows: Views | None
    n_classes: int
    of_missing: Array
    out: Array


class Room(NamedTuple):
    """Memory that a thread uses again for each group of keys: sums, and the encodings of all cells.

    `values` are the encodings of one piece of the group, and `unseen` says which of them no visible row has.
    """

    sums: SumRoom
    encodings: Array
    values: Array
    unseen: Array


@kernel
def spread(cells: Array, values: Array, table: Array) -> int:
    """Round the encodings (cells, width) of some cells to the type of a table, and write them there.

    The result is the number of encodings that the type cannot hold.
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
def take_encodings(cells: Array, table: Array, start: int, out: Array) -> None:
    """Write the encodings of the rows from `start` on, out (outputs, rows), by their cells."""
    n_outputs = len(out)
    for output in range(n_outputs):
        line = out[output, start : start + len(cells)]
        if n_outputs == 1:
            for i in range(len(cells)):
                line[i] = table[np.uint64(cells[i])]
        else:
            for i in range(len(cells)):
                line[i] = table[np.uint64(cells[i]) * np.uint64(n_outputs) + np.uint64(output)]


@kernel
def look_up_group(
    keys: Keys, views: Array, shape: tuple[int, int], start: int, stop: int, table: Array, out: Array
) -> None:
    """Write the encodings of all rows by the keys [start, stop), from one table with the cells of all these keys."""
    (n_views, n_outputs), at = shape, np.int64(0)
    cells = np.empty(ROWS, np.uint32)
    for key in range(start, stop):
        encodings = table[at : at + keys.n_cells[key] * n_views * n_outputs]
        lines = out[keys.first[key] : keys.first[key] + n_outputs]
        for begin in range(0, len(views), ROWS):
            own = cells[: min(ROWS, len(views) - begin)]
            number_cells(keys, key, begin, views, n_views, own)
            take_encodings(own, encodings, begin, lines)
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
    summing, n_cells = batch.summing, batch.summing.keys.n_cells
    sizes = n_cells * summing.length * summing.numbers
    parts = shares_of(sizes + n_cells * prod(batch.shape) + ROW_COST * len(batch.views))
    found: list[list[KeyCounts]] = [[] for _ in parts]
    lost = [0] * len(parts)

    def work(number: int) -> None:
        groups = [*groups_of(sizes, *parts[number])]
        room = room_for(batch, max(int(n_cells[slice(*group)].sum()) for group in groups))
        for group in groups:
            of_group, lost_here = encode_group(batch, *group, room)
            found[number] += of_group
            lost[number] += lost_here

    run(work, len(parts))
    return [of_key for of_share in found for of_key in of_share], sum(lost)


def encode_group(batch: Batch, start: int, stop: int, room: Room) -> tuple[list[KeyCounts], int]:
    """Encode the keys [start, stop); give their counts, and the number of encodings that the type cannot hold."""
    summing, (n_views, n_outputs), lost, n_found = batch.summing, batch.shape, 0, 0
    keys, n_cells = summing.keys, sum_cells(summing, start, stop, room.sums)
    encodings = room.encodings[: n_cells * n_views * n_outputs]
    found = room_for_lines(summing, start, stop, batch.n_classes)
    ends = np.cumsum(keys.n_cells[start:stop])
    of_cell = batch.n_classes * summing.numbers
    lacking = ends[keys.missing[start:stop] >= 0] - 1 if len(batch.of_missing) else None
    for cells, sums in take_pieces(summing, n_cells, room.sums):
        n = len(cells)
        values = room.values[:n]
        encode_sums(sums, batch.formula, 0, n, values, room.unseen[:n])
        if batch.formula.views.kind == LESS_ONE:
            clear_without_rows(sums, 0, n * n_views, values.reshape(-1, n_outputs))
        if lacking is not None:
            values[np.isin(cells, lacking)] = batch.of_missing.reshape(batch.shape)
        lost += spread(cells, values.reshape(n, n_views * n_outputs), encodings)
        found.cells[n_found : n_found + n] = cells
        seen = found.counts[n_found : n_found + n].reshape(-1)
        if batch.new_rows is None:
            sum_range(sums, summing.length // batch.n_classes, of_cell, 0, n, seen)
        else:
            visible_range(sums, of_cell, batch.new_rows, 0, n, seen)
        n_found += n
    look_up_group(keys, batch.views, batch.shape, start, stop, encodings, batch.out)
    return [*split_by_key(keys, start, stop, found, n_found)], lost


def batch_of(
    keys: "KeyColumns", rows: "FoldedRows", rule: FusedRule, population: PopulationMoments, out: KeyEncodings
) -> Batch:
    """Describe a batch to the threads."""
    prior, n_folds, classes = population.prior, len(rows.new_rows), rows.rows.classes
    views, summing = views_of(rows.visibility, n_folds, rows.n_classes), summing_of(keys, rows, out.first)
    of_missing = {AS_CATEGORY: np.zeros(0), AS_PRIOR: prior.reshape(-1), AS_NAN: np.full(prior.size, np.nan)}
    # A row that is left out sees the same as all other rows of its class.
    return Batch(
        summing,
        classes.astype(np.uint16) if classes is not None and views.kind == LESS_ONE else summing.folds,
        (views.n_views, prior.shape[1]),
        formula_of(rows.layout, rows.n_classes, views, rule.blend, population),
        None if rows.new_rows.all() else views_of(rows.new_rows[None], n_folds),
        rows.n_classes,
        of_missing[rule.missing],
        out.values,
    )


def room_for(batch: Batch, n_cells: int) -> Room:
    """Allocate memory for groups of at most `n_cells` cells."""
    n_views, n_outputs = batch.shape
    sums = room_for_sums(batch.summing, n_cells)
    at_once = len(sums.cells) - 1
    return Room(
        sums,
        empty(n_cells * n_views * n_outputs, batch.out.dtype),
        np.empty((at_once, n_views, n_outputs)),
        np.empty((at_once, n_views), np.bool_),
    )
