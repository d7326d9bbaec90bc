"""Statistics of a category: those that its sums give, and those that its values in order give."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cpu_fallback.exact import Floats, Scaled, cube_parts
from cpu_fallback.types import Array
from gpu_encode.errors.parameters import check_option
from gpu_encode.errors.statistics import cube_out_of_range, misshapen_statistic
from gpu_encode.formulas.deviations import plain, skewness, square_root
from gpu_encode.formulas.mergeable import MergeableStatistic
from gpu_encode.formulas.ranges import range_of
from gpu_encode.formulas.statistic import Context, Needs, OrderStatistics, Statistic
from gpu_encode.formulas.statistic_names import OF_LABELS, check_statistics, has_terms, is_ordered, name_of, union_of
from gpu_encode.ops import Ops, holding
from gpu_encode.sums.moments import Moments

OF_SQUARES = ("var", "std", "sem", "skew")
# Cubes of smaller and of larger numbers leave the range in which their parts are exact.
LEAST_CUBED, LARGEST_CUBED = 1e-90, 1e100
OWNER = "StatisticEncoder"


class Summaries(Statistic):
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
    pairs : list of list of list, optional
        Statistics by entry, then target, instead of the same for all; `statistics` are then all of them.
    entry : int, optional
        Which entry it is read of, where there are pairs.
    summed : list, optional
        Statistics that the sums of the target are made for, of which it reads some; None for its own.
    """

    def __init__(
        self,
        statistics: Any = ("mean",),
        ddof: int = 1,
        of_columns: bool = False,
        pairs: Any = None,
        entry: int | None = None,
        summed: Any = None,
    ) -> None:
        self.statistics = statistics
        self.ddof = ddof
        self.of_columns = of_columns
        self.pairs = pairs
        self.entry = entry
        self.summed = summed

    def of_entry(self, number: int) -> "Summaries":
        """Give the statistics of one key."""
        return Summaries(**self.get_params(deep=False) | {"entry": number}) if self.pairs is not None else self

    def of_target(self, number: int) -> "Summaries":
        """Give the statistics of one column of values: by the key, or all that some key asks for."""
        if self.pairs is None:
            return self
        summed = union_of([own[number] for own in self.pairs])
        own = summed if self.entry is None else self.pairs[self.entry][number]
        return Summaries(own, self.ddof, self.of_columns, summed=summed)

    @property
    def first_target(self) -> int:
        """The first column of values that the key has a statistic of."""
        if self.pairs is None or self.entry is None:
            return 0
        return next(number for number, own in enumerate(self.pairs[self.entry]) if own)

    @property
    def _sums(self) -> Any:
        """Statistics that the sums of the target are made for."""
        return self.statistics if self.summed is None else self.summed

    @property
    def names_targets(self) -> bool:
        """Whether a single target is named as well."""
        return bool(self.of_columns)

    @property
    def needs(self) -> Needs:
        """What is asked of the sums and of the target: labels have no order, and no cubes."""
        cubes = "skew" in self._sums
        # The value itself, the parts of its cube, and the terms of the user's statistics.
        terms = 1 + 4 * cubes + sum(len(each.terms) for each in self._sums if isinstance(each, MergeableStatistic))
        in_order = any(is_ordered(each) for each in self.statistics)
        return Needs(
            squares=any(callable(each) or each in OF_SQUARES for each in self._sums),
            cubes=cubes,
            totals="sum" in self._sums,
            table=in_order,
            distribution=in_order,
            rows=True,
            terms=terms,
            target_kinds=("continuous",) if in_order or terms > 1 else Needs().target_kinds,
        )

    def terms(self, ops: Ops, values: list[Array], present: Array | None) -> list[Array]:
        """Give the value itself, the parts of its cube, and the terms of the user's statistics."""
        found = list(values)
        if self.needs.cubes:
            numbers = ops.cast(values[0], np.float64)
            size = np.abs(numbers)
            beyond = (size > LARGEST_CUBED) | ((size < LEAST_CUBED) & (size > 0))
            if present is not None:
                beyond &= present != 0
            if bool(beyond.any()):
                row = int(np.flatnonzero(beyond)[0])
                raise cube_out_of_range(row, numbers[row].item())
            found += cube_parts(numbers)
        for each in self._sums:
            if isinstance(each, MergeableStatistic):
                found += each.of_values(ops, values[0], present)
        return found

    @property
    def asked(self) -> str:
        """What the user asked for that no sums give."""
        return f"statistics={[each for each in self.statistics if is_ordered(each)]!r}"

    def check_targets(self, owner: str, kinds: Sequence[str]) -> None:
        """Raise ValueError for labels, where a statistic is asked for that puts values in order."""
        for kind in kinds:
            if kind not in self.needs.target_kinds:
                numeric = next(each for each in self.statistics if is_ordered(each) or has_terms(each))
                raise ValueError(
                    f"Unknown label type: {numeric!r} of {owner} needs a continuous target, but y is {kind}. Pass "
                    'target_type="continuous" if its labels are numbers, or take statistics of sums: '
                    f"{', '.join(OF_LABELS)}."
                )

    def check(self) -> None:
        """Raise ValueError for statistics that there are not, or that are listed twice."""
        for own in [self.statistics] if self.pairs is None else [own for each in self.pairs for own in each if own]:
            check_statistics(own)
        check_option(OWNER, "ddof", self.ddof, (0, 1))

    def suffixes(self) -> list[str]:
        """Names of the statistics."""
        return [f"_{name_of(each)}" for each in self.statistics]

    def ranges(self, least: float, largest: float) -> list[tuple[str, float, float]]:
        """Give the range of each statistic."""
        return [(f"the statistic {name_of(each)!r}", *range_of(each, least, largest)) for each in self.statistics]

    def root(self, total: Moments) -> Floats:
        """Statistics of all that is visible; of the counts and sums 0, since no row has such a category."""
        nothing = np.zeros_like(total.mean)
        codes = [nothing if each in ("count", "sum") else self._read(each, total) for each in self.statistics]
        return together(codes) if codes else nothing[..., :0]

    def codes(self, seen: Moments, context: Context, mu: Floats) -> Floats:  # noqa: ARG002
        """Give the statistics of what is seen."""
        codes = [self._read(each, seen) for each in self.statistics]
        return together(codes) if codes else seen.mean[..., :0]

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
        place = 4 * self.needs.cubes
        for each in self._sums:
            if each == statistic:
                break
            place += len(each.terms) if isinstance(each, MergeableStatistic) else 0
        return place

    def _variance(self, seen: Moments) -> Scaled:
        return seen.sample_variance if self.ddof else seen.variance

    def _enough(self, seen: Moments) -> Any:
        return (seen.less_one if self.ddof else seen.n) > 0


def together(columns: list[Floats]) -> Floats:
    """Put statistics (..., targets) side by side, those of one target one after the other."""
    return np.stack(columns, axis=-1).reshape(*columns[0].shape[:-1], -1)


def own_statistic(function: "Callable[..., Any]", count: Floats, mean: Floats, variance: Floats) -> Floats:
    """Call a function of the user's, on the host, and see that it gives a number for every category."""
    ops = holding(mean)
    # Of copies, which it may write to: other statistics are read off the same arrays.
    given = [ops.to_host(each).copy() for each in (count, mean, variance)]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found = function(*given)
    if getattr(found, "shape", None) != mean.shape:
        raise misshapen_statistic(function.__name__, mean.shape, getattr(found, "shape", type(found).__name__))
    return ops.to_device(found.astype(np.float64))
