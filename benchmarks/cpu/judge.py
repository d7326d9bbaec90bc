"""What is right: independent definitions in float64, by NumPy's bincount."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.cpu.grid import N_CLASSES, SMOOTH
from benchmarks.cpu.rows import Array, Rows

# One column of codes after the other, so that ten classes need no more memory than one.
Columns = Iterator[Array]
Blend = Callable[[Array, Array, Array | float], Array]


def m_estimate(counts: Array, sums: Array, prior: Array | float, smooth: float = SMOOTH) -> Array:
    """Mean of a category, shrunk by so many rows of the prior; the prior where there is nothing."""
    weight = counts + smooth
    return np.divide(
        sums + smooth * prior, weight, out=np.broadcast_to(prior, np.shape(weight)).copy(), where=weight > 0
    )


def sigmoid(counts: Array, sums: Array, prior: Array | float, least: float = 20.0, width: float = 10.0) -> Array:
    """Blend of category_encoders.TargetEncoder: Micci-Barreca's logistic weight."""
    share = 1 / (1 + np.exp(-(counts - least) / width))
    return prior * (1 - share) + sums / np.maximum(counts, 1) * share


@dataclass(frozen=True)
class Expected:
    """What a contender should give.

    Parameters
    ----------
    scheme : {"all", "folds", "ordered", "leave-one-out", "count", "codes"}
    blend : callable
        Counts, sums and prior into codes.
    folds : array, optional
        Fold of each row.
    visible_prior : bool
        Whether the prior is the mean of what a row may see, or that of all rows.
    order : array, optional
        Row at each place of an order; that of the rows unless given.
    floor : callable, optional
        Place in an order up to which the prior of a place is taken.
    classes : sequence of int, optional
        Labels that have a column; one column of the target itself unless given.
    tolerance : float
        Relative, and absolute below one.
    """

    scheme: str
    blend: Blend = m_estimate
    folds: Array | None = None
    visible_prior: bool = False
    order: Array | None = None
    floor: Callable[[Array], Array] | None = None
    classes: Sequence[int] | None = None
    tolerance: float = 1e-9

    @property
    def n_outputs(self) -> int:
        """Columns that come out."""
        return 1 if self.classes is None else len(self.classes)

    def columns(self, rows: Rows) -> Columns:
        """Give the codes, a column at a time."""
        if self.scheme == "count":
            yield np.bincount(rows.codes)[rows.codes].astype(np.float64)
            return
        found = {"all": self.plain, "folds": self.cross_fitted, "ordered": self.ordered, "leave-one-out": self.others}
        for label in [None] if self.classes is None else self.classes:
            target = rows.target.astype(np.float64) if label is None else (rows.target == label).astype(np.float64)
            yield found[self.scheme](rows, target)

    def plain(self, rows: Rows, target: Array) -> Array:
        """Every row sees all."""
        counts, sums = np.bincount(rows.codes), np.bincount(rows.codes, target)
        found: Array = self.blend(counts, sums, target.mean())[rows.codes]
        return found

    def cross_fitted(self, rows: Rows, target: Array) -> Array:
        """Every row sees all folds but its own."""
        assert self.folds is not None
        found, size = np.empty(rows.n_rows), int(rows.codes.max()) + 1
        counts, sums = np.bincount(rows.codes), np.bincount(rows.codes, target)
        for fold in range(int(self.folds.max()) + 1):
            own = self.folds == fold
            codes, part = rows.codes[own], target[own]
            others = counts - np.bincount(codes, minlength=size), sums - np.bincount(codes, part, minlength=size)
            prior = (target.sum() - part.sum()) / (len(target) - len(part)) if self.visible_prior else target.mean()
            found[own] = self.blend(*others, prior)[codes]
        return found

    def ordered(self, rows: Rows, target: Array) -> Array:
        """Every row sees those before it."""
        codes = rows.codes if self.order is None else rows.codes[self.order]
        target = target if self.order is None else target[self.order]
        counts, sums = running(codes, target)
        prior: Array | float = float(target.mean())
        if self.floor is not None:
            places = self.floor(np.arange(len(target)))
            prior = (np.cumsum(target) - target)[places] / np.maximum(places, 1)
            # As the rows stand, the first sees nothing; in a random order it gets the mean of the others.
            prior[0] = np.nan if self.order is None else target[1:].mean()
        found = self.blend(counts, sums, prior)
        if self.order is None:
            return found
        placed = np.empty_like(found)
        placed[self.order] = found
        return placed

    def others(self, rows: Rows, target: Array) -> Array:
        """Every row sees all others."""
        counts, sums = np.bincount(rows.codes), np.bincount(rows.codes, target)
        prior: Array | float = float(target.mean())
        if self.visible_prior:
            prior = (target.sum() - target) / (len(target) - 1)
        return self.blend(counts[rows.codes] - 1, sums[rows.codes] - target, prior)


def running(codes: Array, target: Array) -> tuple[Array, Array]:
    """Count and sum of earlier rows of the same category."""
    order = np.argsort(codes, kind="stable")
    grouped, part = codes[order], target[order]
    starts = np.flatnonzero(np.append(True, grouped[1:] != grouped[:-1]))
    sizes = np.diff(np.append(starts, len(codes)))
    before = np.cumsum(part) - part
    counts, sums = np.empty(len(codes)), np.empty(len(codes))
    counts[order] = np.arange(len(codes)) - np.repeat(starts, sizes)
    sums[order] = before - np.repeat(before[starts], sizes)
    return counts, sums


def wrong_codes(rows: Rows, given: Array) -> str:
    """Say what is wrong with codes of values: equal ones must have equal codes, and others others."""
    given = np.asarray(given).ravel()
    if given.shape != rows.codes.shape or not (given.dtype.kind in "iu" or np.array_equal(given, np.rint(given))):
        return f"codes of shape {given.shape} and type {given.dtype} for {rows.n_rows:,} rows"
    given = given.astype(np.int64, copy=False)
    if given.min() < 0 or given.max() >= 2 * rows.categories:
        return f"codes from {given.min()} to {given.max()} for at most {rows.categories:,} values"
    value = np.full(int(given.max()) + 1, -1, dtype=np.int64)
    value[given] = rows.codes
    if not np.array_equal(value[given], rows.codes):
        return "two values have one code"
    kept = value[value >= 0]
    return "" if len(np.unique(kept)) == len(kept) else "one value has two codes"


def verdict(rows: Rows, expected: Expected, given: Array) -> tuple[str, float]:
    """Say what is wrong, nothing if it is right, and the largest difference.

    Parameters
    ----------
    rows : Rows
    expected : Expected
    given : array of shape (n_rows,) or (n_rows, n_outputs)
    """
    if expected.scheme == "codes":
        return wrong_codes(rows, given), 0.0
    given = np.asarray(given)
    given = given.reshape(-1, 1) if given.ndim == 1 else given
    if given.shape != (rows.n_rows, expected.n_outputs):
        return f"codes of shape {given.shape}, not {(rows.n_rows, expected.n_outputs)}", float("inf")
    largest = 0.0
    for place, column in enumerate(expected.columns(rows)):
        off = np.abs(given[:, place] - column) / np.maximum(np.abs(column), 1.0)
        off[np.isnan(given[:, place]) & np.isnan(column)] = 0.0
        row = int(np.argmax(np.where(np.isnan(off), np.inf, off)))
        if not off[row] <= expected.tolerance:
            return f"row {row:,} has {given[row, place]!r} and not {column[row]!r}", float(off[row])
        largest = max(largest, float(off[row]))
    return "", largest


LABELS = range(N_CLASSES)
