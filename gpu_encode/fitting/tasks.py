"""One entry and one target of the rows at hand: what every scheme works on."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.fused_rules import FusedRule
from cpu_fallback.types import MISSING, UNKNOWN, Array, Codes, Folds, Layout, Rows
from gpu_encode.formulas.encoding_rule import EncodingRule, Mask
from gpu_encode.seam.ops import Ops
from gpu_encode.sums.category_sums import CategorySums, SumSpec, windows
from gpu_encode.sums.distributions import Distribution
from gpu_encode.sums.targets import backend_for
from gpu_encode.tables.categories.keys import CategoryIndex
from gpu_encode.tables.categories.levels import Level
from gpu_encode.tables.categories.vocabulary import FactorizedColumn, Vocabulary

# Tiles are not cut smaller than this: each costs a few hundred calls of the array library.
LEAST_ROWS = 1 << 10


@dataclass(frozen=True)
class EncodingTask:
    """One entry and one target of the rows at hand.

    Parameters
    ----------
    ops : Ops
    rows : Rows
    key : CategoryIndex
    n_classes : int
        Classes that a cell counts; terms of a continuous target.
    spec : SumSpec
    rule : EncodingRule
    sums : CategorySums, optional
        Sums over all rows, where they are known already; the rows may then have no codes.
    vocabulary : Vocabulary, optional
        What the numbers of the rows' values stand for, where these are text or dates.
    """

    ops: Ops
    rows: Rows
    key: CategoryIndex
    n_classes: int
    spec: SumSpec
    rule: EncodingRule
    sums: CategorySums | None = None
    vocabulary: Vocabulary | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "ops", backend_for(self.ops, self.rows.target))

    @property
    def n_outputs(self) -> int:
        """Columns of encodings."""
        statistic = self.rule.statistic
        return statistic.n_outputs(1 if statistic.needs.terms > 1 else self.n_classes - self.spec.first_output)

    @property
    def dates(self) -> FactorizedColumn:
        """The rows' own values as places among the labels, -1 where a row has none."""
        assert self.rows.target is not None
        assert self.vocabulary is not None
        return FactorizedColumn(self.rows.target, self.vocabulary)

    def weighed(self, factors: Array | None) -> "EncodingTask":
        """Give the task with the weight of each row times a factor; the same where there are none."""
        if factors is None:
            return self
        rows, spec = self.rows, self.spec
        weight = factors if rows.weight is None else rows.weight * factors
        highest = len(spec.layout.measures()) - 1
        layout = Layout(*windows(self.ops, rows.target, weight, highest, len(rows)))
        weighed = Rows(rows.codes, rows.classes, rows.target, weight)
        return replace(self, rows=weighed, spec=replace(spec, layout=layout), sums=None)

    def measure(self, folds: Folds, n_folds: int) -> CategorySums:
        """Sum the rows per (category, fold, class)."""
        if self.sums is not None and folds is None:
            return self.sums
        sums = CategorySums.measure(
            self.ops, self.rows, self.key.n_categories, folds, n_folds, self.n_classes, self.spec
        )
        if not self.rule.statistic.needs.distribution:
            return sums
        return replace(sums, distribution=Distribution.measure(self.ops, self.rows, folds, n_folds))

    def fused_rule(self) -> FusedRule | None:
        """Describe the formula to backends that write the encoding of every row in one pass; None where they cannot.

        They do where rows see nothing above their own category, by one of the formulas that they know.
        """
        rule, blend = self.rule, self.rule.describe_fused()
        if blend is None or self.key.levels:
            return None
        by_mean = rule.prior == "mean"
        return FusedRule(blend, by_mean, 0.0 if by_mean else float(rule.prior), rule.describe_missing())

    @property
    def tile(self) -> int:
        """Rows of a tile; fewer where each row has many outputs."""
        return min(self.ops.TILE, max(self.ops.TILE // max(self.n_outputs, 1), LEAST_ROWS))

    def level_codes(self) -> "list[LevelCodes]":
        """Give the levels above the categories from the top, and the categories themselves last."""
        levels = [
            LevelCodes(level.n, level, self.ops.to_device(with_policies(level.of_leaf))) for level in self.key.levels
        ]
        return [*levels, LevelCodes(self.key.n_categories)]


@dataclass(frozen=True)
class LevelCodes:
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
        return self.of_codes(rows.codes)

    def of_codes(self, codes: Codes) -> Codes:
        """Code at this level of each category's code."""
        return codes if self.of_row is None else self.of_row[codes]

    def has(self, codes: Codes, rule: EncodingRule) -> Mask:
        """Say which rows have a category at this level; the missing one is a category by policy."""
        present: Mask = codes >= 0
        return present | (codes == MISSING) if self.level is None and rule.missing == "category" else present


def with_policies(of_leaf: NDArray[np.int32]) -> Codes:
    """Append the codes of unknown and missing, which stay what they are."""
    return np.append(of_leaf, [UNKNOWN, MISSING]).astype(np.int32)


def without_key(rows: Rows) -> Rows:
    """Give the same rows under one single category."""
    return rows.with_codes(np.zeros_like(rows.codes))
