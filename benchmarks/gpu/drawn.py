"""Rows, made on any device: functions of seed and row number, in arithmetic that CuPy and NumPy share."""

from collections.abc import Callable
from importlib import import_module
from math import sqrt
from typing import Any

import numpy as np

from cpu_fallback.types import MISSING, UNKNOWN, Array
from gpu_encode.seam import devices

# Without a GPU, NumPy makes the rows.
xp: Any = import_module("gpu_encode.cuda.runtime").xp if devices.has_gpu() else np

CHUNK = 1 << 24
DRAWN = ("uniform", "Zipf 1.5")
# If ranks are rounded from a density proportional to x**-1.5 above this number, shares differ by 2 % from Zipf's law.
LOWEST = 0.571
# A prime above any number of categories: it distributes ranks over codes, so that hot codes are not neighbours.
SCATTER = 2_654_435_761


def words(start: int, stop: int, seed: int) -> Array:
    """Give a random 64-bit word for each row (splitmix64)."""
    mixed = xp.arange(start, stop, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed += np.uint64((seed + 1) * 0xD1B54A32D192ED03 % 2**64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def units(drawn: Array) -> Array:
    """Give a number in [0, 1) for each word."""
    return (drawn >> np.uint64(11)).astype(np.float64) * 2.0**-53


def fill(n_rows: int, dtype: Any, part: Callable[[int, int], Array]) -> Array:
    """Fill an array with the results of `part(start, stop)`, one chunk at a time, to keep temporary arrays small."""
    array = xp.empty(n_rows, dtype)
    for start in range(0, n_rows, CHUNK):
        stop = min(start + CHUNK, n_rows)
        array[start:stop] = part(start, stop).astype(dtype)
    return array


def zipf(chance: Array, n_categories: int) -> Array:
    """Give codes, the r-th most frequent of which has a share of about r**-1.5."""
    reach = 1.0 - sqrt(LOWEST / (n_categories + 0.5))
    position = 1.0 - chance * reach
    rank = (LOWEST / (position * position) + 0.5).astype(np.int64)
    return (xp.clip(rank, 1, n_categories) - 1) * SCATTER % n_categories


def codes(n_rows: int, n_categories: int, how: str, seed: int = 1, hot: float = 0.0, nulls: bool = False) -> Array:
    """Draw category codes.

    Parameters
    ----------
    n_rows, n_categories : int
    how : {"uniform", "Zipf 1.5"}
    seed : int
    hot : float
        Additional share of rows for one category.
    nulls : bool
        Whether one row in fifty is missing, and one in fifty is unknown.
    """

    def part(start: int, stop: int) -> Array:
        drawn = words(start, stop, seed)
        chance = units(drawn)
        numbers = zipf(chance, n_categories) if how == DRAWN[1] else (chance * n_categories).astype(np.int64)
        if hot:
            numbers = xp.where(units(words(start, stop, seed + 100)) < hot, n_categories // 2, numbers)
        if nulls:
            low = drawn & np.uint64(0x3FF)
            numbers = xp.where(low < 20, MISSING, xp.where(low > 1003, UNKNOWN, numbers))
        return numbers

    return fill(n_rows, np.int32, part)


def labels(n_rows: int, n_classes: int, seed: int = 2) -> Array:
    """Draw class numbers: of two classes, the first has 0.7 of the rows; several classes have equal shares."""
    if n_classes == 2:
        return fill(n_rows, np.int32, lambda start, stop: units(words(start, stop, seed)) >= 0.7)
    return fill(n_rows, np.int32, lambda start, stop: words(start, stop, seed) % np.uint64(n_classes))


def reals(n_rows: int, seed: int = 3) -> Array:
    """Draw real targets: 53 bits each, over as many binary positions as normal numbers have."""

    def part(start: int, stop: int) -> Array:
        return (units(words(start, stop, seed)) - 0.5) / (units(words(start, stop, seed + 100)) + 0.25)

    return fill(n_rows, np.float64, part)


def integers(n_rows: int, largest: int, seed: int = 4) -> Array:
    """Draw whole numbers between -largest and largest."""
    return fill(n_rows, np.int64, lambda start, stop: words(start, stop, seed) % np.uint64(2 * largest + 1)) - largest


COLUMNS: dict[str, Callable[[int], Array]] = {
    "binary": lambda n_rows: labels(n_rows, 2),
    "binary64": lambda n_rows: labels(n_rows, 2).astype(np.int64),
    "ten": lambda n_rows: labels(n_rows, 10),
    "real": reals,
    "float32": lambda n_rows: reals(n_rows).astype(np.float32),
    "whole": lambda n_rows: integers(n_rows, 1000),
    # Numbers whose sums need more than 64 bits.
    "large": lambda n_rows: integers(n_rows, 2**62 - 1),
    "weight": lambda n_rows: fill(n_rows, np.float64, lambda start, stop: units(words(start, stop, 5)) + 0.5),
    # Fold numbers that a user gives.
    "folds": lambda n_rows: labels(n_rows, 5, seed=6),
    # Times; three rows each have the same time.
    "ties": lambda n_rows: fill(n_rows, np.int64, lambda start, stop: xp.arange(start, stop) // 3),
}


class Columns(dict[str, Array]):
    """Columns of rows in addition to their category: each of `COLUMNS`, made on first use.

    Parameters
    ----------
    n_rows : int
    held : callable
        Moves an array to the wanted device.
    """

    def __init__(self, n_rows: int, held: Callable[[Array], Array] = lambda array: array) -> None:
        super().__init__()
        self.n_rows, self.held = n_rows, held

    def __missing__(self, name: str) -> Array:
        self[name] = column = self.held(COLUMNS[name](self.n_rows))
        return column
