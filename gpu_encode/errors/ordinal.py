"""Codes that are no places of categories, or that the output cannot hold; in scikit-learn's words where it has any."""

from collections.abc import Sequence


def unknown_value_of_integers(dtype: object) -> ValueError:
    """Error for NaN as the code of unknown categories, where codes are integers."""
    return ValueError(
        f"When unknown_value is np.nan, the dtype parameter should be a float dtype. Got {dtype}. "
        "Choose an integer as unknown_value, or dtype='float64'."
    )


def unknown_value_is_no_code(value: object) -> TypeError:
    """Error for a code of unknown categories that is neither an integer nor NaN."""
    return TypeError(
        "unknown_value should be an integer or np.nan when handle_unknown is 'use_encoded_value', "
        f"got {value}. -1 is a usual choice."
    )


def unknown_value_without_use(value: object) -> TypeError:
    """Error for a code of unknown categories, which are refused."""
    return TypeError(
        f"unknown_value should only be set when handle_unknown is 'use_encoded_value', got {value}. Leave one of them "
        "out, or set both."
    )


def taken_unknown_value(value: object, column: str, n_codes: int) -> ValueError:
    """Error for a code of unknown categories that is a category's."""
    return ValueError(
        f"The used value for unknown_value {value} is one of the values already used for encoding the seen categories. "
        f"Column {column!r} uses 0 to {n_codes - 1}: choose -1, or another number outside."
    )


def missing_without_code(columns: Sequence[object], dtype: object) -> ValueError:
    """Error for missing values that would be NaN, where codes are integers."""
    return ValueError(
        f"There are missing values in features {list(columns)}. For OrdinalEncoder to encode missing values with "
        f"dtype: {dtype}, set encoded_missing_value to a non-nan value, or set dtype to a float"
    )


def taken_missing_value(value: object, columns: Sequence[object]) -> ValueError:
    """Error for a code of missing values that is a category's."""
    return ValueError(
        f"encoded_missing_value ({value}) is already used to encode a known category in features: {list(columns)}. "
        "Choose -1, or another number outside of their codes."
    )


def missing_not_given(column: str) -> ValueError:
    """Error for missing training values where the categories that the user gave have none."""
    return ValueError(
        f"Found unknown categories [nan] in column {column!r} during fit. End categories with None, or choose "
        "handle_unknown='use_encoded_value'."
    )


def code_beyond_dtype(code: int, dtype: str, column: str) -> ValueError:
    """Error for codes that the output's type cannot hold."""
    return ValueError(f"Column {column!r} needs the code {code}, which {dtype} cannot hold. Choose a wider dtype.")


def rows_without_integer(number: int, dtype: str) -> ValueError:
    """Error for training rows that see no rows at all, where codes are integers."""
    return ValueError(
        f"{number} codes are NaN, because their rows see no other rows, and {dtype} has none. Choose dtype='float64', "
        "or handle_unknown='use_encoded_value'."
    )


def no_place(code: object, column: str, n_codes: int) -> ValueError:
    """Error for a code to invert that no category has."""
    return ValueError(
        f"X holds {code} for column {column!r}, whose codes are 0 to {n_codes - 1}. Give codes as transform gives them."
    )
