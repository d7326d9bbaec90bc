"""What is summed: the targets of y, or columns of X in their place, with the weight of each row."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from cpu_fallback.types import Array, Rows
from gpu_encode.errors.learned import other_number_of_targets
from gpu_encode.errors.parts import rows_have_changed
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
from gpu_encode.fitting.inputs import TrainingRows
from gpu_encode.fitting.model import TargetInfo
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.formulas.statistic import Statistic
from gpu_encode.frames import Frame, Pieces, parts_of, with_piece
from gpu_encode.frames.columns import is_temporal, plain
from gpu_encode.ops import Ops
from gpu_encode.sums import targets
from gpu_encode.sums.targets import Target
from gpu_encode.sums.terms import side_by_side

# Every whole number up to it is a float64.
MOST_EXACT = 1 << 53


@dataclass(frozen=True, eq=False)
class SummedColumn:
    """A target, or a column of X that is summed as one, and the weight of each row; None where all weigh one."""

    target: Target
    weight: Array | None

    def rows(self, codes: Array) -> Rows:
        """Give the rows under a key, by the code that each has there."""
        target = self.target
        classes = target.values if target.is_classification else None
        return Rows(codes, classes, target.values if target.kind == "continuous" else None, self.weight)


def read_summed(
    parameters: Parameters,
    rows: TrainingRows,
    earlier: Sequence[TargetInfo] | None = None,
    fixed: Sequence[TargetInfo] | None = None,
) -> list[SummedColumn]:
    """Read what is summed: columns of X, the targets, or nothing but the rows' weights.

    Parameters
    ----------
    parameters : Parameters
    rows : TrainingRows
    earlier : list of TargetInfo, optional
        Targets of earlier calls of `partial_fit`, whose kinds these must have.
    fixed : list of TargetInfo, optional
        Targets of all rows, where these are some of them: kinds and classes are decided.
    """
    if parameters.values is not None:
        summed = read_value_columns(rows.frame, parameters.values, rows.weight, rows.ops)
    elif parameters.target_type is None:
        summed = [SummedColumn(targets.no_target(rows.n_rows), rows.weight)]
    else:
        with rows.inputs.naming_piece("y"):
            read = read_targets(parameters, rows, earlier, fixed)
        summed = [SummedColumn(target, rows.weight) for target in read]
    parameters.check_targets([column.target for column in summed])
    with rows.inputs.naming_piece("y"):
        return add_terms(summed, parameters.statistic, rows.ops)


def read_targets(
    parameters: Parameters,
    rows: TrainingRows,
    earlier: Sequence[TargetInfo] | None,
    fixed: Sequence[TargetInfo] | None,
) -> list[Target]:
    """Read the targets of y: as all rows have decided, as earlier calls have, or by what these rows hold."""
    named = rows.targets()
    if parameters.cut is not None:
        if earlier is not None:
            parameters.cut.check_fixed()
        named = parameters.cut.buckets(rows.ops, named, rows.weight)
    if fixed is not None:
        return read_fixed_targets(rows.ops, named, fixed)
    if earlier is not None:
        # Of several columns that a statistic joins to one target, that one's kind is the kind of each.
        infos = list(earlier) * (len(named) if parameters.statistic.needs.joined_targets else 1)
        return read_later_targets(rows.ops, named, parameters.target_type, infos)
    return targets.read(rows.ops, named, parameters.target_type)


def read_fixed_targets(ops: Ops, named: Sequence[tuple[str | None, Any]], fixed: Sequence[TargetInfo]) -> list[Target]:
    """Read targets whose kinds and classes all rows have decided, where these are some of them."""
    if len(named) != len(fixed):
        raise other_number_of_targets(len(fixed), len(named))
    read = []
    for (_, values), info in zip(named, fixed, strict=True):
        target = targets.make(info.name, targets.Labels(ops, values), info.kind, info.classes)
        if target.classes is not None and len(target.classes) != len(info.classes):  # type: ignore[arg-type]
            raise rows_have_changed("y has labels")
        read.append(target)
    return read


def read_later_targets(
    ops: Ops, named: Sequence[tuple[str | None, Any]], target_type: Any, earlier: Sequence[TargetInfo]
) -> list[Target]:
    """Read targets as those of earlier calls; their classes are those of both."""
    if len(named) != len(earlier):
        raise other_number_of_targets(len(earlier), len(named))
    read = []
    for (name, values), info in zip(named, earlier, strict=True):
        if target_type not in ("auto", info.kind) and not isinstance(target_type, (list, tuple)):
            raise ValueError(
                f"Earlier calls had target_type {info.kind!r}, this one asks for {target_type!r}. Call fit to start "
                "anew."
            )
        labels = info.kind != "continuous"
        if target_type == "auto" and labels and values.dtype.kind == "f" and targets.has_fractions(ops, values):
            raise ValueError(
                f"Earlier calls had target_type {info.kind!r}, but y now holds fractions. Fit with "
                "target_type='continuous' from the start."
            )
        read.append(targets.make(name, targets.Labels(ops, values), info.kind, info.classes))
    return read


def read_value_columns(
    frame: Frame | Pieces, values: Sequence[Any], weight: Array | None, ops: Ops
) -> list[SummedColumn]:
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
    positions = [locate(frame, column, "values:") for column in values]
    if len(set(positions)) < len(positions):
        raise no_value_columns(values)
    return [_read_value_column(frame, position, weight, ops) for position in positions]


def add_terms(summed: list[SummedColumn], statistic: Statistic, ops: Ops) -> list[SummedColumn]:
    """Put the terms that a statistic asks for in place of each target; of several that it joins, in place of all."""
    columns = []
    for number, group in enumerate([summed] if statistic.needs.joined_targets else [[column] for column in summed]):
        own = statistic.of_target(number)
        if own.needs.terms == 1:
            columns += group
            continue
        target = group[0].target
        with naming_column(target.name if statistic.names_targets else None):
            terms = own.terms(ops, [column.target.values for column in group], group[0].weight)
            if terms[0].dtype.kind == "i" and any(term.dtype.kind == "f" for term in terms):
                refuse_inexact(terms[0])
        name = None if statistic.needs.joined_targets else target.name
        columns.append(SummedColumn(Target(name, target.kind, side_by_side(terms, ops), None), group[0].weight))
    return columns


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


def _read_value_column(frame: Frame | Pieces, position: int, weight: Array | None, ops: Ops) -> SummedColumn:
    label = frame.label(position)
    read = [_read_numbers(part, position) for part in parts_of(frame)]
    numbers, nulls = (np.concatenate(arrays) if len(arrays) > 1 else arrays[0] for arrays in zip(*read, strict=True))
    infinite = np.isinf(numbers)
    if infinite.any():
        raise with_piece(frame, infinite_value(label, int(np.flatnonzero(infinite)[0])))
    name = f"x{position}" if frame.names is None else frame.names[position]
    if nulls.any():
        numbers, present = np.where(nulls, 0, numbers), ops.to_device((~nulls).astype(np.int64))
        weight = present if weight is None else weight * present
    return SummedColumn(Target(name, "continuous", ops.to_device(numbers), None), weight)


def _read_numbers(part: Frame, position: int) -> tuple[Array, Array]:
    """Values of a column as int64 or float64, on the host, and which rows have none."""
    column, label = part.column(position), part.label(position)
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
