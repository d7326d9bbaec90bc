"""Launches of kernels that walk over rows by tiles; gpu_encode/cuda/raw/tiles.cuh describes the walk."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.row_numbers import FoldPattern
from gpu_encode.cuda import raw
from gpu_encode.cuda.runtime import blocks_for

if TYPE_CHECKING:
    from cpu_fallback.types import Array, Folds
    from gpu_encode.cuda.indexed import CodeSource

# Most threads of a block for which registers allow two blocks on a multiprocessor.
THREADS = min(raw.THREADS, 512)
# Shared memory in front of a block's table.
PLAN_BYTES = 256
# With random folds, a tile has a turn for each fold, up to the first number; otherwise it has the second number.
MOST_TURNS, STRAIGHT_TURNS = 64, 4


class Slots(NamedTuple):
    """The data by which kernels read keys; see `Slots` in raw/tiles.cuh.

    Parameters
    ----------
    keys : array (rows,)
    base : uint64
        The key of the first slot.
    last : int
        The last slot, for all keys beyond it.
    coded : bool
        Whether keys are codes.
    ranks : int32 array
        The number of each slot's category, plus one.  If it is empty, slots are categories.
    n_lines : int
    """

    keys: "Array"
    base: np.uint64
    last: int
    coded: bool
    ranks: "Array"
    n_lines: int


def slots_of(source: "CodeSource", n_lines: int) -> Slots:
    """Give each key a slot: unknown and missing codes come first; an index's last slot is for unknown keys."""
    if source.size:
        return Slots(source.words, source.base, int(source.size), False, source.ranks, n_lines)
    return Slots(source.words, np.uint64(2**64 - 2), n_lines + 1, True, source.ranks, n_lines)


def walk_of(folds: "Folds") -> tuple[str, int]:
    """Name the source from which kernels read these folds, and the turns of a tile."""
    if not isinstance(folds, FoldPattern):
        return "StraightFolds", STRAIGHT_TURNS
    if folds.order == "random" and 1 < folds.n_splits <= MOST_TURNS:
        return "HashedFolds", folds.n_splits
    return "ComputedFolds", STRAIGHT_TURNS


def blocks_with_tables(n_rows: int, turns: int, size: int, shared: int, most: int, table_bytes: int) -> int:
    """Number of blocks: as many as run at once, but so few that clearing their tables costs less than their rows."""
    return blocks_for(n_rows, max(4 * turns * THREADS, size), raw.blocks_at_work(shared, most, table_bytes))
