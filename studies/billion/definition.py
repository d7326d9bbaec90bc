"""The fold and the encoding of a row, written again from the documentation; nothing of gpu_encode is imported.

The docstring of `cpu_fallback.row_numbers.FoldPattern` describes the fold of a row: rows form blocks of K * T rows
(T = 1, 2, 4, ... 1024, then always 1024); in a block, the rows t, t + T, t + 2T, ... share one map
j -> (a * j + c) mod K, a coprime to K.  The encoding of a row is (s + m * mu) / (n + m), rounded once, with the
sums of all folds but its own: mu the mean of all their rows, s the sum of their n rows of its category.
"""

from fractions import Fraction
from math import gcd

import numpy as np
from numpy.typing import NDArray

WORD = (1 << 64) - 1
BLOCK_KEY, STRIDE_KEY = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03
LONGEST = 1024
# The number of the random stream that K-fold takes from a seed.
KFOLD = 1


def mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble words of 64 bits: the finaliser of SplitMix64."""
    words = (words ^ words >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ words >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return words ^ words >> np.uint64(31)


def mix_one(word: int) -> int:
    """Scramble one word."""
    return int(mix(np.array([word & WORD], np.uint64))[0])


def seed_of(random_state: int) -> int:
    """Give the key for a user's seed."""
    return mix_one(random_state & WORD ^ KFOLD * BLOCK_KEY & WORD)


def block_of(row: int, n_folds: int) -> tuple[int, int, int]:
    """Give the number of a row's block, the first row of the block, and its T."""
    first, stride, number = 0, 1, 0
    while stride < LONGEST and row >= first + n_folds * stride:
        first, stride, number = first + n_folds * stride, 2 * stride, number + 1
    whole = (row - first) // (n_folds * stride) if stride == LONGEST else 0
    return number + whole, first + whole * n_folds * stride, stride


def block_folds(block: int, stride: int, n_folds: int, seed: int) -> NDArray[np.int8]:
    """Give the folds of all rows of a block, from the map of each t."""
    own = np.uint64(mix_one(seed + block * BLOCK_KEY))
    words = mix(own + np.arange(stride, dtype=np.uint64) * np.uint64(STRIDE_KEY))
    units = np.array([a for a in range(1, n_folds + 1) if gcd(a, n_folds) == 1])
    a = units[(words >> np.uint64(32)).astype(np.int64) % len(units)]
    c = (words & np.uint64(0xFFFFFFFF)).astype(np.int64) % n_folds
    turns = np.arange(n_folds)[:, None]
    return ((a * turns + c) % n_folds).astype(np.int8).ravel()


def folds_of(start: int, stop: int, n_folds: int, seed: int) -> NDArray[np.int8]:
    """Give the folds of the rows [start, stop)."""
    folds, row = [np.zeros(0, np.int8)], start
    while row < stop:
        block, first, stride = block_of(row, n_folds)
        folds.append(block_folds(block, stride, n_folds, seed)[row - first : stop - first])
        row = first + n_folds * stride
    return np.concatenate(folds)


def encoding_of(n: int, s: int, rows: int, total: int, m: int) -> float:
    """Give the encoding of a category: its n rows sum to s, and all visible rows (`rows` of them) sum to `total`."""
    prior = Fraction(total, rows)
    return float((s + m * prior) / (n + m)) if n else float(prior)
