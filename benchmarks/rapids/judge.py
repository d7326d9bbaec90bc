"""Judges of contenders: by the definition for some rows, and by our encodings for all rows."""

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np

from benchmarks.cpu.judge import floor_ranks
from benchmarks.rapids.job import N_FOLDS, SMOOTH, Job
from cpu_fallback.types import Array

# A relative tolerance: sums of floats are at least this exact.
TOLERANCE = 1e-9
BY_DEFINITION, STEP = 24, 2_654_435_761
# Most encodings that are compared; if there are more, only every second, third, ... row is.
MOST_COMPARED = 1 << 27


def to_numpy(array: Any) -> Array:
    """Give an array on the host."""
    return array.get() if hasattr(array, "get") else np.asarray(array)


@dataclass
class Judge:
    """The judge of one contender.

    Parameters
    ----------
    job : Job
    name : {"", "ours", "own prior", "cpu"}
        Others are compared with "ours"; "own prior" has other encodings than all others; "cpu" must have the
        bits of ours.
    matrix : callable
        Converts an answer to an array of shape (n_rows, n_outputs).
    """

    job: Job
    name: str = ""
    matrix: Callable[[Any], Array] = np.asarray

    def verdict(self, answer: Any) -> tuple[str, float]:
        """Give the fault of an answer ("" if there is none), and the largest error."""
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
        """The distance between compared rows; it is no multiple of the number of folds, so all folds are compared."""
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
        """Compare the encodings of some rows with their definition."""
        n_rows, is_ordered = self.job.n_rows, self.job.name == "ordered"
        for rank in sorted({0, n_rows - 1, *(turn * STEP % n_rows for turn in range(BY_DEFINITION))}):
            row = int(self.job.order[rank]) if is_ordered else rank
            encoded, expected = to_numpy(encodings[row]), np.array(self.expect(rank))
            if not np.all(np.abs(encoded - expected) <= TOLERANCE * expected):
                return f"row {row:,} has {encoded.tolist()}, not {expected.tolist()}"
        return ""

    def expect(self, rank: int) -> list[float]:
        """Compute the encodings of the row with this rank in the order of the scheme, from the rows that it may see."""
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
        """Select from some rows those that the row with this rank may see."""
        if self.job.name == "leave-one-out":
            alike[rank] = False
        elif self.job.name == "ordered":
            alike[rank:] = False
        elif self.job.name != "mean":
            alike[rank % N_FOLDS :: N_FOLDS] = False
        return alike

    def own_priors(self, target: Array, rank: int) -> list[float]:
        """Give the share of each class in the rows that the row of a rank may see; in an order, in most of them."""
        seen = target >= 0
        if self.job.name == "ordered" and rank > 0:
            seen[int(floor_ranks(np.array(rank))) :] = False
        elif self.job.name == "ordered":
            # The first row sees no other row, so its prior is the share in all other rows.
            seen[0] = False
        else:
            seen = self.visible(seen, rank)
        counts = [int(((target == label) & seen).sum()) for label in range(self.job.work.n_classes)]
        return [count / sum(counts) for count in counts]
