"""Which binary places a sum touches."""

from typing import TYPE_CHECKING

from cpu_fallback.digits import bit_range
from cpu_fallback.sums import BLOCK, factors_of

if TYPE_CHECKING:
    from cpu_fallback.types import Array


def extents(target: "Array | None", weight: "Array | None", powers: tuple[int, ...], /) -> list[tuple[int, int]]:
    """Binary places that weight * target**power touches in any row, for each power; ordered by power."""
    ranges = []
    for power in powers:
        factors = factors_of(target, weight, power)
        blocks = range(0, len(factors[0]), BLOCK)
        parts = [bit_range([factor[start : start + BLOCK] for factor in factors]) for start in blocks]
        touched = [part for part in parts if part != (0, 0)]
        ranges.append((min(low for low, _ in touched), max(high for _, high in touched)) if touched else (0, 0))
    return ranges
