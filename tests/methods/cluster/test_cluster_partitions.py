"""Partitions of numbers and Ward's clusters, compared with a search of all partitions and all pairs."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist

from gpu_encode.methods.cluster import ward
from gpu_encode.methods.cluster.partition import partition
from gpu_encode.methods.cluster.ward import merge_by_ward
from gpu_encode.seam import ops

pytestmark = pytest.mark.host
RNG = np.random.default_rng(5)


def cost_of(values, weights, clusters):
    """Weighted sum of squares about the clusters' means, exact."""
    total = Fraction(0)
    for cluster in set(clusters):
        members = [i for i, own in enumerate(clusters) if own == cluster]
        x, w = ([Fraction(float(array[i])) for i in members] for array in (values, weights))
        mean = sum(a * b for a, b in zip(x, w, strict=True)) / sum(w)
        total += sum(b * (a - mean) ** 2 for a, b in zip(x, w, strict=True))
    return total


def best_in_order(values, weights, n_clusters):
    """Try every set of borders; among equal costs the last border is the earliest, then the one before it."""
    distinct = sorted(set(values.tolist()))
    codes = [distinct.index(value) for value in values]
    tries = []
    for borders in combinations(range(1, len(distinct)), min(n_clusters, len(distinct)) - 1):
        clusters = [sum(border <= at for border in borders) for at in codes]
        tries.append((cost_of(values, weights, clusters), borders[::-1], clusters))
    return min(tries)


def all_partitions(n, n_clusters):
    """Yield every partition of n things into at most `n_clusters` clusters."""
    if not n:
        yield []
        return
    for start in all_partitions(n - 1, n_clusters):
        yield from ([*start, cluster] for cluster in range(min(max(start, default=-1) + 2, n_clusters)))


def test_pairs_of_the_specification():
    values = np.array([0.0, 0.0, 0.5, 0.5, 1.0, 1.0])
    found = partition(values, np.full(6, 10.0), 3)
    assert found.tolist() == [0, 0, 1, 1, 2, 2]
    assert cost_of(values, np.full(6, 10.0), found.tolist()) == 0


@pytest.mark.parametrize("n_clusters", range(1, 9))
@pytest.mark.parametrize("case", range(12))
def test_no_partition_in_order_costs_less(n_clusters, case):
    rng = np.random.default_rng([case, n_clusters])
    values = rng.integers(-9, 9, 9).astype(float) if case % 2 else rng.normal(size=9) * 10.0 ** rng.integers(-3, 4)
    weights = rng.integers(1, 9, 9).astype(float)
    found = partition(values, weights, n_clusters).tolist()
    least, _, expected = best_in_order(values, weights, n_clusters)
    whole = cost_of(values, weights, [0] * 9)
    assert cost_of(values, weights, found) <= least + whole / 10**12
    if least * 10**9 < whole or case % 2 == 0:
        assert found == expected


@pytest.mark.parametrize("n_clusters", [2, 3, 4])
def test_no_partition_at_all_costs_less(n_clusters):
    values, weights = RNG.normal(size=8), RNG.integers(1, 5, 8).astype(float)
    found = cost_of(values, weights, partition(values, weights, n_clusters).tolist())
    assert min(cost_of(values, weights, clusters) for clusters in all_partitions(8, n_clusters)) == found


@pytest.mark.parametrize(
    ("values", "n_clusters", "expected"),
    [
        ([0, 1, 2], 2, [0, 1, 1]),
        ([0, 1, 2, 3, 4], 2, [0, 0, 1, 1, 1]),
        ([0, 1, 2, 3], 3, [0, 1, 2, 2]),
        ([5, 5, 5], 2, [0, 0, 0]),
        ([3, 1, 2], 9, [2, 0, 1]),
    ],
)
def test_of_equal_partitions_the_last_cluster_begins_first(values, n_clusters, expected):
    numbers, weights = np.array(values, dtype=float), np.ones(len(values))
    assert best_in_order(numbers, weights, n_clusters)[2] == expected
    assert partition(numbers, weights, n_clusters).tolist() == expected


def in_a_square_of_steps(values, weights, n_clusters):
    """Give the cost by the plain recursion over all borders of sorted different numbers."""
    prefix = [np.append(0.0, np.cumsum(term)) for term in (weights, weights * values, weights * values * values)]

    def cost(start, stop):
        w, s, q = (array[stop] - array[start] for array in prefix)
        return max(q - s * s / w, 0.0)

    n = len(values)
    costs = [cost(0, stop) if stop else 0.0 for stop in range(n + 1)]
    for number in range(1, n_clusters):
        costs = [
            min((costs[start] + cost(start, stop) for start in range(number, stop)), default=np.inf)
            for stop in range(n + 1)
        ]
    return costs[n]


@pytest.mark.parametrize("n_clusters", [2, 5, 11])
def test_divided_steps_find_what_all_borders_give(n_clusters):
    values = np.sort(RNG.normal(size=130))
    weights = RNG.integers(1, 50, 130).astype(float)
    found = partition(values, weights, n_clusters)
    assert (np.diff(found) >= 0).all()
    assert found[-1] == n_clusters - 1
    cost = float(cost_of(values, weights, found.tolist()))
    assert cost == pytest.approx(in_a_square_of_steps(values, weights, n_clusters), rel=1e-9)


@pytest.mark.parametrize("shift", [0.0, 1e9, -1e9])
@pytest.mark.parametrize("scale", [1.0, 2.0**900, 2.0**-900])
def test_neither_a_shift_nor_a_scale_changes_clusters(shift, scale):
    values = np.repeat([0.0, 4.0, 5.0, 64.0, 66.0, 512.0], 2) + shift
    found = partition(values * scale, np.ones(12), 4)
    assert found.tolist() == [0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3]


def test_order_of_numbers_does_not_matter():
    values, weights = RNG.normal(size=60), RNG.integers(1, 9, 60).astype(float)
    order = RNG.permutation(60)
    assert partition(values[order], weights[order], 7).tolist() == partition(values, weights, 7)[order].tolist()


def ward_by_definition(profiles, weights, n_clusters):
    """Compare all pairs of clusters in each step, exactly."""
    clusters = [[i] for i in range(len(profiles))]
    x = [[Fraction(float(value)) for value in profile] for profile in profiles]
    w = [Fraction(float(weight)) for weight in weights]

    def centroid(members):
        of_all = sum(w[i] for i in members)
        return [sum(w[i] * x[i][j] for i in members) / of_all for j in range(len(x[0]))], of_all

    while len(clusters) > n_clusters:
        tries = []
        for a, b in combinations(range(len(clusters)), 2):
            (p, v), (q, u) = centroid(clusters[a]), centroid(clusters[b])
            distance = sum((one - other) ** 2 for one, other in zip(p, q, strict=True))
            tries.append((v * u / (v + u) * distance, clusters[a][0], clusters[b][0], a, b))
        *_, a, b = min(tries)
        clusters[a] = sorted(clusters[a] + clusters[b])
        del clusters[b]
    return [next(at for at, members in enumerate(clusters) if i in members) for i in range(len(profiles))]


@pytest.mark.parametrize("n_clusters", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("case", range(6))
def test_ward_merges_what_costs_least(n_clusters, case, monkeypatch):
    if case % 2:
        monkeypatch.setattr(ward, "MOST_IN_TABLE", 0)
    rng = np.random.default_rng([case, n_clusters])
    profiles, weights = rng.normal(size=(9, 3)), rng.integers(1, 20, 9).astype(float)
    assert merge_by_ward(profiles, weights, n_clusters).tolist() == ward_by_definition(profiles, weights, n_clusters)


@pytest.mark.parametrize("n", [1, 2, 3, 17, 150])
@pytest.mark.parametrize("tied", [False, True])
def test_kernel_and_numpy_merge_the_same_pairs(n, tied):
    rng = np.random.default_rng([n, tied])
    # Whole numbers have many equal distances, so that rounding and order decide.
    profiles = rng.integers(0, 4, (n, 3)) / 3 if tied else rng.normal(size=(n, 4))
    distances, weights = pdist(profiles, "sqeuclidean"), rng.integers(1, 1 + 10 ** rng.integers(1, 7), n).astype(float)
    merge = ops.load("cpu_fallback.compiled").fused.merge_pairs
    for n_merges in {0, n // 2, n - 1}:
        kept = distances.copy(), weights.copy()
        expected = ward.merge_pairs(distances, weights, n_merges)
        np.testing.assert_array_equal(merge(distances, weights, n_merges), expected)
        np.testing.assert_array_equal(distances, kept[0])
        np.testing.assert_array_equal(weights, kept[1])


@pytest.mark.parametrize("case", range(4))
def test_costs_of_pairs_are_those_of_centroids(case):
    rng = np.random.default_rng(case)
    profiles = rng.dirichlet(np.ones(6), 40) if case % 2 else rng.normal(size=(40, 5))
    weights = rng.integers(1, 1 + 10 ** (case + 1), 40).astype(float)
    pairs, centroids = ward.Pairs(pdist(profiles, "sqeuclidean"), weights), ward.Centroids(profiles, weights)
    merging = ward.Merging(pairs, 40)
    for _ in range(39):
        into = merging.into.copy()
        merging.merge_cheapest()
        (gone,) = np.flatnonzero(merging.into != into)
        centroids.join(int(merging.into[gone]), int(gone))
        alive = np.flatnonzero(pairs.gone == 0)
        for cluster in alive:
            found, expected = (
                costs.behind(cluster)[alive[alive > cluster] - cluster - 1] for costs in (pairs, centroids)
            )
            np.testing.assert_allclose(found, expected, rtol=1e-12)
        np.testing.assert_array_equal(pairs.weights[alive], centroids.weights[alive])


@pytest.mark.parametrize("scale", [2.0**900, 2.0**-900])
def test_a_scale_changes_no_cluster(scale):
    profiles, weights = RNG.normal(size=(30, 3)), RNG.integers(1, 9, 30).astype(float)
    expected = merge_by_ward(profiles, weights, 4).tolist()
    assert merge_by_ward(profiles * scale, weights, 4).tolist() == expected


@pytest.mark.parametrize("n_clusters", [1, 2, 3, 4, 6])
def test_of_equal_pairs_the_first_is_merged(n_clusters):
    # Corners of squares: powers of two, so that nothing is rounded where pairs cost the same.
    profiles = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [8, 8], [8, 9], [9, 8], [9, 9]], dtype=float)
    found = merge_by_ward(profiles, np.ones(8), n_clusters).tolist()
    assert found == ward_by_definition(profiles, np.ones(8), n_clusters)


@pytest.mark.parametrize("n_clusters", [2, 4, 9, 30])
def test_a_weight_is_a_number_of_points_to_scipy(n_clusters):
    profiles, weights = RNG.normal(size=(40, 4)), RNG.integers(1, 6, 40)
    theirs = fcluster(linkage(np.repeat(profiles, weights, axis=0), "ward"), n_clusters, "maxclust")
    ours = np.repeat(merge_by_ward(profiles, weights.astype(float), n_clusters), weights)
    pairs = set(zip(ours.tolist(), theirs.tolist(), strict=True))
    assert len(pairs) == n_clusters == len(set(theirs.tolist()))


def test_profiles_are_left_as_they_are():
    profiles, weights = RNG.normal(size=(12, 2)), np.arange(1.0, 13.0)
    kept = profiles.copy(), weights.copy()
    merge_by_ward(profiles, weights, 3)
    np.testing.assert_array_equal(profiles, kept[0])
    np.testing.assert_array_equal(weights, kept[1])
