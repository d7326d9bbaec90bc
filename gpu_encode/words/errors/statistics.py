"""What cannot be computed or learned: unknown statistics, columns of another kind, calls with other parameters."""

from typing import Any

import numpy as np

_ADVICE = "Convert the column to numbers, or leave it out of values."


def nameless_statistic(function: object) -> ValueError:
    """Error for a function, or for the name of a statistic, that names no column."""
    if not callable(function):
        return ValueError(
            f"The name of a MergeableStatistic must be a Python identifier, such as 'geometric_mean'. Got {function!r}."
        )
    return ValueError(f"statistics holds {function!r}, which has no name for its column. Define it by `def name(...)`.")


def no_value_columns(found: object) -> ValueError:
    """Error for `values` that is no list of columns."""
    return ValueError(
        f"values must be a list of names or positions of at least one column, each once, or None. Got {found!r}."
    )


def _shown(value: object) -> str:
    """Represent a value in one line that does not hide the rest of a message."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def check_number_of_codes(expected: int, X: Any) -> None:
    """Raise ValueError, in scikit-learn's words, unless X is as wide as what is to be inverted, whatever it holds."""
    shape = np.shape(X)
    if len(shape) == 2 and shape[1] != expected:
        raise ValueError(
            f"Shape of the passed X data is not correct. Expected {expected} columns, got {shape[1]}. Give the encoded "
            "columns alone, in their order."
        )


def merge_of_other_targets() -> ValueError:
    """Error for merging encoders of other targets."""
    return ValueError("Cannot merge encoders of different targets. Fit all on the same targets, in the same order.")
