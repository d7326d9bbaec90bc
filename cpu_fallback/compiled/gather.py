"""Look up the encoding of each row by category and fold, or by number, and write it to an output of any layout."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from cpu_fallback.compiled.border import (
    BLOCK,
    NO_FOLDS,
    Array,
    FoldSource,
    codes_of,
    fold_source,
    freeze,
    kernel,
    raw,
    wide,
)
from cpu_fallback.compiled.categories import lookup
from cpu_fallback.compiled.folds import fill_folds, fold_room
from cpu_fallback.compiled.ranges import UNKNOWN, range_of, table_by_distance, take_in_range
from cpu_fallback.compiled.threads import run, shares
from cpu_fallback.memory import empty

if TYPE_CHECKING:
    from cpu_fallback.types import Folds

# A table with a code for each number of a range may have FEW_NUMBERS codes, and one more for every ROWS_PER_NUMBER
# rows.  To build a longer table takes longer than to look up a code for each row.
FEW_NUMBERS, ROWS_PER_NUMBER = 1024, 4
RAW: dict[int, Any] = {4: np.uint32, 8: np.uint64}


@kernel
def gather_range(
    table: Array,
    codes: Array,
    source: FoldSource,
    steps: tuple[int, int, int, int],
    n_lines: int,
    start: int,
    stop: int,
    out: Array,
) -> None:
    """Write the rows [start, stop); `steps` has folds and outputs of a line, then steps of rows and of outputs."""
    n_folds, n_outputs, by_row, by_output = steps
    by_code = n_folds * n_outputs
    if source.kind == NO_FOLDS and n_outputs == 1:
        given = codes[start:stop]
        for i in range(len(given)):
            code = np.int64(given[i])
            out[np.uint64((start + i) * by_row)] = table[np.uint64(code + n_lines if code < 0 else code)]
        return
    room, folds, accumulators = fold_room(), np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int64)
    for begin in range(start, stop, BLOCK):
        given = codes[begin : min(begin + BLOCK, stop)]
        n = len(given)
        for i in range(n):
            code = np.int64(given[i])
            accumulators[i] = (code + n_lines if code < 0 else code) * by_code
        if source.kind != NO_FOLDS:
            fill_folds(source, begin, folds[:n], room)
            for i in range(n):
                accumulators[i] += folds[i] * n_outputs
        # Column by column: the lines of a block stay in the fast caches, and each column is written in one piece.
        for k in range(n_outputs):
            first = begin * by_row + k * by_output
            for i in range(n):
                out[np.uint64(first + i * by_row)] = table[np.uint64(accumulators[i] + k)]


def flatten(out: Array) -> tuple[Array, int, int] | None:
    """Give the memory of a two-dimensional array as a flat array, and its steps; None if this is not possible."""
    size = out.itemsize
    if (
        size not in RAW
        or not out.flags.aligned
        or not out.dtype.isnative
        or any(step % size or step < 0 for step in out.strides)
    ):
        return None
    by_row, by_output = (step // size for step in out.strides)
    span = (out.shape[0] - 1) * by_row + (out.shape[1] - 1) * by_output + 1
    return as_strided(out, (span,), (size,)).view(RAW[size]), by_row, by_output


def gather(table: Array, codes: Array, folds: "Folds", out: Array, /) -> None:
    """Write table[code, fold] of each row to `out` (rows, outputs); negative codes count from the end of the table."""
    if not out.size:
        return
    memory = flatten(out)
    target = np.empty(out.shape, out.dtype.newbyteorder("=")) if memory is None else out
    piece, by_row, by_output = memory or flatten(target) or (target, 0, 0)
    n_lines, n_folds, n_outputs = table.shape
    lines = freeze(table, target.dtype).reshape(-1).view(piece.dtype)
    fixed = (lines, codes_of(codes), fold_source(folds), (n_folds, n_outputs, by_row, by_output), n_lines)
    parts = shares(len(out))
    run(lambda share: gather_range(*fixed, *parts[share], piece), len(parts))
    if memory is None:
        out[...] = target


def gather_numbers(table: Array, values: Array, categories: Array, out: Array, /) -> None:
    """Write table[code] of each number to `out` (rows, outputs): see `gpu_encode.seam.ops.Ops`.

    Whole numbers of a small range index the table themselves, without a code for each row.
    """
    memory = flatten(out) if out.shape[1] == 1 and out.size else None
    size = range_of(categories, len(values)) if values.dtype == categories.dtype else None
    if memory is None or size is None or size > len(values) // ROWS_PER_NUMBER + FEW_NUMBERS:
        gather(table, lookup(values, categories), None, out)
        return
    known, lines = raw(wide(categories)), empty(len(categories) + 1, out.dtype)
    lines[:-1], lines[-1] = table[: len(known), 0, 0], table[UNKNOWN, 0, 0]
    piece, by_row, _ = memory
    by_distance = table_by_distance(known, lines.view(piece.dtype), size)
    fixed, parts = (raw(wide(values)), known[0], by_distance, by_row), shares(len(out))
    run(lambda share: take_in_range(*fixed, *parts[share], piece), len(parts))
