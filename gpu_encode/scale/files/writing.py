"""Destinations of encoded rows, a file or a folder of files, and how rows are written: as Parquet, CSV or Arrow."""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cpu_fallback.types import Array
from gpu_encode.scale.files import stores
from gpu_encode.scale.files.files import is_url
from gpu_encode.scale.files.formats import SUFFIXES, copy_rows, has_fixed_width, is_text, suffix_of
from gpu_encode.scale.files.source import Source
from gpu_encode.scale.files.stores import Store
from gpu_encode.storage.archive import sync_file
from gpu_encode.words.errors.tables import did_you_mean

# Bytes in memory of a row group of Parquet, or of a batch of Arrow, and its most rows.
GROUP_BYTES, MOST_GROUP_ROWS = 16 << 20, 1 << 19
# Smaller pieces of rows cost more time than they save memory.
FEWEST_ROWS = 1 << 12


class RowWriter:
    r"""Writes tables of one schema to a file.

    Parameters
    ----------
    path : Path
        The file, which is replaced; its suffix gives the format.
    schema : pyarrow.Schema
    compression : str, optional
        For Parquet (default zstd) and Arrow (default none).
    group_rows : int, optional
        Rows of each row group of Parquet and batch of Arrow; so a file does not depend on chunks.  If texts are longer
        than expected, a group ends earlier, at a row that follows from the rows of the file alone.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path, table = Path(folder, "encoded.csv"), pa.table({"city": [0.5]})
    ...     with RowWriter(path, table.schema) as writer:
    ...         writer.write(table)
    ...     path.read_text()
    '"city"\n0.5\n'
    """

    def __init__(
        self, path: Path, schema: Any, compression: str | None = None, group_rows: int = MOST_GROUP_ROWS
    ) -> None:
        suffix = suffix_of(path.name)
        assert suffix is not None
        self._suffix, self._format = suffix, SUFFIXES[suffix]
        self._path, self._schema, self._compression = path, schema, compression
        self._files = contextlib.ExitStack()
        self._stream: Any = None
        self._writer: Any = None
        self._dictionaries: dict[int, Any] = {}
        self._group_rows = group_rows
        self._gathered: list[Any] = []
        self._room, self._n_bytes = group_rows, 0

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as files:
            stream: Any = files.enter_context(pa.OSFile(str(self._path), "wb"))
            if self._suffix.endswith(".gz"):
                stream = files.enter_context(pa.CompressedOutputStream(stream, "gzip"))
            self._stream, self._files = stream, files.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._files:
            if error is None and self._gathered:
                self._write_group()
            elif error is None:
                self._open(self._schema.empty_table())
        if error is None:
            sync_file(self._path)

    def abandon(self) -> None:
        """Close a file that will not be finished, and ignore errors."""
        with contextlib.suppress(Exception):
            self._files.close()

    def write(self, table: Any) -> None:
        """Write the next rows."""
        if not self._format.has_groups:
            self._open(table).write_table(table.cast(self._format.file_schema(table.schema)))
            return
        n_rows = table.num_rows
        while table.num_rows:
            rows, is_full = self._rows_that_fit(table.slice(0, self._room))
            piece, table = table.slice(0, rows), table.slice(rows)
            self._gathered.append(piece)
            self._room -= rows
            if is_full:
                self._write_group()
        if self._gathered and self._gathered[-1].num_rows < n_rows:
            # A slice would keep the whole table in memory.
            self._gathered[-1] = copy_rows(self._gathered[-1])

    def _open(self, first: Any) -> Any:
        """Give the writer, which is opened with the first rows."""
        if self._writer is None:
            schema = self._format.file_schema(self._schema)
            opened = self._format.open_writer(self._stream, schema, self._suffix, self._compression, first)
            self._writer = self._files.enter_context(opened)
        return self._writer

    def _rows_that_fit(self, table: Any) -> tuple[int, bool]:
        """Give the number of rows that still belong to the row group, and whether it ends with them."""
        if all(map(has_fixed_width, table.schema.types)):
            return table.num_rows, table.num_rows == self._room
        sizes = np.zeros(table.num_rows, np.int64)
        for column in table.columns:
            if not has_fixed_width(column.type):
                sizes += bytes_of_rows(column)
        totals = self._n_bytes + np.append(0, np.cumsum(sizes))
        # A group may end only at a multiple of some rows from its beginning, wherever the pieces that come begin.
        borders = np.arange((self._room - self._group_rows) % FEWEST_ROWS, table.num_rows, FEWEST_ROWS)
        ends = borders[totals[borders] > 2 * GROUP_BYTES]
        rows = int(ends[0]) if len(ends) else table.num_rows
        self._n_bytes = int(totals[rows])
        return rows, bool(len(ends)) or rows == self._room

    def _write_group(self) -> None:
        table = pa.concat_tables(self._gathered).unify_dictionaries().combine_chunks()
        self._gathered, self._room, self._n_bytes = [], self._group_rows, 0
        self._open(table).write_table(self._format.arrange(table, self._dictionaries), self._group_rows)


def bytes_of_rows(column: Any) -> Array:
    """Give the bytes of the texts in each row, also of texts in lists and structs.

    Examples
    --------
    >>> bytes_of_rows(pa.chunked_array([["Bonn", None], ["Rio"]])).tolist()
    [4, 0, 3]
    >>> bytes_of_rows(pa.chunked_array([[["Bonn", "Rio"], [], None]])).tolist()
    [7, 0, 0]
    """
    kind, none = column.type, np.zeros(len(column), np.int64)
    if pa.types.is_struct(kind):
        return sum((bytes_of_rows(pc.struct_field(column, number)) for number in range(kind.num_fields)), none)
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if not (is_list or is_text(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
        return none
    if pa.types.is_string_view(kind):
        column = column.cast(pa.large_string())
    counts = pc.list_value_length(column) if is_list else pc.binary_length(column)
    lengths: Array = pc.fill_null(counts, 0).to_numpy().astype(np.int64)
    if not is_list:
        return lengths
    width = kind.value_type.bit_width if has_fixed_width(kind.value_type) else 0
    sums = np.append(0, np.cumsum(bytes_of_rows(pc.list_flatten(column))))
    return np.diff(sums[np.append(0, np.cumsum(lengths))]) + lengths * width // 8


def check_compression(compression: str | None, suffix: str) -> None:
    """Refuse a compression that a format does not have."""
    allowed = SUFFIXES[suffix].compressions
    if compression is not None and (not isinstance(compression, str) or compression not in allowed):
        raise _bad_compression(compression, suffix, allowed)


def _bad_compression(found: object, suffix: str, allowed: Sequence[str]) -> ValueError:
    """Error for a compression that the format does not have."""
    choices = f"Choose from {', '.join(allowed)}" if allowed else "Leave it out: the suffix .csv.gz compresses"
    return ValueError(f"compression {found!r} is not one of {suffix} files. {choices}.")


@dataclass(frozen=True)
class Output:
    """A file that is written.

    Parameters
    ----------
    relative : str
        Its path below the destination folder; the name of a destination file.
    first_row, stop : int
        The first row of the file, and the row after its last one.
    """

    relative: str
    first_row: int
    stop: int


@dataclass(frozen=True)
class Destination:
    """Where encoded rows go.

    Parameters
    ----------
    path : Path
        The file or folder, without links in its path.
    is_folder : bool
    suffix : str
        Suffix of the files.
    compression : str or None
    store : Store, optional
        The store to which the finished output is moved, if the destination is a URL.
    """

    path: Path
    is_folder: bool
    suffix: str
    compression: str | None
    store: Store | None = None

    def outputs(self, source: Source, part_rows: int) -> list[Output]:
        """Plan the files: one for each of several source files, else one for each `part_rows` rows."""
        if not self.is_folder:
            return [Output(self.path.name, 0, source.n_rows)]
        if len(source.files) > 1 or source.partition_names:
            return [
                Output(file.relative, start, start + rows)
                for file, start, rows in zip(source.files, source.starts, source.rows, strict=True)
            ]
        return [
            Output(f"part-{number:05d}{self.suffix}", start, min(start + part_rows, source.n_rows))
            for number, start in enumerate(range(0, max(source.n_rows, 1), part_rows))
        ]

    def check_types(self, schema: Any) -> None:
        """Refuse columns of types that the files cannot hold."""
        SUFFIXES[self.suffix].file_schema(schema)


def choose_destination(source: Source, destination: Any, compression: str | None, overwrite: bool) -> Destination:
    r"""Check a destination.

    Raises
    ------
    ValueError, FileExistsError, FileNotFoundError
        If the destination cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from gpu_encode.scale.files.source import open_source
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "rows.csv").write_text("city\n")
    ...     destination = choose_destination(open_source(f"{folder}/rows.csv"), f"{folder}/encoded/", None, False)
    >>> destination.is_folder, destination.suffix
    (True, '.csv')
    """
    text, store = os.fspath(destination), store_of(destination)
    path = Path(os.path.realpath(text)) if store is None else work_path(store)
    if store is None:
        there = Path(text)
        # /dev/stdout is a link to the name of a pipe, and no file has this name.
        if text == "-" or (there.exists() and not (there.is_file() or there.is_dir())):
            raise ValueError(
                f"destination {text!r} is no file or folder. Output appears whole at the end, which is "
                "impossible for standard output, pipes and devices: write a file, and read that."
            )
    else:
        text = store.url
    suffix = suffix_of(path.name)
    is_folder = (
        text.endswith(("/", os.sep)) or (suffix is None and not path.suffix) or (store is None and path.is_dir())
    )
    if suffix is None and not is_folder:
        hint = did_you_mean(path.suffix, list(SUFFIXES))
        raise ValueError(
            f"destination {text!r}: no known format has this suffix.{hint} Choose from {', '.join(SUFFIXES)}; for "
            f"a folder of this name write {text + '/'!r}."
        )
    if store is None and not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {str(path.parent)!r} to write {path.name!r} to.")
    refuse_overlap(source, path, text, store)
    refuse_overwriting(path, text, store, is_folder, overwrite)
    if is_folder or suffix is None:
        suffix = source.files[0].suffix
    if compression is None and SUFFIXES[suffix] is source.files[0].format:
        compression = source.compression
    else:
        check_compression(compression, suffix)
    return Destination(path, is_folder, suffix, compression, store)


def store_of(destination: Any) -> Store | None:
    """Give the store of a destination; None for a path."""
    return Store.at(destination) if is_url(destination) else None


def work_path(store: Store) -> Path:
    """Give the path below the folder of temporary files at which the output for a store is made."""
    mark = hashlib.sha256(store.filesystem.unstrip_protocol(store.path).encode()).hexdigest()[:16]
    user = os.getuid() if hasattr(os, "getuid") else "user"
    return Path(tempfile.gettempdir(), f"gpu-encode-{user}", mark, store.name)


def refuse_overwriting(path: Path, text: str, store: Store | None, is_folder: bool, overwrite: bool) -> None:
    """Refuse to replace a destination unless asked to, and never replace a folder with files that are not rows."""
    if store is None:
        is_file, others = path.is_file(), (path.rglob("*") if is_folder else ())
        names = [each.relative_to(path).as_posix() + "/" * each.is_dir() for each in others]
    else:
        with stores.explained(store.url, "look at"):
            store.filesystem.invalidate_cache()
            is_file = store.filesystem.isfile(store.path)
            keys = [] if is_file else store.filesystem.find(store.path)
        names = [key.removeprefix(f"{store.path}/") for key in keys]
    if not is_file and not names:
        return
    if is_file == is_folder:
        kinds = ("folder", "file") if is_folder else ("file", "folder")
        raise FileExistsError(f"the destination {text!r} is to be a {kinds[0]}, and is a {kinds[1]}. Name another.")
    if not overwrite:
        raise FileExistsError(
            f"the destination {text!r} is there already. Give overwrite=True (--overwrite) to replace it at the end."
        )
    for name in names:
        if suffix_of(name) is None and not name.endswith("/"):
            raise FileExistsError(
                f"the destination {text!r} holds {name!r}, which is no file of rows, and would be deleted with the "
                "folder. Remove it, or name another folder."
            )


def refuse_overlap(source: Source, path: Path, text: str, store: Store | None = None) -> None:
    """Refuse a destination that is a file of the source, or is inside or around the source."""
    output: PurePath = path
    folder: PurePath | None = None
    if store is None:
        read: list[PurePath] = [Path(os.path.realpath(file.path)) for file in source.files if file.is_local]
        read += [path for file in read if path.exists() and Path(file).exists() and path.samefile(file)]
        if isinstance(source.folder, Path):
            folder = Path(os.path.realpath(source.folder))
    else:
        output, system = PurePosixPath(store.path), store.filesystem
        here = [file.path for file in source.files if not file.is_local and file.filesystem == system]
        read = [PurePosixPath(system._strip_protocol(url)) for url in here]
        if here and is_url(source.folder):
            folder = PurePosixPath(system._strip_protocol(source.folder))
    if any(file.is_relative_to(output) for file in read):
        raise ValueError(f"the destination {text!r} is, or holds, a file of the source. Name another.")
    if folder is not None and output.is_relative_to(folder):
        raise ValueError(f"the destination {text!r} is in the source folder {str(source.folder)!r}. Name another.")
