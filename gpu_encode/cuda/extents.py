"""The binary positions that numbers touch in a sum."""

from typing import TYPE_CHECKING

import numpy as np

from cpu_fallback.compiled.border import ABSENT, REAL
from cpu_fallback.compiled.digits import ONE, parts
from cpu_fallback.compiled.extents import NOWHERE, bit_length
from gpu_encode.cuda import raw
from gpu_encode.cuda.digits import bits_at, number_words
from gpu_encode.cuda.memory import empty, to_host
from gpu_encode.cuda.runtime import THREADS, blocks_for, cuda, device_function, kernel, launch, types, xp

if TYPE_CHECKING:
    from cpu_fallback.types import Array

POWERS = 3


@device_function
def positions(bits: np.uint64, kind: int) -> tuple[np.int64, np.int64]:
    """Binary positions [low, high) that a number touches; those of zero are outside of the range of all others."""
    if kind == ABSENT:
        return np.int64(0), np.int64(0)
    word, _, exponent = parts(bits, kind)
    mantissa = np.uint64(word)
    if mantissa == 0:
        return np.int64(NOWHERE), np.int64(-NOWHERE)
    lowest_bit = mantissa & (~mantissa + ONE)
    return np.int64(exponent + bit_length(lowest_bit) - 1), np.int64(exponent + bit_length(mantissa))


@device_function
def reduce_block(power: int, low: int, high: int, ends: "Array") -> None:
    """Find the lowest and highest position over the threads of a block."""
    cuda.atomic.min(ends, power, low)
    cuda.atomic.max(ends, POWERS + power, high)


@kernel
def measure_products(
    n_rows: int, target: "Array", target_kind: int, weight: "Array", weight_kind: int, lowest: "Array", highest: "Array"
) -> None:
    """Lowest and highest position of weight * target**power in the rows of each block, for powers 0, 1 and 2."""
    # Lowest positions, then highest. For shared memory of a fixed size, the simulator gives different arrays to threads
    # that ask at the same moment, and only the result of the first thread would remain.
    ends = cuda.shared.array(0, types.int64)
    if cuda.threadIdx.x == 0:
        for power in range(POWERS):
            ends[power], ends[POWERS + power] = NOWHERE, -NOWHERE
    low_0, low_1, low_2 = np.int64(NOWHERE), np.int64(NOWHERE), np.int64(NOWHERE)
    high_0, high_1, high_2 = np.int64(-NOWHERE), np.int64(-NOWHERE), np.int64(-NOWHERE)
    for row in range(cuda.grid(1), n_rows, cuda.gridsize(1)):
        low, high = positions(bits_at(weight, weight_kind, row), weight_kind)
        step, top = positions(bits_at(target, target_kind, row), target_kind)
        low_0, high_0 = min(low_0, low), max(high_0, high)
        low_1, high_1 = min(low_1, low + step), max(high_1, high + top)
        low_2, high_2 = min(low_2, low + 2 * step), max(high_2, high + 2 * top)
    cuda.syncthreads()
    reduce_block(0, low_0, high_0, ends)
    reduce_block(1, low_1, high_1, ends)
    reduce_block(2, low_2, high_2, ends)
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        for power in range(POWERS):
            lowest[POWERS * cuda.blockIdx.x + power] = ends[power]
            highest[POWERS * cuda.blockIdx.x + power] = ends[POWERS + power]


def extents(target: "Array | None", weight: "Array | None", powers: tuple[int, ...], /) -> list[tuple[int, int]]:
    """Binary positions that weight * target**power touches in any row, for each power; ordered by power."""
    n_rows = len(target) if target is not None else 0 if weight is None else len(weight)
    if not n_rows:
        return [(0, 0)] * len(powers)
    found = extents_of_target(target) if weight is None else extents_of_products(n_rows, target, weight)
    return [found[power] if found[power][0] <= found[power][1] else (0, 0) for power in powers]


def extents_of_target(target: "Array | None") -> list[tuple[int, int]]:
    """Lowest and highest position of target**power, for powers 0, 1 and 2; for zeros, lowest is above highest."""
    words, kind = number_words(target)
    ends, variant = empty(2 * raw.BLOCKS, np.int64), {"VALUE": raw.value_type(words.itemsize, kind == REAL)}
    blocks = raw.run_over("measure_extents", words, ends, threads=min(raw.THREADS, 512), variant=variant)
    found = to_host(ends[: 2 * blocks])
    low, high = int(found[::2].min()), int(found[1::2].max())
    return [(power * low, power * high) for power in range(POWERS)]


def extents_of_products(n_rows: int, target: "Array | None", weight: "Array") -> list[tuple[int, int]]:
    """Lowest and highest position of weight * target**power, for powers 0, 1 and 2."""
    blocks = blocks_for(n_rows)
    lowest, highest = empty(POWERS * blocks, np.int64), empty(POWERS * blocks, np.int64)
    numbers = (*number_words(target), *number_words(weight))
    launch(measure_products, blocks, THREADS, n_rows, *numbers, lowest, highest, shared=2 * POWERS * 8)
    lows, highs = lowest.reshape(blocks, POWERS).min(axis=0), highest.reshape(blocks, POWERS).max(axis=0)
    found: list[int] = to_host(xp.concatenate([lows, highs])).tolist()
    return list(zip(found[:POWERS], found[POWERS:], strict=True))
