"""Which columns hold the exact sums of a target: the digits that they touch, or one whole number."""

from dataclasses import dataclass
from typing import Self

from cpu_fallback.types import Array, Layout, Rows, Window, digit_window
from gpu_encode.ops import Ops
from gpu_encode.sums.category_sums import MOST_WHOLE, SumSpec, window_of_both
from gpu_encode.sums.targets import NO_TARGET, WHOLE_LIMIT, Target
from gpu_encode.sums.terms import backend_for


def choose_spec(ops: Ops, target: Target, weight: Array | None, squares: bool, drop: str | None) -> SumSpec:
    """Choose the columns that hold the exact sums of this target."""
    n_rows = len(target.values)
    if target.kind == NO_TARGET or target.is_classification:
        first = 1 if target.kind in (NO_TARGET, "binary") or drop == "first" else 0
        if target.is_classification and first >= target.n_classes:
            raise ValueError('drop="first" leaves no column: y holds one class only. Choose drop=None.')
        return SumSpec(Layout(*windows(ops, None, weight, 0, n_rows)), True, first)
    ops = backend_for(ops, target.values)
    return SumSpec(Layout(*windows(ops, target.values, weight, 2 if squares else 1, n_rows)), False)


def windows(ops: Ops, target: Array | None, weight: Array | None, highest: int, n_rows: int) -> list[Window]:
    """Find the digit positions that sums of weight * target**power touch, for powers up to the highest.

    With one to spare for carries; one int64 where that holds the sum.
    """
    powers = [power for power in range(highest + 1) if not is_whole(target, weight, power, n_rows)]
    # In one go: on a device every answer is waited for.
    extents = dict(zip(powers, ops.extents(target, weight, tuple(powers)) if powers else [], strict=True))
    return [digit_window(extents[power]) if power in extents else Window() for power in range(highest + 1)]


def is_whole(target: Array | None, weight: Array | None, power: int, n_rows: int) -> bool:
    """Whether one int64 holds the sum of weight * target**power for certain."""
    bound = whole_bound(target, weight, power, n_rows)
    return bound is not None and bound < WHOLE_LIMIT


def whole_bound(target: Array | None, weight: Array | None, power: int, n_rows: int) -> int | None:
    """Give a number that no sum of weight * target**power over some rows exceeds; None where there are fractions."""
    factors = [factor for factor in (weight, *[target] * power) if factor is not None]
    if any(factor.dtype.kind != "i" for factor in factors):
        return None
    bound = max(n_rows, 1)
    for factor in factors:
        bound *= max(abs(int(factor.max())), abs(int(factor.min())))
    return bound


@dataclass(frozen=True)
class DigitSpan:
    """Columns that hold the sums of any of the rows of a target, which a sum of all of them may not need.

    Parameters
    ----------
    layout : Layout
    bounds : tuple of int
        For each sum, a number that it cannot exceed where it is one whole number.
    """

    layout: Layout
    bounds: tuple[int, ...]

    @classmethod
    def of(cls, rows: Rows, layout: Layout) -> Self:
        """Find the span of some rows, whose sums are kept in `layout`."""
        measures = layout.measures()
        bounds = tuple(
            whole_bound(rows.target, rows.weight, power, len(rows)) or 0 if window.whole else 0
            for window, power, _ in measures
        )
        return cls(common_layout(layout, layout, bounds), bounds)

    def __add__(self, other: "DigitSpan") -> "DigitSpan":
        bounds = tuple(mine + theirs for mine, theirs in zip(self.bounds, other.bounds, strict=True))
        return DigitSpan(common_layout(self.layout, other.layout, bounds), bounds)


def common_layout(one: Layout, other: Layout, bounds: tuple[int, ...]) -> Layout:
    """Give the layout for the sums of both; one whole number where the canonical sums of all such rows are."""
    pairs = zip(one.measures(), other.measures(), bounds, strict=True)
    return Layout(
        *(
            a if a.whole and b.whole and bound < MOST_WHOLE else window_of_both(a, b)
            for (a, _, _), (b, _, _), bound in pairs
        )
    )
