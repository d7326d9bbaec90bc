"""The statistics of `StatisticEncoder`: some follow from sums, others from sorted values."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, takewhile
from types import MappingProxyType
from typing import Any

import numpy as np
from typing_extensions import TypeAliasType

from cpu_fallback.exact import Floats, Scaled, cube_parts, fourth_parts
from cpu_fallback.types import Array
from gpu_encode.formulas.mergeable import MergeableStatistic, call_on_host
from gpu_encode.formulas.statistic import Context, OrderStatistics, Statistic, side_by_side
from gpu_encode.formulas.statistic_names import (
    DATES_ALONE,
    OF_DATES,
    OF_LABELS,
    OF_TEXT,
    SECONDS_SINCE_LAST,
    VALUES,
    check_statistics,
    has_terms,
    is_ordered,
    name_of,
    range_of,
    union_of,
)
from gpu_encode.seam.ops import Ops, holding
from gpu_encode.sums.moments import Moments, Needs
from gpu_encode.sums.targets import LABELLED
from gpu_encode.words.annotations import Column, Key
from gpu_encode.words.errors.parameters import check_number, check_option
from gpu_encode.words.errors.tables import NO_NUMBERS
from gpu_encode.words.errors.values import RowError

OF_SQUARES = ("var", "std", "sem", "skew", "kurt")
# The least and the largest size of numbers of which these parts are exact.
CUBED = ("skew", "cubes", 1e-90, 1e100)
TO_THE_FOURTH = ("kurt", "fourth powers", 1e-55, 1e75)
OWNER = "StatisticEncoder"

# Values of the parameter `statistics`: names, names with a number, functions, or lists of these by key and column.
OneStatistic = TypeAliasType("OneStatistic", str | tuple[str, float] | Callable[..., object])
Statistics = TypeAliasType("Statistics", Sequence[OneStatistic] | Mapping[Key, Mapping[Column, Sequence[OneStatistic]]])


@dataclass(eq=False, repr=False)
class Summaries(Statistic):
    """Statistics of each category; each statistic gives a column.

    Parameters
    ----------
    statistics : sequence of str or callable, default=("mean",)
        "count", "sum", "mean", "var", "std", "sem" (standard error of the mean, std / sqrt(count)), "skew", "kurt";
        "min", "max", "median", ("quantile", q), "nunique", "mode", ("share", threshold); of dates "first", "last" and
        "seconds_since_last"; functions of arrays of counts, means and variances; or `MergeableStatistic`.
    ddof : {0, 1}, default=1
        Variances have the denominator N - ddof, and are NaN if it is not above 0.
    of_columns : bool, default=False
        Whether the targets are columns of X; if so, their names are part of every output name.
    pairs : list of list of list, optional
        Statistics by key, then by target, if these differ; `statistics` then holds every statistic that occurs.
    entry : int, optional
        Number of the key, if there are `pairs`.
    summed : list, optional
        All statistics that are computed from the sums of the target, if other keys have other statistics.
    undefined : {"nan", "prior"} or float, default="nan"
        What replaces a statistic of visible rows that is not defined, such as the variance of one row.
    """

    parameters_before = MappingProxyType({"undefined": "nan"})

    statistics: Any = ("mean",)
    ddof: int = 1
    of_columns: bool = False
    pairs: Any = None
    entry: int | None = None
    summed: Any = None
    undefined: Any = "nan"

    def of_key(self, number: int) -> "Summaries":
        """Give the statistics of one key."""
        return Summaries(**self.get_params(deep=False) | {"entry": number}) if self.pairs is not None else self

    def of_target(self, number: int) -> "Summaries":
        """Give the statistics of one column of values: the statistics of the key or, without a key, of all keys."""
        if self.pairs is None:
            return self
        summed = union_of([per_target[number] for per_target in self.pairs])
        statistics = summed if self.entry is None else self.pairs[self.entry][number]
        return Summaries(statistics, self.ddof, self.of_columns, summed=summed, undefined=self.undefined)

    @property
    def first_target(self) -> int:
        """The first column of values for which the key has a statistic."""
        if self.pairs is None or self.entry is None:
            return 0
        return next(number for number, statistics in enumerate(self.pairs[self.entry]) if statistics)

    @property
    def _sums(self) -> Any:
        """Statistics that are computed from the sums of the target."""
        return self.statistics if self.summed is None else self.summed

    @property
    def names_targets(self) -> bool:
        """Whether output names contain the name of the target even if there is only one."""
        return bool(self.of_columns)

    @property
    def needs(self) -> Needs:
        """The sums and targets that the statistics need; labels have neither order statistics nor cubes."""
        summed = self._sums
        fourths = "kurt" in summed
        cubes = fourths or "skew" in summed
        # The value itself, the parts of its powers, and the terms of the user's statistics.
        terms = 1 + 4 * cubes + 6 * fourths + count_terms(summed)
        in_order = any(map(is_ordered, self.statistics))
        return Needs(
            squares=any(callable(statistic) or statistic in OF_SQUARES for statistic in summed),
            cubes=cubes,
            fourths=fourths,
            totals="sum" in summed,
            table=in_order,
            distribution=in_order or SECONDS_SINCE_LAST in self.statistics,
            dates=SECONDS_SINCE_LAST in self.statistics,
            rows=True,
            terms=terms,
            target_kinds=("continuous",) if in_order or terms > 1 else Needs().target_kinds,
        )

    def terms(self, ops: Ops, values: list[Array], present: Array | None) -> list[Array]:
        """Give the value itself, the parts of its powers, and the terms of the user's statistics."""
        terms, needs = list(values), self.needs
        if needs.cubes:
            numbers = ops.cast(values[0], np.float64)
            statistic, powers, least, largest = TO_THE_FOURTH if needs.fourths else CUBED
            size = np.abs(numbers)
            # Outside this range, a power, or the rounding error of a power, does not fit float64.
            beyond = (size > largest) | ((size < least) & (size > 0))
            if present is not None:
                beyond &= present != 0
            if bool(beyond.any()):
                row = int(np.flatnonzero(beyond)[0])
                what = f"{statistic!r} sums {powers} of values from {least:g} up to {largest:g}, but a value is"
                raise RowError(f"{what} {numbers[row].item()!r} in row ", row, ".")
            terms += cube_parts(numbers) + (fourth_parts(numbers) if needs.fourths else [])
        for statistic in self._sums:
            if isinstance(statistic, MergeableStatistic):
                terms += statistic.of_values(ops, values[0], present)
        return terms

    @property
    def asked(self) -> str:
        """The name in messages: the user's statistics that do not follow from sums."""
        return f"statistics={list(filter(is_ordered, self.statistics))!r}"

    def check_targets(self, owner: str, kinds: Sequence[str]) -> None:
        """Raise ValueError for labels, if a statistic takes only numbers."""
        for number, kind in enumerate(kinds):
            if kind in LABELLED:
                continue
            own = self.of_target(number)
            if of_dates := [name for name in DATES_ALONE if name in own.statistics]:
                raise _of_dates_alone(owner, of_dates[0], DATES_ALONE[of_dates[0]])
            if kind not in own.needs.target_kinds:
                numeric = next(name for name in own.statistics if is_ordered(name) or has_terms(name))
                raise ValueError(
                    f"Unknown label type: {numeric!r} of {owner} needs a continuous target, but y is {kind}. Pass "
                    'target_type="continuous" if its labels are numbers, or take statistics of sums: '
                    f"{', '.join(OF_LABELS)}."
                )

    def check_labelled(self, owner: str, column: object, kind: str) -> None:
        """Raise ValueError for statistics that a column of text or dates cannot have."""
        known = OF_TEXT if kind == "text" else OF_DATES
        for statistic in self.statistics:
            if statistic not in known:
                raise _of_numbers_alone(owner, name_of(statistic), column, kind, known)

    def check(self) -> None:
        """Raise ValueError for statistics that do not exist, or that are listed twice."""
        pairs = [[self.statistics]] if self.pairs is None else self.pairs
        for statistics in chain.from_iterable(pairs):
            if statistics or self.pairs is None:
                check_statistics(statistics)
        check_option(OWNER, "ddof", self.ddof, (0, 1))
        if isinstance(self.undefined, str):
            check_option(OWNER, "undefined", self.undefined, ("nan", "prior"))
        else:
            check_number(OWNER, "undefined", self.undefined, low=-math.inf)

    def suffixes(self) -> list[str]:
        """Name the statistics."""
        return [f"_{name_of(statistic)}" for statistic in self.statistics]

    def are_values(self) -> list[bool]:
        """Tell for each statistic whether it is one of the values."""
        return [statistic in VALUES for statistic in self.statistics]

    def ranges(self, least: float, largest: float) -> list[tuple[str, float, float]]:
        """Give the range of each statistic."""
        ranges = [
            (f"the statistic {name_of(statistic)!r}", *range_of(statistic, least, largest))
            for statistic in self.statistics
        ]
        if not isinstance(self.undefined, str):
            ranges.append((f"undefined={self.undefined!r}", float(self.undefined), float(self.undefined)))
        return ranges

    def find_prior(self, total: Moments) -> Floats:
        """Give the statistics of all visible rows."""
        columns = [self._replace(statistic, self._of_everything(statistic, total)) for statistic in self.statistics]
        return side_by_side(columns) if columns else total.mean[..., :0]

    def encode(self, visible: Moments, context: Context, prior: Floats) -> Floats:
        """Give the statistics of the visible rows of each category."""
        columns = [
            self._replace(statistic, self._compute(statistic, visible), prior[..., number :: len(self.statistics)])
            for number, statistic in enumerate(self.statistics)
        ]
        return side_by_side(columns) if columns else visible.mean[..., :0]

    def encode_in_order(
        self, ops: Ops, visible: Moments, total: Moments, values: OrderStatistics
    ) -> tuple[Floats, Floats]:
        """Give the statistics of the visible rows, and those of a category without visible rows."""
        columns, priors = [], []
        for statistic in self.statistics:
            if is_ordered(statistic):
                columns.append(ops.to_device(values.of_category(statistic))[..., None])
                prior = values.of_everything(statistic)
                # No row has an unseen category, so an unseen category has no values.
                priors.append(ops.to_device(np.zeros_like(prior) if statistic == "nunique" else prior)[..., None])
            else:
                priors.append(self._replace(statistic, self._of_everything(statistic, total)))
                columns.append(self._replace(statistic, self._compute(statistic, visible), priors[-1]))
        return side_by_side(columns), side_by_side(priors)

    def _replace(self, statistic: Any, values: Floats, prior: Floats | None = None) -> Floats:
        """Replace numbers of visible rows that are not defined; without a prior, the numbers are the prior."""
        if self.undefined == "nan" or statistic == SECONDS_SINCE_LAST:
            return values
        instead = prior if self.undefined == "prior" else float(self.undefined)
        return values if instead is None else np.where(np.isnan(values), instead, values)

    def _of_everything(self, statistic: "str | Callable[..., Any]", total: Moments) -> Floats:
        """Compute one statistic of all visible rows; counts and sums are 0, since no row has an unseen category."""
        return np.zeros_like(total.mean) if statistic in ("count", "sum") else self._compute(statistic, total)

    def _compute(self, statistic: "str | Callable[..., Any]", visible: Moments) -> Floats:
        """Compute one statistic from moments: (..., targets)."""
        count = np.broadcast_to(visible.n, visible.mean.shape)
        if isinstance(statistic, MergeableStatistic):
            before = count_terms(takewhile(lambda summed: summed != statistic, self._sums))
            return statistic.of_sums(visible, self.needs.terms - 1 - count_terms(self._sums) + before)
        if callable(statistic):
            variance = as_floats(self._variance(visible), self._enough(visible))
            values = call_on_host(statistic, statistic.__name__, (count, visible.mean, variance))
            return holding(visible.mean).to_device(values.astype(np.float64))
        if statistic == SECONDS_SINCE_LAST:
            # Only a row with a date of its own has this statistic.
            return np.full_like(visible.mean, np.nan)
        if statistic in ("count", "sum", "mean"):
            return {"count": count, "sum": visible.total, "mean": visible.mean}[statistic]
        return self._of_powers(statistic, count, visible)

    def _of_powers(self, statistic: str, count: Floats, visible: Moments) -> Floats:
        """Compute a statistic from sums of powers."""
        if statistic == "skew":
            return skewness(visible, self.ddof)
        if statistic == "kurt":
            return visible.kurtosis[..., self.ddof : self.ddof + 1]
        if statistic == "var":
            return as_floats(self._variance(visible), self._enough(visible))
        deviation = as_floats(square_root(self._variance(visible)), self._enough(visible))
        with np.errstate(divide="ignore", invalid="ignore"):
            return deviation if statistic == "std" else deviation / np.sqrt(count)

    def _variance(self, visible: Moments) -> Scaled:
        return visible.sample_variance if self.ddof else visible.variance

    def _enough(self, visible: Moments) -> Any:
        return (visible.less_one if self.ddof else visible.n) > 0


def _of_dates_alone(owner: str, statistic: str, of_numbers: str | None) -> ValueError:
    """Give the error for a statistic of dates that was asked for numbers or labels."""
    instead = f" Take {of_numbers!r} of numbers." if of_numbers else ""
    return ValueError(
        f"{statistic!r} of {owner} is for columns of dates, named by values or in a dict of statistics.{instead}"
    )


def _of_numbers_alone(owner: str, statistic: str, column: object, kind: str, known: Sequence[str]) -> ValueError:
    """Give the error for a statistic of numbers that was asked for a column of text or dates."""
    held = "text" if kind == "text" else "dates"
    return ValueError(
        f"values: column {column!r} holds {held}, for which {owner} has {', '.join(map(repr, known))}; "
        f"{statistic!r} is for numbers. {NO_NUMBERS} Each column may have its own statistics: "
        f'statistics={{"key": {{{column!r}: ["mode"], ...}}}}.'
    )


def count_terms(statistics: Iterable[Any]) -> int:
    """Count the terms of the user's own statistics."""
    return sum(len(statistic.terms) for statistic in statistics if isinstance(statistic, MergeableStatistic))


def skewness(moments: Moments, ddof: int) -> Floats:
    """Give the third standardized moment; with ddof=1, pandas' correction for the sample's size is applied.

    It is 0 if all values are equal.
    """
    squares, n = moments.deviation, np.broadcast_to(moments.n, moments.mean.shape)
    root = square_root(squares)
    denominator = Scaled(squares.fraction * root.fraction, squares.exponent + root.exponent)
    skew = np.where(squares.fraction == 0, 0.0, moments.third.ratio(denominator))
    if not ddof:
        return np.where(n > 0, skew, np.nan)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        product = n * moments.less_one
        root_of_both = np.where(np.isinf(product), np.sqrt(n) * np.sqrt(moments.less_one), np.sqrt(product))
        return np.where(moments.less_two > 0, skew * (root_of_both / moments.less_two), np.nan)


def as_floats(number: Scaled, where: Any = None) -> Floats:
    """Round numbers whose exponents may be beyond those of float64; NaN outside of `where`."""
    rounded = number.ratio(Scaled(np.ones_like(number.fraction), np.zeros_like(number.exponent)))
    return rounded if where is None else np.where(where, rounded, np.nan)


def square_root(number: Scaled) -> Scaled:
    """Give the square roots, rounded once, of numbers whose exponents may be beyond those of float64."""
    odd = number.exponent & 1
    return Scaled(np.sqrt(np.where(odd == 1, 2.0 * number.fraction, number.fraction)), (number.exponent - odd) >> 1)
