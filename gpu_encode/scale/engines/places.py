"""Tables of categories in places of an engine by a hash: sums are added up there, and rows come to find encodings.

A place with many rows is cut into pieces.  Each has all of its lines and a share of its rows, so that a category of
many rows is not one worker's alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cpu_fallback.types import Array
from gpu_encode.scale.engines import calls
from gpu_encode.scale.engines.rows import Rows
from gpu_encode.scale.files import shuffle
from gpu_encode.scale.files.look_up import (
    BucketTable,
    Joined,
    JoinedKey,
    buckets_of,
    dealt_lines,
    index_of,
    rows_by_bucket,
)
from gpu_encode.scale.files.shuffle import ShuffledSums
from gpu_encode.tables.categories.distinct_counts import DistinctCount
from gpu_encode.tables.categories.hashes import hash_categories

# A power of two, as the number of places always is, so that rows counted by the most places are counted by any fewer.
MOST_PLACES = 512
# What a place has about at most, until there are so many of them.
CATEGORIES, ROWS = 1 << 16, 1 << 18
# Rows of a place that are looked up in one piece.
ROWS_OF_PIECE = 1 << 20


@dataclass(frozen=True, eq=False)
class KeyCounts:
    """What is counted of the keys of some rows; counts add up.

    Parameters
    ----------
    n_rows : int
    distinct : list of DistinctCount
        Categories of each key.
    by_place : int64 array (keys, MOST_PLACES)
        Rows.
    """

    n_rows: int
    distinct: list[DistinctCount]
    by_place: Array

    @classmethod
    def of(cls, keys: Sequence[Sequence[str]], table: Any) -> "KeyCounts":
        """Count some rows, of which each key has some columns."""
        distinct, by_place = [DistinctCount() for _ in keys], np.zeros((len(keys), MOST_PLACES), np.int64)
        for entry, columns in enumerate(keys if len(table) else ()):
            index, codes = index_of(table.select(list(columns)))
            hashes = hash_categories(index, shuffle.SEED)
            distinct[entry].add_hashes(hashes[:-1])
            by_place[entry] = np.bincount(buckets_of(hashes, MOST_PLACES)[codes], minlength=MOST_PLACES)
        return cls(len(table), distinct, by_place)

    def __add__(self, other: "KeyCounts") -> "KeyCounts":
        distinct = [mine + theirs for mine, theirs in zip(self.distinct, other.distinct, strict=True)]
        return KeyCounts(self.n_rows + other.n_rows, distinct, self.by_place + other.by_place)

    def categories(self) -> list[int]:
        """Estimate the categories of each key."""
        return [count.estimate() for count in self.distinct]

    def pieces(self) -> list[Array]:
        """Say of each key into how many pieces each of its places is cut."""
        number = number_of_places(max(self.categories()), self.n_rows)
        rows = self.by_place.reshape(len(self.distinct), -1, number).sum(axis=1)
        return [np.maximum(1, -(-of_key // ROWS_OF_PIECE)) for of_key in rows]


def number_of_places(n_categories: int, n_rows: int) -> int:
    """Choose how many places there are, a power of two."""
    wanted = max(ceil(n_categories / CATEGORIES), ceil(n_rows / ROWS), 1)
    return min(MOST_PLACES, 1 << (wanted - 1).bit_length())


class Placed(NamedTuple):
    """Encodings, and the places where they and rows meet.

    Parameters
    ----------
    lines : table of the engine
        Those of `shuffle.encode_lines`.
    pieces : list of int64 array
        Of each key, into how many pieces each place is cut.
    """

    lines: Any
    pieces: list[Array]


class PlaceShuffle:
    """Rows of an engine that deals them out to places; the engine says how it keeps and joins tables.

    Parameters
    ----------
    rows : Rows
    y, sample_weight, groups : optional
        Names of columns.
    """

    def __init__(self, rows: Rows, y: Any = None, sample_weight: Any = None, groups: Any = None) -> None:
        self._rows, self._aside = rows, (y, sample_weight, groups)
        self._counts: KeyCounts | None = None

    def count_categories(self, encoder: Any) -> int:
        """Estimate how many categories all keys have, in a pass over their columns."""
        return sum(self._count(encoder).categories())

    def learn(self, encoder: Any, training: bool) -> tuple[ShuffledSums, Placed]:
        """Add up the sums of each category at its place, and make encodings of them there, now."""
        shuffle.check_parameters(encoder, training)
        self._rows.check_repeatable()
        reading = calls.read_training(encoder, self._rows, *self._aside)
        shared, measured = calls.survey(encoder, self._rows, reading, training)
        pieces = self._count(encoder).pieces()
        number = len(pieces[0])
        encoded = measured.deal(deal_sums, (shared, number), number).map(add_sums, shared)
        return shared, Placed(self.keep(encoded), pieces)

    def encode_training(self, shared: ShuffledSums, joined: Joined, encodings: Placed) -> Any:
        """Give the encodings of training rows, lazily."""
        others, view = joined.beside_training(shared.reading.roles.aside), unused_prefix(self._rows.schema.names)
        rows = self.rows_of(self._rows.map(shuffle.add_views, (shared, view)))
        nothing = shuffle.add_views((shared, view), self._nothing())
        return self._look_up(rows, nothing, joined, encodings, others, view)

    def encode_new(self, joined: Joined, encodings: Placed) -> Any:
        """Give the encodings of new rows, lazily."""
        others = joined.beside_new(calls.names_of(self._rows))
        return self._look_up(self._rows, self._nothing(), joined, encodings, others, None)

    def rows_of(self, table: Any) -> Rows:
        """Give the rows of a table of the engine."""
        raise NotImplementedError

    def together(self, dealt: Any, other: Any) -> Rows:
        """Give together what two calls of `Rows.deal` gave for each place."""
        raise NotImplementedError

    def keep(self, lines: Any) -> Any:
        """Have a table computed now, and keep it."""
        raise NotImplementedError

    def _nothing(self) -> Any:
        """Give the table of no rows."""
        return self._rows.schema.empty_table()

    def _count(self, encoder: Any) -> KeyCounts:
        """Count the categories of each key, and its rows by place, in one pass."""
        if self._counts is None:
            reading = calls.read_training(encoder, self._rows, *self._aside)
            keys = calls.columns_of_keys(encoder, self._rows, reading)
            measured = self._rows.pick(list(dict.fromkeys(name for key in keys for name in key)))
            self._counts = measured.add_up(KeyCounts.of, keys, KeyCounts.of(keys, ()))
        return self._counts

    def _look_up(
        self, rows: Rows, nothing: Any, joined: Joined, encodings: Placed, others: Sequence[str], view: str | None
    ) -> Any:
        """Bring rows and the encodings of each key together, lazily.

        Parameters
        ----------
        rows : Rows
        nothing : pyarrow.Table
            None of these rows.
        joined : Joined
        encodings : Placed
        others : list of str
            Columns that come behind the encodings.
        view : str or None
            The column of the views of training rows.
        """
        prefix, lines = unused_prefix(nothing.column_names), self.rows_of(encodings.lines)
        made: list[str] = []
        for entry, (key, pieces) in enumerate(zip(joined.keys, encodings.pieces, strict=True)):
            names = [f"{prefix}{len(made) + number}" for number in range(len(key.outputs))]
            how = LookUp(entry, key, joined.dtype, pieces, view, names)
            dealt = [rows.deal(deal_rows, how, how.number()), lines.deal(deal_lines, how, how.number())]
            rows = self.rows_of(self.together(*dealt).map(encode_piece, (how, nothing)))
            nothing = how.encode([], nothing)
            made += names
        named = dict(zip(joined.outputs, made, strict=True)) | {name: name for name in others}
        return rows.map(select, named)


def deal_sums(shared: tuple[ShuffledSums, int], table: Any) -> dict[int, Any]:
    """Give by place the lines of digits of some rows, a table for each key that has any there; or an error."""
    (summed, number), dealt = shared, dict[int, list[Any]]()
    try:
        of_keys = shuffle.sum_part(summed, summed.reading.part(table))
    except (ValueError, TypeError) as error:
        return {0: calls.of_batch(error)}
    for lines in of_keys:
        for place, own in dealt_lines(lines, number):
            dealt.setdefault(place, []).append(own)
    return dealt


def add_sums(shared: ShuffledSums, group: Any) -> Any:
    """Add up the lines of digits at a place, and give encodings of them."""
    for state in group[1]:
        if isinstance(state, Exception):
            raise state
    return shuffle.encode_lines(shared, shuffle.add_lines([table for tables in group[1] for table in tables]))


@dataclass(frozen=True)
class LookUp:
    """How rows of places find the encodings of one key, in columns that come behind their own.

    Parameters
    ----------
    entry : int
    key : JoinedKey
    dtype : str
    pieces : int64 array
        Into how many pieces each place is cut.
    view : str or None
        The column of the views of training rows.
    names : list of str
        Of the columns.
    """

    entry: int
    key: JoinedKey
    dtype: str
    pieces: Array
    view: str | None
    names: list[str]

    def number(self) -> int:
        """Give the number of all pieces."""
        return int(self.pieces.sum())

    def first_piece(self, place: int) -> int:
        """Give the number of the first piece of a place."""
        return int(self.pieces[:place].sum())

    def encode(self, lines: Sequence[Any], rows: Any) -> Any:
        """Give rows of a piece with their encodings."""
        of_place = shuffle.join_tables(lines) if lines else no_lines(self.key, self.dtype, rows)
        views = None if self.view is None else rows[self.view].to_numpy()
        encodings = BucketTable(self.key, of_place, self.dtype).look_up(rows, views)
        for name, column in zip(self.names, encodings.T, strict=True):
            rows = rows.append_column(name, pa.array(np.ascontiguousarray(column)))
        return rows


def deal_rows(how: LookUp, table: Any) -> dict[int, tuple[bool, Any]]:
    """Give rows by piece, as even as may be."""
    dealt = {}
    for place, at in rows_by_bucket(table, how.key.columns, len(how.pieces)).items():
        first = how.first_piece(place)
        for piece, of_piece in enumerate(np.array_split(at, how.pieces[place])):
            if len(of_piece):
                dealt[first + piece] = False, table.take(of_piece)
    return dealt


def deal_lines(how: LookUp, table: Any) -> dict[int, tuple[bool, Any]]:
    """Give lines by piece, those of a place to each of its pieces."""
    dealt, own = {}, shuffle.of_entry(table, how.entry)
    for place, at in rows_by_bucket(own, how.key.stored, len(how.pieces)).items():
        first, of_place = how.first_piece(place), own.take(at)
        for piece in range(how.pieces[place]):
            dealt[first + piece] = True, of_place
    return dealt


def encode_piece(shared: tuple[LookUp, Any], group: Any) -> Any:
    """Give the rows of a piece with their encodings."""
    how, nothing = shared
    lines, rows = ([table for is_line, table in group[1] if is_line is wanted] for wanted in (True, False))
    return how.encode(lines, shuffle.join_tables(rows) if rows else nothing)


def select(named: dict[str, str], table: Any) -> Any:
    """Give some columns under their names."""
    return pa.table({name: table[column] for name, column in named.items()})


def no_lines(key: JoinedKey, dtype: str, rows: Any) -> Any:
    """Give the lines of a place that has none, with the types of rows."""
    encodings = pa.array([], pa.list_(pa.from_numpy_dtype(np.dtype(dtype))))
    return rows.select(key.columns).slice(0, 0).rename_columns(key.stored).append_column(shuffle.ENCODINGS, encodings)


def unused_prefix(names: Sequence[str]) -> str:
    """Give a beginning that no column's name has, whatever its case."""
    prefix = "_"
    while any(name.startswith(prefix) for name in names):
        prefix += "_"
    return prefix
