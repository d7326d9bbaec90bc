"""Exact counts and sums for each cell of category, fold and class, in one pass over the rows."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.compiled.addition import add_rows
from cpu_fallback.compiled.border import (
    BLOCK,
    NO_FOLDS,
    Array,
    FoldSource,
    Numbers,
    RowParts,
    codes_of,
    fold_source,
    freeze,
    kernel,
    measures_of,
    numbers_of,
    parts_of,
    raw,
    set_all,
    stage,
    wide,
)
from cpu_fallback.compiled.categories import factorize
from cpu_fallback.compiled.digits import scratch
from cpu_fallback.compiled.folds import fill_folds, fold_room
from cpu_fallback.compiled.ranges import guess_range, word_of
from cpu_fallback.compiled.threads import run, shares, threads
from cpu_fallback.memory import empty
from cpu_fallback.types import SumsByNumber, SumShape

if TYPE_CHECKING:
    from cpu_fallback.types import Folds, Layout, Rows


# Sums for all numbers of a range are used if they take less memory than a code for each row.
NUMBERS_PER_ROW = 0.5
# Reading all rows again gains time from this number of rows on, and for few threads.
LEAST_SHARED, MOST_READERS = 1 << 16, 4
NO_ROWS = np.empty(0, np.uint64)


@stage
def add_classes(classes: Array, start: int, by_class: int, slots: Array) -> None:
    """Move each slot from the beginning of the row's category to its class, if rows have classes."""
    if len(classes):
        labels = classes[start : start + len(slots)]
        for i in range(len(slots)):
            slots[i] += labels[i] * by_class


@stage
def fill_slots(
    rows: RowParts,
    source: FoldSource,
    start: int,
    steps: tuple[int, int, int],
    n_lines: int,
    folds: Array,
    room: tuple[Array, Array, Array],
    slots: Array,
) -> None:
    """Write the index at which each row's cell begins; negative codes count from the end of the table."""
    by_code, by_fold, by_class = steps
    given = rows.codes[start : start + len(slots)]
    for i in range(len(slots)):
        code = np.int64(given[i])
        slots[i] = (code + n_lines if code < 0 else code) * by_code
    if source.kind != NO_FOLDS:
        fill_folds(source, start, folds[: len(slots)], room)
        for i in range(len(slots)):
            slots[i] += folds[i] * by_fold
    add_classes(rows.classes, start, by_class, slots)


class Picked(NamedTuple):
    """Target and weight of the rows of a block that a thread adds, and these rows in the form that stages read."""

    target: Array
    weight: Array
    rows: RowParts


@stage
def pick_rows(given: Numbers, start: int, first: int, last: int, slots: Array, picked: Picked) -> int:
    """Copy the rows of a block whose cells are in [first, last) to the front, with their slots; give their number."""
    count = np.uint64(0)
    for i in range(len(slots)):
        slot, row = slots[i], np.uint64(start + i)
        slots[count] = slot
        if given.target_kind:
            picked.target[count] = given.target[row]
        if given.weight_kind:
            picked.weight[count] = given.weight[row]
        count += np.uint64(first <= slot < last)
    return np.int64(count)  # type: ignore[return-value]


@kernel
def accumulate_range(
    rows: RowParts,
    source: FoldSource,
    steps: tuple[int, int, int],
    n_lines: int,
    start: int,
    stop: int,
    lines: tuple[int, int],
    picked: Picked,
    is_new: bool,
    accumulators: Array,
) -> None:
    """Add the rows [start, stop) to the cells of some lines; a new table has no sums yet."""
    first, last = lines[0] * steps[0], lines[1] * steps[0]
    if is_new:
        set_all(accumulators[first:last], 0)
    room, fold_state = scratch(), fold_room()
    folds, slots = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int64)
    for begin in range(start, stop, BLOCK):
        own = slots[: min(BLOCK, stop - begin)]
        fill_slots(rows, source, begin, steps, n_lines, folds, fold_state, own)
        if lines[1] - lines[0] < n_lines:
            n = pick_rows(rows.numbers, begin, first, last, own, picked)
            if n:
                add_rows(picked.rows, 0, n, 0, room, own[:n], accumulators)
        else:
            add_rows(rows, begin, begin + len(own), 0, room, own, accumulators)


@stage
def fill_slots_by_distance(
    words: Array, lowest: np.uint64, size: int, classes: Array, length: int, by_class: int, start: int, slots: Array
) -> bool:
    """Write each row's cell by the distance of its number from the lowest; tell whether all are below `size`."""
    given, inside = words[start : start + len(slots)], True
    for i in range(len(slots)):
        distance = given[i] - lowest
        inside &= distance < np.uint64(size)
        slots[i] = np.int64(distance) * length
    add_classes(classes, start, by_class, slots)
    return inside


@kernel
def accumulate_by_distance(
    words: Array,
    lowest: np.uint64,
    size: int,
    rows: RowParts,
    steps: tuple[int, int],
    start: int,
    stop: int,
    accumulators: Array,
) -> bool:
    """Write the sums of the rows [start, stop) to the cells of their numbers; False if a number is out of the range.

    The codes of the rows are not used.
    """
    set_all(accumulators, 0)
    room, slots = scratch(), np.empty(BLOCK, np.int64)
    length, by_class = steps
    for begin in range(start, stop, BLOCK):
        own = slots[: min(BLOCK, stop - begin)]
        if not fill_slots_by_distance(words, lowest, size, rows.classes, length, by_class, begin, own):
            return False
        add_rows(rows, begin, begin + len(own), 0, room, own, accumulators)
    return True


@kernel
def take_occupied(accumulators: Array, length: int, lowest: np.uint64, kept: Array, words: Array) -> int:
    """Copy the cells that are not zero one after the other, and write their numbers; give the number of these cells.

    Both outputs have room for one more.
    """
    count, source = np.int64(0), np.uint64(0)
    for distance in range(len(accumulators) // length):
        target, any_row = np.uint64(count * length), np.int64(0)
        for _ in range(length):
            any_row |= accumulators[source]
            kept[target] = accumulators[source]
            source += np.uint64(1)
            target += np.uint64(1)
        words[count] = lowest + np.uint64(distance)
        count += np.int64(any_row != 0)
    return count  # type: ignore[return-value]


@kernel
def add_range(accumulators: Array, other: Array, start: int, stop: int) -> None:
    """Add another thread's table."""
    mine, theirs = accumulators[start:stop], other[start:stop]
    for i in range(len(mine)):
        mine[i] += theirs[i]


def accumulate(rows: "Rows", shape: SumShape, folds: "Folds" = None, sums: Array | None = None, /) -> Array:
    """Add every row to its cell; give (n_categories + 2, n_folds, n_classes, layout.width) digits."""
    n_categories, n_folds, n_classes, layout = shape
    n_lines, width = n_categories + 2, layout.width
    steps = n_folds * n_classes * width, n_classes * width, width
    fixed = parts_of(rows, layout), fold_source(folds), steps, n_lines
    size = n_lines * n_folds * n_classes * width
    n_rows, known = len(rows.codes), fixed[0]
    parts, given = shares(n_rows, tables(size, n_rows)), [] if sums is None else [sums.reshape(-1)]
    if len(parts) > 1 or n_rows < LEAST_SHARED or layout.is_whole:
        accumulators = [*given, *(empty(size, np.int64) for _ in parts[len(given) :])]
        every, everything = (0, n_lines), Picked(NO_ROWS, NO_ROWS, known)
        run(
            lambda i: accumulate_range(*fixed, *parts[i], every, everything, i >= len(given), accumulators[i]),
            len(parts),
        )
        return add_tables(accumulators).reshape(n_lines, n_folds, n_classes, width)
    # One table is too large for copies: each thread has some lines of it, and reads all rows.
    lines = shares(n_lines, min(threads(), MOST_READERS), smallest=1)
    table = given[0] if given else empty(size, np.int64)

    def work(share: int) -> None:
        target, weight = np.empty((2, BLOCK), np.uint64)
        numbers = known.numbers._replace(target=freeze(target, np.uint64), weight=freeze(weight, np.uint64))
        picked = Picked(target, weight, known._replace(numbers=numbers))
        accumulate_range(*fixed, 0, n_rows, lines[share], picked, not given, table)

    run(work, len(lines))
    return table.reshape(n_lines, n_folds, n_classes, width)


def add_tables(accumulators: list[Array]) -> Array:
    """Add the tables of all threads to the first one."""
    ranges = shares(len(accumulators[0]))
    for other in accumulators[1:]:
        run(lambda share, other=other: add_range(accumulators[0], other, *ranges[share]), len(ranges))  # type: ignore[misc]
    return accumulators[0]


def accumulate_numbers(rows: "Rows", n_classes: int, layout: "Layout", /) -> SumsByNumber:
    """Sum rows by number; see `gpu_encode.seam.ops.Ops`."""
    whole = len(rows) > 0 and rows.weight is None and rows.codes.dtype.kind in "iu"
    if whole and (found := sums_by_distance(rows, n_classes, layout)) is not None:
        return found
    codes, numbers = factorize(rows.codes)
    shape = SumShape(len(numbers), 1, n_classes, layout)
    return SumsByNumber(accumulate(rows.with_codes(codes), shape), numbers, codes)


def sums_by_distance(rows: "Rows", n_classes: int, layout: "Layout") -> SumsByNumber | None:
    """Sum rows by distance from the smallest number, without codes.

    None if the range is large, or if numbers lie outside the range that a sample suggested.

    Rows without weights count one, so that every number that occurs has a cell that is not zero.
    """
    values, length = wide(rows.codes), n_classes * layout.width
    lowest, size = guess_range(values)
    if size * length > NUMBERS_PER_ROW * len(values):
        return None
    given = RowParts(codes_of(None), codes_of(rows.classes), numbers_of(rows), measures_of(layout))
    fixed = raw(values), word_of(lowest), size, given, (length, layout.width)
    parts = shares(len(values), tables(size * length, len(values)))
    accumulators, inside = [empty(size * length, np.int64) for _ in parts], [False] * len(parts)

    def work(share: int) -> None:
        inside[share] = accumulate_by_distance(*fixed, *parts[share], accumulators[share])

    run(work, len(parts))
    if not all(inside):
        return None
    kept, words = empty((size + 2) * length, np.int64), empty(size + 1, np.uint64)
    number = take_occupied(add_tables(accumulators), length, word_of(lowest), kept, words)
    kept[number * length : (number + 2) * length] = 0
    found = kept[: (number + 2) * length].reshape(number + 2, 1, n_classes, layout.width).copy()
    return SumsByNumber(found, words[:number].view(values.dtype).astype(rows.codes.dtype))


def tables(size: int, n_rows: int) -> int:
    """Give the best number of tables, one for each thread; clearing and adding a cell costs about half a row."""
    return min(threads(), 1 + n_rows // size)
