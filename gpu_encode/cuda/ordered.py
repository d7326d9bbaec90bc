"""Ordered statistics: each row sees the earlier rows of its category."""

from typing import TYPE_CHECKING

import numpy as np

from gpu_encode.cuda.chunks import by_chunk, fits
from gpu_encode.cuda.digits import Extents, measures_of, parts_of
from gpu_encode.cuda.memory import empty, to_device
from gpu_encode.cuda.runtime import TILE
from gpu_encode.cuda.segments import TiedState, by_sorting, by_sorting_ties

if TYPE_CHECKING:
    from cpu_fallback.types import Array, Carry, Layout, Rows

# Rows that are processed at once: their data is written in random order, and should stay in the GPU's cache.
MOST_ROWS = TILE


def counts_rows(rows: "Rows", layout: "Layout", n_classes: int) -> bool:
    """Whether the first column counts rows, so that the first class is this count minus the other classes."""
    return rows.weight is None and layout.count.whole and (n_classes == 1 or layout.width == 1)


def ordered(rows: "Rows", ties: "Array | None", layout: "Layout", carry: "Carry", /) -> "Array":
    """Sums of each row's category over the earlier rows, in the given order: (rows, n_classes, layout.width) digits.

    `carry` holds the sums of all rows before these, and is updated, so that chunks can follow one another.  With `ties`
    (non-decreasing tie numbers), rows of the same tie do not see each other.
    """
    extents, measures = Extents(*carry.sums.shape), measures_of(layout)
    seen = empty((len(rows), *extents[1:]), np.int64)
    arrays = carry.sums, carry.at_tie, carry.last_tie
    worked_on = tuple(to_device(array) for array in arrays)
    state = TiedState(*(array.reshape(-1) for array in worked_on))
    counted = counts_rows(rows, layout, extents.n_classes)
    for start in range(0, len(rows), MOST_ROWS):
        stop = min(start + MOST_ROWS, len(rows))
        parts, part = parts_of(rows.block(start, stop), measures), seen[start:stop].reshape(-1)
        if ties is not None:
            by_sorting_ties(parts, extents, counted, to_device(ties[start:stop]), state, part)
        elif fits(extents):
            by_chunk(parts, extents, state.sums, part)
        else:
            by_sorting(parts, extents, counted, state.sums, part)
    for array, copy in zip(arrays, worked_on, strict=True):
        if copy is not array:
            array[...] = copy
    return seen
