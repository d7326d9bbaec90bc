"""The distance between two distributions over categories: the population stability index."""

import math

from cpu_fallback.exact import Floats


def stability_index(expected: Floats, found: Floats) -> float:
    """Compare the shares of cells of two populations: PSI = sum of (q - p) ln(q / p).

    Parameters
    ----------
    expected, found : float64 array (cells,)
        Weight, or number of rows, of each cell.

    Notes
    -----
    The formula is that of Siddiqi, Credit Risk Scorecards, 2006, chapter 9; it is Jeffreys' divergence of 1946.  A cell
    that is empty in only one population counts as half a row there, so that its logarithm is finite; a cell that is
    empty in both adds nothing.  The sum is exact and rounded once, whatever the order of the cells.

    Examples
    --------
    >>> import numpy as np
    >>> round(stability_index(np.array([50.0, 50.0]), np.array([25.0, 75.0])), 4)
    0.2747
    """
    totals = [float(counts.sum()) for counts in (expected, found)]
    cells = [(p or 0.5, q or 0.5) for p, q in zip(expected.tolist(), found.tolist(), strict=True) if p or q]
    shares = [(p / totals[0], q / totals[1]) for p, q in cells]
    return math.fsum((q - p) * math.log(q / p) for p, q in shares)


def index_by_chance(expected: Floats, found: Floats) -> float:
    """Give the average index of two samples of one population, of N and M rows in B cells: (B - 1)(1 / N + 1 / M).

    Yurdakul and Naranjo, Statistical properties of the population stability index, Journal of Risk Model Validation
    14(4), 2020: PSI / (1 / N + 1 / M) is about chi-squared with B - 1 degrees of freedom.

    Examples
    --------
    >>> import numpy as np
    >>> index_by_chance(np.array([50.0, 50.0]), np.array([25.0, 75.0]))
    0.02
    """
    n_cells = int(((expected > 0) | (found > 0)).sum())
    return (n_cells - 1) * (1.0 / float(expected.sum()) + 1.0 / float(found.sum()))
