"""Everything of one call on training rows: what was read, and the jobs to do."""

from typing import Any

import numpy as np

from gpu_encode import frames, ops, targets, training
from gpu_encode.encoders.options import Options
from gpu_encode.formula import Formula
from gpu_encode.frames import Frame
from gpu_encode.jobs import Job
from gpu_encode.keys import Key
from gpu_encode.model import Model, TargetInfo, refuse_missing
from gpu_encode.notices import warn
from gpu_encode.ops import Array, Rows
from gpu_encode.plans import FoldPlan, Plan, Request
from gpu_encode.schemes import Ordered
from gpu_encode.selection import Selection, locate, same_frame, select
from gpu_encode.statistics import Statistics
from gpu_encode.targets import Target


class Work:
    """Everything of one call on training rows: what was read, and the jobs to do."""

    def __init__(
        self, owner: str, options: Options, X: Any, y: Any, sample_weight: Any, groups: Any, known: Model | None = None
    ) -> None:
        self.source = X
        self.options = options
        if y is None:
            raise ValueError(f"{owner} requires y to be passed, but the target y is None.")
        self.frame = frames.read(X)
        if not self.frame.n_rows:
            raise ValueError(
                f"Found array with 0 sample(s) (shape={self.frame.shape}) while a minimum of 1 is required by {owner}."
            )
        self.ops = ops.resolve(self.frame.n_rows)
        n = self.frame.n_rows
        self.weight = targets.checked_weight(
            None if sample_weight is None else frames.read_vector(sample_weight, "sample_weight", n)
        )
        if groups is not None:
            frames.read_vector(groups, "groups", n)
        named = frames.read_targets(y, n)
        self.targets = targets.read(self.ops, named, options.target_type) if known is None else self._more(named, known)
        self.selection = select(self.frame, options.columns, options.hierarchy, options.scheme.used_columns())
        names = [str(name) for name in self.frame.names or [f"x{i}" for i in range(self.frame.n_columns)]]
        self.selection = self.selection.named(names)
        self.place = same_frame(self.frame)
        if known is not None:
            check_same(known, self.frame, self.selection)
        self.keyed = self._keys()
        self.formulas = options.formulas(self.selection, self.frame)
        if known is not None:
            check_same_parameters(known, self.formulas, options)
        self.jobs = [
            [self._job(key, codes, formula, target) for target in self.targets]
            for (key, codes), formula in zip(self.keyed, self.formulas, strict=True)
        ]

    def _more(self, named: list[tuple[str | None, Array]], known: Model) -> list[Target]:
        """Read targets as those of earlier calls."""
        if len(named) != len(known.targets):
            raise ValueError(
                f"Earlier calls had {len(known.targets)} targets, this one has {len(named)}. Give the same."
            )
        found = []
        for (name, values), info in zip(named, known.targets, strict=True):
            if self.options.target_type not in ("auto", info.kind) and not isinstance(
                self.options.target_type, (list, tuple)
            ):
                raise ValueError(
                    f"Earlier calls had target_type {info.kind!r}, this one asks for "
                    f"{self.options.target_type!r}. Call fit to start anew."
                )
            if (
                self.options.target_type == "auto"
                and info.kind != "continuous"
                and values.dtype.kind == "f"
                and (values != np.floor(values)).any()
            ):
                raise ValueError(
                    f"Earlier calls had target_type {info.kind!r}, but y now holds fractions. Fit with "
                    "target_type='continuous' from the start."
                )
            found.append(targets.make(self.ops, name, values, info.kind, info.classes))
        return found

    def _keys(self) -> list[tuple[Key, Array]]:
        """Categories of every entry and the code of each row."""
        keyed = []
        missing = self.options.handle_missing
        given = self.options.given_categories(self.selection)
        for entry, categories in zip(self.selection.entries, given, strict=True):
            if categories is None:
                key, codes = Key.fit(entry, self.place, self.ops, missing == "category")
            else:
                key, codes = Key.fit_given(entry, categories, self.place, self.ops)
                self.options.refuse_unknown(codes, entry.name)
            # A hierarchy whose rule does not fit the values is refused here, before anything is kept.
            _ = key.levels
            refuse_missing(codes, missing, repr(entry.name))
            keyed.append((key, codes))
        return keyed

    def _job(self, key: Key, codes: Array, formula: Formula, target: Target) -> Job:
        classes = target.values if target.is_classification else None
        values = None if target.is_classification else target.values
        rows = Rows(codes, classes, values, self.weight)
        measured = targets.measured(
            self.ops, target, self.weight, self.options.smoothing.needs_squares, self.options.drop
        )
        return Job(self.ops, rows, key, target.n_classes, measured, formula)

    def request(self, X: Any, y: Any, groups: Any) -> Request:
        """What the scheme may ask."""
        return Request(self.frame.n_rows, self.ops, self.targets, self._codes_of, X, y, groups)

    def plan(self, X: Any, y: Any, groups: Any) -> Plan:
        """Let the scheme decide."""
        plan = self.options.scheme.plan(self.request(X, y, groups))
        self.options.warn_of_rare_classes(self.targets)
        return plan

    def _codes_of(self, column: Any, role: str) -> tuple[Array, int]:
        """Codes of a column that a scheme reads, in sorted order of the values."""
        return schemes_column(self.frame, column, role, self.ops)

    def train(self, plan: Plan) -> tuple[list[Array], list[list[Statistics]]]:
        """Training codes, column by column, then indicators; and what new rows see."""
        wide = training.n_columns(plan)
        widths = [[job.n_outputs * wide for job in jobs] for jobs in self.jobs]
        matrix = np.empty((self.frame.n_rows, sum(map(sum, widths))), self.options.dtype, order="F")
        flags, statistics, start = [], [], 0
        for jobs, sizes in zip(self.jobs, widths, strict=True):
            kept = []
            for number, (job, size) in enumerate(zip(jobs, sizes, strict=True)):
                done = training.train(
                    job, plan, matrix[:, start : start + size], self.options.indicators and number == 0
                )
                start += size
                kept.append(done.statistics)
                if done.unseen is not None and number == 0 and self.options.indicators:
                    flags.append(done.unseen.astype(self.options.dtype))
            statistics.append(kept)
        if isinstance(plan, FoldPlan) and plan.n_folds == 1:
            warn("Greedy training codes contain each row's own target (a leak). Use KFold or Ordered to train on them.")
        self.options.warn_of_nothing_seen(matrix, plan)
        return [*(matrix[:, i] for i in range(matrix.shape[1])), *flags], statistics

    def model(self, statistics: list[list[Statistics]]) -> Model:
        """Put together what lasts."""
        scheme = self.options.scheme
        infos = [TargetInfo(target.name, target.kind, target.classes) for target in self.targets]
        return Model(
            self.selection,
            self.frame.n_columns,
            self.frame.names,
            infos,
            [key for key, _ in self.keyed],
            [[each.carried() for each in per_target] for per_target in statistics],
            self.formulas,
            self.options.handle_unknown == "error",
            self.options.indicators,
            self.options.dtype,
            scheme.n_permutations if isinstance(scheme, Ordered) and not scheme.average else 1,
        )


def check_same(known: Model, frame: Frame, selection: Selection) -> None:
    """Raise ValueError if a later call has other columns than the first."""
    if frame.n_columns != known.n_features:
        raise ValueError(
            f"X has {frame.n_columns} features, but TargetEncoder is expecting {known.n_features} features as input."
        )
    if frame.names != known.feature_names:
        raise ValueError(
            f"partial_fit was called with other columns than before: {frame.names} after {known.feature_names}. "
            "Give the same, in that order."
        )
    before = [entry.columns for entry in known.selection.entries]
    if before != [entry.columns for entry in selection.entries]:
        raise ValueError(
            "partial_fit was called with other columns than before. Give the same columns in the same order."
        )


def check_same_parameters(known: Model, formulas: list[Formula], options: Options) -> None:
    """Raise ValueError if a parameter that shapes the codes has changed since the first call."""
    before = (known.formulas, known.unknown_is_error, known.indicators, known.dtype)
    now = (formulas, options.handle_unknown == "error", options.indicators, options.dtype)
    if repr(before) != repr(now):
        raise ValueError(
            "partial_fit was called with other parameters than before (smooth, prior, min_count, "
            "handle_unknown, handle_missing, "
            "indicators or dtype). Set them back, or call fit to start anew."
        )


def schemes_column(frame: Frame, column: Any, role: str, backend: Any) -> tuple[Array, int]:
    """Codes of the values that a scheme reads: a column of X by name or position, or an array."""
    if isinstance(column, (str, int)):
        source, position, named = frame, locate(frame, column, f"The {role} column"), f"The {role} column {column!r}"
    else:
        values = frames.read_vector(column, role, frame.n_rows)
        source, position, named = frames.read(values.reshape(-1, 1)), 0, f"The array given as {role}"
    if role == "fold numbers":
        check_fold_numbers(source.values(position), source.nulls(position), named)
    keys = source.keys(position, backend)
    if role == "fold numbers" and keys.vocabulary.kind != "number":
        raise ValueError(f"{named} must be integers of at least 0. Got {keys.vocabulary.kind} values.")
    if len(keys.codes) and keys.codes.min() < 0:
        rows = np.flatnonzero(keys.codes < 0)
        raise ValueError(f"{named} holds {len(rows)} missing values, the first in row {rows[0]}. Fill or drop them.")
    return keys.codes, len(keys.vocabulary)


def check_fold_numbers(values: Array, nulls: Array, named: str) -> None:
    """Raise ValueError unless the values are integers of at least zero."""
    if nulls.any():
        raise ValueError(
            f"{named} holds {int(nulls.sum())} missing values, the first in row {int(nulls.argmax())}. Fill or "
            "drop them."
        )
    wrong = np.zeros(len(values), bool) if values.dtype.kind in "iub" else np.ones(len(values), bool)
    if values.dtype.kind == "f":
        wrong = values != np.floor(values)
    for rows, what in ((wrong, "be integers"), (() if wrong.any() else values < 0, "not be negative")):
        if np.any(rows):
            row = int(np.argmax(rows))
            raise ValueError(f"{named} must {what}. Row {row} has {values[row]}.")
