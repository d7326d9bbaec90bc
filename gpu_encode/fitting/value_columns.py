"""Columns of X whose values are summed, as a target's are: read as numbers, rows without a value left out."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from cpu_fallback.types import Array, Rows
from gpu_encode.errors.rows import RowError
from gpu_encode.errors.statistics import (
    in_value_column,
    inexact_beside_fractions,
    no_value_columns,
    text_as_value,
    timestamps_as_value,
)
from gpu_encode.errors.values import infinite_value
from gpu_encode.fitting.columns import locate
from gpu_encode.formulas.statistic import Statistic
from gpu_encode.frames import Frame, Pieces, parts_of, with_piece
from gpu_encode.frames.columns import is_temporal, plain
from gpu_encode.ops import Ops
from gpu_encode.sums.targets import Target
from gpu_encode.sums.terms import side_by_side

# Every whole number up to it is a float64.
MOST_EXACT = 1 << 53


@dataclass(frozen=True, eq=False)
class SummedColumn:
    """A target and the weight of each of its rows; None where all weigh one."""

    target: Target
    weight: Array | None

    def rows(self, codes: Array) -> Rows:
        """What is known of each row under a key, by the code that each has there."""
        target = self.target
        classes = target.values if target.is_classification else None
        return Rows(codes, classes, target.values if target.kind == "continuous" else None, self.weight)


def check_value_columns(values: Any) -> None:
    """Raise ValueError for `values` that is no list of columns."""
    if not isinstance(values, (list, tuple)) or not values or len(set(map(repr, values))) < len(values):
        raise no_value_columns(values)


def value_targets(frame: Frame | Pieces, values: Sequence[Any], weight: Array | None, ops: Ops) -> list[SummedColumn]:
    """Read columns of X as quantities, one target each.

    Parameters
    ----------
    frame : Frame or Pieces
    values : list of str or int
        Names or positions.
    weight : array (rows,), optional
        Weight of each row, where `ops` computes.
    ops : Ops

    Returns
    -------
    list of SummedColumn
        Rows without a value weigh nothing.

    Raises
    ------
    ValueError
        If there is no such column, or it holds infinity.
    TypeError
        If it holds no numbers.
    """
    places = [locate(frame, column, "values:") for column in values]
    if len(set(places)) < len(places):
        raise no_value_columns(values)
    return [_summed(frame, place, weight, ops) for place in places]


def with_terms(summed: list[SummedColumn], statistic: Statistic, ops: Ops) -> list[SummedColumn]:
    """Give targets the terms that a readout asks for; of several that it joins, one."""
    found = []
    for number, group in enumerate([summed] if statistic.needs.joined_targets else [[each] for each in summed]):
        own = statistic.of_target(number)
        if own.needs.terms == 1:
            found += group
            continue
        target = group[0].target
        with naming_column(target.name if statistic.names_targets else None):
            terms = own.terms(ops, [each.target.values for each in group], group[0].weight)
            if terms[0].dtype.kind == "i" and any(each.dtype.kind == "f" for each in terms):
                refuse_inexact(terms[0])
        name = None if statistic.needs.joined_targets else target.name
        found.append(SummedColumn(Target(name, target.kind, side_by_side(terms, ops), None), group[0].weight))
    return found


@contextmanager
def naming_column(column: str | None) -> Iterator[None]:
    """Say of a row that an error names in which column of values it is."""
    try:
        yield
    except RowError as error:
        if column is None:
            raise
        raise in_value_column(error, column) from error


def refuse_inexact(values: Array) -> None:
    """Raise ValueError for whole numbers that would be rounded beside terms with fractions."""
    beyond = (values > MOST_EXACT) | (values < -MOST_EXACT)
    if bool(beyond.any()):
        row = int(np.flatnonzero(beyond)[0])
        raise inexact_beside_fractions(row, values[row].item())


def _summed(frame: Frame | Pieces, place: int, weight: Array | None, ops: Ops) -> SummedColumn:
    label = frame.label(place)
    found = [_numbers(part, place) for part in parts_of(frame)]
    numbers, nulls = (np.concatenate(each) if len(found) > 1 else each[0] for each in zip(*found, strict=True))
    infinite = np.isinf(numbers)
    if infinite.any():
        raise with_piece(frame, infinite_value(label, int(np.flatnonzero(infinite)[0])))
    name = f"x{place}" if frame.names is None else frame.names[place]
    if nulls.any():
        numbers, present = np.where(nulls, 0, numbers), ops.to_device((~nulls).astype(np.int64))
        weight = present if weight is None else weight * present
    return SummedColumn(Target(name, "continuous", ops.to_device(numbers), None), weight)


def _numbers(part: Frame, place: int) -> tuple[Array, Array]:
    """Values of a column as int64 or float64, on the host, and which rows have none."""
    column, label = part.column(place), part.label(place)
    if is_temporal(column):
        raise timestamps_as_value(label)
    values, nulls = plain(column)
    if values.dtype.kind == "O":
        return _spread(values[~nulls], nulls, label), nulls
    whole = values.dtype.kind in "bi" or (values.dtype.kind == "u" and values.dtype != np.uint64)
    return np.ascontiguousarray(values, np.int64 if whole else np.float64), nulls


def _spread(present: Array, nulls: Array, label: object) -> Array:
    """Numbers held as objects, with zero in rows that have none."""
    stray = next((value for value in present if not isinstance(value, (Real, np.bool_, Decimal))), None)
    if stray is not None:
        raise text_as_value(label, stray)
    numbers = np.array([float(value) if isinstance(value, Decimal) else value for value in present])
    spread = np.zeros(len(nulls), np.int64 if numbers.dtype.kind in "bi" else np.float64)
    spread[~nulls] = numbers
    return spread
