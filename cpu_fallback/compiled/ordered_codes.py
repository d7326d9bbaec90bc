"""Codes of all rows from the rows before them, in one pass: see `gpu_encode.ops.Ops`."""

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from cpu_fallback.blending import Rule, Written
from cpu_fallback.compiled import threads
from cpu_fallback.compiled.block_moments import BlockMoments, room_for_moments
from cpu_fallback.compiled.border import Array, codes_of, frozen
from cpu_fallback.compiled.checkpoints import Walk, begun_at, checkpoint, walk_of
from cpu_fallback.compiled.folds import walk_range
from cpu_fallback.compiled.moments import shape_of
from cpu_fallback.compiled.ordered_counts import Table, count_rows, counted_rows, table_of
from cpu_fallback.compiled.ordered_digits import MOST_NUMBERS, seen_rows, stretch_of
from cpu_fallback.compiled.row_codes import Destination, destination
from cpu_fallback.compiled.sums import tables

if TYPE_CHECKING:
    from gpu_encode.cells import Layout, Rows
    from gpu_encode.rows import Permutation

# What it costs to count a row, beside encoding it.
COUNTING = 0.3
# Rows whose numbers in a random order are known at a time.
STRETCH = 1 << 16
LEAST_STRETCH = 1 << 10


def rows_of(order: "Permutation", start: int, stop: int) -> Array:
    """Row at each place in [start, stop), found by the thread that asks."""
    numbers = np.empty(stop - start, np.int64)
    fixed = np.uint64(order.n_rows), np.uint64(order.half_bits), frozen(order.keys, np.uint64), False
    walk_range(*fixed, start, 0, len(numbers), numbers)
    return frozen(numbers, np.int64)


def stretches(order: "Permutation | Array | None", n_rows: int, size: int) -> Iterator[tuple[int, int, Array]]:
    """Cut an order into stretches of places, each with the numbers of its rows; none where rows stand in order.

    Those of the next stretch of a random order are computed on a second thread, while the caller works on this one.
    """
    edges = [(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]
    if order is None or isinstance(order, np.ndarray):
        numbers = frozen(np.zeros(0) if order is None else order, np.int64)
        yield from ((start, stop, numbers[start:stop]) for start, stop in edges)
    elif threads.threads() == 1:
        yield from ((start, stop, rows_of(order, start, stop)) for start, stop in edges)
    else:
        helper, ahead = threads.pool(threads.threads() - 1), deque[Any]()
        for place, edge in enumerate(edges):
            while len(ahead) < min(2, len(edges) - place):
                ahead.append(helper.submit(rows_of, order, *edges[place + len(ahead)]))
            yield *edge, ahead.popleft().result()


def edges_of(n_rows: int, size: int) -> list[int]:
    """Where parts of an order begin that threads with a table of `size` each encode, and where the last one ends.

    A thread counts what is before its part, so that later parts are shorter; they begin where a prior is taken.
    """
    most = min(tables(size, n_rows), max(n_rows // threads.SMALLEST_SHARE, 1))
    sizes = np.cumsum((1 - COUNTING) ** np.arange(most))
    places = {checkpoint(int(place))[0] for place in sizes[:-1] / sizes[-1] * n_rows}
    return [0, *sorted(places - {0}), n_rows]


def counted(
    codes: Array,
    classes: Array,
    n_lines: int,
    n_classes: int,
    first_output: int,
    order: "Permutation | Array | None",
    walk: Walk,
    rule: Rule,
    to: Destination,
) -> tuple[Table, list[int]]:
    """Do it for counts of classes; gives the table of all rows, and how many codes each part has lost."""
    n_rows, known = len(codes), order is None or isinstance(order, np.ndarray)
    numbers = frozen(order if isinstance(order, np.ndarray) else np.zeros(0), np.int64)
    tied = bool(len(walk.starts))

    def begin(walk: Walk) -> tuple[Walk, Table, BlockMoments]:
        return walk, table_of(n_lines, n_classes, tied), room_for_moments(n_classes - first_output, 1)

    def encode(start: int, stop: int, numbers: Array, begun: tuple[Walk, Table, BlockMoments]) -> int:
        return counted_rows(codes, classes, numbers, start, stop, n_classes, first_output, rule, *begun, to)

    if tied or not known:
        whole = begin(walk)
        # Only a random order has numbers that come stretch by stretch.
        return whole[1], [encode(*part, whole) for part in stretches(order, n_rows, n_rows if known else STRETCH)]
    edges = edges_of(n_rows, n_lines * n_classes)
    parts = [begin(begun_at(walk, start)) for start in edges[:-1]]
    lost = [0] * len(parts)

    def one(share: int) -> None:
        (start, stop), (own, table, _) = edges[share : share + 2], parts[share]
        count_rows(codes, classes, numbers[:start], start, table.sums, own.totals)
        lost[share] = encode(start, stop, numbers[start:stop], parts[share])

    threads.run(one, len(parts))
    return parts[-1][1], lost


def ordered_codes(
    rows: "Rows",
    n_categories: int,
    n_classes: int,
    layout: "Layout",
    first_output: int,
    order: "Permutation | Array | None",
    ties: tuple[Array, Array] | None,
    burn_in: int,
    rule: Rule,
    out: Array,
    unseen: Array | None,
    /,
) -> Written | None:
    """Write the code of every row from the rows before it; see `gpu_encode.ops.Ops`."""
    n_rows = len(rows.codes)
    to = destination(out, unseen, n_classes - first_output)
    if to is None:
        return None
    length = n_classes * layout.width
    walk = walk_of(ties, n_rows, burn_in, length)
    if rows.classes is not None and rows.weight is None and layout.count.whole:
        known = codes_of(rows.codes), codes_of(rows.classes)
        table, found = counted(*known, n_categories + 2, n_classes, first_output, order, walk, rule, to)
    else:
        table = table_of(n_categories + 2, length, bool(len(walk.starts)))
        size = max(min(STRETCH, MOST_NUMBERS // length), LEAST_STRETCH)
        parts = stretches(order, n_rows, size)
        fixed = shape_of(layout, n_classes), first_output, rule, walk, table, to
        stretch = stretch_of(min(size, n_rows), length, n_classes - first_output)
        found = [seen_rows(rows, numbers, layout, places, stretch, fixed) for *places, numbers in parts]
    return Written(table.sums.reshape(n_categories + 2, n_classes, layout.width), sum(found))
