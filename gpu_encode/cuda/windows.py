"""Rows without weights added in windows (raw/windows.cuh): in shared memory, few instructions a row.

A block holds the cells of all lines, or, of blocks that walk over the same rows, of every so-many-th line.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.compiled.border import ABSENT, REAL
from gpu_encode.cuda.memory import to_device
from gpu_encode.cuda.tiles import PLAN_BYTES, walk_of

if TYPE_CHECKING:
    from cpu_fallback.types import Array, Folds, Layout, Rows
    from gpu_encode.cuda.counting import Engine
    from gpu_encode.cuda.sums import Addition

# Bytes of a block, of each of its warps, and of a slot without and with squares.
BLOCK_BYTES, WARP_BYTES, SLOT_BYTES = PLAN_BYTES + 32, 384, (12, 32)
# Threads of a block at most, for which registers suffice.
THREADS, LANES = 640, 32
# What blocks read more than once comes from the cache, but each reading costs instructions.
MOST_GROUPS = 4
# Copies of a table take half of what a block may have at most: a multiprocessor's cache needs memory, too.
COPIED_SHARE = 2
MOST_COPIES = 8


class Shape(NamedTuple):
    """How the cells lie in shared memory: in so many groups of lines, slots of a group, copies of each slot."""

    groups: int
    slots: int
    copies: int


def shape_of(room: int, n_lines: int, in_line: int, slot_bytes: int) -> Shape | None:
    """Give the fewest groups whose slots fit the room; None where too many would be needed."""
    for groups in range(1, MOST_GROUPS + 1):
        slots = -(-n_lines // groups) * in_line
        if slots * slot_bytes <= room:
            if groups > 1:
                return Shape(groups, slots, 1)
            # An odd distance between copies keeps them in different banks.
            fitting = max(1, min(room // COPIED_SHARE // ((slots | 1) * slot_bytes), MOST_COPIES))
            copies = 1 << (fitting.bit_length() - 1)
            return Shape(1, slots | int(copies > 1), copies)
    return None


def variant_of(rows: "Rows", folds: "Folds", layout: "Layout", target: "Array", kind: int) -> dict[str, str] | None:
    """Say what the kernel is compiled for; None where rows cannot be added in windows."""
    plain = rows.classes is None and rows.weight is None
    if not plain or kind == ABSENT or not layout.count.whole or layout.total is None:
        return None
    value = "float" if target.itemsize == 4 else "double" if kind == REAL else "Long"
    return {"VALUE": value, "SQUARES": str(int(layout.square is not None)), "SOURCE": walk_of(folds)[0]}


def add(chosen: "Engine", job: "Addition") -> bool:
    """Add all rows in windows, unless that needs too much shared memory; says whether that was done."""
    if job.variant is None:
        return False
    threads = min(chosen.threads, THREADS)
    head = BLOCK_BYTES + WARP_BYTES * (threads // LANES)
    slot_bytes = SLOT_BYTES[int(job.variant["SQUARES"])]
    shape = shape_of(chosen.table_bytes - head, job.n_lines, job.in_line, slot_bytes)
    if shape is None:
        return False
    codes, _, target, _, *folds = job.rows
    # Twice a line times this, without the lower half, is the line divided by the number of groups.
    inverse = -(-(2**31) // shape.groups)
    chosen.run(
        "add_in_windows",
        walkers_of(chosen, job.n_rows, shape) * shape.groups,
        threads,
        *(codes, target, *folds, to_device(np.array(job.plan, np.int64)), job.accumulators, job.n_lines, job.in_line),
        *(shape.groups, inverse, shape.slots, shape.copies),
        shared=head + shape.slots * shape.copies * slot_bytes,
        variant=job.variant,
    )
    return True


def walkers_of(chosen: "Engine", n_rows: int, shape: Shape) -> int:
    """Blocks, or groups of blocks, of which each has rows enough to make clearing and moving its table cheap."""
    # Registers leave room for one block on a multiprocessor.
    most = max(-(-chosen.blocks // 2) // shape.groups, 1)
    enough = max(shape.slots * shape.copies, 4 * chosen.threads)
    return min(-(-n_rows // enough), most)
