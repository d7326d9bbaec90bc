"""Tasks of Dask for categories that fit no process: lines and rows find places by a hash, and encodings come back."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from cpu_fallback.types import Array
from gpu_encode.scale.dask.exchange import pack
from gpu_encode.scale.dask.partitions import Partition
from gpu_encode.scale.files import memory, shuffle
from gpu_encode.scale.files.look_up import (
    BucketTable,
    Joined,
    dealt_lines,
    folder_of,
    index_of,
    lines_by_bucket,
    of_new_rows,
    rows_by_bucket,
)
from gpu_encode.scale.files.shuffle import ShuffledSums
from gpu_encode.scale.parts import EncodingPlan, Part, PartialSums
from gpu_encode.tables import frames
from gpu_encode.tables.categories.distinct_counts import DistinctCount
from gpu_encode.tables.frames import Frame
from gpu_encode.words.errors.tables import rows_have_changed
from gpu_encode.words.errors.values import RowError

# Rows that are summed at once: each may be a category of its own, whose digits are there a few times.
ROWS_AT_ONCE = 1 << 18
Task = TypeVar("Task", bound=Callable[..., Any])
ROW, VIEW = "row", "view"


def released(task: Task) -> Task:
    """Make a task give back memory when it ends: what Arrow and the C library keep, Dask counts as in use."""

    @wraps(task)
    def releasing(*given: Any) -> Any:
        result = task(*given)
        memory.release()
        return result

    return releasing  # type: ignore[return-value]


class Places(NamedTuple):
    """Places of all keys, counted one after the other.

    Parameters
    ----------
    numbers : list of int
        Of each key, how many it has.
    """

    numbers: list[int]

    @property
    def first(self) -> list[int]:
        """The first place of each key."""
        return [sum(self.numbers[:entry]) for entry in range(len(self.numbers))]

    def key_of(self, place: int) -> int:
        """Give the number of the key that has a place."""
        return bisect_right(self.first, place) - 1


class Layout(NamedTuple):
    """Where rows and categories lie.

    Parameters
    ----------
    names : list of str
        All columns of X.
    wanted : list of str
        Those that are read.
    lengths : list of int
        Rows of each partition.
    places : Places
    """

    names: list[str]
    wanted: list[str]
    lengths: list[int]
    places: Places


def names_of(frame: Frame) -> list[str]:
    """Give the names of the columns: x0, x1 and so on where they have none."""
    if frame.labels is None:
        return [f"x{position}" for position in range(frame.n_columns)]
    for label in frame.labels:
        if not isinstance(label, str):
            raise TypeError(
                f'tables="shuffle" takes columns that are named by text. Got a column named {label!r} instead: rename '
                "it, X.columns = X.columns.astype(str)."
            )
    return list(frame.labels)


def no_rows(part: Partition) -> Any:
    """Give the table of a partition without its rows."""
    return frames.read(part.X).without_rows().as_given()


def in_arrow(X: Any, wanted: Sequence[str]) -> Any:
    """Give some columns of a table, those that it has, as a table of Arrow on the host."""
    frame = frames.read(X)
    known = names_of(frame)
    found = [name for name in wanted if name in known]
    table = frame.assemble([], [], [known.index(name) for name in found], "pyarrow") if found else pa.table({})
    return pa.table(list(table.columns), found)


def features_in_arrow(X: Any, layout: Layout) -> Any:
    """Give all columns of a table as those of Arrow; those that are not wanted are null, and keep positions."""
    table, n_rows = in_arrow(X, layout.wanted), frames.read(X).n_rows
    columns = [table[name] if name in table.column_names else pa.nulls(n_rows) for name in layout.names]
    return pa.table(columns, layout.names)


def in_pieces(part: Part, n_rows: int) -> Iterator[Part]:
    """Give a part in parts of so many rows; one of no rows where there are none."""
    total = frames.read(part.X).n_rows
    for start in range(0, max(total, 1), n_rows):
        X, y, weight, groups = (
            cut(data, start, min(start + n_rows, total)) for data in (part.X, part.y, part.sample_weight, part.groups)
        )
        yield Part(X, y, weight, groups, part.first_row + start)


def cut(data: Any, start: int, stop: int) -> Any:
    """Give some rows of a table or vector of any library."""
    if hasattr(data, "iloc"):
        return data.iloc[start:stop]
    return data.slice(start, stop - start) if hasattr(data, "slice") else None if data is None else data[start:stop]


def as_part(part: Partition, layout: Layout) -> Part:
    """Give a partition as it is summed, if it has as many rows as before."""
    if frames.read(part.X).n_rows != layout.lengths[part.number]:
        raise rows_have_changed(f"{part.name} has rows")
    return replace(part, X=features_in_arrow(part.X, layout))


@released
def count_partition(part: Partition, keys: Sequence[Sequence[str]]) -> list[DistinctCount]:
    """Count about how many categories of each key, given by its columns, a partition has."""
    table, counts = in_arrow(part.X, list(dict.fromkeys(name for key in keys for name in key))), []
    for key in keys:
        counts.append(DistinctCount())
        if len(table):
            counts[-1].add(index_of(table.select(list(key)))[0])
    return counts


def add_counts(counts: Sequence[Sequence[DistinctCount]]) -> list[DistinctCount]:
    """Add up counts of categories."""
    return [sum(of_key[1:], of_key[0]) for of_key in zip(*counts, strict=True)]


def total_partition(part: Partition, blind: EncodingPlan, layout: Layout) -> PartialSums:
    """Sum the rows of a partition, whatever their categories."""
    with part.named():
        return shuffle.total_part(blind, as_part(part, layout))


@released
def deal_lines(part: Partition, shared: ShuffledSums, layout: Layout) -> Any:
    """Pack the digits of the categories of a partition for their places."""
    dealt = defaultdict(list)
    with part.named():
        whole = as_part(part, layout)
        # Folds within classes are dealt out by where a part begins.
        at_once = max(layout.lengths[part.number], 1) if shared.encoding_plan.needs_labels else ROWS_AT_ONCE
        for piece in in_pieces(whole, at_once):
            # There are no lines of no rows.
            for entry, lines in enumerate(shuffle.sum_part(shared, piece)):
                for place, own in dealt_lines(lines, layout.places.numbers[entry]):
                    dealt[layout.places.first[entry] + place].append(own)
    return pack(part.number, ((place, shuffle.join_tables(lines)) for place, lines in dealt.items()))


@released
def encode_place(_: int, dealt: Sequence[tuple[int, Any]], shared: ShuffledSums) -> Any:
    """Add up the digits of the categories of a place, and encode these; None if there are none."""
    return shuffle.encode_lines(shared, shuffle.add_lines([lines for _, lines in dealt])) if dealt else None


def schema_of(lines: Any) -> Any:
    """Give the types of the columns of a place; None if it has no categories."""
    return None if lines is None else lines.schema


def joint_schema(schemas: Sequence[Any]) -> Any:
    """Give the types of the lines of all places, which differ by the values that each happens to have."""
    return pa.unify_schemas([schema for schema in schemas if schema is not None], promote_options="permissive")


def write_place(lines: Any, joined: Joined, schema: Any, path: str, number: int) -> None:
    """Write what new rows need of a place to a file, in the types that all places have; nothing where there is none."""
    if lines is not None:
        filesystem, folder = folder_of(path)
        table = of_new_rows(joined, lines).cast(schema)
        parquet.write_table(table, f"{folder}/encodings/part-{number}.parquet", filesystem=filesystem)


def read_places(path: str, name: str, group: int, number: int, keys: Sequence[Sequence[str]], places: Places) -> Any:
    """Read lines of a row group of a file, and pack them for their places."""
    with parquet.ParquetFile(name, filesystem=folder_of(path)[0]) as file:
        by_place = lines_by_bucket(file.read_row_group(group), keys, places.numbers)
        return pack(number, ((places.first[entry] + place, lines) for (entry, place), lines in by_place))


def join_lines(_: int, dealt: Sequence[tuple[int, Any]]) -> Any:
    """Give the lines of a place; None if there are none."""
    return shuffle.join_tables([lines for _, lines in dealt]) if dealt else None


@released
def deal_rows(part: Partition, joined: Joined, shared: ShuffledSums | None, layout: Layout) -> tuple[Any, list[Array]]:
    """Pack what rows of a partition are looked up by, for places; of rows of one category and view, the first.

    Parameters
    ----------
    part : Partition
    joined : Joined
    shared : ShuffledSums, optional
        Of training rows, to find the view of each.
    layout : Layout

    Returns
    -------
    pandas.DataFrame
        For each place a table of row numbers, views and values, packed.
    list of int32 array
        By key, for each row the first of those that have its category and view.
    """
    views, n_rows = None, frames.read(part.X).n_rows
    if shared is not None:
        with part.named():
            given = as_part(part, layout)
            views = shuffle.view_of_rows(shared, given) if n_rows else np.zeros(0, np.int32)
    table, dealt, alike = in_arrow(part.X, layout.wanted), list[tuple[int, Any]](), []
    for key, start, number in zip(joined.keys, layout.places.first, layout.places.numbers, strict=True):
        values = table.select(key.columns)
        first, same = first_rows(values, views)
        alike.append(first[same])
        firsts = values.take(pa.array(first)).append_column(ROW, pa.array(first))
        if views is not None:
            firsts = firsts.append_column(VIEW, pa.array(views[first]))
        for place, rows in rows_by_bucket(firsts, key.columns, number).items():
            dealt.append((start + place, firsts.take(pa.array(rows))))
    return pack(part.number, dealt), alike


def first_rows(values: Any, views: Array | None) -> tuple[Array, Array]:
    """Find the first row of each category and view, and for every row the place of its own among these."""
    if not len(values):
        return np.zeros(0, np.int32), np.zeros(0, np.int32)
    codes = index_of(values)[1].astype(np.int64)
    if views is not None:
        codes = codes * (int(views.max()) + 1) + views
    _, first, same = np.unique(codes, return_index=True, return_inverse=True)
    return first.astype(np.int32), same.astype(np.int32)


@released
def look_up_place(
    place: int, dealt: Sequence[tuple[int, Any]], lines: Any, joined: Joined, places: Places, empty: Any
) -> Any:
    """Look rows up in the encodings of a place; packs numbers of rows and their encodings for their partitions."""
    if not dealt:
        return pack(place, ())
    partitions, tables = zip(*dealt, strict=True)
    key, table = joined.keys[places.key_of(place)], shuffle.join_tables(tables)
    rows, ends = table[ROW].to_numpy(), np.cumsum([len(own) for own in tables])
    views = table[VIEW].to_numpy() if VIEW in table.column_names else None
    values = table.select(key.columns)
    try:
        encodings = BucketTable(key, empty if lines is None else lines, joined.dtype).look_up(values, views)
    except RowError as error:
        number = partitions[int(np.searchsorted(ends, error.row, side="right"))]
        raise RowError(error.before, int(rows[error.row]), f" of partition {number}{error.after}") from error
    pieces = zip(np.split(rows, ends[:-1]), np.split(encodings, ends[:-1]), strict=True)
    return pack(place, zip(partitions, pieces, strict=True))


def pair(_: int, found: Sequence[tuple[int, Any]], alike: list[Array]) -> tuple[list[Array], Sequence[Any]]:
    """Give what `put_together` asks for of a partition."""
    return alike, found


@released
def put_together(
    part: Partition,
    returned: tuple[list[Array], Sequence[tuple[int, tuple[Array, Array]]]],
    joined: Joined,
    places: Places,
    others: Sequence[str],
) -> Any:
    """Give the encodings of a partition that came back from all places, and other columns behind them."""
    alike, found = returned
    frame = frames.read(part.X)
    if any(len(first) != frame.n_rows for first in alike):
        raise rows_have_changed(f"{part.name} has rows")
    by_key = [np.empty((frame.n_rows, len(key.outputs)), joined.dtype, "F") for key in joined.keys]
    missing = [np.ones(frame.n_rows, bool) for _ in joined.keys]
    for place, (rows, encodings) in found:
        entry = places.key_of(place)
        by_key[entry][rows] = encodings
        missing[entry][rows] = False
    if any(none[first].any() for none, first in zip(missing, alike, strict=True)):
        raise RuntimeError(f"Dask's shuffle has lost encodings of {part.name}.")
    arrays = [column for encodings, first in zip(by_key, alike, strict=True) for column in encodings[first].T]
    known = names_of(frame)
    return frame.assemble(joined.outputs, arrays, [known.index(name) for name in others])


def meta_of(frame: Frame, joined: Joined, others: Sequence[str]) -> Any:
    """Give an output without rows for a table without rows."""
    alike = [np.zeros(0, np.int32) for _ in joined.keys]
    return put_together(Partition(frame.as_given()), (alike, []), joined, Places([]), others)
