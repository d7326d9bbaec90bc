"""Pieces of rows that are kept in numbered files: NumPy arrays, or Arrow tables."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from cpu_fallback.types import Array

# Pieces are so small that threads would mostly wait for one another.
WRITING = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
READING = pa.ipc.IpcReadOptions(use_threads=False)


class SpillFiles:
    """Pieces in numbered files: a piece is added to the file of its number.

    Parameters
    ----------
    folder : Path
        The folder is made, and must not exist.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = SpillFiles(Path(folder, "spilled"))
    ...     files.add(3, [np.array([1, 2]), None])
    ...     files.add(3, [np.array([5]), None])
    ...     list(files.read(3))
    [[array([1, 2]), None], [array([5]), None]]
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self.n_bytes = folder, 0
        folder.mkdir(parents=True)

    def add(self, number: int, piece: Any) -> None:
        """Add a piece."""
        # With Arrow's files, a full disk is an error; NumPy does not notice it when it writes to Python's files.
        with pa.OSFile(str(self._folder / f"{number}"), "ab") as file:
            begun = file.tell()
            self._write(file, piece)
            self.n_bytes += file.tell() - begun

    def read(self, number: int) -> Iterator[Any]:
        """Yield the pieces of a number, in the order in which they were added."""
        path = self._folder / f"{number}"
        if not path.exists():
            return
        size = path.stat().st_size
        with pa.OSFile(str(path), "rb") as file:
            while file.tell() < size:
                yield self._read(file)

    def remove(self, number: int) -> None:
        """Remove the pieces of a number."""
        (self._folder / f"{number}").unlink(missing_ok=True)

    @staticmethod
    def _write(file: Any, arrays: Sequence[Array | None]) -> None:
        """Write a list of arrays; some of them may be None."""
        np.save(file, np.array([array is not None for array in arrays]), allow_pickle=False)
        for array in arrays:
            if array is not None:
                np.save(file, np.ascontiguousarray(array), allow_pickle=False)

    @staticmethod
    def _read(file: Any) -> list[Any]:
        """Read a list of arrays."""
        present = np.load(file, allow_pickle=False)
        return [np.load(file, allow_pickle=False) if is_there else None for is_there in present]


class SpillTables(SpillFiles):
    """Pieces that are Arrow tables; small ones can wait in memory, and be written as one piece.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = SpillTables(Path(folder, "spilled"))
    ...     files.add(3, pa.table({"city": ["Bonn", None]}))
    ...     files.keep(3, pa.table({"city": ["Rome"]})), files.keep(3, pa.table({"city": ["Oslo"]}))
    ...     [table["city"].to_pylist() for table in files.read(3)]
    (0, 1)
    [['Bonn', None], ['Rome', 'Oslo']]
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._waiting: dict[int, list[Any]] = {}
        self.bytes_waiting = 0

    def keep(self, number: int, piece: Any) -> int:
        """Let a piece wait until `flush`, and give the number of rows that its number has waiting already."""
        waiting = self._waiting.setdefault(number, [])
        before = sum(map(len, waiting))
        waiting.append(piece)
        self.bytes_waiting += piece.nbytes
        return before

    def flush(self) -> None:
        """Write what waits: one piece for each number."""
        waiting, self._waiting, self.bytes_waiting = self._waiting, {}, 0
        while waiting:
            number, pieces = waiting.popitem()
            self.add(number, pa.concat_tables(pieces, promote_options="permissive").combine_chunks())

    def read(self, number: int) -> Iterator[Any]:
        """Yield the pieces of a number."""
        self.flush()
        yield from super().read(number)

    @staticmethod
    def _write(file: Any, table: Any) -> None:
        """Write a table as a stream of its own, with compressed columns, since most digits of sums are zeros."""
        with pa.ipc.new_stream(file, table.schema, options=WRITING) as stream:
            stream.write_table(table)

    @staticmethod
    def _read(file: Any) -> Any:
        """Read a table."""
        with pa.ipc.open_stream(file, options=READING) as stream:
            return stream.read_all()
