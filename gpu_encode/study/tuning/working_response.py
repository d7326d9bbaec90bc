"""An additive model of keys, from sums alone: what a key adds to it, and the likelihood of held-out rows.

The model has a number for each row, its offset: the log-odds of a class, or the expected value.  Two numbers are kept
for each row, as integers, so that sums are exact.  The response z says how far the row's offset should move; the
information h is its weight.  Both are those of iteratively reweighted least squares (IRLS) at this offset.  A category
moves its rows by a step d, which other folds decide.  Let W and S be the sums of h and of h * z over held-out rows: by
the second-order expansion, their log-likelihood rises by d * S - d * d * W / 2.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from cpu_fallback.elementary import exp, log
from cpu_fallback.exact import Floats, Integers
from cpu_fallback.types import Array, Codes, Layout, Rows, SumShape, Window
from gpu_encode.seam.ops import Ops

INTEGER_SUMS = Layout(Window(), Window())
# Sums of integers stay below 2**61, so int64 can hold them.
ROOM = 61
# Bits of h after the binary point; most bits of z after the binary point.
INFORMATION_BITS = 24
RESPONSE_BITS = 16
# Limits for the log-odds of a row, and for one step.
FARTHEST_LOG_ODDS = 12.0
LONGEST_STEP = 8.0
# The error that is assumed for a target that is explained completely, in units of its largest number.
LEAST_VARIANCE = 2.0**-100
LOG_OF_TWO_PI = 1.8378770664093453
LOG_OF_TWO = 0.6931471805599453
# Powers of two beyond it are not float64 numbers.
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
class WorkingResponse:
    """One outcome at the present offsets of a model: the working responses z of its rows, and their weights h.

    Parameters
    ----------
    rows : HeldOut
    binary : bool
    values : float64 array (rows,)
        0 and 1; or numbers, the largest of which is at most 1.
    exponent : int
        Numbers were divided by 2**exponent.
    offset : float64 array (rows,)
    response, information : int64 array (rows,)
        z and h; no h if it is the same for all rows.
    bits : tuple of int
        Bits of h and of z after the binary point.
    largest : float
        The largest z.
    scale : float
        By how much a step of one changes an offset.
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
    def start(cls, rows: HeldOut, values: Array, binary: bool) -> "WorkingResponse":
        """Start with the mean of the rows that each fold sees."""
        values = values.astype(np.float64)
        peak = float(np.abs(values).max())
        exponent = 0 if binary or not peak else int(np.frexp(peak)[1])
        # In two steps, since 2**exponent may not be a float64 number.
        values = values * 2.0 ** -(exponent // 2) * 2.0 ** -(exponent - exponent // 2)
        sums, weights = seen_on_host(rows, rows.by_fold(values)), seen_on_host(rows, rows.weights)
        means = sums / np.where(weights > 0, weights, 1.0)
        if binary:
            share = np.clip((sums + 0.5) / (weights + 1.0), 2.0**-50, 1.0 - 2.0**-50)
            means = np.clip(log(share) - log(1.0 - share), -FARTHEST_LOG_ODDS, FARTHEST_LOG_ODDS)
        offset = rows.ops.to_device(means)[rows.folds]
        return cls.at(rows, binary, values, exponent, offset)

    @classmethod
    def at(cls, rows: HeldOut, binary: bool, values: Floats, exponent: int, offset: Floats) -> "WorkingResponse":
        """Measure the rows at the given offsets."""
        first = INFORMATION_BITS if binary or rows.weight is not None else 0
        bits = first, min(ROOM - first - len(values).bit_length(), RESPONSE_BITS)
        make = at_log_odds if binary else at_numbers
        response, information, scale, likelihood = make(rows, values, offset, exponent, bits)
        largest = max(float(np.abs(response).max()) * 2.0 ** -bits[1], 1.0)
        return cls(rows, binary, values, exponent, offset, response, information, bits, largest, scale, likelihood)

    def moved_offset(self, codes: Codes, steps: Floats) -> Floats:
        """Add steps (categories + 2, folds) to the offsets of the rows."""
        moves = self.rows.ops.empty((len(codes), 1), np.float64)
        self.rows.ops.gather(steps[:, :, None], codes, self.rows.folds, moves)
        offset = self.offset + moves[:, 0] * self.scale
        return np.clip(offset, -FARTHEST_LOG_ODDS, FARTHEST_LOG_ODDS) if self.binary else offset

    def move(self, codes: Codes, steps: Floats) -> "WorkingResponse":
        """Move the offsets of the rows, and measure the rows there."""
        return WorkingResponse.at(self.rows, self.binary, self.values, self.exponent, self.moved_offset(codes, steps))

    def take(self, rows: HeldOut, chosen: Array) -> "WorkingResponse":
        """Select some of the rows, with the measures that they have among all rows."""
        information = None if self.information is None else self.information[chosen]
        return replace(self, rows=rows, response=self.response[chosen], information=information)

    def sums(self, codes: Codes, n_categories: int, folds: Codes | None) -> Array:
        """Sum h and h * z by category and fold: int64 (categories, folds, 2), with unknown and missing left out."""
        n_folds = 1 if folds is None else self.rows.n_folds
        rows = Rows(codes, None, self.response, self.information)
        accumulators: Array = self.rows.ops.accumulate(rows, SumShape(n_categories, n_folds, 1, INTEGER_SUMS), folds)
        return accumulators[:-2, :, 0, :]

    @property
    def longest_step(self) -> float:
        """Longest step that a category may take."""
        return LONGEST_STEP if self.binary else self.largest

    def units(self) -> tuple[float, float]:
        """Give the value of one unit in sums of h and of h * z."""
        return 2.0 ** -self.bits[0], 2.0 ** -(self.bits[0] + self.bits[1])

    def mean_information(self) -> float:
        """Give the mean of h over all rows."""
        if self.information is None:
            return 1.0
        return float(self.information.sum()) * self.units()[0] / len(self.response)


def seen_on_host(rows: HeldOut, of_folds: Floats) -> Floats:
    """Sum a number of each fold over the folds that each fold sees."""
    return np.array([math.fsum(of_folds[visible > 0]) for visible in rows.visibility])


def at_log_odds(
    rows: HeldOut, values: Floats, offset: Floats, exponent: int, bits: tuple[int, int]
) -> tuple[Integers, Integers, float, Floats]:
    """Give (y - p) / (p (1 - p)), p (1 - p), and sums of y log(p) + (1 - y) log(1 - p), with p from its log-odds."""
    assert not exponent
    fused = getattr(rows.ops.fused, "log_odds_moments", None)
    if fused is not None:
        response, information, likelihood = fused(values, offset, rows.weight, bits)
        return response, information, 1.0, rows.by_fold(likelihood)
    small = exp(-np.abs(offset))
    high, low = 1.0 / (1.0 + small), small / (1.0 + small)
    chance = np.where(offset >= 0, high, low)
    known = high * low
    likelihood = values * offset - np.maximum(offset, 0.0) - log(1.0 + small)
    response, information = fixed_point((values - chance) / known, bits[1]), fixed_point(rows.weighted(known), bits[0])
    return response, information, 1.0, rows.by_fold(likelihood)


def at_numbers(
    rows: HeldOut, values: Floats, offset: Floats, exponent: int, bits: tuple[int, int]
) -> tuple[Integers, Integers | None, float, Floats]:
    """Give errors in units of their root mean square, weights, and sums of a normal log-likelihood."""
    errors = values - offset
    squares = rows.by_fold(errors * errors)
    variance = max(float(squares.sum()) / rows.total, LEAST_VARIANCE)
    constant = LOG_OF_TWO_PI + float(log(np.array([variance]))[0]) + 2.0 * exponent * LOG_OF_TWO
    likelihood = -0.5 * (constant * rows.weights + squares / variance)
    scale = math.sqrt(variance)
    information = None if rows.weight is None else fixed_point(rows.weight, bits[0])
    return fixed_point(errors / scale, bits[1]), information, scale, likelihood


def fixed_point(values: Floats, bits: int) -> Integers:
    """Round numbers to multiples of 2**-bits, and give these as integers."""
    return np.rint(values * 2.0**bits).astype(np.int64)


def sum_by_code(ops: Ops, values: Floats, codes: Codes, n_codes: int) -> Floats:
    """Sum numbers of rows by code, on the host, on the finest grid on which an int64 can hold the sums."""
    peak = float(np.abs(values).max())
    bits = min(ROOM - len(values).bit_length() - int(np.frexp(peak)[1]), FINEST)
    rows = Rows(codes, None, fixed_point(values, bits))
    sums = ops.accumulate(rows, SumShape(n_codes, layout=INTEGER_SUMS))
    totals: Floats = ops.to_host(sums[:n_codes, 0, 0, 1]).astype(np.float64) * 2.0**-bits
    return totals
