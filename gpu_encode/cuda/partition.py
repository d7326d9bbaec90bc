"""Counts and sums of many cells: rows come together by buckets of neighbouring cells, which fit shared memory.

A tile of rows is sorted by bucket in one pass, where it lies, and a bucket's rows are read from all tiles: there is no
sort, no pass that only measures, and nothing for the host to wait for.
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

# Below this, an estimate, two launches and clearing and adding up the tables take longer than waiting for the atomics
# of a hot cell at 4.4 G rows/s.
FEWEST_ROWS = 1 << 20
# Rows brought together at a time, at four bytes each, or at 8 or 12 with a number: a slab has so many, or all rows by
# the number of slabs if that is more, since each slab adds up all tables once.
SLAB, SLAB_OF_PAIRS = 1 << 26, 1 << 24
MOST_SLABS, MOST_SLABS_OF_PAIRS = 4, 8
# Threads of a block that sorts, of which each takes four vectors of rows; registers let two fill a multiprocessor.
THREADS = 64 if SIMULATED else 512
ROWS_A_THREAD = 16
TILE = ROWS_A_THREAD * THREADS
# Tables with two counts a word: three blocks fill a multiprocessor, or one where buckets would be many.  The more there
# are, the fewer rows of a tile lie side by side.
TABLE_BYTES = 64 * 1024
WIDE_TABLE_BYTES = 128 * 1024
FEW_BUCKETS = 1024
MOST_WARPS = 32
# A thread that sorts looks after four buckets at most.
MOST_BUCKETS = 4 * THREADS


class Slab(NamedTuple):
    """Rows that are sorted tile by tile; see raw/partition.cu.

    Parameters
    ----------
    n_rows : int
    words, runs, sizes : uint32 array
        Cells of the rows; runs of each bucket, tile by tile; rows of each bucket.
    values : array
        Numbers of the rows, raw; none where rows are counted.
    """

    n_rows: int
    words: Array
    runs: Array
    sizes: Array
    values: tuple[Array, ...]


def shift_of(room: int, cell_bytes: int) -> int:
    """Give the log2 of the cells that a block has room for."""
    return (room // cell_bytes).bit_length() - 1


def buckets_of(n_cells: int, shift: int) -> int:
    """Give the number of buckets."""
    return -(-n_cells >> shift)


def table_for(engine: "Engine", n_cells: int) -> int:
    """Give the bytes of a bucket's counts: large tables only where buckets would be many."""
    narrow, wide = (min(each, engine.table_bytes) for each in (TABLE_BYTES, WIDE_TABLE_BYTES))
    return narrow if buckets_of(n_cells, shift_of(narrow, 2)) <= FEW_BUCKETS else wide


def fits(engine: "Engine", n_cells: int) -> bool:
    """Whether there are few enough buckets to count in."""
    return buckets_of(n_cells, shift_of(table_for(engine, n_cells), 2)) <= MOST_BUCKETS


def sorting_bytes(n_buckets: int, itemsize: int) -> int:
    """Shared memory of a block that sorts numbers: words of a scan, counts, positions, and the numbers themselves."""
    return 4 * (MOST_WARPS + -(-n_buckets // 4) * 4) + (2 + itemsize) * TILE


def sorted_slabs(
    engine: "Engine", rows: tuple[Any, ...], n_cells: int, shift: int, values: Array | None = None
) -> Iterator[Slab]:
    """Sort all rows by bucket, a slab at a time; each takes the memory of the one before."""
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
        # A block has two pieces on average, so that all have work to the end, and a piece no fewer rows than cells.
        target = max(slab.n_rows // (2 * blocks), 1 << shift)
        shared = (2 << shift) + 4 * (len(slab.sizes) + MOST_WARPS)
        arguments = slab.words, slab.runs, slab.sizes, TILE, shift, target, accumulators
        engine.run("count_buckets", blocks, threads, *arguments, shared=shared)


def bytes_beside(engine: "Engine", n_buckets: int) -> int:
    """Shared memory of a block that adds numbers beside its cells: what its warps keep, and the ends of pieces."""
    warps = min(engine.threads, windows.THREADS) // windows.LANES
    return windows.BLOCK_BYTES + windows.WARP_BYTES * warps + 4 * (n_buckets + MOST_WARPS)


def add(engine: "Engine", job: "Addition") -> bool:
    """Add all rows in windows, unless they are few or cells too many; says whether that was done."""
    if job.variant is None or job.n_rows < FEWEST_ROWS:
        return False
    n_cells, slot_bytes = job.n_lines * job.in_line, windows.slot_bytes(job.variant)
    shift = shift_of(engine.table_bytes - bytes_beside(engine, MOST_BUCKETS), slot_bytes)
    if buckets_of(n_cells, shift) > MOST_BUCKETS:
        return False
    codes, classes, target, _, *folds = job.rows
    rows, plan = (codes, classes, 0, *folds, job.n_lines, job.in_line, 1), to_device(np.array(job.plan, np.int64))
    # Registers leave room for one block on a multiprocessor.
    threads, blocks = min(engine.threads, windows.THREADS), -(-engine.blocks // 2)
    variant = {name: job.variant[name] for name in ("VALUE", "SQUARES")}
    for slab in sorted_slabs(engine, rows, n_cells, shift, target):
        # As in `count`, but that a cell's sum takes longer to move than a count.
        wanted = max(slab.n_rows // (2 * blocks), 4 << shift)
        shared = bytes_beside(engine, len(slab.sizes)) + (slot_bytes << shift)
        given = slab.words, *slab.values, slab.runs, slab.sizes, slab.n_rows, TILE, shift, wanted, plan
        arguments = *given, job.accumulators, (slot_bytes << shift) // 4
        engine.run("add_buckets", blocks, threads, *arguments, shared=shared, variant=variant)
    return True
