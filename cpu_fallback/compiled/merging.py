"""Ward's clusters: the cheapest pair is merged again and again, on one thread, since merges depend on one another."""

import numpy as np

from cpu_fallback.compiled.border import Array, kernel, stage


@stage
def weigh(costs: Array, weights: Array) -> None:
    """Multiply the squared distance of each pair by v w / (v + w)."""
    at = np.uint64(0)
    for one in range(len(weights)):
        mine = weights[one]
        for other in range(one + 1, len(weights)):
            theirs = weights[other]
            costs[at] *= mine * theirs / (mine + theirs)
            at += np.uint64(1)


@stage
def look_behind(costs: Array, starts: Array, alive: Array, rank: int, least: Array, nearest: Array) -> None:
    """Find the cluster after one of those alive that it is cheapest to merge with; the first among equals."""
    cluster = alive[rank]
    start, lowest, found = starts[cluster], np.inf, np.int64(0)
    for later in range(rank + 1, len(alive)):
        other = alive[later]
        cost = costs[np.uint64(start + other)]
        if cost < lowest:
            lowest, found = cost, other
    least[cluster], nearest[cluster] = lowest, found


@stage
def find_cheapest(costs: Array, starts: Array, alive: Array, least: Array, nearest: Array, outdated: Array) -> int:
    """Give the place of the first cluster of the cheapest pair; the first among equals."""
    while True:
        lowest, rank = np.inf, 0
        for at in range(len(alive)):
            cost = least[np.uint64(alive[at])]
            if cost < lowest:
                lowest, rank = cost, at
        cluster = np.uint64(alive[rank])
        if not outdated[cluster]:
            return rank
        outdated[cluster] = 0
        look_behind(costs, starts, alive, rank, least, nearest)


@stage
def join(
    costs: Array,
    starts: Array,
    alive: Array,
    weights: Array,
    pair: tuple[int, int],
    least: Array,
    nearest: Array,
    outdated: Array,
) -> None:
    """Replace the costs of a cluster by those of the pair; both are alive no more, or are skipped."""
    kept, gone = pair
    cost, v, u = costs[np.uint64(starts[kept] + gone)], weights[kept], weights[gone]
    for rank in range(len(alive)):
        other = alive[rank]
        if other == kept:
            continue
        one = np.uint64(starts[min(kept, other)] + max(kept, other))
        two = np.uint64(starts[min(gone, other)] + max(gone, other))
        w = weights[np.uint64(other)]
        new = ((w + v) * costs[one] + (w + u) * costs[two] - w * cost) / (w + (v + u))
        costs[one] = new
        at = np.uint64(other)
        if nearest[at] == kept or nearest[at] == gone:
            outdated[at] = 1
        # Rounded, a merged cluster may be nearer than its parts.
        if other < kept and (new < least[at] or (new == least[at] and kept < nearest[at])):
            least[at], nearest[at], outdated[at] = new, kept, 0
    weights[kept] = v + u


@kernel
def merge_in_order(costs: Array, weights: Array, n_merges: int, into: Array) -> None:
    """Merge the cheapest pair n_merges times; change costs (squared distances at first), weights and into."""
    n = len(weights)
    starts, alive = np.empty(n, np.int64), np.empty(n, np.int64)
    least, nearest, outdated = np.empty(n), np.empty(n, np.int64), np.empty(n, np.uint8)
    weigh(costs, weights)
    for cluster in range(n):
        starts[cluster], alive[cluster] = cluster * (2 * n - cluster - 3) // 2 - 1, cluster
        outdated[cluster] = 0
    for rank in range(n):
        look_behind(costs, starts, alive, rank, least, nearest)
    for _ in range(n_merges):
        rank = find_cheapest(costs, starts, alive, least, nearest, outdated)
        kept = alive[rank]
        gone = nearest[kept]
        while alive[rank] != gone:
            rank += 1
        for at in range(rank, len(alive) - 1):
            alive[at] = alive[at + 1]
        alive = alive[: len(alive) - 1]
        join(costs, starts, alive, weights, (kept, gone), least, nearest, outdated)
        into[gone] = kept
        rank = 0
        while alive[rank] != kept:
            rank += 1
        outdated[kept] = 0
        look_behind(costs, starts, alive, rank, least, nearest)


def merge_pairs(distances: Array, weights: Array, n_merges: int, /) -> Array:
    """Merge the cheapest pair of clusters again and again; see `gpu_encode.seam.ops.FusedOps`."""
    into = np.arange(len(weights))
    merge_in_order(distances.copy(), weights.astype(np.float64), n_merges, into)
    return into
