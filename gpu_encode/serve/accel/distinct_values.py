"""A table as scikit-learn's encoders read it: for each column its distinct values, and a number for each row."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import isnan
from typing import Any

import numpy as np

from cpu_fallback.types import MISSING, Array
from gpu_encode.seam.ops import host
from gpu_encode.serve.accel.calls import NotServedError
from gpu_encode.serve.accel.settings import SETTINGS
from gpu_encode.tables import frames
from gpu_encode.tables.frames import columns, factorizing
from gpu_encode.tables.frames.columns import Column

ReadAsTheirs = Callable[[Any], list[Array]]
Pick = Callable[[Array], Array]
# Kinds of values that are equal here exactly if scikit-learn says that they are equal.
KINDS = {"number", "text", "bytes", "null"}
# With more distinct values than this share of the rows, nothing is saved.
MOST_DISTINCT = 0.5


@dataclass(frozen=True, eq=False)
class DistinctValues:
    """The values of the columns of a table.

    Parameters
    ----------
    n_rows : int
    codes : list of int32 array of shape (n_rows,)
        Index in `values` of each row's value, for each column.
    values : list of array of shape (n_values,)
        Distinct values of each column, of the type in which scikit-learn's encoders read them.
    """

    n_rows: int
    codes: list[Array]
    values: list[Array]

    @property
    def n_values(self) -> int:
        """The largest number of distinct values in a column."""
        return max(map(len, self.values))

    @property
    def as_rows(self) -> list[Array]:
        """The distinct values as a table; shorter columns repeat their last value."""
        return [values[np.minimum(np.arange(self.n_values), len(values) - 1)] for values in self.values]

    def counts(self, column: int) -> Array:
        """Number of rows (int64) with each value of a column."""
        return np.bincount(self.codes[column], minlength=len(self.values[column]))


def read(X: Any, read_as_theirs: ReadAsTheirs) -> DistinctValues:
    """Find the distinct values of a table.

    Parameters
    ----------
    X : ndarray, list of rows, or frame of pandas or polars
    read_as_theirs : callable
        Gives the columns of a table as scikit-learn's encoders read them.

    Raises
    ------
    NotServedError
        If a column has values that would not be compared as in scikit-learn, or nearly all values occur once.
    """
    codes, values = [], []
    for column, pick in read_columns(X, read_as_theirs):
        numbers, first = number_rows(column)
        if SETTINGS.fewest_rows and len(first) > MOST_DISTINCT * len(numbers):
            raise NotServedError("most values of a column stand in one row alone")
        codes.append(numbers)
        values.append(pick(first))
    return DistinctValues(len(codes[0]), codes, values)


def read_columns(X: Any, read_as_theirs: ReadAsTheirs) -> Iterator[tuple[Column, Pick]]:
    """Yield each column, and a function that reads some of its rows as scikit-learn does.

    Columns of pandas are read in the form in which pandas stores them; making Python objects would take most of the
    time.
    """
    frame = None if isinstance(X, np.ndarray | list) else frames.read(X)
    if frame is None or frame.kind != "pandas" or frame.wrap is not None:
        for array in read_as_theirs(X):
            yield columns.from_numpy(array), array.__getitem__
        return
    for position in range(frame.n_columns):
        yield frame.column(position), partial(pick_rows, X, position, read_as_theirs)


def pick_rows(X: Any, position: int, read_as_theirs: ReadAsTheirs, rows: Array) -> Array:
    """Read rows of a column of a frame of pandas as scikit-learn does."""
    return read_as_theirs(X.iloc[rows, [position]])[0]


def number_rows(column: Column) -> tuple[Array, Array]:
    """Give each row the number (int32) of its value, and each value its first row."""
    try:
        codes, vocabulary, complete = factorizing.keys(column, "X", host(len(column)))
    except (TypeError, ValueError) as error:
        # scikit-learn's own code decides about such values.
        raise NotServedError(f"a column cannot be numbered: {error}") from None
    if vocabulary.kind not in KINDS:
        raise NotServedError(f"a column of {vocabulary.kind} values")
    n_values = len(vocabulary)
    if not complete and len(missing := np.flatnonzero(codes == MISSING)):
        codes = codes.copy()
        codes[missing] = n_values + tell_missing_apart(column, missing)
        n_values = int(codes.max()) + 1
    first = find_first_rows(codes, n_values)
    if vocabulary.kind == "number":
        return codes, first
    # scikit-learn puts Python objects into sets; the order of values in its errors depends on which one came first.
    in_order_of_rows = np.argsort(first)
    ranks = np.empty(n_values, np.int32)
    ranks[in_order_of_rows] = np.arange(n_values)
    return ranks[codes], first[in_order_of_rows]


def find_first_rows(codes: Array, n_values: int) -> Array:
    """Find the first row of each value, by the numbers of all rows."""
    first = np.zeros(n_values, np.intp)
    # If several rows have the same number, the last write counts.
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return first


def tell_missing_apart(column: Column, rows: Array) -> Array:
    """Number the kinds of missing values, since scikit-learn distinguishes None from NaN among Python objects."""
    data = column.data
    if column.codes is not None or not isinstance(data, np.ndarray) or data.dtype.kind != "O":
        return np.zeros(len(rows), np.int32)
    values = data[rows].tolist()
    is_none = np.array([value is None for value in values])
    is_nan = np.array([isinstance(value, float | np.floating) and isnan(value) for value in values])
    if not (is_none | is_nan).all():
        raise NotServedError("missing values that are neither None nor NaN")
    return (is_nan & is_none.any()).astype(np.int32)
