"""Points and weights of the Gauss-Hermite rule, computed by arithmetic that gives the same bits on every machine."""

from functools import cache
from itertools import pairwise
from math import sqrt

Rule = tuple[tuple[float, float], ...]


@cache
def gauss_hermite(points: int) -> Rule:
    """Give points x and weights for the integral of f(x) * exp(-x**2); the weights are divided by their sum.

    NumPy computes them by LAPACK, whose last bits differ between machines.  The zeros of a Hermite polynomial lie
    between those of the polynomial of one degree less, so each can be found by bisection.

    Parameters
    ----------
    points : int
        At least 1.

    Examples
    --------
    >>> from gpu_encode.formulas.glmm.quadrature import gauss_hermite
    >>> [(round(x, 6), round(weight, 6)) for x, weight in gauss_hermite(3)]
    [(-1.224745, 0.166667), (0.0, 0.666667), (1.224745, 0.166667)]
    """
    zeros: list[float] = []
    for degree in range(1, points + 1):
        end = sqrt(2.0 * degree + 1.0)
        fences = [-end, *zeros, end]
        zeros = [find_zero(degree, left, right) for left, right in pairwise(fences)]
        # This makes the points symmetric to the last bit.
        zeros = [(x - other) * 0.5 for x, other in zip(zeros, reversed(zeros), strict=True)]
    weights = [1.0 / (points * hermite(points - 1, x) * hermite(points - 1, x)) for x in zeros]
    return tuple(zip(zeros, weights, strict=True))


def hermite(degree: int, x: float) -> float:
    """Evaluate the orthonormal Hermite polynomial of the weight exp(-x**2) / sqrt(pi)."""
    before, value = 0.0, 1.0
    for j in range(degree):
        before, value = value, x * sqrt(2.0 / (j + 1.0)) * value - sqrt(j / (j + 1.0)) * before
    return value


def find_zero(degree: int, left: float, right: float) -> float:
    """Find, to the last bit, the zero between two points at which the polynomial has opposite signs."""
    rising = hermite(degree, right) > 0
    while True:
        middle = 0.5 * (left + right)
        if middle in {left, right}:
            return middle
        if (hermite(degree, middle) > 0) == rising:
            right = middle
        else:
            left = middle
