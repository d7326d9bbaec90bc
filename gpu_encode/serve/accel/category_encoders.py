"""category_encoders' own code, run on distinct values where it reads rows of values that are slow to look up.

Nearly all of its time goes where values become numbers: there its code sees the distinct values of a column, one row
each, and its answer is looked up for every row.  Sums, smoothings and random numbers stay its own, so that all numbers
are the same bits.  `exchange` is the one list of the private names that we rely on.
"""

from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any

import numpy as np
from category_encoders import CatBoostEncoder, CountEncoder, LeaveOneOutEncoder, OrdinalEncoder, utils

from cpu_fallback.types import Array
from gpu_encode.serve.accel.calls import RECORDS, Method, NotServedError, Outcome, count_rows
from gpu_encode.serve.accel.distinct_values import MOST_DISTINCT, find_first_rows
from gpu_encode.serve.accel.exchanges import Exchanges
from gpu_encode.serve.accel.settings import SETTINGS

NAME = "category_encoders"
# Series and frames of pandas.
Series = Any
Table = Any
NO_COLUMN = "no column is looked up value by value"

# The call of a user that runs; each thread has its own.
OUTCOME: ContextVar[Outcome | None] = ContextVar("outcome", default=None)
EXCHANGES = Exchanges()


def exchange() -> None:
    """Exchange the methods, unless they are."""
    if EXCHANGES:
        return
    put = EXCHANGES.put
    put(OrdinalEncoder, "_map_column", staticmethod(map_column(OrdinalEncoder._map_column)))
    put(LeaveOneOutEncoder, "_fit_column_map", staticmethod(fit_column(LeaveOneOutEncoder._fit_column_map)))
    put(CatBoostEncoder, "_fit_column_map", fit_column(CatBoostEncoder._fit_column_map))
    put(LeaveOneOutEncoder, "_transform", transform(LeaveOneOutEncoder._transform, leave_one_out))
    put(CatBoostEncoder, "_transform", transform(CatBoostEncoder._transform, in_order))
    put(CountEncoder, "_transform", transform(CountEncoder._transform))
    for owner, names in (
        (utils.BaseEncoder, ["fit"]),
        (utils.SupervisedTransformerMixin, ["transform", "fit_transform"]),
        (utils.UnsupervisedTransformerMixin, ["transform"]),
    ):
        for name in names:
            put(owner, name, record(name, getattr(owner, name)))


def record(name: str, theirs: Method) -> Method:
    """Make a method that records who has served its calls; those that it makes itself are part of them."""

    @wraps(theirs)
    def method(self: Any, X: Any, *others: Any, **named: Any) -> Any:
        if OUTCOME.get() is not None:
            return theirs(self, X, *others, **named)
        with RECORDS.of(f"{NAME}.{type(self).__name__}.{name}", count_rows(X)) as outcome:
            outcome.served_by, outcome.reason = NAME, NO_COLUMN
            token = OUTCOME.set(outcome)
            try:
                return theirs(self, X, *others, **named)
            finally:
                OUTCOME.reset(token)

    return method


def serve_column(values: Series, look_up: Callable[[], Any], theirs: Callable[[], Any]) -> Any:
    """Look the rows of a column up where that serves, else leave them to category_encoders; the call is told."""
    outcome = OUTCOME.get() or Outcome()
    try:
        answer = look_up()
    except NotServedError as error:
        # Of a call of several columns that are served, the reason says why others are not.
        outcome.reason = f"{error} (column {values.name!r})" if outcome.served_by == "cpu" else str(error)
        return theirs()
    outcome.reason = "" if outcome.served_by == NAME else outcome.reason
    outcome.served_by = "cpu"
    return answer


def number_rows(values: Series, *, tell_missing: bool = False) -> tuple[Array, Array]:
    """Give each row the number (int) of its value by first appearance, and each value the first row that has it.

    Values are equal where pandas takes them for equal, as category_encoders does.

    Parameters
    ----------
    values : Series of shape (n_rows,)
    tell_missing : bool, default=False
        Whether None and NaN may be told apart.

    Raises
    ------
    NotServedError
        If hardly a value stands in two rows, or there are few of these, or what is missing would have to be told apart.
    """
    if not len(values) or len(values) < SETTINGS.fewest_rows:
        raise NotServedError("few rows")
    try:
        codes, distinct = values.factorize(use_na_sentinel=False)
    except TypeError as error:
        raise NotServedError(f"a column cannot be numbered: {error}") from None
    if SETTINGS.fewest_rows and len(distinct) > MOST_DISTINCT * len(codes):
        raise NotServedError("most values of a column stand in one row alone")
    is_missing = distinct.isna()
    if tell_missing and values.dtype == object and is_missing.any():
        missing = values.iloc[np.flatnonzero(is_missing[codes])].tolist()
        if len({float if isinstance(value, float) else type(value) for value in missing}) > 1:
            raise NotServedError("missing values of several kinds")
    return codes, find_first_rows(codes, len(distinct))


def look_up(values: Series, answer: Callable[[Series], Series], **told: Any) -> Series:
    """Give every row the answer for its value, which is asked for once for each distinct value."""
    codes, first = number_rows(values, **told)
    return answer(values.iloc[first]).iloc[codes].set_axis(values.index)


def map_column(theirs: Method) -> Method:
    """Make `OrdinalEncoder._map_column`, by which most encoders turn values into whole numbers."""

    @wraps(theirs)
    def map_values(values: Series, col_mapping: Series) -> Series:
        return serve_column(
            values,
            lambda: look_up(values, lambda distinct: theirs(distinct, col_mapping)),
            lambda: theirs(values, col_mapping),
        )

    return map_values


def fit_column(theirs: Method) -> Method:
    """Make `_fit_column_map`, which sums a target by the categories of a column, found once for each value."""

    @wraps(theirs)
    def fit(*given: Any) -> Series:
        *encoder, values, y = given
        if values.dtype == "category":
            return theirs(*given)
        return serve_column(
            values,
            lambda: theirs(*encoder, look_up(values, lambda distinct: distinct.astype("category")), y),
            lambda: theirs(*given),
        )

    return fit


def transform(theirs: Method, with_target: Method | None = None) -> Method:
    """Make `_transform` of an encoder that takes its columns one by one: without y, each by its distinct values.

    Parameters
    ----------
    theirs : callable
    with_target : callable, optional
        What serves calls with y: is given `theirs`, and then the arguments of the call.
    """

    @wraps(theirs)
    def transform_columns(self: Any, X: Table, y: Any = None) -> Table:
        if self.mapping is None or not X.columns.is_unique:
            return theirs(self, X) if y is None else theirs(self, X, y)
        if y is not None and with_target is not None:
            return with_target(theirs, self, X, y)
        for column in list(self.mapping):
            X[column] = encode_column(theirs, of_column(self, column), X, column)
        return X

    return transform_columns


def encode_column(theirs: Method, one: Any, X: Table, column: Any) -> Series:
    """Encode a column by an encoder of it alone."""
    values = X[column]
    return serve_column(
        values,
        lambda: look_up(values, lambda distinct: theirs(one, distinct.to_frame())[column], tell_missing=True),
        lambda: theirs(one, X[[column]].copy())[column],
    )


def of_column(self: Any, column: Any) -> Any:
    """Give an encoder as it would be of one of its columns alone."""
    one = object.__new__(type(self))
    vars(one).update({**vars(self), "cols": [column], "mapping": {column: self.mapping[column]}})
    return one


def leave_one_out(theirs: Method, self: Any, X: Table, y: Any) -> Table:
    """Leave each row's target out of the sums of its category, under numbers in place of the values."""
    numbered, mapping = X.copy(deep=False), dict(self.mapping)
    for column in self.mapping:
        numbered[column], mapping[column] = number_column(X[column], self.mapping[column])
    one = object.__new__(type(self))
    vars(one).update({**vars(self), "mapping": mapping})
    return theirs(one, numbered, y)


def number_column(values: Series, sums: Table) -> tuple[Series, Table]:
    """Give a column and the sums of its categories under numbers where that serves, else as they are."""
    numbered: tuple[Series, Table] = serve_column(values, lambda: under_numbers(values, sums), lambda: (values, sums))
    return numbered


def under_numbers(values: Series, sums: Table) -> tuple[Series, Table]:
    """Give a column and the sums of its categories under numbers (float64) in place of the values; NaN stays NaN."""
    codes, first = number_rows(values, tell_missing=True)
    distinct, as_series = values.iloc[first], type(values)
    if values.dtype == "category":
        distinct = distinct.astype(distinct.dtype.categories.dtype)
    positions = distinct.map(as_series(np.arange(len(sums)), sums.index)).to_numpy(np.float64)
    is_known = ~np.isnan(positions)
    if any(known != (value in sums.index) for known, value in zip(is_known, distinct, strict=True)):
        # Such as booleans: an index of floats does not find them, though they are equal to some.
        raise NotServedError("values that are equal to categories and are not found among them")
    numbers = np.where(distinct.isna(), np.nan, np.arange(len(first)))
    # Categories of no row of these have numbers that none has.
    labels = -1.0 - np.arange(len(sums))
    labels[positions[is_known].astype(np.intp)] = numbers[is_known]
    labels[sums.index.isna()] = np.nan
    return as_series(numbers[codes], values.index, name=values.name), sums.set_axis(labels)


def in_order(theirs: Method, self: Any, X: Table, y: Any) -> Table:
    """Leave rows that see those before them to category_encoders."""
    if (outcome := OUTCOME.get()) is not None:
        outcome.reason = "rows see those before them"
    return theirs(self, X, y)
