"""Bare loops for many keys: the speed that memory and two threads allow if nothing is checked."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np

from benchmarks.harness.rows import Array

N_THREADS = 2


@numba.njit(nogil=True, cache=True)
def encode_key(
    columns: Any,
    sizes: Any,
    key: Any,
    folds: Any,
    target: Any,
    smooth: float,
    prior: Any,
    counts: Any,
    table: Any,
    out: Any,
) -> None:
    """Write the encodings of one key: count by cell, fold and label, make a table, and look up rows."""
    n_folds = len(prior)
    n_cells = 1
    for column in key:
        n_cells *= sizes[column]
    counts[: n_cells * n_folds] = 0
    for row in range(len(folds)):
        cell = 0
        for column in key:
            cell = cell * sizes[column] + columns[column, row]
        counts[cell * n_folds + folds[row], target[row]] += 1
    for cell in range(n_cells):
        first = cell * n_folds
        zeros, ones = 0, 0
        for fold in range(n_folds):
            zeros += counts[first + fold, 0]
            ones += counts[first + fold, 1]
        for fold in range(n_folds):
            s = ones - counts[first + fold, 1]
            n = s + zeros - counts[first + fold, 0]
            table[first + fold] = (s + smooth * prior[fold]) / (n + smooth)
    for row in range(len(folds)):
        cell = 0
        for column in key:
            cell = cell * sizes[column] + columns[column, row]
        out[row] = table[cell * n_folds + folds[row]]


def encode_keys(
    columns: Array, sizes: Array, keys: Sequence[tuple[int, ...]], folds: Array, target: Array, smooth: float
) -> Array:
    """Encode all keys, each on one of two threads."""
    n = np.bincount(folds)
    s = np.bincount(folds, target)
    prior = (s.sum() - s) / (n.sum() - n)
    most = max(int(np.prod(sizes[list(key)])) for key in keys) * len(n)
    out = np.empty((len(folds), len(keys)), order="F")

    def encode(first: int) -> None:
        counts, table = np.empty((most, 2), np.int32), np.empty(most)
        for number in range(first, len(keys), N_THREADS):
            key = np.array(keys[number])
            encode_key(columns, sizes, key, folds, target, smooth, prior, counts, table, out[:, number])

    with ThreadPoolExecutor(N_THREADS) as pool:
        list(pool.map(encode, range(N_THREADS)))
    return out
