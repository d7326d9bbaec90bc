"""Oblivious trees: each level has one split, which makes the steps of leaves agree best with the gradients."""

from dataclasses import dataclass
from math import fsum, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.exact import Floats
from cpu_fallback.types import Codes
from gpu_encode.methods.boosting import leaf_values
from gpu_encode.seam.ops import tiles

# Gradients that are summed at a time; with few rows, several possible splits are tried at once.
MOST_ENTRIES = 1 << 18


class Split(NamedTuple):
    """Rows above the border in a column go one way; all others, NaN included, go the other way."""

    column: int
    border: float


@dataclass(frozen=True, eq=False)
class Tree:
    """An oblivious tree.

    Parameters
    ----------
    splits : list of Split
        One for each level; the first gives the highest bit of the leaf's number.
    values : float64 array (2 ** levels,)
        The value that the tree adds in each leaf.
    """

    splits: list[Split]
    values: Floats

    def predict(self, features: Floats) -> Floats:
        """Give the value of each row's leaf."""
        values: Floats = self.values[find_leaves(features, self.splits)]
        return values


@dataclass(frozen=True, eq=False)
class Gradients:
    """Gradients of rows by one or several models, in the order of the rows.

    Parameters
    ----------
    rows : int64 array (entries,)
        Row of each entry; a row has an entry for each model that predicts it.
    values : float64 array (entries,)
    models : int32 array (entries,)
        The number of each gradient's model.
    counted : bool array (entries,)
        Entries to whose gradients the tree is fitted; the others only contribute to steps.
    in_order : bool
        Whether the step of a row is computed from the rows before it, or from all rows.
    """

    rows: NDArray[np.int64]
    values: Floats
    models: Codes
    counted: NDArray[np.bool_]
    in_order: bool

    def of_rows(self, chosen: NDArray[np.bool_]) -> "Gradients":
        """Select the entries of some rows."""
        kept = chosen[self.rows]
        return Gradients(self.rows[kept], self.values[kept], self.models[kept], self.counted[kept], self.in_order)


def find_leaves(features: Floats, splits: list[Split]) -> Codes:
    """Give the number of each row's leaf."""
    leaves = np.zeros(len(features), np.int32)
    for column, border in splits:
        leaves = 2 * leaves + (features[:, column] > border)
    return leaves


def grow(features: Floats, borders: list[Floats], gradients: Gradients, depth: int, l2: float) -> list[Split]:
    """Find the splits of a tree level by level: the best by score, and among equals the first.

    Parameters
    ----------
    features : float64 array (rows, columns)
    borders : list of float64 array
        For each column, its possible borders.
    gradients : Gradients
    depth : int
    l2 : float
    """
    splits: list[Split] = []
    columns = np.repeat(np.arange(len(borders)), [len(cuts) for cuts in borders])
    cuts, seen = np.concatenate(borders), features[gradients.rows].T
    leaves, size = np.zeros(len(gradients.rows), np.int32), max(1, MOST_ENTRIES // max(1, len(gradients.rows)))
    for level in range(depth if len(cuts) else 0):
        scores: list[float] = []
        for start, stop in tiles(len(cuts), size):
            above = seen[columns[start:stop]] > cuts[start:stop, None]
            scores += score(gradients, 2 * leaves + above, 2 ** (level + 1), l2)
        best = int(np.argmax(scores))
        splits.append(Split(int(columns[best]), float(cuts[best])))
        leaves = 2 * leaves + (seen[columns[best]] > cuts[best])
    return splits


def score(gradients: Gradients, leaves: Codes, n_leaves: int, l2: float) -> list[float]:
    """Give the cosine of steps and gradients, without the division by the gradients' length, for each possible split.

    Parameters
    ----------
    gradients : Gradients
    leaves : int32 array (ways, entries)
    n_leaves : int
    l2 : float
    """
    n_ways, n_models = len(leaves), int(gradients.models.max(initial=0)) + 1
    cells = np.arange(n_ways, dtype=np.int32)[:, None] * n_models + gradients.models
    codes = (cells * n_leaves + leaves).astype(np.int32).ravel()
    repeated, n_codes = np.tile(gradients.values, n_ways), n_ways * n_models * n_leaves
    if gradients.in_order:
        steps = leaf_values.of_earlier(codes, repeated, n_codes, l2)
    else:
        steps = leaf_values.of_all(codes, repeated, n_codes, l2)[codes]
    counted = steps.reshape(leaves.shape)[:, gradients.counted]
    return [cosine(of_way, gradients.values[gradients.counted]) for of_way in counted]


def cosine(steps: Floats, gradients: Floats) -> float:
    """Give the product of steps and gradients, divided by the length of the steps; 0 if all steps are 0."""
    # Each sum is rounded once, so it is the same on every machine, and ties stay ties.
    square = fsum((steps * steps).tolist())
    return fsum((steps * gradients).tolist()) / sqrt(square) if square > 0 else 0.0
