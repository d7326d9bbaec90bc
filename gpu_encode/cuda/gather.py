"""The encoding of each row: a look-up by category and fold, which the kernel computes."""

from typing import TYPE_CHECKING, Any

import numpy as np

from cpu_fallback.types import written
from gpu_encode.cuda import raw
from gpu_encode.cuda.casting import cast
from gpu_encode.cuda.categories import index_for, lookup, words_of
from gpu_encode.cuda.folds import fold_source
from gpu_encode.cuda.indexed import offset_at, source_of
from gpu_encode.cuda.memory import empty, to_device
from gpu_encode.cuda.runtime import blocks_for, cuda, kernel, launch_rows

if TYPE_CHECKING:
    from cpu_fallback.types import Array, Folds

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def flatten(out: "Array") -> "tuple[Array, int, int] | None":
    """Give the memory under an output in one piece, and its steps by row and output; None if it is not in one."""
    n_rows, n_outputs = out.shape
    if not out.dtype.isnative:
        return None
    if out.flags.f_contiguous:
        return out.T.reshape(-1), 1, n_rows
    return (out.reshape(-1), n_outputs, 1) if out.flags.c_contiguous else None


def launch(name: str, n_rows: int, table: "Array", *more: Any) -> None:
    """Launch the kernel for entries of this size; its threads work on four rows at a time."""
    blocks = min(blocks_for(-(-n_rows // 4), raw.GATHER_THREADS), raw.GATHER_BLOCKS)
    raw.run(f"{name}_{8 * table.itemsize}", blocks, raw.GATHER_THREADS, table, *more)


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
    if n_outputs == 1:
        launch("gather_one", len(out), lines, n_lines, n_folds, *rows, piece)
    else:
        launch("gather_several", len(out), lines, n_lines, n_folds, n_outputs, *rows, by_row, by_output, piece)


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
