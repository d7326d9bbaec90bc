"""Batches of rows from one file, in the columns wanted: Parquet, Arrow and CSV, none of them held whole."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from gpu_encode.datasets.csv_types import csv_schemas, typed_batches
from gpu_encode.datasets.files import SourceFile, damage_explained
from gpu_encode.datasets.formats import value_type
from gpu_encode.errors import datasets as errors

# Bytes of compressed Parquet that are read at a time, of every column.
PARQUET_BUFFER = 1 << 20


@dataclass(frozen=True)
class Contents:
    """What is known of a file before its rows are read.

    Parameters
    ----------
    schema : pyarrow.Schema
    group_rows : list of int
        Rows of each row group of Parquet, of each batch of Arrow; all rows of a CSV file.
    column_bytes : dict of str to int
        Bytes of each column in the file.
    compression : str, optional
        Of a Parquet file.
    """

    schema: Any
    group_rows: list[int]
    column_bytes: Mapping[str, int] = field(default_factory=dict)
    compression: str | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(self.group_rows)

    def group_of(self, row: int) -> tuple[int, int]:
        """Give the row group that holds a row, and the row's number in it."""
        first = 0
        for number, rows in enumerate(self.group_rows):
            if row < first + rows:
                return number, row - first
            first += rows
        return len(self.group_rows), row - first


def contents(files: Sequence[SourceFile], missing_text: Sequence[str] = (), text: Sequence[str] = ()) -> list[Contents]:
    """Read what the heads or feet of files say; of CSV files, which have neither, all rows."""
    if files[0].format == "csv":
        return [Contents(schema, [n_rows]) for schema, n_rows in csv_schemas(files, missing_text, text)]
    found = []
    for file in files:
        with file.open() as stream, damage_explained(file):
            found.append(arrow_contents(stream) if file.format == "arrow" else parquet_contents(stream))
    return found


def arrow_contents(stream: Any) -> Contents:
    """Read the foot of an Arrow file, and how many rows its batches have."""
    opened = pa.ipc.open_file(stream)
    rows = [opened.get_batch(number).num_rows for number in range(opened.num_record_batches)]
    return Contents(opened.schema, rows)


def parquet_contents(stream: Any) -> Contents:
    """Read the foot of a Parquet file."""
    opened = pyarrow.parquet.ParquetFile(stream)
    groups = [opened.metadata.row_group(number) for number in range(opened.metadata.num_row_groups)]
    sizes: dict[str, int] = {}
    compression = None
    for group in groups:
        for place in range(group.num_columns):
            column = group.column(place)
            path = column.path_in_schema
            name = path if path in opened.schema_arrow.names else path.partition(".")[0]
            sizes[name] = sizes.get(name, 0) + column.total_compressed_size
            compression = compression or column.compression
    return Contents(opened.schema_arrow, [group.num_rows for group in groups], sizes, compression)


def batches(
    file: SourceFile, known: Contents, columns: Sequence[str], skip: int, batch_rows: int, missing_text: Sequence[str]
) -> Iterator[Any]:
    """Give the rows of a file from row `skip` on, in batches of at most `batch_rows` rows.

    Parameters
    ----------
    file : SourceFile
    known : Contents
        Of this file.
    columns : sequence of str
        At least one.
    skip : int
        Rows to leave out at the beginning.
    batch_rows : int
    missing_text : sequence of str
        Texts that stand for a missing value in a CSV file.
    """
    with file.open() as stream:
        if file.format == "csv":
            types = {one.name: value_type(one.type) for one in known.schema}
            found, group = typed_batches(file, types, missing_text, columns), 0
        else:
            starts = [0, *accumulate(known.group_rows)]
            group = min(known.group_of(skip)[0], len(known.group_rows))
            skip -= starts[group]
            reader = parquet_batches if file.format == "parquet" else arrow_batches
            found = reader(stream, columns, range(group, len(known.group_rows)), batch_rows)
        read = sum(known.group_rows[:group])
        while True:
            number = known.group_of(read)[0]
            with damage_explained(file, "" if file.format == "csv" else f", row group {number}"):
                batch = next(found, None)
            if batch is None:
                break
            read += batch.num_rows
            if skip >= batch.num_rows:
                skip -= batch.num_rows
                continue
            for start in range(skip, batch.num_rows, batch_rows):
                yield batch.slice(start, batch_rows)
            skip = 0
    if read != known.n_rows:
        raise errors.source_changed(file.path)


def parquet_batches(stream: Any, columns: Sequence[str], groups: Sequence[int], batch_rows: int) -> Iterator[Any]:
    """Read row groups of a Parquet file, never a whole one at once."""
    opened = pyarrow.parquet.ParquetFile(stream, buffer_size=PARQUET_BUFFER, pre_buffer=False)
    for group in groups:
        for batch in opened.iter_batches(batch_rows, row_groups=[group], columns=list(columns)):
            yield batch.select(list(columns))


def arrow_batches(stream: Any, columns: Sequence[str], groups: Sequence[int], batch_rows: int) -> Iterator[Any]:  # noqa: ARG001
    """Read batches of an Arrow file."""
    schema = pa.ipc.open_file(stream).schema
    places = sorted(schema.get_field_index(name) for name in columns)
    opened = pa.ipc.open_file(stream, options=pa.ipc.IpcReadOptions(included_fields=places))
    for group in groups:
        yield opened.get_batch(group).select(list(columns))
