"""Launches of kernels that walk over rows by tiles: gpu_encode/cuda/raw/tiles.cuh says how."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.row_numbers import FoldPattern
from gpu_encode.cuda import raw
from gpu_encode.cuda.runtime import blocks_for

if TYPE_CHECKING:
    from cpu_fallback.types import Array, Folds
    from gpu_encode.cuda.indexed import CodeSource

# What registers leave room for twice on a multiprocessor.
THREADS = min(raw.THREADS, 512)
# Shared memory before the table of a block.
PLAN_BYTES = 256
# Of random folds a tile has a turn for each; of others so many.
MOST_TURNS, STRAIGHT_TURNS = 64, 4


class Slots(NamedTuple):
    """What kernels read keys with; see `Slots` in raw/tiles.cuh.

    Parameters
    ----------
    keys : array (rows,)
    base : uint64
        The key of the first slot.
    last : int
        The last slot, that of all keys beyond.
    coded : bool
        Whether keys are codes.
    ranks : int32 array
        The number of each slot's category, plus one.  Without any, slots are categories.
    n_lines : int
    """

    keys: "Array"
    base: np.uint64
    last: int
    coded: bool
    ranks: "Array"
    n_lines: int


def slots_of(source: "CodeSource", n_lines: int) -> Slots:
    """Give each key its slot: unknown and missing codes come first, and a direct index ends with what is unknown."""
    if source.size:
        return Slots(source.words, source.base, int(source.size), False, source.ranks, n_lines)
    return Slots(source.words, np.uint64(2**64 - 2), n_lines + 1, True, source.ranks, n_lines)


def walk_of(folds: "Folds") -> tuple[str, int]:
    """Give the source that kernels read these folds from, and the turns of a tile."""
    if not isinstance(folds, FoldPattern):
        return "StraightFolds", STRAIGHT_TURNS
    if folds.order == "random" and 1 < folds.n_splits <= MOST_TURNS:
        return "HashedFolds", folds.n_splits
    return "ComputedFolds", STRAIGHT_TURNS


def blocks_with_tables(n_rows: int, turns: int, size: int, shared: int, most: int, table_bytes: int) -> int:
    """Blocks of a grid: as many as run at once, and no more than make clearing their tables as dear as their rows."""
    return blocks_for(n_rows, max(4 * turns * THREADS, size), raw.blocks_at_work(shared, most, table_bytes))
