"""The calls of OneHotEncoder: the sequence of every encoder, but for matrices of zeros and ones."""

from typing import Any

from sklearn.utils.validation import check_is_fitted

from cpu_fallback.types import Array
from gpu_encode import ops
from gpu_encode.encoders.base import Encoder, check_unique, own_names
from gpu_encode.encoders.one_hot import OneHot, OneHotColumns, containers, original
from gpu_encode.encoders.one_hot.matrices import dense
from gpu_encode.encoders.one_hot.rows import places_of, refuse_at_fit
from gpu_encode.fitting.columns import ColumnMap, locate_columns
from gpu_encode.fitting.engines import dispatch
from gpu_encode.fitting.fit import FitContext, prepare, sum_rows
from gpu_encode.fitting.inputs import Inputs
from gpu_encode.fitting.model import Model
from gpu_encode.frames import Frame, Pieces
from gpu_encode.ops import Ops
from gpu_encode.schemes import plans
from gpu_encode.sums.category_sums import CategorySums


class OneHotCalls(Encoder, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Fit as every encoder does; give matrices, sparse ones too, and take them back.

    scikit-learn's wrapper for `set_output` is left out here, as it is there.
    """

    _columns: OneHotColumns
    sparse_output: bool
    dtype: Any
    feature_name_combiner: Any

    @containers.container_checked
    @dispatch
    def fit_transform(self, X: Any, y: Any = None, *, sample_weight: Any = None, groups: Any = None) -> Any:
        """Learn the categories, and give the columns of these rows, as `transform` does.

        Parameters
        ----------
        X, y, sample_weight, groups
            As in `fit`; y and groups play no part.

        Returns
        -------
        CSR matrix or table of shape (n_rows, n_columns), or list of them
            Of several tables one for each.

        Examples
        --------
        >>> from gpu_encode import OneHotEncoder
        >>> OneHotEncoder(drop="if_binary", dtype=int).fit_transform([["a", 1], ["b", 2], ["a", 3]]).toarray().tolist()
        [[0, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]]
        """
        context = prepare(self._options(), Inputs(X, y, sample_weight, groups))
        containers.check_passed(self.sparse_output, context.columns, context.selection.passed)
        self._keep(context, sum_rows(context, plans.all_rows()))
        return self._matrix([own.codes for own in context.categories], context.columns, context.rows.ops)

    @containers.container_checked
    @dispatch
    def transform(self, X: Any) -> Any:
        """Give the columns of new rows.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns), or collection of tables
            Of any kind, whatever kind the encoder was fitted on.

        Returns
        -------
        CSR matrix or table of shape (n_rows, n_columns), or list of them

        Raises
        ------
        ValueError
            If a fitted column is missing or holds another kind of values, and for the policies "error".

        Examples
        --------
        >>> from gpu_encode import OneHotEncoder
        >>> OneHotEncoder(sparse_output=False).fit([["a"], ["b"]]).transform([["b"], ["a"]]).tolist()
        [[0.0, 1.0], [1.0, 0.0]]
        """
        check_is_fitted(self, "_model")
        given, model = Inputs(X), self._model
        self._check_names(given, model.selection, reset=False)
        place = locate_columns(given.frame, model.selection, model.feature_names, model.n_features)
        containers.check_passed(self.sparse_output, place, model.selection.passed)
        backend = ops.resolve(given.frame.n_rows, given.device(self.device))
        keyed = zip(model.keys, model.rules, strict=True)
        codes = [key.lookup(place, backend, rule.missing == "category") for key, rule in keyed]
        return self._matrix(codes, place, backend)

    def inverse_transform(self, X: Any) -> Array:
        """Give the categories that columns stand for, as scikit-learn does.

        Parameters
        ----------
        X : CSR matrix, array or frame of shape (n_rows, n_columns)
            The encoded columns alone.

        Returns
        -------
        ndarray of shape (n_rows, n_encoded)
            The category whose number is largest, the first of equal ones; infrequent ones are "infrequent_sklearn".  A
            row of zeros is the dropped category, or None, or an error where every category has a column.

        Examples
        --------
        >>> from gpu_encode import OneHotEncoder
        >>> encoder = OneHotEncoder(drop="first").fit([["a"], ["b"], ["c"]])
        >>> encoder.inverse_transform([[0, 1], [0, 0]]).ravel().tolist()
        ['c', 'a']
        """
        return original(self._of_fit(), X)

    def _of_fit(self) -> OneHotColumns:
        self._fitted()
        return self._columns

    def _keep(self, context: FitContext, sums: list[list[CategorySums]], known: Model | None = None) -> None:
        statistic = context.rules[0].statistic
        assert isinstance(statistic, OneHot)
        keyed = [(own.key, own.codes) for own in context.categories]
        refuse_at_fit(statistic, keyed, context.columns, context.rows.ops)
        super()._keep(context, sums, known)

    def _names_of(self, model: Model) -> list[str]:
        # Two columns of one name matter only in a frame; what does not fit the parameters is found before all is kept.
        OneHotColumns.of(model)
        return []

    def _publish(self, model: Model) -> None:
        self._columns = OneHotColumns.of(model)
        super()._publish(model)

    def _encoded_names(self, names: Any) -> list[str]:
        inputs = [entry.name for entry in self._model.selection.named([str(name) for name in names]).entries]
        return self._columns.names(inputs, containers.combiner(self.feature_name_combiner))

    def _matrix(self, codes: list[Array], place: ColumnMap, backend: Ops) -> Any:
        """Put zeros and ones together in the container that the user wants."""
        columns, dtype = self._columns, containers.checked_type(self.dtype)
        places = places_of(columns, self._model.keys, codes, place, backend)
        if self.sparse_output:
            return containers.sparse_tables(place.frame, places, columns.n_columns, dtype, backend)
        matrix = dense(places, columns.n_columns, dtype, backend)
        if not columns.n_columns and not self._model.selection.passed and not containers.has_names(place.frame, self):
            return containers.cut(place.frame, matrix)
        return self._assemble(place.frame, [matrix[:, i] for i in range(columns.n_columns)], place)

    def _assemble(self, frame: Frame | Pieces, arrays: list[Array], place: ColumnMap) -> Any:
        if containers.has_names(frame, self):
            names = self._model.feature_names or [f"x{i}" for i in range(self._model.n_features)]
            check_unique(self._encoded_names(own_names(frame, self._model) or names))
        return super()._assemble(frame, arrays, place)
