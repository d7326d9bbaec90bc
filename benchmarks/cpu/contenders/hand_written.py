"""Code that people write by hand: NumPy's bincount after pd.factorize or directly on the keys; pandas' running sums."""

from functools import partial
from typing import Any

import numpy as np

from benchmarks.cpu.grid import FOLD_WORKS, MEANS, SMOOTH
from benchmarks.cpu.judge import expected_of
from benchmarks.harness.grid import Contender, Prepared
from benchmarks.harness.rows import N_CLASSES, N_FOLDS, Array, Rows

COUNTED = (*MEANS, *FOLD_WORKS, "leave-one-out", "count")
TOLERANCE = 1e-8


def encode_ordered(keys: Any, y: Any) -> Array:
    """Encode each row with pandas' cumsum and cumcount of its category."""
    groups = y.groupby(keys, sort=False)
    return np.asarray((groups.cumsum() - y + SMOOTH * y.mean()) / (groups.cumcount() + SMOOTH))


def factorize(keys: Any, work: str, y: Array, folds: Array) -> Array:
    """Number the keys with pd.factorize, then encode with bincount."""
    import pandas as pd

    codes, values = pd.factorize(keys)
    return codes if work == "codes" else encode(codes, len(values), work, y, folds)


def encode_small_integers(keys: Array, work: str, y: Array, folds: Array) -> Array:
    """Encode with bincount directly on keys, which are small numbers from zero on."""
    return encode(keys, int(keys.max()) + 1, work, y, folds)


def encode(codes: Array, size: int, work: str, y: Array, folds: Array) -> Array:
    """Encode with bincount and a look-up."""
    if work == "classes":
        return encode_classes(codes, size, y, folds)
    counts = np.bincount(codes, minlength=size)
    if work == "count":
        return counts.astype(np.float64)[codes]
    sums, prior = np.bincount(codes, y, minlength=size), y.mean()
    if work == "leave-one-out":
        return (sums[codes] - y + SMOOTH * prior) / (counts[codes] - 1 + SMOOTH)
    if work in FOLD_WORKS:
        cells = codes * np.int64(N_FOLDS) + folds
        seen = counts[:, None] - np.bincount(cells, minlength=size * N_FOLDS).reshape(-1, N_FOLDS)
        part = sums[:, None] - np.bincount(cells, y, minlength=size * N_FOLDS).reshape(-1, N_FOLDS)
        return ((part + SMOOTH * prior) / (seen + SMOOTH)).ravel()[cells]
    return ((sums + SMOOTH * prior) / (counts + SMOOTH))[codes]


def encode_classes(codes: Array, size: int, y: Array, folds: Array) -> Array:
    """Encode by the shares of ten classes in other folds."""
    cells = codes * np.int64(N_FOLDS) + folds
    counts = np.bincount(cells * N_CLASSES + y, minlength=size * N_FOLDS * N_CLASSES)
    counts = counts.reshape(size, N_FOLDS, N_CLASSES)
    seen = counts.sum(axis=1, keepdims=True) - counts
    prior = np.bincount(y, minlength=N_CLASSES) / len(y)
    table = (seen + SMOOTH * prior) / (seen.sum(axis=2, keepdims=True) + SMOOTH)
    return table.reshape(-1, N_CLASSES)[cells]


def numpy(rows: Rows) -> Prepared:
    """Prepare NumPy after pd.factorize; text has pandas' own type, which is faster than Python objects."""
    import pandas as pd

    keys = pd.Series(rows.text.to_pandas(), dtype="str").array if rows.keys == "text" else rows.codes
    return Prepared(partial(factorize, keys, rows.work, rows.target, rows.folds), expected_of(rows, TOLERANCE))


def numpy_range(rows: Rows) -> Prepared:
    """Prepare NumPy without pd.factorize."""
    call = partial(encode_small_integers, rows.codes, rows.work, rows.target, rows.folds)
    return Prepared(call, expected_of(rows, TOLERANCE))


def pandas(rows: Rows) -> Prepared:
    """Prepare running sums of pandas; NumPy has none by category."""
    import pandas as pd

    return Prepared(partial(encode_ordered, rows.series, pd.Series(rows.target)), expected_of(rows, TOLERANCE))


def dictionary_encode(keys: Any) -> Array:
    """Number the keys with Arrow's dictionary_encode."""
    return keys.dictionary_encode().indices.to_numpy()


def arrow(rows: Rows) -> Prepared:
    """Prepare Arrow alone."""
    return Prepared(partial(dictionary_encode, rows.arrow), expected_of(rows))


CONTENDERS = (
    Contender("numpy", "hand-written", numpy, {"work": (*COUNTED, "codes")}, ("pandas",)),
    Contender("numpy-range", "hand-written", numpy_range, {"work": COUNTED, "keys": ("int",)}),
    Contender("pandas", "hand-written", pandas, {"work": ("ordered",)}, ("pandas",)),
    Contender("arrow", "hand-written", arrow, {"work": ("codes",)}),
)
