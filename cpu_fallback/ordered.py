"""Ordered statistics: each row sees the earlier rows of its category."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.sums import row_digits

if TYPE_CHECKING:
    from cpu_fallback.types import Array, Carry, Layout, Rows


def ordered(rows: "Rows", ties: "Array | None", layout: "Layout", carry: "Carry", /) -> NDArray[np.int64]:
    """Give for each row the sums of its category over the rows before it: (rows, n_classes, layout.width) digits.

    `carry` holds the sums of all earlier rows and is updated, so that the next chunk can follow.  With `ties` (numbers
    that do not decrease), rows of one tie do not see each other.
    """
    n_classes = carry.sums.shape[1]
    order = np.argsort(rows.codes, kind="stable")
    codes = rows.codes[order]
    added = np.zeros((len(order), n_classes, layout.width), np.int64)
    added[np.arange(len(order)), 0 if rows.classes is None else rows.classes[order]] = row_digits(rows, layout)[order]
    running = np.cumsum(added, axis=0) - added
    first = first_of_run(codes)
    before = running - running[first] + carry.sums[codes]
    if ties is not None:
        before = share_ties(before, codes, ties[order], carry)
    np.add.at(carry.sums, codes, added)
    seen = np.empty_like(before)
    seen[order] = before
    return seen


def first_of_run(*keys: NDArray[np.generic]) -> NDArray[np.int64]:
    """Give for each element the index of the first element of its run of equal keys."""
    index = np.arange(len(keys[0]))
    starts = np.zeros(len(index), bool)
    starts[:1] = True
    for key in keys:
        starts[1:] |= key[1:] != key[:-1]
    return np.maximum.accumulate(np.where(starts, index, 0))


def share_ties(
    before: NDArray[np.int64], codes: NDArray[np.int32], ties: NDArray[np.int64], carry: "Carry"
) -> NDArray[np.int64]:
    """Give every row of a (category, tie) the sums that its first row sees; that row may lie in an earlier chunk."""
    shared = before[first_of_run(codes, ties)]
    continued = ties == carry.last_tie[codes]
    shared[continued] = carry.at_tie[codes[continued]]
    last = np.ones(len(codes), bool)
    last[:-1] = codes[1:] != codes[:-1]
    carry.at_tie[codes[last]] = shared[last]
    carry.last_tie[codes[last]] = ties[last]
    return shared
