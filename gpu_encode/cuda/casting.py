"""Numbers in another type, each rounded once.

CuPy compiles its own conversions so that float32 numbers below 1.2e-38 become zero, and a GPU has only one NaN.  Here
such numbers are kept, and a NaN gets the bits that it has on a CPU.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from gpu_encode.cuda.memory import empty, to_device
from gpu_encode.cuda.runtime import cuda, kernel, launch_rows, xp

if TYPE_CHECKING:
    from cpu_fallback.types import Array

SIGN, QUIET, PAYLOAD = np.uint64(0x80000000), np.uint64(0x7FC00000), np.uint64(0x3FFFFF)
WIDE_QUIET = np.uint64(0x7FF8000000000000)
HALF, SHIFT = np.uint64(32), np.uint64(29)


@kernel
def narrow(values: "Array", words: "Array", out: "Array", out_words: "Array") -> None:
    """Round doubles to floats; `words` and `out_words` are the bits of the inputs and of the results."""
    for i in range(cuda.grid(1), len(values), cuda.gridsize(1)):
        if values[i] != values[i]:
            word = np.uint64(words[i])
            out_words[i] = np.uint32(((word >> HALF) & SIGN) | QUIET | ((word >> SHIFT) & PAYLOAD))
        else:
            out[i] = np.float32(values[i])


@kernel
def widen(values: "Array", words: "Array", out: "Array", out_words: "Array") -> None:
    """Turn floats into doubles; `words` and `out_words` are the bits of the inputs and of the results."""
    for i in range(cuda.grid(1), len(values), cuda.gridsize(1)):
        if values[i] != values[i]:
            word = np.uint64(words[i])
            out_words[i] = ((word & SIGN) << HALF) | WIDE_QUIET | ((word & PAYLOAD) << SHIFT)
        else:
            out[i] = np.float64(values[i])


@kernel
def narrow_encodings(values: "Array", out: "Array", out_words: "Array", nan: Any) -> None:
    """Round doubles to floats, with the word `nan` for every NaN; `out_words` are the bits of the result."""
    for i in range(cuda.grid(1), len(values), cuda.gridsize(1)):
        if values[i] != values[i]:
            out_words[i] = nan
        else:
            out[i] = np.float32(values[i])


@kernel
def write_nan(values: "Array", words: "Array", nan: Any) -> None:
    """Write the word `nan` over every NaN; `words` are the bits of the values."""
    for i in range(cuda.grid(1), len(values), cuda.gridsize(1)):
        if values[i] != values[i]:
            words[i] = nan


def cast_encodings(encodings: "Array", dtype: Any, /) -> "Array":
    """Encodings in the type of the output, each rounded once, and every NaN with the bits of `np.nan`.

    If they already have this type and are contiguous, they are overwritten.
    """
    given, wanted = to_device(encodings), np.dtype(dtype)
    flat = given.reshape(-1)
    if (given.dtype, wanted) == (np.float64, np.float32):
        found = empty(flat.size, wanted)
        launch_rows(narrow_encodings, flat.size, flat, found, found.view(np.uint32), word_of_nan(wanted))
        return found.reshape(given.shape)
    if (given.dtype, wanted) != (np.float64, np.float64):
        return cast(given, wanted)
    launch_rows(write_nan, flat.size, flat, flat.view(np.uint64), word_of_nan(wanted))
    return given


def word_of_nan(dtype: "np.dtype[Any]") -> Any:
    """Bits of `np.nan` in a type."""
    return np.array(np.nan, dtype).view(f"u{dtype.itemsize}")[()]


def cast(values: "Array", dtype: Any, /) -> "Array":
    """Numbers in another type, each rounded once; the array itself if it already has this type."""
    wanted = np.dtype(dtype)
    if values.dtype == wanted:
        return values
    pair = values.dtype.name, wanted.name
    if pair not in {("float64", "float32"), ("float32", "float64")}:
        return values.astype(wanted)
    given, found = to_device(values).reshape(-1), empty(values.size, wanted)
    of_given, of_found = (xp.uint64, xp.uint32) if wanted == np.float32 else (xp.uint32, xp.uint64)
    convert = narrow if wanted == np.float32 else widen
    launch_rows(convert, values.size, given, given.view(of_given), found, found.view(of_found))
    return found.reshape(values.shape)
