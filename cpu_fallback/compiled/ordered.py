"""Ordered statistics: what each row sees is its category before it.  One thread: an order has no halves."""

from typing import TYPE_CHECKING

import numpy as np

from cpu_fallback.compiled.addition import add_rows
from cpu_fallback.compiled.border import (
    BLOCK,
    Array,
    Numbers,
    codes_of,
    freeze,
    kernel,
    measures_of,
    numbers_of,
    set_all,
    stage,
)
from cpu_fallback.compiled.digits import scratch
from cpu_fallback.memory import empty

if TYPE_CHECKING:
    from cpu_fallback.types import Carry, Layout, Rows


@stage
def pass_rows(
    lines: Array, own: Array, accumulators: Array, width: int, length: int, first: int, sums: Array, seen: Array
) -> None:
    """Let each row of a block see its category's line, then add the row's own digits to its cell."""
    for i in range(len(lines)):
        source, target = np.uint64(lines[i]), np.uint64((first + i) * length)
        for k in range(length):
            seen[target + np.uint64(k)] = sums[source + np.uint64(k)]
        cell, mine = np.uint64(accumulators[i]), np.uint64(i * width)
        for k in range(width):
            sums[cell + np.uint64(k)] += own[mine + np.uint64(k)]


@stage
def pass_tied_rows(
    lines: Array,
    own: Array,
    accumulators: Array,
    width: int,
    length: int,
    first: int,
    ties: Array,
    sums: Array,
    at_tie: Array,
    last_tie: Array,
    seen: Array,
) -> None:
    """Let each row see its category's sums as the first row of its tie saw them, then add its digits to them."""
    for i in range(len(lines)):
        source, target = np.uint64(lines[i]), np.uint64((first + i) * length)
        if ties[i] != last_tie[lines[i] // length]:
            last_tie[lines[i] // length] = ties[i]
            for k in range(length):
                at_tie[source + np.uint64(k)] = sums[source + np.uint64(k)]
        for k in range(length):
            seen[target + np.uint64(k)] = at_tie[source + np.uint64(k)]
        cell, mine = np.uint64(accumulators[i]), np.uint64(i * width)
        for k in range(width):
            sums[cell + np.uint64(k)] += own[mine + np.uint64(k)]


@kernel
def ordered_rows(
    codes: Array,
    classes: Array,
    ties: Array,
    numbers: Numbers,
    measures: Array,
    shape: tuple[int, int, int],
    sums: Array,
    at_tie: Array,
    last_tie: Array,
    seen: Array,
) -> None:
    """Work on blocks: what their rows add is computed first, then handed out in order."""
    n_lines, n_classes, width = shape
    length = n_classes * width
    room, own = scratch(), np.empty(width * BLOCK, np.int64)
    slots, lines, cells = np.arange(BLOCK) * width, np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64)
    for begin in range(0, len(codes), BLOCK):
        n = min(BLOCK, len(codes) - begin)
        set_all(own[: n * width], 0)
        add_rows(numbers, measures, begin, begin + n, 0, room, slots[:n], own)
        given = codes[begin : begin + n]
        for i in range(n):
            code = np.int64(given[i])
            lines[i] = (code + n_lines if code < 0 else code) * length
            cells[i] = lines[i]
        labels = classes[begin : begin + n]
        for i in range(len(labels)):
            cells[i] += labels[i] * width
        if len(ties):
            pass_tied_rows(
                lines[:n], own, cells, width, length, begin, ties[begin : begin + n], sums, at_tie, last_tie, seen
            )
        else:
            pass_rows(lines[:n], own, cells, width, length, begin, sums, seen)


def ordered(rows: "Rows", ties: "Array | None", layout: "Layout", carry: "Carry", /) -> Array:
    """Category sums over earlier rows, in the order given: (rows, n_classes, layout.width) digits.

    `carry` holds the sums of all rows before these and is brought up to date, so that chunks chain.  With `ties`
    (non-decreasing tie numbers) rows of one tie do not see each other.
    """
    shape = carry.sums.shape
    seen = empty(len(rows.codes) * shape[1] * shape[2], np.int64)
    tied = freeze(np.zeros(0, np.int64) if ties is None else ties, np.int64)
    state = [np.ascontiguousarray(part) for part in (carry.sums, carry.at_tie, carry.last_tie)]
    flat = [part.reshape(-1) for part in state]
    ordered_rows(
        codes_of(rows.codes), codes_of(rows.classes), tied, numbers_of(rows), measures_of(layout), shape, *flat, seen
    )
    for kept, worked_on in zip((carry.sums, carry.at_tie, carry.last_tie), state, strict=True):
        if kept is not worked_on:
            kept[...] = worked_on
    return seen.reshape(len(rows.codes), *shape[1:])
