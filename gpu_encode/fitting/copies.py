"""Copies: rows that equal another row in all columns and in y, more often than chance explains."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Rows that `fit_transform` looks at, on average.
SAMPLED_ROWS = 3_000
# Rows have copies from this share of all rows on.
LEAST_SHARE = 0.005
# Of so many rows of equal values on average, or more, a copy is a small part, and equal rows are no accident.
MOST_EQUAL = 10
# Targets of more values are divided at their median when chance is judged.
MOST_CLASSES = 10
# Rows with equal columns have equal targets in this share of comparisons if they are copies.
AGREEMENT = 0.9
# Of the comparisons in which chance makes targets differ, equal targets are found in this share if rows are copies; and
# so many such comparisons are enough to tell.
BEYOND_CHANCE, FEWEST_COMPARISONS = 0.8, 15
# Odd, so that a product with it permutes the numbers of 32 bits: 2^32 divided by the golden ratio (Knuth, "The Art of
# Computer Programming", volume 3, section 6.4).
GOLDEN = np.uint32(0x9E3779B1)


def share_of_copies(columns: Sequence[NDArray[Any]], y: NDArray[Any], most_rows: int = SAMPLED_ROWS) -> float:
    """Estimate the share of rows that have a copy: another row with the same values in all columns and the same target.

    Rows of equal columns that have equal targets are copies if a single column does not explain the agreement: two rows
    with one value of that column, neither of them in the group of equal rows, would agree with probability sum(p^2),
    where p are the shares of the classes among the other rows of the value.

    Parameters
    ----------
    columns : list of int array (rows,)
        Code of each row in each column.
    y : array (rows,)
        Targets: class numbers, or numbers.
    most_rows : int
        Of more rows, a sample is taken: about so many, and all rows of each value in the column of most values.

    Returns
    -------
    float
        0 if chance explains the equal rows, or if fewer than one row in 200 has one.
    """
    rows = sample_rows(max(columns, key=lambda codes: int(codes.max())), most_rows)
    if not len(rows):
        return 0.0
    codes = [column[rows] for column in columns]
    group = number_rows(codes)
    size = np.bincount(group)
    repeated = size[group] > 1
    if len(rows) > MOST_EQUAL * len(size) or repeated.mean() < LEAST_SHARE:
        return 0.0
    values = np.unique(y[rows], return_inverse=True)[1].reshape(-1)
    if agreement(group, size, values) < AGREEMENT:
        return 0.0
    classes = values if values.max() < MOST_CLASSES else (values > np.median(values)).astype(np.int64)
    n_comparisons = len(rows) - len(size)
    expected = max(expected_agreement(column, group, size, classes) for column in codes)
    surprising = n_comparisons * (1 - expected)
    beyond = 1 - n_comparisons * (1 - agreement(group, size, classes)) / max(surprising, 1e-9)
    if surprising < FEWEST_COMPARISONS or beyond < BEYOND_CHANCE:
        return 0.0
    return float(repeated.mean())


def number_rows(columns: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    """Number the distinct rows of codes in lexicographic order, and give the number of each row."""
    numbers = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        # Values that are missing or not listed have negative codes.
        codes = column.astype(np.int64) + 2
        numbers = np.unique(numbers * (codes.max() + 1) + codes, return_inverse=True)[1].reshape(-1)
        if numbers.max() + 1 == len(numbers):
            break
    return numbers


def sample_rows(codes: NDArray[Any], most_rows: int) -> NDArray[np.int64]:
    """Take all rows of some categories, which a hash draws: about `most_rows` rows."""
    if len(codes) <= most_rows:
        return np.arange(len(codes))
    hashed = codes.astype(np.uint32)
    hashed *= GOLDEN
    # The code 0, of which most rows may be, has the hash 0 and is not drawn: these rows would be all of the sample.
    return np.flatnonzero(hashed > np.uint32((1 << 32) - (most_rows << 32) // len(codes)))[: 2 * most_rows]


def agreement(group: NDArray[np.int64], size: NDArray[np.int64], labels: NDArray[np.int64]) -> float:
    """Give the share of pairs in a group that have equal labels; a group of n rows counts as n - 1 pairs."""
    pair, rows = np.unique(group * (labels.max() + 1) + labels, return_inverse=True, return_counts=True)[1:]
    equal = np.bincount(group, rows[pair.reshape(-1)] - 1.0) / size
    return float(equal.sum() / (size - 1).sum())


def expected_agreement(
    codes: NDArray[Any], group: NDArray[np.int64], size: NDArray[np.int64], classes: NDArray[np.int64]
) -> float:
    """Give the share of pairs in groups that would have equal classes if one column alone decided about these."""
    n_classes = int(classes.max()) + 1
    of_group = np.zeros((len(size), n_classes))
    np.add.at(of_group, (group, classes), 1)
    code_of_group = np.zeros(len(size), np.int64)
    # In few numbers, since the table has a line for each.
    code_of_group[group] = np.unique(codes, return_inverse=True)[1].reshape(-1)
    of_code = np.zeros((int(code_of_group.max()) + 1, n_classes))
    np.add.at(of_code, code_of_group, of_group)
    share = of_code[code_of_group] - of_group + of_group.sum(axis=0) / len(group)
    share /= share.sum(axis=1, keepdims=True)
    return float(((share**2).sum(axis=1) * (size - 1)).sum() / (size - 1).sum())
