"""All rows of a source as one sequence: its files, the chunks in which rows are read, and the roles of columns."""

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, repeat
from operator import attrgetter
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cpu_fallback.cached import cached_property
from gpu_encode.fitting.columns import Selection
from gpu_encode.fitting.fit import select_columns
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.scale import messages
from gpu_encode.scale.files import files, stores
from gpu_encode.scale.files.files import SourceFile, SourceFiles
from gpu_encode.scale.files.formats import SUFFIXES, Contents, has_fixed_width, is_text, read_batches, value_type
from gpu_encode.scale.files.pandas_note import ranges_of
from gpu_encode.scale.files.spelling import Spelling, told
from gpu_encode.scale.files.streams import Stream, open_stream
from gpu_encode.scale.files.text import AS_IT_STANDS, WHERE_NEEDED, TextRules
from gpu_encode.scale.parts import Part
from gpu_encode.tables import frames
from gpu_encode.tables.frames.column_choice import is_choice
from gpu_encode.tables.frames.columns import index_of, learn_types_of_pandas
from gpu_encode.words import notices
from gpu_encode.words.errors.tables import did_you_mean
from gpu_encode.words.errors.targets import DROP_OR_KEEP, stray_text, text_as_quantity
from gpu_encode.words.errors.values import RowError

# The name of a copy of cells begins so.
COPY = "\0cells of "
# Text of fewer rows is read as text.
FEWEST_NUMBERED = 1 << 14
# Rows of the sample of a file from which the memory of a row is estimated.
SAMPLE_ROWS = 1 << 12
# Text that is a number; text that is a boolean, or a number.
NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"
BOOLEAN = r"(?i)^(true|false)$"
BOOLEAN_OR_NUMBER = rf"{NUMBER}|{BOOLEAN}"


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows.

    Parameters
    ----------
    table : pyarrow.Table
        All columns; columns that are not needed are null.
    first_row : int
        Number of its first row among all rows.
    n_bytes : int
        Bytes of its values.
    """

    table: Any
    first_row: int
    n_bytes: int


@dataclass(frozen=True)
class Size:
    """The most that a chunk may hold.

    Parameters
    ----------
    rows : int
        Chunks end at multiples of this number of rows.
    n_bytes : int
        Chunks end earlier if they reach this number of bytes.
    batch_rows : int
        Rows that are read at a time.
    at_work : int
        Bytes that a chunk takes while it is read, encoded and written.
    """

    rows: int
    n_bytes: int = 1 << 62
    batch_rows: int = 1 << 16
    at_work: int = 1 << 62


@dataclass(frozen=True)
class Source:
    """All rows of a source.

    Parameters
    ----------
    files : list of SourceFile
    contents : list of Contents
        One for each file.
    schema : pyarrow.Schema
        All columns; columns from folder names are last.
    states : list of (int, int)
        Size and time of the last change of each file when it was first opened.
    folder : Path or str, optional
        The given folder, if the source is one; a str is a URL.
    missing_text : tuple of str
        Texts that mean a missing value.
    complete : tuple of str
        Rows without a value in one of these columns are left out.
    kept : list of int, optional
        Rows of each file that are not left out, once they were counted.
    loaded : pyarrow.Table, optional
        All rows, if they are held in memory.
    stream : Stream, optional
        The query that gave the rows, if there was one; the file with its rows lasts until the end of the run.
    copied : mapping of str to str
        Columns of text files whose cells are written as they stand, and the names of the columns of these cells.
    unread : collection of str
        Columns whose values are not read, since only their cells are.
    dictionaries : mapping of str to float
        Columns of text that repeats, and the rows from which on a batch takes less memory if they are dictionaries.
    """

    files: list[SourceFile]
    contents: list[Contents]
    schema: Any
    states: list[tuple[int, int]]
    folder: Path | str | None = None
    missing_text: tuple[str, ...] = ()
    complete: tuple[str, ...] = ()
    kept: list[int] | None = None
    loaded: Any = None
    stream: Stream | None = None
    copied: Mapping[str, str] = field(default_factory=dict)
    unread: Collection[str] = ()
    dictionaries: Mapping[str, float] = field(default_factory=dict)

    @property
    def partition_names(self) -> list[str]:
        """Columns from the names of folders."""
        return list(self.files[0].partition)

    @property
    def rows(self) -> list[int]:
        """Number of rows of each file, without rows that are left out."""
        return [contents.n_rows for contents in self.contents] if self.kept is None else self.kept

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(self.rows)

    @cached_property
    def starts(self) -> list[int]:
        """Number of the first row of each file."""
        return [0, *accumulate(self.rows)][:-1]

    def named(self, row: int) -> tuple[str, int]:
        """Give the file and row group of a row, and its number in there.

        Examples
        --------
        >>> import tempfile
        >>> import pyarrow.parquet
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = f"{folder}/sales.parquet"
        ...     pa.parquet.write_table(pa.table({"city": ["Bonn"] * 5}), path, row_group_size=2)
        ...     where, row = open_source(path).named(3)
        >>> Path(where).name, row
        ('sales.parquet, row group 1', 1)
        """
        if self.stream is not None:
            return f"the {self.stream.name}", row
        number = int(np.searchsorted(self.starts, row, side="right")) - 1
        path, row = self.files[number].path, row - self.starts[number]
        if self.complete or not self.files[number].format.has_groups:
            return path, row
        group, row = self.contents[number].group_of(row)
        return f"{path}, row group {group}", row

    @contextlib.contextmanager
    def naming_rows(self) -> Iterator[None]:
        """If an error names a row, add its file; if the row lacks a target, say how to leave such rows out."""
        try:
            yield
        except RowError as error:
            where, row = self.named(error.row)
            after = error.after.replace(DROP_OR_KEEP, messages.LEAVE_OUT)
            raise RowError(error.before, error.row, f" (row {row} of {where}){after}") from error

    def without_incomplete(self, columns: Sequence[str]) -> "Source":
        """Leave out rows without a value in one of these columns."""
        source = replace(self, complete=tuple(columns))
        kept = [
            sum(table.num_rows for table in source._complete_tables(number, columns, 1 << 16, 0))
            for number in range(len(self.files))
        ]
        return replace(source, kept=kept)

    def copying(
        self, passed: Sequence[str], read: Collection[str], compared: Mapping[str, bool], suffix: str
    ) -> "Source":
        """Copy cells of text files that pass through, and warn of different cells that are one value.

        If the output has types, the cells of a column are copied as text, unless its type keeps every one of them.

        Parameters
        ----------
        passed : sequence of str
            Columns that are written as they are.
        read : collection of str
            Columns whose values are needed.
        compared : mapping of str to bool
            Columns in which it matters whether two values are the same; True: only if all of them are whole numbers.
        suffix : str
            Suffix of the output.
        """
        rules, own = self.contents[0].rules, self.files[0].suffix
        if rules is None:
            return self
        inside = [name for name in self.schema.names if name not in self.partition_names]
        passed = [name for name in inside if name in passed]
        typed = [name for name in inside if not is_text(self.schema.field(name).type)]
        is_text_again = SUFFIXES[suffix] is self.files[0].format
        as_they_stand = is_text_again and rules.parsing(own).equals(TextRules().parsing(suffix))
        metadata = None if not is_text_again else AS_IT_STANDS if as_they_stand else WHERE_NEEDED
        looked_at = {*compared, *(() if is_text_again else passed)}
        kept = [] if is_text_again else passed
        found = self._spellings([name for name in typed if name in looked_at], compared, kept)
        if not is_text_again:
            passed = [name for name in passed if name not in found or not found[name].is_kept]
        if pairs := {name: spelling.pair for name, spelling in found.items() if spelling.pair is not None}:
            notices.warn(told(pairs), UserWarning)
        return self._with_copies(passed, as_they_stand, metadata, [name for name in passed if name not in read])

    def _with_copies(
        self, names: Sequence[str], as_they_stand: bool, metadata: Any, unread: Collection[str]
    ) -> "Source":
        """Add columns that hold the cells of some columns."""
        copied = {name: COPY + name for name in names}
        fields = [pa.field(copy, pa.string(), metadata=metadata) for copy in copied.values()]
        # Most bytes of a cell: those of its text, and two quotation marks.
        contents = [
            replace(
                known,
                schema=pa.schema([*known.schema, *fields]),
                copies=copied,
                as_they_stand=as_they_stand,
                most_row_bytes={
                    **known.most_row_bytes,
                    **{copied[name]: known.most_row_bytes.get(name, 0.0) + 2 for name in names},
                },
            )
            for known in self.contents
        ]
        own = [one.with_type(pa.null()) if one.name in unread else one for one in self.schema]
        schema = pa.schema([*own, *fields], metadata=self.schema.metadata)
        return replace(self, contents=contents, schema=schema, copied=copied, unread=unread)

    def _spellings(
        self, names: Sequence[str], compared: Mapping[str, bool], kept: Collection[str]
    ) -> dict[str, Spelling]:
        """Read how the cells of some columns are spelled, until it is known which are equal and which are kept."""
        found = {name: Spelling(of_whole=compared.get(name, False)) for name in names}
        source = self._with_copies(names, False, None, ())
        for table in source._tables([*names, *source.copied.values()], 1 << 16, 0) if names else ():
            for name, spelling in found.items():
                values, cells = (table[column].combine_chunks() for column in (name, source.copied[name]))
                spelling.add(values, cells, pairs=name in compared)
            if all(
                (spelling.has_fractions or (spelling.pair and not spelling.of_whole) or name not in compared)
                and (name not in kept or not spelling.is_kept)
                for name, spelling in found.items()
            ):
                break
        return found

    def with_cells(self, output: Any, table: Any) -> Any:
        """Give the output with the cells of a chunk of rows in the columns that are copied."""
        for number, name in enumerate(output.column_names):
            if name in self.copied:
                cells = table.schema.field(self.copied[name])
                output = output.set_column(number, cells.with_name(name), table[cells.name])
        return output

    def with_dictionaries(self, names: Collection[str], row_bytes: Mapping[str, float]) -> "Source":
        """Let chunks hold some columns as dictionaries, as files do, if their text repeats; `row_bytes` are of text."""
        if self.n_rows < FEWEST_NUMBERED or self.missing_text or not self.files[0].format.encodes_text:
            return self
        fewest = {}
        for name in [name for name in self.schema.names if name in names]:
            kinds = {known.schema.field(name).type for known in self.contents if name in known.schema.names}
            # A group without dictionaries takes the bytes of its text.
            repeats = 2 * max(known.most_row_bytes.get(name, 0.0) for known in self.contents) < row_bytes[name]
            if kinds == {self.schema.field(name).type} and is_text(*kinds) and repeats:
                # Every batch has a copy of the dictionary.
                largest = max(known.largest_group.get(name, 0) for known in self.contents)
                fewest[name] = largest / row_bytes[name]
        return replace(self, dictionaries=fewest)

    def load(self, most: int = 1 << 62) -> "Source":
        """Hold all rows in memory, so that no later pass reads files; hold none if they have more than `most` bytes."""
        tables, n_bytes = list[Any](), 0
        for table in self._tables(self.schema.names, 1 << 18, 0):
            n_bytes += table.nbytes
            if n_bytes > most:
                return self
            tables.append(table)
        return replace(self, loaded=pa.concat_tables(tables or [self.schema.empty_table()]))

    def count_bytes(self) -> int:
        """Read all rows, and count their bytes."""
        return sum(table.nbytes for table in self._tables(self.schema.names, SAMPLE_ROWS, 0))

    def row_bytes(self) -> dict[str, float]:
        """Estimate the bytes of a row in each column, from the first rows of a few files and what the files tell."""
        names = self.schema.names
        most = dict.fromkeys(names, 0.0)
        for known in self.contents:
            for name, n_bytes in known.most_row_bytes.items():
                if not has_fixed_width(self.schema.field(name).type):
                    most[name] = max(most[name], n_bytes)
        for number in {0, len(self.files) // 2, len(self.files) - 1}:
            table = next(self._file_tables(number, names, SAMPLE_ROWS, 0), None)
            if table is not None and table.num_rows:
                for name, column in zip(names, table.columns, strict=True):
                    most[name] = max(most[name], column.nbytes / table.num_rows)
        return most

    @property
    def compression(self) -> str | None:
        """How the source's Parquet files are compressed."""
        codec = next((known.compression for known in self.contents if known.compression), None)
        return {"UNCOMPRESSED": "none", "LZ4_RAW": "lz4"}.get(codec, codec.lower()) if codec else None

    def read_bytes(self, columns: Sequence[str]) -> int:
        """Bytes of the files that one pass over these columns has to read."""
        if self.loaded is not None:
            return 0
        total = 0
        for (size, _), known in zip(self.states, self.contents, strict=True):
            total += sum(map(known.column_bytes.get, columns, repeat(0))) if known.column_bytes else size
        return total

    def chunks(
        self, columns: Sequence[str], size: Size, start: int = 0, stopped: Callable[[], bool] = lambda: False
    ) -> Iterator[Chunk]:
        """Read rows from row `start` on.

        Parameters
        ----------
        columns : sequence of str
            Columns that are read; the others are null.
        size : Size
        start : int, default=0
        stopped : callable, optional
            Called between batches; returns whether to stop.
        """
        pieces: list[Any] = []
        rows = n_bytes = 0
        first = start
        for table in self._tables(columns, size.batch_rows, start):
            if stopped():
                return
            offset = 0
            while offset < table.num_rows:
                left = size.rows - (first + rows) % size.rows
                piece = table.slice(offset, left)
                offset += piece.num_rows
                pieces.append(piece)
                rows += piece.num_rows
                n_bytes += piece.nbytes
                if piece.num_rows == left or n_bytes >= size.n_bytes:
                    yield Chunk(pa.concat_tables(pieces), first, n_bytes)
                    first += rows
                    pieces, rows, n_bytes = [], 0, 0
        if rows:
            yield Chunk(pa.concat_tables(pieces), first, n_bytes)

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
        """Read a file without the rows that are left out; skip the first `skip` of the remaining rows."""
        for table in self._file_tables(number, [*columns, *self.complete], batch_rows, 0):
            whole = table
            for name in self.complete:
                whole = whole.filter(pc.invert(pc.is_null(whole[name], nan_is_null=True)))
            yield whole.slice(min(skip, whole.num_rows))
            skip = max(0, skip - whole.num_rows)

    def _file_tables(self, number: int, columns: Sequence[str], batch_rows: int, skip: int) -> Iterator[Any]:
        """Read a file in batches, as tables of the source's schema."""
        file = self.files[number]
        if file.state() != self.states[number]:
            raise messages.source_changed(file.path)
        inside = self.contents[number].schema.names
        # If only columns of folder names are needed, any column of the file shows how many rows there are.
        here = [name for name in inside if name in columns and name not in self.unread] or inside[:1]
        contents = self.contents[number]
        if self.dictionaries and (names := self._dictionaries_of(columns, batch_rows)):
            contents = contents.with_dictionaries(names)
        for batch in read_batches(contents, here, skip, batch_rows):
            yield self._to_schema(number, batch, {*columns} - {*self.unread}, skip)
            skip += batch.num_rows

    def _dictionaries_of(self, columns: Sequence[str], batch_rows: int) -> list[str]:
        """List the columns that are read as dictionaries if batches have this number of rows."""
        names = [name for name in columns if self.dictionaries.get(name, batch_rows + 1) <= batch_rows]
        others = {*columns} - {*names} - {*self.partition_names}
        # Batches with other text have few rows, since its length is unknown.
        return names if all(has_fixed_width(self.schema.field(name).type) for name in others) else []

    def _to_schema(self, number: int, batch: Any, wanted: set[str], first_row: int) -> Any:
        """Give rows of a file, from row `first_row` on, as a table of the source's schema."""
        file = self.files[number]
        table = pa.Table.from_batches([batch])
        if self.missing_text:
            cells = table.select([name for name in table.column_names if name.startswith(COPY)])
            table = clear_missing_text(table.drop_columns(cells.column_names), self.missing_text)
            table = with_columns(table, cells)
        columns, fields = [], []
        for one in self.schema:
            if one.name not in wanted:
                # A column of nulls takes no memory, and keeps the positions of the others.
                columns.append(pa.nulls(batch.num_rows))
                fields.append(pa.field(one.name, pa.null()))
                continue
            if one.name in file.partition:
                column = repeat_word(file.partition[one.name], one.type, batch.num_rows)
            elif one.name in table.column_names:
                column = table.column(one.name)
            else:
                _, labels = ranges_of(self.contents[number].schema)[one.name]
                labels = labels[first_row : first_row + batch.num_rows]
                column = pa.array(np.arange(labels.start, labels.stop, labels.step))
            if one.name in self.dictionaries:
                one = one.with_type(column.type)  # noqa: PLW2901
            if not column.type.equals(one.type):
                try:
                    column = column.cast(one.type)
                except pa.ArrowInvalid as error:
                    raise self._differing_types(number, one.name, error) from error
            columns.append(column)
            fields.append(one)
        return pa.Table.from_arrays(columns, schema=pa.schema(fields, metadata=self.schema.metadata))

    def _differing_types(self, number: int, name: str, error: Exception) -> ValueError:
        """Give the error for a file whose values the common type of a column does not hold."""
        own = self.contents[number].schema.field(name).type
        for other in self.contents:
            if name in other.schema.names and not other.schema.field(name).type.equals(own):
                break
        pair = (own, self.files[number].path), (other.schema.field(name).type, other.file.path)
        return files.differing_types(name, *pair, f", and no type holds the values of both ({error})")


def open_source(source: Any, rules: TextRules = TextRules()) -> Source:  # noqa: B008 - it is immutable
    """Find the files of a source, and read their headers and footers.

    Parameters
    ----------
    source : path, glob, folder, list of paths, pyarrow.dataset.Dataset, or a query
        Of a query only the columns are found: `run.hold_stream` runs it.
    rules : TextRules
        How text files are read, and which texts mean a missing value in every file.

    Raises
    ------
    FileNotFoundError, ValueError
        If there are no files, or they do not fit together.
    """
    missing_text = rules.missing_text
    for parameter in ("missing_text", "missing_words", "text"):
        if isinstance(words := getattr(rules, parameter), str):
            raise TypeError(f"{parameter} must be a list of words. Got the word {words!r} instead: write [{words!r}].")
    if not isinstance(source, (str, PathLike)) and (stream := open_stream(source)) is not None:
        return of_stream(stream, missing_text)
    listing = find(source)
    states = [file.state() for file in listing.files]
    contents = listing.files[0].format.read_contents(listing.files, rules)
    if any(map(learn_types_of_pandas, map(attrgetter("schema"), contents))):
        contents = listing.files[0].format.read_contents(listing.files, rules)
    schema = files.unify_schemas(listing.files, [known.schema for known in contents])
    for name, kind in files.partition_types(listing.files, listing.types, rules).items():
        schema = schema.append(pa.field(name, kind))
    for name in rules.text:
        if name not in schema.names:
            hint = did_you_mean(name, schema.names)
            notices.warn(f"text (--text) names {name!r}, which is no column of the source.{hint}")
    if missing_text:
        schema = decode_text(schema)
    return Source(listing.files, contents, schema, states, listing.folder, tuple(missing_text))


def find(source: Any) -> SourceFiles:
    """Find the files of a source, on this machine or in a store."""
    if files.is_url(source) or (isinstance(source, (list, tuple)) and any(map(files.is_url, source))):
        return stores.find(source)
    return files.find(source)


def of_stream(stream: Stream, missing_text: Sequence[str]) -> Source:
    """Describe a query as a source with columns, before it has any rows."""
    file = SourceFile(stream.name, stream.name, ".parquet")
    files.refuse_repeated(file, stream.schema)
    for column in stream.schema:
        if pa.types.is_union(column.type):
            raise messages.type_unknown_to(column.name, column.type, "a table", "cast it in the query, or leave it out")
    schema = decode_text(stream.schema) if missing_text else stream.schema
    no_rows = [Contents(file, stream.schema, [0])]
    return Source([file], no_rows, schema, [(0, 0)], None, tuple(missing_text), stream=stream)


def repeat_word(word: str | None, kind: Any, n_rows: int) -> Any:
    """Give a column that repeats the value of a folder's name for all rows."""
    value = pa.scalar(word, pa.string()).cast(value_type(kind))
    if pa.types.is_dictionary(kind):
        indices = pa.repeat(pa.scalar(0, kind.index_type), n_rows)
        return pa.DictionaryArray.from_arrays(indices, pa.array([value.as_py()], kind.value_type))
    return pa.repeat(value, n_rows)


def decode_text(schema: pa.Schema) -> pa.Schema:
    """Return the schema with text instead of dictionaries of text."""
    fields = [one.with_type(value_type(one.type)) if is_text(value_type(one.type)) else one for one in schema]
    return pa.schema(fields, metadata=schema.metadata)


def clear_missing_text(table: pa.Table, missing_text: Sequence[str]) -> pa.Table:
    """Return `table` with null for every text in `missing_text`.

    Examples
    --------
    >>> clear_missing_text(pa.table({"city": ["Bonn", "?"]}), ["?"])["city"].to_pylist()
    ['Bonn', None]
    """
    table = table.cast(decode_text(table.schema))
    for number, one in enumerate(table.schema):
        if is_text(one.type):
            column = table.column(number)
            missing = pc.is_in(column, value_set=pa.array(missing_text, type=one.type))
            table = table.set_column(number, one, pc.if_else(missing, pa.scalar(None, one.type), column))
    return table


def refuse_stray_text(source: Source, targets: Mapping[str, str]) -> None:
    """Refuse a target of numbers in which a few cells are text: otherwise each number would become a class.

    A target of text is read only until 1 % of its cells are known to be no numbers.

    Parameters
    ----------
    source : Source
    targets : dict of str to str
        Requested kinds, by column.

    Raises
    ------
    RowError
        If there are cells that are not numbers, but fewer than 1 %; for a quantity, if any cell is not a number.
    """
    for name, kind in targets.items():
        if kind == "multiclass" or not is_text(value_type(source.schema.field(name).type)):
            continue
        enough, count = 1 if kind == "continuous" else source.n_rows / 100, 0
        first: tuple[str, int] | None = None
        for n_strays, cell, row in stray_cells(source, name, NUMBER):
            count, first = count + n_strays, first or (cell, row)
            if count >= enough:
                break
        if first is not None and (kind == "continuous" or count < enough):
            with source.naming_rows():
                if kind == "continuous":
                    raise text_as_quantity(*first)
                raise stray_text(f"The target {name!r}", first[0], count, first[1])


def refuse_words(source: Source, kinds: Mapping[str, Any]) -> None:
    """Refuse a column of text if it holds numbers, booleans, dates or times, of the given types, to the encoder.

    Raises
    ------
    RowError
        It names the first cell of another type, and its row.
    """
    for name, known in kinds.items():
        if name not in source.schema.names or not is_text(value_type(source.schema.field(name).type)):
            continue
        held, strays = "number", stray_cells(source, name, NUMBER)
        if pa.types.is_boolean(known):
            # Where both occur, a word is more surprising than a number.
            held = "boolean"
            strays = chain.from_iterable(stray_cells(source, name, sign) for sign in (BOOLEAN_OR_NUMBER, BOOLEAN))
        elif pa.types.is_temporal(known):
            held, strays = "time" if pa.types.is_time(known) else "datetime", stray_cells(source, name, known)
        for _, cell, row in strays:
            with source.naming_rows():
                raise RowError(
                    f"column {name!r} was fitted on {held} values and now holds text values: {cell!r} in row ",
                    row,
                    f". If this is a missing value, pass missing_text=[{cell!r}] (--missing-text {cell}); "
                    "otherwise correct it, or fit the encoder on text.",
                )


def stray_cells(source: Source, name: str, expected: Any) -> Iterator[tuple[int, str, int]]:
    """For each batch with texts that are not as expected: give how many, the first of them, and its row.

    Expected is a pattern, or a type of dates or times.
    """
    first_row = 0
    for table in source._tables([name], SAMPLE_ROWS, 0):
        column = table.column(name).cast(pa.string()).combine_chunks()
        if isinstance(expected, str):
            strays = column.filter(pc.invert(pc.match_substring_regex(column, expected)))
        elif is_of_type(column, expected):
            strays = column[:0]
        else:
            strays = column.filter(pa.array([not is_of_type(cell, expected) for cell in column]))
        if len(strays):
            yield len(strays), strays[0].as_py(), first_row + pc.index(column, strays[0]).as_py()
        first_row += table.num_rows


def is_of_type(text: Any, kind: pa.DataType) -> bool:
    """Whether texts, an array or a scalar of Arrow, can be read in a type.

    Examples
    --------
    >>> is_of_type(pa.scalar("2024-02-30"), pa.date32()), is_of_type(pa.array(["2024-02-29", None]), pa.date32())
    (False, True)
    """
    if pa.types.is_time(kind):
        # Arrow reads times only as those of a day.
        text, kind = pc.binary_join_element_wise("1970-01-01", text, " "), pa.timestamp("ns")
    try:
        text.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


@dataclass(frozen=True)
class Roles:
    """The role of each column of a source.

    Parameters
    ----------
    names : list of str
        All columns.
    targets : list of str
        The columns from which the encoder learns.
    several : bool
        Whether the target was given as a list, so that y is a table.
    weight, groups : str or None
    index : list of str
        Columns that are the index of a frame of pandas.
    kept : list of str
        Features that an engine keeps in the result, though no table in memory does.
    """

    names: list[str]
    targets: list[str]
    several: bool
    weight: str | None
    groups: str | None
    index: Sequence[str] = ()
    kept: Sequence[str] = ()

    @cached_property
    def aside(self) -> list[str]:
        """Columns from which the encoder learns, weights and groups, in the order of the source."""
        taken = {*self.targets, self.weight, self.groups}
        return [name for name in self.names if name in taken]

    @cached_property
    def features(self) -> list[str]:
        """Columns that are given to the encoder."""
        return [name for name in self.names if name not in self.aside and name not in self.index]

    @property
    def beside(self) -> list[str]:
        """Columns that follow the result of the encoder."""
        return [*self.kept, *self.aside, *self.index]

    def part(self, chunk: Chunk) -> Part:
        """Give a chunk in the form that the encoder takes."""
        table, y = chunk.table, None
        if self.targets:
            y = table.select(self.targets) if self.several else table.column(self.targets[0])
        return Part(
            table.select(self.features),
            y,
            None if self.weight is None else table.column(self.weight),
            None if self.groups is None else table.column(self.groups),
            chunk.first_row,
        )

    def selected(self, parameters: Parameters, schema: Any) -> Selection:
        """Find the encoded columns among the features, before any rows are read."""
        bare = pa.schema([schema.field(name) for name in self.features]).empty_table()
        return select_columns(parameters, frames.read(bare))

    def named(self, parameters: Parameters, schema: Any) -> set[str]:
        """List the features that are read because a parameter names them, and not because of their type."""
        selected, columns = self.selected(parameters, schema), parameters.columns
        positions = {*selected.training_only, *selected.dates}
        for entry in selected.entries:
            is_named = columns is not None and (isinstance(columns, list) or not is_choice(columns))
            positions.update(entry.columns if is_named else {*entry.columns} - {*entry.members})
        return {self.features[position] for position in positions}

    def chosen(self, encoder: Any, selected: Selection) -> list[Any] | None:
        """List the names of the encoded columns if the encoder chooses them, for example by type; else give None."""
        columns = getattr(encoder, "columns", None)
        if isinstance(columns, list) or not is_choice(columns):
            return None
        encoded = selected.entries[: selected.n_encoded]
        named = [tuple(self.features[position] for position in entry.members) for entry in encoded]
        return [key if len(key) > 1 else key[0] for key in named]

    def measured(self, selected: Selection) -> list[str]:
        """Columns that are needed to sum rows."""
        positions = [*selected.needed, *selected.training_only]
        return [*map(self.features.__getitem__, positions), *self.aside]


@dataclass(frozen=True)
class Reading:
    """How to read tables of training rows.

    Parameters
    ----------
    roles : Roles
        The role of each column.
    parameters : Parameters
        Parameters of the encoder, checked.
    """

    roles: Roles
    parameters: Parameters

    def part(self, table: Any) -> Part:
        """Give a table in the form that the encoder takes; columns that are not read may be missing."""
        columns = [table[name] if name in table.column_names else pa.nulls(len(table)) for name in self.roles.names]
        return self.roles.part(Chunk(pa.table(columns, self.roles.names), 0, table.nbytes))


def find_roles(schema: Any, target: Any, weight: Any, groups: Any, parameters: Parameters | None = None) -> Roles:
    """Find the columns that are not features; columns of an index are features if the parameters name them.

    Raises
    ------
    ValueError, TypeError
        If there is no such column, or a column has two roles.

    Examples
    --------
    >>> find_roles(pa.schema({"city": pa.string(), "sold": pa.int64()}), "sold", None, None).features
    ['city']
    """
    several = isinstance(target, (list, tuple))
    targets = [] if target is None else list(target) if several else [target]
    named = [*zip(repeat("the target"), targets)]
    named += [(role, name) for role, name in (("the weight", weight), ("the groups", groups)) if name is not None]
    seen: dict[str, str] = {}
    for role, name in named:
        if not isinstance(name, str):
            raise _not_a_column_name(role.removeprefix("the "), name)
        if name not in schema.names:
            raise messages.no_such_column(role.removeprefix("the "), name, schema.names)
        if name in seen:
            raise ValueError(f"column {name!r} is {seen[name]} and {role}. Give each its own column.")
        seen[name] = role
    result = Roles(list(schema.names), targets, several, weight, groups)
    if index := index_of(schema):
        used = {*result.aside, *(() if parameters is None else result.named(parameters, schema))}
        result = replace(result, index=[name for name in index if name not in used])
    if (several and not targets) or not result.features:
        raise ValueError(
            "The source has no columns but those of the target, weight and groups: nothing is left to encode."
        )
    return result


def _not_a_column_name(role: str, found: object) -> TypeError:
    """Error for a value that is not the name of a column."""
    plural = " or a list of them" if role == "target" else ""
    return TypeError(f"{role} must be the name of a column{plural}, a str. Got a {type(found).__name__} instead.")


def with_columns(encoded: Any, others: Any) -> Any:
    """Return `encoded` with the columns of `others` at the end.

    Examples
    --------
    >>> with_columns(pa.table({"city": [0.5]}), pa.table({"y": [1]})).column_names
    ['city', 'y']
    """
    if {*encoded.column_names} & {*others.column_names}:
        messages.check_outputs([*encoded.column_names, *others.column_names])
    for one, column in zip(others.schema, others.columns, strict=True):
        encoded = encoded.append_column(one, column)
    return encoded


def without_columns(table: Any, names: Sequence[str]) -> Any:
    """Return `table` without the named columns; it may lack some of them."""
    return table.drop_columns([name for name in names if name in table.column_names])
