"""Codes in the type that the user wants: rounded once, with a warning for those that it cannot hold."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cpu_fallback.exact import Floats
from cpu_fallback.types import Array
from gpu_encode.notices import warn
from gpu_encode.ops import Ops


def in_type(codes: Floats, dtype: str, ops: Ops) -> Array:
    """Codes rounded once to the output's type; warns of those that it cannot hold."""
    rounded, lost = rounded_codes(codes, dtype, ops)
    warn_of_lost(lost, dtype)
    return rounded


def rounded_codes(codes: Floats, dtype: str, ops: Ops) -> tuple[Array, Any]:
    """Codes rounded once to a type, and how many of them it cannot hold."""
    with np.errstate(over="ignore"):
        rounded = ops.cast(codes, dtype)
    return rounded, 0 if dtype == "float64" else (np.isinf(rounded) & np.isfinite(codes)).sum()


def warn_of_lost(lost: Any, dtype: str) -> None:
    """Warn of codes that became infinite."""
    if number := int(lost):
        warn(f"{number} codes are beyond the range of {dtype} and become infinite. Choose dtype='float64'.")


class Output:
    """A matrix that is filled tile by tile, so that no codes of all rows stand beside it.

    Parameters
    ----------
    matrix : array (rows, columns)
        What is filled.
    ops : Ops
    """

    def __init__(self, matrix: Array, ops: Ops) -> None:
        self.matrix = matrix
        self.ops = ops
        self._lost: Any = 0

    def write(self, start: int, stop: int, values: Floats) -> None:
        """Write the codes of rows [start, stop)."""
        self.matrix[start:stop] = self._rounded(values)

    def put(self, rows: Array, columns: Sequence[int], values: Floats) -> None:
        """Write the codes of rows by number to some columns."""
        # CuPy's assignment to rows by number counts in 32 bits, its `put` in 64.
        for column, codes in zip(columns, self._rounded(values).T, strict=True):
            self.matrix[:, column].put(rows, codes)

    def count(self, lost: Any) -> None:
        """Count codes, written by others, that the type could not hold."""
        self._lost = self._lost + lost

    def close(self) -> None:
        """Warn once of all codes that the type could not hold."""
        warn_of_lost(self._lost, self.matrix.dtype.name)

    def _rounded(self, values: Floats) -> Array:
        rounded, lost = rounded_codes(values, self.matrix.dtype.name, self.ops)
        self._lost = self._lost + lost
        return rounded
