"""The gain that each of many conjunctions adds to an additive model: each thread sums and scores keys of its own.

A row's cell is the mixed-radix number of its fold and of its codes in the key's columns, so that no row is sorted or
hashed.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.compiled.border import Array, counting, freeze, kernel, set_all, stage
from cpu_fallback.compiled.conjunctions import GAIN, gain_of, room_for_view, see_view
from cpu_fallback.compiled.key_sums import ROW_COST, ROWS, Keys, join_codes, keys_of, shares_of
from cpu_fallback.compiled.threads import run

if TYPE_CHECKING:
    from cpu_fallback.types import FoldedResponses, KeyColumns

# A category costs in each view about as much as eight numbers in a table.
VIEW_COST = 8


class Model(NamedTuple):
    """Responses h * z and information h of the rows, and how keys are scored; h is empty if it is the same in all rows.

    View v sees all folds but hidden[v, :n_hidden[v]]; its gain is that of fold v, and the last view has no gain.
    """

    information: Array
    moved: Array
    n_folds: int
    hidden: Array
    n_hidden: Array
    ridge: float
    numbers: Array


@stage
def sum_rows(keys: Keys, key: int, model: Model, cells: Array, own: Array) -> None:
    """Sum h and h * z of the rows by fold and cell."""
    set_all(own, 0)
    for start in range(0, len(model.moved), ROWS):
        moved = model.moved[start : start + ROWS]
        of_rows = cells[: len(moved)]
        join_codes(keys, key, start, of_rows)
        if len(model.information):
            information = model.information[start : start + ROWS]
            for i in range(len(moved)):
                at = np.uint64(of_rows[i]) << np.uint64(1)
                own[at] += information[i]
                own[at + np.uint64(1)] += moved[i]
        else:
            for i in range(len(moved)):
                at = np.uint64(of_rows[i]) << np.uint64(1)
                own[at] += np.int64(1)
                own[at + np.uint64(1)] += moved[i]


@stage
def count_folds(own: Array, n_folds: int, counts: Array) -> None:
    """Count the folds in which each cell has weight."""
    set_all(counts, 0)
    at = np.uint64(0)
    for _ in range(n_folds):
        for cell in range(len(counts)):
            counts[cell] += np.int32(own[at] > 0)
            at += np.uint64(2)


@stage
def leave_out(keys: Keys, key: int, absent: Array, counts: Array) -> None:
    """Leave out the cells of rows that have no category in one of the key's columns."""
    inner = np.int64(1)
    for k in range(keys.ends[key + 1] - 1, keys.ends[key], -1):
        column = keys.members[k]
        radix = keys.radix[column]
        if absent[column] >= 0:
            outer = inner * radix
            for begin in range(absent[column] * inner, len(counts), outer):
                for cell in range(begin, begin + inner):
                    counts[cell] = 0
        inner *= radix


@stage
def list_shared(counts: Array, cells: Array) -> tuple[int, int]:
    """List the cells that several folds share; give the number of these cells, and of cells with rows."""
    shared, occupied = np.uint64(0), np.int64(0)
    for cell in range(len(counts)):
        cells[shared] = cell
        shared += np.uint64(counts[cell] > 1)
        occupied += np.int64(counts[cell] > 0)
    return np.int64(shared), occupied  # type: ignore[return-value]


@stage
def keep_shared(cells: Array, n_cells: int, n_folds: int, own: Array, totals: Array) -> None:
    """Move the sums of the listed cells to the front, fold after fold, and add them up over folds."""
    set_all(totals, 0)
    to = np.uint64(0)
    for fold in range(n_folds):
        begin = np.uint64(fold * n_cells)
        for i in range(len(cells)):
            at, j = np.uint64(2) * (begin + np.uint64(cells[i])), np.uint64(2 * i)
            weight, moved = own[at], own[at + np.uint64(1)]
            own[to], own[to + np.uint64(1)] = weight, moved
            totals[j] += weight
            totals[j + np.uint64(1)] += moved
            to += np.uint64(2)


@stage
def name_members(keys: Keys, key: int, cells: Array, at: Array, first: Array) -> None:
    """Write for each column, one after the other, the category of every cell."""
    first[0], inner = 0, np.uint32(1)
    for part in range(len(at)):
        first[part + 1] = first[part] + keys.radix[keys.members[keys.ends[key] + 1 + part]]
    for part in range(len(at) - 1, -1, -1):
        radix, line, offset = np.uint32(first[part + 1] - first[part]), at[part], np.int32(first[part])
        for i in range(len(cells)):
            line[i] = np.int32((np.uint32(cells[i]) // inner) % radix) + offset
        inner *= radix


@counting
def score_cells(keys: Keys, key: int, model: Model, cells: Array, n_cells: int, own: Array, found: Array) -> None:
    """Write gain, spread, freedom and sum of W of every view, from the listed cells."""
    n_parts, n = keys.ends[key + 1] - keys.ends[key] - 1, len(cells)
    totals, at, first = np.empty(2 * n, np.int64), np.empty((n_parts, n), np.int32), np.empty(n_parts + 1, np.int64)
    keep_shared(cells, n_cells, model.n_folds, own, totals)
    name_members(keys, key, cells, at, first)
    room, nothing = room_for_view(n, n_parts, first[n_parts]), np.empty(0)
    for view in range(len(found)):
        hidden = model.hidden[view, : model.n_hidden[view]]
        variance = see_view(own, totals, hidden, at, first, model.numbers, room, found[view])
        if view < model.n_folds and (model.ridge >= 0 or variance > 0):
            of_fold = own[2 * n * view : 2 * n * (view + 1)]
            found[view, GAIN] = gain_of(of_fold, room.weight, room.score, variance, model.ridge, model.numbers, nothing)


@kernel
def score_range(
    keys: Keys,
    model: Model,
    absent: Array,
    start: int,
    stop: int,
    own: Array,
    counts: Array,
    cells: Array,
    found: Array,
    occupied: Array,
) -> None:
    """Score the keys [start, stop), and count the cells that have rows."""
    of_rows = np.empty(ROWS, np.uint32)
    for key in range(start, stop):
        n_cells = keys.n_cells[key] // model.n_folds
        sums, folds = own[: 2 * keys.n_cells[key]], counts[:n_cells]
        sum_rows(keys, key, model, of_rows, sums)
        count_folds(sums, model.n_folds, folds)
        leave_out(keys, key, absent, folds)
        n, occupied[key] = list_shared(folds, cells)
        if n > 0:
            score_cells(keys, key, model, cells[:n], n_cells, sums, found[key])


def score_conjunctions(
    keys: "KeyColumns",
    absent: Sequence[int],
    rows: "FoldedResponses",
    ridge: float,
    numbers: Sequence[float],
    /,
) -> tuple[Array, Array]:
    """Give the gain that each of many conjunctions adds, and its categories; see `gpu_encode.seam.ops.FusedOps`."""
    n_folds, n_rows = len(rows.visibility), len(rows.response)
    information = np.zeros(0, np.int64) if rows.information is None else rows.information
    visibility = np.vstack([rows.visibility, np.ones((1, n_folds), np.int64)])
    model = Model(
        freeze(information, np.int64),
        freeze(rows.response if rows.information is None else rows.information * rows.response, np.int64),
        n_folds,
        freeze(np.argsort(visibility, axis=1, kind="stable"), np.int64),
        freeze((visibility == 0).sum(axis=1), np.int64),
        float(ridge),
        freeze(np.asarray(numbers), np.float64),
    )
    given, without = keys_of(keys, [0] * len(keys.members)), np.array(absent, np.int64)
    found, occupied = np.zeros((len(keys.members), n_folds + 1, 4)), np.zeros(len(keys.members), np.int64)
    parts = shares_of(VIEW_COST * given.n_cells + ROW_COST * n_rows)

    def work(number: int) -> None:
        start, stop = parts[number]
        most = int(given.n_cells[start:stop].max())
        counts, cells = np.empty(most // n_folds, np.int32), np.empty(most // n_folds + 1, np.int64)
        score_range(given, model, without, start, stop, np.empty(2 * most, np.int64), counts, cells, found, occupied)

    run(work, len(parts))
    return found, occupied
