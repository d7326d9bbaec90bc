"""StatisticEncoder: categories become statistics of the target, or of other columns."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self

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

    One call gives every statistic of every column of values, by every key; the rows are summed once for each key and
    column of values.

    Parameters
    ----------
    statistics : list of str, callable or MergeableStatistic; or dict, default=("mean",)
        "count": summed weight of the rows with a value; "sum"; "mean"; "var"; "std"; "sem", the standard error of the
        mean, std / sqrt(count); "skew", the third standardized moment, and "kurt", the fourth less 3 (excess
        kurtosis), both with ddof=1 corrected for the number of rows as in pandas.

        Order statistics, which need the values in order and not only their sums: "min"; "max"; "median";
        ("quantile", q), interpolated linearly as `numpy.quantile` does; "nunique", the number of distinct values;
        "mode", the most frequent value (of several, the smallest); ("share", t), the share of the rows with a value
        above t.  Columns of dates also have "first" and "last", other names for "min" and "max", and
        "seconds_since_last" (see Notes); otherwise they have only "count", "nunique", "mode", "min" and "max".  Columns
        of text have only "count", "nunique" and "mode"; the smallest text is the first in the order of UTF-8.

        Or a function ``f(count, mean, variance)`` of arrays that gives an array; the column gets the function's name.
        It must compute each cell from the same cell of the three arrays, as ``mean / count`` does.  What a function
        such as ``mean / mean.max()`` gives depends on which categories happen to be computed together.  The function is
        called on the host with copies, for all categories (or many rows) at once, and also for counts of zero, whose
        results are not used.  An encoder with a function can be pickled, but not saved.  A `MergeableStatistic`
        computes other functions of the values, from parts that add up.

        A dict has for each key a dict of lists of statistics by columns of values, such as
        ``{"shop": {"price": ["mean", "std"]}, ("shop", "city"): {"pieces": ["sum"]}}``.  A tuple is a joint key, as in
        `columns`.  `columns` and `values` then follow from the dict and are left out; output columns are ordered by
        key.

        If the values are y, "count", "sum" and "nunique" are of the rows that a row may see: by default, training rows
        see four folds of five, and new rows see all rows, so the numbers of new rows are larger.  "mean" has no such
        difference; neither has `CountEncoder`, which counts all rows.
    categories : "auto" or list, default="auto"
        "auto": the values of the training rows.  A list: one list of values per encoded column; all other
        values are unknown, and so are missing values if the list does not hold None.
    columns : list, "categorical", selector, pattern or function, optional
        Names (or positions) of the columns to encode; a tuple is a joint key.  Others pass through.  None: every
        column except for columns of values.
    handle_unknown : {"prior", "nan", "error"}, float or dict, default="prior"
        Encoding of categories that no visible row has.  "prior": the statistic of all visible rows, but 0 for count,
        sum and nunique.  "error" refuses values that fit did not see.
    handle_missing : {"category", "prior", "nan", "error"}, default="category"
        None, NaN, pandas.NA, NaT and Arrow null are one and the same missing value.
    min_count : float, default=0
        Categories of less visible weight are treated as unseen.
    min_frequency : int or float, optional
        Categories of less visible weight are infrequent; a float is a share of all visible weight.
    max_categories : int, optional
        Largest number of categories with statistics of their own; all infrequent ones together count as one.  The
        categories with the least visible weight become infrequent.  `min_frequency` and `max_categories` need a scheme
        with folds.  Like `min_count`, they count only rows that have a value, separately for each column of values.
    handle_infrequent : {"prior", "category"}, default="prior"
        "prior": infrequent categories are treated as unseen.  "category": together they are one category; order
        statistics refuse this.
    indicators : bool or list of {"unseen", "missing"}, default=False
        Columns of 0 and 1 for each encoded column.  key_unseen is 1 if no visible row has the category (and a value in
        the first column of values).  key_missing is 1 if the row has no value in the key's column, or in any column of
        a joint key, whatever `handle_missing` says.  True: ["unseen"].
    device : {"auto", "cpu", "cuda"}, default="auto"
        As in `TargetEncoder`.
    dtype : {"float64", "float32"}, default="float64"
        As in `TargetEncoder`.
    missing_target : {"error", "keep"}, default="error"
        Rows without a target (None, NaN).  "keep": their categories are known and they are encoded, and they count
        nowhere: neither in n, in the prior, nor in `min_count`.  They have a fold, or a rank in an order, as
        other rows do, and are encoded by the rows that they see.  If there are `values`, this has no effect.
    values : list, optional
        Names (or positions) of columns of X: numbers, text or dates.  None: the values are y.  Columns of values are
        not encoded.  They are read only in training; new rows need not have them, except for "seconds_since_last".
        They pass through if `columns` is a list.
    cv : "auto", int, None, scheme, splitter, iterable, str, array or dict, default="auto"
        Who may look at whom in training, as in `TargetEncoder`.  "auto": 5 folds if the values are y; if they are
        columns of X, each row sees all rows, itself included.  Order statistics take `LeaveOneOut` and schemes with
        folds, but not `Ordered`; "seconds_since_last" also takes ``Ordered(time=)`` of its own column.
    ddof : {0, 1}, default=1
        "var", "std" and "sem" divide by N - ddof.  If this is not above 0, they are not defined.
    undefined : {"nan", "prior"} or float, default="nan"
        What replaces a statistic that is not defined although rows are visible: with ddof=1 "var", "std" and "sem" of
        one row, "skew" of two and "kurt" of three, and NaN that a function gives.  "nan": NaN, as in pandas.  "prior":
        the statistic of all visible rows, as cuML has it for "var".  A number also replaces the prior of unknown
        categories if it is not defined itself.  "seconds_since_last", and values of text and dates, are left as they
        are.
    target_type : {"continuous", "auto", "binary", "multiclass"} or list, default="continuous"
        The kind of y.  For labels, "count", "sum", "mean", "var", "std", "sem" and functions are computed from columns
        of 0 and 1: with two labels, one column for the label that sorts last; with more, one for each label.  All other
        statistics need a continuous target.  A list gives one kind per target.
    shuffle : bool, default=True
        False makes the folds of an integer `cv` contiguous.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the folds of an integer `cv`.
    scale : {"identity", "log", "log1p", "sqrt", "logit"}, tuple or float, default="identity"
        Scale of all statistics, as in `TargetEncoder`.  `fit` refuses statistics that may lie outside of the scale:
        statistics that may be negative, functions of your own, and for "logit" statistics that may be above 1.

    Attributes
    ----------
    categories_ : list of ndarray of shape (n_categories,)
        Distinct values of each column, as `TargetEncoder` has them.
    encodings_ : list of float64 ndarray of shape (n_categories,)
        Statistics of each category: by column, then column of values (or target, and class), then statistic.  Text is
        in arrays of objects, and dates are datetime64, in UTC.  "seconds_since_last" is NaN here, since it is a number
        of each row, not of each category.
    device_ : {"cpu", "cuda"}
        Where the last fit ran.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Names of the columns of X at fit; the attribute exists only if all of them are strings.

    See Also
    --------
    TargetEncoder : Columns, schemes, policies, weights, pieces, states and devices mean the same there.

    Notes
    -----
    Output columns are called key_statistic, or key_value_statistic if there are columns of values (or several
    targets).  A row without a value (None, NaN) is left out of the statistics of that column; infinity is refused.

    Counts, sums and sums of squares are exact: "sum" is rounded once, and variances are N * Q - S * S in integers, so
    equal values have variance zero.  The sums of cubes and fourth powers that "skew" and "kurt" need are exact, too;
    "skew" refuses values beyond 1e100, and values below 1e-90 other than 0; "kurt" refuses values beyond 1e75, and
    values below 1e-55 other than 0.  "skew" keeps five sums of each category, and "kurt" eleven.  Weights repeat rows:
    "var" with ddof=1 divides by N - 1, where N is the summed weight.  With fractional weights, it divides by N / 2 if N
    is below 2, and is NaN if N is at most 1.

    Order statistics refuse weights with fractions.  For them the encoder keeps how often each value occurs in each
    category; these counts add up exactly in any order, but take memory for every pair of category and value.

    "mode", "min", "max", "first" and "last" are text if the values are text, and dates in the unit and time zone of the
    column if these are dates; None or NaT if there is no value.  A NumPy array as output then holds objects.

    "seconds_since_last" is the time from the latest earlier date of the row's category, among the rows that it may see,
    to the row's own date.  An earlier date is earlier by at least one tick: whatever the scheme, a row sees neither
    itself, nor rows of the same moment, nor later ones.  If there is no earlier date, it is NaN.  The dates of new rows
    are compared with those of all training rows.

    Statistics of columns of X say nothing about y, so by default training rows see all rows, as new rows do.

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
    undefined: Literal["nan", "prior"] | float = "nan"
    parameters_before: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {**SchemeEncoder.parameters_before, "undefined": "nan"}
    )
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
        # Statistics of columns of X cannot leak y, so all rows may see each other by default.
        return Parameters.of(
            self,
            Summaries(asked.statistics, self.ddof, of_columns, asked.pairs, undefined=self.undefined),
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
    """Keys, columns of values and statistics; `pairs` has the statistics of each key and column, if they differ."""

    columns: Any
    values: Any
    statistics: Any
    pairs: list[list[list[Any]]] | None = None

    @classmethod
    def of_dict(cls, by_key: dict[Any, Any], columns: Any, values: Any) -> Self:
        """Read a dict of statistics by key, then by column of values; both are in the order of the dict.

        Raises
        ------
        ValueError
            If there is no key, if a key has no dict of lists of statistics, or if `columns` or `values` are also given.
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
                # A single statistic with its number, such as ("quantile", 0.5), is not a list of two statistics.
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
    """Error for an entry of a dict of statistics that is no dict of lists.

    In earlier versions, a tuple meant a key and its column of values; the error says how such a pair is written now.
    """
    is_pair = isinstance(key, tuple) and len(key) == 2 and not isinstance(found, dict)
    hint = f" A tuple is a joint key: write {{{key[0]!r}: {{{key[1]!r}: [...]}}}} for a pair." if is_pair else ""
    return ValueError(
        "statistics as a dict has for each key a dict of lists of statistics by columns of values, such as "
        f'{{"shop": {{"price": ["mean", "std"]}}, ("shop", "city"): {{"pieces": ["sum"]}}}}. Got {key!r}: {found!r}.'
        f"{hint}"
    )


def check_value_columns(values: Any) -> None:
    """Raise ValueError if `values` is no list of columns."""
    if not isinstance(values, (list, tuple)) or not values or len(set(map(repr, values))) < len(values):
        raise no_value_columns(values)
