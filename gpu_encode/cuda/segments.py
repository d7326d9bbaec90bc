"""Ordered sums by sorting, for any number of categories and for ties: the rows of a category become one segment.

The sums that a row sees are the difference of two running sums: at its rank, and at the beginning of its segment.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.compiled.digits import MOST_DIGITS
from gpu_encode.cuda.digits import Extents, RowParts, line_of, spread_row
from gpu_encode.cuda.memory import empty, zeros
from gpu_encode.cuda.running import sum_between
from gpu_encode.cuda.runtime import cuda, device_function, kernel, launch_rows, types, xp

if TYPE_CHECKING:
    from cpu_fallback.types import Array


class Sorted(NamedTuple):
    """Rows sorted by category: row and code at each rank, and running sums of the columns of a line.

    If rows without weights are counted, the count has no column of its own, since ranks give it (`counted` is 1, else
    0).
    """

    order: "Array"
    codes: "Array"
    running: "Array"
    counted: int
    extents: Extents


class TiedState(NamedTuple):
    """The content of `cpu_fallback.types.Carry`, flat: sums so far; sums at each category's last tie; that tie."""

    sums: "Array"
    at_tie: "Array"
    last_tie: "Array"


@device_function
def first_equal(keys: "Array", lowest: int, rank: int) -> int:
    """First rank from `lowest` on with the key of `rank`; keys are sorted between them."""
    key, found, step = keys[rank], rank, 1
    # With many categories, runs are short: go back in doubling steps, then halve the rest.
    while found - step >= lowest and keys[found - step] == key:
        found -= step
        step *= 2
    below = max(found - step, lowest - 1)
    while found - below > 1:
        middle = (found + below) >> 1
        if keys[middle] == key:
            found = middle
        else:
            below = middle
    return found


@device_function
def write_sums(rows: Sorted, start: int, stop: int, sums: "Array", source: int, out: "Array", at: int) -> None:
    """Write a category's sums so far, plus the sums over the ranks [start, stop) of its segment."""
    counted, (_, n_classes, width), rest = rows.counted, rows.extents, stop - start
    for k in range(counted, n_classes * width):
        found = sum_between(rows.running, (k - counted) * len(rows.order), start, stop)
        out[at + k] = sums[source + k] + found
        rest -= found
    if counted:
        # The count of all rows; for the first class, of the rows that are in no other class.
        out[at] = sums[source] + (stop - start if n_classes == 1 else rest)


@kernel
def sort_classes(order: "Array", codes: "Array", classes: "Array", own: "Array", sorted_codes: "Array") -> None:
    """Write each rank's code, and a one to the column of its class unless it is the first class."""
    n_rows = len(order)
    for rank in range(cuda.grid(1), n_rows, cuda.gridsize(1)):
        row = order[rank]
        label = np.int64(classes[row])
        sorted_codes[rank] = codes[row]
        if label:
            own[(label - 1) * n_rows + rank] = 1


@kernel
def sort_digits(order: "Array", rows: RowParts, counted: int, width: int, own: "Array", sorted_codes: "Array") -> None:
    """Write each rank's code and the digits that its row adds; for counted rows everything except the count."""
    digits = cuda.local.array(MOST_DIGITS, types.int64)
    n_rows = len(order)
    for rank in range(cuda.grid(1), n_rows, cuda.gridsize(1)):
        row = order[rank]
        sorted_codes[rank] = rows.codes[row]
        at = (np.int64(rows.classes[row]) if rows.labelled else np.int64(0)) * width * n_rows + rank
        spread_row(row, counted, rows, digits, own, at, n_rows)


@kernel
def see_sorted(rows: Sorted, sums: "Array", seen: "Array") -> None:
    """Write the sums that each row sees: those of its category so far, and of its segment up to its rank."""
    length = rows.extents.n_classes * rows.extents.width
    for rank in range(cuda.grid(1), len(rows.order), cuda.gridsize(1)):
        start, source = first_equal(rows.codes, 0, rank), line_of(rows.codes[rank], rows.extents.n_lines) * length
        write_sums(rows, start, rank, sums, source, seen, rows.order[rank] * length)


@kernel
def see_tied(rows: Sorted, ties: "Array", state: TiedState, seen: "Array") -> None:
    """Write the sums that the first row of each row's category and tie sees; an earlier chunk may have kept them."""
    length = rows.extents.n_classes * rows.extents.width
    for rank in range(cuda.grid(1), len(rows.order), cuda.gridsize(1)):
        line, at = line_of(rows.codes[rank], rows.extents.n_lines), rows.order[rank] * length
        if ties[rank] == state.last_tie[line]:
            for k in range(length):
                seen[at + k] = state.at_tie[line * length + k]
        else:
            start = first_equal(rows.codes, 0, rank)
            write_sums(rows, start, first_equal(ties, start, rank), state.sums, line * length, seen, at)


@kernel
def carry_ties(rows: Sorted, ties: "Array", state: TiedState, seen: "Array") -> None:
    """Keep each category's last tie and the sums that its rows see; the last rank of each segment does this."""
    last, length = len(rows.order) - 1, rows.extents.n_classes * rows.extents.width
    for rank in range(cuda.grid(1), len(rows.order), cuda.gridsize(1)):
        if rank == last or rows.codes[rank + 1] != rows.codes[rank]:
            line = line_of(rows.codes[rank], rows.extents.n_lines)
            state.last_tie[line] = ties[rank]
            for k in range(length):
                state.at_tie[line * length + k] = seen[rows.order[rank] * length + k]


@kernel
def carry_sums(rows: Sorted, sums: "Array") -> None:
    """Add each category's whole segment to its sums; the last rank of each segment does this."""
    last, (n_lines, n_classes, width) = len(rows.order) - 1, rows.extents
    for rank in range(cuda.grid(1), len(rows.order), cuda.gridsize(1)):
        if rank == last or rows.codes[rank + 1] != rows.codes[rank]:
            at = line_of(rows.codes[rank], n_lines) * n_classes * width
            write_sums(rows, first_equal(rows.codes, 0, rank), rank + 1, sums, at, sums, at)


def sort_by_code(parts: RowParts, extents: Extents, counted: bool) -> Sorted:
    """Sort rows by category, in their own order within each category, and compute running sums of their digits."""
    n_rows, (_, n_classes, width) = len(parts.codes), extents
    order, codes = xp.argsort(parts.codes, kind="stable"), empty(n_rows, np.int32)
    own = zeros(max((n_classes * width - counted) * n_rows, 1), np.int64)
    if counted and parts.labelled and n_classes > 1:
        launch_rows(sort_classes, n_rows, order, parts.codes, parts.classes, own, codes)
    else:
        launch_rows(sort_digits, n_rows, order, parts, int(counted), width, own, codes)
    return Sorted(order, codes, xp.cumsum(own, out=own), int(counted), extents)


def by_sorting(parts: RowParts, extents: Extents, counted: bool, sums: "Array", seen: "Array") -> None:
    """Write to `seen` the sums that each row sees, and update `sums`; both are flat."""
    found = sort_by_code(parts, extents, counted)
    launch_rows(see_sorted, len(parts.codes), found, sums, seen)
    launch_rows(carry_sums, len(parts.codes), found, sums)


def by_sorting_ties(
    parts: RowParts,
    extents: Extents,
    counted: bool,
    ties: "Array",
    state: TiedState,
    seen: "Array",
) -> None:
    """Write to `seen` the sums that each row sees if rows of a tie do not see each other, and update `state`."""
    found = sort_by_code(parts, extents, counted)
    n_rows, tied = len(parts.codes), xp.take(ties, found.order)
    launch_rows(see_tied, n_rows, found, tied, state, seen)
    launch_rows(carry_ties, n_rows, found, tied, state, seen)
    launch_rows(carry_sums, n_rows, found, state.sums)
