"""The encoding of each row: the kernel looks it up by category and fold."""

from typing import TYPE_CHECKING

import numpy as np

from cpu_fallback.types import written
from gpu_encode.cuda import raw
from gpu_encode.cuda.casting import cast
from gpu_encode.cuda.categories import lookup, source_by
from gpu_encode.cuda.folds import fold_source
from gpu_encode.cuda.indexed import CodeSource, source_of
from gpu_encode.cuda.memory import empty, to_device
from gpu_encode.cuda.tiles import PLAN_BYTES, THREADS, blocks_with_tables, slots_of, walk_of

if TYPE_CHECKING:
    from cpu_fallback.types import Array, Folds

VECTOR_BYTES = 16
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def flatten(out: "Array") -> "tuple[Array, int, int] | None":
    """Give the contiguous memory of an output, and its steps by row and by output; None if it is not contiguous."""
    n_rows, n_outputs = out.shape
    if not out.dtype.isnative:
        return None
    if out.flags.f_contiguous:
        return out.T.reshape(-1), 1, n_rows
    return (out.reshape(-1), n_outputs, 1) if out.flags.c_contiguous else None


def gather(table: "Array", codes: "Array", folds: "Folds", out: "Array", /) -> None:
    """Write table[code, fold] of each row to `out` (rows, outputs); the last two lines are for the codes -2 and -1."""
    if not out.size:
        return
    memory = flatten(out)
    if memory is None:
        found = empty(out.shape[::-1], out.dtype.newbyteorder("=")).T
        gather(table, codes, folds, found)
        out[...] = found
        return
    # Tables with entries of other types are rare.
    gather_by_slot(table, source_of(codes if out.dtype in FLOATS else written(codes)), folds, memory)


def gather_by_slot(table: "Array", source: CodeSource, folds: "Folds", memory: "tuple[Array, int, int]") -> None:
    """Look up all rows, in a table of each block if it is small; entries of several outputs are read as vectors."""
    (n_lines, n_folds, n_outputs), (piece, by_row, by_output) = table.shape, memory
    slots, n_rows = slots_of(source, n_lines), len(source.words)
    name, turns = walk_of(folds)
    narrow = min(slots.keys.itemsize, piece.itemsize) < 4
    name = "ComputedFolds" if narrow else name
    outputs = "1" if n_outputs == 1 and name != "ComputedFolds" else "0"
    variant = raw.key_of(slots.keys) | {"ENTRY": raw.TYPES[piece.itemsize], "SOURCE": name, "OUTPUTS": outputs}
    in_vector = 1 if outputs == "1" else VECTOR_BYTES // piece.itemsize
    n_entries = (slots.last + 1) * n_folds * -(-n_outputs // in_vector) * in_vector
    shared, most = PLAN_BYTES + n_entries * piece.itemsize, raw.table_bytes()
    blocks = blocks_with_tables(n_rows, turns, 1, shared if shared <= most else 0, raw.BLOCKS, most)
    # A table stays in memory if copying it costs more than it saves.
    in_table = shared <= most and n_entries * blocks <= n_rows
    entries = cast(to_device(table), piece.dtype).reshape(-1)
    given = slots, *fold_source(folds), n_folds, n_outputs, in_table, entries, by_row, by_output, piece
    raw.run("gather_rows", blocks, THREADS, *given, shared=shared if in_table else PLAN_BYTES, variant=variant)


def gather_numbers(table: "Array", values: "Array", categories: "Array", out: "Array", /) -> None:
    """Write table[code] of each number to `out` (rows, outputs); the code is that of `lookup`."""
    memory, source = flatten(out), None
    if isinstance(categories, np.ndarray) and memory is not None and out.size:
        source = source_by(categories, values)
    if source is None or memory is None:
        gather(table, lookup(values, categories), None, out)
    else:
        gather_by_slot(table, source, None, memory)
