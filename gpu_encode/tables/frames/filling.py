"""Frames with a column more, or with missing numbers filled, in the library of the frame."""

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import pyarrow as pa

from gpu_encode.tables.frames.columns import NOTE


def kinds_of_columns(data: Any, owner: str) -> dict[str, bool]:
    """Say for each column of a frame whether it holds numbers; TypeError for data without named columns."""
    try:
        frame = nw.from_native(data, eager_only=True)
    except TypeError:
        found = type(data).__name__
        raise TypeError(f"{owner} takes frames in memory, whose columns have names. Got {found}.") from None
    return {name: kind.is_numeric() for name, kind in frame.schema.items()}


def with_constant(data: Any, name: str) -> Any:
    """Add a column that is the same text in all rows."""
    return nw.from_native(data, eager_only=True).with_columns(nw.lit("all").alias(name)).to_native()


def fill_missing(data: Any, names: Sequence[str], others: Any) -> Any:
    """Replace missing numbers of columns by the numbers of other columns, the first ones of a frame of as many rows."""
    frame, found = nw.from_native(data, eager_only=True), nw.from_native(others, eager_only=True)
    filled = []
    for name, other in zip(names, found.columns, strict=False):
        number = frame[name].cast(nw.Float64())
        holes = number.is_null() | number.is_nan().fill_null(value=False)
        filled.append(found[other].zip_with(holes, number).alias(name))
    table = frame.with_columns(*filled).to_native()
    if isinstance(table, pa.Table):
        # pandas' note describes the types of the old columns.
        rest = {key: text for key, text in (table.schema.metadata or {}).items() if key != NOTE}
        return table.replace_schema_metadata(rest or None)
    return table
