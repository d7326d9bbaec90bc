"""What a task does with one partition: pure functions, so that a task that is lost may be run again."""

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any, NamedTuple

from gpu_encode import frames, notices, parts
from gpu_encode.distributed.partitions import Place
from gpu_encode.errors.distributed import RowInPartitionError
from gpu_encode.errors.rows import RowError
from gpu_encode.fitting.model import Model
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.parts import (
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
from gpu_encode.parts.profiles import profile_rows


class Found(NamedTuple):
    """Profile of partitions that follow one another, and the rows of each."""

    profile: Profile
    lengths: tuple[int, ...]


class Learned(NamedTuple):
    """What a fitted encoder knows, where it was fitted, and what it warned of on the way."""

    model: Model
    device: str
    warnings: list[str]
    n_orders: int
    needs_categories: bool


def part_of(X: Any, y: Any, sample_weight: Any, groups: Any, place: Place) -> Part:
    """Rows of a partition; messages call it by its number."""
    return Part(X, y, sample_weight, groups, first_row=place.first_row, name=place.name)


def profiled(X: Any, y: Any, sample_weight: Any, groups: Any, place: Place, parameters: Parameters) -> Found:
    """Profile a partition whose first row's number is not known yet."""
    try:
        found = profile_rows(parameters, part_of(X, y, sample_weight, groups, place))
    except RowError as error:
        raise RowInPartitionError(error.before, error.row, error.after, place.number) from error
    return Found(found, (found.n_rows,))


def surveyed_together(found: Sequence[Found]) -> Found:
    """Join profiles of partitions that follow one another, in that order."""
    return reduce(followed, found)


def followed(one: Found, other: Found) -> Found:
    """Join two profiles; the rows of the second come after those of the first."""
    return Found(one.profile + other.profile.moved(sum(one.lengths)), one.lengths + other.lengths)


def n_rows(X: Any, *_: Any) -> int:
    """Count the rows of a partition."""
    return frames.read(X).n_rows


def measured(X: Any, y: Any, sample_weight: Any, groups: Any, place: Place, encoding_plan: EncodingPlan) -> PartialSums:
    """Sum the rows of a partition."""
    return parts.measure(encoding_plan, part_of(X, y, sample_weight, groups, place))


def summed(sums: Sequence[PartialSums]) -> PartialSums:
    """Add up sums; categories are joined here, on a worker."""
    return reduce(add, sums)


def fitted(
    encoder: Any, encoding_plan: EncodingPlan, sums: PartialSums, samples: Sequence[Any] | None
) -> tuple[Learned, EncodingTables, Any]:
    """Fit the encoder where the sums are; give also what training codes are read off, and a table as they will be.

    Parameters
    ----------
    encoder : TargetEncoder
    encoding_plan : EncodingPlan
    sums : PartialSums
        Of all partitions.
    samples : list of tables without rows, or None
        X, y, weights and groups; None where nobody asks for a table.
    """
    with notices.kept() as messages:
        tables = parts.fit(encoder, encoding_plan, sums)
        meta = None if samples is None else parts.encode(tables, Part(*samples))
    learned = Learned(tables.model, encoder.device_, messages, len(tables.before), tables.needs_categories)
    return learned, tables, meta


def encoded(X: Any, y: Any, sample_weight: Any, groups: Any, place: Place, tables: EncodingTables) -> Any:
    """Training codes of a partition."""
    return parts.encode(tables, part_of(X, y, sample_weight, groups, place))


def bucket_in_rows(tables: EncodingTables, part: Part) -> OrderedRows | None:
    """Rows of a partition as they stand; None of no rows."""
    [found] = parts.shuffle(tables, part)
    return found[0] if found else None


def partition_sums(
    X: Any, y: Any, sample_weight: Any, groups: Any, place: Place, tables: EncodingTables
) -> PrecedingSums | None:
    """Sum the rows of a partition; None of no rows."""
    return bucket_sums(bucket_in_rows(tables, part_of(X, y, sample_weight, groups, place)), tables)


def partition_gained(
    X: Any, y: Any, sample_weight: Any, groups: Any, place: Place, earlier: PrecedingSums | None, tables: EncodingTables
) -> CategoryMeanDeltas:
    """Find out how the means of categories change in a partition, after the sums of those before it."""
    bucket = bucket_in_rows(tables, part_of(X, y, sample_weight, groups, place))
    return bucket_gained(bucket, earlier, tables, 0)


def encoded_as_they_stand(
    X: Any, y: Any, sample_weight: Any, groups: Any, place: Place, earlier: PrecedingSums | None, tables: EncodingTables
) -> Any:
    """Training codes of a partition, after the sums of those before it."""
    part = part_of(X, y, sample_weight, groups, place)
    codes = bucket_codes(bucket_in_rows(tables, part), earlier, tables, 0)
    return parts.encode(tables, part, [[] if codes is None else [codes]])


def scattered(
    X: Any, y: Any, sample_weight: Any, groups: Any, place: Place, tables: EncodingTables, n_buckets: int
) -> list[list[OrderedRows]]:
    """Sort the rows of a partition into the buckets of every order."""
    return parts.shuffle(tables, part_of(X, y, sample_weight, groups, place), n_buckets)


def bucket_of(found: Sequence[Sequence[OrderedRows]], order: int, number: int) -> OrderedRows | None:
    """Give one bucket of a partition; None of no rows."""
    return found[order][number] if found[order] and len(found[order][number]) else None


def bucket_joined(pieces: Sequence[OrderedRows | None]) -> OrderedRows | None:
    """Join what all partitions have in a bucket; None of no rows."""
    filled = [each for each in pieces if each is not None]
    return OrderedRows.join(filled) if filled else None


def bucket_sums(bucket: OrderedRows | None, tables: EncodingTables) -> PrecedingSums | None:
    """Sum the rows of a bucket."""
    return None if bucket is None else PrecedingSums.of(tables, bucket)


def bucket_gained(
    bucket: OrderedRows | None, earlier: PrecedingSums | None, tables: EncodingTables, order: int
) -> CategoryMeanDeltas:
    """Find out how the means of categories change in a bucket, after the sums of those before it."""
    gaining = CategoryMeanScan(tables, order, earlier)
    if bucket is not None:
        gaining.add(bucket)
    return gaining.deltas()


def completed(tables: EncodingTables, gained: Sequence[CategoryMeanDeltas]) -> EncodingTables:
    """Give the tables with the means of categories; one of `gained` for each order."""
    return parts.with_categories(tables, gained)


def bucket_codes(
    bucket: OrderedRows | None, earlier: PrecedingSums | None, tables: EncodingTables, order: int
) -> RowEncodings | None:
    """Codes of the rows of a bucket, after the sums of those before it."""
    return None if bucket is None else OrderedScan(tables, order, earlier).encode(bucket)


def codes_between(codes: RowEncodings | None, start: int, stop: int) -> RowEncodings | None:
    """Codes of those rows of a bucket that a partition has."""
    return None if codes is None else codes.between(start, stop)


def encoded_in_order(
    X: Any,
    y: Any,
    sample_weight: Any,
    groups: Any,
    place: Place,
    own: Sequence[Sequence[RowEncodings | None]],
    tables: EncodingTables,
) -> Any:
    """Training codes of a partition, of codes that were found elsewhere."""
    placed = [[each for each in pieces if each is not None] for pieces in own]
    return parts.encode(tables, part_of(X, y, sample_weight, groups, place), placed)


def transformed(X: Any, _y: Any, _weight: Any, _groups: Any, place: Place, encoder: Any) -> Any:
    """Codes of a partition as new rows; errors count them from its first one."""
    try:
        return encoder.transform(X)
    except RowError as error:
        raise RowError(error.before, error.row, f" of {place.name}{error.after}") from error
    except (ValueError, TypeError) as error:
        if type(error) not in (ValueError, TypeError):
            raise
        raise type(error)(f"{place.name}: {error}") from error
