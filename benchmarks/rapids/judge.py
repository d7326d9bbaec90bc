"""Is what a contender gives right?  By the definition for some rows, and by our encodings for all."""

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np

from benchmarks.cpu.judge import floor_ranks
from benchmarks.rapids.job import N_FOLDS, SMOOTH, Job
from cpu_fallback.types import Array

# Relative: sums of floats are no worse than that.
TOLERANCE = 1e-9
BY_DEFINITION, STEP = 24, 2_654_435_761
# Encodings that are compared; of more, every second row is, or every third, ...
MOST_COMPARED = 1 << 27


def to_numpy(array: Any) -> Array:
    """Array on the host."""
    return array.get() if hasattr(array, "get") else np.asarray(array)


@dataclass
class Judge:
    """What is right for one contender.

    Parameters
    ----------
    job : Job
    name : {"", "ours", "own prior", "cpu"}
        "ours" is what others are compared with; "own prior" has other encodings than all others; "cpu" must have the
        bits of ours.
    matrix : callable
        Makes an answer an array of shape (n_rows, n_outputs).
    """

    job: Job
    name: str = ""
    matrix: Callable[[Any], Array] = np.asarray

    def verdict(self, answer: Any) -> tuple[str, float]:
        """Say what is wrong with an answer ("" if nothing)."""
        encodings, shape = self.matrix(answer), (self.job.n_rows, self.job.work.n_outputs)
        if encodings.shape != shape:
            return f"encodings of shape {encodings.shape}, not {shape}", np.inf
        if said := self.by_definition(encodings):
            return said, np.inf
        chosen = encodings[:: self.stride]
        if self.name == "ours":
            self.job.ours[:] = [chosen.copy() if self.stride > 1 else chosen]
        if self.name == "own prior" or not self.job.ours:
            return "", 0.0
        return self.compare(chosen, self.job.ours[0])

    @property
    def stride(self) -> int:
        """Every how many rows encodings are compared: no multiple of the folds, so that all of them are."""
        stride = -(-self.job.n_rows * self.job.work.n_outputs // MOST_COMPARED)
        while gcd(stride, N_FOLDS) > 1:
            stride += 1
        return stride

    def compare(self, encodings: Array, ours: Array) -> tuple[str, float]:
        """Compare encodings with ours."""
        on_host = self.name == "cpu"
        ours = to_numpy(ours) if on_host else ours
        off = np.abs(encodings - ours) / ours
        wrong = ~(off <= (0.0 if on_host else TOLERANCE))
        if not bool(wrong.any()):
            return "", float(off.max())
        row = int(wrong.any(axis=1).argmax())
        pair = f"{to_numpy(encodings[row]).tolist()}, not {to_numpy(ours[row]).tolist()}"
        return f"{int(wrong.sum()):,} encodings are not ours, first in row {row * self.stride:,}: {pair}", np.inf

    def by_definition(self, encodings: Array) -> str:
        """Compare the encodings of some rows with what they should be."""
        n_rows, is_ordered = self.job.n_rows, self.job.name == "ordered"
        for rank in sorted({0, n_rows - 1, *(turn * STEP % n_rows for turn in range(BY_DEFINITION))}):
            row = int(self.job.order[rank]) if is_ordered else rank
            encoded, expected = to_numpy(encodings[row]), np.array(self.expect(rank))
            if not np.all(np.abs(encoded - expected) <= TOLERANCE * expected):
                return f"row {row:,} has {encoded.tolist()}, not {expected.tolist()}"
        return ""

    def expect(self, rank: int) -> list[float]:
        """Encodings of the row of a rank, in the order in which rows are walked, from the rows that it may see."""
        job = self.job
        order = job.order if job.name == "ordered" else slice(None)
        target = job.target[order]
        categories = {name: codes[order] for name, codes in zip(job.work.names, job.categories, strict=True)}
        n_classes = job.work.n_classes
        priors = self.own_priors(target, rank) if self.name == "own prior" else [job.prior] * n_classes
        encodings = []
        for key in job.work.groups:
            alike = target >= 0
            for name in key:
                alike &= categories[name] == categories[name][rank]
            seen = target[self.visible(alike, rank)]
            counts = [int(count) for count in to_numpy(np.bincount(seen, minlength=n_classes))]
            kept = range(1, 2) if n_classes == 2 else range(n_classes)
            encodings += [(counts[label] + SMOOTH * priors[label]) / (sum(counts) + SMOOTH) for label in kept]
        return encodings

    def visible(self, alike: Array, rank: int) -> Array:
        """Which of some rows the row of a rank may see."""
        if self.job.name == "leave-one-out":
            alike[rank] = False
        elif self.job.name == "ordered":
            alike[rank:] = False
        elif self.job.name != "mean":
            alike[rank % N_FOLDS :: N_FOLDS] = False
        return alike

    def own_priors(self, target: Array, rank: int) -> list[float]:
        """Share of each class in all rows that the row of a rank may see, or in an order most of them."""
        seen = target >= 0
        if self.job.name == "ordered" and rank > 0:
            seen[int(floor_ranks(np.array(rank))) :] = False
        elif self.job.name == "ordered":
            # It sees nobody: its prior is that of all others.
            seen[0] = False
        else:
            seen = self.visible(seen, rank)
        counts = [int(((target == label) & seen).sum()) for label in range(self.job.work.n_classes)]
        return [count / sum(counts) for count in counts]
