"""From sums to codes: the one place where statistics, smoothing, prior and policies meet.

Two shapes share every step: tables per (category, view), and tiles of rows (leave-one-out and ordered), in which each
row has sums of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.blending import Background, Blend
from cpu_fallback.exact import Floats, Integers, Scaled
from gpu_encode.cells import MISSING, UNKNOWN, Codes, Folds
from gpu_encode.keys import Key
from gpu_encode.moments import CategoryMoments, Moments
from gpu_encode.ops import Ops
from gpu_encode.shrinkages import shrinkage_of
from gpu_encode.smoothing import Context, Smoothing
from gpu_encode.statistics import Measured, Statistics

Mask = NDArray[np.bool_]
Visibility = NDArray[np.int64] | None


@dataclass(frozen=True)
class Formula:
    """Everything that turns sums into codes.

    Parameters
    ----------
    smoothing : Smoothing
    prior : "mean", "category_mean" or float
    unseen : float or None
        Code of a category that no visible row has; None for the prior (or the parent's code).
    missing : {"category", "prior", "nan", "error"}
    min_count : float
        Categories with less visible weight are as if unseen.
    """

    smoothing: Smoothing
    prior: Any = "mean"
    unseen: float | None = None
    missing: str = "category"
    min_count: float = 0.0

    def or_unseen(self, mu: Floats) -> Floats:
        """Code of what no visible row has, where the prior is mu; NaN where there is no visible row at all."""
        return mu if self.unseen is None else np.where(np.isnan(mu), mu, self.unseen)

    def missing_code(self, mu: Floats) -> Floats:
        """Code of a missing value that is no category, where the prior is mu."""
        return np.full_like(mu, np.nan) if self.missing == "nan" else mu

    def moments(self, ops: Ops, cells: Integers, measured: Measured) -> Moments:
        """Moments of cells, with what the smoothing asks for."""
        return Moments.of(ops, cells, measured, variances=self.smoothing.needs_squares)

    def moments_of_views(self, ops: Ops, statistics: Statistics, visibility: Visibility) -> Moments:
        """Moments of every category and view; the views' own sums exist for a chunk of categories at a time."""
        views = statistics.n_views if visibility is None else max(statistics.n_views, len(visibility))
        size = max(ops.TILE // max(views * statistics.cells.shape[2], 1), 1)
        chunks = range(0, len(statistics.cells), size)
        parts = (statistics.part(start, start + size).visible(ops, visibility) for start in chunks or [0])
        return Moments.joined([self.moments(ops, part.cells, part.measured) for part in parts])

    @property
    def needs_categories(self) -> bool:
        """Whether the category means are asked for."""
        return self.smoothing.needs_categories or self.prior == "category_mean"

    def for_backends(self) -> Blend | None:
        """Describe the formula to backends that compute codes in one pass; None where they cannot."""
        shrinkage = shrinkage_of(self.smoothing)
        if shrinkage is None or self.needs_categories:
            return None
        unseen = 0.0 if self.unseen is None else float(self.unseen)
        return Blend(shrinkage, float(self.min_count), self.unseen is not None, unseen)

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
        return np.full_like(total.mean, float(self.prior))

    def blend(self, seen: Moments, context: Context, mu: Floats) -> Floats:
        """Mu + lam * (mean - mu)."""
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            return mu + self.smoothing.shrinkage(seen, context) * (seen.mean - mu)

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
class CodeTable:
    """Codes of one target of one entry, by category.

    Parameters
    ----------
    values : float64 array (rows, views, outputs)
        Categories, then the levels above from the top, then unknown and missing.
    unseen : bool array (rows, views)
        Where no visible row has the category.
    """

    values: Floats
    unseen: Mask


def total_of_views(statistics: Statistics, visibility: Visibility, formula: Formula, ops: Ops) -> Moments:
    """Moments of all rows that each view sees, whatever their category."""
    return formula.moments_of_views(ops, statistics.totals(ops), visibility).at(0)


def table(
    statistics: Statistics,
    visibility: Visibility,
    key: Key,
    formula: Formula,
    ops: Ops,
    total: Moments | None = None,
) -> CodeTable:
    """Code of every category, view and output; without a visibility matrix each fold is a view of its own.

    `total` is `total_of_views`, where it is known already.
    """
    if total is None:
        total = total_of_views(statistics, visibility, formula, ops)
    if not key.levels and (fused := in_one_pass(statistics, visibility, formula, total, ops)) is not None:
        return fused
    leaf = formula.moments_of_views(ops, statistics, visibility)
    counted = formula.leaf_counts(leaf)
    categories = formula.categories_of(leaf, counted)
    root = formula.root(total, categories)
    mu = np.broadcast_to(root, leaf.mean.shape)
    blocks: list[Floats] = []
    for level in key.levels:
        grouped = statistics.grouped(ops, level.of_leaf, level.n)
        above = formula.moments_of_views(ops, grouped.part(0, level.n), visibility)
        level_counted = formula.counts(above)
        start = blocks[-1][ops.to_device(level.parent)] if blocks else np.broadcast_to(root, above.mean.shape)
        context = Context(total, formula.categories_of(above, level_counted))
        blocks.append(np.where(level_counted, formula.blend(above, context, start), start))
        of_row = ops.to_device(np.append(level.of_leaf, [-1, -1]))
        mu = np.where((of_row >= 0)[:, None, None], blocks[-1][np.maximum(of_row, 0)] if level.n else mu, mu)
    context = Context(total, categories)
    values = np.where(counted, formula.blend(leaf, context, mu), formula.or_unseen(mu))
    unknown = formula.or_unseen(mu[-2:-1])
    missing = values[-1:] if formula.missing == "category" else formula.missing_code(mu[-1:])
    levels = [formula.or_unseen(block) for block in blocks]
    unseen = ~counted[..., 0]
    levels_unseen = np.ones_like(unseen, shape=(sum(len(block) for block in blocks), unseen.shape[1]))
    return CodeTable(
        np.concatenate([values[:-2], *levels, unknown, missing]),
        np.concatenate([unseen[:-2], levels_unseen, unseen[-2:]]),
    )


def in_one_pass(
    statistics: Statistics, visibility: Visibility, formula: Formula, total: Moments, ops: Ops, less_one: bool = False
) -> CodeTable | None:
    """Give the table from one pass of the backend over the cells, with the same bits; None where it has no such pass.

    Where there are no levels, for formulas that ask for no other category; `total` is what each view sees in all.
    """
    blend = formula.for_backends()
    if blend is None:
        return None
    root = formula.root(total, None)
    variance = (
        total.variance if formula.smoothing.needs_squares else Scaled(root[:0], np.zeros_like(root[:0], np.int64))
    )
    measured, background = statistics.measured, Background(root, variance.fraction, variance.exponent)
    found = ops.blended(
        statistics.cells, measured.layout, measured.first_output, visibility, blend, background, less_one
    )
    if found is None:
        return None
    values, unseen = found
    values[-2], unseen[-2] = formula.or_unseen(root), True
    if formula.missing != "category":
        values[-1], unseen[-1] = formula.missing_code(root), True
    return CodeTable(values, unseen)


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
    values = np.where(counted, formula.blend(leaf.moments, leaf.context, mu), formula.or_unseen(mu))
    values = np.where((codes == UNKNOWN)[:, None], formula.or_unseen(root), values)
    if formula.missing != "category":
        values = np.where((codes == MISSING)[:, None], formula.missing_code(root), values)
    return values, ~counted[:, 0]


def indicator(ops: Ops, unseen: Mask, codes: Codes, folds: Folds) -> Mask:
    """Look up which rows' categories are unseen."""
    found = ops.empty((len(codes), 1), np.float64)
    ops.gather(unseen[..., None].astype(np.float64), codes, folds, found)
    flags: Mask = found[:, 0] != 0
    return flags
