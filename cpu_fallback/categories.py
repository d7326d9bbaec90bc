"""Values to codes, joint keys, and codes to the numbers that stand for them."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.memory import TILE
from cpu_fallback.row_numbers import fold_array

if TYPE_CHECKING:
    from cpu_fallback.types import Array, Folds

# The table of a direct index may be this many times as long as the rows that use it.
DENSE_RANGE = 4


def factorize(values: "Array", /) -> "tuple[NDArray[np.int32], Array]":
    """Codes of numbers without null, and their sorted distinct values."""
    if not len(values):
        return np.zeros(0, np.int32), values[:0]
    if values.dtype.kind in "iu":
        lowest, size = values.min(), int(values.max()) - int(values.min()) + 1
        if size <= DENSE_RANGE * len(values) + 1024:
            # In 64 bits: a narrow type cannot hold its own range; a wide one wraps around to the right number.
            offset = values.astype(np.int64) - lowest.astype(np.int64)
            present = np.zeros(size, bool)
            present[offset] = True
            categories = np.flatnonzero(present) + lowest.astype(np.int64)
            return (np.cumsum(present, dtype=np.int32) - 1)[offset], categories.astype(values.dtype)
    # A sort keeps either of the two zeros of a float.
    numbers = values + values.dtype.type(0) if values.dtype.kind == "f" else values
    categories, codes = np.unique(numbers, return_inverse=True)
    return codes.astype(np.int32), categories


def lookup(values: "Array", categories: "Array", /) -> NDArray[np.int32]:
    """Code of each value in sorted distinct `categories` of the same dtype; -2 where absent."""
    if not len(categories):
        return np.full(len(values), -2, np.int32)
    positions = np.minimum(np.searchsorted(categories, values), len(categories) - 1)
    return np.where(categories[positions] == values, positions, -2).astype(np.int32)


def combine(left: "Array", right: "Array", n_right: int, /) -> NDArray[np.int64]:
    """Joint key of two columns of codes that are not negative: exact while n_left * n_right < 2**63."""
    return left.astype(np.int64) * n_right + right


def gather(table: "Array", codes: "Array", folds: "Folds", out: "Array", /) -> None:
    """Write table[code, fold] of each row to `out` (rows, outputs); negative codes count from the end of the table."""
    for start in range(0, len(codes), TILE):
        part = slice(start, min(start + TILE, len(codes)))
        row = codes[part].astype(np.int64)
        out[part] = table[row, 0 if folds is None else fold_array(folds, part.start, part.stop)]


def gather_numbers(table: "Array", values: "Array", categories: "Array", out: "Array", /) -> None:
    """Write table[code] of each number to `out` (rows, outputs), with the code that `lookup` gives."""
    gather(table, lookup(values, categories), None, out)
