"""Encodings by independent definitions in float64, by NumPy's bincount."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.cpu.grid import FOLD_WORKS, SMOOTH
from benchmarks.harness.judge import Answer, Numbering
from benchmarks.harness.rows import N_CLASSES, Array, Rows

Blend = Callable[[Array, Array, Array | float], Array]
SCHEMES = {"ordered": "ordered", "leave-one-out": "others"}
# Priors of an order are taken at ranks that have nine binary digits, followed by zeros.
DIGITS_OF_RANK = 9


def m_estimate(counts: Array, sums: Array, prior: Array | float, smooth: float = SMOOTH) -> Array:
    """Give the mean of a category, shrunk by this number of rows of the prior; the prior if there are no rows."""
    weight = counts + smooth
    return np.divide(
        sums + smooth * prior, weight, out=np.broadcast_to(prior, np.shape(weight)).copy(), where=weight > 0
    )


def floor_ranks(ranks: Array) -> Array:
    """Clear all but the highest binary digits of ranks."""
    spare = np.maximum(np.frexp(ranks.astype(np.float64))[1] - DIGITS_OF_RANK, 0)
    return ranks >> spare << spare


@dataclass(frozen=True)
class View:
    """The view of the rows of one fold: rows and targets of their categories, and of all categories.

    Parameters
    ----------
    own : bool array (n_rows,)
        The rows of the fold.
    n, s : array (n_own,)
    n_all, s_all : float
    """

    own: Array
    n: Array
    s: Array
    n_all: float
    s_all: float


def list_views(codes: Array, target: Array, folds: Array | None) -> Iterator[View]:
    """Yield the view of every fold, which is the other folds; without folds, one view of all rows."""
    target, size = target.astype(np.float64), int(codes.max()) + 1
    for fold in [None] if folds is None else range(int(folds.max()) + 1):
        own = np.asarray(folds == fold) if fold is not None else np.ones(len(codes), np.bool_)
        visible = own if fold is None else ~own
        keys, values = codes[visible], target[visible]
        n, s = np.bincount(keys, minlength=size), np.bincount(keys, values, minlength=size)
        yield View(own, n[codes[own]], s[codes[own]], len(keys), values.sum())


@dataclass(frozen=True)
class Rule:
    """The rows that each row sees, and the formula from sums to an encoding.

    Parameters
    ----------
    scheme : {"by_fold", "ordered", "others"}
    blend : callable
        Computes encodings from counts, sums and prior.
    folds : array, optional
        Fold of each row.
    visible_prior : bool
        Whether the prior is the mean of the rows that a row may see; otherwise it is the mean of all rows.
    order : array, optional
        Row of each rank in an order; by default the order of the rows.
    """

    scheme: str
    blend: Blend = m_estimate
    folds: Array | None = None
    visible_prior: bool = False
    order: Array | None = None

    def encode(self, codes: Array, target: Array) -> Array:
        """Give the encoding of each row."""
        return getattr(self, self.scheme)(codes, target.astype(np.float64))

    def by_fold(self, codes: Array, target: Array) -> Array:
        """Encode each row by all folds except its own; without folds, by all rows."""
        encodings = np.empty(len(codes))
        for view in list_views(codes, target, self.folds):
            prior = view.s_all / view.n_all if self.visible_prior else target.mean()
            encodings[view.own] = self.blend(view.n, view.s, prior)
        return encodings

    def ordered(self, codes: Array, target: Array) -> Array:
        """Encode each row by the rows before it."""
        order = np.arange(len(codes)) if self.order is None else self.order
        target = target[order]
        prior: Array | float = float(target.mean())
        if self.visible_prior:
            ranks = floor_ranks(np.arange(len(target)))
            prior = (np.cumsum(target) - target)[ranks] / np.maximum(ranks, 1)
            # In the order of the rows, the first row sees nothing; in a random order it gets the mean of the others.
            prior[0] = np.nan if self.order is None else target[1:].mean()
        encodings = np.empty(len(codes))
        encodings[order] = self.blend(*sum_earlier(codes[order], target), prior)
        return encodings

    def others(self, codes: Array, target: Array) -> Array:
        """Encode each row by all other rows."""
        prior: Array | float = float(target.mean())
        if self.visible_prior:
            prior = (target.sum() - target) / (len(target) - 1)
        return self.blend(np.bincount(codes)[codes] - 1, np.bincount(codes, target)[codes] - target, prior)


def sum_earlier(codes: Array, target: Array) -> tuple[Array, Array]:
    """Give the count and the sum of the earlier rows of the same category."""
    order = np.argsort(codes, kind="stable")
    grouped, part = codes[order], target[order]
    starts = np.flatnonzero(np.append(True, grouped[1:] != grouped[:-1]))
    sizes = np.diff(np.append(starts, len(codes)))
    before = np.cumsum(part) - part
    counts, sums = np.empty(len(codes)), np.empty(len(codes))
    counts[order] = np.arange(len(codes)) - np.repeat(starts, sizes)
    sums[order] = before - np.repeat(before[starts], sizes)
    return counts, sums


def expected_of(rows: Rows, tolerance: float = 1e-9, **rule: Any) -> Answer | Numbering:
    """Give the expected answer for some rows, with the folds, the order and the prior of contenders that can be told.

    Parameters
    ----------
    rows : Rows
    tolerance : float
    **rule
        Parameters of `Rule`.
    """
    if rows.work == "codes":
        return Numbering(rows.codes)
    if rows.work == "count":
        return Answer.of(np.bincount(rows.codes)[rows.codes].astype(np.float64), tolerance)
    folds = {"folds": rows.folds} if rows.work in FOLD_WORKS else {}
    given = Rule(SCHEMES.get(rows.work, "by_fold"), **folds | rule)
    if rows.work != "classes":
        return Answer(lambda: iter([given.encode(rows.codes, rows.target)]), 1, tolerance)

    def shares() -> Iterator[Array]:
        for label in range(N_CLASSES):
            yield given.encode(rows.codes, rows.target == label)

    return Answer(shares, N_CLASSES, tolerance)
