"""Messages, built in one place: what was expected, what came, where, and what to do."""

import difflib
import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any


def _column(column: object) -> str:
    return f"column {column!r}" if column is not None else "a column"


def unsupported_type(column: object, type_name: str) -> TypeError:
    """Error for values that are no categories; worded so that scikit-learn's checks know it."""
    return TypeError(
        f"{_column(column)} holds {type_name} values, which cannot be categories: the argument must be uniformly "
        "strings or numbers, bytes, dates, times or booleans. Convert the column, for example to str."
    )


def mixed_types(column: object, first: str, second: str) -> TypeError:
    """Error for a column of values that cannot be compared with one another."""
    return TypeError(
        f"{_column(column)} mixes {first} and {second}: the argument must be uniformly strings or numbers. "
        "Convert the column to one type, for example with astype(str)."
    )


def out_of_range(column: object, unit: str) -> ValueError:
    """Error for moments that an int64 in their unit cannot hold."""
    return ValueError(f"{_column(column)} holds moments that 64 bits in {unit!r} cannot hold. Use a coarser unit.")


def infinite_value(column: object, row: int) -> ValueError:
    """Error for infinity among the categories."""
    return ValueError(
        f"Input X contains infinity: {_column(column)}, the first in row {row}. "
        "Replace infinite values, by NaN for missing ones."
    )


def broken_text(column: object) -> ValueError:
    """Error for strings with lone surrogates."""
    return ValueError(f"{_column(column)} holds text that is no valid Unicode (a lone surrogate). Repair its decoding.")


def different_kinds(column: object, fitted: str, given: str) -> ValueError:
    """Error for values of another kind than those fitted."""
    return ValueError(
        f"{_column(column)} was fitted on {fitted} values and now holds {given} values. "
        f"Convert it to the kind it was fitted on."
    )


def repeated_categories(column: object, shown: str) -> ValueError:
    """Error for a list of categories that names one twice."""
    return ValueError(f"categories of {_column(column)} contain {shown} more than once.")


def null_not_last(column: object) -> ValueError:
    """Error for a missing value anywhere but at the end of a list of categories."""
    return ValueError(f"categories of {_column(column)}: a missing value (None, NaN) must be the last element, once.")


def infinite_category(column: object) -> ValueError:
    """Error for infinity in a list of categories."""
    return ValueError(f"categories of {_column(column)} contain infinity. Leave it out.")


def unknown_kind(kind: object, allowed: list[str]) -> ValueError:
    """Error for a kind of table that cannot be written."""
    return ValueError(f"kind {kind!r} of table is not known. Use one of {', '.join(map(repr, allowed))}.")


def damaged_vocabulary(reason: str) -> ValueError:
    """Error for stored categories that do not fit their description."""
    return ValueError(f"the stored categories are damaged: {reason}.")


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


def ragged_rows() -> ValueError:
    """Error for a list of rows of different lengths."""
    return ValueError("X is a list whose rows have different lengths. Give every row one value per column.")


def rows_as_dicts() -> TypeError:
    """Error for a list of dicts, or a dict of columns."""
    return TypeError(
        "X holds dicts, not a table. Build one first: pandas.DataFrame(rows) or pyarrow.Table.from_pylist(rows)."
    )


def sparse_data(name: str) -> TypeError:
    """Error for SciPy's sparse containers."""
    return TypeError(f"{name} is sparse, which categories cannot be. Convert it to a dense array with .toarray().")


def refuse_complex(name: object, found: Any) -> None:
    """Raise for complex numbers, in scikit-learn's words."""
    if found.dtype.kind == "c":
        message = f"Complex data not supported\n{name}={found}\n"
        raise ValueError(message)


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
        f"Found input variables with inconsistent numbers of samples: {lengths}. X has {lengths[0]} rows and "
        f"{role} {lengths[1]}; "
        "rows match by position, so give one value per row."
    )


def missing_targets(role: str, count: int, row: int) -> ValueError:
    """Error for nulls where every row needs a value."""
    noun = "value" if count == 1 else "values"
    where = "in row" if count == 1 else "the first in row"
    return ValueError(f"{role} has {count} missing {noun}, {where} {row}. Drop or fill these rows first.")


def not_one_column(role: str, shape: tuple[int, ...]) -> ValueError:
    """Error for a vector that is a table."""
    return ValueError(f"{role} should be a 1d array, got an array of shape {shape} instead.")


def check_number(
    owner: str, name: str, value: object, *, low: float, high: float = math.inf, open_low: bool = False
) -> None:
    """Raise ValueError unless `value` is a finite number in the range."""
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    inside = low < number <= high if open_low else low <= number <= high
    if not (inside and math.isfinite(number)):
        bound = "" if low == -math.inf else f" above {low:g}" if open_low else f" of at least {low:g}"
        upper = f" and at most {high:g}" if high < math.inf else ""
        raise ValueError(
            f"The {name!r} parameter of {owner} must be a finite number{bound}{upper}. Got {value!r} instead."
        )


def check_count(owner: str, name: str, value: object, *, low: int) -> None:
    """Raise ValueError unless `value` is an integer of at least `low`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < low:
        raise ValueError(
            f"The {name!r} parameter of {owner} must be an integer of at least {low}. Got {value!r} instead."
        )


def check_option(owner: str, name: str, value: object, allowed: tuple[object, ...]) -> None:
    """Raise ValueError unless `value` is one of the allowed ones."""
    if not any(type(value) is type(option) and value == option for option in allowed):
        raise bad_option(owner, name, value, tuple(repr(option) for option in allowed))


def bad_option(owner: str, name: str, value: object, allowed: tuple[str, ...]) -> ValueError:
    """Error for an option that does not exist; names those that do."""
    return ValueError(f"The {name!r} parameter of {owner} must be one of {', '.join(allowed)}. Got {value!r} instead.")


def unknown_column(role: str, name: object, present: Sequence[object]) -> ValueError:
    """Error for a column that is not there; suggests the nearest names."""
    near = difflib.get_close_matches(str(name), [str(other) for other in present])
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    shown = ", ".join(map(repr, present[:20])) + (", ..." if len(present) > 20 else "")
    return ValueError(f"{role} {name!r} is not a column of X.{hint} X has: {shown}.")


def moments_as_target() -> TypeError:
    """Error for dates or times given as a target."""
    return TypeError("y holds dates or times, which have no mean. Convert them to numbers, such as days since a date.")
