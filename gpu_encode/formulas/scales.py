"""Scales of encodings: each encoding is computed as without a scale, and then put on it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cpu_fallback.elementary import exp, log
from cpu_fallback.exact import Floats
from gpu_encode.words.errors.parameters import check_number, check_option

SCALES = ("identity", "log", "log1p", "sqrt", "logit")
# A share nearer to 0 or 1 than this counts as this far away: its logit is about -13.9 or 13.9.
NEAREST = 2.0**-20


def check_scale(owner: str, scale: Any) -> None:
    """Raise ValueError unless `scale` is the name of a scale, ("log", floor), or a power above zero."""
    if isinstance(scale, (tuple, list)) and len(scale) == 2 and scale[0] == "log":
        check_number(owner, "scale floor", scale[1], low=0.0, open_low=True)
    elif isinstance(scale, (int, float, np.number)) and not isinstance(scale, bool):
        check_number(owner, "scale", scale, low=0.0, open_low=True)
    else:
        check_option(owner, "scale", scale, SCALES, '("log", floor)', "a power above 0")


def check_ranges(owner: str, scale: Any, ranges: Sequence[tuple[str, float, float]], values: str | None) -> None:
    """Raise ValueError for encodings that may lie outside of a scale, which is not "identity".

    Parameters
    ----------
    ranges : list of (str, float, float)
        The name of each encoding, and its smallest and largest value, as `Statistic.ranges` gives them.
    values : str, optional
        Name of the column of values; None is y.
    """
    for computed, least, largest in ranges:
        if least < 0 or (scale == "logit" and largest > 1):
            raise _beyond_scale(owner, scale, computed, "y" if values is None else repr(values), least, largest)


def _beyond_scale(owner: str, scale: object, computed: str, values: str, least: float, largest: float) -> ValueError:
    """Error for encodings that may lie outside of their scale."""
    wanted = "shares between 0 and 1" if scale == "logit" else "numbers of at least 0"
    return ValueError(
        f"scale={scale!r} of {owner} is for {wanted}, but {computed} of {values} may be anything from {least:g} to "
        f'{largest:g}. Take scale="identity", leave it out, or give other values.'
    )


def on_scale(values: Floats, scale: Any) -> Floats:
    """Put encodings on a scale; NaN stays.

    Parameters
    ----------
    values : float64 array
        At least 0; for "logit" at most 1.
    scale : str, tuple or float
        "log" (log(max(x, 2**-20))) or ("log", floor) (log(max(x, floor))), "log1p" (log(1 + x)), "sqrt", "logit"
        (log(x / (1 - x)), of x between 2**-20 and 1 - 2**-20), or a power p (x**p).

    Returns
    -------
    float64 array

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode.formulas.scales import on_scale
    >>> on_scale(np.array([0.0, 0.5, 1.0]), "logit").round(3).tolist()
    [-13.863, 0.0, 13.863]
    >>> on_scale(np.array([0.0, 0.5, 1.0]), ("log", 0.01)).round(3).tolist()
    [-4.605, -0.693, 0.0]
    """
    known = np.where(np.isnan(values), 1.0, values)
    if isinstance(scale, (tuple, list)) or scale == "log":
        floor = NEAREST if scale == "log" else float(scale[1])
        scaled = log(np.maximum(known, floor))
    elif scale == "log1p":
        scaled = log(1.0 + known)
    elif scale == "sqrt":
        scaled = np.sqrt(known)
    elif scale == "logit":
        share = np.clip(known, NEAREST, 1.0 - NEAREST)
        scaled = log(share / (1.0 - share))
    else:
        positive = known > 0
        scaled = np.where(positive, exp(float(scale) * log(np.where(positive, known, 1.0))), 0.0)
    return np.where(np.isnan(values), values, scaled)
