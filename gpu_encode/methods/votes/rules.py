"""Votes of columns, and the rules that turn them into one score for each row."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cpu_fallback.elementary import add_in_order, exp, log
from cpu_fallback.exact import Floats
from cpu_fallback.types import Array
from gpu_encode.methods.votes.phi import put_on
from gpu_encode.seam.ops import Ops


@dataclass(frozen=True, eq=False)
class Votes:
    """The votes of every key for some rows.

    Parameters
    ----------
    ops : Ops
        Backend that computes and holds the arrays.
    encodings : list of list of float64 array (rows,)
        encodings[output][key]; an output is one of several classes, or the only number of a binary or continuous
        target.
    seen : list of bool array (rows,)
        For each key, whether visible rows have the category of the row.
    means : list of float
        The mean of each output over all training rows.
    """

    ops: Ops
    encodings: list[list[Floats]]
    seen: list[Array]
    means: list[float]

    @classmethod
    def of(cls, ops: Ops, arrays: Sequence[Array], means: Sequence[float]) -> "Votes":
        """Read the columns of an encoder that gives encodings and indicators of unseen categories.

        Parameters
        ----------
        ops : Ops
        arrays : list of array (rows,)
            Encodings in the order of keys, then outputs; then an indicator for each key.
        means : list of float
        """
        n_keys, rest = divmod(len(arrays), len(means) + 1)
        if rest:
            raise ValueError(
                f"An encoder whose columns vote must give each key {len(means)} columns, one for each class of "
                f"several, and an indicator of unseen values. Got {len(arrays)} columns: leave out drop and blow_up."
            )
        columns = [ops.cast(array, np.float64) for array in arrays]
        flags = columns[n_keys * len(means) :]
        of_key = [columns[key * len(means) : (key + 1) * len(means)] for key in range(n_keys)]
        blank = [np.isnan(encodings[0]) for encodings in of_key]
        return cls(
            ops,
            # If the policy gives NaN, the mean of all rows stands in.
            [
                [np.where(empty, mean, encodings[output]) for encodings, empty in zip(of_key, blank, strict=True)]
                for output, mean in enumerate(means)
            ],
            [(flag == 0) & ~empty for flag, empty in zip(flags, blank, strict=True)],
            list(means),
        )

    @property
    def n_keys(self) -> int:
        """Number of keys that vote."""
        return len(self.seen)

    def on_scale(self, output: int, phi: Any, nearest: float) -> list[Floats]:
        """Give the votes for one output on a scale."""
        return [put_on(encodings, phi, nearest) for encodings in self.encodings[output]]

    def matrix(self, phi: Any, nearest: float) -> Floats:
        """Give all votes on a scale, by key, then output, and 0/1 columns for unseen categories, on the host."""
        scaled = [self.on_scale(output, phi, nearest) for output in range(len(self.means))]
        votes = [of_output[key] for key in range(self.n_keys) for of_output in scaled]
        unseen = [(~seen).astype(np.float64) for seen in self.seen]
        return np.column_stack([self.ops.to_host(column) for column in [*votes, *unseen]])


def log_products(votes: Votes, nearest: float) -> list[Floats]:
    """Give the logarithm of the product of the votes for each output."""
    outputs = range(len(votes.means))
    return [
        add_in_order([log(np.clip(g, nearest, 1.0 - nearest)) for g in votes.encodings[output]]) for output in outputs
    ]


def log_posteriors(votes: Votes, nearest: float) -> list[Floats]:
    """Give the sums of naive Bayes for each output: log-odds of a binary target, or the logarithm for each class."""
    phi = "logit" if len(votes.means) == 1 else "log"
    posteriors = []
    for output, mean in enumerate(votes.means):
        # Every vote contains the prior once, so all votes together contain it n times.
        prior = float(put_on(np.array([np.clip(mean, nearest, 1.0 - nearest)]), phi, nearest)[0])
        scaled = [put_on(np.minimum(g, 1.0 - nearest), phi, nearest) for g in votes.encodings[output]]
        posteriors.append(add_in_order(scaled) - (votes.n_keys - 1) * prior)
    return posteriors


def share_out(logarithms: Sequence[Floats]) -> list[Floats]:
    """Divide numbers by their sum; the numbers are given as logarithms."""
    largest = logarithms[0]
    for column in logarithms[1:]:
        largest = np.maximum(largest, column)
    return divide_by_sum([exp(column - largest) for column in logarithms])


def divide_by_sum(addends: Sequence[Floats]) -> list[Floats]:
    """Divide non-negative numbers by their sum; if it is 0, give equal shares."""
    total = add_in_order(addends)
    empty = total == 0
    total = np.where(empty, 1.0, total)
    return [np.where(empty, 1.0 / len(addends), addend / total) for addend in addends]


class WeightedMean:
    """The mean of the votes with seen categories, for any weights.

    Parameters
    ----------
    votes : list of float64 array (rows,)
    seen : list of bool array (rows,)
    otherwise : float
        The value for rows without any seen category that has weight.
    """

    def __init__(self, votes: Sequence[Floats], seen: Sequence[Array], otherwise: float) -> None:
        self._seen = [flags.astype(np.float64) for flags in seen]
        self._votes = [np.where(flags, column, 0.0) for column, flags in zip(votes, seen, strict=True)]
        self._otherwise = otherwise

    def at(self, weights: Sequence[float]) -> Floats:
        """Give the mean for each row."""
        return self._divide(*self._sums(weights))

    def raised(self, weights: Sequence[float], step: float) -> Iterator[Floats]:
        """Give the mean for each row with the step added to each weight in turn; the other weights are summed once."""
        top, bottom = self._sums(weights)
        for votes, seen in zip(self._votes, self._seen, strict=True):
            yield self._divide(top + step * votes, bottom + step * seen)

    def _sums(self, weights: Sequence[float]) -> tuple[Floats, Floats]:
        top = bottom = np.zeros_like(self._votes[0])
        for weight, votes, seen in zip(weights, self._votes, self._seen, strict=True):
            if weight:
                top = top + weight * votes
                bottom = bottom + weight * seen
        return top, bottom

    def _divide(self, top: Floats, bottom: Floats) -> Floats:
        silent = bottom == 0
        return np.where(silent, self._otherwise, top / np.where(silent, 1.0, bottom))
