"""Hashed words, by scikit-learn's MurmurHash3: the text of a value, and its component."""

from collections.abc import Callable
from hashlib import md5

import numpy as np

from benchmarks.harness.rows import Array, Rows, words_of

N_COMPONENTS = 8


def of_murmur(value: str | int) -> int:
    """Give the component of a value in ours and in scikit-learn: text as UTF-8, numbers as digits and an exponent."""
    from sklearn.utils import murmurhash3_32

    if isinstance(value, str):
        return abs(murmurhash3_32(value)) % N_COMPONENTS
    short = str(value).rstrip("0")
    spelled = f"{short}e{len(str(value)) - len(short)}" if value else "0e0"
    return abs(murmurhash3_32(b"\xffn" + spelled.encode())) % N_COMPONENTS


def of_md5(value: str | int) -> int:
    """Give the component of a value in category_encoders."""
    return int(md5(str(value).encode(), usedforsecurity=False).hexdigest(), 16) % N_COMPONENTS


def components(rows: Rows, component: Callable[[str | int], int] = of_murmur) -> list[Array]:
    """Give the component of each row's value."""
    numbers = np.zeros(rows.categories, np.int64)
    words = words_of(rows.categories).to_pylist() if rows.keys == "text" else range(rows.categories)
    for code in np.flatnonzero(np.bincount(rows.codes)):
        numbers[code] = component(words[code])
    return [numbers[rows.codes]]
