"""Names of columns that do not fit X, or one another."""

import difflib
from collections.abc import Sequence


def unknown_column(role: str, name: object, present: Sequence[object]) -> ValueError:
    """Error for a column that is not there; suggests the nearest names."""
    near = difflib.get_close_matches(str(name), [str(other) for other in present])
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    shown = ", ".join(map(repr, present[:20])) + (", ..." if len(present) > 20 else "")
    return ValueError(f"{role} {name!r} is not a column of X.{hint} X has: {shown}.")


def position_out_of_range(role: str, position: object, n_columns: int) -> ValueError:
    """Error for a column by a position that is not there."""
    return ValueError(f"{role} {position!r} is out of range: X has {n_columns} columns, and an integer is a position.")


def not_a_column(role: str, type_name: str) -> ValueError:
    """Error for something that names no column."""
    return ValueError(f"{role} must be the name or position of a column of X. Got a {type_name} instead.")


def text_for_names(text: str) -> ValueError:
    """Error for one text where a list of names is wanted."""
    return ValueError(f"interactions needs a list of column names. Got the text {text!r}.")


def not_a_list_of_columns(found: object) -> ValueError:
    """Error for `columns` that is no list."""
    return ValueError(f"columns must be a list of names, or of tuples of names for joint keys. Got {found!r} instead.")


def nothing_to_encode(why: str) -> ValueError:
    """Error for a selection without columns."""
    return ValueError(f"No column is left to encode: {why}. Name at least one other column.")


def repeated_column(column: object) -> ValueError:
    """Error for a list that names one column or joint key twice."""
    return ValueError(f"columns lists {column!r} twice.")


def column_of_scheme(column: object) -> ValueError:
    """Error for a column to encode that is read in training alone."""
    return ValueError(
        f"Column {column!r} is used by the scheme (groups, time or folds) or summed (values), and cannot be encoded as "
        "well. Leave it out of columns, or give X a copy of it under another name."
    )


def not_encoded(parameter: str, column: object) -> ValueError:
    """Error for a parameter that says something of a column that is not encoded."""
    return ValueError(
        f"{parameter} names {column!r}, which is not among the columns to encode. Add it to columns, or leave it out."
    )


def repeated_in_joint_key(column: object) -> ValueError:
    """Error for a joint key that is empty, or has one column twice."""
    return ValueError(f"The joint key {_must_differ(column)}.")


def repeated_in_hierarchy(column: object, levels: object) -> ValueError:
    """Error for a hierarchy that is empty, or has one column twice."""
    return ValueError(f"hierarchy of {_must_differ(column)}. Got {levels!r}.")


def _must_differ(column: object) -> str:
    return f"{column!r} must name different columns, at least one"


def not_a_hierarchy(found: object) -> ValueError:
    """Error for `hierarchy` that is no mapping."""
    return ValueError(
        'hierarchy must map a column to its levels, such as {"zip": ["zip4", "zip3"]}, or to Prefixes, Parts or Bits. '
        f"Got {found!r} instead."
    )


def rule_for_joint_key(rule: str, column: object) -> ValueError:
    """Error for a rule of a hierarchy on several columns together."""
    return ValueError(f"hierarchy: {rule} applies to a single column, not to the joint key {column!r}.")


def uneven_categories(n_lists: int, n_columns: int) -> ValueError:
    """Error for lists of categories that are not one per column, in scikit-learn's words."""
    return ValueError(
        "Shape mismatch: if categories is an array, it has to be of shape (n_features,). "
        f"categories has {n_lists} lists for {n_columns} columns. Give one per column."
    )


def not_a_list_of_categories(column: str, found: object) -> ValueError:
    """Error for categories of a column that are no list."""
    return ValueError(f"categories of {column!r} must be a list of values or 'auto'. Got {found!r} instead.")


def categories_of_many(column: str) -> ValueError:
    """Error for categories given for something else than a single column."""
    return ValueError(
        f"categories of {column!r} cannot be given: it is a joint key or has a hierarchy. Put 'auto' in its place."
    )


def repeated_output(name: str) -> ValueError:
    """Error for two columns of one name in the output."""
    return ValueError(f"Two output columns would be called {name!r}. Rename the input column that clashes.")
