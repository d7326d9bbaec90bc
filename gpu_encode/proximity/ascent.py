"""Numbers that are tuned one at a time, by steps that become smaller where none helps."""

from collections.abc import Callable

import numpy as np

from cpu_fallback.exact import Floats


def climb(
    judge: Callable[[Floats], list[float]], start: Floats, tol: float, least: float = 0.0
) -> tuple[Floats, list[list[float]]]:
    """Add a step to the number that gains most by it, again and again; where none gains, halve the step.

    Parameters
    ----------
    judge : callable
        Says how good each line of numbers (candidates, n) is; NaN is worse than all.
    start : float64 array
    tol : float
        Ends when the step, 1 at first, is below it.
    least : float, default=0
        A gain has to be larger than this share of what is reached, which may else rise for ever by less and less.

    Returns
    -------
    numbers : float64 array
    path : list of list of float
        Of each gain: which number, the step, and how good the numbers then are.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode.proximity.ascent import climb
    >>> numbers, path = climb(lambda tried: [-((x - 2.5) ** 2) - (y - 1) ** 2 for x, y in tried], np.zeros(2), 0.25)
    >>> numbers.tolist(), len(path)
    ([2.5, 1.0], 4)
    """
    numbers, step, path = start.copy(), 1.0, []
    (best,) = judge(numbers[None])
    while step >= tol:
        found, place = best, -1
        for candidate, value in enumerate(judge(numbers + step * np.eye(len(numbers)))):
            # Of equal ones the first stays.
            if value > found or (np.isnan(found) and not np.isnan(value)):
                found, place = value, candidate
        if place < 0 or found - best <= least * abs(best):
            step /= 2
            continue
        numbers[place] += step
        best = found
        path.append([float(place), step, best])
    return numbers, path
