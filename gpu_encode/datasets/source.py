"""All rows of a source as one sequence: its schema, where each file's rows stand in it, and the chunks they come in."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpu_encode.datasets import files, reading
from gpu_encode.datasets.files import SourceFile
from gpu_encode.datasets.formats import clear_missing_text, decode_text, is_text, value_type
from gpu_encode.datasets.reading import Contents
from gpu_encode.errors import datasets as errors

# Rows of a file that tell how much memory its rows take.
SAMPLE_ROWS = 1 << 12


@dataclass(frozen=True)
class Chunk:
    """Rows that follow one another.

    Parameters
    ----------
    table : pyarrow.Table
        All columns; those that were not asked for are null.
    first_row : int
        Number of its first row among all rows.
    n_bytes : int
        What its values take.
    """

    table: Any
    first_row: int
    n_bytes: int


@dataclass(frozen=True)
class Size:
    """How much a chunk may hold.

    Parameters
    ----------
    rows : int
        Chunks end at multiples of this many rows.
    n_bytes : int
        They end earlier where they hold this much.
    batch_rows : int
        Rows that are read at a time.
    """

    rows: int
    n_bytes: int = 1 << 62
    batch_rows: int = 1 << 16


@dataclass(frozen=True)
class Source:
    """All rows of a source.

    Parameters
    ----------
    files : list of SourceFile
    contents : list of Contents
        Of each file.
    schema : pyarrow.Schema
        All columns, those of folders' names last.
    states : list of (int, int)
        Size and time of the last change of each file, when it was opened first.
    folder : Path, optional
        The folder that was given, if it was one.
    missing_text : tuple of str
        Texts that stand for a missing value.
    complete : tuple of str
        Columns without which a row is left out.
    kept : list of int, optional
        Rows of each file that are not left out, once they are counted.
    loaded : pyarrow.Table, optional
        All rows, where they are held in memory.
    """

    files: list[SourceFile]
    contents: list[Contents]
    schema: Any
    states: list[tuple[int, int]]
    folder: Path | None = None
    missing_text: tuple[str, ...] = ()
    complete: tuple[str, ...] = ()
    kept: list[int] | None = None
    loaded: Any = None

    @property
    def partition_names(self) -> list[str]:
        """Columns that folders' names make."""
        return list(self.files[0].partition)

    @property
    def rows(self) -> list[int]:
        """Rows of each file, without those that are left out."""
        return [each.n_rows for each in self.contents] if self.kept is None else self.kept

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(self.rows)

    @cached_property
    def starts(self) -> list[int]:
        """Number of the first row of each file."""
        return [0, *accumulate(self.rows)][:-1]

    def named(self, row: int) -> tuple[str, int]:
        """Say where a row stands: file and row group, and its number there.

        Examples
        --------
        >>> import tempfile
        >>> import pyarrow.parquet
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = f"{folder}/sales.parquet"
        ...     pa.parquet.write_table(pa.table({"city": ["Bonn"] * 5}), path, row_group_size=2)
        ...     place, row = open_source(path).named(3)
        >>> Path(place).name, row
        ('sales.parquet, row group 1', 1)
        """
        number = int(np.searchsorted(self.starts, row, side="right")) - 1
        path, row = self.files[number].path, row - self.starts[number]
        if self.complete or self.files[number].format == "csv":
            return path, row
        group, row = self.contents[number].group_of(row)
        return f"{path}, row group {group}", row

    def without_incomplete(self, columns: Sequence[str]) -> "Source":
        """Leave out rows that lack a value in any of these columns."""
        source = replace(self, complete=tuple(columns))
        kept = [
            sum(table.num_rows for table in source._complete_tables(number, columns, 1 << 16, 0))
            for number in range(len(self.files))
        ]
        return replace(source, kept=kept)

    def load(self) -> "Source":
        """Hold all rows in memory, so that no later pass reads files."""
        tables = list(self._tables(self.schema.names, 1 << 18, 0))
        return replace(self, loaded=pa.concat_tables([self.schema.empty_table(), *tables]))

    def row_bytes(self) -> dict[str, float]:
        """Bytes in memory that a row has in each column, by the first rows of a few files."""
        names = self.schema.names
        most = dict.fromkeys(names, 0.0)
        for number in {0, len(self.files) // 2, len(self.files) - 1}:
            table = next(self._file_tables(number, names, SAMPLE_ROWS, 0), None)
            if table is not None and table.num_rows:
                for name, column in zip(names, table.columns, strict=True):
                    most[name] = max(most[name], column.nbytes / table.num_rows)
        return most

    @property
    def compression(self) -> str | None:
        """How the source's Parquet files are compressed."""
        found = next((known.compression for known in self.contents if known.compression), None)
        return {"UNCOMPRESSED": "none", "LZ4_RAW": "lz4"}.get(found, found.lower()) if found else None

    def read_bytes(self, columns: Sequence[str]) -> int:
        """Bytes of the files that one pass over these columns reads."""
        if self.loaded is not None:
            return 0
        total = 0
        for (size, _), known in zip(self.states, self.contents, strict=True):
            total += sum(known.column_bytes.get(name, 0) for name in columns) if known.column_bytes else size
        return total

    def chunks(
        self, columns: Sequence[str], size: Size, start: int = 0, stopped: Callable[[], bool] = lambda: False
    ) -> Iterator[Chunk]:
        """Read rows from row `start` on.

        Parameters
        ----------
        columns : sequence of str
            Those that are read; the others are null.
        size : Size
        start : int, default=0
        stopped : callable, optional
            Tells, between batches, whether to leave off.
        """
        gathered: list[Any] = []
        rows = held = 0
        first = start
        for table in self._tables(columns, size.batch_rows, start):
            if stopped():
                return
            place = 0
            while place < table.num_rows:
                left = size.rows - (first + rows) % size.rows
                piece = table.slice(place, left)
                place += piece.num_rows
                gathered.append(piece)
                rows += piece.num_rows
                held += piece.nbytes
                if piece.num_rows == left or held >= size.n_bytes:
                    yield Chunk(pa.concat_tables(gathered), first, held)
                    first += rows
                    gathered, rows, held = [], 0, 0
        if rows:
            yield Chunk(pa.concat_tables(gathered), first, held)

    def _tables(self, columns: Sequence[str], batch_rows: int, start: int) -> Iterator[Any]:
        if self.loaded is not None:
            yield self.loaded.slice(start)
            return
        for number in range(len(self.files)):
            if start and start >= self.starts[number] + self.rows[number]:
                continue
            skip = max(0, start - self.starts[number])
            if self.complete:
                yield from self._complete_tables(number, columns, batch_rows, skip)
            else:
                yield from self._file_tables(number, columns, batch_rows, skip)

    def _complete_tables(self, number: int, columns: Sequence[str], batch_rows: int, skip: int) -> Iterator[Any]:
        """Read a file without the rows that are left out, of which `skip` come before those asked for."""
        for table in self._file_tables(number, [*columns, *self.complete], batch_rows, 0):
            whole = table
            for name in self.complete:
                whole = whole.filter(pc.invert(pc.is_null(whole[name], nan_is_null=True)))
            yield whole.slice(min(skip, whole.num_rows))
            skip = max(0, skip - whole.num_rows)

    def _file_tables(self, number: int, columns: Sequence[str], batch_rows: int, skip: int) -> Iterator[Any]:
        """Read a file in batches, as tables of the source's schema."""
        file, known = self.files[number], self.contents[number]
        if file.state() != self.states[number]:
            raise errors.source_changed(file.path)
        inside = [name for name in self.schema.names if name not in file.partition]
        # Where folders' names say all that is wanted, any column tells how many rows there are.
        here = [name for name in inside if name in columns] or inside[:1]
        for batch in reading.batches(file, known, here, skip, batch_rows, self.missing_text):
            yield self._to_schema(file, batch, set(columns))

    def _to_schema(self, file: SourceFile, batch: Any, wanted: set[str]) -> Any:
        table = pa.Table.from_batches([batch])
        if self.missing_text:
            table = clear_missing_text(table, self.missing_text)
        columns, fields = [], []
        for one in self.schema:
            if one.name not in wanted:
                # Takes no memory, and keeps the positions of the others.
                columns.append(pa.nulls(batch.num_rows))
                fields.append(pa.field(one.name, pa.null()))
                continue
            if one.name in file.partition:
                column = repeat_word(file.partition[one.name], one.type, batch.num_rows)
            else:
                column = table.column(one.name)
            columns.append(column if column.type.equals(one.type) else column.cast(one.type))
            fields.append(one)
        return pa.Table.from_arrays(columns, schema=pa.schema(fields, metadata=self.schema.metadata))


def open_source(source: Any, missing_text: Sequence[str] = (), text: Sequence[str] = ()) -> Source:
    """Find the files of a source and read what their heads and feet say.

    Parameters
    ----------
    source : path, glob, folder, list of paths or pyarrow.dataset.Dataset
    missing_text : sequence of str
        Texts that stand for a missing value.
    text : sequence of str
        Columns of CSV files that are text, whatever they look like.

    Raises
    ------
    FileNotFoundError, ValueError
        If there are no files, or they do not fit together.
    """
    for parameter, words in (("missing_text", missing_text), ("text", text)):
        if isinstance(words, str):
            raise TypeError(f"{parameter} must be a list of words. Got the word {words!r} instead: write [{words!r}].")
    listing = files.find(source)
    states = [file.state() for file in listing.files]
    contents = reading.contents(listing.files, missing_text, text)
    schema = unify_schemas(listing.files, [known.schema for known in contents])
    types = partition_types(listing.files, listing.types)
    for name, kind in types.items():
        schema = schema.append(pa.field(name, kind))
    if missing_text:
        schema = decode_text(schema)
    return Source(listing.files, contents, schema, states, listing.folder, tuple(missing_text))


WHOLE_NUMBER = re.compile(r"[+-]?\d{1,18}")
PANDAS = b"pandas"


def unify_schemas(files: Sequence[SourceFile], schemas: Sequence[Any]) -> Any:
    """Give the schema in which all files are read.

    Parameters
    ----------
    files : sequence of SourceFile
    schemas : sequence of pyarrow.Schema
        One for each file.

    Raises
    ------
    ValueError
        If a file lacks a column or has another type in it, with both files and the column.
    """
    refuse_repeated(files[0], schemas[0])
    fields = {one.name: one for one in schemas[0]}
    # Which file decided the type: the first may have nothing but null in a column.
    origin = dict.fromkeys(fields, files[0])
    for file, schema in zip(files[1:], schemas[1:], strict=True):
        refuse_repeated(file, schema)
        for name in [*fields, *schema.names]:
            if name not in schema.names:
                raise errors.column_in_one_file(name, files[0].path, file.path)
            if name not in fields:
                raise errors.column_in_one_file(name, file.path, files[0].path)
            known, found = fields[name], schema.field(name)
            kind = common_type(known.type, found.type)
            if kind is None:
                raise ValueError(
                    f"column {name!r} is {known.type!s} in {origin[name].path!r}, but {found.type!s} in "
                    f"{file.path!r}. All files of a source must have the same types: write one of them anew."
                )
            if pa.types.is_null(known.type) and not pa.types.is_null(kind):
                origin[name] = file
            fields[name] = known.with_type(kind).with_nullable(known.nullable or found.nullable)
    # What pandas noted about its columns would be wrong for those that come out.
    metadata = {key: text for key, text in (schemas[0].metadata or {}).items() if key != PANDAS}
    return pa.schema(list(fields.values()), metadata=metadata or None)


def refuse_repeated(file: SourceFile, schema: Any) -> None:
    """Refuse a file in which a name stands for two columns, or for a column and a folder."""
    for name, count in Counter(schema.names).items():
        if count > 1:
            raise ValueError(f"{file.path!r} has several columns named {name!r}: rename them.")
        if name in file.partition:
            raise ValueError(
                f"{file.path!r} has a column {name!r}, and a folder {name}=... above it says the same. Rename one."
            )


def common_type(one: Any, other: Any) -> Any:
    """Give the type in which the values of two files are read, or None where there is none.

    Examples
    --------
    >>> common_type(pa.dictionary(pa.int32(), pa.string()), pa.string())
    DataType(string)
    >>> common_type(pa.int32(), pa.int64()) is None
    True
    """
    if one.equals(other) or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if is_text(value_type(one)) and is_text(value_type(other)):
        small = all(pa.types.is_string(value_type(kind)) for kind in (one, other))
        return pa.string() if small else pa.large_string()
    return None


def partition_types(files: Sequence[SourceFile], declared: Mapping[str, Any]) -> dict[str, Any]:
    """Give the type of each column that folders' names make: whole numbers where all are, else text.

    Examples
    --------
    >>> partition_types([SourceFile("a", "a", ".csv", {"day": "1"}), SourceFile("b", "b", ".csv", {"day": "x"})], {})
    {'day': DataType(string)}
    """
    types = {}
    for name in files[0].partition:
        if name in declared:
            types[name] = declared[name]
            continue
        words = {file.partition[name] for file in files} - {None}
        whole = bool(words) and all(WHOLE_NUMBER.fullmatch(str(word)) for word in words)
        if not whole:
            types[name] = pa.string()
        else:
            types[name] = pa.int32() if all(-(1 << 31) <= int(str(word)) < 1 << 31 for word in words) else pa.int64()
    return types


def repeat_word(word: str | None, kind: Any, n_rows: int) -> Any:
    """Give the column of rows that all have what a folder's name says."""
    value = pa.scalar(word, pa.string()).cast(value_type(kind))
    if pa.types.is_dictionary(kind):
        indices = pa.repeat(pa.scalar(0, kind.index_type), n_rows)
        return pa.DictionaryArray.from_arrays(indices, pa.array([value.as_py()], kind.value_type))
    return pa.repeat(value, n_rows)
