"""Turn the sums that each row sees into its encodings, and write these to the row's position in the output."""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.compiled.row_encodings import CellRule, encoding_without, has_category
from cpu_fallback.exact import Limbs, Ratio, m_estimates, ratio_of
from gpu_encode.cuda.casting import cast
from gpu_encode.cuda.encodings import (
    LOST,
    Doubts,
    encode_digits,
    keep_cell,
    keep_doubt,
    see_around,
)
from gpu_encode.cuda.fallbacks import DOUBTS, leave_to_arrays
from gpu_encode.cuda.gather import flatten
from gpu_encode.cuda.memory import empty, to_host
from gpu_encode.cuda.moments import Cell, Rooms, class_width, count_pair, start_of_sum
from gpu_encode.cuda.rounding import scale
from gpu_encode.cuda.runtime import cuda, device_function, xp

if TYPE_CHECKING:
    from collections.abc import Callable

    from cpu_fallback.types import Array, Layout

# The words of NumPy's NaN, since a GPU's own NaN has other bits.
NAN_WORDS = {np.dtype(np.float64): np.uint64(0x7FF8000000000000), np.dtype(np.float32): np.uint64(0x7FC00000)}


class Destination(NamedTuple):
    """A flat output and its words, the steps between rows and columns, the word of NaN, and flags for unseen rows."""

    out: "Array"
    words: "Array"
    by_row: int
    by_output: int
    nan: np.uint64
    flagged: bool
    unseen: "Array"


def destination_of(out: "Array", unseen: "Array | None" = None) -> Destination | None:
    """Describe an output to kernels; None if they cannot write to it."""
    memory = flatten(out) if out.dtype in NAN_WORDS and out.size else None
    if memory is None:
        return None
    flat, by_row, by_output = memory
    words = flat.view(xp.uint64 if flat.itemsize == 8 else xp.uint32)
    flags = empty(1, np.bool_) if unseen is None else unseen
    return Destination(flat, words, by_row, by_output, NAN_WORDS[out.dtype], unseen is not None, flags)


class Seen(NamedTuple):
    """The digits that a row sees of its category, and of all categories."""

    own: "Array"
    others: "Array"


@device_function
def store(value: float, index: int, to: Destination, doubts: Doubts) -> None:
    """Write an encoding, rounded to the type of the output; count it if this type cannot hold it."""
    if math.isnan(value):
        to.words[index] = to.nan
    else:
        to.out[index] = value
        if math.isinf(to.out[index]) and not math.isinf(value):
            cuda.atomic.add(doubts.counters, LOST, 1)


@device_function
def write_row(
    row: int, code: int, seen: Seen, cell_rule: CellRule, rooms: Rooms, to: Destination, doubts: Doubts
) -> None:
    """Write the encodings of a row from the digits that it sees of its category, and of all categories."""
    (own, others), (shape, first, rule) = seen, cell_rule
    n_classes, length = shape.n_classes, shape.n_classes * class_width(shape)
    count, around_count = count_pair(own, 0, shape, 0), count_pair(others, 0, shape, 0)
    weight = scale(count[0], count[2])
    counts = has_category(code, rule) and weight > 0.0 and weight >= rule.blend.least
    for output in range(n_classes - first):
        s_at, value = start_of_sum(shape, first + output), 0.0
        around = see_around(Cell(others, 0, s_at, shape), rule, around_count, rooms)
        if counts:
            value, doubtful = encode_digits(Cell(own, 0, s_at, shape), rule.blend, around, count, rooms)
            if doubtful:
                number = keep_doubt(doubts, row * (n_classes - first) + output)
                keep_cell(doubts.seen, number, own, 0, length)
                keep_cell(doubts.around, number, others, 0, length)
        else:
            value = encoding_without(code, around.mu, rule)
        store(value, row * to.by_row + output * to.by_output, to, doubts)
    if to.flagged:
        to.unseen[row] = to.unseen[row] and not counts


def settle_rows(
    doubts: Doubts,
    cell_rule: CellRule,
    layout: "Layout",
    to: Destination,
    sums: "Callable[[], Array] | None" = None,
    counted: list[int] | None = None,
) -> int | None:
    """Round the estimates in doubt from their digits; give the number of lost encodings, or None for too many doubts.

    If `sums` gives sums (segments, classes, width), each doubt has kept the number of its segment.
    `counted` has the counters, if the host has them already.
    """
    (shape, first, rule), (lost, doubtful, *_) = cell_rule, counted or to_host(doubts.counters).tolist()
    if doubtful > len(doubts.indices):
        leave_to_arrays("encodings of rows", DOUBTS)
        return None
    if doubtful:
        n_outputs, indices = shape.n_classes - first, doubts.indices[:doubtful]
        size, cells = doubtful * shape.n_classes * layout.width, (doubtful, shape.n_classes, layout.width)
        seen, around = doubts.seen[:size].reshape(cells), doubts.around[:size].reshape(cells)
        if sums is not None:
            around = sums()[around[:, 0, 0]]
        prior = ratio_of(around, layout, first) if rule.by_mean else ratio_of_number(rule.prior, seen)
        estimates = m_estimates(seen, layout, first, float(rule.blend.shrinkage.first), prior).reshape(-1)
        row, output = indices // n_outputs, indices % n_outputs
        values = cast(estimates[xp.arange(doubtful) * n_outputs + output], to.out.dtype)
        to.out.put(row * to.by_row + output * to.by_output, values)
        lost += int(xp.isinf(values).sum())
    return int(lost)


def ratio_of_number(value: float, like: "Array") -> Ratio:
    """Give one exact number as a quotient, on the device of `like`."""
    number = Limbs.of_floats(xp.full((1, 1), value))
    return Ratio(number, Limbs.of_integers(np.ones_like(like, shape=(1, 1), dtype=np.int64)))
