"""Arrays in a GPU's memory: taken over from any library, assembled to a matrix, moved to the host and back."""

from typing import Any

import numpy as np

from cpu_fallback.types import Array
from gpu_encode import devices
from gpu_encode.errors.values import unsupported_type

NUMBERS = "biuf"


def adopt(data: Any, role: str) -> Array:
    """CuPy array of anything in a GPU's memory (`__cuda_array_interface__` or DLPack), in the same memory."""
    devices.choose("auto", data)  # says what is missing
    array: Array = devices.cuda().adopt(data)
    if array.dtype.kind not in NUMBERS:
        raise unsupported_type(role, str(array.dtype))
    return array


def to_host(array: Array) -> Array:
    """NumPy copy of a CuPy array."""
    found: Array = devices.cuda().to_host(array)
    return found


def matrix_of(arrays: list[Array], n_rows: int) -> Array:
    """Matrix of encoded columns; the one that they are columns of, where there is one."""
    base: Any = arrays[0].base
    if getattr(base, "shape", None) == (n_rows, len(arrays)):
        matrix: Array = base
        columns = (matrix[:, position] for position in range(len(arrays)))
        if all(same_memory(one, other) for one, other in zip(arrays, columns, strict=True)):
            return matrix
    return np.stack(arrays, axis=1)


def same_memory(one: Any, other: Any) -> bool:
    """Whether two arrays are one."""
    return bool(one.data.ptr == other.data.ptr and one.strides == other.strides and one.dtype == other.dtype)


def assembled(arrays: list[Array], native: Array, passed: list[int]) -> Array:
    """Matrix of encoded columns and of those that pass through, in one type that holds them all."""
    encoded = there(arrays)
    if encoded and not passed:
        return matrix_of(encoded, len(native))
    columns = [*encoded, *(native[:, position] for position in passed)]
    dtype = np.result_type(*(column.dtype for column in columns))
    if native.dtype.kind in "iu" and dtype.kind == "f" and len(native):
        largest = max(abs(int(end)) for column in columns[len(encoded) :] for end in (column.max(), column.min()))
        if largest.bit_length() > np.finfo(dtype).nmant + 1:
            raise ValueError(
                f"A column that passes through holds {largest}, which {dtype!s} codes beside it cannot hold "
                "exactly. Pass a frame, whose columns have types of their own, or leave the column out."
            )
    cast = devices.cuda().cast
    return np.stack([cast(column, dtype) for column in columns], axis=1)


def is_there(array: Any) -> bool:
    """Whether an array lies on a GPU."""
    return not isinstance(array, np.ndarray)


def there(arrays: list[Array]) -> list[Array]:
    """Columns on the GPU; those of the host go there as one matrix."""
    if not arrays or is_there(arrays[0]):
        return arrays
    matrix = devices.cuda().to_device(np.stack(arrays)).T
    return [matrix[:, position] for position in range(len(arrays))]


def here(arrays: list[Array]) -> list[Array]:
    """Columns on the host, of one matrix."""
    if not arrays or not is_there(arrays[0]):
        return arrays
    matrix = np.empty((len(arrays[0]), len(arrays)), arrays[0].dtype, order="F")
    for position, array in enumerate(arrays):
        matrix[:, position] = to_host(array)
    return [matrix[:, position] for position in range(len(arrays))]
