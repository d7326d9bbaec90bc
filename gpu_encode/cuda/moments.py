"""Count, mean and squared deviations of each cell, from its digits: one thread computes one cell."""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.compiled.midpoints import (
    AFTER,
    chosen,
    first_guess,
    midpoint,
    no_difference,
    push_columns,
    side,
)
from cpu_fallback.compiled.moments import SAFE, SMALL, TINY, Shape, shape_of
from cpu_fallback.exact import MomentArrays
from gpu_encode.cuda.memory import empty, to_device
from gpu_encode.cuda.rounding import (
    HALF,
    LOW_HALF,
    MASK,
    ZERO,
    no_digits,
    push,
    quotient,
    round_columns,
    scale,
    whole_pair,
)
from gpu_encode.cuda.runtime import THREADS, blocks_for, cuda, device_function, kernel, launch, launch_rows, types

if TYPE_CHECKING:
    from cpu_fallback.types import Array, Layout

# The most digits of a window whose numbers a thread keeps in its own memory, and one digit more for the last carry.
# The driver reserves this memory for every thread that the GPU can run at once; wider numbers are in scratch space.
NARROW = 8
ROOM = NARROW + 1
SCRATCH_BYTES = 1 << 26


class Cell(NamedTuple):
    """The digits of a cell: where the cell begins, where the digits of S of one output begin, and the cell's shape."""

    digits: "Array"
    at: int
    s_at: int
    shape: Shape


class Cells(NamedTuple):
    """All cells, one for each thread: their number, digits, shape, and the class of the first output."""

    n: int
    digits: "Array"
    shape: Shape
    first: int


class Rooms(NamedTuple):
    """Memory for the magnitudes of N, S and Q, from which a thread computes N * Q - S**2."""

    n: "Array"
    s: "Array"
    q: "Array"


def width_of_class(shape: Shape) -> int:
    """Number of columns for one class in a cell."""
    return shape.n_width if shape.by_class else shape.n_width + shape.s_width + shape.q_width


# The same function, for kernels.
class_width = device_function(width_of_class)


@device_function
def column_sum(accumulators: "Array", at: int, line: int, n_lines: int) -> np.int64:
    """Sum of a column over the classes of a cell."""
    column = np.int64(0)
    for i in range(n_lines):
        column += accumulators[at + i * line]
    return column


@device_function
def start_of_sum(shape: Shape, label: int) -> int:
    """Give the position in a cell at which the digits of S of a class begin."""
    return label * class_width(shape) + (0 if shape.by_class else shape.n_width)


@device_function
def pair(
    accumulators: "Array", at: int, line: int, n_lines: int, width: int, low: int, less: int
) -> tuple[float, float, int]:
    """Give (hi, lo, exponent) of the digits that begin at `at`, summed over classes, less 0 or 1."""
    if low == 0 and width == 1:
        high, lower = whole_pair(column_sum(accumulators, at, line, n_lines) - less)
        return high, lower, 0
    begin, end = low, low + width
    if less:
        begin, end = min(begin, 0), max(end, 1)
    digits = no_digits()
    for position in range(begin, end):
        column = np.int64(0)
        if low <= position < low + width:
            column = column_sum(accumulators, at + position - low, line, n_lines)
        digits = push(digits, column - less if position == 0 else column, position)
    return round_columns(digits, end)


@device_function
def count_pair(digits: "Array", at: int, shape: Shape, less: int) -> tuple[float, float, int]:
    """Give N of the cell that begins at `at`, less 0 or 1, as (hi, lo, exponent)."""
    return pair(digits, at, class_width(shape), shape.n_classes, shape.n_width, shape.n_low, less)


@device_function
def sum_pair(digits: "Array", s_at: int, shape: Shape) -> tuple[float, float, int]:
    """Give S, whose digits begin at `s_at`, as (hi, lo, exponent)."""
    return pair(digits, s_at, class_width(shape), 1, shape.s_width, shape.s_low, 0)


@device_function
def compare(cell: Cell, signs: tuple[int, int], factor: np.uint64, exponent: int) -> int:
    """Sign of |S| - factor * 2**exponent * |N| of a cell."""
    shape = cell.shape
    ahead, bits, line = exponent >> 5, exponent & 31, class_width(shape)
    begin = min(shape.s_low, shape.n_low + ahead)
    end = max(shape.s_low + shape.s_width, shape.n_low + ahead + shape.n_width + AFTER)
    known = no_difference()
    for position in range(begin, end):
        mine, its = position - shape.s_low, position - ahead - shape.n_low
        total = cell.digits[cell.s_at + mine] if 0 <= mine < shape.s_width else np.int64(0)
        count = np.int64(0)
        if 0 <= its < shape.n_width:
            count = column_sum(cell.digits, cell.at + its, line, shape.n_classes)
        known = push_columns(known, total, count, signs[0], signs[1], factor, bits)
    return side(known)


@device_function
def settle(cell: Cell, mean: float, s_sign: int, n_sign: int) -> float:
    """Round S / N of a cell correctly, given a mean at most one unit off."""
    bits, signs = first_guess(mean), (s_sign, n_sign)
    factor, exponent = midpoint(bits, True)
    above, below = compare(cell, signs, factor, exponent), 1
    if bits != ZERO:
        factor, exponent = midpoint(bits, False)
        below = compare(cell, signs, factor, exponent)
    magnitude = chosen(bits, above, below)
    return magnitude if s_sign == n_sign else -magnitude


@device_function
def divide(cell: Cell, total: tuple[float, float, int], count: tuple[float, float, int]) -> float:
    """S / N of a cell, rounded once, from both as (hi, lo, exponent); N must not be zero."""
    near, doubtful = quotient(total[0], total[1], count[0], count[1])
    mean = scale(near, total[2] - count[2])
    if doubtful or (total[0] != 0.0 and abs(mean) < TINY):
        return settle(cell, mean, 1 if total[0] > 0.0 else -1, 1 if count[0] > 0.0 else -1)
    return mean


@kernel
def average(cells: Cells, n: "Array", mean: "Array") -> None:
    """Write N and the means of each cell."""
    n_cells, accumulators, shape, first = cells
    line, n_outputs = class_width(shape), shape.n_classes - first
    for i in range(cuda.grid(1), n_cells, cuda.gridsize(1)):
        cell = i * shape.n_classes * line
        count = count_pair(accumulators, cell, shape, 0)
        n[i] = scale(count[0], count[2])
        s_at = cell + start_of_sum(shape, first)
        for output in range(n_outputs):
            own, found = s_at + output * line, math.nan
            total = sum_pair(accumulators, own, shape)
            if count[0] != 0.0:
                found = divide(Cell(accumulators, cell, own, shape), total, count)
            mean[i * n_outputs + output] = found


@kernel
def average_whole(cells: Cells, n: "Array", mean: "Array") -> None:
    """Write N and the means of cells whose sums are one int64 each, which takes far fewer registers."""
    n_cells, accumulators, shape, first = cells
    line, n_outputs = class_width(shape), shape.n_classes - first
    for i in range(cuda.grid(1), n_cells, cuda.gridsize(1)):
        cell = i * shape.n_classes * line
        n_high, n_lower = whole_pair(column_sum(accumulators, cell, line, shape.n_classes))
        n[i] = n_high
        s_at = cell + start_of_sum(shape, first)
        for output in range(n_outputs):
            own, found = s_at + output * line, math.nan
            high, lower = whole_pair(accumulators[own])
            if n_high != 0.0:
                found = divide(Cell(accumulators, cell, own, shape), (high, lower, 0), (n_high, n_lower, 0))
            mean[i * n_outputs + output] = found


@kernel
def count_less_one(cells: Cells, fewer: "Array") -> None:
    """Write N - 1 of each cell."""
    shape = cells.shape
    for i in range(cuda.grid(1), cells.n, cuda.gridsize(1)):
        high, _, exponent = count_pair(cells.digits, i * shape.n_classes * class_width(shape), shape, 1)
        fewer[i] = scale(high, exponent)


@device_function
def magnitude(accumulators: "Array", at: int, line: int, n_lines: int, width: int, out: "Array") -> tuple[int, int]:
    """Carry digits, summed over classes, to non-negative ones; give the sign and the number of digits."""
    carry = np.int64(0)
    for i in range(width):
        column = column_sum(accumulators, at + i, line, n_lines)
        low = (column & MASK) + carry
        out[i] = low & MASK
        carry = (column >> 32) + (low >> 32)
    out[width] = carry
    sign = 1
    if carry < 0:
        sign, carry = -1, np.int64(1)
        for i in range(width):
            low = (~out[i] & MASK) + carry
            out[i] = low & MASK
            carry = low >> 32
        out[width] = ~out[width] + carry
    n = width + 1
    while n > 0 and out[n - 1] == 0:
        n -= 1
    return sign, n


@device_function
def product_column(left: "Array", n_left: int, right: "Array", n_right: int, k: int) -> tuple[np.int64, np.int64]:
    """Column k of a product of digits, before carries: the sums of the lower and of the upper halves of its terms."""
    below, above = np.int64(0), np.int64(0)
    for i in range(max(k - n_right + 1, 0), min(k + 1, n_left)):
        term = np.uint64(left[i]) * np.uint64(right[k - i])
        below += np.int64(term & LOW_HALF)
        above += np.int64(term >> HALF)
    return below, above


@device_function
def difference(rooms: Rooms, lengths: tuple[int, int, int], sign: int, shape: Shape) -> tuple[float, float, int]:
    """Give sign * N * Q - S**2 from magnitudes of these lengths, in the form of `round_columns`."""
    left, right = shape.n_low + shape.q_low, 2 * shape.s_low
    n, s, q = lengths
    digits, passed = no_digits(), np.int64(0)
    end = max(left + n + q, right + 2 * s)
    for position in range(min(left, right), end):
        below, above = product_column(rooms.n, n, rooms.q, q, position - left)
        s_below, s_above = product_column(rooms.s, s, rooms.s, s, position - right)
        digits = push(digits, sign * below - s_below + passed, position)
        passed = sign * above - s_above
    return round_columns(digits, end)


@device_function
def spread_of(cell: Cell, rooms: Rooms) -> tuple[float, int]:
    """Give N * Q - S**2 of one output of a cell: in integers if these are small, otherwise digit by digit."""
    accumulators, at, s_at, shape = cell
    line, q_at = class_width(shape), s_at if shape.by_class else s_at + shape.s_width
    widths, lows = shape.n_width == shape.s_width == shape.q_width == 1, shape.n_low == shape.s_low == shape.q_low == 0
    if widths and lows:
        total = column_sum(accumulators, at, line, shape.n_classes)
        s, q = accumulators[s_at], accumulators[q_at]
        if 0 <= total < SMALL and 0 <= q < SMALL and -SMALL < s < SMALL:
            exact = total * q - s * s
            if -SAFE < exact < SAFE:
                return float(exact), 0
    n_sign, n_n = magnitude(accumulators, at, line, shape.n_classes, shape.n_width, rooms.n)
    _, n_s = magnitude(accumulators, s_at, line, 1, shape.s_width, rooms.s)
    q_sign, n_q = magnitude(accumulators, q_at, line, 1, shape.q_width, rooms.q)
    fraction, _, exponent = difference(rooms, (n_n, n_s, n_q), n_sign * q_sign, shape)
    return fraction, exponent


@device_function
def spread(i: int, cells: Cells, rooms: Rooms, fraction: "Array", exponent: "Array") -> None:
    """Write N * Q - S**2 of each output of a cell."""
    shape, n_outputs = cells.shape, cells.shape.n_classes - cells.first
    at = i * shape.n_classes * class_width(shape)
    for output in range(n_outputs):
        cell, to = Cell(cells.digits, at, at + start_of_sum(shape, cells.first + output), shape), i * n_outputs + output
        fraction[to], exponent[to] = spread_of(cell, rooms)


@kernel
def spread_narrow(cells: Cells, fraction: "Array", exponent: "Array") -> None:
    """Write N * Q - S**2 of each cell, if windows are at most NARROW digits wide."""
    n_room = cuda.local.array(ROOM, types.int64)
    s_room = cuda.local.array(ROOM, types.int64)
    q_room = cuda.local.array(ROOM, types.int64)
    for i in range(cuda.grid(1), cells.n, cuda.gridsize(1)):
        spread(i, cells, Rooms(n_room, s_room, q_room), fraction, exponent)


@kernel
def spread_wide(cells: Cells, scratch: "Array", room: int, fraction: "Array", exponent: "Array") -> None:
    """Write N * Q - S**2 of each cell; `scratch` has three times `room` digits for each thread of the grid."""
    thread, n_threads = cuda.grid(1), cuda.gridsize(1)
    # Digits of the same position are neighbours, so that neighbouring threads read and write them together.
    n_room = scratch[thread : room * n_threads : n_threads]
    s_room = scratch[room * n_threads + thread : 2 * room * n_threads : n_threads]
    q_room = scratch[2 * room * n_threads + thread : 3 * room * n_threads : n_threads]
    for i in range(thread, cells.n, n_threads):
        spread(i, cells, Rooms(n_room, s_room, q_room), fraction, exponent)


def empty_moments(shape: tuple[int, ...], first_output: int, deviations: bool) -> MomentArrays:
    """Allocate the moments of cells of this shape on the device."""
    one, each = (*shape[:-2], 1), (*shape[:-2], shape[-2] - first_output)
    none = (*shape[:-2], 0)
    less, squares = (one, each) if deviations else (none, none)
    return MomentArrays(
        empty(one, np.float64),
        empty(each, np.float64),
        empty(less, np.float64),
        empty(squares, np.float64),
        empty(squares, np.int64),
    )


def is_whole(shape: Shape) -> bool:
    """Whether N and S are one int64 each."""
    return (shape.n_width, shape.n_low, shape.s_width, shape.s_low) == (1, 0, 1, 0)


def moments(accumulators: "Array", layout: "Layout", first_output: int, deviations: bool, /) -> MomentArrays:
    """Count, mean and deviations of every cell; see `gpu_encode.seam.ops.Ops`."""
    out, shape = empty_moments(accumulators.shape, first_output, deviations), shape_of(layout, accumulators.shape[-2])
    flat = to_device(accumulators).astype(np.int64, copy=False).reshape(-1)
    cells = Cells(int(out.n.size), flat, shape, first_output)
    work = average_whole if is_whole(shape) else average
    launch_rows(work, cells.n, cells, out.n.reshape(-1), out.mean.reshape(-1))
    if deviations and cells.n:
        launch_rows(count_less_one, cells.n, cells, out.less_one.reshape(-1))
        write_spread(cells, out.fraction.reshape(-1), out.exponent.reshape(-1))
    return out


def write_spread(cells: Cells, fraction: "Array", exponent: "Array") -> None:
    """Write N * Q - S**2 of each cell, with the kernel for these widths."""
    widest = max(cells.shape.n_width, cells.shape.s_width, cells.shape.q_width)
    if widest <= NARROW:
        launch_rows(spread_narrow, cells.n, cells, fraction, exponent)
        return
    room = widest + 1
    digits_of_block = 3 * room * THREADS
    blocks = max(1, min(blocks_for(cells.n), SCRATCH_BYTES // (8 * digits_of_block)))
    scratch = empty(blocks * digits_of_block, np.int64)
    launch(spread_wide, blocks, THREADS, cells, scratch, room, fraction, exponent)
