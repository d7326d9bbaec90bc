"""Names of columns that do not fit X, or one another."""

import difflib
from collections.abc import Sequence


def unknown_column(role: str, name: object, present: Sequence[object]) -> ValueError:
    """Error for a column that is not there; suggests the nearest names."""
    near = difflib.get_close_matches(str(name), [str(other) for other in present])
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    shown = ", ".join(map(repr, present[:20])) + (", ..." if len(present) > 20 else "")
    return ValueError(f"{role} {name!r} is not a column of X.{hint} X has: {shown}.")


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
