"""The numbers from which statistics are computed: counts, means and variances, and sums over categories."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.cached import cached_property
from cpu_fallback.exact import Floats, Integers, Limbs, Ratio, Scaled, deviation, quotient, ratio_of
from cpu_fallback.types import MISSING, Array, Layout, Rows, SumShape, Window, digit_window
from gpu_encode.seam.ops import Ops, holding
from gpu_encode.sums.category_sums import SumSpec


class Needs(NamedTuple):
    """The sums and targets that a statistic needs.

    Parameters
    ----------
    sums : bool
        Whether it needs any sums; if not, neither sums nor categories are kept.
    squares, cubes, fourths : bool
        Sums of squares, of cubes and of fourth powers.  Each needs the sums before it; terms 1 to 4 of each row are the
        parts of its cube, and terms 5 to 10 those of its fourth power.
    sample_variances : bool
        Variances with the denominator N - 1; weights must then be numbers of rows.
    totals : bool
        The sum of the target in each category, in addition to its mean.
    totals_from_above : bool
        Whether the total of a class is the sum over this class and all classes that sort after it.
    digits : bool
        The exact sums themselves, in addition to their rounded moments.
    others : bool
        For each label, the weight of the rows with any other label, too.
    categories : bool
        Sums over all categories, of their means or of other numbers (`Statistic.of_each_category`).
    table : bool
        All categories at once.  Such a statistic does not work with leave-one-out and orders, where each row sees sums
        of its own.
    distribution : bool
        The number of rows of each value; unless it is for dates, such a statistic needs a table, too.
    dates : bool
        Whether the encoding of a row also depends on its own date; new rows must then have the column of dates.
    everything : bool
        Moments of all visible rows, whatever their category.
    rows : bool
        Whether the encoding of an unseen category is NaN if there is no visible row at all.
    terms : int
        Number of terms that are summed for each row, the target itself included.
    joined_targets : bool
        Whether all targets together are the terms of one target.
    target_kinds : tuple of str
        The kinds of targets from which the statistic can be computed.
    """

    sums: bool = True
    squares: bool = False
    cubes: bool = False
    fourths: bool = False
    sample_variances: bool = False
    totals: bool = False
    totals_from_above: bool = False
    digits: bool = False
    others: bool = False
    categories: bool = False
    table: bool = False
    distribution: bool = False
    dates: bool = False
    everything: bool = True
    rows: bool = False
    terms: int = 1
    joined_targets: bool = False
    target_kinds: tuple[str, ...] = ("none", "binary", "continuous", "multiclass")


# Every statistic of sums needs these.
COUNTS_AND_MEANS = Needs()


@dataclass(frozen=True)
class ExactSums:
    """The sums from which moments were rounded.

    Parameters
    ----------
    accumulators : int64 array (..., classes, width)
    spec : SumSpec
    """

    accumulators: Integers
    spec: SumSpec

    def __getitem__(self, rows: "Array | slice | int") -> "ExactSums":
        return ExactSums(self.accumulators[rows], self.spec)

    @property
    def ratio(self) -> Ratio:
        """The exact means."""
        return ratio_of(self.accumulators, self.spec.layout, self.spec.first_output)

    @cached_property
    def means(self) -> Floats:
        """The means, rounded once: (..., outputs)."""
        moments = holding(self.accumulators).moments
        return moments(self.accumulators, self.spec.layout, self.spec.first_output, False).mean

    def m_estimates(self, m: float, prior: Ratio) -> Floats:
        """Give (S + m * prior) / (N + m), rounded once: (..., outputs).

        This is done in tiles of the first axis, since products of digits take many times the memory of the result.
        """
        ops, layout, first = holding(self.accumulators), self.spec.layout, self.spec.first_output
        rows = len(self.accumulators)
        size = max(ops.TILE // max(self.accumulators[0].size if rows else 1, 1), 1)
        if rows <= size:
            return ops.m_estimates(self.accumulators, layout, first, m, prior)
        each = prior.total.digits.ndim == self.accumulators.ndim
        parts = (slice(start, start + size) for start in range(0, rows, size))
        return np.concatenate(
            [
                ops.m_estimates(self.accumulators[part], layout, first, m, prior.part(part) if each else prior)
                for part in parts
            ]
        )


@dataclass(frozen=True)
class Moments:
    """Count, mean and variance of the visible rows, for each category, view and output, from exact sums.

    Parameters
    ----------
    n : float64 array (..., 1)
        Summed weight N, correctly rounded.
    rounded : float64 array (..., outputs) or None
        S / N; NaN if N is zero.  None: `mean` makes them of the exact sums when they are needed.
    less_one : float64 array (..., 1)
        N - 1, correctly rounded; empty unless variances are needed, and so is `deviation`.
    deviation : Scaled (..., outputs)
        N * Q - S**2, exact and then rounded once.
    total : float64 array (..., outputs)
        S, correctly rounded; empty unless totals are needed.
    others : float64 array (..., outputs)
        N - S of labels, exact and then rounded once; empty unless needed.
    rests : float64 array (..., 2 * outputs)
        The rounding errors of the totals, and then of the others; empty unless the others are needed.
    further : float64 array (..., terms - 1)
        S of each term but the first (the target itself), correctly rounded; empty if there is one term.
    third : Scaled (..., outputs)
        N**2 * C - 3 * N * S * Q + 2 * S**3, where C is the sum of cubes; exact and then rounded once; empty unless
        cubes are needed.
    less_two : float64 array (..., 1)
        N - 2, exact and then rounded once; empty unless cubes are needed.
    kurtosis : float64 array (..., 2)
        Excess kurtosis with ddof=0 and with ddof=1; empty unless fourth powers are needed.
    sums : ExactSums or None
        The exact sums from which all these were rounded, if they are needed.
    """

    n: Floats
    rounded: Floats | None
    less_one: Floats
    deviation: Scaled
    total: Floats
    others: Floats
    rests: Floats
    further: Floats
    third: Scaled
    less_two: Floats
    kurtosis: Floats
    sums: ExactSums | None = None

    @classmethod
    def of(cls, ops: Ops, accumulators: Integers, spec: SumSpec, needs: Needs = COUNTS_AND_MEANS) -> Self:
        """Round sums (..., classes, width) to counts, means and all other moments that are needed.

        If the target has several terms (..., terms, width), the moments are those of the first term.
        """
        first = accumulators if spec.classification else accumulators[..., :1, :]
        sums = ExactSums(first, spec) if needs.digits else None
        mean: Floats | None
        if sums is None or needs.squares:
            n, mean, less_one, fraction, exponent = ops.moments(first, spec.layout, spec.first_output, needs.squares)
        else:
            # Few means are needed beside the exact sums.
            n, mean = sums.ratio.number.to_floats(), None
            less_one = fraction = n[..., :0]
            exponent = fraction.astype(np.int64)
        none = n[..., :0]
        rest = others_of(first, spec) if needs.others else None
        has_terms = not spec.classification and accumulators.shape[-2] > 1
        return cls(
            n,
            mean,
            less_one,
            Scaled(fraction, exponent),
            total=totals_of(first, spec, needs.totals_from_above).to_floats() if needs.totals else none,
            others=rest.to_floats() if rest is not None else none,
            rests=none
            if rest is None
            else np.concatenate([totals_of(first, spec).to_rests(), rest.to_rests()], axis=-1),
            further=totals_of(accumulators[..., 1:, :], spec).to_floats() if has_terms else none,
            third=third_deviation(accumulators, spec) if needs.cubes else Scaled(none, none.astype(np.int64)),
            less_two=round_less_two(accumulators, spec) if needs.cubes else none,
            kurtosis=kurtosis_of(accumulators, spec) if needs.fourths else none,
            sums=sums,
        )

    @property
    def mean(self) -> Floats:
        """S / N of each output; NaN if N is zero."""
        if self.rounded is not None:
            return self.rounded
        assert self.sums is not None
        return self.sums.means

    @cached_property
    def variance(self) -> Scaled:
        """Population variance (N * Q - S**2) / N**2; zero if N is zero."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.deviation.over(self.n).over(self.n).where(self.n > 0)

    @cached_property
    def sample_variance(self) -> Scaled:
        """Sample variance (N * Q - S**2) / (N * max(N - 1, N / 2)); zero if N is zero.

        Whole weights are numbers of rows: one row has no variance, and for two rows N - 1 = N / 2.  If fractional
        weights sum to less than 2, N - 1 has no meaning, and near N = 1 the quotient would be arbitrarily large.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.deviation.over(self.n).over(np.maximum(self.less_one, self.n / 2.0)).where(self.n > 0)

    @classmethod
    def concatenate(cls, parts: "Iterable[Moments]") -> "Moments":
        """Concatenate parts along the first axis; parts that nobody else holds are freed on the way."""
        held = list(parts)
        if len(held) == 1:
            return held[0]
        names = [field.name for field in fields(cls)]
        columns = {name: [getattr(part, name) for part in held] for name in names}
        held.clear()
        return cls(*(concatenate(columns.pop(name)) for name in names))

    def at(self, rows: "Array | slice | int") -> "Moments":
        """Pick rows along the first axis."""
        picked: list[Any] = []
        for name in self.__dataclass_fields__:
            numbers = getattr(self, name)
            picked.append(None if numbers is None else numbers[rows])
        return Moments(*picked)


def concatenate(parts: "Sequence[Any]") -> Any:
    """Concatenate arrays, exact sums, or numbers with exponents of their own."""
    if isinstance(parts[0], Scaled):
        return Scaled(concatenate([part.fraction for part in parts]), concatenate([part.exponent for part in parts]))
    if isinstance(parts[0], ExactSums):
        return replace(parts[0], accumulators=concatenate([part.accumulators for part in parts]))
    return None if parts[0] is None else np.concatenate(parts)


def totals_of(accumulators: Integers, spec: SumSpec, from_above: bool = False) -> Limbs:
    """Give S of each class, or of each class together with all classes after it: (..., outputs)."""
    if spec.layout.total is None:
        (window, _, columns), first = spec.layout.measures()[0], spec.first_output
    else:
        (window, _, columns), first = spec.layout.measures()[1], 0
    digits = accumulators[..., first:, columns]
    if from_above:
        digits = np.cumsum(digits[..., ::-1, :], axis=-2)[..., ::-1, :]
    return Limbs(digits, window.low)


def others_of(accumulators: Integers, spec: SumSpec) -> Limbs:
    """Give for each class with an output the weight of all other classes: (..., outputs)."""
    window, _, columns = spec.layout.measures()[0]
    digits = accumulators[..., columns]
    rest = digits.sum(axis=-2)[..., None, :] - digits[..., spec.first_output :, :]
    return Limbs(rest, window.low)


def round_less_two(accumulators: Integers, spec: SumSpec) -> Floats:
    """Give N - 2 from sums (..., terms, width), exact and then rounded once: (..., 1)."""
    window, _, columns = spec.layout.measures()[0]
    count = Limbs(accumulators[..., :1, columns], window.low)
    return (count - Limbs.of_integers(np.full_like(count.digits[..., 0], 2))).to_floats()


def third_deviation(accumulators: Integers, spec: SumSpec) -> Scaled:
    """Give N**2 * C - 3 * N * S * Q + 2 * S**3 of sums (..., terms, width), exact and then rounded once: (..., 1).

    C is the sum of the cubes; terms 1 to 4 are the parts of a row's cube that `cpu_fallback.exact.cube_parts` gives.
    """
    count, total, square, cube, _ = power_sums(accumulators, spec)
    cross = count * total * square
    twice = total * total * total
    return (count * count * cube - cross - cross - cross + twice + twice).to_scaled()


def kurtosis_of(accumulators: Integers, spec: SumSpec) -> Floats:
    """Give the excess kurtosis of sums (..., terms, width), with ddof=0 and with ddof=1: (..., 2).

    With ddof=1, pandas' correction for the sample's size is applied.  It is 0 if all values are equal.  Numerators and
    denominators are exact, and then rounded once: with D = N * Q - S**2 and the fourth power of deviations
    M = N**3 * F - 4 * N**2 * S * C + 6 * N * S**2 * Q - 3 * S**4 they are M - 3 * D**2 and D**2, and
    (N - 1) * ((N + 1) * M - 3 * (N - 1) * D**2) and (N - 2) * (N - 3) * D**2.
    """
    count, total, square, cube, fourth = power_sums(accumulators, spec)

    def whole(number: int) -> Limbs:
        return Limbs.of_integers(np.full_like(count.digits[..., 0], number))

    squares = total * total
    spread = count * square - squares
    power = count * count * (count * fourth - whole(4) * total * cube)
    power += whole(3) * squares * (spread + count * square)
    below, thrice = spread * spread, whole(3) * spread * spread
    less_one, less_three = count - whole(1), count - whole(3)
    of_sample = less_one * ((count + whole(1)) * power - less_one * thrice)
    of_all = ((power - thrice).to_scaled().ratio(below.to_scaled()), count.signs() > 0)
    sampled = (
        of_sample.to_scaled().ratio((below * (count - whole(2)) * less_three).to_scaled()),
        less_three.signs() > 0,
    )
    equal = spread.signs() == 0
    return np.concatenate(
        [np.where(defined, np.where(equal, 0.0, ratio), np.nan) for ratio, defined in (of_all, sampled)], axis=-1
    )


def power_sums(accumulators: Integers, spec: SumSpec) -> list[Limbs]:
    """Give N, S, and the sums of squares, cubes and fourth powers, of sums (..., terms, width): (..., 1)."""
    first = [
        (Limbs(accumulators[..., :1, columns], window.low), columns) for window, _, columns in spec.layout.measures()
    ]
    (count, _), (total, columns), (square, _) = first
    cube, fourth = (
        Limbs(accumulators[..., parts, columns].sum(axis=-2)[..., None, :], total.low)
        for parts in (slice(1, 5), slice(5, 11))
    )
    return [count, total, square, cube, fourth]


@dataclass(frozen=True)
class CategoryMoments:
    """The number of categories that count, and exact sums over these of one number each, such as the mean.

    Parameters
    ----------
    number : Limbs
        Number K of categories that count (..., numbers), or the sum of their weights.
    first, second : Limbs
        Sum of the numbers and sum of their squares, each multiplied by the category's weight, if there are weights.
    """

    number: Limbs
    first: Limbs
    second: Limbs

    @classmethod
    def of(
        cls,
        ops: Ops,
        numbers: Floats,
        counted: NDArray[np.bool_],
        weights: Floats | None = None,
        groups: NDArray[np.int32] | None = None,
        n_groups: int = 1,
    ) -> Self:
        """Sum the finite numbers of the categories that are `counted`, by weight, over the first axis.

        With `groups`, the categories of each group are summed separately: (n_groups, ...).
        """
        counted = counted & np.isfinite(numbers)
        shape = numbers.shape[1:] if groups is None else (n_groups, *numbers.shape[1:])
        size = math.prod(numbers.shape[1:])
        cells = ops.xp.arange(size, dtype=np.int32).reshape(numbers.shape[1:])
        if groups is not None:
            cells = groups.reshape(-1, *[1] * cells.ndim) * np.int32(size) + cells
        codes = np.where(counted, cells, np.int32(MISSING)).ravel()
        # Numbers of categories that do not count may be NaN, which an exact sum cannot hold.
        values, weight = (None if each is None else np.where(counted, each, 0.0).ravel() for each in (numbers, weights))
        windows = [
            digit_window(extent) for extent in ops.extents(values, weight, (1, 2) if weight is None else (0, 1, 2))
        ]
        layout = Layout(Window(), *windows) if weight is None else Layout(*windows)
        sums = ops.accumulate(Rows(codes, target=values, weight=weight), SumShape(math.prod(shape), layout=layout))
        digits = sums[:-2, 0, 0].reshape(*shape, -1)
        return cls(*(Limbs(digits[..., columns], window.low) for window, _, columns in layout.measures()))

    @classmethod
    def none(cls, ops: Ops, shape: tuple[int, ...]) -> Self:
        """Give the sums over no category."""
        return cls(*(Limbs(ops.zeros((*shape, 1), np.int64)) for _ in fields(cls)))

    @property
    def parts(self) -> tuple[Limbs, Limbs, Limbs]:
        """The three sums."""
        return self.number, self.first, self.second

    def running(self) -> "CategoryMoments":
        """Give the running sums before each index of the first axis."""
        sums = (Limbs(np.cumsum(part.digits, axis=0) - part.digits, part.low) for part in self.parts)
        return CategoryMoments(*sums)

    def at(self, indices: Array) -> "CategoryMoments":
        """Pick by index along the first axis."""
        return CategoryMoments(*(Limbs(part.digits[indices], part.low) for part in self.parts))

    def changed(self, added: "CategoryMoments", removed: "CategoryMoments") -> "CategoryMoments":
        """Add some categories and remove others."""
        changes = zip(self.parts, added.parts, removed.parts, strict=True)
        return CategoryMoments(*(part + gain - loss for part, gain, loss in changes))

    def of_numbers(self, which: slice) -> "CategoryMoments":
        """Give the sums of some of the numbers."""
        return CategoryMoments(*(Limbs(part.digits[..., which, :], part.low) for part in self.parts))

    @cached_property
    def k(self) -> Floats:
        """The number of categories K."""
        return self.number.to_floats()

    @cached_property
    def mean(self) -> Floats:
        """The mean of the category means."""
        return quotient(self.first, self.number)

    @cached_property
    def mean_square(self) -> Scaled:
        """The mean of the squares; zero if no category counts."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.second.to_scaled().over(self.k).where(self.k > 0)

    def between(self, less: float) -> Scaled:
        """Give the variance of the category means with the denominator K - less; zero unless this is positive."""
        spread = deviation(self.number, self.first, self.second)
        with np.errstate(divide="ignore", invalid="ignore"):
            return spread.over(self.k).over(self.k - less).where(self.k - less > 0)

    def about(self, center: Floats) -> Scaled:
        """Give the sum over categories of (mean - center)**2, exact and then rounded once."""
        exact = Limbs.of_floats(np.where(np.isfinite(center), center, 0.0))
        cross = exact * self.first
        return (self.second - cross - cross + exact * exact * self.number).to_scaled()
