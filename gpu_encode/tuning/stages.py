"""An additive model of keys, from sums alone: what a key adds to it, and how likely held-out rows are under it.

The model has one number for each row, its offset: log-odds of a class, or the number that is expected.  Of each row two
numbers are kept, as integers, so that sums are exact: the response z by which the row would have its offset moved, and
the information h that this carries, its weight.  A category moves its rows by a step d that other folds decide; by the
second-order expansion the likelihood of held-out rows, of sums W of h and S of h * z, rises by d * S - d * d * W / 2.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cpu_fallback.elementary import exp, log
from cpu_fallback.exact import Floats, Integers
from cpu_fallback.types import Array, Codes, Layout, Rows, Window
from gpu_encode.ops import Ops

WHOLE_SUMS = Layout(Window(), Window())
# Sums of integers below 2**61 are sums of int64.
ROOM = 61
# Binary places of h, and of z at most.
INFORMATION_BITS = 24
RESPONSE_BITS = 16
# Log-odds of no row go further, and one step no further than this.
FARTHEST_LOG_ODDS = 12.0
LONGEST_STEP = 8.0
# Of a target that is explained without a rest, in units of its largest number.
LEAST_VARIANCE = 2.0**-100
LOG_OF_TWO_PI = 1.8378770664093453
LOG_OF_TWO = 0.6931471805599453
# Sums of whole floats below 2**52 are exact.
ROOM_OF_FLOATS = 52
# In a sample, S * S / W of a category counts for no more.
LARGEST_RATIO = 1000.0
# Powers of two beyond it are no float64 numbers.
FINEST = 1000


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Which fold each row is in, and which folds see which.

    Parameters
    ----------
    ops : Ops
    folds : int32 array (rows,)
    visibility : int64 array (folds, folds)
    weight : float64 array (rows,), optional
        Their sum is at most the number of rows.
    weights : float64 array (folds,)
        Weight of each fold's rows, on the host.
    """

    ops: Ops
    folds: Codes
    visibility: Integers
    weight: Floats | None
    weights: Floats

    @classmethod
    def of(cls, ops: Ops, folds: Codes, visibility: Integers, weight: Array | None) -> "HeldOut":
        """Divide weights w by sum(w * w) / sum(w), so that S * S / W is 1 on average in rows of any weights."""
        if weight is None:
            counts = sum_by_code(ops, np.ones_like(folds, dtype=np.float64), folds, len(visibility))
            return cls(ops, folds, visibility, None, counts)
        weight = weight.astype(np.float64, copy=False)
        weight = weight * 2.0 ** -int(np.frexp(float(weight.max()))[1])
        everything = np.zeros_like(folds)
        total, squares = (float(sum_by_code(ops, of, everything, 1)[0]) for of in (weight, weight * weight))
        weight = weight * (total / squares)
        return cls(ops, folds, visibility, weight, sum_by_code(ops, weight, folds, len(visibility)))

    @property
    def total(self) -> float:
        """Weight of all rows."""
        return math.fsum(self.weights)

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return len(self.visibility)

    def weighted(self, values: Floats) -> Floats:
        """Multiply numbers of rows by the rows' weights."""
        return values if self.weight is None else values * self.weight

    def by_fold(self, values: Floats) -> Floats:
        """Sum weighted numbers of rows over each fold, on the host."""
        return sum_by_code(self.ops, self.weighted(values), self.folds, self.n_folds)

    def seen(self, held_out: Array, everything: Array, fold: int) -> Array:
        """Sum integers (folds, cells) over what a fold sees, given their sum over all folds."""
        hidden = np.flatnonzero(self.visibility[fold] == 0)
        if len(hidden) == 1:
            seen: Array = everything - held_out[int(hidden[0])]
            return seen
        seen = np.zeros_like(everything)
        for other in np.flatnonzero(self.visibility[fold]):
            seen += held_out[int(other)]
        return seen


@dataclass(frozen=True, eq=False)
class Stage:
    """One outcome and the offsets that a model has for it.

    Parameters
    ----------
    rows : HeldOut
    binary : bool
    values : float64 array (rows,)
        0 and 1; or numbers, of which the largest is at most 1.
    exponent : int
        Numbers were divided by 2**exponent.
    offset : float64 array (rows,)
    response, information : int64 array (rows,)
        z and h; no h where all rows have the same.
    bits : tuple of int
        Binary places of h and of z.
    largest : float
        Of all z.
    scale : float
        What a step of one means to an offset.
    likelihood : float64 array (folds,)
        Log-likelihood of each fold's rows, on the host.
    """

    rows: HeldOut
    binary: bool
    values: Floats
    exponent: int
    offset: Floats
    response: Integers
    information: Integers | None
    bits: tuple[int, int]
    largest: float
    scale: float
    likelihood: Floats

    @classmethod
    def start(cls, rows: HeldOut, values: Array, binary: bool) -> "Stage":
        """Begin with the mean of what each fold sees."""
        values = values.astype(np.float64)
        peak = float(np.abs(values).max())
        exponent = 0 if binary or not peak else int(np.frexp(peak)[1])
        # In two steps, as 2**exponent may be no float64 number.
        values = values * 2.0 ** -(exponent // 2) * 2.0 ** -(exponent - exponent // 2)
        sums, weights = seen_on_host(rows, rows.by_fold(values)), seen_on_host(rows, rows.weights)
        means = sums / np.where(weights > 0, weights, 1.0)
        if binary:
            share = np.clip((sums + 0.5) / (weights + 1.0), 2.0**-50, 1.0 - 2.0**-50)
            means = np.clip(log(share) - log(1.0 - share), -FARTHEST_LOG_ODDS, FARTHEST_LOG_ODDS)
        offset = rows.ops.to_device(means)[rows.folds]
        return cls.at(rows, binary, values, exponent, offset)

    @classmethod
    def at(cls, rows: HeldOut, binary: bool, values: Floats, exponent: int, offset: Floats) -> "Stage":
        """Measure rows at their offsets."""
        make = at_log_odds if binary else at_numbers
        response, information, scale, likelihood = make(rows, values, offset, exponent)
        first = 0 if information is None else INFORMATION_BITS
        second = min(ROOM - first - len(values).bit_length(), RESPONSE_BITS)
        whole = np.rint(response * 2.0**second).astype(np.int64)
        weight = None if information is None else np.rint(information * 2.0**first).astype(np.int64)
        largest = max(float(np.abs(whole).max()) * 2.0**-second, 1.0)
        bits = first, second
        return cls(rows, binary, values, exponent, offset, whole, weight, bits, largest, scale, likelihood)

    def moved_offset(self, codes: Codes, steps: Floats) -> Floats:
        """Add steps (categories + 2, folds) to the offsets of the rows."""
        moves = self.rows.ops.empty((len(codes), 1), np.float64)
        self.rows.ops.gather(steps[:, :, None], codes, self.rows.folds, moves)
        offset = self.offset + moves[:, 0] * self.scale
        return np.clip(offset, -FARTHEST_LOG_ODDS, FARTHEST_LOG_ODDS) if self.binary else offset

    def move(self, codes: Codes, steps: Floats) -> "Stage":
        """Move the offsets of the rows, and measure them there."""
        return Stage.at(self.rows, self.binary, self.values, self.exponent, self.moved_offset(codes, steps))

    def take(self, rows: HeldOut, chosen: Array) -> "Stage":
        """Give some of the rows, measured as they are among all."""
        information = None if self.information is None else self.information[chosen]
        return replace(self, rows=rows, response=self.response[chosen], information=information)

    def sums(self, codes: Codes, n_categories: int, folds: Codes | None) -> Array:
        """Sum h and h * z by category and fold: int64 (categories, folds, 2), with unknown and missing left out."""
        n_folds = 1 if folds is None else self.rows.n_folds
        rows = Rows(codes, None, self.response, self.information)
        accumulators: Array = self.rows.ops.accumulate(rows, n_categories, folds, n_folds, 1, WHOLE_SUMS)
        return accumulators[:-2, :, 0, :]

    @property
    def longest_step(self) -> float:
        """Longest step that a category may take."""
        return LONGEST_STEP if self.binary else self.largest

    def units(self) -> tuple[float, float]:
        """Give what one means in sums of h and of h * z."""
        return 2.0 ** -self.bits[0], 2.0 ** -(self.bits[0] + self.bits[1])

    def mean_information(self) -> float:
        """Give the mean of h over all rows."""
        if self.information is None:
            return 1.0
        return float(self.information.sum()) * self.units()[0] / len(self.response)


def seen_on_host(rows: HeldOut, of_folds: Floats) -> Floats:
    """Sum a number of each fold over what each fold sees."""
    return np.array([math.fsum(of_folds[visible > 0]) for visible in rows.visibility])


def at_log_odds(rows: HeldOut, values: Floats, offset: Floats, exponent: int) -> tuple[Floats, Floats, float, Floats]:
    """Give (y - p) / (p (1 - p)), p (1 - p), and sums of y log(p) + (1 - y) log(1 - p), with p from its log-odds."""
    assert not exponent
    small = exp(-np.abs(offset))
    high, low = 1.0 / (1.0 + small), small / (1.0 + small)
    chance = np.where(offset >= 0, high, low)
    information = high * low
    likelihood = values * offset - np.maximum(offset, 0.0) - log(1.0 + small)
    return (values - chance) / information, rows.weighted(information), 1.0, rows.by_fold(likelihood)


def at_numbers(
    rows: HeldOut, values: Floats, offset: Floats, exponent: int
) -> tuple[Floats, Floats | None, float, Floats]:
    """Give errors in units of their root mean square, weights, and sums of a normal law's log-likelihood."""
    errors = values - offset
    squares = rows.by_fold(errors * errors)
    variance = max(float(squares.sum()) / rows.total, LEAST_VARIANCE)
    constant = LOG_OF_TWO_PI + float(log(np.array([variance]))[0]) + 2.0 * exponent * LOG_OF_TWO
    likelihood = -0.5 * (constant * rows.weights + squares / variance)
    scale = math.sqrt(variance)
    return errors / scale, rows.weight, scale, likelihood


@dataclass(frozen=True, eq=False)
class Seen:
    """What one fold sees of categories.

    Parameters
    ----------
    weight, score : float64 array (cells,)
        W and S; of a conjunction, S less what its columns explain in this fold's eyes.
    spread : float
        Sum of S * S / W.
    freedom : int
        What the spread is on average where nothing is left to explain.
    total : float
        Sum of W.
    """

    weight: Floats
    score: Floats
    spread: float
    freedom: int
    total: float

    @classmethod
    def of(cls, stage: Stage, weight: Floats, score: Floats, parts: Sequence[Array]) -> "Seen":
        """Take W and S of categories; `parts` are, of a conjunction, the category of each column in each of these."""
        ops, unit, n_rows = stage.rows.ops, stage.units()[0], len(stage.response)
        present = weight > 0
        freedom = int(present.sum())
        if parts:
            # Of no rows NumPy counts in whole numbers, weights or none.
            margins: list[Array] = [np.bincount(part, weight).astype(np.float64) for part in parts]
            freedom -= sum(int((margin > 0).sum()) for margin in margins) - len(parts) + 1
            places = places_of_score(n_rows, len(parts))
            score = np.rint(score * 2.0**places)
            score = (score - explained_by(parts, margins, weight, score)) * 2.0**-places
        squares = score * score
        squares /= np.maximum(weight, unit)
        # No sum exceeds the largest mean times the sum of all |h * z|, which is below the number of rows.
        spread = sum_on_grid(squares, finest(8.0 * stage.largest * n_rows))
        # Multiples of the unit, of which sums are exact.
        return cls(weight, score, spread, freedom, float(ops.to_host(weight.sum())))

    @property
    def variance(self) -> float:
        """Variance between categories, by moments; 0 where it would not be above."""
        return max(self.spread - self.freedom, 0.0) / self.total if self.total and self.freedom > 0 else 0.0

    def steps(self, ridge: float | None, longest: float) -> Floats:
        """Give S / (W + ridge), or S * t / (1 + t * W) with t the variance."""
        if ridge is None:
            variance = self.variance
            steps = self.score * variance
            steps /= self.weight * variance + 1.0
        else:
            divisor = self.weight + ridge
            steps = np.where(self.weight > 0, self.score / np.where(divisor > 0, divisor, 1.0), 0.0)
        return np.clip(steps, -longest, longest, out=steps)


def explained_by(parts: Sequence[Array], margins: Sequence[Array], weight: Floats, score: Floats) -> Array:
    """Give what columns explain of S: the first, the next what that leaves over, and all but the last once more.

    What is summed is whole, so that the order is all the same.
    """
    means = [np.zeros_like(margin) for margin in margins]
    explained = np.zeros_like(score)
    for number in [*range(len(parts)), *range(len(parts) - 1)]:
        left = np.bincount(parts[number], score) - np.bincount(parts[number], explained)
        means[number] += left / np.where(margins[number] > 0, margins[number], 1.0)
        explained = means[0][parts[0]]
        for part, mean in zip(parts[1:], means[1:], strict=True):
            explained += mean[part]
        explained *= weight
        np.rint(explained, out=explained)
    return explained


def places_of_score(n_rows: int, n_parts: int) -> int:
    """Binary places of S: no sum of |S| exceeds the number of rows, and no column more than doubles what is left."""
    return finest(float(n_rows << (2 * n_parts)))


@dataclass(frozen=True, eq=False)
class Steps:
    """What one key would do to a stage.

    Parameters
    ----------
    gains : float64 array (folds,)
        How much likelier each fold's rows would be, by the second-order expansion; on the host.
    surprise : float
        How many standard errors the spread between categories is above what chance gives.
    cells : int64 array (cells,)
        Categories that have rows in more than one fold: no row of any other would see a step.
    steps : float64 array (folds, cells)
    """

    gains: Floats
    surprise: float
    cells: Integers
    steps: Floats

    @classmethod
    def of(
        cls, stage: Stage, codes: Codes, n_categories: int, m: float | None = None, parts: Sequence[Array] = ()
    ) -> "Steps":
        """Sum rows by category and fold; each fold's steps are S / (W + ridge) of what it sees.

        Parameters
        ----------
        stage : Stage
        codes : int32 array (rows,)
        n_categories : int
        m : float, optional
            The ridge, in rows of mean information.  None: 1 / t, with t the variance between categories that the fold
            sees, by moments; no step where it is not above zero.
        parts : list of int64 array (categories,)
            Of a conjunction, the category of each of its columns.
        """
        return cls.by(stage, stage.sums(codes, n_categories, stage.rows.folds), m, parts)

    @classmethod
    def by(cls, stage: Stage, sums: Array, m: float | None, parts: Sequence[Array]) -> "Steps":
        """Give what `of` does by the sums of rows by category and fold."""
        ops, n_folds = stage.rows.ops, stage.rows.n_folds
        cells, own, parts = shared_cells(sums, parts)
        everything = own.sum(axis=1)
        unit, unit_of_score = stage.units()
        views = []
        for fold in range(n_folds):
            weight, score = (stage.rows.seen(*of_folds, fold) for of_folds in zip(own, everything, strict=True))
            views.append(Seen.of(stage, weight * unit, score * unit_of_score, parts))
        ridge = None if m is None else m * stage.mean_information()
        longest = stage.longest_step
        places = finest(longest * longest * len(stage.response))
        gains, steps = np.zeros(n_folds), ops.zeros((n_folds, len(cells)), np.float64)
        for fold, seen in enumerate(views):
            if ridge is not None or seen.variance:
                steps[fold] = seen.steps(ridge, longest)
                rises = steps[fold] * (own[0, fold] * (-0.5 * unit))
                rises += own[1, fold] * unit_of_score
                rises *= steps[fold]
                gains[fold] = sum_on_grid(rises, places)
        surprise = surprise_of([seen.spread for seen in views], [seen.freedom for seen in views])
        return cls(gains, surprise, cells, steps)

    def table(self, stage: Stage, n_categories: int) -> Floats:
        """Give the step of each category and fold (categories + 2, folds)."""
        table: Floats = stage.rows.ops.zeros((n_categories + 2, len(self.steps)), np.float64)
        for fold, steps in enumerate(self.steps):
            # Assignment to rows by number counts in 32 bits on a GPU, `put` in 64.
            table.put(self.cells * len(self.steps) + fold, steps)
        return table


def shared_cells(sums: Array, parts: Sequence[Array]) -> tuple[Integers, Array, Sequence[Array]]:
    """Give the categories with rows in several folds, their sums (2, folds, cells) and those of their columns."""
    cells = np.flatnonzero(count_folds(sums[:, :, 0]) > 1)
    if len(cells) < len(sums):
        sums, parts = sums[cells], [part[cells] for part in parts]
    return cells, sums.transpose(2, 1, 0).copy(), parts


def count_folds(weight: Array) -> Array:
    """Count the folds in which each category (categories, folds) has weight."""
    counts = (weight[:, 0] > 0).astype(np.int32)
    for fold in range(1, weight.shape[1]):
        counts += weight[:, fold] > 0
    return counts


def gain_of(stage: Stage, sums: Array, m: float | None, parts: Sequence[Array]) -> tuple[Floats, float]:
    """Give the gains and the surprise of a conjunction by its `Stage.sums`, as `Steps` have them."""
    found = fused_gains(stage, sums, stage.rows.visibility, m, parts)
    if found is None:
        steps = Steps.by(stage, sums, m, parts)
        return steps.gains, steps.surprise
    return found[:, 0], surprise_of(found[:, 1].tolist(), found[:, 2].tolist())


def chance_of(stage: Stage, sums: Array, parts: Sequence[Array]) -> float:
    """Give the surprise of a conjunction in one view of all rows, before any fold is held out."""
    found = fused_gains(stage, sums, np.ones((1, stage.rows.n_folds), np.int64), None, parts)
    if found is not None:
        return surprise_of(found[:, 1].tolist(), found[:, 2].tolist())
    _, own, parts = shared_cells(sums, parts)
    (weight, score), (unit, unit_of_score) = own.sum(axis=1), stage.units()
    seen = Seen.of(stage, weight * unit, score * unit_of_score, parts)
    return surprise_of([seen.spread], [seen.freedom])


def fused_gains(stage: Stage, sums: Array, visibility: Array, m: float | None, parts: Sequence[Array]) -> Array | None:
    """Give `conjunction_gains` of the views (views, folds), where the backend has it."""
    compiled = getattr(stage.rows.ops.fused, "conjunction_gains", None)
    if compiled is None or not len(sums):
        return None
    n_rows, longest = len(stage.response), stage.longest_step
    bounds = 8.0 * stage.largest * n_rows, longest * longest * n_rows
    grids = [2.0**places for places in (places_of_score(n_rows, len(parts)), *map(finest, bounds))]
    ridge = -1.0 if m is None else m * stage.mean_information()
    found: Array = compiled(sums, visibility, parts, ridge, [*stage.units(), *grids, longest])
    return found


def surprise_of(spreads: Sequence[float], freedoms: Sequence[float]) -> float:
    """Give how far the mean spread is above chance, as a normal deviate: by Wilson and Hilferty of a chi-square."""
    known = [(spread, freedom) for spread, freedom in zip(spreads, freedoms, strict=True) if freedom > 0]
    if not known:
        return -math.inf
    freedom = sum(freedom for _, freedom in known) / len(known)
    spread = math.fsum(spread for spread, _ in known) / len(known)
    ninth = 2.0 / (9.0 * freedom)
    return float((np.cbrt(spread / freedom) - (1.0 - ninth)) / math.sqrt(ninth))


def most_gain(
    stage: Stage, codes: Codes, n_categories: int, parts: Sequence[Array], times: float, errors: float
) -> float:
    """Give the gain per unit of weight that all rows would show at most, by a sample of them.

    The variance between categories is taken to be `errors` standard errors above its estimate t, and categories to have
    `times` the weight W that they have in the sample: sum of W * t * u / (1 + u) / 2, with u = times * W * t.
    """
    sums = stage.sums(codes, n_categories, None)[:, 0]
    unit, unit_of_score = stage.units()
    seen = Seen.of(stage, sums[:, 0] * unit, sums[:, 1] * unit_of_score, parts)
    if not seen.total:
        return 0.0
    weight = seen.weight
    # Clipped, so that one category in a thousand does not decide how uncertain the others are.
    off = np.minimum(seen.score * seen.score / np.maximum(weight, unit), LARGEST_RATIO) - 1.0
    places = finest(LARGEST_RATIO * LARGEST_RATIO * n_categories)
    error = math.sqrt(sum_on_grid(np.where(weight > 0, off * off, 0.0), places))
    variance = (max(seen.spread - seen.freedom, 0.0) + errors * error) / seen.total
    scaled = times * variance * weight
    explained = sum_on_grid(weight * (scaled / (1.0 + scaled)), finest(float(len(codes))))
    return 0.5 * variance * explained / stage.rows.total


def finest(bound: float) -> int:
    """Binary places of numbers whose sums, none of which exceeds a bound, are exact in any order."""
    return min(ROOM_OF_FLOATS - max(int(np.frexp(bound)[1]), 0), FINEST)


def sum_on_grid(values: Floats, places: int) -> float:
    """Sum numbers rounded to so many binary places.

    What is summed is whole and of less than 2**53, so that any order of additions gives the same.
    """
    whole = values * 2.0**places
    np.rint(whole, out=whole)
    return float(whole.sum()) * 2.0**-places


def sum_by_code(ops: Ops, values: Floats, codes: Codes, n_codes: int) -> Floats:
    """Sum numbers of rows by code, on the host, on a grid that is as fine as an int64 holds the sums."""
    peak = float(np.abs(values).max())
    places = min(ROOM - len(values).bit_length() - int(np.frexp(peak)[1]), FINEST)
    whole = np.rint(values * 2.0**places).astype(np.int64)
    sums = ops.accumulate(Rows(codes, None, whole), n_codes, None, 1, 1, WHOLE_SUMS)
    totals: Floats = ops.to_host(sums[:n_codes, 0, 0, 1]).astype(np.float64) * 2.0**-places
    return totals
