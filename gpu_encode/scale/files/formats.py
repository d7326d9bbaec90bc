"""Formats of files with rows.  Each format is a class that reads the wanted columns in pieces, and writes files.

A new format is a class that is listed in `FORMATS`.  The columns of a CSV file get the types that reading the whole
file would give; these types are found block by block.
"""

import contextlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, compress
from math import expm1
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from cpu_fallback.cached import cached_property
from gpu_encode.scale import messages
from gpu_encode.scale.files import text
from gpu_encode.scale.files.text import TextRules, delimiter

if TYPE_CHECKING:
    from gpu_encode.scale.files.files import SourceFile

# Bytes of compressed Parquet that are read at a time: of one column at most, and of all columns together.
PARQUET_BUFFER, PARQUET_BUFFERS = 1 << 20, 64 << 20
# Bytes in memory of a batch of Parquet, and most rows that are decoded at once, since their texts may be long.
BATCH_BYTES, DECODED_ROWS = 8 << 20, 1 << 11
# Bytes of one column of Parquet that exist while it is read: compressed bytes, pages and a dictionary.
COLUMN_BUFFERS = 4 << 20
# Bytes of a dictionary of Parquet at which it ends, and rows of the sample that tells whether a column reaches them.
DICTIONARY_BYTES, SAMPLED_ROWS = 1 << 20, 1 << 14
# Blocks of text that exist while one is read: its bytes, cells and values, and what Arrow keeps of earlier ones.
BLOCKS_HELD = 64
# Advice for a column of a type that text or Parquet cannot hold.
OTHERWISE_ARROW = "write Arrow (.arrow), or leave it out"


@dataclass(frozen=True)
class Contents:
    """The description of a file, read before its rows.

    Parameters
    ----------
    file : SourceFile
    schema : pyarrow.Schema
    group_rows : list of int
        Rows of each row group of Parquet or of each batch of Arrow; one number, of all rows, for a CSV file.
    column_bytes : dict of str to int
        Bytes of each column in the file.
    compression : str, optional
        How a Parquet file is compressed.
    rules : TextRules, optional
        How a text file is read.
    copies : mapping of str to str
        Columns of a text file whose cells are copied, and the names of the copies.
    as_they_stand : bool
        Whether these copies have the quotation marks of the file.
    largest_group : mapping of str to int
        Bytes of each column, uncompressed, in the row group of Parquet that has most of them.
    most_row_bytes : mapping of str to float
        Bytes of a row in each column, on average over the row group of Parquet, or block of text, that has most.
    greatest : mapping of str to float
        The number of each column of a text file that is farthest from 0, without its sign.
    dictionaries : collection of str
        Columns of text that are read as dictionaries.
    """

    file: "SourceFile"
    schema: Any
    group_rows: list[int]
    column_bytes: Mapping[str, int] = field(default_factory=dict)
    compression: str | None = None
    rules: TextRules | None = None
    copies: Mapping[str, str] = field(default_factory=dict)
    as_they_stand: bool = False
    largest_group: Mapping[str, int] = field(default_factory=dict)
    most_row_bytes: Mapping[str, float] = field(default_factory=dict)
    greatest: Mapping[str, float] = field(default_factory=dict)
    dictionaries: Collection[str] = ()

    @cached_property
    def borders(self) -> list[int]:
        """Numbers of the first row of each row group, then the number of all rows."""
        return [0, *accumulate(self.group_rows)]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.borders[-1]

    def with_dictionaries(self, names: Collection[str]) -> "Contents":
        """Read some columns of text as dictionaries."""
        fields = [
            one.with_type(pa.dictionary(pa.int32(), one.type)) if one.name in names else one for one in self.schema
        ]
        return replace(self, schema=pa.schema(fields, metadata=self.schema.metadata), dictionaries=names)

    def group_of(self, row: int) -> tuple[int, int]:
        """Give the row group that holds a row, and the row's number in it."""
        group = bisect_right(self.borders, row) - 1
        return group, row - self.borders[group]


class Format:
    """How files of one format are read and written.

    Attributes
    ----------
    name : str
    extension : str
        The name of the format in a dataset of Arrow.
    suffixes : tuple of str
        Ends of the names of such files.
    compressions : tuple of str
        Compressions that a caller may choose from.
    has_groups : bool
        Whether rows lie in groups.  If so, errors name the group, and each group is written as a whole.
    encodes_text : bool
        Whether text that repeats is stored as a dictionary, and can be read as one.
    """

    name: str
    extension: str
    suffixes: tuple[str, ...]
    compressions: tuple[str, ...] = ()
    has_groups = True
    encodes_text = False

    def explain(self, _file: "SourceFile", error: Exception) -> str:
        """Say what is wrong with a file that Arrow cannot read, and what to do."""
        return " ".join(str(error).split())

    def read_contents(self, files: "Sequence[SourceFile]", _rules: TextRules) -> list[Contents]:
        """Read the heads or feet of files."""
        contents = []
        for file in files:
            with explain_damage(file):
                contents.append(self.read_foot(file))
        return contents

    def read_foot(self, file: "SourceFile") -> Contents:
        """Read the head or foot of a file."""
        raise NotImplementedError

    def read_batches(self, contents: Contents, columns: list[str], group: int, batch_rows: int) -> Iterator[Any]:
        """Read a file from a row group on, in batches."""
        raise NotImplementedError

    def buffers(self, _contents: Sequence[Contents], _columns: Sequence[str]) -> int:
        """Bytes that exist while some columns of files are read, in addition to the rows that are handed on."""
        raise NotImplementedError

    def file_schema(self, schema: pa.Schema) -> pa.Schema:
        """Give the types in which rows are written."""
        return schema

    def open_writer(self, stream: Any, schema: pa.Schema, suffix: str, compression: str | None, first: pa.Table) -> Any:
        """Give a writer of tables, as a context; `first` has the rows that are written first."""
        raise NotImplementedError

    def arrange(self, table: pa.Table, _dictionaries: dict[int, Any]) -> pa.Table:
        """Give a row group in a form that can be written after earlier groups, whose dictionaries are given."""
        return table


class Parquet(Format):
    """Parquet."""

    name = extension = "parquet"
    suffixes = (".parquet", ".pq")
    compressions = ("none", "snappy", "gzip", "zstd", "lz4", "brotli")
    encodes_text = True

    def read_foot(self, file: "SourceFile") -> Contents:
        """Read the foot of a file."""
        with file.open() as stream:
            reader = pyarrow.parquet.ParquetFile(stream)
        # The schema is kept, since the library makes a new one on every access.
        schema = reader.schema_arrow
        names = set(schema.names)
        rows: list[int] = []
        sizes, largest, of_row = Counter[str](), Counter[str](), Counter[str]()
        compression = None
        for group in map(reader.metadata.row_group, range(reader.metadata.num_row_groups)):
            rows.append(group.num_rows)
            unpacked, per_row = Counter[str](), Counter[str]()
            for number in range(group.num_columns):
                column = group.column(number)
                path = column.path_in_schema
                name = path if path in names else path.partition(".")[0]
                sizes[name] += column.total_compressed_size
                unpacked[name] += column.total_uncompressed_size
                per_row[name] += column.total_uncompressed_size / max(group.num_rows, 1)
                compression = compression or column.compression
            largest |= unpacked
            of_row |= per_row
        return Contents(file, schema, rows, sizes, compression, largest_group=largest, most_row_bytes=of_row)

    def read_batches(self, contents: Contents, columns: list[str], group: int, batch_rows: int) -> Iterator[Any]:
        """Read row groups in batches, never a whole row group at once; a batch is joined of pieces of few bytes."""
        buffer = min(PARQUET_BUFFER, max(1, PARQUET_BUFFERS // len(columns)))
        with contents.file.open() as stream:
            reader = pyarrow.parquet.ParquetFile(
                stream,
                read_dictionary=[*contents.dictionaries],
                buffer_size=buffer,
                pre_buffer=False,
                page_checksum_verification=True,
            )
            of_columns = pa.schema(map(contents.schema.field, columns))
            is_known = all(map(has_fixed_width, of_columns.types)) or has_dictionaries(of_columns, columns)
            most = rows = batch_rows if is_known else min(batch_rows, DECODED_ROWS)
            for number in range(group, len(contents.group_rows)):
                pieces: list[Any] = []
                n_rows = n_bytes = 0
                # Threads for the columns of so few rows take twice the time of the processor.
                read = reader.iter_batches(rows, row_groups=[number], columns=columns, use_threads=False)
                for piece in chain(read, [None]):
                    is_full = piece is None or n_rows + len(piece) > batch_rows or n_bytes + piece.nbytes > BATCH_BYTES
                    if pieces and is_full:
                        yield (
                            pa.Table.from_batches(pieces).combine_chunks().to_batches()[0] if pieces[1:] else pieces[0]
                        )
                        pieces, n_rows, n_bytes = [], 0, 0
                    if piece is not None:
                        pieces.append(piece.select(columns))
                        n_rows, n_bytes = n_rows + len(piece), n_bytes + piece.nbytes
                    if piece is not None and most != batch_rows:
                        rows = max(1, min(most, BATCH_BYTES * len(piece) // max(1, piece.nbytes)))
                        # The reader looks up the number before each piece.
                        reader.reader.set_batch_size(rows)

    def buffers(self, contents: Sequence[Contents], columns: Sequence[str]) -> int:
        """Bytes of pages, dictionaries and a batch; no more than a few copies of the largest row group."""
        most = 0
        for known in contents:
            of_columns = of_groups = 0
            for name in columns:
                of_group = 3 * known.largest_group.get(name, 0)
                of_columns, of_groups = of_columns + min(COLUMN_BUFFERS, of_group), of_groups + of_group
            most = max(most, of_columns + min(2 * BATCH_BYTES, of_groups))
        return most

    def file_schema(self, schema: pa.Schema) -> pa.Schema:
        """Refuse types that Parquet does not have."""
        for column in schema:
            if pa.types.is_interval(column.type) or pa.types.is_run_end_encoded(column.type):
                raise messages.type_unknown_to(column.name, column.type, "Parquet", OTHERWISE_ARROW)
        return schema

    def open_writer(
        self, stream: Any, schema: pa.Schema, _suffix: str, compression: str | None, first: pa.Table
    ) -> Any:
        """Give a writer of tables, as a context; columns whose dictionary would grow too large have none."""
        large = {*compress(schema.names, map(outgrows_dictionary, first.columns))}
        # Columns with dictionaries are listed by their paths, which values in lists and structs have, too.
        named = [path for path in paths_of(schema) if path not in large] if large else True
        return pyarrow.parquet.ParquetWriter(
            stream, schema, use_dictionary=named, compression=compression or "zstd", write_page_checksum=True
        )


class Arrow(Format):
    """Files of Arrow, which are also called Feather."""

    name, extension = "arrow", "ipc"
    suffixes = (".feather", ".arrow")
    compressions = ("none", "lz4", "zstd")

    def read_foot(self, file: "SourceFile") -> Contents:
        """Read the foot of a file, and how many rows its batches have."""
        with file.open() as stream:
            schema = pa.ipc.open_file(stream).schema
            # The rows of the file follow from any one column.
            first = pa.ipc.IpcReadOptions(included_fields=[0] if len(schema) else [])
            reader = pa.ipc.open_file(stream, options=first)
            rows = [reader.get_batch(number).num_rows for number in range(reader.num_record_batches)]
        largest = measure_batch(file, rows.index(max(rows)), schema) if rows and file.is_local else {}
        return Contents(file, schema, rows, largest_group=largest)

    def read_batches(self, contents: Contents, columns: list[str], group: int, _batch_rows: int) -> Iterator[Any]:
        """Read the batches of a file."""
        with contents.file.open() as stream:
            numbers = sorted(contents.schema.get_field_index(name) for name in columns)
            reader = pa.ipc.open_file(stream, options=pa.ipc.IpcReadOptions(included_fields=numbers))
            for number in range(group, len(contents.group_rows)):
                batch = reader.get_batch(number)
                # Arrow does not check the file, and could read beyond the buffer.
                batch.validate(full=True)
                yield batch.select(columns)

    def buffers(self, contents: Sequence[Contents], columns: Sequence[str]) -> int:
        """Bytes of the two largest batches, since a batch is read as a whole while rows of another are in use."""
        return 2 * max(sum(known.largest_group.get(name, 0) for name in columns) for known in contents)

    def open_writer(
        self, stream: Any, schema: pa.Schema, _suffix: str, compression: str | None, _first: pa.Table
    ) -> Any:
        """Give a writer of tables, as a context."""
        codec = None if compression == "none" else compression
        options = pa.ipc.IpcWriteOptions(compression=codec, emit_dictionary_deltas=True)
        return pa.ipc.new_file(stream, schema, options=options)

    def arrange(self, table: pa.Table, dictionaries: dict[int, Any]) -> pa.Table:
        """Number the values of dictionaries as earlier tables do: a file may only add to a dictionary."""
        # The bytes of a slice would differ from those of a copy.
        table = copy_rows(table)
        for number, column_field in enumerate(table.schema):
            if not pa.types.is_dictionary(column_field.type) or not table.num_rows:
                continue
            column = table.column(number).combine_chunks()
            known = dictionaries.get(number, column.dictionary.slice(0, 0))
            new = column.dictionary.filter(pc.invert(pc.is_in(column.dictionary, value_set=known)))
            known = dictionaries[number] = pa.concat_arrays([known, new])
            positions = pc.index_in(column.dictionary, value_set=known)
            indices = positions.take(column.indices).cast(column_field.type.index_type)
            ordered = column_field.type.ordered
            numbered = pa.DictionaryArray.from_arrays(indices, known, ordered=ordered)
            table = table.set_column(number, column_field, numbered)
        return table


class Csv(Format):
    """Text with a separator; it has no types."""

    name = extension = "csv"
    suffixes = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
    has_groups = False

    def explain(self, file: "SourceFile", error: Exception) -> str:
        """Say which line of the file is no row of text, and what to do."""
        if isinstance(error, UnicodeDecodeError) or "invalid UTF8" in str(error):
            encoding = "utf-8" if not isinstance(error, UnicodeDecodeError) else error.encoding
            line = text.find_bad_line(file, encoding)
            return (
                f"line {line} holds bytes that are not {encoding.upper()}. Give the encoding of the file, such as "
                "encoding='latin-1' (--encoding latin-1), or convert it: iconv -f LATIN1 -t UTF-8."
            )
        if "straddling object" in str(error):
            return (
                f"a row is larger than the {text.BLOCK >> 20} MiB that are read at a time. Is a quotation mark not "
                f"closed? If rows are that long, set the environment variable {text.SETTING} to a larger number of MiB."
            )
        return super().explain(file, error)

    def read_contents(self, files: "Sequence[SourceFile]", rules: TextRules) -> list[Contents]:
        """Read files once, to find the column types that they share, and the number of rows of each file."""
        rules.check()
        scans = []
        for file in files:
            with explain_damage(file):
                found = text.scan(file, rules)
                if any(pa.binary() in kinds for kinds in found.kinds):
                    raise pa.ArrowInvalid("invalid UTF8")
            scans.append(found)
        names = dict.fromkeys(chain.from_iterable(found.names for found in scans))
        types = {name: shared_type(name, files, scans, rules) for name in names}
        return [
            Contents(
                file,
                pa.schema([(name, types[name]) for name in found.names]),
                [found.n_rows],
                rules=rules,
                most_row_bytes=dict(zip(found.names, found.most, strict=True)),
                greatest=dict(zip(found.names, found.greatest, strict=True)),
            )
            for file, found in zip(files, scans, strict=True)
        ]

    def read_batches(self, contents: Contents, columns: list[str], _group: int, _batch_rows: int) -> Iterator[Any]:
        """Read a file block by block."""
        copies = {name: copy for name, copy in contents.copies.items() if copy in columns}
        types = {name: value_type(contents.schema.field(name).type) for name in columns if name not in copies.values()}
        assert contents.rules is not None
        return text.read_columns(contents.file, contents.rules, types, copies, as_they_stand=contents.as_they_stand)

    def buffers(self, _contents: Sequence[Contents], _columns: Sequence[str]) -> int:
        """Bytes of the blocks that are read."""
        return BLOCKS_HELD * text.FIRST_BLOCK

    def file_schema(self, schema: pa.Schema) -> pa.Schema:
        """Give the schema in types that text can hold."""
        columns = []
        for column in schema:
            kind = value_type(column.type)
            if pa.types.is_interval(kind):
                raise messages.type_unknown_to(column.name, kind, "CSV", OTHERWISE_ARROW)
            if pa.types.is_nested(kind):
                raise messages.type_unknown_to(column.name, kind, "CSV", "write Parquet, or leave it out")
            columns.append(column.with_type(pa.string() if pa.types.is_decimal(kind) else kind))
        return pa.schema(columns)

    def open_writer(
        self, stream: Any, schema: pa.Schema, suffix: str, _compression: str | None, _first: pa.Table
    ) -> Any:
        """Give a writer of tables, as a context."""
        return text.TextWriter(stream, schema, delimiter(suffix))


def shared_type(name: str, files: "Sequence[SourceFile]", scans: Sequence[text.Scan], rules: TextRules) -> pa.DataType:
    """Give the type in which a column of text files is read."""
    if name in rules.text or name in rules.known:
        return pa.string()
    having = [
        (file, found, found.names.index(name)) for file, found in zip(files, scans, strict=True) if name in found.names
    ]

    def fits(kind: Any) -> bool:
        return all(text.fits(file, name, kind, rules) for file, _, _ in having)

    kind = text.join_types(set().union(*(found.kinds[number] for _, found, number in having)), fits)
    if name not in rules.numbers:
        return kind
    greatest = max(found.greatest[number] for _, found, number in having)
    with explain_damage(having[0][0], f", column {name!r}"):
        return text.type_for_encoder(kind, rules.numbers[name], greatest, fits)


FORMATS: tuple[Format, ...] = (Parquet(), Arrow(), Csv())
SUFFIXES = {suffix: form for form in FORMATS for suffix in form.suffixes}


def suffix_of(name: str) -> str | None:
    """Return the suffix that tells the format of a file, if there is one.

    Examples
    --------
    >>> suffix_of("rows.2024.CSV.gz"), suffix_of("rows.xlsx")
    ('.csv.gz', None)
    """
    return next((suffix for suffix in SUFFIXES if name.lower().endswith(suffix)), None)


@contextlib.contextmanager
def explain_damage(file: "SourceFile", where: str = "") -> Iterator[None]:
    """Say which file Arrow cannot read."""
    try:
        yield
    except Exception as error:
        if isinstance(error, (FileNotFoundError, PermissionError)) or not isinstance(error, file.failures):
            raise
        raise ValueError(f"cannot read {file.path!r}{where}: {file.format.explain(file, error)}") from error


def read_batches(contents: Contents, columns: Sequence[str], skip: int, batch_rows: int) -> Iterator[Any]:
    """Give the rows of a file from row `skip` on, in batches of at most `batch_rows` rows.

    Parameters
    ----------
    contents : Contents
    columns : sequence of str
        At least one.
    skip : int
        Rows to leave out at the beginning.
    batch_rows : int
    """
    file, (group, skip) = contents.file, contents.group_of(skip)
    n_read = contents.borders[group]
    batches = file.format.read_batches(contents, list(columns), group, batch_rows)
    while True:
        where = f", row group {contents.group_of(n_read)[0]}" if file.format.has_groups else ""
        with explain_damage(file, where):
            batch = next(batches, None)
        if batch is None:
            break
        n_read += batch.num_rows
        if skip < batch.num_rows:
            yield from slices(batch.slice(skip), batch_rows, whole=has_dictionaries(contents.schema, columns))
        skip = max(0, skip - batch.num_rows)
    if n_read != contents.n_rows:
        raise messages.source_changed(file.path)


def slices(batch: Any, most_rows: int, whole: bool) -> Iterator[Any]:
    """Cut a batch into slices of some rows and, unless `whole`, `BATCH_BYTES` bytes, since rows in use are copied."""
    for start in range(0, batch.num_rows, most_rows):
        part = batch.slice(start, most_rows)
        if whole or part.num_rows == 1 or part.nbytes <= BATCH_BYTES:
            yield part
        else:
            yield from slices(part, -(-part.num_rows // 2), whole)


def has_dictionaries(schema: pa.Schema, columns: Sequence[str]) -> bool:
    """Tell whether some of the columns have dictionaries, of which every piece of rows has a whole one."""
    found = False
    for name in columns:
        found |= pa.types.is_dictionary(schema.field(name).type)
    return found


def outgrows_dictionary(column: pa.ChunkedArray) -> bool:
    """Whether a column of numbers or times has too many distinct values for a dictionary, as a sample tells.

    The library would fill the page of the dictionary, which takes time, and write the other values without it.

    Examples
    --------
    >>> outgrows_dictionary(pa.chunked_array([range(1 << 18)])), outgrows_dictionary(pa.chunked_array([[0.5] * 1000]))
    (True, False)
    """
    width = column.type.bit_width // 8 if pa.types.is_primitive(column.type) else 0
    if len(column) * width <= DICTIONARY_BYTES:
        return False
    some = column.take(pa.array(range(0, len(column), len(column) // SAMPLED_ROWS))).drop_null()
    # If a page holds D values, and D values are equally likely, this share of the sample is distinct.
    x = len(some) * width / DICTIONARY_BYTES
    return len(some) > 0 and pc.count_distinct(some).as_py() > -expm1(-x) / x * len(some)


def paths_of(schema: pa.Schema) -> list[str]:
    """Give the path of each column that a file of Parquet has for a schema.

    Examples
    --------
    >>> paths_of(pa.schema({"city": pa.string(), "days": pa.list_(pa.int64())}))
    ['city', 'days.list.element']
    """
    stream = pa.BufferOutputStream()
    pyarrow.parquet.ParquetWriter(stream, schema).close()
    columns = pyarrow.parquet.ParquetFile(pa.BufferReader(stream.getvalue())).schema
    return [columns.column(number).path for number in range(len(columns))]


def measure_batch(file: "SourceFile", number: int, schema: pa.Schema) -> dict[str, int]:
    """Give the bytes of each column of one batch of an Arrow file, which are read only if they are compressed."""
    sizes: dict[str, int] = {}
    some = max(1, len(schema) // 32)
    with pa.memory_map(file.path) as stream:
        for first in range(0, len(schema), some):
            fields = [*range(first, min(first + some, len(schema)))]
            options = pa.ipc.IpcReadOptions(included_fields=fields)
            batch = pa.ipc.open_file(stream, options=options).get_batch(number)
            # Nothing is read from buffers, since the batch was not validated.
            sizes |= {name: batch.column(name).get_total_buffer_size() for name in batch.schema.names}
    return sizes


def copy_rows(table: pa.Table) -> pa.Table:
    """Copy the rows of a table, so that the copy shares no memory with it."""
    return table.take(pa.array(np.arange(table.num_rows)))


def is_text(kind: pa.DataType) -> bool:
    """Tell whether values of this type are strings."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def has_fixed_width(kind: pa.DataType) -> bool:
    """Tell whether all values of this type take the same number of bytes."""
    return bool(pa.types.is_primitive(kind) or pa.types.is_fixed_size_binary(kind) or pa.types.is_decimal(kind))


def value_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values behind a dictionary, or the type itself."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind
