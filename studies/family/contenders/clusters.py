"""Clusters of categories: ours, scikit-learn's bins, and scikit-learn's clusters of the same statistics."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness.grid import Contender, Prepared
from benchmarks.harness.judge import Verdict, as_matrix
from benchmarks.harness.rows import Array, Rows
from gpu_encode import ClusterEncoder
from studies.family.contenders.factors import columns_of, crossed

N_CLUSTERS = 8
# Ward's clusters and those of k-means need not be optimal, and scikit-learn's Ward counts each category once.
MOST_LEFT = 2.0
# Most pairs, since shares of the values of another column are dense.
MOST_CROSSED = 1_000
# Most categories for scikit-learn, since SciPy, which it calls, keeps all distances.
MOST_MERGED = 20_000


def statistics_of(keys: Array, values: Array, work: str) -> tuple[Array, Array]:
    """Give the categories that occur, and their means, or standardized means and deviations, with pandas."""
    import pandas as pd

    groups = pd.Series(values).groupby(keys)
    if work == "clusters-target":
        return np.asarray(groups.mean().index), groups.mean().to_numpy()[:, None]
    found = groups.agg(["mean", "std", "count"])
    count = found["count"].to_numpy()
    deviation = np.nan_to_num(found["std"].to_numpy() * np.sqrt((count - 1) / count))
    numbers = np.column_stack([found["mean"], deviation])
    apart = numbers - np.average(numbers, axis=0, weights=count)
    return np.asarray(found.index), apart / np.sqrt(np.average(apart**2, axis=0, weights=count))


def shares_of(pair: Array) -> tuple[Array, Array]:
    """Give the categories of the first column that occur, and the shares of the second column's values among them."""
    counts = crossed(pair).toarray()
    present = np.flatnonzero(counts.sum(axis=1))
    return present, counts[present] / counts[present].sum(axis=1, keepdims=True)


def profiles_of(rows: Rows) -> Callable[[], tuple[Array, Array]]:
    """Give the function that computes the numbers by which categories are clustered."""
    if rows.work == "clusters-company":
        return partial(shares_of, columns_of(rows, 2))
    return partial(statistics_of, np.asarray(rows.codes), rows.values, rows.work)


@dataclass(frozen=True)
class Tight:
    """Judges clusters by the squares about their means; a category weighs as much as its rows.

    Parameters
    ----------
    rows : Rows
    """

    rows: Rows

    def verdict(self, given: Any) -> Verdict:
        """Give the fault of clusters ("" if there is none), and the share of the squares that remains."""
        from sklearn.cluster import KMeans

        clusters, codes = as_matrix(given)[:, 0].astype(np.int64), np.asarray(self.rows.codes)
        of_category = np.full(self.rows.categories, -1)
        of_category[codes] = clusters
        if len(np.unique(clusters)) > N_CLUSTERS or not np.array_equal(of_category[codes], clusters):
            return "too many clusters, or rows of one category in several", np.inf
        present, profiles = profiles_of(self.rows)()
        weight = np.bincount(codes)[present].astype(np.float64)
        left, total = (
            squares_about(profiles, weight, of_category[present]),
            squares_about(profiles, weight, 0 * present),
        )
        best = KMeans(N_CLUSTERS, n_init=1, random_state=0).fit(profiles, sample_weight=weight).inertia_
        return ("" if left <= MOST_LEFT * best else f"leaves {left / best:.2f} times k-means' squares"), left / total


def squares_about(profiles: Array, weight: Array, clusters: Array) -> float:
    """Sum the weighted squares of profiles about the means of their clusters."""
    total = 0.0
    for cluster in np.unique(clusters):
        own = clusters == cluster
        apart = profiles[own] - np.average(profiles[own], axis=0, weights=weight[own])
        total += float(np.sum(weight[own, None] * apart**2))
    return total


def ours(rows: Rows) -> Prepared:
    """Prepare ours: clusters of all rows."""
    keys, y = np.asarray(rows.codes).reshape(-1, 1), rows.values
    if rows.work == "clusters-company":
        pair = columns_of(rows, 2)
        encoder = ClusterEncoder(N_CLUSTERS, "cooccurrence", against=1, columns=[0], device="cpu")
        return Prepared(lambda: encoder.fit(pair).transform(pair)[:, :1], Tight(rows))
    by = {"by": "target", "smooth": None} if rows.work == "clusters-target" else {"by": "statistics"}
    made = ClusterEncoder(N_CLUSTERS, target_type="continuous", device="cpu", **by)
    return Prepared(lambda: made.fit(keys, y).transform(keys), Tight(rows))


def rows_into_bins(rows: Rows) -> Prepared:
    """Prepare TargetEncoder, followed by KBinsDiscretizer on the encodings of all rows, as users join them."""
    from sklearn.preprocessing import KBinsDiscretizer, TargetEncoder

    keys, y = np.asarray(rows.codes).reshape(-1, 1), rows.values
    bins = KBinsDiscretizer(N_CLUSTERS, encode="ordinal", strategy="kmeans", subsample=None)

    def call() -> Array:
        encoder = TargetEncoder(smooth=0.0, target_type="continuous").fit(keys, y)
        return np.asarray(bins.fit_transform(encoder.transform(keys)))

    return Prepared(call, Tight(rows))


def categories_into_bins(rows: Rows) -> Prepared:
    """Prepare means by pandas, KBinsDiscretizer on the means, weighted by rows, and a look-up of each row."""
    from sklearn.preprocessing import KBinsDiscretizer

    codes, find = np.asarray(rows.codes), profiles_of(rows)
    bins = KBinsDiscretizer(N_CLUSTERS, encode="ordinal", strategy="kmeans", subsample=None)

    def call() -> Array:
        present, means = find()
        weight = np.bincount(codes)[present]
        return look_up(codes, present, bins.fit(means, sample_weight=weight).transform(means)[:, 0])

    return Prepared(call, Tight(rows))


def merged(rows: Rows) -> Prepared:
    """Prepare statistics by pandas, or shares by SciPy, and Ward's clusters by AgglomerativeClustering."""
    from sklearn.cluster import AgglomerativeClustering

    codes, find = np.asarray(rows.codes), profiles_of(rows)

    def call() -> Array:
        present, profiles = find()
        return look_up(codes, present, AgglomerativeClustering(N_CLUSTERS).fit_predict(profiles))

    return Prepared(call, Tight(rows))


def look_up(codes: Array, present: Array, clusters: Array) -> Array:
    """Give each row the cluster of its category."""
    table = np.full(int(present.max()) + 1, -1)
    table[present] = clusters
    return table[codes]


OF_TARGET, OF_SEVERAL = ("clusters-target",), ("clusters-statistics", "clusters-company")
CONTENDERS = (
    Contender("ours", "ours", ours, compiles=True),
    Contender("target-bins", "scikit-learn", rows_into_bins, {"work": OF_TARGET}, ("sklearn",)),
    Contender("means-bins", "hand-written", categories_into_bins, {"work": OF_TARGET}, ("sklearn", "pandas")),
    Contender(
        "ward",
        "scikit-learn",
        merged,
        {"work": OF_SEVERAL, "categories": range(MOST_MERGED + 1)},
        ("sklearn", "pandas"),
    ),
)


def is_listed(cell: dict[str, Any], _chosen: Any) -> bool:
    """Leave out tables of pairs that are too large to be dense."""
    return cell["work"] != "clusters-company" or cell["categories"] <= MOST_CROSSED
