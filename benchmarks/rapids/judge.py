"""Is what a contender gives right?  By the definition for some rows, and by our codes for all."""

from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import Any

import numpy as np

from benchmarks.rapids.grid import N_CLASSES, N_FOLDS, OWN_PRIOR, SMOOTH
from benchmarks.rapids.job import Job
from cpu_fallback.types import Array

# An order's prior is taken at its places of nine binary digits and zeros.
DIGITS_OF_PLACE = 9
# Relative: sums of floats are no worse than that, and codes in float32 are rounded once.
TOLERANCE = {"float64": 1e-9, "float32": 2.0**-22}
BY_DEFINITION = 24
STEP = 2_654_435_761
# Codes that are compared; of more, every second row is, or every third, ...
MOST_COMPARED = 1 << 27


def plain(array: Any) -> Array:
    """Array on the host."""
    found: Array = array.get() if hasattr(array, "get") else np.asarray(array)
    return found


@dataclass
class Judge:
    """What is right for one job.

    Parameters
    ----------
    job : Job
    ours : array, optional
        Our codes for every `stride`-th row, once they are found right.
    """

    job: Job
    ours: Array | None = None

    @property
    def stride(self) -> int:
        """Every how many rows codes are compared: no multiple of the folds, so that all of them are."""
        found = -(-self.job.n_rows * self.job.work.n_outputs // MOST_COMPARED)
        while gcd(found, N_FOLDS) > 1:
            found += 1
        return found

    @cached_property
    def walked(self) -> tuple[list[Array], Array]:
        """Categories and targets in the order in which rows are walked."""
        job = self.job
        if job.cell.work != "ordered":
            return job.categories, job.target
        return [each[job.order] for each in job.categories], job.target[job.order]

    @cached_property
    def prior(self) -> float:
        """Mean of the targets, or the share of a class."""
        job = self.job
        return int(job.target.sum()) / job.n_rows if job.work.n_classes == 2 else 1 / N_CLASSES

    def own_priors(self, place: int) -> list[float]:
        """Share of each class in all rows that the row at a place may see, or in an order most of them."""
        target = self.walked[1]
        seen = target >= 0
        if self.job.cell.work == "ordered" and place > 0:
            spare = max(place.bit_length() - DIGITS_OF_PLACE, 0)
            seen[place >> spare << spare :] = False
        elif self.job.cell.work == "ordered":
            # It sees nobody: its prior is that of all others.
            seen[0] = False
        else:
            seen = self.visible(seen, place)
        counts = [int(((target == label) & seen).sum()) for label in range(self.job.work.n_classes)]
        return [count / sum(counts) for count in counts]

    def expected(self, place: int, own_prior: bool = False) -> list[float]:
        """Codes of the row at a place of the walk, by counting the rows that it may see."""
        categories, target = self.walked
        priors = self.own_priors(place) if own_prior else [self.prior] * self.job.work.n_classes
        found = []
        for key in self.job.work.groups:
            columns = [categories[self.job.work.names.index(name)] for name in key]
            seen = columns[0] == columns[0][place]
            for column in columns[1:]:
                seen = seen & (column == column[place])
            found += self.codes(self.visible(seen, place), target, priors)
        return found

    def visible(self, alike: Array, place: int) -> Array:
        """Which of the rows of its category a row may see."""
        work = self.job.cell.work
        if work == "leave-one-out":
            alike[place] = False
        elif work == "ordered":
            alike[place:] = False
        elif work != "mean":
            alike[place % N_FOLDS :: N_FOLDS] = False
        return alike

    def codes(self, seen: Array, target: Array, priors: list[float]) -> list[float]:
        """Codes of what is seen."""
        n_classes = self.job.work.n_classes
        counts = [int(count) for count in plain(np.bincount(target[seen], minlength=n_classes))]
        kept = range(1, 2) if n_classes == 2 else range(n_classes)
        return [(counts[label] + SMOOTH * priors[label]) / (sum(counts) + SMOOTH) for label in kept]

    def by_definition(self, codes: Array, own_prior: bool) -> str:
        """Compare the codes of some rows with what they should be; nothing if they agree."""
        n_rows, tolerance = self.job.n_rows, TOLERANCE[self.job.dtype]
        for place in sorted({0, n_rows - 1, *(turn * STEP % n_rows for turn in range(BY_DEFINITION))}):
            row = int(self.job.order[place]) if self.job.cell.work == "ordered" else place
            found, expected = plain(codes[row]), np.array(self.expected(place, own_prior))
            if not np.all(np.abs(found - expected) <= tolerance * expected):
                return f"row {row:,} has {found.tolist()}, not {expected.tolist()}"
        return ""

    def verdict(self, name: str, codes: Array) -> tuple[str, str]:
        """Say what is wrong, nothing if it is right, and what it was compared with.

        Parameters
        ----------
        name : str
            The contender; "cpu" must have our bits, and `OWN_PRIOR` other ones than all others.
        codes : array of shape (n_rows, n_outputs)
        """
        shape = (self.job.n_rows, self.job.work.n_outputs)
        if codes.shape != shape:
            return f"its codes are of shape {codes.shape}, not {shape}", "the shape"
        said = self.by_definition(codes, name == OWN_PRIOR)
        by = f"the definition for {min(BY_DEFINITION + 2, shape[0])} rows"
        chosen = codes[:: self.stride]
        if name == "ours" and not said:
            self.ours = chosen.copy() if self.stride > 1 else chosen
        elif name != OWN_PRIOR and self.ours is not None and not said:
            by += f", ours for {len(chosen):,}"
            said = self.unlike(name, chosen, self.ours)
        return said, by

    def unlike(self, name: str, codes: Array, ours: Array) -> str:
        """Compare codes with ours; nothing if they agree."""
        on_host = name == "cpu"
        ours = plain(ours) if on_host else ours
        wrong = ~(np.abs(codes - ours) <= (0.0 if on_host else TOLERANCE[self.job.dtype]) * ours)
        if not bool(wrong.any()):
            return ""
        row = int(wrong.any(axis=1).argmax())
        found, expected = plain(codes[row]).tolist(), plain(ours[row]).tolist()
        return f"{int(wrong.sum()):,} codes are not ours, first in row {row * self.stride:,}: {found}, not {expected}"
