"""Coordinate ascent: numbers are tuned one at a time, by steps that become smaller when none of them helps."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cpu_fallback.exact import Floats
from gpu_encode.words.notices import warn


@dataclass(frozen=True)
class Ascent:
    """What coordinate ascent has found.

    Parameters
    ----------
    numbers : float64 array (n,)
    score : number
        Score of these numbers.
    path : list of list of number
        For each rise: the position of the number, the step, and the score after it.
    n_rounds : int
        Rounds, in each of which every number was tried.
    """

    numbers: Floats
    score: Any
    path: list[list[Any]]
    n_rounds: int


def ascend(
    judge: Callable[[Floats], Sequence[Any]],
    start: Floats,
    tol: float,
    least_rise: float = 0.0,
    max_rounds: int | None = None,
) -> Ascent:
    """Raise numbers: in each round the number whose rise by a step raises the score most.

    The step begins with 1.  When no number raises the score, the step is halved; the ascent ends when the step is below
    `tol`.  Among equally good numbers the first one rises.

    Parameters
    ----------
    judge : callable
        Gives a score for each line of numbers (candidates, n), none of them NaN.
    start : float64 array (n,)
    tol : float
    least_rise : float, default=0
        A rise has to be larger than this share of the score.  Scores that change by steps need no such share; other
        scores may rise for ever, by less and less.
    max_rounds : int, optional
        None: as many rounds as it takes.

    Warns
    -----
    ConvergenceWarning
        If the ascent does not end within `max_rounds` rounds.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode.methods.votes.ascent import ascend
    >>> found = ascend(lambda tried: [-((x - 2.5) ** 2) - (y - 1) ** 2 for x, y in tried], np.zeros(2), 0.25)
    >>> found.numbers.tolist(), len(found.path)
    ([2.5, 1.0], 4)
    """
    numbers, step, path, rounds = start.copy(), 1.0, [], 0
    (best,) = judge(numbers[None])
    while step >= tol:
        if rounds == max_rounds:
            warn(
                f"Weights still rise after max_rounds={max_rounds} rounds, by steps of {step:g}. Raise max_rounds, or "
                "tol.",
                ConvergenceWarning,
            )
            break
        rounds += 1
        reached, chosen = best, -1
        for candidate, score in enumerate(judge(numbers + step * np.eye(len(numbers)))):
            if score > reached:
                reached, chosen = score, candidate
        # A whole number may be too large to be multiplied by a share.
        if chosen < 0 or (least_rise and reached - best <= least_rise * abs(best)):
            step /= 2
            continue
        numbers[chosen] += step
        best = reached
        path.append([float(chosen), step, best])
    return Ascent(numbers, best, path, rounds)
