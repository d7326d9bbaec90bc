"""Tasks of Dask for categories that fit no process: lines and rows find places by a hash, and encodings come back."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from cpu_fallback.types import Array
from gpu_encode import frames
from gpu_encode.categories.distinct_counts import DistinctCount
from gpu_encode.datasets import memory, shuffle
from gpu_encode.datasets.look_up import (
    Joined,
    PlaceTable,
    dealt_lines,
    folder_of,
    index_of,
    lines_by_place,
    of_new_rows,
    rows_by_place,
)
from gpu_encode.datasets.shuffle import ShuffledSums
from gpu_encode.distributed.partitions import Partition
from gpu_encode.errors.pieces import rows_have_changed
from gpu_encode.errors.values import RowError
from gpu_encode.frames import Frame
from gpu_encode.parts import EncodingPlan, Part, PartialSums

# Rows that are summed at once: each may be a category of its own, whose digits are there a few times.
ROWS_AT_ONCE = 1 << 18
Task = TypeVar("Task", bound=Callable[..., Any])
ROW, VIEW, ALIKE = "row", "view", "alike"
# The number of a key, and of a place of its categories.
Place = tuple[int, int]


def released(task: Task) -> Task:
    """Make a task give back memory when it ends: what Arrow and the C library keep, Dask counts as in use."""

    @wraps(task)
    def releasing(*given: Any) -> Any:
        result = task(*given)
        memory.release()
        return result

    return releasing  # type: ignore[return-value]


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
    numbers : list of int
        Of each key, the number of its places.
    """

    names: list[str]
    wanted: list[str]
    lengths: list[int]
    numbers: list[int]


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
def deal_lines(part: Partition, shared: ShuffledSums, layout: Layout) -> dict[Place, Any]:
    """Give the digits of the categories of a partition, by place."""
    dealt = defaultdict(list)
    with part.named():
        whole = as_part(part, layout)
        # Folds within classes are dealt out by where a part begins.
        at_once = max(layout.lengths[part.number], 1) if shared.encoding_plan.needs_labels else ROWS_AT_ONCE
        for piece in in_pieces(whole, at_once):
            for entry, lines in enumerate(shuffle.sum_part(shared, piece)):
                for place, own in dealt_lines(lines, layout.numbers[entry]):
                    dealt[entry, place].append(own)
    return {place: shuffle.join_tables(lines) for place, lines in dealt.items()}


def select_place(dealt: dict[Place, Any], entry: int, place: int) -> Any:
    """Give what a partition has for one place; None if that is nothing."""
    return dealt.get((entry, place))


@released
def encode_place(dealt: Sequence[Any], shared: ShuffledSums) -> Any:
    """Add up the digits of the categories of a place, and encode these; None if there are none."""
    lines = join_lines(dealt)
    return None if lines is None else shuffle.encode_lines(shared, shuffle.add_lines([lines]))


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


def read_places(
    path: str, name: str, group: int, keys: Sequence[Sequence[str]], numbers: Sequence[int]
) -> dict[Place, Any]:
    """Read lines of a row group of a file, and give them by place."""
    with parquet.ParquetFile(name, filesystem=folder_of(path)[0]) as file:
        return dict(lines_by_place(file.read_row_group(group), keys, numbers))


def join_lines(dealt: Sequence[Any]) -> Any:
    """Give the lines of a place; None if there are none."""
    lines = [table for table in dealt if table is not None]
    return shuffle.join_tables(lines) if lines else None


@released
def deal_rows(part: Partition, joined: Joined, shared: ShuffledSums | None, layout: Layout) -> dict[Any, Any]:
    """Give what rows of a partition are looked up by, by place; of rows of one category and view, the first.

    Parameters
    ----------
    part : Partition
    joined : Joined
    shared : ShuffledSums, optional
        Of training rows, to find the view of each.
    layout : Layout

    Returns
    -------
    dict
        By place, a table of row numbers, views and values; and under `ALIKE`, by key, for each row the first of those
        that have its category and view.
    """
    views, n_rows = None, frames.read(part.X).n_rows
    if shared is not None:
        with part.named():
            given = as_part(part, layout)
            views = shuffle.view_of_rows(shared, given) if n_rows else np.zeros(0, np.int32)
    table, dealt, alike = in_arrow(part.X, layout.wanted), {}, []
    for entry, (key, number) in enumerate(zip(joined.keys, layout.numbers, strict=True)):
        values = table.select(key.columns)
        first, same = first_rows(values, views)
        alike.append(first[same])
        firsts = values.take(pa.array(first)).append_column(ROW, pa.array(first))
        if views is not None:
            firsts = firsts.append_column(VIEW, pa.array(views[first]))
        for place, rows in rows_by_place(firsts, key.columns, number).items():
            dealt[entry, place] = firsts.take(pa.array(rows))
    return {**dealt, ALIKE: alike}


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
    joined: Joined, entry: int, dealt: Sequence[Any], lines: Any, empty: Any
) -> list[tuple[Array, Array] | None]:
    """Look rows up in the encodings of a place; gives numbers of rows and their encodings by partition."""
    there = [number for number, table in enumerate(dealt) if table is not None]
    found: list[tuple[Array, Array] | None] = [None] * len(dealt)
    if not there:
        return found
    key, table = joined.keys[entry], shuffle.join_tables([dealt[number] for number in there])
    rows, ends = table[ROW].to_numpy(), np.cumsum([len(dealt[number]) for number in there])
    views = table[VIEW].to_numpy() if VIEW in table.column_names else None
    values = table.select(key.columns)
    try:
        encodings = PlaceTable(key, empty if lines is None else lines, joined.dtype).look_up(values, views)
    except RowError as error:
        number = there[int(np.searchsorted(ends, error.row, side="right"))]
        raise RowError(error.before, int(rows[error.row]), f" of partition {number}{error.after}") from error
    pieces = zip(np.split(rows, ends[:-1]), np.split(encodings, ends[:-1]), strict=True)
    for number, piece in zip(there, pieces, strict=True):
        found[number] = piece
    return found


def select_partition(found: Sequence[tuple[Array, Array] | None], number: int) -> tuple[Array, Array] | None:
    """Give what a place has found for one partition."""
    return found[number]


def select_alike(dealt: dict[Any, Any]) -> list[Array]:
    """Give for each row of a partition the first that has its category and view, by key."""
    return dealt[ALIKE]  # type: ignore[no-any-return]


def pair(found: Sequence[Any], alike: list[Array]) -> tuple[list[Array], Sequence[Any]]:
    """Give what `put_together` asks for of a partition."""
    return alike, found


@released
def put_together(
    part: Partition,
    returned: tuple[list[Array], Sequence[tuple[Array, Array] | None]],
    joined: Joined,
    numbers: Sequence[int],
    others: Sequence[str],
) -> Any:
    """Give the encodings of a partition that came back from all places, key by key, and other columns behind them."""
    alike, found = returned
    frame, arrays, start = frames.read(part.X), [], 0
    for key, number, first in zip(joined.keys, numbers, alike, strict=True):
        if len(first) != frame.n_rows:
            raise rows_have_changed(f"{part.name} has rows")
        encodings = np.empty((frame.n_rows, len(key.outputs)), joined.dtype, "F")
        for piece in found[start : start + number]:
            if piece is not None:
                encodings[piece[0]] = piece[1]
        arrays += list(encodings[first].T)
        start += number
    known = names_of(frame)
    return frame.assemble(joined.outputs, arrays, [known.index(name) for name in others])


def meta_of(frame: Frame, joined: Joined, others: Sequence[str]) -> Any:
    """Give an output without rows for a table without rows."""
    alike = [np.zeros(0, np.int32) for _ in joined.keys]
    return put_together(Partition(frame.as_given()), (alike, []), joined, [0] * len(alike), others)
