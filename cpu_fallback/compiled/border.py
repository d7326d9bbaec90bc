"""The border between Python and the kernels: only a few types cross it, so that every kernel is compiled once.

Arrays cross it read-only and contiguous, as int32, int64 or raw 64-bit words; a flag tells the kind of numbers.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cpu_fallback.compiled.kernel_files import keep_on_disk
from cpu_fallback.compiled.kernel_parts import Kernel, as_part

if TYPE_CHECKING:
    from cpu_fallback.types import Folds, Layout, Rows

Array = NDArray[Any]

# Number of rows that are worked on at once, so that their scratch space stays in the fast caches.
BLOCK = 2048

ABSENT, WHOLE, REAL = 0, 1, 2
NO_FOLDS, GIVEN, INTERLEAVED, CONTIGUOUS, RANDOM = 0, 1, 2, 3, 4
ORDERS = {"interleaved": INTERLEAVED, "contiguous": CONTIGUOUS, "random": RANDOM}


# There is no fastmath, since its reordering would change bits.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls, at its first call, once for all processes."""
    return keep_on_disk(njit(**OPTIONS, _nrt=True, pipeline_class=Kernel)(function))


def stage(function: Callable[..., Any]) -> Any:
    """Compile a function that only kernels call, as a part of each kernel: it needs no file, and no entry for Python.

    The caller holds all arrays that the function works on, so the function counts no references to them.
    """
    return as_part(function, kernel, **OPTIONS, _nrt=False, forceinline=False)


def counting(function: Callable[..., Any]) -> Any:
    """Compile a stage that makes arrays, or gets arrays from functions that it calls: it counts references to them."""
    return as_part(function, kernel, **OPTIONS, _nrt=True, forceinline=False)


def separate(function: Callable[..., Any]) -> Any:
    """Compile a stage once for all kernels that call it: they do not include it, and its machine code has a file.

    This is for long stages that several kernels call for many rows at a time.  The stage may make arrays.
    """
    return keep_on_disk(as_part(function, kernel, separate=True, **OPTIONS, _nrt=True, forceinline=False), "separate")


def inlined(function: Callable[..., Any]) -> Any:
    """Copy a step into its callers.

    References to arrays are counted when arrays are passed to a function, and when they are taken out of a tuple.  This
    costs more than the arithmetic on a cell, so steps that are called for each cell or row are inlined.
    """
    return as_part(function, kernel, **OPTIONS, _nrt=False, forceinline=True)


@stage
def set_all(out: Array, value: Any) -> None:
    """Write one value everywhere; `out[:] = value` would take the compiler ten times as long."""
    for i in range(len(out)):
        out[i] = value


class Numbers(NamedTuple):
    """Target and weight as raw 64-bit words, each with its kind: absent, whole (int64) or real (float64)."""

    target: Array
    target_kind: int
    weight: Array
    weight_kind: int


class RowParts(NamedTuple):
    """Rows in the form that kernels take: category, class (or none), target, weight, and `measures_of` a layout."""

    codes: Array
    classes: Array
    numbers: Numbers
    measures: Array


class FoldSource(NamedTuple):
    """The source of fold numbers: an array, or a pattern of row numbers."""

    kind: int
    numbers: Array
    n_splits: int
    seed: np.uint64
    n_rows: int
    first_row: int
    units: Array


def freeze(array: Array, dtype: Any) -> Array:
    """Give a read-only contiguous view of the array; copy it if it has another type or is not contiguous."""
    # `numpy.require` takes longer, even if nothing has to be done, than a small call takes for all rows.
    flags = array.flags
    if type(array) is not np.ndarray or array.dtype != dtype or not (flags.c_contiguous and flags.aligned):
        array = np.require(array, dtype, ["C", "A"])
    elif not flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


NO_WORDS, NO_CODES = freeze(np.zeros(0, np.uint64), np.uint64), freeze(np.zeros(0, np.int32), np.int32)
ONE_UNIT = freeze(np.ones(1, np.int64), np.int64)


def words(array: Array | None) -> tuple[Array, int]:
    """Give int64 or float64 numbers as raw 64-bit words, and their kind."""
    if array is None:
        return NO_WORDS, ABSENT
    real = array.dtype.kind not in "ib"
    return freeze(array, np.float64 if real else np.int64).view(np.uint64), REAL if real else WHOLE


def numbers_of(rows: "Rows") -> Numbers:
    """Give target and weight of the rows."""
    return Numbers(*words(rows.target), *words(rows.weight))


def codes_of(codes: Array | None) -> Array:
    """Give category codes, classes or fold numbers in the form that kernels take; None becomes an empty array."""
    return NO_CODES if codes is None else freeze(codes, np.int32)


def fold_source(folds: "Folds") -> FoldSource:
    """Describe folds for the kernels."""
    if folds is None or isinstance(folds, np.ndarray):
        kind = NO_FOLDS if folds is None else GIVEN
        return FoldSource(kind, codes_of(folds), 1, np.uint64(0), 0, 0, ONE_UNIT)
    units = freeze(folds.units, np.int64)
    return FoldSource(
        ORDERS[folds.order], NO_CODES, folds.n_splits, np.uint64(folds.seed), folds.n_rows, folds.first_row, units
    )


def measures_of(layout: "Layout") -> Array:
    """Give a line (kept, whole, low, width) for each of the sums of weight, weight * target and weight * target**2."""
    lines = np.zeros((3, 4), np.int64)
    for power, window in enumerate((layout.count, layout.total, layout.square)):
        if window is not None:
            lines[power] = 1, window.whole, window.low, window.width
    return freeze(lines, np.int64)


def parts_of(rows: "Rows", layout: "Layout") -> RowParts:
    """Give rows in the form that kernels take, with the layout in which they sum them."""
    return RowParts(codes_of(rows.codes), codes_of(rows.classes), numbers_of(rows), measures_of(layout))


def wide(values: Array) -> Array:
    """Give numbers as int64, uint64 or float64."""
    return values.astype({"i": np.int64, "u": np.uint64, "b": np.int64, "f": np.float64}[values.dtype.kind], copy=False)


def raw(values: Array) -> Array:
    """Give numbers as 64-bit words; words are equal if and only if the numbers are equal."""
    if values.dtype.kind == "f" and ((values == 0) & np.signbit(values)).any():
        values = values + 0.0
    return freeze(values, values.dtype).view(np.uint64)
