"""Counts of many cells: rows are sorted into buckets of neighbouring cells, whose counts fit shared memory."""

from typing import TYPE_CHECKING, Any

import numpy as np

from cpu_fallback.compiled.border import Array
from gpu_encode.cuda.memory import empty
from gpu_encode.cuda.runtime import xp

if TYPE_CHECKING:
    from gpu_encode.cuda.counting import Engine

# Below this, five launches of numba.cuda, measured at 100 microseconds each, cost more than waiting for the atomics of
# a hot cell at 4.4 G rows/s.
FEWEST_ROWS = 1 << 21
# Rows sorted at a time, for which there is room twice, at four bytes each.
SLAB = 1 << 26
# Larger tables would leave a multiprocessor with a single block.
TABLE_BYTES = 64 * 1024
# Each block writes to all buckets in turn, and the sectors that it has not filled yet should stay in the L2 cache: an
# estimate, not measured.
MOST_BUCKETS = 4096
# Rows of a bucket that a block brings at least, if they are spread evenly: so many fill a sector.
ROWS_TO_A_BUCKET = 8
# Rows counted at a time, so that many blocks work on a bucket with many rows; two 16-bit counts share a word.
PIECE = 2**16 - 4


def shift_of(engine: "Engine") -> int:
    """Give the log2 of the cells of a bucket."""
    return (min(engine.table_bytes, TABLE_BYTES) // 2).bit_length() - 1


def fits(engine: "Engine", n_cells: int) -> bool:
    """Whether there are few enough buckets."""
    return -(-n_cells >> shift_of(engine)) <= min(MOST_BUCKETS, engine.table_bytes // 4)


def count(engine: "Engine", rows: tuple[Any, ...], accumulators: Array) -> None:
    """Add one to the cell of every row, a slab of rows at a time."""
    n_rows, shift = len(rows[0].words), shift_of(engine)
    slab = empty(min(n_rows, SLAB), np.uint32)
    sorted_cells = empty(len(slab), np.uint32)
    for start in range(0, n_rows, SLAB):
        size = min(SLAB, n_rows - start)
        bucket_sizes = sort(engine, rows, start, shift, len(accumulators), slab[:size], sorted_cells)
        bucket_ends, piece_ends = xp.cumsum(bucket_sizes), xp.cumsum((bucket_sizes + (PIECE - 1)) // PIECE)
        blocks = min(engine.blocks, -(-size // PIECE) + len(bucket_sizes))
        arguments = sorted_cells, bucket_ends, piece_ends, PIECE, shift, accumulators
        engine.run("count_buckets", blocks, engine.threads, *arguments, shared=2 << shift)


def sort(
    engine: "Engine", rows: tuple[Any, ...], start: int, shift: int, n_cells: int, slab: Array, sorted_cells: Array
) -> Array:
    """Bring the cells of each bucket together; gives how many rows each bucket has."""
    n_buckets = -(-n_cells >> shift)
    blocks = min(engine.blocks_for(len(slab)), max(len(slab) // (ROWS_TO_A_BUCKET * n_buckets), 1))
    share = -(-len(slab) // (4 * blocks)) * 4
    sizes = empty(n_buckets * blocks, np.int64)
    shared = 4 * n_buckets
    engine.run("measure_buckets", blocks, engine.threads, *rows, start, share, shift, slab, sizes, shared=shared)
    ends = xp.cumsum(sizes)
    engine.run("fill_buckets", blocks, engine.threads, slab, share, shift, sizes, ends, sorted_cells, shared=shared)
    return sizes.reshape(n_buckets, blocks).sum(axis=1)
