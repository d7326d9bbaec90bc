"""Sums of floats that do not depend on the order of additions, fast enough for a grid of smoothings."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.exact import Floats, Integers
from gpu_encode.seam.ops import Ops, tiles

Mask = NDArray[np.bool_]

# Sums of integers that stay below 2**62 fit into int64.
ROOM = 62
# Larger powers of two are not float64 numbers; numbers that would need them do not matter beside weights of 1.
FINEST = 1000


def sums_by_fold(ops: Ops, addends: Callable[[int, int], Floats], scored: Mask, classes: int = 1) -> list[Fraction]:
    """Sum finite numbers over the first axis, where `scored` is True.

    All numbers are rounded to one grid, the finest on which an int64 can hold their sum; the rounding errors are
    rounded to a second grid.  Both sums are sums of integers, so they do not depend on the order.  The errors of n
    numbers that still remain are below n**3 / 2**122 of the largest number, far less than the numbers' own rounding.

    Parameters
    ----------
    ops : Ops
    addends : callable
        ``addends(start, stop)`` gives float64 numbers (stop - start, folds).
    scored : bool array (rows, folds)
    classes : int
        How many arrays of this shape `addends` needs at a time.

    Returns
    -------
    list of Fraction (folds,)
    """
    rows, folds = scored.shape
    values, peak = ops.empty((rows, folds), np.float64), 0.0
    for start, stop in tiles(rows, max(ops.TILE // (folds * classes), 1)):
        tile = np.where(scored[start:stop], addends(start, stop), 0.0)
        values[start:stop] = tile
        peak = max(peak, float(tile.max()), -float(tile.min()))
    # The largest number has its highest bit below 2**(ROOM - bits), so the sum of `rows` such numbers stays below
    # 2**ROOM.
    bits = rows.bit_length()
    first, second = min(ROOM - bits - int(np.frexp(peak)[1]), FINEST), ROOM - bits
    coarse, fine = np.zeros(folds, np.int64), np.zeros(folds, np.int64)
    for start, stop in tiles(rows, max(ops.TILE // folds, 1)):
        high, low = on_grids(values[start:stop], first, second)
        # Sums along contiguous columns take a quarter of the time.
        coarse += ops.to_host(high.T.copy().sum(axis=1))
        fine += ops.to_host(low.T.copy().sum(axis=1))
    unit = Fraction(2) ** -(first + second)
    return [((int(high) << second) + int(low)) * unit for high, low in zip(coarse, fine, strict=True)]


def on_grids(values: Floats, first: int, second: int) -> tuple[Integers, Integers]:
    """Give numbers in units of 2**-first, and the remainders in units of 2**-second of the first unit."""
    scaled = values * 2.0**first
    whole = np.rint(scaled)
    return whole.astype(np.int64), np.rint((scaled - whole) * 2.0**second).astype(np.int64)


def mean(values: Sequence[float]) -> float:
    """Mean, added in the given order, since Python's sum differs between versions; NaN for no values."""
    total = 0.0
    for value in values:
        total += value
    return total / len(values) if values else math.nan
