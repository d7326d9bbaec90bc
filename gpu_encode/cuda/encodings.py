"""From the sums that one thread sees (a category in a view, or a row) to its encoding."""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.compiled.estimates import exact_below, mean_pair, plain_pair, weigh_prior, whole_estimate
from cpu_fallback.compiled.moments import Shape
from cpu_fallback.compiled.shrinkage import (
    HEAVY,
    LIGHT,
    bayes_weight,
    bayes_weight_of_count,
    blend_near,
    blend_one,
    weights_of,
)
from cpu_fallback.compiled.ties import rounded_estimate
from cpu_fallback.fused_rules import EMPIRICAL_BAYES, M_ESTIMATE, Blend, FusedRule, Shrinkage
from gpu_encode.cuda.memory import empty, zeros
from gpu_encode.cuda.moments import NARROW, Cell, Rooms, divide, spread_of, sum_pair, width_of_class
from gpu_encode.cuda.rounding import scale
from gpu_encode.cuda.runtime import cuda, device_function

if TYPE_CHECKING:
    from cpu_fallback.types import Array

# Most digits of a cell that a thread keeps in its own memory; wider cells are not fused.
MOST_CELL = 24
# Counters: encodings that the output's type cannot hold, estimates that must be rounded from the digits, and cells that
# are too large.
LOST, DOUBTFUL, TOO_LARGE = 0, 1, 2
# About one estimate in ten million must be rounded from the digits, unless sums, m or the prior are extreme, or means
# of a power of two of rows, as priors, make ties.
ROOM_FOR_DOUBTS = 1 << 10
ROWS_OF_A_DOUBT = 1 << 14


class Doubts(NamedTuple):
    """Estimates that must be rounded from the digits: their indices, and after these the digits of S and n, T and N."""

    counters: "Array"
    indices: "Array"
    seen: "Array"
    around: "Array"


class Priors(NamedTuple):
    """The moments of all categories that each view, or segment of an order, sees, for each output, flat: see `Around`.

    For m-estimates it also has m * T and N if both are whole and small, else NaN.
    """

    mu: "Array"
    fraction: "Array"
    exponent: "Array"
    high: "Array"
    rest: "Array"
    weighed: "Array"
    number: "Array"


class Around(NamedTuple):
    """Moments of all categories that one view or row sees: mu, the variance, and for m-estimates m * mu as a pair."""

    mu: float
    fraction: float
    exponent: int
    high: float
    rest: float


def fits(shape: Shape) -> bool:
    """Say whether a thread can keep a cell with all its classes in its own memory."""
    widest = max(shape.n_width, shape.s_width, shape.q_width)
    return width_of_class(shape) * shape.n_classes <= MOST_CELL and widest <= NARROW


def exact_limit(shrinkage: Shrinkage) -> float:
    """Give the number below which m-estimates of whole numbers are rounded only once; 0 for other encodings."""
    return float(exact_below.py_func(shrinkage.first)) if shrinkage.kind == M_ESTIMATE else 0.0


def room_for_doubts(n_encodings: int, length: int, kind: int, counters: "Array | None" = None) -> Doubts:
    """Give memory for the doubts about some encodings; none unless the encodings are estimates."""
    size = ROOM_FOR_DOUBTS + n_encodings // ROWS_OF_A_DOUBT if kind == M_ESTIMATE else 0
    # At least one number each, since a kernel cannot take an empty array.
    digits = max(size * length, 1)
    counters = zeros(3, np.int64) if counters is None else counters
    return Doubts(counters, empty(max(size, 1), np.int64), empty(digits, np.int64), empty(digits, np.int64))


@device_function
def keep_doubt(doubts: Doubts, index: int) -> int:
    """Keep the index of an estimate that must be rounded later; give its number, or -1 if there is no room."""
    number = cuda.atomic.add(doubts.counters, DOUBTFUL, 1)
    if number >= len(doubts.indices):
        return -1
    doubts.indices[number] = index
    return number


@device_function
def keep_cell(kept: "Array", number: int, cells: "Array", at: int, length: int) -> None:
    """Keep the digits of a cell after an estimate."""
    for k in range(length if number >= 0 else 0):
        kept[number * length + k] = cells[at + k]


@device_function
def around_of(priors: Priors, i: int, blend: Blend) -> Around:
    """Give the moments of all categories for a view and output, as far as lam needs them."""
    fraction, exponent, high, rest = 0.0, 0, 0.0, 0.0
    if len(priors.fraction) == len(priors.mu):
        fraction, exponent = priors.fraction[i], priors.exponent[i]
    if blend.shrinkage.kind == M_ESTIMATE:
        high, rest = priors.high[i], priors.rest[i]
    return Around(priors.mu[i], fraction, exponent, high, rest)


@device_function
def encode_count(own: int, count: int, blend: Blend, priors: Priors, at: int, below: float) -> tuple[float, bool]:
    """Encode one class from counts below 2**31, and say whether the encoding may be rounded wrongly."""
    weight, m, around = float(count), blend.shrinkage.first, around_of(priors, at, blend)
    if blend.shrinkage.kind == M_ESTIMATE:
        near, whole = whole_estimate(float(own), weight, m, priors.weighed[at], priors.number[at], below)
        if whole:
            return near, False
        return rounded_estimate(float(own), 0.0, weight, 0.0, m, around.high, around.rest)
    if blend.shrinkage.kind == EMPIRICAL_BAYES:
        other = bayes_weight_of_count(weight, float(own * (count - own)), 0, around.fraction, around.exponent)
    else:
        _, other = weights_of(weight, blend.shrinkage)
    # Plain division rounds quotients of such numbers correctly.
    return blend_near(around.mu, float(own) / weight, 1.0, other), False


@device_function
def encode_digits(
    cell: Cell, blend: Blend, around: Around, count: tuple[float, float, int], rooms: Rooms
) -> tuple[float, bool]:
    """Encode one output of a cell from its digits and from N as a pair; say whether it may be rounded wrongly."""
    n_high, n_lower, n_exponent = count
    total = sum_pair(cell.digits, cell.s_at, cell.shape)
    if blend.shrinkage.kind == M_ESTIMATE:
        s_high, s_rest = plain_pair(total[0], total[1], total[2])
        number, number_rest = plain_pair(n_high, n_lower, n_exponent)
        m = blend.shrinkage.first
        return rounded_estimate(s_high, s_rest, number, number_rest, m, around.high, around.rest)
    mean = divide(cell, total, count)
    mine, other = 1.0, 0.0
    if blend.shrinkage.kind == EMPIRICAL_BAYES:
        fraction, power = spread_of(cell, rooms)
        weight = scale(n_high, n_exponent)
        other = bayes_weight(weight, fraction, power, around.fraction, around.exponent)
    else:
        mine, other = weights_of(scale(n_high, n_exponent), blend.shrinkage)
    return blend_one(around.mu, mean, mine, other), False


@device_function
def see_around(cell: Cell, rule: FusedRule, count: tuple[float, float, int], rooms: Rooms) -> Around:
    """Give the prior of one output, and the variance if lam needs it, from the digits of all rows that a row sees."""
    n_high, n_lower, n_exponent = count
    kind, m = rule.blend.shrinkage.kind, rule.blend.shrinkage.first
    mu, fraction, power, prior, rest = rule.prior, 0.0, 0, rule.prior, 0.0
    if rule.by_mean:
        total = sum_pair(cell.digits, cell.s_at, cell.shape)
        mu = math.nan
        if n_high != 0.0:
            mu = divide(cell, total, count)
        if kind == M_ESTIMATE:
            s_high, s_rest = plain_pair(total[0], total[1], total[2])
            number, number_rest = plain_pair(n_high, n_lower, n_exponent)
            prior, rest = mean_pair(s_high, s_rest, number, number_rest)
    if kind == EMPIRICAL_BAYES:
        fraction, power = variance_of(scale(n_high, n_exponent), spread_of(cell, rooms))
    prior, rest = weigh_prior(prior, rest, m)
    return Around(mu, fraction, power, prior, rest)


@device_function
def variance_of(weight: float, spread: tuple[float, int]) -> tuple[float, int]:
    """Give (N * Q - S**2) / N**2 as fraction and exponent; 0 if N is 0."""
    fraction, exponent = spread
    if not LIGHT < weight < HEAVY:
        weight, power = math.frexp(weight)
        exponent -= 2 * power
    return (fraction / weight / weight if weight > 0.0 else 0.0), exponent
