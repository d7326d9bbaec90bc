"""How every message says how many rows are meant, where the first of them is, and in which of several tables."""

from collections.abc import Sequence
from typing import Any, Self

from numpy.typing import NDArray


class RowError(ValueError):
    """Error whose message names a row, and can be said again of tables, or vectors, in pieces.

    Parameters
    ----------
    before, after : str
        What stands around the number of the row.
    row : int

    Examples
    --------
    >>> from gpu_encode.errors.rows import RowError
    >>> print(RowError("y is NaN in row ", 5, ".").in_pieces("y", [3, 0, 4]))
    y is NaN in row 5 (row 2 of y[2]).
    """

    def __init__(self, before: str, row: int, after: str) -> None:
        super().__init__(before, row, after)
        self.before, self.row, self.after = before, row, after

    def __str__(self) -> str:
        return f"{self.before}{self.row}{self.after}"

    def below(self, n_rows: int) -> Self:
        """Give the error with so many rows in front of those that it was found in."""
        return type(self)(self.before, n_rows + self.row, self.after)

    def in_pieces(self, role: str, lengths: Sequence[int]) -> Self:
        """Give the error with the place of its row, which is counted over all pieces, in the piece that has it."""
        row = self.row
        for number, length in enumerate(lengths):
            if row < length:
                return type(self)(self.before, self.row, f" (row {row} of {role}[{number}]){self.after}")
            row -= length
        return self


def first_of(before: str, rows: NDArray[Any], what: str, after: str) -> RowError:
    """Error that says how many rows there are, and which is the first.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode.errors.rows import first_of
    >>> print(first_of("There are ", np.array([4, 7]), "negative weights", "."))
    There are 2 negative weights, the first in row 4.
    """
    return RowError(f"{before}{len(rows)} {what}, the first in row ", int(rows[0]), after)
