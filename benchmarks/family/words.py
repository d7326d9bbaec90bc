"""Hashed words by their definitions: what a value is spelled like, and where its hash puts it."""

from collections.abc import Callable
from hashlib import md5

import numpy as np

from benchmarks.harness.rows import Array, Rows, words_of

N_COMPONENTS = 8
BITS = 0xFFFFFFFF


def rotate(number: int, by: int) -> int:
    """Rotate 32 bits to the left."""
    return (number << by | number >> (32 - by)) & BITS


def murmur(word: bytes) -> int:
    """Hash bytes to 32 signed bits: Appleby's MurmurHash3_x86_32 with seed 0."""
    mixed, whole = 0, len(word) // 4 * 4
    for start in range(0, len(word), 4):
        block = int.from_bytes(word[start : start + 4], "little") * 0xCC9E2D51 & BITS
        mixed ^= rotate(block, 15) * 0x1B873593 & BITS
        if start < whole:
            mixed = (rotate(mixed, 13) * 5 + 0xE6546B64) & BITS
    mixed ^= len(word)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        mixed = (mixed ^ mixed >> shift) * factor & BITS
    return mixed - (1 << 32) if mixed >> 31 else mixed


def of_murmur(value: str | int) -> int:
    """Component of a value in ours and in scikit-learn: text as UTF-8, numbers as decimal digits and an exponent."""
    if isinstance(value, str):
        return abs(murmur(value.encode())) % N_COMPONENTS
    short = str(value).rstrip("0")
    spelled = f"{short}e{len(str(value)) - len(short)}" if value else "0e0"
    return abs(murmur(b"\xffn" + spelled.encode())) % N_COMPONENTS


def of_md5(value: str | int) -> int:
    """Component of a value in category_encoders."""
    return int(md5(str(value).encode(), usedforsecurity=False).hexdigest(), 16) % N_COMPONENTS


def components(rows: Rows, component: Callable[[str | int], int] = of_murmur) -> list[Array]:
    """Component of each row's value."""
    places = np.zeros(rows.categories, np.int64)
    words = words_of(rows.categories).to_pylist() if rows.keys == "text" else range(rows.categories)
    for code in np.flatnonzero(np.bincount(rows.codes)):
        places[code] = component(words[code])
    return [places[rows.codes]]
