"""Batches of rows from one file, in the columns wanted: Parquet, Arrow and CSV, none of them held whole.

A CSV file's columns have the types that reading it whole would give; they are found block by block.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from gpu_encode.datasets.files import SourceFile, explain_damage
from gpu_encode.datasets.formats import csv_conversion, csv_parsing, uncompressed, value_type
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
    result = []
    for file in files:
        with file.open() as stream, explain_damage(file):
            result.append(arrow_contents(stream) if file.format == "arrow" else parquet_contents(stream))
    return result


def arrow_contents(stream: Any) -> Contents:
    """Read the foot of an Arrow file, and how many rows its batches have."""
    reader = pa.ipc.open_file(stream)
    rows = [reader.get_batch(number).num_rows for number in range(reader.num_record_batches)]
    return Contents(reader.schema, rows)


def parquet_contents(stream: Any) -> Contents:
    """Read the foot of a Parquet file."""
    reader = pyarrow.parquet.ParquetFile(stream)
    # Asked for by every column: a schema is made anew each time.
    schema = reader.schema_arrow
    names = set(schema.names)
    groups = [reader.metadata.row_group(number) for number in range(reader.metadata.num_row_groups)]
    sizes: dict[str, int] = {}
    compression = None
    for group in groups:
        for place in range(group.num_columns):
            column = group.column(place)
            path = column.path_in_schema
            name = path if path in names else path.partition(".")[0]
            sizes[name] = sizes.get(name, 0) + column.total_compressed_size
            compression = compression or column.compression
    return Contents(schema, [group.num_rows for group in groups], sizes, compression)


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
            with explain_damage(file, "" if file.format == "csv" else f", row group {number}"):
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
    reader = pyarrow.parquet.ParquetFile(stream, buffer_size=PARQUET_BUFFER, pre_buffer=False)
    for group in groups:
        for batch in reader.iter_batches(batch_rows, row_groups=[group], columns=list(columns)):
            yield batch.select(list(columns))


def arrow_batches(stream: Any, columns: Sequence[str], groups: Sequence[int], batch_rows: int) -> Iterator[Any]:  # noqa: ARG001
    """Read batches of an Arrow file."""
    schema = pa.ipc.open_file(stream).schema
    places = sorted(schema.get_field_index(name) for name in columns)
    reader = pa.ipc.open_file(stream, options=pa.ipc.IpcReadOptions(included_fields=places))
    for group in groups:
        yield reader.get_batch(group).select(list(columns))


# Bytes of text that are read at a time.
BLOCK = 1 << 22
# Bytes of text up to which a file is read whole for its types.
SMALL = 1 << 26
# What Arrow tries on a column of a CSV file, one after the other, until one fits all its values.
LADDER = (
    pa.null(), pa.int64(), pa.bool_(), pa.date32(), pa.time32("s"), pa.timestamp("s"), pa.timestamp("ns"),
    pa.timestamp("s", "UTC"), pa.timestamp("ns", "UTC"), pa.float64(), pa.string(), pa.binary(),
)  # fmt: skip


def csv_schemas(files: Sequence[SourceFile], missing_text: Sequence[str], text: Sequence[str]) -> list[tuple[Any, int]]:
    """Read CSV files once, for the types of their columns, which they share, and the number of rows of each."""
    scans = []
    for file in files:
        with explain_damage(file):
            scans.append(scan(file, missing_text))
    kinds: dict[str, set[Any]] = {}
    for names, found, _ in scans:
        for name, known in zip(names, found, strict=True):
            kinds.setdefault(name, set()).update(known)
    types = {}
    for name, known in kinds.items():
        having = [file for file, (names, _, _) in zip(files, scans, strict=True) if name in names]
        types[name] = pa.string() if name in text else join_types(having, name, known, missing_text)
    return [(pa.schema([(name, types[name]) for name in names]), n_rows) for names, _, n_rows in scans]


def scan(file: SourceFile, missing_text: Sequence[str]) -> tuple[list[str], list[set[Any]], int]:
    """Read one file: names of its columns, the types that they have block by block, and its number of rows."""
    if file.state()[0] * (8 if file.suffix.endswith(".gz") else 1) <= SMALL:
        return scan_small(file, missing_text)
    names = names_in(file)
    kinds: list[set[Any]] = [set() for _ in names]
    n_rows = 0
    for batch in typed_batches(file, dict.fromkeys(names, pa.binary()), missing_text):
        n_rows += batch.num_rows
        for known, kind in zip(kinds, infer_types(batch, missing_text), strict=True):
            known.add(kind)
    return names, kinds, n_rows


def scan_small(file: SourceFile, missing_text: Sequence[str]) -> tuple[list[str], list[set[Any]], int]:
    """Read one small file as a single block."""
    with file.open() as stream:
        table = pyarrow.csv.read_csv(
            uncompressed(stream, file.suffix),
            parse_options=csv_parsing(file.suffix),
            convert_options=csv_conversion(missing_text, {}),
        )
    return table.column_names, [{kind} for kind in table.schema.types], table.num_rows


def names_in(file: SourceFile) -> list[str]:
    """Read the names of the columns off the beginning of a CSV file."""
    with file.open() as stream:
        reader = pyarrow.csv.open_csv(uncompressed(stream, file.suffix), parse_options=csv_parsing(file.suffix))
        return list(reader.schema.names)


def typed_batches(
    file: SourceFile, types: Mapping[str, Any], missing_text: Sequence[str], columns: Sequence[str] | None = None
) -> Iterator[Any]:
    """Read a CSV file block by block, in types that are given."""
    with file.open() as stream:
        yield from pyarrow.csv.open_csv(
            uncompressed(stream, file.suffix),
            read_options=pyarrow.csv.ReadOptions(block_size=BLOCK),
            parse_options=csv_parsing(file.suffix),
            convert_options=csv_conversion(missing_text, types, columns),
        )


def infer_types(batch: Any, missing_text: Sequence[str]) -> list[Any]:
    """Give the types that the values of one block have, all of them read as text so far.

    Arrow's own reader decides, on the same cells written anew, so no rule of it is repeated here.
    """
    kinds: list[Any] = [pa.binary()] * batch.num_columns
    columns = {}
    for place in range(batch.num_columns):
        try:
            columns[str(place)] = batch.column(place).cast(pa.string())
        except pa.ArrowInvalid:
            continue  # bytes that are no text
    sink = pa.BufferOutputStream()
    if columns:
        # In quotes a value is never taken for a missing one.
        layout = pyarrow.csv.WriteOptions(quoting_style="all_valid")
        pyarrow.csv.write_csv(pa.table(columns), sink, layout)
        found = pyarrow.csv.read_csv(
            pa.BufferReader(sink.getvalue()),
            parse_options=csv_parsing(".csv"),
            convert_options=csv_conversion(missing_text, {}),
        )
        for one in found.schema:
            kinds[int(one.name)] = one.type
    return kinds


def join_types(files: Sequence[SourceFile], name: str, kinds: set[Any], missing_text: Sequence[str]) -> Any:
    """Give the first type of the ladder that fits all blocks of a column, which have these types one by one."""
    places = {LADDER.index(kind) for kind in kinds} - {0}
    if len(places) <= 1:
        return LADDER[max(places, default=0)]
    found = {LADDER[place] for place in places}
    for kind in LADDER[max(places) :]:
        # Whole numbers are numbers, and all is text.
        known_to_fit = kind in (pa.string(), pa.binary()) or found == {pa.int64(), pa.float64()}
        if known_to_fit or all(fits(file, name, kind, missing_text) for file in files):
            break
    return kind


def fits(file: SourceFile, name: str, kind: Any, missing_text: Sequence[str]) -> bool:
    """Whether all values of a column can be read in this type."""
    try:
        for _ in typed_batches(file, {name: kind}, missing_text, [name]):
            pass
    except pa.ArrowInvalid:
        return False
    return True
