"""Tasks of Dask for categories that fit no process: rows find their buckets by a hash, and encodings come back."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from cpu_fallback.types import Array
from gpu_encode.scale.dask.exchange import pack
from gpu_encode.scale.dask.partitions import Partition, names_of
from gpu_encode.scale.engines.buckets import Buckets
from gpu_encode.scale.files import shuffle
from gpu_encode.scale.files.look_up import (
    BucketTable,
    Joined,
    folder_of,
    index_of,
    lines_by_bucket,
    of_new_rows,
    rows_by_bucket,
)
from gpu_encode.scale.files.shuffle import ShuffledSums
from gpu_encode.scale.files.source import Reading
from gpu_encode.tables import frames
from gpu_encode.tables.frames import Frame
from gpu_encode.words.errors.tables import rows_have_changed
from gpu_encode.words.errors.values import RowError

ROW, VIEW = "row", "view"


@dataclass(frozen=True)
class PartitionReading(Reading):
    """How partitions of training rows are read: columns that are not picked are null, and keep positions."""

    def part(self, table: Partition) -> Partition:
        """Give a partition as it is summed, if it has as many rows as before."""
        with table.named():
            if len(table) != table.n_rows:
                raise rows_have_changed(f"{table.name} has rows")
            features, picked = self.roles.features, table.select(self.roles.features)
            columns = [picked[name] if name in picked.column_names else pa.nulls(len(table)) for name in features]
            return replace(table, X=pa.table(columns, features))


def no_rows(_: None, part: Partition) -> Any:
    """Give the table of a partition without its rows."""
    return frames.read(part.X).without_rows().as_given()


def schema_of(lines: Any) -> Any:
    """Give the types of the columns of a bucket; None if it has no categories."""
    return None if lines is None else lines.schema


def joint_schema(schemas: Sequence[Any]) -> Any:
    """Give the types of the lines of all buckets, which differ by the values that each happens to have."""
    return pa.unify_schemas([schema for schema in schemas if schema is not None], promote_options="permissive")


def write_bucket(lines: Any, joined: Joined, schema: Any, path: str, number: int) -> None:
    """Write what new rows need of a bucket to a file, in the types that all have; nothing where there is none."""
    if lines is not None:
        filesystem, folder = folder_of(path)
        table = of_new_rows(joined, lines).cast(schema)
        parquet.write_table(table, f"{folder}/encodings/part-{number}.parquet", filesystem=filesystem)


def read_group(path: str, name: str, group: int, number: int, keys: Sequence[Sequence[str]], buckets: Buckets) -> Any:
    """Read lines of a row group of a file, and pack them for their buckets."""
    with parquet.ParquetFile(name, filesystem=folder_of(path)[0]) as file:
        by_bucket = lines_by_bucket(file.read_row_group(group), keys, buckets.numbers)
        return pack(number, ((buckets.first[entry] + bucket, lines) for (entry, bucket), lines in by_bucket))


def join_lines(_: int, dealt: Sequence[tuple[int, Any]]) -> Any:
    """Give the lines of a bucket; None if there are none."""
    return shuffle.join_tables([lines for _, lines in dealt]) if dealt else None


def deal_rows(known: tuple[Joined, ShuffledSums | None, Buckets], part: Partition) -> tuple[Any, list[Array]]:
    """Pack what rows of a partition are looked up by, for buckets; of rows of one category and view, the first.

    Parameters
    ----------
    known : tuple
        Of training rows `ShuffledSums`, to find the view of each.
    part : Partition

    Returns
    -------
    pandas.DataFrame
        For each bucket a table of row numbers, views and values, packed.
    list of int32 array
        By key, for each row the first of those that have its category and view.
    """
    joined, shared, buckets = known
    views, dealt, alike = None, list[tuple[int, Any]](), []
    if shared is not None:
        with part.named():
            given = shared.reading.part(part)
            views = shuffle.view_of_rows(shared, given) if len(part) else np.zeros(0, np.int32)
    for key, start, number in zip(joined.keys, buckets.first, buckets.numbers, strict=True):
        values = part.select(key.columns)
        first, same = first_rows(values, views)
        alike.append(first[same])
        firsts = values.take(pa.array(first)).append_column(ROW, pa.array(first))
        if views is not None:
            firsts = firsts.append_column(VIEW, pa.array(views[first]))
        for bucket, rows in rows_by_bucket(firsts, key.columns, number).items():
            dealt.append((start + bucket, firsts.take(pa.array(rows))))
    return pack(part.number, dealt), alike


def first_rows(values: Any, views: Array | None) -> tuple[Array, Array]:
    """Find the first row of each category and view, and for every row which of these is like it."""
    if not len(values):
        return np.zeros(0, np.int32), np.zeros(0, np.int32)
    codes = index_of(values)[1].astype(np.int64)
    if views is not None:
        codes = codes * (int(views.max()) + 1) + views
    _, first, same = np.unique(codes, return_index=True, return_inverse=True)
    return first.astype(np.int32), same.astype(np.int32)


def look_up_bucket(
    bucket: int, dealt: Sequence[tuple[int, Any]], lines: Any, known: tuple[Joined, Buckets, Any]
) -> Any:
    """Look rows up in the encodings of a bucket; packs numbers of rows and their encodings for their partitions."""
    joined, buckets, empty = known
    if not dealt:
        return pack(bucket, ())
    partitions, tables = zip(*dealt, strict=True)
    key, table = joined.keys[buckets.key_of(bucket)], shuffle.join_tables(tables)
    rows, ends = table[ROW].to_numpy(), np.cumsum([len(own) for own in tables])
    views = table[VIEW].to_numpy() if VIEW in table.column_names else None
    values = table.select(key.columns)
    try:
        encodings = BucketTable(key, empty if lines is None else lines, joined.dtype).look_up(values, views)
    except RowError as error:
        number = partitions[int(np.searchsorted(ends, error.row, side="right"))]
        raise RowError(error.before, int(rows[error.row]), f" of partition {number}{error.after}") from error
    pieces = zip(np.split(rows, ends[:-1]), np.split(encodings, ends[:-1]), strict=True)
    return pack(bucket, zip(partitions, pieces, strict=True))


def put_together(
    known: tuple[Joined, Buckets, Sequence[str]],
    part: Partition,
    returned: tuple[Sequence[tuple[int, tuple[Array, Array]]], list[Array]],
) -> Any:
    """Give the encodings of a partition that came back from all buckets, and other columns behind them."""
    (joined, buckets, others), (found, alike) = known, returned
    frame = frames.read(part.X)
    if any(len(first) != frame.n_rows for first in alike):
        raise rows_have_changed(f"{part.name} has rows")
    by_key = [np.empty((frame.n_rows, len(key.outputs)), joined.dtype, "F") for key in joined.keys]
    missing = [np.ones(frame.n_rows, bool) for _ in joined.keys]
    for bucket, (rows, encodings) in found:
        entry = buckets.key_of(bucket)
        by_key[entry][rows] = encodings
        missing[entry][rows] = False
    if any(none[first].any() for none, first in zip(missing, alike, strict=True)):
        raise RuntimeError(f"Dask's shuffle has lost encodings of {part.name}.")
    arrays = [column for encodings, first in zip(by_key, alike, strict=True) for column in encodings[first].T]
    names = names_of(frame)
    return frame.assemble(joined.outputs, arrays, [names.index(name) for name in others])


def meta_of(frame: Frame, joined: Joined, others: Sequence[str]) -> Any:
    """Give an output without rows for a table without rows."""
    alike = [np.zeros(0, np.int32) for _ in joined.keys]
    return put_together((joined, Buckets([]), others), Partition(frame.as_given()), ([], alike))
