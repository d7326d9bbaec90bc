"""Sums of neighbouring rows as pairs of floats (`running_pairs`), in vectors.

They are the sums of all rows, or of the rows before each of some places.
Rows are added up half to half.  For running sums they are dealt to lanes: each lane has neighbouring rows, and all
lanes together add their next row to their sums.  Then each lane gets the sum before it.
"""

from typing import NamedTuple

import numpy as np

from cpu_fallback.compiled.border import Array, Numbers, counting, set_all, stage
from cpu_fallback.compiled.product_errors import product_error
from cpu_fallback.compiled.running_pairs import (
    CENTRE_LINE,
    Form,
    N,
    Q,
    S,
    add_pair,
    add_row,
    are_in_range,
    number_and_weight,
    square_of,
)

# The most rows that are added up together, the fewest for which this pays, and the rows of a lane.
TOGETHER, SEVERAL, LANE = 1 << 10, 8, 1 << 5


class PieceRoom(NamedTuple):
    """Scratch space for neighbouring rows: target and weight, and pairs to be added up with their bounds."""

    target: Array
    weight: Array
    high: Array
    low: Array
    noise: Array


@counting
def room_for_piece() -> PieceRoom:
    """Give room for rows that are added up together, and for a sum before them."""
    n = TOGETHER + 1
    return PieceRoom(np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n))


@stage
def add_half(high: Array, low: Array, noise: Array, other: Array, other_low: Array, other_noise: Array) -> None:
    """Add pairs and their bounds to as many others."""
    for i in range(len(other)):
        high[i], low[i], lost = add_pair(high[i], low[i], other[i], other_low[i])
        noise[i] += other_noise[i] + lost


@stage
def add_everywhere(high: Array, low: Array, noise: Array, total: float, rest: float, total_noise: float) -> None:
    """Add a pair and its bound to many pairs."""
    for i in range(len(high)):
        high[i], low[i], lost = add_pair(high[i], low[i], total, rest)
        noise[i] += lost + total_noise


@stage
def add_together(n: int, room: PieceRoom, to: Array, at: int) -> None:
    """Add the first pairs of a room, half to half, to a sum whose lower number and bound follow it."""
    while n > 1:
        half = (n + 1) >> 1
        add_half(
            *(room.high[:half], room.low[:half], room.noise[:half]),
            *(room.high[half:n], room.low[half:n], room.noise[half:n]),
        )
        n = half
    to[at], to[at + 1], lost = add_pair(to[at], to[at + 1], room.high[0], room.low[0])
    to[at + 2] += room.noise[0] + lost


@stage
def read_piece(numbers: Numbers, begin: int, n: int, form: Form, room: PieceRoom) -> bool:
    """Read targets and weights of rows; tell whether all are in range."""
    known = True
    for i in range(n):
        v, weight, product, _ = number_and_weight(numbers, np.uint64(begin + i), form)
        known &= are_in_range(v, weight, product)
        room.target[i], room.weight[i] = v, weight
    return known


@stage
def write_parts(k: int, n: int, sign: float, centre: float, form: Form, room: PieceRoom) -> None:
    """Write what the rows of a room add to S, N or Q; a negative sign takes it away."""
    for i in range(n if k == Q else 0):
        room.high[i], room.low[i], room.noise[i] = square_of(room.target[i], sign * room.weight[i], centre)
    for i in range(n if k == N else 0):
        room.high[i], room.low[i], room.noise[i] = sign * room.weight[i], 0.0, 0.0
    for i in range(n if k == S else 0):
        weight = sign * room.weight[i]
        product = weight * room.target[i]
        error = product_error(product, weight, room.target[i]) if form.weighted else 0.0
        room.high[i], room.low[i], room.noise[i] = product, error, 0.0


@stage
def sum_piece(numbers: Numbers, begin: int, end: int, centre: float, form: Form, room: PieceRoom, to: Array) -> bool:
    """Write the sums of neighbouring rows; tell whether all of their numbers are in range."""
    known = True
    set_all(to, 0.0)
    if form.blends:
        to[form.around + CENTRE_LINE] = centre
    while end - begin >= SEVERAL:
        n = min(end - begin, TOGETHER)
        known &= read_piece(numbers, begin, n, form, room)
        for k in (S, N, Q):
            if (k != N or form.weighted) and (k != Q or form.blends):
                write_parts(k, n, 1.0, centre, form, room)
                add_together(n, room, to, form.around if k == Q else k)
        if not form.weighted:
            to[N] += n
        begin += n
    for i in range(begin, end):
        v, weight, product, error = number_and_weight(numbers, np.uint64(i), form)
        known &= are_in_range(v, weight, product)
        add_row(v, weight, product, error, centre, form, to, 0)
    return known


@stage
def deal(numbers: Array, lanes: int, out: Array) -> None:
    """Deal numbers to lanes: the first numbers of all lanes come first, and then the second ones."""
    for lane in range(lanes):
        for turn in range(LANE):
            out[np.uint64(turn * lanes + lane)] = numbers[np.uint64(lane * LANE + turn)]


@stage
def collect(numbers: Array, lanes: int, out: Array) -> None:
    """Bring numbers that were dealt to lanes back into order."""
    for lane in range(lanes):
        for turn in range(LANE):
            out[np.uint64(lane * LANE + turn)] = numbers[np.uint64(turn * lanes + lane)]


@stage
def run_sums(n: int, room: PieceRoom, dealt: PieceRoom, sums: Array, at: int) -> None:
    """Turn pairs into the sums before each pair; the first sum is that of a line, and the line gets the sum of all."""
    lanes = max(1, (n + LANE - 1) // LANE)
    # After row n - 1, the last lane has any numbers; nobody reads their sums.
    for numbers, out in ((room.high, dealt.high), (room.low, dealt.low), (room.noise, dealt.noise)):
        deal(numbers, lanes, out)
    for turn in range(lanes, LANE * lanes, lanes):
        add_half(
            *(dealt.high[turn : turn + lanes], dealt.low[turn : turn + lanes], dealt.noise[turn : turn + lanes]),
            *(dealt.high[turn - lanes : turn], dealt.low[turn - lanes : turn], dealt.noise[turn - lanes : turn]),
        )
    room.high[0], room.low[0], room.noise[0] = sums[at], sums[at + 1], sums[at + 2]
    collect(dealt.high, lanes, room.high[1:])
    collect(dealt.low, lanes, room.low[1:])
    collect(dealt.noise, lanes, room.noise[1:])
    for before in range(0, lanes * LANE, LANE):
        begin, end, total, rest = before + 1, before + LANE + 1, room.high[before], room.low[before]
        add_everywhere(
            room.high[begin:end], room.low[begin:end], room.noise[begin:end], total, rest, room.noise[before]
        )
    sums[at], sums[at + 1], sums[at + 2] = room.high[n], room.low[n], room.noise[n]


@stage
def add_at(places: Array, begin: int, room: PieceRoom, near: PieceRoom, high: Array, low: Array, noise: Array) -> None:
    """Add to each pair the sum before its place; the sums are those of a room, and their rows begin at `begin`."""
    for first in range(0, len(places), TOGETHER):
        last = min(first + TOGETHER, len(places))
        for i in range(last - first):
            place = np.uint64(places[first + i] - begin)
            near.high[i], near.low[i], near.noise[i] = room.high[place], room.low[place], room.noise[place]
        add_half(
            *(high[first:last], low[first:last], noise[first:last]),
            *(near.high[: last - first], near.low[: last - first], near.noise[: last - first]),
        )


@stage
def count_at(places: Array, begin: int, sign: float, before: float, out: Array) -> None:
    """Add to each number the number of rows before its place."""
    for i in range(len(places)):
        out[i] += before + sign * (places[i] - begin)


@stage
def add_before_places(
    numbers: Numbers,
    shift: int,
    begin: int,
    end: int,
    places: Array,
    sign: float,
    centre: float,
    form: Form,
    room: PieceRoom,
    dealt: PieceRoom,
    sums: Array,
    at: int,
    out: Array,
    first: int,
    step: int,
) -> bool:
    """Add the rows from `begin` to `end` to a line; tell whether all numbers are in range.

    For each place, the sums of the line before the row of this place are added to `out`, `step` numbers apart; those of
    the first place are added to number `first`.  Places rise, from `begin` to `end`.  The number of a row is its place
    plus `shift`.
    """
    known, done = True, 0
    while begin < end or done < len(places):
        n, till = min(end - begin, TOGETHER), done
        while till < len(places) and places[till] <= begin + n:
            till += 1
        here, to = places[done:till], first + done
        known &= read_piece(numbers, begin + shift, n, form, room)
        for k in (S, N, Q):
            if k == N and not form.weighted:
                count_at(here, begin, sign, sums[at + N], out[N * step + to : N * step + to + len(here)])
                sums[at + N] += sign * n
            elif k != Q or form.blends:
                write_parts(k, n, sign, centre, form, room)
                run_sums(n, room, dealt, sums, at + (form.around if k == Q else k))
                high, low, noise = k * step + to, (k + 1) * step + to, (k + 2) * step + to
                size = len(here)
                add_at(
                    *(here, begin, room, dealt, out[high : high + size], out[low : low + size]),
                    out[noise : noise + size],
                )
        begin, done = begin + n, till
    return known
