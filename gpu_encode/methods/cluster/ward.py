"""Ward's clusters of weighted profiles."""

from typing import Protocol

import numpy as np
from scipy.spatial.distance import cdist, pdist

from cpu_fallback.exact import Floats, Integers
from gpu_encode.seam import ops

# For up to this number of profiles, the costs of all pairs are kept (64 MiB), and a merge computes one number a pair.
MOST_IN_TABLE = 1 << 12
# A merge in NumPy takes about as long as NumPy's part of a call on this number of rows.
MERGE_ROWS = 64


def merge_by_ward(profiles: Floats, weights: Floats, n_clusters: int) -> Integers:
    """Merge two clusters at a time until `n_clusters` are left; each merge adds the least to the sum of squares.

    Parameters
    ----------
    profiles : float64 array (n, numbers)
    weights : float64 array (n,)
        Above zero: a profile counts as this number of points.
    n_clusters : int

    Returns
    -------
    int64 array (n,)
        Number of each profile's cluster; clusters are in the order of their first profiles.

    Notes
    -----
    Merging two clusters of weights v and w adds v w / (v + w) times the squared distance of their centroids.  Among
    pairs that add the same, the pair with the first profiles is merged.  For at most 4,096 profiles, the costs of all
    pairs are kept; the costs c of a merged cluster (i, j) follow from those of its parts by the formula of Lance and
    Williams, ``c(k, ij) = ((w(k) + w(i)) c(k, i) + (w(k) + w(j)) c(k, j) - w(k) c(i, j)) / (w(k) + w(i) + w(j))``.  For
    more profiles, centroids are kept instead, and costs are computed from them.  The time is about O(n^2) times the
    numbers of a profile.

    References
    ----------
    Ward, "Hierarchical grouping to optimize an objective function", Journal of the American Statistical Association
    58(301), 1963; Lance and Williams, "A general theory of classificatory sorting strategies", The Computer Journal
    9(4), 1967; Müllner, "Modern hierarchical, agglomerative clustering algorithms", 2011, the generic algorithm.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode.methods.cluster.ward import merge_by_ward
    >>> profiles = np.array([[0.0, 1.0], [1.0, 0.0], [0.1, 0.9], [0.9, 0.1]])
    >>> merge_by_ward(profiles, np.ones(4), 2).tolist()
    [0, 1, 0, 1]
    """
    # Dividing by a power of two rounds nothing, and keeps squares in the range of floats.
    near, n = np.ldexp(profiles, -int(np.frexp(np.abs(profiles).max(initial=0.0))[1])), len(profiles)
    if n > MOST_IN_TABLE:
        into = Merging(Centroids(near, weights), n).merge(n - n_clusters)
    else:
        # Without compiled kernels, NumPy gives the same bits.
        merge = getattr(ops.host(n * MERGE_ROWS).fused, "merge_pairs", merge_pairs)
        into = merge(pdist(near, "sqeuclidean"), weights, n - n_clusters)
    return np.unique(follow(into), return_inverse=True)[1]


def follow(into: Integers) -> Integers:
    """Give the first profile in the cluster of each profile, from the cluster that each was merged into."""
    first = into.copy()
    # Clusters are merged into clusters before them, so an entry is final once the entries before it are.
    for profile, target in enumerate(into.tolist()):
        first[profile] = first[target]
    return first


def merge_pairs(distances: Floats, weights: Floats, n_merges: int) -> Integers:
    """Do the same as `FusedOps.merge_pairs`, with the same bits."""
    return Merging(Pairs(distances, weights), len(weights)).merge(n_merges)


class Costs(Protocol):
    """The costs of merging two clusters; clusters are named by their first profiles."""

    def behind(self, cluster: int) -> Floats:
        """Give the costs of merging a cluster with each cluster after it; infinity for one that is gone."""

    def join(self, kept: int, gone: int) -> Floats:
        """Merge the second cluster into the first; give the costs of merging it with each cluster before it."""


class Pairs:
    """Costs of all pairs, kept in the order of `pdist`; those of merged clusters by the formula of Lance and Williams.

    Parameters
    ----------
    distances : float64 array (n * (n - 1) / 2,)
        Squared distances.
    weights : float64 array (n,)
    """

    def __init__(self, distances: Floats, weights: Floats) -> None:
        n, self.weights, self.gone = len(weights), weights.astype(np.float64), np.zeros(len(weights))
        cluster = np.arange(n)
        # The pair of clusters i < j is at starts[i] + j.
        self.starts = cluster * (2 * n - cluster - 3) // 2 - 1
        self.costs = distances.copy()
        for one, mine in enumerate(self.weights.tolist()):
            theirs = self.weights[one + 1 :]
            self.costs[self.starts[one] + one + 1 : self.starts[one] + n] *= mine * theirs / (mine + theirs)

    def behind(self, cluster: int) -> Floats:
        """Give the costs of merging a cluster with each cluster after it."""
        start = self.starts[cluster]
        costs: Floats = self.costs[start + cluster + 1 : start + len(self.weights)] + self.gone[cluster + 1 :]
        return costs

    def join(self, kept: int, gone: int) -> Floats:
        """Merge the second cluster into the first."""
        self.gone[gone] = np.inf
        others = np.flatnonzero(self.gone == 0)
        others = others[others != kept]
        one, two = (self.starts[np.minimum(c, others)] + np.maximum(c, others) for c in (kept, gone))
        w, v, u = self.weights[others], self.weights[kept], self.weights[gone]
        cost = self.costs[self.starts[kept] + gone]
        joined = ((w + v) * self.costs[one] + (w + u) * self.costs[two] - w * cost) / (w + (v + u))
        self.costs[one] = joined
        self.weights[kept] = v + u
        before, earlier = np.full(kept, np.inf), others < kept
        before[others[earlier]] = joined[earlier]
        return before


class Centroids:
    """Centroids and weights of clusters, from which costs are computed; a cluster that is gone is infinitely far."""

    def __init__(self, profiles: Floats, weights: Floats) -> None:
        self.centroids, self.weights = profiles.copy(), weights.astype(np.float64)

    def costs(self, cluster: int, others: slice) -> Floats:
        """Give the costs of merging a cluster with some others."""
        mine, theirs = self.weights[cluster], self.weights[others]
        apart: Floats = cdist(self.centroids[cluster : cluster + 1], self.centroids[others], "sqeuclidean")[0]
        apart *= mine * theirs / (mine + theirs)
        return apart

    def behind(self, cluster: int) -> Floats:
        """Give the costs of merging a cluster with each cluster after it."""
        return self.costs(cluster, slice(cluster + 1, None))

    def join(self, kept: int, gone: int) -> Floats:
        """Merge the second cluster into the first."""
        both = self.weights[kept] + self.weights[gone]
        self.centroids[kept] += (self.centroids[gone] - self.centroids[kept]) * (self.weights[gone] / both)
        self.centroids[gone], self.weights[kept] = np.inf, both
        return self.costs(kept, slice(0, kept))


class Merging:
    """Clusters, each with the nearest cluster after it.

    If the nearest cluster is merged, `least` stays as it is until it is the smallest of all: costs only rise, so it is
    a lower bound until then.

    Parameters
    ----------
    costs : Pairs or Centroids
    n : int
    """

    def __init__(self, costs: Costs, n: int) -> None:
        self.costs, self.into, self.nearest = costs, np.arange(n), np.zeros(n, np.int64)
        self.outdated, self.least = np.zeros(n, bool), np.full(n, np.inf)
        for cluster in range(n):
            self.find_nearest(cluster)

    def find_nearest(self, cluster: int) -> None:
        """Find the cluster after this one that it is cheapest to merge with; the first among equals."""
        self.outdated[cluster], self.least[cluster] = False, np.inf
        if cluster + 1 < len(self.into):
            behind = self.costs.behind(cluster)
            offset = int(behind.argmin())
            self.least[cluster], self.nearest[cluster] = behind[offset], cluster + 1 + offset

    def merge_cheapest(self) -> None:
        """Merge the cheapest pair; the first among equals."""
        kept = int(self.least.argmin())
        while self.outdated[kept]:
            self.find_nearest(kept)
            kept = int(self.least.argmin())
        gone = int(self.nearest[kept])
        self.into[gone], self.least[gone] = kept, np.inf
        before = self.costs.join(kept, gone)
        self.outdated |= (self.nearest == kept) | (self.nearest == gone)
        self.find_nearest(kept)
        # In exact arithmetic a merged cluster is never nearer to other clusters than its parts; rounded, it may be.
        least, nearest = self.least[:kept], self.nearest[:kept]
        nearer = np.isfinite(least) & ((before < least) | ((before == least) & (kept < nearest)))
        least[nearer], nearest[nearer], self.outdated[:kept][nearer] = before[nearer], kept, False

    def merge(self, n_merges: int) -> Integers:
        """Merge again and again; give for each cluster the one before it that it was merged into, or itself."""
        for _ in range(n_merges):
            self.merge_cheapest()
        return self.into
