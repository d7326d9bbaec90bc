"""Sums by pattern of agreement, folded into sums by subset of features, one feature after another."""

import numpy as np

from cpu_fallback.compiled.border import Array, freeze, kernel, stage


@stage
def add_partners(old: Array, kept: Array, partners: Array, n: int, new: Array) -> None:
    """Add to each kept entry its partner."""
    if n == 2:
        for i in range(len(kept)):
            at, one, other = np.uint64(2 * i), np.uint64(2) * np.uint64(kept[i]), np.uint64(2) * np.uint64(partners[i])
            new[at] = old[one] + old[other]
            new[at + np.uint64(1)] = old[one + np.uint64(1)] + old[other + np.uint64(1)]
        return
    for i in range(len(kept)):
        at, one, other = np.uint64(n * i), np.uint64(n * kept[i]), np.uint64(n * partners[i])
        for m in range(n):
            new[at + np.uint64(m)] = old[one + np.uint64(m)] + old[other + np.uint64(m)]


@stage
def copy_taken(old: Array, taken: Array, n: int, new: Array) -> None:
    """Copy the entries that are summed for subsets with the feature, too, and add a line of zeros."""
    for i in range(len(taken)):
        at, one = np.uint64(n * i), np.uint64(n * taken[i])
        for m in range(n):
            new[at + np.uint64(m)] = old[one + np.uint64(m)]
    for m in range(n):
        new[n * len(taken) + m] = 0.0


@kernel
def fold_in_turn(values: Array, n: int, steps: Array, ends: Array, one: Array, other: Array) -> None:
    """Take every step, from values into the first room, then from room to room."""
    begin = 0
    for step in range(len(ends) // 3):
        kept = steps[begin : ends[3 * step]]
        partners = steps[ends[3 * step] : ends[3 * step + 1]]
        taken = steps[ends[3 * step + 1] : ends[3 * step + 2]]
        old = values if step == 0 else (other if step % 2 == 0 else one)
        new = one if step % 2 == 0 else other
        add_partners(old, kept, partners, n, new)
        copy_taken(old, taken, n, new[n * len(kept) :])
        begin = ends[3 * step + 2]


def fold_sums(values: Array, steps: Array, ends: list[int], /) -> Array:
    """Fold sums of patterns (entries, n) into sums of subsets; see `gpu_encode.seam.ops.FusedOps`."""
    n, bounds = values.shape[1], np.append(0, ends)
    sizes = np.diff(bounds[::3]) - np.diff(bounds)[1::3]
    rooms = [np.empty((int(sizes.max()) + 1) * n) for _ in range(2)]
    # The kernel reads rooms and values by turns, so all of them are writable.
    given = np.ascontiguousarray(values, np.float64).reshape(-1)
    fold_in_turn(given, n, freeze(steps, np.int32), freeze(np.array(ends), np.int64), *rooms)
    return rooms[(len(sizes) + 1) % 2][: int(sizes[-1]) * n].reshape(-1, n)
