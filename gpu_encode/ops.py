"""The seam: what a backend must do, what crosses the border, and which backend a call runs on.

A backend is a module: `cpu_fallback` (NumPy, the definition), `cpu_fallback.compiled` (numba, threaded) and
`gpu_encode.cuda` (a GPU) each *are* an `Ops`.  Rows cross as int32 codes (-1 missing, -2 unknown); sums cross as int64
digits, so every backend gives the same bits in any order of addition.  Tables per category have two rows more than
categories, unknown and missing last, so that a negative code counts from the end.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.memory import Order
from cpu_fallback.moments import MomentArrays
from gpu_encode import devices, errors
from gpu_encode.rows import FoldPattern, Permutation

Array = NDArray[Any]
Codes = NDArray[np.int32]

MISSING = -1
UNKNOWN = -2
Folds = FoldPattern | Array | None

# From this many rows on the first call of a process is no slower on the compiled, threaded backend than on NumPy, the
# 0.3 s included that it takes to load the kernels from their cache on disk; and from this many once they are loaded.
# Measured by benchmarks/backends.py.
COMPILED_ROWS = 300_000
LOADED_ROWS = 300
COMPILED = "cpu_fallback.compiled"


@dataclass(frozen=True)
class Window:
    """Digit positions [low, low + width) of base 2**32 that a sum is kept at.

    `whole` says that one int64 holds the entire sum (position 0), without digits.
    """

    low: int = 0
    width: int = 1
    whole: bool = True


def digit_window(extent: tuple[int, int]) -> Window:
    """Digit positions of sums of numbers that touch binary places [low, high), with one to spare for carries."""
    low, high = extent
    return Window(low // 32, max((high - 1) // 32 - low // 32 + 1, 1) + 1, False)


@dataclass(frozen=True)
class Layout:
    """Columns of a cell: the digits of the summed weight, then of weight * target, then of weight * target**2."""

    count: Window = field(default_factory=Window)
    total: Window | None = None
    square: Window | None = None

    @property
    def width(self) -> int:
        """Number of int64 columns of a cell."""
        return sum(window.width for window, _, _ in self.measures())

    def measures(self) -> list[tuple[Window, int, slice]]:
        """Window, power of the target and columns of each sum kept."""
        found, start = [], 0
        for power, window in enumerate((self.count, self.total, self.square)):
            if window is not None:
                found.append((window, power, slice(start, start + window.width)))
                start += window.width
        return found


@dataclass(frozen=True)
class Rows:
    """What is known of each row: category code, class number or target, weight.

    Parameters
    ----------
    codes : int32 array
    classes : int32 array, optional
        Class number of a classification target.
    target : float64 or int64 array, optional
        Target of a regression.
    weight : float64 or int64 array, optional
    """

    codes: Array
    classes: Array | None = None
    target: Array | None = None
    weight: Array | None = None

    def __len__(self) -> int:
        return len(self.codes)

    def block(self, start: int, stop: int) -> "Rows":
        """Rows [start, stop), without a copy."""
        return self.pick(slice(start, stop))

    def pick(self, chosen: "slice | Array") -> "Rows":
        """Rows at the given places, in their order."""
        parts = (self.codes, self.classes, self.target, self.weight)
        return Rows(*(None if part is None else part[chosen] for part in parts))  # type: ignore[arg-type]

    def with_codes(self, codes: Array) -> "Rows":
        """Give the same rows under another key."""
        return Rows(codes, self.classes, self.target, self.weight)


@dataclass
class Carry:
    """State between chunks of an ordered pass: sums so far, and for ties the sums at the tie each category saw last."""

    sums: Array
    at_tie: Array
    last_tie: Array

    @classmethod
    def empty(cls, n_categories: int, n_classes: int, width: int, ties: bool, xp: Any = np) -> "Carry":
        """State before the first row, as arrays of the library `xp`."""
        shape = (n_categories + 2, n_classes, width)
        return cls(
            xp.zeros(shape, np.int64),
            xp.zeros(shape if ties else (0, 0, 0), np.int64),
            xp.full(n_categories + 2, -1, np.int64),
        )


class Ops(Protocol):
    """What a backend must do.  Positional arguments; inputs are never written but for `carry` and `out`.

    Arrays are of the library `xp` and lie where the backend computes; `factorize`, `lookup`, `combine` and `to_device`
    take host arrays as well.  `TILE` is how many rows' intermediate results a backend likes to hold at a time.
    """

    xp: Any
    TILE: int

    def to_device(self, array: Array, /) -> Array:
        """Give an array where the backend computes; what is there already is not copied."""

    def to_host(self, array: Array, /) -> Array:
        """Give an array in the host's memory, as NumPy's."""

    def empty(self, shape: int | tuple[int, ...], dtype: Any, order: Order = "C", /) -> Array:
        """Room for an array; MemoryError says how many bytes were needed and what to do."""

    def zeros(self, shape: int | tuple[int, ...], dtype: Any, /) -> Array:
        """Room for an array, all zero."""

    def cast(self, values: Array, dtype: Any, /) -> Array:
        """Numbers in another type, each rounded once; the array itself where it is of that type."""

    def factorize(self, values: Array, /) -> tuple[Array, Array]:
        """Codes (int32) of numbers without null, and their sorted distinct values."""

    def lookup(self, values: Array, categories: Array, /) -> Array:
        """Code of each value in sorted distinct `categories` of the same dtype; -2 where absent."""

    def combine(self, left: Array, right: Array, n_right: int, /) -> Array:
        """Joint int64 key of two columns of codes that are not negative, exact while n_left * n_right < 2**63."""

    def fold_numbers(self, pattern: FoldPattern, start: int, stop: int, /) -> Array:
        """Fold number (int32) of each row in [start, stop)."""

    def places_of(self, permutation: Permutation, start: int, stop: int, /) -> Array:
        """Place in the order of each row in [start, stop)."""

    def rows_at(self, permutation: Permutation, start: int, stop: int, /) -> Array:
        """Row at each place in [start, stop) of the order."""

    def extents(self, target: Array | None, weight: Array | None, powers: tuple[int, ...], /) -> list[tuple[int, int]]:
        """Binary places [low, high) that weight * target**power touches in any row, for each power; (0, 0) if none."""

    def accumulate(
        self, rows: Rows, n_categories: int, folds: Folds, n_folds: int, n_classes: int, layout: Layout, /
    ) -> Array:
        """Exact counts and sums: (n_categories + 2, n_folds, n_classes, layout.width) int64 digits, in one pass."""

    def gather(self, table: Array, codes: Array, folds: Folds, out: Array, /) -> None:
        """Write table[code, fold] (categories + 2, folds, outputs) of each row to `out` (rows, outputs)."""

    def moments(self, cells: Array, layout: Layout, first_output: int, deviations: bool, /) -> MomentArrays:
        """Give N, S / N and, where asked for, N - 1 and N * Q - S**2 of cells, each exact and then rounded once.

        Cells are (..., n_classes, layout.width), outputs the classes from
        `first_output` on.
        """

    def leave_one_out(self, cells: Array, rows: Rows, layout: Layout, /) -> Array:
        """Digits of each row's category less the row: (rows, n_classes, layout.width)."""

    def ordered(self, rows: Rows, ties: Array | None, layout: Layout, carry: Carry, /) -> Array:
        """Digits of each row's category before the row, in the order given: (rows, n_classes, layout.width).

        `carry` holds the sums of all rows before these and is brought up to date, so that chunks chain.  With `ties`
        (non-decreasing numbers) rows of one tie do not see each other, in whatever chunk they lie.
        """


BACKENDS = {
    "numpy": "cpu_fallback",
    "compiled": COMPILED,
    "cuda": "gpu_encode.cuda",
    "cuda-simulator": "gpu_encode.cuda",
}

_forced: list[str] = []


def resolve(n_rows: int, device: str = "cpu") -> Ops:
    """Give the backend for a call on `n_rows` rows.

    On "cuda" it is the GPU's; on the "cpu" NumPy for few rows, the compiled and threaded one for many.
    """
    name = _forced[-1] if _forced else device
    return host(n_rows) if name == "cpu" else cast(Ops, import_module(BACKENDS[name]))


def host(n_rows: int) -> Ops:
    """Give the CPU's backend for a call on `n_rows` rows of host arrays, whatever backend the caller computes with."""
    enough = LOADED_ROWS if COMPILED in sys.modules else COMPILED_ROWS
    name = "compiled" if n_rows >= enough else "numpy"
    if _forced and not _forced[-1].startswith("cuda"):
        name = _forced[-1]
    return cast(Ops, import_module(BACKENDS[name]))


def device_of(ops: Ops) -> str:
    """Where a backend computes: "cpu" or "cuda"."""
    return "cuda" if ops.__name__ == BACKENDS["cuda"] else "cpu"  # type: ignore[attr-defined]


def memory_of(ops: Ops) -> str:
    """Whose memory a backend computes in: the "cpu"'s, or that of the current GPU, by its number."""
    if device_of(ops) == "cpu":
        return "cpu"
    return f"cuda:{import_module('gpu_encode.cuda.runtime').current_device()}"


def through(places: Array, codes: Array, ops: Ops) -> Array:
    """Place of each row, by its code, where `ops` computes; `places` lie on the host, and a missing code stays."""
    if np.array_equal(places, np.arange(len(places))):
        return codes
    # A missing code counts from the end of the table, where it is found again.
    table: Array = ops.to_device(np.append(places, np.int32(MISSING)).astype(np.int32))
    return table[codes]


@contextmanager
def use_backend(name: str) -> Iterator[None]:
    """Run every call inside the block on one backend, whatever the size and the device.

    Parameters
    ----------
    name : {"numpy", "compiled", "cuda", "cuda-simulator"}
        The last two are one backend: on a GPU, and in numba's simulator (which NUMBA_ENABLE_CUDASIM=1 must have chosen
        before numba is loaded).

    Raises
    ------
    RuntimeError
        If it cannot run here; another backend never takes its place.

    Examples
    --------
    >>> from gpu_encode.ops import resolve, use_backend
    >>> with use_backend("numpy"):
    ...     resolve(10_000_000).__name__
    'cpu_fallback'
    """
    errors.check_option("use_backend", "name", name, tuple(BACKENDS))
    if name.startswith("cuda") and (not devices.has_gpu() or devices.simulated() != (name == "cuda-simulator")):
        raise errors.backend_cannot_run(name)
    _forced.append(name)
    try:
        yield
    finally:
        _forced.pop()
