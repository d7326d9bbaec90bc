"""Numbers that are tuned one at a time, by steps that become smaller where none helps."""

from collections.abc import Callable

import numpy as np

from cpu_fallback.exact import Floats


def climb(judge: Callable[[Floats], float], start: Floats, tol: float) -> tuple[Floats, list[list[float]]]:
    """Add a step to the number that gains most by it, again and again; where none gains, halve the step.

    Parameters
    ----------
    judge : callable
        Says how good numbers are; NaN is worse than all.
    start : float64 array
    tol : float
        Ends when the step, 1 at first, is below it.

    Returns
    -------
    numbers : float64 array
    path : list of list of float
        Of each gain: which number, the step, and how good the numbers then are.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode.proximity.ascent import climb
    >>> numbers, path = climb(lambda x: -((x[0] - 2.5) ** 2) - (x[1] - 1) ** 2, np.zeros(2), 0.25)
    >>> numbers.tolist(), len(path)
    ([2.5, 1.0], 4)
    """
    numbers, best, step, path = start.copy(), judge(start), 1.0, []
    while step >= tol:
        found, place = best, -1
        for candidate in range(len(numbers)):
            tried = numbers.copy()
            tried[candidate] += step
            value = judge(tried)
            # Of equal ones the first stays.
            if value > found or (np.isnan(found) and not np.isnan(value)):
                found, place = value, candidate
        if place < 0:
            step /= 2
            continue
        numbers[place] += step
        best = found
        path.append([float(place), step, best])
    return numbers, path
