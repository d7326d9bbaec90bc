"""What the user brings as `cv`: a number, fold numbers, splits, a scheme."""

from collections.abc import Iterable
from numbers import Integral, Number
from typing import Any

import numpy as np

from gpu_encode import frames
from gpu_encode.errors.parameters import bad_option, check_option
from gpu_encode.schemes.base import Scheme
from gpu_encode.schemes.folds import KFold
from gpu_encode.schemes.plans import ByValue, FoldPlan, Plan, Request, all_but_own, from_splits


class FoldNumbers(Scheme):
    """Fold numbers that the user brings: a column of X or an array."""

    def __init__(self, folds: Any) -> None:
        self.folds = folds

    def reads(self) -> list[tuple[Any, str]]:
        """Give the fold numbers."""
        return [(self.folds, "fold numbers")]

    def plan(self, request: Request) -> FoldPlan:
        """Give the numbers as they are, counted from zero."""
        n_folds = len(request.counts["fold numbers"])
        if n_folds < 2:
            raise ValueError(
                "The fold numbers hold a single fold, whose rows would see nothing. Give at least two folds."
            )
        return all_but_own(ByValue(self.folds, "fold numbers", np.arange(n_folds, dtype=np.int32)), n_folds)


class Splits(Scheme):
    """A scikit-learn splitter, or an iterable of (training rows, test rows)."""

    def __init__(self, cv: Any) -> None:
        self.cv = cv

    def plan(self, request: Request) -> Plan:
        """Ask once for the splits."""
        splits = self.cv
        if hasattr(splits, "split"):
            grouping = {} if request.groups is None else {"groups": request.groups.values(0)}
            splits = splits.split(request.X, request.y, **grouping)
        listed = list(splits)
        if listed and not isinstance(listed[0], tuple) and is_vector(listed[0]):
            raise ValueError(
                "cv holds several vectors of fold numbers. Fold numbers are one array for all rows, also where X is a "
                "list of tables: concatenate them, or name a column of X that holds them."
            )
        if not listed or any(not isinstance(split, (tuple, list)) or len(split) != 2 for split in listed):
            raise ValueError("cv must give at least one split, each a pair of training rows and validation rows.")
        return from_splits([(train, test) for train, test in listed], request.n_rows)


def is_vector(cv: Any) -> bool:
    """Whether `cv` holds one value per row, rather than splits."""
    if isinstance(cv, (list, tuple)):
        return len(cv) > 0 and (cv[0] is None or isinstance(cv[0], (Number, np.generic, str)))
    return hasattr(cv, "__array__") and getattr(cv, "ndim", 1) in (1, 2)


def resolve(cv: Any, shuffle: Any, random_state: Any, owner: str = "TargetEncoder") -> Scheme:
    """Turn what the user of an encoder gave as `cv` into a checked scheme."""
    if cv is None or (isinstance(cv, Integral) and not isinstance(cv, bool)):
        check_option(owner, "shuffle", shuffle, (True, False))
        cv = KFold(5 if cv is None else int(cv), order="random" if shuffle else "contiguous", random_state=random_state)
    elif isinstance(cv, str):
        cv = FoldNumbers(cv)
    elif is_vector(cv):
        cv = FoldNumbers(frames.read_grouping(cv, "cv"))
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
            raise bad_option(owner, "cv", cv, allowed)
        cv = Splits(cv)
    scheme: Scheme = cv
    scheme.check()
    return scheme


def integer_folds(cv: Any, scheme: Scheme) -> int | None:
    """Give the folds of a scheme that was resolved from a number of folds, None of any other."""
    return scheme.n_splits if isinstance(scheme, KFold) and not isinstance(cv, Scheme) else None
