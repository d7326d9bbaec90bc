"""Parents of a category that follow from its value: string prefixes, separated parts, leading bits of integers.

A level's key is its whole path from the top, so equal parts below different parents are different categories.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from cpu_fallback.types import Array
from gpu_encode.errors.parameters import bad_parameter, check_count


class Derived(BaseEstimator):
    """Rule that gives a category's ancestors from its value."""

    kind: str

    def check(self) -> None:
        """Raise ValueError for parameters out of range."""

    def admits(self, values: Array) -> NDArray[np.bool_]:
        """Say to which values the rule applies; fit refuses others, later rows with them are unknown."""
        return np.ones(len(values), bool)

    def paths(self, values: Array) -> list[list[Any]]:
        """Ancestors of each value, level by level, the top level first; None where a value has none at that level."""
        raise NotImplementedError


def check_falling(owner: str, lengths: Sequence[int], low: int) -> None:
    """Raise ValueError unless the lengths are integers that fall strictly."""
    if not lengths:
        raise ValueError(f"{owner} needs at least one length, for example {owner}(4, 3).")
    for length in lengths:
        check_count(owner, "lengths", length, low=low)
    if any(b >= a for a, b in pairwise(lengths)):
        raise ValueError(f"{owner}{tuple(lengths)} must fall strictly, from the nearest level to the top.")


class Prefixes(Derived):
    """String prefixes: a ZIP code lies in its first four characters, those in its first three.

    Parameters
    ----------
    *lengths : int
        Lengths in characters, falling strictly.  A value no longer than a length has no ancestor at that level.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import Prefixes
    >>> Prefixes(4, 3).paths(np.array(["20190", "20"], dtype=object))
    [['201', None], ['2019', None]]
    """

    kind = "text"

    def __init__(self, *lengths: int) -> None:
        self.lengths = lengths

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return ["lengths"]

    def __sklearn_clone__(self) -> "Prefixes":
        return type(self)(*self.lengths)

    def check(self) -> None:
        """Raise ValueError unless the lengths fall strictly and are at least 1."""
        check_falling("Prefixes", self.lengths, 1)

    def paths(self, values: Array) -> list[list[Any]]:
        """Prefix of each length, None for values that are not longer."""
        return [
            [value[:length] if len(value) > length else None for value in values] for length in reversed(self.lengths)
        ]


class Parts(Derived):
    """Separated parts: ``a.b.com`` lies in ``b.com`` lies in ``com``; ``10.1.2.3`` lies in ``10.1.2`` lies in ``10.1``.

    Parameters
    ----------
    separator : str, default="."
    from_end : bool, default=False
        The top level is the last part (domain names) and not the first (IP text, file paths).

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import Parts
    >>> Parts(".", from_end=True).paths(np.array(["a.b.com", "com"], dtype=object))
    [['com', None], ['b.com', None]]
    """

    kind = "text"

    def __init__(self, separator: str = ".", from_end: bool = False) -> None:
        self.separator = separator
        self.from_end = from_end

    def check(self) -> None:
        """Raise ValueError for an empty separator."""
        if not isinstance(self.separator, str) or not self.separator:
            raise bad_parameter("Parts", "separator", self.separator, "must be a text that is not empty")

    def paths(self, values: Array) -> list[list[Any]]:
        """Top 1, 2, ... parts of each value, None for values that have no more parts than that."""
        split = [value.split(self.separator) for value in values]
        depth = max((len(parts) for parts in split), default=1)
        return [[self._top(parts, kept) for parts in split] for kept in range(1, depth)]

    def _top(self, parts: list[str], kept: int) -> str | None:
        if kept >= len(parts):
            return None
        return self.separator.join(parts[-kept:] if self.from_end else parts[:kept])


class Bits(Derived):
    """Leading bits of integers: an IPv4 address as a number lies in its first 24 bits, those in its first 16.

    Parameters
    ----------
    *lengths : int
        How many leading bits to keep, falling strictly.
    width : int, default=32
        Bits of the whole number; values must lie in [0, 2**width).

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import Bits
    >>> Bits(24, 16).paths(np.array([0x0A010203]))
    [[2561], [655618]]
    """

    kind = "number"

    def __init__(self, *lengths: int, width: int = 32) -> None:
        self.lengths = lengths
        self.width = width

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return ["lengths", "width"]

    def __sklearn_clone__(self) -> "Bits":
        return type(self)(*self.lengths, width=self.width)

    def check(self) -> None:
        """Raise ValueError unless the lengths fall strictly below the width."""
        check_count("Bits", "width", self.width, low=1)
        check_falling("Bits", self.lengths, 1)
        if self.lengths[0] >= self.width or self.width > 63:
            raise ValueError(f"Bits{tuple(self.lengths)} must lie below width={self.width}, which is at most 63.")

    def admits(self, values: Array) -> NDArray[np.bool_]:
        """Say which values are integers in [0, 2**width)."""
        numbers = np.asarray(values)
        inside: NDArray[np.bool_] = (numbers >= 0) & (numbers < 1 << self.width)
        if numbers.dtype.kind not in "iub":
            inside &= np.array([value == int(value) for value in np.where(inside, numbers, 0)], dtype=bool)
        return inside

    def paths(self, values: Array) -> list[list[Any]]:
        """Keep the leading bits of each value, None for values that are no such integers."""
        whole = [int(value) if good else None for value, good in zip(values, self.admits(values), strict=True)]
        return [
            [None if value is None else value >> (self.width - length) for value in whole]
            for length in reversed(self.lengths)
        ]
