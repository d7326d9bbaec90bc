"""exp and log of one number, as the fixed sequences of + - * / of `cpu_fallback.elementary`."""

import math

import numpy as np

from cpu_fallback.compiled.border import stage
from cpu_fallback.elementary import LOG_EVEN, LOG_ODD

LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = 1.90821492927058770002e-10
INVERSE_LN2 = 1.44269504088896338700e00
# If this is added to a number of at most 2**51, the sum has no room for a fraction, so the number is rounded.
TO_WHOLE = 1.5 * 2.0**52
FIRST, SECOND, THIRD, FOURTH, FIFTH = (
    1.66666666666666019037e-01,
    -2.77777777770155933842e-03,
    6.61375632143793436117e-05,
    -1.65339022054652515390e-06,
    4.13813679705723846039e-08,
)
SQUARE_ROOT_OF_HALF = float(np.sqrt(0.5))
ODD_1, ODD_2, ODD_3, ODD_4 = LOG_ODD
EVEN_1, EVEN_2, EVEN_3 = LOG_EVEN


@stage
def exp(value: float) -> float:
    """E to the power of a number that is not NaN."""
    clipped = min(max(value, -800.0), 800.0)
    power = (clipped * INVERSE_LN2 + TO_WHOLE) - TO_WHOLE
    high = clipped - power * LN2_HIGH
    low = power * LN2_LOW
    reduced = high - low
    square = reduced * reduced
    series = FOURTH + square * FIFTH
    series = THIRD + square * series
    series = SECOND + square * series
    series = FIRST + square * series
    correction = reduced - square * series
    result = 1.0 - ((low - (reduced * correction) / (2.0 - correction)) - high)
    return math.ldexp(result, int(power))


@stage
def log(value: float) -> float:
    """Natural logarithm of a finite number above zero."""
    fraction, power = math.frexp(value)
    if fraction < SQUARE_ROOT_OF_HALF:
        fraction, power = 2.0 * fraction, power - 1
    exponent, shifted = float(power), fraction - 1.0
    ratio = shifted / (2.0 + shifted)
    square = ratio * ratio
    fourth = square * square
    odd = ODD_1 + fourth * (ODD_2 + fourth * (ODD_3 + fourth * ODD_4))
    even = EVEN_1 + fourth * (EVEN_2 + fourth * EVEN_3)
    series = square * odd + fourth * even
    half = 0.5 * shifted * shifted
    return exponent * LN2_HIGH - ((half - (ratio * (half + series) + exponent * LN2_LOW)) - shifted)
