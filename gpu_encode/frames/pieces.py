"""Several tables that are one: their rows follow one another, and every bit is that of the table they make up."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np

from gpu_encode import errors
from gpu_encode.frames.encoding import Keys
from gpu_encode.frames.frame import Frame
from gpu_encode.frames.joining import concatenated, joined_vocabulary
from gpu_encode.frames.reading import is_frame, read
from gpu_encode.ops import MISSING, Array, Ops
from gpu_encode.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False)
class Pieces:
    """Tables of the same columns, each of any library, as one frame.

    Parameters
    ----------
    parts : tuple of Frame
        The tables, at least one.
    labels : list, optional
        Column names of any type; None of NumPy arrays.
    role : str
        What the tables are, as named in messages.

    Examples
    --------
    >>> import cpu_fallback, pandas as pd, polars as pl
    >>> from gpu_encode.frames import read_pieces
    >>> pieces = read_pieces([pd.DataFrame({"a": ["x", "z"]}), pl.DataFrame({"a": ["y", None]})])
    >>> codes, vocabulary = pieces.keys(0, cpu_fallback)
    >>> codes.tolist(), vocabulary.to_numpy().tolist()
    ([0, 2, 1, -1], ['x', 'y', 'z'])
    """

    parts: tuple[Frame, ...]
    labels: list[Any] | None = None
    role: str = "X"

    @property
    def lengths(self) -> list[int]:
        """Number of rows of each table."""
        return [part.n_rows for part in self.parts]

    @property
    def n_rows(self) -> int:
        """Number of rows of all tables; no type of 32 bits has to hold it."""
        return sum(self.lengths)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.parts[0].n_columns

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.n_rows, self.n_columns

    @property
    def names(self) -> list[str] | None:
        """Column names if all are strings, None if none is, an error between."""
        return self.parts[0].names

    def label(self, position: int) -> object:
        """Name of a column in messages, its position if it has none."""
        return self.labels[position] if self.labels is not None else position

    def stretches(self) -> Iterator[tuple[int, Frame, slice]]:
        """Give the number of each table, the table, and its rows."""
        start = 0
        for number, part in enumerate(self.parts):
            yield number, part, slice(start, start + part.n_rows)
            start += part.n_rows

    def keys(self, position: int, ops: Ops) -> Keys:
        """Codes of a column (int32; -1 for null), where `ops` computes, and the sorted vocabulary of all tables.

        Each table is numbered by itself; only vocabularies are joined, all at once.
        """
        filled = [stretch for stretch in self.stretches() if stretch[1].n_rows]
        if len(filled) < 2:
            number, part, _ = filled[0] if filled else (0, self.parts[0], None)
            with self._told(number):
                return part.keys(position, ops)
        codes = ops.empty((self.n_rows,), np.int32)
        found: dict[int, Vocabulary] = {}
        for number, part, rows in filled:
            with self._told(number):
                codes[rows], found[number] = part.keys(position, ops)
        vocabulary, places = joined_vocabulary(found, self.label(position), self.role)
        for number, _, rows in filled:
            # Sorted values are in the places of all values if there are as many of them.
            if len(found[number]) < len(vocabulary):
                # A null counts from the end of the table, where it is found again.
                table = ops.to_device(np.append(places[number], np.int32(MISSING)).astype(np.int32))
                codes[rows] = table[codes[rows]]
        return Keys(codes, vocabulary)

    def lookup(self, position: int, vocabulary: Vocabulary, ops: Ops) -> Array:
        """Position in a vocabulary of each row of a column (int32): -1 for null, -2 where it is absent."""
        codes = ops.empty((self.n_rows,), np.int32)
        for number, part, rows in self.stretches():
            if part.n_rows:
                with self._told(number):
                    codes[rows] = part.lookup(position, vocabulary, ops)
        return codes

    def values(self, position: int) -> Array:
        """Plain values of a column, as of a frame."""
        return concatenated([part.values(position) for part in self.parts])

    def nulls(self, position: int) -> Array:
        """Which rows of a column are null (bool)."""
        return np.concatenate([part.nulls(position) for part in self.parts])

    def _told(self, number: int) -> AbstractContextManager[None]:
        return told(self.role, number)

    def assemble(
        self, names: Sequence[str], arrays: Sequence[Array], passed: Sequence[int], kind: str | None = None
    ) -> list[Any]:
        """Give a list of tables, one for each, as `Frame.assemble` makes them of the rows of each."""
        tables = []
        for number, part, rows in self.stretches():
            named = part if part.labels is not None else replace(part, labels=self.labels)
            with self._told(number):
                tables.append(named.assemble(names, [array[rows] for array in arrays], passed, kind))
        return tables


def tables_of(data: Any) -> list[Any] | None:
    """List the tables of a list, tuple or iterator; None if `data` is itself a table, or rows.

    What an iterator gives is held until the caller lets go of the list.

    Examples
    --------
    >>> import pandas as pd
    >>> from gpu_encode.frames.pieces import tables_of
    >>> table = pd.DataFrame({"a": [1, 2]})
    >>> len(tables_of(part for part in (table[:1], table[1:])))
    2
    >>> tables_of(table), tables_of([[1], [2]])
    (None, None)
    """
    iterated = is_iterator(data)
    if not iterated and (not isinstance(data, (list, tuple)) or (len(data) and not is_table(data[0]))):
        return None
    tables = []
    for number, table in enumerate(data):
        if not is_table(table):
            raise errors.not_a_table(number, type(table).__name__)
        tables.append(table)
    if not tables:
        raise errors.no_tables("iterator" if iterated else type(data).__name__)
    return tables


def is_iterator(data: Any) -> bool:
    """Whether data is an iterator and nothing else that can be read: Arrow's reader of batches is a table."""
    readable = ("__arrow_c_stream__", "__dataframe__", "__array__")
    return hasattr(data, "__next__") and not any(hasattr(data, name) for name in readable)


def is_table(data: Any) -> bool:
    """Whether data is a frame of any library, lazy ones too, or an array of two dimensions, wherever it lies."""
    if is_frame(data) or getattr(data, "ndim", 0) == 2:
        return True
    return isinstance(nw.from_native(data, pass_through=True), (nw.DataFrame, nw.LazyFrame))


def read_pieces(tables: Sequence[Any]) -> Pieces:
    """Read tables of the same columns as one frame.

    Raises
    ------
    TypeError, ValueError
        If one cannot be read, or has other columns than the first; the message says which.
    """
    parts: list[Frame] = []
    for number, table in enumerate(tables):
        with told("X", number):
            parts.append(read(table))
    for number, part in enumerate(parts):
        if not _same_columns(parts[0], part):
            raise errors.columns_of_piece(number, _described(parts[0]), _described(part))
    return Pieces(tuple(parts), parts[0].labels)


def parts_of(frame: Frame | Pieces) -> tuple[Frame, ...]:
    """Give the tables that a frame is made of."""
    return frame.parts if isinstance(frame, Pieces) else (frame,)


def part_with(frame: Frame | Pieces, row: int) -> tuple[Frame, int, str]:
    """Give the table that has a row, the row's number there, and what a message says of that."""
    if isinstance(frame, Pieces):
        for number, part, rows in frame.stretches():
            if row < rows.stop:
                return part, row - rows.start, f" (row {row - rows.start} of X[{number}])"
    return parts_of(frame)[0], row, ""


@contextmanager
def told(role: str, number: int) -> Iterator[None]:
    """Say which of several tables an error is about."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise errors.in_piece(role, number, error) from error


def _same_columns(first: Frame, other: Frame) -> bool:
    """Whether names are the same; names that are no strings count for nothing beside an array, which has none."""
    if first.labels is None or other.labels is None:
        return first.n_columns == other.n_columns and first.names == other.names
    return first.labels == other.labels


def _described(frame: Frame) -> object:
    return frame.labels if frame.labels is not None else list(range(frame.n_columns))
