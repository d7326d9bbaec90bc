"""Mean gradients in leaves, over all rows or over the rows before a row: sums are exact, each mean is rounded once."""

import numpy as np

from cpu_fallback.exact import Floats
from cpu_fallback.types import Array, Carry, Codes, Layout, Rows, SumShape, digit_window
from gpu_encode.seam.ops import host


def of_all(leaves: Codes, gradients: Floats, n_leaves: int, l2: float) -> Floats:
    """Give the value of each leaf over all rows: the mean of their gradients times n / (n + l2); 0 for an empty leaf.

    Parameters
    ----------
    leaves : int32 array (rows,)
    gradients : float64 array (rows,)
    n_leaves : int
    l2 : float
    """
    layout, ops = layout_of(gradients), host(len(gradients))
    sums = ops.accumulate(Rows(leaves, None, gradients), SumShape(n_leaves, layout=layout))
    return shrunk_means(sums[:-2, 0], layout, l2)


def of_earlier(leaves: Codes, gradients: Floats, n_leaves: int, l2: float) -> Floats:
    """Give each row the value of its leaf over the rows before it; parameters as in `of_all`."""
    layout, ops = layout_of(gradients), host(len(gradients))
    carry = Carry.empty(n_leaves, 1, layout.width, False)
    return shrunk_means(ops.ordered(Rows(leaves, None, gradients), None, layout, carry), layout, l2)


def layout_of(gradients: Floats) -> Layout:
    """Give the digits that exact sums of gradients need."""
    (extent,) = host(len(gradients)).extents(gradients, None, (1,))
    return Layout(total=digit_window(extent))


def shrunk_means(sums: Array, layout: Layout, l2: float) -> Floats:
    """Give the leaf values from sums (cells, 1, digits)."""
    moments = host(len(sums)).moments(sums, layout, 0, False)
    n, mean = moments.n.reshape(len(sums)), moments.mean.reshape(len(sums))
    values: Floats = np.where(n > 0, np.nan_to_num(mean) * (n / np.maximum(n + l2, 1.0)), 0.0)
    return values
