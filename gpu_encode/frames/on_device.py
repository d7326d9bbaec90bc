"""Tables and vectors that lie in a GPU's memory: read and assembled there, only distinct values come to the host."""

from importlib import import_module
from typing import Any

import numpy as np

from gpu_encode import devices, errors, values
from gpu_encode.frames.encoding import Keys
from gpu_encode.ops import MISSING, Array, Ops
from gpu_encode.values import Values
from gpu_encode.vocabulary import Vocabulary

NUMBERS = "biuf"


def adopt(data: Any, role: str) -> Array:
    """CuPy array of anything in a GPU's memory (`__cuda_array_interface__` or DLPack), in the same memory."""
    devices.choose("auto", data)  # says what is missing
    array: Array = import_module("gpu_encode.cuda.memory").adopted(data)
    if array.dtype.kind not in NUMBERS:
        raise errors.unsupported_type(role, str(array.dtype))
    return array


def to_host(array: Array) -> Array:
    """NumPy copy of a CuPy array."""
    return array.get()  # type: ignore[attr-defined, no-any-return]


def keys(column: Array, name: object, ops: Ops) -> Keys:
    """Codes (int32; -1 for NaN) and sorted vocabulary of a column of numbers."""
    present, nulls = present_numbers(column, name)
    codes, read = dictionary(present, name, ops)
    return Keys(spread(codes, nulls, ops), Vocabulary(read))


def lookup(column: Array, name: object, vocabulary: Vocabulary, ops: Ops) -> Array:
    """Position in a vocabulary of each row (int32): -1 for NaN, -2 where it is absent."""
    present, nulls = present_numbers(column, name)
    fitted = vocabulary.values.array
    if vocabulary.kind == "number" and vocabulary.is_sorted and comparable(present.dtype, fitted.dtype):
        return spread(ops.lookup(present, fitted), nulls, ops)
    codes, read = dictionary(present, name, ops)
    places = ops.to_device(vocabulary.positions(read, name).astype(np.int32))
    return spread(places[codes] if len(read) else codes, nulls, ops)


def comparable(given: "np.dtype[Any]", fitted: "np.dtype[Any]") -> bool:
    """Whether numbers can be looked up as they are: of one type, or integers among wider ones of their kind."""
    return given == fitted or (given.kind == fitted.kind and given.kind in "iu" and given.itemsize < fitted.itemsize)


def dictionary(present: Array, name: object, ops: Ops) -> tuple[Array, Values]:
    """Code of each number, and the sorted distinct numbers as values of the host."""
    codes, distinct = ops.factorize(present)
    return codes, values.from_numpy(ops.to_host(distinct), name)


def present_numbers(column: Array, name: object) -> tuple[Array, Array | None]:
    """Numbers that are not NaN, and which rows are (None: none is); infinity is an error."""
    # Smallest and largest tell of NaN and infinity without a temporary.
    if column.dtype.kind != "f" or not len(column) or bool(np.isfinite(column.min()) & np.isfinite(column.max())):
        return column, None
    infinite = np.isinf(column)
    if bool(infinite.any()):
        raise errors.infinite_value(name, int(infinite.argmax()))
    nulls = np.isnan(column)
    return column[~nulls], nulls


def spread(codes: Array, nulls: Array | None, ops: Ops) -> Array:
    """Codes of the rows that are not null, put in their rows."""
    if nulls is None:
        return codes
    every = ops.empty((len(nulls),), np.int32)
    every[...] = MISSING
    # CuPy's assignment to rows by number counts in 32 bits, its `put` in 64.
    every.put(np.flatnonzero(~nulls), codes)
    return every


def matrix_of(arrays: list[Array], n_rows: int) -> Array:
    """Matrix of encoded columns; the one that they are columns of, where there is one."""
    base = arrays[0].base
    if base is not None and base.shape == (n_rows, len(arrays)):
        columns = (base[:, position] for position in range(len(arrays)))
        if all(same_memory(one, other) for one, other in zip(arrays, columns, strict=True)):
            return base
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
            raise errors.integers_beyond_floats(largest, str(dtype))
    cast = import_module("gpu_encode.cuda.casting").cast
    return np.stack([cast(column, dtype) for column in columns], axis=1)


def is_there(array: Any) -> bool:
    """Whether an array lies on a GPU."""
    return not isinstance(array, np.ndarray)


def there(arrays: list[Array]) -> list[Array]:
    """Columns on the GPU; those of the host go there as one matrix."""
    if not arrays or is_there(arrays[0]):
        return arrays
    matrix = import_module("gpu_encode.cuda.memory").to_device(np.stack(arrays)).T
    return [matrix[:, position] for position in range(len(arrays))]


def here(arrays: list[Array]) -> list[Array]:
    """Columns on the host, of one matrix."""
    if not arrays or not is_there(arrays[0]):
        return arrays
    matrix = np.empty((len(arrays[0]), len(arrays)), arrays[0].dtype, order="F")
    for position, array in enumerate(arrays):
        matrix[:, position] = to_host(array)
    return [matrix[:, position] for position in range(len(arrays))]
