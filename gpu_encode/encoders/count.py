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
        "count": the summed weight n of the category's rows, or without weights their number.  "frequency": n / N, where
        N is the summed weight of all rows.  "log": log(1 + n).
    categories : "auto" or list, default="auto"
        "auto": the values of the training rows.  A list: one list of values per encoded column; all other
        values are unknown, and so are missing values if the list does not hold None.
    columns : list, "categorical", selector, pattern or function, optional
        Names (or positions) of the columns to encode; a tuple is a joint key.  Others pass through.  None: every
        column.
    handle_unknown : {"zero", "nan", "error"}, float or dict, default="zero"
        Encoding of values that fit did not see; "error" refuses them.
    handle_missing : {"category", "zero", "nan", "error"}, default="category"
        None, NaN, pandas.NA, NaT and Arrow null are one and the same missing value.  "category": it is counted as a
        category.
    min_count : float, default=0
        Categories of less weight are treated as unseen.
    min_frequency : int or float, optional
        Categories of less weight are infrequent; a float is a share of all weight.
    max_categories : int, optional
        Largest number of categories with counts of their own; all infrequent ones together count as one.
    handle_infrequent : {"zero", "category"}, default="zero"
        "zero": infrequent categories are treated as unseen.  "category": they are counted together.
    indicators : bool or list of {"unseen", "missing"}, default=False
        Columns of 0 and 1 for each encoded column.  key_unseen is 1 if no training row has the category.  key_missing
        is 1 if the row has no value in the column, or in any column of a joint key, whatever `handle_missing` says.
        True: ["unseen"].
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
        Names of the columns of X at fit; the attribute exists only if all of them are strings.

    See Also
    --------
    TargetEncoder : Columns, policies, weights, pieces, states and devices mean the same there.

    Notes
    -----
    There is no parameter `scale`: ``kind="log"`` is the scale "log1p" of `TargetEncoder`.

    References
    ----------
    category_encoders' CountEncoder(normalize=...) and feature-engine's CountFrequencyEncoder; both take no weights.

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
