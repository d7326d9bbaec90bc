"""Places of an order at which priors are taken, and what lies before each of them."""

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.exact import Integers
from cpu_fallback.fused_rules import CHECKPOINT_BITS
from cpu_fallback.types import Array
from gpu_encode.formulas.encoding_rule import EncodingRule
from gpu_encode.ops import Ops
from gpu_encode.sums.category_sums import SumSpec
from gpu_encode.sums.moments import CategoryMoments, Moments

EXACT_PLACES = 1 << CHECKPOINT_BITS


@dataclass(frozen=True)
class CheckpointState:
    """What lies before each checkpoint.

    Parameters
    ----------
    places : int64 array (checkpoints,)
    starts : int64 array or None
        Places at which ties begin, in an order in time.
    everything : int64 array (classes, width)
        Digits of all rows.
    total : Moments
        Of the rows before each checkpoint.
    categories : list of CategoryMoments or None
        Per level from the top, sums over the categories before each checkpoint; where a formula asks for them.
    """

    places: Integers
    starts: Array | None
    everything: Integers
    total: Moments
    categories: list[CategoryMoments | None] = field(default_factory=list)

    @classmethod
    def of(
        cls, places: Integers, starts: Array | None, sums: Integers, rule: EncodingRule, measured: SumSpec, ops: Ops
    ) -> Self:
        """Add up the carried sums of rows between the checkpoints (checkpoints, classes, width)."""
        before = np.cumsum(sums, axis=0) - sums
        return cls(places, starts, sums.sum(axis=0), rule.moments(ops, before, measured))


def floor_places(places: Integers) -> Integers:
    """Places with all but their top nine bits cleared."""
    extra = np.maximum(np.frexp(places.astype(np.float64))[1].astype(np.int64) - CHECKPOINT_BITS, 0)
    return (places >> extra) << extra


def prior_places(starts: Array | None, begins: Integers) -> Integers:
    """Place up to which a row's prior is taken: at most 1/256 before what it sees, and never inside a tie.

    `starts` are the places at which ties begin, in an order in time.
    """
    floored = floor_places(begins)
    if starts is None:
        return floored
    back = starts[np.searchsorted(starts, floored, side="right") - 1]
    return np.where((back == 0) & (begins > 0), begins, back)


def checkpoint_places(starts: Array | None, n_rows: int, ops: Ops) -> Integers:
    """Sorted places at which priors are taken, 0 among them."""
    if starts is not None:
        return np.unique(np.append(prior_places(starts, starts), 0))
    parts = [np.arange(min(EXACT_PLACES, max(n_rows, 1)))]
    for bits in range(CHECKPOINT_BITS, max(n_rows, 1).bit_length()):
        step = 1 << (bits + 1 - CHECKPOINT_BITS)
        parts.append(np.arange(1 << bits, min(2 << bits, n_rows), step))
    return ops.to_device(np.concatenate(parts))


def segments_of(checkpoints: Integers, places: Integers) -> NDArray[np.int32]:
    """Give the number of the last checkpoint at or before each place."""
    return (np.searchsorted(checkpoints, places, side="right") - 1).astype(np.int32)
