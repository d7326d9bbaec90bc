"""The categories of a joint key: combinations of the values of several columns."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.types import MISSING, Array, Codes
from gpu_encode.seam import devices


class Tuples:
    """Combinations of values, in lexicographic order, a missing value after the others.

    They are held as value numbers (`members`) or as sorted joint keys (`prefixes`); each form is made from the other
    when it is first asked for.  Joint keys may lie on a GPU until then, and lie on the host afterwards.

    Parameters
    ----------
    sizes : list of int
        Number of values of each column.
    members : int32 array (combinations, columns), optional
        Number of each value, -1 for a missing one.
    prefixes : list of int64 array, optional
        Sorted joint keys of the first 2, 3, ... columns: a joint code is an index in the last of them.
    """

    def __init__(
        self, sizes: Sequence[int], members: Codes | None = None, prefixes: Sequence[Array] | None = None
    ) -> None:
        self.sizes, self._members, self._prefixes = [*sizes], members, prefixes

    def __len__(self) -> int:
        """Number of combinations."""
        return len(self._prefixes[-1] if self._members is None else self._members)  # type: ignore[index]

    def __reduce__(self) -> tuple[Any, ...]:
        # Always as members, whichever form is known: equal combinations leave the process as equal bytes.
        return Tuples, (self.sizes, self.members)

    @property
    def members(self) -> Codes:
        """Value numbers that make up each combination (combinations, columns), -1 for missing."""
        if self._members is None:
            self._members = split_keys(self.prefixes, self.sizes)
        return self._members

    @property
    def prefixes(self) -> list[NDArray[np.int64]]:
        """Sorted joint keys of the first 2, 3, ... columns, on the host."""
        known = self._prefixes
        self._prefixes = join_values(self.members, self.sizes) if known is None else [on_host(keys) for keys in known]
        return self._prefixes


class LaterTuples(Tuples):
    """Combinations that are found when somebody asks for them, unless a pass over the rows has told them by then.

    Parameters
    ----------
    sizes : list of int
        Number of values of each column.
    find : callable
        Gives the sorted joint keys of the first 2, 3, ... columns.
    """

    def __init__(self, sizes: Sequence[int], find: Callable[[], Sequence[Array]]) -> None:
        super().__init__(sizes)
        self._find: Callable[[], Sequence[Array]] | None = find
        self._cells: Array | None = None

    def __len__(self) -> int:
        """Number of combinations."""
        return len(self.prefixes[-1] if self._cells is None else self._cells)

    def tell(self, cells: Array) -> None:
        """Take the combinations from who has found them: sorted mixed-radix numbers of their values."""
        # What would have found them holds the rows.
        self._cells, self._find = cells, None

    @property
    def members(self) -> Codes:
        """Value numbers that make up each combination (combinations, columns), -1 for missing."""
        if self._members is None and self._cells is not None:
            self._members = split_cells(self._cells, self.sizes)
        return super().members

    @property
    def prefixes(self) -> list[NDArray[np.int64]]:
        """Sorted joint keys of the first 2, 3, ... columns, on the host."""
        if self._find is not None:
            self._prefixes, self._find = self._find(), None
        return super().prefixes


def split_cells(cells: Array, sizes: Sequence[int]) -> Codes:
    """Give the value numbers behind mixed-radix numbers of values, a missing one after the others."""
    members, rest = np.empty((len(cells), len(sizes)), np.int32), cells.astype(np.int64)
    for number in reversed(range(len(sizes))):
        rest, values = np.divmod(rest, sizes[number] + 1)
        members[:, number] = np.where(values == sizes[number], MISSING, values)
    return members


def on_host(keys: Array) -> NDArray[np.int64]:
    """Give joint keys on the host."""
    return keys if isinstance(keys, np.ndarray) else devices.cuda().to_host(keys)


def code_missing(codes: Codes, size: int) -> Codes:
    """Codes in which missing is one more value, after the others."""
    return np.where(codes == MISSING, np.int32(size), codes)


def join_values(members: Codes, sizes: Sequence[int]) -> list[NDArray[np.int64]]:
    """Give the sorted joint keys of the first 2, 3, ... columns of some combinations."""
    prefixes: list[NDArray[np.int64]] = []
    codes = code_missing(members[:, 0], sizes[0])
    for number in range(1, len(sizes)):
        keys = codes.astype(np.int64) * (sizes[number] + 1) + code_missing(members[:, number], sizes[number])
        prefix, codes = np.unique(keys, return_inverse=True)
        prefixes.append(prefix)
    return prefixes


def split_keys(prefixes: Sequence[NDArray[np.int64]], sizes: Sequence[int]) -> Codes:
    """Give the value numbers behind sorted joint keys."""
    members = np.empty((len(prefixes[-1]), len(sizes)), np.int32)
    keys = prefixes[-1]
    for number in range(len(prefixes), 0, -1):
        codes, values = np.divmod(keys, sizes[number] + 1)
        members[:, number] = np.where(values == sizes[number], MISSING, values)
        keys = prefixes[number - 2][codes] if number > 1 else codes
    members[:, 0] = np.where(keys == sizes[0], MISSING, keys)
    return members
