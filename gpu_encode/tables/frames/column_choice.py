"""The parameter `columns` if it is not a list: "categorical", a selector, a pattern or a function of the table."""

import re
from collections.abc import Mapping, Set
from typing import Any

import narwhals as nw

from gpu_encode.tables.frames.columns import is_categorical
from gpu_encode.tables.frames.frame import Frame, from_native
from gpu_encode.tables.frames.pieces import Pieces

CATEGORICAL = "categorical"


def is_choice(columns: Any) -> bool:
    """Tell whether `columns` chooses among the columns of a table, rather than naming them.

    Examples
    --------
    >>> is_choice("categorical"), is_choice(["a", "b"])
    (True, False)
    """
    if isinstance(columns, str):
        return columns == CATEGORICAL
    return callable(columns) or isinstance(columns, re.Pattern) or is_selector(columns)


def is_selector(columns: Any) -> bool:
    """Tell whether `columns` is a selector or another expression of narwhals or polars."""
    polars = nw.dependencies.get_polars()
    return isinstance(columns, nw.Expr) or (polars is not None and isinstance(columns, polars.Expr))


def list_columns(frame: Frame | Pieces, columns: Any) -> list[Any]:
    """Give the names or positions that `columns` lists or chooses; joint keys are tuples.

    Raises
    ------
    ValueError
        If `columns` does not name columns, or is a function that looks at rows.
    """
    if is_choice(columns):
        return agree(frame, columns)
    unordered = isinstance(columns, (str, bytes, Mapping, Set))
    if unordered or not hasattr(columns, "__len__") or getattr(columns, "ndim", 1) != 1:
        raise ValueError(
            "columns must be a list of names, or of tuples of names for joint keys; or 'categorical', a selector, a "
            f"compiled regular expression or a function of X. Got {columns!r} instead."
        )
    # An array, an index or a series of any library.
    methods = (getattr(columns, name, None) for name in ("to_pylist", "to_list", "tolist"))
    method = next(filter(None, methods), None)
    if method is None:
        return list(columns)
    listed: list[Any] = method()
    if not listed or not all(isinstance(flag, bool) for flag in listed):
        return listed
    if len(listed) != frame.n_columns:
        raise ValueError(
            f"columns has True or False for {len(listed)} columns, but X has {frame.n_columns}. Give one for each."
        )
    return [position for position, marked in enumerate(listed) if marked]


def agree(frame: Frame | Pieces, choice: Any) -> list[Any]:
    """Give the columns that are chosen; several tables must agree on them."""
    chosen = [list_columns(part, choose(part, choice)) for part in frame.parts]
    for names in chosen[1:]:
        if names != chosen[0]:
            raise ValueError(
                f"columns={choice!r} chooses {chosen[0]!r} in one table and {names!r} in another. Give a list of names."
            )
    return chosen[0]


def choose(frame: Frame, choice: Any) -> Any:
    """Find the columns that are chosen in one table."""
    bare = frame.without_rows()
    if isinstance(choice, str):
        return [position for position in range(frame.n_columns) if is_categorical(bare.column(position))]
    if isinstance(choice, re.Pattern):
        return [name for name in frame.labels or [] if isinstance(name, str) and choice.search(name)]
    if isinstance(choice, nw.Expr):
        return in_narwhals(bare).select(choice).columns
    if is_selector(choice):
        return in_polars(bare).select(choice).columns
    return ask_function(frame, bare, choice)


def in_narwhals(frame: Frame) -> Any:
    """Give a table as a narwhals frame; narwhals knows all libraries, but not single record batches of Arrow."""
    native = (
        frame.native.schema.empty_table()
        if frame.kind == "pyarrow_batch"
        else nw.to_native(frame.native, pass_through=True)
    )
    return from_native(native, eager_only=True)


def in_polars(frame: Frame) -> Any:
    """Give a table as a polars frame, for selectors of polars."""
    if frame.kind not in ("polars", "pyarrow", "pyarrow_batch"):
        raise ValueError(
            f"columns is a selector of polars, and X is of {frame.kind}. Give a table of polars or Arrow, a selector "
            "of narwhals, which takes any frame, or a list of names."
        )
    polars = nw.dependencies.get_polars()
    return frame.native if frame.kind == "polars" else polars.from_arrow(frame.native)


def ask_function(frame: Frame, bare: Frame, function: Any) -> Any:
    """Call a function of the table; it may only look at names and types, since each chunk has other rows."""
    if type(function).__module__.startswith("sklearn.") and frame.labels is not None:
        # scikit-learn's selector takes only pandas, and does not look at rows.
        return function(in_narwhals(bare).to_pandas())
    chosen = [list_columns(frame, function(table.as_given())) for table in (bare, frame)]
    if chosen[0] != chosen[1]:
        raise ValueError(
            f"columns={function!r} chooses {chosen[1]!r}, but {chosen[0]!r} from X without rows: it looks at rows, "
            "which come in chunks. Give the names instead: columns=function(X)."
        )
    return chosen[0]
