"""Encodings of tiles of rows, where each row sees its own sums; `table` does the same for whole categories."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.exact import Floats
from cpu_fallback.types import MISSING, UNKNOWN
from gpu_encode.formulas.encoding_rule import EncodingRule, Mask
from gpu_encode.formulas.statistic import Context
from gpu_encode.sums.moments import Moments


@dataclass(frozen=True)
class VisibleMoments:
    """What each row of a tile sees at one level: moments, their context, and whether the row has that level at all."""

    moments: Moments
    context: Context
    has: Mask


def encode_rows(
    levels: Sequence[VisibleMoments], codes: NDArray[np.int32], root: Floats, rule: EncodingRule
) -> tuple[Floats, Mask]:
    """Encode the rows of a tile, and say whose category is unseen; `levels` come from the top, the category last."""
    mu = root
    for level in levels[:-1]:
        use = rule.which_count(level.moments) & level.has[:, None]
        mu = np.where(use, rule.statistic.encode(level.moments, level.context, mu), mu)
    leaf = levels[-1]
    return apply_policies(rule.statistic.encode(leaf.moments, leaf.context, mu), mu, root, leaf, codes, rule)


def apply_policies(
    values: Floats, mu: Floats, root: Floats, leaf: VisibleMoments, codes: NDArray[np.int32], rule: EncodingRule
) -> tuple[Floats, Mask]:
    """Apply the policies for unseen, unknown and missing categories; `mu` is the encoding of an unseen one."""
    counted = rule.which_count(leaf.moments) & leaf.has[:, None]
    values = np.where(counted, rule.scaled(values), rule.encode_unseen(mu))
    values = np.where((codes == UNKNOWN)[:, None], rule.encode_unseen(root), values)
    if rule.missing != "category":
        values = np.where((codes == MISSING)[:, None], rule.encode_missing(root), values)
    return values, ~counted[:, 0]
