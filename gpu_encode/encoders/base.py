"""The methods of every encoder: fit, transform, partial_fit, merge and save; an engine may take over a call."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from importlib import import_module
from numbers import Integral
from operator import attrgetter
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags, estimator_html_repr
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import _check_feature_names, _check_feature_names_in, check_is_fitted

import gpu_encode
from cpu_fallback.types import Array
from gpu_encode import schemes
from gpu_encode.encoders.keys_in_turn import encode_in_turn, read_once
from gpu_encode.fitting.columns import ColumnMap, Selection
from gpu_encode.fitting.compatibility import check_rows_add_up, merge_models
from gpu_encode.fitting.drift import RowCounts
from gpu_encode.fitting.fit import FitContext, encode_rows, make_model, plan_keys, prepare, sum_rows
from gpu_encode.fitting.forgetting import forget
from gpu_encode.fitting.inputs import Inputs
from gpu_encode.fitting.model import Model, kept_columns, kept_outputs
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.formulas.encoding_rule import check_weights
from gpu_encode.seam import devices, ops
from gpu_encode.seam.loading import LOADING
from gpu_encode.sums.category_sums import CategorySums
from gpu_encode.sums.targets import NO_TARGET
from gpu_encode.tables import frames
from gpu_encode.tables.categories.keys import categories_as_numpy
from gpu_encode.tables.categories.vocabulary import as_python
from gpu_encode.tables.frames import Frame, Pieces
from gpu_encode.tables.frames.labels import as_numpy
from gpu_encode.words.annotations import ArrayLike, ByKey, Categories, Columns, Device, FloatType, Table, Vector
from gpu_encode.words.errors.parameters import KnownKeywords
from gpu_encode.words.terminal import printable_lines

if TYPE_CHECKING:
    from gpu_encode.encoders.row_encoder import RowEncoder
    from gpu_encode.fitting.memory_plan import MemoryPlan

# This is loaded now, while no process is forked, and not in the first call.
frames.load_what_arrays_need()

Method = TypeVar("Method", bound=Callable[..., Any])
# Parameters that a pickled state holds as pairs.
PAIRED = "_paired"
# Kinds of tables whose columns have no names.
ARRAYS = ("numpy", "cupy")
# The output is a table of the library of X, whatever scikit-learn is configured to give.
LIBRARY_OF_X = "input"
# Modules that take over the calls on tables of an engine; the first such call loads the module.  Each module has a
# function for every method that `dispatch` wraps, which gets the encoder and the arguments of the method.
ENGINES = {
    "dask": "gpu_encode.scale.dask",
    "spark": "gpu_encode.scale.engines.calls",
    "ray": "gpu_encode.scale.engines.calls",
}


def engine_of(X: Any) -> Any:
    """Give the module of the engine that holds a table; None if this process holds it."""
    name = frames.engine_holding(X)
    return None if name is None else import_module(ENGINES[name])


def dispatch(method: Method) -> Method:
    """Make a method of an encoder pass its calls to the engine that holds X, and explain a lack of GPU memory."""

    @wraps(method)
    def call(encoder: Any, X: Any, *vectors: Any, **named: Any) -> Any:
        if method.__name__ == "transform" and (vectors or "y" in named):
            raise TypeError("transform takes no y. For the encodings of rows to train on, call fit_transform(X, y).")
        engine = engine_of(X)
        if engine is not None:
            return getattr(engine, method.__name__)(encoder, X, *vectors, **named)
        with devices.explain_memory():
            return method(encoder, X, *vectors, **named)

    return cast(Method, call)


class Encoder(KnownKeywords, TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """The methods of every encoder; the docstrings of subclasses describe their parameters.

    scikit-learn's wrapper for `set_output` is not used: `_assemble` gives the container that the user asked for.  The
    wrapper would rename the columns of a frame that rightly lacks a scheme's column.
    """

    device: str
    _model: Model
    # Pickles of earlier releases have none.
    _origin: dict[str, Any] | None = None
    # The name in messages, if an estimator of another name made this encoder.
    _called: str | None = None

    def __init_subclass__(cls, **keywords: Any) -> None:
        # scikit-learn would wrap each method that a subclass defines, and its wrapper takes no list of tables.
        methods = {name: vars(cls)[name] for name in ("transform", "fit_transform") if name in vars(cls)}
        super().__init_subclass__(**keywords)
        for name, method in methods.items():
            setattr(cls, name, method)

    def _parameters(self) -> Parameters:
        raise NotImplementedError

    def _checked_parameters(self) -> Parameters:
        """Give the parameters of a call on rows in memory."""
        return self._parameters()

    @property
    def _owner(self) -> str:
        """The name in messages."""
        return self._called or type(self).__name__

    @property
    def _needs_target(self) -> bool:
        """Whether an encoder learns nothing from rows without a target."""
        return True

    def _check_container(self, X: Any) -> None:
        """Refuse containers that cannot hold the output, before any work is done."""

    def get_metadata_routing(self) -> Any:
        """Say which arguments scikit-learn's pipelines pass on: groups, if the scheme asks for them.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRequest

        Examples
        --------
        >>> from gpu_encode import GroupKFold, TargetEncoder
        >>> TargetEncoder(cv=GroupKFold(3)).get_metadata_routing().fit_transform.requests["groups"]
        True
        """
        routing = super().get_metadata_routing()
        if asks_for_groups(getattr(self, "cv", None)):
            for request in (routing.fit, routing.fit_transform):
                # A choice that the user made by `set_fit_request` still holds.
                if request.requests["groups"] is None:
                    request.add_request(param="groups", alias=True)
        return routing

    def _html_repr(self) -> str:
        """Show scikit-learn's diagram and, after fit, a summary of the model."""
        diagram = printable_lines(estimator_html_repr(self))
        if not hasattr(self, "_model"):
            return diagram
        # Few processes show anything, so this is loaded late.
        from gpu_encode.encoders.notebook import describe

        named = {"scheme": "cv", "target": "target_type_", "target mean": "target_mean_"}
        facts = {fact: getattr(self, name, None) for fact, name in named.items()}
        if isinstance(facts["scheme"], Integral):
            facts["scheme"] = f"{facts['scheme']} folds"
        return diagram + describe(self._model, facts)

    def __dask_tokenize__(self) -> Any:
        # For a dataclass Dask would read only the parameters: two fitted encoders of equal ones would be the same.
        return import_module(ENGINES["dask"]).tokenize(self)

    def __getstate__(self) -> dict[str, Any]:
        # Libraries that walk through a state, such as skops, make empty shells of Arrow's arrays and refuse tuples as
        # keys.
        state: dict[str, Any] = super().__getstate__()
        dicts = {name: value for name, value in state.items() if isinstance(value, dict)}
        paired = {name: list(value.items()) for name, value in dicts.items() if tuple in map(type, value)}
        listed = {"categories": as_python(state["categories"])} if "categories" in state else {}
        return state | listed | paired | ({PAIRED: list(paired)} if paired else {})

    def __setstate__(self, state: dict[str, Any]) -> None:
        paired = state.get(PAIRED, ())
        kept = {name: dict(value) if name in paired else value for name, value in state.items() if name != PAIRED}
        super().__setstate__(kept)

    @dispatch
    def fit(
        self, X: Table, y: Table | None = None, *, sample_weight: Vector | None = None, groups: Vector | None = None
    ) -> Self:
        """Learn the encodings of new rows.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns), or list, tuple, iterator or other collection of tables
            NumPy array, pandas, polars, Arrow or cuDF table.  Several tables, of any kinds, give the same bits as one
            table of all rows; they are held until the call ends.  If `cv` is an array, it has an entry for each row of
            all tables.  X may also be a frame of Dask or Spark, or a dataset of Ray; for Spark and Ray, y,
            `sample_weight` and `groups` are names of columns.
        y : array or table of shape (n_rows,) or (n_rows, n_targets)
            If X is several tables: one y for all rows, or a collection with one for each table.
        sample_weight : array of shape (n_rows,), optional
            Weights of at least zero; whole weights equal repeated rows.  As y, they are given for all rows or for each
            table.  A row of weight 0 adds nothing to any sum, but the encoder then knows its category and its class; a
            class has its columns even if all its rows have weight 0.
        groups : array of shape (n_rows,), optional
            Groups for a scheme that reads them.  As y, they are given for all rows or for each table.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For bad input; the encoder is then as it was.

        Examples
        --------
        >>> import numpy as np
        >>> from gpu_encode import TargetEncoder
        >>> encoder = TargetEncoder(smooth=0.0).fit([["a"], ["a"], ["b"]], [0, 1, 1], sample_weight=[1, 3, 1])
        >>> encoder.encodings_
        [array([0.75, 1.  ])]
        >>> pieces = [np.array([["a"], ["a"]]), np.array([["b"]])]
        >>> encoder.fit(pieces, [[0, 1], [1]], sample_weight=[1, 3, 1]).encodings_
        [array([0.75, 1.  ])]
        """
        self._learn_from(Inputs(X, y, sample_weight, groups))
        return self

    def _learn_from(self, inputs: Inputs) -> None:
        """Learn the encodings of new rows, and keep the model."""
        parameters = self._parameters()
        sums_alone = not parameters.partial_scheme
        context = prepare(parameters, inputs, sums_alone=sums_alone)
        sums = sum_rows(context, None if sums_alone else plan_keys(context, for_new_rows=True))
        check_weights(parameters.owner, context.rules, sums, context.rows.ops)
        self._keep(context, sums)

    @dispatch
    def fit_transform(
        self, X: Table, y: Table | None = None, *, sample_weight: Vector | None = None, groups: Vector | None = None
    ) -> Any:
        """Learn the encodings of new rows, and give those of the training rows: by the scheme, if a target is read.

        Parameters
        ----------
        X, y, sample_weight, groups
            As in `fit`.

        Returns
        -------
        table of shape (n_rows, n_outputs), or list of tables
            A table of X's kind, or the CSR matrix of `OneHotEncoder`: encoded columns, indicators, columns that pass
            through.  For several tables, a list with a table for each, of its kind and with its index; row numbers, and
            so folds and orders, run through all tables.

        Raises
        ------
        ValueError, TypeError
            For bad input; the encoder is then as it was.

        Warns
        -----
        UserWarning
            If the encodings leak (`Greedy`), if rows see no rows at all, or if a class has fewer rows than folds.

        Notes
        -----
        If a target is read, ``fit(X, y).transform(X)`` gives other numbers: there each row has seen its own target, and
        a model that is trained on these numbers trusts small categories too much.  Encoders that read no target give
        the same numbers in both ways.

        Examples
        --------
        >>> from gpu_encode import LeaveOneOut, TargetEncoder
        >>> encoder = TargetEncoder(smooth=None, cv=LeaveOneOut(), target_type="continuous")
        >>> encoder.fit_transform([["a"], ["a"], ["a"], ["b"]], [1.0, 2.0, 4.5, 3.0]).ravel().tolist()
        [3.25, 2.75, 1.5, 2.5]
        """
        self._check_container(X)
        context = prepare(self._checked_parameters(), Inputs(X, y, sample_weight, groups))
        return self._assemble(context.rows.frame, self._fit_encodings(context), context.columns)

    def _fit_encodings(self, context: FitContext) -> Any:
        """Learn from training rows, and give their encodings in the form that `_assemble` takes."""
        context.rows.inputs.warn_of_groups(context.parameters)
        arrays, sums = encode_rows(context, plan_keys(context))
        self._keep(context, sums)
        return arrays

    @dispatch
    def transform(self, X: Table) -> Any:
        """Give the encodings of new rows.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns), or collection of tables
            A table of any kind; it need not be the kind that the encoder was fitted on.

        Returns
        -------
        table of shape (n_rows, n_outputs), or list of tables
            A table of X's kind, or the CSR matrix of `OneHotEncoder`.

        Raises
        ------
        ValueError
            If a fitted column is missing or holds another kind of values, or if a policy "error" refuses a value.

        Warns
        -----
        UnseenWarning
            If fit has not seen most values of a column, or if X has a column that fit has not seen; it is left out.

        Examples
        --------
        >>> from gpu_encode import TargetEncoder
        >>> encoder = TargetEncoder(smooth=0.0).fit([["a"], ["a"], ["b"], ["b"]], [0, 1, 1, 1])
        >>> encoder.transform([["b"], ["never seen"]]).tolist()
        [[1.0], [0.75]]
        """
        self._check_container(X)
        if not hasattr(self, "_model"):
            check_is_fitted(self, "_model")
        inputs = Inputs(X)
        self._check_names(inputs, self._model.selection, reset=False)
        backend = ops.resolve(inputs.frame.n_rows, inputs.device(self.device))
        arrays, columns = self._model.encode(inputs.frame, backend, self._owner)
        return self._assemble(inputs.frame, arrays, columns)

    @dispatch
    def partial_fit(self, X: Table, y: Table | None = None, *, sample_weight: Vector | None = None) -> Self:
        """Learn from more rows, and keep everything that was learned from earlier rows.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`, several tables included.  The classes are those of all calls together; `cv` plays no part, but
            a scheme whose new rows see some rows alone, as `Holdout`, is refused.
            All weights of a call may be 0: encodings are NaN until a row weighs something.  With
            ``missing_target="keep"`` all targets of a call may be missing, even of the first call: `target_type_` is
            then "undecided" until a row has a target.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If columns, target or parameters differ from those of earlier calls; nothing is then changed.

        Examples
        --------
        >>> from gpu_encode import TargetEncoder
        >>> encoder = TargetEncoder(smooth=0.0)
        >>> encoder.partial_fit([["a"], ["b"]], [0, 1]).partial_fit([["a"], ["c"]], [1, 1]).encodings_
        [array([0.5, 1. , 1. ])]
        """
        known = self._model if hasattr(self, "_model") else None
        context = self._read_more("partial_fit", Inputs(X, y, sample_weight), known)
        self._keep(context, sum_rows(context), known)
        return self

    @dispatch
    def forget(self, X: Table, y: Table | None = None, *, sample_weight: Vector | None = None) -> Self:
        """Take rows out again: then the encoder is, to the last bit, as if it had never seen them.

        Sums are exact, so that `partial_fit` has an inverse: add yesterday, and take out the same day of last year.

        Parameters
        ----------
        X, y, sample_weight
            Rows that `fit` or `partial_fit` was given, in any order, with the same weights.  Some row has to remain.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the encoder cannot have learned the rows: it does not know a category or label, a category has fewer rows
            than are to be taken out, or the remaining sums are not possible for any rows.  Also if no rows would be
            left, or rows in which ``target_type="auto"`` might find another kind of target; and if new rows see only
            some rows, as under `Holdout`.  Nothing is then changed.

        Notes
        -----
        The encoder keeps sums, not rows: if rows were never learned but other rows have the same sums, no error is
        raised.  A category or a label is dropped with the last of its weight; rows of weight 0, and rows without a
        target, do not keep it.  The type of a column stays wide enough for all values that were ever seen.

        Examples
        --------
        >>> from gpu_encode import TargetEncoder
        >>> encoder = TargetEncoder(smooth=0.0).fit([["a"], ["b"], ["b"], ["c"]], [0, 1, 0, 1])
        >>> encoder.forget([["b"], ["c"]], [0, 1]).encodings_
        [array([0., 1.])]
        """
        check_is_fitted(self, "_model")
        context = self._read_more("forget", Inputs(X, y, sample_weight), self._model)
        model = forget(self._model, make_model(context, sum_rows(context)), context)
        self._check_model(model)
        self._publish(model)
        return self

    def _read_more(self, call: str, inputs: Inputs, known: Model | None) -> FitContext:
        """Read rows that are added to the model, or taken out of it."""
        parameters = self._parameters()
        check_rows_add_up(call, parameters, [] if known is None else [known])
        context = prepare(parameters, inputs, known, more_may_come=True)
        if known is not None:
            self._check_names(context.rows.inputs, known.selection, reset=False)
        return context

    def merge(self, *others: "Encoder") -> Self:
        """Join this encoder with others of the same parameters, as if it had learned all their rows.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If parameters, columns or targets differ, or rows that new rows see would be others in one fit, as under a
            random `Holdout`; nothing is then changed.

        Examples
        --------
        >>> from gpu_encode import TargetEncoder
        >>> monday = TargetEncoder(smooth=0.0).fit([["a"], ["b"]], [0, 1])
        >>> tuesday = TargetEncoder(smooth=0.0).fit([["a"], ["c"]], [1, 1])
        >>> monday.merge(tuesday).encodings_
        [array([0.5, 1. , 1. ])]
        """
        check_is_fitted(self, "_model")
        model = merge_models(self, self._model, others)
        self._check_model(model)
        self._publish(model)
        return self

    @property
    def categories_(self) -> list[Array]:
        """Values of each encoded column, a missing value last; tuples for joint keys."""
        return [categories_as_numpy(key) for key in self._fitted().keys]

    @property
    def encodings_(self) -> list[Array]:
        """Encoding of each category, for each column and class (and target)."""
        model = self._fitted()
        encodings = [
            np.append(
                table.values[: key.n_categories, view, output],
                table.values[-1:, view, output] if key.has_missing else [],
            )
            for key, per_target in zip(model.keys, model.tables, strict=True)
            for table in per_target
            for output in range(table.values.shape[2])
            for view in range(table.values.shape[1])
        ]
        if model.rules[0].drop is None:
            # Orders that are not averaged repeat columns of rows, and no encodings of categories.
            return [as_numpy(column) for column in replace(model, permutations=1).with_values(encodings)]
        kept = np.repeat(kept_outputs(model), model.statistics[0][0].n_views)
        return [values for values, has_column in zip(encodings, kept, strict=True) if has_column]

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Array:
        """Names of the output columns.

        Columns without a name, or with a name that is no string, are called x0, x1 and so on, by their position in X.
        Columns that pass through are named in the same way, in every kind of output that has names.

        Parameters
        ----------
        input_features : array of str, optional
            Names of the columns of X, if X had none at fit.

        Returns
        -------
        ndarray of str objects

        Examples
        --------
        >>> from gpu_encode import TargetEncoder
        >>> encoder = TargetEncoder(indicators=True).fit([["a"], ["b"]], [0, 1])
        >>> encoder.get_feature_names_out(["shop"]).tolist()
        ['shop', 'shop_unseen']
        """
        check_is_fitted(self, "_model")
        names = _check_feature_names_in(self, input_features)
        selection = self._model.selection
        encoded = self._encoded_names(self._model, names)
        return np.array([*encoded, *(names[i] for i in selection.passed)], dtype=object)

    @property
    def origin_(self) -> dict[str, str | float | None]:
        """Where the fitted encoder comes from, as saved files and exports tell it.

        ``library``, the version that has fitted the encoder, and ``day``, the day of the fit (UTC), or that of
        SOURCE_DATE_EPOCH; a model of an earlier release has None.  ``rows``: the number of training rows from which new
        rows learn, or their summed weight.  ``schema``: a fingerprint of the columns' names, their kinds of values and
        the targets.  ``learned``: a fingerprint of the categories and of the exact sums.  Fits to the same rows have
        the same fingerprints, in whatever order and chunks the rows come, and on each backend.
        """
        self._fitted()
        from gpu_encode.storage import origin

        return origin.origin_of(self)

    def save(self, path: "str | PathLike[str]") -> None:
        """Write the fitted encoder to one file; after an error there is no part of a file.

        Parameters
        ----------
        path : path
            The file; `gpu_encode.load` reads it back on any machine.

        Raises
        ------
        OSError
            If the file cannot be written; an older file of that name then remains unchanged.

        Examples
        --------
        >>> import tempfile
        >>> from gpu_encode import TargetEncoder, load
        >>> encoder = TargetEncoder(smooth=0.0).fit([["a"], ["b"]], [0, 1])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     encoder.save(f"{folder}/encoder")
        ...     load(f"{folder}/encoder").transform([["b"]]).tolist()
        [[1.0]]
        """
        # Files need every statistic, but an encoder needs only its own.
        from gpu_encode import storage

        storage.save(self, path)

    def row_encoder(self, *, passed: bool = True, counts: bool = False) -> "RowEncoder":
        """Give an object that encodes one row at a time, in microseconds: for a web service, a stream, a loop.

        Parameters
        ----------
        passed : bool, default=True
            Whether columns that pass through come after the encodings.  If False, a row needs only the columns that are
            encoded.
        counts : bool, default=False
            Whether ``counts`` of the row encoder has the numbers of rows, and of unknown and missing values of each
            key, for the metrics of a service.

        Returns
        -------
        RowEncoder
            Call it with a row, as a dict or a tuple, and get the list of the values that `transform` gives the row; a
            list of rows gives a list of such lists.  `names` has the names of the values.

        Notes
        -----
        The row encoder is made of plain dicts and keeps the present encodings: a later `partial_fit` does not change
        them.  A call changes nothing in it but its counts, so that threads may share it; it can be pickled.  It takes
        160 to 230 bytes for each category of a key, and 32 more for every encoding of the category but the first.

        Text, bytes, numbers of Python and NumPy, dates and times of Python and None are looked up.  The steps of
        `transform`, which take a hundred times as long, encode all other values: timestamps of pandas and NumPy,
        intervals, and types that are derived from these; unknown values below a rule of a hierarchy; and values that
        the policies refuse.  They also encode all rows of encoders whose values do not follow from single keys, such as
        `SpectralEncoder`.

        Examples
        --------
        >>> import pandas as pd
        >>> from gpu_encode import TargetEncoder
        >>> X = pd.DataFrame({"shop": ["a", "a", "b"], "size": [1, 2, 2]})
        >>> encode = TargetEncoder(smooth=0.0).fit(X, [0, 1, 1]).row_encoder()
        >>> encode({"shop": "a", "size": 2})
        [0.5, 1.0]
        >>> encode([("b", 1), ("never seen", None)])
        [[1.0, 0.0], [0.6666666666666666, 0.6666666666666666]]
        """
        # Most processes that fit never make a row encoder.
        from gpu_encode.encoders.row_encoder import RowEncoder

        check_is_fitted(self, "_model")
        return RowEncoder(self, passed=passed, counts=counts)

    @dispatch
    def drift(self, X: Table) -> list[dict[str, str | int | float]]:
        """Compare new rows with the training rows.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns), or collection of tables
            As in `transform`; if X is an iterator, each table is dropped before the next one is read.  The rows of
            Dask, Spark and Ray are counted where they lie.

        Returns
        -------
        list of dict
            Rows for `pandas.DataFrame` or `polars.DataFrame`, one for each key: ``key``, its name; ``rows``, their
            number; ``unknown``, the share of rows whose value fit has not seen; ``missing``, the share of rows without
            a value; ``psi``, the population stability index between the categories of the new rows and of the training
            rows that have a target; ``psi_by_chance``, the average of this index if nothing has moved.

        Raises
        ------
        ValueError
            If there are no rows, or if `transform` would raise it; but no policy refuses values here.
        TypeError
            If the encoder keeps no counts of categories.

        Notes
        -----
        PSI = sum of (q - p) ln(q / p) over the categories, unknown and missing values, where p is the share of the
        weight of the training rows, and q that of the new rows [1]_.  A cell that is empty on one side counts as half a
        row there.  The usual limits, 0.1 and 0.25, are meant for ten cells and many rows; with many categories and few
        rows, chance alone gives more: about (B - 1)(1/N + 1/M), for B cells, N and M rows [2]_.

        References
        ----------
        .. [1] Siddiqi, Credit Risk Scorecards, Wiley, 2006, chapter 9.
        .. [2] Yurdakul and Naranjo, Statistical properties of the population stability index, Journal of Risk Model
           Validation 14(4), 2020.

        Examples
        --------
        >>> from gpu_encode import CountEncoder
        >>> encoder = CountEncoder().fit([["oak"]] * 50 + [["elm"]] * 50)
        >>> (row,) = encoder.drift([["oak"]] * 20 + [["elm"]] * 70 + [["yew"]] * 10)
        >>> row["key"], row["rows"], row["unknown"], round(row["psi"], 3)
        ('x0', 100, 0.1, 0.627)
        """
        model, counts = self._counted(), RowCounts()
        # Each table of an iterator is dropped after use; a list may be one table of rows.
        tables: Any = X if hasattr(X, "__next__") else frames.tables_of(X) or [X]
        for table in tables:
            counts += self._count_rows(table)
        return counts.beside(model)

    def _counted(self) -> Model:
        """Give the model whose counts of categories are compared with those of new rows."""
        check_is_fitted(self, "_model")
        model = self._summed
        if model.selection.others:
            n_encoded = model.selection.n_encoded
            kept = {name: getattr(model, name)[:n_encoded] for name in ("keys", "statistics", "rules")}
            model = replace(model, selection=model.selection.without_others(), pairs=[], **kept)
        if not model.statistics or not all(rule.statistic.needs.sums for rule in model.rules):
            raise TypeError(f"Unknown values are those that training rows lack, and {self._owner} keeps no counts.")
        return model

    def _count_rows(self, X: Any) -> RowCounts:
        """Count the rows of one table by their categories."""
        inputs = Inputs(X)
        self._check_names(inputs, self._model.selection, reset=False)
        backend = ops.resolve(inputs.frame.n_rows, inputs.device(self.device))
        return RowCounts.of(self._counted(), inputs.frame, backend, self._owner)

    @property
    def _summed(self) -> Model:
        """The sums to which more rows are added."""
        return self._fitted()

    def _fitted(self) -> Model:
        if not hasattr(self, "_model"):
            raise AttributeError(f"This {type(self).__name__} is not fitted yet: call fit or fit_transform first.")
        return self._model

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def _check_names(self, inputs: Inputs, selection: Selection, *, reset: bool) -> None:
        """Remember the names of the columns, or compare them as scikit-learn does."""
        # scikit-learn takes a tenth of a small call only to see that the names are equal, or that there are none.
        labels, known = inputs.frame.labels, getattr(self, "feature_names_in_", None)
        same = known is None if labels is None else not reset and known is not None and labels == known.tolist()
        if not same and (reset or (selection.everything and not lacks_training_only(inputs.frame, self._model))):
            with LOADING:  # scikit-learn loads the support of a library at its first table
                _check_feature_names(self, table_with_names(inputs.tables[0], inputs.frame), reset=reset)
        if reset:
            self.n_features_in_ = inputs.frame.n_columns

    def _keep(self, context: FitContext, sums: list[list[CategorySums]], known: Model | None = None) -> None:
        """Store the whole result of a fit, or nothing."""
        model = make_model(context, sums)
        self._store(context, model if known is None else known.merge(model), is_first=known is None)

    def _store(self, context: FitContext, model: Model, *, is_first: bool = True) -> None:
        """Set the fitted attributes, once it is certain that the model can be kept."""
        self._check_model(model)
        if is_first:
            self._check_names(context.rows.inputs, context.selection, reset=True)
        self._publish(model)
        self.device_ = ops.device_of(context.rows.ops)

    def _adopt(self, model: Model, device: str) -> None:
        """Store all that was learned in parts; the names come from the model, since there is no table."""
        check_weights(type(self).__name__, model.rules, model.statistics, ops.host(0))
        self._check_model(model)
        if model.feature_names is not None:
            self.feature_names_in_ = np.array(model.feature_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.n_features_in_ = model.n_features
        self._publish(model)
        self.device_ = device

    def _check_model(self, model: Model) -> None:
        """Raise ValueError if the model cannot be kept; nothing has been changed yet."""
        model.check_indices()
        names = names_at_fit(model)
        check_unique([*self._encoded_names(model, names), *map(names.__getitem__, model.selection.passed)])

    def _encoded_names(self, model: Model, names: Any) -> list[str]:
        """Name the encoded columns, by the names of the columns of X."""
        return model.encoded_names(names)

    def _publish(self, model: Model) -> None:
        """Set the fitted attributes."""
        self._model = model
        # A build that has to be the same on each day says which day it is.
        epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
        seconds = int(epoch) if epoch.isdecimal() and len(epoch) < 12 else int(time.time())
        day = time.strftime("%Y-%m-%d", time.gmtime(seconds))
        self._origin = {"library": gpu_encode.__version__, "day": day}
        if model.targets[0].kind == NO_TARGET:
            return
        for rule in model.rules:
            if rule.statistic.names_targets:
                return
        one = len(model.targets) == 1
        self.target_type_ = model.targets[0].kind if one else [info.kind for info in model.targets]
        self.classes_ = model.targets[0].classes if one else [info.classes for info in model.targets]

    def _assemble(
        self, frame: Frame | Pieces, arrays: list[Array], columns: ColumnMap, model: Model | None = None
    ) -> Any:
        """Join columns in the container that the user wants; the model, by default the encoder's own, names them."""
        model = self._model if model is None else model
        selection, arrays = model.selection, self._finish(model, arrays)
        wanted = wanted_container(self)
        # An output of arrays is of the library of X, too, if X has no names: arrays stay on a GPU.
        kind = None if wanted == LIBRARY_OF_X or (wanted == "numpy" and not has_names(frame, LIBRARY_OF_X)) else wanted
        passed = [columns.positions[position] for position in selection.passed if position in columns.positions]
        if not has_names(frame, wanted):
            return frame.assemble([], arrays, passed, kind)
        called = output_names(frame, model)
        if frame.names is None:
            # scikit-learn refuses names if only some of them are strings.
            at_fit = {column: position for position, column in columns.positions.items()}
            frame = replace(frame, labels=[called[at_fit[column]] for column in range(frame.n_columns)])
        return frame.assemble(self._encoded_names(model, called), arrays, passed, kind)

    def _finish(self, model: Model, arrays: list[Array]) -> list[Any]:
        """Give the columns of the output, as values of their types."""
        return model.with_values(kept_columns(model, arrays))

    @property
    def _output_type(self) -> np.dtype[Any]:
        """Type of encodings that are numbers."""
        return np.dtype(self._model.dtype)

    def __sklearn_tags__(self) -> Tags:
        tags = accept_categories(super().__sklearn_tags__())
        tags.target_tags.required = self._needs_target
        tags.target_tags.multi_output = True
        tags.transformer_tags.preserves_dtype = []
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class CategoryEncoder(Encoder):
    """An encoder with the parameters that most encoders have; the docstring of `TargetEncoder` describes them."""

    categories: Categories = "auto"
    columns: Columns = None
    handle_unknown: (
        Literal["prior", "zero", "nan", "error"] | float | ByKey[Literal["prior", "zero", "nan", "error"] | float]
    ) = "prior"
    handle_missing: Literal["category", "prior", "zero", "nan", "error"] = "category"
    min_count: float = 0
    min_frequency: float | None = None
    max_categories: int | None = None
    handle_infrequent: Literal["prior", "zero", "category"] = "prior"
    indicators: bool | Sequence[Literal["unseen", "missing"]] = False
    device: Device = "auto"
    dtype: FloatType = "float64"

    def iter_fit_transform(
        self,
        X: Table,
        y: Table | None = None,
        *,
        n_keys: int = 32,
        sample_weight: Vector | None = None,
        groups: Vector | None = None,
    ) -> Iterator[tuple[Any, Self]]:
        """Give the result of `fit_transform`, a few keys at a time: for thousands of joint keys, of which few are kept.

        The encodings of all keys never stand in memory together, however many keys `columns` lists.  y, weights and
        groups are read once, and all keys have the same folds or order of rows.

        Parameters
        ----------
        X, y, sample_weight, groups
            As in `fit`, in the memory of this process.
        n_keys : int, default=32
            Number of keys at a time, at most.  Eight and more are encoded together, which is faster.

        Yields
        ------
        encodings : table of shape (n_rows, n_outputs)
            The training encodings of the next keys, and their indicators, as `fit_transform` of all keys gives them.
            Columns that pass through are left out.
        encoder : Encoder
            A new encoder with these keys as its `columns`, as `fit` leaves it.

        Raises
        ------
        ValueError, TypeError
            For bad parameters, targets, weights and groups, at the call; for values of a column that cannot be
            encoded, or that a policy refuses, at the table of the first key that has this column.

        Notes
        -----
        This encoder is not fitted.  To fit an encoder of the keys that you keep, set them as its columns:
        ``clone(encoder).set_params(columns=kept).fit(X, y)``.

        Examples
        --------
        >>> import pandas as pd
        >>> from gpu_encode import TargetEncoder, interactions
        >>> X = pd.DataFrame({"a": list("xyxyxyxy"), "b": list("uuvvuuvv"), "c": list("sssstttt")})
        >>> encoder = TargetEncoder(columns=interactions(["a", "b", "c"], 3), cv=2)
        >>> for encodings, fitted in encoder.iter_fit_transform(X, [0, 1, 1, 0, 0, 1, 1, 0], n_keys=4):
        ...     print(encodings.columns.tolist(), fitted.columns)
        ['a', 'b', 'c'] ['a', 'b', 'c']
        ['a_x_b', 'a_x_c', 'b_x_c', 'a_x_b_x_c'] [('a', 'b'), ('a', 'c'), ('b', 'c'), ('a', 'b', 'c')]
        """
        if engine_of(X) is not None:
            raise TypeError("iter_fit_transform takes rows in memory. Encode those of an engine by fit_transform.")
        if isinstance(n_keys, bool) or not isinstance(n_keys, (int, np.integer)) or n_keys < 1:
            raise ValueError(f"n_keys must be a whole number of at least 1. Got {n_keys!r} instead.")
        self._check_container(X)
        with devices.explain_memory():
            inputs = Inputs(X, y, sample_weight, groups)
            return encode_in_turn(self, *read_once(self._checked_parameters(), inputs), int(n_keys))

    def plan(
        self,
        X: Table | None = None,
        y: Table | None = None,
        *,
        rows: int | None = None,
        categories: Mapping[str, int] | None = None,
        classes: int | None = None,
        sample_weight: Vector | None = None,
        device_memory: int | str | None = None,
    ) -> "MemoryPlan":
        """Tell how much memory `fit_transform` takes at most, before anything is encoded.

        Parameters
        ----------
        X : table, optional
            The rows that are to be encoded.  Distinct values of each column are counted; joint keys are not made.
        y : array or table, optional
            Their target.  None: a target of two classes, unless `target_type` or `classes` say otherwise.
        rows : int, optional
            A number of rows, in place of X; a whole float such as 1e9 serves as well.
        categories : dict of str to int, optional
            With `rows`: numbers of distinct values of columns, by name.  A column that is not named counts as all
            distinct, and the plan says so.
        classes : int, optional
            Number of classes of the target, if y is not given; 1 for a target of numbers.
        sample_weight : array of shape (n_rows,), optional
            With X: the weights of the rows.  Sums of weights that have fractions take more digits.
        device_memory : int or str, optional
            Memory of a GPU for X, y and the call, in bytes or as "80GiB"; it need not be there.  None: the free memory
            where the call would run.

        Returns
        -------
        MemoryPlan
            It prints as a table.  `peak_bytes` is the sum of `code_bytes` (codes of columns), `work_bytes`,
            `table_bytes` (categories and their sums) and `output_bytes`; beside them are `rows`, `keys`, `cells`,
            `input_bytes` (X and y), `not_counted`, `free_bytes`, `device`, and `fits`.  `batches` has the names of the
            keys, in the fewest batches that fit one after the other; `parts` is the fewest parts of the rows that fit.
            `to_dict` gives all of it.

        Raises
        ------
        ValueError
            If neither X nor `rows` is given, if arguments contradict each other, or if `categories` names a column that
            neither a key nor the scheme reads.

        Notes
        -----
        The numbers are upper bounds for compiled kernels and GPUs; most calls take more than half of the bound.  X and
        y count with 4 bytes for each value that is read, unless they are in memory already.  Not counted: columns that
        pass through a NumPy matrix, memory in which the array library sorts, and, until kernels are compiled, up to 100
        bytes per row for NumPy.

        Examples
        --------
        >>> from gpu_encode import TargetEncoder, interactions
        >>> encoder = TargetEncoder(columns=interactions(["shop", "city", "day"], order=2), dtype="float32")
        >>> sizes = {"shop": 2_000, "city": 300, "day": 365}
        >>> plan = encoder.plan(rows=100_000_000, categories=sizes, device_memory="7GiB")
        >>> print(plan)
        rows              100,000,000
        keys              6, the largest shop_x_day of at most 732,366 categories
        cells             14,475,010
        X and y           1.5 GiB, 4 bytes a value
        codes of columns  2.2 GiB
        work              2.0 GiB
        tables            154.7 MiB
        output            2.2 GiB
        in all, at most   8.2 GiB
        free (cuda)       7.0 GiB
        fits              no; in 3 batches of keys or in 2 parts of rows (partial_fit, encode_dataset)
        >>> plan.batches
        [['shop', 'city', 'day'], ['shop_x_city', 'shop_x_day'], ['city_x_day']]
        """
        # Few calls need a plan.
        from gpu_encode.fitting.memory_plan import Asked, plan_memory

        given = Asked(X, y, rows, categories, classes, sample_weight, device_memory)
        return plan_memory(self._checked_parameters(), given)


def accept_categories(tags: Tags) -> Tags:
    """Say in an estimator's tags that it takes categories, text and missing values; give the tags."""
    tags.input_tags.categorical = True
    tags.input_tags.string = True
    tags.input_tags.allow_nan = True
    return tags


def publish_encoder(estimator: Any, encoder: Encoder) -> None:
    """Give an estimator the fitted encoder that reads its rows, and the attributes that scikit-learn expects."""
    estimator.encoder_, estimator.n_features_in_ = encoder, encoder.n_features_in_
    if hasattr(encoder, "feature_names_in_"):
        estimator.feature_names_in_ = encoder.feature_names_in_
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def wanted_container(encoder: Encoder) -> str:
    """Give the container that the user wants: that of X, "numpy", "pandas" or "polars".

    What `set_output` was told wins over scikit-learn's configuration: its "default" is an array, as of scikit-learn's
    own transformers.  Where nothing was told or configured, the container is that of X.
    """
    told = getattr(encoder, "_sklearn_output_config", {}).get("transform")
    if told == LIBRARY_OF_X:
        return LIBRARY_OF_X
    wanted = _get_output_config("transform", encoder)["dense"]
    if wanted == "default":
        return LIBRARY_OF_X if told is None else "numpy"
    return wanted


def has_names(frame: Frame | Pieces, wanted: str) -> bool:
    """Whether any table of the output has names of columns."""
    if wanted == LIBRARY_OF_X:
        return not {*map(attrgetter("kind"), frame.parts)} <= {*ARRAYS}
    return wanted in ("pandas", "polars")


def asks_for_groups(cv: Any) -> bool:
    """Tell whether a scheme, or a splitter of scikit-learn, takes groups from the argument `groups`."""
    if isinstance(cv, Mapping):
        return any(map(asks_for_groups, cv.values()))
    if isinstance(cv, schemes.Scheme):
        return any(column is None for column, _ in cv.reads())
    return hasattr(cv, "split") and bool(get_routing_for_object(cv).consumes("split", ["groups"]))


def check_unique(names: list[str]) -> None:
    """Raise ValueError if two outputs have one name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"Two output columns would be called {name!r}. Rename the input column that clashes.")
        seen.add(name)


def lacks_training_only(frame: Frame | Pieces, model: Model) -> bool:
    """Tell whether a table has all fitted columns, in order, except for columns that only training reads."""
    names, absent = model.feature_names, model.selection.optional
    if not absent or names is None or frame.names is None:
        return bool(absent) and frame.n_columns == model.n_features - len(absent)
    return frame.names == [name for position, name in enumerate(names) if position not in absent]


def table_with_names(X: Any, frame: Frame | Pieces) -> Any:
    """Give the table whose column names scikit-learn can read: X itself, or the first of several tables."""
    first = frame.parts[0]
    if first.kind == "pyarrow_batch":
        return first.native.schema.empty_table()
    return X if first.kind == "numpy" else first.native


def names_at_fit(model: Model) -> list[str]:
    """Give the names of the columns of X at fit; for an array, x0, x1 and so on."""
    return model.feature_names or [f"x{i}" for i in range(model.n_features)]


def output_names(frame: Frame | Pieces, model: Model) -> list[str]:
    """Give the names at fit; if fit saw none, and the table has all columns in the order at fit, the table's names."""
    has_all = model.feature_names is None and frame.n_columns == model.n_features
    return (frame.names if has_all else None) or names_at_fit(model)


def check_encoder(encoder: object) -> None:
    """Refuse an object that is no encoder of this library, such as a file name or a class."""
    if isinstance(encoder, Encoder):
        return
    hint = " A saved one is read by gpu_encode.load(path)."
    if isinstance(encoder, type):
        hint = f" Write {encoder.__name__}()."
    elif isinstance(encoder, (str, PathLike)):
        hint = f" Load a saved one, gpu_encode.load({str(encoder)!r})."
    kind = type(encoder).__name__
    raise TypeError(f"encoder must be an encoder of gpu_encode, such as TargetEncoder(). Got a {kind} instead.{hint}")
