"""Encodings of more categories than one process can hold: workers keep them in buckets by a hash of the category.

Rows find their buckets by the same hash, and their encodings are sent back to their partitions.  The functions after
`settle` are tasks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from pyarrow.dataset import dataset

from cpu_fallback.types import Array
from gpu_encode.fitting.fit import select_columns
from gpu_encode.scale.dask.calls import check_training, needs_target, plan_rows
from gpu_encode.scale.dask.exchange import exchange, pack, receive, released
from gpu_encode.scale.dask.partitions import Partition, Partitions, held, names_of, read
from gpu_encode.scale.dask.trees import map_delayed
from gpu_encode.scale.engines import buckets as steps
from gpu_encode.scale.engines import calls
from gpu_encode.scale.engines.buckets import Buckets, unused_prefix
from gpu_encode.scale.files import shuffle
from gpu_encode.scale.files.look_up import (
    BucketTable,
    Joined,
    clear_folder,
    folder_of,
    index_of,
    lines_by_bucket,
    of_new_rows,
    rows_by_bucket,
    sum_lines,
)
from gpu_encode.scale.files.shuffle import ShuffledSums
from gpu_encode.scale.files.source import Reading, Roles
from gpu_encode.scale.parts.plans import unfitted
from gpu_encode.tables import frames
from gpu_encode.tables.frames import Frame
from gpu_encode.words.errors.tables import rows_have_changed
from gpu_encode.words.errors.values import RowError

ROW, VIEW = "row", "view"
# About how many bytes of lines a bucket adds up, as long as there are fewer than the most buckets.  Adding takes a few
# times as much memory, and each partition has a piece for each bucket.
BUCKET_BYTES, MOST_BUCKETS = 1 << 26, 1 << 14
# Bytes of a line for the values of a key, in addition to its digits.
VALUE_BYTES = 48


@dataclass(frozen=True, eq=False)
class InBuckets:
    """Encodings in buckets.

    Parameters
    ----------
    lines : list of Delayed
        For each bucket the lines of `shuffle.encode_lines`; None if it has no lines.
    buckets : Buckets
    schema : pyarrow.Schema
        Types of the lines of all buckets.
    """

    lines: list[Any]
    buckets: Buckets
    schema: Any


class Shuffle:
    """Rows of Dask, and encodings of their categories that stay on the workers as `InBuckets`."""

    def __init__(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> None:
        rows = read(X, y, sample_weight, groups)
        rows = replace(rows, sample=sample_of(rows))
        self._rows = replace(rows, roles=[unused_prefix(rows.names) + role for role in rows.roles])

    def count_categories(self, encoder: Any) -> int:
        """Estimate the number of categories of all keys of an unfitted encoder, in one pass."""
        encoder = self._name_columns(encoder)
        return sum(steps.count_keys(encoder, self._rows, self._reading(encoder)).categories())

    def learn(self, encoder: Any, training: bool) -> tuple[ShuffledSums, InBuckets]:
        """Add up the sums of each category in its bucket, and encode the categories there, now."""
        shuffle.check_parameters(encoder, training)
        encoder = self._name_columns(encoder)
        check_training(encoder, self._rows)
        reading = self._reading(encoder)
        shared, self._measured = calls.survey(encoder, self._rows, reading, training, plan_rows)
        counts = steps.count_keys(encoder, self._rows, reading)
        lengths = self._measured.lengths
        buckets = Buckets([number_of_buckets(count, lengths, shared.n_sums) for count in counts.categories()])
        dealt = self._measured.deal(steps.deal_sums, (shared, buckets), buckets.number)
        return shared, settle(dealt.map(steps.add_sums, shared), buckets)

    def encode_training(self, shared: ShuffledSums, joined: Joined, encodings: InBuckets) -> Any:
        """Give the encodings of training rows lazily, with the partitions of X."""
        rows = self._measured if needs_target(shared.encoding_plan) else self._measured.without_target()
        return self._look_up(rows, joined, encodings, joined.beside_training([]), shared)

    def encode_new(self, joined: Joined, encodings: InBuckets) -> Any:
        """Give the encodings of new rows lazily, with the partitions of X."""
        others = joined.beside_new(self._rows.names)
        rows = self._rows.pick(list(dict.fromkeys(name for key in joined.keys for name in key.columns)))
        return self._look_up(rows, joined, encodings, others)

    @staticmethod
    def save(joined: Joined, encodings: InBuckets, path: str, overwrite: bool) -> None:
        """Write what new rows need to a folder that all workers reach: a file for each bucket, then the record."""
        import dask

        clear_folder(path, overwrite)
        write = dask.delayed(write_bucket)
        sent = [dask.delayed(what, traverse=False) for what in (joined, encodings.schema)]
        written = dask.compute(*[write(lines, *sent, path, number) for number, lines in enumerate(encodings.lines)])
        joined.of_new_rows(*sum(written, sum_lines(None)).tolist()).write(path)

    def read(self, path: str) -> tuple[Joined, InBuckets]:
        """Read a folder that any engine has saved, by row groups, and send each bucket its lines."""
        import dask

        joined, (filesystem, folder) = Joined.read(path), folder_of(path)
        files = dataset(f"{folder}/encodings", filesystem=filesystem).files
        heads = {name: parquet.read_metadata(name, filesystem=filesystem) for name in files}
        # The number of lines of each key is unknown.
        n_bytes = 8 * max(len(key.outputs) for key in joined.keys)
        number = buckets_for(sum(head.num_rows for head in heads.values()), n_bytes)
        buckets = Buckets([number] * len(joined.keys))
        deal_group, keys = dask.delayed(read_group), [key.stored for key in joined.keys]
        groups = [(name, group) for name, head in heads.items() for group in range(head.num_row_groups)]
        dealt = [deal_group(path, *group, sender, keys, buckets) for sender, group in enumerate(groups)]
        return joined, settle(exchange("buckets", dealt, buckets.number, join_lines), buckets)

    @staticmethod
    def release(encodings: InBuckets) -> None:
        """Do nothing: workers drop encodings that no encoder and no frame needs."""

    def _reading(self, encoder: Any) -> "PartitionReading":
        """Say how rows are read: vectors are columns after those of X."""
        rows = self._rows
        y, weight, groups = (
            None if data is None else role for data, role in zip(rows.vectors, rows.roles, strict=True)
        )
        given = [role for role in (y, weight, groups) if role is not None]
        roles = Roles([*rows.names, *given], [] if y is None else [y], False, weight, groups)
        return PartitionReading(roles, encoder._parameters())

    def _name_columns(self, encoder: Any) -> Any:
        """Give an encoder with the names of its columns, if it chooses them by type or the like."""
        encoder = unfitted(encoder)
        selected = select_columns(encoder._parameters(), frames.read(self._rows.sample))
        chosen = Roles(self._rows.names, [], False, None, None).chosen(encoder, selected)
        return encoder if chosen is None else encoder.set_params(columns=chosen)

    def _look_up(
        self,
        rows: Partitions,
        joined: Joined,
        encodings: InBuckets,
        others: Sequence[str],
        shared: ShuffledSums | None = None,
    ) -> Any:
        """Send rows to the buckets of their categories; join the encodings that come back with the other columns."""
        buckets, lines = encodings.buckets, encodings.lines
        dealt = rows.map(deal_rows, (joined, shared, buckets))
        packed, alike = (map_delayed("dealt", itemgetter(number), dealt) for number in (0, 1))
        known = held((joined, buckets, encodings.schema.empty_table()))
        look_up = partial(released, look_up_bucket)
        found = exchange("found", packed, len(lines), look_up, known, own=lines)
        extra = exchange("returned", found, rows.number, receive, own=alike)
        meta = meta_of(frames.read(self._rows.sample), joined, others)
        passed = replace(self._rows.pick(others), extra=extra)
        return passed.table(put_together, meta, (joined, buckets, others))


def sample_of(partitions: Partitions) -> Any:
    """Give an empty table with the columns of the partitions."""
    import dask

    samples = partitions.samples()
    if samples is not None:
        return samples[0]
    (table,) = dask.compute(replace(partitions, vectors=[None] * 3).map(no_rows, None)[0])
    return table


def number_of_buckets(n_categories: int, lengths: Sequence[int], n_sums: int) -> int:
    """Choose the number of buckets of a key, from the bytes of all its lines."""
    pieces = sum(-(-length // steps.ROWS_AT_ONCE) for length in lengths)
    return buckets_for(min(sum(lengths), n_categories * pieces), 8 * n_sums)


def buckets_for(n_lines: int, n_bytes: int) -> int:
    """Choose the number of buckets for so many lines, each with so many bytes in addition to its values."""
    return min(max(1, -(-n_lines * (n_bytes + VALUE_BYTES) // BUCKET_BYTES)), MOST_BUCKETS)


def settle(lines: list[Any], buckets: Buckets) -> InBuckets:
    """Compute the encodings of all buckets, and keep them on the workers."""
    import dask

    kept = list(dask.persist(*lines))
    schemas = dask.compute(*map_delayed("schemas", schema_of, kept))
    return InBuckets(kept, buckets, joint_schema(schemas))


@dataclass(frozen=True)
class PartitionReading(Reading):
    """How partitions of training rows are read: columns that are not picked become null and keep their positions."""

    def part(self, table: Partition) -> Partition:
        """Give a partition for summing, after a check that it still has the same number of rows."""
        with table.named():
            if len(table) != table.n_rows:
                raise rows_have_changed(f"{table.name} has rows")
            features, picked = self.roles.features, table.select(self.roles.features)
            columns = [picked[name] if name in picked.column_names else pa.nulls(len(table)) for name in features]
            return replace(table, X=pa.table(columns, features))


def no_rows(_: None, part: Partition) -> Any:
    """Give a table with the columns of a partition and no rows."""
    return frames.read(part.X).without_rows().as_given()


def schema_of(lines: Any) -> Any:
    """Give the types of the columns of a bucket; None if it has no categories."""
    return None if lines is None else lines.schema


def joint_schema(schemas: Sequence[Any]) -> Any:
    """Give the types that hold the lines of all buckets; a bucket's types depend on its values."""
    return pa.unify_schemas([schema for schema in schemas if schema is not None], promote_options="permissive")


def write_bucket(lines: Any, joined: Joined, schema: Any, path: str, number: int) -> Array:
    """Write what new rows need of a bucket to a file, in the common types, if it has lines; give `sum_lines` of it."""
    if lines is None:
        return sum_lines(None)
    filesystem, folder = folder_of(path)
    table = of_new_rows(joined, lines).cast(schema)
    parquet.write_table(table, f"{folder}/encodings/part-{number}.parquet", filesystem=filesystem)
    return sum_lines(table)


def read_group(path: str, name: str, group: int, number: int, keys: Sequence[Sequence[str]], buckets: Buckets) -> Any:
    """Read the lines of one row group, and pack them for their buckets."""
    with parquet.ParquetFile(name, filesystem=folder_of(path)[0]) as file:
        by_bucket = lines_by_bucket(file.read_row_group(group), keys, buckets.numbers)
        return pack(number, ((buckets.first[entry] + bucket, lines) for (entry, bucket), lines in by_bucket))


def join_lines(_: int, dealt: Sequence[tuple[int, Any]]) -> Any:
    """Join the lines of a bucket; give None if there are none."""
    return shuffle.join_tables([lines for _, lines in dealt]) if dealt else None


def deal_rows(known: tuple[Joined, ShuffledSums | None, Buckets], part: Partition) -> tuple[Any, list[Array]]:
    """Pack the values of a partition for the buckets, once for each category and view.

    Parameters
    ----------
    known : tuple
        For training rows it holds `ShuffledSums`, to find the view of each row.
    part : Partition

    Returns
    -------
    pandas.DataFrame
        A packed table for each bucket, with row numbers, views and values.
    list of int32 array
        For each key and row, the first row with the same category and view.
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
    """Find the first row of each category and view, and for every row which of these has its category and view."""
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
    """Look up rows in the encodings of a bucket; pack row numbers and encodings for their partitions."""
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
    """Put together the encodings of a partition, which came from all buckets, and the other columns after them."""
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
    """Give an empty output for an empty table."""
    alike = [np.zeros(0, np.int32) for _ in joined.keys]
    return put_together((joined, Buckets([]), others), Partition(frame.as_given()), ([], alike))
