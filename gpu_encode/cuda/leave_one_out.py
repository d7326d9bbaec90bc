"""Leave-one-out: what each row sees is its category without itself."""

from typing import TYPE_CHECKING

import numpy as np

from cpu_fallback.compiled.digits import MOST_DIGITS
from gpu_encode.cuda.digits import add_row, measures_of
from gpu_encode.cuda.memory import empty, to_device
from gpu_encode.cuda.row_parts import line_of, parts_of
from gpu_encode.cuda.runtime import cuda, kernel, launch_rows, types

if TYPE_CHECKING:
    from cpu_fallback.types import Array, Layout, Rows


@kernel
def leave_row_out(
    codes: "Array",
    classes: "Array",
    labelled: bool,
    target: "Array",
    target_kind: int,
    weight: "Array",
    weight_kind: int,
    measures: "Array",
    accumulators: "Array",
    n_lines: int,
    n_classes: int,
    width: int,
    seen: "Array",
) -> None:
    """Copy the line of each row's category and take the row's own digits out of its class."""
    digits = cuda.local.array(MOST_DIGITS, types.int64)
    length = n_classes * width
    for row in range(cuda.grid(1), len(codes), cuda.gridsize(1)):
        source, at = line_of(codes[row], n_lines) * length, row * length
        for k in range(length):
            seen[at + k] = accumulators[source + k]
        own = at + classes[row] * width if labelled else at
        add_row(row, -1, target, target_kind, weight, weight_kind, measures, digits, seen, own)


def leave_one_out(accumulators: "Array", rows: "Rows", layout: "Layout", /) -> "Array":
    """Category sums (categories + 2, n_classes, width) less the row itself: (rows, n_classes, width) digits."""
    seen = empty((len(rows), *accumulators.shape[1:]), np.int64)
    if len(rows):
        parts, table = parts_of(rows, measures_of(layout)), to_device(accumulators).reshape(-1)
        launch_rows(leave_row_out, len(rows), *parts, table, *accumulators.shape, seen.reshape(-1))
    return seen
