"""An estimate of the number of distinct values, in 16 KiB for any number of rows."""

import numpy as np

from cpu_fallback.types import Array
from gpu_encode.tables.categories.hashes import hash_categories
from gpu_encode.tables.categories.keys import CategoryIndex

# Number of registers of a sketch, as a power of two: its count has a standard deviation of 0.8 %.
REGISTER_BITS = 14


class DistinctCount:
    """Estimates the number of distinct categories of a key (HyperLogLog); a category may be added any number of times.

    Examples
    --------
    >>> from gpu_encode.tables.categories.keys import KeySpec
    >>> from gpu_encode.tables.categories.values import from_numpy
    >>> from gpu_encode.tables.categories.vocabulary import Vocabulary
    >>> count = DistinctCount()
    >>> for start in range(0, 100_000, 1_000):
    ...     cities = Vocabulary(from_numpy(np.arange(start, start + 2_000), "city"))
    ...     count.add(CategoryIndex(KeySpec("city", (0,)), [cities]))
    >>> abs(count.estimate() / 101_000 - 1) < 0.03
    True
    """

    def __init__(self) -> None:
        self._most = np.zeros(1 << REGISTER_BITS, np.uint8)

    def __add__(self, other: "DistinctCount") -> "DistinctCount":
        both = DistinctCount()
        both._most = np.maximum(self._most, other._most)
        return both

    def add(self, key: CategoryIndex) -> None:
        """Add all categories of a key."""
        self.add_hashes(hash_categories(key, 0)[:-1])

    def add_hashes(self, hashes: Array) -> None:
        """Add values by their hashes."""
        register = (hashes >> np.uint64(64 - REGISTER_BITS)).astype(np.intp)
        # As a float, the rest of the hash has the position of its highest bit in the exponent.
        rest = (hashes << np.uint64(REGISTER_BITS)) >> np.uint64(12)
        exponent = np.frexp(rest.astype(np.float64))[1]
        np.maximum.at(self._most, register, (53 - exponent).astype(np.uint8))

    def estimate(self) -> int:
        """Estimate the number of distinct values that were added."""
        size = 1 << REGISTER_BITS
        raw = 0.7213 / (1 + 1.079 / size) * size**2 / float(np.ldexp(1.0, -self._most.astype(np.int32)).sum())
        empty = int((self._most == 0).sum())
        return round(size * np.log(size / empty)) if raw <= 2.5 * size and empty else round(raw)
