"""CatBoostEncoder: CatBoost's statistics of categories, with all their priors in one call."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

from gpu_encode import schemes
from gpu_encode.encoders.base import Encoder
from gpu_encode.encoders.scheme import SchemeEncoder
from gpu_encode.fitting.borders import Cut, list_borders
from gpu_encode.fitting.parameters import Parameters, read_each, read_schemes
from gpu_encode.formulas.catboost import OF_COUNTS, OF_TARGETS, CountRatios, TargetRatios
from gpu_encode.schemes.folds import CrossFitting
from gpu_encode.words.annotations import ByKey, Seed, TargetType
from gpu_encode.words.errors.parameters import check_option

PRIORS = (0.0, 0.5, 1.0)


@dataclass(eq=False, repr=False)
class CatBoostEncoder(SchemeEncoder):
    """Encode categories as CatBoost does before it grows trees: by ratios with priors, in a random order of the rows.

    A category with summed weight n gets ``(S + a * p) / (n + a)`` for every prior p of weight a.  S and n are sums over
    the rows that the scheme lets a row see.  `statistic` chooses the meaning of S.

    Parameters
    ----------
    statistic : {"mean", "borders", "buckets", "counter", "frequency"}, default="mean"
        "mean" (CatBoost's FloatTargetMeanValue): S is the sum of y.  If y holds labels, S is the weight of the
        rows of each label; of two labels, only the last has a column.  "borders": S is the weight of the rows with y
        above a border; each border has a column.  "buckets": S is the weight of the rows in a bucket; each bucket has a
        column (of two labels, only the last).  "counter" reads no target: S is n itself, and the divisor has the
        largest n of any category instead of n.  "frequency" (FeatureFreq) is the same, but its divisor has the weight
        of all visible rows.
    priors : list of float or dict, default=(0.0, 0.5, 1.0)
        Each p gives a column.  A dict has a list for each column or joint key that it names; all others get the
        default.
    weight : float or dict, default=1.0
        Weight a of a prior, in rows.  With 0 a prior counts only for categories that no visible row has.  A dict has a
        weight for each column or joint key that it names; all others get 1.
    borders : None, int or list of float, default=None
        Where y is cut: bucket i holds the numbers above border i - 1, up to border i.  None: y holds labels, which are
        the buckets.  A list gives the borders, in rising order.  An int is a number of borders at quantiles of y; 1
        means the median.  Such borders depend on the y of every row, the encoded row included, as CatBoost's do, and
        need all rows in one call.  With "mean", y becomes the number of its bucket over the number of borders
        (BinarizedTargetMeanValue).
    categories : "auto" or list, default="auto"
        As in `TargetEncoder`.
    columns : list, "categorical", selector, pattern or function, optional
        Names (or positions) of the columns to encode; a tuple is a joint key.  Others pass through.
    handle_unknown : {"prior", "nan", "error"}, float or dict, default="prior"
        Encoding of categories that no visible row has.  "prior": the encoding of n = 0, which is p itself except for
        "counter" and "frequency".
    handle_missing : {"category", "prior", "nan", "error"}, default="category"
        As in `TargetEncoder`.
    min_count : float, default=0
        Categories of less visible weight are treated as unseen.
    min_frequency : int or float, optional
        Categories of less visible weight are infrequent; a float is a share of all visible weight.
    max_categories : int, optional
        Largest number of categories with encodings of their own; all infrequent ones together count as one.  The
        categories with the least visible weight become infrequent.  `min_frequency` and `max_categories` need a scheme
        with folds; "auto" is such a scheme for "counter" and "frequency" only.
    handle_infrequent : {"prior", "category"}, default="prior"
        "prior": infrequent categories are treated as unseen.  "category": together they are one category.
    indicators : bool or list of {"unseen", "missing"}, default=False
        Columns of 0 and 1 for each encoded column.  key_unseen is 1 if no visible row has the category.  key_missing is
        1 if the row has no value in the column, or in any column of a joint key, whatever `handle_missing` says.  True:
        ["unseen"].
    device : {"auto", "cpu", "cuda"}, default="auto"
        As in `TargetEncoder`.
    dtype : {"float64", "float32"}, default="float64"
        As in `TargetEncoder`.
    missing_target : {"error", "keep"}, default="error"
        Rows without a target (None, NaN).  "keep": their categories are known and they are encoded, and they count
        nowhere: neither in n, in the prior, nor in `min_count`.  They have a fold, or a rank in an order, as
        other rows do, and are encoded by the rows that they see.
    cv : "auto", int, None, scheme, splitter, iterable, str, array or dict, default="auto"
        Who may look at whom in training, as in `TargetEncoder`.  "auto" is `Ordered`: a row sees the rows before it in
        a random order.  For "counter" and "frequency", which read no target, "auto" lets it see all rows, as CatBoost
        does.  "counter" takes only schemes with folds; with "frequency", `Ordered` counts the rows before.
    target_type : {"auto", "continuous", "binary", "multiclass"} or list, default="auto"
        As in `TargetEncoder`.
    shuffle : bool, default=True
        False makes the folds of an integer `cv` contiguous, and leaves rows in order for "auto" (CatBoost's has_time).
    random_state : int, RandomState, Generator or None, default=0
        Seed of the order for "auto", and of the folds of an integer `cv`.
    scale : {"identity", "log", "log1p", "sqrt", "logit"}, tuple or float, default="identity"
        Scale of the encodings, as in `TargetEncoder`.  It has to hold all priors, and the values of y.

    See Also
    --------
    TargetEncoder : With ``smooth=1.0, cv=Ordered()`` it has the mean of the rows before as its prior, as
        category_encoders' CatBoostEncoder does.

    Notes
    -----
    Columns are called key_above_border_prior_p, key_to_border_prior_p (key_to_inf for the last bucket), or by the
    label; with a single prior, names do not mention it.  Sums are exact and rounded once, then come one addition and
    one division.  CatBoost quantizes these numbers into bins afterwards; this is left to the learner.

    References
    ----------
    CatBoost, "Transforming categorical features to numerical features"
    (https://catboost.ai/docs/concepts/algorithm-main-stages_cat-to-numberic): for Borders, Buckets and
    BinarizedTargetMeanValue ``ctr = (countInClass + prior) / (totalCount + 1)``, for Counter
    ``ctr = (curCount + prior) / (maxCount + 1)``, with a prior num/denom ``(count + num) / (total + denom)``, so that
    num = a * p and denom = a here; its source, catboost/private/libs/algo/online_ctr.cpp (CalcOnlineCTRClasses,
    CalcOnlineCTRMean, CalcOnlineCTRCounter).  Prokhorenkova et al. (2018), "CatBoost: unbiased boosting with
    categorical features", section 3.2.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas
    >>> from gpu_encode import CatBoostEncoder
    >>> X, y = np.array([list("aabb")]).T, np.array([1.0, 3.0, 5.0, 9.0])
    >>> encoder = CatBoostEncoder("borders", priors=[0.5], borders=[2.0, 6.0]).fit(X, y)
    >>> encoder.get_feature_names_out(["shop"]).tolist()
    ['shop_above_2.0', 'shop_above_6.0']
    >>> encoder.transform([["a"], ["b"], ["never seen"]]).round(3).tolist()
    [[0.5, 0.167], [0.833, 0.5], [0.5, 0.5]]
    >>> CatBoostEncoder(priors=[0.0, 4.0], target_type="continuous", shuffle=False).fit_transform(X, y).tolist()
    [[0.0, 4.0], [0.5, 2.5], [0.0, 4.0], [2.5, 4.5]]
    >>> encoder = CatBoostEncoder(priors={"shop": [0.5], "city": [0.0, 1.0]}, columns=["shop", "city"])
    >>> shops = {"shop": ["a", "a", "b"], "city": ["x", "y", "y"]}
    >>> encoder.fit(pandas.DataFrame(shops), [0, 1, 1]).get_feature_names_out().tolist()
    ['shop', 'city_prior_0', 'city_prior_1']
    """

    statistic: Literal["mean", "borders", "buckets", "counter", "frequency"] = "mean"
    priors: Sequence[float] | ByKey[Sequence[float]] = PRIORS
    weight: float | ByKey[float] = 1.0
    borders: int | Sequence[float] | None = None
    _: KW_ONLY
    cv: CrossFitting | ByKey[CrossFitting] = "auto"
    target_type: TargetType | Sequence[TargetType] = "auto"
    shuffle: bool = True
    random_state: Seed = 0
    scale: Literal["identity", "log", "log1p", "sqrt", "logit"] | tuple[str, float] | float = "identity"

    def merge(self, *others: Encoder) -> Self:
        """Join this encoder with others of the same parameters, as if it had learned all their rows.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If parameters, columns or targets differ, or borders are quantiles, which differ with the rows.
        """
        parameters = self._parameters()
        if parameters.cut is not None:
            parameters.cut.check_fixed()
        return super().merge(*others)

    def _parameters(self) -> Parameters:
        check_option("CatBoostEncoder", "statistic", self.statistic, (*OF_TARGETS, *OF_COUNTS))
        counts, cut = self.statistic in OF_COUNTS, self._cut()
        of_cut = "continuous" if self.statistic == "mean" else "multiclass"
        target_type = of_cut if cut is not None else self.target_type
        weight, weights = read_each(self.weight, 1.0, lambda weight, _: weight, "weight")
        priors, lists = read_each(self.priors, PRIORS, lambda priors, _: priors, "priors")
        named = {key: self._ratios(lists.get(key, priors), weights.get(key, weight)) for key in {**weights, **lists}}
        return Parameters.of(
            self,
            self._ratios(priors, weight),
            by_key=named,
            keyed_parameter=" and ".join([*(["weight"] if weights else []), *(["priors"] if lists else [])]),
            target_type=None if counts else target_type,
            cut=cut,
            drop="first" if self.statistic == "borders" else None,
            **read_schemes(self, "auto", self._usual_scheme()),
        )

    def _ratios(self, priors: Any, weight: Any) -> CountRatios | TargetRatios:
        """Give the statistic of a key, by its priors and their weight."""
        if self.statistic in OF_COUNTS:
            return CountRatios(self.statistic, priors, weight)
        return TargetRatios(self.statistic, priors, weight, list_borders(self.borders))

    def _usual_scheme(self) -> schemes.Scheme:
        """Give CatBoost's own scheme."""
        if self.statistic in OF_COUNTS:
            return schemes.Greedy()
        return schemes.Ordered(shuffle=self.shuffle, random_state=self.random_state)

    def _cut(self) -> Cut | None:
        """Give how the target is cut, if it is."""
        if self.borders is None:
            return None
        if self.statistic in OF_COUNTS:
            raise ValueError(
                f"statistic={self.statistic!r} of CatBoostEncoder reads no target that borders could cut: leave them "
                "out."
            )
        if self.target_type not in ("auto", "continuous"):
            raise ValueError(
                f"borders of CatBoostEncoder cut a quantity, but target_type={self.target_type!r}. Pass "
                'target_type="auto" or "continuous", or leave out borders: labels are counted as they are.'
            )
        return Cut("CatBoostEncoder", self.borders, as_shares=self.statistic == "mean")

    @property
    def _needs_target(self) -> bool:
        return self.statistic not in OF_COUNTS
