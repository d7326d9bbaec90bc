"""Running sums of several columns at once, and sums over a range of one column.

The columns are stored one after another and summed as if they were one: the sum of earlier columns cancels in every
difference, modulo 2**64.
"""

from typing import TYPE_CHECKING

import numpy as np

from gpu_encode.cuda.runtime import device_function

if TYPE_CHECKING:
    from cpu_fallback.types import Array


@device_function
def sum_between(running: "Array", base: int, start: int, stop: int) -> np.int64:
    """Sum the numbers [start, stop) of the column that begins at `base`."""
    if start == stop:
        return np.int64(0)
    upto = running[base + stop - 1]
    return upto - running[base + start - 1] if base + start > 0 else upto
