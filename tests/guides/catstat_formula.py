"""The numbers that catstat 0.5.3 documents, in plain loops, for comparisons.

They were written from its pages and docstrings: most statistics follow from the rows of a category, or, where there are
too few rows, from all rows.
"""

import math
from statistics import fmean, median, pstdev, stdev, variance

LEAST_ROWS = {"var": 2, "std": 2, "skew": 3, "kurt": 4}


def skew(values):
    """The adjusted Fisher-Pearson skewness; 0 if all values are equal."""
    n, mean = len(values), fmean(values)
    second, third = (math.fsum((value - mean) ** power for value in values) for power in (2, 3))
    return n * math.sqrt(n - 1) / (n - 2) * third / second**1.5 if second else 0.0


def kurt(values):
    """The excess kurtosis with the correction for the number of rows; 0 if all values are equal."""
    n, mean = len(values), fmean(values)
    second, fourth = (math.fsum((value - mean) ** power for value in values) for power in (2, 4))
    if not second:
        return 0.0
    scale = (n - 2) * (n - 3)
    return n * (n + 1) * (n - 1) * fourth / (scale * second**2) - 3 * (n - 1) ** 2 / scale


SHAPES = {"var": variance, "std": stdev, "median": median, "min": min, "max": max, "skew": skew, "kurt": kurt}


def shape_of(name, own, everything):
    """A statistic of the rows of a category, or of all rows; 0 if neither is defined."""
    least = LEAST_ROWS.get(name, 1)
    return next((float(SHAPES[name](values)) for values in (own, everything) if len(values) >= least), 0.0)


def mean_of(smooth, own, everything):
    """The mean of a category, shrunk to the mean of all rows: by a number of rows, by variances or by a sigmoid."""
    prior, n = fmean(everything), len(own)
    if not own:
        return prior
    if isinstance(smooth, tuple):
        _, k, f = smooth
        weight = 1 / (1 + math.exp(-(n - k) / f)) if n > 1 else 0.0
    else:
        spread = pstdev(everything) ** 2
        m = (pstdev(own) ** 2 / spread if spread else 0.0) if smooth == "auto" else smooth
        weight = n / (n + m)
    return weight * fmean(own) + (1 - weight) * prior


def evidence_of(smooth, own, everything):
    """The log-odds of the shrunk share less the log-odds of the share of all rows; infinite for a share of 0 or 1."""
    odds = [
        -math.inf if share <= 0 else math.inf if share >= 1 else math.log(share / (1 - share))
        for share in (mean_of(smooth, own, everything), fmean(everything))
    ]
    return odds[0] - odds[1]


def visible_means(smooth, keys, targets, sees):
    """Mean encodings of training rows that see some rows each; 0 without any.

    With scheme="loo" a row sees all rows but itself, with scheme="ordered" the rows before it in an order.
    """
    encodings = []
    for row, key in enumerate(keys):
        others = [other for other in range(len(keys)) if sees(other, row)]
        own = [targets[other] for other in others if keys[other] == key]
        encodings.append(mean_of(smooth, own, [targets[other] for other in others]) if others else 0.0)
    return encodings
