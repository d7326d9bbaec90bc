"""Ward's clusters of weighted profiles."""

import numpy as np
from scipy.spatial.distance import cdist

from cpu_fallback.exact import Floats, Integers

# For up to this number of profiles, a table of all costs (128 MiB) saves computing most of them again.
MOST_IN_TABLE = 1 << 12
# Profiles whose costs are computed at a time, for temporary results that fit a cache.
AT_ONCE = 64


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
    pairs that add the same, the pair with the first profiles is merged.  Each cluster keeps its nearest neighbour among
    the clusters after it; a matrix of distances is kept only for at most 4,096 profiles.  The time is about O(n^2)
    times the numbers of a profile.

    References
    ----------
    Ward, "Hierarchical grouping to optimize an objective function", Journal of the American Statistical Association
    58(301), 1963; Müllner, "Modern hierarchical, agglomerative clustering algorithms", 2011, the generic algorithm.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode.methods.cluster.ward import merge_by_ward
    >>> profiles = np.array([[0.0, 1.0], [1.0, 0.0], [0.1, 0.9], [0.9, 0.1]])
    >>> merge_by_ward(profiles, np.ones(4), 2).tolist()
    [0, 1, 0, 1]
    """
    merging = Merging(profiles, weights)
    for _ in range(len(profiles) - n_clusters):
        merging.merge_cheapest()
    return np.unique(merging.first_of(), return_inverse=True)[1]


class Merging:
    """Clusters, named by their first profile, with centroids, weights and the nearest cluster after each.

    A cluster that was merged into another one is infinitely far away.  If the nearest cluster is merged, `least` stays
    as it is until it is the smallest of all: costs only rise, so it is a lower bound until then.
    """

    def __init__(self, profiles: Floats, weights: Floats) -> None:
        n = len(profiles)
        self.centroids, self.weights = profiles.copy(), weights.copy()
        self.into, self.nearest, self.outdated = np.arange(n), np.zeros(n, np.int64), np.zeros(n, bool)
        self.least, self.gone = np.full(n, np.inf), np.zeros(n)
        self.table: Floats | None = None
        if n <= MOST_IN_TABLE:
            # Only the costs of a cluster and those after it are kept.
            self.table = np.empty((n, n))
            for start in range(0, n, AT_ONCE):
                block = slice(start, start + AT_ONCE)
                self.table[block, start:] = self.costs(block, slice(start, None))
        for cluster in range(n):
            self.find_nearest(cluster)

    def costs(self, some: slice, others: slice) -> Floats:
        """Give the cost of merging some clusters with others: (some, others)."""
        mine, theirs = self.weights[some, None], self.weights[others]
        apart: Floats = cdist(self.centroids[some], self.centroids[others], "sqeuclidean")
        factors = mine * theirs
        factors /= mine + theirs
        apart *= factors
        return apart

    def find_nearest(self, cluster: int) -> None:
        """Find the cluster after this one that it is cheapest to merge with; the first among equals."""
        behind = slice(cluster + 1, None)
        self.outdated[cluster], self.least[cluster] = False, np.inf
        if cluster + 1 < len(self.into):
            known = self.table
            # In a table, costs of clusters that are gone are those of old.
            costs = (
                self.costs(slice(cluster, cluster + 1), behind)[0]
                if known is None
                else known[cluster, behind] + self.gone[behind]
            )
            offset = int(costs.argmin())
            self.least[cluster], self.nearest[cluster] = costs[offset], cluster + 1 + offset

    def merge_cheapest(self) -> None:
        """Merge the cheapest pair; the first among equals."""
        kept = int(self.least.argmin())
        while self.outdated[kept]:
            self.find_nearest(kept)
            kept = int(self.least.argmin())
        gone = int(self.nearest[kept])
        both = self.weights[kept] + self.weights[gone]
        self.centroids[kept] += (self.centroids[gone] - self.centroids[kept]) * (self.weights[gone] / both)
        self.weights[kept], self.into[gone] = both, kept
        self.centroids[gone] = self.least[gone] = self.gone[gone] = np.inf
        costs = self.costs(slice(kept, kept + 1), slice(None))[0]
        if self.table is not None:
            self.table[kept, kept:], self.table[:kept, kept] = costs[kept:], costs[:kept]
        self.outdated |= (self.nearest == kept) | (self.nearest == gone)
        self.find_nearest(kept)
        # In exact arithmetic a merged cluster is never nearer to other clusters than its parts; rounded, it may be.
        least, nearest, before = self.least[:kept], self.nearest[:kept], costs[:kept]
        nearer = np.isfinite(least) & ((before < least) | ((before == least) & (kept < nearest)))
        least[nearer], nearest[nearer], self.outdated[:kept][nearer] = before[nearer], kept, False

    def first_of(self) -> Integers:
        """Give the first profile in the cluster of each profile."""
        first = self.into.copy()
        # Clusters are merged into clusters before them, so an entry is final once the entries before it are.
        for profile, target in enumerate(self.into.tolist()):
            first[profile] = first[target]
        return first
