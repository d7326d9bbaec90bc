"""Stateless randomness: a row's fold and a row's place in an order are functions of a seed and the row number alone.

Nothing is stored per row, no row count need be known for folds, and any chunking gives the same answer.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from math import gcd

import numpy as np
from numpy.typing import NDArray

from cpu_fallback import folds as definition


def key_of(seed: int, purpose: int) -> int:
    """Make a 64-bit key from a user's seed, different for every purpose."""
    word = np.array([seed & 0xFFFFFFFFFFFFFFFF], dtype=np.uint64) ^ np.uint64(
        purpose * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
    )
    return int(definition.mixed(word)[0])


@dataclass(frozen=True, eq=False)
class FoldPattern:
    """Fold numbers as a function of the row number.

    ``order="random"``: rows form blocks of K * T rows (T = 1, 2, 4, ... 1024, then constant); within a block the rows
    t, t + T, t + 2T, ... share one hashed map j -> (a * j + c) mod K with a coprime to K.  Every complete block is
    balanced, neighbouring rows fall independently.  ``"interleaved"``: row mod K.  ``"contiguous"``: K blocks of
    neighbouring rows, as equal as possible (needs `n_rows`).

    Parameters
    ----------
    order : {"random", "contiguous", "interleaved"}
    n_splits : int
        Number of folds K.
    seed : int
        64-bit key.
    n_rows : int
        Rows in all; used by "contiguous" alone.
    first_row : int
        Global number of the first row of the chunk at hand.

    Examples
    --------
    >>> from cpu_fallback.row_numbers import FoldPattern, fold_numbers
    >>> fold_numbers(FoldPattern("interleaved", 3), 0, 7).tolist()
    [0, 1, 2, 0, 1, 2, 0]
    """

    order: str
    n_splits: int
    seed: int = 0
    n_rows: int = 0
    first_row: int = 0
    units: NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        units = (
            [a for a in range(1, self.n_splits + 1) if gcd(a, self.n_splits) == 1] if self.order == "random" else [1]
        )
        object.__setattr__(self, "units", np.array(units, dtype=np.int64))

    def at(self, first_row: int) -> "FoldPattern":
        """Give the same pattern for a chunk that begins at another global row."""
        return replace(self, first_row=first_row)


@dataclass(frozen=True)
class Permutation:
    """A keyed bijection of 0 .. n_rows - 1: a Feistel network over an even number of bits, with cycle walking.

    `places_of` gives the place of each row, `rows_at` (its inverse) the row at each place; neither sorts nor stores.
    Cf. Mitchell, Stokes, Frank and Holmes, "Bandwidth-Optimal Random Shuffling for GPUs", 2021.

    Parameters
    ----------
    n_rows : int
    seed : int
        64-bit key.

    Examples
    --------
    >>> from cpu_fallback.row_numbers import Permutation, places_of, rows_at
    >>> order = Permutation(10, seed=7)
    >>> rows_at(order, 0, 10)[places_of(order, 0, 10)].tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """

    n_rows: int
    seed: int = 0

    @property
    def half_bits(self) -> int:
        """Bits of each half of the network: four at least, since tiny networks shuffle badly."""
        return max(4, ((max(self.n_rows, 2) - 1).bit_length() + 1) // 2)

    @cached_property
    def keys(self) -> NDArray[np.uint64]:
        """One key a round."""
        rounds = np.arange(1, definition.ROUNDS + 1, dtype=np.uint64)
        return definition.mixed(np.uint64(self.seed) + rounds * definition.BLOCK_KEY)


fold_numbers = definition.fold_numbers
places_of = definition.places_of
rows_at = definition.rows_at
