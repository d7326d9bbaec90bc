"""Turn values into codes, codes of two columns into joint keys, and codes into encodings."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.memory import TILE
from cpu_fallback.row_numbers import fold_array

if TYPE_CHECKING:
    from cpu_fallback.types import Array, Folds

# A table that is indexed by the numbers themselves may be this many times as long as the number of rows.
DENSE_RANGE = 4
# An odd number whose bits look random: products with it, modulo 2**64, spread numbers over their highest bits.
HASH = np.array(0x9E3779B97F4A7C15, np.uint64)


def factorize(values: "Array", /) -> "tuple[NDArray[np.int32], Array]":
    """Give the codes of numbers without null, and their sorted distinct values."""
    if not len(values):
        return np.zeros(0, np.int32), values[:0]
    if values.dtype.kind in "iu":
        lowest, size = values.min(), int(values.max()) - int(values.min()) + 1
        if size <= DENSE_RANGE * len(values) + 1024:
            # Differences are taken in 64 bits: a narrow type cannot hold its own range; int64 wraps around correctly.
            offset = values.astype(np.int64) - lowest.astype(np.int64)
            present = np.zeros(size, bool)
            present[offset] = True
            categories = np.flatnonzero(present) + lowest.astype(np.int64)
            return (np.cumsum(present, dtype=np.int32) - 1)[offset], categories.astype(values.dtype)
    # Adding 0 turns -0.0 into 0.0; a sort could keep either of the two.
    numbers = values + values.dtype.type(0) if values.dtype.kind == "f" else values
    categories, codes = np.unique(numbers, return_inverse=True)
    return codes.astype(np.int32), categories


def lookup(values: "Array", categories: "Array", /) -> NDArray[np.int32]:
    """Give the code of each value in sorted distinct `categories` of the same dtype; -2 for an absent value."""
    if not len(categories):
        return np.full(len(values), -2, np.int32)
    positions = np.minimum(np.searchsorted(categories, values), len(categories) - 1)
    return np.where(categories[positions] == values, positions, -2).astype(np.int32)


def number_in_order(values: "Array", /) -> "tuple[NDArray[np.int32], NDArray[np.int64]]":
    """Give the code of each whole number, in the order of first occurrence, and the first row of each."""
    words, rows = values.astype(np.int64, copy=False).view(np.uint64), np.arange(len(values))
    first, left, factor = rows.copy(), words, HASH
    bits = len(values).bit_length() + 1
    table = np.empty(1 << bits, np.int64)
    # In each turn, every place of the table goes to the number in its first row; rows of other numbers wait.
    while len(left):
        places = (left * factor >> np.uint64(64 - bits)).view(np.int64)
        table[places] = len(values)
        np.minimum.at(table, places, rows)
        first[rows] = found = table[places]
        others = np.flatnonzero(words[found] != left)
        rows, left, factor = rows[others], left[others], factor * HASH
    is_first = first == np.arange(len(values))
    return (np.cumsum(is_first, dtype=np.int32) - 1)[first], np.flatnonzero(is_first)


def combine(left: "Array", right: "Array", n_right: int, /) -> NDArray[np.int64]:
    """Give the joint key of two columns of codes of at least 0, exact while n_left * n_right < 2**63."""
    return left.astype(np.int64) * n_right + right


def gather(table: "Array", codes: "Array", folds: "Folds", out: "Array", /) -> None:
    """Write table[code, fold] of each row to `out` (rows, outputs); negative codes count from the end of the table."""
    lines = table.reshape(-1, table.shape[2])
    for start in range(0, len(codes), TILE):
        part = slice(start, min(start + TILE, len(codes)))
        cell = codes[part].astype(np.int64) * table.shape[1]
        if folds is not None:
            cell += fold_array(folds, part.start, part.stop)
        out[part] = lines.take(cell, axis=0)


def gather_numbers(table: "Array", values: "Array", categories: "Array", out: "Array", /) -> None:
    """Write table[code] of each number to `out` (rows, outputs), with the code that `lookup` gives."""
    gather(table, lookup(values, categories), None, out)
