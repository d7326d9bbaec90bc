"""Which statistics exist, how users ask for them, what their columns are called, and in what range their values lie."""

import difflib
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from gpu_encode.formulas import order_statistics
from gpu_encode.formulas.mergeable import MergeableStatistic
from gpu_encode.words.errors.parameters import nameless_statistic

# Statistics that need more than a name.
_WITH_NUMBER = '("quantile", q), ("share", t)'
# The names of some statistics in other libraries.
_ALIASES = {
    "variance": "var",
    "skewness": "skew",
    "kurtosis": "kurt",
    "average": "mean",
    "stdev": "std",
    "unique": "nunique",
}

OF_LABELS = ("count", "sum", "mean", "var", "std", "sem")
OF_POWERS = ("skew", "kurt")
# This statistic is a number for each row, by the row's own date: no sums of a category give it.
SECONDS_SINCE_LAST = "seconds_since_last"
NAMES = (*OF_LABELS, *OF_POWERS, *order_statistics.NAMES, SECONDS_SINCE_LAST)
AMID_VALUES = ("mean", "min", "max", "median", "quantile", "mode")
# Statistics whose results are values of the column, and so are text or dates if the column holds these.
VALUES = ("mode", "min", "max", "first", "last")
OF_TEXT = ("count", "nunique", "mode")
OF_DATES = (*OF_TEXT, "min", "max", "first", "last", SECONDS_SINCE_LAST)
# Statistics of dates only, and the statistic to use for numbers instead.
DATES_ALONE = {"first": "min", "last": "max", SECONDS_SINCE_LAST: None}
NEVER_NEGATIVE = ("count", "var", "std", "sem", "nunique")


def is_ordered(statistic: Any) -> bool:
    """Whether a statistic follows from the values in order, and not from their sums."""
    return isinstance(statistic, (tuple, list)) or statistic in order_statistics.NAMES


def has_terms(statistic: Any) -> bool:
    """Whether a statistic follows from further sums of numbers."""
    return isinstance(statistic, MergeableStatistic) or statistic in OF_POWERS


def name_of(statistic: Any) -> str:
    """Name a statistic, as it appears in the names of output columns."""
    if isinstance(statistic, MergeableStatistic):
        return str(statistic.name)
    if callable(statistic):
        return str(statistic.__name__)
    if isinstance(statistic, str):
        return statistic
    kind, number = statistic
    short = f"{float(number):g}"
    # Six digits are shown, unless another number has the same six digits.
    shown = short if float(short) == number else str(number)
    return f"{kind}_{shown}" if kind == "quantile" else f"{kind}_above_{shown}"


def check_statistics(statistics: Any) -> None:
    """Raise ValueError for statistics that do not exist, or that are listed twice."""
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
    """Give the error for a statistic that does not exist; it names the existing statistics."""
    word = str(found)
    near = [_ALIASES[word]] if word in _ALIASES else difflib.get_close_matches(word, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return ValueError(f"statistics names {found!r}, which is neither one of {_list(names)} nor a function.{hint}")


def union_of(lists: Sequence[Sequence[Any]]) -> list[Any]:
    """Join lists of statistics: each statistic once, at its first position."""
    union: list[Any] = []
    for statistics in lists:
        # A set would not do: a function equals only itself, and lists cannot be members of a set.
        union += [statistic for statistic in statistics if statistic not in union]
    return union


def check_number(statistic: Any) -> None:
    """Raise ValueError for a quantile outside 0 to 1, or a threshold that is not a number."""
    kind, number = statistic
    if not is_finite(number) or (kind == "quantile" and not 0.0 <= float(number) <= 1.0):
        raise ValueError(
            f'statistics lists {statistic!r}. A quantile is ("quantile", q) with q from 0 to 1. A share of the values '
            'above a finite threshold t is ("share", t).'
        )


def is_finite(number: Any) -> bool:
    """Whether something is a number that float64 can hold."""
    try:
        return isinstance(number, Real) and not isinstance(number, bool) and bool(np.isfinite(float(number)))
    except OverflowError:
        return False


def range_of(statistic: Any, least: float, largest: float) -> tuple[float, float]:
    """Give the smallest and the largest value of a statistic, if all values lie between two numbers.

    Parameters
    ----------
    statistic : str, tuple or object
        A statistic, as `StatisticEncoder` takes it; nothing is known of a user's own statistics.

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
