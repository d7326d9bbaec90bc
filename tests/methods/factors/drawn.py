"""Rows of three dependent columns of text, with missing values, and new rows."""

import numpy as np

RNG = np.random.default_rng(17)
N = 90
WORDS = ["ash", "birch", "elm", "fir", "oak", "yew"]
# Rows are drawn one by one, so that singular values differ.
TREES = [WORDS[number] for number in (RNG.random(N) ** 2 * 6).astype(int)]
SOILS = [
    None if RNG.random() < 0.1 else "wet" if RNG.random() < 0.3 + 0.6 * (tree < "elm") else "dry" for tree in TREES
]
SITES = [f"s{int(RNG.random() ** 2 * 5) + 2 * (soil == 'wet')}" for soil in SOILS]
ROWS = list(zip(TREES, SOILS, SITES, strict=True))
NEW = [("oak", "wet", "s1"), ("pine", "wet", "s0"), ("fir", None, "s9"), ("pine", "clay", "s9")]
X = np.array(ROWS, dtype=object)
FRESH = np.array(NEW, dtype=object)
WEIGHTS = {
    "none": None,
    "whole": RNG.integers(0, 4, N),
    "fractions": RNG.random(N).round(3),
}
