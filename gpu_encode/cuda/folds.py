"""Operations: fold numbers of rows, which kernels compute where they need them, and random orders of rows."""

from typing import TYPE_CHECKING

import numpy as np

from cpu_fallback.compiled.border import GIVEN, NO_FOLDS, ORDERS, Array
from cpu_fallback.row_numbers import FoldPattern, Permutation
from gpu_encode.cuda import raw
from gpu_encode.cuda.memory import empty, keep_on_device, to_device
from gpu_encode.cuda.permutations import walk_rows
from gpu_encode.cuda.runtime import blocks_for, current_device

if TYPE_CHECKING:
    from cpu_fallback.types import Folds

# Launch arguments: kind, numbers, n_splits, seed, n_rows, first_row, units; see `Folds` in raw/rows.cuh.
FoldArguments = tuple[int, Array, int, np.uint64, int, int, Array]


def fold_source(folds: "Folds") -> FoldArguments:
    """Describe folds to the kernels."""
    nothing, no_units = empty(1, np.int32), empty(1, np.int64)
    if folds is None:
        return NO_FOLDS, nothing, 1, np.uint64(0), 0, 0, no_units
    if not isinstance(folds, FoldPattern):
        return GIVEN, to_device(folds).astype(np.int32, copy=False), 1, np.uint64(0), 0, 0, no_units
    kind, units = ORDERS[folds.order], keep_on_device(current_device(), folds.units.tobytes())
    return kind, nothing, folds.n_splits, np.uint64(folds.seed), folds.n_rows, folds.first_row, units


def fold_numbers(pattern: FoldPattern, start: int, stop: int, /) -> Array:
    """Fold number of each row in [start, stop); see `cpu_fallback.row_numbers.FoldPattern`."""
    out = empty(max(stop - start, 0), np.int32)
    if len(out):
        blocks = blocks_for(len(out), 4 * raw.THREADS, raw.BLOCKS)
        raw.run("number_folds", blocks, raw.THREADS, start, *fold_source(pattern), out)
    return out


def ranks_of(permutation: Permutation, start: int, stop: int, /) -> Array:
    """Rank in the order of each row in [start, stop)."""
    return walk_rows(permutation, start, stop, True)


def rows_at(permutation: Permutation, start: int, stop: int, /) -> Array:
    """Row of each rank in [start, stop): the inverse of `ranks_of`."""
    return walk_rows(permutation, start, stop, False)
