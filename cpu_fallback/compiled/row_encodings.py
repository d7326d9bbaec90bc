"""Write the encoding of each row of a block to the row's position in the output."""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.compiled.border import Array, stage
from cpu_fallback.compiled.moments import Shape
from cpu_fallback.compiled.shrinkage import unseen_encoding
from cpu_fallback.fused_rules import AS_CATEGORY, AS_NAN, FusedRule, RowEncodings

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


class CellRule(NamedTuple):
    """The cell's shape, the first output's class, and the rule by which the digits of a cell become encodings."""

    shape: Shape
    first: int
    rule: FusedRule


class Destination(NamedTuple):
    """The output of encodings: one of two flat arrays, the index at which each column begins, and flags of rows."""

    wide: Array
    narrow: Array
    columns: Array
    unseen: Array


def destination(to: RowEncodings) -> Destination | None:
    """Describe an output for the kernels; None if they cannot write to it."""
    out, n_outputs = to.values, to.values.shape[1]
    size = out.itemsize
    if out.dtype.name not in {"float64", "float32"} or not out.dtype.isnative or out.strides[0] != size:
        return None
    step = out.strides[1] // size
    flat = np.lib.stride_tricks.as_strided(out, ((n_outputs - 1) * step + len(out),), (size,))

    def of(dtype: "DTypeLike") -> Array:
        return flat if out.dtype == dtype else np.zeros(0, dtype)

    flags = np.zeros(0, bool) if to.unseen is None else to.unseen
    return Destination(of(np.float64), of(np.float32), np.arange(n_outputs) * step, flags)


@stage
def has_category(code: int, rule: FusedRule) -> bool:
    """Tell whether a row has a category; the policy decides for missing values."""
    return code >= 0 or (code == -1 and rule.missing == AS_CATEGORY)


@stage
def encoding_without(code: int, mu: float, rule: FusedRule) -> float:
    """Give the encoding of a row whose category does not count; by policy, missing values may have one of their own."""
    if code == -1 and rule.missing != AS_CATEGORY:
        return math.nan if rule.missing == AS_NAN else mu
    return unseen_encoding(mu, rule.blend)


@stage
def write(values: Array, column: int, numbers: Array, begin: int, wide: Array, narrow: Array) -> int:
    """Write one output of a block, by row number or in order from `begin` on; count the lost encodings."""
    lost = 0
    if len(wide):
        if len(numbers):
            for i in range(len(values)):
                wide[np.uint64(column + numbers[i])] = values[i]
        else:
            for i in range(len(values)):
                wide[np.uint64(column + begin + i)] = values[i]
        return 0
    for i in range(len(values)):
        encoding = np.float32(values[i])
        narrow[np.uint64(column + (numbers[i] if len(numbers) else begin + i))] = encoding
        lost += 1 if math.isinf(encoding) and not math.isinf(values[i]) else 0
    return lost


@stage
def flag(counted: Array, numbers: Array, begin: int, unseen: Array) -> None:
    """Clear the flag of rows of a block whose category counts."""
    for i in range(len(counted) if len(unseen) else 0):
        row = numbers[i] if len(numbers) else begin + i
        unseen[row] = unseen[row] and not counted[i]
