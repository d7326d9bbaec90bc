"""Exact sums of rows whose weights halve with age: weights are eight constants times powers of two.

The step of a row is its time in whole eighths of a half-life.  Step 8 q + r stands for q half-lives and r eighths; 512
steps are a block.  A row is summed with the weight g[r] * 2**(q mod 64 - 63), on the scale of its block.  A row at step
8 Q + R of the same block sees this sum multiplied by d[R] * 2**(63 - Q mod 64).  It sees the sum of the block before
multiplied by 2**-64 as well, which moves it two digits down.  Older blocks do not count.  g and d are 2**(r / 8) and
2**(-r / 8), rounded to 31 binary digits after the point; all else is exact.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.types import Layout, Window

STEPS_OF_BLOCK = 512
# 2**31 times 2**(r / 8), and times 2**(-r / 8).
GROWTH = (2147483648, 2341847524, 2553802834, 2784941738, 3037000500, 3311872529, 3611622603, 3938502376)
DECLINE = (2147483648, 1969251188, 1805811301, 1655936265, 1518500250, 1392470869, 1276901417, 1170923762)


def blocks_of(steps: Any) -> Any:
    """Give the block of each step."""
    return steps >> 9


def weights_of(steps: NDArray[np.int64]) -> NDArray[np.float64]:
    """Give for each step the weight of a row, on the scale of its block; it is below 2."""
    exponents = (((steps >> 3) & 63) - 94).astype(np.int32)
    weights: NDArray[np.float64] = np.ldexp(np.array(GROWTH, np.float64)[steps & 7], exponents)
    return weights


def room_for_two_blocks(layout: Layout) -> Layout:
    """Give the layout that holds the sums of a block and of the block before it."""
    return Layout(*(Window(window.low - 2, window.width + 2, False) for window, _, _ in layout.measures()))


def factors_of(steps: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give for each step the multiplier of the sums that it sees (steps, 2): a factor, and a power of two."""
    return np.stack([np.array(DECLINE, np.int64)[steps & 7], 64 - ((steps >> 3) & 63)], axis=-1)


def spans_of(peaks: NDArray[np.int64], layout: Layout, powers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give the range of columns of each sum before and after it is multiplied by powers of two (sums, 4).

    `peaks` are upper bounds of the magnitudes in each column; a column with the bound 0 holds only zeros.  The second
    range counts from the beginning of the first one, which begins with the lowest column that is not zero.
    """
    spans = []
    for _, _, columns in layout.measures():
        digits = [int(peak) for peak in peaks[columns]]
        filled = [position for position, digit in enumerate(digits) if digit] or [0]
        largest = sum(digit << 32 * position for position, digit in enumerate(digits[filled[0] :]))
        first, end = 0, 1
        if largest:
            end = (largest.bit_length() + 31 + int(powers.max())) // 32 + 1
            first = min(int(powers.min()) >> 5, end - 1)
        # One more column has room for carries.
        stop = min(columns.start + filled[-1] + 2, columns.stop)
        spans.append([columns.start + filled[0], stop, first, end])
    return np.array(spans, np.int64)


def layout_of(spans: NDArray[np.int64], layout: Layout) -> Layout:
    """Give the layout of multiplied sums, from `spans_of`."""
    spanned = zip(layout.measures(), spans.tolist(), strict=True)
    return Layout(
        *(
            Window(window.low - 1 + begin - columns.start + first, end - first, False)
            for (window, _, columns), (begin, _, first, end) in spanned
        )
    )
