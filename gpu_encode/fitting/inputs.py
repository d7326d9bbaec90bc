"""Read the arguments of a call: the table, the vectors with a value for each row, the targets, and the categories."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np

from cpu_fallback.types import UNKNOWN, Array, Rows, UnwrittenCodes, written
from gpu_encode.fitting.columns import FEWEST_ON, ColumnMap, locate, map_columns
from gpu_encode.fitting.model import TargetInfo, refuse_missing
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.formulas.encoding_rule import EncodingRule
from gpu_encode.formulas.statistic import Statistic
from gpu_encode.schemes import Scheme
from gpu_encode.seam import devices, ops
from gpu_encode.seam.ops import Ops, device_of
from gpu_encode.sums import category_sums, targets
from gpu_encode.sums.category_sums import CategorySums, SumSpec
from gpu_encode.sums.targets import LABELLED, MANY_CLASSES, Target, as_doubles, backend_for, side_by_side
from gpu_encode.tables import frames
from gpu_encode.tables.categories.keys import CategoryIndex, KeySpec
from gpu_encode.tables.categories.values import Values, number_storage
from gpu_encode.tables.categories.vocabulary import Vocabulary
from gpu_encode.tables.frames import Frame, Incomplete, Pieces, PieceVectors, with_piece
from gpu_encode.tables.frames.columns import are_labels, is_temporal, plain
from gpu_encode.words.errors.tables import NO_NUMBERS, no_value_columns, rows_have_changed
from gpu_encode.words.errors.targets import no_target
from gpu_encode.words.errors.values import RowError, infinite_value, unknown_categories
from gpu_encode.words.notices import warn

# float64 holds every whole number up to this one.
MOST_EXACT = 1 << 53


class Inputs:
    """The arguments of a call.

    Parameters
    ----------
    X : table, or list, iterator or another collection of tables
    y, sample_weight, groups
        One vector for all rows; or, if X is several tables, a collection with a vector for each table.
    """

    def __init__(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> None:
        tables = frames.tables_of(X) if frames.is_collection(X) else None
        self.tables = [X] if tables is None else tables
        self.frame = frames.read(X) if tables is None else frames.read_pieces(tables)
        self.has_target = y is not None
        self._vectors = {"y": y, "sample_weight": sample_weight, "groups": groups}
        for role, data in self._vectors.items():
            if data is not None:
                self._vectors[role] = frames.in_line(data, role, self.frame)

    def device(self, wanted: str) -> str:
        """Give the device to compute on; for several tables, the first one decides."""
        data = [*self.tables]
        for vector in (self._vectors["y"], self._vectors["sample_weight"]):
            data += vector.parts if isinstance(vector, PieceVectors) else [vector]
        first = self.frame.lengths[0] if isinstance(self.frame, Pieces) else self.frame.n_rows
        return devices.choose(wanted, *data, n_rows=first)

    def weight(self) -> Array | None:
        """The weight of each row, not yet checked."""
        data = self._vectors["sample_weight"]
        if isinstance(data, PieceVectors):
            return data.vector()
        return None if data is None else frames.read_vector(data, "sample_weight", self.frame.n_rows)

    def groups(self) -> Frame | Pieces | None:
        """The group of each row, as a frame of one column."""
        data = self._vectors["groups"]
        if isinstance(data, PieceVectors):
            return data.grouping()
        return None if data is None else frames.read_grouping(data, "groups", self.frame.n_rows)

    def targets(self, keep_missing: bool = False) -> list[tuple[str | None, Any]]:
        """Give name (or None) and values of each target; `Incomplete` values if missing ones are allowed and occur."""
        data = self._vectors["y"]
        if isinstance(data, PieceVectors):
            return data.targets(keep_missing)
        return frames.read_targets(data, self.frame.n_rows, keep_missing=keep_missing)

    def for_splitter(self) -> tuple[Any, Any]:
        """Give X and y as scikit-learn's splitters take them; of several tables they see only the number of rows."""
        y = self._vectors["y"]
        X = np.empty((self.frame.n_rows, 0)) if isinstance(self.frame, Pieces) else self.tables[0]
        is_read = isinstance(y, PieceVectors) or devices.on_gpu(y)
        return X, frames.on_host(self.targets(keep_missing=True)) if is_read else devices.unwrap(y)

    def warn_of_order(self) -> None:
        """Warn about vectors whose index differs from that of X, since rows are matched by position."""
        for role, vector in self._vectors.items():
            parts = vector.parts if isinstance(vector, PieceVectors) else [vector]
            if any(map(is_in_another_order, self.tables, parts)):
                warn(
                    f"{role} has another index than X, but is matched by position. Align it first, "
                    f"{role} = {role}.loc[X.index], or drop its index, {role}.to_numpy()."
                )

    def warn_of_groups(self, parameters: Parameters) -> None:
        """Warn about groups that a scheme does not use; scikit-learn's splitters warn themselves."""
        if self._vectors["groups"] is not None and not any(map(takes_groups, parameters.every_scheme)):
            scheme = parameters.scheme if parameters.trains_apart else None
            who = parameters.owner if scheme is None else type(scheme).__name__
            column = getattr(scheme, "groups", None)
            reads = f"reads those of its column {column!r}"
            why = "takes none. GroupKFold keeps groups together" if column is None else reads
            warn(f"groups are ignored: {who} {why}.")

    @contextmanager
    def naming_piece(self, role: str) -> Iterator[None]:
        """If there is a vector for each table, let an error that names a row also name its vector."""
        try:
            yield
        except RowError as error:
            data = self._vectors[role]
            if isinstance(data, PieceVectors):
                raise error.in_pieces(role, data.lengths) from error
            raise


def takes_groups(scheme: Scheme) -> bool:
    """Tell whether a scheme takes groups from the argument `groups`."""
    return hasattr(getattr(scheme, "cv", None), "split") or any(column is None for column, _ in scheme.reads())


def is_in_another_order(table: Any, vector: Any) -> bool:
    """Tell whether a vector has as many rows as a table, but another index; other lengths are refused elsewhere."""
    # The class is asked, since an object of Dask's `Delayed` has every attribute.
    if not (hasattr(type(vector), "iloc") and hasattr(type(table), "iloc")):
        return False
    index, other = table.index, vector.index
    return other is not index and len(other) == len(index) and not other.equals(index)


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Training rows: the table, the vectors that every target shares, and the backend that computes.

    Parameters
    ----------
    inputs : Inputs
        The arguments of the call.
    frame : Frame or Pieces
        The table.
    n_rows : int
    ops : Ops
    weight : array (rows,), optional
        Checked weights, on the device of `ops`.
    groups : Frame or Pieces, optional
        A frame of one column.
    targets : list of (str or None, array)
        Name and values of each target, not yet checked; an empty list if y is not read.
    columns : ColumnMap, optional
        Columns whose codes were kept for keys that are read later.
    """

    inputs: Inputs
    frame: Frame | Pieces
    n_rows: int
    ops: Ops
    weight: Array | None
    groups: Frame | Pieces | None
    targets: Sequence[tuple[str | None, Any]] = ()
    columns: ColumnMap | None = None

    @classmethod
    def of(
        cls, inputs: Inputs, ops: Ops, weight: Array | None = None, targets: Sequence[tuple[str | None, Any]] = ()
    ) -> Self:
        """Give the rows of a call, with checked weights."""
        return cls(inputs, inputs.frame, inputs.frame.n_rows, ops, weight, inputs.groups(), targets)

    def columns_of(self, entries: Sequence[KeySpec], join_later: bool) -> ColumnMap:
        """Give the columns of the table, which keep the codes that several keys need."""
        if self.columns is not None:
            return self.columns
        columns = map_columns(self.frame).remember(entries, join_later)
        return columns.number_together(entries) if join_later and device_of(self.ops) == "cuda" else columns


@dataclass(frozen=True, eq=False)
class Decided:
    """Facts that were found in all rows, for a call that has only a part of them.

    Parameters
    ----------
    targets : list of TargetInfo
        Kind and classes of each target.
    floats : list of bool
        For each target, whether it is a quantity whose type is float in some part of the rows.
    float_weight : bool
        Whether some weights are floats.
    keys : list of CategoryIndex, optional
        The categories of each key, after all rows have been summed.
    """

    targets: Sequence[TargetInfo]
    floats: Sequence[bool]
    float_weight: bool
    keys: Sequence[CategoryIndex] | None = None


def read_rows(
    parameters: Parameters, inputs: Inputs, decided: Decided | None = None, more_may_come: bool = False
) -> TrainingRows:
    """Choose the backend, and read weights, groups and y.

    Parameters
    ----------
    parameters : Parameters
    inputs : Inputs
    decided : Decided, optional
        Facts that were found in all rows, if the call has only a part of them: its integers become floats if other rows
        have floats, as in one array.
    more_may_come : bool, default=False
        Whether more rows may be added later.  If not, some weight must be above zero.

    Raises
    ------
    ValueError
        If there are no rows, if a target is needed but missing, or if weights are not valid.
    """
    frame = inputs.frame
    if parameters.target_type is not None and not inputs.has_target:
        raise no_target(parameters.owner)
    if not frame.n_rows:
        raise ValueError(
            f"Found array with 0 sample(s) (shape={frame.shape}) while a minimum of 1 is required by "
            f"{parameters.owner}."
        )
    inputs.warn_of_order()
    backend = ops.resolve(frame.n_rows, inputs.device(parameters.device))
    with inputs.naming_piece("sample_weight"):
        weight = inputs.weight()
        if weight is not None:
            weight = as_floats(weight) if decided is not None and decided.float_weight else weight
            all_rows = decided is None and not more_may_come
            weight = targets.check_weight(backend, frames.move_to_reader(weight, backend), all_rows)
            weight = backend.to_device(weight)
    if parameters.target_type is None or parameters.values is not None:
        return TrainingRows.of(inputs, backend, weight)
    with inputs.naming_piece("y"):
        named = inputs.targets(parameters.missing_target == "keep")
        if decided is not None and len(named) == len(decided.floats):
            pairs = zip(named, decided.floats, strict=True)
            named = [(name, as_floats(values) if floats else values) for (name, values), floats in pairs]
        named = [(name, frames.move_to_reader(values, backend)) for name, values in named]
    return TrainingRows.of(inputs, backend, weight, named)


def as_floats(values: Any) -> Any:
    """Give integers as floats; other values stay as they are."""
    if isinstance(values, Incomplete):
        return replace(values, values=as_floats(values.values))
    return values.astype(np.float64) if values.dtype.kind in "iub" else values


@dataclass(frozen=True, eq=False)
class SummedColumn:
    """A target, or a column of X that is summed or counted like one, and the weight of each row (None: all are 1)."""

    target: Target
    weight: Array | None

    @classmethod
    def of(cls, target: Target, weight: Array | None) -> Self:
        """Join a target and the weights of its rows; rows without a value get weight 0."""
        if target.present is None:
            return cls(target, weight)
        present = target.present.astype(np.int64)
        return cls(target, present if weight is None else weight * present)

    def rows(self, codes: Array) -> Rows:
        """Give the rows of a key, by the code of each row."""
        target = self.target
        classes = target.values if target.is_classification else None
        numbers = target.values if target.kind in ("continuous", *LABELLED) else None
        return Rows(codes, classes, numbers, self.weight)


def read_summed(
    parameters: Parameters,
    rows: TrainingRows,
    earlier: Sequence[TargetInfo] | None = None,
    fixed: Sequence[TargetInfo] | None = None,
    more_may_come: bool = False,
) -> list[SummedColumn]:
    """Read the columns of X or the targets that are summed; without these, only the rows' weights are summed.

    Parameters
    ----------
    parameters : Parameters
    rows : TrainingRows
    earlier : list of TargetInfo, optional
        Targets of earlier calls of `partial_fit`; the kinds must be the same.
    fixed : list of TargetInfo, optional
        Kinds and classes that all rows together have, if the call has only a part of the rows.
    more_may_come : bool, default=False
        Whether more rows may be added later; if so, all of these rows may lack a target.
    """
    if parameters.values is not None:
        summed = read_value_columns(rows.frame, parameters.values, rows.weight, rows.ops, parameters.labelled)
    elif parameters.target_type is None:
        summed = [SummedColumn(targets.no_target(rows.n_rows), rows.weight)]
    else:
        with rows.inputs.naming_piece("y"):
            read = read_targets(parameters, rows, earlier, fixed, more_may_come)
        summed = [SummedColumn.of(target, rows.weight) for target in read]
    parameters.check_targets([column.target for column in summed])
    with rows.inputs.naming_piece("y"):
        return add_terms(summed, parameters.statistic, rows.ops)


def read_targets(
    parameters: Parameters,
    rows: TrainingRows,
    earlier: Sequence[TargetInfo] | None,
    fixed: Sequence[TargetInfo] | None,
    more_may_come: bool,
) -> list[Target]:
    """Read the targets of y; `fixed` or `earlier` targets decide their kinds, or else the values do."""
    named = rows.targets
    if parameters.cut is not None:
        if earlier is not None:
            parameters.cut.check_fixed()
        named = parameters.cut.buckets(rows.ops, named, rows.weight)
    # If a statistic joins several columns to one target, each column has the kind of this target.
    times = len(named) if parameters.statistic.needs.joined_targets else 1
    if fixed is not None:
        return read_fixed_targets(rows.ops, named, list(fixed) * (times if len(fixed) == 1 else 1))
    if earlier is not None:
        return read_later_targets(rows.ops, named, parameters.target_type, list(earlier) * times)
    return targets.read(rows.ops, named, parameters.target_type, more_may_come)


def read_fixed_targets(ops: Ops, named: Sequence[tuple[str | None, Any]], fixed: Sequence[TargetInfo]) -> list[Target]:
    """Read a part of the targets' rows; kinds and classes were decided from all rows."""
    if len(named) != len(fixed):
        raise _other_number_of_targets(len(fixed), len(named))
    read = []
    for (_, values), info in zip(named, fixed, strict=True):
        target = targets.make(info.name, targets.Labels.of(ops, values), info.kind, info.classes)
        if target.classes is not None and len(target.classes) != len(info.classes):  # type: ignore[arg-type]
            raise rows_have_changed("y has labels")
        read.append(target)
    return read


def read_later_targets(
    ops: Ops, named: Sequence[tuple[str | None, Any]], target_type: Any, earlier: Sequence[TargetInfo]
) -> list[Target]:
    """Read targets of the same kinds as in earlier calls; the classes are those of all calls together."""
    if len(named) != len(earlier):
        raise _other_number_of_targets(len(earlier), len(named))
    read = []
    for number, ((name, values), info) in enumerate(zip(named, earlier, strict=True)):
        if info.kind == targets.UNDECIDED:
            asked = target_type[number] if isinstance(target_type, (list, tuple)) else target_type
            read += targets.read(ops, [(name, values)], asked, more_may_come=True)
            continue
        if target_type not in ("auto", info.kind) and not isinstance(target_type, (list, tuple)):
            raise ValueError(
                f"Earlier calls had target_type {info.kind!r}, this one asks for {target_type!r}. Call fit to start "
                "again."
            )
        column = targets.Labels.of(ops, values)
        held = column.values if target_type == "auto" and info.kind != "continuous" else None
        if held is not None and held.dtype.kind == "f" and targets.has_fractions(ops, held):
            raise ValueError(
                f"Earlier calls had target_type {info.kind!r}, but y now holds fractions. Fit with "
                "target_type='continuous' from the start."
            )
        read.append(targets.make(name, column, info.kind, info.classes))
    return read


def _other_number_of_targets(before: int, now: int) -> ValueError:
    """Error for another number of targets than in earlier calls."""
    return ValueError(f"Earlier calls had {before} targets, this one has {now}. Give the same targets.")


def read_value_columns(
    frame: Frame | Pieces, values: Sequence[Any], weight: Array | None, ops: Ops, labelled: bool = False
) -> list[SummedColumn]:
    """Read columns of X as quantities, one target each.

    Parameters
    ----------
    frame : Frame or Pieces
    values : list of str or int
        Names or positions.
    weight : array (rows,), optional
        Weight of each row, on the device of `ops`.
    ops : Ops
    labelled : bool, default=False
        Whether a column may hold text or dates.

    Returns
    -------
    list of SummedColumn
        Rows without a value have weight 0.

    Raises
    ------
    ValueError
        If there is no such column, or it holds infinity.
    TypeError
        If it holds neither numbers nor, if `labelled`, text or dates.
    """
    positions = [locate(frame, column, "values:") for column in values]
    if len(set(positions)) < len(positions):
        raise no_value_columns(values)
    return [
        _read_labels(frame, position, weight, ops)
        if labelled and any(are_labels(part.column(position)) for part in frame.parts)
        else _read_value_column(frame, position, weight, ops)
        for position in positions
    ]


def add_terms(summed: list[SummedColumn], statistic: Statistic, ops: Ops) -> list[SummedColumn]:
    """Replace each target by the terms that a statistic needs; a statistic of joined targets replaces them together."""
    columns: list[SummedColumn] = []
    for number, group in enumerate([summed] if statistic.needs.joined_targets else zip(summed, strict=True)):
        of_target = statistic.of_target(number)
        if of_target.needs.terms == 1:
            columns += group
            continue
        target, weight = group[0].target, group[0].weight
        for other in group[1:]:
            # A row counts only if it has a value in each target.
            weight = SummedColumn.of(other.target, weight).weight
        with naming_column(target.name if statistic.names_targets else None):
            values = [as_doubles(ops, column.target.values) for column in group]
            terms = of_target.terms(ops, values, weight)
            if terms[0].dtype.kind == "i" and any(term.dtype.kind == "f" for term in terms):
                refuse_inexact(terms[0])
        name = None if statistic.needs.joined_targets else target.name
        columns.append(SummedColumn(Target(name, target.kind, side_by_side(terms, ops), None), weight))
    return columns


@contextmanager
def naming_column(column: str | None) -> Iterator[None]:
    """Add the name of the column of values to an error that names a row."""
    try:
        yield
    except RowError as error:
        if column is None:
            raise
        raise RowError(f"values: in column {column!r}, {error.before}", error.row, error.after) from error


def refuse_inexact(values: Array) -> None:
    """Raise ValueError for whole numbers that float64 does not hold exactly, since terms are floats."""
    beyond = (values > MOST_EXACT) | (values < -MOST_EXACT)
    if bool(beyond.any()):
        row = int(np.flatnonzero(beyond)[0])
        raise RowError(
            "'skew', 'kurt' and statistics with terms take whole numbers up to 2**53, but a value is "
            f"{values[row].item()!r} in row ",
            row,
            ". Convert the values to float64, which rounds them, or leave such statistics out.",
        )


def _read_value_column(frame: Frame | Pieces, position: int, weight: Array | None, ops: Ops) -> SummedColumn:
    label = frame.label(position)
    read = [read_numbers(part, position) for part in frame.parts]
    numbers, nulls = (np.concatenate(arrays) if len(arrays) > 1 else arrays[0] for arrays in zip(*read, strict=True))
    infinite = np.isinf(numbers)
    if infinite.any():
        raise with_piece(frame, infinite_value(label, int(np.flatnonzero(infinite)[0])))
    if nulls.any():
        numbers, weight = np.where(nulls, 0, numbers), where_present(weight, ops.to_device(~nulls))
    return SummedColumn(Target(name_of(frame, position), "continuous", ops.to_device(numbers), None), weight)


def _read_labels(frame: Frame | Pieces, position: int, weight: Array | None, ops: Ops) -> SummedColumn:
    """Read a column of text or dates as indices among its sorted values."""
    column = frame.keys(position, ops)
    kind, label = column.vocabulary.kind, frame.label(position)
    if kind == "null":
        return _read_value_column(frame, position, weight, ops)
    if kind not in LABELLED:
        raise _text_as_value(label, column.vocabulary.to_numpy()[0]) if kind == "bytes" else _timestamps_as_value(label)
    codes = written(column.codes)
    missing = codes < 0
    weight = where_present(weight, ~missing) if bool(missing.any()) else weight
    name = name_of(frame, position)
    return SummedColumn(Target(name, kind, codes.astype(np.int64), None, vocabulary=column.vocabulary), weight)


def name_of(frame: Frame | Pieces, position: int) -> str:
    """Name a column of values by its name, or by its position."""
    return f"x{position}" if frame.names is None else frame.names[position]


def where_present(weight: Array | None, present: Array) -> Array:
    """Give the weight of each row; 0 for rows without a value."""
    there: Array = present.astype(np.int64)
    return there if weight is None else weight * there


def read_numbers(part: Frame, position: int) -> tuple[Array, Array]:
    """Give the values of a column as int64 or float64, on the host, and tell which rows have none."""
    column, label = part.column(position), part.label(position)
    if is_temporal(column):
        raise _timestamps_as_value(label)
    values, nulls = plain(column)
    if values.dtype.kind == "O":
        return _spread(values[~nulls], nulls, label), nulls
    whole = values.dtype.kind in "bi" or (values.dtype.kind == "u" and values.dtype != np.uint64)
    return np.ascontiguousarray(values, np.int64 if whole else np.float64), nulls


def _timestamps_as_value(column: object) -> TypeError:
    """Error for a column of dates, times or spans of time."""
    return TypeError(f"values: column {column!r} holds dates, times or spans of time. {NO_NUMBERS}")


def _spread(present: Array, nulls: Array, label: object) -> Array:
    """Give numbers that were held as objects, with zero for rows without a number."""
    stray = next((value for value in present if not isinstance(value, (Real, np.bool_, Decimal))), None)
    if stray is not None:
        raise _text_as_value(label, stray)
    numbers = np.array([float(value) if isinstance(value, Decimal) else value for value in present])
    spread = np.zeros(len(nulls), np.int64 if numbers.dtype.kind in "bi" else np.float64)
    spread[~nulls] = numbers
    return spread


def _text_as_value(column: object, found: object) -> TypeError:
    """Error for a column of values that are not numbers."""
    return TypeError(f"values: column {column!r} holds {found!r}, which is no number. {NO_NUMBERS}")


class RowCategories(NamedTuple):
    """The categories of one key, and the category of each training row.

    Parameters
    ----------
    key : CategoryIndex
    found : int32 array (rows,) or UnwrittenCodes
        Empty if only `sums` are needed.
    sums : CategorySums, optional
        Sums that were found together with the categories.
    """

    key: CategoryIndex
    found: Array
    sums: CategorySums | None = None

    @property
    def codes(self) -> Array:
        """The category of each row, as an array."""
        return written(self.found)


def read_categories(
    parameters: Parameters,
    rows: TrainingRows,
    entries: Sequence[KeySpec],
    rules: Sequence[EncodingRule],
    sums_alone: bool,
    summed: Sequence[tuple[SummedColumn, SumSpec]],
) -> list[RowCategories]:
    """Find the categories of every key, or take the categories that the user gave.

    Parameters
    ----------
    parameters : Parameters
    rows : TrainingRows
    entries : list of KeySpec
    rules : list of EncodingRule
        The rule of each entry, with the policies for missing values and for values that are not listed.
    sums_alone : bool
        Whether only sums over all rows are needed, and not the category of each row.
    summed : list of tuple of SummedColumn and SumSpec
        The summed columns; if there is only one, categories may be found together with its sums.

    Raises
    ------
    ValueError, TypeError
        For values that cannot be categories, or that the policies refuse.
    """
    statistic, ops = parameters.statistic, rows.ops
    later, together = choose_passes(parameters, ops, len(entries), sums_alone, summed)
    by_type = sums_alone and not statistic.needs.sums and parameters.missing != "error"
    no_sums = None if statistic.needs.sums else CategorySums.of_nothing()
    columns, read = rows.columns_of(entries, later), []
    for entry, given, rule in zip(entries, given_categories(parameters.categories, entries), rules, strict=True):
        categories, missing = None, rule.missing
        if given is not None:
            categories = RowCategories(*CategoryIndex.fit_given(entry, given, columns, ops, missing == "category"))
            if rule.refuses_unknown:
                refuse_unknown(categories.codes, entry.name, columns.frame)
        elif together is not None:
            categories = sum_whole_numbers(entry, columns, ops, *together)
        elif by_type and (key := CategoryIndex.by_type(entry, columns)) is not None:
            categories = RowCategories(key, np.zeros(0, np.int32), no_sums)
        if categories is None and device_of(ops) == "cuda":
            categories = index_whole_numbers(entry, columns, ops, no_sums)
        if categories is None:
            given_as = entry, columns, ops, missing == "category", columns.joined, later and missing != "error"
            categories = RowCategories(*CategoryIndex.fit(*given_as), no_sums)
        # This raises an error if the rule of a hierarchy does not fit the values, before anything is kept.
        _ = None if entry.rule is None else categories.key.levels
        if missing == "error" and not isinstance(categories.found, UnwrittenCodes):
            refuse_missing(categories.codes, missing, repr(entry.name), columns.frame)
        read.append(categories)
    return read


def choose_passes(
    parameters: Parameters, ops: Ops, n_keys: int, sums_alone: bool, summed: Sequence[tuple[SummedColumn, SumSpec]]
) -> tuple[bool, tuple[SummedColumn, SumSpec] | None]:
    """Say whether joint keys are joined later, if ever, and give the column that is summed while keys are read."""
    on_gpu, needs = device_of(ops) == "cuda", parameters.statistic.needs
    # A GPU may find categories and sums in one pass even if codes are needed: it writes the codes later.
    of_all = sums_alone or (on_gpu and parameters.leaves_one_out)
    # It counts many keys together, and sums them one by one.
    counts = sums_alone and needs.sums and all(spec.classification and each.weight is None for each, spec in summed)
    later = n_keys >= FEWEST_ON[device_of(ops)] and (not on_gpu or not of_all or counts)
    # A distribution of values needs the codes of rows, and sums of many classes may not fit in memory.
    may = needs.sums and of_all and not parameters.statistic.of_target(0).needs.distribution
    if not may or (on_gpu and later) or len(summed) != 1 or summed[0][0].target.n_classes > MANY_CLASSES:
        return later, None
    return later, summed[0]


def look_up_categories(
    parameters: Parameters, keys: Sequence[CategoryIndex], columns: ColumnMap, ops: Ops
) -> list[RowCategories]:
    """Look up the category of each row in every key; the categories were decided from all rows."""
    return [RowCategories(key, look_up_known(key, columns, ops, parameters.missing)) for key in keys]


def look_up_known(key: CategoryIndex, columns: ColumnMap, ops: Ops, missing: str) -> Array:
    """Look up the categories of rows; raise ValueError for a value that is not a known category."""
    codes = key.lookup(columns, ops, missing == "category")
    refuse_unknown_rows(key, len(codes) and int(codes.min()) == UNKNOWN)
    return codes


def refuse_unknown_rows(key: CategoryIndex, unknown: int) -> None:
    """Raise ValueError if any rows are unknown to a key whose categories were found in all rows."""
    if unknown and not key.given:
        raise rows_have_changed(f"{key.entry.name!r} has values")


def given_categories(categories: Any, entries: Sequence[KeySpec]) -> list[Any]:
    """Give the categories that the user listed for each key, or None."""
    if isinstance(categories, str):
        return [None] * len(entries)
    names = [given for given in categories if isinstance(given, str) and given != "auto"]
    meant = f" If these are columns, pass columns={names!r}." if names else ""
    if len(categories) != len(entries):
        raise ValueError(
            "Shape mismatch: if categories is an array, it has to be of shape (n_features,). categories has "
            f"{len(categories)} lists for {len(entries)} columns. Give one per column.{meant}"
        )
    per_entry: list[Any] = []
    for given, entry in zip(categories, entries, strict=True):
        if given is None or (isinstance(given, str) and given == "auto"):
            per_entry.append(None)
            continue
        if isinstance(given, (str, bytes)) or not hasattr(given, "__len__"):
            raise ValueError(
                f"categories of {entry.name!r} must be a list of values or 'auto'. Got {given!r} instead.{meant}"
            )
        if len(entry.columns) > 1 or entry.rule is not None:
            raise ValueError(
                f"categories of {entry.name!r} cannot be listed: it is a joint key or has a hierarchy. Give 'auto' "
                "instead."
            )
        per_entry.append(given)
    return per_entry


def refuse_unknown(codes: Array, name: str, frame: Frame | Pieces) -> None:
    """Raise ValueError for training rows whose values are not among the listed categories."""
    if bool((codes == UNKNOWN).any()):
        advice = '. Add them to categories (None for missing values), or choose another handle_unknown than "error".'
        raise with_piece(frame, unknown_categories(f"{name!r} during fit", np.flatnonzero(codes == UNKNOWN), advice))


def sum_whole_numbers(
    entry: KeySpec, columns: ColumnMap, ops: Ops, summed: SummedColumn, spec: SumSpec
) -> RowCategories | None:
    """Find the categories of a column of whole numbers, and their sums, in one pass; None for any other column.

    A column with nulls also gives None, since a null may be a category or an error.
    """
    whole_numbers = read_whole_numbers(entry, columns, ops)
    if whole_numbers is None or category_sums.outgrow_digits(spec.layout, columns.n_rows):
        return None
    numbers, dtype = whole_numbers
    rows = summed.rows(numbers)
    backend = backend_for(ops, rows.target)
    accumulators, distinct, codes = backend.accumulate_numbers(rows, summed.target.n_classes, spec.layout)
    codes = np.zeros(0, np.int32) if codes is None else codes
    return RowCategories(key_of(entry, distinct, dtype, ops), codes, CategorySums(accumulators, spec, len(numbers)))


def index_whole_numbers(
    entry: KeySpec, columns: ColumnMap, ops: Ops, no_sums: CategorySums | None
) -> RowCategories | None:
    """Find the categories of a column of whole numbers on a GPU, with codes that are written later; otherwise None."""
    if columns.repeated.intersection(entry.columns):
        return None
    whole_numbers = read_whole_numbers(entry, columns, ops)
    if whole_numbers is None:
        return None
    numbers, dtype = whole_numbers
    codes, distinct = devices.cuda().index_numbers(numbers)
    return RowCategories(key_of(entry, distinct, dtype, ops), codes, no_sums)


def read_whole_numbers(entry: KeySpec, columns: ColumnMap, ops: Ops) -> tuple[Array, str] | None:
    """Give the numbers of a column of whole numbers, on the device of `ops`, and the name of their type."""
    found = columns.whole_numbers(entry.columns[0]) if len(entry.columns) == 1 else None
    if found is None or isinstance(found[0], np.ndarray) != (device_of(ops) == "cpu"):
        return None
    return found


def key_of(entry: KeySpec, distinct: Array, dtype: str, ops: Ops) -> CategoryIndex:
    """Make the key whose categories are some sorted distinct numbers."""
    return CategoryIndex(
        entry, [Vocabulary(Values("number", number_storage(ops.to_host(distinct), entry.name), dtype))]
    )
