"""Ward's clusters of weighted profiles."""

import numpy as np

from cpu_fallback.exact import Floats, Integers


def merge_by_ward(profiles: Floats, weights: Floats, n_clusters: int) -> Integers:
    """Merge profiles, two by two, until so many clusters are left; each time what adds least to the sum of squares.

    Parameters
    ----------
    profiles : float64 array (n, numbers)
    weights : float64 array (n,)
        Above zero: a profile counts as so many points.
    n_clusters : int

    Returns
    -------
    int64 array (n,)
        Number of each profile's cluster; clusters are in the order of their first profiles.

    Notes
    -----
    To merge two clusters of weights v and w adds v w / (v + w) times their centroids' squared distance.  Of pairs that
    add the same, the first by their first profiles is merged.  Each cluster remembers the nearest of those behind it,
    and no matrix of distances is kept: memory O(n), time about O(n^2) times the numbers of a profile.

    References
    ----------
    Ward, "Hierarchical grouping to optimize an objective function", Journal of the American Statistical Association
    58(301), 1963; Müllner, "Modern hierarchical, agglomerative clustering algorithms", 2011, the generic algorithm.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode.encoders.cluster.ward import merge_by_ward
    >>> profiles = np.array([[0.0, 1.0], [1.0, 0.0], [0.1, 0.9], [0.9, 0.1]])
    >>> merge_by_ward(profiles, np.ones(4), 2).tolist()
    [0, 1, 0, 1]
    """
    merging = Merging(profiles, weights)
    for _ in range(len(profiles) - n_clusters):
        merging.merge_cheapest()
    return np.unique(merging.first_of(), return_inverse=True)[1]


class Merging:
    """Clusters named by their first profile, with their centroids and weights, and the nearest cluster behind each."""

    def __init__(self, profiles: Floats, weights: Floats) -> None:
        self.centroids, self.weights = profiles.copy(), weights.copy()
        self.alive = np.arange(len(profiles))
        self.into = np.arange(len(profiles))
        self.least = np.full(len(profiles), np.inf)
        self.nearest = np.zeros(len(profiles), np.int64)
        for cluster in range(len(profiles)):
            self.find_nearest(cluster)

    def costs(self, cluster: int, others: Integers) -> Floats:
        """Say what it adds to merge a cluster with others."""
        apart = self.centroids[others] - self.centroids[cluster]
        mine, theirs = self.weights[cluster], self.weights[others]
        costs: Floats = mine * theirs / (mine + theirs) * (apart * apart).sum(axis=1)
        return costs

    def find_nearest(self, cluster: int) -> None:
        """Find what it costs least to merge with, among the clusters behind this one; of equal ones the first."""
        behind = self.alive[np.searchsorted(self.alive, cluster) + 1 :]
        self.least[cluster] = np.inf
        if len(behind):
            costs = self.costs(cluster, behind)
            place = int(costs.argmin())
            self.least[cluster], self.nearest[cluster] = costs[place], behind[place]

    def merge_cheapest(self) -> None:
        """Merge the pair that costs least; of equal ones the first."""
        kept = int(self.alive[self.least[self.alive].argmin()])
        gone = int(self.nearest[kept])
        both = self.weights[kept] + self.weights[gone]
        self.centroids[kept] += (self.centroids[gone] - self.centroids[kept]) * (self.weights[gone] / both)
        self.weights[kept], self.into[gone] = both, kept
        self.alive = np.delete(self.alive, np.searchsorted(self.alive, gone))
        for cluster in self.alive[np.isin(self.nearest[self.alive], (kept, gone))]:
            self.find_nearest(int(cluster))
        self.find_nearest(kept)
        # Exactly, a merged cluster is no nearer to others than what they remember; rounded, it may be.
        before = self.alive[: np.searchsorted(self.alive, kept)]
        costs = self.costs(kept, before)
        nearer = (costs < self.least[before]) | ((costs == self.least[before]) & (kept < self.nearest[before]))
        self.least[before[nearer]], self.nearest[before[nearer]] = costs[nearer], kept

    def first_of(self) -> Integers:
        """Give the first profile of each profile's cluster."""
        first = self.into.copy()
        # A cluster goes into one before it, so each is final once those before it are.
        for profile, target in enumerate(self.into.tolist()):
            first[profile] = first[target]
        return first
