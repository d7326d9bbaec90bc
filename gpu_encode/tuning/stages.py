"""An additive model of keys, from sums alone: what a key adds to it, and how likely held-out rows are under it.

The model has one number for each row, its offset: log-odds of a class, or the number that is expected.  Of each row two
numbers are kept, as integers, so that sums are exact: the response z by which the row would have its offset moved, and
the information h that this carries, its weight.  A category moves its rows by a step d that other folds decide; by the
second-order expansion the likelihood of held-out rows of sums W of h and S of h * z then rises by d * S - d * d * W / 2.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cpu_fallback.cached import cached_property
from cpu_fallback.elementary import exp, log
from cpu_fallback.exact import Floats, Integers
from cpu_fallback.types import Array, Codes, Layout, Rows, Window
from gpu_encode.ops import Ops, tiles

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
# Rounds over all keys in which what a fold sees is fitted.
MARGIN_ROUNDS = 2
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
        """Sum integers (measures, folds, cells) over what each fold sees."""
        if self.sees_all_others:
            seen: Array = held_out.sum(axis=1, keepdims=True) - held_out
            return seen
        seen = np.zeros_like(held_out)
        for view, visible in enumerate(self.visibility):
            for fold in np.flatnonzero(visible):
                seen[:, view] += held_out[:, int(fold)]
        return seen

    @cached_property
    def sees_all_others(self) -> bool:
        """Whether every fold sees all folds but itself, and none itself."""
        return int(self.visibility.sum()) == self.n_folds * (self.n_folds - 1)


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
        response = np.rint(response * 2.0**second).astype(np.int64)
        if information is not None:
            information = np.rint(information * 2.0**first).astype(np.int64)
        largest = max(float(np.abs(response).max()) * 2.0**-second, 1.0)
        bits = first, second
        return cls(rows, binary, values, exponent, offset, response, information, bits, largest, scale, likelihood)

    def move(self, codes: Codes, steps: Floats) -> "Stage":
        """Add steps (categories + 2, folds) to the offsets of the rows."""
        moves = self.rows.ops.empty((len(codes), 1), np.float64)
        self.rows.ops.gather(steps[:, :, None], codes, self.rows.folds, moves)
        offset = self.offset + moves[:, 0] * self.scale
        if self.binary:
            offset = np.clip(offset, -FARTHEST_LOG_ODDS, FARTHEST_LOG_ODDS)
        return Stage.at(self.rows, self.binary, self.values, self.exponent, offset)

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


# Numbers of the categories of a column, one for each category of a key, and the column's margins (categories, folds).
Margin = tuple[Integers, Floats]


def fit_margins(stage: Stage, keys: Sequence[tuple[Codes, int]]) -> list[Floats]:
    """Give what each fold sees to be left over of each category of each key: (categories, folds).

    Offsets are out of fold, and so those that a fold sees know of its own rows.  What they know lies in the margins of
    the keys: a model of these is fitted to what each fold sees, together, by two rounds of plain means.
    """
    ops, rows, unit = stage.rows.ops, stage.rows, 2.0 ** stage.bits[1]
    margins = [ops.zeros((size, rows.n_folds), np.float64) for _, size in keys]
    information = np.ones_like(stage.response) if stage.information is None else stage.information
    moves = ops.empty((len(stage.response), 1), np.float64)
    for fold, visible in enumerate(rows.visibility):
        weight = information * ops.to_device(visible)[rows.folds]
        view = replace(stage, response=stage.response.copy(), information=weight)
        for number in [*range(len(keys))] * MARGIN_ROUNDS:
            codes, size = keys[number]
            sums = view.sums(codes, size, None)[:, 0]
            means = sums[:, 1] / np.where(sums[:, 0] > 0, sums[:, 0], 1)
            table = ops.zeros((size + 2, 1, 1), np.float64)
            table[:size, 0, 0] = means
            ops.gather(table, codes, None, moves)
            np.subtract(view.response, np.rint(moves[:, 0]).astype(np.int64), out=view.response)
            margins[number][:, fold] += means / unit
    return margins


@dataclass(frozen=True, eq=False)
class Cells:
    """A tile of categories that have rows in more than one fold: no row of any other sees a step.

    Parameters
    ----------
    categories : int64 array (cells,)
    own : float64 array (2, folds, cells)
        W and S of the rows of each fold.
    seen : float64 array (2, folds, cells)
        W and S of what each fold sees.
    """

    categories: Integers
    own: Floats
    seen: Floats

    @classmethod
    def of(cls, stage: Stage, sums: Array, start: int, margins: Sequence[Margin] = ()) -> "Cells":
        """Take the sums (categories, folds, 2) of categories from `start` on, less what margins explain."""
        cells = np.flatnonzero(count_folds(sums[:, :, 0]) > 1)
        if len(cells) < len(sums):
            sums = sums[cells]
        own = np.ascontiguousarray(sums.transpose(2, 1, 0))
        seen = stage.rows.seen(own)
        units = stage.rows.ops.to_device(np.array(stage.units()))[:, None, None]
        seen = seen * units
        for category, margin in margins:
            seen[1] -= seen[0] * margin[category[cells + start]].T
        return cls(cells + start, own * units, seen)

    def chi_squares(self, least: float) -> Floats:
        """Give S * S / W of what each fold sees of each category: 1 on average where nothing is left to explain."""
        squares = self.seen[1] * self.seen[1]
        squares /= np.maximum(self.seen[0], least)
        return squares

    def steps(self, ratios: Array | None, ridge: float, longest: float) -> Floats:
        """Give S / (W + ridge) of what each fold sees, or S * t / (1 + t * W) with t of the fold."""
        weight, score = self.seen
        if ratios is None:
            divisor = weight + ridge
            steps = np.where(weight > 0, score / np.where(divisor > 0, divisor, 1.0), 0.0)
        else:
            divisor = weight * ratios
            divisor += 1.0
            steps = score * ratios
            steps /= divisor
        return np.clip(steps, -longest, longest, out=steps)

    def rises(self, steps: Floats) -> Floats:
        """Give d * S - d * d * W / 2 of the rows of each fold."""
        rises = steps * self.own[0]
        rises *= -0.5
        rises += self.own[1]
        rises *= steps
        return rises


@dataclass(frozen=True, eq=False)
class Steps:
    """What one key would do to a stage.

    Parameters
    ----------
    gains : float64 array (folds,)
        How much likelier each fold's rows would be, by the second-order expansion; on the host.
    tiles : list of (int64 array (cells,), float64 array (folds, cells))
        Categories and their steps; all others have none.
    """

    gains: Floats
    tiles: list[tuple[Integers, Floats]]

    @classmethod
    def of(
        cls, stage: Stage, codes: Codes, n_categories: int, m: float | None = None, margins: Sequence[Margin] = ()
    ) -> "Steps":
        """Sum rows by category and fold; each fold's steps are S / (W + ridge) of what it sees.

        Parameters
        ----------
        stage : Stage
        codes : int32 array (rows,)
        n_categories : int
        m : float, optional
            The ridge, in rows of mean information.  None: 1 / t, with t the variance between categories that the fold
            sees, by moments: (sum of S * S / W - categories) / sum of W; no step where it is not above zero.
        margins : list of Margin
            Of the columns that the key is made of.
        """
        ops, n_folds = stage.rows.ops, stage.rows.n_folds
        sums = stage.sums(codes, n_categories, stage.rows.folds)
        size = max(ops.TILE // n_folds, 1)
        cells = [Cells.of(stage, sums[start:stop], start, margins) for start, stop in tiles(n_categories, size)]
        ratios, ridge = None, 0.0
        if m is None:
            found = variances(stage, cells)
            if not found.any():
                return cls(np.zeros(n_folds), [])
            ratios = ops.to_device(found)[:, None]
        else:
            ridge = m * stage.mean_information()
        longest = LONGEST_STEP if stage.binary else stage.largest
        places = finest(longest * longest * len(codes))
        gains, moved = np.zeros(n_folds), []
        for tile in cells:
            steps = tile.steps(ratios, ridge, longest)
            gains += sums_on_grid(ops, tile.rises(steps), places)
            moved.append((tile.categories, steps))
        return cls(gains, moved)

    def table(self, stage: Stage, n_categories: int) -> Floats:
        """Give the step of each category and fold (categories + 2, folds)."""
        table: Floats = stage.rows.ops.zeros((n_categories + 2, stage.rows.n_folds), np.float64)
        for categories, steps in self.tiles:
            table[categories] = steps.T
        return table


def count_folds(weight: Array) -> Array:
    """Count the folds in which each category (categories, folds) has weight."""
    counts = (weight[:, 0] > 0).astype(np.int32)
    for fold in range(1, weight.shape[1]):
        counts += weight[:, fold] > 0
    return counts


def variances(stage: Stage, cells: list[Cells]) -> Floats:
    """Give the variance between categories that each fold sees, by moments, on the host; 0 where not above."""
    ops, n_folds, unit = stage.rows.ops, stage.rows.n_folds, stage.units()[0]
    # No sum exceeds the largest mean times the sum of all |h * z|, which is below the number of rows.
    places = finest(2.0 * stage.largest * len(stage.response))
    spread, total, count = np.zeros(n_folds), np.zeros(n_folds), np.zeros(n_folds, np.int64)
    for tile in cells:
        weight = tile.seen[0]
        spread += sums_on_grid(ops, tile.chi_squares(unit), places)
        # Multiples of the unit: sums of these are exact.
        total += ops.to_host(weight.sum(axis=1))
        count += ops.to_host((weight > 0).sum(axis=1))
    return np.maximum(spread - count, 0.0) / np.where(total > 0, total, 1.0)


def most_gain(stage: Stage, codes: Codes, n_categories: int, times: float, errors: float) -> float:
    """Give the gain per unit of weight that all rows would show at most, by a sample of them.

    The variance between categories is taken to be `errors` standard errors above its estimate t, and categories to have
    `times` the weight W that they have in the sample: sum of W * t * u / (1 + u) / 2, with u = times * W * t.
    """
    ops, unit = stage.rows.ops, stage.units()[0]
    seen = (
        stage.sums(codes, n_categories, None).transpose(2, 1, 0) * ops.to_device(np.array(stage.units()))[:, None, None]
    )
    cells = Cells(np.zeros(0, np.int64), seen, seen)
    # Clipped, so that one category in a thousand does not decide how uncertain the others are.
    ratios = np.minimum(cells.chi_squares(unit), LARGEST_RATIO)
    weight, places = seen[0], finest(LARGEST_RATIO * LARGEST_RATIO * n_categories)
    present = float((weight > 0).sum())
    off = np.where(weight > 0, (ratios - 1.0) * (ratios - 1.0), 0.0)
    spread = float(sums_on_grid(ops, ratios, places)[0]) - present
    error = math.sqrt(float(sums_on_grid(ops, off, places)[0]))
    total = float(weight.sum())
    if not total:
        return 0.0
    variance = (max(spread, 0.0) + errors * error) / total
    scaled = times * variance * weight
    explained = sums_on_grid(ops, weight * (scaled / (1.0 + scaled)), finest(float(len(codes))))
    return 0.5 * variance * float(explained[0]) / stage.rows.total


def finest(bound: float) -> int:
    """Binary places of numbers whose sums, none of which exceeds a bound, are exact in any order."""
    return min(ROOM_OF_FLOATS - max(int(np.frexp(bound)[1]), 0), FINEST)


def sums_on_grid(ops: Ops, values: Floats, places: int) -> Floats:
    """Sum numbers (folds, cells), rounded to so many binary places, over the cells; on the host.

    What is summed is whole and of less than 2**53, so that any order of additions gives the same.
    """
    whole = values * 2.0**places
    np.rint(whole, out=whole)
    sums: Floats = ops.to_host(whole.sum(axis=1)) * 2.0**-places
    return sums


def sum_by_code(ops: Ops, values: Floats, codes: Codes, n_codes: int) -> Floats:
    """Sum numbers of rows by code, on the host, on a grid that is as fine as an int64 holds the sums."""
    peak = float(np.abs(values).max())
    places = min(ROOM - len(values).bit_length() - int(np.frexp(peak)[1]), FINEST)
    whole = np.rint(values * 2.0**places).astype(np.int64)
    sums = ops.accumulate(Rows(codes, None, whole), n_codes, None, 1, 1, WHOLE_SUMS)
    totals: Floats = ops.to_host(sums[:n_codes, 0, 0, 1]).astype(np.float64) * 2.0**-places
    return totals
