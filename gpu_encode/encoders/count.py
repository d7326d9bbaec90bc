"""CountEncoder: categories become the number of rows that have them."""

from dataclasses import KW_ONLY, dataclass
from typing import Literal

from gpu_encode.encoders.base import CategoryEncoder
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.formulas.counts import Counts
from gpu_encode.words.annotations import ByKey


@dataclass(eq=False, repr=False)
class CountEncoder(CategoryEncoder):
    """Encode categories by how often they occur in the training rows.

    The target plays no part, so nothing can leak, and `fit_transform` gives what `transform` gives.

    Parameters
    ----------
    kind : {"count", "frequency", "log"}, default="count"
        The summed weight n of the category's rows (their number, without weights); n / N with N of all rows; or
        log(1 + n).
    categories : "auto" or list, default="auto"
        "auto": the values of the training rows.  A list: one list of values per encoded column; others are unknown,
        a missing value too where None is not among them.
    columns : list, "categorical", selector, pattern or function, optional
        Names (or positions) of the columns to encode; a tuple is a joint key.  Others pass through.  None: every
        column.
    handle_unknown : {"zero", "nan", "error"}, float or dict, default="zero"
        Encoding of values that fit did not see; "error" refuses them.
    handle_missing : {"category", "zero", "nan", "error"}, default="category"
        None, NaN, pandas.NA, NaT and Arrow null are one and the same missing value: counted as a category, or not.
    min_count : float, default=0
        Categories of less weight are treated as unseen.
    min_frequency : int or float, optional
        Categories of less weight, or of less than this share of it, are infrequent.
    max_categories : int, optional
        Most categories with a count of their own, the infrequent ones together counting as one.
    handle_infrequent : {"zero", "category"}, default="zero"
        Infrequent categories are as if unseen, or counted together.
    indicators : bool or list of {"unseen", "missing"}, default=False
        0/1 columns per encoded column, key_unseen and key_missing: no training row has this category; the row has no
        value, of a joint key in any of its columns, whatever `handle_missing`.  True: ["unseen"].
    device : {"auto", "cpu", "cuda"}, default="auto"
        As in `TargetEncoder`.
    dtype : {"float64", "float32"}, default="float64"
        As in `TargetEncoder`.

    Attributes
    ----------
    categories_ : list of ndarray of shape (n_categories,)
        Distinct values of each column, as `TargetEncoder` has them.
    encodings_ : list of float64 ndarray of shape (n_categories,)
        Count, or share, of each category.
    device_ : {"cpu", "cuda"}
        Where the last fit ran.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Only where X had string column names.

    See Also
    --------
    TargetEncoder : Columns, policies, weights, pieces, states and devices mean the same there.

    Notes
    -----
    There is no `scale`, as `TargetEncoder` has one: ``kind="log"`` is its "log1p".

    References
    ----------
    category_encoders' CountEncoder(normalize=...), feature-engine's CountFrequencyEncoder, which count no weights.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import CountEncoder
    >>> X = np.array([["oak"], ["elm"], ["oak"], ["oak"]], dtype=object)
    >>> CountEncoder().fit_transform(X).ravel().tolist()
    [3.0, 1.0, 3.0, 3.0]
    >>> CountEncoder(kind="frequency").fit(X).transform([["oak"], ["yew"]]).ravel().tolist()
    [0.75, 0.0]
    """

    kind: Literal["count", "frequency", "log"] = "count"
    _: KW_ONLY
    handle_unknown: Literal["zero", "nan", "error"] | float | ByKey[Literal["zero", "nan", "error"] | float] = "zero"
    handle_infrequent: Literal["zero", "category"] = "zero"
    _needs_target = False

    def _parameters(self) -> Parameters:
        return Parameters.of(self, Counts(self.kind), as_unseen="zero")
