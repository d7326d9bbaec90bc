"""Objects that all schemes share: the task of one key and one target, tables of its sums, and output columns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.decay import blocks_of, room_for_two_blocks
from cpu_fallback.exact import Floats
from cpu_fallback.fused_rules import FusedRule
from cpu_fallback.row_numbers import FoldPattern, fold_array
from cpu_fallback.types import MISSING, UNKNOWN, Array, Codes, Folds, Layout, Rows, written
from gpu_encode.formulas.earlier_dates import EarlierDates
from gpu_encode.formulas.encoding_rule import EncodingRule, EncodingTable, Mask, SeenSums
from gpu_encode.formulas.order_statistics import OtherRows
from gpu_encode.formulas.statistic_names import SECONDS_SINCE_LAST
from gpu_encode.schemes.plans import Ageing, FoldPlan
from gpu_encode.seam import devices
from gpu_encode.seam.ops import Ops, device_of, put, tiles
from gpu_encode.sums.category_sums import CategorySums, SumSpec, windows
from gpu_encode.sums.decay import add_earlier_block, seen_from
from gpu_encode.sums.distributions import Distribution
from gpu_encode.sums.moments import Moments
from gpu_encode.sums.targets import MANY_CLASSES, backend_for, check_room
from gpu_encode.tables.categories.hierarchy import Level
from gpu_encode.tables.categories.keys import CategoryIndex, Columns, JointCodes, all_present
from gpu_encode.tables.categories.vocabulary import FactorizedColumn, Vocabulary
from gpu_encode.words.notices import warn

# The least number of rows of a tile, since each tile costs a few hundred calls of the array library.
LEAST_ROWS = 1 << 10


@dataclass(frozen=True)
class EncodingTask:
    """One key and one target of the rows at hand.

    Parameters
    ----------
    ops : Ops
    rows : Rows
    key : CategoryIndex
    n_classes : int
        Number of classes; for a continuous target, its number of terms.
    spec : SumSpec
    rule : EncodingRule
    sums : CategorySums, optional
        Sums over all rows, if they are known already; the rows may then have no codes.
    vocabulary : Vocabulary, optional
        If values are text or dates: their distinct values; the rows hold indices of these.
    in_order : OtherRows, optional
        The sorted values of the rows in `sums`, if they have been sorted already.
    """

    ops: Ops
    rows: Rows
    key: CategoryIndex
    n_classes: int
    spec: SumSpec
    rule: EncodingRule
    sums: CategorySums | None = None
    vocabulary: Vocabulary | None = None
    in_order: OtherRows | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "ops", backend_for(self.ops, self.rows.target))

    @property
    def n_outputs(self) -> int:
        """Number of columns of encodings."""
        rule = self.rule
        return rule.statistic.n_outputs(1 if rule.needs.terms > 1 else self.n_classes - self.spec.first_output)

    @property
    def dates(self) -> FactorizedColumn:
        """The rows' own dates, as indices of the distinct dates; -1 for a row without a date."""
        assert self.rows.target is not None
        assert self.vocabulary is not None
        return FactorizedColumn(self.rows.target, self.vocabulary)

    def joined(self) -> "EncodingTask":
        """Join the columns of the key if this has not been done, and give the task with the code of each row."""
        codes = self.rows.codes
        return replace(self, rows=self.rows.with_codes(codes.written)) if isinstance(codes, JointCodes) else self

    def weighed(self, factors: Array | None) -> "EncodingTask":
        """Give the task with the weight of each row times a factor; the same task if there are no factors."""
        if factors is None:
            return self
        rows, spec = self.rows, self.spec
        weight = factors if rows.weight is None else rows.weight * factors
        highest = len(spec.layout.measures()) - 1
        layout = Layout(*windows(self.ops, rows.target, weight, highest, len(rows)))
        weighed = Rows(rows.codes, rows.classes, rows.target, weight)
        return replace(self, rows=weighed, spec=replace(spec, layout=layout), sums=None)

    def measure(self, folds: Folds, n_folds: int) -> CategorySums:
        """Sum the rows by category, fold and class."""
        if self.sums is not None and folds is None:
            return self.sums
        shape = self.key.n_categories, n_folds, self.n_classes
        sums = CategorySums.measure(self.ops, self.rows, shape, self.spec, folds)
        if not self.rule.needs.distribution:
            return sums
        return replace(sums, distribution=Distribution.measure(self.ops, self.rows, folds, n_folds))

    def fused_rule(self) -> FusedRule | None:
        """Describe the formula for backends that write the encoding of every row in one pass; None if they cannot.

        A backend can do so for the formulas that it knows, and for keys without levels.
        """
        rule, blend = self.rule, self.rule.describe_fused()
        if blend is None or self.key.levels:
            return None
        by_mean = rule.prior == "mean"
        return FusedRule(blend, by_mean, 0.0 if by_mean else float(rule.prior), rule.describe_missing())

    @property
    def tile(self) -> int:
        """Number of rows of a tile; smaller if each row has many outputs."""
        return min(self.ops.TILE, max(self.ops.TILE // max(self.n_outputs, 1), LEAST_ROWS))

    def level_codes(self) -> "list[LevelCodes]":
        """Give the levels above the categories from the top, and the categories themselves last."""
        levels = []
        for level in self.key.levels:
            # Unknown and missing values keep their codes.
            of_row = np.append(level.of_leaf, [UNKNOWN, MISSING]).astype(np.int32)
            levels.append(LevelCodes(level.n, level, self.ops.to_device(of_row)))
        return [*levels, LevelCodes(self.key.n_categories)]


class Trained(NamedTuple):
    """The results of training, without the encodings of the rows.

    Parameters
    ----------
    statistics : CategorySums
        The sums that new rows see.
    unseen : bool array (rows,) or None
        True for rows that see no row of their category; None unless wanted.
    all_see : bool
        Whether it is known that every row sees some rows.
    total : Moments, optional
        The moments of all rows that each fold sees, for the next key of the same target; None without folds.
    """

    statistics: CategorySums
    unseen: Array | None
    all_see: bool = False
    total: Moments | None = None


@dataclass(frozen=True)
class LevelCodes:
    """The codes of rows at one level of a hierarchy.

    Parameters
    ----------
    n : int
        Number of categories of this level.
    level : Level, optional
        The level; None for the categories themselves.
    of_row : int32 array, optional
        The code at this level of each category, then of unknown and missing values; None without a level.
    """

    n: int
    level: Level | None = None
    of_row: Codes | None = None

    def codes(self, rows: Rows) -> Codes:
        """Give the code of each row at this level."""
        return self.of_codes(rows.codes)

    def of_codes(self, codes: Codes) -> Codes:
        """Turn codes of categories into codes at this level."""
        return codes if self.of_row is None else self.of_row[codes]

    def has(self, codes: Codes, rule: EncodingRule) -> Mask:
        """Tell which rows have a category at this level; the policy decides for missing values."""
        present: Mask = codes >= 0
        return present | (codes == MISSING) if self.level is None and rule.missing == "category" else present


def without_key(rows: Rows) -> Rows:
    """Give the same rows, all with the same category."""
    return rows.with_codes(np.zeros_like(rows.codes))


def look_up(
    ops: Ops, encodings: EncodingTable, codes: Codes, folds: Folds, out: Array, want_unseen: bool
) -> NDArray[np.bool_] | None:
    """Write the encodings of every row and, if `want_unseen`, tell which rows have an unseen category."""
    values = encodings.values
    if encodings.lost is None or values.dtype != out.dtype:
        values = in_type(values, out.dtype, ops)
    if encodings.lost:
        warn_of_lost(encodings.lost, out.dtype)
    ops.gather(values, codes, folds, out)
    return indicator(ops, encodings.unseen, codes, folds) if want_unseen else None


def in_type(encodings: Floats, dtype: Any, ops: Ops) -> Array:
    """Round encodings once to the type of the output, and warn about encodings that it cannot hold."""
    rounded, lost = round_once(encodings, dtype, ops)
    warn_of_lost(lost, dtype)
    return rounded


def round_once(encodings: Floats, dtype: Any, ops: Ops) -> tuple[Array, Any]:
    """Round encodings once to a type, and count encodings that it cannot hold; all NaN get the same bits."""
    convert = devices.cuda().cast_encodings if device_of(ops) == "cuda" else ops.cast
    with np.errstate(over="ignore"):
        rounded = convert(encodings, dtype)
    if encodings.dtype == dtype:
        return rounded, 0
    return rounded, (np.isinf(rounded) & np.isfinite(encodings)).sum()


def warn_of_lost(lost: Any, dtype: Any) -> None:
    """Warn about encodings that became infinite."""
    if number := int(lost):
        warn(f"{number} encodings are beyond the range of {dtype} and become infinite. Choose dtype='float64'.")


def make_room(ops: Ops, n_rows: int, n_columns: int, dtype: str, infos: Sequence[Any]) -> Array:
    """Make the matrix for the encodings of rows; raise MemoryError if there is no room, with a hint about classes."""
    n_bytes = n_rows * n_columns * np.dtype(dtype).itemsize
    if (n_classes := most_classes(infos)) > MANY_CLASSES:
        check_room(ops, n_classes, n_bytes)
    if n_bytes > devices.LARGE and device_of(ops) == "cpu":
        devices.check_free(n_bytes, f"The encodings of {n_rows:,} rows in {n_columns:,} columns")
    return ops.empty((n_rows, n_columns), dtype, "F")


def most_classes(infos: Sequence[Any]) -> int:
    """Give the number of classes of the target that has most; 0 if no target has classes."""
    most = 0
    for info in infos:
        most = max(most, 0 if info.classes is None else len(info.classes))
    return most


class OutputColumns:
    """The columns that a call returns: encodings in one matrix, filled from the left, then the indicators.

    Parameters
    ----------
    matrix : array (rows, columns)
        The matrix that is filled with encodings.
    indicators : tuple of str
        The indicators that each key has.
    """

    def __init__(self, matrix: Array, indicators: Sequence[str] = ()) -> None:
        self.matrix, self.indicators = matrix, indicators
        self._filled = 0
        self._flags: list[Array] = []

    def next(self, width: int) -> Array:
        """Give the next columns of the matrix, for the caller to write."""
        start, self._filled = self._filled, self._filled + width
        return self.matrix[:, start : self._filled]

    def add_indicators(self, unseen: Array | None, missing: Callable[[], Array]) -> None:
        """Append a key's indicators; if unwanted, `unseen` may be None, and `missing` is not called."""
        for name in self.indicators:
            flags = missing() if name == "missing" else unseen
            self._flags.append(flags.astype(self.matrix.dtype.name))  # type: ignore[union-attr]

    def to_list(self) -> list[Array]:
        """Give each column as an array."""
        return [*to_columns(self.matrix), *self._flags]


def to_columns(matrix: Array) -> list[Array]:
    """Give each column of a matrix as an array."""
    return [matrix[:, column] for column in range(matrix.shape[1])]


class TiledOutput:
    """A matrix that is filled tile by tile, so that memory never holds the encodings of all rows twice.

    Parameters
    ----------
    matrix : array (rows, columns)
        The matrix that is filled.
    ops : Ops
    """

    def __init__(self, matrix: Array, ops: Ops) -> None:
        self.matrix = matrix
        self.ops = ops
        self._lost: Any = 0

    def write(self, start: int, stop: int, values: Floats) -> None:
        """Write the encodings of rows [start, stop)."""
        self.matrix[start:stop] = self._round(values)

    def put(self, rows: Array, columns: Sequence[int], values: Floats) -> None:
        """Write the encodings of rows, given by their numbers, to some columns."""
        for column, encodings in zip(columns, self._round(values).T, strict=True):
            put(self.matrix[:, column], rows, encodings)

    def put_row(self, row: int, columns: Sequence[int], values: Floats, ops: Ops) -> None:
        """Write the encodings of one row, which lie on the host."""
        rounded, lost = round_once(values, self.matrix.dtype, ops)
        self.count(lost)
        for column, encoding in zip(columns, rounded, strict=True):
            self.matrix[row, column] = encoding

    def count(self, lost: Any) -> None:
        """Add the number of encodings that a pass of the backend has written and that the type could not hold."""
        self._lost = self._lost + lost

    def close(self) -> None:
        """Warn once about all encodings that the type could not hold."""
        warn_of_lost(self._lost, self.matrix.dtype)

    def _round(self, values: Floats) -> Array:
        rounded, lost = round_once(values, self.matrix.dtype, self.ops)
        self._lost = self._lost + lost
        return rounded


def missing_rows(
    key: CategoryIndex, codes: Codes, frame: Columns, ops: Ops, missing_is_category: bool
) -> NDArray[np.bool_]:
    """Tell which rows have no value; for a joint key, in any of its columns.

    Parameters
    ----------
    key : CategoryIndex
    codes : int32 array (rows,)
        Category of each row.
    frame : Columns
        The same rows.
    ops : Ops
    missing_is_category : bool
        Whether a missing value counts as a value: one more value of a column in a joint key, and an unknown value if it
        is not among the listed categories.

    Returns
    -------
    bool array (rows,)
    """
    entry = key.entry
    if not missing_is_category or (len(entry.columns) == 1 and not key.missing_is_unknown):
        missing: NDArray[np.bool_] = codes == MISSING
        return missing
    members = zip(entry.members, key.vocabularies[len(entry.above) :], strict=True)
    return ~all_present([frame.lookup(column, vocabulary, ops) for column, vocabulary in members])


def indicator(ops: Ops, unseen: NDArray[np.bool_], codes: Codes, folds: Folds) -> NDArray[np.bool_]:
    """Tell for each row whether its category is unseen in its fold."""
    flags = ops.empty((len(codes), 1), np.float64)
    ops.gather(unseen[..., None].astype(np.float64), codes, folds, flags)
    unseen_rows: NDArray[np.bool_] = flags[:, 0] != 0
    return unseen_rows


def sum_by_fold(task: EncodingTask, plan: FoldPlan) -> CategorySums:
    """Sum rows by category and fold; if rows lose weight with age, they are weighted."""
    return task.weighed(plan.weights).measure(plan.folds, plan.n_folds)


def sum_seen_folds(task: EncodingTask, plan: FoldPlan) -> tuple[CategorySums, FoldPlan]:
    """Sum rows by fold, and give the plan of these folds: if new rows see few rows, only folds that they see."""
    seen, folds = plan.new_rows.sum(axis=0) > 0, plan.folds
    if folds is None or isinstance(folds, FoldPattern) or task.rule.needs.distribution:
        return sum_by_fold(task, plan), plan
    chosen = task.ops.to_device(seen)[folds]
    # Copies of most rows would take more memory than the sums of all.
    if 2 * int(np.count_nonzero(chosen)) > len(chosen):
        return sum_by_fold(task, plan), plan
    rows, numbers = np.flatnonzero(chosen), np.cumsum(seen).astype(np.int32) - 1
    task = task.weighed(plan.weights)
    ageing = None if plan.ageing is None else replace(plan.ageing, by_fold=plan.ageing.by_fold[seen])
    visibility, new_rows = plan.visibility[np.ix_(seen, seen)], plan.new_rows[:, seen]
    plan = FoldPlan(task.ops.to_device(numbers)[folds[rows]], int(seen.sum()), visibility, new_rows, ageing=ageing)
    return replace(task, rows=task.rows.pick(rows), sums=None).measure(plan.folds, plan.n_folds), plan


def see_new_rows(sums: CategorySums, plan: FoldPlan, ops: Ops) -> CategorySums:
    """Give the sums that new rows see, from sums by fold."""
    if plan.ageing is not None:
        sums, plan = as_views(sums, plan, plan.ageing, ops, len(plan.visibility))
    return sums.visible(ops, plan.new_rows)


def as_views(
    sums: CategorySums, plan: FoldPlan, ageing: Ageing, ops: Ops, first: int = 0
) -> tuple[CategorySums, FoldPlan]:
    """Turn sums by fold of rows that lose weight into sums by view, from the `first` view on, and give their plan.

    The last view is that of new rows.
    """
    blocks, steps = ageing.by_fold.T
    steps = np.append(steps, ageing.steps[-1])[first:]
    visibility = np.concatenate([plan.visibility, plan.new_rows])[first:]
    lag = blocks_of(steps)[:, None] - blocks
    seen, layout = see_folds(sums.accumulators, visibility * (lag == 0), ops), sums.spec.layout
    if (before := visibility * (lag == 1)).any():
        earlier, layout = see_folds(sums.accumulators, before, ops), room_for_two_blocks(layout)
        seen = add_earlier_block(seen, earlier, sums.spec.layout)
    seen, layout = seen_from(ops, seen, layout, steps)
    views = np.eye(len(steps), dtype=np.int64)
    spec = replace(sums.spec, layout=layout)
    return CategorySums(seen, spec, 1), replace(plan, visibility=views[:-1], new_rows=views[-1:], ageing=None)


def see_folds(accumulators: Array, visibility: NDArray[np.int64], ops: Ops) -> Array:
    """Sum the folds that each view sees; if one view sees one fold, the result is a part of the array, not a copy."""
    if len(visibility) == visibility.sum() == 1:
        fold = int(visibility.argmax())
        return accumulators[:, fold : fold + 1]
    return ops.visible(accumulators, visibility)


@dataclass(frozen=True, eq=False)
class FoldTables:
    """Tables made from the sums of one key and one target by fold; one process or several have summed the rows.

    Parameters
    ----------
    visible : CategorySums
        The sums that new rows see.
    encodings : EncodingTable
        Encodings of training rows, by category and fold.
    total : Moments, optional
        The moments of all rows that each fold sees; None for blow-up columns, which do not depend on the row's fold.
    seen : Distribution, optional
        The dates that each fold sees, if encodings depend on them; a fold whose rows get NaN sees none.
    """

    visible: CategorySums
    encodings: EncodingTable
    total: Moments | None = None
    seen: Distribution | None = None


def tables_by_fold(
    task: EncodingTask, sums: CategorySums, plan: FoldPlan, dtype: Any = np.float64, total: Moments | None = None
) -> FoldTables:
    """Make the encodings of training rows, and the sums that new rows see, from sums by category and fold.

    Parameters
    ----------
    task : EncodingTask
        The rows of the task are not used.
    sums : CategorySums
    plan : FoldPlan
    dtype : dtype, default=float64
        The type that the encodings will be rounded to.
    total : Moments, optional
        The moments of all rows that each fold sees, if another key of the same target has them already.
    """
    ops, rule, leaf = task.ops, task.rule, None
    if plan.ageing is not None:
        sums, plan = as_views(sums, plan, plan.ageing, ops)
    if plan.blow_up:
        visible = sums.visible(ops, plan.new_rows)
        return FoldTables(visible, flatten(SeenSums(visible, None, rule, ops).table(task.key)))
    seen = SeenSums(sums, plan.visibility, rule, ops)
    if total is None:
        total, leaf = seen.total_and_leaf()
    few, backend = sums.few_on_host(ops)
    visible = few.visible(backend, plan.new_rows)
    encodings = seen.table(task.key, total, leaf, dtype)
    for fold in plan.blind:
        encodings.values[:, fold] = np.nan
    if not rule.needs.dates or sums.distribution is None:
        return FoldTables(visible, encodings, total)
    sighted = np.array([line * (fold not in plan.blind) for fold, line in enumerate(plan.visibility)])
    return FoldTables(visible, encodings, total, sums.distribution.visible(sighted))


def flatten(encodings: EncodingTable) -> EncodingTable:
    """Give a table with one view, whose columns are the views of this table, output by output."""
    if encodings.values.shape[1] == 1:
        return encodings
    values = np.moveaxis(encodings.values, 1, 2).reshape(len(encodings.values), 1, -1)
    whole = values if values.flags.c_contiguous else values.copy()
    return EncodingTable(whole, np.all(encodings.unseen, axis=1, keepdims=True))


class DatedRows(NamedTuple):
    """Rows with a date of their own.

    Parameters
    ----------
    ops : Ops
    codes : int32 array (rows,)
        Category of each row.
    folds : Folds
        View of each row; None: all rows have one view.
    dates : FactorizedColumn
    name : object
        Name of the column of dates, for messages.
    """

    ops: Ops
    codes: Codes
    folds: Folds
    dates: FactorizedColumn
    name: object

    @classmethod
    def of(cls, task: EncodingTask, folds: Folds = None) -> "DatedRows":
        """Give the rows of a task."""
        return cls(task.ops, task.rows.codes, folds, task.dates, task.key.entry.name)


@dataclass(frozen=True, eq=False)
class Elapsed:
    """The seconds since the last date: an encoding that depends on the row's own date, too, and not only its category.

    Parameters
    ----------
    target : int
        Number of the column of dates among the targets.
    column : int
        Position among the encodings of the key.
    earlier : EarlierDates
    """

    target: int
    column: int
    earlier: EarlierDates

    @classmethod
    def of(
        cls,
        task: EncodingTask,
        distribution: Distribution | None,
        encodings: EncodingTable | None = None,
        before: tuple[int, int] = (0, 0),
    ) -> "list[Elapsed]":
        """Give this column of a task, if the task has it.

        Parameters
        ----------
        task : EncodingTask
            The rows of the task are not used.
        distribution : Distribution, optional
            The dates that each view sees.
        encodings : EncodingTable, optional
            Tells which categories are unseen in each view; None if `write` is told this for each row.
        before : tuple of int
            Number of the key's targets before this one, and number of their encodings.
        """
        if not task.rule.needs.dates or distribution is None or task.vocabulary is None:
            return []
        statistic: Any = task.rule.statistic
        unseen = None if encodings is None else task.ops.to_host(encodings.unseen)
        earlier = EarlierDates.of(distribution, task.vocabulary, task.key.n_categories, unseen)
        return [cls(before[0], before[1] + statistic.statistics.index(SECONDS_SINCE_LAST), earlier)]

    def write(self, rows: DatedRows, out: Array, unseen: Mask | None = None) -> None:
        """Write the seconds of the rows that see an earlier date to their column of `out` (rows, outputs).

        All other rows, and rows that are `unseen`, keep their number in `out`.  The host computes the seconds, so
        that every backend has the same bits.
        """
        ops, fetch = rows.ops, rows.ops.to_host
        categories, indices = fetch(written(rows.codes)), fetch(written(rows.dates.codes))
        by_row = rows.folds if rows.folds is None or isinstance(rows.folds, FoldPattern) else fetch(rows.folds)
        hidden = None if unseen is None else fetch(unseen)
        compared = self.earlier.compare(rows.dates.vocabulary, rows.name)
        for start, stop in tiles(len(categories), ops.TILE):
            tile = slice(start, stop)
            views = fold_array(by_row, start, stop)
            seconds = self.earlier.seconds(categories[tile], 0 if views is None else views, indices[tile], compared)
            if hidden is not None:
                seconds[hidden[tile]] = np.nan
            kept = fetch(out[tile, self.column])
            out[tile, self.column] = ops.to_device(np.where(np.isnan(seconds), kept, seconds).astype(kept.dtype))
