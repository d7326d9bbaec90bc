"""Counts of rows per (line, fold, class) cell: in shared memory, by buckets, or in global memory."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cpu_fallback.compiled.border import Array
from gpu_encode.cuda import buckets, raw
from gpu_encode.cuda.folds import fold_source
from gpu_encode.cuda.indexed import CodeSource, source_of

if TYPE_CHECKING:
    from cpu_fallback.types import Folds

# A table of two counts a word must be added to the cells before either can overflow; of one count a word, long before.
# Multiples of four, so that every piece begins at a vector.
PACKED_PIECE = 2**16 - 4
PLAIN_PIECE = 2**32 - 4


@dataclass(frozen=True)
class Engine:
    """Kernels that count, by name, and what their launches may ask for."""

    run: Callable[..., None]
    threads: int
    blocks: int
    table_bytes: int

    def blocks_for(self, n_rows: int) -> int:
        """Blocks of a grid whose threads work on four rows at a time."""
        return max(1, min(-(-n_rows // (4 * self.threads)), self.blocks))


def engine() -> Engine:
    """Give the kernels and the sizes of their launches."""
    return Engine(raw.run, raw.THREADS, raw.BLOCKS, raw.table_bytes())


def count(
    codes: Array | CodeSource,
    classes: Array | None,
    folds: "Folds",
    n_lines: int,
    n_folds: int,
    n_classes: int,
    accumulators: Array,
) -> None:
    """Add one to the cell of every row.

    Parameters
    ----------
    codes : int32 device array, UnwrittenCodes or CodeSource
        Negative ones count from the end of the table.
    classes : int32 device array, optional
    folds : FoldPattern, int32 array or None
    n_lines, n_folds, n_classes : int
        Extents of the table.
    accumulators : int64 device array
        (line * n_folds + fold) * n_classes + class is the place of a cell.
    """
    source = source_of(codes)
    n_rows = len(source.words)
    if not n_rows:
        return
    found = (source, source.ranks, 0) if classes is None else (source, classes, 1)
    rows = (*found, *fold_source(folds), n_lines, n_folds, n_classes)
    chosen = engine()
    # Measured, Zipf or uniform: shared memory 520-790 G rows/s, buckets 43-85.  Global atomics do 98 at best, but 4.4
    # under Zipf, where rows wait for each other at one cell.
    if len(accumulators) <= chosen.table_bytes // 2:
        count_in_tables(chosen, rows, accumulators)
    elif n_rows >= buckets.FEWEST_ROWS and buckets.fits(chosen, len(accumulators)):
        buckets.count(chosen, rows, accumulators)
    else:
        chosen.run("count_in_memory", chosen.blocks_for(n_rows), chosen.threads, *rows, accumulators)


def count_in_tables(chosen: Engine, rows: tuple[Any, ...], accumulators: Array) -> None:
    """Count in tables of 32-bit counts, one for each block, or of 16-bit counts where those do not fit."""
    n_rows, n_cells = len(rows[0].words), len(accumulators)
    halves = int(4 * n_cells > chosen.table_bytes)
    blocks = chosen.blocks_for(n_rows)
    # Adding up a table must not cost more than counting its rows.
    piece = PACKED_PIECE if halves else min(max(-(-n_rows // blocks), n_cells), PLAIN_PIECE)
    piece = -(-piece // 4) * 4
    shared = 4 * (-(-n_cells // 2) if halves else n_cells)
    blocks = min(blocks, -(-n_rows // piece))
    chosen.run("count_rows", blocks, chosen.threads, *rows, piece, halves, accumulators, shared=shared)
