"""About how many distinct values many rows have, in 16 KiB whatever their number."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from cpu_fallback.types import MISSING, Array
from gpu_encode.categories import objects, strings
from gpu_encode.categories.keys import CategoryIndex
from gpu_encode.categories.values import Values

# Registers of a sketch, as a power of two: its count is off by 0.8 % (one standard deviation).
REGISTER_BITS = 14
# Values that are hashed at a time.
TILE = 1 << 16
# What spreads the bits of a number over all 64 (SplitMix64).
ODD = np.uint64(0x9E3779B97F4A7C15)
MIXERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


class DistinctCount:
    """Counts distinct categories of one key (HyperLogLog), of which each may be added any number of times.

    Examples
    --------
    >>> from gpu_encode.categories.values import from_numpy
    >>> count = DistinctCount()
    >>> for start in range(0, 100_000, 1_000):
    ...     count.add_hashes(hash_values(from_numpy(np.arange(start, start + 2_000), "city")))
    >>> abs(count.estimate() / 101_000 - 1) < 0.03
    True
    """

    def __init__(self) -> None:
        self._most = np.zeros(1 << REGISTER_BITS, np.uint8)

    def add(self, key: CategoryIndex) -> None:
        """Add all categories of a key."""
        of_column = [hash_values(vocabulary.values) for vocabulary in key.vocabularies]
        self.add_hashes(of_column[0] if key.members is None else hash_members(key.members, of_column))

    def add_hashes(self, hashes: Array) -> None:
        """Add values by their hashes."""
        register = (hashes >> np.uint64(64 - REGISTER_BITS)).astype(np.intp)
        # As floats, the rest has its highest bit in the exponent.
        rest = (hashes << np.uint64(REGISTER_BITS)) >> np.uint64(12)
        exponent = np.frexp(rest.astype(np.float64))[1]
        np.maximum.at(self._most, register, (53 - exponent).astype(np.uint8))

    def estimate(self) -> int:
        """About how many distinct values were added."""
        size = 1 << REGISTER_BITS
        raw = 0.7213 / (1 + 1.079 / size) * size**2 / float(np.ldexp(1.0, -self._most.astype(np.int32)).sum())
        empty = int((self._most == 0).sum())
        return round(size * np.log(size / empty)) if raw <= 2.5 * size and empty else round(raw)


def hash_values(values: Values) -> Array:
    """Give a hash (uint64) of each value."""
    array = values.array
    if isinstance(array, np.ndarray) and array.dtype.kind == "O":
        array = pa.array(objects.to_text(array), pa.large_string())
    tiles = (array[start : start + TILE] for start in range(0, len(array), TILE))
    hashed = [mix(hash_numbers(tile) if isinstance(tile, np.ndarray) else hash_text(tile)) for tile in tiles]
    return np.concatenate([np.zeros(0, np.uint64), *hashed])


def hash_numbers(array: Array) -> Array:
    """Give a number of 64 bits for each; equal numbers of several types have the same."""
    floats = array.astype(np.float64)
    whole = floats == array
    # Whole numbers beyond those that floats hold stay apart.
    return np.where(whole, (floats + 0.0).view(np.uint64), array.astype(np.int64, casting="unsafe").view(np.uint64))


def hash_text(array: pa.Array) -> Array:
    """Give a number of 64 bits for each text: the sum of its bytes, each times a number that follows from its place."""
    offsets, characters = strings.buffers_of(array)
    offsets = offsets.astype(np.int64)
    characters, starts = characters[offsets[0] : offsets[-1]], offsets[:-1] - offsets[0]
    lengths = np.diff(offsets)
    place = (np.arange(len(characters)) - np.repeat(starts, lengths)).astype(np.uint64)
    weighted = (characters.astype(np.uint64) + np.uint64(1)) * mix(place)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(weighted)])
    hashed: Array = sums[starts + lengths] - sums[starts]
    return hashed


def hash_members(members: Array, of_column: Sequence[Array]) -> Array:
    """Give a hash of each category of a joint key, from those of the values that make it up."""
    hashed = np.zeros(len(members), np.uint64)
    for column, hashes in enumerate(of_column):
        places = members[:, column]
        own = np.append(hashes, np.uint64(1))[np.where(places == MISSING, len(hashes), places)]
        hashed = mix(hashed * ODD + own)
    return hashed


def mix(numbers: Array) -> Array:
    """Spread the bits of numbers over all 64."""
    mixed = numbers + ODD
    mixed = (mixed ^ (mixed >> np.uint64(30))) * MIXERS[0]
    mixed = (mixed ^ (mixed >> np.uint64(27))) * MIXERS[1]
    return mixed ^ (mixed >> np.uint64(31))
