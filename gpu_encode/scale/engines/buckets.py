"""Categories in buckets of an engine, by a hash: sums are added in the buckets, and rows get their encodings there.

Dask, whose rows have an order, uses the same steps to count and to add, but its own look-up.  In the other engines a
bucket with many rows is cut into pieces.  Each piece has all lines of the bucket and a share of its rows, so that
several workers can share the rows of a frequent category.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
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
from gpu_encode.scale.files.source import Reading
from gpu_encode.scale.parts import Part
from gpu_encode.tables import frames
from gpu_encode.tables.categories.distinct_counts import DistinctCount
from gpu_encode.tables.categories.hashes import hash_categories

# Numbers of buckets are powers of two, so counts for the most buckets can be added up to counts for fewer.
MOST_BUCKETS = 512
# About how many categories and rows a bucket has, as long as there are fewer than the most buckets.
CATEGORIES, ROWS = 1 << 16, 1 << 18
# Rows of a bucket that are looked up as one piece.
ROWS_OF_PIECE = 1 << 20
# Rows that are summed at once: each may be a category of its own, with several copies of its digits in memory.
ROWS_AT_ONCE = 1 << 18


@dataclass(frozen=True, eq=False)
class KeyCounts:
    """Counts of the keys of some rows; they can be added.

    Parameters
    ----------
    n_rows : int
    distinct : list of DistinctCount
        The categories of each key.
    by_bucket : int64 array (keys, MOST_BUCKETS)
        Number of rows.
    """

    n_rows: int
    distinct: list[DistinctCount]
    by_bucket: Array

    @classmethod
    def of(cls, keys: Sequence[Sequence[str]], table: Any) -> "KeyCounts":
        """Count some rows; each key has some of their columns."""
        distinct, by_bucket = [DistinctCount() for _ in keys], np.zeros((len(keys), MOST_BUCKETS), np.int64)
        for entry, columns in enumerate(keys if len(table) else ()):
            index, codes = index_of(table.select(list(columns)))
            hashes = hash_categories(index, shuffle.SEED)
            distinct[entry].add_hashes(hashes[:-1])
            by_bucket[entry] = np.bincount(buckets_of(hashes, MOST_BUCKETS)[codes], minlength=MOST_BUCKETS)
        return cls(len(table), distinct, by_bucket)

    def __add__(self, other: "KeyCounts") -> "KeyCounts":
        distinct = [mine + theirs for mine, theirs in zip(self.distinct, other.distinct, strict=True)]
        return KeyCounts(self.n_rows + other.n_rows, distinct, self.by_bucket + other.by_bucket)

    def categories(self) -> list[int]:
        """Estimate the number of categories of each key."""
        return [count.estimate() for count in self.distinct]

    def pieces(self) -> list[Array]:
        """Say for each key into how many pieces each of its buckets is cut."""
        number = number_of_buckets(max(self.categories()), self.n_rows)
        rows = self.by_bucket.reshape(len(self.distinct), -1, number).sum(axis=1)
        return [np.maximum(1, -(-of_key // ROWS_OF_PIECE)) for of_key in rows]


def number_of_buckets(n_categories: int, n_rows: int, most: int = MOST_BUCKETS) -> int:
    """Choose the number of buckets, a power of two."""
    wanted = max(ceil(n_categories / CATEGORIES), ceil(n_rows / ROWS), 1)
    return min(most, 1 << (wanted - 1).bit_length())


class Buckets(NamedTuple):
    """The buckets of all keys.

    Parameters
    ----------
    numbers : list of int
        Number of buckets of each key.
    together : bool
        Whether keys share the buckets; otherwise the buckets of all keys are numbered one after another.
    """

    numbers: list[int]
    together: bool = False

    @property
    def number(self) -> int:
        """Number of all buckets."""
        return self.numbers[0] if self.together else sum(self.numbers)

    @property
    def first(self) -> list[int]:
        """The first bucket of each key."""
        return [0 if self.together else sum(self.numbers[:entry]) for entry in range(len(self.numbers))]

    def key_of(self, bucket: int) -> int:
        """Give the key that owns a bucket."""
        return bisect_right(self.first, bucket) - 1


class InBuckets(NamedTuple):
    """Encodings, and the buckets in which rows look them up.

    Parameters
    ----------
    lines : table of the engine
        The lines of `shuffle.encode_lines`.
    pieces : list of int64 array
        For each key, into how many pieces each bucket is cut.
    """

    lines: Any
    pieces: list[Array]


class BucketShuffle:
    """Rows of an engine that can send them to buckets; subclasses say how the engine keeps and joins tables.

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
        """Estimate the number of categories of all keys, in a pass over their columns."""
        return sum(self._count(encoder).categories())

    def learn(self, encoder: Any, training: bool) -> tuple[ShuffledSums, InBuckets]:
        """Add up the sums of each category in its bucket, and encode the categories there, now."""
        shuffle.check_parameters(encoder, training)
        self._rows.check_repeatable()
        reading = calls.read_training(encoder, self._rows, *self._aside)
        shared, measured = calls.survey(encoder, self._rows, reading, training)
        pieces = self._count(encoder).pieces()
        buckets = Buckets([len(pieces[0])] * len(pieces), together=True)
        encoded = measured.deal(deal_sums, (shared, buckets), buckets.number).map(add_sums, shared)
        return shared, InBuckets(self.keep(encoded), pieces)

    def encode_training(self, shared: ShuffledSums, joined: Joined, encodings: InBuckets) -> Any:
        """Give the encodings of training rows, lazily."""
        others, view = joined.beside_training(shared.reading.roles.beside), unused_prefix(self._rows.schema.names)
        rows = self.rows_of(self._rows.map(shuffle.add_views, (shared, view)))
        nothing = shuffle.add_views((shared, view), self._nothing())
        return self._look_up(rows, nothing, joined, encodings, others, view)

    def encode_new(self, joined: Joined, encodings: InBuckets) -> Any:
        """Give the encodings of new rows, lazily."""
        others = joined.beside_new(calls.names_of(self._rows), in_order=False)
        return self._look_up(self._rows, self._nothing(), joined, encodings, others, None)

    def rows_of(self, table: Any) -> Rows:
        """Give the rows of a table of the engine."""
        raise NotImplementedError

    def together(self, dealt: Any, other: Any) -> Rows:
        """Put together the results of two calls of `Rows.deal`, bucket by bucket."""
        raise NotImplementedError

    def keep(self, lines: Any) -> Any:
        """Compute a table now, and keep it."""
        raise NotImplementedError

    def _nothing(self) -> Any:
        """Give an empty table with these columns."""
        return self._rows.schema.empty_table()

    def _count(self, encoder: Any) -> KeyCounts:
        """Count the categories of each key, and the rows of each bucket, in one pass."""
        if self._counts is None:
            self._counts = count_keys(encoder, self._rows, calls.read_training(encoder, self._rows, *self._aside))
        return self._counts

    def _look_up(
        self, rows: Rows, nothing: Any, joined: Joined, encodings: InBuckets, others: Sequence[str], view: str | None
    ) -> Any:
        """Bring rows and the encodings of each key together, lazily.

        Parameters
        ----------
        rows : Rows
        nothing : pyarrow.Table
            An empty table with the columns of these rows.
        joined : Joined
        encodings : InBuckets
        others : list of str
            Columns that follow the encodings.
        view : str or None
            The column with the views of training rows.
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


def count_keys(encoder: Any, rows: Rows, reading: Reading) -> KeyCounts:
    """Count the categories of each key, and the rows of each bucket, in a pass over the columns of keys."""
    keys = calls.columns_of_keys(encoder, rows, reading)
    measured = rows.pick(list(dict.fromkeys(name for key in keys for name in key)))
    total: KeyCounts = measured.add_up(KeyCounts.of, keys, KeyCounts.of(keys, ()))
    return total


def deal_sums(shared: tuple[ShuffledSums, Buckets], table: Any) -> dict[int, Any]:
    """Give for each bucket the lines of digits of some rows, a table for each key that has lines there; or an error."""
    (summed, buckets), dealt = shared, dict[int, list[Any]]()
    part, entries = summed.reading.part(table), summed.model.selection.entries
    # For folds that are dealt out within classes, it matters where a part begins.
    at_once = None if summed.encoding_plan.needs_labels else ROWS_AT_ONCE
    try:
        with part.named():
            for piece in in_pieces(part, at_once):
                for entry, lines in enumerate(shuffle.sum_part(summed, piece)):
                    for bucket, own in dealt_lines(lines, buckets.numbers[entry]):
                        # Columns of other keys are null; one table without lines tells their types.
                        of_bucket = dealt.setdefault(buckets.first[entry] + bucket, [own.slice(0, 0)])
                        of_bucket.append(shuffle.without_others(own, entries[entry].members))
    except (ValueError, TypeError) as error:
        if part.name is not None:
            raise
        return {0: calls.of_batch(error)}
    return dealt


def in_pieces(part: Part, n_rows: int | None) -> Iterator[Part]:
    """Divide a part into parts of so many rows."""
    total = frames.read(part.X).n_rows
    if n_rows is None or total <= n_rows:
        yield part
        return
    for start in range(0, total, n_rows):
        X, y, weight, groups = (
            cut(data, start, min(start + n_rows, total)) for data in (part.X, part.y, part.sample_weight, part.groups)
        )
        yield Part(X, y, weight, groups, part.first_row + start)


def cut(data: Any, start: int, stop: int) -> Any:
    """Give a range of rows of a table or vector of any library."""
    if hasattr(data, "iloc"):
        return data.iloc[start:stop]
    return data.slice(start, stop - start) if hasattr(data, "slice") else None if data is None else data[start:stop]


def add_sums(shared: ShuffledSums, group: tuple[int, Sequence[Any]]) -> Any:
    """Add up the lines of digits of a bucket, and encode its categories; give None if there are none."""
    by_columns = dict[tuple[str, ...], list[Any]]()
    for state in group[1]:
        if isinstance(state, Exception):
            raise state
        for table in state:
            by_columns.setdefault(tuple(table.column_names), []).append(table)
    if not by_columns:
        return None
    added = [shuffle.add_lines(alike) for alike in by_columns.values()]
    return shuffle.encode_lines(shared, pa.concat_tables(added, promote_options="permissive"))


@dataclass(frozen=True)
class LookUp:
    """How rows in buckets find the encodings of one key, in columns after their own.

    Parameters
    ----------
    entry : int
    key : JoinedKey
    dtype : str
    pieces : int64 array
        The number of pieces of each bucket.
    view : str or None
        The column with the views of training rows.
    names : list of str
        Names of the columns with encodings.
    """

    entry: int
    key: JoinedKey
    dtype: str
    pieces: Array
    view: str | None
    names: list[str]

    def number(self) -> int:
        """Give the number of pieces of all buckets."""
        return int(self.pieces.sum())

    def first_piece(self, bucket: int) -> int:
        """Give the number of the first piece of a bucket."""
        return int(self.pieces[:bucket].sum())

    def encode(self, lines: Sequence[Any], rows: Any) -> Any:
        """Give the rows of a piece with their encodings."""
        of_bucket = shuffle.join_tables(lines) if lines else no_lines(self.key, self.dtype, rows)
        return self.add_columns(BucketTable(self.key, of_bucket, self.dtype), rows)

    def add_columns(self, table: BucketTable, rows: Any) -> Any:
        """Give rows with the encodings that a table has for them."""
        views = None if self.view is None else rows[self.view].to_numpy()
        encodings = table.look_up(rows, views)
        for name, column in zip(self.names, encodings.T, strict=True):
            rows = rows.append_column(name, pa.array(np.ascontiguousarray(column)))
        return rows


def deal_rows(how: LookUp, table: Any) -> dict[int, tuple[bool, Any]]:
    """Give rows by piece; the pieces of a bucket get about equally many."""
    dealt = {}
    for bucket, at in rows_by_bucket(table, how.key.columns, len(how.pieces)).items():
        first = how.first_piece(bucket)
        for piece, of_piece in enumerate(np.array_split(at, how.pieces[bucket])):
            if len(of_piece):
                dealt[first + piece] = False, table.take(of_piece)
    return dealt


def deal_lines(how: LookUp, table: Any) -> dict[int, tuple[bool, Any]]:
    """Give lines by piece; each piece of a bucket gets all lines of the bucket."""
    dealt, own = {}, shuffle.of_entry(table, how.entry)
    for bucket, at in rows_by_bucket(own, how.key.stored, len(how.pieces)).items():
        first, of_bucket = how.first_piece(bucket), own.take(at)
        for piece in range(how.pieces[bucket]):
            dealt[first + piece] = True, of_bucket
    return dealt


def encode_piece(shared: tuple[LookUp, Any], group: Any) -> Any:
    """Give the rows of a piece with their encodings."""
    how, nothing = shared
    lines, rows = ([table for is_line, table in group[1] if is_line is wanted] for wanted in (True, False))
    return how.encode(lines, shuffle.join_tables(rows) if rows else nothing)


def select(named: dict[str, str], table: Any) -> Any:
    """Select some columns, and rename them."""
    return pa.table({name: table[column] for name, column in named.items()})


def no_lines(key: JoinedKey, dtype: str, rows: Any) -> Any:
    """Give the lines of a bucket without categories, with types that fit the rows."""
    encodings = pa.array([], pa.list_(pa.from_numpy_dtype(np.dtype(dtype))))
    return rows.select(key.columns).slice(0, 0).rename_columns(key.stored).append_column(shuffle.ENCODINGS, encodings)


def unused_prefix(names: Sequence[str]) -> str:
    """Find a prefix with which no column's name begins, in upper or lower case."""
    prefix = "_"
    while any(name.startswith(prefix) for name in names):
        prefix += "_"
    return prefix
