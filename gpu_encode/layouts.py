"""Which columns hold the exact sums of a target: the digits that they touch, or one whole number."""

from gpu_encode import errors
from gpu_encode.cells import Array, Layout, Window, digit_window
from gpu_encode.ops import Ops
from gpu_encode.statistics import Measured
from gpu_encode.targets import WHOLE_LIMIT, Target


def measured(ops: Ops, target: Target, weight: Array | None, squares: bool, drop: str | None) -> Measured:
    """Choose the columns that hold the exact sums of this target."""
    n_rows = len(target.values)
    if target.is_classification:
        layout = Layout(*windows(ops, None, weight, 0, n_rows))
        first = 1 if target.kind == "binary" or drop == "first" else 0
        if first >= target.n_classes:
            raise errors.single_class_dropped()
        return Measured(layout, True, first)
    return Measured(Layout(*windows(ops, target.values, weight, 2 if squares else 1, n_rows)), False)


def windows(ops: Ops, target: Array | None, weight: Array | None, highest: int, n_rows: int) -> list[Window]:
    """Digit positions that the sums of weight * target**power touch, for powers up to the highest.

    With one to spare for carries; one int64 where that holds the sum.
    """
    powers = [power for power in range(highest + 1) if not is_whole(target, weight, power, n_rows)]
    # In one go: on a device every answer is waited for.
    found = dict(zip(powers, ops.extents(target, weight, tuple(powers)) if powers else [], strict=True))
    return [digit_window(found[power]) if power in found else Window() for power in range(highest + 1)]


def is_whole(target: Array | None, weight: Array | None, power: int, n_rows: int) -> bool:
    """Whether one int64 holds the sum of weight * target**power for certain."""
    factors = [] if weight is None else [weight]
    factors += [] if target is None else [target] * power
    if any(factor.dtype.kind != "i" for factor in factors):
        return False
    bound = max(n_rows, 1) if factors else 0
    for factor in factors:
        bound *= max(abs(int(factor.max())), abs(int(factor.min())))
    return bound < WHOLE_LIMIT
