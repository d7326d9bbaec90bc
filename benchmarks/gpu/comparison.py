"""Whether two results have the same bits, and if not, where they differ."""

from typing import Any

import numpy as np

from cpu_fallback.types import Array
from gpu_encode.cuda.memory import to_host


def bits(array: Array) -> Array:
    """Give numbers as words of bits."""
    plain = np.ascontiguousarray(array)
    return plain.view(f"u{plain.dtype.itemsize}") if plain.dtype.kind == "f" else plain


def difference(result: Any, expected: Any) -> str:
    """Say where two results differ; the text is empty if all bits are the same.

    Parameters
    ----------
    found, expected : array, number, None, or lists of them
    """
    if isinstance(result, (tuple, list)):
        if len(result) != len(expected):
            return f"{len(result)} results, not {len(expected)}"
        said = (difference(*pair) for pair in zip(result, expected, strict=True))
        return "; ".join(f"[{i}] {text}" for i, text in enumerate(said) if text)
    if not hasattr(expected, "shape"):
        return "" if result == expected else f"{result}, not {expected}"
    ours, theirs = to_host(result), to_host(expected)
    if (ours.shape, ours.dtype) != (theirs.shape, theirs.dtype):
        return f"{ours.shape} {ours.dtype}, not {theirs.shape} {theirs.dtype}"
    unlike = bits(ours) != bits(theirs)
    if not unlike.any():
        return ""
    first = tuple(int(position[0]) for position in np.nonzero(unlike)) if unlike.ndim else ()
    return f"{int(unlike.sum())} of {unlike.size} differ, first at {first}: {ours[first]}, not {theirs[first]}"
