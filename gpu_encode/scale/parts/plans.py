"""Decisions about all rows, made before sums are computed: kinds of targets, classes, which rows each row may see."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.row_numbers import RowOrder
from cpu_fallback.types import UNKNOWN, Array
from gpu_encode.encoders.base import Encoder, check_encoder
from gpu_encode.fitting.columns import Selection, column_keys
from gpu_encode.fitting.fit import ValueCounts, plan_scheme
from gpu_encode.fitting.inputs import TrainingRows
from gpu_encode.fitting.model import Model, TargetInfo
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.scale.parts.profiles import Profile, TargetProfile
from gpu_encode.schemes import LeaveOneOut, Ordered, Scheme, Splits
from gpu_encode.schemes.plans import (
    ByValue,
    FoldPlan,
    OrderedPlan,
    Plan,
    RowsAtHand,
    SplitPlan,
    all_rows,
    assign,
)
from gpu_encode.seam import devices, ops
from gpu_encode.sums import targets
from gpu_encode.tables import frames
from gpu_encode.tables.frames import Frame, Pieces
from gpu_encode.words.errors.parameters import wrong_type
from gpu_encode.words.errors.tables import inconsistent_lengths, rows_have_changed
from gpu_encode.words.errors.targets import more_than_two_labels, no_values, weights_all_zero

# Code for users that makes a column of fold numbers.
FOLD_COLUMN = """
    fold = numpy.empty(len(X), int)
    for number, (_, rows) in enumerate(cv.split(X, y)):
        fold[rows] = number
    X["fold"] = fold"""

E = TypeVar("E", bound=Encoder)


@dataclass(frozen=True, eq=False)
class EncodingPlan:
    """Decisions about all rows, made before sums are computed; they are the same for every part.

    Parameters
    ----------
    encoder : TargetEncoder
        Its parameters.
    parameters : Parameters
        The same parameters, checked.
    n_rows : int
        Rows of all parts.
    targets : list of TargetInfo
    plans : list of Plan
        Which rows each row may see: one plan for each of `Parameters.every_scheme`.
    values : dict of (column, str) to ValueCounts
        Values of the columns that the schemes read.
    earlier : dict of int to int64 array (classes,)
        Rows of each class before a part, by the first row of the part; needed if folds are dealt out within classes.
    floats : list of bool
        For each target, whether it is a quantity that some part holds as floats.
    float_weight : bool
        Whether some weights are floats.
    checksum : int
        As in `Profile`.
    """

    encoder: Encoder
    parameters: Parameters
    n_rows: int
    targets: list[TargetInfo]
    plans: list[Plan]
    values: dict[tuple[Any, str], ValueCounts]
    earlier: dict[int, NDArray[np.int64]]
    floats: list[bool]
    float_weight: bool
    checksum: int = 0

    @property
    def plan(self) -> Plan:
        """The plan of all keys, if they share one scheme."""
        return self.plans[0]

    @property
    def by_folds(self) -> bool:
        """Whether the fold of a row decides which rows it sees, under every scheme."""
        return all(isinstance(plan, FoldPlan) for plan in self.plans)

    def scheme_indices(self, selection: Selection, frame: Frame | Pieces) -> list[int]:
        """Give for every key the index of its plan."""
        if len(self.plans) == 1:
            return [0] * len(selection.entries)
        indices = {id(scheme): index for index, scheme in enumerate(self.parameters.every_scheme)}
        return [indices[id(scheme)] for scheme in self.parameters.scheme_of_each_key(selection, frame)]

    def plans_of_keys(self, model: Model) -> list[Plan]:
        """Give the plan of each key of a model."""
        frame = replace(frames.read(np.empty((0, model.n_features))), labels=model.feature_names)
        return [self.plans[index] for index in self.scheme_indices(model.selection, frame)]

    @property
    def order(self) -> str | None:
        """The order of rows: None, "rows" (as they come), or "shuffled" (in time or at random)."""
        if not isinstance(self.plan, OrderedPlan):
            return None
        return "rows" if self.plan.orders and isinstance(self.plan.orders[0], RowOrder) else "shuffled"

    def codes_of(self, rows: TrainingRows, column: Any, role: str) -> Array:
        """Give the index of each row's value among the sorted values of all rows in a column that the scheme reads."""
        keys = column_keys(rows.frame, rows.groups if column is None else column, role, rows.ops)
        indices = self.values[column, role].vocabulary.positions(keys.vocabulary, role)
        if len(indices) and int(indices.min()) == UNKNOWN:
            raise rows_have_changed(f"The column of {role} has values")
        codes: Array = rows.ops.to_device(indices)[keys.codes]
        return codes

    @property
    def needs_labels(self) -> bool:
        """Whether the folds of rows depend on their classes."""
        return self.parameters.reads_classes

    def fold_plans(self, selection: Selection, rows: TrainingRows, labels: Array, first_row: int) -> list[FoldPlan]:
        """Give the plan of each key, with the fold numbers of these rows; without folds, a plan of one fold.

        `labels` are the classes of the rows, if `needs_labels`.
        """
        earlier = self.earlier.get(first_row)
        made, indices = {}, self.scheme_indices(selection, rows.frame)
        for index in {*indices}:
            plan: Plan = self.plans[index]
            if isinstance(plan, OrderedPlan) and plan.new_rows is not None:
                # New rows see these rows by their age.
                plan = plan.new_rows
            if isinstance(plan, FoldPlan):
                scheme = self.parameters.every_scheme[index]
                if scheme.reads_classes and earlier is None:
                    raise rows_have_changed(f"A part begins at row {first_row}, with rows")
                codes = {role: self.codes_of(rows, column, role) for column, role in scheme.reads_of_rows()}
                plan = assign(plan, RowsAtHand(rows.ops, rows.n_rows, codes, labels, first_row, earlier))
            made[index] = plan if isinstance(plan, FoldPlan) else all_rows()
        return [made[index] for index in indices]


def plan(encoder: Encoder, profile: Profile) -> EncodingPlan:
    """Make the decisions that need all rows.

    Parameters
    ----------
    encoder : TargetEncoder
        Only its parameters matter.
    profile : Profile
        The sum of the profiles of all parts.

    Returns
    -------
    EncodingPlan

    Raises
    ------
    ValueError
        For parameters that do not fit the rows, and schemes that need all rows at once.

    Warns
    -----
    UserWarning
        If a class has fewer rows than folds, or if whole numbers may have been taken for labels.

    Examples
    --------
    >>> from gpu_encode import KFold, TargetEncoder
    >>> from gpu_encode.parts import Part, plan, profile
    >>> encoder = TargetEncoder(cv=KFold(2))
    >>> plan(encoder, profile(encoder, Part([["a"], ["b"], ["a"]], [1, 0, 1]))).targets[0].kind
    'binary'
    """
    check_encoder(encoder)
    if not isinstance(profile, Profile):
        raise wrong_type("plan", "profile", profile, Profile)
    parameters = encoder._parameters()
    for scheme in parameters.every_scheme:
        with parameters.naming_scheme(scheme):
            check_parts(parameters, scheme)
    if not profile.n_rows:
        raise ValueError(f"None of the parts has rows, while a minimum of 1 is required by {type(encoder).__name__}.")
    if not profile.some_weight:
        raise weights_all_zero()
    infos = target_infos(profile, parameters)
    known = list(zip(profile.targets, infos, strict=True)) if parameters.reads_target else []
    counts = [class_counts(target, info) for target, info in known] or [None]
    plans = []
    for scheme in parameters.every_scheme:
        with parameters.naming_scheme(scheme):
            plans.append(plan_parts(scheme, profile, counts))
        folds = parameters.folds_given_for(scheme)
        for target, info in known:
            if info.classes is not None and folds is not None:
                targets.warn_of_rare_classes(target.counts, folds)
    before = classes_before(profile, counts[0])
    floats = [target.are_floats and info.classes is None for target, info in known]
    weighed, checksum = profile.float_weight, profile.checksum
    return EncodingPlan(
        encoder, parameters, profile.n_rows, infos, plans, profile.values, before, floats, weighed, checksum
    )


def carried(scheme: Scheme) -> Scheme | None:
    """Give the scheme in a form that works for rows in parts; None if it needs all rows at once."""
    return scheme.by_row_number() if isinstance(scheme, Splits) else scheme


def plan_parts(scheme: Scheme, profile: Profile, class_counts: Sequence[NDArray[np.int64] | None]) -> Plan:
    """Ask a scheme which rows each row may see; find folds here if its arrays cover all rows."""
    n_rows, scheme = profile.n_rows, carried(scheme) or scheme
    values = {role: profile.values[column, role] for column, role in scheme.reads_of_rows()}
    for column, role in scheme.reads():
        if isinstance(column, (Frame, Pieces)):
            if column.n_rows != n_rows:
                raise inconsistent_lengths(role, [n_rows, column.n_rows])
            backend = ops.resolve(n_rows, devices.choose("auto", *(part.native for part in column.parts), n_rows=0))
            values[role] = ValueCounts.of(column, column, role, backend)
    given = {"X": np.empty((n_rows, 0))} if isinstance(scheme, Splits) else {}
    plan = plan_scheme(scheme, n_rows, values, class_counts, **given)
    if isinstance(plan, SplitPlan):
        raise ValueError(
            "cv has splits that train on some validation rows of another split and not on the others. That needs all "
            "rows at once, but these come in parts. Train on whole folds, such as all other rows; or pass one table."
        )
    if isinstance(plan, FoldPlan) and isinstance(plan.fold_rule, ByValue):
        rule = plan.fold_rule
        codes = values[rule.role].codes
        if codes is not None:
            return replace(plan, folds=rule.fold_of[frames.to_host(codes)], fold_rule=None)
    return plan


def check_parts(parameters: Parameters, scheme: Scheme) -> None:
    """Raise ValueError for a scheme that needs all rows at once."""
    if isinstance(scheme, Splits) and carried(scheme) is None:
        raise ValueError(
            f"cv={scheme.cv!r} looks at all rows at once, but these come in parts. Take KFold, GroupKFold, TimeFolds, "
            "Holdout, LeaveOneOut or Ordered of gpu_encode; or write each row's fold number into a column, beforehand, "
            f'and name it, cv="fold":{FOLD_COLUMN}'
        )
    if isinstance(scheme, Ordered) and (parameters.values is not None or parameters.scheme_by_key):
        given = "values" if parameters.values is not None else "a dict as cv"
        raise ValueError(
            f"{parameters.owner} with {given} takes the rows of Ordered(...) all at once, but these come in parts. "
            "Pass one table, or choose folds or LeaveOneOut()."
        )


def target_infos(profile: Profile, parameters: Parameters) -> list[TargetInfo]:
    """Find the kinds of all targets, requested or inferred, and their classes."""
    if not parameters.reads_target:
        return [TargetInfo(None, targets.NO_TARGET, None)]
    if any(target.is_empty for target in profile.targets):
        raise no_values()
    kinds = targets.kinds_of([target.kind for target in profile.targets], parameters.target_type)
    infos = []
    for target, kind in zip(profile.targets, kinds, strict=True):
        classes = None if kind == "continuous" else target.labels
        if kind == "binary" and classes is not None and len(classes) > 2:
            raise more_than_two_labels(classes)
        infos.append(TargetInfo(target.name, kind, classes))
    return infos


def class_counts(target: TargetProfile, info: TargetInfo) -> NDArray[np.int64] | None:
    """Count the rows of each class, rows without a value last, if there are any; None for a continuous target."""
    if info.classes is None:
        return None
    counts = np.zeros(targets.counted_classes(info.kind, info.classes), np.int64)
    counts[: len(target.counts)] = target.counts
    return np.append(counts, target.n_missing) if target.n_missing else counts


def classes_before(profile: Profile, counts: NDArray[np.int64] | None) -> dict[int, NDArray[np.int64]]:
    """Count the rows of each class before the first row of each part, as `class_counts` does."""
    before: dict[int, NDArray[np.int64]] = {}
    if counts is None:
        return before
    labels, running = profile.targets[0].labels, np.zeros_like(counts)
    for row in sorted(profile.classes_from):
        part = profile.classes_from[row]
        before[row] = running.copy()
        if not part.is_empty:
            running[np.searchsorted(labels, part.labels)] += part.counts  # type: ignore[arg-type]
        running[-1] += part.n_missing
    return before


def unfitted(encoder: E) -> E:
    """Give an unfitted encoder with the very same parameter objects."""
    blank = type(encoder)(**encoder.get_params(deep=False))
    if hasattr(encoder, "_sklearn_output_config"):
        blank._sklearn_output_config = encoder._sklearn_output_config
    return blank


def for_new_rows(encoder: E) -> E:
    """Give an unfitted encoder that learns the same encodings of new rows, with a simpler scheme if possible."""
    blank, parameters = unfitted(encoder), encoder._parameters()
    if parameters.reads_target and not (parameters.partial_scheme or parameters.needs_tables):
        blank.set_params(cv=LeaveOneOut())
    return blank
