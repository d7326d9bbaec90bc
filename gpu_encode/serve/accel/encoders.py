"""scikit-learn's own code, run on distinct values: what its encoders learn and return depends on nothing else.

Each method that users call is replaced by one that finds the distinct values of X, passes only these to scikit-learn's
method, one row each, and looks up the result for every row.  So all numbers, messages and attributes are
scikit-learn's. This module and `target_encoder` use private methods of scikit-learn, which `patches` replaces.
"""

from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from threading import get_ident
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.preprocessing._encoders import _BaseEncoder
from sklearn.utils._encode import _check_unknown, _encode

from cpu_fallback.types import Array
from gpu_encode.serve.accel.calls import RECORDS, Method, NotServedError, Outcome, count_rows
from gpu_encode.serve.accel.distinct_values import DistinctValues, read
from gpu_encode.serve.accel.exchanges import Exchanges
from gpu_encode.serve.accel.settings import SETTINGS

# Tables that are read here; scikit-learn itself accepts or refuses all others.
FRAMES = ("pandas", "polars")

check_columns = _BaseEncoder._check_X
map_infrequent = _BaseEncoder._fit_infrequent_category_mapping


@dataclass(eq=False)
class Call:
    """A running call: its table, and what was read of it.

    Parameters
    ----------
    X : table
    outcome : Outcome
    encoder : estimator
    thread : int
        The thread that runs the call; others may have got its context.
    distinct : DistinctValues or None
        None if scikit-learn serves the call.
    training : object, optional
        State of `target_encoder` during a call of `fit`.
    has_ended : bool, default=False
    """

    X: Any
    outcome: Outcome
    encoder: Any
    thread: int = field(default_factory=get_ident)
    distinct: DistinctValues | None = None
    training: Any = None
    has_ended: bool = False


EXCHANGES = Exchanges()
# Each thread has its own, but a context may be copied to another thread, or kept.
CALL: ContextVar[Call | None] = ContextVar("call", default=None)


def running_call() -> Call | None:
    """Give the call that runs in this thread, if there is one."""
    call = CALL.get()
    return None if call is None or call.has_ended or call.thread != get_ident() else call


def serve(name: str, theirs: Method, ours: Method) -> Method:
    """Make a method that this library serves if it can, and scikit-learn otherwise.

    Parameters
    ----------
    name : str
        Name of the method.
    theirs : callable
        scikit-learn's method.
    ours : callable
        Gets the call, scikit-learn's method, and the arguments of the call.
    """

    def run(call: Call, *arguments: Any, **named: Any) -> Any:
        return theirs(*arguments, **named) if call.distinct is None else ours(call, theirs, *arguments, **named)

    @wraps(theirs)
    def method(self: Any, X: Any, *others: Any, **named: Any) -> Any:
        outer = running_call()
        # `fit_transform` calls `fit` and `transform` with the same table.
        if outer is not None and outer.X is X and outer.encoder is self:
            return run(outer, self, X, *others, **named)
        with EXCHANGES.call() as wanted:
            if not wanted:
                token = CALL.set(None)
                try:
                    return theirs(self, X, *others, **named)
                finally:
                    CALL.reset(token)
            with RECORDS.of(f"{type(self).__name__}.{name}", count_rows(X)) as outcome:
                return serve_call(Call(X, outcome, self), run, *others, **named)

    return method


def serve_call(call: Call, run: Method, *others: Any, **named: Any) -> Any:
    """Run a call of a user by its distinct values, or leave it to scikit-learn."""
    token = CALL.set(call)
    try:
        call.distinct = read_table(call.encoder, call.X)
        call.outcome.served_by = "cpu"
        return run(call, call.encoder, call.X, *others, **named)
    except NotServedError as error:
        call.distinct = call.training = None
        call.outcome.served_by, call.outcome.reason = "scikit-learn", str(error)
        return run(call, call.encoder, call.X, *others, **named)
    finally:
        call.has_ended = True
        CALL.reset(token)


def read_table(encoder: Any, X: Any) -> DistinctValues:
    """Find the distinct values of a table; if that is not possible, NotServedError says why."""
    kind = type(X).__module__.split(".")[0]
    if not isinstance(X, list | np.ndarray) and kind not in FRAMES:
        raise NotServedError(f"a table of {kind}")
    shape = (len(X), 1) if isinstance(X, list) else X.shape
    if len(shape) != 2 or not all(shape):
        raise NotServedError("no table of rows and columns")
    if shape[0] < SETTINGS.fewest_rows:
        raise NotServedError("few rows")
    try:
        return read(X, lambda table: check_columns(encoder, table, ensure_all_finite="allow-nan")[0])
    except (TypeError, ValueError) as error:
        # scikit-learn may have other errors for this call, and must raise them first.
        raise NotServedError(f"scikit-learn refuses the table: {error}") from None


def give_distinct_values(self: Any, X: Any, *others: Any, **named: Any) -> tuple[list[Array], int, int]:
    """Give scikit-learn's code the distinct values of a served call's table, in place of `_BaseEncoder._check_X`."""
    call = running_call()
    if call is None or call.distinct is None or call.X is not X:
        columns, n_rows, n_columns = check_columns(self, X, *others, **named)
        return columns, n_rows, n_columns
    return call.distinct.as_rows, call.distinct.n_values, len(call.distinct.values)


def count_all_rows(self: Any, n_samples: int, category_counts: list[Array], missing_indices: Any) -> None:
    """Find infrequent categories from counts of all rows; `category_counts` are only those of distinct values."""
    call = running_call()
    if call is not None and call.distinct is not None:
        n_samples, category_counts = call.distinct.n_rows, count_categories(call.distinct, self.categories_)
    map_infrequent(self, n_samples, category_counts, missing_indices)


def count_categories(distinct: DistinctValues, categories: list[Array]) -> list[Array]:
    """Count the rows (int64) of each category of each column."""
    counts = []
    for column, (values, known) in enumerate(zip(distinct.values, categories, strict=True)):
        _, is_known = _check_unknown(values, known, return_mask=True)
        of_column = np.zeros(len(known), np.int64)
        # Without values, `_encode` would make a list that does not hold integers.
        if is_known.any():
            of_column[_encode(values[is_known], uniques=known)] = distinct.counts(column)[is_known]
        counts.append(of_column)
    return counts


def run_theirs(_: Call, theirs: Method, *arguments: Any, **named: Any) -> Any:
    """Run a method of scikit-learn that reads its table with `_check_X`, or calls methods that do."""
    return theirs(*arguments, **named)


def look_up_rows(call: Call, theirs: Method, self: Any, X: Any) -> Array:
    """Transform the distinct values, and look up the result for every row."""
    distinct = distinct_of(call)
    table = theirs(self, X)
    width = table.shape[1] // len(distinct.codes)
    out = np.empty((distinct.n_rows, table.shape[1]), table.dtype)
    for column, codes in enumerate(distinct.codes):
        for output in range(column * width, (column + 1) * width):
            out[:, output] = table[:, output][codes]
    return out


def look_up_columns(call: Call, theirs: Method, self: Any, X: Any) -> Any:
    """Transform the distinct values to indicators, and give each row the columns that are 1 for its values."""
    distinct = distinct_of(call)
    indicators = theirs(self, X) if self.sparse_output else theirs_sparse(theirs, self, X)
    columns = columns_of_ones(indicators, self._n_features_outs)
    shape = (distinct.n_rows, len(distinct.codes))
    many = shape[0] * shape[1] > np.iinfo(np.int32).max
    ones = np.empty(shape, np.int64 if many else np.int32)
    for column, codes in enumerate(distinct.codes):
        ones[:, column] = columns[:, column][codes]
    starts = np.arange(0, ones.size + 1, shape[1], dtype=ones.dtype)
    indices = ones.ravel()
    if columns.size and columns.min() < 0:
        is_one = ones >= 0
        indices = ones[is_one]
        starts[1:] = np.cumsum(is_one.sum(axis=1))
    data = np.ones(len(indices), indicators.dtype)
    out = type(indicators)((data, indices, starts), shape=(shape[0], indicators.shape[1]))
    return out if self.sparse_output else out.toarray()


def theirs_sparse(theirs: Method, self: Any, X: Any) -> Any:
    """Give sparse indicators from an encoder with dense output, which might be too large even for distinct values."""
    twin = object.__new__(type(self))
    vars(twin).update({**vars(self), "sparse_output": True})
    vars(twin).pop("_sklearn_output_config", None)
    with config_context(transform_output="default"):
        return theirs(twin, X)


def columns_of_ones(indicators: Any, n_outputs: list[int]) -> Array:
    """Give the number (int32) of the indicator that is 1, for each row and column; -1 if all are 0."""
    starts = np.cumsum([0, *n_outputs])
    rows = np.repeat(np.arange(indicators.shape[0]), np.diff(indicators.indptr))
    columns = np.full((indicators.shape[0], len(n_outputs)), -1, np.int32)
    columns[rows, np.searchsorted(starts, indicators.indices, "right") - 1] = indicators.indices
    return columns


def distinct_of(call: Call) -> DistinctValues:
    """Give the distinct values of a served call."""
    if call.distinct is None:
        raise AssertionError("only calls that are served look rows up")
    return call.distinct
