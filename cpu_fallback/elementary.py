"""exp, log and sums of arrays as fixed sequences of + - * /, so that every machine gives the same bits.

The bits of NumPy's own functions depend on whether the processor has AVX-512.  The sequences are those of fdlibm (Sun
Microsystems, 1993), with errors below 1 ulp.
"""

from collections.abc import Iterable
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = 1.90821492927058770002e-10
INVERSE_LN2 = 1.44269504088896338700e00
EXP_TERMS = (
    1.66666666666666019037e-01,
    -2.77777777770155933842e-03,
    6.61375632143793436117e-05,
    -1.65339022054652515390e-06,
    4.13813679705723846039e-08,
)
LOG_ODD = (6.666666666666735130e-01, 2.857142874366239149e-01, 1.818357216161805012e-01, 1.479819860511658591e-01)
LOG_EVEN = (3.999999999940941908e-01, 2.222219843214978396e-01, 1.531383769920937332e-01)


def add_in_order(arrays: Iterable[Floats]) -> Floats:
    """Add arrays from the first to the last."""
    return reduce(np.add, arrays)


def exp(values: Floats) -> Floats:
    """E to the power of each value.

    Parameters
    ----------
    values : float64 array

    Returns
    -------
    float64 array
        Within 1 ulp of the true value; 0 below about -745, inf above about 709.8.

    Examples
    --------
    >>> import numpy as np
    >>> from cpu_fallback.elementary import exp
    >>> float(exp(np.array([2.0]))[0])
    7.38905609893065
    """
    clipped = np.clip(values, -800.0, 800.0)
    power = np.rint(clipped * INVERSE_LN2)
    high = clipped - power * LN2_HIGH
    low = power * LN2_LOW
    reduced = high - low
    square = reduced * reduced
    series = np.full_like(reduced, EXP_TERMS[-1])
    for term in EXP_TERMS[-2::-1]:
        series = term + square * series
    correction = reduced - square * series
    value = 1.0 - ((low - (reduced * correction) / (2.0 - correction)) - high)
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(value, np.nan_to_num(power).astype(np.int32))


def log(values: Floats) -> Floats:
    """Natural logarithm of each value.

    Parameters
    ----------
    values : float64 array
        Positive numbers; zero gives -inf, a negative number NaN.

    Returns
    -------
    float64 array
        Within 1 ulp of the true value.

    Examples
    --------
    >>> import numpy as np
    >>> from cpu_fallback.elementary import log
    >>> float(log(np.array([10.0]))[0])
    2.302585092994046
    """
    fraction, power = np.frexp(np.where((values > 0) & (values < np.inf), values, 1.0))
    small = fraction < np.sqrt(0.5)
    fraction = np.where(small, 2.0 * fraction, fraction)
    exponent = (power - small).astype(np.float64)
    shifted = fraction - 1.0
    ratio = shifted / (2.0 + shifted)
    series = log_series(ratio)
    half = 0.5 * shifted * shifted
    plain = exponent * LN2_HIGH - ((half - (ratio * (half + series) + exponent * LN2_LOW)) - shifted)
    return np.where(values > 0, np.where(np.isinf(values), np.inf, plain), np.where(values == 0, -np.inf, np.nan))


def log_of_quotient(
    top: Floats, bottom: Floats, rests: tuple[Floats, Floats] | None = None, apart: Any = 0
) -> tuple[Floats, Floats, Floats]:
    """Natural logarithm of top / bottom * 2**apart, within 3 ulp even if the two are nearly equal.

    Parameters
    ----------
    top, bottom : float64 array
        At least 0; their quotient, and a hundredth of each, must be normal numbers.
    rests : pair of float64 arrays, optional
        The parts of both numbers that `top` and `bottom` do not hold, each at most half of a unit in the last place.
    apart : int or int array, default=0

    Returns
    -------
    logarithm : float64 array
        -inf if top is 0, inf if bottom is 0, NaN if both are 0.
    difference : float64 array
        The difference top - bottom * 2**power, where 2**power is the power of two nearest to top / bottom.
    exponent : float64 array
        power + apart.

    Examples
    --------
    >>> import numpy as np
    >>> from cpu_fallback.elementary import log_of_quotient
    >>> print(f"{log_of_quotient(np.array([3e15 + 1]), np.array([3e15]))[0][0]:.15}")
    3.33333333333333e-16
    """
    usable = (top > 0) & (bottom > 0)
    fraction, power = np.frexp(np.where(usable, top, 1.0) / np.where(usable, bottom, 1.0))
    power = power - (fraction < np.sqrt(0.5))
    near = np.ldexp(bottom, power)
    # The difference is not rounded, since the two are within a factor of two.
    difference = top - near
    if rests is not None:
        difference = difference + (rests[0] - np.ldexp(rests[1], power))
    ratio = np.where(usable, difference, 0.0) / np.where(usable, top + near, 1.0)
    exponent = (power + apart).astype(np.float64)
    # If the exponent is 0, 2 * ratio is the largest part.
    plain = exponent * LN2_HIGH + (2.0 * ratio + (ratio * log_series(ratio) + exponent * LN2_LOW))
    ends = np.where(top > 0, np.inf, np.where(bottom > 0, -np.inf, np.nan))
    return np.where(usable, plain, ends), difference, exponent


def log_series(ratio: Floats) -> Floats:
    """Give log((1 + ratio) / (1 - ratio)) / ratio - 2, for ratios up to 0.18."""
    square = ratio * ratio
    fourth = square * square
    odd = np.full_like(ratio, LOG_ODD[-1])
    for term in LOG_ODD[-2::-1]:
        odd = term + fourth * odd
    even = np.full_like(ratio, LOG_EVEN[-1])
    for term in LOG_EVEN[-2::-1]:
        even = term + fourth * even
    return square * odd + fourth * even
