"""Codes of tiles of rows, each of which has sums of its own: the twin of `formula.table`."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.exact import Floats
from gpu_encode.cells import MISSING, UNKNOWN
from gpu_encode.formula import Formula, Mask
from gpu_encode.moments import Moments
from gpu_encode.readouts.base import Context


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
        mu = np.where(use, formula.readout.codes(level.moments, level.context, mu), mu)
    leaf = levels[-1]
    return by_policies(formula.readout.codes(leaf.moments, leaf.context, mu), mu, root, leaf, codes, formula)


def by_policies(
    values: Floats, mu: Floats, root: Floats, leaf: Seen, codes: NDArray[np.int32], formula: Formula
) -> tuple[Floats, Mask]:
    """Code of each row by the policies, and whether its category is unseen; mu is the code of what is unseen."""
    counted = formula.counts(leaf.moments) & leaf.has[:, None]
    values = np.where(counted, formula.scaled(values), formula.or_unseen(mu))
    values = np.where((codes == UNKNOWN)[:, None], formula.or_unseen(root), values)
    if formula.missing != "category":
        values = np.where((codes == MISSING)[:, None], formula.missing_code(root), values)
    return values, ~counted[:, 0]
