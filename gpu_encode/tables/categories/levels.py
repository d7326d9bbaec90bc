"""Levels above the categories of a key: which ancestor each category has, and by which labels it is found."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cpu_fallback.types import Codes
from gpu_encode.tables.categories.hierarchy import Derived
from gpu_encode.tables.categories.vocabulary import Vocabulary


@dataclass(frozen=True)
class Level:
    """One level above the categories.

    Parameters
    ----------
    of_leaf : int32 array (n_categories,)
        Ancestor of each category at this level, -1 where it has none.
    parent : int32 array (n,)
        Ancestor of each of this level's categories one level higher up; empty at the top.
    n : int
        Categories of this level.
    labels : Vocabulary, optional
        Their values, where a rule made them.
    """

    of_leaf: Codes
    parent: Codes
    n: int
    labels: Vocabulary | None = None


def link(of_leaf: Codes, n: int, above: list[Level]) -> Codes:
    """Ancestor one level higher of each category of a level, found from any leaf that lies below both."""
    if not above:
        return np.zeros(0, np.int32)
    parent = np.full(n, -1, np.int32)
    below = of_leaf >= 0
    parent[of_leaf[below]] = above[-1].of_leaf[below]
    return parent


def levels_by_rule(rule: Derived, vocabulary: Vocabulary, column: str) -> list[Level]:
    """Levels that a rule derives from the values."""
    if len(vocabulary) and vocabulary.kind not in rule.kinds:
        raise ValueError(
            f"hierarchy of column {column!r}: {type(rule).__name__} needs {' or '.join(rule.kinds)} values, but the "
            f"column holds {vocabulary.kind} values."
        )
    values = vocabulary.to_numpy()
    if not (admitted := rule.admits(values)).all():
        raise ValueError(
            f"hierarchy of column {column!r}: {rule!r} does not apply to {int((~admitted).sum())} of its values, the "
            f"first {values[~admitted].tolist()[0]!r}. Clean the column, or choose another rule."
        )
    levels: list[Level] = []
    for paths in rule.paths(values):
        distinct = sorted({path for path in paths if path is not None})
        labels = label_vocabulary(distinct, bool(distinct) and isinstance(distinct[0], str), column)
        of_leaf = positions_of_labels(level_of_labels(labels), paths, column)
        levels.append(Level(of_leaf, link(of_leaf, len(labels), levels), len(labels), labels))
    return levels


def level_of_labels(labels: Vocabulary, n_leaves: int = 0) -> Level:
    """Give a level whose labels are known, but not the categories below them."""
    return Level(np.full(n_leaves, -1, np.int32), np.full(len(labels), -1, np.int32), len(labels), labels)


def label_vocabulary(labels: Sequence[Any], are_text: bool, column: str) -> Vocabulary:
    """Give the vocabulary of the distinct labels of a level."""
    return Vocabulary.from_values(np.array(labels, dtype=object if are_text else np.int64), column)[0]


def positions_of_labels(level: Level, paths: Sequence[Any], column: str) -> Codes:
    """Position of each path among a level's categories, -1 where it has none there."""
    positions = np.full(len(paths), -1, np.int32)
    rows = np.array([i for i, path in enumerate(paths) if path is not None], dtype=np.int64)
    if len(rows) and level.labels is not None and level.n:
        distinct = sorted({paths[i] for i in rows})
        words = label_vocabulary(distinct, isinstance(distinct[0], str), column)
        position = dict(zip(distinct, level.labels.positions(words, column), strict=True))
        positions[rows] = [position[paths[i]] for i in rows]
    return np.where(positions < 0, -1, positions).astype(np.int32)
