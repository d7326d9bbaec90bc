"""Where a function of one variance is lowest, and sums whose order of additions is part of their definition."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from cpu_fallback.exact import Floats

Curve = Callable[[float], float]
Ends = tuple[float, float]

# Two ends that are so near each other, beside their size, end a search: the last step was as much better again.
NARROW = 2.0**-36
# Far more than any search takes, so that rounding errors cannot make one endless.
MOST_STEPS = 100
# Neighbouring points at which the slope is looked at.
STRIDE = 8.0
# The first of them leaves this share of the largest category's own mean.
FAINT = 2.0**-10


def total(values: Floats) -> float:
    """Sum of a one-dimensional array, added up from the first to the last; 0 for none.

    NumPy's own sum adds in an order that depends on the machine.
    """
    return float(np.cumsum(values)[-1]) if len(values) else 0.0


def lowest(slope: Curve, height: Curve, start: float, ceiling: float) -> float:
    """Argument in [0, ceiling] at which a function is lowest.

    Its derivative is looked at in 0, in `start` times powers of eight, and in `ceiling`; wherever the function turns
    from falling to rising, the zero is found.  Where there is more than one such place, the function itself decides.

    Parameters
    ----------
    slope, height : function of float giving float
        Derivative and value.
    start, ceiling : float
        Smallest and largest argument above zero that is looked at.
    """
    places = [0.0, start]
    while places[-1] * STRIDE < ceiling:
        places.append(places[-1] * STRIDE)
    places.append(ceiling)
    slopes = [slope(place) for place in places]
    found = [0.0] if slopes[0] >= 0 else []
    for ends, values in zip(pairwise(places), pairwise(slopes), strict=True):
        if values[0] < 0 <= values[1]:
            found += [zero_between(*((slope, ends, values) if ends[0] == 0 else by_logarithm(slope, ends, values)))]
    if slopes[-1] < 0:
        found.append(ceiling)
    return found[0] if len(found) == 1 else min(found, key=lambda place: (height(place), place))


def by_logarithm(slope: Curve, ends: Ends, values: Ends) -> tuple[Curve, Ends, Ends]:
    """Derivative by the argument's logarithm, which is straighter."""
    return lambda place: place * slope(place), ends, (ends[0] * values[0], ends[1] * values[1])


def zero_between(curve: Curve, ends: Ends, values: Ends) -> float:
    """Zero of a curve that is negative at the first end and not at the second, by the Illinois rule.

    References
    ----------
    Dowell and Jarratt (1971), A modified regula falsi method for computing the root of an equation.
    """
    (left, right), (at_left, at_right) = ends, values
    place, side = right, 0
    for _ in range(MOST_STEPS):
        if right - left <= NARROW * right:
            break
        place = right - at_right * ((right - left) / (at_right - at_left))
        if not left < place < right:
            place = 0.5 * (left + right)
        value = curve(place)
        if value == 0:
            break
        # An end that stays counts half, or the steps would come from one side alone.
        if value < 0:
            left, at_left, at_right = place, value, at_right * (0.5 if side < 0 else 1.0)
            side = -1
        else:
            right, at_right, at_left = place, value, at_left * (0.5 if side > 0 else 1.0)
            side = 1
    return place
