"""Leave-one-out: each row sees the sums of its category without itself."""

from typing import TYPE_CHECKING

import numpy as np

from cpu_fallback.compiled.addition import add_rows
from cpu_fallback.compiled.border import BLOCK, Array, RowParts, freeze, kernel, parts_of, stage
from cpu_fallback.compiled.digits import scratch
from cpu_fallback.compiled.threads import run, shares
from cpu_fallback.memory import empty

if TYPE_CHECKING:
    from cpu_fallback.types import Layout, Rows


@stage
def copy_lines(
    accumulators: Array, codes: Array, n_lines: int, length: int, start: int, stop: int, seen: Array
) -> None:
    """Copy the line of each row's category."""
    given = codes[start:stop]
    for i in range(len(given)):
        code = np.int64(given[i])
        source = np.uint64((code + n_lines if code < 0 else code) * length)
        target = np.uint64((start + i) * length)
        for k in range(length):
            seen[target + np.uint64(k)] = accumulators[source + np.uint64(k)]


@kernel
def leave_one_out_range(
    accumulators: Array,
    shape: tuple[int, int, int],
    rows: RowParts,
    start: int,
    stop: int,
    seen: Array,
) -> None:
    """Write for the rows [start, stop) the digits of the row's category, less the row's own digits in its class."""
    room, slots = scratch(), np.empty(BLOCK, np.int64)
    n_lines, n_classes, width = shape
    for begin in range(start, stop, BLOCK):
        end = min(begin + BLOCK, stop)
        copy_lines(accumulators, rows.codes, n_lines, n_classes * width, begin, end, seen)
        labels = rows.classes[begin:end]
        for i in range(end - begin):
            slots[i] = (begin + i) * n_classes * width
        for i in range(len(labels)):
            slots[i] += labels[i] * width
        add_rows(rows, begin, end, -1, room, slots[: end - begin], seen)


def leave_one_out(accumulators: Array, rows: "Rows", layout: "Layout", /) -> Array:
    """Give the sums of each row's category without the row: (rows, n_classes, layout.width) digits.

    `accumulators` is (categories + 2, n_classes, layout.width).
    """
    seen = empty(len(rows.codes) * accumulators.shape[1] * accumulators.shape[2], np.int64)
    table = freeze(accumulators, np.int64).reshape(-1)
    fixed = table, accumulators.shape, parts_of(rows, layout)
    parts = shares(len(rows.codes))
    run(lambda share: leave_one_out_range(*fixed, *parts[share], seen), len(parts))
    return seen.reshape(len(rows.codes), *accumulators.shape[1:])
