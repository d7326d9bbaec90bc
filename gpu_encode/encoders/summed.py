"""The base of encoders that learn from exact sums of all keys together: rows may come in parts, in any order."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from cpu_fallback.exact import Floats, Integers
from cpu_fallback.types import Array
from gpu_encode.encoders.base import Encoder, dispatch
from gpu_encode.encoders.codes import (
    CodedRows,
    CodesEncoder,
    CodesModel,
    Learned,
    read_codes,
    to_columns,
    without_folds,
)
from gpu_encode.fitting.compatibility import merge_models
from gpu_encode.fitting.fit import FitContext, make_model, plan_rows, sum_rows
from gpu_encode.fitting.inputs import Inputs
from gpu_encode.fitting.model import Model
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.fitting.tasks import OutputColumns, look_up, make_room
from gpu_encode.formulas.encoding_rule import EncodingTable
from gpu_encode.schemes import LeaveOneOut, Ordered, Scheme, plans
from gpu_encode.schemes.plans import FoldPlan, SplitPlan
from gpu_encode.seam import ops
from gpu_encode.words.annotations import Table, Vector


class SummedEncoder(CodesEncoder):
    """An encoder that learns from sums of categories and of their pairs; `_learn_sums` of a subclass does the learning.

    It keeps nothing of the rows but their sums, which are exact: fitted in parts, in any order, it has the same bits as
    if it had been fitted to all rows at once.  After new sums are added, it learns again from all sums: `fit` does so
    at once; after `partial_fit` and `merge`, the first call that needs the result does so.
    """

    _kept: Model

    def _parameters(self) -> Parameters:
        return self._checked_parameters()

    @property
    def forget(self) -> Any:
        """Raise AttributeError: counts of pairs of categories can only be added."""
        raise AttributeError(f"{self._owner} has no forget. Fit it anew, or merge encoders of the rows that stay.")

    def _learn_sums(self, model: Model, rows: CodedRows | None = None) -> Learned:
        """Learn from the sums of a model; `rows` are the rows that were summed, if they are at hand."""
        raise NotImplementedError

    def _most_pairs(self, context: FitContext) -> float:  # noqa: ARG002
        """Give the largest number of pairs of categories that are counted for rows in memory."""
        return np.inf

    def _wants_pairs(self, n_keys: int) -> bool:
        """Tell whether the encoder learns from sums of pairs."""
        raise NotImplementedError

    @property  # type: ignore[override]
    def _model(self) -> CodesModel:
        """The model; if sums were added since it was last asked for, the encoder learns from them here."""
        if "_kept" not in vars(self):
            raise AttributeError(f"This {self._owner} is not fitted yet: call fit or fit_transform first.")
        if not isinstance(self._kept, CodesModel):
            fitted = self._learn_model(self._kept)
            self._check_model(fitted)
            self._kept = fitted
        return self._kept

    @_model.setter
    def _model(self, model: CodesModel) -> None:
        self._kept = model

    @property
    def _summed(self) -> Model:
        check_is_fitted(self)
        sums = self._kept.sums if isinstance(self._kept, CodesModel) else self._kept
        if sums is None or (not sums.pairs and self._wants_pairs(len(sums.keys))):
            raise ValueError(
                f"This {self._owner} keeps no counts of pairs that others could be added to: there were too many for "
                "so few rows, or an older version has saved it. Fit it again, to all rows, or to columns with fewer "
                "values."
            )
        return sums

    def __sklearn_is_fitted__(self) -> bool:
        return "_kept" in vars(self)

    @dispatch
    def partial_fit(self, X: Table, y: Table | None = None, *, sample_weight: Vector | None = None) -> Self:
        """Learn from more rows, and keep everything that was learned from earlier rows.

        The encoder learns from them when `transform` or an attribute needs the result; an error in learning, such as a
        rank that is too small, is raised then.

        Parameters
        ----------
        X, y, sample_weight
            As in `TargetEncoder.partial_fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If columns, target or parameters differ from those of earlier calls; nothing is then changed.
        """
        known = self._summed if hasattr(self, "_kept") else None
        context = self._read_more("partial_fit", Inputs(X, y, sample_weight), known)
        model = make_model(context, sum_rows(context))
        if known is None:
            self._check_names(context.rows.inputs, context.selection, reset=True)
        self._publish(model if known is None else known.merge(model))
        self.device_ = ops.device_of(context.rows.ops)
        return self

    def merge(self, *others: Encoder) -> Self:
        """Add to this encoder the sums of other encoders with the same parameters; it learns from them later.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If parameters, columns or targets differ; nothing is then changed.
        """
        self._publish(merge_models(self, self._summed, others))
        return self

    def _fit_rows(self, context: FitContext) -> CodedRows:
        """Learn from the rows of a call, and give the codes of the keys that get encodings."""
        folds = context.parameters.partial_scheme
        plan = plan_rows(context.parameters.scheme, context.rows, context.targets) if folds else plans.all_rows()
        model = make_model(context, sum_rows(context, [plan] * len(context.tasks)), self._most_pairs(context))
        rows = read_codes(context)
        self._store(context, self._learn_model(model, rows))
        number = context.selection.n_encoded
        return replace(rows, codes=rows.codes[:number], sizes=rows.sizes[:number])

    def _learn_model(self, sums: Model, rows: CodedRows | None = None) -> CodesModel:
        """Learn from sums, and give a model with them."""
        return self._with_learned(sums, self._learn_sums(sums, rows))

    def _with_learned(self, model: Model, learned: Learned) -> CodesModel:
        number = model.selection.n_encoded
        encoded = replace(
            model,
            selection=model.selection.without_others(),
            keys=model.keys[:number],
            statistics=model.statistics[:number],
            rules=model.rules[:number],
            pairs=[],
        )
        return replace(super()._with_learned(encoded, learned), sums=model)

    def _adopt(self, model: Model, device: str) -> None:
        super()._adopt(model if isinstance(model, CodesModel) else self._learn_model(model), device)

    def _fit_encodings(self, context: FitContext) -> list[Array]:
        parameters = context.parameters
        if not parameters.trains_apart:
            rows = self._fit_rows(context)
            return to_columns(self._model.learned.encode(rows), parameters.dtype)
        context.rows.inputs.warn_of_groups(parameters)
        plan = plan_rows(parameters.scheme, context.rows, context.targets)
        parameters.warn_of_plans([plan])
        if not isinstance(plan, (FoldPlan, SplitPlan)):
            raise without_folds(self._owner)
        tables, fitted = self._learn_views(*sum_views(context, plan))
        backend, widths = context.rows.ops, [table.values.shape[2] for table in tables]
        matrix = make_room(backend, context.rows.n_rows, sum(widths), parameters.dtype, context.targets)
        output = OutputColumns(matrix, ())
        for table, of_key, width in zip(tables, context.categories, widths, strict=True):
            on_device = EncodingTable(backend.to_device(table.values), backend.to_device(table.unseen))
            look_up(backend, on_device, of_key.codes, plan.folds, output.next(width), False)
        self._store(context, fitted)
        return output.to_list()

    def _learn_views(self, views: Sequence[Model], new: Model) -> tuple[list[EncodingTable], CodesModel]:
        """Learn from the sums that the rows of each fold see, and from the sums that new rows see.

        Returns
        -------
        tables : list of EncodingTable
            The table of each key, on the host, with the encodings of every fold.
        fitted : CodesModel
            The model for new rows.
        """
        fitted = self._learn_model(new)
        of_views = [self._tables_of(view, fitted) for view in views]
        tables = [np.stack(of_key, axis=1) for of_key in zip(*of_views, strict=True)]
        return [EncodingTable(values, np.zeros(values.shape[:2], bool)) for values in tables], fitted

    def _tables_of(self, view: Model, fitted: CodesModel) -> list[Floats]:
        """Learn encodings of each key from a view's sums, unknown and missing last; NaN if the view has no rows."""
        learned = self._learn_sums(view)
        blocks = learned.blocks()
        assert blocks is not None
        blind = not any(sums.accumulators.any() for sums in view.statistics[0])
        found = []
        for key, (_, table) in zip(fitted.keys, blocks, strict=True):
            missing = table[key.n_categories if key.has_missing else -1]
            lines = np.concatenate([table[: key.n_categories], table[-1:], missing[None, :]])
            found.append(np.full_like(lines, np.nan) if blind else lines)
        return found


def sum_views(context: FitContext, plan: FoldPlan | SplitPlan) -> tuple[list[Model], Model]:
    """Sum the rows that each fold sees, and the rows that new rows see."""
    if isinstance(plan, FoldPlan):
        sums = [[task.measure(plan.folds, plan.n_folds) for task in tasks] for tasks in context.tasks]
        return share_out(make_model(context, sums), plan)
    views = []
    for seen in plan.training:
        picked = [[replace(task, rows=task.rows.pick(seen), sums=None) for task in tasks] for tasks in context.tasks]
        views.append(make_model(context, [[task.measure(None, 1) for task in tasks] for tasks in picked]))
    return views, make_model(context, sum_rows(context))


def share_out(by_fold: Model, plan: FoldPlan) -> tuple[list[Model], Model]:
    """Give, from sums by fold, the sums that the rows of each fold see, and the sums that new rows see."""

    def see(visibility: Integers) -> Model:
        of_view = [
            [sums.visible(ops.host(sums.accumulators.size), visibility) for sums in per_target]
            for per_target in by_fold.statistics
        ]
        return replace(by_fold, statistics=of_view)

    # A fold that must see nothing gets sums of no rows, so that its encodings are NaN.
    lines = [line * (fold not in plan.blind) for fold, line in enumerate(plan.visibility)]
    return [see(line[None, :]) for line in lines], see(plan.new_rows)


def check_scheme(scheme: Scheme, owner: str) -> None:
    """Raise ValueError for schemes without folds."""
    if isinstance(scheme, (LeaveOneOut, Ordered)) or getattr(scheme, "blow_up", False):
        raise without_folds(owner)
