"""Where encoded rows go: one file, or a folder of files with the source's names or one for each chunk."""

import os
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpu_encode.datasets.formats import SUFFIXES, suffix_of
from gpu_encode.datasets.source import Source
from gpu_encode.datasets.writing import RowWriter, check_compression
from gpu_encode.errors import datasets as errors


@dataclass(frozen=True)
class Output:
    """A file that is written.

    Parameters
    ----------
    relative : str
        Its path below the destination folder; the name of a destination file.
    first_row, stop : int
        The rows that it has.
    """

    relative: str
    first_row: int
    stop: int


@dataclass(frozen=True)
class Destination:
    """Where encoded rows go.

    Parameters
    ----------
    place : Path
        The file or folder, without links in its path.
    is_folder : bool
    suffix : str
        Of the files.
    compression : str or None
    """

    place: Path
    is_folder: bool
    suffix: str
    compression: str | None

    def outputs(self, source: Source, part_rows: int) -> list[Output]:
        """Plan the files: one for each of several source files, else one for each `part_rows` rows."""
        if not self.is_folder:
            return [Output(self.place.name, 0, source.n_rows)]
        if len(source.files) > 1 or source.partition_names:
            return [
                Output(file.relative, start, start + rows)
                for file, start, rows in zip(source.files, source.starts, source.rows, strict=True)
            ]
        return [
            Output(f"part-{number:05d}{self.suffix}", start, min(start + part_rows, source.n_rows))
            for number, start in enumerate(range(0, max(source.n_rows, 1), part_rows))
        ]

    def left_out(self, source: Source) -> list[str]:
        """Columns that the names of the output's folders tell already."""
        return source.partition_names if self.is_folder else []


def chosen(source: Source, destination: Any, compression: str | None, overwrite: bool) -> Destination:
    r"""Check a destination.

    Raises
    ------
    ValueError, FileExistsError, FileNotFoundError
        If nothing may be written there.

    Examples
    --------
    >>> import tempfile
    >>> from gpu_encode.datasets.source import opened
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "rows.csv").write_text("city\n")
    ...     found = chosen(opened(f"{folder}/rows.csv"), f"{folder}/codes/", None, False)
    >>> found.is_folder, found.suffix
    (True, '.csv')
    """
    text = os.fspath(destination)
    place = Path(os.path.realpath(text))
    suffix = suffix_of(place.name)
    is_folder = text.endswith(("/", os.sep)) or place.is_dir() or (suffix is None and not place.suffix)
    if suffix is None and not is_folder:
        raise errors.unknown_destination(text, list(SUFFIXES))
    if not place.parent.is_dir():
        raise errors.no_folder_for(str(place.parent), place.name)
    refuse_overlap(source, place, text)
    if is_folder and place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise errors.folder_is_there(text)
    if not is_folder and place.exists() and not overwrite:
        raise errors.file_is_there(text)
    suffix = source.files[0].suffix if is_folder else suffix
    assert suffix is not None
    check_compression(compression, suffix)
    same = SUFFIXES[suffix] == "parquet" == source.files[0].format
    return Destination(place, is_folder, suffix, compression or (source.compression if same else None))


def refuse_overlap(source: Source, place: Path, text: str) -> None:
    """Refuse to write over, into or around what is read."""
    read = [Path(os.path.realpath(file.path)) for file in source.files if file.is_local]
    if place in read or any(each.is_relative_to(place) for each in read):
        raise errors.destination_is_source(text)
    if source.folder is not None and place.is_relative_to(os.path.realpath(source.folder)):
        raise errors.destination_in_source(text, str(source.folder))


class OutputFiles:
    """Writes rows, which come in order, to the files that are planned for them.

    Parameters
    ----------
    outputs : sequence of Output
        Those that are still to be written, in order.
    schema : pyarrow.Schema
    compression : str or None
    partial : callable
        Gives the path at which a file is written, by its number among `outputs`.
    finish : callable
        Called with a finished file's path and its Output.
    """

    def __init__(
        self,
        outputs: Sequence[Output],
        schema: Any,
        compression: str | None,
        partial: Callable[[Output], Path],
        finish: Callable[[Path, Output], None],
    ) -> None:
        self.files = self.n_bytes = 0
        self._left = deque(outputs)
        self._schema, self._compression = schema, compression
        self._partial, self._finish = partial, finish
        self._row = outputs[0].first_row if outputs else 0
        self._writer: RowWriter | None = None

    def write(self, table: Any) -> None:
        """Write the next rows."""
        while table.num_rows:
            stop = self._left[0].stop
            piece, table = table.slice(0, stop - self._row), table.slice(stop - self._row)
            if piece.num_rows:
                self._open().write(piece)
                self._row += piece.num_rows
            if self._row == stop:
                self._close()

    def end(self) -> None:
        """Write what is left: files without rows."""
        while self._left:
            self._open()
            self._close()

    def abandon(self) -> None:
        """Let go of a file that stays incomplete."""
        if self._writer is not None:
            self._writer.abandon()

    def _open(self) -> RowWriter:
        if self._writer is None:
            self._writer = RowWriter(self._partial(self._left[0]), self._schema, self._compression).__enter__()
        return self._writer

    def _close(self) -> None:
        self._open()
        assert self._writer is not None
        writer, self._writer = self._writer, None
        writer.__exit__(None, None, None)
        output = self._left.popleft()
        path = self._partial(output)
        self.files += 1
        self.n_bytes += path.stat().st_size
        self._finish(path, output)
