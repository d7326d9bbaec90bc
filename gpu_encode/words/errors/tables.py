"""Data that is no table of rows and columns, and tables that do not match."""

import difflib
from collections.abc import Sequence


def not_two_dimensional(shape: tuple[int, ...], found: object) -> ValueError:
    """Error for data that is no table, worded as scikit-learn does."""
    if len(shape) > 2:
        return ValueError(f"Found array with dim {len(shape)}, while dim 2 is required: one row per sample.")
    what = "1D" if len(shape) == 1 else "scalar"
    name = getattr(found, "name", None)
    as_table = f" One column of a frame is a table as X[[{name!r}]]." if isinstance(name, str) and name else ""
    return ValueError(
        f"Expected 2D array, got {what} array instead:\narray={found}.\n"
        "Reshape your data either using array.reshape(-1, 1) if your data has a single feature or "
        f"array.reshape(1, -1) if it contains a single sample.{as_table}"
    )


def other_width(owner: str, found: int, fitted: int) -> ValueError:
    """Error for another number of columns than at fit, worded as scikit-learn does."""
    return ValueError(f"X has {found} features, but {owner} is expecting {fitted} features as input.")


def ragged_rows(name: str) -> ValueError:
    """Error for a list of rows of different lengths."""
    held = "column" if name == "X" else "target"
    return ValueError(f"{name} is a list whose rows have different lengths. Give every row one value per {held}.")


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


def no_column(role: str, found: object) -> ValueError:
    """Error for what can be no name of a column; says how joint keys and groups are given."""
    hint = ""
    if role == "columns" and isinstance(found, list):
        hint = f" Write a joint key as a tuple, {tuple(found)!r}."
    elif role.startswith("The scheme"):
        hint = " It is one column, into which several are joined first; groups may be given to fit_transform instead."
    kind = type(found).__name__
    return ValueError(f"{role} must be the name or position of a column of X. Got a {kind} instead.{hint}")


def unknown_column(role: str, name: object, present: Sequence[object]) -> ValueError:
    """Error for a column that is not there; suggests the nearest names."""
    near = difflib.get_close_matches(str(name), [str(other) for other in present])
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    shown = ", ".join(map(repr, present[:20])) + (", ..." if len(present) > 20 else "")
    return ValueError(f"{role} {name!r} is not a column of X.{hint} X has: {shown}.")


def not_encoded(parameter: str, column: object, joint_keys: Sequence[tuple[object, ...]] = ()) -> ValueError:
    """Error for a parameter that says something of a column that is not encoded; suggests joint keys of its columns."""
    members = set(column) if isinstance(column, tuple) else {column}
    near = [key for key in joint_keys if members <= set(key)]
    hint = f" Did you mean {' or '.join(map(repr, near[:3]))}?" if near else ""
    return ValueError(
        f"{parameter} names {column!r}, which is not among the columns to encode.{hint} Add it to columns, or leave it "
        "out."
    )
