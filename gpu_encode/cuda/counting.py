"""Counts of rows per (line, fold, class) cell: in shared memory, by buckets, or in global memory."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cpu_fallback.compiled.border import Array
from gpu_encode.cuda import partition, raw, tiles
from gpu_encode.cuda.folds import fold_source
from gpu_encode.cuda.indexed import CodeSource, source_of
from gpu_encode.cuda.runtime import blocks_for
from gpu_encode.cuda.tiles import slots_of

if TYPE_CHECKING:
    from cpu_fallback.types import Folds


@dataclass(frozen=True)
class Engine:
    """The counting kernels by name, and the limits of their launches."""

    run: Callable[..., None]
    threads: int
    blocks: int
    table_bytes: int

    def blocks_for(self, n_rows: int) -> int:
        """Number of blocks of a grid whose threads process four rows at a time."""
        return blocks_for(n_rows, 4 * self.threads, self.blocks)


def engine() -> Engine:
    """Give the kernels and their launch limits."""
    return Engine(raw.run, raw.THREADS, raw.BLOCKS, raw.table_bytes())


def count(
    codes: Array | CodeSource,
    classes: Array | None,
    folds: "Folds",
    extents: tuple[int, int, int],
    accumulators: Array,
) -> None:
    """Add one to the cell of every row.

    Parameters
    ----------
    codes : int32 device array, UnwrittenCodes or CodeSource
        The last two lines are for the codes -2 (unknown) and -1 (missing).
    classes : int32 device array, optional
    folds : FoldPattern, int32 array or None
    extents : tuple of int
        Lines, folds and classes of the table.
    accumulators : int64 device array
        Flat, with a cell for each line, fold and class.
    """
    source = source_of(codes)
    n_rows = len(source.words)
    if not n_rows:
        return
    chosen = engine()
    # Measured: global atomics count 98 G rows/s at best, but 4.4 under a Zipf law, where many rows wait for the same
    # cell; an earlier kernel in shared memory counted 520-790.
    slots = slots_of(source, extents[0])
    for by_rank in (False, True) if len(source.ranks) else (False,):
        if table_size(cells_of(slots, extents, by_rank)) <= chosen.table_bytes:
            count_in_tables(slots, classes, folds, extents, by_rank, accumulators)
            return
    found = (source, source.ranks, 0) if classes is None else (source, classes, 1)
    rows = (*found, *fold_source(folds), *extents)
    if n_rows >= partition.FEWEST_ROWS and partition.fits(chosen, len(accumulators)):
        partition.count(chosen, rows, accumulators)
    else:
        chosen.run("count_in_memory", chosen.blocks_for(n_rows), chosen.threads, *rows, accumulators)


def cells_of(slots: tiles.Slots, extents: tuple[int, int, int], by_rank: bool) -> int:
    """Give the number of cells of a table by slot or by rank."""
    n_lines, n_folds, n_classes = extents
    return (n_lines - 1 if by_rank else slots.last + 1) * n_folds * n_classes


def table_size(n_cells: int) -> int:
    """Bytes of shared memory in which a block counts cells, two in each word."""
    return tiles.PLAN_BYTES + 4 * -(-n_cells // 2)


def count_in_tables(
    slots: tiles.Slots,
    classes: Array | None,
    folds: "Folds",
    extents: tuple[int, int, int],
    by_rank: bool,
    accumulators: Array,
) -> None:
    """Count in a table of each block, by slot or by rank."""
    chosen, n_cells = engine(), cells_of(slots, extents, by_rank)
    labels = "1" if classes is None else "2" if extents[2] == 2 else "0"
    source, turns = tiles.walk_of(folds)
    number = labels if source != "ComputedFolds" or labels == "1" else "0"
    variant = {**raw.key_of(slots.keys), "SOURCE": source, "CLASSES": number}
    shared = table_size(n_cells)
    blocks = tiles.blocks_with_tables(len(slots.keys), turns, n_cells, shared, chosen.blocks, chosen.table_bytes)
    given = slots, slots.ranks if classes is None else classes, *fold_source(folds), *extents[1:], by_rank, accumulators
    chosen.run("count_rows", blocks, min(chosen.threads, tiles.THREADS), *given, shared=shared, variant=variant)
