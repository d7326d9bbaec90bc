"""The numbers that categories are clustered by: means of the target, statistics, or how often other values occur."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cpu_fallback.exact import Floats, Integers
from cpu_fallback.types import Array, Rows
from gpu_encode import devices
from gpu_encode.categories.keys import CategoryIndex, KeySpec
from gpu_encode.encoders.cluster.partition import partition
from gpu_encode.encoders.cluster.ward import merge_by_ward
from gpu_encode.encoders.codes import CodedRows, n_codes, number_missing, read_codes
from gpu_encode.fitting.columns import locate
from gpu_encode.fitting.fit import FitContext
from gpu_encode.formulas.counts import Counts
from gpu_encode.formulas.encoding_rule import EncodingRule, table
from gpu_encode.formulas.smoothing import NoSmoothing
from gpu_encode.sums.category_sums import choose_spec
from gpu_encode.sums.targets import Target, no_target
from gpu_encode.training.tasks import EncodingTask


@dataclass(frozen=True, eq=False)
class ProfileRows(CodedRows):
    """Rows, and what is summed of them for the profile of each category.

    Parameters
    ----------
    tasks : list of list of EncodingTask
        Of each key, its weight first, then the numbers of its profile.
    """

    tasks: list[list[EncodingTask]] = field(default_factory=list)

    def take(self, rows: Array) -> "ProfileRows":
        """Give some of the rows."""
        taken = super().take(rows)
        assert isinstance(taken, ProfileRows)
        picked = [[replace(task, rows=task.rows.pick(rows), sums=None) for task in of_key] for of_key in self.tasks]
        return replace(taken, tasks=picked)


def read_profile_rows(context: FitContext, against: Sequence[object] | None) -> ProfileRows:
    """Give the training rows of a call, to be clustered by their targets, or by the columns `against` as one key."""
    rows = read_codes(context)
    other = None if against is None else read_labels(context, against)
    tasks = []
    for first, *others in context.tasks:
        counted, missing = Rows(first.rows.codes, weight=rows.weight), first.rule.missing
        weigh = make_task(rows, counted, first.key, no_target(rows.n_rows), Counts("count"), missing)
        if other is None:
            tasks.append([weigh, first, *others])
        else:
            check_room(first.key, other)
            labelled = replace(counted, classes=other.values)
            tasks.append([weigh, make_task(rows, labelled, first.key, other, NoSmoothing(), missing)])
    return ProfileRows(rows.ops, rows.codes, rows.sizes, rows.targets, rows.weight, rows.names, tasks)


def make_task(
    read: CodedRows, rows: Rows, key: CategoryIndex, target: Target, statistic: Counts | NoSmoothing, missing: str
) -> EncodingTask:
    """Say what is computed of rows: their weight, or the share of each label."""
    spec = choose_spec(read.ops, target, rows.weight, False, None)
    prior = None if isinstance(statistic, Counts) else "mean"
    return EncodingTask(read.ops, rows, key, target.n_classes, spec, EncodingRule(statistic, prior, missing=missing))


def read_labels(context: FitContext, against: Sequence[object]) -> Target:
    """Read the values of a column, or of several jointly, as labels; a missing one is a label as well."""
    frame, backend = context.rows.frame, context.rows.ops
    members = tuple(locate(frame, column, "against:") for column in against)
    key, codes = CategoryIndex.fit(KeySpec("against", members), context.columns, backend, True)
    return Target(None, "multiclass", number_missing(codes, key), np.arange(n_codes(key)))


def check_room(key: CategoryIndex, other: Target) -> None:
    """Refuse profiles that memory has no room for, before it is asked for."""
    needed, free = 16 * (key.n_categories + 2) * other.n_classes, devices.available_bytes()
    if needed > free:
        raise ValueError(
            f"against: {other.n_classes} values for {key.n_categories} categories of {key.entry.name!r} take at least "
            f"{needed / 2**30:,.1f} GiB, and {free / 2**30:,.1f} GiB of memory are free. Take a column of fewer values."
        )


def cluster(tasks: Sequence[EncodingTask], n_clusters: int, standardized: bool, by_value: bool) -> Integers:
    """Cluster the categories of one key that have weight, and give the cluster of each; -1 of others.

    Parameters
    ----------
    tasks : list of EncodingTask
        As `ProfileRows` has them.
    n_clusters : int
    standardized : bool
        Whether numbers are on scales of their own, and so are divided by their deviation.
    by_value : bool
        Whether clusters of several numbers are numbered by their centroids, in the order of the first number, then of
        the next; if not, by their first categories.
    """
    weights, *columns = [encode_categories(task) for task in tasks]
    present = np.flatnonzero(weights[:, 0] > 0)
    weight, numbers = weights[present, 0], np.concatenate(columns, axis=1)[present]
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


def encode_categories(task: EncodingTask) -> Floats:
    """Give the numbers of every category, a missing value last where it is one: (categories, numbers), on the host."""
    made = table(task.measure(None, 1), None, task.key, task.rule, task.ops).values
    values = task.ops.to_host(made)[:, 0]
    of_missing = values[-1:] if task.key.has_missing else values[:0]
    return np.concatenate([values[: task.key.n_categories], of_missing])


def fill_undefined(numbers: Floats, weight: Floats) -> Floats:
    """Give numbers that are none, as the skewness of equal values is, the mean of the others."""
    defined = np.isfinite(numbers)
    if defined.all():
        return numbers
    known = np.where(defined, numbers, 0.0)
    of_known = (defined * weight[:, None]).sum(axis=0)
    mean = (known * weight[:, None]).sum(axis=0) / np.where(of_known > 0, of_known, 1.0)
    return np.where(defined, numbers, mean)


def standardize(numbers: Floats, weight: Floats) -> Floats:
    """Give numbers less their mean, divided by their deviation, both by weight; 0 where all are equal."""
    size = np.abs(numbers).max(axis=0)
    near = numbers / np.where(size > 0, size, 1.0)
    apart = near - (near * weight[:, None]).sum(axis=0) / weight.sum()
    deviation = np.sqrt((apart * apart * weight[:, None]).sum(axis=0) / weight.sum())
    differs = (numbers != numbers[:1]).any(axis=0) & (deviation > 0)
    return np.where(differs, apart / np.where(differs, deviation, 1.0), 0.0)


def rank_by_centroid(clusters: Integers, numbers: Floats, weight: Floats) -> Integers:
    """Number clusters anew, by their centroids: by the first number, then the next, then as they were."""
    sums = [np.bincount(clusters, weight * column) for column in numbers.T]
    centroids = np.array(sums) / np.bincount(clusters, weight)
    ranks = np.empty(centroids.shape[1], np.int64)
    # The last key is the first to sort by.
    ranks[np.lexsort(centroids[::-1])] = np.arange(len(ranks))
    return ranks[clusters]
