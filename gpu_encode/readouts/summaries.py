"""Statistics of a category: those that its sums give, and those that its values in order give."""

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import numpy as np

from cpu_fallback.exact import Floats, Scaled
from gpu_encode import errors
from gpu_encode.distributions import Distribution
from gpu_encode.errors.statistics import (
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
from gpu_encode.readouts.base import Context, Readout
from gpu_encode.readouts.order_statistics import Sorted

OF_SUMS = ("count", "sum", "mean", "var", "std", "sem")
NAMES = (*OF_SUMS, *order_statistics.NAMES)
OF_SQUARES = ("var", "std", "sem")
OWNER = "StatisticEncoder"


class Summaries(Readout):
    """Statistics of each category, a column each.

    Parameters
    ----------
    statistics : sequence of str or callable, default=("mean",)
        "count", "sum", "mean", "var", "std", "sem" (standard error of the mean, std / sqrt(count)); "min", "max",
        "median", ("quantile", q), "nunique", "mode", ("share", threshold); or functions of arrays of counts, means and
        variances.
    ddof : {0, 1}, default=1
        What variances have in their denominator, N - ddof; without such rows they are NaN.
    of_columns : bool, default=False
        Whether the targets are columns of X, whose names are then part of every name.
    """

    needs_rows = True

    def __init__(self, statistics: Any = ("mean",), ddof: int = 1, of_columns: bool = False) -> None:
        self.statistics = statistics
        self.ddof = ddof
        self.of_columns = of_columns

    @property
    def names_targets(self) -> bool:  # type: ignore[override]
        """Whether a single target is named as well."""
        return bool(self.of_columns)

    @property
    def needs_squares(self) -> bool:  # type: ignore[override]
        """Whether sums of squares are asked for."""
        return any(callable(each) or each in OF_SQUARES for each in self.statistics)

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
        """Whether codes follow from a table alone."""
        return self.needs_distribution

    @property
    def target_kinds(self) -> tuple[str, ...]:  # type: ignore[override]
        """Kinds of targets: labels have no order."""
        return ("continuous",) if self.needs_distribution else Readout.target_kinds

    @property
    def asked(self) -> str:
        """What the user asked for that no sums give."""
        return f"statistics={[each for each in self.statistics if is_ordered(each)]!r}"

    def check_targets(self, owner: str, kinds: Sequence[str]) -> None:
        """Raise ValueError for labels, where a statistic is asked for that puts values in order."""
        for kind in kinds:
            if kind not in self.target_kinds:
                raise order_statistic_of_labels(owner, next(filter(is_ordered, self.statistics)), kind, OF_SUMS)

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
            elif not isinstance(each, str) or each not in NAMES:
                raise unknown_statistic(each, NAMES)
        names = self.suffixes()
        if repeated := [name for name in names if names.count(name) > 1]:
            raise repeated_statistic(repeated[0][1:])
        errors.check_option(OWNER, "ddof", self.ddof, (0, 1))

    def suffixes(self) -> list[str]:
        """Names of the statistics."""
        return [f"_{name_of(each)}" for each in self.statistics]

    def root(self, total: Moments) -> Floats:
        """Statistics of all that is visible; of the counts and sums 0, since no row has such a category."""
        nothing = np.zeros_like(total.mean)
        return together([nothing if each in ("count", "sum") else self._read(each, total) for each in self.statistics])

    def codes(self, seen: Moments, context: Context, mu: Floats) -> Floats:  # noqa: ARG002
        """Give the statistics of what is seen."""
        return together([self._read(each, seen) for each in self.statistics])

    def ranked(self, ops: Ops, seen: Moments, total: Moments, values: Distribution) -> tuple[Floats, Floats]:
        """Give the statistics of all categories, and of what is in none of them."""
        by_category, of_all = Sorted.by_category(values, len(seen.n) - 2), Sorted.of_all(values)
        codes, roots = [], []
        for each in self.statistics:
            if is_ordered(each):
                codes.append(ops.to_device(by_category.statistic(each))[..., None])
                found = of_all.statistic(each)[0]
                roots.append(ops.to_device(np.zeros_like(found) if each == "nunique" else found)[..., None])
            else:
                codes.append(self._read(each, seen))
                roots.append(np.zeros_like(total.mean) if each in ("count", "sum") else self._read(each, total))
        return together(codes), together(roots)

    def _read(self, statistic: "str | Callable[..., Any]", seen: Moments) -> Floats:
        """Read one statistic off moments: (..., targets)."""
        count = np.broadcast_to(seen.n, seen.mean.shape)
        if callable(statistic):
            return own_statistic(statistic, count, seen.mean, plain(self._variance(seen), self._enough(seen)))
        if statistic == "count":
            return count
        if statistic in ("sum", "mean"):
            return seen.total if statistic == "sum" else seen.mean
        if statistic == "var":
            return plain(self._variance(seen), self._enough(seen))
        deviation = plain(square_root(self._variance(seen)), self._enough(seen))
        with np.errstate(divide="ignore", invalid="ignore"):
            return deviation if statistic == "std" else deviation / np.sqrt(count)

    def _variance(self, seen: Moments) -> Scaled:
        return seen.sample_variance if self.ddof else seen.variance

    def _enough(self, seen: Moments) -> Any:
        return (seen.less_one if self.ddof else seen.n) > 0


def is_ordered(statistic: Any) -> bool:
    """Whether a statistic follows from the values in order, and not from their sums."""
    return isinstance(statistic, (tuple, list)) or statistic in order_statistics.NAMES


def name_of(statistic: Any) -> str:
    """Name of a statistic, as output columns have it."""
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
