"""ImpactEncoder: all columns that vtreat makes of a category, in one call."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from gpu_encode.encoders.scheme import SchemeEncoder
from gpu_encode.fitting.parameters import Parameters, read_each, read_schemes
from gpu_encode.formulas import smoothing
from gpu_encode.formulas.impact import Impact
from gpu_encode.formulas.smoothing import Smooth
from gpu_encode.schemes.folds import CrossFitting
from gpu_encode.words.annotations import ByKey, Seed, TargetType


@dataclass(eq=False, repr=False)
class ImpactEncoder(SchemeEncoder):
    """Encode a category by its impact on the target, the spread of its rows, and how common it is, in one call.

    Each column, and each target or class, gives up to four parts, computed from the rows that the scheme lets a row
    see.  "impact": the category's shrunk mean less the mean of all visible rows.  "logit": the difference of the
    log-odds of these two means, for classes only.  "deviation": sqrt(v + 0.001), where v is the sample variance of the
    category's rows; if it has a single row, v is the mean of the variances of all categories with more rows.
    "prevalence": the category's share of the visible rows.

    Parameters
    ----------
    parts : list of str, default=("impact", "deviation", "prevalence")
        Some of "impact", "logit", "deviation" and "prevalence"; the output columns have the order of this list.
    smooth : smoothing, "auto", float, None or dict, default=None
        Smoothing of the means, as in `TargetEncoder`, but not `GLMM`.  None is vtreat's `PartialPooling`; keys that a
        dict does not name get it, too.
    cv : int, None, scheme, splitter, iterable, str, array or dict, default=5
        Who may look at whom in training, as in `TargetEncoder`.
    categories : "auto" or list, default="auto"
        As in `TargetEncoder`.
    columns : list, "categorical", selector, pattern or function, optional
        Names (or positions) of the columns to encode; a tuple is a joint key.  Others pass through.
    handle_unknown : {"prior", "nan", "error"}, float or dict, default="prior"
        Encoding of categories that no visible row has.  "prior": 0 in every part.
    handle_missing : {"category", "prior", "nan", "error"}, default="category"
        As in `TargetEncoder`.
    min_count : float, default=0
        Categories of less visible weight are treated as unseen.
    min_frequency : int or float, optional
        Categories of less visible weight are infrequent; a float is a share of all visible weight.
    max_categories : int, optional
        Largest number of categories with encodings of their own; all infrequent ones together count as one.  The
        categories with the least visible weight become infrequent.  `min_frequency` and `max_categories` need a scheme
        with folds.
    handle_infrequent : {"prior", "category"}, default="prior"
        "prior": infrequent categories are treated as unseen.  "category": together they are one category.
    indicators : bool or list of {"unseen", "missing"}, default=False
        Columns of 0 and 1 for each encoded column.  key_unseen is 1 if no visible row has the category.  key_missing,
        which is vtreat's isBAD, is 1 if the row has no value in the column, or in any column of a joint key, whatever
        `handle_missing` says.  True: ["unseen"].
    device : {"auto", "cpu", "cuda"}, default="auto"
        As in `TargetEncoder`.
    dtype : {"float64", "float32"}, default="float64"
        As in `TargetEncoder`.
    missing_target : {"error", "keep"}, default="error"
        Rows without a target (None, NaN).  "keep": their categories are known and they are encoded, and they count
        nowhere: neither in n, in the prior, nor in `min_count`.  They have a fold, or a rank in an order, as
        other rows do, and are encoded by the rows that they see.
    target_type : {"auto", "continuous", "binary", "multiclass"} or list, default="auto"
        As in `TargetEncoder`.
    shuffle : bool, default=True
        False makes the folds of an integer `cv` contiguous.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the folds of an integer `cv`.

    Attributes
    ----------
    categories_, encodings_, target_type_, classes_, device_, n_features_in_, feature_names_in_
        As in `TargetEncoder`.

    Notes
    -----
    New rows get the impact, deviation and prevalence of vtreat 1.3.1.  Four things differ on purpose.  Folds are
    functions of the row number, and are not stratified by the target.  A missing value is a category in every part;
    vtreat gives it no impact.  Classes have a deviation, too.  "logit" is a difference of log-odds, of shares between
    2**-20 and 1 - 2**-20; vtreat's `logit_code` is log((p + 0.001) / (mean + 0.001)).

    A weight counts as a number of rows, as `PartialPooling` says.

    See Also
    --------
    StatisticEncoder : Any other statistics of the rows of a category.

    References
    ----------
    Zumel and Mount, vtreat: a data.frame processor for predictive modeling, arXiv:1611.09477 (catN, catB, catD, catP).

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import ImpactEncoder
    >>> X, y = np.array([list("aabb")]).T, np.array([1.0, 3.0, 5.0, 9.0])
    >>> encoder = ImpactEncoder(smooth=0.0, target_type="continuous").fit(X, y)
    >>> encoder.get_feature_names_out(["shop"]).tolist()
    ['shop_impact', 'shop_deviation', 'shop_prevalence']
    >>> encoder.transform([["a"], ["b"], ["never seen"]]).round(3).tolist()
    [[-2.5, 1.415, 0.5], [2.5, 2.829, 0.5], [0.0, 0.0, 0.0]]
    """

    parts: Sequence[str] = ("impact", "deviation", "prevalence")
    smooth: Smooth | ByKey[Smooth] = None
    cv: CrossFitting | ByKey[CrossFitting] = 5
    _: KW_ONLY
    target_type: TargetType | Sequence[TargetType] = "auto"
    shuffle: bool = True
    random_state: Seed = 0

    def _parameters(self) -> Parameters:
        def read(smooth: Any, name: str) -> Impact:
            # vtreat's own smoothing, unless the user asks for another one.
            pooling = smoothing.PartialPooling() if smooth is None else smoothing.resolve(smooth, name, self._owner)
            return Impact(pooling, self.parts)

        statistic, named = read_each(self.smooth, None, read, "smooth")
        return Parameters.of(self, statistic, by_key=named, **read_schemes(self))
