"""exp of one number, as the fixed sequence of + - * / of `cpu_fallback.elementary`."""

import math

from cpu_fallback.compiled.border import stage

LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = 1.90821492927058770002e-10
INVERSE_LN2 = 1.44269504088896338700e00
# What is added to a number of at most 2**51 has no room for a fraction: it is rounded, a tie to even.
TO_WHOLE = 1.5 * 2.0**52
FIRST, SECOND, THIRD, FOURTH, FIFTH = (
    1.66666666666666019037e-01,
    -2.77777777770155933842e-03,
    6.61375632143793436117e-05,
    -1.65339022054652515390e-06,
    4.13813679705723846039e-08,
)


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
