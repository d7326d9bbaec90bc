"""ClusterEncoder: categories that are alike are joined into one cluster."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, Literal

import numpy as np

from cpu_fallback.exact import Floats
from cpu_fallback.types import Array
from gpu_encode.encoders.codes import CodedRows, Learned
from gpu_encode.encoders.statistic import check_value_columns
from gpu_encode.encoders.summed import SummedEncoder, check_scheme
from gpu_encode.fitting.columns import Selection, locate, select
from gpu_encode.fitting.model import Model
from gpu_encode.fitting.parameters import Parameters, read_scheme
from gpu_encode.formulas import smoothing
from gpu_encode.formulas.counts import Counts
from gpu_encode.formulas.smoothing import Smooth
from gpu_encode.formulas.summaries import Statistics, Summaries
from gpu_encode.methods.cluster.profiles import (
    cluster,
    shares_of_categories,
    statistics_of_categories,
    weigh_categories,
)
from gpu_encode.schemes.folds import CrossFitting
from gpu_encode.tables.categories.keys import KeySpec
from gpu_encode.tables.frames import Frame, Pieces
from gpu_encode.words.annotations import Column, Columns, Device, FloatType, Key, Seed, TargetType
from gpu_encode.words.errors.parameters import MOST_COLUMNS, bad_parameter, check_count, check_option

# Parameters that only one way of clustering has.
ONLY_WITH = {"against": "cooccurrence", "values": "statistics"}


@dataclass(frozen=True, eq=False)
class Clusters(Learned):
    """Clusters of the categories of every key.

    Parameters
    ----------
    clusters : list of int64 array (categories,)
        For each key; -1 for a category without training rows.
    widths : list of int
        The largest number of clusters that each key may have.
    output : {"id", "onehot"}
    unseen : float
        Encoding of a category without a cluster.
    """

    clusters: list[Array]
    widths: list[int]
    output: str
    unseen: float

    def names(self, keys: Any) -> list[str]:
        """Name an id after its key, and a column of zeros and ones after its cluster."""
        if self.output == "id":
            return list(keys)
        return [
            f"{key}_cluster{number}" for key, width in zip(keys, self.widths, strict=True) for number in range(width)
        ]

    def blocks(self) -> list[tuple[int, Floats]]:
        """Give a block for each key; a value without a cluster has the last line."""
        return [(number, self._table(number)) for number in range(len(self.clusters))]

    def _table(self, key: int) -> Array:
        clusters = np.append(self.clusters[key], -1)[:, None]
        if self.output == "id":
            return np.where(clusters < 0, self.unseen, clusters.astype(np.float64))
        ones = (clusters == np.arange(self.widths[key])).astype(np.float64)
        return np.where(clusters < 0, self.unseen, ones)

    def check(self, sizes: Any) -> None:
        """Raise ValueError if the clusters do not fit the categories of the keys."""
        check_option("ClusterEncoder", "output", self.output, ("id", "onehot"))
        if not len(self.clusters) == len(self.widths) == len(sizes):
            raise ValueError(f"it has clusters of {len(self.clusters)} keys, of {len(sizes)}")
        for clusters, width, size in zip(self.clusters, self.widths, sizes, strict=True):
            fits = clusters.dtype == np.int64 and clusters.shape == (size,) and 0 <= width <= min(size, MOST_COLUMNS)
            if not fits or (size and not -1 <= clusters.min() <= clusters.max() < width):
                raise ValueError(f"clusters of a key do not fit its {size} categories")


@dataclass(eq=False, repr=False)
class ClusterEncoder(SummedEncoder):
    """Encode a category by its cluster of categories that are alike in their target, their neighbours or statistics.

    If each category has one number (a mean), clusters are intervals of these numbers, and dynamic programming finds the
    best partition.  If it has several numbers, Ward's method merges the two nearest clusters until `n_clusters` are
    left.  Both minimise the weighted sum of squared distances to the means of clusters; the weight of a category is its
    number of rows.

    Parameters
    ----------
    n_clusters : int, default=8
        Clusters of each column; a column with fewer categories has as many clusters as categories.
    by : {"target", "cooccurrence", "statistics"}, default="target"
        "target": the smoothed mean of y; for classes the smoothed share of each class.  "cooccurrence": among the rows
        of a category, the shares of the values of another column, `against`.  "statistics": several statistics, of y or
        of `values`, each divided by its standard deviation over all rows; a statistic that a category does not have,
        such as the skewness of equal values, is replaced by the mean of the others.
    against : str, int or tuple, optional
        The other column of "cooccurrence", by name or position, or several columns as a joint key; a missing value
        counts as a value.  It is only read in training and not encoded; it passes through if `columns` is a list.
    statistics : list, default=("mean", "std")
        As `StatisticEncoder` takes them, with ddof=0.
    values : list, optional
        Numeric columns of X for "statistics"; None: statistics of y.
    smooth : smoothing, "auto", float or None, default="auto"
        How the means for by="target" are smoothed; values as in `TargetEncoder`.
    output : {"id", "onehot"}, default="id"
        The cluster's number, or a column of zeros and ones for each cluster.
    columns : list, "categorical", selector, pattern or function, optional
        Names (or positions) of the columns to encode; a tuple is a joint key.  Others pass through.  None: all columns
        except those of `against` and `values`.
    cv : int, None, scheme, splitter, iterable, str or array, default=5
        Which rows a training row may see, as in `TargetEncoder`; used only if y is read.  Each fold finds its own
        clusters in the rows that it sees.  The scheme must have folds.
    shuffle : bool, default=True
        False makes the folds of an integer `cv` contiguous.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the folds of an integer `cv`.
    target_type : {"auto", "continuous", "binary", "multiclass"} or list, default="auto"
        The kind of y.  "target" takes one target, "statistics" can take several.
    handle_unknown : {"own", "nan", "error"} or float, default="own"
        Encoding of a category that no visible row has.  "own": zeros in one-hot columns, or the id -1.  "error" refuses
        values that fit did not see.
    handle_missing : {"category", "own", "error"}, default="category"
        A missing value is a category, or is treated as unknown, or is refused.
    dtype : {"float64", "float32"}, default="float64"
        As in `TargetEncoder`.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where rows are summed and looked up; clusters are found on the host.

    Attributes
    ----------
    clusters_ : list of int64 ndarray of shape (n_categories,)
        Cluster of each category of `categories_`, for new rows.
    categories_ : list of ndarray of shape (n_categories,)
        Distinct values of each column, as in `TargetEncoder`.
    encodings_ : list of float64 ndarray of shape (n_categories,)
        Encoding of each category, in the order of columns, then outputs.
    device_ : {"cpu", "cuda"}
        Where the last fit ran.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Only if X had string column names.

    See Also
    --------
    TargetEncoder : Columns, schemes, policies, weights, pieces and devices have the same meaning there.

    Notes
    -----
    Clusters of one number are numbered from the lowest number, 0 first, in each fold and in all rows, so ids of
    different folds correspond by rank.  Ward's clusters are numbered in the same way if y is read: by the first number
    of their centroids (the share of the first class), then by the next.  If y is not read, they are numbered by their
    first categories; with as many clusters as categories they are one-hot columns.  Categories with equal means are in
    one cluster, so there may be fewer clusters than asked for, in a fold or in all rows; the last one-hot columns are
    then zero.

    Sums are exact; numbers and weights follow from them by one rounding.  So they have the same bits on every device
    and in any pieces or parts of the rows, files and Dask included.  If `partial_fit` adds rows, clusters are found
    again.  Costs are float64: if two partitions or two merges differ in cost by less than rounding, either may be
    chosen.  If computed costs are equal, the first is chosen: the partition whose last cluster begins earliest, then
    the one before it; the pair of clusters with the first categories.

    For N categories, a partition takes O(K N log N) time and O(K N) memory.  Ward's method takes O(N^2) time for each
    number of a profile.  For at most 4,096 categories it keeps the costs of all pairs, N^2 / 2 numbers.  A profile of
    "cooccurrence" has a number for each value of `against`.

    References
    ----------
    Micci-Barreca, "A preprocessing scheme for high-cardinality categorical attributes in classification and prediction
    problems", SIGKDD Explorations 3(1), 2001, section 5; Wang and Song, "Ckmeans.1d.dp: Optimal k-means clustering in
    one dimension by dynamic programming", The R Journal 3(2), 2011; Ward, "Hierarchical grouping to optimize an
    objective function", Journal of the American Statistical Association 58(301), 1963.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import ClusterEncoder
    >>> X = np.array([["elm"], ["oak"], ["fir"], ["yew"]] * 10, dtype=object)
    >>> y = np.array([1.0, 5.0, 1.25, 5.5] * 10)
    >>> encoder = ClusterEncoder(2, smooth=None).fit(X, y)
    >>> encoder.transform([["fir"], ["yew"], ["ash"]]).ravel().tolist()
    [0.0, 1.0, -1.0]
    >>> encoder.set_params(output="onehot").fit(X, y).transform([["fir"], ["yew"], ["ash"]]).tolist()
    [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    """

    n_clusters: int = 8
    by: Literal["target", "cooccurrence", "statistics"] = "target"
    _: KW_ONLY
    against: Key | None = None
    statistics: Statistics = ("mean", "std")
    values: Sequence[Column] | None = None
    smooth: Smooth = "auto"
    output: Literal["id", "onehot"] = "id"
    columns: Columns = None
    cv: CrossFitting = 5
    shuffle: bool = True
    random_state: Seed = 0
    target_type: TargetType | Sequence[TargetType] = "auto"
    handle_unknown: Literal["own", "nan", "error"] | float = "own"
    handle_missing: Literal["category", "own", "error"] = "category"
    dtype: FloatType = "float64"
    device: Device = "auto"
    _learned = Clusters

    @property
    def _needs_target(self) -> bool:
        return self.by != "cooccurrence" and self.values is None

    @property
    def clusters_(self) -> list[Array]:
        """Cluster of each category, per column; -1 for a category whose rows have no weight."""
        return [clusters.copy() for clusters in self._fitted().learned.clusters]  # type: ignore[attr-defined]

    @property
    def encodings_(self) -> list[Array]:
        """Encoding of each category, per column and output."""
        tables = [table[:-1] for _, table in self._fitted().learned.blocks()]  # type: ignore[attr-defined]
        return [table[:, output] for table in tables for output in range(table.shape[1])]

    def _check_learner(self) -> None:
        owner = type(self).__name__
        check_count(owner, "n_clusters", self.n_clusters, low=1, high=MOST_COLUMNS)
        check_option(owner, "by", self.by, ("target", "cooccurrence", "statistics"))
        check_option(owner, "output", self.output, ("id", "onehot"))
        check_option(owner, "handle_missing", self.handle_missing, ("category", "own", "error"))
        for name, by in ONLY_WITH.items():
            if getattr(self, name) is not None and self.by != by:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} of {owner} is for by={by!r}, and by is {self.by!r}. Leave one out."
                )
        if self.by == "cooccurrence" and self.against is None:
            law = "must be the name or position of a column, or a tuple of several, for by='cooccurrence'"
            raise bad_parameter(owner, "against", self.against, law)
        if self.values is not None:
            check_value_columns(self.values)

    def _rows_parameters(self) -> Parameters:
        # The encoding of a sum of no rows is never used: categories without visible rows are in no cluster.
        owner, refused = type(self).__name__, isinstance(self.handle_unknown, str) and self.handle_unknown == "error"
        if isinstance(self.handle_unknown, dict):
            law = "must be one for all columns. Take an encoder of its own for each column"
            raise bad_parameter(owner, "handle_unknown", self.handle_unknown, law)
        Parameters.of(self, Counts("count"), as_unseen="own", target_type=None)
        policy = {"as_unseen": "own", "handle_unknown": "error" if refused else "own"}
        if self.by == "cooccurrence":
            members = self.against if isinstance(self.against, tuple) else (self.against,)
            select_them = partial(select_against, columns=self.columns, against=members)
            return Parameters.of(self, Counts("count"), target_type=None, select=select_them, **policy)
        if self.by == "target":
            scheme = self._read_scheme()
            return Parameters.of(self, smoothing.resolve(self.smooth, owner=owner), prior="mean", **policy, **scheme)
        statistics = Summaries(self.statistics, 0, self.values is not None)
        if self.values is not None:
            select_them = partial(select_with_weights, columns=self.columns, values=self.values)
            return Parameters.of(self, statistics, target_type=None, select=select_them, **policy)
        return Parameters.of(self, statistics, **policy, **self._read_scheme())

    def _read_scheme(self) -> dict[str, Any]:
        """Give the scheme as fields of `Parameters`; each of its folds finds its own clusters."""
        scheme = read_scheme(self)
        check_scheme(scheme["scheme"], self._owner)
        return scheme | {"together": True}

    def _wants_pairs(self, n_keys: int) -> bool:  # noqa: ARG002
        return self.by != "target" and not self._needs_target

    def _learn_sums(self, model: Model, rows: CodedRows | None = None) -> Clusters:  # noqa: ARG002
        if self.by == "target" and len(model.targets) > 1:
            raise ValueError(
                f"{self._owner}(by='target') takes one target, and y has {len(model.targets)}. Give each an encoder of "
                "its own, or cluster by='statistics' of all."
            )
        profile = shares_of_categories if self.by == "cooccurrence" else statistics_of_categories
        number, standardized = int(self.n_clusters), self.by == "statistics"
        clusters = [
            cluster(profile(model, key), weigh_categories(model, key), number, standardized, self._needs_target)
            for key in range(model.selection.n_encoded)
        ]
        return Clusters(clusters, [min(number, len(of_key)) for of_key in clusters], self.output, self._unseen())

    def _unseen(self) -> float:
        """Give the encoding of a category without a cluster."""
        if isinstance(self.handle_unknown, Real):
            return float(self.handle_unknown)
        if self.handle_unknown == "nan":
            return float("nan")
        return -1.0 if self.output == "id" else 0.0


def select_against(frame: Frame | Pieces, columns: Any, against: Sequence[Any]) -> Selection:
    """Select the keys to cluster; the columns of `against` become one more key, with which each is counted."""
    group = tuple(locate(frame, column, "against:") for column in against)
    selection = select(frame, columns, None, against)
    number = len(selection.entries)
    return replace(
        selection,
        entries=[*selection.entries, KeySpec("", group)],
        training_only=[],
        pairs=[(key, number) for key in range(number)],
        others=1,
    )


def select_with_weights(frame: Frame | Pieces, columns: Any, values: Any) -> Selection:
    """Select the keys to cluster, with counts of weights beside sums of columns that may have missing values."""
    selection = select(frame, columns, None, values)
    return replace(selection, pairs=[(key, key) for key in range(len(selection.entries))])
