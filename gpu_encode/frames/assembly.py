"""Encoded columns and passed-through ones put together, in the library asked for."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from cpu_fallback.types import Array
from gpu_encode import devices
from gpu_encode.frames import cudf, device_columns

if TYPE_CHECKING:
    from gpu_encode.frames.frame import Frame


def assemble(frame: "Frame", names: list[str], arrays: list[Array], passed: list[int], kind: str | None) -> Any:
    """Give a table of new columns, then columns of `frame` by position, of its own kind or another."""
    if kind == "pandas" and frame.wrap is devices.accelerated:
        # It is pandas to its user already, and stays where it is.
        kind = None
    own = kind is None or kind == frame.kind
    wanted = frame.kind if kind is None else kind
    if wanted == "cupy":
        return device_columns.assemble_matrix(arrays, frame.native, passed)
    if wanted == "cudf":
        return wrap_like(frame, cudf.assemble(frame, names, arrays, passed), own)
    arrays = device_columns.here(arrays)
    if frame.kind == "cupy":
        frame = replace(frame, native=device_columns.to_host(frame.native), kind="numpy")
    if frame.kind == "cudf":
        native, kind = cudf.on_host(frame, passed, wanted)
        frame, passed = replace(frame, native=native, kind=kind), list(range(len(passed)))
    if wanted == "numpy":
        table: Any = _numpy(frame, arrays, passed)
    elif wanted in _BUILDERS:
        table = _BUILDERS[wanted](frame, names, arrays, passed)
    else:
        raise ValueError(
            f"kind {kind!r} of table is not known. Use one of {', '.join(map(repr, ['numpy', *_BUILDERS]))}."
        )
    return wrap_like(frame, table, own)


def wrap_like(frame: "Frame", table: Any, own: bool) -> Any:
    """Put a table of the frame's kind into what the frame came in."""
    return frame.wrap(table) if frame.wrap is not None and own else table


def matrix_of(arrays: list[Array]) -> Array | None:
    """Give the matrix whose columns the arrays are, in order and complete; None if there is none."""
    base = arrays[0].base if arrays else None
    if not isinstance(base, np.ndarray) or base.shape != (len(arrays[0]), len(arrays)):
        return None
    for position, array in enumerate(arrays):
        column = base[:, position]
        if array.dtype != base.dtype or array.__array_interface__["data"] != column.__array_interface__["data"]:
            return None
        if array.strides != column.strides:
            return None
    return base


def _numpy(frame: "Frame", arrays: list[Array], passed: list[int]) -> Array:
    if not passed and (matrix := matrix_of(arrays)) is not None:
        return matrix
    columns = arrays + [_as_numpy(frame, position) for position in passed]
    dtype = np.result_type(*columns) if all(column.dtype.kind in "biuf" for column in columns) else np.dtype(object)
    if not all(_exact(column, dtype) for column in columns):
        dtype = np.dtype(object)
    table = np.empty((frame.n_rows, len(columns)), dtype, order="F")
    for position, column in enumerate(columns):
        table[:, position] = column
    return table


def _exact(column: Array, dtype: np.dtype[Any]) -> bool:
    """Whether integers come back from a float type as they were."""
    if column.dtype.kind not in "iu" or dtype.kind != "f" or not len(column):
        return True
    largest: int = max(abs(int(column.min())), abs(int(column.max())))
    digits: int = np.finfo(dtype).nmant + 1
    return largest.bit_length() <= digits


def _as_numpy(frame: "Frame", position: int) -> Array:
    native = frame.native
    if frame.kind == "numpy":
        found = native[:, position]
    elif frame.kind == "pandas":
        found = native.iloc[:, position].to_numpy()
    elif frame.kind == "polars":
        found = native.to_series(position).to_numpy()
    elif frame.kind == "other":
        found = native[:, position].to_numpy()
    elif frame.kind == "pyarrow":
        found = native.column(position).to_numpy()
    else:
        found = native.column(position).to_numpy(zero_copy_only=False)
    return np.asarray(found)


def _pandas(frame: "Frame", names: list[str], arrays: list[Array], passed: list[int]) -> Any:
    import pandas as pd

    index = frame.native.index if frame.kind == "pandas" else pd.RangeIndex(frame.n_rows)
    matrix = matrix_of(arrays)
    if matrix is not None:
        encoded = pd.DataFrame(matrix, index=index, columns=names, copy=False)
    else:
        encoded = pd.DataFrame(dict(zip(names, arrays, strict=True)), index=index, copy=False)
    if not passed:
        return encoded
    if frame.kind == "pandas":
        rest = frame.native.iloc[:, passed]
    elif frame.kind == "numpy":
        rest = pd.DataFrame(_named_columns(frame, passed), index=index)
    else:
        rest = _selected(frame, passed).to_pandas()
    return pd.concat([encoded, rest], axis=1) if names else rest


def _polars(frame: "Frame", names: list[str], arrays: list[Array], passed: list[int]) -> Any:
    import polars as pl

    encoded = pl.DataFrame({name: np.ascontiguousarray(array) for name, array in zip(names, arrays, strict=True)})
    if not passed:
        return encoded
    if frame.kind == "polars":
        rest = frame.native[:, passed]
    elif frame.kind == "numpy":
        rest = pl.DataFrame(_named_columns(frame, passed))
    else:
        rest = _selected(frame, passed).to_polars()
    return encoded.hstack(rest) if names else rest


def _pyarrow(frame: "Frame", names: list[str], arrays: list[Array], passed: list[int]) -> Any:
    fields = [pa.field(name, pa.from_numpy_dtype(array.dtype)) for name, array in zip(names, arrays, strict=True)]
    columns: list[Any] = [pa.array(array) for array in arrays]
    metadata: dict[bytes, bytes] = {}
    if frame.kind in ("pyarrow", "pyarrow_batch"):
        fields += [frame.native.schema.field(position) for position in passed]
        columns += [frame.native.column(position) for position in passed]
        # What pandas wrote there is about the columns as they were.
        metadata = {key: text for key, text in (frame.native.schema.metadata or {}).items() if key != b"pandas"}
    elif passed:
        of_numpy = frame.kind == "numpy"
        rest = pa.table(_named_columns(frame, passed)) if of_numpy else _selected(frame, passed).to_arrow()
        fields += [rest.schema.field(position) for position in range(len(passed))]
        columns += rest.columns
    return pa.Table.from_arrays(columns, schema=pa.schema(fields, metadata=metadata or None))


def _batch(frame: "Frame", names: list[str], arrays: list[Array], passed: list[int]) -> Any:
    table = _pyarrow(frame, names, arrays, passed)
    columns = [column.combine_chunks() for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


def _other(frame: "Frame", names: list[str], arrays: list[Array], passed: list[int]) -> Any:
    rest = frame.native[:, passed]
    if not names:
        return nw.to_native(rest)
    encoded = nw.from_dict(dict(zip(names, arrays, strict=True)), backend=frame.native.implementation)
    return nw.to_native(nw.concat([encoded, rest], how="horizontal") if passed else encoded)


def _named_columns(frame: "Frame", passed: list[int]) -> dict[str, Array]:
    names = frame.labels or [f"x{position}" for position in range(frame.n_columns)]
    return {names[position]: np.ascontiguousarray(frame.native[:, position]) for position in passed}


def _selected(frame: "Frame", passed: list[int]) -> Any:
    """Give the columns of a frame as a narwhals frame, which knows how to turn one library's into another's."""
    if frame.kind == "pandas":
        chosen = frame.native.iloc[:, passed].reset_index(drop=True)
        return nw.from_native(chosen.set_axis([str(name) for name in chosen.columns], axis=1), eager_only=True)
    if frame.kind == "other":
        return frame.native[:, passed]
    native = pa.Table.from_batches([frame.native]) if frame.kind == "pyarrow_batch" else frame.native
    return nw.from_native(native, eager_only=True)[:, passed]


_BUILDERS: dict[str, Callable[["Frame", list[str], list[Array], list[int]], Any]] = {
    "pandas": _pandas,
    "polars": _polars,
    "pyarrow": _pyarrow,
    "pyarrow_batch": _batch,
    "other": _other,
}
