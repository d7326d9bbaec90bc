"""The sums that each view sees in a category: sums over some of its folds, for one category after the other."""

from typing import NamedTuple

import numpy as np

from cpu_fallback import sums as definition
from cpu_fallback.compiled.border import Array, counting, freeze, inlined, kernel
from cpu_fallback.compiled.threads import run, shares
from cpu_fallback.fused_rules import Visibility
from cpu_fallback.memory import empty

# A category costs as much as several rows of other kernels.
SMALLEST_SHARE = 1 << 12
OWN, OTHERS, CHOSEN, LESS_ONE = 0, 1, 2, 3
NO_MATRIX = freeze(np.zeros((0, 0), np.int64), np.int64)


class Views(NamedTuple):
    """The folds that each view sees, by `kind`: its own, all others, or the folds with a 1 in its matrix line.

    A fourth kind has a view for each class: it sees all rows but one of this class.
    """

    kind: int
    n_views: int
    n_folds: int
    matrix: Array


def views_of(visibility: Visibility, n_folds: int, n_classes: int = 0) -> Views:
    """Describe for the kernels the folds that views see."""
    if isinstance(visibility, str):
        return Views(LESS_ONE, n_classes, 1, NO_MATRIX)
    if visibility is None or definition.is_own(visibility, n_folds):
        return Views(OWN, n_folds, n_folds, NO_MATRIX)
    others = definition.is_others(visibility, n_folds)
    return Views(OTHERS if others else CHOSEN, len(visibility), n_folds, freeze(visibility, np.int64))


@inlined
def sum_of_folds(accumulators: Array, at: int, n_folds: int, length: int, k: int) -> int:
    """Sum number k over all folds of the category that begins at `at`."""
    total, source = np.int64(0), np.uint64(at) + np.uint64(k)
    for _ in range(n_folds):
        total += accumulators[source]
        source += np.uint64(length)
    return total  # type: ignore[return-value]


@inlined
def see_all(
    accumulators: Array,
    at: int,
    length: int,
    kind: int,
    n_views: int,
    n_folds: int,
    matrix: Array,
    seen: Array,
    to: int,
) -> None:
    """Write the sums that every view sees in the category at index `at`, one view after the other, from `to` on."""
    # The loops go number by number, not view by view: such short loops gain nothing from vector instructions.
    for k in range(length):
        total = sum_of_folds(accumulators, at, n_folds, length, k) if kind in (OTHERS, LESS_ONE) else np.int64(0)
        source, target = np.uint64(at + k), np.uint64(to + k)
        for view in range(n_views):
            if kind == OTHERS:
                seen[target] = total - accumulators[source]
            elif kind == OWN:
                seen[target] = accumulators[source]
            elif kind == LESS_ONE:
                seen[target] = total - (1 if view == k else 0)
            else:
                seen[target] = sum_of_chosen(accumulators, at + k, n_folds, length, matrix, view)
            source += np.uint64(length)
            target += np.uint64(length)


@inlined
def sum_of_chosen(accumulators: Array, at: int, n_folds: int, length: int, matrix: Array, view: int) -> int:
    """Sum one number of the folds that a view sees."""
    total, source = np.int64(0), np.uint64(at)
    for fold in range(n_folds):
        total += accumulators[source] if matrix[view, fold] else np.int64(0)
        source += np.uint64(length)
    return total  # type: ignore[return-value]


@counting
def see_others(accumulators: Array, first: int, n_views: int, length: int, seen: Array, seen_at: Array) -> int:
    """Write the distinct sums of views that see all folds but their own; give the number of these sums.

    `first` is the first category; `seen_at` gets the position of the sums for each category and each view.
    """
    total, count = np.empty(length, np.int64), np.int64(0)
    source = np.uint64(first * n_views * length)
    for i in range(len(seen_at) // n_views):
        for k in range(length):
            total[k] = sum_of_folds(accumulators, source, n_views, length, k)
        whole = np.int64(-1)
        for view in range(n_views):
            # The sums are written in any case, even if they are overwritten later: writing costs less than a branch.
            target, any_own = np.uint64(count * length), np.int64(0)
            for k in range(length):
                any_own |= accumulators[source]
                seen[target] = total[k] - accumulators[source]
                source += np.uint64(1)
                target += np.uint64(1)
            known = (any_own == 0) & (whole >= 0)
            found_at = whole if known else count
            seen_at[np.uint64(i * n_views + view)] = found_at
            whole = found_at if any_own == 0 else whole
            count += np.int64(not known)
    return count  # type: ignore[return-value]


@kernel
def visible_range(accumulators: Array, length: int, views: Views, start: int, stop: int, out: Array) -> None:
    """Write the sums that every view sees in the categories [start, stop)."""
    kind, n_views, n_folds, matrix = views.kind, views.n_views, views.n_folds, views.matrix
    for i in range(start, stop):
        see_all(accumulators, i * n_folds * length, length, kind, n_views, n_folds, matrix, out, i * n_views * length)


@kernel
def sum_range(accumulators: Array, n_folds: int, length: int, start: int, stop: int, out: Array) -> None:
    """Write the sums over all folds of the categories [start, stop)."""
    if length == 2:
        source = np.uint64(start * n_folds * 2)
        for i in range(start, stop):
            first, second = np.int64(0), np.int64(0)
            for _ in range(n_folds):
                first += accumulators[source]
                second += accumulators[source + np.uint64(1)]
                source += np.uint64(2)
            out[np.uint64(2 * i)], out[np.uint64(2 * i + 1)] = first, second
        return
    for i in range(start, stop):
        for k in range(length):
            out[np.uint64(i * length + k)] = sum_of_folds(accumulators, i * n_folds * length, n_folds, length, k)


def visible(accumulators: Array, visibility: "Array | None", /) -> Array:
    """Sum cells over the folds that each view sees; see `gpu_encode.seam.ops.Ops`."""
    views, length = views_of(visibility, accumulators.shape[1]), int(np.prod(accumulators.shape[2:]))
    if visibility is None or views.kind == OWN:
        return accumulators
    out = empty((len(accumulators), views.n_views, *accumulators.shape[2:]), np.int64)
    flat, lines = freeze(accumulators, np.int64).reshape(-1), out.reshape(-1)
    parts = shares(len(accumulators), smallest=SMALLEST_SHARE)
    if views.n_views == 1 and visibility.all():
        run(lambda share: sum_range(flat, views.n_folds, length, *parts[share], lines), len(parts))
    else:
        run(lambda share: visible_range(flat, length, views, *parts[share], lines), len(parts))
    return out


def totals(accumulators: Array, /) -> Array:
    """Sum cells over their first axis."""
    parts = shares(len(accumulators), smallest=SMALLEST_SHARE)
    found: list[Array] = [accumulators] * len(parts)

    def work(share: int) -> None:
        found[share] = definition.totals(accumulators[slice(*parts[share])])

    run(work, len(parts))
    return np.sum(found, axis=0)
