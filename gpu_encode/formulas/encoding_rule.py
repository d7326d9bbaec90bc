"""From sums to codes: the one place where statistics, readout, prior and policies meet.

Two shapes share every step: tables per (category, view), and tiles of rows (leave-one-out and ordered), in which each
row has sums of its own.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.exact import Floats, Integers, Scaled
from cpu_fallback.fused_rules import Blend, PopulationMoments
from gpu_encode.categories.keys import CategoryIndex
from gpu_encode.formulas.infrequent import Rare
from gpu_encode.formulas.order_statistics import OfViews
from gpu_encode.formulas.scales import on_scale
from gpu_encode.formulas.shrinkages import shrinkage_of
from gpu_encode.formulas.statistic import Context, Statistic
from gpu_encode.ops import Ops
from gpu_encode.sums.category_sums import CategorySums, SumSpec
from gpu_encode.sums.moments import CategoryMoments, Moments

Mask = NDArray[np.bool_]
Visibility = NDArray[np.int64] | None


@dataclass(frozen=True)
class EncodingRule:
    """Everything that turns sums into codes.

    Parameters
    ----------
    statistic : Statistic
        A smoothing, or other numbers read off the sums.
    prior : "mean", "category_mean", float or None
        None for the readout's own.
    unseen : float or None
        Code of a category that no visible row has; None for the prior (or the parent's code).
    missing : {"category", "prior", "nan", "error"}
    min_count : float
        Categories with less visible weight are as if unseen.
    rare : Rare
        Which categories are infrequent.
    scale : str or float
        Scale that codes are put on, `unseen` excepted, after everything else.
    """

    statistic: Statistic
    prior: Any = "mean"
    unseen: float | None = None
    missing: str = "category"
    min_count: float = 0.0
    rare: Rare = field(default_factory=Rare)
    scale: Any = "identity"

    def of_target(self, number: int) -> "EncodingRule":
        """Give the formula of one target, by its place."""
        statistic = self.statistic.of_target(number)
        return self if statistic is self.statistic else replace(self, statistic=statistic)

    def or_unseen(self, mu: Floats) -> Floats:
        """Code of what no visible row has, where the prior is mu; a mean is NaN where no row is visible at all."""
        if self.unseen is None:
            return self.scaled(mu)
        return np.full_like(mu, self.unseen) if self.prior is None else np.where(np.isnan(mu), mu, self.unseen)

    def missing_code(self, mu: Floats) -> Floats:
        """Code of a missing value that is no category, where the prior is mu."""
        return np.full_like(mu, np.nan) if self.missing == "nan" else self.scaled(mu)

    def scaled(self, codes: Floats) -> Floats:
        """Put codes on the scale."""
        return on_scale(codes, self.scale)

    def moments(self, ops: Ops, accumulators: Integers, measured: SumSpec) -> Moments:
        """Moments of cells, with what the readout asks for."""
        needs = self.statistic.needs
        return Moments.of(
            ops,
            accumulators,
            measured,
            variances=needs.squares,
            totals=needs.totals,
            from_above=needs.totals_from_above,
            others=needs.others,
            cubes=needs.cubes,
        )

    def moments_of_views(self, ops: Ops, statistics: CategorySums, visibility: Visibility) -> Moments:
        """Moments of every category and view; sums of several views exist for a chunk of categories at a time."""
        views = statistics.n_views if visibility is None else max(statistics.n_views, len(visibility))
        size = (
            max(ops.TILE // max(views * statistics.accumulators.shape[2], 1), 1)
            if views > 1
            else len(statistics.accumulators)
        )
        chunks = range(0, len(statistics.accumulators), max(size, 1))
        parts = (statistics.part(start, start + size).visible(ops, visibility) for start in chunks or [0])
        return Moments.joined([self.moments(ops, part.accumulators, part.measured) for part in parts])

    @property
    def needs_rows(self) -> bool:
        """Whether the prior is NaN where no row is visible."""
        return isinstance(self.prior, str) or (self.prior is None and self.statistic.needs.rows)

    @property
    def needs_categories(self) -> bool:
        """Whether the category means are asked for."""
        return self.statistic.needs.categories or self.prior == "category_mean"

    def for_backends(self) -> Blend | None:
        """Describe the formula to backends that compute codes in one pass; None where they cannot."""
        shrinkage = shrinkage_of(self.statistic)
        if shrinkage is None or self.needs_categories or self.rare.asked or self.scale != "identity":
            return None
        unseen = 0.0 if self.unseen is None else float(self.unseen)
        return Blend(shrinkage, float(self.min_count), self.unseen is not None, unseen)

    def counts(self, moments: Moments) -> Mask:
        """Say which cells hold a category that counts."""
        return (moments.n > 0) & (moments.n >= self.min_count)

    def root(self, total: Moments, categories: CategoryMoments | None) -> Floats:
        """Prior mu of what is visible; a mean is NaN where nothing is."""
        if self.prior is None:
            return self.statistic.root(total)
        if self.prior == "mean":
            return total.mean
        if categories is not None and self.prior == "category_mean":
            # Where no category counts, the rows that are visible still have a mean.
            return np.where(categories.k > 0, categories.mean, total.mean)
        return np.full_like(total.mean, float(self.prior))

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
class EncodingTable:
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


def total_of_views(statistics: CategorySums, visibility: Visibility, rule: EncodingRule, ops: Ops) -> Moments:
    """Moments of all rows that each view sees, whatever their category."""
    return rule.moments_of_views(ops, statistics.totals(ops), visibility).at(0)


def table(
    statistics: CategorySums,
    visibility: Visibility,
    key: CategoryIndex,
    rule: EncodingRule,
    ops: Ops,
    total: Moments | None = None,
    leaf: Moments | None = None,
) -> EncodingTable:
    """Code of every category, view and output; without a visibility matrix each fold is a view of its own.

    `total` is `total_of_views`, and `leaf` what each view sees of each category, where they are known already.
    """
    if total is None:
        total = total_of_views(statistics, visibility, rule, ops)
    if leaf is None:
        if not key.levels and (fused := in_one_pass(statistics, visibility, rule, total, ops)) is not None:
            return fused
        leaf = rule.moments_of_views(ops, statistics, visibility)
    leaf, counted, rare = told_apart(statistics, visibility, rule, ops, total, leaf)
    if not rule.statistic.needs.table:
        categories = rule.categories_of(leaf, counted)
        root = rule.root(total, categories)
        blocks, mu = levels_above(statistics, visibility, key, rule, ops, total, broadcast_over(root, len(leaf.n)))
        values = rule.statistic.codes(leaf, Context(total, categories), mu)
    else:
        if statistics.distribution is None:
            values, root = rule.statistic.table(ops, leaf, counted, total, statistics.measured.classification)
        else:
            in_order = OfViews.of(statistics.distribution.visible(visibility), statistics.n_categories)
            values, root = rule.statistic.ranked(ops, leaf, total, in_order)
        blocks, mu = [], np.broadcast_to(root, values.shape)
    if rare is not None and rule.rare.pooled:
        values, counted, mu = np.where(rare, values[-1], values[:-1]), counted[:-1] | rare, mu[:-1]
    return assembled(values, mu, counted, blocks, rule)


def levels_above(
    statistics: CategorySums,
    visibility: Visibility,
    key: CategoryIndex,
    rule: EncodingRule,
    ops: Ops,
    total: Moments,
    mu: Floats,
) -> tuple[list[Floats], Floats]:
    """Codes of the levels above the categories, from the top; and of what lies right above each category.

    `mu` is the prior of each category, one and the same, where there are no levels.
    """
    blocks: list[Floats] = []
    root = mu[-1]
    for level in key.levels:
        grouped = statistics.grouped(ops, level.of_leaf, level.n)
        above = rule.moments_of_views(ops, grouped.part(0, level.n), visibility)
        counted = rule.counts(above)
        start = blocks[-1][ops.to_device(level.parent)] if blocks else broadcast_over(root, level.n)
        context = Context(total, rule.categories_of(above, counted))
        blocks.append(np.where(counted, rule.statistic.codes(above, context, start), start))
        of_row = ops.to_device(np.append(level.of_leaf, [-1, -1]))
        mu = np.where((of_row >= 0)[:, None, None], blocks[-1][np.maximum(of_row, 0)] if level.n else mu, mu)
    return blocks, mu


def broadcast_over(root: Floats, n: int) -> Floats:
    """Give n rows the same codes (views, outputs)."""
    return np.broadcast_to(root, (n, *root.shape))


def told_apart(
    statistics: CategorySums, visibility: Visibility, rule: EncodingRule, ops: Ops, total: Moments, leaf: Moments
) -> tuple[Moments, Mask, Mask | None]:
    """Say what is seen of each category, which of them count, and which are infrequent, if any may be.

    Where infrequent ones are one category together, it stands behind all others.
    """
    counted = rule.leaf_counts(leaf)
    if not rule.rare.asked:
        return leaf, counted, None
    rare = rule.rare.among(ops, leaf.n, counted, total.n)
    counted &= ~rare
    if not rule.rare.pooled:
        return leaf, counted, rare
    pool = rule.moments(ops, pooled(ops, statistics, visibility, rare)[None], statistics.measured)
    return Moments.joined([leaf, pool]), np.concatenate([counted, rare.any(axis=0, keepdims=True)]), rare


def pooled(ops: Ops, statistics: CategorySums, visibility: Visibility, rare: Mask) -> Integers:
    """Sum the infrequent categories of each view (views, classes, width)."""
    views, size = rare.shape[1], max(ops.TILE // max(rare.shape[1] * statistics.accumulators.shape[2], 1), 1)
    found = ops.zeros((views, *statistics.accumulators.shape[2:]), np.int64)
    for start in range(0, len(statistics.accumulators), size):
        accumulators = statistics.part(start, start + size).visible(ops, visibility).accumulators
        found += np.where(rare[start : start + size, ..., None], accumulators, 0).sum(axis=0)
    return found


def assembled(values: Floats, mu: Floats, counted: Mask, blocks: list[Floats], rule: EncodingRule) -> EncodingTable:
    """Put the codes of categories and of levels above together, by the policies; mu is the code of what is unseen."""
    # A prior that all categories have is one line, repeated.
    own_priors = blocks or rule.statistic.needs.table
    values = np.where(counted, rule.scaled(values), rule.or_unseen(mu if own_priors else mu[-1:]))
    values[-2] = rule.or_unseen(mu[-2])
    if rule.missing != "category":
        values[-1] = rule.missing_code(mu[-1])
    unseen = ~counted[..., 0]
    if not blocks:
        return EncodingTable(values, unseen)
    levels = [rule.or_unseen(block) for block in blocks]
    levels_unseen = np.ones_like(unseen, shape=(sum(len(block) for block in blocks), unseen.shape[1]))
    return EncodingTable(
        np.concatenate([values[:-2], *levels, values[-2:]]), np.concatenate([unseen[:-2], levels_unseen, unseen[-2:]])
    )


def in_one_pass(
    statistics: CategorySums,
    visibility: Visibility,
    rule: EncodingRule,
    total: Moments,
    ops: Ops,
    less_one: bool = False,
) -> EncodingTable | None:
    """Give the table from one pass of the backend over the cells, with the same bits; None where it has no such pass.

    Where there are no levels, for formulas that ask for no other category; `total` is what each view sees in all.
    """
    blend = rule.for_backends()
    if blend is None or ops.fused is None:
        return None
    root = rule.root(total, None)
    variance = total.variance if rule.statistic.needs.squares else Scaled(root[:0], np.zeros_like(root[:0], np.int64))
    measured, population = statistics.measured, PopulationMoments(root, variance.fraction, variance.exponent)
    values, unseen = ops.fused.encode_categories(
        statistics.accumulators, measured.layout, measured.first_output, visibility, blend, population, less_one
    )
    values[-2], unseen[-2] = rule.or_unseen(root), True
    if rule.missing != "category":
        values[-1], unseen[-1] = rule.missing_code(root), True
    return EncodingTable(values, unseen)
