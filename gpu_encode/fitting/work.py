"""Everything of one call on training rows: what was read, and the jobs to do."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from cpu_fallback.types import Array, Layout, Rows
from gpu_encode import frames, ops
from gpu_encode.categories.keys import CategoryIndex, KeySpec
from gpu_encode.categories.vocabulary import FactorizedColumn
from gpu_encode.errors.folds import no_groups
from gpu_encode.errors.tables import no_rows
from gpu_encode.errors.targets import no_target
from gpu_encode.fitting.columns import same_frame, select
from gpu_encode.fitting.compatibility import (
    check_same,
    check_same_parameters,
    check_same_readout,
    check_same_targets,
    more_targets,
)
from gpu_encode.fitting.fixed_targets import decided_targets, known_codes
from gpu_encode.fitting.inputs import Inputs
from gpu_encode.fitting.model import Model, TargetInfo, refuse_missing
from gpu_encode.fitting.number_sums import sums_by_number
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.fitting.scheme_columns import column_keys
from gpu_encode.fitting.value_columns import SummedColumn, value_targets, with_terms
from gpu_encode.formulas.encoding_rule import EncodingRule
from gpu_encode.notices import warn
from gpu_encode.schemes import Ordered, Splits
from gpu_encode.schemes.assignment import RowsAtHand, assigned
from gpu_encode.schemes.plans import FoldPlan, Plan, Request
from gpu_encode.sums import layouts, targets
from gpu_encode.sums.category_sums import CategorySums, SumSpec
from gpu_encode.sums.targets import Target
from gpu_encode.training import encodings
from gpu_encode.training.indicators import columns_of_entry, missing_rows
from gpu_encode.training.tasks import EncodingTask


class Work:
    """Everything of one call on training rows: what was read, and the jobs to do.

    Parameters
    ----------
    owner : str
    options : Parameters
    given : Inputs
    known : Model, optional
        What earlier calls have learned.
    decided : list of TargetInfo, optional
        What all rows say of the targets, where these are some of them.
    keys : list of CategoryIndex, optional
        Categories of all rows, where they are known.
    sums_alone : bool
        Whether sums over all rows are all that is asked for, and no row's category.
    """

    def __init__(
        self,
        owner: str,
        options: Parameters,
        given: Inputs,
        known: Model | None = None,
        decided: Sequence[TargetInfo] | None = None,
        keys: Sequence[CategoryIndex] | None = None,
        sums_alone: bool = False,
    ) -> None:
        self.options, self.given, self.decided = options, given, decided
        if options.target_type is not None and not given.has_target:
            raise no_target(owner)
        self.frame = self.given.frame
        if not self.frame.n_rows:
            raise no_rows(owner, self.frame.shape)
        self.ops = ops.resolve(self.frame.n_rows, self.given.device(options.device))
        self.weight = self._weight()
        self.groups = self.given.groups()
        if known is not None:
            check_same_readout(known, options)
        self.summed = self._summed(known)
        self.targets = [each.target for each in self.summed]
        self.selection = select(self.frame, options.columns, options.hierarchy, options.training_columns)
        names = [str(name) for name in self.frame.names or [f"x{i}" for i in range(self.frame.n_columns)]]
        self.selection = self.selection.named(names)
        self.place = same_frame(self.frame)
        self.read: dict[str, FactorizedColumn] = {}
        if known is not None:
            check_same(known, self.frame, self.selection)
            check_same_targets(known, self.targets if options.values else [])
        self.measured = [self._measured(number, each) for number, each in enumerate(self.summed)]
        plain = len(self.summed) == 1 and not options.statistic.of_target(0).needs.distribution
        # Sums that were found together with the categories of an entry, whose rows then have no codes; or None.
        self.sums: list[CategorySums | None] = []
        self.keyed = self._keys(sums_alone and plain) if keys is None else self._known_keys(keys)
        self.rules = options.rules(self.selection, self.frame)
        self.tasks = self._jobs()
        if known is not None:
            check_same_parameters(known, options, self.rules, self.tasks[0], [key for key, _ in self.keyed])

    def _jobs(self) -> list[list[EncodingTask]]:
        """Put together what is to be done, per entry and target."""
        totals: list[Any] = [[] for _ in self.targets]
        return [
            [
                self._job(key, codes, sums, rule.of_target(number), *own)
                for number, own in enumerate(zip(self.summed, self.measured, totals, strict=True))
            ]
            for (key, codes), sums, rule in zip(self.keyed, self.sums, self.rules, strict=True)
        ]

    def _measured(self, number: int, summed: SummedColumn) -> SumSpec:
        squares = self.options.statistic.of_target(number).needs.squares
        return layouts.choose_spec(self.ops, summed.target, summed.weight, squares, self.options.drop)

    def _weight(self) -> Array | None:
        with self.given.naming_piece("sample_weight"):
            weight = self.given.weight()
            if weight is None:
                return None
            return self.ops.to_device(targets.check_weight(self.ops, self._readable(weight), self.decided is None))

    def _summed(self, known: Model | None) -> list[SummedColumn]:
        """Read what is summed: columns of X, the targets, or nothing."""
        if self.options.values is not None:
            summed = value_targets(self.frame, self.options.values, self.weight, self.ops)
        else:
            summed = [SummedColumn(target, self.weight) for target in self._targets(known)]
        self.options.check_targets([each.target for each in summed])
        with self.given.naming_piece("y"):
            return with_terms(summed, self.options.statistic, self.ops)

    def _targets(self, known: Model | None) -> list[Target]:
        if self.options.target_type is None:
            return [targets.no_target(self.frame.n_rows)]
        with self.given.naming_piece("y"):
            named = [(name, self._readable(values)) for name, values in self.given.targets()]
            if self.options.cut is not None:
                if known is not None:
                    self.options.cut.check_fixed()
                named = self.options.cut.buckets(self.ops, named, self.weight)
            if self.decided is not None:
                return decided_targets(self.ops, named, self.decided)
            if known is not None:
                infos = known.targets * (len(named) if self.options.statistic.needs.joined_targets else 1)
                return more_targets(self.ops, named, self.options.target_type, infos)
            return targets.read(self.ops, named, self.options.target_type)

    def _readable(self, values: Array) -> Array:
        """Give values of a device to a backend of the host; what lies on the host is checked there first."""
        if isinstance(values, np.ndarray) or self.device == "cuda":
            return values
        return values.on_host() if isinstance(values, frames.NumberedLabels) else frames.to_host(values)

    @property
    def device(self) -> str:
        """Where this call computes."""
        return ops.device_of(self.ops)

    def _keys(self, sums_alone: bool) -> list[tuple[CategoryIndex, Array]]:
        """Categories of every entry, and the code of each row where it is asked for."""
        keyed = []
        missing = self.options.missing
        given = self.options.given_categories(self.selection)
        for entry, categories in zip(self.selection.entries, given, strict=True):
            if categories is None:
                key, codes, sums = self._key(entry, sums_alone)
            else:
                (key, codes), sums = CategoryIndex.fit_given(entry, categories, self.place, self.ops), None
                self.options.refuse_unknown(codes, entry.name, self.frame)
            # A hierarchy whose rule does not fit the values is refused here, before anything is kept.
            _ = key.levels
            refuse_missing(codes, missing, repr(entry.name), self.frame)
            keyed.append((key, codes))
            self.sums.append(sums)
        return keyed

    def _key(self, entry: KeySpec, sums_alone: bool) -> tuple[CategoryIndex, Array, CategorySums | None]:
        """Categories of one entry, and the code of each row; or none, but the sums, where nobody asks for it."""
        statistic, missing = self.options.statistic, self.options.missing
        if sums_alone and not statistic.needs.sums and missing != "error":
            if (key := CategoryIndex.by_type(entry, self.place, self.ops)) is not None:
                return key, np.zeros(0, np.int32), CategorySums.of_nothing()
        elif sums_alone and statistic.needs.sums:
            found = sums_by_number(entry, self.place, self.ops, self.summed[0], self.measured[0])
            if found is not None:
                return found[0], np.zeros(0, np.int32), found[1]
        sums = None if statistic.needs.sums else CategorySums.of_nothing()
        return *CategoryIndex.fit(entry, self.place, self.ops, missing == "category"), sums

    def _known_keys(self, keys: Sequence[CategoryIndex]) -> list[tuple[CategoryIndex, Array]]:
        """Look up each row's category of every entry."""
        self.sums = [None] * len(keys)
        return [(key, known_codes(key, self.place, self.ops, self.options.missing)) for key in keys]

    def _job(
        self,
        key: CategoryIndex,
        codes: Array,
        sums: CategorySums | None,
        rule: EncodingRule,
        summed: SummedColumn,
        measured: SumSpec,
        totals: list[Any],
    ) -> EncodingTask:
        return EncodingTask(self.ops, summed.rows(codes), key, summed.target.n_classes, measured, rule, totals, sums)

    def plan(self) -> Plan:
        """Let the scheme decide."""
        X, y = self.given.for_splitter() if isinstance(self.options.scheme, Splits) else (None, None)
        request = Request(self.frame.n_rows, self._counts_of, self._class_counts, X, y, self.groups)
        plan = self.options.scheme.plan(request)
        rows = RowsAtHand(self.ops, self.frame.n_rows, self._codes_of, self.targets[0].values)
        # Once for all jobs: what a plan says of each row may have to go to a device.
        return encodings.numbered(encodings.placed(assigned(plan, rows), self.ops), self.frame.n_rows, self.ops)

    def _counts_of(self, column: Any, role: str) -> Array:
        """Rows of each value of a column that a scheme reads."""
        if column is None:
            raise no_groups()
        self.read[role] = column_keys(self.frame, column, role, self.ops)
        codes, vocabulary, _ = self.read[role]
        return self.ops.to_host(np.bincount(codes, minlength=len(vocabulary)))

    def _codes_of(self, _: Any, role: str) -> Array:
        """Place of each row's value among the sorted values of a column that a scheme has asked for."""
        return self.read.pop(role).codes

    def _class_counts(self) -> list[Array | None]:
        """Rows of each class of each target."""
        return [
            self.ops.to_host(np.bincount(self.ops.to_device(target.values), minlength=target.n_classes))
            if target.is_classification
            else None
            for target in self.targets
        ]

    def train(self, plan: Plan) -> tuple[list[Array], list[list[CategorySums]]]:
        """Training codes, column by column, then indicators; and what new rows see."""
        wide = encodings.n_columns(plan)
        widths = [[task.n_outputs * wide for task in tasks] for tasks in self.tasks]
        matrix = self.ops.empty((self.frame.n_rows, sum(map(sum, widths))), self.options.dtype, "F")
        flags, statistics, blind, start, unsure = [], [], [], 0, False
        for entry, (tasks, sizes) in enumerate(zip(self.tasks, widths, strict=True)):
            kept = []
            for number, (task, size) in enumerate(zip(tasks, sizes, strict=True)):
                first = number == self.rules[entry].statistic.first_target
                want = "unseen" in self.options.indicators and first
                done = encodings.train(task, plan, matrix[:, start : start + size], want)
                if isinstance(task.rule.prior, str) and not done.all_see:
                    blind += [matrix[:, column] for column in range(start, start + size)]
                unsure |= task.rule.prior is None and task.rule.needs_rows and not done.all_see
                start += size
                kept.append(done.statistics)
                if first:
                    flags += self.flags(entry, done.unseen)
            statistics.append(kept)
        if isinstance(plan, FoldPlan) and plan.n_folds == 1 and self.options.reads_target:
            warn("Greedy training codes contain each row's own target (a leak). Use KFold or Ordered to train on them.")
        if self.options.integer_folds is not None and statistics:
            self._warn_of_rare_classes(statistics[0], self.options.integer_folds)
        self.options.warn_of_nothing_seen(blind, plan)
        if unsure:
            self.options.warn_of_first_rows(plan, self.frame.n_rows)
        return [*(matrix[:, i] for i in range(matrix.shape[1])), *flags], statistics

    def flags(self, entry: int, unseen: Array | None) -> list[Array]:
        """Indicators of one entry; `unseen` says which rows' categories are."""
        (key, codes), as_category = self.keyed[entry], self.options.missing == "category"
        missing = partial(missing_rows, key, codes, self.place, self.ops, as_category)
        return columns_of_entry(self.options.indicators, unseen, missing, self.options.dtype)

    def _warn_of_rare_classes(self, statistics: list[CategorySums], n_splits: int) -> None:
        """Warn, as scikit-learn does, of a class with fewer rows than folds; `statistics` are those of any entry."""
        for target, sums in zip(self.targets, statistics, strict=True):
            if target.classes is None:
                continue
            number = len(target.classes)
            if self.weight is None:
                counts = sums.totals(self.ops).accumulators[0, :, :number, 0].sum(axis=0)
            else:
                counts = self.ops.accumulate(Rows(target.values), number, None, 1, 1, Layout())[:number]
            targets.warn_of_rare_classes(counts, n_splits)

    def model(self, statistics: list[list[CategorySums]]) -> Model:
        """Put together what lasts."""
        scheme = self.options.scheme
        infos = [TargetInfo(target.name, target.kind, target.classes) for target in self.targets]
        return Model(
            self.selection,
            self.frame.n_columns,
            self.frame.names,
            infos,
            [key if self.options.statistic.needs.sums else key.emptied() for key, _ in self.keyed],
            [[each.on_host(self.ops) for each in per_target] for per_target in statistics],
            self.rules,
            bool(self.options.handle_unknown == "error"),
            self.options.indicators,
            self.options.dtype,
            scheme.n_permutations if isinstance(scheme, Ordered) and not scheme.average else 1,
        )
