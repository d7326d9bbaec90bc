"""Rows without weights are added in windows (raw/windows.cuh), in shared memory, with few instructions for each row.

A block holds the cells of all lines.  If several blocks walk over the same rows, each block holds a part of the lines.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.compiled.border import ABSENT, REAL
from gpu_encode.cuda import raw
from gpu_encode.cuda.memory import to_device
from gpu_encode.cuda.tiles import PLAN_BYTES, walk_of

if TYPE_CHECKING:
    from cpu_fallback.types import Array, Folds, Layout, Rows
    from gpu_encode.cuda.counting import Engine
    from gpu_encode.cuda.sums import Addition

# Bytes of a block in addition to its cells, and bytes of each of its warps.
BLOCK_BYTES, WARP_BYTES = PLAN_BYTES + 64, 384
# Bytes of a slot by type of the numbers, without and with squares; and bytes of a row that waits for other rows of its
# warp.
SLOT_BYTES = {"float": (10, 22), "double": (12, 28), "Long": (12, 28)}
ROW_BYTES = {"float": 8, "double": 12, "Long": 12}
# Most threads of a block that registers allow; fewer threads if folds are computed one by one.
THREADS, FEWER_THREADS, LANES = 640, 512, 32
# Rows that several blocks read come from the cache, but each reading costs instructions.
MOST_GROUPS = 4
# Most rows that may wait in each warp, if blocks walk in groups.
QUEUED = 3 * LANES
# Copies of a table use half of a block's largest memory, since a multiprocessor's cache needs memory, too.
COPIED_SHARE = 2
MOST_COPIES = 8


class Shape(NamedTuple):
    """The arrangement of cells in shared memory: groups of lines, slots of a group, copies of a group, words of a copy.

    `queues` is the number of bytes for rows that wait.
    """

    groups: int
    slots: int
    copies: int
    words: int
    queues: int


def slot_bytes(variant: dict[str, str]) -> int:
    """Bytes of a slot."""
    return SLOT_BYTES[variant["VALUE"]][int(variant["SQUARES"])]


def shape_of(room: int, n_lines: int, in_line: int, warps: int, variant: dict[str, str]) -> Shape | None:
    """Give the fewest groups whose slots fit; None if too many would be needed."""
    for groups in range(1, MOST_GROUPS + 1):
        slots = -(-n_lines // groups) * in_line
        # The tops of two slots may share a word.
        slots += slots & 1
        words = slots * slot_bytes(variant) // 4
        queues = QUEUED * ROW_BYTES[variant["VALUE"]] * warps if groups > 1 else 0
        if 4 * words + queues <= room:
            # Copies at an odd distance are in different banks.
            fitting = min(room // COPIED_SHARE // (4 * (words | 1)), MOST_COPIES) if groups == 1 else 1
            copies = 1 << (max(1, fitting).bit_length() - 1)
            return Shape(groups, slots, copies, words | int(copies > 1), queues)
    return None


def variant_of(rows: "Rows", folds: "Folds", layout: "Layout", target: "Array", kind: int) -> dict[str, str] | None:
    """Name the variant for which the kernel is compiled; None if rows cannot be added in windows."""
    plain = rows.classes is None and rows.weight is None
    if not plain or kind == ABSENT or not layout.count.whole or layout.total is None:
        return None
    value = raw.value_type(target.itemsize, kind == REAL)
    return {"VALUE": value, "SQUARES": str(int(layout.square is not None)), "SOURCE": walk_of(folds)[0]}


def add(chosen: "Engine", job: "Addition") -> bool:
    """Add all rows in windows, unless that needs too much shared memory; say whether they were added."""
    if job.variant is None:
        return False
    threads = min(chosen.threads, FEWER_THREADS if job.variant["SOURCE"] == "ComputedFolds" else THREADS)
    warps = threads // LANES
    head = BLOCK_BYTES + WARP_BYTES * warps
    shape = shape_of(chosen.table_bytes - head, job.n_lines, job.in_line, warps, job.variant)
    if shape is None:
        return False
    codes, _, target, _, *folds = job.rows
    # If there are several groups, the upper half of a line times this number is the line divided by the number of
    # groups.
    inverse = -(-(2**32) // shape.groups) % 2**32
    chosen.run(
        "add_in_windows",
        walkers_of(chosen, job.n_rows, shape) * shape.groups,
        threads,
        *(codes, target, *folds, to_device(np.array(job.plan, np.int64)), job.accumulators, job.n_lines, job.in_line),
        *(shape.groups, inverse, shape.slots, shape.copies, shape.words),
        shared=head + 4 * shape.words * shape.copies + shape.queues,
        variant=job.variant,
    )
    return True


def walkers_of(chosen: "Engine", n_rows: int, shape: Shape) -> int:
    """Choose the number of blocks, or groups, that walk over rows: each has enough rows to repay its table's cost."""
    # Registers allow one block on a multiprocessor.
    most = max(-(-chosen.blocks // 2) // shape.groups, 1)
    enough = max(shape.slots * shape.copies, 4 * chosen.threads)
    return min(-(-n_rows // enough), most)
