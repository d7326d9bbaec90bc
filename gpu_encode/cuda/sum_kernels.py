"""The kernels that add rows to cells: in tables for a range of lines, in the cells, or in both where lines are hot.

A line is all cells of a category.  A thread has the loads of its next row under way while it adds one.
gpu_encode/cuda/raw/sums.cu does the same in CUDA C++.
"""

from typing import TYPE_CHECKING

import numpy as np

from gpu_encode.cuda.addition import LINE, add_to_cell, add_to_table, take
from gpu_encode.cuda.digits import bits_at
from gpu_encode.cuda.folds import fold_of
from gpu_encode.cuda.indexed import CodeSource, code_at
from gpu_encode.cuda.runtime import cuda, device_function, kernel, types

if TYPE_CHECKING:
    from cpu_fallback.types import Array

    Data = tuple[CodeSource, Array, Array, Array]
    Source = tuple[int, Array, int, np.uint64, int, int, Array]
    Loaded = tuple[np.int32, np.int32, np.int32, np.uint64, np.uint64]

# Places in a plan of what does not differ between measures: of the rows, and of the tables of a launch.
N_LINES, N_CLASSES, CLASS_STEP, TARGET_KIND, WEIGHT_KIND, IN_LINE, WIDTH = range(3 * LINE, 3 * LINE + 7)
# Bytes of a number of the target: CUDA C++ asks.
TARGET_BYTES = WIDTH + 1
# COPIES is a power of two.
IN_TABLE, COPIES, SIZE, CHUNK = range(TARGET_BYTES + 1, TARGET_BYTES + 5)
# What is loaded before the first row.
NOTHING = (np.int32(0), np.int32(0), np.int32(0), np.uint64(0), np.uint64(0))


@device_function
def load_row(row: int, data: "Data", source: "Source", plan: "Array") -> "Loaded":
    """Code, class, fold, target and weight of a row."""
    codes, classes, target, weight = data
    code, label = code_at(codes, np.uint64(row)), classes[np.uint64(row * plan[CLASS_STEP])]
    fold = np.int32(fold_of(row, *source))
    of_target, of_weight = bits_at(target, plan[TARGET_KIND], row), bits_at(weight, plan[WEIGHT_KIND], row)
    return code, label, fold, of_target, of_weight


@device_function
def place_of(loaded: "Loaded", plan: "Array") -> tuple[np.int64, np.int64]:
    """Line of a row and its cell in the line; negative codes count from the end of the table."""
    code, label, fold, _, _ = loaded
    return code + (plan[N_LINES] if code < 0 else np.int64(0)), fold * plan[N_CLASSES] + label


@device_function
def add_in_memory(loaded: "Loaded", plan: "Array", accumulators: "Array", cell: int) -> None:
    """Add a row to its cell."""
    factors, at = (loaded[3], plan[TARGET_KIND], loaded[4], plan[WEIGHT_KIND]), cell * plan[WIDTH]
    for power in range(3):
        if plan[LINE * power]:
            add_to_cell(power, factors, plan, accumulators, at)
            at += plan[LINE * power + 3]


@device_function
def add_in_table(loaded: "Loaded", plan: "Array", table: "Array", slot: int, accumulators: "Array", cell: int) -> None:
    """Add a row to its slot in the tables of the block."""
    factors, at = (loaded[3], plan[TARGET_KIND], loaded[4], plan[WEIGHT_KIND]), cell * plan[WIDTH]
    word, step = (cuda.threadIdx.x & (plan[COPIES] - 1)) * plan[SIZE] + slot, plan[IN_TABLE]
    for power in range(3):
        if plan[LINE * power]:
            add_to_table(power, factors, plan, table, word, step, accumulators, at)
            word += plan[LINE * power + 4] * step
            at += plan[LINE * power + 3]


@device_function
def clear(plan: "Array", table: "Array") -> None:
    """Set the words of a block's tables to zero."""
    for index in range(cuda.threadIdx.x, plan[COPIES] * plan[SIZE], cuda.blockDim.x):
        table[index] = 0


@device_function
def move_slot(plan: "Array", table: "Array", slot: int, accumulators: "Array", cell: int) -> None:
    """Move what the tables of the block hold in a slot to the cell."""
    word, at = slot, cell * plan[WIDTH]
    for power in range(3):
        n_words, columns = plan[LINE * power + 4], plan[LINE * power + 5]
        for column in range(columns):
            total = np.int64(0)
            for half in range(n_words // columns):
                total += take(table, word, plan[COPIES], plan[SIZE]) << (16 * half)
                word += plan[IN_TABLE]
            if total:
                cuda.atomic.add(accumulators, np.uint64(at + column), total)
        at += plan[LINE * power + 3]


@kernel
def add_in_cells(
    codes: CodeSource,
    classes: "Array",
    target: "Array",
    weight: "Array",
    kind: int,
    numbers: "Array",
    n_splits: int,
    seed: np.uint64,
    n_rows: int,
    first_row: int,
    units: "Array",
    plan: "Array",
    accumulators: "Array",
) -> None:
    """Add all rows to their cells."""
    data, source = (codes, classes, target, weight), (kind, numbers, n_splits, seed, n_rows, first_row, units)
    step, last = cuda.gridsize(1), len(codes.words) - 1
    ahead = NOTHING
    # The first turn only loads.
    for row in range(cuda.grid(1) - step, len(codes.words), step):
        loaded, ahead = ahead, load_row(min(row + step, last), data, source, plan)
        if row >= 0:
            line, inside = place_of(loaded, plan)
            add_in_memory(loaded, plan, accumulators, line * plan[IN_LINE] + inside)


@kernel
def add_in_tables(
    codes: CodeSource,
    classes: "Array",
    target: "Array",
    weight: "Array",
    kind: int,
    numbers: "Array",
    n_splits: int,
    seed: np.uint64,
    n_rows: int,
    first_row: int,
    units: "Array",
    plan: "Array",
    accumulators: "Array",
) -> None:
    """Add all rows in tables, chunk by chunk, after which a block moves them to the cells."""
    data, source = (codes, classes, target, weight), (kind, numbers, n_splits, seed, n_rows, first_row, units)
    table, chunk, step = cuda.shared.array(0, types.int32), plan[CHUNK], cuda.blockDim.x
    clear(plan, table)
    for begin in range(cuda.blockIdx.x * chunk, len(codes.words), cuda.gridDim.x * chunk):
        stop = min(begin + chunk, len(codes.words))
        cuda.syncthreads()
        ahead = NOTHING
        for row in range(begin + cuda.threadIdx.x - step, stop, step):
            loaded, ahead = ahead, load_row(min(row + step, stop - 1), data, source, plan)
            line, inside = place_of(loaded, plan)
            cell = line * plan[IN_LINE] + inside
            if row >= begin:
                add_in_table(loaded, plan, table, cell, accumulators, cell)
        cuda.syncthreads()
        for cell in range(cuda.threadIdx.x, plan[IN_TABLE], step):
            move_slot(plan, table, cell, accumulators, cell)


@kernel
def add_hot_in_tables(
    codes: CodeSource,
    classes: "Array",
    target: "Array",
    weight: "Array",
    kind: int,
    numbers: "Array",
    n_splits: int,
    seed: np.uint64,
    n_rows: int,
    first_row: int,
    units: "Array",
    plan: "Array",
    accumulators: "Array",
    hot: "Array",
    ranks: "Array",
) -> None:
    """Add the rows of hot lines, whose rank is 1 or more, in tables, and all others to their cells."""
    data, source = (codes, classes, target, weight), (kind, numbers, n_splits, seed, n_rows, first_row, units)
    table, chunk, step = cuda.shared.array(0, types.int32), plan[CHUNK], cuda.blockDim.x
    clear(plan, table)
    for begin in range(cuda.blockIdx.x * chunk, len(codes.words), cuda.gridDim.x * chunk):
        stop = min(begin + chunk, len(codes.words))
        cuda.syncthreads()
        ahead = NOTHING
        for row in range(begin + cuda.threadIdx.x - step, stop, step):
            loaded, ahead = ahead, load_row(min(row + step, stop - 1), data, source, plan)
            if row < begin:
                continue
            line, inside = place_of(loaded, plan)
            cell, rank = line * plan[IN_LINE] + inside, np.int64(ranks[line])
            if rank:
                add_in_table(loaded, plan, table, (rank - 1) * plan[IN_LINE] + inside, accumulators, cell)
            else:
                add_in_memory(loaded, plan, accumulators, cell)
        cuda.syncthreads()
        in_line = plan[IN_LINE]
        for slot in range(cuda.threadIdx.x, plan[IN_TABLE], step):
            move_slot(plan, table, slot, accumulators, hot[slot // in_line] * in_line + slot % in_line)
