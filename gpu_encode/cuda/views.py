"""Sums over all categories."""

import numpy as np

from cpu_fallback import sums as definition
from cpu_fallback.compiled.border import Array
from gpu_encode.cuda.memory import zeros
from gpu_encode.cuda.runtime import MULTIPROCESSORS, THREADS, blocks_for, cuda, is_device_array, kernel, launch, xp

MOST_COLUMNS = MULTIPROCESSORS * THREADS


@kernel
def add_lines(cells: Array, sums: Array) -> None:
    """Add up lines of cells, each as long as the sums; each thread adds one column."""
    step, first, mine = cuda.gridsize(1) // len(sums) * len(sums), cuda.grid(1), np.int64(0)
    if first < step:
        for i in range(first, len(cells), step):
            mine += cells[i]
        cuda.atomic.add(sums, first % len(sums), mine)


def totals(accumulators: Array, /) -> Array:
    """Sum cells over their first axis; with few columns, CuPy would use one block for each column, or fewer."""
    shape = accumulators.shape[1:]
    n_columns = int(np.prod(shape, dtype=np.int64))
    if not is_device_array(accumulators) or not 0 < n_columns <= MOST_COLUMNS:
        return definition.totals(accumulators)
    cells, sums = xp.ascontiguousarray(accumulators).reshape(-1), zeros(n_columns, np.int64)
    blocks = max(blocks_for(cells.size, THREADS, MULTIPROCESSORS), -(-n_columns // THREADS))
    launch(add_lines, blocks, THREADS, cells, sums)
    return sums.reshape(shape)
