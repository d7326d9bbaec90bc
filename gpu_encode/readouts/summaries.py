"""Statistics of a category: those that its sums give, and those that its values in order give."""

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import numpy as np

from cpu_fallback.exact import Floats, Scaled, cube_parts
from gpu_encode import errors
from gpu_encode.cells import Array
from gpu_encode.errors.statistics import (
    cube_out_of_range,
    misshapen_statistic,
    nameless_statistic,
    no_statistics,
    number_out_of_range,
    order_statistic_of_labels,
    repeated_statistic,
    unknown_statistic,
)
from gpu_encode.moments import Moments
from gpu_encode.ops import Ops
from gpu_encode.readouts import order_statistics
from gpu_encode.readouts.base import Context, OrderStatistics, Readout
from gpu_encode.readouts.mergeable import MergeableStatistic
from gpu_encode.readouts.ranges import range_of

OF_SUMS = ("count", "sum", "mean", "var", "std", "sem", "skew")
NAMES = (*OF_SUMS, *order_statistics.NAMES)
OF_SQUARES = ("var", "std", "sem", "skew")
# Cubes of larger numbers leave the range in which their parts are exact.
LARGEST_CUBED = 1e100
OWNER = "StatisticEncoder"


class Summaries(Readout):
    """Statistics of each category, a column each.

    Parameters
    ----------
    statistics : sequence of str or callable, default=("mean",)
        "count", "sum", "mean", "var", "std", "sem" (standard error of the mean, std / sqrt(count)), "skew"; "min",
        "max", "median", ("quantile", q), "nunique", "mode", ("share", threshold); functions of arrays of counts, means
        and variances; or `MergeableStatistic`.
    ddof : {0, 1}, default=1
        What variances have in their denominator, N - ddof; without such rows they are NaN.
    of_columns : bool, default=False
        Whether the targets are columns of X, whose names are then part of every name.
    kept : list of bool, optional
        Which statistics are given, by key, then target, then statistic; None for all of them.
    """

    needs_rows = True

    def __init__(
        self, statistics: Any = ("mean",), ddof: int = 1, of_columns: bool = False, kept: list[bool] | None = None
    ) -> None:
        self.statistics = statistics
        self.ddof = ddof
        self.of_columns = of_columns
        self.kept = kept

    @property
    def names_targets(self) -> bool:  # type: ignore[override]
        """Whether a single target is named as well."""
        return bool(self.of_columns)

    @property
    def needs_squares(self) -> bool:  # type: ignore[override]
        """Whether sums of squares are asked for."""
        return any(callable(each) or each in OF_SQUARES for each in self.statistics)

    @property
    def needs_cubes(self) -> bool:  # type: ignore[override]
        """Whether sums of cubes are asked for."""
        return "skew" in self.statistics

    @property
    def n_terms(self) -> int:  # type: ignore[override]
        """The value itself, the parts of its cube, and the terms of the user's statistics."""
        own = sum(len(each.terms) for each in self.statistics if isinstance(each, MergeableStatistic))
        return 1 + 4 * self.needs_cubes + own

    def terms(self, ops: Ops, values: list[Array], present: Array | None) -> list[Array]:
        """Give the value itself, the parts of its cube, and the terms of the user's statistics."""
        found = list(values)
        if self.needs_cubes:
            numbers = ops.cast(values[0], np.float64)
            beyond = np.abs(numbers) > LARGEST_CUBED
            if bool(beyond.any()):
                row = int(np.flatnonzero(beyond)[0])
                raise cube_out_of_range(row, numbers[row].item())
            found += cube_parts(numbers)
        for each in self.statistics:
            if isinstance(each, MergeableStatistic):
                found += each.of_values(ops, values[0], present)
        return found

    @property
    def needs_totals(self) -> bool:  # type: ignore[override]
        """Whether sums are asked for."""
        return "sum" in self.statistics

    @property
    def needs_distribution(self) -> bool:  # type: ignore[override]
        """Whether statistics are asked for that no sums give."""
        return any(is_ordered(each) for each in self.statistics)

    @property
    def needs_table(self) -> bool:  # type: ignore[override]
        """Whether codes follow from the values of categories in order, which no sums of a row say."""
        return self.needs_distribution

    @property
    def target_kinds(self) -> tuple[str, ...]:  # type: ignore[override]
        """Kinds of targets: labels have no order, and no cubes."""
        return ("continuous",) if self.needs_distribution or self.n_terms > 1 else Readout.target_kinds

    @property
    def asked(self) -> str:
        """What the user asked for that no sums give."""
        return f"statistics={[each for each in self.statistics if is_ordered(each)]!r}"

    def check_targets(self, owner: str, kinds: Sequence[str]) -> None:
        """Raise ValueError for labels, where a statistic is asked for that puts values in order."""
        for kind in kinds:
            if kind not in self.target_kinds:
                numeric = next(each for each in self.statistics if is_ordered(each) or has_terms(each))
                raise order_statistic_of_labels(owner, numeric, kind, OF_SUMS[:-1])

    def check(self) -> None:
        """Raise ValueError for statistics that there are not, or that are listed twice."""
        if isinstance(self.statistics, str) or not isinstance(self.statistics, (list, tuple)) or not self.statistics:
            raise no_statistics(self.statistics, NAMES)
        for each in self.statistics:
            if callable(each):
                if not str(getattr(each, "__name__", "<")).isidentifier():
                    raise nameless_statistic(each)
            elif isinstance(each, (tuple, list)) and len(each) == 2 and each[0] in order_statistics.WITH_NUMBER:
                check_number(each)
            elif isinstance(each, MergeableStatistic):
                each.check()
            elif not isinstance(each, str) or each not in NAMES:
                raise unknown_statistic(each, NAMES)
        names = self.suffixes()
        if repeated := [name for name in names if names.count(name) > 1]:
            raise repeated_statistic(repeated[0][1:])
        errors.check_option(OWNER, "ddof", self.ddof, (0, 1))

    def suffixes(self) -> list[str]:
        """Names of the statistics."""
        return [f"_{name_of(each)}" for each in self.statistics]

    def ranges(self, least: float, largest: float) -> list[tuple[str, float, float]]:
        """Give the range of each statistic."""
        return [(f"the statistic {name_of(each)!r}", *range_of(each, least, largest)) for each in self.statistics]

    def root(self, total: Moments) -> Floats:
        """Statistics of all that is visible; of the counts and sums 0, since no row has such a category."""
        nothing = np.zeros_like(total.mean)
        return together([nothing if each in ("count", "sum") else self._read(each, total) for each in self.statistics])

    def codes(self, seen: Moments, context: Context, mu: Floats) -> Floats:  # noqa: ARG002
        """Give the statistics of what is seen."""
        return together([self._read(each, seen) for each in self.statistics])

    def ranked(self, ops: Ops, seen: Moments, total: Moments, values: OrderStatistics) -> tuple[Floats, Floats]:
        """Give the statistics of what is seen, and of what nobody sees."""
        codes, roots = [], []
        for each in self.statistics:
            if is_ordered(each):
                codes.append(ops.to_device(values.of_category(each))[..., None])
                found = values.of_everything(each)
                roots.append(ops.to_device(np.zeros_like(found) if each == "nunique" else found)[..., None])
            else:
                codes.append(self._read(each, seen))
                roots.append(np.zeros_like(total.mean) if each in ("count", "sum") else self._read(each, total))
        return together(codes), together(roots)

    def _read(self, statistic: "str | Callable[..., Any]", seen: Moments) -> Floats:
        """Read one statistic off moments: (..., targets)."""
        count = np.broadcast_to(seen.n, seen.mean.shape)
        if isinstance(statistic, MergeableStatistic):
            return statistic.of_sums(seen, self._first_term(statistic))
        if callable(statistic):
            return own_statistic(statistic, count, seen.mean, plain(self._variance(seen), self._enough(seen)))
        if statistic in ("count", "sum", "mean"):
            return {"count": count, "sum": seen.total, "mean": seen.mean}[statistic]
        return self._of_powers(statistic, count, seen)

    def _of_powers(self, statistic: str, count: Floats, seen: Moments) -> Floats:
        """Read a statistic off sums of squares and cubes."""
        if statistic == "skew":
            return skewness(seen, self.ddof)
        if statistic == "var":
            return plain(self._variance(seen), self._enough(seen))
        deviation = plain(square_root(self._variance(seen)), self._enough(seen))
        with np.errstate(divide="ignore", invalid="ignore"):
            return deviation if statistic == "std" else deviation / np.sqrt(count)

    def _first_term(self, statistic: MergeableStatistic) -> int:
        """Place of the first term of a statistic among those beside the value itself."""
        place = 4 * self.needs_cubes
        for each in self.statistics:
            if each is statistic:
                break
            place += len(each.terms) if isinstance(each, MergeableStatistic) else 0
        return place

    def _variance(self, seen: Moments) -> Scaled:
        return seen.sample_variance if self.ddof else seen.variance

    def _enough(self, seen: Moments) -> Any:
        return (seen.less_one if self.ddof else seen.n) > 0


def is_ordered(statistic: Any) -> bool:
    """Whether a statistic follows from the values in order, and not from their sums."""
    return isinstance(statistic, (tuple, list)) or statistic in order_statistics.NAMES


def has_terms(statistic: Any) -> bool:
    """Whether a statistic follows from further sums of numbers."""
    return isinstance(statistic, MergeableStatistic) or statistic == "skew"


def skewness(seen: Moments, ddof: int) -> Floats:
    """Third standardized moment, with pandas' correction for the sample's size where ddof is 1; 0 of equal values."""
    spread, n = seen.deviation, np.broadcast_to(seen.n, seen.mean.shape)
    root = square_root(spread)
    below = Scaled(spread.fraction * root.fraction, spread.exponent + root.exponent)
    found = np.where(spread.fraction == 0, 0.0, seen.third.ratio(below))
    if not ddof:
        return np.where(n > 0, found, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(n > 2, found * (np.sqrt(n * seen.less_one) / (n - 2.0)), np.nan)


def name_of(statistic: Any) -> str:
    """Name of a statistic, as output columns have it."""
    if isinstance(statistic, MergeableStatistic):
        return str(statistic.name)
    if callable(statistic):
        return str(statistic.__name__)
    if isinstance(statistic, str):
        return statistic
    kind, number = statistic
    short = f"{float(number):g}"
    # Six digits, unless they are those of another number.
    shown = short if float(short) == number else str(number)
    return f"{kind}_{shown}" if kind == "quantile" else f"{kind}_above_{shown}"


def check_number(statistic: Any) -> None:
    """Raise ValueError for a quantile of no share, or a threshold that is no number."""
    kind, number = statistic
    if not is_finite(number) or (kind == "quantile" and not 0.0 <= float(number) <= 1.0):
        raise number_out_of_range(statistic)


def is_finite(number: Any) -> bool:
    """Whether something is a number that float64 has room for."""
    try:
        return isinstance(number, Real) and not isinstance(number, bool) and bool(np.isfinite(float(number)))
    except OverflowError:
        return False


def together(columns: list[Floats]) -> Floats:
    """Put statistics (..., targets) side by side, those of one target one after the other."""
    return np.stack(columns, axis=-1).reshape(*columns[0].shape[:-1], -1)


def plain(number: Scaled, where: Any) -> Floats:
    """Numbers as float64, NaN elsewhere."""
    one = Scaled(np.ones_like(number.fraction), np.zeros_like(number.exponent))
    return np.where(where, number.ratio(one), np.nan)


def square_root(number: Scaled) -> Scaled:
    """Square root, rounded once, of numbers whose exponents may be beyond those of float64."""
    odd = number.exponent & 1
    return Scaled(np.sqrt(np.where(odd == 1, 2.0 * number.fraction, number.fraction)), (number.exponent - odd) >> 1)


def own_statistic(function: "Callable[..., Any]", count: Floats, mean: Floats, variance: Floats) -> Floats:
    """Call a function of the user's, and see that it gives a number for every category."""
    # Of copies, which it may write to: other statistics are read off the same arrays.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found = function(count.copy(), mean.copy(), variance)
    if getattr(found, "shape", None) != mean.shape:
        raise misshapen_statistic(function.__name__, mean.shape, getattr(found, "shape", type(found).__name__))
    numbers: Floats = found.astype(np.float64)
    return numbers
