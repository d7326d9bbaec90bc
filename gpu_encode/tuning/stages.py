"""An additive model of keys, from sums alone: what a key adds to it, and how likely held-out rows are under it.

The model has one number for each row, its offset: log-odds of a class, or the number that is expected.  Of each row two
numbers are kept, as integers, so that sums are exact: the response z by which the row would have its offset moved, and
the information h that this carries, its weight.  A category moves its rows by a step d that other folds decide; by the
second-order expansion the likelihood of held-out rows of sums W of h and S of h * z then rises by d * S - d * d * W / 2.
"""

import math
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
        At most 1.
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
        """Put weights on a scale on which the largest is at most 1."""
        if weight is not None:
            weight = weight.astype(np.float64, copy=False)
            weight = weight * 2.0 ** -int(np.frexp(float(weight.max()))[1])
        everything = np.ones_like(folds, dtype=np.float64) if weight is None else weight
        return cls(ops, folds, visibility, weight, sum_by_code(ops, everything, folds, len(visibility)))

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

    def seen(self, held_out: Array) -> Array:
        """Sum numbers of folds (folds, ...) over what each fold sees, from the first to the last."""
        seen = np.zeros_like(held_out)
        if held_out.dtype == np.int64 and int(self.visibility.sum()) == self.n_folds * (self.n_folds - 1):
            # Integers may be added in any order: every fold but the own one.
            np.subtract(held_out.sum(axis=0), held_out, out=seen)
            return seen
        for view, visible in enumerate(self.visibility):
            for fold in np.flatnonzero(visible):
                seen[view] += held_out[int(fold)]
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
    likelihood: Floats

    @classmethod
    def start(cls, rows: HeldOut, values: Array, binary: bool) -> "Stage":
        """Begin with the mean of what each fold sees."""
        values = values.astype(np.float64)
        peak = float(np.abs(values).max())
        exponent = 0 if binary or not peak else int(np.frexp(peak)[1])
        # In two steps, as 2**exponent may be no float64 number.
        values = values * 2.0 ** -(exponent // 2) * 2.0 ** -(exponent - exponent // 2)
        sums, weights = rows.seen(rows.by_fold(values)), rows.seen(rows.weights)
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
        response, information, likelihood = make(rows, values, offset, exponent)
        first = 0 if information is None else INFORMATION_BITS
        second = min(ROOM - first - len(values).bit_length(), RESPONSE_BITS)
        response = np.rint(response * 2.0**second).astype(np.int64)
        if information is not None:
            information = np.rint(information * 2.0**first).astype(np.int64)
        largest = max(float(np.abs(response).max()) * 2.0**-second, 1.0)
        bits = first, second
        return cls(rows, binary, values, exponent, offset, response, information, bits, largest, likelihood)

    def move(self, codes: Codes, steps: Floats) -> "Stage":
        """Add steps (categories + 2, folds) to the offsets of the rows."""
        moves = self.rows.ops.empty((len(codes), 1), np.float64)
        self.rows.ops.gather(steps[:, :, None], codes, self.rows.folds, moves)
        offset = self.offset + moves[:, 0]
        if self.binary:
            offset = np.clip(offset, -FARTHEST_LOG_ODDS, FARTHEST_LOG_ODDS)
        return Stage.at(self.rows, self.binary, self.values, self.exponent, offset)

    def take(self, rows: HeldOut, chosen: Array) -> "Stage":
        """Give some of the rows, measured as they are among all."""
        information = None if self.information is None else self.information[chosen]
        return replace(self, rows=rows, response=self.response[chosen], information=information)

    def sums(self, codes: Codes, n_categories: int, folds: Codes | None) -> Array:
        """Sum h and h * z by fold and category: int64 (2, folds, categories), with unknown and missing left out."""
        n_folds = 1 if folds is None else self.rows.n_folds
        rows = Rows(codes, None, self.response, self.information)
        accumulators = self.rows.ops.accumulate(rows, n_categories, folds, n_folds, 1, WHOLE_SUMS)
        return accumulators[:-2, :, 0, :].transpose(2, 1, 0)

    def units(self) -> tuple[float, float]:
        """Give what one means in sums of h and of h * z."""
        return 2.0 ** -self.bits[0], 2.0 ** -(self.bits[0] + self.bits[1])


def at_log_odds(
    rows: HeldOut, values: Floats, offset: Floats, exponent: int
) -> tuple[Floats, Floats, Floats]:
    """Give (y - p) / (p (1 - p)), p (1 - p), and sums of y log(p) + (1 - y) log(1 - p), with p from its log-odds."""
    assert not exponent
    small = exp(-np.abs(offset))
    high, low = 1.0 / (1.0 + small), small / (1.0 + small)
    chance = np.where(offset >= 0, high, low)
    information = high * low
    likelihood = values * offset - np.maximum(offset, 0.0) - log(1.0 + small)
    return (values - chance) / information, rows.weighted(information), rows.by_fold(likelihood)


def at_numbers(
    rows: HeldOut, values: Floats, offset: Floats, exponent: int
) -> tuple[Floats, Floats | None, Floats]:
    """Give errors in units of their root mean square, weights, and sums of a normal law's log-likelihood."""
    errors = values - offset
    squares = rows.by_fold(errors * errors)
    variance = max(float(squares.sum()) / rows.total, LEAST_VARIANCE)
    constant = LOG_OF_TWO_PI + float(log(np.array([variance]))[0]) + 2.0 * exponent * LOG_OF_TWO
    likelihood = -0.5 * (constant * rows.weights + squares / variance)
    return errors / np.sqrt(variance), rows.weight, likelihood


@dataclass(frozen=True, eq=False)
class Steps:
    """What one key would do to a stage.

    Parameters
    ----------
    gains : float64 array (folds,)
        How much likelier each fold's rows would be, by the second-order expansion; on the host.
    steps : float64 array (folds, cells)
    cells : int64 array (cells,)
        Categories that have rows in more than one fold; all others have no step that any row would see.
    """

    gains: Floats
    steps: Floats
    cells: Integers

    @classmethod
    def of(cls, stage: Stage, codes: Codes, n_categories: int, m: float | None = None) -> "Steps":
        """Sum rows by category and fold; each fold's steps are S / (W + ridge) of what it sees.

        Parameters
        ----------
        stage : Stage
        codes : int32 array (rows,)
        n_categories : int
        m : float, optional
            The ridge, in rows of mean information.  None: 1 / t, with t the variance between categories that the fold
            sees, by moments: (sum of S * S / W - categories) / sum of W; no step where it is not above zero.
        """
        held_out = stage.rows
        sums = stage.sums(codes, n_categories, held_out.folds)
        cells = np.flatnonzero(count_folds(sums[0]) > 1)
        weight, score = (sums[number][:, cells] for number in (0, 1))
        seen_weight, seen_score = held_out.seen(weight), held_out.seen(score)
        unit, unit_of_score = stage.units()
        ratios = variances(stage, seen_weight, seen_score) if m is None else None
        longest = LONGEST_STEP if stage.binary else stage.largest
        grid = finest(longest * longest * len(codes))
        steps, gains = held_out.ops.zeros(weight.shape, np.float64), []
        for fold in range(held_out.n_folds):
            seen, own = seen_weight[fold] * unit, weight[fold] * unit
            if ratios is None:
                mean = float(stage_weight(stage)) / len(codes)
                divisor = seen + float(m or 0.0) * mean
                step = np.where(seen > 0, seen_score[fold] * unit_of_score / np.where(divisor > 0, divisor, 1.0), 0.0)
            else:
                step = seen_score[fold] * (unit_of_score * ratios[fold]) / (1.0 + ratios[fold] * seen)
            step = np.clip(step, -longest, longest)
            rise = step * (score[fold] * unit_of_score) - 0.5 * (step * step) * own
            gains.append(sum_on_grid(rise, grid))
            steps[fold] = step
        return cls(np.array(gains), steps, cells)

    def table(self, stage: Stage, n_categories: int) -> Floats:
        """Give the step of each category and fold (categories + 2, folds)."""
        table: Floats = stage.rows.ops.zeros((n_categories + 2, len(self.steps)), np.float64)
        table[self.cells] = self.steps.T
        return table


def stage_weight(stage: Stage) -> float:
    """Give the sum of h over all rows."""
    if stage.information is None:
        return float(len(stage.response))
    return float(stage.information.sum()) * stage.units()[0]


def count_folds(weight: Array) -> Array:
    """Count the folds in which each category has weight."""
    counts = (weight[0] > 0).astype(np.int8)
    for of_fold in weight[1:]:
        counts += of_fold > 0
    return counts


def variances(stage: Stage, seen_weight: Array, seen_score: Array) -> list[float]:
    """Give the variance between categories that each fold sees, by moments; 0 where it would not be above."""
    unit, unit_of_score = stage.units()
    # No sum exceeds the largest mean times the sum of all |h * z|, which is below the number of rows.
    grid = finest(2.0 * stage.largest * len(stage.response))
    found = []
    for weight, score in zip(seen_weight, seen_score, strict=True):
        total = float(weight.sum()) * unit
        spread = sum_on_grid(chi_squares(weight * unit, score * unit_of_score), grid)
        found.append(max(spread - int((weight > 0).sum()), 0.0) / total if total else 0.0)
    return found


def chi_squares(weight: Floats, score: Floats) -> Floats:
    """Give S * S / W of each category, 0 of one without weight: 1 on average where nothing is left to explain."""
    return score * score / np.where(weight > 0, weight, 1.0)


def most_gain(stage: Stage, codes: Codes, n_categories: int, times: float, errors: float) -> float:
    """Give the gain per unit of weight that all rows would show at most, by a sample of them.

    The variance between categories is taken to be `errors` standard errors above its estimate t, and categories to have
    `times` the weight W that they have in the sample: sum of W * t * u / (1 + u) / 2, with u = times * W * t.
    """
    weight, score = stage.sums(codes, n_categories, None)[:, 0]
    unit, unit_of_score = stage.units()
    weight = weight * unit
    # Clipped, so that one category in a thousand does not decide how uncertain the others are.
    ratios = np.minimum(chi_squares(weight, score * unit_of_score), 1000.0)
    present = int((weight > 0).sum())
    grid = finest(1e6 * len(codes))
    spread = sum_on_grid(ratios, grid) - present
    error = float(np.sqrt(sum_on_grid(np.where(weight > 0, (ratios - 1.0) * (ratios - 1.0), 0.0), grid)))
    total = float(sum_on_grid(weight, grid))
    if not total:
        return 0.0
    variance = (max(spread, 0.0) + errors * error) / total
    scaled = times * variance * weight
    return 0.5 * variance * sum_on_grid(weight * (scaled / (1.0 + scaled)), grid) / stage.rows.total


def finest(bound: float) -> int:
    """Binary places of a grid on which sums, of which none exceeds a bound, are sums of int64."""
    return min(ROOM - max(int(np.frexp(bound)[1]), 0), FINEST)


def sum_on_grid(values: Floats, places: int) -> float:
    """Sum numbers rounded to so many binary places: as integers, the same in any order."""
    return float(int(np.rint(values * 2.0**places).astype(np.int64).sum())) * 2.0**-places


def sum_by_code(ops: Ops, values: Floats, codes: Codes, n_codes: int) -> Floats:
    """Sum numbers of rows by code, on the host, on a grid that is as fine as an int64 holds the sums."""
    peak = float(np.abs(values).max())
    places = min(ROOM - len(values).bit_length() - int(np.frexp(peak)[1]), FINEST)
    whole = np.rint(values * 2.0**places).astype(np.int64)
    sums = ops.accumulate(Rows(codes, None, whole), n_codes, None, 1, 1, WHOLE_SUMS)
    totals: Floats = ops.to_host(sums[:n_codes, 0, 0, 1]).astype(np.float64) * 2.0**-places
    return totals
