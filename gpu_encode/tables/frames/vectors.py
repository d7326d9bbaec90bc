"""Targets, weights and groups: one value per row, from one container, or from one container for each table of X."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from cpu_fallback.types import Array
from gpu_encode.seam import devices, ops
from gpu_encode.seam.ops import Ops
from gpu_encode.tables.categories import values as typed
from gpu_encode.tables.categories.objects import is_null
from gpu_encode.tables.frames import columns, device_vectors
from gpu_encode.tables.frames.columns import Column, index_of
from gpu_encode.tables.frames.device_columns import to_host
from gpu_encode.tables.frames.device_vectors import Incomplete, NumberedLabels
from gpu_encode.tables.frames.frame import Frame, is_collection, is_frame, read, refuse_dask, refuse_sparse, to_array
from gpu_encode.tables.frames.pieces import Pieces, is_table, join_vectors
from gpu_encode.words.errors.tables import first_names, inconsistent_lengths, not_one_column
from gpu_encode.words.errors.targets import missing_targets, timestamps_as_target
from gpu_encode.words.errors.values import mixed_types

_NUMBERS = (bool, int, float, np.number, np.bool_, Decimal)


def read_vector(data: Any, role: str, n_rows: int | None = None) -> Array:
    """Read one value per row from a list, an array, a series of any library, or a table of one column.

    Parameters
    ----------
    data : list, tuple, ndarray, series or frame
        The values, matched to the rows by position.
    role : str
        The name of the values in messages: "y", "sample_weight", "groups".  A null in "y" is an error.  NaN in an array
        of floats is not: the encoder that learns from the array decides.
    n_rows : int, optional
        The required number of values.

    Returns
    -------
    ndarray, or a CuPy array if the values lie on a GPU
        Numbers in their own type, dates and times as int64 (not for "y"), text as objects.  Nulls, which "y" may not
        have, are NaN among numbers and None among objects.  The array may share memory with `data`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from gpu_encode.tables.frames import read_vector
    >>> read_vector(pa.array([1, 0, 1]), "y")
    array([1, 0, 1])
    >>> read_vector(["a", None], "groups")
    array(['a', None], dtype=object)
    """
    values = _only_one(read_targets(data, n_rows, role), role)
    # Only targets may be numbered labels; where numbers are wanted, the error is to show the values that were given.
    return values.fetch() if isinstance(values, NumberedLabels) and role != "y" else values


def _only_one(targets: list[tuple[str | None, Any]], role: str) -> Any:
    """Give the values of the one target; raise ValueError for more than one."""
    if len(targets) != 1:
        raise not_one_column(role, (len(targets[0][1]), len(targets)))
    return targets[0][1]


def read_grouping(data: Any, role: str, n_rows: int | None = None) -> Frame:
    """Read one value of any kind per row into a frame of one column, on the device of the values."""
    data = devices.unwrap(data)
    if not (devices.is_cudf_frame(data) or devices.is_cudf_vector(data)):
        return replace(read(read_vector(data, role, n_rows).reshape(-1, 1)), labels=[role])
    if getattr(data, "nlevels", 1) > 1:
        raise not_one_column(role, (len(data), data.nlevels))
    frame = read(data if devices.is_cudf_frame(data) else data.to_frame(name=role))
    if frame.n_columns != 1:
        raise not_one_column(role, frame.shape)
    if n_rows is not None and frame.n_rows != n_rows:
        raise inconsistent_lengths(role, [n_rows, frame.n_rows])
    return frame


def read_targets(
    y: Any, n_rows: int | None = None, role: str = "y", keep_missing: bool = False
) -> list[tuple[str | None, Any]]:
    """Read one or several targets: give for each its name, if it has one, and its values.

    With `keep_missing` rows may lack a value: the values of the other rows are then an `Incomplete`.
    """
    targets = _read_columns(y, role, keep_missing)
    if n_rows is not None and len(targets[0][1]) != n_rows:
        raise inconsistent_lengths(role, [n_rows, len(targets[0][1])])
    return [(name, _without_nan(values)) for name, values in targets] if keep_missing else targets


def _without_nan(values: Any) -> Any:
    """Treat NaN among floats as a missing value."""
    if isinstance(values, (Incomplete, NumberedLabels)) or values.dtype.kind != "f" or sum_is_finite(values):
        return values
    return Incomplete.of(values, np.isnan(values))


def on_host(targets: Sequence[tuple[str | None, Any]]) -> Array:
    """Give targets to callers that know only NumPy: one vector, or a matrix with a column for each target."""
    fetched = [
        values.fetch() if isinstance(values, (Incomplete, NumberedLabels)) else to_host(values) for _, values in targets
    ]
    return fetched[0] if len(fetched) == 1 else np.column_stack(fetched)


def _read_columns(data: Any, role: str, keep_missing: bool = False) -> list[tuple[str | None, Array]]:
    # Asking which library a vector belongs to takes longer than reading a short vector.
    if type(data) is np.ndarray and data.ndim == 1:
        return [(None, _to_vector(columns.from_numpy(data), role, keep_missing))]
    if not hasattr(data, "__array__"):
        refuse_dask(data, role)
    refuse_sparse(data, role)
    data = devices.unwrap(data)
    if devices.is_cudf_frame(data) or devices.is_cudf_vector(data):
        return device_vectors.read_cudf(data, role, keep_missing)
    if devices.on_gpu(data):
        return device_vectors.read_array(data, role)
    if nw.dependencies.is_narwhals_dataframe(data) or is_frame(data):
        frame = read(without_index(data))
        names: Sequence[str | None] = frame.names or [None] * frame.n_columns
        parts = [(name, frame.column(position)) for position, name in enumerate(names)]
    elif (column := columns.from_native(data)) is not None and getattr(data, "ndim", 1) == 1:
        name = getattr(data, "name", None)
        parts = [(name if isinstance(name, str) else None, column)]
    else:
        array = to_array(data, role)
        if array.ndim == 0 or array.ndim > 2 or (array.ndim == 2 and array.shape[1] == 0):
            raise not_one_column(role, array.shape)
        matrix = array[:, None] if array.ndim == 1 else array
        parts = [(None, columns.from_numpy(matrix[:, position])) for position in range(matrix.shape[1])]
    return [(name, _to_vector(column, role, keep_missing)) for name, column in parts]


def without_index(data: Any) -> Any:
    """Leave the index of pandas out of an Arrow table, unless the table has no other columns."""
    if not isinstance(data, (pa.Table, pa.RecordBatch)) or not (index := index_of(data.schema)):
        return data
    return data.select([name for name in data.schema.names if name not in index] or index)


def _to_vector(column: Column, role: str, keep_missing: bool = False) -> Any:
    data = column.data
    if isinstance(data, np.ndarray) and column.codes is None and column.nulls is None:
        if data.dtype.kind in "biuUSc":
            columns.check_real(role, data)
            return data
        # The encoder that learns from y reads its floats anyway, and raises the error.
        if data.dtype.kind == "f" and (role == "y" or sum_is_finite(data)):
            return data
    values, nulls = columns.plain(column)
    if role == "y":
        if nulls.any() and not keep_missing:
            raise missing_targets(role, np.flatnonzero(nulls))
        if columns.is_temporal(column):
            raise timestamps_as_target()
    if keep_missing and nulls.any():
        present = values[~nulls]
        return Incomplete(_as_numbers(present, nulls[~nulls]) if present.dtype.kind == "O" else present, nulls)
    if nulls.any() and values.dtype.kind in "biu":
        values = np.where(nulls, np.nan, values)
    return _as_numbers(values, nulls) if values.dtype.kind == "O" else values


def sum_is_finite(numbers: Array) -> bool:
    """Tell whether the sum is finite: if so, no number is NaN or infinite; if not, some are, or are very large.

    This takes one pass, and no array of booleans.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return math.isfinite(numbers.sum())


def _as_numbers(objects: Array, nulls: Array) -> Array:
    """Give objects that are all numbers, or null, as numbers; give other objects unchanged."""
    present = objects[~nulls]
    if not len(present) or not all(isinstance(value, _NUMBERS) for value in present):
        return objects
    numbers = np.array([float(value) if isinstance(value, Decimal) else value for value in present])
    if numbers.dtype.kind not in "biuf":
        return objects
    return columns.spread(numbers.astype(np.float64, copy=False), nulls, np.nan) if nulls.any() else numbers


@dataclass(frozen=True, eq=False)
class PieceVectors:
    """One vector, or table of targets, for each table of X.

    Parameters
    ----------
    parts : list
        The user's vector, or table of targets, for each table.
    role : str
        The name of the vectors in messages.
    lengths : list of int
        Number of rows of each table.
    """

    parts: list[Any]
    role: str
    lengths: list[int]

    def targets(self, keep_missing: bool = False) -> list[tuple[str | None, Any]]:
        """Read the vectors as one or several targets: give the name, if there is one, and the values of all rows."""
        per_part = [read_targets(part, None, role, keep_missing) for role, part in self._named()]
        self._check_lengths([targets[0][1] for targets in per_part])
        self._check_temporal()
        if self.role == "y" and any(_holds_timestamps(values) for targets in per_part for _, values in targets):
            raise timestamps_as_target()
        names = [[name for name, _ in targets] for targets in per_part]
        for number, own_names in enumerate(names):
            # The name of a series means nothing if there is only one target.
            if len(own_names) != len(names[0]) or (len(own_names) > 1 and own_names != names[0]):
                raise ValueError(
                    f"y[{number}] has {_targets(own_names)}, but y[0] has {_targets(names[0])}. All must have the same "
                    "targets in the same order."
                )
        every = [join_incomplete([targets[i][1] for targets in per_part]) for i in range(len(names[0]))]
        for values in every if self.role == "y" and not keep_missing else ():
            _refuse_missing(values)
        same = all(own_names == names[0] for own_names in names)
        return list(zip(names[0] if same else [None], every, strict=True))

    def vector(self) -> Array:
        """Read the vectors as one vector."""
        values = _only_one(self.targets(), self.role)
        return values.fetch() if isinstance(values, NumberedLabels) else values

    def grouping(self) -> Pieces:
        """Read the vectors as one column of values of any kind."""
        groups = [read_grouping(part, role) for role, part in self._named()]
        self._check_lengths(groups)
        self._check_temporal()
        return Pieces(tuple(groups), [self.role], self.role)

    def _named(self) -> Iterator[tuple[str, Any]]:
        for number, part in enumerate(self.parts):
            yield f"{self.role}[{number}]", part

    def _check_lengths(self, read_parts: Sequence[Any]) -> None:
        for number, (part, n_rows) in enumerate(zip(read_parts, self.lengths, strict=True)):
            length = part.n_rows if isinstance(part, Frame) else len(part)
            if length != n_rows:
                raise ValueError(
                    f"Found input variables with inconsistent numbers of samples: {[n_rows, length]}. X[{number}] has "
                    f"{n_rows} rows and {self.role}[{number}] {length}; rows match by position, so give one value per "
                    "row."
                )

    def _check_temporal(self) -> None:
        """Raise an error for targets that are dates or times, and for several units, since only numbers are kept."""
        typed_columns = [column for part in self.parts for column in _typed_columns_of(part) if len(column)]
        kinds = list(dict.fromkeys(map(_temporal_kind, typed_columns)))
        if self.role == "y" and any(kinds):
            raise timestamps_as_target()
        if len(kinds) > 1:
            raise mixed_types(self.role, *(kind or "other values" for kind in kinds[:2]))


def in_line(data: Any, role: str, frame: Frame | Pieces) -> Any:
    """Distinguish one vector for all rows from a list of vectors, one for each table of an X in pieces.

    Examples
    --------
    >>> from gpu_encode.tables.frames import in_line, read_pieces
    >>> import numpy as np
    >>> pieces = read_pieces([np.array([["a"], ["b"]]), np.array([["c"]])])
    >>> in_line([0, 1, 1], "y", pieces)
    [0, 1, 1]
    >>> in_line([[0, 1], [1]], "y", pieces).vector()
    array([0, 1, 1])
    """
    if isinstance(frame, Pieces) and is_collection(data) and not isinstance(data, (list, tuple)):
        data = list(data)
    if not isinstance(data, (list, tuple)) or not data:
        return data
    refuse_dask(data[0], f"{role}[0]")
    if not is_vector(data[0]):
        return data
    if not isinstance(frame, Pieces):
        if len(data) != frame.n_rows:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: {[frame.n_rows, len(data)]}. "
                f"X is one table of {frame.n_rows} rows, and {role} holds {len(data)} vectors. Give {role} one value "
                f"per row of X, or X as a list of tables, one for each vector of {role}."
            )
        return data
    if len(data) != len(frame.parts):
        raise ValueError(
            f"{role} holds {len(data)} vectors for the {len(frame.parts)} tables of X. Give one per table, or one "
            "vector for all rows."
        )
    return PieceVectors(list(data), role, frame.lengths)


def is_vector(data: Any) -> bool:
    """Tell whether data holds several values: a list, an array, a series or a table, but no text, number or dict."""
    if isinstance(data, (str, bytes, dict)) or not hasattr(type(data), "__len__"):
        return False
    return bool(getattr(data, "ndim", 1) > 0)


def join_incomplete(parts: Sequence[Any]) -> Any:
    """Join the values of all tables; in some of them rows may lack a value."""
    if not any(isinstance(part, Incomplete) for part in parts):
        return join_vectors(parts)
    values = join_vectors([part.values if isinstance(part, Incomplete) else part for part in parts])
    missing = [part.missing if isinstance(part, Incomplete) else np.zeros(len(part), bool) for part in parts]
    held = values.codes if isinstance(values, NumberedLabels) else values
    move = to_host if isinstance(held, np.ndarray) else devices.cuda().to_device
    return Incomplete(values, np.concatenate([move(of_part) for of_part in missing]))


def _typed_columns_of(part: Any) -> list[Column]:
    """Give the columns of data on the host whose columns have types; a list has none."""
    if devices.on_gpu(part):
        return []
    if is_table(part):
        frame = read(without_index(part))
        return [frame.column(position) for position in range(frame.n_columns)]
    column = columns.from_native(devices.unwrap(part))
    return [] if column is None else [column]


def _holds_timestamps(values: Any) -> bool:
    """Tell whether numbered labels are dates or times, the only labels on a device that keep a type of their own."""
    held = values.values if isinstance(values, Incomplete) else values
    return isinstance(held, NumberedLabels) and held.dtype.kind in "mM"


def _temporal_kind(column: Column) -> str | None:
    """Give kind and unit of a column of dates, times or durations; None for any other column."""
    if not columns.is_temporal(column):
        return None
    data = column.data[:0]
    values = typed.from_numpy(data, None) if isinstance(data, np.ndarray) else typed.arrow_timestamps(data)[1]
    return f"{values.title} in {values.unit}"


def _refuse_missing(values: Any) -> None:
    """Raise ValueError if a row has no value; rows are counted over all tables."""
    if isinstance(values, NumberedLabels):
        nulls = values.codes < 0
    elif values.dtype.kind == "f":
        nulls = np.isnan(values)
    elif values.dtype.kind == "O":
        nulls = np.fromiter((is_null(value) for value in values), bool, len(values))
    else:
        return
    device_vectors.refuse_missing(nulls, "y")


def move_to_reader(values: Any, backend: Ops) -> Any:
    """Move values from a GPU to a backend of the host; for a backend of a GPU, values on the host stay there."""
    if isinstance(values, np.ndarray) or ops.device_of(backend) == "cuda":
        return values
    is_array = not isinstance(values, (NumberedLabels, Incomplete))
    return to_host(values) if is_array else values.on_host()


def _targets(names: Sequence[object]) -> str:
    return f"{len(names)} targets" if None in names else f"the targets {first_names(names)}"
