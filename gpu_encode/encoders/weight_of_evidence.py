"""WeightOfEvidenceEncoder: a category's share of the positive rows over its share of all others, as a logarithm."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal, cast

import numpy as np

from cpu_fallback.types import Array
from gpu_encode.encoders.scheme import SchemeEncoder
from gpu_encode.fitting.parameters import Parameters, read_each, read_schemes
from gpu_encode.formulas.encoding_rule import SeenSums
from gpu_encode.formulas.evidence import Evidence
from gpu_encode.schemes.folds import CrossFitting
from gpu_encode.seam.ops import host
from gpu_encode.words.annotations import ByKey, Seed


@dataclass(eq=False, repr=False)
class WeightOfEvidenceEncoder(SchemeEncoder):
    """Encode categories by their weight of evidence for the positive label, without leaking the target.

    Let n be the summed weight of a category's visible rows, s the part of it with the positive label, and N and S the
    same numbers for all visible rows.  The category gets
    ``log(((s + r) / (S + 2r)) / (((n - s) + r) / ((N - S) + 2r)))``.  The scheme `cv` decides which rows a training row
    sees: those of the other folds, all other rows, or all earlier rows.

    Parameters
    ----------
    cv : int, None, scheme, splitter, iterable, str, array or dict, default=5
        Who may look at whom in training, as in `TargetEncoder`.
    regularization : float or dict, default=1.0
        The r above, in rows, from 0 to 1e290.  With 0, a category with rows of only one label gets inf or -inf, which
        most models refuse.  A dict has one for each column or joint key that it names; all others get 1.
    categories : "auto" or list, default="auto"
        "auto": the values of the training rows.  A list: one list of values per encoded column; all other
        values are unknown, and so are missing values if the list does not hold None.
    columns : list, "categorical", selector, pattern or function, optional
        Names (or positions) of the columns to encode; a tuple is a joint key.  Others pass through.  None: every
        column.
    handle_unknown : {"zero", "nan", "error"}, float or dict, default="zero"
        Encoding of values that no visible row has: 0 is no evidence.  "error" refuses values that fit did not see.
    handle_missing : {"category", "zero", "nan", "error"}, default="category"
        None, NaN, pandas.NA, NaT and Arrow null are one and the same missing value.
    min_count : float, default=0
        Categories of less visible weight are treated as unseen.
    min_frequency : int or float, optional
        Categories of less visible weight are infrequent; a float is a share of all visible weight.
    max_categories : int, optional
        Largest number of categories with encodings of their own; all infrequent ones together count as one.  The
        categories with the least visible weight become infrequent.  `min_frequency` and `max_categories` need a scheme
        with folds.
    handle_infrequent : {"zero", "category"}, default="zero"
        "zero": infrequent categories are treated as unseen.  "category": together they are one category.
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
    target_type : {"auto", "binary", "multiclass"} or list, default="auto"
        If there are two labels, the one that sorts last is positive.  If there are more, each has a column of its own,
        in which it is positive and all others are not.  A list gives one kind per target.
    shuffle : bool, default=True
        False makes the folds of an integer `cv` contiguous.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the folds of an integer `cv`.

    Attributes
    ----------
    categories_ : list of ndarray of shape (n_categories,)
        Distinct values of each column, as `TargetEncoder` has them.
    encodings_ : list of float64 ndarray of shape (n_categories,)
        Encoding of each category: by column, then target, then class, then fold of blow-up columns.
    information_value_ : float64 ndarray of shape (n_codes,)
        Information value of each column of encodings, in the order of `encodings_`: the sum over the categories of
        (p - q) * log(p / q), where p and q are the two shares of the ratio above.  Its error is at most 8 ulp; that
        of the logarithms, which are the encodings, is at most 4 ulp or 2**-100.  A column with less than 0.02 says
        almost nothing about the target.
    target_type_ : str or list of str
        "binary" or "multiclass", for each target.
    classes_ : ndarray of shape (n_classes,), or a list of them
        Sorted labels.
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
    Without regularization, and if all visible rows have one label, shares are 0 / 0, and the encoding is 0.
    category_encoders' WOEEncoder gives 0 to categories of one row; here ``min_count=2`` does so.

    References
    ----------
    Good, "Probability and the Weighing of Evidence", 1950; Siddiqi, "Credit Risk Scorecards", 2006;
    category_encoders' WOEEncoder(regularization=...).

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import WeightOfEvidenceEncoder
    >>> X, y = np.array([["a"], ["a"], ["b"], ["b"]]), [1, 0, 0, 0]
    >>> encoder = WeightOfEvidenceEncoder().fit(X, y)
    >>> encoder.transform([["a"], ["b"], ["never seen"]]).round(4).ravel().tolist()
    [0.5108, -0.5878, 0.0]
    >>> encoder.information_value_.round(4).tolist()
    [0.293]
    """

    cv: CrossFitting | ByKey[CrossFitting] = 5
    regularization: float | ByKey[float] = 1.0
    _: KW_ONLY
    target_type: Literal["auto", "binary", "multiclass"] | Sequence[Literal["auto", "binary", "multiclass"]] = "auto"
    shuffle: bool = True
    random_state: Seed = 0
    handle_unknown: Literal["zero", "nan", "error"] | float | ByKey[Literal["zero", "nan", "error"] | float] = "zero"
    handle_infrequent: Literal["zero", "category"] = "zero"

    @property
    def information_value_(self) -> Array:
        """Information value of each column of encodings."""
        model = self._fitted()
        per_output = []
        for per_target, rule in zip(model.statistics, model.rules, strict=True):
            for statistics in per_target:
                seen = SeenSums(statistics, None, rule, host(statistics.accumulators.size))
                total = seen.total()
                leaf, counted, _ = seen.split_infrequent(total, seen.moments())
                values = cast(Evidence, rule.statistic).information(leaf, counted, total)
                per_output.append(values.T.ravel())
        return np.concatenate(per_output)

    def _parameters(self) -> Parameters:
        scheme = read_schemes(self)
        evidence, named = read_each(self.regularization, 1.0, lambda r, _: Evidence(r), "regularization")
        keys = {"by_key": named, "keyed_parameter": "regularization"}
        return Parameters.of(self, evidence, as_unseen="zero", **keys, **scheme)
