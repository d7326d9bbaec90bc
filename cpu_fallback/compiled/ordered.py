"""Ordered statistics: each row sees the earlier rows of its category, so a single thread works."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.compiled.addition import add_rows
from cpu_fallback.compiled.border import (
    BLOCK,
    Array,
    RowParts,
    counting,
    freeze,
    kernel,
    parts_of,
    set_all,
    stage,
)
from cpu_fallback.compiled.digits import scratch
from cpu_fallback.memory import empty, zeros

if TYPE_CHECKING:
    from cpu_fallback.types import Carry, Layout, Rows


class Table(NamedTuple):
    """Sums by category and class; with ties also the sums of each category at its last tie."""

    sums: Array
    at_tie: Array
    last_tie: Array


def table_of(n_lines: int, length: int, tied: bool) -> Table:
    """Give an empty table."""
    size = n_lines if tied else 0
    return Table(zeros(n_lines * length, np.int64), zeros(size * length, np.int64), np.full(size, -1, np.int64))


class Added(NamedTuple):
    """The digits that the rows of a block add, and the indices of the sums of their categories and classes."""

    own: Array
    lines: Array
    accumulators: Array


@counting
def room_for_added(width: int) -> Added:
    """Give room for a block."""
    return Added(np.empty(width * BLOCK, np.int64), np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64))


@stage
def find_cells(codes: Array, classes: Array, shape: tuple[int, int, int], block: Added) -> None:
    """Write the indices of the sums of each row's category and class; `shape` is lines, classes, columns."""
    n_lines, n_classes, width = shape
    for i in range(len(codes)):
        code = np.int64(codes[i])
        block.lines[i] = (code + n_lines if code < 0 else code) * n_classes * width
        block.accumulators[i] = block.lines[i] + (np.int64(classes[i]) * width if len(classes) else 0)


@stage
def pass_rows(n: int, block: Added, width: int, length: int, first: int, sums: Array, seen: Array) -> None:
    """Let each of n rows see its category's line, then add the row's own digits to its cell."""
    own, lines, accumulators = block
    for i in range(n):
        source, target = np.uint64(lines[i]), np.uint64((first + i) * length)
        for k in range(length):
            seen[target + np.uint64(k)] = sums[source + np.uint64(k)]
        cell, mine = np.uint64(accumulators[i]), np.uint64(i * width)
        for k in range(width):
            sums[cell + np.uint64(k)] += own[mine + np.uint64(k)]


@stage
def pass_tied_rows(ties: Array, block: Added, width: int, length: int, first: int, table: Table, seen: Array) -> None:
    """Let each row see its category's sums as the first row of its tie saw them, then add its digits to them."""
    (own, lines, accumulators), (sums, at_tie, last_tie) = block, table
    for i in range(len(ties)):
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
def ordered_rows(rows: RowParts, ties: Array, shape: tuple[int, int, int], table: Table, seen: Array) -> None:
    """Work on blocks: first compute the digits that the rows add, then let each row see its sums, in order."""
    width, length = shape[2], shape[1] * shape[2]
    room, block, slots = scratch(), room_for_added(width), np.arange(BLOCK) * width
    for begin in range(0, len(rows.codes), BLOCK):
        n = min(BLOCK, len(rows.codes) - begin)
        set_all(block.own[: n * width], 0)
        add_rows(rows, begin, begin + n, 0, room, slots[:n], block.own)
        find_cells(rows.codes[begin : begin + n], rows.classes[begin : begin + n], shape, block)
        if len(ties):
            pass_tied_rows(ties[begin : begin + n], block, width, length, begin, table, seen)
        else:
            pass_rows(n, block, width, length, begin, table.sums, seen)


def ordered(rows: "Rows", ties: "Array | None", layout: "Layout", carry: "Carry", /) -> Array:
    """Give for each row the sums of its category over the rows before it: (rows, n_classes, layout.width) digits.

    `carry` holds the sums of all earlier rows and is updated, so that the next chunk can follow.  With `ties` (numbers
    that do not decrease), rows of one tie do not see each other.
    """
    shape = carry.sums.shape
    seen = empty(len(rows.codes) * shape[1] * shape[2], np.int64)
    tied = freeze(np.zeros(0, np.int64) if ties is None else ties, np.int64)
    state = [np.ascontiguousarray(part) for part in (carry.sums, carry.at_tie, carry.last_tie)]
    ordered_rows(parts_of(rows, layout), tied, shape, Table(*(part.reshape(-1) for part in state)), seen)
    for kept, worked_on in zip((carry.sums, carry.at_tie, carry.last_tie), state, strict=True):
        if kept is not worked_on:
            kept[...] = worked_on
    return seen.reshape(len(rows.codes), *shape[1:])
