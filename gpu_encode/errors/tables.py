"""Data that is no table of rows and columns, and tables that do not match."""

from typing import Any


def unknown_kind(kind: object, allowed: list[str]) -> ValueError:
    """Error for a kind of table that cannot be written."""
    return ValueError(f"kind {kind!r} of table is not known. Use one of {', '.join(map(repr, allowed))}.")


def not_two_dimensional(shape: tuple[int, ...], found: object) -> ValueError:
    """Error for data that is no table, worded as scikit-learn does."""
    if len(shape) > 2:
        return ValueError(f"Found array with dim {len(shape)}, while dim 2 is required: one row per sample.")
    what = "1D" if len(shape) == 1 else "scalar"
    return ValueError(
        f"Expected 2D array, got {what} array instead:\narray={found}.\n"
        "Reshape your data either using array.reshape(-1, 1) if your data has a single feature or "
        "array.reshape(1, -1) if it contains a single sample."
    )


def no_columns(shape: tuple[int, ...]) -> ValueError:
    """Error for a table without columns, worded as scikit-learn does."""
    return ValueError(f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required.")


def no_rows(owner: str, shape: tuple[int, ...]) -> ValueError:
    """Error for a table without rows, worded as scikit-learn does."""
    return ValueError(f"Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is required by {owner}.")


def other_width(found: int, fitted: int) -> ValueError:
    """Error for another number of columns than at fit, worded as scikit-learn does."""
    return ValueError(f"X has {found} features, but TargetEncoder is expecting {fitted} features as input.")


def ragged_rows(name: str) -> ValueError:
    """Error for a list of rows of different lengths."""
    held = "column" if name == "X" else "target"
    return ValueError(f"{name} is a list whose rows have different lengths. Give every row one value per {held}.")


def rows_as_dicts(name: str) -> TypeError:
    """Error for a list of dicts, or a dict of columns."""
    return TypeError(
        f"{name} holds dicts, not a table. Build one first: pandas.DataFrame(rows) or pyarrow.Table.from_pylist(rows)."
    )


def sparse_data(name: str) -> TypeError:
    """Error for SciPy's sparse containers, in scikit-learn's words."""
    return TypeError(
        f"Sparse data was passed, but dense data is required: {name} is sparse, which categories cannot be. Convert it "
        "to a dense array with .toarray()."
    )


def check_real(name: object, found: Any) -> None:
    """Raise for complex numbers, in scikit-learn's words."""
    if found.dtype.kind == "c":
        raise ValueError(f"Complex data not supported\n{name}={found}\n")


def lazy_frame(type_name: str) -> TypeError:
    """Error for a frame that holds a plan and no rows."""
    return TypeError(f"X is a lazy {type_name} without rows yet. Call .collect() first.")


def unknown_container(name: str, type_name: str) -> TypeError:
    """Error for data of a type that nothing here reads."""
    return TypeError(
        f"{name} of type {type_name} is not understood. "
        "Give a NumPy array, a list, or a pandas, polars or pyarrow object."
    )


def repeated_names(names: list[str]) -> ValueError:
    """Error for columns of the same name."""
    return ValueError(f"duplicate column names: {', '.join(names)}. Rename or drop all but one.")


def mixed_name_types(types: list[str]) -> TypeError:
    """Error for column names of which only some are strings, in scikit-learn's words."""
    return TypeError(
        "Feature names are only supported if all input features have string names, "
        f"but your input has {types} as feature name / column name types. "
        "If you want feature names to be stored and validated, you must convert "
        "them all to strings, by using X.columns = X.columns.astype(str) for "
        "example. Otherwise you can remove feature / column names from your input "
        "data, or convert them all to a non-string data type."
    )


def inconsistent_lengths(role: str, lengths: list[int]) -> ValueError:
    """Error for rows that do not match, in scikit-learn's words."""
    return ValueError(
        f"Found input variables with inconsistent numbers of samples: {lengths}. "
        f"X has {lengths[0]} rows and {role} {lengths[1]}; rows match by position, so give one value per row."
    )


def not_one_column(role: str, shape: tuple[int, ...]) -> ValueError:
    """Error for a vector that is a table."""
    return ValueError(f"{role} should be a 1d array, got an array of shape {shape} instead.")
