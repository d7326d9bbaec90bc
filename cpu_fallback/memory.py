"""Where this backend computes: arrays of NumPy in the host's memory."""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from gpu_encode.cells import Array

Order = Literal["C", "F"]

# The library of the arrays that the operations give.
xp: Any = np

# Rows of which the schemes that work row by row hold intermediate results, so that these stay in cache.
TILE = 1 << 15


def to_device(array: "Array", /) -> "Array":
    """Give the array itself: this backend computes where it is."""
    return array


def to_host(array: "Array", /) -> "Array":
    """Give the array itself."""
    return array


def empty(shape: "int | tuple[int, ...]", dtype: Any, order: "Order" = "C", /) -> "Array":
    """Room for an array."""
    return np.empty(shape, dtype, order)


def zeros(shape: "int | tuple[int, ...]", dtype: Any, /) -> "Array":
    """Room for an array, all zero."""
    return np.zeros(shape, dtype)
