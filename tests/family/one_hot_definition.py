"""One-hot columns in plain loops, one column of X at a time: the definition for tests."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any


def columns_of(
    rows: Sequence[Any],
    weights: Sequence[int],
    min_frequency: float | None = None,
    max_categories: int | None = None,
    missing_is_category: bool = True,
) -> tuple[list[list[Any]], bool]:
    """List the categories of each column, None for a missing value; and whether the last is of infrequent ones."""
    weight: dict[Any, int] = defaultdict(int)
    for value, own in zip(rows, weights, strict=True):
        weight[value] += own
    present = sorted(value for value in weight if value is not None and weight[value] > 0)
    if missing_is_category and weight[None] > 0:
        present.append(None)
    least = 0 if min_frequency is None else min_frequency
    if isinstance(least, float):
        least *= sum(weights)
    rare = {value for value in present if weight[value] < least}
    if max_categories is not None and len(present) - len(rare) + 1 > max_categories:
        by_weight = sorted(range(len(present)), key=lambda place: (weight[present[place]], place))
        rare |= {present[place] for place in by_weight[: len(present) - max_categories + 1]}
    alone = [[value] for value in present if value not in rare]
    return ([*alone, [value for value in present if value in rare]] if rare else alone), bool(rare)


def encode(
    rows: Sequence[Any],
    columns: list[list[Any]],
    dropped: int | None = None,
    unknown_is_last: bool = False,
    missing_is_zero: bool = False,
) -> list[list[int]]:
    """Return the zeros and ones of rows; a value without a category has zeros, or the column of infrequent ones."""
    known = {value for column in columns for value in column}
    matrix = []
    for value in rows:
        ones = [int(value in column) for column in columns]
        if value not in known and unknown_is_last and not (value is None and missing_is_zero):
            ones[-1] = 1
        matrix.append([one for place, one in enumerate(ones) if place != dropped])
    return matrix
