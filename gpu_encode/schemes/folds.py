"""Schemes with folds: every row has a fold number, drawn or given, and sees the rows of some of the folds."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from fractions import Fraction
from math import ceil, log, log1p
from numbers import Integral, Number
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypeAliasType

from cpu_fallback.row_numbers import FoldPattern, fold_numbers, key_of
from gpu_encode.schemes.ages import check_spans, folds_by_age, times_seen
from gpu_encode.schemes.plans import (
    ByPattern,
    ByValue,
    FoldPlan,
    Plan,
    Request,
    Scheme,
    ValueFolds,
    WithinClasses,
    all_but_own,
    all_rows,
    check_random_state,
    check_splits,
    from_splits,
    seed_of,
    starts_of,
)
from gpu_encode.tables import frames
from gpu_encode.tables.categories.vocabulary import Vocabulary
from gpu_encode.words.annotations import ArrayLike, Column, Seed, Splitter, Vector
from gpu_encode.words.errors.parameters import (
    bad_option,
    bad_parameter,
    check_count,
    check_n_splits,
    check_number,
    check_option,
)
from gpu_encode.words.errors.targets import missing_targets, nothing_to_stratify
from gpu_encode.words.errors.values import RowError

# The same code for a splitter that needs targets, if some rows have none: these rows get a fold of their own.
FOLD_COLUMN_OF_KNOWN = """
    fold, known = numpy.zeros(len(X), int), numpy.flatnonzero(pandas.notna(y))
    for number, (_, rows) in enumerate(cv.split(X.iloc[known], numpy.asarray(y)[known]), 1):
        fold[known[rows]] = number
    X["fold"] = fold"""
# An empty fold counts as unlikely if at most one table in this many has one.
UNLIKELY = 1_000_000

FINEST_FRACTION = 100


class Greedy(Scheme):
    """Every row sees all rows, itself included.  This leaks the target into training encodings; a warning says so.

    References
    ----------
    Micci-Barreca (2001), eq. 2.

    Examples
    --------
    >>> from gpu_encode import Greedy, TargetEncoder
    >>> encoder = TargetEncoder(cv=Greedy(), smooth=None).fit([["a"], ["a"], ["b"]], [1.0, 2.5, 6.0])
    >>> encoder.transform([["a"], ["b"]]).tolist()
    [[1.75], [6.0]]
    """

    needs_row_numbers = False

    def plan(self, request: Request) -> FoldPlan:  # noqa: ARG002
        """Make one fold that sees itself."""
        return all_rows()


@dataclass(eq=False, repr=False)
class KFold(Scheme):
    """Every row sees all folds but its own.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    by : str, int or list of these, optional
        Columns of X whose values alone decide the fold of a row.  Rows of equal values share a fold, and a row keeps
        its fold when rows are added, shuffled or cut into other parts: the first choice for rows of Dask, Spark and
        Ray.  `random_state` must be an integer, and `order` and `stratify` cannot be used.
    order : {"random", "contiguous", "interleaved"}, default="random"
        Random folds are a function of `random_state` and the row number: the same in every chunking.
    stratify : bool, default=False
        Spread each class evenly over the folds.  A row's fold then depends on y, so changing a row's label can change
        other rows' folds and, through them, its own encoding.
    blow_up : bool, default=False
        Give training rows and new rows one column for each fold's encoder.  All of these encoders but one have seen the
        target of a training row: models fitted on these columns lose about as much as on greedy encodings
        (benchmarks/results/comparison-2026-11-22).
    random_state : int, RandomState, Generator or None, default=0
        Seed of the folds.

    Notes
    -----
    With `by`, a row's fold is its hash, read as a signed number of 64 bits, modulo `n_splits` (at least 0).  The hash
    is XXH64 [1]_ of the bytes of its value with the seed `random_state`.  If there are several columns, the hash of
    each value is the seed for the next column.  The bytes that are hashed are

    - for a whole number that fits 64 bits, whether it is an integer, a boolean, a float or a decimal: 8 bytes in two's
      complement, the lowest first;
    - for a date or a timestamp (in UTC if it has a time zone), a time of day or a duration: the bytes of its number of
      microseconds since 1970, since midnight or in total, if this number is whole;
    - for any other number that a float of 64 bits holds exactly: the bytes of this float, the lowest first;
    - for text: its UTF-8; for bytes: the bytes themselves; for anything else: the bytes that `HashingEncoder` hashes.

    The hash of a missing value, of any kind, is the seed.  With ``random_state=42`` these are the folds of Spark's
    ``pmod(xxhash64(column, ...), n_splits)`` for text, bigint, timestamp and NULL, also in several columns.

    Each distinct value falls into a given fold with probability 1 / n_splits.  The share of rows in a fold then has the
    variance sum(p ** 2) (n_splits - 1) / n_splits ** 2, where p are the shares of rows of the distinct values.  With a
    thousand equally frequent values, each of five folds holds 20 % of the rows, give or take 1.3 % (a standard
    deviation).  A fold without rows is an error; with five folds and at least 70 values, it happens to less than one
    table in a million.  The folds of `GroupKFold` have nearly equal sizes, but change with the rows at hand.

    References
    ----------
    .. [1] Collet, "xxHash fast digest algorithm", github.com/Cyan4973/xxHash, doc/xxhash_spec.md.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import KFold, TargetEncoder
    >>> X, y = np.array([["a"], ["b"]] * 4), np.arange(8.0)
    >>> encoder = TargetEncoder(cv=KFold(2, order="interleaved"), target_type="continuous", smooth=None)
    >>> encoder.fit_transform(X, y).ravel().tolist()
    [4.0, 3.0, 4.0, 3.0, 4.0, 3.0, 4.0, 3.0]
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"city": ["a"] * 6, "order_id": [71, 72, 72, 73, 74, 75]})
    >>> encoder = TargetEncoder(cv=KFold(2, by="order_id"), target_type="continuous", smooth=None)
    >>> encoder.fit_transform(rows, [1.0, 2.0, 3.0, 3.0, 7.0, 5.0])["city"].tolist()
    [4.0, 3.0, 3.0, 4.0, 3.0, 4.0]
    """

    parameters_before = MappingProxyType({"by": None})

    n_splits: int = 5
    _: KW_ONLY
    by: Column | Sequence[Column] | None = None
    order: Literal["random", "contiguous", "interleaved"] = "random"
    stratify: bool = False
    blow_up: bool = False
    random_state: Seed = 0

    def check(self) -> None:
        """Raise ValueError for parameters out of range."""
        check_n_splits("KFold", self.n_splits)
        check_option("KFold", "order", self.order, ("random", "contiguous", "interleaved"))
        check_option("KFold", "stratify", self.stratify, (True, False))
        check_option("KFold", "blow_up", self.blow_up, (True, False))
        check_random_state(self.random_state)
        if self.by is not None:
            self._check_by()

    def _check_by(self) -> None:
        columns = list_of(self.by)
        # True is an Integral, but not a position.
        named = columns and all(isinstance(one, (str, Integral)) and not isinstance(one, bool) for one in columns)
        if not named or len(set(columns)) < len(columns):
            raise bad_parameter("KFold", "by", self.by, "must be a column of X or a list of several, each once")
        if self.order != "random" or self.stratify:
            raise _by_beside(self.by, "stratify=True" if self.stratify else f"order={self.order!r}")
        if not isinstance(self.random_state, Integral):
            raise _by_beside(self.by, f"random_state={self.random_state!r}", "take an integer instead")

    def reads(self) -> list[tuple[Any, str]]:
        """Give the fold numbers that follow from `by`, if it is given."""
        if self.by is None:
            return []
        return [(ValueFolds(list_of(self.by), self.n_splits, int(self.random_state)), "by")]  # type: ignore[arg-type]

    @property
    def reads_classes(self) -> bool:
        """Whether the rows of each class are spread over the folds separately."""
        return bool(self.stratify)

    @property
    def new_rows_see_folds(self) -> bool:
        """Whether new rows get a column from each fold's encoder."""
        return bool(self.blow_up)

    def plan(self, request: Request) -> FoldPlan:
        """Make folds by row number, by row number within each class, or by value."""
        if self.by is not None:
            empty = np.flatnonzero(request.counts["by"] == 0)
            if len(empty):
                raise _empty_folds(self.by, int(empty[0]), self.n_splits)
            folds = ByValue(self.reads()[0][0], "by", np.arange(self.n_splits, dtype=np.int32))
            return all_but_own(folds, self.n_splits, self.blow_up)
        check_splits("KFold", self.n_splits, request.n_rows)
        if self.stratify:
            return all_but_own(self._stratified(request), self.n_splits, self.blow_up)
        pattern = FoldPattern(self.order, self.n_splits, seed_of(self.random_state, "KFold"), request.n_rows)
        return all_but_own(pattern, self.n_splits, self.blow_up)

    def _stratified(self, request: Request) -> WithinClasses:
        counts = request.class_counts
        if len(counts) > 1 or counts[0] is None:
            raise nothing_to_stratify()
        seed = seed_of(self.random_state, "Stratified")
        patterns = []
        for label, (start, count) in enumerate(zip(starts_of(counts[0]), counts[0], strict=True)):
            # The pattern of a label begins where the pattern of the label before it stopped, so that small classes do
            # not all fall into the first fold.
            first = int(start) if self.order == "interleaved" else 0
            patterns.append(FoldPattern(self.order, self.n_splits, key_of(seed, label + 1), int(count), first))
        return WithinClasses(patterns)


def _by_beside(by: object, other: str, instead: str = "leave one of them out") -> ValueError:
    """Error for a parameter that folds by value do not use, or that would make folds differ between passes."""
    return ValueError(f"KFold(by={by!r}) finds folds by values alone, and takes no {other}: {instead}.")


def _empty_folds(by: object, fold: int, n_splits: int) -> ValueError:
    """Error for a fold into which none of the values falls."""
    enough = ceil(log(UNLIKELY * n_splits) / -log1p(-1 / n_splits))
    return ValueError(
        f"No row falls into fold {fold} of KFold({n_splits}, by={by!r}): there are few values, or they were chosen by "
        f"the same hash. With {enough} distinct values or more, less than one table in a million has an empty fold. "
        "Take fewer folds, more columns, another random_state, or GroupKFold, which spreads a few groups evenly."
    )


@dataclass(eq=False, repr=False)
class GroupKFold(Scheme):
    """Folds that never split a group: a row sees no row of its own group.

    Groups are ranked by size, and each run of `n_splits` groups of about the same size is dealt out to different folds.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    groups : str or int, optional
        Column of X that holds the groups.  None: they are given to `fit_transform`.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the folds.

    Examples
    --------
    >>> from gpu_encode import GroupKFold, TargetEncoder
    >>> X, y, shops = [["a"]] * 4, [1.0, 2.5, 6.0, 4.0], ["p", "p", "q", "q"]
    >>> TargetEncoder(cv=GroupKFold(2), smooth=None).fit_transform(X, y, groups=shops).ravel().tolist()
    [5.0, 5.0, 1.75, 1.75]
    """

    n_splits: int = 5
    _: KW_ONLY
    groups: Column | None = None
    random_state: Seed = 0

    def check(self) -> None:
        """Raise ValueError for parameters out of range."""
        check_n_splits("GroupKFold", self.n_splits)
        check_random_state(self.random_state)

    def reads(self) -> list[tuple[Any, str]]:
        """Give the group column."""
        return [(self.groups, "groups")]

    def plan(self, request: Request) -> FoldPlan:
        """Give each group a fold."""
        sizes = request.counts["groups"]
        check_splits("GroupKFold", self.n_splits, len(sizes), "groups")
        ranked = np.argsort(-sizes, kind="stable")
        fold_of_group = np.empty(len(sizes), np.int32)
        pattern = FoldPattern("random", self.n_splits, seed_of(self.random_state, "GroupKFold"))
        fold_of_group[ranked] = fold_numbers(pattern, 0, len(sizes))
        return all_but_own(ByValue(self.groups, "groups", fold_of_group), self.n_splits)


@dataclass(eq=False, repr=False)
class TimeFolds(Scheme):
    """Folds in order of time; a row sees only earlier folds.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, with nearly equal numbers of rows; rows of equal time are in one fold.
    time : str or int
        Column of X that holds the time.
    gap : int, default=0
        Number of folds between a row's own fold and the last fold that it sees.
    half_life : number, timedelta or str, optional
        Time in which the weight of a row halves.  If the time column holds numbers, it is a number; if the column holds
        dates or periods, it is a timedelta or a text such as "7d" or "12h" (w, d, h, min, s, ms, us, ns).  A period
        counts as the time at which it begins.  For the rows of a fold, the ages of earlier rows are counted back from
        the fold's first time; for new rows, from the last time of training.
    window : number, timedelta or str, optional
        The rows of a fold see only rows that are at most so much older than the fold's first time; new rows see rows
        that are at most so much older than the last time of training.

    Notes
    -----
    An age is a whole number of eighths of a half-life: the difference between the steps floor(8 t / half_life) of two
    times t; for dates, t is counted from 1970.  A row of age k weighs 2**(-k / 8), computed from constants of 31 binary
    digits.  Steps are cut into blocks of 512 (64 half-lives), from step 0 on.  A row sees rows of its own block and of
    the block before it; older rows weigh nothing.  Sums of these weights are exact, so that all backends and parts of
    rows give the same bits.  With these weights, counts are sums of weights, and `smooth`, `min_count` and other limits
    are compared with these sums.

    Examples
    --------
    >>> from gpu_encode import TargetEncoder, TimeFolds
    >>> X, y = [[0, 2021], [0, 2022], [0, 2023], [0, 2024]], [1.0, 2.5, 6.0, 4.5]
    >>> TargetEncoder(cv=TimeFolds(4, time=1), smooth=None, prior=0.0).fit_transform(X, y).ravel().tolist()
    [0.0, 1.0, 1.75, 3.1666666666666665]
    >>> halving = TargetEncoder(cv=TimeFolds(4, time=1, half_life=1), smooth=None, prior=0.0)
    >>> halving.fit_transform(X, y).ravel().tolist()
    [0.0, 1.0, 2.0, 4.285714285714286]
    >>> last_two_years = TargetEncoder(cv=TimeFolds(4, time=1, window=2), smooth=None, prior=0.0)
    >>> last_two_years.fit_transform(X, y).ravel().tolist()
    [0.0, 1.0, 1.75, 4.25]
    """

    parameters_before = MappingProxyType({"half_life": None, "window": None})

    n_splits: int = 5
    _: KW_ONLY
    time: Column
    gap: int = 0
    half_life: float | timedelta | np.timedelta64 | str | None = None
    window: float | timedelta | np.timedelta64 | str | None = None

    @property
    def by_age(self) -> bool:
        """Whether rows count by their age, for new rows too."""
        return self.half_life is not None or self.window is not None

    def check(self) -> None:
        """Raise ValueError for parameters out of range."""
        check_n_splits("TimeFolds", self.n_splits)
        check_count("TimeFolds", "gap", self.gap, low=0)
        if self.gap > self.n_splits - 2:
            most = f"n_splits - 2 = {self.n_splits - 2}"
            raise bad_parameter("TimeFolds", "gap", self.gap, f"must be at most {most}, or no row sees any other")
        check_spans("TimeFolds", self.half_life, self.window)

    def reads(self) -> list[tuple[Any, str]]:
        """Give the time column."""
        return [(self.time, "time")]

    def plan(self, request: Request) -> FoldPlan:
        """Make folds by rank in time, and a visibility matrix that is strictly lower triangular."""
        check_splits("TimeFolds", self.n_splits, request.n_rows)
        starts = starts_of(request.counts["time"])
        # Rows of one time are in one fold, so only the distinct times need a fold.
        fold_of = (starts * self.n_splits // request.n_rows).astype(np.int32)
        if self.by_age:
            return self.plan_by_age(fold_of, request.values["time"])
        folds = ByValue(self.time, "time", fold_of)
        visibility = np.tril(np.ones((self.n_splits, self.n_splits), np.int64), -1 - self.gap)
        return FoldPlan(None, self.n_splits, visibility, np.ones((1, self.n_splits), np.int64), fold_rule=folds)

    def plan_by_age(self, fold_of: NDArray[np.int32], times: Vocabulary) -> FoldPlan:
        """Cut the folds into smaller ones, so that the rows that a row sees are whole folds."""
        firsts, steps = times_seen("TimeFolds", self.half_life, self.window, times)
        present, begins = np.unique(fold_of, return_index=True)
        return folds_by_age(self.time, firsts, steps, begins, np.searchsorted(fold_of, present - self.gap))


@dataclass(eq=False, repr=False)
class Holdout(Scheme):
    """Training rows and new rows see a calibration subset of the rows; calibration rows see all other rows.

    Parameters
    ----------
    fraction : float, default=0.3
        Share of rows in the calibration subset, taken to the nearest fraction with a denominator of at most 100.
    mask : str, int or array of shape (n_rows,), optional
        A column of X, or an array, of booleans (or 0 and 1), which is true for the rows of the calibration subset.
        `fraction` and `random_state` then have no effect.
    new_rows : {"calibration", "all"}, default="calibration"
        The rows that new rows see: the calibration subset, as training rows do, or all rows.
    calibration_rows : {"other", "nan"}, default="other"
        The encodings of calibration rows: encodings from the rows that do not calibrate, or NaN, so that no model is
        trained on them by mistake.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the random subset.

    References
    ----------
    Zumel and Mount (2016); Prokhorenkova et al. (2018), section 3.2.

    Examples
    --------
    >>> from gpu_encode import Holdout, TargetEncoder
    >>> X, y = [["a"]] * 4, [1.0, 2.5, 6.0, 5.5]
    >>> encoder = TargetEncoder(cv=Holdout(0.5), smooth=None)
    >>> encoder.fit_transform(X, y).ravel().tolist()
    [4.0, 3.5, 4.0, 3.5]
    >>> encoder.transform([["a"]]).tolist()
    [[4.0]]
    >>> last_half = Holdout(mask=[False, False, True, True], new_rows="all", calibration_rows="nan")
    >>> encoder = TargetEncoder(cv=last_half, smooth=None)
    >>> encoder.fit_transform(X, y).ravel().tolist(), encoder.transform([["a"]]).tolist()
    ([5.75, 5.75, nan, nan], [[3.75]])
    """

    parameters_before = MappingProxyType({"mask": None, "new_rows": "calibration", "calibration_rows": "other"})

    fraction: float = 0.3
    _: KW_ONLY
    mask: Column | Vector | None = None
    new_rows: Literal["calibration", "all"] = "calibration"
    calibration_rows: Literal["other", "nan"] = "other"
    random_state: Seed = 0

    def _share(self) -> Fraction:
        return Fraction(self.fraction).limit_denominator(FINEST_FRACTION)

    def check(self) -> None:
        """Raise ValueError for parameters out of range."""
        check_random_state(self.random_state)
        check_option("Holdout", "new_rows", self.new_rows, ("calibration", "all"))
        check_option("Holdout", "calibration_rows", self.calibration_rows, ("other", "nan"))
        check_number("Holdout", "fraction", self.fraction, low=0.0, high=1.0)
        if not 0 < self._share() < 1:
            raise bad_parameter("Holdout", "fraction", self.fraction, "must lie between 0.005 and 0.995")

    @property
    def new_rows_see_folds(self) -> bool:
        """Whether new rows see only the calibration subset."""
        return self.new_rows == "calibration"

    def reads(self) -> list[tuple[Any, str]]:
        """Give the mask, if there is one."""
        if self.mask is None:
            return []
        return [(frames.read_grouping(self.mask, "mask") if is_vector(self.mask) else self.mask, "mask")]

    def plan(self, request: Request) -> FoldPlan:
        """Make two folds: fold 0 calibrates, models are trained on fold 1."""
        folds = self._random_folds(request) if self.mask is None else self._masked_folds(request)
        return FoldPlan(
            None,
            2,
            np.array([[0, 1], [1, 0]]),
            np.array([[1, int(self.new_rows == "all")]]),
            fold_rule=folds,
            blind=(0,) if self.calibration_rows == "nan" else (),
        )

    def _masked_folds(self, request: Request) -> ByValue:
        if len(request.counts["mask"]) < 2:
            raise ValueError(
                "The mask of Holdout is the same for all rows. It must be true for some rows, which calibrate, and "
                "false for some others, which models are trained on."
            )
        return ByValue(self.reads()[0][0], "mask", np.array([1, 0], np.int32))

    def _random_folds(self, request: Request) -> ByPattern:
        share = self._share()
        pattern = FoldPattern("random", share.denominator, seed_of(self.random_state, "Holdout"), request.n_rows)
        folds = ByPattern(pattern, (np.arange(share.denominator) >= share.numerator).astype(np.int32))
        # A block of rows holds every fold of the pattern once, or every fold equally often.
        some = folds.fold_of[fold_numbers(pattern, 0, min(request.n_rows, share.denominator))]
        if request.n_rows and not 0 < some.sum() < len(some):
            raise ValueError(
                f"Holdout(fraction={self.fraction}) leaves one part of {request.n_rows} rows empty. Take more rows or "
                "another fraction."
            )
        return folds


@dataclass(eq=False, repr=False)
class FoldNumbers(Scheme):
    """Fold numbers that the user gives: a column of X or an array."""

    folds: Any

    def reads(self) -> list[tuple[Any, str]]:
        """Give the fold numbers."""
        return [(self.folds, "fold numbers")]

    def plan(self, request: Request) -> FoldPlan:
        """Make folds of equal numbers."""
        n_folds = len(request.counts["fold numbers"])
        if n_folds < 2:
            raise ValueError(
                "The fold numbers hold a single fold, whose rows would see nothing. Give at least two folds."
            )
        return all_but_own(ByValue(self.folds, "fold numbers", np.arange(n_folds, dtype=np.int32)), n_folds)


@dataclass(eq=False, repr=False)
class Splits(Scheme):
    """A scikit-learn splitter, or an iterable of (training rows, test rows)."""

    cv: Any

    def by_row_number(self) -> Scheme | None:
        """Give a scheme with the same folds that needs only the number of rows; None if there is no such scheme."""
        if not hasattr(self.cv, "split"):
            return self
        # If the user has a splitter, this module is loaded already.
        from sklearn import model_selection

        if type(self.cv) is model_selection.KFold and not self.cv.shuffle:
            return KFold(self.cv.n_splits, order="contiguous")
        return self if type(self.cv) in (model_selection.KFold, model_selection.PredefinedSplit) else None

    def plan(self, request: Request) -> Plan:
        """Read the splits, once, and make a plan of them."""
        listed = self.splits_of(request) if hasattr(self.cv, "split") else list(self.cv)
        if listed and not isinstance(listed[0], tuple) and is_vector(listed[0]):
            raise ValueError(
                "cv holds several vectors of fold numbers. Fold numbers are one array for all rows, even if X is a "
                "list of tables: concatenate them, or name a column of X that holds them."
            )
        if not listed or any(not isinstance(split, (tuple, list)) or len(split) != 2 for split in listed):
            raise ValueError("cv must give at least one split, each a pair of training rows and validation rows.")
        return from_splits([(train, test) for train, test in listed], request.n_rows)

    def splits_of(self, request: Request) -> list[Any]:
        """Ask a splitter for its splits."""
        grouping = {} if request.groups is None else {"groups": request.groups.values(0)}
        try:
            return list(self.cv.split(request.X, request.y, **grouping))
        except (TypeError, ValueError) as error:
            if request.groups is None and "groups" in str(error):
                raise ValueError(f"{error} cv={self.cv!r} takes them from fit_transform(X, y, groups=...).") from error
            if request.lacking is None or self.by_row_number() is not None:
                raise
            raise _splitter_without_targets(self.cv, error, request.lacking) from error


def _splitter_without_targets(cv: object, error: Exception, rows: NDArray[Any]) -> RowError:
    """Error for a splitter of scikit-learn that fails because rows without a target are kept."""
    said = str(error).splitlines()[0].rstrip(".")
    advice = (
        f", and cv={cv!r} fails: {said}. If it splits by y, split the rows that have a target beforehand, give the "
        f'others a fold of their own, which sees all of these, and name the column, cv="fold":{FOLD_COLUMN_OF_KNOWN}'
    )
    return missing_targets("y", rows, advice)


def list_of(columns: Any) -> tuple[Any, ...]:
    """Give a column, or several of them, as a tuple."""
    return tuple(columns) if isinstance(columns, (list, tuple)) else (columns,)


def is_vector(cv: Any) -> bool:
    """Whether `cv` holds one value per row, rather than splits."""
    if isinstance(cv, (list, tuple)):
        return len(cv) > 0 and (cv[0] is None or isinstance(cv[0], (Number, np.generic, str)))
    return hasattr(cv, "__array__") and getattr(cv, "ndim", 1) in (1, 2)


@contextmanager
def naming(name: str | None) -> Iterator[None]:
    """Add the name of the scheme to an error about one of several schemes."""
    try:
        yield
    except (ValueError, TypeError) as error:
        if name is None or type(error) not in (ValueError, TypeError, RowError):
            raise
        if isinstance(error, RowError):
            raise RowError(f"{name}: {error.before}", error.row, error.after) from error
        raise type(error)(f"{name}: {error}") from error


# Values of `cv`: a scheme, a number of folds, a column of fold numbers, a splitter or its splits.
CrossFitting = TypeAliasType(
    "CrossFitting", Scheme | Splitter | ArrayLike | Iterable[tuple[ArrayLike, ArrayLike]] | None
)


def resolve(cv: Any, shuffle: Any, random_state: Any, owner: str = "TargetEncoder", name: str = "cv") -> Scheme:
    """Turn the `cv` that a user gave into a checked scheme."""
    check_random_state(random_state)
    if isinstance(cv, Mapping):
        law = "must be one scheme for all columns: give columns of another scheme an encoder of their own"
        raise bad_parameter(owner, name, cv, law)
    if cv is None or (isinstance(cv, Integral) and not isinstance(cv, bool)):
        check_option(owner, "shuffle", shuffle, (True, False))
        cv = KFold(5 if cv is None else int(cv), order="random" if shuffle else "contiguous", random_state=random_state)
    elif isinstance(cv, str):
        cv = FoldNumbers(cv)
    elif is_vector(cv):
        cv = FoldNumbers(frames.read_grouping(cv, name))
    elif isinstance(cv, type):
        raise bad_parameter(owner, name, cv, f"must be a scheme, and not its class: write {cv.__name__}()")
    elif not isinstance(cv, Scheme):
        if not hasattr(cv, "split") and not isinstance(cv, Iterable):
            allowed = (
                "an integer",
                "None",
                "a splitter",
                "an iterable of splits",
                "fold numbers",
                "Greedy, KFold, GroupKFold, TimeFolds, Holdout, LeaveOneOut, Ordered",
            )
            raise bad_option(owner, name, cv, allowed)
        cv = Splits(cv)
    scheme: Scheme = cv
    with naming(None if name == "cv" else name):
        scheme.check()
    return scheme
