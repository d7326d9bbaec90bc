"""Coordinate ascent: weights of votes that raise a score, one step of one weight at a time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from gpu_encode.notices import warn


@dataclass(frozen=True)
class Ascent:
    """What coordinate ascent has found.

    Parameters
    ----------
    weights : list of float
    score : number
        Of these weights.
    n_rounds : int
        Rounds, in each of which every weight was tried.
    """

    weights: list[float]
    score: Any
    n_rounds: int


def ascend(
    n_weights: int, score: Callable[[list[float]], Any], tol: float, max_rounds: int, least_rise: float = 0.0
) -> Ascent:
    """Raise weights from zero, always the one whose rise by a step raises the score most.

    Where no weight raises the score, the step is halved, from 1 on; below `tol` the ascent ends.  Of equally good
    weights the first one rises.

    Parameters
    ----------
    n_weights : int
    score : callable
        Takes a list of weights; what it gives can be compared.
    tol : float
    max_rounds : int
    least_rise : float, default=0
        A rise has to be larger than this share of the score.  Scores that change by steps need none; others may rise
        for ever, by less and less.

    Warns
    -----
    ConvergenceWarning
        If so many rounds do not end it.

    Examples
    --------
    >>> from gpu_encode.votes.ascent import ascend
    >>> ascend(2, lambda weights: -abs(weights[0] - 2.25) - weights[1], tol=0.1, max_rounds=100).weights
    [2.25, 0.0]
    """
    weights, step, rounds = [0.0] * n_weights, 1.0, 0
    best = score(weights)
    while step >= tol:
        if rounds == max_rounds:
            warn(
                f"Weights still rise after max_rounds={max_rounds} rounds, by steps of {step:g}. Raise max_rounds, or "
                "tol.",
                ConvergenceWarning,
            )
            break
        rounds += 1
        tried = [score([*weights[:place], weights[place] + step, *weights[place + 1 :]]) for place in range(n_weights)]
        place = max(range(n_weights), key=tried.__getitem__)
        if tried[place] - best > least_rise * abs(best):
            weights[place] += step
            best = tried[place]
        else:
            step /= 2
    return Ascent(weights, best, rounds)
