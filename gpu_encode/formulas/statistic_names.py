"""Which statistics there are, how they are asked for, and what their columns are called."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from gpu_encode.errors.statistics import nameless_statistic, no_statistics, unknown_statistic
from gpu_encode.formulas import order_statistics
from gpu_encode.formulas.mergeable import MergeableStatistic

OF_LABELS = ("count", "sum", "mean", "var", "std", "sem")
NAMES = (*OF_LABELS, "skew", *order_statistics.NAMES)


def is_ordered(statistic: Any) -> bool:
    """Whether a statistic follows from the values in order, and not from their sums."""
    return isinstance(statistic, (tuple, list)) or statistic in order_statistics.NAMES


def has_terms(statistic: Any) -> bool:
    """Whether a statistic follows from further sums of numbers."""
    return isinstance(statistic, MergeableStatistic) or statistic == "skew"


def name_of(statistic: Any) -> str:
    """Name of a statistic, as output columns have it."""
    if isinstance(statistic, MergeableStatistic):
        return str(statistic.name)
    if callable(statistic):
        return str(statistic.__name__)
    if isinstance(statistic, str):
        return statistic
    kind, number = statistic
    short = f"{float(number):g}"
    # Six digits, unless they are those of another number.
    shown = short if float(short) == number else str(number)
    return f"{kind}_{shown}" if kind == "quantile" else f"{kind}_above_{shown}"


def check_statistics(statistics: Any) -> None:
    """Raise ValueError for statistics that there are not, or that are listed twice."""
    if isinstance(statistics, str) or not isinstance(statistics, (list, tuple)) or not statistics:
        raise no_statistics(statistics, NAMES)
    for each in statistics:
        if callable(each):
            if not str(getattr(each, "__name__", "<")).isidentifier():
                raise nameless_statistic(each)
        elif isinstance(each, (tuple, list)) and len(each) == 2 and each[0] in order_statistics.WITH_NUMBER:
            check_number(each)
        elif isinstance(each, MergeableStatistic):
            each.check()
        elif not isinstance(each, str) or each not in NAMES:
            raise unknown_statistic(each, NAMES)
    names = [name_of(each) for each in statistics]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"statistics lists {repeated[0]!r} twice. Leave one out, or give the function another name.")


def union_of(lists: Sequence[Sequence[Any]]) -> list[Any]:
    """Put lists of statistics together, each statistic once, where it comes first."""
    found: list[Any] = []
    for own in lists:
        found += [each for each in own if each not in found]
    return found


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
