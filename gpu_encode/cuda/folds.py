"""Fold numbers of rows, computed inside the kernels that use them; and random orders of rows, as operations."""

from typing import TYPE_CHECKING

import numpy as np

from cpu_fallback.compiled.border import CONTIGUOUS, GIVEN, INTERLEAVED, NO_FOLDS, ORDERS, Array
from cpu_fallback.compiled.folds import MASK, block_of, mix
from cpu_fallback.row_numbers import BLOCK_KEY, STRIDE_KEY, FoldPattern, Permutation
from gpu_encode.cuda.memory import empty, keep_on_device, to_device
from gpu_encode.cuda.permutations import walk_rows
from gpu_encode.cuda.runtime import cuda, current_device, device_function, kernel, launch_rows

if TYPE_CHECKING:
    from cpu_fallback.types import Folds

# Launch arguments: kind, numbers, n_splits, seed, n_rows, first_row, units; see `fold_of`.
FoldArguments = tuple[int, Array, int, np.uint64, int, int, Array]


def fold_source(folds: "Folds") -> FoldArguments:
    """Describe folds to the kernels: what `fold_of` takes after the row."""
    nothing, no_units = empty(1, np.int32), empty(1, np.int64)
    if folds is None:
        return NO_FOLDS, nothing, 1, np.uint64(0), 0, 0, no_units
    if not isinstance(folds, FoldPattern):
        return GIVEN, to_device(folds).astype(np.int32, copy=False), 1, np.uint64(0), 0, 0, no_units
    kind, units = ORDERS[folds.order], keep_on_device(current_device(), folds.units.tobytes())
    return kind, nothing, folds.n_splits, np.uint64(folds.seed), folds.n_rows, folds.first_row, units


@device_function
def fold_of(
    row: int, kind: int, numbers: Array, n_splits: int, seed: np.uint64, n_rows: int, first_row: int, units: Array
) -> np.int64:
    """Fold number of a row of the chunk."""
    if kind == NO_FOLDS:
        return np.int64(0)
    if kind == GIVEN:
        return np.int64(numbers[row])
    if kind == INTERLEAVED:
        return np.int64(np.uint64(first_row + row) % np.uint64(n_splits))
    if kind == CONTIGUOUS:
        return contiguous(np.uint64(first_row + row), np.uint64(n_splits), np.uint64(n_rows))
    return random(first_row + row, np.uint64(n_splits), seed, units)


# Divisions are of unsigned words: those of signed ones round down, which costs a branch.  Those whose operands both
# fit 32 bits are short ones on a GPU, and most do.


@device_function
def contiguous(row: np.uint64, n_splits: np.uint64, n_rows: np.uint64) -> np.int64:
    """Blocks of neighbouring rows; the first n_rows % n_splits blocks hold one row more."""
    size = n_rows // n_splits
    longer = n_rows - size * n_splits
    edge = longer * (size + np.uint64(1))
    if row < edge:
        return np.int64(row // (size + np.uint64(1)))
    return np.int64(longer + (row - edge) // max(size, np.uint64(1)))


@device_function
def random(row: int, n_splits: np.uint64, seed: np.uint64, units: Array) -> np.int64:
    """Rows of a block that are a stride apart share one hashed map of turns to folds."""
    block, log2_stride, first_unit = block_of(np.int64(np.uint64(row) // n_splits))
    place = np.uint64(row) - np.uint64(first_unit) * n_splits
    turn = place >> np.uint64(log2_stride)
    stride = place - (turn << np.uint64(log2_stride))
    # In the simulator the CPU's functions give Python ints back.
    block_key = np.uint64(mix(seed + np.uint64(block) * BLOCK_KEY))
    key = np.uint64(mix(block_key + stride * STRIDE_KEY))
    factor = np.uint64(units[np.int64((key >> np.uint64(32)) % np.uint64(len(units)))])
    shift = (key & MASK) % n_splits
    return np.int64((factor * turn + shift) % n_splits)


@kernel
def number_folds(
    start: int,
    kind: int,
    numbers: Array,
    n_splits: int,
    seed: np.uint64,
    n_rows: int,
    first_row: int,
    units: Array,
    out: Array,
) -> None:
    """Write the fold numbers of the rows from `start` on."""
    for i in range(cuda.grid(1), len(out), cuda.gridsize(1)):
        out[i] = fold_of(start + i, kind, numbers, n_splits, seed, n_rows, first_row, units)


def fold_numbers(pattern: FoldPattern, start: int, stop: int, /) -> Array:
    """Fold number of each row in [start, stop); see `cpu_fallback.row_numbers.FoldPattern`."""
    out = empty(max(stop - start, 0), np.int32)
    launch_rows(number_folds, len(out), start, *fold_source(pattern), out)
    return out


def places_of(permutation: Permutation, start: int, stop: int, /) -> Array:
    """Place in the order of each row in [start, stop)."""
    return walk_rows(permutation, start, stop, True)


def rows_at(permutation: Permutation, start: int, stop: int, /) -> Array:
    """Row at each place in [start, stop): the inverse of `places_of`."""
    return walk_rows(permutation, start, stop, False)
