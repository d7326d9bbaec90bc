"""Scales on which votes are added up, and their inverses."""

from typing import Any

import numpy as np

from cpu_fallback.elementary import exp, log
from cpu_fallback.exact import Floats
from gpu_encode.words.errors.parameters import check_number, check_option

PHIS = ("identity", "log", "sqrt", "logit")


def check_phi(owner: str, phi: Any) -> None:
    """Raise ValueError unless `phi` is the name of a scale, or a positive power."""
    if isinstance(phi, (int, float, np.number)) and not isinstance(phi, bool):
        check_number(owner, "phi", phi, low=0.0, open_low=True)
    else:
        check_option(owner, "phi", phi, PHIS, "a power above 0")


def put_on(values: Floats, phi: Any, nearest: float) -> Floats:
    """Transform encodings to a scale.

    Parameters
    ----------
    values : float64 array
        At least 0 unless phi is "identity"; for "logit" at most 1.
    phi : str or float
    nearest : float
        For logarithms, values are kept at least this far from 0; for "logit" also from 1.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode.methods.votes.phi import put_on, take_off
    >>> logits = put_on(np.array([0.0, 0.5, 1.0]), "logit", 1e-6)
    >>> logits.round(3).tolist()
    [-13.816, 0.0, 13.816]
    >>> take_off(logits, "logit").round(7).tolist()
    [1e-06, 0.5, 0.999999]
    """
    if phi == "identity":
        return values
    if phi == "log":
        return log(np.maximum(values, nearest))
    if phi == "sqrt":
        return np.sqrt(values)
    if phi == "logit":
        shares = np.clip(values, nearest, 1.0 - nearest)
        return log(shares) - log(1.0 - shares)
    return power(values, float(phi))


def take_off(values: Floats, phi: Any) -> Floats:
    """Transform values on a scale back to encodings."""
    if phi == "identity":
        return values
    if phi == "log":
        return exp(values)
    if phi == "sqrt":
        return values * values
    return sigmoid(values) if phi == "logit" else power(values, 1.0 / float(phi))


def power(values: Floats, exponent: float) -> Floats:
    """Raise non-negative numbers to a positive power."""
    positive = values > 0
    return np.where(positive, exp(exponent * log(np.where(positive, values, 1.0))), 0.0)


def sigmoid(values: Floats) -> Floats:
    """Give the shares that have these log-odds."""
    return 1.0 / (1.0 + exp(-values))
