"""Find where a function of one variance is lowest; and sums with a fixed order of additions."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from cpu_fallback.exact import Floats

Curve = Callable[[float], float]
Ends = tuple[float, float]

# A search ends when its two ends are this near each other, relative to their size; the result is much nearer still.
NARROW = 2.0**-36
# Far more steps than any search takes, so that rounding errors cannot make a search endless.
MOST_STEPS = 100
# The ratio of neighbouring points at which the slope is computed.
STRIDE = 8.0
# At the first of these points, the mean of the largest category has this weight.
FAINT = 2.0**-10


def total(values: Floats) -> float:
    """Sum a one-dimensional array from the first to the last number; 0 for none.

    NumPy's own sum adds in an order that depends on the machine.
    """
    return float(np.cumsum(values)[-1]) if len(values) else 0.0


def lowest(slope: Curve, height: Curve, start: float, ceiling: float) -> float:
    """Find the argument in [0, ceiling] at which a function is lowest.

    Its derivative is computed at 0, at `start` times powers of eight, and at `ceiling`.  Between two points where the
    function turns from falling to rising, the zero of the derivative is found.  If there are several, the function
    itself decides.

    Parameters
    ----------
    slope, height : function of float giving float
        Derivative and value.
    start, ceiling : float
        Smallest and largest argument above zero that is tried.
    """
    points = [0.0, start]
    while points[-1] * STRIDE < ceiling:
        points.append(points[-1] * STRIDE)
    points.append(ceiling)
    slopes = [slope(point) for point in points]
    lows = [0.0] if slopes[0] >= 0 else []
    for ends, values in zip(pairwise(points), pairwise(slopes), strict=True):
        if values[0] < 0 <= values[1]:
            lows += [zero_between(*((slope, ends, values) if ends[0] == 0 else by_logarithm(slope, ends, values)))]
    if slopes[-1] < 0:
        lows.append(ceiling)
    return lows[0] if len(lows) == 1 else min(lows, key=lambda point: (height(point), point))


def by_logarithm(slope: Curve, ends: Ends, values: Ends) -> tuple[Curve, Ends, Ends]:
    """Give the derivative with respect to the argument's logarithm, which is nearer to a straight line."""
    return lambda point: point * slope(point), ends, (ends[0] * values[0], ends[1] * values[1])


def zero_between(curve: Curve, ends: Ends, values: Ends) -> float:
    """Find the zero of a curve that is negative at the first end and not at the second, by the Illinois rule.

    References
    ----------
    Dowell and Jarratt (1971), A modified regula falsi method for computing the root of an equation.
    """
    (left, right), (at_left, at_right) = ends, values
    point, side = right, 0
    for _ in range(MOST_STEPS):
        if right - left <= NARROW * right:
            break
        point = right - at_right * ((right - left) / (at_right - at_left))
        if not left < point < right:
            point = 0.5 * (left + right)
        value = curve(point)
        if value == 0:
            break
        # If one end stays twice in a row, its value is halved; otherwise all steps could come from one side.
        if value < 0:
            left, at_left, at_right = point, value, at_right * (0.5 if side < 0 else 1.0)
            side = -1
        else:
            right, at_right, at_left = point, value, at_left * (0.5 if side > 0 else 1.0)
            side = 1
    return point
