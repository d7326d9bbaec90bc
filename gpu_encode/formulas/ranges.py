"""Between which numbers a statistic lies, whatever rows it is of."""

from typing import Any

import numpy as np

AMID_VALUES = ("mean", "min", "max", "median", "quantile", "mode")
NEVER_NEGATIVE = ("count", "var", "std", "sem", "nunique")


def range_of(statistic: Any, least: float, largest: float) -> tuple[float, float]:
    """Give the least and the largest number that a statistic of values between two numbers may be.

    Parameters
    ----------
    statistic : str, tuple or object
        As `StatisticEncoder` takes it; of the user's own nothing is known.
    least, largest : float

    Returns
    -------
    tuple of two float

    Examples
    --------
    >>> from gpu_encode.formulas.ranges import range_of
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
