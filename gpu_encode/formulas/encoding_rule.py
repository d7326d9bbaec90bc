"""From sums to encodings: the one module that joins sums, statistic, prior and policies.

Every step serves two shapes: tables with a cell for each category and view, and tiles of rows (leave-one-out and
ordered schemes), in which each row has sums of its own.  A view is the rows that one fold, or a new row, sees.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.cached import cached_property
from cpu_fallback.exact import Floats, Integers, Scaled
from cpu_fallback.fused_rules import AS_CATEGORY, AS_NAN, AS_PRIOR, LESS_ONE_ROW, Blend, FusedRule, PopulationMoments
from cpu_fallback.types import MISSING, UNKNOWN
from gpu_encode.formulas.infrequent import Infrequent
from gpu_encode.formulas.order_statistics import OfViews
from gpu_encode.formulas.scales import on_scale
from gpu_encode.formulas.smoothing import describe_shrinkage, exact_prior
from gpu_encode.formulas.statistic import Context, Statistic
from gpu_encode.seam.ops import Ops, device_of, host
from gpu_encode.sums.category_sums import CategorySums, SumSpec
from gpu_encode.sums.moments import CategoryMoments, Moments, Needs
from gpu_encode.tables.categories.keys import CategoryIndex

Mask = NDArray[np.bool_]
Visibility = NDArray[np.int64] | None
# Weights that are shares of one row sum to at most this number, even if each of them was rounded.
LARGEST_SHARE = 1.0 + 2.0**-20
# Number of categories of one view that are rounded at a time: rounding takes many times the memory of its results.
LARGE_TILE = 1 << 18


@dataclass(frozen=True)
class EncodingRule:
    """All rules that turn sums into encodings: a statistic, its prior, and the policies of the encoder.

    Parameters
    ----------
    statistic : Statistic
        A smoothing, or other numbers computed from the sums.
    prior : "mean", "category_mean", float or None
        None: the statistic's own prior.
    unseen : float or None
        Encoding of a category that no visible row has; None: the prior (or the parent's encoding).
    missing : {"category", "prior", "nan", "error"}
    min_count : float
        Categories with less visible weight are treated as unseen.
    infrequent : Infrequent, optional
        The rule that says which categories are infrequent; None if no category is.
    scale : str, tuple or float
        Scale on which all encodings but `unseen` are put, as the last step.
    refuses_unknown : bool
        Whether a value that fit did not see is refused.
    drop : object, optional
        Label of the class of a multiclass target that has no column.
    """

    statistic: Statistic
    prior: Any = "mean"
    unseen: float | None = None
    missing: str = "category"
    min_count: float = 0.0
    infrequent: Infrequent | None = None
    scale: Any = "identity"
    refuses_unknown: bool = False
    drop: Any = None

    @cached_property
    def needs(self) -> Needs:
        """The sums and targets that the statistic needs."""
        return self.statistic.needs

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def of_target(self, number: int) -> "EncodingRule":
        """Give the rule of one target, by its number."""
        statistic = self.statistic.of_target(number)
        return self if statistic is self.statistic else replace(self, statistic=statistic)

    def encode_unseen(self, prior: Floats) -> Floats:
        """Encode a category that no visible row has; if no row is visible at all, a prior that is a mean stays NaN."""
        if self.unseen is None:
            return self.scaled(prior)
        # A number that the user gave is used without change, and not put on the scale.
        return np.full_like(prior, self.unseen) if self.prior is None else np.where(np.isnan(prior), prior, self.unseen)

    def encode_missing(self, prior: Floats) -> Floats:
        """Encode a missing value that does not count as a category."""
        return np.full_like(prior, np.nan) if self.missing == "nan" else self.scaled(prior)

    def scaled(self, encodings: Floats) -> Floats:
        """Put encodings on the scale."""
        return encodings if self.scale == "identity" else on_scale(encodings, self.scale)

    @property
    def pools_infrequent(self) -> bool:
        """Whether all infrequent categories together have one encoding."""
        return self.infrequent is not None and self.infrequent.pooled

    def moments(self, ops: Ops, accumulators: Integers, spec: SumSpec) -> Moments:
        """Round the sums in accumulators to the moments that the statistic needs."""
        return Moments.of(ops, accumulators, spec, self.needs)

    @property
    def needs_rows(self) -> bool:
        """Whether the prior is NaN if no row is visible."""
        return isinstance(self.prior, str) or (self.prior is None and self.needs.rows)

    @property
    def needs_everything(self) -> bool:
        """Whether an encoding depends on the moments of all rows that it sees."""
        return self.needs.everything or self.prior is not None

    @property
    def needs_categories(self) -> bool:
        """Whether the encoding of a category depends on sums over all categories."""
        return self.needs.categories or self.prior == "category_mean"

    def describe_fused(self) -> Blend | None:
        """Describe the rule for backends that compute encodings in one pass; None if they cannot compute it."""
        shrinkage = describe_shrinkage(self.statistic)
        if shrinkage is None or self.needs_categories or self.infrequent is not None or self.scale != "identity":
            return None
        unseen = 0.0 if self.unseen is None else float(self.unseen)
        return Blend(shrinkage, float(self.min_count), self.unseen is not None, unseen)

    def describe_missing(self) -> int:
        """Give the number that tells such backends how to encode a missing value."""
        return {"category": AS_CATEGORY, "nan": AS_NAN}.get(self.missing, AS_PRIOR)

    def which_count(self, moments: Moments) -> Mask:
        """Tell which categories, or which rows' categories, have enough visible weight for an encoding of their own."""
        return (moments.n > 0) & (moments.n >= self.min_count)

    def find_prior(self, total: Moments, categories: CategoryMoments | None) -> Floats:
        """Compute the prior from all visible rows; if it is a mean and no row is visible, it is NaN."""
        if self.prior is None:
            return self.statistic.find_prior(total)
        if self.prior == "mean":
            return total.mean
        if categories is not None and self.prior == "category_mean":
            means = categories.of_numbers(slice(total.mean.shape[-1]))
            # If no category counts, the visible rows still have a mean.
            return np.where(means.k > 0, means.mean, total.mean)
        return np.full_like(total.mean, float(self.prior))

    def context(self, total: Moments, categories: CategoryMoments | None = None, under_root: bool = True) -> Context:
        """Give the data beyond a category's own moments; `under_root` says that no level is above the category."""
        return Context(total, categories, of_mean=under_root and self.prior == "mean")

    def categories_of(self, ops: Ops, moments: Moments, counted: Mask) -> CategoryMoments | None:
        """Sum the statistic's numbers over all categories that count, if the rule needs these sums."""
        if not self.needs_categories:
            return None
        statistic = self.statistic
        return CategoryMoments.of(
            ops, statistic.of_each_category(moments), counted, statistic.category_weights(moments)
        )

    def which_leaves_count(self, moments: Moments) -> Mask:
        """Tell which rows of a table are categories that count: never unknown; missing only if it is a category."""
        counted = self.which_count(moments)
        counted[-2] = False
        if self.missing != "category":
            counted[-1] = False
        return counted


@dataclass(frozen=True)
class EncodingTable:
    """The encodings of one key and one target.

    Parameters
    ----------
    values : float array (rows, views, outputs)
        One row for each category, then for each level above from the top, then for unknown and missing values; float64,
        or the type of the output.
    unseen : bool array (rows, views)
        True if no visible row has the category.
    lost : int, optional
        Number of encodings that became infinite when the backend rounded them in one pass; None if the table was made
        in another way.
    """

    values: Floats
    unseen: Mask
    lost: int | None = None


class SeenSums(NamedTuple):
    """The sums of one key and one target, the views that see them, and the rule that turns them into encodings.

    Parameters
    ----------
    sums : CategorySums
        Sums by category and fold.
    visibility : int64 array (views, folds) or None
        1 if a view sees a fold; None: each fold is a view of its own.
    """

    sums: CategorySums
    visibility: Visibility
    rule: EncodingRule
    ops: Ops

    def moments(self) -> Moments:
        """Round the sums that each view sees in each category."""
        rule, ops, sums, visibility = self.rule, self.ops, self.sums, self.visibility
        n_rows, views = len(sums.accumulators), sums.n_views if visibility is None else len(visibility)
        views = max(views, sums.n_views)
        # Sums of several views take several times the memory, so they exist for a tile of categories at a time.
        size = max(ops.TILE // max(views * sums.accumulators.shape[2], 1), 1) if views > 1 else LARGE_TILE
        if n_rows <= size:
            seen = sums.part(0, n_rows).visible(ops, visibility)
            return rule.moments(ops, seen.accumulators, seen.spec)
        tiles = (sums.part(start, start + size).visible(ops, visibility) for start in range(0, n_rows, size))
        return Moments.concatenate(rule.moments(ops, tile.accumulators, tile.spec) for tile in tiles)

    def total(self) -> Moments:
        """Round the sums over all rows that each view sees, of all categories together.

        If the backend makes the table in one pass, the moments lie on the host.
        """
        totals, backend = self.sums, self.ops
        if backend.fused is not None and self.rule.describe_fused() is not None:
            totals, backend = totals.totals_on_host(backend)
        else:
            totals = totals.totals(backend)
        digits = totals.accumulators[:1]
        seen = digits if self.visibility is None else backend.visible(digits, self.visibility)
        return self.rule.moments(backend, seen[0], totals.spec)

    def total_and_leaf(self) -> tuple[Moments, Moments | None]:
        """Give `total()` and, if there are few categories, `moments()`: rounding both at once costs no more.

        The second result is None for many categories, since their sums would be copied, and if the backend may not need
        it.
        """
        sums, ops = self.sums, self.ops
        if ops.fused is not None or sums.accumulators.size > ops.TILE:
            return self.total(), None
        seen = sums.accumulators if self.visibility is None else ops.visible(sums.accumulators, self.visibility)
        both = self.rule.moments(ops, np.concatenate([ops.totals(seen)[None], seen]), sums.spec)
        return both.at(0), both.at(slice(1, None))

    def table(
        self, key: CategoryIndex, total: Moments | None = None, leaf: Moments | None = None, dtype: Any = np.float64
    ) -> EncodingTable:
        """Encode every category for every view.

        `total` is `self.total()`, and `leaf` is `self.moments()`, if the caller has them already.  Encodings are
        float64, or `dtype` if the table is made in one pass.
        """
        sums, rule, ops = self.sums, self.rule, self.ops
        if total is None:
            total = self.total()
        if leaf is None:
            if not key.levels and (fused := self.table_in_one_pass(total, dtype)) is not None:
                return fused
            if device_of(ops) != "cpu":
                # Array expressions on a device need the total on this device.
                total = self._replace(sums=sums.totals(ops)).moments().at(0)
            leaf = self.moments()
        leaf, counted, infrequent = self.split_infrequent(total, leaf)
        blocks: list[Floats] = []
        if rule.needs.table:
            if sums.distribution is None:
                values, prior = rule.statistic.encode_table(ops, leaf, counted, total, sums.spec.classification)
            else:
                in_order = OfViews.of(sums.distribution.visible(self.visibility), sums.n_categories)
                values, prior = rule.statistic.encode_in_order(ops, leaf, total, in_order)
            prior = np.broadcast_to(prior, values.shape)
        else:
            categories = rule.categories_of(ops, leaf, counted)
            prior = rule.find_prior(total, categories)
            prior = np.broadcast_to(prior, (len(leaf.n), *prior.shape))
            if key.levels:
                blocks, prior = self._encode_levels(key, total, prior)
            values = rule.statistic.encode(leaf, rule.context(total, categories, not key.levels), prior)
        if infrequent is not None and rule.pools_infrequent:
            # The last row belongs to all infrequent categories together.
            values, counted, prior = (
                np.where(infrequent, values[-1], values[:-1]),
                counted[:-1] | infrequent,
                prior[:-1],
            )
        return assemble(values, prior, counted, blocks, rule)

    def table_in_one_pass(self, total: Moments, dtype: Any, less_one: bool = False) -> EncodingTable | None:
        """Make the table by one pass of the backend over the accumulators; None if the backend has no such pass.

        The bits are those of `table`, which takes several passes.  This is for keys without levels, and for rules by
        which no category depends on another.  `total` is `self.total()`.
        """
        rule, ops = self.rule, self.ops
        if ops.fused is None or (blend := rule.describe_fused()) is None:
            return None
        visibility = LESS_ONE_ROW if less_one else self.visibility
        fused_rule = FusedRule(blend, True, 0.0, rule.describe_missing())
        given = self.sums.accumulators, self.sums.spec.layout, visibility, fused_rule, self.population(total), dtype
        encoded = ops.fused.encode_categories(*given)
        return None if encoded is None else EncodingTable(*encoded)

    def population(self, total: Moments) -> PopulationMoments:
        """Describe all visible rows of each view, for a backend that computes encodings in one pass."""
        rule = self.rule
        prior = rule.find_prior(total, None)
        variance = total.variance if rule.needs.squares else Scaled(prior[:0], np.zeros_like(prior[:0], np.int64))
        exact = exact_prior(rule.context(total), prior) if rule.needs.digits else None
        return PopulationMoments(prior, variance.fraction, variance.exponent, exact)

    def split_infrequent(self, total: Moments, leaf: Moments) -> tuple[Moments, Mask, Mask | None]:
        """Give the moments of each category, which categories count, and which are infrequent (None without a limit).

        If infrequent categories share one encoding, their moments together come last.
        """
        rule, ops = self.rule, self.ops
        counted = rule.which_leaves_count(leaf)
        if rule.infrequent is None:
            return leaf, counted, None
        infrequent = rule.infrequent.among(ops, leaf.n, counted, total.n)
        counted &= ~infrequent
        if not rule.infrequent.pooled:
            return leaf, counted, infrequent
        pool = rule.moments(ops, self._pool(infrequent)[None], self.sums.spec)
        counted = np.concatenate([counted, infrequent.any(axis=0, keepdims=True)])
        return Moments.concatenate([leaf, pool]), counted, infrequent

    def _pool(self, infrequent: Mask) -> Integers:
        """Sum the infrequent categories of each view (views, classes, width)."""
        ops, sums, views = self.ops, self.sums, infrequent.shape[1]
        size = max(ops.TILE // max(views * sums.accumulators.shape[2], 1), 1)
        pool = ops.zeros((views, *sums.accumulators.shape[2:]), np.int64)
        for start in range(0, len(sums.accumulators), size):
            accumulators = sums.part(start, start + size).visible(ops, self.visibility).accumulators
            pool += np.where(infrequent[start : start + size, ..., None], accumulators, 0).sum(axis=0)
        return pool

    def _encode_levels(self, key: CategoryIndex, total: Moments, prior: Floats) -> tuple[list[Floats], Floats]:
        """Encode the levels from the top down; give their encodings, and for each category that of the level above it.

        `prior` holds the prior of all rows, once for each category.
        """
        rule, ops, root = self.rule, self.ops, prior[-1]
        blocks: list[Floats] = []
        for level in key.levels:
            of_level = self.sums.sum_by_parent(ops, level.of_leaf, level.n).part(0, level.n)
            above = self._replace(sums=of_level).moments()
            counted = rule.which_count(above)
            parent = (
                blocks[-1][ops.to_device(level.parent)] if blocks else np.broadcast_to(root, (level.n, *root.shape))
            )
            context = rule.context(total, rule.categories_of(ops, above, counted), not blocks)
            blocks.append(np.where(counted, rule.statistic.encode(above, context, parent), parent))
            of_row = ops.to_device(np.append(level.of_leaf, [-1, -1]))
            reached = blocks[-1][np.maximum(of_row, 0)] if level.n else prior
            prior = np.where((of_row >= 0)[:, None, None], reached, prior)
        return blocks, prior


def describe_rules(rules: Sequence[EncodingRule], n_targets: int) -> dict[int, str]:
    """Give for each rule, by its `id`, a text that is the same for equal rules of a fused pass.

    Users may give each key a rule, and as text NaN equals itself.
    """
    texts = {}
    for number, rule in {id(rule): rule for rule in rules}.items():
        of_targets = [rule.of_target(target) for target in range(n_targets)]
        texts[number] = repr([(each.describe_fused(), each.prior, each.missing) for each in of_targets])
    return texts


def tables_of_keys(sums: Sequence[CategorySums], rule: EncodingRule, key: CategoryIndex) -> list[EncodingTable | None]:
    """Make the tables of keys without levels at once, on the host, by a rule by which categories are independent.

    All sums have one form, and `key` is any of the keys.  A key whose rows are others than those of the first key, so
    that its total differs, gets None.
    """
    first, accumulators = sums[0], np.concatenate([of_key.accumulators for of_key in sums])
    stops = np.cumsum([len(of_key.accumulators) for of_key in sums])
    starts = [0, *stops[:-1].tolist()]
    totals = np.add.reduceat(accumulators, starts)
    same = (totals == totals[0]).reshape(len(totals), -1).all(axis=1)
    seen = SeenSums(CategorySums(accumulators, first.spec), None, rule, host(accumulators.size))
    table = seen.table(key, seen._replace(sums=first).total())
    values, unseen = table.values, table.unseen
    # Only the last lines have been treated as the lines of unknown and of missing values.
    for line in (2,) if rule.missing == "category" else (2, 1):
        values[stops - line], unseen[stops - line] = values[-line], unseen[-line]
    parts = zip(starts, stops.tolist(), same.tolist(), strict=True)
    return [EncodingTable(values[start:stop], unseen[start:stop]) if alike else None for start, stop, alike in parts]


def assemble(values: Floats, prior: Floats, counted: Mask, blocks: list[Floats], rule: EncodingRule) -> EncodingTable:
    """Join the encodings of categories and levels in a table, and apply the policies for unseen and missing values."""
    # A prior that all categories share is one row, repeated, so the policy is applied to it once.
    shared = not blocks and not rule.needs.table
    values = np.where(counted, rule.scaled(values), rule.encode_unseen(prior[-1:] if shared else prior))
    values[-2] = rule.encode_unseen(prior[-2])
    if rule.missing != "category":
        values[-1] = rule.encode_missing(prior[-1])
    unseen = ~counted[..., 0]
    if not blocks:
        return EncodingTable(values, unseen)
    levels = np.concatenate([rule.encode_unseen(block) for block in blocks])
    levels_unseen = np.ones_like(unseen, shape=levels.shape[:2])
    return EncodingTable(
        np.concatenate([values[:-2], levels, values[-2:]]), np.concatenate([unseen[:-2], levels_unseen, unseen[-2:]])
    )


@dataclass(frozen=True)
class VisibleMoments:
    """Moments that the rows of a tile see at one level, their context, and whether each row has such a level."""

    moments: Moments
    context: Context
    has: Mask


def encode_tile(
    levels: Sequence[VisibleMoments], codes: NDArray[np.int32], root: Floats, rule: EncodingRule
) -> tuple[Floats, Mask]:
    """Encode the rows of a tile, and tell which rows' categories are unseen; `levels` go from top to category."""
    mu = root
    for level in levels[:-1]:
        use = rule.which_count(level.moments) & level.has[:, None]
        mu = np.where(use, rule.statistic.encode(level.moments, level.context, mu), mu)
    leaf = levels[-1]
    return apply_policies(rule.statistic.encode(leaf.moments, leaf.context, mu), mu, root, leaf, codes, rule)


def apply_policies(
    values: Floats, mu: Floats, root: Floats, leaf: VisibleMoments, codes: NDArray[np.int32], rule: EncodingRule
) -> tuple[Floats, Mask]:
    """Apply the policies for unseen, unknown and missing categories; `mu` is the encoding of an unseen category."""
    counted = rule.which_count(leaf.moments) & leaf.has[:, None]
    values = np.where(counted, rule.scaled(values), rule.encode_unseen(mu))
    values = np.where((codes == UNKNOWN)[:, None], rule.encode_unseen(root), values)
    if rule.missing != "category":
        values = np.where((codes == MISSING)[:, None], rule.encode_missing(root), values)
    return values, ~counted[:, 0]


def check_weights(owner: str, rules: Sequence[EncodingRule], sums: Sequence[Sequence[CategorySums]], ops: Ops) -> None:
    """Raise ValueError if sample variances are needed, but weights have fractions and sum to one row or less.

    `sums[key][target]` are the sums that new rows see, and `owner` is the encoder's name.
    """
    for rule, per_target in zip(rules, sums, strict=True):
        for number, seen in enumerate(per_target):
            # The sums have digits after the point if some weight is a fraction.
            if rule.of_target(number).needs.sample_variances and seen.spec.layout.count.low < 0:
                total = Moments.of(ops, seen.totals(ops).accumulators[0], seen.spec, Needs(squares=True))
                # If all rows are equal, a single one included, the variance is 0 whatever the denominator.
                if float(total.n.max()) <= LARGEST_SHARE and bool((total.deviation.fraction > 0).any()):
                    raise ValueError(
                        f"{owner} takes weights as numbers of rows, and computes sample variances, which take more "
                        f"than one, but sample_weight sums to {float(total.n.max())!r}. Multiply the weights, so that "
                        "each says how many rows it stands for (weights * len(weights) / weights.sum() makes them one "
                        "row each on average), or take what depends on no sum of weights, such as smooth=0."
                    )
