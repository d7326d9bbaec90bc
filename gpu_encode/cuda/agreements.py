"""Sums over all rows by the pattern of agreement with each query: blocks of threads share tiles of rows."""

from typing import TYPE_CHECKING

import numpy as np

from gpu_encode.cuda.memory import to_device, zeros
from gpu_encode.cuda.runtime import MOST_BLOCKS, SHARED_BYTES, THREADS, cuda, device_function, kernel, launch, types

if TYPE_CHECKING:
    from cpu_fallback.types import Array

# Most queries with which a block compares each tile: the tile is read from memory once for all of them.
MOST_QUERIES = 8
# Rows of a chunk, in tiles; after a chunk, a block adds its tables to memory.
TILES = 2 if THREADS < 32 else 64
WORD = 8


@device_function
def pattern_of(shared: "Array", query: int, own: int, step: int, n_features: int) -> np.int64:
    """Give the pattern of features in which a row agrees with a query; their codes begin at `own` and `query`."""
    pattern = np.int64(0)
    for feature in range(n_features):
        code = shared[query + feature]
        if code >= 0 and code == shared[own + feature * step]:
            pattern |= 1 << feature
    return pattern


@device_function
def load_row(rows: "Array", row: int, n_rows: int, n_features: int, shared: "Array", own: int, step: int) -> None:
    """Copy the codes of a thread's row to shared memory, so that the codes of a warp's threads are neighbours."""
    for feature in range(n_features):
        shared[own + feature * step] = rows[feature * n_rows + row]


@device_function
def add_row(measures: "Array", row: int, n_measures: int, table: "Array", cell: int) -> None:
    """Add the measures of a row to cells of a table."""
    for measure in range(n_measures):
        value = measures[row * n_measures + measure]
        if value:
            cuda.atomic.add(table, cell + measure, value)


@device_function
def set_up(queries: "Array", start: int, shared: "Array", n_cells: int, n_codes: int) -> None:
    """Clear the tables of a block, and copy the codes of its queries after them."""
    for cell in range(cuda.threadIdx.x, n_cells, cuda.blockDim.x):
        shared[cell] = 0
    for cell in range(cuda.threadIdx.x, n_codes, cuda.blockDim.x):
        shared[n_cells + cell] = queries[start + cell]


@device_function
def move(shared: "Array", n_cells: int, sums: "Array", start: int) -> None:
    """Add the tables of a block to the sums."""
    for cell in range(cuda.threadIdx.x, n_cells, cuda.blockDim.x):
        if shared[cell]:
            cuda.atomic.add(sums, start + cell, shared[cell])


@kernel
def sum_in_tables(
    queries: "Array",
    rows: "Array",
    measures: "Array",
    n_queries: int,
    n_rows: int,
    n_features: int,
    n_measures: int,
    at_once: int,
    sums: "Array",
) -> None:
    """Add rows that agree with a query in some feature to tables of a block, and add these to memory chunk by chunk.

    A block takes pairs, each of a group of queries and a chunk of rows, one after the other.
    """
    shared, step = cuda.shared.array(0, types.int64), cuda.blockDim.x
    length, chunk = (1 << n_features) * n_measures, TILES * step
    n_chunks, n_groups = (n_rows + chunk - 1) // chunk, (n_queries + at_once - 1) // at_once
    for item in range(cuda.blockIdx.x, n_groups * n_chunks, cuda.gridDim.x):
        first, begin = item // n_chunks * at_once, item % n_chunks * chunk
        here = min(at_once, n_queries - first)
        asked = here * length
        own = asked + here * n_features + cuda.threadIdx.x
        set_up(queries, first * n_features, shared, asked, here * n_features)
        cuda.syncthreads()
        for row in range(begin + cuda.threadIdx.x, min(begin + chunk, n_rows), step):
            load_row(rows, row, n_rows, n_features, shared, own, step)
            for query in range(here):
                pattern = pattern_of(shared, asked + query * n_features, own, step, n_features)
                if pattern:
                    add_row(measures, row, n_measures, shared, query * length + pattern * n_measures)
        cuda.syncthreads()
        move(shared, asked, sums, first * length)
        cuda.syncthreads()


@kernel
def sum_in_memory(
    queries: "Array",
    rows: "Array",
    measures: "Array",
    n_queries: int,
    n_rows: int,
    n_features: int,
    n_measures: int,
    sums: "Array",
) -> None:
    """Add such rows directly in memory, if even the table of one query does not fit into shared memory."""
    shared, step = cuda.shared.array(0, types.int64), cuda.blockDim.x
    length, chunk = (1 << n_features) * n_measures, TILES * step
    n_chunks, n_groups = (n_rows + chunk - 1) // chunk, (n_queries + MOST_QUERIES - 1) // MOST_QUERIES
    for item in range(cuda.blockIdx.x, n_groups * n_chunks, cuda.gridDim.x):
        first, begin = item // n_chunks * MOST_QUERIES, item % n_chunks * chunk
        here = min(MOST_QUERIES, n_queries - first)
        own = here * n_features + cuda.threadIdx.x
        set_up(queries, first * n_features, shared, 0, here * n_features)
        cuda.syncthreads()
        for row in range(begin + cuda.threadIdx.x, min(begin + chunk, n_rows), step):
            load_row(rows, row, n_rows, n_features, shared, own, step)
            for query in range(here):
                pattern = pattern_of(shared, query * n_features, own, step, n_features)
                if pattern:
                    add_row(measures, row, n_measures, sums, (first + query) * length + pattern * n_measures)
        cuda.syncthreads()


def words_of(n_features: int, at_once: int) -> int:
    """Words of shared memory for `at_once` queries, and for a row of each thread."""
    return n_features * (at_once + THREADS)


def queries_at_once(n_features: int, n_measures: int) -> int:
    """Give the number of queries that fit into a block with their tables; 0 if not even one does."""
    free = SHARED_BYTES // WORD - words_of(n_features, 0)
    return max(0, min(MOST_QUERIES, free // ((n_measures << n_features) + n_features)))


def sum_agreements(queries: "Array", codes: "Array", measures: "Array", /) -> "Array":
    """Sum measures (rows, n) of rows by query and by pattern of agreement: (queries, 2**features, n)."""
    n_features, n_queries = queries.shape
    n_rows, n_measures = measures.shape
    measures = to_device(measures.astype(np.int64, copy=False))
    sums = zeros((n_queries, 1 << n_features, n_measures), np.int64)
    if not (n_queries and n_rows):
        return sums
    asked = to_device(to_device(queries.astype(np.int32, copy=False)).T).reshape(-1)
    given = to_device(codes.astype(np.int32, copy=False)).reshape(-1)
    numbers = n_queries, n_rows, n_features, n_measures
    at_once = queries_at_once(n_features, n_measures)
    n_items = -(-n_queries // (at_once or MOST_QUERIES)) * -(-n_rows // (TILES * THREADS))
    blocks, flat = min(n_items, MOST_BLOCKS), (measures.reshape(-1), *numbers)
    if at_once:
        shared = WORD * (at_once * (n_measures << n_features) + words_of(n_features, at_once))
        launch(sum_in_tables, blocks, THREADS, asked, given, *flat, at_once, sums.reshape(-1), shared=shared)
    else:
        shared = WORD * words_of(n_features, MOST_QUERIES)
        launch(sum_in_memory, blocks, THREADS, asked, given, *flat, sums.reshape(-1), shared=shared)
    # Most pairs agree in nothing: their sum is the total minus all other sums.
    sums[:, 0] = measures.sum(axis=0) - sums.sum(axis=1)
    return sums
