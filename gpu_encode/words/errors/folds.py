"""Folds that the rows at hand cannot be dealt out to."""

from math import ceil, log, log1p
from typing import Any

from numpy.typing import NDArray

from gpu_encode.words.errors.targets import missing_targets
from gpu_encode.words.errors.values import RowError

# What a column of fold numbers is made by.
FOLD_COLUMN = """
    fold = numpy.empty(len(X), int)
    for number, (_, rows) in enumerate(cv.split(X, y)):
        fold[rows] = number
    X["fold"] = fold"""

# The same where some rows have no target, and a splitter cannot do without: these have a fold of their own.
FOLD_COLUMN_OF_KNOWN = """
    fold, known = numpy.zeros(len(X), int), numpy.flatnonzero(pandas.notna(y))
    for number, (_, rows) in enumerate(cv.split(X.iloc[known], numpy.asarray(y)[known]), 1):
        fold[known[rows]] = number
    X["fold"] = fold"""


# An empty fold is unlikely where one table in so many has one.
UNLIKELY = 1_000_000


def by_beside(by: object, other: str, instead: str = "leave one of them out") -> ValueError:
    """Error for folds by value beside what has no part in them, or would change them from one pass to the next."""
    return ValueError(f"KFold(by={by!r}) finds folds by values alone, and takes no {other}: {instead}.")


def empty_folds(by: object, fold: int, n_splits: int) -> ValueError:
    """Error for a fold into which none of the values falls."""
    enough = ceil(log(UNLIKELY * n_splits) / -log1p(-1 / n_splits))
    return ValueError(
        f"No row falls into fold {fold} of KFold({n_splits}, by={by!r}): its values are few, or were chosen by the "
        f"same hash. From {enough} distinct values on, less than one table in a million has an empty fold. Take fewer "
        "folds, more columns, another random_state, or GroupKFold, which deals out few groups evenly."
    )


def nothing_to_stratify() -> ValueError:
    """Error for stratified folds without classes."""
    return ValueError("KFold(stratify=True) needs one classification target.")


def splits_of_all_rows(cv: object) -> ValueError:
    """Error for a splitter of scikit-learn that looks at more than the number of rows, where these come in parts."""
    return ValueError(
        f"cv={cv!r} looks at all rows at once, and these come in parts. Take KFold, GroupKFold, TimeFolds, Holdout, "
        "LeaveOneOut or Ordered of gpu_encode; or write each row's fold number into a column, beforehand, and name it, "
        f'cv="fold":{FOLD_COLUMN}'
    )


def splitter_without_targets(cv: object, error: Exception, rows: NDArray[Any]) -> RowError:
    """Error for a splitter of scikit-learn that fails where rows without a target are kept."""
    said = str(error).splitlines()[0].rstrip(".")
    advice = (
        f", and cv={cv!r} fails: {said}. If it splits by y, split the rows that have a target beforehand, give the "
        f'others a fold of their own, which sees all of these, and name the column, cv="fold":{FOLD_COLUMN_OF_KNOWN}'
    )
    return missing_targets("y", rows, advice)
