"""Ordered sums without sorting, for few categories: one block walks over each chunk of consecutive rows.

A block keeps the sums of its chunk in shared memory, and processes in each turn as many rows as it has threads: every
row sees these sums and the earlier rows of its turn.  The sums of the chunks before are added afterwards.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.compiled.digits import MOST_DIGITS
from gpu_encode.cuda.digits import Extents, RowParts, line_of, spread_row
from gpu_encode.cuda.memory import empty
from gpu_encode.cuda.running import sum_between
from gpu_encode.cuda.runtime import (
    MOST_BLOCKS,
    SHARED_BYTES,
    THREADS,
    cuda,
    device_function,
    kernel,
    launch,
    launch_rows,
    types,
    xp,
)

if TYPE_CHECKING:
    from cpu_fallback.types import Array

# Rows of a turn.  Each row reads all other rows, so more rows would cost more; fewer would leave threads of a warp
# idle.
LANES = min(THREADS, 32)


def shared_bytes(extents: Extents) -> int:
    """Shared memory of a block: the sums, and for each row of a turn its key and its digits."""
    n_lines, n_classes, width = extents
    return 8 * (n_lines * n_classes * width + LANES * (1 + width))


def fits(extents: Extents) -> bool:
    """Whether the sums fit into a block's shared memory."""
    return shared_bytes(extents) <= SHARED_BYTES


def chunk_size(n_rows: int, n_cells: int) -> int:
    """Rows of a chunk: few enough to keep all blocks busy, but at least as many as the sums that are written for it."""
    n_chunks = max(1, min(MOST_BLOCKS, n_rows // max(n_cells, LANES)))
    return -(-n_rows // (n_chunks * LANES)) * LANES


class Turn(NamedTuple):
    """Rows of a turn in shared memory: where keys and addends begin, this row's number, and the number of rows."""

    shared: "Array"
    keys: int
    own: int
    lane: int
    lanes: int


@device_function
def sum_of_turn(shared: "Array", keys: int, column: int, n_lanes: int, key: int) -> np.int64:
    """Sum the digits that the first lanes of a turn add to a column of one key, which begin at `column` and `keys`."""
    found = np.int64(0)
    for lane in range(n_lanes):
        if shared[keys + lane] == key:
            found += shared[column + lane]
    return found


@device_function
def see_turn(turn: Turn, first: int, extents: Extents, seen: "Array", at: int) -> None:
    """Let a row see, in all classes of its category, the chunk's sums and the earlier rows of its turn."""
    shared, keys, own, lane, lanes = turn
    for label in range(extents.n_classes):
        key = first + label
        for column in range(extents.width):
            earlier = sum_of_turn(shared, keys, own + column * lanes, lane, key)
            seen[at] = shared[key * extents.width + column] + earlier
            at += 1


@device_function
def add_turn(turn: Turn, width: int) -> None:
    """Add all rows of a key to the chunk's sums, if this row is the last one of its turn with this key."""
    shared, keys, own, lane, lanes = turn
    key = shared[keys + lane]
    for later in range(lane + 1, lanes):
        if shared[keys + later] == key:
            return
    for column in range(width):
        shared[key * width + column] += sum_of_turn(shared, keys, own + column * lanes, lane + 1, key)


@kernel
def walk_chunks(rows: RowParts, extents: Extents, chunk_rows: int, table: "Array", seen: "Array") -> None:
    """Write the sums that each row sees of its chunk, and write each chunk's sums to its column of the table."""
    n_lines, n_classes, width = extents
    shared, digits = cuda.shared.array(0, types.int64), cuda.local.array(MOST_DIGITS, types.int64)
    lane, lanes = np.int64(cuda.threadIdx.x), np.int64(cuda.blockDim.x)
    keys, own = n_lines * n_classes * width, n_lines * n_classes * width + lanes
    turn = Turn(shared, keys, own, lane, lanes)  # type: ignore[arg-type]
    for cell in range(lane, keys, lanes):
        shared[cell] = 0
    start = cuda.blockIdx.x * chunk_rows
    stop = min(start + chunk_rows, len(rows.codes))
    for row in range(start + lane, start + chunk_rows, lanes):
        first = line_of(rows.codes[min(row, stop - 1)], n_lines) * n_classes
        shared[keys + lane] = -1
        for column in range(width):
            shared[own + column * lanes + lane] = 0
        if row < stop:
            shared[keys + lane] = first + (rows.classes[row] if rows.labelled else 0)
            spread_row(row, 0, rows, digits, shared, own + lane, lanes)
        cuda.syncthreads()
        if row < stop:
            see_turn(turn, first, extents, seen, row * n_classes * width)
        cuda.syncthreads()
        if row < stop:
            add_turn(turn, width)
        cuda.syncthreads()
    for cell in range(lane, keys, lanes):
        table[cell * cuda.gridDim.x + cuda.blockIdx.x] = shared[cell]


@kernel
def add_chunks(
    codes: "Array",
    n_lines: int,
    length: int,
    chunk_rows: int,
    n_chunks: int,
    running: "Array",
    sums: "Array",
    seen: "Array",
) -> None:
    """Add the sums of the chunks before a row's chunk, and of everything before, to the sums that the row has seen."""
    for row in range(cuda.grid(1), len(codes), cuda.gridsize(1)):
        line, chunk = line_of(codes[row], n_lines) * length, row // chunk_rows
        for k in range(length):
            cell = line + k
            seen[row * length + k] += sums[cell] + sum_between(running, cell * n_chunks, 0, chunk)


def by_chunk(parts: RowParts, extents: Extents, sums: "Array", seen: "Array") -> None:
    """Write to `seen` the sums that each row sees, and update `sums`; both are flat."""
    n_rows, n_cells, length = len(parts.codes), len(sums), extents.n_classes * extents.width
    size = chunk_size(n_rows, n_cells)
    n_chunks = -(-n_rows // size)
    table = empty(n_cells * n_chunks, np.int64)
    launch(walk_chunks, n_chunks, LANES, parts, extents, size, table, seen, shared=shared_bytes(extents))
    launch_rows(add_chunks, n_rows, parts.codes, extents.n_lines, length, size, n_chunks, xp.cumsum(table), sums, seen)
    sums += table.reshape(n_cells, n_chunks).sum(axis=1)
