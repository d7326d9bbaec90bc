"""The memory of this backend: arrays of NumPy on the host, and their types."""

from math import prod
from operator import index
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cpu_fallback.memory_pool import Block, pool

if TYPE_CHECKING:
    from cpu_fallback.types import Array

Order = Literal["C", "F"]

# The library of the arrays that the operations return.
xp: Any = np

# Schemes that work row by row hold intermediate results of so many rows, so that these stay in cache.
TILE = 1 << 15

# Smaller arrays, in bytes, are kept by the system's own allocator; and kinds of numbers that may lie in a block.
SMALLEST, KINDS = 1 << 17, "biufmM"


def to_device(array: "Array", /) -> "Array":
    """Give the array itself: this backend computes where it is."""
    return array


def to_host(array: "Array", /) -> "Array":
    """Give the array itself."""
    return array


def empty(shape: "int | tuple[int, ...]", dtype: Any, order: "Order" = "C", /) -> "Array":
    """Room for an array, as `numpy.empty` gives it."""
    pooled = take_from_pool(shape, np.dtype(dtype), order)
    return np.empty(shape, dtype, order) if pooled is None else pooled


def zeros(shape: "int | tuple[int, ...]", dtype: Any, /) -> "Array":
    """Room for an array, all zero, as `numpy.zeros` gives it."""
    pooled = take_from_pool(shape, np.dtype(dtype), "C")
    if pooled is None:
        return np.zeros(shape, dtype)
    pooled[...] = 0
    return pooled


def take_from_pool(shape: "int | tuple[int, ...]", dtype: np.dtype[Any], order: "Order") -> "Array | None":
    """Room for a large array of numbers, out of the pool; None for others."""
    lengths = tuple(map(index, shape if isinstance(shape, tuple) else (shape,)))
    n_bytes = prod(lengths) * dtype.itemsize
    if n_bytes < SMALLEST or dtype.kind not in KINDS:
        return None
    steps = tuple(dtype.itemsize * prod(lengths[:axis]) for axis in range(len(lengths))) if order == "F" else None
    return np.asarray(Block(pool.take(n_bytes), pool, {"shape": lengths, "typestr": dtype.str, "strides": steps}))


def cast(values: "Array", dtype: Any, /) -> "Array":
    """Numbers in another type, each rounded once; the array itself where it is of that type."""
    return values.astype(dtype, copy=False)
