"""Counts and sums of many cells: rows are collected in buckets of neighbouring cells that fit into shared memory.

One pass sorts each tile of rows by bucket, and the rows of a bucket are read from all tiles: there is no full sort, no
pass that only measures, and nothing that the host must wait for.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cpu_fallback.compiled.border import Array
from gpu_encode.cuda import windows
from gpu_encode.cuda.memory import empty, to_device, zeros
from gpu_encode.cuda.runtime import SIMULATED

if TYPE_CHECKING:
    from gpu_encode.cuda.counting import Engine
    from gpu_encode.cuda.sums import Addition

# With fewer rows (an estimate), two launches, and clearing and merging the tables, take longer than the atomics of a
# hot cell at 4.4 G rows/s.
FEWEST_ROWS = 1 << 20
# Rows that are collected at a time, a slab, with four bytes each, or 8 or 12 with a number.  Slabs are larger if there
# would be too many of them, since each slab merges all tables once.
SLAB, SLAB_OF_PAIRS = 1 << 26, 1 << 24
MOST_SLABS, MOST_SLABS_OF_PAIRS = 4, 8
# Threads of a block that sorts; each reads four vectors of rows; registers allow two such blocks on a multiprocessor.
THREADS = 64 if SIMULATED else 512
ROWS_A_THREAD = 16
TILE = ROWS_A_THREAD * THREADS
# Tables with two counts in each word: three blocks fit on a multiprocessor, or one if there would be many buckets.
# With more buckets, fewer rows of a tile are neighbours.
TABLE_BYTES = 64 * 1024
WIDE_TABLE_BYTES = 128 * 1024
FEW_BUCKETS = 1024
MOST_WARPS = 32
# A thread that sorts manages at most four buckets.
MOST_BUCKETS = 4 * THREADS


class Slab(NamedTuple):
    """Rows that are sorted tile by tile; see raw/partition.cu.

    Parameters
    ----------
    n_rows : int
    words, runs, sizes : uint32 array
        Cells of the rows; runs of each bucket, tile by tile; number of rows in each bucket.
    values : array
        Raw numbers of the rows; empty if rows are counted.
    """

    n_rows: int
    words: Array
    runs: Array
    sizes: Array
    values: tuple[Array, ...]


def shift_of(room: int, cell_bytes: int) -> int:
    """Give the log2 of the number of cells that fit into a block's memory."""
    return (room // cell_bytes).bit_length() - 1


def buckets_of(n_cells: int, shift: int) -> int:
    """Give the number of buckets."""
    return -(-n_cells >> shift)


def table_for(engine: "Engine", n_cells: int) -> int:
    """Give the bytes of a bucket's counts: large tables only if there would be many buckets."""
    narrow, wide = (min(each, engine.table_bytes) for each in (TABLE_BYTES, WIDE_TABLE_BYTES))
    return narrow if buckets_of(n_cells, shift_of(narrow, 2)) <= FEW_BUCKETS else wide


def fits(engine: "Engine", n_cells: int) -> bool:
    """Whether the number of buckets is small enough."""
    return buckets_of(n_cells, shift_of(table_for(engine, n_cells), 2)) <= MOST_BUCKETS


def sorting_bytes(n_buckets: int, itemsize: int) -> int:
    """Shared memory of a block that sorts numbers: words of a scan, counts, positions, and the numbers themselves."""
    return 4 * (MOST_WARPS + -(-n_buckets // 4) * 4) + (2 + itemsize) * TILE


def sorted_slabs(
    engine: "Engine", rows: tuple[Any, ...], n_cells: int, shift: int, values: Array | None = None
) -> Iterator[Slab]:
    """Sort all rows by bucket, a slab at a time; each slab reuses the memory of the one before."""
    n_rows, n_buckets = len(rows[0].words), buckets_of(n_cells, shift)
    least, most = (SLAB, MOST_SLABS) if values is None else (SLAB_OF_PAIRS, MOST_SLABS_OF_PAIRS)
    n_slabs = min(-(-n_rows // least), most)
    slab = -(-n_rows // (n_slabs * TILE)) * TILE
    words, runs = empty(slab, np.uint32), empty(slab // TILE * n_buckets, np.uint32)
    sizes = zeros(n_slabs * n_buckets, np.uint32)
    given = () if values is None else (values,)
    moved = tuple(empty(slab, each.dtype) for each in given)
    itemsize = 4 if values is None else values.itemsize
    name = "partition_rows" if values is None else f"partition_pairs_{8 * itemsize}"
    for number, start in enumerate(range(0, n_rows, slab)):
        size = min(slab, n_rows - start)
        n_tiles, of_slab = -(-size // TILE), sizes[number * n_buckets : (number + 1) * n_buckets]
        found = Slab(size, words, runs[: n_tiles * n_buckets], of_slab, moved)
        arguments = *rows, start, size, shift, found.words, found.runs, found.sizes, *given, *moved
        shared = sorting_bytes(n_buckets, itemsize)
        engine.run(name, min(engine.blocks, n_tiles), THREADS, *arguments, shared=shared)
        yield found


def count(engine: "Engine", rows: tuple[Any, ...], accumulators: Array) -> None:
    """Add one to the cell of every row."""
    table_bytes = table_for(engine, len(accumulators))
    shift = shift_of(table_bytes, 2)
    wide = table_bytes > TABLE_BYTES
    threads, blocks = (2 * THREADS, -(-engine.blocks // 2)) if wide else (THREADS, engine.blocks * 3 // 2)
    for slab in sorted_slabs(engine, rows, len(accumulators), shift):
        # A block has two pieces on average, so that all blocks are busy to the end; a piece has at least as many rows
        # as cells.
        target = max(slab.n_rows // (2 * blocks), 1 << shift)
        shared = (2 << shift) + 4 * (len(slab.sizes) + MOST_WARPS)
        arguments = slab.words, slab.runs, slab.sizes, TILE, shift, target, accumulators
        engine.run("count_buckets", blocks, threads, *arguments, shared=shared)


def bytes_beside(engine: "Engine", n_buckets: int) -> int:
    """Shared memory of a block that adds numbers, without its cells: the data of its warps, and the ends of pieces."""
    warps = min(engine.threads, windows.THREADS) // windows.LANES
    return windows.BLOCK_BYTES + windows.WARP_BYTES * warps + 4 * (n_buckets + MOST_WARPS)


def add(engine: "Engine", job: "Addition") -> bool:
    """Add all rows in windows, unless there are few rows or too many cells; say whether they were added."""
    if job.variant is None or job.n_rows < FEWEST_ROWS:
        return False
    n_cells, slot_bytes = job.n_lines * job.in_line, windows.slot_bytes(job.variant)
    shift = shift_of(engine.table_bytes - bytes_beside(engine, MOST_BUCKETS), slot_bytes)
    if buckets_of(n_cells, shift) > MOST_BUCKETS:
        return False
    codes, classes, target, _, *folds = job.rows
    rows, plan = (codes, classes, 0, *folds, job.n_lines, job.in_line, 1), to_device(np.array(job.plan, np.int64))
    # Registers allow one block on a multiprocessor.
    threads, blocks = min(engine.threads, windows.THREADS), -(-engine.blocks // 2)
    variant = {name: job.variant[name] for name in ("VALUE", "SQUARES")}
    for slab in sorted_slabs(engine, rows, n_cells, shift, target):
        # As in `count`, but merging the sum of a cell takes longer than merging a count.
        wanted = max(slab.n_rows // (2 * blocks), 4 << shift)
        shared = bytes_beside(engine, len(slab.sizes)) + (slot_bytes << shift)
        given = slab.words, *slab.values, slab.runs, slab.sizes, slab.n_rows, TILE, shift, wanted, plan
        arguments = *given, job.accumulators, (slot_bytes << shift) // 4
        engine.run("add_buckets", blocks, threads, *arguments, shared=shared, variant=variant)
    return True
