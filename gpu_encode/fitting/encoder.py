"""The one sequence that every encoder runs: read, check, key, measure, encode, assemble."""

from dataclasses import replace
from typing import Any, Self

from sklearn.base import TransformerMixin
from sklearn.utils import Tags
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from cpu_fallback.types import Array
from gpu_encode import ops, schemes
from gpu_encode.errors.learned import blow_up_without_folds
from gpu_encode.fitting.columns import ColumnMap, Selection
from gpu_encode.fitting.dispatch import dispatched
from gpu_encode.fitting.fitted import Fitted
from gpu_encode.fitting.inputs import Inputs
from gpu_encode.fitting.merging import merged
from gpu_encode.fitting.model import Model
from gpu_encode.fitting.names import (
    check_unique,
    frame_for_names,
    lacks_training_only,
    own_names,
    remember_names,
)
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.fitting.work import Work
from gpu_encode.frames import Frame, Pieces
from gpu_encode.schemes import plans
from gpu_encode.sums.category_sums import CategorySums
from gpu_encode.sums.targets import NO_TARGET
from gpu_encode.training import encodings


class Encoder(TransformerMixin, Fitted, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Fit and transform in one fixed order; subclasses say what the parameters mean.

    scikit-learn's wrapper for `set_output` is left out: `_assemble` gives the container asked for, and the wrapper
    would rename the columns of a frame that rightly lacks a scheme's column.
    """

    device: str

    def __init_subclass__(cls, **keywords: Any) -> None:
        # The wrapper would be put around what a subclass defines anew, and takes no list of tables.
        own = {name: vars(cls)[name] for name in ("transform", "fit_transform") if name in vars(cls)}
        super().__init_subclass__(**keywords)
        for name, method in own.items():
            setattr(cls, name, method)

    def _options(self) -> Parameters:
        raise NotImplementedError

    @dispatched
    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn the codes of new rows.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns), or list, tuple, iterator or other collection of tables
            NumPy array, pandas, polars, Arrow or cuDF table.  Several tables, of any kinds, give the bits that they
            would give as one; they are held until the call ends.  An array given as `cv` is one for all rows.
        y : array or table of shape (n_rows,) or (n_rows, n_targets)
            Beside several tables: one for all rows, or a collection of one for each table.
        sample_weight : array of shape (n_rows,), optional
            Weights of at least zero; whole weights equal repeated rows.  For all rows or for each table, like y.
        groups : array of shape (n_rows,), optional
            Groups for a scheme that wants them.  For all rows or for each table, like y.

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
        options = self._options()
        sums_alone = not options.new_rows_see_folds
        work = Work(type(self).__name__, options, Inputs(X, y, sample_weight, groups), sums_alone=sums_alone)
        plan = plans.all_rows() if sums_alone else work.plan()
        self._keep(work, [[encodings.lasting(task, plan) for task in tasks] for tasks in work.tasks])
        return self

    @dispatched
    def fit_transform(self, X: Any, y: Any = None, *, sample_weight: Any = None, groups: Any = None) -> Any:
        """Learn the codes of new rows, and give the training codes of these rows by the scheme.

        Parameters
        ----------
        X, y, sample_weight, groups
            As in `fit`.

        Returns
        -------
        table of shape (n_rows, n_outputs), or list of tables
            Of X's kind: encoded columns, indicators, columns that pass through.  Of several tables a list, of one for
            each, of its kind and with its index; row numbers, and so folds and orders, run through all of them.

        Raises
        ------
        ValueError, TypeError
            For bad input; the encoder is then as it was.

        Warns
        -----
        UserWarning
            If the codes leak (`Greedy`), if rows see no rows at all, or if a class has fewer rows than folds.

        Notes
        -----
        ``fit(X, y).transform(X)`` gives other numbers: there each row has seen its own target, and a model trained on
        them trusts the codes of small categories more than new rows bear out.

        Examples
        --------
        >>> from gpu_encode import LeaveOneOut, TargetEncoder
        >>> encoder = TargetEncoder(smooth=None, cv=LeaveOneOut(), target_type="continuous")
        >>> encoder.fit_transform([["a"], ["a"], ["a"], ["b"]], [1.0, 2.0, 4.5, 3.0]).ravel().tolist()
        [3.25, 2.75, 1.5, 2.5]
        """
        work = Work(type(self).__name__, self._options(), Inputs(X, y, sample_weight, groups))
        plan = work.plan()
        arrays, statistics = work.train(plan)
        self._keep(work, statistics)
        return self._assemble(work.frame, arrays, work.place)

    @dispatched
    def transform(self, X: Any) -> Any:
        """Give the codes of new rows.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns), or collection of tables
            Of any kind, whatever kind the encoder was fitted on.

        Returns
        -------
        table of shape (n_rows, n_outputs), or list of tables
            Of X's kind.

        Raises
        ------
        ValueError
            If a fitted column is missing or holds another kind of values, and for the policies "error".

        Examples
        --------
        >>> from gpu_encode import TargetEncoder
        >>> encoder = TargetEncoder(smooth=0.0).fit([["a"], ["a"], ["b"], ["b"]], [0, 1, 1, 1])
        >>> encoder.transform([["b"], ["never seen"]]).tolist()
        [[1.0], [0.75]]
        """
        check_is_fitted(self, "_model")
        given = Inputs(X)
        self._check_names(given, self._model.selection, reset=False)
        backend = ops.resolve(given.frame.n_rows, given.device(self.device))
        arrays, place = self._model.encode(given.frame, backend)
        return self._assemble(given.frame, arrays, place)

    @dispatched
    def partial_fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Self:
        """Add rows to what `transform` knows.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`, several tables included.  Class labels are the union of those of all calls; `cv` plays no part.

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
        options = self._options()
        if isinstance(options.scheme, schemes.KFold) and options.scheme.blow_up:
            raise blow_up_without_folds()
        known = self._model if hasattr(self, "_model") else None
        work = Work(type(self).__name__, options, Inputs(X, y, sample_weight), known)
        if known is not None:
            self._check_names(work.given, known.selection, reset=False)
        plan = plans.all_rows()
        statistics = [[encodings.lasting(task, plan) for task in tasks] for tasks in work.tasks]
        self._keep(work, statistics, known)
        return self

    def merge(self, *others: "Encoder") -> Self:
        """Add what other encoders of the same parameters have learned, in place.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If parameters, columns or targets differ; nothing is then changed.

        Examples
        --------
        >>> from gpu_encode import TargetEncoder
        >>> monday = TargetEncoder(smooth=0.0).fit([["a"], ["b"]], [0, 1])
        >>> tuesday = TargetEncoder(smooth=0.0).fit([["a"], ["c"]], [1, 1])
        >>> monday.merge(tuesday).encodings_
        [array([0.5, 1. , 1. ])]
        """
        check_is_fitted(self, "_model")
        model = merged(self, self._model, others)
        self._check_model(model)
        self._publish(model)
        return self

    def _check_names(self, given: Inputs, selection: Selection, *, reset: bool) -> None:
        """Remember the columns' names, or compare them as scikit-learn does."""
        if reset or (selection.everything and not lacks_training_only(given.frame, self._model)):
            _check_feature_names(self, frame_for_names(given.tables[0], given.frame), reset=reset)
        if reset:
            self.n_features_in_ = given.frame.n_columns

    def _keep(self, work: Work, statistics: list[list[CategorySums]], known: Model | None = None) -> None:
        """Store the result of a fit, whole."""
        model = work.model(statistics)
        model = model if known is None else known.merged(model)
        self._check_model(model)
        if known is None:
            self._check_names(work.given, work.selection, reset=True)
        self._publish(model)
        self.device_ = work.device

    def _adopt(self, model: Model, device: str) -> None:
        """Store what was learned in parts, whole."""
        self._check_model(model)
        remember_names(self, model)
        self._publish(model)
        self.device_ = device

    def _check_model(self, model: Model) -> None:
        """Raise ValueError for what was learned if it cannot be kept; nothing is changed yet."""
        check_unique(self._names_of(model))

    def _publish(self, model: Model) -> None:
        """Set the fitted attributes."""
        self._model = model
        of_target = not any(rule.statistic.names_targets for rule in model.rules)
        if model.targets[0].kind != NO_TARGET and of_target:
            one = len(model.targets) == 1
            self.target_type_ = model.targets[0].kind if one else [info.kind for info in model.targets]
            self.classes_ = model.targets[0].classes if one else [info.classes for info in model.targets]

    def _assemble(self, frame: Frame | Pieces, arrays: list[Array], place: ColumnMap) -> Any:
        """Put columns together in the container that the user wants."""
        model, selection = self._model, self._model.selection
        wanted = _get_output_config("transform", self)["dense"]
        kind = {"pandas": "pandas", "polars": "polars"}.get(wanted)
        fitted = model.feature_names or [f"x{i}" for i in range(model.n_features)]
        names = self._encoded_names(own_names(frame, model) or fitted)
        passed = [place.places[position] for position in selection.passed if position in place.places]
        if frame.labels is None and frame.n_columns == model.n_features:
            frame = replace(frame, labels=fitted)
        return frame.assemble(names, arrays, passed, kind)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.transformer_tags.preserves_dtype = []
        return tags
