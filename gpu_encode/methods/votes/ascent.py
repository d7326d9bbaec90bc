"""Coordinate ascent: numbers are tuned one at a time, by steps that are halved when none of them helps."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from cpu_fallback.exact import Floats
from gpu_encode.words.notices import warn


@dataclass(frozen=True)
class Ascent:
    """The result of coordinate ascent.

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
    judge: Callable[[Floats, float], Iterable[Any]],
    start: Floats,
    tol: float,
    least_rise: float = 0.0,
    max_rounds: int | None = None,
) -> Ascent:
    """Raise numbers: in each round, add a step to the number for which this raises the score most.

    The step begins with 1.  If no number raises the score, the step is halved; the ascent ends when the step is below
    `tol`.  Among equally good numbers the first one is raised.

    Parameters
    ----------
    judge : callable
        Takes numbers and a step, and gives scores, none of them NaN: one for each number, with the step added to it.
    start : float64 array (n,)
    tol : float
    least_rise : float, default=0
        A rise must be larger than this share of the score.  It is not needed for scores that change by steps; other
        scores may rise for ever by smaller and smaller amounts.
    max_rounds : int, optional
        None: no limit.

    Warns
    -----
    ConvergenceWarning
        If the ascent does not end within `max_rounds` rounds.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode.methods.votes.ascent import ascend
    >>> def judge(numbers, step):
    ...     return [-((x - 2.5) ** 2) - (y - 1) ** 2 for x, y in numbers + step * np.eye(2)]
    >>> found = ascend(judge, np.zeros(2), 0.25)
    >>> found.numbers.tolist(), len(found.path)
    ([2.5, 1.0], 4)
    """
    numbers, step, path, rounds = start.copy(), 1.0, [], 0
    best = next(iter(judge(numbers, 0.0)))
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
        for candidate, score in enumerate(judge(numbers, step)):
            if score > reached:
                reached, chosen = score, candidate
        # A large integer cannot be multiplied by a float share.
        if chosen < 0 or (least_rise and reached - best <= least_rise * abs(best)):
            step /= 2
            continue
        numbers[chosen] += step
        best = reached
        path.append([float(chosen), step, best])
    return Ascent(numbers, best, path, rounds)
