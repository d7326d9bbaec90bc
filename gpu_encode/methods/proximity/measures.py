"""The integers that each row adds to the sums of votes, and the merging of rows that agree in everything."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from cpu_fallback.types import Array, Layout, Rows, SumShape, Window
from gpu_encode.encoders.codes import CodedRows
from gpu_encode.seam.ops import Ops

# Bits of the sum of fractions over all rows.
SUM_BITS = 61


@dataclass(frozen=True, eq=False)
class Measures:
    """The numbers that each row adds to sums: for classes its weight; otherwise its weight and its weighted target.

    Parameters
    ----------
    values : int64 array (n, rows)
    exponents : list of int
        One for each measure: values are multiples of 2**-exponent.
    """

    values: Array
    exponents: list[int]

    @classmethod
    def of(cls, rows: CodedRows) -> Self:
        """Measure rows by their target and weight."""
        target = rows.targets[0]
        weight = np.ones_like(target.values, np.int64) if rows.weight is None else rows.weight
        weights, exponent = to_integers(weight)
        if target.is_classification:
            values = [np.where(target.values == label, weights, 0) for label in range(target.n_classes)]
            return cls(np.stack(values), [exponent] * len(values))
        weighted, exponent_of_target = to_integers(
            target.values if rows.weight is None else target.values * rows.weight.astype(np.float64)
        )
        return cls(np.stack([weights, weighted]), [exponent, exponent_of_target])


def to_integers(numbers: Array) -> tuple[Array, int]:
    """Give numbers as multiples of 2**-exponent: exactly if they are whole, otherwise to about 61 bits of their sum."""
    largest, n_rows = float(np.abs(numbers).max()), len(numbers)
    if numbers.dtype.kind in "iub" and largest * n_rows < 2.0**SUM_BITS:
        return numbers.astype(np.int64, copy=False), 0
    exponent = SUM_BITS - n_rows.bit_length() - math.frexp(largest)[1] if largest else 0
    half = exponent // 2
    # In two steps, since one factor may be too large for a float.
    scaled = numbers.astype(np.float64) * math.ldexp(1.0, half) * math.ldexp(1.0, exponent - half)
    return np.rint(scaled).astype(np.int64), exponent


def to_floats(ops: Ops, values: Array, exponents: Sequence[int]) -> Array:
    """Convert the integers (..., n, rows) of n measures back to numbers."""
    floats = values.astype(np.float64)
    if any(exponents):
        # In two steps, as in to_integers.
        halves = [exponent // 2 for exponent in exponents]
        for powers in (halves, [exponent - half for exponent, half in zip(exponents, halves, strict=True)]):
            factors = np.array([math.ldexp(1.0, -power) for power in powers])
            floats = floats * ops.to_device(factors)[:, None]
    return floats


def merge_rows(ops: Ops, codes: Sequence[Array], sizes: Sequence[int]) -> tuple[Array, Array]:
    """Number the distinct rows of codes, in order: give the number of each row, and the codes of each number.

    Parameters
    ----------
    ops : Ops
    codes : list of int32 array (rows,)
        -1 to size - 1.
    sizes : list of int

    Returns
    -------
    merged : int32 array (rows,)
    distinct : int32 array (features, different rows)
    """
    merged, first = ops.factorize(codes[0])
    # The distinct rows are few, so they are kept on the host.
    columns = [ops.to_device(first)]
    for column, size in zip(codes[1:], sizes[1:], strict=True):
        merged, keys = ops.factorize(ops.combine(merged, column + 1, size + 1))
        keys = ops.to_device(keys)
        left = keys // (size + 1)
        columns = [*(one[left] for one in columns), keys - left * (size + 1) - 1]
    return merged, np.stack([one.astype(np.int32) for one in columns])


def sum_equal_rows(ops: Ops, merged: Array, n_distinct: int, values: Array) -> Array:
    """Sum the integers (n, rows) of the rows that were merged: (n_distinct, n)."""
    layout = Layout(Window(), Window())
    sums = [ops.accumulate(Rows(merged, None, each), SumShape(n_distinct, layout=layout)) for each in values]
    return np.stack([each[:n_distinct, 0, 0, 1] for each in sums], axis=1)
