"""Levels above the categories of a key, and rules that derive them from values: prefixes, parts, leading bits.

A level's key is its whole path from the top, so equal parts below different parents are different categories.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from cpu_fallback.types import Array, Codes
from gpu_encode.seam import devices
from gpu_encode.tables.categories.vocabulary import Vocabulary
from gpu_encode.words.errors.parameters import KnownKeywords, bad_parameter, check_count

# The bits of an IPv6 address.
WIDEST = 128
# The bits of an int64 without its sign.
LONGEST_NUMBER = 63
# Characters of the longest text that any column holds.
LONGEST = (1 << 31) - 1
# Levels that a rule may make, and bytes that a path takes beside its text while levels are made.
MOST_LEVELS, PATH_BYTES = 1_000, 160


class Derived(KnownKeywords, BaseEstimator):
    """A rule that derives a category's ancestors from its value."""

    # Kinds of values that the rule takes.
    kinds: tuple[str, ...]
    lengths: Sequence[int] = ()

    def check(self) -> None:
        """Raise ValueError for parameters out of range."""

    def admits(self, values: Array) -> NDArray[np.bool_]:
        """Tell to which values the rule applies; fit refuses other values, and in later rows they are unknown."""
        return np.ones(len(values), bool)

    def n_levels(self, values: Array) -> int:  # noqa: ARG002
        """Give the number of levels above some values."""
        return len(self.lengths)

    def paths(self, values: Array) -> list[list[Any]]:
        """Give the ancestors of each value, level by level, the top level first; None if it has none at a level."""
        raise NotImplementedError


def check_falling(owner: str, lengths: Sequence[int], low: int) -> None:
    """Raise ValueError unless the lengths are strictly decreasing integers."""
    if not lengths:
        raise ValueError(f"{owner} needs at least one length, for example {owner}(4, 3).")
    for length in lengths:
        check_count(owner, "lengths", length, low=low, high=LONGEST)
    if any(b >= a for a, b in pairwise(lengths)):
        raise ValueError(f"{owner}{tuple(lengths)} must fall strictly, from the nearest level to the top.")


class Prefixes(Derived):
    """Levels that are prefixes of text: the first four characters of a ZIP code, and above them its first three.

    Parameters
    ----------
    *lengths : int
        Numbers of characters, strictly decreasing.  A value that is not longer than this has no ancestor at the level.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import Prefixes
    >>> Prefixes(4, 3).paths(np.array(["20190", "20"], dtype=object))
    [['201', None], ['2019', None]]
    """

    kinds = ("text",)

    def __init__(self, *lengths: int) -> None:
        self.lengths = lengths

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return ["lengths"]

    def __sklearn_clone__(self) -> "Prefixes":
        return type(self)(*self.lengths)

    def check(self) -> None:
        """Raise ValueError unless the lengths decrease strictly and are at least 1."""
        check_falling("Prefixes", self.lengths, 1)

    def paths(self, values: Array) -> list[list[Any]]:
        """Give the prefix of each length; None for values that are not longer."""
        return [
            [value[:length] if len(value) > length else None for value in values] for length in reversed(self.lengths)
        ]


class Parts(Derived):
    """Levels that are parts of text: ``10.1.2`` is above ``10.1.2.3``; with `from_end`, ``b.com`` is above ``a.b.com``.

    Parameters
    ----------
    separator : str, default="."
    from_end : bool, default=False
        True: the top level is the last part, as in domain names.  False: it is the first, as in IP text and file paths.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import Parts
    >>> Parts(".", from_end=True).paths(np.array(["a.b.com", "com"], dtype=object))
    [['com', None], ['b.com', None]]
    """

    kinds = ("text",)

    def __init__(self, separator: str = ".", from_end: bool = False) -> None:
        self.separator = separator
        self.from_end = from_end

    def check(self) -> None:
        """Raise ValueError for an empty separator."""
        if not isinstance(self.separator, str) or not self.separator:
            raise bad_parameter("Parts", "separator", self.separator, "must be a text that is not empty")

    def n_levels(self, values: Array) -> int:
        """Give the largest number of separators in a value."""
        return max((value.count(self.separator) for value in values), default=0)

    def paths(self, values: Array) -> list[list[Any]]:
        """Give the top 1, 2, ... parts of each value; None for values that do not have more parts than these."""
        split = [value.split(self.separator) for value in values]
        return [[self._top(parts, kept) for parts in split] for kept in range(1, self.n_levels(values) + 1)]

    def _top(self, parts: list[str], kept: int) -> str | None:
        if kept >= len(parts):
            return None
        return self.separator.join(parts[-kept:] if self.from_end else parts[:kept])


class Bits(Derived):
    """Levels that are leading bits of integers and addresses: the first 24 bits of an IPv4 address, above them 16.

    Parameters
    ----------
    *lengths : int
        Numbers of leading bits to keep, strictly decreasing.
    width : int, default=32
        Number of bits of a value, at most 128.  Values are integers in [0, 2**width), or bytes of `width` bits, the
        highest byte first.  With a width of 32 they may also be the text of IPv4 addresses, with 128 of IPv6 addresses.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import Bits
    >>> Bits(24, 16).paths(np.array([0x0A010203]))
    [[2561], [655618]]
    >>> Bits(24, 16).paths(np.array(["10.1.2.3"], dtype=object))
    [[2561], [655618]]
    >>> Bits(64, 32, width=128).paths(np.array(["2001:db8:0:7::1"], dtype=object))
    [[536939960], ['20010db800000007']]
    """

    kinds = ("number", "text", "bytes")

    def __init__(self, *lengths: int, width: int = 32) -> None:
        self.lengths = lengths
        self.width = width

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return ["lengths", "width"]

    def __sklearn_clone__(self) -> "Bits":
        return type(self)(*self.lengths, width=self.width)

    def check(self) -> None:
        """Raise ValueError unless the lengths decrease strictly and are less than the width."""
        check_count("Bits", "width", self.width, low=1)
        check_falling("Bits", self.lengths, 1)
        if self.lengths[0] >= self.width or self.width > WIDEST:
            raise ValueError(f"Bits{tuple(self.lengths)} must lie below width={self.width}, which is at most {WIDEST}.")

    def admits(self, values: Array) -> NDArray[np.bool_]:
        """Tell which values are integers in [0, 2**width), or bytes or addresses of `width` bits."""
        return np.array([number is not None for number in self._read(values)], dtype=bool)

    def paths(self, values: Array) -> list[list[Any]]:
        """Keep the leading bits of each value; None for values that have fewer bits.

        If there are more bits than an int64 has, they become hexadecimal text.
        """
        whole = self._read(values)
        return [
            [None if number is None else self._keep(number, length) for number in whole]
            for length in reversed(self.lengths)
        ]

    def _keep(self, number: int, length: int) -> int | str:
        kept = number >> (self.width - length)
        return kept if length <= LONGEST_NUMBER else f"{kept:0{-(-length // 4)}x}"

    def _read(self, values: Array) -> list[int | None]:
        """Give the number of each value; None for a value that is not of this width."""
        return [self._number(value) for value in np.asarray(values).tolist()]

    def _number(self, value: Any) -> int | None:
        if isinstance(value, str):
            return read_address(value, self.width)
        if isinstance(value, bytes):
            return int.from_bytes(value) if 8 * len(value) == self.width else None
        inside = 0 <= value < 1 << self.width
        return int(value) if inside and value == int(value) else None


def read_address(text: str, width: int) -> int | None:
    """Give the number of an IP address in text, if it has this many bits."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return int(address) if address.max_prefixlen == width else None


@dataclass(frozen=True)
class Level:
    """One level above the categories.

    Parameters
    ----------
    of_leaf : int32 array (n_categories,)
        Ancestor of each category at this level; -1 if it has none.
    parent : int32 array (n,)
        For each category of this level, its ancestor one level higher; empty at the top.
    n : int
        Number of categories of this level.
    labels : Vocabulary, optional
        Values of the level's categories, if a rule made them.
    """

    of_leaf: Codes
    parent: Codes
    n: int
    labels: Vocabulary | None = None


def link(of_leaf: Codes, n: int, above: list[Level]) -> Codes:
    """Give for each category of a level its ancestor one level higher; any category of the key below both tells it."""
    if not above:
        return np.zeros(0, np.int32)
    parent = np.full(n, -1, np.int32)
    below = of_leaf >= 0
    parent[of_leaf[below]] = above[-1].of_leaf[below]
    return parent


def levels_by_rule(rule: Derived, vocabulary: Vocabulary, column: str) -> list[Level]:
    """Derive the levels from the values by a rule."""
    if len(vocabulary) and vocabulary.kind not in rule.kinds:
        raise ValueError(
            f"hierarchy of column {column!r}: {type(rule).__name__} needs {' or '.join(rule.kinds)} values, but the "
            f"column holds {vocabulary.kind} values."
        )
    values = vocabulary.to_numpy()
    if not (admitted := rule.admits(values)).all():
        raise ValueError(
            f"hierarchy of column {column!r}: {rule!r} does not apply to {int((~admitted).sum())} of its values, such "
            f"as {values[~admitted].tolist()[0]!r}. Clean the column, or choose another rule."
        )
    if (n_levels := rule.n_levels(values)) > MOST_LEVELS:
        raise ValueError(
            f"hierarchy of column {column!r}: {type(rule).__name__} makes {n_levels:,} levels, more than "
            f"{MOST_LEVELS:,}. Clean the column, or choose another rule."
        )
    devices.check_free(bytes_of_levels(rule, vocabulary), f"The hierarchy of column {column!r}")
    levels: list[Level] = []
    for paths in rule.paths(values):
        distinct = sorted({path for path in paths if path is not None})
        labels = label_vocabulary(distinct, bool(distinct) and isinstance(distinct[0], str), column)
        of_leaf = positions_of_labels(level_of_labels(labels), paths, column)
        levels.append(Level(of_leaf, link(of_leaf, len(labels), levels), len(labels), labels))
    return levels


def bytes_of_levels(rule: Derived, vocabulary: Vocabulary) -> int:
    """Estimate the memory that it takes to derive the levels; a path of text may be as long as its value."""
    values = vocabulary.to_numpy()
    return rule.n_levels(values) * (PATH_BYTES * len(values) + int(vocabulary.values.array.nbytes))


def level_of_labels(labels: Vocabulary, n_leaves: int = 0) -> Level:
    """Give a level whose labels are known, but not the categories below them."""
    return Level(np.full(n_leaves, -1, np.int32), np.full(len(labels), -1, np.int32), len(labels), labels)


def label_vocabulary(labels: Sequence[Any], are_text: bool, column: str) -> Vocabulary:
    """Give the vocabulary of the distinct labels of a level."""
    return Vocabulary.from_values(np.array(labels, dtype=object if are_text else np.int64), column)[0]


def positions_of_labels(level: Level, paths: Sequence[Any], column: str) -> Codes:
    """Give the code of each path among a level's categories; -1 for an absent path."""
    positions = np.full(len(paths), -1, np.int32)
    rows = np.array([i for i, path in enumerate(paths) if path is not None], dtype=np.int64)
    if len(rows) and level.labels is not None and level.n:
        distinct = sorted({paths[i] for i in rows})
        words = label_vocabulary(distinct, isinstance(distinct[0], str), column)
        position = dict(zip(distinct, level.labels.positions(words, column), strict=True))
        positions[rows] = [position[paths[i]] for i in rows]
    return np.where(positions < 0, -1, positions).astype(np.int32)
