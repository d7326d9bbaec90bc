"""OneHotEncoder: a column of zeros and ones for each category."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from cpu_fallback.types import Array
from gpu_encode.encoders.base import Encoder, check_unique, has_names, output_names, wanted_container
from gpu_encode.encoders.one_hot.columns import OneHotColumns, combiner
from gpu_encode.encoders.one_hot.inverse import original
from gpu_encode.encoders.one_hot.matrices import (
    Ones,
    check_container,
    check_form,
    check_passed,
    checked_type,
    cut,
    dense,
    sparse_tables,
)
from gpu_encode.encoders.one_hot.rows import OneHotModel, refuse_at_fit
from gpu_encode.fitting.columns import ColumnMap
from gpu_encode.fitting.fit import FitContext, sum_rows
from gpu_encode.fitting.model import Model
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.formulas.one_hot import OneHot, list_dropped
from gpu_encode.sums.category_sums import CategorySums
from gpu_encode.tables.frames import Frame, Pieces
from gpu_encode.words.annotations import ByKey, Categories, Columns, Device, NumberType, Table

if TYPE_CHECKING:
    from gpu_encode.encoders.one_hot.row_encoder import OneHotRowEncoder


@dataclass(eq=False, repr=False)
class OneHotEncoder(Encoder):
    """Encode categories as columns of zeros and ones, one for each category.

    A superset of OneHotEncoder of scikit-learn 1.9, with the same parameters, columns, names and error messages.  It
    also takes any kind of table, several tables, weights and joint keys, has `partial_fit`, `merge` and `save`, and
    runs on GPUs.  The target plays no part, so nothing can leak, and `fit_transform` gives what `transform` gives.

    Parameters
    ----------
    categories : "auto" or list, default="auto"
        "auto": the values of the training rows.  A list: one list of values per encoded column; all other
        values are unknown, and so are missing values if the list does not hold None.
    drop : {"first", "if_binary"}, list or dict, optional
        Which category of each column gets no output column, so that it is a row of zeros.  "first": the first one.
        "if_binary": the first one, if there are two.  A list: one category per encoded column (a tuple for a joint
        key).  A dict has a category for each column or joint key that it names; all others keep every category.
    sparse_output : bool, default=True
        True gives a CSR matrix: SciPy's on the host, CuPy's in a GPU's memory.  False gives a table of X's kind.
    dtype : dtype, default="float64"
        Type of the output: any type of numbers, or bool.
    handle_unknown : {"error", "ignore", "infrequent_if_exist", "warn"}, default="error"
        The encoding of values that fit did not see.  "error" refuses such values.  "ignore": a row of zeros.
        "infrequent_if_exist": the column of the infrequent categories, or a row of zeros if there are none.  "warn" is
        the same with a warning.  If a category is dropped, unknown values may look like it, and a warning always says
        so.
    min_frequency : int or float, optional
        Categories of less weight (without weights: of fewer rows) are infrequent, and share the last column; a float is
        a share of all rows.
    max_categories : int, optional
        Largest number of output columns for each encoded column, before one is dropped; the column of the infrequent
        categories is one of them.
    feature_name_combiner : "concat" or callable, default="concat"
        Names an output column.  "concat" joins the name of the column of X and the category by "_"; a callable is given
        these two and returns the name.  Categories of joint keys are tuples, whose values "concat" joins by "_x_".
    handle_missing : {"category", "zero", "error"}, default="category"
        None, NaN, pandas.NA, NaT and Arrow null are one and the same missing value.  "category": it is a category of
        its own, the last one.  "zero": it is a row of zeros.  "error" refuses it.
    columns : list, "categorical", selector, pattern or function, optional
        Names (or positions) of the columns to encode; a tuple is a joint key.  Others pass through, but only into
        tables (sparse_output=False).  None: every column.
    device : {"auto", "cpu", "cuda"}, default="auto"
        As in `TargetEncoder`.

    Attributes
    ----------
    categories_ : list of ndarray of shape (n_categories,)
        Values of each encoded column, a missing value last; tuples for joint keys.
    drop_idx_ : ndarray of shape (n_encoded,), or None
        Position of the dropped category of each encoded column, or None if no category is dropped; an array of objects.
    infrequent_categories_ : list of ndarray
        Infrequent categories of each encoded column; None for a column without any.
    encodings_ : list of int64 ndarray of shape (n_categories,)
        Number of each category's column, counted within its column of X; -1 for a dropped category.
    device_ : {"cpu", "cuda"}
        Where the last fit ran.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Names of the columns of X at fit; the attribute exists only if all of them are strings.

    See Also
    --------
    TargetEncoder : Columns, weights, pieces, states and devices mean the same there.

    Notes
    -----
    `fit` decides which columns there are, from all rows and from the parameters; only `sparse_output`, `dtype` and
    `feature_name_combiner` are read at `transform`.  Rows of weight zero do not count: a value that only they have is
    unknown.

    scikit-learn's own tests of its encoder pass here, except for those in which None and NaN are two categories, a
    missing value is not the last of the given categories, given numbers have to be sorted, `categories_` have the type
    of the array (here text is of type object, and numbers in an array of objects are numbers), bytes are read as text,
    or a pandas Series is refused with another message.

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
    >>> OneHotEncoder(drop={0: "oak"}, sparse_output=False).fit(X).get_feature_names_out(["tree"]).tolist()
    ['tree_elm', 'tree_yew']
    """

    _: KW_ONLY
    categories: Categories = "auto"
    drop: Literal["first", "if_binary"] | Sequence[object] | ByKey[object] | None = None
    sparse_output: bool = True
    dtype: NumberType = "float64"
    handle_unknown: Literal["error", "ignore", "infrequent_if_exist", "warn"] = "error"
    min_frequency: float | None = None
    max_categories: int | None = None
    feature_name_combiner: Literal["concat"] | Callable[[str, object], str] = "concat"
    handle_missing: Literal["category", "zero", "error"] = "category"
    columns: Columns = None
    device: Device = "auto"
    if TYPE_CHECKING:
        # This only declares a type: a field would be a parameter.
        _model: OneHotModel
    _needs_target = False

    def _parameters(self) -> Parameters:
        drop, missing = list_dropped(self.drop), self.handle_missing
        by_key = drop if isinstance(drop, Mapping) else {}
        rules = self.min_frequency, self.max_categories, self.handle_unknown, missing
        parameters = Parameters(
            owner=type(self).__name__,
            statistic=OneHot(None if drop is by_key else drop, *rules),
            by_key={key: OneHot((category,), *rules) for key, category in by_key.items()},
            keyed_parameter="drop",
            categories=self.categories,
            columns=self.columns,
            as_unseen="zero",
            # This encoder refuses unknown values itself, where it knows them and can name them.
            handle_unknown="zero",
            handle_missing="category" if missing == "category" else "zero",
            device=self.device,
        )
        parameters.check()
        check_form(self.sparse_output, self.dtype, self.feature_name_combiner)
        return parameters

    def _check_container(self, X: Any) -> None:
        if self.sparse_output:
            check_container(wanted_container(self), X)

    def _fit_encodings(self, context: FitContext) -> Ones:
        check_passed(self.sparse_output, context.columns, context.selection.passed)
        self._keep(context, sum_rows(context))
        return self._model.ones([index.codes for index in context.categories], context.columns, context.rows.ops)

    def inverse_transform(self, X: Table) -> Array:
        """Give the category of each row, as scikit-learn does.

        Parameters
        ----------
        X : CSR matrix, array or frame of shape (n_rows, n_columns)
            Only encoded columns.

        Returns
        -------
        ndarray of shape (n_rows, n_encoded)
            The category whose column holds the largest number; of equal numbers, the first.  Infrequent categories are
            "infrequent_sklearn".  A row of zeros is the dropped category, or None if unknown or missing values may be
            rows of zeros; otherwise it raises ValueError.

        Examples
        --------
        >>> from gpu_encode import OneHotEncoder
        >>> encoder = OneHotEncoder(drop="first").fit([["a"], ["b"], ["c"]])
        >>> encoder.inverse_transform([[0, 1], [0, 0]]).ravel().tolist()
        ['c', 'a']
        """
        return original(self._columns, X)

    @property
    def categories_(self) -> list[Array]:
        """Values of each encoded column, a missing value last; tuples for joint keys."""
        return [of_key.values for of_key in self._columns.by_key]

    @property
    def drop_idx_(self) -> Array | None:
        """Position of the dropped category of each encoded column."""
        columns = self._columns
        if not columns.drops:
            return None
        return np.array([of_key.drop_index for of_key in columns.by_key], dtype=object)

    @property
    def infrequent_categories_(self) -> list[Array | None]:
        """Infrequent categories of each encoded column."""
        return [of_key.values[of_key.rare] if of_key.has_rare else None for of_key in self._columns.by_key]

    @property
    def encodings_(self) -> list[Array]:
        """Number of each category's column, counted within its column of X; -1 for a dropped category."""
        return [of_key.columns for of_key in self._columns.by_key]

    @property
    def _output_type(self) -> np.dtype[Any]:
        return checked_type(self.dtype)

    @property
    def _columns(self) -> OneHotColumns:
        self._fitted()
        return self._model.columns

    def _keep(self, context: FitContext, sums: list[list[CategorySums]], known: Model | None = None) -> None:
        statistic = context.rules[0].statistic
        assert isinstance(statistic, OneHot)
        keyed = [(index.key, index.codes) for index in context.categories]
        refuse_at_fit(statistic, keyed, context.columns, context.rows.ops)
        super()._keep(context, sums, known)

    def _check_model(self, model: Model) -> None:
        # Two columns of one name matter only in a frame, so names are not checked here.
        OneHotColumns.of(model)

    def _publish(self, model: Model) -> None:
        super()._publish(OneHotModel.of(model))

    def row_encoder(self, *, passed: bool = True, counts: bool = False) -> "OneHotRowEncoder":
        """Give an object that encodes one row at a time, in microseconds: for a web service, a stream, a loop.

        Parameters
        ----------
        passed : bool, default=True
            Whether columns that pass through come after the zeros and ones.
        counts : bool, default=False
            Whether rows, unknown and missing values are counted.

        Returns
        -------
        RowEncoder
            It gives the zeros and ones of a row as a list, even if `transform` gives a sparse matrix; all else is as
            in `TargetEncoder.row_encoder`.

        Examples
        --------
        >>> from gpu_encode import OneHotEncoder
        >>> encode = OneHotEncoder(handle_unknown="ignore").fit([["a", 1], ["b", 2]]).row_encoder()
        >>> encode([("b", 1), ("never seen", 2)])
        [[0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
        """
        # Most processes that fit never make a row encoder.
        from gpu_encode.encoders.one_hot.row_encoder import OneHotRowEncoder

        check_is_fitted(self, "_model")
        return OneHotRowEncoder(self, passed=passed, counts=counts)

    def _encoded_names(self, model: Model, names: Any) -> list[str]:
        return self._columns.names(model.selection.names(names), combiner(self.feature_name_combiner))

    def _assemble(self, frame: Frame | Pieces, arrays: Any, columns: ColumnMap, model: Model | None = None) -> Any:
        """Put ones and zeros together in the container that the user wants."""
        model = self._model if model is None else model
        dtype, passed = checked_type(self.dtype), model.selection.passed
        check_passed(self.sparse_output, columns, passed)
        if self.sparse_output:
            return sparse_tables(frame, arrays, dtype)
        matrix = dense(arrays, dtype)
        if has_names(frame, wanted_container(self)):
            check_unique(self._encoded_names(model, output_names(frame, model)))
        elif not matrix.shape[1] and not passed:
            return cut(frame, matrix)
        return super()._assemble(frame, [matrix[:, i] for i in range(matrix.shape[1])], columns)
