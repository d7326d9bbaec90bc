"""Which rows a row may look at.

Every class is a small parameter object; `plan` turns it into fold numbers and a visibility matrix, or an order.  For every
scheme but `Greedy`, changing a row's target never changes that row's own training code.
"""

from collections.abc import Iterable
from fractions import Fraction
from numbers import Integral, Number, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from gpu_encode import errors, frames
from gpu_encode.ops import Array
from gpu_encode.plans import FoldPlan, LeaveOneOutPlan, OrderedPlan, Plan, Request, all_but_own, by_time, from_splits
from gpu_encode.rows import FoldPattern, Permutation, fold_numbers, key_of

FINEST_FRACTION = 100
PURPOSES = {"KFold": 1, "Stratified": 2, "GroupKFold": 3, "Holdout": 4, "Ordered": 16}


def seed_of(random_state: Any, purpose: str, number: int = 0) -> int:
    """64-bit key of a user's `random_state`: an int, None (fresh entropy), or a NumPy generator (one draw)."""
    check_random_state(random_state)
    if random_state is None:
        random_state = int(np.random.default_rng().integers(1 << 62))
    elif isinstance(random_state, np.random.RandomState):
        random_state = int(random_state.randint(0, 2**31 - 1))
    elif isinstance(random_state, np.random.Generator):
        random_state = int(random_state.integers(1 << 62))
    return key_of(int(random_state), PURPOSES[purpose] + number)


def check_random_state(random_state: Any) -> None:
    """Raise ValueError unless `random_state` is an int, None or a NumPy generator."""
    allowed = (Integral, np.random.RandomState, np.random.Generator)
    if random_state is not None and not isinstance(random_state, allowed):
        raise ValueError(f"random_state must be an integer, None or a NumPy generator. Got {random_state!r} instead.")


def check_splits(owner: str, n_splits: Any, n_rows: int, noun: str = "samples") -> None:
    """Raise ValueError unless there are at least two splits and as many rows."""
    errors.check_count(owner, "n_splits", n_splits, low=2)
    if n_splits > n_rows:
        raise ValueError(
            f"Cannot have number of splits n_splits={n_splits} greater than the number of {noun}: n_{noun}={n_rows}. "
            f"Take at most {n_rows} splits in {owner}, or LeaveOneOut."
        )


class Scheme(BaseEstimator):
    """Base of all schemes."""

    def check(self) -> None:
        """Raise ValueError for parameters out of range."""

    def used_columns(self) -> list[Any]:
        """Columns of X that the scheme reads, which are never encoded."""
        return []

    def plan(self, request: Request) -> Plan:
        """Decide who looks at whom."""
        raise NotImplementedError


class Greedy(Scheme):
    """Every row sees all rows, itself included.  It leaks the target into training codes and warns of it.

    References
    ----------
    Micci-Barreca (2001), eq. 2.
    """

    def plan(self, request: Request) -> FoldPlan:  # noqa: ARG002
        """One fold that sees itself."""
        one = np.ones((1, 1), np.int64)
        return FoldPlan(None, 1, one, one)


class KFold(Scheme):
    """Every row sees all folds but its own.

    Parameters
    ----------
    n_splits : int, default=5
    order : {"random", "contiguous", "interleaved"}, default="random"
        Random folds are a function of `random_state` and the row number: the same in every chunking.
    stratify : bool, default=False
        Spread each class evenly over the folds.  A row's fold then depends on y, so changing a row's label can change other
        rows' folds and, through them, its own code.
    blow_up : bool, default=False
        One column per fold's encoder, for training and new rows alike.  A row is seen by all of these encoders but one.
    random_state : int, RandomState, Generator or None, default=0

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import KFold, TargetEncoder
    >>> X, y = np.array([["a"], ["b"]] * 4), np.arange(8.0)
    >>> encoder = TargetEncoder(cv=KFold(2, order="interleaved"), target_type="continuous", smooth=None)
    >>> encoder.fit_transform(X, y).ravel().tolist()
    [4.0, 3.0, 4.0, 3.0, 4.0, 3.0, 4.0, 3.0]
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        order: str = "random",
        stratify: bool = False,
        blow_up: bool = False,
        random_state: Any = 0,
    ) -> None:
        self.n_splits = n_splits
        self.order = order
        self.stratify = stratify
        self.blow_up = blow_up
        self.random_state = random_state

    def check(self) -> None:
        """Raise ValueError for parameters out of range."""
        errors.check_count("KFold", "n_splits", self.n_splits, low=2)
        errors.check_option("KFold", "order", self.order, ("random", "contiguous", "interleaved"))
        errors.check_option("KFold", "stratify", self.stratify, (True, False))
        errors.check_option("KFold", "blow_up", self.blow_up, (True, False))
        check_random_state(self.random_state)

    def plan(self, request: Request) -> FoldPlan:
        """Fold numbers by pattern, or within each class."""
        check_splits("KFold", self.n_splits, request.n_rows)
        if self.stratify:
            return all_but_own(self._stratified(request), self.n_splits, self.blow_up)
        pattern = FoldPattern(self.order, self.n_splits, seed_of(self.random_state, "KFold"), request.n_rows)
        return all_but_own(pattern, self.n_splits, self.blow_up)

    def _stratified(self, request: Request) -> Array:
        target = request.targets[0]
        if len(request.targets) > 1 or not target.is_classification:
            raise ValueError("KFold(stratify=True) needs one classification target.")
        seed = seed_of(self.random_state, "Stratified")
        order = np.argsort(target.values, kind="stable")
        counts = np.bincount(target.values)
        folds = np.empty(request.n_rows, np.int32)
        starts = np.cumsum(counts) - counts
        for label, (start, count) in enumerate(zip(starts, counts, strict=True)):
            # A label's pattern begins where the one before stopped, so that small classes do not all fill the first fold.
            first = int(start) if self.order == "interleaved" else 0
            pattern = FoldPattern(self.order, self.n_splits, key_of(seed, label + 1), int(count), first)
            folds[order[start : start + count]] = fold_numbers(pattern, 0, int(count))
        return folds


class GroupKFold(Scheme):
    """Folds that never split a group: a row sees no row of its own group.

    Groups are ranked by size, and each run of `n_splits` groups of about the same size is dealt out to different folds.

    Parameters
    ----------
    n_splits : int, default=5
    groups : str or int, optional
        Column of X that holds the groups; else they are given to `fit_transform`.
    random_state : int, RandomState, Generator or None, default=0
    """

    def __init__(self, n_splits: int = 5, *, groups: Any = None, random_state: Any = 0) -> None:
        self.n_splits = n_splits
        self.groups = groups
        self.random_state = random_state

    def check(self) -> None:
        """Raise ValueError for parameters out of range."""
        errors.check_count("GroupKFold", "n_splits", self.n_splits, low=2)
        check_random_state(self.random_state)

    def used_columns(self) -> list[Any]:
        """Give the group column, if it is one of X."""
        return [] if self.groups is None else [self.groups]

    def plan(self, request: Request) -> FoldPlan:
        """Fold numbers by group."""
        if self.groups is None and request.groups is None:
            raise ValueError(
                "GroupKFold needs groups: name their column, GroupKFold(groups='...'), or pass fit_transform(X, y, groups=...)."
            )
        codes, n_groups = (
            request.codes_of(self.groups, "groups")
            if self.groups is not None
            else request.codes_of(request.groups, "groups")
        )
        check_splits("GroupKFold", self.n_splits, n_groups, "groups")
        sizes = np.bincount(codes, minlength=n_groups)
        ranked = np.argsort(-sizes, kind="stable")
        fold_of_group = np.empty(n_groups, np.int32)
        pattern = FoldPattern("random", self.n_splits, seed_of(self.random_state, "GroupKFold"))
        fold_of_group[ranked] = fold_numbers(pattern, 0, n_groups)
        return all_but_own(fold_of_group[codes], self.n_splits)


class TimeFolds(Scheme):
    """Folds in order of time; a row sees earlier folds only.

    Parameters
    ----------
    n_splits : int, default=5
        Folds of nearly equal row counts; rows of equal time are never split.
    time : str or int
        Column of X that holds the time.
    gap : int, default=0
        Folds between a row's own and the last one that it sees.
    """

    def __init__(self, n_splits: int = 5, *, time: Any, gap: int = 0) -> None:
        self.n_splits = n_splits
        self.time = time
        self.gap = gap

    def check(self) -> None:
        """Raise ValueError for parameters out of range."""
        errors.check_count("TimeFolds", "n_splits", self.n_splits, low=2)
        errors.check_count("TimeFolds", "gap", self.gap, low=0)
        if self.gap > self.n_splits - 2:
            raise ValueError(
                f"The 'gap' parameter of TimeFolds must be at most n_splits - 2 = {self.n_splits - 2}, or no row sees any other. "
                f"Got {self.gap!r} instead."
            )

    def used_columns(self) -> list[Any]:
        """Give the time column."""
        return [self.time]

    def plan(self, request: Request) -> FoldPlan:
        """Fold numbers by place in time, and a strictly lower triangular matrix."""
        check_splits("TimeFolds", self.n_splits, request.n_rows)
        order = by_time(*request.codes_of(self.time, "time"))
        folds = np.empty(request.n_rows, np.int32)
        folds[order.rows] = (order.starts * self.n_splits // request.n_rows)[order.ties]
        visibility = np.tril(np.ones((self.n_splits, self.n_splits), np.int64), -1 - self.gap)
        return FoldPlan(folds, self.n_splits, visibility, np.ones((1, self.n_splits), np.int64))


class Holdout(Scheme):
    """Training rows see a calibration subset, calibration rows the rest, new rows the calibration subset.

    Parameters
    ----------
    fraction : float, default=0.3
        Share of rows in the calibration subset, taken to the nearest fraction with a denominator of at most 100.
    random_state : int, RandomState, Generator or None, default=0

    References
    ----------
    Zumel and Mount (2016); Prokhorenkova et al. (2018), section 3.2.
    """

    def __init__(self, fraction: float = 0.3, *, random_state: Any = 0) -> None:
        self.fraction = fraction
        self.random_state = random_state

    def _share(self) -> Fraction:
        return Fraction(self.fraction).limit_denominator(FINEST_FRACTION)

    def check(self) -> None:
        """Raise ValueError for parameters out of range."""
        check_random_state(self.random_state)
        errors.check_number("Holdout", "fraction", self.fraction, low=0.0, high=1.0)
        if not 0 < self._share() < 1:
            raise ValueError(
                f"The 'fraction' parameter of Holdout must lie between 0.005 and 0.995. Got {self.fraction!r} instead."
            )

    def plan(self, request: Request) -> FoldPlan:
        """Two folds: 0 calibrates, 1 is trained on."""
        share = self._share()
        pattern = FoldPattern("random", share.denominator, seed_of(self.random_state, "Holdout"), request.n_rows)
        folds = (request.ops.fold_numbers(pattern, 0, request.n_rows) >= share.numerator).astype(np.int32)
        if request.n_rows and not 0 < folds.sum() < request.n_rows:
            raise ValueError(
                f"Holdout(fraction={self.fraction}) leaves one part of {request.n_rows} rows empty. Take more rows or another fraction."
            )
        return FoldPlan(folds, 2, np.array([[0, 1], [1, 0]]), np.array([[1, 0]]))


class LeaveOneOut(Scheme):
    """Every row sees all rows but itself.

    It keeps the promise that a row's own target never changes its code, and still misleads a learner: within a category the code
    falls where the own target rises, so on a constant feature one threshold separates the classes.  Prefer `KFold` or `Ordered`.
    """

    def plan(self, request: Request) -> LeaveOneOutPlan:  # noqa: ARG002
        """Nothing to decide."""
        return LeaveOneOutPlan()


class Ordered(Scheme):
    """Every row sees the rows before it, in a random order or in time (CatBoost's ordered target statistics).

    The prior is the mean of the order so far, taken at the row's place with all but its top nine bits cleared (at most 1/256
    stale); the first row of a random order gets the mean of all other rows.

    Parameters
    ----------
    n_permutations : int, default=1
    time : str or int, optional
        Column of X to order by, instead of random permutations.  Rows of equal time do not see each other; the first get NaN.
    average : bool, default=True
        Average over the permutations, else one column each.
    burn_in : int or float, default=0
        The first rows of each order (a count, or a share below 1) get NaN.
    random_state : int, RandomState, Generator or None, default=0

    References
    ----------
    Prokhorenkova et al. (2018), section 3.2.
    """

    def __init__(
        self,
        n_permutations: int = 1,
        *,
        time: Any = None,
        average: bool = True,
        burn_in: float = 0,
        random_state: Any = 0,
    ) -> None:
        self.n_permutations = n_permutations
        self.time = time
        self.average = average
        self.burn_in = burn_in
        self.random_state = random_state

    def check(self) -> None:
        """Raise ValueError for parameters out of range."""
        errors.check_count("Ordered", "n_permutations", self.n_permutations, low=1)
        errors.check_option("Ordered", "average", self.average, (True, False))
        check_random_state(self.random_state)
        errors.check_number("Ordered", "burn_in", self.burn_in, low=0.0)
        if (not isinstance(self.burn_in, Integral) and self.burn_in >= 1) or not isinstance(self.burn_in, Real):
            raise ValueError(
                f"The 'burn_in' parameter of Ordered must be an integer or a share below 1. Got {self.burn_in!r} instead."
            )
        if self.time is not None and self.n_permutations != 1:
            raise ValueError("Ordered(time=...) has one order: leave n_permutations at 1.")

    def used_columns(self) -> list[Any]:
        """Give the time column, if there is one."""
        return [] if self.time is None else [self.time]

    def plan(self, request: Request) -> OrderedPlan:
        """Orders, and the place from which rows get codes."""
        n = request.n_rows
        burn_in = int(self.burn_in) if isinstance(self.burn_in, Integral) else int(self.burn_in * n)
        if self.time is not None:
            return OrderedPlan([by_time(*request.codes_of(self.time, "time"))], True, burn_in)
        seeds = [seed_of(self.random_state, "Ordered", number) for number in range(self.n_permutations)]
        return OrderedPlan([Permutation(n, seed) for seed in seeds], self.average, burn_in)


class FoldNumbers(Scheme):
    """Fold numbers that the user brings: a column of X or an array."""

    def __init__(self, folds: Any) -> None:
        self.folds = folds

    def used_columns(self) -> list[Any]:
        """Give the fold column, if it is one of X."""
        return [] if isinstance(self.folds, np.ndarray) else [self.folds]

    def plan(self, request: Request) -> FoldPlan:
        """Give the numbers as they are, counted from zero."""
        codes, n_folds = request.codes_of(self.folds, "fold numbers")
        if n_folds < 2:
            raise ValueError(
                "The fold numbers hold a single fold, whose rows would see nothing. Give at least two folds."
            )
        return all_but_own(codes, n_folds)


class Splits(Scheme):
    """A scikit-learn splitter, or an iterable of (training rows, test rows)."""

    def __init__(self, cv: Any) -> None:
        self.cv = cv

    def plan(self, request: Request) -> Plan:
        """Ask once for the splits."""
        splits = self.cv
        if hasattr(splits, "split"):
            splits = splits.split(
                request.X, request.y, **({"groups": request.groups} if request.groups is not None else {})
            )
        return from_splits([(train, test) for train, test in splits], request.n_rows)


def is_vector(cv: Any) -> bool:
    """Whether `cv` holds one value per row, rather than splits."""
    if isinstance(cv, (list, tuple)):
        return len(cv) > 0 and (cv[0] is None or isinstance(cv[0], (Number, np.generic, str)))
    return hasattr(cv, "__array__") and getattr(cv, "ndim", 1) == 1


def resolve(cv: Any, shuffle: Any, random_state: Any) -> Scheme:
    """Turn what the user gave as `cv` into a checked scheme."""
    if cv is None or (isinstance(cv, Integral) and not isinstance(cv, bool)):
        errors.check_option("TargetEncoder", "shuffle", shuffle, (True, False))
        cv = KFold(5 if cv is None else int(cv), order="random" if shuffle else "contiguous", random_state=random_state)
    elif isinstance(cv, str):
        cv = FoldNumbers(cv)
    elif is_vector(cv):
        cv = FoldNumbers(frames.read_vector(cv, "cv"))
    elif not isinstance(cv, Scheme):
        if not hasattr(cv, "split") and not isinstance(cv, Iterable):
            allowed = (
                "an integer",
                "None",
                "a splitter",
                "an iterable of splits",
                "fold numbers",
                "Greedy KFold GroupKFold TimeFolds Holdout LeaveOneOut Ordered",
            )
            raise errors.bad_option("TargetEncoder", "cv", cv, allowed)
        cv = Splits(cv)
    scheme: Scheme = cv
    scheme.check()
    return scheme
