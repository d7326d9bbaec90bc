"""Targets, weights, groups: one value per row, from any container, as a NumPy array."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np

from cpu_fallback.types import Array
from gpu_encode import devices
from gpu_encode.errors.tables import check_real, inconsistent_lengths, not_one_column
from gpu_encode.errors.targets import missing_targets, moments_as_target
from gpu_encode.frames import columns, cudf, device_vectors, encoding, on_device
from gpu_encode.frames.columns import Column
from gpu_encode.frames.device_vectors import NumberedLabels
from gpu_encode.frames.frame import Frame
from gpu_encode.frames.reading import is_frame, read, refuse_dask, refuse_sparse, to_array

_NUMBERS = (bool, int, float, np.number, np.bool_, Decimal)


def read_vector(data: Any, role: str, n_rows: int | None = None) -> Array:
    """Read one value per row from a list, an array, a series of any library, or a table of one column.

    Parameters
    ----------
    data : list, tuple, ndarray, series or frame
        The values, matched to the rows by position.
    role : str
        What they are, as named in messages: "y", "sample_weight", "groups".  A null in "y" is an error, which for
        NaN in an array of floats is left to who learns from it.
    n_rows : int, optional
        How many there must be.

    Returns
    -------
    ndarray, or a CuPy array of what lies on a GPU
        Numbers as they came, dates and times as int64 (not for "y"), text as objects.  Nulls elsewhere than in "y" are
        NaN among numbers and None among objects.  May share memory with `data`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from gpu_encode.frames import read_vector
    >>> read_vector(pa.array([1, 0, 1]), "y")
    array([1, 0, 1])
    >>> read_vector(["a", None], "groups")
    array(['a', None], dtype=object)
    """
    targets = _read_all(data, role, n_rows)
    if len(targets) != 1:
        raise not_one_column(role, (len(targets[0][1]), len(targets)))
    values = targets[0][1]
    # Labels are for targets; who wants numbers says what it got instead.
    return values.fetched() if isinstance(values, NumberedLabels) and role != "y" else values


def read_grouping(data: Any, role: str, n_rows: int | None = None) -> Frame:
    """Read one value of any kind per row, to be numbered: a frame of one column, where the values are."""
    data = devices.unwrapped(data)
    if not (cudf.is_frame(data) or cudf.is_vector(data)):
        return replace(read(read_vector(data, role, n_rows).reshape(-1, 1)), labels=[role])
    if getattr(data, "nlevels", 1) > 1:
        raise not_one_column(role, (len(data), data.nlevels))
    frame = read(data if cudf.is_frame(data) else data.to_frame(name=role))
    if frame.n_columns != 1:
        raise not_one_column(role, frame.shape)
    if n_rows is not None and frame.n_rows != n_rows:
        raise inconsistent_lengths(role, [n_rows, frame.n_rows])
    return frame


def read_targets(y: Any, n_rows: int | None = None, role: str = "y") -> list[tuple[str | None, Array]]:
    """Read one or several targets: the name, if there is one, and the values of each."""
    return _read_all(y, role, n_rows)


def on_host(targets: Sequence[tuple[str | None, Any]]) -> Array:
    """Targets that were read, for those who know NumPy alone: one vector, or a matrix of a column each."""
    found = [_fetched(values) for _, values in targets]
    return found[0] if len(found) == 1 else np.column_stack(found)


def _fetched(values: Any) -> Array:
    if isinstance(values, NumberedLabels):
        return values.fetched()
    return values if isinstance(values, np.ndarray) else on_device.to_host(values)


def _read_all(data: Any, role: str, n_rows: int | None) -> list[tuple[str | None, Array]]:
    if not hasattr(data, "__array__"):
        refuse_dask(data, role)
    refuse_sparse(data, role)
    data = devices.unwrapped(data)
    if cudf.is_frame(data) or cudf.is_vector(data):
        found = device_vectors.read_cudf(data, role)
        return _of_length(found, role, n_rows)
    if devices.on_gpu(data):
        return _of_length(device_vectors.read_array(data, role), role, n_rows)
    if nw.dependencies.is_narwhals_dataframe(data) or is_frame(data):
        frame = read(data)
        names: Sequence[str | None] = frame.names or [None] * frame.n_columns
        parts = [(name, frame.column(position)) for position, name in enumerate(names)]
    elif (column := columns.from_native(data)) is not None and not _is_matrix(data):
        name = getattr(data, "name", None)
        parts = [(name if isinstance(name, str) else None, column)]
    else:
        array = to_array(data, role)
        if array.ndim == 0 or array.ndim > 2 or (array.ndim == 2 and array.shape[1] == 0):
            raise not_one_column(role, array.shape)
        matrix = array[:, None] if array.ndim == 1 else array
        parts = [(None, columns.from_numpy(matrix[:, position])) for position in range(matrix.shape[1])]
    return _of_length([(name, _to_vector(column, role)) for name, column in parts], role, n_rows)


def _of_length(found: list[tuple[str | None, Array]], role: str, n_rows: int | None) -> list[tuple[str | None, Array]]:
    """Give what was found, if it is one value for every row."""
    if n_rows is not None and len(found[0][1]) != n_rows:
        raise inconsistent_lengths(role, [n_rows, len(found[0][1])])
    return found


def _is_matrix(data: Any) -> bool:
    return isinstance(data, np.ndarray) and data.ndim != 1


def _to_vector(column: Column, role: str) -> Array:
    data = column.data
    if isinstance(data, np.ndarray) and column.codes is None and column.nulls is None:
        if data.dtype.kind in "biuUSc":
            check_real(role, data)
            return data
        # Who learns from y looks at its floats anyway, and says what is wrong.
        if data.dtype.kind == "f" and (role == "y" or sum_is_finite(data)):
            return data
    values, nulls = encoding.plain(column)
    if role == "y":
        if nulls.any():
            raise missing_targets(role, np.flatnonzero(nulls))
        if encoding.is_moment(column):
            raise moments_as_target()
    if nulls.any() and values.dtype.kind in "biu":
        values = np.where(nulls, np.nan, values)
    return _as_numbers(values, nulls) if values.dtype.kind == "O" else values


def sum_is_finite(numbers: Array) -> bool:
    """Whether the sum is finite: then no number is NaN or infinite; if not, some may be, or the sum is too large.

    One pass, and no array of answers.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(numbers.sum()))


def _as_numbers(objects: Array, nulls: Array) -> Array:
    """Objects that are all numbers, or null, as numbers; others as they are."""
    present = objects[~nulls]
    if not len(present) or not all(isinstance(value, _NUMBERS) for value in present):
        return objects
    numbers = np.array([float(value) if isinstance(value, Decimal) else value for value in present])
    if numbers.dtype.kind not in "biuf":
        return objects
    if not nulls.any():
        return numbers
    spread = np.full(len(objects), np.nan)
    spread[~nulls] = numbers
    return spread
