"""Exact counts and sums per (category, fold, class) cell, in one pass over the rows."""

from typing import TYPE_CHECKING

import numpy as np

from cpu_fallback.compiled.addition import add_rows
from cpu_fallback.compiled.border import (
    BLOCK,
    NO_FOLDS,
    Array,
    FoldSource,
    Numbers,
    codes_of,
    fold_source,
    kernel,
    measures_of,
    numbers_of,
)
from cpu_fallback.compiled.digits import scratch
from cpu_fallback.compiled.folds import fill_folds, fold_room
from cpu_fallback.compiled.threads import run, shares, threads
from cpu_fallback.memory import empty

if TYPE_CHECKING:
    from gpu_encode.cells import Folds, Layout, Rows


@kernel
def fill_slots(
    codes: Array,
    classes: Array,
    source: FoldSource,
    start: int,
    steps: tuple[int, int, int],
    n_lines: int,
    folds: Array,
    room: tuple[Array, Array, Array],
    slots: Array,
) -> None:
    """Write where each row's cell begins; negative codes count from the end of the table."""
    by_code, by_fold, by_class = steps
    given = codes[start : start + len(slots)]
    for i in range(len(slots)):
        code = np.int64(given[i])
        slots[i] = (code + n_lines if code < 0 else code) * by_code
    if source.kind != NO_FOLDS:
        fill_folds(source, start, folds[: len(slots)], room)
        for i in range(len(slots)):
            slots[i] += folds[i] * by_fold
    if len(classes):
        labels = classes[start : start + len(slots)]
        for i in range(len(slots)):
            slots[i] += labels[i] * by_class


@kernel
def accumulate_range(
    codes: Array,
    classes: Array,
    source: FoldSource,
    numbers: Numbers,
    measures: Array,
    steps: tuple[int, int, int],
    n_lines: int,
    start: int,
    stop: int,
    cells: Array,
) -> None:
    """Write the sums of the rows [start, stop) to the cells, whatever these hold."""
    cells[:] = 0
    room, fold_state = scratch(), fold_room()
    folds, slots = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int64)
    for begin in range(start, stop, BLOCK):
        end = min(begin + BLOCK, stop)
        fill_slots(codes, classes, source, begin, steps, n_lines, folds, fold_state, slots[: end - begin])
        add_rows(numbers, measures, begin, end, 0, room, slots[: end - begin], cells)


@kernel
def add_range(cells: Array, other: Array, start: int, stop: int) -> None:
    """Add another thread's table."""
    mine, theirs = cells[start:stop], other[start:stop]
    for i in range(len(mine)):
        mine[i] += theirs[i]


def accumulate(
    rows: "Rows", n_categories: int, folds: "Folds", n_folds: int, n_classes: int, layout: "Layout", /
) -> Array:
    """Add every row to its cell; gives (n_categories + 2, n_folds, n_classes, layout.width) digits."""
    width = layout.width
    shape = (n_categories + 2, n_folds, n_classes, width)
    fixed = (
        codes_of(rows.codes),
        codes_of(rows.classes),
        fold_source(folds),
        numbers_of(rows),
        measures_of(layout),
        (n_folds * n_classes * width, n_classes * width, width),
        n_categories + 2,
    )
    size = int(np.prod(shape))
    parts = shares(len(rows.codes), tables(size, len(rows.codes)))
    cells = [empty(size, np.int64) for _ in parts]
    run(lambda share: accumulate_range(*fixed, *parts[share], cells[share]), len(parts))
    ranges = shares(size)
    for other in cells[1:]:
        run(lambda share, other=other: add_range(cells[0], other, *ranges[share]), len(ranges))  # type: ignore[misc]
    return cells[0].reshape(shape)


def tables(size: int, n_rows: int) -> int:
    """Give how many tables, one for each thread, pay: clearing and adding a cell costs about as much as half a row."""
    return min(threads(), 1 + n_rows // size)
