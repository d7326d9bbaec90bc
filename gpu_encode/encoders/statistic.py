"""StatisticEncoder: categories become statistics of the target, or of other columns."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

from gpu_encode import schemes
from gpu_encode.encoders.scheme import SchemeEncoder
from gpu_encode.fitting.parameters import Parameters, read_schemes
from gpu_encode.formulas.order_statistics import WITH_NUMBER
from gpu_encode.formulas.statistic_names import union_of
from gpu_encode.formulas.summaries import Statistics, Summaries
from gpu_encode.schemes.folds import CrossFitting
from gpu_encode.words.annotations import ByKey, Column, Seed, TargetType
from gpu_encode.words.errors.tables import no_value_columns


@dataclass(eq=False, repr=False)
class StatisticEncoder(SchemeEncoder):
    """Encode categories by statistics of their rows: of the target without leaking it, or of other columns of X.

    Every statistic of every column of values, by every key, in one call; the rows are summed once per key and column
    of values.

    Parameters
    ----------
    statistics : list of str, callable or MergeableStatistic; or dict, default=("mean",)
        "count": summed weight of the rows with a value; "sum"; "mean"; "var"; "std"; "sem", the standard error of the
        mean, std / sqrt(count); "skew", the third standardized moment, with ddof=1 corrected for the number of rows as
        pandas does.  "min"; "max"; "median"; ("quantile", q), interpolated linearly as `numpy.quantile`
        does; "nunique", the number of distinct values; "mode", the most frequent value, of several the smallest;
        ("share", t), the share of the rows with a value above t.  Columns of text have "count", "nunique" and "mode",
        of several the first in the order of UTF-8; columns of dates have these, "min" and "max", "first" and "last",
        which are the same in words of time, whatever the order of rows, and "seconds_since_last" (see Notes).  Or a
        function ``f(count, mean, variance)`` of arrays
        that gives an array, whose name the column gets.  It must go cell by cell, as ``mean / count`` does: then it
        sees no more than these three numbers, and neither the order of the rows nor chunks can matter.  (One that
        looks at other cells, as ``mean / mean.max()`` does, gives what they happen to be.)  It is called for all
        categories (or many rows) at once, on the host, with copies, and also with counts of zero, whose encodings
        nobody reads; an encoder that has one can be pickled, not saved.  Other functions of the values are given by
        their parts, which add up: a `MergeableStatistic`.

        A dict has, for each key, a dict of a list of statistics by column of values, as
        ``{"shop": {"price": ["mean", "std"]}, ("shop", "city"): {"pieces": ["sum"]}}``, where a tuple is a joint key,
        as it is in `columns`; `columns` and `values` then follow from it, and columns of encodings stand key by key.

        Of y, "count", "sum" and "nunique" are of the rows that a row may see: by default those of four folds in
        five in training, and of all for new rows, whose numbers are larger.  "mean" has no such step; nor has
        `CountEncoder`, which counts all rows.
    categories : "auto" or list, default="auto"
        "auto": the values of the training rows.  A list: one list of values per encoded column; others are unknown,
        a missing value too where None is not among them.
    columns : list, "categorical", selector, pattern or function, optional
        Names (or positions) of the columns to encode; a tuple is a joint key.  Others pass through.  None: every
        column but those of values.
    handle_unknown : {"prior", "nan", "error"}, float or dict, default="prior"
        Encoding of categories that no visible row has.  "prior": the statistic of all visible rows, but 0 for count,
        sum and nunique.  "error" refuses values that fit did not see.
    handle_missing : {"category", "prior", "nan", "error"}, default="category"
        None, NaN, pandas.NA, NaT and Arrow null are one and the same missing value.
    min_count : float, default=0
        Categories of less visible weight are treated as unseen.
    min_frequency : int or float, optional
        Categories of less visible weight, or of less than this share of it, are infrequent.
    max_categories : int, optional
        Most categories with statistics of their own, the infrequent ones together counting as one: the others, by what
        is visible, are infrequent.  Both need a scheme with folds, and count, as `min_count` does, the rows that have
        a value: of several columns of values each tells its own.
    handle_infrequent : {"prior", "category"}, default="prior"
        Infrequent categories are as if unseen, or one category together; this not for "min" and all that is named
        after it.
    indicators : bool or list of {"unseen", "missing"}, default=False
        0/1 columns per encoded column, key_unseen and key_missing: no visible row has this category (and a value in the
        first column of values); the row's key is missing, of a joint key in any of its columns, whatever
        `handle_missing`.  True: ["unseen"].
    device : {"auto", "cpu", "cuda"}, default="auto"
        As in `TargetEncoder`.
    dtype : {"float64", "float32"}, default="float64"
        As in `TargetEncoder`.
    missing_target : {"error", "keep"}, default="error"
        Rows without a target (None, NaN).  "keep": their categories are known and they are encoded, and they count
        nowhere: neither in n, in the prior, nor in `min_count`.  They have a fold, or a rank in an order, as other
        rows do, and get what the rows that they see say.  It plays no part beside `values`.
    values : list, optional
        Names (or positions) of columns of X: numbers, text or dates.  None: the values are y.  Columns of values are
        read in training alone, need not be there afterwards (but for "seconds_since_last"), are not encoded, and pass
        through where `columns` is a list.
    cv : "auto", int, None, scheme, splitter, iterable, str, array or dict, default="auto"
        Who may look at whom in training, as in `TargetEncoder`.  "auto": 5 folds where the values are y; all rows,
        their own included, where they are columns of X.  "min" and all that is named after it take `LeaveOneOut` and
        schemes with folds, not `Ordered`; "seconds_since_last" takes ``Ordered(time=)`` of its own column, too.
    ddof : {0, 1}, default=1
        "var", "std" and "sem" divide by N - ddof.  A category without so many rows gets NaN, as in pandas.
    target_type : {"continuous", "auto", "binary", "multiclass"} or list, default="continuous"
        What y is.  Of labels "count", "sum", "mean", "var", "std", "sem" and functions are those of 0/1 columns: of the
        label that sorts last of two, of each one of more; all others need a continuous target.  A list gives one kind
        per target.
    shuffle : bool, default=True
        False makes the folds of an integer `cv` contiguous.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the folds of an integer `cv`.
    scale : {"identity", "log", "log1p", "sqrt", "logit"}, tuple or float, default="identity"
        Scale of all statistics, as in `TargetEncoder`.  Fit refuses statistics that it may not hold: of
        negative numbers, of functions of your own, and for "logit" all that are no shares of numbers between 0 and 1.

    Attributes
    ----------
    categories_ : list of ndarray of shape (n_categories,)
        Distinct values of each column, as `TargetEncoder` has them.
    encodings_ : list of float64 ndarray of shape (n_categories,)
        Statistics of each category: by column, then column of values (or target, and class), then statistic.  Those
        that are text are arrays of objects, those that are dates of datetime64, in UTC; "seconds_since_last" is NaN,
        since it is a row's own.
    device_ : {"cpu", "cuda"}
        Where the last fit ran.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Only where X had string column names.

    See Also
    --------
    TargetEncoder : Columns, schemes, policies, weights, pieces, states and devices mean the same there.

    Notes
    -----
    Output columns are called key_statistic, or key_value_statistic where there are columns of values (or several
    targets).  Rows without a value (None, NaN) take no part in what is summed of that column; infinity is refused.
    Counts, sums and sums of squares are exact: "sum" is rounded once, and variances are N * Q - S * S in integers, so
    equal values have variance zero; of "skew" so are sums of cubes, and it refuses values beyond 1e100 and, but for 0,
    below 1e-90.  Weights repeat rows: "var" with ddof=1 divides by N - 1, the summed weight less one (of fractions
    that sum to less than two rows by N / 2; up to one row it is NaN), and "min" and all that is named after it refuse
    weights with fractions.  For these the encoder keeps how often each value occurs in each
    category, which adds up exactly in any order, but takes memory for every such pair.

    "mode", "min" and what is named after it are text where the values are text, and dates in the unit and time zone of
    the column; None and NaT where there is none.  An output without types for columns, as NumPy's, holds objects then.
    "seconds_since_last" is the time from the latest earlier date of the row's category, among the rows that it may see,
    to its own date.  Earlier is by a tick at least: no row sees itself or one of the same moment, and by any scheme,
    also where all rows are seen, none sees what comes after it.  NaN where there is no earlier date; new rows have
    their dates compared with those of all training rows.

    Statistics of columns of X say nothing of y, so by default each row sees itself in training as new rows do.

    References
    ----------
    pandas' ``groupby(key)[value].transform(statistic)``; Hyndman and Fan, "Sample Quantiles in Statistical Packages",
    The American Statistician 50(4), 1996 (definition 7).

    Examples
    --------
    >>> import pandas as pd
    >>> from gpu_encode import StatisticEncoder
    >>> X = pd.DataFrame({"shop": ["a", "a", "b"], "price": [1.0, 4.0, None]})
    >>> StatisticEncoder(["count", "mean", "std"], values=["price"], handle_unknown=0.0).fit_transform(X)
       shop_price_count  shop_price_mean  shop_price_std
    0               2.0              2.5         2.12132
    1               2.0              2.5         2.12132
    2               0.0              0.0         0.00000
    >>> X = pd.DataFrame({"user": ["a", "a", "b"], "word": ["x", "y", "x"], "when": pd.to_datetime(["2020-01-01"] * 3)})
    >>> X.loc[1, "when"] += pd.Timedelta("1h")
    >>> encoder = StatisticEncoder({"user": {"word": ["mode"], "when": ["last", "seconds_since_last"]}})
    >>> encoder.fit_transform(X).iloc[:, :3]
      user_word_mode      user_when_last  user_when_seconds_since_last
    0              x 2020-01-01 01:00:00                           NaN
    1              x 2020-01-01 01:00:00                        3600.0
    2              x 2020-01-01 00:00:00                           NaN
    >>> def noise_to_signal(count, mean, variance):
    ...     return variance / (mean * mean)
    >>> encoder = StatisticEncoder([noise_to_signal], ddof=0).fit(X[["user"]], [1.0, 3.0, 5.0])
    >>> encoder.get_feature_names_out().tolist(), encoder.encodings_
    (['user_noise_to_signal'], [array([0.25, 0.  ])])
    """

    statistics: Statistics = ("mean",)
    _: KW_ONLY
    values: Sequence[Column] | None = None
    cv: CrossFitting | ByKey[CrossFitting] = "auto"
    ddof: int = 1
    target_type: TargetType | Sequence[TargetType] = "continuous"
    shuffle: bool = True
    random_state: Seed = 0
    scale: Literal["identity", "log", "log1p", "sqrt", "logit"] | tuple[str, float] | float = "identity"

    def _parameters(self) -> Parameters:
        asked = StatisticSpec(self.columns, self.values, self.statistics)
        if isinstance(self.statistics, dict):
            asked = StatisticSpec.of_dict(self.statistics, self.columns, self.values)
        elif self.values is not None:
            check_value_columns(self.values)
        of_columns = asked.values is not None
        # By default the scheme is the one that keeps what is summed from leaking.
        return Parameters.of(
            self,
            Summaries(asked.statistics, self.ddof, of_columns, asked.pairs),
            target_type=None if of_columns else self.target_type,
            columns=asked.columns,
            values=asked.values,
            labelled=True,
            **read_schemes(self, "auto", schemes.Greedy() if of_columns else 5),
        )

    @property
    def _needs_target(self) -> bool:
        return self.values is None and not isinstance(self.statistics, dict)


@dataclass(frozen=True)
class StatisticSpec:
    """Keys, columns of values and statistics; `pairs` has the statistics of each key and column, where they differ."""

    columns: Any
    values: Any
    statistics: Any
    pairs: list[list[list[Any]]] | None = None

    @classmethod
    def of_dict(cls, by_key: dict[Any, Any], columns: Any, values: Any) -> Self:
        """Read a dict of statistics by key, then column of values; both are in the order in which they come first.

        Raises
        ------
        ValueError
            If there is no key, if one has no dict of lists of statistics, or if columns are given as well.
        """
        for name, given in (("columns", columns), ("values", values)):
            if given is not None:
                raise ValueError(
                    f"statistics is a dict, which names keys and columns of values: leave out {name}={given!r}."
                )
        if not by_key:
            raise ValueError('statistics is an empty dict. Pass one such as {"shop": {"price": ["mean", "std"]}}.')
        for key, by_value in by_key.items():
            if not isinstance(by_value, dict) or not by_value:
                raise _no_statistics_of_key(key, by_value)
            for value, statistics in by_value.items():
                # One statistic with its number, such as ("quantile", 0.5), is no list of two.
                alone = isinstance(statistics, tuple) and statistics[:1] in {(name,) for name in WITH_NUMBER}
                if not isinstance(statistics, (list, tuple)) or not statistics or alone or isinstance(value, tuple):
                    raise _no_statistics_of_key(key, by_value)
        summed = list(dict.fromkeys(value for by_value in by_key.values() for value in by_value))
        lists = [
            [[tuple(one) if isinstance(one, list) else one for one in by_value.get(value, ())] for value in summed]
            for by_value in by_key.values()
        ]
        every = union_of([statistics for per_value in lists for statistics in per_value])
        return cls(list(by_key), summed, every, lists)


def _no_statistics_of_key(key: Any, found: object) -> ValueError:
    """Error for an entry of a dict of statistics that is no dict of lists; says how a pair of earlier times is written.

    Before, a key and a column of values were a tuple, which everywhere else is a joint key.
    """
    is_pair = isinstance(key, tuple) and len(key) == 2 and not isinstance(found, dict)
    hint = f" A tuple is a joint key: write {{{key[0]!r}: {{{key[1]!r}: [...]}}}} for a pair." if is_pair else ""
    return ValueError(
        "statistics as a dict has, for each key, a dict of a list of statistics by column of values, such as "
        f'{{"shop": {{"price": ["mean", "std"]}}, ("shop", "city"): {{"pieces": ["sum"]}}}}. Got {key!r}: {found!r}.'
        f"{hint}"
    )


def check_value_columns(values: Any) -> None:
    """Raise ValueError for `values` that is no list of columns."""
    if not isinstance(values, (list, tuple)) or not values or len(set(map(repr, values))) < len(values):
        raise no_value_columns(values)
