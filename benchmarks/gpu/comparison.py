"""Are two results the same bits, and if not, where do they differ?"""

from typing import Any

import numpy as np

from cpu_fallback.types import Array
from gpu_encode.cuda.memory import to_host


def bits(array: Array) -> Array:
    """Raw words of numbers."""
    plain = np.ascontiguousarray(array)
    return plain.view(f"u{plain.dtype.itemsize}") if plain.dtype.kind == "f" else plain


def difference(found: Any, expected: Any) -> str:
    """Say where two results differ; nothing if all bits are the same.

    Parameters
    ----------
    found, expected : array, number, None, or lists of them
    """
    if isinstance(found, (tuple, list)):
        if len(found) != len(expected):
            return f"{len(found)} results, not {len(expected)}"
        said = (difference(*pair) for pair in zip(found, expected, strict=True))
        return "; ".join(f"[{i}] {each}" for i, each in enumerate(said) if each)
    if not hasattr(expected, "shape"):
        return "" if found == expected else f"{found}, not {expected}"
    ours, theirs = to_host(found), to_host(expected)
    if (ours.shape, ours.dtype) != (theirs.shape, theirs.dtype):
        return f"{ours.shape} {ours.dtype}, not {theirs.shape} {theirs.dtype}"
    unlike = bits(ours) != bits(theirs)
    if not unlike.any():
        return ""
    first = tuple(int(place[0]) for place in np.nonzero(unlike)) if unlike.ndim else ()
    return f"{int(unlike.sum())} of {unlike.size} differ, first at {first}: {ours[first]}, not {theirs[first]}"
