"""Some of the rows, as a caller hands them over; errors name a row by its number among all rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from gpu_encode.fitting.inputs import Inputs
from gpu_encode.words.errors.values import RowError


@dataclass(frozen=True, eq=False)
class Part:
    """Consecutive rows of a table.

    Parameters
    ----------
    X : table of shape (n_rows, n_columns)
        Of any kind that an encoder takes.
    y : array or table of shape (n_rows,) or (n_rows, n_targets), optional
        The target; not needed if the fold of a row follows from its number.
    sample_weight : array of shape (n_rows,), optional
    groups : array of shape (n_rows,), optional
    first_row : int, default=0
        Number of the first row among all rows.
    name : str, optional
        Name of the part in messages, such as "sales.parquet, row group 3".

    Examples
    --------
    >>> from gpu_encode.parts import Part
    >>> part = Part([["a"], ["b"]], [0, 1], first_row=100, name="the second file")
    >>> part.first_row
    100
    """

    X: Any
    y: Any = None
    sample_weight: Any = None
    groups: Any = None
    first_row: int = 0
    name: str | None = None

    def given(self) -> Inputs:
        """Give the table and the vectors in the form that encoders read."""
        return Inputs(self.X, self.y, self.sample_weight, self.groups)

    @contextmanager
    def named(self) -> Iterator[None]:
        """Add the name of the part to an error, and number a row among all rows."""
        try:
            yield
        except RowError as error:
            where = "" if self.name is None else f" (row {error.row} of {self.name})"
            raise RowError(error.before, self.first_row + error.row, f"{where}{error.after}") from error
        except (ValueError, TypeError) as error:
            if self.name is None or type(error) not in (ValueError, TypeError):
                raise
            raise type(error)(f"{self.name}: {error}") from error
