"""Count, mean and squared deviations of cells, from their digits."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.exact import Limbs, deviation, peak, quotient
from cpu_fallback.memory import empty

if TYPE_CHECKING:
    from cpu_fallback.types import Array, Layout


SMALL = 1 << 31


class MomentArrays(NamedTuple):
    """What `moments` gives, per cell: shapes (..., 1) or (..., outputs); the last three empty where not asked for.

    Parameters
    ----------
    n : float64 array (..., 1)
        Summed weight N, correctly rounded.
    mean : float64 array (..., outputs)
        S / N; NaN where N is zero.
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
    """Count, mean and, where asked for, squared deviations of cells (..., classes, layout.width)."""
    out = empty_moments(accumulators.shape, first_output, deviations)
    count, total, square = sums_of(accumulators, layout, first_output)
    if (
        all(window.whole for window, _, _ in layout.measures())
        and peak(accumulators) * max(accumulators.shape[-2], 1) < SMALL
    ):
        small_moments(out, *(sums.digits[..., 0] for sums in (count, total, square)))
        return out
    out.n[:] = count.rounded()
    out.mean[:] = quotient(total, count)
    if deviations:
        spread = deviation(count, total, square)
        out.less_one[:] = (count - Limbs.of_integers(np.ones(1, np.int64))).rounded()
        out.fraction[:] = spread.fraction
        out.exponent[:] = spread.exponent
    return out


def small_moments(out: MomentArrays, count: "Array", total: "Array", square: "Array") -> None:
    """Write the moments of whole sums below 2**31: products fit int64, quotients are rounded correctly as they are."""
    out.n[:] = count
    with np.errstate(divide="ignore", invalid="ignore"):
        out.mean[:] = np.where(count == 0, np.nan, total / count)
    if out.less_one.shape[-1]:
        out.less_one[:] = count - 1
        out.fraction[:] = count * square - total * total
        out.exponent[:] = 0


def sums_of(accumulators: "Array", layout: "Layout", first_output: int) -> tuple[Limbs, Limbs, Limbs]:
    """N, S and Q of cells: read off their columns, or of 0/1 targets off the counts of the classes."""
    sums: list[Any] = [Limbs(accumulators[..., columns], window.low) for window, _, columns in layout.measures()]
    if layout.total is not None:
        return sums[0], sums[1], sums[-1]
    count = sums[0]
    own = Limbs(count.digits[..., first_output:, :], count.low)
    return Limbs(count.digits.sum(axis=-2, keepdims=True), count.low), own, own


def empty_moments(shape: tuple[int, ...], first_output: int, deviations: bool) -> MomentArrays:
    """Room for the moments of cells of this shape."""
    one, each = (*shape[:-2], 1), (*shape[:-2], shape[-2] - first_output)
    none = (*shape[:-2], 0)
    less, spread = (one, each) if deviations else (none, none)
    n, mean, less_one, fraction = (empty(size, np.float64) for size in (one, each, less, spread))
    return MomentArrays(n, mean, less_one, fraction, empty(spread, np.int64))
