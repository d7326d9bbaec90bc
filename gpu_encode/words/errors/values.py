"""Errors that name a row, and errors for values that cannot be categories."""

from collections.abc import Sequence
from typing import Any, Self

from numpy.typing import NDArray


class RowError(ValueError):
    """Error whose message names a row; for tables or vectors in pieces, it can name the piece as well.

    Parameters
    ----------
    before, after : str
        Text before and after the number of the row.

    Examples
    --------
    >>> from gpu_encode.words.errors.values import RowError
    >>> print(RowError("y is NaN in row ", 5, ".").in_pieces("y", [3, 0, 4]))
    y is NaN in row 5 (row 2 of y[2]).
    """

    def __init__(self, before: str, row: int, after: str) -> None:
        super().__init__(before, row, after)
        self.before, self.row, self.after = before, row, after

    def __str__(self) -> str:
        return f"{self.before}{self.row}{self.after}"

    def below(self, n_rows: int) -> Self:
        """Give the same error for a row with `n_rows` more rows before it."""
        return type(self)(self.before, n_rows + self.row, self.after)

    def in_pieces(self, role: str, lengths: Sequence[int]) -> Self:
        """Give the error with the row's number in the piece that holds it; `self.row` counts over all pieces."""
        row = self.row
        for number, length in enumerate(lengths):
            if row < length:
                return type(self)(self.before, self.row, f" (row {row} of {role}[{number}]){self.after}")
            row -= length
        return self


def first_of(before: str, rows: NDArray[Any], what: str, after: str) -> RowError:
    """Make an error that gives the number of such rows, and names the first of them.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode.words.errors.values import first_of
    >>> print(first_of("There are ", np.array([4, 7]), "negative weights", "."))
    There are 2 negative weights, the first in row 4.
    """
    return RowError(f"{before}{len(rows)} {what}, the first in row ", int(rows[0]), after)


def of_column(column: object) -> str:
    """Name the column of an error, if it has a name."""
    return f"column {column!r}" if column is not None else "a column"


def unsupported_type(column: object, type_name: str) -> TypeError:
    """Error for values that cannot be categories; scikit-learn's checks look for its words."""
    return TypeError(
        f"{of_column(column)} holds {type_name} values, which cannot be categories: the argument must be uniformly "
        "strings or numbers, bytes, dates, times, booleans, or intervals or periods of pandas. Convert the column, for "
        f"example to str{', or give its fields as columns' if type_name.startswith('struct') else ''}."
    )


def mixed_types(column: object, first: str, second: str) -> TypeError:
    """Error for a column of values that cannot be compared with one another."""
    return TypeError(
        f"{of_column(column)} mixes {first} and {second}: the argument must be uniformly strings or numbers. "
        "Convert the column to one type, for example with astype(str)."
    )


def out_of_range(column: object, unit: str) -> ValueError:
    """Error for dates or times that an int64 in their unit cannot hold."""
    return ValueError(f"{of_column(column)} holds dates that 64 bits in {unit!r} cannot hold. Use a coarser unit.")


def infinite_value(column: object, row: int) -> RowError:
    """Error for infinity among the categories."""
    return RowError(
        f"Input X contains infinity: {of_column(column)}, the first in row ",
        row,
        ". Replace infinite values, by NaN for missing ones.",
    )


def broken_text(column: object) -> ValueError:
    """Error for strings with lone surrogates."""
    return ValueError(
        f"{of_column(column)} holds text that is no valid Unicode (a lone surrogate). Repair its decoding."
    )


def different_kinds(column: object, fitted: str, given: str) -> ValueError:
    """Error for values of another kind than the fitted values."""
    return ValueError(
        f"{of_column(column)} was fitted on {fitted} values and now holds {given} values. "
        f"Convert it to the kind it was fitted on."
    )


def unknown_categories(where: str, rows: NDArray[Any], advice: str) -> RowError:
    """Error for rows of categories that the fit, or the user's list, does not hold."""
    return first_of(f"Found unknown categories in column {where}: ", rows, "rows", advice)


def missing_values(named: str, rows: NDArray[Any], advice: str) -> RowError:
    """Error for missing values that are refused."""
    return first_of(f"{named} holds ", rows, "missing values", advice)


def in_one_line(value: object) -> str:
    """Represent a value in one short line, so that it does not hide the rest of a message."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."
