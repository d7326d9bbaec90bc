"""The encoding of each row: a look-up by category and fold, which the kernel computes.

gpu_encode/cuda/raw/gather.cu does the same in CUDA C++.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cpu_fallback.compiled.border import GIVEN, NO_FOLDS
from cpu_fallback.types import written
from gpu_encode.cuda import raw
from gpu_encode.cuda.casting import cast
from gpu_encode.cuda.categories import index_for, lookup, words_of
from gpu_encode.cuda.folds import fold_of, fold_source
from gpu_encode.cuda.indexed import CodeSource, code_at, offset_at, source_of
from gpu_encode.cuda.memory import empty, to_device
from gpu_encode.cuda.row_parts import line_of
from gpu_encode.cuda.runtime import (
    MOST_BLOCKS,
    SIMULATED,
    THREADS,
    blocks_for,
    cuda,
    device_function,
    kernel,
    launch_rows,
    types,
)

if TYPE_CHECKING:
    from cpu_fallback.types import Array, Folds

# Rows that a thread looks up at once: one look-up alone leaves it waiting for memory.
IN_FLIGHT = 4
# Six blocks of CUDA C++ fill a multiprocessor, by their registers.
MOST_RAW_BLOCKS = MOST_BLOCKS * 3 // 8
# Bytes of the entries that CUDA C++ looks up.
RAW_SIZES = (4, 8)
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


@device_function
def find_cells(
    row: int,
    step: int,
    codes: CodeSource,
    shape: tuple[int, int, int],
    kind: int,
    numbers: "Array",
    n_splits: int,
    seed: np.uint64,
    n_rows: int,
    first_row: int,
    units: "Array",
    accumulators: "Array",
) -> None:
    """Places in a table of (lines, folds, outputs) of a row and those `step` apart; the last row's for any beyond."""
    n_lines, n_folds, n_outputs = shape
    last = len(codes.words) - 1
    for k in range(IN_FLIGHT):
        accumulators[k] = line_of(code_at(codes, min(row + k * step, last)), n_lines) * n_folds * n_outputs
    # Given folds apart from computed ones: no branch stands between the loads, so that all are under way at once.
    if kind == GIVEN:
        for k in range(IN_FLIGHT):
            accumulators[k] += numbers[min(row + k * step, last)] * n_outputs
    elif kind != NO_FOLDS:
        for k in range(IN_FLIGHT):
            this = min(row + k * step, last)
            accumulators[k] += fold_of(this, kind, numbers, n_splits, seed, n_rows, first_row, units) * n_outputs


@kernel
def gather_one(
    table: "Array",
    n_lines: int,
    n_folds: int,
    codes: CodeSource,
    kind: int,
    numbers: "Array",
    n_splits: int,
    seed: np.uint64,
    n_rows: int,
    first_row: int,
    units: "Array",
    out: "Array",
) -> None:
    """Look up the only output of every row."""
    accumulators = cuda.local.array(IN_FLIGHT, types.int64)
    found = cuda.local.array(IN_FLIGHT, table.dtype)
    shape, step = (n_lines, n_folds, 1), cuda.gridsize(1)
    for row in range(cuda.grid(1), len(codes.words), IN_FLIGHT * step):
        find_cells(row, step, codes, shape, kind, numbers, n_splits, seed, n_rows, first_row, units, accumulators)
        for k in range(IN_FLIGHT):
            found[k] = table[accumulators[k]]
        for k in range(IN_FLIGHT):
            if row + k * step < len(codes.words):
                out[row + k * step] = found[k]


@kernel
def gather_several(
    table: "Array",
    n_lines: int,
    n_folds: int,
    n_outputs: int,
    codes: CodeSource,
    kind: int,
    numbers: "Array",
    n_splits: int,
    seed: np.uint64,
    n_rows: int,
    first_row: int,
    units: "Array",
    by_row: int,
    by_output: int,
    out: "Array",
) -> None:
    """Look up all outputs of every row; `by_row` and `by_output`: distance of two rows and of two outputs."""
    accumulators = cuda.local.array(IN_FLIGHT, types.int64)
    found = cuda.local.array(IN_FLIGHT, table.dtype)
    shape, step = (n_lines, n_folds, n_outputs), cuda.gridsize(1)
    for row in range(cuda.grid(1), len(codes.words), IN_FLIGHT * step):
        find_cells(row, step, codes, shape, kind, numbers, n_splits, seed, n_rows, first_row, units, accumulators)
        for output in range(n_outputs):
            for k in range(IN_FLIGHT):
                found[k] = table[accumulators[k] + output]
            for k in range(IN_FLIGHT):
                if row + k * step < len(codes.words):
                    out[(row + k * step) * by_row + output * by_output] = found[k]


def flatten(out: "Array") -> "tuple[Array, int, int] | None":
    """Give the memory under an output in one piece, and its steps by row and output; None if it is not in one."""
    n_rows, n_outputs = out.shape
    if not out.dtype.isnative:
        return None
    if out.flags.f_contiguous:
        return out.T.reshape(-1), 1, n_rows
    return (out.reshape(-1), n_outputs, 1) if out.flags.c_contiguous else None


def launch_compiled(name: str, n_rows: int, *arguments: Any) -> None:
    """Launch a kernel of numba: the definition, which the simulator runs."""
    launch_rows({"gather_one": gather_one, "gather_several": gather_several}[name], n_rows, *arguments)


def launch_raw(name: str, n_rows: int, table: "Array", *more: Any) -> None:
    """Launch the kernel in CUDA C++ for entries of this size; its threads work on four rows at a time."""
    blocks = min(blocks_for(-(-n_rows // 4)), MOST_RAW_BLOCKS)
    raw.run(f"{name}_{8 * table.itemsize}", blocks, THREADS, table, *more)


def fastest() -> Callable[..., None]:
    """Give what launches the fastest kernels there are."""
    return launch_compiled if SIMULATED else launch_raw


def gather(table: "Array", codes: "Array", folds: "Folds", out: "Array", /) -> None:
    """Write table[code, fold] of each row to `out` (rows, outputs); negative codes count from the end of the table."""
    if not out.size:
        return
    memory = flatten(out)
    if memory is None:
        found = empty(out.shape[::-1], out.dtype.newbyteorder("=")).T
        gather(table, codes, folds, found)
        out[...] = found
        return
    piece, by_row, by_output = memory
    n_lines, n_folds, n_outputs = table.shape
    lines = cast(to_device(table), piece.dtype).reshape(-1)
    # Of entries of other types there are few.
    floats = piece.dtype in FLOATS
    rows = source_of(codes if floats else written(codes)), *fold_source(folds)
    start = fastest() if piece.itemsize in RAW_SIZES else launch_compiled
    if n_outputs == 1:
        start("gather_one", len(out), lines, n_lines, n_folds, *rows, piece)
    else:
        start("gather_several", len(out), lines, n_lines, n_folds, n_outputs, *rows, by_row, by_output, piece)


@kernel
def gather_ranked(
    words: "Array",
    base: np.uint64,
    mask: np.uint64,
    ranks: "Array",
    table: "Array",
    n_lines: int,
    n_outputs: int,
    by_row: int,
    by_output: int,
    out: "Array",
) -> None:
    """Write the line of the rank that a direct index has of each row's number; of none the line before the last."""
    for row in range(cuda.grid(1), len(words), cuda.gridsize(1)):
        offset = offset_at(words, row, base, mask)
        rank = ranks[np.int64(offset)] if offset < np.uint64(len(ranks)) else 0
        line = np.int64(rank - 1 if rank else n_lines - 2)
        for output in range(n_outputs):
            out[row * by_row + output * by_output] = table[line * n_outputs + output]


def gather_numbers(table: "Array", values: "Array", categories: "Array", out: "Array", /) -> None:
    """Write table[code] of each number to `out` (rows, outputs), where the code is that of `lookup`."""
    memory, index = flatten(out), None
    if isinstance(categories, np.ndarray) and memory is not None and out.size:
        index = index_for(categories, values.dtype, len(values))
    if index is None or memory is None:
        gather(table, lookup(values, categories), None, out)
        return
    piece, by_row, by_output = memory
    lines, words = cast(to_device(table), piece.dtype).reshape(-1), words_of(to_device(values)).words
    launch_rows(gather_ranked, len(out), words, *index, lines, len(table), out.shape[1], by_row, by_output, piece)
