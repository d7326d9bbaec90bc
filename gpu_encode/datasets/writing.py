"""Files that rows are written to piece by piece: Parquet, CSV and Arrow, told by the suffix."""

import contextlib
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from gpu_encode.datasets.formats import SUFFIXES, delimiter, plain, plain_schema, suffix_of
from gpu_encode.errors import datasets as errors
from gpu_encode.storage.archive import sync_file

ROW_GROUP = 1 << 20
COMPRESSIONS = {
    "parquet": ("none", "snappy", "gzip", "zstd", "lz4", "brotli"),
    "arrow": ("none", "lz4", "zstd"),
    "csv": (),
}


class RowWriter:
    r"""Writes tables of one schema to a file.

    Parameters
    ----------
    path : Path
        The file, which is written over; its suffix tells the format.
    schema : pyarrow.Schema
    compression : str, optional
        Of Parquet (zstd unless given) and Arrow (none unless given).

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path, table = Path(folder, "codes.csv"), pa.table({"city": [0.5]})
    ...     with RowWriter(path, table.schema) as writer:
    ...         writer.write(table)
    ...     path.read_text()
    '"city"\n0.5\n'
    """

    def __init__(self, path: Path, schema: Any, compression: str | None = None) -> None:
        suffix = suffix_of(path.name)
        assert suffix is not None
        self._suffix, self._format = suffix, SUFFIXES[suffix]
        self._path = path
        self._schema = schema
        self._compression = compression
        self._files = contextlib.ExitStack()
        self._dictionaries: dict[int, Any] = {}

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as files:
            stream: Any = files.enter_context(pa.OSFile(str(self._path), "wb"))
            if self._suffix.endswith(".gz"):
                stream = files.enter_context(pa.CompressedOutputStream(stream, "gzip"))
            self._writer = files.enter_context(self._opened(stream))
            self._files = files.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.__exit__(kind, error, trace)
        if error is None:
            sync_file(self._path)

    def abandon(self) -> None:
        """Let go of a file that stays incomplete, whatever goes wrong."""
        with contextlib.suppress(Exception):
            self._files.close()

    def _opened(self, stream: Any) -> Any:
        if self._format == "parquet":
            return pyarrow.parquet.ParquetWriter(stream, self._schema, compression=self._compression or "zstd")
        if self._format == "csv":
            layout = pyarrow.csv.WriteOptions(delimiter=delimiter(self._suffix))
            return pyarrow.csv.CSVWriter(stream, plain_schema(self._schema), write_options=layout)
        codec = None if self._compression in (None, "none") else self._compression
        options = pa.ipc.IpcWriteOptions(compression=codec, emit_dictionary_deltas=True)
        return pa.ipc.new_file(stream, self._schema, options=options)

    def write(self, table: Any) -> None:
        """Write the next rows."""
        if self._format == "parquet":
            self._writer.write_table(table, row_group_size=ROW_GROUP)
        elif self._format == "csv":
            self._writer.write_table(plain(table))
        else:
            self._writer.write_table(self._with_one_dictionary(table))

    def _with_one_dictionary(self, table: Any) -> Any:
        """Number the values of dictionaries as in the tables before: an Arrow file may only add to a dictionary."""
        table = table.unify_dictionaries()
        for place, one in enumerate(table.schema):
            if not pa.types.is_dictionary(one.type) or not table.num_rows:
                continue
            column = table.column(place).combine_chunks()
            known = self._dictionaries.get(place, column.dictionary.slice(0, 0))
            new = column.dictionary.filter(pc.invert(pc.is_in(column.dictionary, value_set=known)))
            known = self._dictionaries[place] = pa.concat_arrays([known, new])
            places = pc.index_in(column.dictionary, value_set=known)
            indices = places.take(column.indices).cast(one.type.index_type)
            numbered = pa.DictionaryArray.from_arrays(indices, known, ordered=one.type.ordered)
            table = table.set_column(place, one, numbered)
        return table


def check_compression(compression: str | None, suffix: str) -> None:
    """Refuse a compression that a format does not have."""
    allowed = COMPRESSIONS[SUFFIXES[suffix]]
    if compression is not None and (not isinstance(compression, str) or compression not in allowed):
        raise errors.bad_compression(compression, suffix, allowed)
