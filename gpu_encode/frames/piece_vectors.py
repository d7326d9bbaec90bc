"""Targets, weights, groups that come one vector per table, read as the one vector that they make up."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cpu_fallback.types import Array
from gpu_encode import devices
from gpu_encode.categories import values as typed
from gpu_encode.categories.objects import is_null
from gpu_encode.errors.pieces import targets_of_piece, vectors_beside_one_table
from gpu_encode.errors.tables import not_one_column
from gpu_encode.errors.targets import missing_targets, moments_as_target
from gpu_encode.errors.values import mixed_types
from gpu_encode.frames import columns, encoding
from gpu_encode.frames.columns import Column
from gpu_encode.frames.device_vectors import NumberedLabels
from gpu_encode.frames.frame import Frame
from gpu_encode.frames.joining import joined
from gpu_encode.frames.on_device import to_host
from gpu_encode.frames.pieces import Pieces, is_collection, is_table
from gpu_encode.frames.reading import read, refuse_dask
from gpu_encode.frames.vectors import read_grouping, read_targets


@dataclass(frozen=True, eq=False)
class PieceVectors:
    """One vector, or table of targets, for each table of X.

    Parameters
    ----------
    parts : list
        What the user gave for each table.
    role : str
        What they are, as named in messages.
    lengths : list of int
        Rows of each table.
    """

    parts: list[Any]
    role: str
    lengths: list[int]

    def targets(self) -> list[tuple[str | None, Any]]:
        """Read them as one vector, or several: the name, if there is one, and the values of all rows."""
        found = [read_targets(part, role=role) for role, part in self._named()]
        self._check_lengths([each[0][1] for each in found])
        self._check_moments()
        if self.role == "y" and any(_holds_moments(values) for each in found for _, values in each):
            raise moments_as_target()
        names = [[name for name, _ in each] for each in found]
        for number, each in enumerate(names):
            # A series' name means nothing where there is but one target.
            if len(each) != len(names[0]) or (len(each) > 1 and each != names[0]):
                raise targets_of_piece(number, names[0], each)
        every = [joined([each[i][1] for each in found]) for i in range(len(names[0]))]
        for values in every if self.role == "y" else ():
            _refuse_missing(values)
        same = all(each == names[0] for each in names)
        return list(zip(names[0] if same else [None], every, strict=True))

    def vector(self) -> Array:
        """Read them as one vector."""
        targets = self.targets()
        if len(targets) != 1:
            raise not_one_column(self.role, (len(targets[0][1]), len(targets)))
        values = targets[0][1]
        return values.fetched() if isinstance(values, NumberedLabels) else values

    def grouping(self) -> Pieces:
        """Read them as one column of values of any kind, to be numbered."""
        found = [read_grouping(part, role) for role, part in self._named()]
        self._check_lengths(found)
        self._check_moments()
        return Pieces(tuple(found), [self.role], self.role)

    def _named(self) -> Iterator[tuple[str, Any]]:
        for number, part in enumerate(self.parts):
            yield f"{self.role}[{number}]", part

    def _check_lengths(self, found: Sequence[Any]) -> None:
        for number, (each, n_rows) in enumerate(zip(found, self.lengths, strict=True)):
            length = each.n_rows if isinstance(each, Frame) else len(each)
            if length != n_rows:
                raise ValueError(
                    f"Found input variables with inconsistent numbers of samples: {[n_rows, length]}. X[{number}] has "
                    f"{n_rows} rows and {self.role}[{number}] {length}; rows match by position, so give one value per "
                    "row."
                )

    def _check_moments(self) -> None:
        """Raise for dates and times as a target, and for those of several units: of each bare numbers are read."""
        found = [_moment_of(column) for part in self.parts for column in _columns_of(part) if len(column)]
        if self.role == "y" and any(found):
            raise moments_as_target()
        kinds = list(dict.fromkeys(found))
        if len(kinds) > 1:
            raise mixed_types(self.role, *(kind or "other values" for kind in kinds[:2]))


def in_line(data: Any, role: str, frame: Frame | Pieces) -> Any:
    """Tell one vector for all rows from one for each table, of which there are several only where X is in pieces.

    Examples
    --------
    >>> from gpu_encode.frames import in_line, read_pieces
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
            raise vectors_beside_one_table(role, len(data), frame.n_rows)
        return data
    if len(data) != len(frame.parts):
        raise ValueError(
            f"{role} holds {len(data)} vectors for the {len(frame.parts)} tables of X. Give one per table, or one "
            "vector for all rows."
        )
    return PieceVectors(list(data), role, frame.lengths)


def is_vector(data: Any) -> bool:
    """Whether data holds several values: a list, an array, a series or a table, and no text, number or dict."""
    if isinstance(data, (str, bytes, dict)) or not hasattr(type(data), "__len__"):
        return False
    return bool(getattr(data, "ndim", 1) > 0)


def _columns_of(part: Any) -> list[Column]:
    """Columns of what has types of its own, on the host: neither a list nor what lies on a device."""
    if devices.on_gpu(part):
        return []
    if is_table(part):
        frame = read(part)
        return [frame.column(position) for position in range(frame.n_columns)]
    column = columns.from_native(devices.unwrapped(part))
    return [] if column is None else [column]


def _holds_moments(values: Any) -> bool:
    """Whether numbered labels are dates or times, which a device has no other type for."""
    return isinstance(values, NumberedLabels) and values.dtype.kind in "mM"


def _moment_of(column: Column) -> str | None:
    """Kind and unit of a column of moments; None of any other."""
    if not encoding.is_moment(column):
        return None
    data = column.data[:0]
    moments = typed.from_numpy(data, None) if isinstance(data, np.ndarray) else typed.arrow_moments(data)[1]
    return f"{moments.title} in {moments.unit}"


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
    if bool(nulls.any()):
        rows = np.flatnonzero(nulls)
        raise missing_targets("y", rows if isinstance(rows, np.ndarray) else to_host(rows))
