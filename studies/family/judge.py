"""Expected answers, by independent definitions: NumPy's bincount, sorted rows and plain Python."""

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.cpu.grid import SMOOTH
from benchmarks.cpu.judge import list_views, m_estimate
from benchmarks.harness.judge import Answer
from benchmarks.harness.rows import Array, Rows
from studies.family import words

STATISTICS = ("mean", "std", "count")


def expect(find: Callable[[Rows], list[Array]], rows: Rows, width: int = 1, tolerance: float = 1e-9) -> Answer:
    """Judge by a function of the rows that gives all columns."""
    return Answer(lambda: iter(find(rows)), width, tolerance)


def by_value(rows: Rows) -> list[Array]:
    """Give the index of each row's value among the sorted values."""
    present = np.bincount(rows.codes) > 0
    return [(np.cumsum(present) - 1)[rows.codes]]


def by_appearance(rows: Rows, first: int = 0) -> list[Array]:
    """Give the index of each row's value among the values in the order of their first rows."""
    values, begun = np.unique(rows.codes, return_index=True)
    numbers = np.zeros(int(values.max()) + 1, np.int64)
    numbers[values[np.argsort(begun)]] = np.arange(first, first + len(values))
    return [numbers[rows.codes]]


def by_frequency(rows: Rows) -> list[Array]:
    """Give the index of each row's value among the values from the most frequent on; ties are sorted by value."""
    counts = np.bincount(rows.codes)
    numbers = np.empty(len(counts), np.int64)
    numbers[np.lexsort((np.arange(len(counts)), -counts))] = np.arange(len(counts))
    return [numbers[rows.codes]]


def evidence(rows: Rows, folds: Array | None = None, least: int = 1, r: float = 1.0) -> list[Array]:
    """Give the log ratio of a category's regularized shares of both labels; 0 for categories of fewer rows."""
    encodings = np.empty(rows.n_rows)
    for part in list_views(rows.codes, rows.target, folds):
        with_label = (part.s + r) / (part.s_all + 2 * r)
        others = (part.n - part.s + r) / (part.n_all - part.s_all + 2 * r)
        encodings[part.own] = np.where(part.n >= least, np.log(with_label / others), 0.0)
    return [encodings]


def impact(rows: Rows, folds: Array) -> list[Array]:
    """Give the shrunk mean minus the mean of all rows, and the share of the rows."""
    encodings = np.empty((2, rows.n_rows))
    for part in list_views(rows.codes, rows.target, folds):
        prior = part.s_all / part.n_all
        encodings[0, part.own] = m_estimate(part.n, part.s, prior, SMOOTH) - prior
        encodings[1, part.own] = part.n / part.n_all
    return list(encodings)


def statistics(rows: Rows) -> list[Array]:
    """Give mean, sample standard deviation (NaN for a single row; by a second pass over the rows), and count."""
    values, n = rows.values, np.bincount(rows.codes)
    mean = np.bincount(rows.codes, values) / np.maximum(n, 1)
    squares = np.bincount(rows.codes, (values - mean[rows.codes]) ** 2)
    deviation = np.sqrt(squares / np.maximum(n - 1, 1))
    deviation[n < 2] = np.nan
    return [mean[rows.codes], deviation[rows.codes], n[rows.codes].astype(np.float64)]


def median(rows: Rows) -> list[Array]:
    """Give the median of each category's rows."""
    values, codes = rows.values, rows.codes
    ordered = values[np.lexsort((values, codes))]
    n = np.bincount(codes)
    starts, n = np.cumsum(n) - n, np.maximum(n, 1)
    # The last categories may have no rows.
    low, high = (np.minimum(starts + middle, len(ordered) - 1) for middle in ((n - 1) // 2, n // 2))
    return [((ordered[low] + ordered[high]) / 2)[codes]]


def count(rows: Rows) -> list[Array]:
    """Count the rows of each category."""
    return [np.bincount(rows.codes)[rows.codes].astype(np.float64)]


# Work -> its definition, the number of its columns, and the tolerance, since sums of reals are not exact.
DEFINITIONS: dict[str, tuple[Callable[..., list[Array]], int, float]] = {
    "count": (count, 1, 1e-9),
    "ordinal": (by_value, 1, 1e-9),
    "ordinal-frequency": (by_frequency, 1, 1e-9),
    "one-hot": (by_value, 1, 1e-9),
    "evidence": (evidence, 1, 1e-9),
    "evidence-folds": (evidence, 1, 1e-9),
    "statistics": (statistics, len(STATISTICS), 1e-8),
    "median": (median, 1, 1e-9),
    "impact-folds": (impact, 2, 1e-9),
    "hashing": (words.components, 1, 1e-9),
}


def expected_of(rows: Rows, folds: Array | None = None) -> Answer:
    """Give the expected answer of most contenders; `folds` are row numbers modulo 5 unless given."""
    find, width, tolerance = DEFINITIONS[rows.work]
    if rows.work.endswith("-folds"):
        find = partial(find, folds=rows.folds if folds is None else folds)
    return expect(find, rows, width, tolerance)
