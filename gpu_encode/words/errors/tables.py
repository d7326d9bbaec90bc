"""Errors for data that is not a table of rows and columns, and for tables that do not match."""

import difflib
from collections.abc import Sequence
from typing import Any

import numpy as np

MOST_NAMES = 5
NO_NUMBERS = "Convert the column to numbers, or leave it out of values."


def other_columns(before: object, now: object) -> ValueError:
    """Error for other columns than in earlier calls."""
    return ValueError(
        f"partial_fit was called with other columns than before: {now} after {before}. Give the same columns, in the "
        "same order."
    )


def other_width(owner: str, found: int, fitted: int) -> ValueError:
    """Error for another number of columns than at fit, worded as scikit-learn does."""
    return ValueError(f"X has {found} features, but {owner} is expecting {fitted} features as input.")


def inconsistent_lengths(role: str, lengths: list[int]) -> ValueError:
    """Error for rows that do not match, in scikit-learn's words."""
    return ValueError(
        f"Found input variables with inconsistent numbers of samples: {lengths}. "
        f"X has {lengths[0]} rows and {role} {lengths[1]}; rows match by position, so give one value per row."
    )


def not_one_column(role: str, shape: tuple[int, ...]) -> ValueError:
    """Error for a vector that is a table."""
    return ValueError(f"{role} should be a 1d array, got an array of shape {shape} instead.")


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """Suggest the known words that are close to an unknown word, in upper or lower case.

    Examples
    --------
    >>> did_you_mean("ID", ["shop", "id"]), did_you_mean("ID", ["shop"])
    (" Did you mean 'id'?", '')
    """
    folded = difflib.get_close_matches(word.casefold(), {other.casefold() for other in known})
    near = sorted(
        (other for other in known if other.casefold() in folded), key=lambda other: folded.index(other.casefold())
    )
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""


def unknown_column(role: str, name: object, present: Sequence[object], table: str = "X") -> ValueError:
    """Error for a column that X, or another table, lacks; it suggests the nearest names."""
    hint = did_you_mean(str(name), list(map(str, present)))
    shown = ", ".join(map(repr, present[:20])) + (", ..." if len(present) > 20 else "")
    return ValueError(f"{role} {name!r} is not a column of {table}.{hint} {table[0].upper()}{table[1:]} has: {shown}.")


def not_encoded(parameter: str, column: object, joint_keys: Sequence[tuple[object, ...]] = ()) -> ValueError:
    """Error for a parameter about a column that is not encoded; suggests joint keys of its columns."""
    members = set(column) if isinstance(column, tuple) else {column}
    near = [key for key in joint_keys if members <= set(key)]
    hint = f" Did you mean {' or '.join(map(repr, near[:3]))}?" if near else ""
    return ValueError(
        f"{parameter} names {column!r}, which is not among the columns to encode.{hint} Add it to columns, or leave it "
        "out."
    )


def first_names(names: Sequence[object]) -> str:
    """List the first names, and the number of all."""
    more = f", ... ({len(names)} in all)" if len(names) > MOST_NAMES else ""
    return ", ".join(map(repr, names[:MOST_NAMES])) + more


def rows_have_changed(what: str) -> ValueError:
    """Error for rows that differ from the rows of an earlier pass."""
    return ValueError(
        f"{what} that were not there in the first pass over the rows. All passes must read the same rows: do not write "
        "to the source meanwhile, and make lazy sources give the same rows every time: keep what they gave once "
        "(localCheckpoint() in Spark, materialize() in Ray, persist() in Dask)."
    )


def no_value_columns(found: object) -> ValueError:
    """Error for a `values` that is not a list of columns."""
    return ValueError(
        f"values must be a list of names or positions of at least one column, each once, or None. Got {found!r}."
    )


def check_number_of_codes(expected: int, X: Any) -> None:
    """Raise ValueError, in scikit-learn's words, unless X has as many columns as the encoder has outputs."""
    shape = np.shape(X)
    if len(shape) == 2 and shape[1] != expected:
        raise ValueError(
            f"Shape of the passed X data is not correct. Expected {expected} columns, got {shape[1]}. Give only the "
            "encoded columns, in their order."
        )
