"""The memory of this backend: NumPy arrays on the host, and their types."""

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

# Schemes that work row by row hold intermediate results of this number of rows, so that these stay in cache.
TILE = 1 << 15

# Arrays of fewer bytes are left to the system's own allocator; and the kinds of dtypes that may use a block.
SMALLEST, KINDS = 1 << 17, "biufmM"


def to_device(array: "Array", /) -> "Array":
    """Give the array itself, since this backend computes on the host."""
    return array


def to_host(array: "Array", /) -> "Array":
    """Give the array itself."""
    return array


def empty(shape: "int | tuple[int, ...]", dtype: Any, order: "Order" = "C", /) -> "Array":
    """Allocate an array, as `numpy.empty` does."""
    pooled = take_from_pool(shape, np.dtype(dtype), order)
    return np.empty(shape, dtype, order) if pooled is None else pooled


def zeros(shape: "int | tuple[int, ...]", dtype: Any, /) -> "Array":
    """Allocate an array of zeros, as `numpy.zeros` does."""
    pooled = take_from_pool(shape, np.dtype(dtype), "C")
    if pooled is None:
        return np.zeros(shape, dtype)
    pooled[...] = 0
    return pooled


def take_from_pool(shape: "int | tuple[int, ...]", dtype: np.dtype[Any], order: "Order") -> "Array | None":
    """Take a large array of numbers from the pool; None for other arrays."""
    given = shape if isinstance(shape, tuple) else (shape,)
    n_bytes = prod(map(index, given)) * dtype.itemsize
    if n_bytes < SMALLEST or dtype.kind not in KINDS:
        return None
    lengths = tuple(map(index, given))
    steps = tuple(dtype.itemsize * prod(lengths[:axis]) for axis in range(len(lengths))) if order == "F" else None
    return np.asarray(Block(pool.take(n_bytes), pool, {"shape": lengths, "typestr": dtype.str, "strides": steps}))


def cast(values: "Array", dtype: Any, /) -> "Array":
    """Give numbers in another type, each rounded once; an array of that type is given back itself."""
    return values.astype(dtype, copy=False)
