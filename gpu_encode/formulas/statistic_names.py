"""Which statistics there are, how they are asked for, what their columns are called, and where their values lie."""

import difflib
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from gpu_encode.formulas import order_statistics
from gpu_encode.formulas.mergeable import MergeableStatistic
from gpu_encode.words.errors.parameters import nameless_statistic

# Those that a name alone does not ask for.
_WITH_NUMBER = '("quantile", q), ("share", t)'
# What other libraries call some of them.
_ALIASES = {"variance": "var", "skewness": "skew", "average": "mean", "stdev": "std", "unique": "nunique"}

OF_LABELS = ("count", "sum", "mean", "var", "std", "sem")
# A number for each row, by its own date: no sums of a category give it.
SECONDS_SINCE_LAST = "seconds_since_last"
NAMES = (*OF_LABELS, "skew", *order_statistics.NAMES, SECONDS_SINCE_LAST)
AMID_VALUES = ("mean", "min", "max", "median", "quantile", "mode")
# Statistics that are themselves values of a column, and so text or dates where these are.
VALUES = ("mode", "min", "max", "first", "last")
OF_TEXT = ("count", "nunique", "mode")
OF_DATES = (*OF_TEXT, "min", "max", "first", "last", SECONDS_SINCE_LAST)
# What there is of dates alone, and what to take of numbers instead.
DATES_ALONE = {"first": "min", "last": "max", SECONDS_SINCE_LAST: None}
NEVER_NEGATIVE = ("count", "var", "std", "sem", "nunique")


def is_ordered(statistic: Any) -> bool:
    """Whether a statistic follows from the values in order, and not from their sums."""
    return isinstance(statistic, (tuple, list)) or statistic in order_statistics.NAMES


def has_terms(statistic: Any) -> bool:
    """Whether a statistic follows from further sums of numbers."""
    return isinstance(statistic, MergeableStatistic) or statistic == "skew"


def name_of(statistic: Any) -> str:
    """Name a statistic, as output columns have it."""
    if isinstance(statistic, MergeableStatistic):
        return str(statistic.name)
    if callable(statistic):
        return str(statistic.__name__)
    if isinstance(statistic, str):
        return statistic
    kind, number = statistic
    short = f"{float(number):g}"
    # Six digits, unless another number has the same six.
    shown = short if float(short) == number else str(number)
    return f"{kind}_{shown}" if kind == "quantile" else f"{kind}_above_{shown}"


def check_statistics(statistics: Any) -> None:
    """Raise ValueError for statistics that there are not, or that are listed twice."""
    if isinstance(statistics, str) or not isinstance(statistics, (list, tuple)) or not statistics:
        raise ValueError(
            f"statistics must be a list of at least one of {_list(NAMES)}, or functions. Got {statistics!r}."
        )
    for statistic in statistics:
        if callable(statistic):
            if not str(getattr(statistic, "__name__", "<")).isidentifier():
                raise nameless_statistic(statistic)
        elif (
            isinstance(statistic, (tuple, list))
            and len(statistic) == 2
            and statistic[0] in order_statistics.WITH_NUMBER
        ):
            check_number(statistic)
        elif isinstance(statistic, MergeableStatistic):
            statistic.check()
        elif not isinstance(statistic, str) or statistic not in NAMES:
            raise _unknown_statistic(statistic, NAMES)
    names = [name_of(statistic) for statistic in statistics]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"statistics lists {repeated[0]!r} twice. Leave one out, or give the function another name.")


def _unknown_statistic(found: object, names: Sequence[str]) -> ValueError:
    """Error for a statistic that does not exist; names those that do."""
    word = str(found)
    near = [_ALIASES[word]] if word in _ALIASES else difflib.get_close_matches(word, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return ValueError(f"statistics names {found!r}, which is none of {_list(names)}, and no function of arrays.{hint}")


def union_of(lists: Sequence[Sequence[Any]]) -> list[Any]:
    """Put lists of statistics together, each statistic once, where it comes first."""
    union: list[Any] = []
    for statistics in lists:
        # Not a set: functions are equal to themselves alone, and lists are no keys.
        union += [statistic for statistic in statistics if statistic not in union]
    return union


def check_number(statistic: Any) -> None:
    """Raise ValueError for a quantile of no share, or a threshold that is no number."""
    kind, number = statistic
    if not is_finite(number) or (kind == "quantile" and not 0.0 <= float(number) <= 1.0):
        raise ValueError(
            f'statistics lists {statistic!r}. A quantile is ("quantile", q) with q from 0 to 1, and a share ("share", '
            "t) with a finite threshold t, which it counts the values above."
        )


def is_finite(number: Any) -> bool:
    """Whether something is a number that float64 has room for."""
    try:
        return isinstance(number, Real) and not isinstance(number, bool) and bool(np.isfinite(float(number)))
    except OverflowError:
        return False


def range_of(statistic: Any, least: float, largest: float) -> tuple[float, float]:
    """Give the least and the largest number that a statistic of values between two numbers may be.

    Parameters
    ----------
    statistic : str, tuple or object
        As `StatisticEncoder` takes it; of the user's own nothing is known.

    Returns
    -------
    tuple of two float

    Examples
    --------
    >>> from gpu_encode.formulas.statistic_names import range_of
    >>> range_of(("quantile", 0.5), -3.0, 8.0), range_of("std", -3.0, 8.0)
    ((-3.0, 8.0), (0.0, inf))
    """
    kind = statistic[0] if isinstance(statistic, (tuple, list)) else statistic
    if not isinstance(kind, str):
        return -np.inf, np.inf
    if kind in AMID_VALUES:
        return least, largest
    if kind == "share":
        return 0.0, 1.0
    return 0.0 if kind in NEVER_NEGATIVE or (kind == "sum" and least >= 0) else -np.inf, np.inf


def _list(names: Sequence[str]) -> str:
    return ", ".join([*map(repr, names), _WITH_NUMBER])
