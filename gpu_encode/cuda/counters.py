"""Kernels that count rows per (line, fold, class) cell; gpu_encode/cuda/raw/counting.cu does the same in CUDA C++.

Counts are integers, so rows may come in any order.  Each thread has the loads of four rows in flight at once.
"""

import numpy as np

from cpu_fallback.compiled.border import Array
from gpu_encode.cuda.folds import FoldArguments, fold_of
from gpu_encode.cuda.indexed import CodeSource, code_at
from gpu_encode.cuda.runtime import cuda, device_function, kernel, types

# n_lines, n_folds, n_classes.
Shape = tuple[int, int, int]


@device_function
def cell_of(code: np.int32, fold: int, label: int, shape: Shape) -> np.int64:
    """Cell of a row; negative codes count from the end of the table."""
    line = np.int64(code) + shape[0] if code < 0 else np.int64(code)
    return (line * shape[1] + fold) * shape[2] + label


@device_function
def cell_at(
    row: int, codes: CodeSource, classes: Array, with_classes: int, source: FoldArguments, shape: Shape
) -> np.int64:
    """Cell of one row."""
    label = np.int64(classes[row]) if with_classes else np.int64(0)
    return cell_of(code_at(codes, row), fold_of(row, *source), label, shape)


@device_function
def four_cells(
    row: int, step: int, codes: CodeSource, classes: Array, with_classes: int, source: FoldArguments, shape: Shape
) -> tuple[np.int64, np.int64, np.int64, np.int64]:
    """Cells of four rows, a step apart; all is loaded before any of it is used."""
    code_a, code_b = code_at(codes, row), code_at(codes, row + step)
    code_c, code_d = code_at(codes, row + 2 * step), code_at(codes, row + 3 * step)
    label_a = label_b = label_c = label_d = np.int64(0)
    if with_classes:
        label_a, label_b = np.int64(classes[row]), np.int64(classes[row + step])
        label_c, label_d = np.int64(classes[row + 2 * step]), np.int64(classes[row + 3 * step])
    return (
        cell_of(code_a, fold_of(row, *source), label_a, shape),
        cell_of(code_b, fold_of(row + step, *source), label_b, shape),
        cell_of(code_c, fold_of(row + 2 * step, *source), label_c, shape),
        cell_of(code_d, fold_of(row + 3 * step, *source), label_d, shape),
    )


# A table in shared memory counts in 32-bit words; with halves = 1 a word holds the counts of two neighbouring cells.


@device_function
def add(table: Array, halves: int, cell: int) -> None:
    """Count one row."""
    cuda.atomic.add(table, cell >> halves, np.uint32(np.uint32(1) << np.uint32((cell & halves) << 4)))


@device_function
def add_four(table: Array, halves: int, a: int, b: int, c: int, d: int) -> None:
    """Count four rows."""
    add(table, halves, a)
    add(table, halves, b)
    add(table, halves, c)
    add(table, halves, d)


@device_function
def clear(table: Array, size: int) -> None:
    """Set the block's table to zero."""
    for word in range(cuda.threadIdx.x, size, cuda.blockDim.x):
        table[word] = 0


@device_function
def flush(table: Array, size: int, halves: int, first: int, accumulators: Array) -> None:
    """Add the block's table to the cells from the first on, and set it to zero again."""
    for word in range(cuda.threadIdx.x, size, cuda.blockDim.x):
        counted = np.int64(table[word])
        if counted:
            table[word] = 0
            cell = first + (word << halves)
            low, high = (counted & 0xFFFF, counted >> 16) if halves else (counted, np.int64(0))
            if low:
                cuda.atomic.add(accumulators, cell, low)
            if high:
                cuda.atomic.add(accumulators, cell + 1, high)


@kernel
def count_rows(
    codes: CodeSource,
    classes: Array,
    with_classes: int,
    kind: int,
    numbers: Array,
    n_splits: int,
    seed: np.uint64,
    n_rows: int,
    first_row: int,
    units: Array,
    n_lines: int,
    n_folds: int,
    n_classes: int,
    piece: int,
    halves: int,
    accumulators: Array,
) -> None:
    """Count each piece of rows in a table of the block's own, then add that to the cells."""
    source, shape = (kind, numbers, n_splits, seed, n_rows, first_row, units), (n_lines, n_folds, n_classes)
    table = cuda.shared.array(0, types.uint32)
    step, size = cuda.blockDim.x, (len(accumulators) + halves) >> halves
    clear(table, size)
    for begin in range(cuda.blockIdx.x * piece, len(codes.words), cuda.gridDim.x * piece):
        cuda.syncthreads()
        row, end = begin + cuda.threadIdx.x, min(begin + piece, len(codes.words))
        while row + 3 * step < end:
            a, b, c, d = four_cells(row, step, codes, classes, with_classes, source, shape)
            add_four(table, halves, a, b, c, d)
            row += 4 * step
        while row < end:
            cell = cell_at(row, codes, classes, with_classes, source, shape)
            add(table, halves, cell)
            row += step
        cuda.syncthreads()
        flush(table, size, halves, 0, accumulators)


@kernel
def count_in_memory(
    codes: CodeSource,
    classes: Array,
    with_classes: int,
    kind: int,
    numbers: Array,
    n_splits: int,
    seed: np.uint64,
    n_rows: int,
    first_row: int,
    units: Array,
    n_lines: int,
    n_folds: int,
    n_classes: int,
    accumulators: Array,
) -> None:
    """Add one to the cell of each row, where it lies."""
    source, shape = (kind, numbers, n_splits, seed, n_rows, first_row, units), (n_lines, n_folds, n_classes)
    row, step = cuda.grid(1), cuda.gridsize(1)
    while row + 3 * step < len(codes.words):
        a, b, c, d = four_cells(row, step, codes, classes, with_classes, source, shape)
        cuda.atomic.add(accumulators, a, 1)
        cuda.atomic.add(accumulators, b, 1)
        cuda.atomic.add(accumulators, c, 1)
        cuda.atomic.add(accumulators, d, 1)
        row += 4 * step
    while row < len(codes.words):
        cuda.atomic.add(accumulators, cell_at(row, codes, classes, with_classes, source, shape), 1)
        row += step


@kernel
def measure_buckets(
    codes: CodeSource,
    classes: Array,
    with_classes: int,
    kind: int,
    numbers: Array,
    n_splits: int,
    seed: np.uint64,
    n_rows: int,
    first_row: int,
    units: Array,
    n_lines: int,
    n_folds: int,
    n_classes: int,
    start: int,
    share: int,
    shift: int,
    slab: Array,
    sizes: Array,
) -> None:
    """Write the cells of the slab's rows, and how many of each block's share lie in each bucket."""
    source, shape = (kind, numbers, n_splits, seed, n_rows, first_row, units), (n_lines, n_folds, n_classes)
    table = cuda.shared.array(0, types.uint32)
    step, n_buckets = cuda.blockDim.x, len(sizes) // cuda.gridDim.x
    clear(table, n_buckets)
    cuda.syncthreads()
    begin = cuda.blockIdx.x * share
    place, end = begin + cuda.threadIdx.x, min(begin + share, len(slab))
    while place + 3 * step < end:
        a, b, c, d = four_cells(start + place, step, codes, classes, with_classes, source, shape)
        slab[place], slab[place + step], slab[place + 2 * step], slab[place + 3 * step] = a, b, c, d
        add_four(table, 0, a >> shift, b >> shift, c >> shift, d >> shift)
        place += 4 * step
    while place < end:
        cell = cell_at(start + place, codes, classes, with_classes, source, shape)
        slab[place] = cell
        add(table, 0, cell >> shift)
        place += step
    cuda.syncthreads()
    for bucket in range(cuda.threadIdx.x, n_buckets, step):
        sizes[bucket * cuda.gridDim.x + cuda.blockIdx.x] = table[bucket]


@kernel
def fill_buckets(slab: Array, share: int, shift: int, sizes: Array, ends: Array, sorted_cells: Array) -> None:
    """Bring the cells of each bucket together; their order does not matter."""
    table = cuda.shared.array(0, types.uint32)
    step = cuda.blockDim.x
    for bucket in range(cuda.threadIdx.x, len(sizes) // cuda.gridDim.x, step):
        at = bucket * cuda.gridDim.x + cuda.blockIdx.x
        table[bucket] = ends[at] - sizes[at]
    cuda.syncthreads()
    begin = cuda.blockIdx.x * share
    place, end = begin + cuda.threadIdx.x, min(begin + share, len(slab))
    while place + 3 * step < end:
        a, b, c, d = slab[place], slab[place + step], slab[place + 2 * step], slab[place + 3 * step]
        to_a = cuda.atomic.add(table, np.int64(a) >> shift, np.uint32(1))
        to_b = cuda.atomic.add(table, np.int64(b) >> shift, np.uint32(1))
        to_c = cuda.atomic.add(table, np.int64(c) >> shift, np.uint32(1))
        to_d = cuda.atomic.add(table, np.int64(d) >> shift, np.uint32(1))
        sorted_cells[to_a], sorted_cells[to_b], sorted_cells[to_c], sorted_cells[to_d] = a, b, c, d
        place += 4 * step
    while place < end:
        cell = slab[place]
        sorted_cells[cuda.atomic.add(table, np.int64(cell) >> shift, np.uint32(1))] = cell
        place += step


@device_function
def first_beyond(number: int, ends: Array) -> int:
    """First place whose end is beyond the number."""
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high) >> 1
        if ends[middle] <= number:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def count_buckets(
    sorted_cells: Array, bucket_ends: Array, piece_ends: Array, piece: int, shift: int, accumulators: Array
) -> None:
    """Count each piece of a bucket in a table of the block's own, then add that to the bucket's cells."""
    table = cuda.shared.array(0, types.uint32)
    step, size, mask = cuda.blockDim.x, 1 << (shift - 1), (1 << shift) - 1
    clear(table, size)
    for number in range(cuda.blockIdx.x, piece_ends[len(piece_ends) - 1], cuda.gridDim.x):
        cuda.syncthreads()
        bucket = first_beyond(number, piece_ends)
        before = bucket_ends[bucket - 1] if bucket else 0
        first_piece = piece_ends[bucket - 1] if bucket else 0
        begin = before + (number - first_piece) * piece
        place, end = begin + cuda.threadIdx.x, min(begin + piece, bucket_ends[bucket])
        while place + 3 * step < end:
            a, b = np.int64(sorted_cells[place]) & mask, np.int64(sorted_cells[place + step]) & mask
            c, d = np.int64(sorted_cells[place + 2 * step]) & mask, np.int64(sorted_cells[place + 3 * step]) & mask
            add_four(table, 1, a, b, c, d)
            place += 4 * step
        while place < end:
            cell = np.int64(sorted_cells[place]) & mask
            add(table, 1, cell)
            place += step
        cuda.syncthreads()
        flush(table, size, 1, bucket << shift, accumulators)
