"""Ordered sums by sorting, for any number of categories and for ties: a category's rows become one segment.

A row sees the difference of two running sums, at its place and where its segment begins.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.compiled.digits import MOST_DIGITS
from gpu_encode.cuda.memory import empty, zeros
from gpu_encode.cuda.row_parts import RowParts, line_of, spread_row
from gpu_encode.cuda.running import sum_between
from gpu_encode.cuda.runtime import cuda, device_function, kernel, launch_rows, types, xp

if TYPE_CHECKING:
    from cpu_fallback.types import Array


class Sorted(NamedTuple):
    """Rows in the order of their categories: row and code at each place, and running sums of `shape`'s columns.

    Where rows without weights are counted, the count itself has no column (`counted` is 1, else 0): places tell it.
    """

    order: "Array"
    codes: "Array"
    running: "Array"
    counted: int
    n_lines: int
    n_classes: int
    width: int


@device_function
def first_equal(keys: "Array", lowest: int, place: int) -> int:
    """First place from `lowest` on that has the key of `place`; between them, keys are sorted."""
    key, found, step = keys[place], place, 1
    # Runs are short where categories are many: double the steps back, then halve what is left.
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
def write_sums(
    running: "Array",
    n_places: int,
    counted: int,
    n_classes: int,
    width: int,
    start: int,
    stop: int,
    sums: "Array",
    source: int,
    out: "Array",
    target: int,
) -> None:
    """Write a category's sums so far plus those over the places [start, stop) of its segment."""
    rest = stop - start
    for k in range(counted, n_classes * width):
        found = sum_between(running, (k - counted) * n_places, start, stop)
        out[target + k] = sums[source + k] + found
        rest -= found
    if counted:
        # All rows, or those that are in no other class.
        out[target] = sums[source] + (stop - start if n_classes == 1 else rest)


@kernel
def sort_classes(order: "Array", codes: "Array", classes: "Array", own: "Array", sorted_codes: "Array") -> None:
    """Write each place's code, and a one to its column if it is of any class but the first."""
    n_places = len(order)
    for place in range(cuda.grid(1), n_places, cuda.gridsize(1)):
        row = order[place]
        label = np.int64(classes[row])
        sorted_codes[place] = codes[row]
        if label:
            own[(label - 1) * n_places + place] = 1


@kernel
def sort_digits(
    order: "Array",
    codes: "Array",
    classes: "Array",
    labelled: bool,
    target: "Array",
    target_kind: int,
    weight: "Array",
    weight_kind: int,
    measures: "Array",
    counted: int,
    width: int,
    own: "Array",
    sorted_codes: "Array",
) -> None:
    """Write each place's code and what its row adds; of counted rows all but the count."""
    digits = cuda.local.array(MOST_DIGITS, types.int64)
    n_places = len(order)
    for place in range(cuda.grid(1), n_places, cuda.gridsize(1)):
        row = order[place]
        sorted_codes[place] = codes[row]
        at = (np.int64(classes[row]) if labelled else np.int64(0)) * width * n_places + place
        spread_row(row, counted, target, target_kind, weight, weight_kind, measures, digits, own, at, n_places)


@kernel
def see_sorted(
    order: "Array",
    codes: "Array",
    running: "Array",
    counted: int,
    n_lines: int,
    n_classes: int,
    width: int,
    sums: "Array",
    seen: "Array",
) -> None:
    """Write what each row sees: its category's sums so far, and its segment up to its place."""
    length = n_classes * width
    for place in range(cuda.grid(1), len(order), cuda.gridsize(1)):
        start, source = first_equal(codes, 0, place), line_of(codes[place], n_lines) * length
        at = order[place] * length
        write_sums(running, len(order), counted, n_classes, width, start, place, sums, source, seen, at)


@kernel
def see_tied(
    order: "Array",
    codes: "Array",
    running: "Array",
    counted: int,
    n_lines: int,
    n_classes: int,
    width: int,
    ties: "Array",
    sums: "Array",
    at_tie: "Array",
    last_tie: "Array",
    seen: "Array",
) -> None:
    """Write what the first row of each row's category and tie sees, which an earlier chunk may have kept."""
    length = n_classes * width
    for place in range(cuda.grid(1), len(order), cuda.gridsize(1)):
        line, at = line_of(codes[place], n_lines), order[place] * length
        source = line * length
        if ties[place] == last_tie[line]:
            for k in range(length):
                seen[at + k] = at_tie[source + k]
        else:
            start = first_equal(codes, 0, place)
            first = first_equal(ties, start, place)
            write_sums(running, len(order), counted, n_classes, width, start, first, sums, source, seen, at)


@kernel
def carry_ties(
    order: "Array",
    codes: "Array",
    ties: "Array",
    n_lines: int,
    length: int,
    seen: "Array",
    at_tie: "Array",
    last_tie: "Array",
) -> None:
    """Keep each category's last tie and what its rows see, from the last place of its segment."""
    last = len(order) - 1
    for place in range(cuda.grid(1), len(order), cuda.gridsize(1)):
        if place == last or codes[place + 1] != codes[place]:
            line = line_of(codes[place], n_lines)
            last_tie[line] = ties[place]
            for k in range(length):
                at_tie[line * length + k] = seen[order[place] * length + k]


@kernel
def carry_sums(
    order: "Array",
    codes: "Array",
    running: "Array",
    counted: int,
    n_lines: int,
    n_classes: int,
    width: int,
    sums: "Array",
) -> None:
    """Add its whole segment to each category's sums, from its last place."""
    last = len(order) - 1
    for place in range(cuda.grid(1), len(order), cuda.gridsize(1)):
        if place == last or codes[place + 1] != codes[place]:
            start, at = first_equal(codes, 0, place), line_of(codes[place], n_lines) * n_classes * width
            write_sums(running, len(order), counted, n_classes, width, start, place + 1, sums, at, sums, at)


def sort_by_code(parts: RowParts, shape: tuple[int, int, int], counted: bool) -> Sorted:
    """Sort rows by category, each category's in their own order, and sum up what they add."""
    n_places, n_classes, width = len(parts.codes), *shape[1:]
    order, codes = xp.argsort(parts.codes, kind="stable"), empty(n_places, np.int32)
    own = zeros(max((n_classes * width - counted) * n_places, 1), np.int64)
    if counted and parts.labelled and n_classes > 1:
        launch_rows(sort_classes, n_places, order, parts.codes, parts.classes, own, codes)
    else:
        launch_rows(sort_digits, n_places, order, *parts, int(counted), width, own, codes)
    return Sorted(order, codes, xp.cumsum(own, out=own), int(counted), *shape)


def by_sorting(parts: RowParts, shape: tuple[int, int, int], counted: bool, sums: "Array", seen: "Array") -> None:
    """Write what each row sees to `seen` and bring `sums` up to date, both flat."""
    found = sort_by_code(parts, shape, counted)
    launch_rows(see_sorted, len(parts.codes), *found, sums, seen)
    launch_rows(carry_sums, len(parts.codes), *found, sums)


def by_sorting_ties(
    parts: RowParts,
    shape: tuple[int, int, int],
    counted: bool,
    ties: "Array",
    state: "tuple[Array, Array, Array]",
    seen: "Array",
) -> None:
    """Write what each row sees, where rows of a tie do not see each other, to `seen`, and bring `state` up to date.

    `state` is a carry's sums, sums at a tie (flat) and last ties.
    """
    found, (sums, *kept) = sort_by_code(parts, shape, counted), state
    n_rows, tied = len(parts.codes), xp.take(ties, found.order)
    launch_rows(see_tied, n_rows, *found, tied, *state, seen)
    launch_rows(carry_ties, n_rows, found.order, found.codes, tied, shape[0], shape[1] * shape[2], seen, *kept)
    launch_rows(carry_sums, n_rows, *found, sums)
