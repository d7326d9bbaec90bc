"""Text and bytes of Arrow arrays, as the buffers that a backend turns into codes."""

from typing import Any

import numpy as np
import pyarrow as pa

from cpu_fallback.types import Array
from gpu_encode.seam.ops import HostStrings

# Chunks of fewer rows are copied into one, since a dictionary for each of them would cost more.
CHUNK_ROWS = 1 << 15


def factorize(array: Any, strings: HostStrings) -> tuple[Array, Any]:
    """Give the codes (int32; -1 for null) of an Arrow array, and its sorted distinct values."""
    codes, distinct = strings.factorize_strings(_parts(array, strings))
    type_ = large(array.type)
    buffers = [None, pa.py_buffer(distinct.offsets), pa.py_buffer(distinct.characters)]
    return codes, pa.Array.from_buffers(type_, distinct.n_rows, buffers)


def factorize_fixed(array: Array, nulls: Array | None, strings: HostStrings) -> tuple[Array, Array]:
    """Give the codes (int32; -1 for null) of NumPy text of fixed width, and its distinct values.

    The distinct values are sorted by their bytes in memory, which is not the order of the text.
    """
    rows = np.ascontiguousarray(array)
    offsets = np.arange(len(rows) + 1) * rows.itemsize
    validity = None if nulls is None else np.packbits(~nulls, bitorder="little")
    codes, distinct = strings.factorize_strings([strings.Strings(offsets, rows.view(np.uint8), validity)])
    return codes, distinct.characters.view(rows.dtype)


def prepare(array: Any, strings: HostStrings) -> Any:
    """Prepare the distinct values of an Arrow array in one piece, so that `lookup` can search in them."""
    (part,) = _parts(array, strings) or [strings.Strings(np.zeros(1, np.int64), np.zeros(0, np.uint8))]
    return strings.prepare(part)


def lookup(array: Any, categories: Any, strings: HostStrings) -> Array:
    """Give the index (int32) of each value of an Arrow array among known ones: -1 for null, -2 if it is absent."""
    return strings.lookup_strings(_parts(array, strings), categories)


def large(type_: Any) -> Any:
    """Give Arrow's type for the same values with offsets of 64 bits."""
    text = pa.types.is_string(type_) or pa.types.is_large_string(type_) or type_ == pa.string_view()
    return pa.large_string() if text else pa.large_binary()


def _parts(array: Any, strings: HostStrings) -> list[Any]:
    """Give the chunks of an array; long chunks with offsets are not copied."""
    types = pa.types
    plain = types.is_string(array.type) or types.is_binary(array.type)
    if not (plain or array.type == large(array.type)):
        array = array.cast(large(array.type))
    if isinstance(array, pa.ChunkedArray):
        chunks = [chunk for chunk in array.chunks if len(chunk)]
        if len(chunks) > 1 and len(array) < CHUNK_ROWS * len(chunks):
            # Offsets of 64 bits can address all chunks together.
            chunks = [pa.concat_arrays([chunk.cast(large(array.type)) for chunk in chunks])]
    else:
        chunks = [array] if len(array) else []
    return [_strings(chunk, strings) for chunk in chunks]


def _strings(array: Any, strings: HostStrings) -> Any:
    validity = np.frombuffer(array.buffers()[0], np.uint8) if array.null_count else None
    return strings.Strings(*buffers_of(array), validity, array.offset)


def buffers_of(array: Any) -> tuple[Array, Array]:
    """Give the offsets of the rows of an Arrow array, and the characters into which they point; neither is copied."""
    _, offsets, characters = array.buffers()
    dtype = np.dtype(np.int64 if array.type == large(array.type) else np.int32)
    if not len(array):  # Arrow may leave out both
        return np.zeros(1, dtype), np.zeros(0, np.uint8)
    begins = np.frombuffer(offsets, dtype, len(array) + 1, array.offset * dtype.itemsize)
    held = np.frombuffer(characters, np.uint8) if characters is not None and characters.size else np.zeros(0, np.uint8)
    return begins, held


def from_buffers(offsets: Array, characters: Array, type_: Any) -> Any:
    """Make an Arrow array of large text or bytes without null; raise ValueError for offsets beyond the characters."""
    begins, held = np.require(offsets, np.int64, ["C", "A"]), np.require(characters, np.uint8, ["C"])
    buffers = [None, pa.py_buffer(begins), pa.py_buffer(held)]
    array = pa.Array.from_buffers(type_, len(begins) - 1, buffers)
    array.validate(full=True)
    return array
