"""Keyed hashes of values, which can only be computed with the key."""

import hmac
from typing import Any

import numpy as np
import pyarrow as pa

from cpu_fallback.types import Array
from gpu_encode.seam.ops import host
from gpu_encode.tables import frames
from gpu_encode.tables.categories.canonical_bytes import spell
from gpu_encode.words.annotations import Vector

# A key of this length cannot be found by trying.
SHORTEST = 16


def hash_values(values: Vector, hash_key: bytes) -> Array:
    """Give the keyed hash of each value: HMAC-SHA-256 (RFC 2104) of its bytes, in hexadecimal digits.

    The bytes of text are its UTF-8, so that databases can compute the same hash.  Other values are written as in
    `HashingEncoder`; equal values have equal bytes.

    Parameters
    ----------
    values : list, array or series of shape (n_rows,)
        A column of a table of any kind.
    hash_key : bytes
        The key, at least 16 bytes; keep it as you keep passwords.

    Returns
    -------
    object ndarray of shape (n_rows,)
        Texts of 64 digits; None for a missing value.

    Raises
    ------
    ValueError
        If the key is too short.
    TypeError
        If the key is not of type bytes.

    Examples
    --------
    >>> from gpu_encode.export import hash_values
    >>> hash_values(["oak", None], b"at least 16 bytes")[0][:16]
    'fdbd3e57261c721c'
    """
    if not isinstance(hash_key, bytes):
        raise TypeError(f"hash_key must be bytes, at least {SHORTEST} of them. Got {type(hash_key).__name__} instead.")
    if len(hash_key) < SHORTEST:
        raise ValueError(
            f"hash_key has {len(hash_key)} bytes, so few that it can be found by trying all keys. Take at least "
            f"{SHORTEST}: secrets.token_bytes(32)."
        )
    frame = frames.read(as_table(values))
    codes, vocabulary, _ = frame.keys(0, host(frame.n_rows))
    hashed: list[Any] = [hmac.digest(hash_key, word, "sha256").hex() for word in spell(vocabulary.values)]
    return np.array([*hashed, None], object)[codes]


def as_table(values: Any) -> Any:
    """Give a column as a table, in which it keeps its type."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return pa.table({"values": values})
    if hasattr(values, "to_frame"):
        return values.to_frame(name="values")
    array = values if isinstance(values, np.ndarray) else np.array([*values, None], object)[:-1]
    return array.reshape(-1, 1)
