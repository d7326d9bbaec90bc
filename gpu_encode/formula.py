"""From sums to codes: the one place where statistics, smoothing, prior and policies meet.

Two shapes share every step: tables per (category, view), and tiles of rows (leave-one-out and ordered), in which each
row has sums of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.exact import Floats, Integers
from gpu_encode.keys import Key
from gpu_encode.ops import Ops
from gpu_encode.smoothing import Context, Smoothing
from gpu_encode.statistics import CategoryMoments, Measured, Moments, Statistics

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Formula:
    """Everything that turns sums into codes.

    Parameters
    ----------
    smoothing : Smoothing
    prior : "mean", "category_mean" or float
    unseen : float or None
        Code of a category that no visible row has; None for the prior (or the parent's code).
    unknown : float or None
        Code of a value that fit did not see; None likewise.
    missing : {"category", "prior", "nan", "error"}
    min_count : float
        Categories with less visible weight are as if unseen.
    """

    smoothing: Smoothing
    prior: Any = "mean"
    unseen: float | None = None
    unknown: float | None = None
    missing: str = "category"
    min_count: float = 0.0

    def moments(self, ops: Ops, cells: Integers, measured: Measured) -> Moments:
        """Moments of cells, with what the smoothing asks for."""
        return Moments.of(ops, cells, measured, variances=self.smoothing.needs_squares)

    @property
    def needs_categories(self) -> bool:
        """Whether the category means are asked for."""
        return self.smoothing.needs_categories or self.prior == "category_mean"

    def counts(self, moments: Moments) -> Mask:
        """Say which cells hold a category that counts."""
        return (moments.n > 0) & (moments.n >= self.min_count)

    def root(self, total: Moments, categories: CategoryMoments | None) -> Floats:
        """Prior mu of what is visible; NaN where nothing is."""
        if self.prior == "mean":
            return total.mean
        if categories is not None and self.prior == "category_mean":
            # Where no category counts, the rows that are visible still have a mean.
            return np.where(categories.k > 0, categories.mean, total.mean)
        return np.full(total.mean.shape, float(self.prior))

    def blend(self, seen: Moments, context: Context, mu: Floats) -> Floats:
        """Mu + lam * (mean - mu)."""
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            return mu + self.smoothing.weight(seen, context) * (seen.mean - mu)

    def categories_of(self, moments: Moments, counted: Mask) -> CategoryMoments | None:
        """Sums over the categories that count, if a formula asks for them."""
        return CategoryMoments.of(moments.mean, counted) if self.needs_categories else None

    def leaf_counts(self, moments: Moments) -> Mask:
        """Say which rows of a statistic's table are categories that count: unknown never is, missing by policy."""
        counted = self.counts(moments)
        counted[-2] = False
        if self.missing != "category":
            counted[-1] = False
        return counted


@dataclass(frozen=True)
class Codes:
    """Table of codes of one target of one entry.

    Parameters
    ----------
    values : float64 array (rows, views, outputs)
        Categories, then the levels above from the top, then unknown and missing.
    unseen : bool array (rows, views)
        Where no visible row has the category.
    prior : float64 array (views, outputs)
    """

    values: Floats
    unseen: Mask
    prior: Floats


def table(statistics: Statistics, key: Key, formula: Formula, ops: Ops) -> Codes:
    """Code of every category, view and output."""
    measured = statistics.measured
    total = formula.moments(ops, statistics.totals().cells[0], measured)
    leaf = formula.moments(ops, statistics.cells, measured)
    counted = formula.leaf_counts(leaf)
    categories = formula.categories_of(leaf, counted)
    root = formula.root(total, categories)
    mu = np.broadcast_to(root, leaf.mean.shape)
    blocks: list[Floats] = []
    for level in key.levels:
        above = formula.moments(ops, statistics.grouped(level.of_leaf, level.n).cells[:-2], measured)
        level_counted = formula.counts(above)
        start = blocks[-1][level.parent] if blocks else np.broadcast_to(root, above.mean.shape)
        context = Context(total, formula.categories_of(above, level_counted))
        blocks.append(np.where(level_counted, formula.blend(above, context, start), start))
        has = np.append(level.of_leaf >= 0, [False, False])
        reached = np.zeros(len(has), np.int64)
        reached[has] = level.of_leaf[level.of_leaf >= 0]
        mu = np.where(has[:, None, None], blocks[-1][reached] if level.n else mu, mu)
    context = Context(total, categories)
    values = np.where(counted, formula.blend(leaf, context, mu), mu if formula.unseen is None else formula.unseen)
    own_rows = policies(values[-2:], mu[-2:], formula, missing_counts=formula.missing == "category")
    levels = [block if formula.unknown is None else np.full(block.shape, formula.unknown) for block in blocks]
    unseen = ~counted[..., 0]
    above_unseen = np.ones((sum(len(block) for block in blocks), unseen.shape[1]), bool)
    return Codes(
        np.concatenate([values[:-2], *levels, own_rows]), np.concatenate([unseen[:-2], above_unseen, unseen[-2:]]), root
    )


def policies(values: Floats, mu: Floats, formula: Formula, missing_counts: bool) -> Floats:
    """Codes of the two last rows of a table, unknown and missing."""
    out = values.copy()
    out[0] = mu[0] if formula.unknown is None else formula.unknown
    if not missing_counts:
        out[1] = np.nan if formula.missing == "nan" else mu[1]
    return out


@dataclass(frozen=True)
class Seen:
    """What each row of a tile sees at one level: its sums there, the context, and whether it has that level at all."""

    moments: Moments
    context: Context
    has: Mask


def row_codes(levels: Sequence[Seen], codes: NDArray[np.int32], root: Floats, formula: Formula) -> tuple[Floats, Mask]:
    """Code of each row of a tile, and whether its category is unseen; `levels` come from the top, the category last."""
    mu = root
    for level in levels[:-1]:
        use = formula.counts(level.moments) & level.has[:, None]
        mu = np.where(use, formula.blend(level.moments, level.context, mu), mu)
    leaf = levels[-1]
    counted = formula.counts(leaf.moments) & leaf.has[:, None]
    values = np.where(
        counted, formula.blend(leaf.moments, leaf.context, mu), mu if formula.unseen is None else formula.unseen
    )
    for code, own, value in ((-2, formula.unknown, root), (-1, np.nan if formula.missing == "nan" else None, root)):
        if code == -2 or formula.missing != "category":
            rows = codes == code
            if rows.any():
                values[rows] = value[rows] if own is None else own
    return values, ~counted[:, 0]
