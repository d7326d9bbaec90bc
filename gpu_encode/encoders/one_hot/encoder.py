"""OneHotEncoder: a column of zeros and ones for each category."""

from typing import Any

import numpy as np
from sklearn.utils import Tags

from cpu_fallback.types import Array
from gpu_encode.encoders.one_hot import OneHot
from gpu_encode.encoders.one_hot.calls import OneHotCalls
from gpu_encode.encoders.one_hot.containers import check_form
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.formulas.one_hot import listed


class OneHotEncoder(OneHotCalls):
    """Encode categories as columns of zeros and ones, one for each category.

    A superset of OneHotEncoder of scikit-learn 1.9: the same parameters, columns, names and words of errors; and any
    kind of table, several of them, weights, joint keys, `partial_fit`, `merge`, `save` and GPUs besides.  The target
    plays no part, so nothing can leak, and `fit_transform` gives what `transform` gives.

    Parameters
    ----------
    categories : "auto" or list, default="auto"
        "auto": the values of the training rows.  A list: one list of values per encoded column; others are unknown.
    drop : {"first", "if_binary"} or list, optional
        Category of each column that gets none: the first, the first of two, or those listed, one per encoded column
        (a tuple of a joint key).  A dropped category is a row of zeros.
    sparse_output : bool, default=True
        Give a CSR matrix, of SciPy on the host and of CuPy in a GPU's memory; else a table of X's kind.
    dtype : dtype, default="float64"
        Of the output; any type of numbers, or bool.
    handle_unknown : {"error", "ignore", "infrequent_if_exist", "warn"}, default="error"
        What becomes of values that fit did not see: refused, a row of zeros, or like infrequent ones, where there are
        any ("warn" says so).  Where a category is dropped, which looks like them, a warning says so in any case.
    min_frequency : int or float, optional
        Categories of less weight (rows, without weights) are infrequent, and share one column, the last; a float is a
        share of all rows.
    max_categories : int, optional
        Most columns of each column of X, before one is dropped, that of the infrequent categories among them.
    feature_name_combiner : "concat" or callable, default="concat"
        Gives the name of a column by the names of the column of X and of the category: joined by "_", or what the
        callable gives.  Categories of joint keys are tuples, which "concat" joins by "_x_".
    handle_missing : {"category", "zero", "error"}, default="category"
        None, NaN, pandas.NA, NaT and Arrow null are one and the same missing value: a category of its own, the last
        one; a row of zeros; or refused.
    columns : list, optional
        Names (or positions) of the columns to encode; a tuple is a joint key.  Others pass through, which only tables
        have a place for: sparse_output=False.  None: every column.
    device : {"auto", "cpu", "cuda"}, default="auto"

    Attributes
    ----------
    categories_ : list of ndarray of shape (n_categories,)
        Values of each encoded column, a missing one last; tuples of joint keys.
    drop_idx_ : ndarray of shape (n_encoded,), or None
        Position of the dropped category of each encoded column, None where none is: objects.
    infrequent_categories_ : list of ndarray
        Infrequent categories of each encoded column, None where there are none.
    encodings_ : list of int64 ndarray of shape (n_categories,)
        Column of each category among those of its column of X, -1 where it is dropped.
    device_ : {"cpu", "cuda"}
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only where X had string column names.

    See Also
    --------
    TargetEncoder : Columns, weights, pieces, states and devices mean the same there.

    Notes
    -----
    What columns there are follows from all rows of the fit, and is settled with the parameters of that time; only
    `sparse_output`, `dtype` and `feature_name_combiner` are read at `transform`.  Rows of weight zero count for
    nothing: a value that only they have is unknown.

    scikit-learn's own tests of its encoder pass, but for those in which None and NaN are two categories, a missing
    value is not the last of given categories, given numbers have to be sorted, `categories_` have the type of the array
    (here text is of objects, and numbers among objects are numbers), bytes are taken for text, or a series of pandas
    is refused in other words.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import OneHotEncoder
    >>> X = np.array([["oak"], ["elm"], ["oak"], ["yew"]], dtype=object)
    >>> encoder = OneHotEncoder(handle_unknown="ignore").fit(X)
    >>> encoder.transform([["yew"], ["fir"]]).toarray().tolist()
    [[0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    >>> OneHotEncoder(max_categories=2, sparse_output=False).fit(X).get_feature_names_out(["tree"]).tolist()
    ['tree_oak', 'tree_infrequent_sklearn']
    """

    def __init__(
        self,
        *,
        categories: Any = "auto",
        drop: Any = None,
        sparse_output: bool = True,
        dtype: Any = "float64",
        handle_unknown: str = "error",
        min_frequency: Any = None,
        max_categories: int | None = None,
        feature_name_combiner: Any = "concat",
        handle_missing: str = "category",
        columns: Any = None,
        device: str = "auto",
    ) -> None:
        self.categories = categories
        self.drop = drop
        self.sparse_output = sparse_output
        self.dtype = dtype
        self.handle_unknown = handle_unknown
        self.min_frequency = min_frequency
        self.max_categories = max_categories
        self.feature_name_combiner = feature_name_combiner
        self.handle_missing = handle_missing
        self.columns = columns
        self.device = device

    @property
    def categories_(self) -> list[Array]:
        """Values of each encoded column, a missing value last; tuples for joint keys."""
        return [entry.values for entry in self._of_fit().entries]

    @property
    def drop_idx_(self) -> Array | None:
        """Position of the dropped category of each encoded column."""
        columns = self._of_fit()
        if columns.statistic.drop is None:
            return None
        return np.array([entry.drop_index for entry in columns.entries], dtype=object)

    @property
    def infrequent_categories_(self) -> list[Array | None]:
        """Infrequent categories of each encoded column."""
        return [entry.values[entry.rare] if entry.has_rare else None for entry in self._of_fit().entries]

    @property
    def encodings_(self) -> list[Array]:
        """Column of each category among those of its column of X, -1 where it is dropped."""
        return [entry.columns for entry in self._of_fit().entries]

    def _options(self) -> Parameters:
        drop, missing = listed(self.drop), self.handle_missing
        options = Parameters(
            owner=type(self).__name__,
            statistic=OneHot(drop, self.min_frequency, self.max_categories, self.handle_unknown, missing),
            categories=self.categories,
            columns=self.columns,
            as_unseen="zero",
            # What is refused is refused here, where the values are known and can be named.
            handle_unknown="zero",
            handle_missing="category" if missing == "category" else "zero",
            device=self.device,
        )
        options.check()
        check_form(self.sparse_output, self.dtype, self.feature_name_combiner)
        return options

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags
