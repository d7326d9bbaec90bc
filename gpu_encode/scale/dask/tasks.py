"""Tasks of Dask, each on a partition or a group of ordered rows: pure functions, so that lost tasks can run again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from gpu_encode.fitting.drift import RowCounts
from gpu_encode.fitting.model import Model
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.scale import parts
from gpu_encode.scale.dask.exchange import pack
from gpu_encode.scale.dask.partitions import Partition, checksums_of
from gpu_encode.scale.messages import RowInPartitionError
from gpu_encode.scale.parts import (
    CategoryMeanDeltas,
    CategoryMeanScan,
    EncodingPlan,
    EncodingTables,
    OrderedRows,
    OrderedScan,
    Part,
    PartialSums,
    PrecedingSums,
    Profile,
    RowEncodings,
)
from gpu_encode.scale.parts.profiles import profile_rows
from gpu_encode.words import notices
from gpu_encode.words.errors.values import RowError


@dataclass(frozen=True, eq=False)
class PartitionProfiles:
    """The joint profile of consecutive partitions, their numbers of rows and checksums; can be added in order."""

    profile: Profile
    lengths: tuple[int, ...]
    checksums: tuple[dict[Any, int], ...] = ()

    def __add__(self, other: "PartitionProfiles") -> "PartitionProfiles":
        moved = other.profile.moved(sum(self.lengths))
        return PartitionProfiles(self.profile + moved, self.lengths + other.lengths, self.checksums + other.checksums)


class Learned(NamedTuple):
    """What a fitted encoder knows, and the warnings of its fit."""

    model: Model
    device: str
    warnings: list[tuple[str, type[Warning]]]
    n_orders: int
    needs_categories: bool


def profile_partition(parameters: Parameters, part: Partition) -> PartitionProfiles:
    """Profile a partition, before the number of its first row is known."""
    try:
        profile = profile_rows(parameters, part)
    except RowError as error:
        raise RowInPartitionError(error.before, error.row, error.after, part.number) from error
    columns = [column for scheme in parameters.every_scheme for column in scheme.used_columns()]
    return PartitionProfiles(profile, (profile.n_rows,), (checksums_of(part, columns),))


def count_rows(_: Any, part: Partition) -> int:
    """Count the rows of a partition."""
    return len(part)


def measure_partition(encoding_plan: EncodingPlan, part: Partition) -> PartialSums:
    """Sum the rows of a partition."""
    return parts.measure(encoding_plan, part)


def fit_tables(
    encoder: Any, encoding_plan: EncodingPlan, sums: PartialSums, samples: Sequence[Any] | None
) -> tuple[Learned, EncodingTables, Any]:
    """Fit the encoder on a worker; also give the tables of training encodings, and an empty output.

    Parameters
    ----------
    encoder : TargetEncoder
    encoding_plan : EncodingPlan
    sums : PartialSums
        The sum over all partitions.
    samples : list of tables without rows, or None
        Empty tables of X, y, weights and groups; None if no output is wanted.
    """
    with notices.kept() as messages:
        tables = parts.fit(encoder, encoding_plan, sums)
        meta = None if samples is None else parts.encode(tables, Part(*samples))
    learned = Learned(tables.model, encoder.device_, messages, len(tables.before), tables.needs_categories)
    return learned, tables, meta


def encode_partition(tables: EncodingTables, part: Partition) -> Any:
    """Encode the training rows of a partition."""
    return parts.encode(tables, part)


def ordered_rows(tables: EncodingTables, part: Partition) -> OrderedRows | None:
    """Give the rows of a partition in their own order; None if there are none."""
    [groups] = parts.shuffle(tables, part)
    return groups[0] if groups else None


def sum_partition(tables: EncodingTables, part: Partition) -> PrecedingSums | None:
    """Sum the rows of a partition; None if there are none."""
    return sum_group(ordered_rows(tables, part), tables)


def mean_deltas_of_partition(
    tables: EncodingTables, part: Partition, earlier: PrecedingSums | None
) -> CategoryMeanDeltas:
    """Find how the means of categories change in a partition, from the sums of the partitions before it."""
    return mean_deltas_of_group(ordered_rows(tables, part), earlier, tables, 0)


def encode_in_sequence(tables: EncodingTables, part: Partition, earlier: PrecedingSums | None) -> Any:
    """Encode the training rows of a partition, from the sums of the partitions before it."""
    encodings = encode_group(ordered_rows(tables, part), earlier, tables, 0)
    return parts.encode(tables, part, [[] if encodings is None else [encodings]])


def deal_ordered(n_groups: int, tables: EncodingTables, part: Partition) -> dict[int, OrderedRows]:
    """Sort the rows of a partition into groups of neighbouring ranks, `n_groups` for each order.

    Groups are numbered through all orders.
    """
    by_order = parts.shuffle(tables, part, n_groups)
    return {
        order * n_groups + number: rows
        for order, groups in enumerate(by_order)
        for number, rows in enumerate(groups)
        if len(rows)
    }


def join_groups(_: None, group: tuple[int, Sequence[OrderedRows]]) -> OrderedRows | None:
    """Join the rows of a group from all partitions; None if there are none."""
    return OrderedRows.join(group[1]) if group[1] else None


def sum_group(rows: OrderedRows | None, tables: EncodingTables) -> PrecedingSums | None:
    """Sum the rows of a group."""
    return None if rows is None else PrecedingSums.of(tables, rows)


def mean_deltas_of_group(
    rows: OrderedRows | None, earlier: PrecedingSums | None, tables: EncodingTables, order: int
) -> CategoryMeanDeltas:
    """Find how the means of categories change in a group, from the sums of the groups before it."""
    scan = CategoryMeanScan(tables, order, earlier)
    if rows is not None:
        scan.add(rows)
    return scan.deltas()


def encode_group(
    rows: OrderedRows | None, earlier: PrecedingSums | None, tables: EncodingTables, order: int
) -> RowEncodings | None:
    """Encode the rows of a group, from the sums of the groups before it."""
    return None if rows is None else OrderedScan(tables, order, earlier).encode(rows)


def select_rows(group: int, encodings: RowEncodings | None, borders: Sequence[int]) -> Any:
    """Pack the encodings of a group for the partitions of its rows."""
    rows = [] if encodings is None else [encodings.between(*between) for between in pairwise(borders)]
    return pack(group, ((number, own) for number, own in enumerate(rows) if len(own.rows)))


def encode_from_groups(
    n_groups: int, tables: EncodingTables, part: Partition, returned: tuple[Sequence[tuple[int, RowEncodings]]]
) -> Any:
    """Put together the training encodings of a partition, whose rows were encoded in groups of each order."""
    by_order: list[list[RowEncodings]] = [[] for _ in tables.before]
    for group, rows in returned[0]:
        by_order[group // n_groups].append(rows)
    return parts.encode(tables, part, by_order)


def transform_partition(encoder: Any, part: Partition) -> Any:
    """Encode a partition as new rows; errors number rows within the partition."""
    return of_new_rows(encoder.transform, part)


def count_partition(encoder: Any, part: Partition) -> RowCounts:
    """Count the rows of a partition by their categories."""
    counts: RowCounts = of_new_rows(encoder._count_rows, part)
    return counts


def of_new_rows(function: Callable[[Any], Any], part: Partition) -> Any:
    """Call a function on new rows; errors name the partition."""
    try:
        return function(part.X)
    except RowError as error:
        raise RowError(error.before, error.row, f" of {part.name}{error.after}") from error
    except (ValueError, TypeError) as error:
        if type(error) not in (ValueError, TypeError):
            raise
        raise type(error)(f"{part.name}: {error}") from error
