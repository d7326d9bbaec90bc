"""Categories without a column, and containers that cannot hold columns of zeros and ones."""

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from gpu_encode.words.errors.values import RowError, first_of, missing_values


def category_without_column(
    values: Sequence[object], column: object, when: str, rows: NDArray[Any], advice: str
) -> RowError:
    """Error for rows of values that have no column, in scikit-learn's words."""
    shown = f"{', '.join(map(repr, values[:5]))}{', ...' if len(values) > 5 else ''}"
    return first_of(f"Found unknown categories [{shown}] in column {column!r} during {when}: ", rows, "rows", advice)


def missing_without_column(column: object, rows: NDArray[Any]) -> RowError:
    """Error for missing values that the user wants to have refused."""
    return missing_values(f"Column {column!r}", rows, '. Fill them, or choose handle_missing="category" or "zero".')


def drops_not_found(absent: Sequence[tuple[object, object, str | None]]) -> ValueError:
    """Error for categories to drop that are none, in scikit-learn's words; says which kind is held where it differs."""
    listed = "\n".join(
        f"Category: {value!r}, Feature: {column!r}{f', which holds {kind} values' if kind else ''}"
        for column, value, kind in absent
    )
    return ValueError(
        f"The following categories were supposed to be dropped, but were not found in the training data.\n{listed}"
    )


def sparse_in_frame(wanted: str) -> ValueError:
    """Error for a frame as the container of a sparse matrix, in scikit-learn's words."""
    name = wanted.capitalize()
    return ValueError(
        f"{name} output does not support sparse data. Set sparse_output=False to output {wanted} dataframes or "
        f'disable {name} output via` ohe.set_output(transform="default").'
    )


def sparse_beside_passed(names: Sequence[object]) -> ValueError:
    """Error for columns that pass through beside a sparse matrix."""
    shown = ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
    return ValueError(
        f"Columns that are not encoded ({shown}) pass through, for which a sparse matrix has no place. "
        "Set sparse_output=False, or leave them out of X."
    )
