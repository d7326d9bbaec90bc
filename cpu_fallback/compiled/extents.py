"""Find the range of binary positions that a sum needs."""

import numpy as np

from cpu_fallback.compiled.border import BLOCK, REAL, Array, Numbers, inlined, kernel, set_all, stage, words
from cpu_fallback.compiled.digits import FIELD, FIELD_MASK, FRACTION, HIDDEN, ONE, SIGN, scratch, unpack
from cpu_fallback.compiled.threads import run, shares

# Beyond the positions of any product.
NOWHERE = 1 << 40
N_FIELDS = 2048


@stage
def bit_length(word: np.uint64) -> int:
    """Give the number of bits of a word; 0 for zero."""
    length = np.int64(0)
    for step in (32, 16, 8, 4, 2, 1):
        more = word >> np.uint64(step) != 0
        length += step if more else 0
        word = word >> np.uint64(step) if more else word
    return int(length + np.int64(word))


@inlined
def bits_of(word: np.uint64) -> int:
    """Give the number of bits of a word that is not zero, without branches."""
    # Of two ones at the top only the first is left, so that no float is rounded up to the next power of two.
    return np.int64(np.float64(word & ~(word >> ONE)).view(np.uint64) >> FIELD) - 1022  # type: ignore[return-value]


@stage
def positions_of_words(united: Array) -> tuple[int, int]:
    """Give the range of binary positions, from the mantissas of each exponent field, which were or-ed together."""
    lowest, highest = NOWHERE, -NOWHERE
    for field in range(len(united)):
        if united[field]:
            exponent = max(field, 1) - 1075 if len(united) > 1 else 0
            lowest = min(lowest, exponent + bit_length(united[field] & (~united[field] + ONE)) - 1)
            highest = max(highest, exponent + bit_length(united[field]))
    return lowest, highest


@kernel
def extent_of_one(bits: Array, kind: int, start: int, stop: int) -> tuple[int, int]:
    """Find the binary positions of numbers.  For each exponent only the OR of all mantissas is needed."""
    united, given = np.zeros(N_FIELDS if kind == REAL else 1, np.uint64), bits[start:stop]
    if kind == REAL:
        for i in range(len(given)):
            field = (given[i] >> FIELD) & FIELD_MASK
            fraction = given[i] & FRACTION
            united[field] |= fraction if field == 0 else fraction | HIDDEN
    else:
        for i in range(len(given)):
            united[0] |= ~given[i] + ONE if given[i] >> SIGN else given[i]
    return positions_of_words(united)


@kernel
def extent_of_product(numbers: Numbers, power: int, start: int, stop: int) -> tuple[int, int]:
    """Find the binary positions of weight * target**power, row by row."""
    room = scratch()
    word, low, high, exponent = room.word, room.exponent, room.lowest, room.other[1]
    given, some = word[0], word[1]
    lowest, highest = NOWHERE, -NOWHERE
    for begin in range(start, stop, BLOCK):
        n = min(BLOCK, stop - begin)
        set_all(some[:n], ONE)
        set_all(low[:n], 0)
        set_all(high[:n], 0)
        for factor in range(2):
            times = power if factor else 1
            bits, kind = (numbers.target, numbers.target_kind) if factor else (numbers.weight, numbers.weight_kind)
            unpack(bits[begin : begin + n], kind, given[:n], room.sign[:n], exponent[:n])
            for i in range(n):
                mantissa = given[i]
                some[i] = np.uint64(0) if mantissa == 0 else some[i]
                low[i] += times * (exponent[i] + bits_of(mantissa & (~mantissa + ONE)) - 1)
                high[i] += times * (exponent[i] + bits_of(mantissa))
        for i in range(n):
            lowest = min(lowest, low[i]) if some[i] else lowest
            highest = max(highest, high[i]) if some[i] else highest
    return lowest, highest


def extent(numbers: Numbers, power: int) -> tuple[int, int]:
    """Find the binary positions of weight * target**power in all rows."""
    single = not power or not numbers.weight_kind
    bits, kind = (numbers.target, numbers.target_kind) if power else (numbers.weight, numbers.weight_kind)
    parts = shares(len(bits))
    found = [(0, 0)] * len(parts)

    def measure(share: int) -> None:
        start, stop = parts[share]
        found[share] = (
            extent_of_one(bits, kind, start, stop) if single else extent_of_product(numbers, power, start, stop)
        )

    run(measure, len(parts))
    low, high = min(low for low, _ in found), max(high for _, high in found)
    factor = max(power, 1) if single else 1
    return (int(low) * factor, int(high) * factor) if low <= high else (0, 0)


def extents(target: Array | None, weight: Array | None, powers: tuple[int, ...], /) -> list[tuple[int, int]]:
    """Give the range of binary positions of weight * target**power over all rows, for each power in order."""
    numbers = Numbers(*words(target), *words(weight))
    return [extent(numbers, power) for power in powers]
