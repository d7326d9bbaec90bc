"""Columns that a scheme reads: groups, times, fold numbers."""

from collections.abc import Hashable
from typing import Any

import numpy as np

from gpu_encode import frames
from gpu_encode.categories.vocabulary import FactorizedColumn
from gpu_encode.errors.folds import fractional_fold, negative_fold, no_groups
from gpu_encode.errors.tables import inconsistent_lengths
from gpu_encode.errors.values import missing_values
from gpu_encode.fitting.columns import locate
from gpu_encode.frames import Frame, Pieces, with_piece
from gpu_encode.ops import Ops
from gpu_encode.schemes import Scheme


def read_scheme_columns(
    scheme: Scheme, frame: Frame | Pieces, groups: Frame | Pieces | None, ops: Ops
) -> dict[str, FactorizedColumn]:
    """Number the values of every column that a scheme reads, by what it reads the column as; `groups` beside X."""
    columns = {}
    for column, role in scheme.reads():
        source = groups if column is None else column
        if source is None:
            raise no_groups()
        columns[role] = column_keys(frame, source, role, ops)
    return columns


def column_keys(frame: Frame | Pieces, column: Any, role: str, backend: Ops) -> FactorizedColumn:
    """Codes and vocabulary of the values that a scheme reads: a column of X by name or position, or an array."""
    source: Frame | Pieces
    if isinstance(column, (Frame, Pieces)):
        source, position, named = column, 0, f"The array given as {role}"
        if source.n_rows != frame.n_rows:
            raise inconsistent_lengths(role, [frame.n_rows, source.n_rows])
    elif isinstance(column, np.integer) or (isinstance(column, Hashable) and not hasattr(column, "__array__")):
        source, position, named = frame, locate(frame, column, f"The {role} column"), f"The {role} column {column!r}"
    else:
        source, position = frames.read_grouping(column, role, frame.n_rows), 0
        named = f"The array given as {role}"
    keys = source.keys(position, backend)
    if len(keys.codes) and int(keys.codes.min()) < 0:
        raise with_piece(source, missing_values(named, np.flatnonzero(keys.codes < 0)))
    if role == "fold numbers":
        check_fold_numbers(keys, named, source, backend)
    return keys


def check_fold_numbers(keys: FactorizedColumn, named: str, source: Frame | Pieces, backend: Ops) -> None:
    """Raise ValueError unless all values are integers of at least zero, naming the first row of a wrong one."""
    values = keys.vocabulary.to_numpy()
    if keys.vocabulary.kind == "text":
        raise with_piece(source, fractional_fold(named, 0, values[int(keys.codes[0])]))
    if keys.vocabulary.kind != "number":
        raise ValueError(f"{named} must be integers of at least 0. Got {keys.vocabulary.kind} values.")
    fractional, negative = values != values // 1, values < 0
    if fractional.any() or negative.any():
        wrong = fractional if fractional.any() else negative
        row = int(backend.to_device(wrong)[keys.codes].argmax())
        value = values[int(keys.codes[row])]
        if fractional.any():
            raise with_piece(source, fractional_fold(named, row, value))
        raise with_piece(source, negative_fold(named, row, value))
