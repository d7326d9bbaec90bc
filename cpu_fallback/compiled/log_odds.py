"""Response, information and likelihood of rows at their log-odds; array expressions in `study/tuning` define them."""

import numpy as np

from cpu_fallback.compiled.border import Array, freeze, kernel
from cpu_fallback.compiled.elementary import exp, log
from cpu_fallback.compiled.threads import run, shares
from cpu_fallback.memory import empty


@kernel
def moments_of_range(
    values: Array,
    offset: Array,
    weight: Array,
    units: tuple[float, float],
    start: int,
    stop: int,
    response: Array,
    information: Array,
    likelihood: Array,
) -> None:
    """Write response, information and likelihood of the rows [start, stop)."""
    for row in range(start, stop):
        i = np.uint64(row)
        odds, value = offset[i], values[i]
        small = exp(-abs(odds))
        high = 1.0 / (1.0 + small)
        low = small / (1.0 + small)
        known = high * low
        response[i] = np.int64(np.rint((value - (high if odds >= 0 else low)) / known * units[1]))
        information[i] = np.int64(np.rint((known * weight[i] if len(weight) else known) * units[0]))
        likelihood[i] = value * odds - max(odds, 0.0) - log(1.0 + small)


def log_odds_moments(
    values: Array, offset: Array, weight: Array | None, bits: tuple[int, int], /
) -> tuple[Array, Array, Array]:
    """Give whole responses and informations, and likelihoods of rows; see `gpu_encode.seam.ops.FusedOps`."""
    n_rows = len(values)
    found = empty(n_rows, np.int64), empty(n_rows, np.int64), empty(n_rows, np.float64)
    fixed = (
        freeze(values, np.float64),
        freeze(offset, np.float64),
        freeze(np.zeros(0) if weight is None else weight, np.float64),
        (2.0 ** bits[0], 2.0 ** bits[1]),
    )
    parts = shares(n_rows)
    run(lambda share: moments_of_range(*fixed, *parts[share], *found), len(parts))
    return found
