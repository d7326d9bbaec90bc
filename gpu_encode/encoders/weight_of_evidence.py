"""WeightOfEvidenceEncoder: categories become log ratios of their shares of the positive and the other rows."""

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

    A category with summed weight n, s of it of the positive label, gets
    ``log(((s + r) / (S + 2r)) / (((n - s) + r) / ((N - S) + 2r)))``, where N and S are those of all visible rows: all
    but the row's own fold, all other rows, or all earlier ones, as the scheme `cv` has it.

    Parameters
    ----------
    cv : int, None, scheme, splitter, iterable, str, array or dict, default=5
        Who may look at whom in training, as in `TargetEncoder`.
    regularization : float or dict, default=1.0
        The r above, in rows, from 0 to 1e290.  At 0 a category of one label alone gets inf or -inf, which most models
        refuse.  A dict has one for each column or joint key that it names; others get 1.
    categories : "auto" or list, default="auto"
        "auto": the values of the training rows.  A list: one list of values per encoded column; others are unknown,
        a missing value too where None is not among them.
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
        Categories of less visible weight, or of less than this share of it, are infrequent.
    max_categories : int, optional
        Most categories with evidence of their own, the infrequent ones together counting as one: the others, by what is
        visible, are infrequent.  Both need a scheme with folds.
    handle_infrequent : {"zero", "category"}, default="zero"
        Infrequent categories are as if unseen, or one category together.
    indicators : bool or list of {"unseen", "missing"}, default=False
        0/1 columns per encoded column, key_unseen and key_missing: no visible row has this category; the row has no
        value, of a joint key in any of its columns, whatever `handle_missing`.  True: ["unseen"].
    device : {"auto", "cpu", "cuda"}, default="auto"
        As in `TargetEncoder`.
    dtype : {"float64", "float32"}, default="float64"
        As in `TargetEncoder`.
    missing_target : {"error", "keep"}, default="error"
        Rows without a target (None, NaN).  "keep": their categories are known and they are encoded, and they count
        nowhere: neither in n, in the prior, nor in `min_count`.  They have a fold, or a rank in an order, as other
        rows do, and get what the rows that they see say.
    target_type : {"auto", "binary", "multiclass"} or list, default="auto"
        Of two labels the one that sorts last is positive.  Of more labels each is set against all others, in a column
        of its own.  A list gives one kind per target.
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
        One a column of encodings, in the order of `encodings_`: the sum over the categories of (p - q) * log(p / q),
        with p and q the shares above, within 8 ulp; the logarithms, which are the encodings, are within 4 ulp, or
        within 2**-100.  Below 0.02 a column tells next to nothing.
    target_type_ : str or list of str
        "binary" or "multiclass", of each target.
    classes_ : ndarray of shape (n_classes,), or a list of them
        Sorted labels.
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
    Without regularization and with one label among all visible rows, shares are 0 / 0, and the encoding is 0.
    category_encoders' WOEEncoder gives 0 to categories of one row; here ``min_count=2`` does that.

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
