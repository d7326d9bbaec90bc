"""Frames with a column more, or with missing numbers filled, in the library of the frame."""

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import pyarrow as pa

from gpu_encode.tables.frames.frame import from_native, read


def read_named(data: Any, owner: str) -> "nw.DataFrame[Any]":
    """Read a frame; TypeError for data without named columns."""
    try:
        return from_native(data, eager_only=True)
    except TypeError:
        found = type(data).__name__
        raise TypeError(f"{owner} takes frames in memory, whose columns have names. Got {found}.") from None


def holding_words(frame: "nw.DataFrame[Any]", names: Sequence[str]) -> list[str]:
    """Give those of some columns that hold text or times, and not only missing values."""
    kinds = nw.String, nw.Categorical, nw.Enum, nw.Date, nw.Time, nw.Datetime, nw.Duration
    return [name for name in names if frame.schema[name] in kinds and frame[name].null_count() < len(frame)]


def with_constant(frame: "nw.DataFrame[Any]", name: str) -> Any:
    """Add a column that is the same text in all rows."""
    return frame.with_columns(nw.lit("all").alias(name)).to_native()


def fill_missing(frame: "nw.DataFrame[Any]", names: Sequence[str], others: Any) -> Any:
    """Replace missing numbers of columns by the numbers of other columns, the first ones of a frame of as many rows."""
    found, filled = from_native(others, eager_only=True), []
    for name, other in zip(names, found.columns, strict=False):
        number = frame[name].cast(nw.Float64())
        holes = number.is_null() | number.is_nan().fill_null(value=False)
        filled.append(found[other].zip_with(holes, number).alias(name))
    table = frame.with_columns(*filled).to_native()
    if not isinstance(table, pa.Table):
        return table
    # pandas' note describes the types of the old columns; a table that is made anew leaves it out.
    bare = read(table)
    return bare.assemble([], [], range(bare.n_columns))
