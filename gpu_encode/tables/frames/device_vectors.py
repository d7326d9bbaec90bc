"""Targets and weights in a GPU's memory: one value per row, as numbers or numbered labels, which stay there."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from cpu_fallback.types import Array
from gpu_encode.seam import devices
from gpu_encode.seam.ops import Ops
from gpu_encode.tables.categories.vocabulary import Vocabulary
from gpu_encode.tables.frames import cudf, device_columns
from gpu_encode.tables.frames.device_columns import DeviceColumn
from gpu_encode.words.errors.tables import not_one_column
from gpu_encode.words.errors.targets import missing_targets, timestamps_as_target
from gpu_encode.words.errors.values import RowError


@dataclass(frozen=True, eq=False)
class NumberedLabels:
    """One label for each row; the numbers of the labels lie on the device of the rows.

    Parameters
    ----------
    codes : int32 array
        Number of each row's label; -1 for null.
    labels : ndarray of objects
        Sorted distinct labels, on the host.
    """

    codes: Array
    labels: Array

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def dtype(self) -> "np.dtype[Any]":
        """Type of the labels."""
        return self.labels.dtype

    def on_host(self) -> "NumberedLabels":
        """Give the same labels, with the numbers on the host."""
        return NumberedLabels(device_columns.to_host(self.codes), self.labels)

    def fetch(self) -> Array:
        """Give the label of every row, on the host; None for null."""
        return np.append(self.labels.astype(object), [None])[device_columns.to_host(self.codes)]


@dataclass(frozen=True, eq=False)
class Incomplete:
    """The values of a target that some rows lack, and a mask of these rows.

    Parameters
    ----------
    values : array or NumberedLabels
        Values of the rows that have one, in order.
    missing : bool array (rows,)
        True for rows that have no value; the mask lies in the same memory as the values.
    """

    values: Any
    missing: Array

    @classmethod
    def of(cls, values: Any, missing: Array) -> Any:
        """Leave out rows without a value; if all rows have a value, the values are given unchanged."""
        if not bool(missing.any()):
            return values
        if isinstance(values, NumberedLabels):
            return cls(NumberedLabels(values.codes[~missing], values.labels), missing)
        return cls(values[~missing], missing)

    def __len__(self) -> int:
        return len(self.missing)

    @property
    def dtype(self) -> "np.dtype[Any]":
        """Type of the values."""
        return self.values.dtype

    @contextmanager
    def naming_rows(self) -> Iterator[None]:
        """Let an error that names a row count all rows, and not only rows with a value."""
        try:
            yield
        except RowError as error:
            row = int(np.flatnonzero(~device_columns.to_host(self.missing))[error.row])
            raise RowError(error.before, row, error.after) from error

    def on_host(self) -> "Incomplete":
        """Give the same values and mask on the host."""
        held = self.values
        values = held.on_host() if isinstance(held, NumberedLabels) else device_columns.to_host(held)
        return Incomplete(values, device_columns.to_host(self.missing))

    def fetch(self) -> Array:
        """Give the value of every row, on the host; a missing value is NaN among floats, else None."""
        held = self.values
        values = held.fetch() if isinstance(held, NumberedLabels) else device_columns.to_host(held)
        missing = device_columns.to_host(self.missing)
        filled = np.full(len(missing), None, values.dtype if values.dtype.kind == "f" else object)
        filled[~missing] = values
        return filled


def read_array(data: Any, role: str) -> list[tuple[str | None, Any]]:
    """Read the columns of a vector or matrix on a GPU."""
    array = device_columns.adopt(data, role)
    if array.ndim not in (1, 2) or 0 in array.shape[1:]:
        raise not_one_column(role, array.shape)
    matrix = array[:, None] if array.ndim == 1 else array
    # The encoder that learns from y reads its floats anyway, and raises the error.
    return [(None, matrix[:, position]) for position in range(matrix.shape[1])]


def read_cudf(data: Any, role: str, keep_missing: bool = False) -> list[tuple[str | None, Any]]:
    """Read the columns of a cuDF frame, series or index."""
    if devices.is_cudf_frame(data):
        if not data.shape[1]:
            raise not_one_column(role, data.shape)
        parts = [(label, data[label]) for label in data.columns]
    elif getattr(data, "nlevels", 1) > 1:
        raise not_one_column(role, (len(data), data.nlevels))
    else:
        parts = [(data.name, data)]
    named = [(name if isinstance(name, str) else None, series) for name, series in parts]
    return [(name, to_vector(cudf.column(series, role), role, keep_missing)) for name, series in named]


def to_vector(column: DeviceColumn, role: str, keep_missing: bool = False) -> Any:
    """Give numbers unchanged, with NaN for null; give labels that are not numbers as numbered labels."""
    nulls = column.nulls
    if role == "y" and nulls is not None and not keep_missing:
        refuse_missing(nulls, role)
    if keep_missing and nulls is not None and column.holds_numbers:
        return Incomplete.of(column.rows, nulls | (column.rows != column.rows))
    if column.holds_numbers:
        rows: Array = column.rows
        if nulls is not None:
            rows = np.where(nulls, np.nan, rows.astype(np.float64))
        return rows
    if role == "y" and column.type is not None and pa.types.is_temporal(column.type):
        raise timestamps_as_target()
    return number_labels(column, role, keep_missing)


def number_labels(column: DeviceColumn, role: str, keep_missing: bool = False) -> Any:
    """Give labels and their numbers; if labels are numbers themselves (decimals, categories), a label for each row."""
    ops = devices.cuda()
    codes, vocabulary, _ = device_columns.keys(column, role, ops)
    missing = codes < 0
    if keep_missing and bool(missing.any()):
        return Incomplete(label_rows(codes[~missing], vocabulary, True, ops), missing)
    if role == "y":
        refuse_missing(missing, role)
    return label_rows(codes, vocabulary, role == "y" or column.nulls is None, ops)


def label_rows(codes: Array, vocabulary: Vocabulary, complete: bool, ops: Ops) -> Any:
    """Give the labels of rows by their codes; `complete` says that every row has a label."""
    labels = vocabulary.to_numpy()
    if vocabulary.kind == "null":
        labels = np.zeros(0)
    if vocabulary.kind not in ("number", "null"):
        return NumberedLabels(codes, labels)
    numbers = labels if labels.dtype.kind != "O" else np.array([float(label) for label in labels])
    if len(numbers) and complete:
        return ops.to_device(numbers)[codes]
    # As an index, the code -1 of a null means the last element, which is NaN.
    return ops.to_device(np.append(numbers.astype(np.float64), np.nan))[codes]


def refuse_missing(missing: Any, role: str) -> None:
    """Raise ValueError if a row has no value."""
    if bool(missing.any()):
        raise missing_targets(role, device_columns.to_host(np.flatnonzero(missing)))
