"""category_encoders' own code, run on the distinct values of columns where it would look values up row by row.

category_encoders spends nearly all of its time on turning values into numbers.  There, its code gets the distinct
values of a column, one row each, and every row looks up its result.  Sums, smoothings and random numbers are still
computed by its own code, so all numbers have the same bits.  `exchange` is the only list of the private names on which
we rely.
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
from gpu_encode.serve.accel.exchanges import Exchanges, Put
from gpu_encode.serve.accel.settings import SETTINGS

NAME = "category_encoders"
# Series and frames of pandas.
Series = Any
Table = Any
NO_COLUMN = "no column is looked up value by value"

# The outcome of the user's call that is running; each thread has its own.
OUTCOME: ContextVar[Outcome | None] = ContextVar("outcome", default=None)
EXCHANGES = Exchanges()


def exchange() -> None:
    """Replace the methods, if they are not replaced already."""
    EXCHANGES.exchange(put_all)


def put_all(put: Put) -> None:
    """Replace the inner methods before those that users call."""
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
    """Make a method that records which library served its calls; calls inside of it are not recorded separately."""

    @wraps(theirs)
    def method(self: Any, X: Any, *others: Any, **named: Any) -> Any:
        if OUTCOME.get() is not None:
            return theirs(self, X, *others, **named)
        with EXCHANGES.call() as wanted:
            return (record_call if wanted else theirs)(self, X, *others, **named)

    def record_call(self: Any, X: Any, *others: Any, **named: Any) -> Any:
        with RECORDS.of(f"{NAME}.{type(self).__name__}.{name}", count_rows(X)) as outcome:
            outcome.served_by, outcome.reason = NAME, NO_COLUMN
            token = OUTCOME.set(outcome)
            try:
                return theirs(self, X, *others, **named)
            finally:
                OUTCOME.reset(token)

    return method


def serve_column(values: Series, look_up: Callable[[], Any], theirs: Callable[[], Any]) -> Any:
    """Look up the rows of a column if possible, otherwise call category_encoders; record which one in the outcome."""
    outcome = OUTCOME.get() or Outcome()
    try:
        answer = look_up()
    except NotServedError as error:
        # If only some columns of a call are served, the reason says why the others are not.
        outcome.reason = f"{error} (column {values.name!r})" if outcome.served_by == "cpu" else str(error)
        return theirs()
    outcome.reason = "" if outcome.served_by == NAME else outcome.reason
    outcome.served_by = "cpu"
    return answer


def number_rows(values: Series, *, tell_missing: bool = False) -> tuple[Array, Array]:
    """Number the values in order of first appearance; give each row its number, and each value its first row.

    Two values are equal if pandas says that they are, as in category_encoders.

    Parameters
    ----------
    values : Series of shape (n_rows,)
    tell_missing : bool, default=False
        Whether None and NaN may be different values.

    Raises
    ------
    NotServedError
        If few values occur in more than one row, values have no hash, or kinds of missing values would have to be
        distinguished.
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
    """Compute the answer once for each distinct value, and give every row the answer for its value."""
    codes, first = number_rows(values, **told)
    return answer(values.iloc[first]).iloc[codes].set_axis(values.index)


def map_column(theirs: Method) -> Method:
    """Make `OrdinalEncoder._map_column`, with which most encoders turn values into numbers."""

    @wraps(theirs)
    def map_values(values: Series, col_mapping: Series) -> Series:
        return serve_column(
            values,
            lambda: look_up(values, lambda distinct: theirs(distinct, col_mapping)),
            lambda: theirs(values, col_mapping),
        )

    return map_values


def fit_column(theirs: Method) -> Method:
    """Make `_fit_column_map`, which sums a target by category; categories are found once for each distinct value."""

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
    """Make `_transform` of an encoder that treats columns separately; without y, it encodes distinct values.

    Parameters
    ----------
    theirs : callable
    with_target : callable, optional
        Serves calls with y; it gets `theirs`, then the arguments of the call.
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
    """Encode one column with an encoder of this column alone."""
    values = X[column]
    return serve_column(
        values,
        lambda: look_up(values, lambda distinct: theirs(one, distinct.to_frame())[column], tell_missing=True),
        lambda: theirs(one, X[[column]].copy())[column],
    )


def of_column(self: Any, column: Any) -> Any:
    """Give the encoder that a fit to one of its columns would have given."""
    one = object.__new__(type(self))
    vars(one).update({**vars(self), "cols": [column], "mapping": {column: self.mapping[column]}})
    return one


def leave_one_out(theirs: Method, self: Any, X: Table, y: Any) -> Table:
    """Leave each row's target out of the sums of its category; numbers stand in for the values."""
    numbered, mapping = X.copy(deep=False), dict(self.mapping)
    for column in self.mapping:
        numbered[column], mapping[column] = number_column(X[column], self.mapping[column])
    one = object.__new__(type(self))
    vars(one).update({**vars(self), "mapping": mapping})
    return theirs(one, numbered, y)


def number_column(values: Series, sums: Table) -> tuple[Series, Table]:
    """Give a column and the sums of its categories, with numbers in place of values if possible."""
    numbered: tuple[Series, Table] = serve_column(values, lambda: under_numbers(values, sums), lambda: (values, sums))
    return numbered


def under_numbers(values: Series, sums: Table) -> tuple[Series, Table]:
    """Give a column, and the sums of its categories, with float64 numbers in place of values; NaN stays NaN."""
    codes, first = number_rows(values, tell_missing=True)
    distinct, as_series = values.iloc[first], type(values)
    if values.dtype == "category":
        distinct = distinct.astype(distinct.dtype.categories.dtype)
    if (kind := distinct.map(sums["sum"]).dtype) != np.float64:
        # pandas' nullable text, for example: encodings are then double[pyarrow], and missing ones NA.
        raise NotServedError(f"values whose encodings have the type {kind}")
    positions = distinct.map(as_series(np.arange(len(sums)), sums.index)).to_numpy(np.float64)
    is_known = ~np.isnan(positions)
    if any(known != (value in sums.index) for known, value in zip(is_known, distinct, strict=True)):
        # For example booleans: pandas does not find them in an index of floats, although they equal some.
        raise NotServedError("values that are equal to categories and are not found among them")
    numbers = np.where(distinct.isna(), np.nan, np.arange(len(first)))
    # Categories without rows here get numbers that no row has.
    labels = -1.0 - np.arange(len(sums))
    labels[positions[is_known].astype(np.intp)] = numbers[is_known]
    labels[sums.index.isna()] = np.nan
    return as_series(numbers[codes], values.index, name=values.name), sums.set_axis(labels)


def in_order(theirs: Method, self: Any, X: Table, y: Any) -> Table:
    """Leave it to category_encoders to encode rows from the rows before them."""
    if (outcome := OUTCOME.get()) is not None:
        outcome.reason = "rows see those before them"
    return theirs(self, X, y)
