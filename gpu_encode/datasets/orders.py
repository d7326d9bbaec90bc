"""Ordered schemes over chunks: rows as they stand carry sums on; any other order sorts rows into files first."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from cpu_fallback.types import Array
from gpu_encode.datasets.roles import Roles
from gpu_encode.datasets.run import Run
from gpu_encode.datasets.source import Size
from gpu_encode.parts import (
    CategoryMeanDeltas,
    CategoryMeanScan,
    EncodingTables,
    OrderedRows,
    OrderedScan,
    Part,
    RowEncodings,
    shuffle,
    with_categories,
)


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


# What the rows of a part get, per order; None where the scheme is not ordered.
Placing = Callable[[Part], list[list[RowEncodings]] | None]


class Orders:
    """The orders of an ordered scheme.

    Parameters
    ----------
    run : Run
    tables : EncodingTables
    roles : Roles
    columns : list of str
        What is read to place rows.
    size : Size
        Chunks of these columns, in which places are found.
    folder : Path
        Where files of rows may lie meanwhile.
    """

    def __init__(
        self, run: Run, tables: EncodingTables, roles: Roles, columns: list[str], size: Size, folder: Path
    ) -> None:
        self._run, self._tables, self._roles = run, tables, roles
        self._columns, self._size, self._folder = columns, size, folder

    def placing(self) -> tuple[EncodingTables, Placing]:
        """Give the tables, and what gives the codes of the rows of each chunk.

        Of rows as they stand the chunks must come one after another, from the first on; of other orders each must lie
        between multiples of the size's rows.
        """
        return self._in_rows() if self._tables.encoding_plan.order == "rows" else self._shuffled()

    def _in_rows(self) -> tuple[EncodingTables, Placing]:
        tables = self._tables
        if tables.needs_categories:
            gaining = CategoryMeanScan(tables)
            with self._run.reading("placing", self._columns, self._size) as chunks:
                for chunk in chunks:
                    with self._run.timed("placing"):
                        for bucket in shuffle(tables, self._roles.part(chunk))[0]:
                            gaining.add(bucket)
            tables = with_categories(tables, [gaining.deltas()])
        running = OrderedScan(tables)
        return tables, lambda part: [[running.encode(bucket) for bucket in own] for own in shuffle(tables, part)]

    def _shuffled(self) -> tuple[EncodingTables, Placing]:
        """Sort rows into buckets by place, find their codes bucket by bucket, and sort these into stripes by row."""
        tables, rows = self._tables, self._size.rows
        buckets = self._scattered()
        if tables.needs_categories:
            tables = with_categories(tables, [self._gained(number, each) for number, each in enumerate(buckets)])
        stripes = [self._codes(tables, number, each) for number, each in enumerate(buckets)]

        def placed(part: Part) -> list[list[RowEncodings]]:
            start, stop = part.first_row, part.first_row + part.X.num_rows
            found = []
            for own in stripes:
                pieces = (placed_of_arrays(arrays).between(start, stop) for arrays in own.read(start // rows))
                found.append([piece for piece in pieces if len(piece.rows)])
            return found

        return tables, placed

    @property
    def _n_buckets(self) -> int:
        return -(-self._run.source.n_rows // self._size.rows)

    def _scattered(self) -> list[Spilled]:
        """Sort all rows into buckets, per order."""
        found: list[Spilled] = []
        with self._run.reading("placing", self._columns, self._size) as chunks:
            for chunk in chunks:
                with self._run.timed("placing"):
                    for number, own in enumerate(shuffle(self._tables, self._roles.part(chunk), self._n_buckets)):
                        if number == len(found):
                            found.append(Spilled(self._folder / f"buckets-{number}"))
                        for place, bucket in enumerate(own):
                            if len(bucket):
                                found[number].add(place, arrays_of_bucket(bucket))
        return found

    def _in_order(self, buckets: Spilled, *, last: bool) -> Iterator[OrderedRows]:
        """Give the buckets of one order, from the first to the last place; they are gone after the last pass."""
        n_targets = len(self._tables.model.targets)
        for place in range(self._n_buckets):
            pieces = buckets.take(place) if last else buckets.read(place)
            found = [bucket_of_arrays(arrays, n_targets) for arrays in pieces]
            if found:
                yield OrderedRows.join(found)

    def _gained(self, number: int, buckets: Spilled) -> CategoryMeanDeltas:
        gaining = CategoryMeanScan(self._tables, number)
        with self._run.timed("placing"):
            for bucket in self._in_order(buckets, last=False):
                gaining.add(bucket)
        return gaining.deltas()

    def _codes(self, tables: EncodingTables, number: int, buckets: Spilled) -> Spilled:
        """Find the codes of all rows in one order, and sort them into stripes of as many rows as a chunk has."""
        stripes, running, rows = (
            Spilled(self._folder / f"stripes-{number}"),
            OrderedScan(tables, number),
            self._size.rows,
        )
        with self._run.timed("placing"):
            for bucket in self._in_order(buckets, last=True):
                codes = running.encode(bucket)
                for stripe in sorted(set((codes.rows // rows).tolist())):
                    stripes.add(stripe, arrays_of_placed(codes.between(stripe * rows, (stripe + 1) * rows)))
        return stripes
