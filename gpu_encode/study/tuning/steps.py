"""The effect of a key on an additive model: sums by category and fold, the steps that follow from them, their gain."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cpu_fallback.exact import Floats, Integers
from cpu_fallback.types import Array, Codes
from gpu_encode.study.tuning.working_response import FINEST, WorkingResponse

# Sums of whole floats below 2**52 are exact.
ROOM_OF_FLOATS = 52
# In a sample, S * S / W of one category counts for at most this.
LARGEST_RATIO = 1000.0


@dataclass(frozen=True, eq=False)
class Seen:
    """The sums of categories that one fold sees.

    Parameters
    ----------
    weight, score : float64 array (cells,)
        W and S; for a conjunction, S less what its columns explain by the rows that this fold sees.
    spread : float
        Sum of S * S / W.
    freedom : int
        The average of the spread if nothing is left to explain.
    total : float
        Sum of W.
    """

    weight: Floats
    score: Floats
    spread: float
    freedom: int
    total: float

    @classmethod
    def of(cls, working: WorkingResponse, weight: Floats, score: Floats, members: Sequence[Array]) -> "Seen":
        """Take W and S of categories; for a conjunction, `members` says which category of each column each has."""
        ops, unit, n_rows = working.rows.ops, working.units()[0], len(working.response)
        present = weight > 0
        freedom = int(present.sum())
        if members and len(weight):
            # Without rows, NumPy's counts are whole numbers, with or without weights.
            margins: list[Array] = [np.bincount(member, weight).astype(np.float64) for member in members]
            freedom -= sum(int((margin > 0).sum()) for margin in margins) - len(members) + 1
            bits = bits_of_score(n_rows, len(members))
            score = np.rint(score * 2.0**bits)
            score = (score - explained_by(members, margins, weight, score)) * 2.0**-bits
        squares = score * score
        squares /= np.maximum(weight, unit)
        # No sum is larger than the largest mean times the sum of all |h * z|, which is less than the number of rows.
        spread = sum_on_grid(squares, finest(8.0 * working.largest * n_rows))
        # The numbers become multiples of the unit, whose sums are exact.
        return cls(weight, score, spread, freedom, float(ops.to_host(weight.sum())))

    @property
    def variance(self) -> float:
        """Variance between categories, by moments; 0 if the estimate is negative."""
        return max(self.spread - self.freedom, 0.0) / self.total if self.total and self.freedom > 0 else 0.0

    def steps(self, ridge: float | None, longest: float) -> Floats:
        """Give S / (W + ridge), or S * t / (1 + t * W), where t is the variance."""
        if ridge is None:
            variance = self.variance
            steps = self.score * variance
            steps /= self.weight * variance + 1.0
        else:
            divisor = self.weight + ridge
            steps = np.where(self.weight > 0, self.score / np.where(divisor > 0, divisor, 1.0), 0.0)
        return np.clip(steps, -longest, longest, out=steps)


def explained_by(members: Sequence[Array], margins: Sequence[Array], weight: Floats, score: Floats) -> Array:
    """Give what columns explain of S: each explains a part of what the earlier ones left; all but the last do so twice.

    Only whole numbers are summed, so that their order does not matter.
    """
    means = [np.zeros_like(margin) for margin in margins]
    explained = np.zeros_like(score)
    for number in [*range(len(members)), *range(len(members) - 1)]:
        left = np.bincount(members[number], score) - np.bincount(members[number], explained)
        means[number] += left / np.where(margins[number] > 0, margins[number], 1.0)
        explained = means[0][members[0]]
        for member, mean in zip(members[1:], means[1:], strict=True):
            explained += mean[member]
        explained *= weight
        np.rint(explained, out=explained)
    return explained


def bits_of_score(n_rows: int, n_members: int) -> int:
    """Bits behind the point of S: no sum of |S| exceeds the number of rows, and a column at most doubles the rest."""
    return finest(float(n_rows << (2 * n_members)))


@dataclass(frozen=True, eq=False)
class SharedSums:
    """Sums of the categories of a key that have rows in several folds: rows of other categories would see no step.

    Other categories may be included, and pairs of codes without rows, whose sums are 0: neither changes the result.

    Parameters
    ----------
    n_categories : int
        Number of all categories that have rows.
    cells : int array (cells,)
        The category of each cell; for two keys that are not joined, the category of the first key.
    own : int64 array (folds, cells, 2)
        Sums of h and of h * z.
    members : list of int array (cells,)
        For a conjunction, the category of each of its columns.
    """

    n_categories: int
    cells: Integers
    own: Array
    members: Sequence[Array]

    @classmethod
    def of(
        cls, working: WorkingResponse, codes: Codes, n_categories: int, members: Sequence[Array] = ()
    ) -> "SharedSums":
        """Sum rows by category and fold; `members` has an entry for every category."""
        fused = fused_operation(working, "conjunction_sums")
        if fused is None or not n_categories:
            sums = working.sums(codes, n_categories, working.rows.folds)
            cells = np.flatnonzero(count_folds(sums[:, :, 0]) > 1)
            own = (sums[cells] if len(cells) < n_categories else sums).transpose(1, 0, 2).copy()
        else:
            _, (cells, _), own = fused((codes, None), (n_categories, 1), *cls._rows(working))
        if len(cells) < n_categories:
            members = [member[cells] for member in members]
        return cls(n_categories, cells, own, members)

    @classmethod
    def of_pair(
        cls, working: WorkingResponse, codes: tuple[Codes, Codes], sizes: tuple[int, int], members: Sequence[Array]
    ) -> "SharedSums":
        """Sum rows of two keys as if they were joined; `members` has an entry for every category of the first key."""
        fused: Any = fused_operation(working, "conjunction_sums")
        n_categories, (left, right), own = fused(codes, sizes, *cls._rows(working))
        return cls(n_categories, left, own, [*(member[left] for member in members), right])

    @staticmethod
    def _rows(working: WorkingResponse) -> tuple[Any, ...]:
        return working.rows.folds, working.rows.n_folds, working.response, working.information


def fused_operation(working: WorkingResponse, name: str) -> Any:
    """Give a fused operation of the backend; None if array expressions do its work."""
    return getattr(working.rows.ops.fused, name, None)


@dataclass(frozen=True, eq=False)
class Steps:
    """The effect of one key on the model of one outcome.

    Parameters
    ----------
    gains : float64 array (folds,)
        Rise of the log-likelihood of each fold's rows, by the second-order expansion; on the host.
    surprise : float
        How many standard errors the spread between categories is above its average by chance.
    cells : int array (cells,)
        Categories that have rows in more than one fold: rows of other categories would see no step.
    steps : float64 array (folds, cells)
    """

    gains: Floats
    surprise: float
    cells: Integers
    steps: Floats

    @classmethod
    def of(cls, working: WorkingResponse, shared: SharedSums, m: float | None = None) -> "Steps":
        """Let the steps of each fold be S / (W + ridge), by the sums that the fold sees.

        Parameters
        ----------
        working : WorkingResponse
        shared : SharedSums
        m : float, optional
            The ridge, in rows of mean information.  None: 1 / t, where t is the variance between categories
            that the fold sees, by moments; if t is not above 0, there is no step.
        """
        steps = working.rows.ops.zeros(shared.own.shape[:2], np.float64)
        found = fused_gains(working, shared, working.rows.visibility, m, steps)
        if found is None:
            return cls.by_arrays(working, shared, m, steps)
        return cls(found[:, 0], surprise_of(found[:, 1].tolist(), found[:, 2].tolist()), shared.cells, steps)

    @classmethod
    def by_arrays(cls, working: WorkingResponse, shared: SharedSums, m: float | None, steps: Floats) -> "Steps":
        """Compute the steps by array expressions, which define `conjunction_gains`."""
        unit, unit_of_score = working.units()
        of_weight, of_score = shared.own[:, :, 0], shared.own[:, :, 1]
        everything = shared.own.sum(axis=0)
        ridge = None if m is None else m * working.mean_information()
        longest = working.longest_step
        bits = finest(longest * longest * len(working.response))
        gains, views = np.zeros(len(steps)), []
        for fold in range(len(steps)):
            weight = working.rows.seen(of_weight, everything[:, 0], fold) * unit
            score = working.rows.seen(of_score, everything[:, 1], fold) * unit_of_score
            views.append(seen := Seen.of(working, weight, score, shared.members))
            if ridge is not None or seen.variance:
                steps[fold] = seen.steps(ridge, longest)
                rises = steps[fold] * (of_weight[fold] * (-0.5 * unit))
                rises += of_score[fold] * unit_of_score
                rises *= steps[fold]
                gains[fold] = sum_on_grid(rises, bits)
        surprise = surprise_of([seen.spread for seen in views], [seen.freedom for seen in views])
        return cls(gains, surprise, shared.cells, steps)

    def table(self, working: WorkingResponse, n_categories: int) -> Floats:
        """Give the step of each category and fold (categories + 2, folds)."""
        table: Floats = working.rows.ops.zeros((n_categories + 2, len(self.steps)), np.float64)
        cells = self.cells.astype(np.int64) * len(self.steps)
        for fold, steps in enumerate(self.steps):
            # On a GPU, assignment to rows by number counts in 32 bits, but `put` counts in 64.
            table.put(cells + fold, steps)
        return table


def gain_of(working: WorkingResponse, shared: SharedSums, m: float | None) -> tuple[Floats, float]:
    """Give the gains and the surprise of a conjunction, as `Steps` have them."""
    found = fused_gains(working, shared, working.rows.visibility, m, np.empty((0, 0)))
    if found is None:
        steps = Steps.of(working, shared, m)
        return steps.gains, steps.surprise
    return found[:, 0], surprise_of(found[:, 1].tolist(), found[:, 2].tolist())


def chance_of(working: WorkingResponse, shared: SharedSums) -> float:
    """Give the surprise of a conjunction in one view of all rows, before any fold is held out."""
    found = fused_gains(working, shared, np.ones((1, working.rows.n_folds), np.int64), None, np.empty((0, 0)))
    if found is not None:
        return surprise_of(found[:, 1].tolist(), found[:, 2].tolist())
    everything, (unit, unit_of_score) = shared.own.sum(axis=0), working.units()
    seen = Seen.of(working, everything[:, 0] * unit, everything[:, 1] * unit_of_score, shared.members)
    return surprise_of([seen.spread], [seen.freedom])


def fused_gains(
    working: WorkingResponse, shared: SharedSums, visibility: Array, m: float | None, steps: Floats
) -> Array | None:
    """Give `conjunction_gains` of the views (views, folds), if the backend has this operation."""
    fused = fused_operation(working, "conjunction_gains")
    if fused is None:
        return None
    found: Array = fused(shared.own, visibility, shared.members, *numbers_of(working, len(shared.members), m), steps)
    return found


def numbers_of(working: WorkingResponse, n_members: int, m: float | None) -> tuple[float, list[float]]:
    """Give the ridge and the `numbers` of `conjunction_gains` for a key of `n_members` columns."""
    n_rows, longest = len(working.response), working.longest_step
    bounds = 8.0 * working.largest * n_rows, longest * longest * n_rows
    grids = [2.0**bits for bits in (bits_of_score(n_rows, n_members), *map(finest, bounds))]
    return -1.0 if m is None else m * working.mean_information(), [*working.units(), *grids, longest]


def count_folds(weight: Array) -> Array:
    """Count the folds in which each category (categories, folds) has weight."""
    counts = (weight[:, 0] > 0).astype(np.int32)
    for fold in range(1, weight.shape[1]):
        counts += weight[:, fold] > 0
    return counts


def surprise_of(spreads: Sequence[float], freedoms: Sequence[float]) -> float:
    """Give how far the mean spread is above chance, as a normal deviate, by Wilson and Hilferty's formula."""
    known = [(spread, freedom) for spread, freedom in zip(spreads, freedoms, strict=True) if freedom > 0]
    if not known:
        return -math.inf
    freedom = sum(freedom for _, freedom in known) / len(known)
    spread = math.fsum(spread for spread, _ in known) / len(known)
    ninth = 2.0 / (9.0 * freedom)
    return float((np.cbrt(spread / freedom) - (1.0 - ninth)) / math.sqrt(ninth))


def most_gain(
    working: WorkingResponse, codes: Codes, n_categories: int, members: Sequence[Array], times: float, errors: float
) -> float:
    """Give the largest gain per unit of weight that all rows could show, estimated from a sample.

    Two assumptions are made: the variance between categories is `errors` standard errors above its estimate t, and
    categories have `times` the weight W that they have in the sample.  The gain is the sum of W * t * u / (1 + u) / 2,
    with u = times * W * t.
    """
    sums = working.sums(codes, n_categories, None)[:, 0]
    unit, unit_of_score = working.units()
    seen = Seen.of(working, sums[:, 0] * unit, sums[:, 1] * unit_of_score, members)
    if not seen.total:
        return 0.0
    weight = seen.weight
    # Clipped, so that one category in a thousand does not decide how uncertain the other categories are.
    off = np.minimum(seen.score * seen.score / np.maximum(weight, unit), LARGEST_RATIO) - 1.0
    bits = finest(LARGEST_RATIO * LARGEST_RATIO * n_categories)
    error = math.sqrt(sum_on_grid(np.where(weight > 0, off * off, 0.0), bits))
    variance = (max(seen.spread - seen.freedom, 0.0) + errors * error) / seen.total
    scaled = times * variance * weight
    explained = sum_on_grid(weight * (scaled / (1.0 + scaled)), finest(float(len(codes))))
    return 0.5 * variance * explained / working.rows.total


def finest(bound: float) -> int:
    """Give how many bits behind the binary point keep sums exact in any order, if no sum exceeds a bound."""
    return min(ROOM_OF_FLOATS - max(int(np.frexp(bound)[1]), 0), FINEST)


def sum_on_grid(values: Floats, bits: int) -> float:
    """Sum numbers, rounded to this number of bits behind the binary point.

    All sums are of whole numbers and below 2**53, so that any order of additions gives the same result.
    """
    whole = values * 2.0**bits
    np.rint(whole, out=whole)
    return float(whole.sum()) * 2.0**-bits
