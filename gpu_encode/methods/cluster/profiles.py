"""The numbers by which categories are clustered: means of the target, statistics, or how often other values occur."""

import numpy as np

from cpu_fallback.exact import Floats, Integers
from gpu_encode.encoders.codes import n_codes
from gpu_encode.fitting.model import Model
from gpu_encode.formulas.encoding_rule import SeenSums
from gpu_encode.methods.cluster.partition import partition
from gpu_encode.methods.cluster.ward import merge_by_ward
from gpu_encode.seam import devices
from gpu_encode.seam.ops import host
from gpu_encode.sums.pairs import weights_of, with_missing
from gpu_encode.tables.categories.keys import CategoryIndex


def cluster(numbers: Floats, weights: Floats, n_clusters: int, standardized: bool, by_value: bool) -> Integers:
    """Cluster those categories of one key that have weight; give the cluster of each, and -1 for the others.

    Parameters
    ----------
    numbers : float64 array (categories, numbers)
    weights : float64 array (categories,)
    n_clusters : int
    standardized : bool
        Whether each number has a scale of its own, so that it is divided by its standard deviation.
    by_value : bool
        Whether clusters of several numbers are numbered by their centroids, ordered by the first number, then the next;
        otherwise they are numbered by their first categories.
    """
    present = np.flatnonzero(weights > 0)
    weight, numbers = weights[present], numbers[present]
    clusters = np.full(len(weights), -1, np.int64)
    if not len(present):
        return clusters
    numbers = fill_undefined(numbers, weight)
    if numbers.shape[1] == 1:
        clusters[present] = partition(numbers[:, 0], weight, n_clusters)
        return clusters
    numbers = standardize(numbers, weight) if standardized else numbers
    merged = merge_by_ward(numbers, weight, min(n_clusters, len(present)))
    clusters[present] = rank_by_centroid(merged, numbers, weight) if by_value else merged
    return clusters


def weigh_categories(model: Model, number: int) -> Floats:
    """Give the weight of every category of a key; a missing value, if it is a category, comes last."""
    key = model.keys[number]
    of_pairs = [pairs for pairs in model.pairs if pairs.keys == (number, number)]
    if of_pairs:
        weights: Floats = of_pairs[0].counts((key, key)).diagonal()
        return weights
    return with_missing(weights_of(model.statistics[number][0]), key)


def statistics_of_categories(model: Model, number: int) -> Floats:
    """Compute the numbers of every category of a key from its sums, by the rule of the key: (categories, numbers)."""
    key, rule = model.keys[number], model.rules[number]
    made = []
    for target, sums in enumerate(model.statistics[number]):
        backend = host(sums.accumulators.size)
        table = SeenSums(sums, None, rule.of_target(target), backend).table(key)
        made.append(with_missing(table.values[:, 0], key))
    return np.concatenate(made, axis=1)


def shares_of_categories(model: Model, number: int) -> Floats:
    """Give the share of each value of the last key among the rows of every category of a key."""
    key, other = model.keys[number], model.keys[-1]
    check_room(key, n_codes(other))
    counts = next(pairs for pairs in model.pairs if pairs.keys[0] == number).counts((key, other)).toarray()
    weights = weigh_categories(model, number)
    shares: Floats = counts / np.where(weights > 0, weights, 1.0)[:, None]
    return shares


def check_room(key: CategoryIndex, n_values: int) -> None:
    """Raise an error for profiles that do not fit into memory, before they are allocated."""
    needed, free = 16 * (key.n_categories + 2) * n_values, devices.available_bytes()
    if needed > free:
        raise ValueError(
            f"against: {n_values} values for {key.n_categories} categories of {key.entry.name!r} take at least "
            f"{needed / 2**30:,.1f} GiB, and {free / 2**30:,.1f} GiB of memory are free. Take a column of fewer values."
        )


def fill_undefined(numbers: Floats, weight: Floats) -> Floats:
    """Replace undefined numbers, such as the skewness of equal values, by the mean of the others."""
    defined = np.isfinite(numbers)
    if defined.all():
        return numbers
    known = np.where(defined, numbers, 0.0)
    of_known = (defined * weight[:, None]).sum(axis=0)
    mean = (known * weight[:, None]).sum(axis=0) / np.where(of_known > 0, of_known, 1.0)
    return np.where(defined, numbers, mean)


def standardize(numbers: Floats, weight: Floats) -> Floats:
    """Subtract the weighted mean of the numbers, and divide by their weighted deviation; give 0 if all are equal."""
    size = np.abs(numbers).max(axis=0)
    near = numbers / np.where(size > 0, size, 1.0)
    apart = near - (near * weight[:, None]).sum(axis=0) / weight.sum()
    deviation = np.sqrt((apart * apart * weight[:, None]).sum(axis=0) / weight.sum())
    differs = (numbers != numbers[:1]).any(axis=0) & (deviation > 0)
    return np.where(differs, apart / np.where(differs, deviation, 1.0), 0.0)


def rank_by_centroid(clusters: Integers, numbers: Floats, weight: Floats) -> Integers:
    """Number clusters by their centroids: by the first number, then the next, then by the old order."""
    sums = [np.bincount(clusters, weight * column) for column in numbers.T]
    centroids = np.array(sums) / np.bincount(clusters, weight)
    ranks = np.empty(centroids.shape[1], np.int64)
    # lexsort takes the most important key last.
    ranks[np.lexsort(centroids[::-1])] = np.arange(len(ranks))
    return ranks[clusters]
