"""Exact sums in tables: addition, multiplication, rounding once at the end, and the moments of cells.

A `Limbs` is an array of integers times a common power of 2**32, held as signed int64 digits.  Addition, subtraction and
multiplication are exact; only `pair`, `to_scaled` and `to_floats` round.  Digits are on a fixed grid, so the result
does not depend on the number of digits.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.cached import cached_property
from cpu_fallback.digits import bit_length, carry, digit_products, signed_digits
from cpu_fallback.memory import empty

if TYPE_CHECKING:
    from cpu_fallback.types import Array, Layout

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MASK = np.int64(0xFFFFFFFF)
SAFE = np.int64(1) << np.int64(53)
SMALL = 1 << 31
DIGIT = 2.0**32
# Numbers of at most 8 digits are rounded by a few additions; numbers of at most 20 digits are added up as floats.
MOST_COLUMNS, MOST_ADDED = 8, 20
# The sum of a few numbers below this one fits an int64.
FAR = 1 << 61
# So few quotients take less time in Python's integers than in pairs of floats.
FEW = 64
Pair = tuple[Floats, Floats, Integers]
# No exponent comes near this one.
NEVER = 1 << 40


@dataclass(frozen=True)
class Scaled:
    """Numbers fraction * 2**exponent, so that squares of huge and tiny numbers neither overflow nor vanish."""

    fraction: Floats
    exponent: Integers

    def __getitem__(self, rows: Any) -> "Scaled":
        return Scaled(self.fraction[rows], self.exponent[rows])

    @classmethod
    def of(cls, numbers: Floats) -> "Scaled":
        """Make scaled numbers of plain numbers."""
        return cls(numbers, np.zeros_like(numbers, np.int64))

    def over(self, divisor: Floats) -> "Scaled":
        """Divide by plain numbers."""
        fraction, exponent = np.frexp(divisor)
        return Scaled(self.fraction / fraction, self.exponent - exponent)

    def times(self, factor: Floats) -> "Scaled":
        """Multiply by plain numbers."""
        fraction, exponent = np.frexp(factor)
        return Scaled(self.fraction * fraction, self.exponent + exponent)

    def plus(self, other: "Scaled") -> "Scaled":
        """Add other numbers; the sum is rounded once."""
        fraction, exponent = np.frexp(self.fraction)
        other_fraction, other_exponent = np.frexp(other.fraction)
        exponent = np.where(fraction == 0, -NEVER, exponent + self.exponent)
        other_exponent = np.where(other_fraction == 0, -NEVER, other_exponent + other.exponent)
        top = np.maximum(exponent, other_exponent)
        return Scaled(
            shift(fraction, exponent - top) + shift(other_fraction, other_exponent - top),
            np.where(top < -NEVER // 2, 0, top),
        )

    def ratio(self, other: "Scaled") -> Floats:
        """Give the quotient as a plain number: 0 for 0/x, inf for x/0, NaN for 0/0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return shift(self.fraction / other.fraction, self.exponent - other.exponent)

    def where(self, condition: NDArray[np.bool_]) -> "Scaled":
        """Keep the numbers for which `condition` is true, and make all others zero."""
        return Scaled(np.where(condition, self.fraction, 0.0), self.exponent)


@dataclass(frozen=True)
class Limbs:
    """Exact numbers: sum over i of digits[..., i] * 2**(32 * (low + i)).

    Parameters
    ----------
    digits : int64 array (..., width)
        Signed digits, not necessarily carried.
    low : int
        Grid position of the first digit.
    """

    digits: Integers
    low: int = 0

    @classmethod
    def of_integers(cls, values: Integers) -> "Limbs":
        """Make exact numbers of int64."""
        return cls(values[..., None])

    @classmethod
    def within(cls, digits: Integers, low: int, bound: int) -> Self:
        """Make exact numbers whose digits are known to be no larger than a bound."""
        number = cls(digits, low)
        vars(number)["bound"] = bound
        return number

    @cached_property
    def bound(self) -> int:
        """An upper bound of the magnitudes of all digits."""
        return peak(self.digits)

    @classmethod
    def sum_of(cls, *factors: Floats, where: NDArray[np.bool_]) -> "Limbs":
        """Sum the products of the factors over the first axis, exactly, where `where` is true."""
        shape = factors[0].shape
        digits, base = signed_digits([factor.ravel() for factor in factors])
        used = where.ravel()
        for factor in factors:
            used = used & (factor.ravel() != 0)
        low, high = span(base, used)
        columns: list[Any] = [0] * (high - low + len(digits))
        for start in range(low, high + 1):
            here = used & (base == start)
            for i, digit in enumerate(digits, start - low):
                columns[i] = columns[i] + np.where(here, digit, 0).reshape(shape).sum(axis=0)
        while len(columns) > 1 and not columns[-1].any():
            columns.pop()
        while len(columns) > 1 and not columns[0].any():
            columns, low = columns[1:], low + 1
        return cls(np.moveaxis(np.stack(columns), 0, -1), low)

    @classmethod
    def of_floats(cls, values: Floats) -> "Limbs":
        """Make exact numbers of finite floats."""
        return cls.sum_of(values[None], where=np.ones_like(values[None], bool))

    def _align(self, other: "Limbs") -> tuple[Integers, Integers, int]:
        low = min(self.low, other.low)
        top = max(self.low + self.digits.shape[-1], other.low + other.digits.shape[-1])
        return widen(self, low, top - low), widen(other, low, top - low), low

    def __add__(self, other: "Limbs") -> "Limbs":
        left, right, low = self._align(other)
        total = Limbs(left + right, low)
        if "bound" in vars(self) and "bound" in vars(other):
            vars(total)["bound"] = self.bound + other.bound
        return total

    def __sub__(self, other: "Limbs") -> "Limbs":
        left, right, low = self._align(other)
        return Limbs(left - right, low)

    def __mul__(self, other: "Limbs") -> "Limbs":
        for number, whole in ((self, other), (other, self)):
            if whole.is_one_column and (by_digit := number._times_whole(whole)) is not None:
                return by_digit
        sign, left = self.magnitude()
        other_sign, right = other.magnitude()
        shape = np.broadcast_shapes(left.shape[:-1], right.shape[:-1])
        columns = carry(digit_products(columns_of(left, shape), columns_of(right, shape)))
        signs = sign * other_sign
        product = np.stack([column.view(np.int64) * signs for column in columns])
        return Limbs(np.moveaxis(product, 0, -1), self.low + other.low)

    def _times_whole(self, factors: "Limbs") -> "Limbs | None":
        """Multiply by plain integers digit by digit, if an int64 certainly holds the products; else None."""
        number = self
        if number.bound * factors.bound >= FAR:
            # Carried digits are below 2**32, except for the top one.
            number = Limbs(carry_through(self.digits), self.low)
        bound = number.bound * factors.bound
        return Limbs.within(number.digits * factors.digits, self.low, bound) if bound < FAR else None

    @property
    def is_one_column(self) -> bool:
        """Whether the numbers are plain integers: one column at position 0 holds them."""
        return self.low == 0 and self.digits.shape[-1] == 1

    def _as_floats(self) -> Floats | None:
        """Give plain integers as floats if one column at position 0 holds them and none is rounded, else None."""
        return self.digits[..., 0].astype(np.float64) if self.is_one_column and self.bound < SAFE else None

    def canonical(self) -> "Limbs":
        """Give the canonical form: digits in [0, 2**32), a signed top digit, no zero columns at either end."""
        digits = fold_top(carry_through(self.digits))
        low = self.low
        while digits.shape[-1] > 1 and not digits[..., 0].any():
            digits, low = digits[..., 1:], low + 1
        return Limbs(digits, low if digits.any() else 0)

    def magnitude(self) -> tuple[Integers, Integers]:
        """Give the sign (-1 or 1) and carried digits of at least 0."""
        digits = carry_through(self.digits)
        sign = np.where(digits[..., -1] < 0, np.int64(-1), np.int64(1))
        return sign, carry_through(digits * sign[..., None]) if (sign < 0).any() else digits

    def signs(self) -> Integers:
        """Give -1, 0 or 1 for the sign of each number."""
        sign, digits = self.magnitude()
        return np.where((digits != 0).any(axis=-1), sign, np.int64(0))

    @cached_property
    def pair(self) -> "Pair":
        """Give (hi, lo, exponent): the number is (hi + lo) * 2**exponent, and hi is correctly rounded.

        If lo is the whole rest, it is even; otherwise its last bit is set.
        """
        if (floats := self._as_floats()) is not None:
            return floats, np.zeros_like(floats), np.zeros_like(floats, np.int64)
        # Carried columns overlap less, and so may fit where other columns do not.
        for columns in (self._float_columns, self._few_columns):
            if (few := columns()) is not None:
                pair, lost = add_up(few, self.low)
                if not lost.any():
                    return pair
        sign, digits = self.magnitude()
        return split(digits, sign, self.low)

    def near_pair(self) -> "Pair":
        """Give a pair within 2**-102 of its number, if no digit is negative; if lo is even, it is the whole rest."""
        digits = self.digits
        if digits.shape[-1] > MOST_ADDED or not digits.size or self._as_floats() is not None:
            return self.pair
        if digits.min() < 0:
            return self.pair
        columns = in_columns(digits if digits.max() < SAFE else carry_through(digits))
        (high, rest, exponent), lost = add_up(columns, self.low)
        return high, (rest.view(np.int64) | lost).view(np.float64), exponent

    def _float_columns(self) -> list[Integers] | None:
        """Give the columns, the highest first, if there are few and a float holds each exactly, else None."""
        few = self.digits.shape[-1] <= MOST_COLUMNS and self.bound < SAFE
        return in_columns(self.digits) if few else None

    def _few_columns(self) -> list[Integers] | None:
        """Give carried columns, the highest first and signed, if four columns hold the numbers, else None."""
        if self.digits.shape[-1] > MOST_COLUMNS or self.bound >= FAR:
            return None
        columns: list[Integers] = []
        carried: Integers | int = 0
        for i in range(self.digits.shape[-1] - 1):
            column = self.digits[..., i] + carried
            columns.append(column & MASK)
            carried = column >> 32
        top = self.digits[..., -1] + carried
        while columns and peak(top) <= 1 and peak(below := (top << 32) + columns[-1]) <= MASK:
            columns.pop()
            top = below
        return [top, *columns[::-1]] if len(columns) < 4 and peak(top) <= MASK else None

    def to_integers(self) -> list[int]:
        """Give the numbers, divided by 2**(32 * low), as Python's integers."""
        integers = []
        for digits in self.digits.reshape(-1, self.digits.shape[-1]).tolist():
            integer = 0
            for digit in digits[::-1]:
                integer = (integer << 32) + digit
            integers.append(integer)
        return integers

    def to_scaled(self) -> Scaled:
        """Round correctly to 53 bits, with a separate exponent."""
        high, _, exponent = self.pair
        return Scaled(high, exponent)

    def to_rests(self) -> Floats:
        """Give the rest that rounding to 53 bits leaves."""
        if (floats := self._as_floats()) is not None:
            return np.zeros_like(floats)
        _, low, exponent = self.pair
        return shift(low, exponent)

    def to_floats(self) -> Floats:
        """Round correctly to float64; too large numbers become inf."""
        if (floats := self._as_floats()) is not None:
            return floats
        high, low, exponent = self.pair
        plain = shift(high, exponent)
        tiny = (np.abs(plain) < 2.0**-1021) & (high != 0)
        if tiny.any():
            # A subnormal result has fewer bits: round the two halves at its last bit, with the rest deciding ties.
            plain = np.where(tiny, round_subnormal(high, low, exponent), plain)
        return plain


def peak(values: Integers) -> int:
    """Give the largest magnitude; 0 for an empty array."""
    return max(abs(int(values.max())), abs(int(values.min()))) if values.size else 0


def span(numbers: Integers, chosen: NDArray[np.bool_]) -> tuple[int, int]:
    """Give the smallest and the largest of the chosen numbers; 0 and 0 if none is chosen."""
    if not numbers.size:
        return 0, 0
    low = int(np.where(chosen, numbers, NEVER).min())
    return (0, 0) if low == NEVER else (low, int(np.where(chosen, numbers, -NEVER).max()))


def in_columns(digits: Integers) -> list[Integers]:
    """Give digits as a list of columns, the highest first, without the top column for carries if this is zero."""
    width = digits.shape[-1]
    while width > 1 and not digits[..., width - 1].any():
        width -= 1
    return [digits[..., i] for i in range(width - 1, -1, -1)]


def columns_of(digits: Integers, shape: tuple[int, ...]) -> list[NDArray[np.uint64]]:
    """Give digits as a list of unsigned columns of the given shape."""
    return [np.broadcast_to(in_one_piece(digits[..., i]).view(np.uint64), shape) for i in range(digits.shape[-1])]


def in_one_piece(values: Integers) -> Integers:
    """Give the same numbers as a contiguous array."""
    return values if values.flags.c_contiguous else values.copy()


def widen(number: Limbs, low: int, width: int) -> Integers:
    """Give digits in a wider window."""
    if number.low == low and number.digits.shape[-1] == width:
        return number.digits
    out = np.zeros_like(number.digits, order="C", shape=(*number.digits.shape[:-1], width))
    start = number.low - low
    out[..., start : start + number.digits.shape[-1]] = number.digits
    return out


def carry_through(digits: Integers) -> Integers:
    """Carry, with one more column on top; only this column has a sign."""
    # Each column is contiguous in memory, since all arithmetic here works column by column.
    out = np.empty_like(digits, order="C", shape=(digits.shape[-1] + 1, *digits.shape[:-1]))
    carry: Integers | int = 0
    for i in range(digits.shape[-1]):
        column = in_one_piece(digits[..., i])
        # The two halves are added separately: a full int64 may leave no room for a carry.
        low = (column & MASK) + carry
        np.bitwise_and(low, MASK, out=out[i])
        carry = (column >> 32) + (low >> 32)
    out[-1] = carry
    return np.moveaxis(out, 0, -1)


def fold_top(digits: Integers) -> Integers:
    """Drop top columns if the signed digit below can hold them."""
    while digits.shape[-1] > 1:
        top = digits[..., -1]
        if peak(top) > 1:
            return digits
        below = digits[..., -2] + (top << 32)
        if peak(below) > MASK:
            return digits
        digits = np.concatenate([digits[..., :-2], below[..., None]], axis=-1)
    return digits


# A quotient that is farther than any error from the middle of two floats is rounded correctly as it is.
DOUBT = 1.0 + 2.0**-30
# Two products of pairs both stay normal numbers if their exponents differ by no more than this.
FARTHEST_APART = 400
FRACTION = np.int64((1 << 52) - 1)


def quotient(total: Limbs, count: Limbs) -> Floats:
    """Give the mean total / count, rounded once; NaN if count is zero.  The count is broadcast to the total.

    Pairs of floats give nearly all means; exact integers give the others, or all if there are few.
    """
    shape = total.digits.shape[:-1]
    if math.prod(shape) <= FEW:
        return settle(*(pick(sums, shape, slice(None)) for sums in (total, count))).reshape(shape)
    mean, doubtful = near_quotient(total.pair, count.pair)
    at = np.nonzero(doubtful.ravel())[0]
    if len(at):
        mean.put(at, settle(*(pick(sums, shape, at) for sums in (total, count))))
    return mean


def near_quotient(total: Pair, count: Pair) -> tuple[Floats, NDArray[np.bool_]]:
    """Give means from pairs, and tell where digits have to decide; NaN if the count is zero.

    With the two sums as pairs of floats (hi, lo) and (nh, nl): q = hi / nh, and the mean is
    q + ((hi - q * nh) + (lo - q * nl)) / nh.  It is doubtful if this is too near the middle of two floats.
    """
    (high, low, exponent), (count_high, count_low, count_exponent) = total, count
    with np.errstate(divide="ignore", invalid="ignore"):
        first = high / count_high
        left, right = residual(high, first, count_high), low - first * count_low
        rest = left + right
        change = rest / count_high
        near = first + change
        doubtful = near + (change - (near - first)) * DOUBT != near
        if doubtful.any():
            # The middle itself is not doubtful if the pair is exact: the last bit of `low` is set if it is not.
            again = rest - left
            whole = (left - (rest - again)) + (right - again) == 0
            even = ((low.view(np.int64) & 1) | (change.view(np.int64) & FRACTION)) == 0
            doubtful &= ~(whole & even & (count_low == 0) & (change * count_high == rest))
        mean = shift(near, exponent - count_exponent)
        # A subnormal result was rounded twice.
        doubtful |= (np.abs(mean) < 2.0**-1021) & (high != 0)
    return np.where(count_high == 0, np.nan, mean), doubtful & (count_high != 0)


class Ratio(NamedTuple):
    """Exact quotients of two sums, not rounded.

    Parameters
    ----------
    total : Limbs (..., outputs)
    number : Limbs (..., 1)
    """

    total: Limbs
    number: Limbs

    def part(self, rows: slice) -> "Ratio":
        """Give a slice of the first axis."""
        return Ratio(*(Limbs(sums.digits[rows], sums.low) for sums in self))


def m_estimates_of(own: Ratio, m: float, prior: Ratio) -> Floats:
    """Give (S + m * mu) / (n + m), rounded once, where mu is the exact prior; NaN if all weights are zero.

    With mu = T / N this is (S * N + m * T) / ((n + m) * N).
    """
    over, scale = m.as_integer_ratio()
    if (quick := small_estimates(own, over, scale, prior)) is not None:
        return quick
    # If m is a fraction with a small denominator, `scale` multiplies everything by it; if not, m stays a float.
    weights, count = of_number(float(over) if scale < SMALL else m, own.number), own.number
    total = own.total * prior.number
    if 1 < scale < SMALL:
        # Multiplied by the scale, whole numbers stay whole and short.
        total, count = total * of_number(float(scale), own.number), count * of_number(float(scale), own.number)
    return quotient(total + weights * prior.total, (count + weights) * prior.number)


def small_estimates(own: Ratio, over: int, scale: int, prior: Ratio) -> Floats | None:
    """Give the estimates with m = over / scale, if both sums are whole and below 2**53; None if they may not be."""
    sums, least = (*own, *prior), 1 << 53
    if not all(each.is_one_column for each in sums) or max(over, scale) >= least:
        return None
    total, count, above, number = (each.digits[..., 0] for each in sums)
    most = [each.bound for each in sums]
    if (most[0] * most[3] * scale + most[2] * over) >= least or (most[1] * scale + over) * most[3] >= least:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        return (total * number * scale + above * over) / ((count * scale + over) * number)


def of_number(value: float, like: Limbs) -> Limbs:
    """Make one exact number, on the device of other numbers."""
    if value == int(value) and abs(value) < SMALL:
        return Limbs.of_integers(np.full_like(like.digits, int(value), shape=(1,)))
    return Limbs.of_floats(np.full_like(like.digits, value, dtype=np.float64, shape=(1,)))


def m_estimates(
    accumulators: "Array", layout: "Layout", first_output: int, m: float, prior: Ratio, /
) -> NDArray[np.float64]:
    """Give (S + m * mu) / (n + m) of cells (..., classes, layout.width), rounded once."""
    return m_estimates_of(ratio_of(accumulators, layout, first_output), float(m), prior)


def ratio_of(accumulators: "Array", layout: "Layout", first_output: int) -> Ratio:
    """Give S / n of cells, exactly."""
    count, total, _ = sums_of(accumulators, layout, first_output)
    return Ratio(total, count)


def pick(number: Limbs, shape: tuple[int, ...], at: Integers | slice) -> Limbs:
    """Pick numbers at some indices of an array that is first broadcast to a shape."""
    digits, width = number.digits, number.digits.shape[-1]
    if digits.shape[:-1] != shape:
        digits = np.broadcast_to(digits, (*shape, width))
    return Limbs(digits.reshape(-1, width)[at], number.low)


def settle(total: Limbs, count: Limbs) -> Floats:
    """Give total / count of a line of numbers, rounded once by Python's division of integers; NaN if count is zero."""
    places = 32 * (total.low - count.low)
    up, down = max(places, 0), max(-places, 0)
    means = [divide(s << up, n << down) for s, n in zip(total.to_integers(), count.to_integers(), strict=True)]
    return np.asarray(means, np.float64, like=total.digits)


def divide(total: int, count: int) -> float:
    """Give total / count, rounded once: infinity above the largest float, and NaN if count is zero."""
    try:
        return total / count if count else math.nan
    except OverflowError:
        return math.inf if (total < 0) == (count < 0) else -math.inf


def deviation(count: Limbs, total: Limbs, square: Limbs) -> Scaled:
    """Give N * Q - S**2, rounded once: N times the sum of squared deviations.

    It is computed in pairs of floats if these tell which float is nearest, else in integers.
    """
    near, exponent, sure = near_deviation(count.pair, total.pair, square.near_pair())
    at = np.nonzero(~sure.ravel())[0]
    if len(at):
        n, s, q = (pick(sums, near.shape, at) for sums in (count, total, square))
        settled = (n * q - s * s).to_scaled()
        near.put(at, settled.fraction)
        exponent.put(at, settled.exponent)
    return Scaled(near, exponent)


def near_deviation(count: Pair, total: Pair, square: Pair) -> tuple[Floats, Integers, NDArray[np.bool_]]:
    """Give N * Q - S**2 from pairs, as fraction and exponent, and tell whether it is certainly rounded correctly."""
    (n, n_rest, n_exponent), (s, s_rest, s_exponent), (q, q_rest, q_exponent) = count, total, square
    exponent = n_exponent + q_exponent
    apart = 2 * s_exponent - exponent
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        left, right = n * q, s * s
        left_rest = (n * q_rest + n_rest * q) - residual(left, n, q)
        right_rest = 2.0 * s * s_rest - residual(right, s, s)
        right, right_rest = shift(right, apart), shift(right_rest, apart)
        near, rest = two_sum(left, -right)
        near, rest = two_sum(near, rest + (left_rest - right_rest))
        # This is several times the largest error of the pairs and of the sums of their rests.
        doubt = (np.abs(left) + np.abs(right)) * 2.0**-98
        sure = (near + (rest - doubt) == near) & (near + (rest + doubt) == near)
        if not sure.all():
            # The square of a single row is a pair: an even rest is the whole rest.
            one_row = (n == 1) & (n_rest == 0) & (s_rest == 0) & (q_rest.view(np.int64) & 1 == 0)
            sure |= one_row & (left == right) & (left_rest == right_rest)
        sure &= np.abs(apart) < FARTHEST_APART
    return near, np.broadcast_to(exponent, near.shape).copy(), sure


def cube_parts(values: Floats) -> list[Floats]:
    """Give four numbers whose exact sum is the value's cube, for magnitudes between 1e-90 and 1e100."""
    square = values * values
    rest = -residual(square, values, values)
    cube, small = square * values, rest * values
    return [cube, -residual(cube, square, values), small, -residual(small, rest, values)]


def fourth_parts(values: Floats) -> list[Floats]:
    """Give six numbers whose exact sum is the value's fourth power, for magnitudes between 1e-55 and 1e75."""
    square = values * values
    rest = -residual(square, values, values)
    factors = ((square, square), (2.0 * square, rest), (rest, rest))
    products = [first * second for first, second in factors]
    return products + [-residual(high, *pair) for high, pair in zip(products, factors, strict=True)]


def shift(values: Floats, exponent: Integers) -> Floats:
    """Values * 2**exponent, for any exponent."""
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(values, np.minimum(np.maximum(exponent, -5000), 5000).astype(np.int32))


def add_up(columns: list[Integers], low: int) -> tuple[Pair, NDArray[np.bool_]]:
    """Round columns of digits, the highest first, to (hi, lo, exponent), and tell where they do not fit.

    Each addition keeps its rounding error in a second number; what this one cannot hold is lost.
    """
    middle = len(columns) // 2
    # The exponent is in the middle, so that neither the pair nor its square leaves the normal numbers.
    high, *parts = (
        column.astype(np.float64) * DIGIT ** (len(columns) - 1 - i - middle) for i, column in enumerate(columns)
    )
    rest, lost = np.zeros_like(high), np.zeros_like(high, bool)
    if parts:
        high, rest = two_sum(high, parts[0])
    for part in parts[1:]:
        high, small = two_sum(high, part)
        rest, left = two_sum(rest, small)
        lost |= left != 0
    return (*two_sum(high, rest), np.full_like(columns[0], 32 * (low + middle))), lost


def two_sum(left: Floats, right: Floats) -> tuple[Floats, Floats]:
    """Give the rounded sum and its exact rounding error (Knuth)."""
    total = left + right
    other = total - left
    return total, (left - (total - other)) + (right - other)


def split(digits: Integers, sign: Integers, low: int) -> tuple[Floats, Floats, Integers]:
    """Round carried, non-negative digits to (hi, lo, exponent)."""
    columns = [digits[..., i] for i in range(digits.shape[-1])]
    padded = np.stack([*(np.zeros_like(columns[0]) for _ in range(4)), *columns])
    top = np.zeros_like(columns[0])
    bottom = np.full_like(columns[0], len(columns))
    for i, column in enumerate(columns):
        filled = column != 0
        top = np.where(filled, i, top)
        bottom = np.where(filled & (bottom == len(columns)), i, bottom)
    window = [np.take_along_axis(padded, (top + 4 - back)[None], axis=0)[0].view(np.uint64) for back in range(5)]
    length = bit_length(window[0]).astype(np.uint64)
    head = (window[0] << (np.uint64(64) - length)) | (window[1] << (np.uint64(32) - length)) | (window[2] >> length)
    # Zero has length 0, and a shift by 64 bits is undefined; its digits are zero in any case.
    head = np.where(length == 0, np.uint64(0), head)
    tail = window[2] & ((np.uint64(1) << length) - np.uint64(1))
    deep, lost = (window[3] << np.uint64(32)) | window[4], bottom < top - 4
    sticky = (tail != 0) | (deep != 0) | lost
    mantissa, rest = head >> np.uint64(11), (head & np.uint64(0x7FF)).astype(np.int64)
    up = (rest > 1024) | ((rest == 1024) & (sticky | (mantissa & np.uint64(1) != 0)))
    size = length.astype(np.int32)
    high = np.ldexp((mantissa + up).astype(np.float64), size - 53)
    rest = np.where(up, rest - 2048, rest) * (np.int64(1) << length.astype(np.int64)) + tail.astype(np.int64)
    kept = deep & ~np.uint64(0x7FF)
    near, far = np.ldexp(rest.astype(np.float64), -64), np.ldexp(kept.astype(np.float64), -128)
    lower = near + far
    odd = lost | (kept != deep) | (lower - near != far)
    lower = (lower.view(np.int64) | odd.astype(np.int64)).view(np.float64)
    signs = sign.astype(np.float64)
    return signs * high, signs * lower, 32 * (top + low)


LOWEST_EXPONENT = -1074


def round_subnormal(high: Floats, low: Floats, exponent: Integers) -> Floats:
    """Round (high + low) * 2**exponent to a multiple of 2**-1074, ties to even, with one rounding in all."""
    units = shift(high, exponent - LOWEST_EXPONENT)
    whole = np.floor(units)
    # Other numbers in the same array may overflow here; their results are thrown away.
    with np.errstate(invalid="ignore"):
        part = units - whole
        above = (part > 0.5) | ((part == 0.5) & ((low > 0) | ((low == 0) & (np.fmod(whole, 2.0) != 0))))
    return shift(whole + above, np.full_like(exponent, LOWEST_EXPONENT))


def residual(high: Floats, first: Floats, divisor: Floats) -> Floats:
    """High - first * divisor, exactly, without a fused multiply-add (Dekker 1971)."""
    product = first * divisor
    first_top = halve(first)
    divisor_top = first_top if divisor is first else halve(divisor)
    first_rest, divisor_rest = first - first_top, divisor - divisor_top
    error = first_rest * divisor_rest - (
        ((product - first_top * divisor_top) - first_rest * divisor_top) - first_top * divisor_rest
    )
    return (high - product) - error


def halve(values: Floats) -> Floats:
    """Upper 26 bits of each number (Veltkamp's splitting)."""
    wide = values * 134217729.0
    return wide - (wide - values)


class MomentArrays(NamedTuple):
    """Results of `moments` for each cell, (..., 1) or (..., outputs); the last three are empty unless asked for.

    Parameters
    ----------
    n : float64 array (..., 1)
        Summed weight N, correctly rounded.
    mean : float64 array (..., outputs)
        S / N; NaN if N is zero.
    less_one : float64 array (..., 1)
        N - 1, correctly rounded.
    fraction, exponent : float64 and int64 arrays (..., outputs)
        N * Q - S**2 = fraction * 2**exponent, correctly rounded.
    """

    n: NDArray[np.float64]
    mean: NDArray[np.float64]
    less_one: NDArray[np.float64]
    fraction: NDArray[np.float64]
    exponent: NDArray[np.int64]


def moments(accumulators: "Array", layout: "Layout", first_output: int, deviations: bool, /) -> MomentArrays:
    """Give count, mean and, if `deviations`, squared deviations of cells (..., classes, layout.width)."""
    count, total, square = sums_of(accumulators, layout, first_output)
    if layout.is_whole and peak(accumulators) * max(accumulators.shape[-2], 1) < SMALL:
        out = empty_moments(accumulators.shape, first_output, deviations)
        small_moments(out, count.digits[..., 0], total.digits[..., 0], square.digits[..., 0])
        return out
    n, mean = count.to_floats(), quotient(total, count)
    if not deviations:
        none = n[..., :0]
        return MomentArrays(n, mean, none, none, none.astype(np.int64))
    spread = deviation(count, total, square)
    less_one = (count - Limbs.of_integers(np.ones(1, np.int64))).to_floats()
    return MomentArrays(n, mean, less_one, spread.fraction, spread.exponent)


def small_moments(out: MomentArrays, count: "Array", total: "Array", square: "Array") -> None:
    """Write the moments of whole sums below 2**31: products fit int64, and quotients are rounded correctly."""
    out.n[:] = count
    with np.errstate(divide="ignore", invalid="ignore"):
        out.mean[:] = np.where(count == 0, np.nan, total / count)
    if out.less_one.shape[-1]:
        out.less_one[:] = count - 1
        out.fraction[:] = count * square - total * total
        out.exponent[:] = 0


def sums_of(accumulators: "Array", layout: "Layout", first_output: int) -> tuple[Limbs, Limbs, Limbs]:
    """Give N, S and Q of cells, from their columns; for targets of 0 and 1, from the counts of the classes."""
    sums: list[Any] = [Limbs(accumulators[..., columns], window.low) for window, _, columns in layout.measures()]
    if layout.total is not None:
        return sums[0], sums[1], sums[-1]
    count = sums[0]
    labeled = Limbs(count.digits[..., first_output:, :], count.low)
    return Limbs(count.digits.sum(axis=-2, keepdims=True), count.low), labeled, labeled


def empty_moments(shape: tuple[int, ...], first_output: int, deviations: bool) -> MomentArrays:
    """Allocate the moments of cells of this shape."""
    one, per_output = (*shape[:-2], 1), (*shape[:-2], shape[-2] - first_output)
    none = (*shape[:-2], 0)
    less, spread = (one, per_output) if deviations else (none, none)
    n, mean = empty(one, np.float64), empty(per_output, np.float64)
    return MomentArrays(n, mean, empty(less, np.float64), empty(spread, np.float64), empty(spread, np.int64))
