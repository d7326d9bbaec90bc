"""What each view sees of a category: sums over some of its folds."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from cpu_fallback.types import Array

LINES_AT_ONCE = 64


def is_own(visibility: "Array", n_folds: int) -> bool:
    """Whether each view sees its own fold alone; read off without a matrix to compare with."""
    return visibility.shape == (n_folds, n_folds) and bool(visibility.diagonal().all()) and visibility.sum() == n_folds


def is_others(visibility: "Array", n_folds: int) -> bool:
    """Whether each view sees every fold but its own."""
    square = visibility.shape == (n_folds, n_folds)
    return square and not visibility.diagonal().any() and visibility.sum() == n_folds * (n_folds - 1) > 0


def visible(accumulators: "Array", visibility: "Array | None", /) -> "Array":
    """Sum cells (categories + 2, folds, ...) over the folds that each view sees: (categories + 2, views, ...).

    Without a matrix each fold is a view of its own.
    """
    if visibility is None or is_own(visibility, accumulators.shape[1]):
        return accumulators
    total = accumulators.sum(axis=1, keepdims=True)
    if visibility.all():
        return np.repeat(total, len(visibility), axis=1)
    if is_others(visibility, accumulators.shape[1]):
        others: Array = total - accumulators
        return others
    return np.stack([over(accumulators, stretches(seen)) for seen in visibility], axis=1)


def over(accumulators: "Array", folds: Sequence[tuple[int, int]]) -> "Array":
    """Sums over stretches [start, stop) of folds."""
    total = np.zeros_like(accumulators[:, 0])
    for start, stop in folds:
        total += accumulators[:, start:stop].sum(axis=1)
    return total


def stretches(seen: "Array") -> list[tuple[int, int]]:
    """Stretches [start, stop) of neighbouring folds that a view sees, from the 0 or 1 of each fold."""
    edges = np.flatnonzero(np.diff(seen, prepend=0, append=0)).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))


def totals(accumulators: "Array", /) -> "Array":
    """Sum cells over their first axis; many short lines are added as fewer long ones, in a quarter of the time."""
    whole = len(accumulators) // LINES_AT_ONCE * LINES_AT_ONCE
    rest: Array = accumulators[whole:].sum(axis=0)
    if not whole:
        return rest
    lines = accumulators[:whole].reshape(whole // LINES_AT_ONCE, -1).sum(axis=0)
    rest += lines.reshape(LINES_AT_ONCE, *accumulators.shape[1:]).sum(axis=0)
    return rest
