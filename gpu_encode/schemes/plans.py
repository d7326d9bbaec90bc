"""Who may look at whom: the base of all schemes, the four kinds of plan that they make, and a plan's rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from cpu_fallback.decay import weights_of
from cpu_fallback.row_numbers import FoldPattern, Order, RowOrder, TimeOrder, key_of
from cpu_fallback.types import Array, Folds
from gpu_encode.seam.ops import Ops, device_of, tiles
from gpu_encode.tables.categories.hashes import hash_categories
from gpu_encode.tables.categories.keys import CategoryIndex
from gpu_encode.tables.categories.vocabulary import Vocabulary
from gpu_encode.tables.frames import Frame, Pieces
from gpu_encode.words.errors.parameters import MOST_FOLDS, KnownKeywords, check_n_splits, too_many_folds

PURPOSES = {
    "KFold": 1,
    "Stratified": 2,
    "GroupKFold": 3,
    "Holdout": 4,
    "Factorization": 8,
    "Proximity": 9,
    "Ordered": 16,
}


class Scheme(KnownKeywords, BaseEstimator):
    """Base of all schemes."""

    # Values for encoders that were saved before a parameter was added.
    parameters_before: Mapping[str, Any] = MappingProxyType({})

    # Number of columns that repeat each output: one for each order that is not averaged.
    n_repeats = 1

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({**self.parameters_before, **state})

    def check(self) -> None:
        """Raise ValueError for parameters out of range."""

    def reads(self) -> list[tuple[Any, str]]:
        """List the columns that the scheme reads, each with its role; None stands for the argument `groups`."""
        return []

    @property
    def reads_classes(self) -> bool:
        """Whether a row's fold depends on its class."""
        return False

    @property
    def by_age(self) -> bool:
        """Whether rows count by their age, for new rows too: by a half-life, or a window."""
        return False

    @property
    def new_rows_see_folds(self) -> bool:
        """Whether new rows see some folds, or each fold by itself, or rows by their age, rather than all rows."""
        return self.by_age

    @property
    def needs_row_numbers(self) -> bool:
        """Whether the rows that a row sees depend on its number among all rows, rather than on its values."""
        return not self.reads() or self.reads() != self.reads_of_rows()

    def used_columns(self) -> list[Any]:
        """Columns of X that the scheme reads, which are never encoded."""
        columns: list[Any] = []
        for column, _ in self.reads():
            if column is not None and not isinstance(column, (Frame, Pieces)):
                columns += column.columns if isinstance(column, ValueFolds) else (column,)
        return columns

    def reads_of_rows(self) -> list[tuple[Any, str]]:
        """List the columns that the scheme reads, without the arrays that the user gave for all rows."""
        return [read for read in self.reads() if not isinstance(read[0], (Frame, Pieces))]

    def plan(self, request: "Request") -> "Plan":
        """Decide who looks at whom."""
        raise NotImplementedError


def seed_of(random_state: Any, purpose: str, number: int = 0) -> int:
    """Make a key of 64 bits from a user's `random_state`, for a purpose and the number of an order."""
    return key_of(read_seed(random_state), PURPOSES[purpose] + number)


def read_seed(random_state: Any) -> int:
    """Give the number of a user's `random_state`: an int, None (fresh entropy), or a NumPy generator (one draw)."""
    check_random_state(random_state)
    if random_state is None:
        return int(np.random.default_rng().integers(1 << 62))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, 2**31 - 1))
    return int(random_state.integers(1 << 62) if isinstance(random_state, np.random.Generator) else random_state)


def check_random_state(random_state: Any) -> None:
    """Raise ValueError unless `random_state` is an int, None or a NumPy generator."""
    allowed = (Integral, np.random.RandomState, np.random.Generator)
    if random_state is not None and (isinstance(random_state, bool) or not isinstance(random_state, allowed)):
        raise ValueError(f"random_state must be an integer, None or a NumPy generator. Got {random_state!r} instead.")


def check_splits(owner: str, n_splits: Any, n_rows: int, noun: str = "samples") -> None:
    """Raise ValueError unless there are at least two splits and as many rows."""
    check_n_splits(owner, n_splits)
    if n_splits > n_rows:
        raise ValueError(
            f"Cannot have number of splits n_splits={n_splits} greater than the number of {noun}: n_{noun}={n_rows}. "
            f"Take fewer splits in {owner}, or more {noun}."
        )


@dataclass(frozen=True)
class Request:
    """The facts about the rows that a scheme may use.

    Parameters
    ----------
    counts : dict of str to int64 array
        For the role of each column: the number of rows of each distinct value, in sorted order of the values.
    class_counts : list of int64 array
        For each target, the number of rows of each class; None for a continuous target.  Empty unless the scheme reads
        classes.
    values : dict of str to Vocabulary
        For the role of each column: its distinct values.
    X, y, groups
        As the user gave them, for scikit-learn's splitters.
    lacking : int64 array, optional
        The numbers of the rows without a target, if there are any; also for scikit-learn's splitters.
    """

    n_rows: int
    counts: Mapping[str, Array]
    class_counts: Sequence[Array | None]
    values: Mapping[str, Vocabulary]
    X: Any = None
    y: Any = None
    groups: Any = None
    lacking: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class ByValue:
    """Folds by the value of a column: `fold_of` has a fold for each distinct value, in sorted order."""

    column: Any
    role: str
    fold_of: NDArray[np.int32]


@dataclass(frozen=True)
class ByPattern:
    """Folds made of the folds of a pattern: `fold_of` has a fold for each fold of the pattern."""

    pattern: FoldPattern
    fold_of: NDArray[np.int32]


@dataclass(frozen=True)
class WithinClasses:
    """Folds by a row's number among the rows of its class, with a pattern for each class."""

    patterns: list[FoldPattern]


@dataclass(frozen=True)
class ValueFolds:
    """Fold numbers that follow only from the values of some columns: the hash of a row, modulo the number of folds."""

    columns: tuple[Any, ...]
    n_splits: int
    seed: int

    def of_categories(self, key: CategoryIndex) -> NDArray[np.int32]:
        """Give the fold of each category of a key of these columns, and last the fold of a missing value."""
        return (hash_categories(key, self.seed).view(np.int64) % self.n_splits).astype(np.int32)


# The ways in which a row finds its fold.
FoldRule = ByValue | ByPattern | WithinClasses


@dataclass(frozen=True)
class Ageing:
    """Weights that halve with age, as `gpu_encode.sums.decay` defines them.

    Parameters
    ----------
    role : str
        The role in which the scheme reads the times.
    steps : int64 array (times,)
        Step of each distinct time, in order.
    by_fold : int64 array (n_folds, 2)
        For each fold, the block of its rows, and the step from which these count the ages of other rows.
    """

    role: str
    steps: NDArray[np.int64]
    by_fold: NDArray[np.int64]


@dataclass(frozen=True)
class FoldPlan:
    """Fold numbers and a 0/1 visibility matrix.

    Parameters
    ----------
    folds : FoldPattern or int32 array or None
    visibility : int64 array (n_folds, n_folds)
        visibility[f, g] = 1 where rows of fold f see rows of fold g.
    new_rows : int64 array (views, n_folds)
        The folds that new rows see: one view, or a view for each fold's encoder with blow-up columns.
    blow_up : bool
        Every row gets one column per view of `new_rows`, in training too.
    fold_rule : FoldRule, optional
        The rule by which rows find their folds, if row numbers are not enough; `assign` makes `folds` from it.
    blind : tuple of int
        Folds whose rows get NaN, even if the matrix says that they see rows.
    ageing : Ageing, optional
        The rule by which rows lose weight; `assign` makes `weights` from it: one for each row, on its block's scale.
    """

    folds: Folds
    n_folds: int
    visibility: NDArray[np.int64]
    new_rows: NDArray[np.int64]
    blow_up: bool = False
    fold_rule: FoldRule | None = None
    blind: tuple[int, ...] = ()
    ageing: Ageing | None = None
    weights: Array | None = None

    @property
    def lookup_folds(self) -> Folds:
        """Folds by which rows find their encodings in a table; None if all rows use the same columns of the table."""
        return None if self.blow_up else self.folds


@dataclass(frozen=True)
class SplitPlan:
    """Splits whose training sets are not unions of test folds; each training set is summed on its own.

    Parameters
    ----------
    folds : int32 array (rows,)
        The number of the split whose test set holds each row.
    training : list of int64 array
        Rows of each split's training set.
    """

    folds: Array
    training: list[Array]


@dataclass(frozen=True)
class LeaveOneOutPlan:
    """Every row sees all rows but itself."""


@dataclass(frozen=True)
class ByTime:
    """Rows in order of a column; `starts` is the rank at which each of its sorted distinct values begins."""

    column: Any
    role: str
    starts: Array


@dataclass(frozen=True)
class OrderedPlan:
    """Every row sees the rows before it in each of several orders.

    Parameters
    ----------
    orders : list of Permutation, TimeOrder or RowOrder
    average : bool
        True gives one column with the average over the orders, False one column for each order.
    burn_in : int
        Rows of the first `burn_in` ranks get NaN.
    time : ByTime, optional
        The only order, if rows are in order of time; `assign` makes `orders` from it.
    firsts : int64 array (times,), optional
        If rows count by their age: for each time, the number of the first time that it sees.
    new_rows : FoldPlan, optional
        If rows count by their age: the rows that new rows see, and how rows lose weight, if they do.
    """

    orders: list[Order]
    average: bool
    burn_in: int
    time: ByTime | None = None
    firsts: NDArray[np.int64] | None = None
    new_rows: FoldPlan | None = None

    @property
    def steps(self) -> NDArray[np.int64] | None:
        """Step of each distinct time; None if rows do not lose weight with age."""
        ageing = None if self.new_rows is None else self.new_rows.ageing
        return None if ageing is None else ageing.steps

    @property
    def leaves(self) -> NDArray[np.int64] | None:
        """For each time, the number of the first time that no longer sees it; None without a window."""
        if self.firsts is None or self.steps is not None:
            return None
        return np.cumsum(np.bincount(self.firsts, minlength=len(self.firsts)))


Plan = FoldPlan | SplitPlan | LeaveOneOutPlan | OrderedPlan


def all_but_own(folds: FoldPattern | FoldRule, n_folds: int, blow_up: bool = False) -> FoldPlan:
    """Make a k-fold plan: a row sees every fold but its own."""
    if n_folds > MOST_FOLDS:
        raise too_many_folds(n_folds)
    visibility = 1 - np.eye(n_folds, dtype=np.int64)
    new_rows = visibility if blow_up else np.ones((1, n_folds), np.int64)
    pattern, rule = (folds, None) if isinstance(folds, FoldPattern) else (None, folds)
    return FoldPlan(pattern, n_folds, visibility, new_rows, blow_up, rule)


def all_rows() -> FoldPlan:
    """Make a plan in which every row sees every row, itself included."""
    one = np.ones((1, 1), np.int64)
    return FoldPlan(None, 1, one, one)


def by_time(
    codes: Array, starts: Array, firsts: Array | None = None, steps: Array | None = None, ops: Ops | None = None
) -> TimeOrder:
    """Order rows by the sorted codes of their times; `starts` is the rank at which each time begins."""
    sort = None if ops is None else getattr(ops.fused, "sort_codes", None)
    if sort is not None:
        rows, in_order = sort(codes, len(starts))
        return TimeOrder(rows, in_order, starts, firsts, steps)
    rows = np.argsort(codes, kind="stable")
    return TimeOrder(rows, codes[rows].astype(np.int64), starts, firsts, steps)


def starts_of(counts: Array) -> Array:
    """Give the rank at which the rows of each time begin, from the number of rows of each of the sorted times."""
    starts: Array = np.cumsum(counts)
    starts -= counts
    return starts


def leak_of(plan: Plan) -> str | None:
    """Say how a learner could read a row's own target from the training encodings of a plan; None if it could not."""
    if isinstance(plan, LeaveOneOutPlan):
        return (
            "LeaveOneOut training encodings do not contain a row's own target, but they fall where it rises, so that a "
            "tree can read it from them. Use KFold or Ordered to train on them."
        )
    if isinstance(plan, FoldPlan) and plan.blow_up:
        return (
            "KFold(blow_up=True) gives each row the columns of all folds, and all but one of these contain its own "
            "target (a leak). Use KFold without blow_up to train on them."
        )
    instead = "Use KFold or Ordered to train on them."
    if isinstance(plan, FoldPlan) and plan.n_folds == 1:
        return f"Greedy training encodings contain each row's own target (a leak). {instead}"
    if isinstance(plan, FoldPlan):
        number = int(plan.visibility.diagonal().sum())
    elif isinstance(plan, SplitPlan):
        number = sum(bool((plan.folds[rows] == split).any()) for split, rows in enumerate(plan.training))
    else:
        number = 0
    if not number:
        return None
    return f"{number} splits of cv train on rows that they encode: these see their own targets (a leak). {instead}"


def from_splits(splits: list[tuple[Array, Array]], n_rows: int) -> FoldPlan | SplitPlan:
    """Make a plan of explicit splits: fold numbers and a visibility matrix if training sets are unions of test folds.

    Raises
    ------
    ValueError
        If a row is in no test set or in several.
    """
    tests = [row_numbers(test, n_rows, "validation") for _, test in splits]
    seen = np.bincount(np.concatenate(tests), minlength=n_rows)
    if len(seen) != n_rows or not (seen == 1).all():
        raise ValueError(
            "Validation indices from `cv` must cover each sample index exactly once with no overlap. Pass a splitter "
            "with non-overlapping validation folds as `cv`; for rows in time order use TimeFolds or Ordered."
        )
    view = np.zeros(n_rows, np.int32)
    for number, test in enumerate(tests):
        view[test] = number
    training = [row_numbers(train, n_rows, "training") for train, _ in splits]
    visibility = np.zeros((len(splits), len(splits)), np.int64)
    sizes = np.bincount(view, minlength=len(splits))
    for number, train in enumerate(training):
        times = np.bincount(train, minlength=n_rows)
        held = np.bincount(view, times, len(splits))
        if times.max(initial=0) > 1 or ((held != 0) & (held != sizes)).any():
            return SplitPlan(view, training)
        visibility[number] = (held == sizes) & (sizes > 0)
    return FoldPlan(view, len(splits), visibility, np.ones((1, len(splits)), np.int64))


def row_numbers(chosen: Any, n_rows: int, role: str) -> NDArray[np.int64]:
    """Give the row numbers of one part of a split, which is given as numbers or as a mask."""
    array = np.asarray(chosen)
    if array.ndim != 1:
        raise ValueError(f"The {role} rows of a split must be a 1-D array. Got shape {array.shape}.")
    if array.dtype == bool:
        if len(array) != n_rows:
            raise ValueError(f"The {role} mask of a split has {len(array)} entries for {n_rows} rows.")
        return np.flatnonzero(array)
    if len(array) and array.dtype.kind not in "iu":
        raise ValueError(f"The {role} rows of a split must be integers or a mask. Got {array.dtype!s} values.")
    outside = (array < 0) | (array >= n_rows)
    if outside.any():
        raise ValueError(f"The {role} rows of a split must lie in 0 .. {n_rows - 1}. Got {int(array[outside][0])}.")
    return array.astype(np.int64)


def first_rows(plan: Plan, n_rows: int) -> int:
    """Count the rows that see no other row, apart from rows in the burn-in.

    The first row of a random order does not count, since its prior comes from all other rows.  With folds, the weights
    decide which rows see no other row, and only a table of a single row is counted here.
    """
    if not isinstance(plan, OrderedPlan):
        return int(n_rows == 1)
    if plan.burn_in:
        return 0
    if plan.time is not None:
        starts, firsts = plan.time.starts, plan.firsts
        number = np.arange(len(starts))
        return int(np.diff(starts, append=n_rows)[number <= (0 if firsts is None else firsts)].sum())
    return int(n_rows == 1 or isinstance(plan.orders[0], RowOrder))


@dataclass(frozen=True)
class RowsAtHand:
    """The rows for which a plan is applied.

    Parameters
    ----------
    codes : dict of str to int32 array (rows,)
        For the role of each column: the index of each row's value among the sorted values of all rows, on the device of
        the backend.
    labels : array
        Class of each row in the first target, if that has classes.
    first_row : int
        Number of the first row among all rows.
    earlier : int64 array (classes,), optional
        Number of rows of each class before the first row; 0 by default.
    """

    ops: Ops
    n_rows: int
    codes: Mapping[str, Array]
    labels: Array
    first_row: int = 0
    earlier: NDArray[np.int64] | None = None


# Fold numbers of at most this number of rows fit the processor's fast caches; and NumPy, which takes many passes to
# compute them, keeps those of more rows.
FEW_ROWS, KEPT_BY_NUMPY = 1 << 15, 1 << 19


def assign(plan: Plan, rows: RowsAtHand) -> Plan:
    """Give the plan with the fold numbers, or the order in time, of the rows at hand, on the device of the backend."""
    if not (isinstance(plan, FoldPlan) and isinstance(plan.folds, FoldPattern)):
        return upload(find_rows(plan, rows), rows.ops)
    folds = plan.folds.at(plan.folds.first_row + rows.first_row) if rows.first_row else plan.folds
    # Every column needs the fold numbers, so they are stored; a GPU is fast enough to compute them each time.
    most = KEPT_BY_NUMPY if rows.ops.fused is None else FEW_ROWS
    few = rows.n_rows <= most and device_of(rows.ops) == "cpu"
    return replace(plan, folds=rows.ops.fold_numbers(folds, 0, rows.n_rows) if few else folds)


def find_rows(plan: Plan, rows: RowsAtHand) -> Plan:
    """Give the plan with the fold numbers, or the order in time, of the rows at hand."""
    if isinstance(plan, FoldPlan) and plan.fold_rule is not None:
        weights, ageing = None, plan.ageing
        if ageing is not None:
            weights = rows.ops.to_device(weights_of(ageing.steps))[rows.codes[ageing.role]]
        return replace(plan, folds=find_folds(plan.fold_rule, rows), fold_rule=None, weights=weights)
    if isinstance(plan, FoldPlan) and not (plan.folds is None or isinstance(plan.folds, FoldPattern)):
        # The plan has the fold numbers of all rows, of which these rows are a part.
        return replace(plan, folds=plan.folds[rows.first_row : rows.first_row + rows.n_rows])
    if isinstance(plan, OrderedPlan) and plan.time is not None:
        firsts = None if plan.firsts is None or plan.steps is not None else rows.ops.to_device(plan.firsts)
        order = by_time(rows.codes[plan.time.role], rows.ops.to_device(plan.time.starts), firsts, plan.steps, rows.ops)
        new_rows = None if plan.new_rows is None else assign(plan.new_rows, rows)
        assert new_rows is None or isinstance(new_rows, FoldPlan)
        return replace(plan, orders=[order], new_rows=new_rows)
    return plan


def upload(plan: Plan, ops: Ops) -> Plan:
    """Move the arrays of a plan that have a number for each row to the device of the backend."""
    if isinstance(plan, FoldPlan) and not (plan.folds is None or isinstance(plan.folds, FoldPattern)):
        return replace(plan, folds=ops.to_device(plan.folds))
    if isinstance(plan, SplitPlan):
        return SplitPlan(ops.to_device(plan.folds), [ops.to_device(rows) for rows in plan.training])
    if isinstance(plan, OrderedPlan):
        orders = [
            replace(
                order,
                rows=ops.to_device(order.rows),
                ties=ops.to_device(order.ties),
                starts=ops.to_device(order.starts),
                firsts=None if order.firsts is None else ops.to_device(order.firsts),
            )
            if isinstance(order, TimeOrder)
            else order
            for order in plan.orders
        ]
        return replace(plan, orders=orders)
    return plan


def find_folds(rule: FoldRule, rows: RowsAtHand) -> Array:
    """Give the fold number of each row."""
    if isinstance(rule, WithinClasses):
        return folds_within_classes(rule.patterns, rows)
    fold_of: Array = rows.ops.to_device(rule.fold_of)
    if isinstance(rule, ByValue):
        return fold_of[rows.codes[rule.role]]
    pattern = rule.pattern.at(rows.first_row)
    folds: Array = rows.ops.empty((rows.n_rows,), fold_of.dtype)
    for start, stop in tiles(rows.n_rows, rows.ops.TILE):
        folds[start:stop] = fold_of[rows.ops.fold_numbers(pattern, start, stop)]
    return folds


def folds_within_classes(patterns: Sequence[FoldPattern], rows: RowsAtHand) -> Array:
    """Spread the rows of each class over the folds by the pattern of that class."""
    labels = rows.ops.to_device(rows.labels)
    order = np.argsort(labels, kind="stable")
    counts = rows.ops.to_host(np.bincount(labels, minlength=len(patterns)))
    earlier = np.zeros(len(patterns), np.int64) if rows.earlier is None else rows.earlier
    folds: Array = rows.ops.empty((rows.n_rows,), np.int32)
    for pattern, start, count, before in zip(patterns, np.cumsum(counts) - counts, counts, earlier, strict=True):
        continued = pattern.at(pattern.first_row + int(before))
        folds.put(order[start : start + count], rows.ops.fold_numbers(continued, 0, int(count)))
    return folds
