"""The code of each row: a look-up by category and fold."""

from typing import TYPE_CHECKING

import numpy as np

from cpu_fallback.categories import lookup
from cpu_fallback.sums import BLOCK, fold_array

if TYPE_CHECKING:
    from cpu_fallback.types import Array, Folds


def gather(table: "Array", codes: "Array", folds: "Folds", out: "Array", /) -> None:
    """Write table[code, fold] of each row to `out` (rows, outputs); negative codes count from the end of the table."""
    for start in range(0, len(codes), BLOCK):
        part = slice(start, min(start + BLOCK, len(codes)))
        row = codes[part].astype(np.int64)
        fold = fold_array(folds, part.start, part.stop)
        out[part] = table[row, 0 if fold is None else fold]


def gather_numbers(table: "Array", values: "Array", categories: "Array", out: "Array", /) -> None:
    """Write table[code] of each number to `out` (rows, outputs), where the code is that of `lookup`."""
    gather(table, lookup(values, categories), None, out)
