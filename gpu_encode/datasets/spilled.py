"""Arrays that do not fit in memory, written to files of a temporary folder piece by piece and read back whole."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from cpu_fallback.types import Array
from gpu_encode.parts import OrderedRows, RowEncodings


class Spilled:
    """Pieces of arrays by number: each number has a file, to which pieces are added.

    Parameters
    ----------
    folder : Path
        Is made, and must not be there.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     spilled = Spilled(Path(folder, "spilled"))
    ...     spilled.add(3, [np.array([1, 2]), None])
    ...     spilled.add(3, [np.array([5]), None])
    ...     list(spilled.take(3))
    [[array([1, 2]), None], [array([5]), None]]
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()

    def add(self, number: int, arrays: Sequence[Array | None]) -> None:
        """Add a piece."""
        with self._path(number).open("ab") as file:
            plain = Plain(file)
            np.save(plain, np.array([array is not None for array in arrays]), allow_pickle=False)
            for array in arrays:
                if array is not None:
                    np.save(plain, np.ascontiguousarray(array), allow_pickle=False)

    def read(self, number: int) -> Iterator[list[Array | None]]:
        """Give the pieces of a number, in the order in which they were added."""
        path = self._path(number)
        if not path.exists():
            return
        size = path.stat().st_size
        with path.open("rb") as file:
            while file.tell() < size:
                there = np.load(file, allow_pickle=False)
                yield [np.load(file, allow_pickle=False) if each else None for each in there]

    def take(self, number: int) -> Iterator[list[Array | None]]:
        """Give the pieces of a number, which are then gone."""
        yield from self.read(number)
        self._path(number).unlink(missing_ok=True)

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}"


class Plain:
    """A file for NumPy to write to as Python does, which says so when the disk is full; its own way does not."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, content: bytes) -> int:
        """Write all of it."""
        return self._file.write(content)


def arrays_of_bucket(bucket: OrderedRows) -> list[Array | None]:
    """Give the arrays of a bucket."""
    return [bucket.rows, bucket.begins, bucket.ties, bucket.weight, *bucket.codes, *bucket.targets]


def bucket_of_arrays(arrays: Sequence[Array | None], n_targets: int) -> OrderedRows:
    """Give the bucket of the arrays that `arrays_of_bucket` gave."""
    rows, begins, ties, weight, *rest = arrays
    assert rows is not None
    assert begins is not None
    columns = [each for each in rest if each is not None]
    return OrderedRows(rows, begins, ties, columns[:-n_targets], columns[-n_targets:], weight)


def arrays_of_placed(placed: RowEncodings) -> list[Array | None]:
    """Give the arrays of codes in their places."""
    return [placed.rows, placed.values, placed.unseen]


def placed_of_arrays(arrays: Sequence[Array | None]) -> RowEncodings:
    """Give what `arrays_of_placed` took apart."""
    rows, values, unseen = arrays
    assert rows is not None
    assert values is not None
    assert unseen is not None
    return RowEncodings(rows, values, unseen)
