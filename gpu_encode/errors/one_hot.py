"""Categories without a column, and containers that cannot hold columns of zeros and ones."""

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from gpu_encode.errors.rows import RowError, first_of


def category_without_column(
    values: Sequence[object], column: object, when: str, rows: NDArray[Any], advice: str
) -> RowError:
    """Error for rows of values that have no column, in scikit-learn's words."""
    shown = f"{', '.join(map(repr, values[:5]))}{', ...' if len(values) > 5 else ''}"
    return first_of(f"Found unknown categories [{shown}] in column {column!r} during {when}: ", rows, "rows", advice)


def categories_without_column(column: object) -> ValueError:
    """Error for rows, which are not at hand, of values that have no column."""
    return ValueError(
        f"Found unknown categories in column {column!r} during fit. Add them to categories, or choose "
        'handle_unknown="ignore" or "infrequent_if_exist".'
    )


def missing_without_column(column: object, rows: NDArray[Any]) -> RowError:
    """Error for missing values that the user wants to have refused."""
    return first_of(
        f"Column {column!r} holds ",
        rows,
        "missing values",
        '. Fill them, or choose handle_missing="category" or "zero".',
    )


def missing_refused(column: object) -> ValueError:
    """Error for missing values in rows that are not at hand."""
    return ValueError(
        f'Column {column!r} holds missing values. Fill them, or choose handle_missing="category" or "zero".'
    )


def drops_of_other_length(n_columns: int, n_drops: int) -> ValueError:
    """Error for categories to drop that are not one a column, in scikit-learn's words."""
    return ValueError(
        f"`drop` should have length equal to the number of features ({n_columns}), got {n_drops}. "
        "Give one category per encoded column."
    )


def drops_not_found(absent: Sequence[tuple[object, object]]) -> ValueError:
    """Error for categories to drop that are none, in scikit-learn's words."""
    listed = "\n".join(f"Category: {value!r}, Feature: {column!r}" for column, value in absent)
    return ValueError(
        f"The following categories were supposed to be dropped, but were not found in the training data.\n{listed}"
    )


def infrequent_drop(value: object, column: object) -> ValueError:
    """Error for a category to drop that shares its column with others, in scikit-learn's words."""
    return ValueError(
        f"Unable to drop category {value!r} from feature {column!r} because it is infrequent. "
        "Drop a frequent one, or none."
    )


def sparse_in_frame(wanted: str) -> ValueError:
    """Error for a frame as the container of a sparse matrix, in scikit-learn's words."""
    name = wanted.capitalize()
    return ValueError(
        f"{name} output does not support sparse data. Set sparse_output=False to output {wanted} dataframes or "
        f'disable {name} output via` ohe.set_output(transform="default").'
    )


def sparse_in_dask() -> ValueError:
    """Error for a Dask frame, whose partitions cannot be sparse matrices."""
    return ValueError(
        "A Dask frame has no sparse partitions. Set sparse_output=False, or give X as a list of Delayed objects, one "
        "for each partition."
    )


def sparse_beside_passed(names: Sequence[object]) -> ValueError:
    """Error for columns that pass through beside a sparse matrix."""
    shown = ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
    return ValueError(
        f"Columns that are not encoded ({shown}) pass through, for which a sparse matrix has no place. "
        "Set sparse_output=False, or leave them out of X."
    )


def sparse_type_on_device(dtype: str) -> ValueError:
    """Error for a type that sparse matrices on a GPU do not have."""
    return ValueError(
        f"Sparse matrices on a GPU hold bool, float32 or float64, not {dtype}. Choose one of these as dtype, or "
        "sparse_output=False."
    )


def rows_of_zeros(rows: NDArray[Any]) -> ValueError:
    """Error for rows without a category where every category has a column, in scikit-learn's words."""
    return ValueError(
        f"Samples {rows} can not be inverted when drop=None and handle_unknown='error' because they contain all zeros"
    )


def name_is_no_text(name: object) -> TypeError:
    """Error for a combiner of names that gives something else than a name, in scikit-learn's words."""
    return TypeError(
        f"When `feature_name_combiner` is a callable, it should return a Python string. Got {type(name)} instead."
    )
