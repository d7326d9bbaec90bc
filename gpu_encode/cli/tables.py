"""Rows from and to files: Parquet, CSV and Arrow, told by the suffix."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from gpu_encode.cli.messages import UsageError, close_match, one_line
from gpu_encode.datasets import formats
from gpu_encode.datasets.formats import (
    SUFFIXES,
    csv_conversion,
    csv_parsing,
    decoded,
    delimiter,
    plain,
    uncompressed,
    without,
)

PIECE_ROWS = 1 << 19


@dataclass(frozen=True)
class Rows:
    """The rows of a file, to be read once.

    Parameters
    ----------
    schema : pyarrow.Schema
        The columns.
    n_rows : int or None
        How many rows there are, where the file tells it beforehand.
    pieces : iterator of pyarrow.Table
        The rows, in order.
    """

    schema: pa.Schema
    n_rows: int | None
    pieces: Iterator[pa.Table]

    def all(self, tell: Callable[[int], None] = lambda _: None) -> pa.Table:
        """Return all rows as one table, and tell how many each piece brought."""
        kept = [self.schema.empty_table()]
        for piece in self.pieces:
            kept.append(piece)
            tell(piece.num_rows)
        return pa.concat_tables(kept)


def suffix_of(path: Path) -> str:
    """Return the suffix that tells the format of a file.

    Examples
    --------
    >>> suffix_of(Path("rows.2024.CSV.gz"))
    '.csv.gz'
    """
    suffix = formats.suffix_of(path.name)
    if suffix is None:
        own = "".join(path.suffixes[-1:])
        message = (
            f"{str(path)!r}: no known format has the suffix {own!r}{close_match(own, SUFFIXES)} "
            f"(choose from {', '.join(SUFFIXES)})"
        )
        raise UsageError(message)
    return suffix


def distinct_files(**paths: Path) -> None:
    """Refuse two roles for one file.

    Examples
    --------
    >>> distinct_files(INPUT=Path("rows.csv"), OUTPUT=Path("codes.csv"))
    """
    seen: dict[Path, str] = {}
    for role, path in paths.items():
        place = path.resolve()
        for other, other_role in seen.items():
            if place == other or (place.exists() and other.exists() and place.samefile(other)):
                message = f"{other_role} and {role} are the same file {str(path)!r}: give each its own"
                raise UsageError(message)
        seen[place] = role


@contextlib.contextmanager
def opened(path: Path, *, missing_text: Sequence[str] = (), text: Sequence[str] = ()) -> Iterator[Rows]:
    """Open a file of rows.

    Parameters
    ----------
    path : Path
        The file.
    missing_text : sequence of str
        Texts that stand for a missing value.
    text : sequence of str
        Columns of a CSV file that are text, whatever they look like.
    """
    suffix = suffix_of(path)
    if not path.exists():
        message = f"there is no file {str(path)!r}"
        raise UsageError(message)
    try:
        with path.open("rb") as stream:
            if SUFFIXES[suffix] == "csv":
                rows = csv_rows(stream, suffix, missing_text, text)
            else:
                rows = (parquet_rows if SUFFIXES[suffix] == "parquet" else arrow_rows)(stream)
            if missing_text:
                pieces = (without(piece, missing_text) for piece in rows.pieces)
                rows = Rows(decoded(rows.schema), rows.n_rows, pieces)
            refuse_repeated(rows.schema, path)
            yield rows
    except pa.ArrowInvalid as error:
        message = f"cannot read {str(path)!r}: {one_line(error)}"
        raise UsageError(message) from error


def refuse_repeated(schema: pa.Schema, path: Path) -> None:
    """Refuse a file in which a name stands for two columns."""
    repeated = sorted({name for name in schema.names if schema.names.count(name) > 1})
    if repeated:
        message = f"{str(path)!r} has several columns named {', '.join(map(repr, repeated))}: rename them"
        raise UsageError(message)


def csv_rows(stream: IO[bytes], suffix: str, missing_text: Sequence[str], text: Sequence[str]) -> Rows:
    """Read a whole CSV file: the type of a column is known only after its last row."""
    table = pyarrow.csv.read_csv(
        uncompressed(stream, suffix),
        parse_options=csv_parsing(suffix),
        convert_options=csv_conversion(missing_text, dict.fromkeys(text, pa.string())),
    )
    return Rows(table.schema, table.num_rows, pieces_of(table))


def parquet_rows(stream: IO[bytes]) -> Rows:
    """Read a Parquet file piece by piece."""
    file = pyarrow.parquet.ParquetFile(stream)
    # What pandas noted about its columns would be wrong for those that come out.
    schema = file.schema_arrow.remove_metadata()
    pieces = (pa.Table.from_batches([batch]).replace_schema_metadata() for batch in file.iter_batches(PIECE_ROWS))
    return Rows(schema, file.metadata.num_rows, pieces)


def arrow_rows(stream: IO[bytes]) -> Rows:
    """Read a whole Arrow (Feather) file: its dictionaries may differ from batch to batch."""
    table = pa.ipc.open_file(stream).read_all().replace_schema_metadata().unify_dictionaries()
    return Rows(table.schema, table.num_rows, pieces_of(table))


def pieces_of(table: pa.Table) -> Iterator[pa.Table]:
    """Cut a table into pieces."""
    return (table.slice(start, PIECE_ROWS) for start in range(0, table.num_rows, PIECE_ROWS))


class Writer:
    r"""Writes tables of one schema to a file whose suffix tells the format.

    Parameters
    ----------
    path : Path
        The file, which is written over.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "codes.csv")
    ...     with Writer(path) as writer:
    ...         writer.write(pa.table({"city": [0.5]}))
    ...     path.read_text()
    '"city"\n0.5\n'
    """

    def __init__(self, path: Path) -> None:
        self._suffix = suffix_of(path)
        self._path = path
        self._files = contextlib.ExitStack()
        self._stream: Any = None
        self._writer: Any = None
        self._gathered: list[pa.Table] = []

    def __enter__(self) -> "Writer":
        self._stream = self._files.enter_context(pa.OSFile(str(self._path), "wb"))
        if self._suffix.endswith(".gz"):
            self._stream = self._files.enter_context(pa.CompressedOutputStream(self._stream, "gzip"))
        return self

    def __exit__(self, *error: object) -> None:
        with self._files:
            if error[0] is None and self._gathered:
                self._write_arrow(pa.concat_tables(self._gathered))
            if self._writer is not None:
                self._writer.close()

    def write(self, table: pa.Table) -> None:
        """Write the next rows."""
        if SUFFIXES[self._suffix] == "arrow":
            # The format wants one dictionary per column for all rows.
            self._gathered.append(table)
            return
        if SUFFIXES[self._suffix] == "csv":
            table = plain(table)
        if self._writer is None:
            self._writer = self._open(table.schema)
        self._writer.write_table(table)

    def _open(self, schema: pa.Schema) -> Any:
        if SUFFIXES[self._suffix] == "parquet":
            return pyarrow.parquet.ParquetWriter(self._stream, schema)
        layout = pyarrow.csv.WriteOptions(delimiter=delimiter(self._suffix))
        return pyarrow.csv.CSVWriter(self._stream, schema, write_options=layout)

    def _write_arrow(self, table: pa.Table) -> None:
        table = table.unify_dictionaries()
        with pa.ipc.new_file(self._stream, table.schema) as writer:
            writer.write_table(table)
