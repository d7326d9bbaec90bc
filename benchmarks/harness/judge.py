"""Judges: answers are compared with an independent definition before any time counts."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness.rows import Array

Verdict = tuple[str, float]


@dataclass(frozen=True)
class Answer:
    """Expected encodings, with a tolerance that is relative for values above one, and absolute below.

    Parameters
    ----------
    columns : callable
        Yields the columns one after the other, so that ten classes need no more memory than one.
    width : int
        Number of columns.
    tolerance : float
    """

    columns: Callable[[], Iterator[Array]]
    width: int = 1
    tolerance: float = 1e-9

    @classmethod
    def of(cls, answer: Any, tolerance: float = 1e-9) -> "Answer":
        """Expect the columns of an array."""
        matrix = as_matrix(answer)
        return cls(lambda: iter(matrix.T), matrix.shape[1], tolerance)

    def verdict(self, given: Any) -> Verdict:
        """Give the fault of an answer ("" if there is none), and the largest difference."""
        given = as_matrix(given)
        largest = 0.0
        if given.shape[1] != self.width:
            return f"{given.shape[1]} columns, not {self.width}", np.inf
        for number, column in enumerate(self.columns()):
            if given.shape[0] != len(column):
                return f"answer of shape {given.shape}, not {(len(column), self.width)}", np.inf
            off = np.abs(given[:, number] - column) / np.maximum(np.abs(column), 1.0)
            off[np.isnan(given[:, number]) & np.isnan(column)] = 0.0
            row = int(np.argmax(np.where(np.isnan(off), np.inf, off)))
            if not off[row] <= self.tolerance:
                return f"row {row:,} has {given[row, number]!r} and not {column[row]!r}", float(off[row])
            largest = max(largest, float(off[row]))
        return "", largest


@dataclass(frozen=True)
class Numbering:
    """Expected integer codes: equal values have equal codes, and different values have different codes.

    Parameters
    ----------
    codes : integer array of shape (n_rows,)
    """

    codes: Array

    def verdict(self, given: Any) -> Verdict:
        """Give the fault of codes ("" if there is none)."""
        given = np.asarray(given).ravel()
        if given.shape != self.codes.shape or not np.array_equal(given, np.rint(given)):
            return f"codes of shape {given.shape} and type {given.dtype} for {len(self.codes):,} rows", np.inf
        given = given.astype(np.int64, copy=False)
        if given.min() < 0 or given.max() >= 2 * (int(self.codes.max()) + 1):
            return f"codes from {given.min()} to {given.max()}", np.inf
        value = np.full(int(given.max()) + 1, -1, dtype=np.int64)
        value[given] = self.codes
        if not np.array_equal(value[given], self.codes):
            return "two values have one code", np.inf
        known = value[value >= 0]
        return ("", 0.0) if len(np.unique(known)) == len(known) else ("one value has two codes", np.inf)


class Unjudged:
    """No judge, for calls whose answer is not an array."""

    def verdict(self, _: Any) -> Verdict:
        """Find nothing wrong."""
        return "", 0.0


def as_matrix(answer: Any) -> Array:
    """Give an answer as a matrix."""
    array = np.asarray(answer)
    return array.reshape(-1, 1) if array.ndim == 1 else array
