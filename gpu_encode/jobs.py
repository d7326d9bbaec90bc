"""One entry and one target of the rows at hand: what every scheme works on."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.blending import AS_CATEGORY, AS_NAN, AS_PRIOR, Rule
from gpu_encode.cells import MISSING, UNKNOWN, Codes, Folds, Rows
from gpu_encode.distributions import Distribution
from gpu_encode.formula import Formula, Mask, Visibility, total_of_views
from gpu_encode.keys import Key
from gpu_encode.levels import Level
from gpu_encode.moments import Moments
from gpu_encode.ops import Ops
from gpu_encode.statistics import Measured, Statistics
from gpu_encode.terms import backend_for

# Tiles are not cut smaller than this: each costs a few hundred calls of the array library.
LEAST_ROWS = 1 << 10


@dataclass(frozen=True)
class Job:
    """One entry and one target of the rows at hand.

    Parameters
    ----------
    ops : Ops
    rows : Rows
    key : Key
    n_classes : int
        Classes that a cell counts; terms of a continuous target.
    measured : Measured
    formula : Formula
    totals : list of (visibility, Moments)
        What each view sees of all rows: the same under every key, so the jobs of a target share a list, which the first
        of them fills.
    sums : Statistics, optional
        Sums over all rows, where they are known already; the rows may then have no codes.
    """

    ops: Ops
    rows: Rows
    key: Key
    n_classes: int
    measured: Measured
    formula: Formula
    totals: list[tuple[Visibility, Moments]] = field(default_factory=list)
    sums: Statistics | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "ops", backend_for(self.ops, self.rows.target))

    def total_of_views(self, statistics: Statistics, visibility: Visibility) -> Moments:
        """Moments of all rows that each view sees; found out once for all jobs of the target."""
        for known, total in self.totals:
            if known is visibility:
                return total
        total = total_of_views(statistics, visibility, self.formula, self.ops)
        self.totals.append((visibility, total))
        return total

    @property
    def n_outputs(self) -> int:
        """Columns of codes."""
        readout = self.formula.readout
        return readout.n_outputs(1 if readout.n_terms > 1 else self.n_classes - self.measured.first_output)

    def measure(self, folds: Folds, n_folds: int) -> Statistics:
        """Sum the rows per (category, fold, class)."""
        if self.sums is not None and folds is None:
            return self.sums
        sums = Statistics.measure(
            self.ops, self.rows, self.key.n_categories, folds, n_folds, self.n_classes, self.measured
        )
        if not self.formula.readout.needs_distribution:
            return sums
        return replace(sums, distribution=Distribution.measure(self.ops, self.rows, folds, n_folds))

    def rule(self) -> Rule | None:
        """Describe the formula to backends that write the code of every row in one pass; None where they cannot.

        They do where rows see nothing above their own category, by one of the formulas that they know.
        """
        formula, blend = self.formula, self.formula.for_backends()
        if blend is None or self.key.levels:
            return None
        by_mean = formula.prior == "mean"
        missing = AS_CATEGORY if formula.missing == "category" else AS_NAN if formula.missing == "nan" else AS_PRIOR
        return Rule(blend, by_mean, 0.0 if by_mean else float(formula.prior), missing)

    @property
    def tile(self) -> int:
        """Rows of a tile; fewer where each row has many outputs."""
        return min(self.ops.TILE, max(self.ops.TILE // max(self.n_outputs, 1), LEAST_ROWS))

    def keyings(self) -> "list[Keying]":
        """Give the levels above the categories from the top, and the categories themselves last."""
        levels = [Keying(level.n, level, self.ops.to_device(with_policies(level.of_leaf))) for level in self.key.levels]
        return [*levels, Keying(self.key.n_categories)]


@dataclass(frozen=True)
class Keying:
    """One level that rows are keyed by.

    Parameters
    ----------
    n : int
        Categories of this level.
    level : Level, optional
        The level; None for the categories themselves.
    of_row : int32 array, optional
        Code at this level for each row of a table by category (categories, unknown, missing), where there is a level.
    """

    n: int
    level: Level | None = None
    of_row: Codes | None = None

    def codes(self, rows: Rows) -> Codes:
        """Code of each row at this level."""
        return rows.codes if self.of_row is None else self.of_row[rows.codes]

    def has(self, codes: Codes, formula: Formula) -> Mask:
        """Say which rows have a category at this level; the missing one is a category by policy."""
        present: Mask = codes >= 0
        return present | (codes == MISSING) if self.level is None and formula.missing == "category" else present


def with_policies(of_leaf: NDArray[np.int32]) -> Codes:
    """Append the codes of unknown and missing, which stay what they are."""
    return np.append(of_leaf, [UNKNOWN, MISSING]).astype(np.int32)


def tiles(n_rows: int, size: int) -> Iterator[tuple[int, int]]:
    """Split rows into tiles."""
    for start in range(0, n_rows, size):
        yield start, min(start + size, n_rows)


def without_key(rows: Rows) -> Rows:
    """Give the same rows under one single category."""
    return rows.with_codes(np.zeros_like(rows.codes))
