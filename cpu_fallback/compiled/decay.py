"""Sums of rows that lose weight with age, as each step sees them: see `gpu_encode.seam.ops.FusedOps`."""

import numpy as np

from cpu_fallback.compiled import threads
from cpu_fallback.compiled.border import Array, freeze, kernel, stage
from cpu_fallback.memory import empty

MASK = 0xFFFFFFFF
# A cell costs about as much as ten cells of other kernels.
SMALLEST_SHARE = 1 << 11


@stage
def multiply_digits(sums: Array, begin: int, width: int, factor: int, bits: int, out: Array) -> None:
    """Multiply digits by factor * 2**bits; all columns but the highest are then below 2**32."""
    above = carried = np.int64(0)
    for i in range(width):
        digit = sums[np.uint64(begin + i)]
        product = (digit & MASK) * factor
        total = (product & MASK) + (above & MASK)
        above = (above >> 32) + (product >> 32) + (total >> 32) + (digit >> 32) * factor
        moved = (total & MASK) << bits
        out[i] = (moved & MASK) + carried
        carried = moved >> 32
    out[width] = (above << bits) + carried


@stage
def see_cell(sums: Array, at: int, spans: Array, factor: int, power: int, columns: Array, out: Array, to: int) -> int:
    """Write a cell as a step sees it, with all higher digits in its last column; give the index of the next cell."""
    bits, digits = power & 31, power >> 5
    for k in range(len(spans) >> 2):
        begin, n = spans[4 * k], spans[4 * k + 1] - spans[4 * k]
        first, end = spans[4 * k + 2], spans[4 * k + 3]
        multiply_digits(sums, at + begin, n, factor, bits, columns)
        for column in range(first, end - 1):
            source = column - digits
            out[np.uint64(to + column - first)] = columns[source] if 0 <= source <= n else 0
        top = np.int64(0)
        for source in range(n, end - 2 - digits, -1):
            top = (top << 32) + (columns[source] if source >= 0 else 0)
        out[np.uint64(to + end - 1 - first)] = top
        to += end - first
    return to


@kernel
def see_range(
    sums: Array,
    width: int,
    n_classes: int,
    spans: Array,
    factors: Array,
    start: int,
    stop: int,
    out: Array,
) -> None:
    """Write the cells [start, stop) as steps see them; pairs of factor and power repeat after the last."""
    columns, n_factors = np.empty(width + 1, np.int64), len(factors) >> 1
    n_out = np.int64(0)
    for k in range(len(spans) >> 2):
        n_out += spans[4 * k + 3] - spans[4 * k + 2]
    for cell in range(start, stop):
        step = (cell // n_classes) % n_factors
        see_cell(sums, cell * width, spans, factors[2 * step], factors[2 * step + 1], columns, out, cell * n_out)


def seen_from(sums: Array, spans: Array, factors: Array, /) -> Array:
    """Multiply sums by factors and powers of two; see `gpu_encode.seam.ops.FusedOps`."""
    *cells, width = sums.shape
    flat, given = freeze(sums, np.int64).reshape(-1), freeze(factors, np.int64).reshape(-1)
    n_out, n_cells = int((spans[:, 3] - spans[:, 2]).sum()), int(np.prod(cells))
    out = empty(n_cells * n_out, np.int64)
    parts = threads.shares(n_cells, smallest=SMALLEST_SHARE)
    wanted = freeze(spans, np.int64).reshape(-1)
    threads.run(lambda share: see_range(flat, width, cells[-1], wanted, given, *parts[share], out), len(parts))
    return out.reshape(*cells, n_out)
