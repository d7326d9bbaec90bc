"""What a call was given: a Dask frame or a list of Delayed tables, and vectors in line with its partitions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, NamedTuple, Self

from gpu_encode.scale.parts import Part

LIKE_X = "a Dask frame, series or array, or a list of Delayed objects, with as many partitions as X"

ROLES = ("y", "sample_weight", "groups")
# A name and a type, which Dask wants to know of collections whose partitions it never looks into.
OPAQUE = ("partition", "int64")


class Place(NamedTuple):
    """Which partition a task is about, and where its rows stand among all rows.

    Parameters
    ----------
    number : int
    first_row : int
        Number of rows in the partitions before.
    """

    number: int
    first_row: int


@dataclass(frozen=True, eq=False)
class Partition(Part):
    """Rows of a partition; messages call it by its number."""

    number: int = 0


def run_on_partition(
    function: Callable[..., Any], X: Any, y: Any, sample_weight: Any, groups: Any, place: Place, *others: Any
) -> Any:
    """Call a function of a `Partition` with what Dask hands to a task."""
    name = f"partition {place.number}"
    return function(Partition(X, y, sample_weight, groups, place.first_row, name, place.number), *others)


@dataclass(frozen=True, eq=False)
class Partitions:
    """A table in partitions, with its vectors.

    Parameters
    ----------
    X : dask.dataframe.DataFrame, or list of Delayed
    vectors : list of Dask collections or lists of Delayed, or None
        y, weights, groups.
    first_rows : sequence of int
        Number of the first row of each partition; all 0 as long as nobody has counted them.
    extra : list of Delayed, optional
        One more argument for each partition, which a task gets after the partition.
    """

    X: Any
    vectors: list[Any]
    first_rows: Sequence[int]
    extra: Sequence[Any] | None = None

    @property
    def number(self) -> int:
        """How many partitions there are."""
        return len(self.first_rows)

    def without_target(self) -> Self:
        """Give the same rows without target and weights, so that these are not read."""
        return replace(self, vectors=[None, None, self.vectors[2]])

    @property
    def column_names(self) -> list[Any] | None:
        """Labels of the columns; None where they are unknown before a table is there."""
        return None

    def with_columns(self, _: Sequence[Any]) -> Self:
        """Give the same rows with some of the columns, where tables can be read by column."""
        return self

    def samples(self) -> list[Any] | None:
        """Tables without rows that say what X and the vectors are made of; None where nothing is known."""
        return None

    def map(self, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """Give a Delayed of what `function` makes of each partition."""
        raise NotImplementedError

    def table(self, function: Callable[..., Any], _meta: Any, *shared: Any) -> Any:
        """Give what `function` makes of each partition, lazily: tables like `meta`, with the rows of X."""
        return self.map(function, *shared)


class FramePartitions(Partitions):
    """A Dask frame, of pandas or cuDF, with its vectors.

    Tasks are made by Dask's own expressions, so that they are joined with those that read the partitions, read only
    the columns that they need, and follow the partitions where some are picked out of a result.
    """

    @property
    def column_names(self) -> list[Any]:
        """Labels of the columns."""
        return list(self.X.columns)

    def with_columns(self, names: Sequence[Any]) -> Self:
        """Give the same rows with some of the columns, so that no others are read."""
        return replace(self, X=self.X[list(names)])

    def samples(self) -> list[Any]:
        """Tables without rows that say what X and the vectors are made of."""
        return [None if data is None else data._meta for data in (self.X, *self.vectors)]

    def map(self, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """Give a Delayed of what `function` makes of each partition."""
        return list(self.table(function, OPAQUE, *shared).to_delayed())

    def table(self, function: Callable[..., Any], meta: Any, *shared: Any) -> Any:
        """Give a lazy frame of what `function` makes of each partition: tables like `meta`, with the rows of X."""
        from dask.dataframe import from_map

        # A collection, not the number that Dask tells a task: that one starts anew where partitions are picked.
        places = from_map(Place, range(self.number), list(self.first_rows), meta=OPAQUE)
        extra = [] if self.extra is None else [as_frame(self.extra, "extra")]
        task = partial(run_on_partition, function)
        return self.X.map_partitions(
            task, *self.vectors, places, *extra, *shared, meta=meta, enforce_metadata=False, transform_divisions=False
        )


class ListPartitions(Partitions):
    """A list of Delayed tables of any kind, with its vectors."""

    def map(self, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """Give a Delayed of what `function` makes of each table."""
        from dask import delayed

        task = delayed(partial(run_on_partition, function), pure=False, traverse=False)
        vectors = [vector or [None] * self.number for vector in self.vectors]
        places = list(map(Place, range(self.number), self.first_rows))
        extra = [] if self.extra is None else [self.extra]
        return [task(*given, *shared) for given in zip(self.X, *vectors, places, *extra, strict=True)]


def read(X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Partitions:
    """Read what a call was given.

    Raises
    ------
    TypeError
        If something is not Dask's, or no table.
    ValueError
        If there are more or fewer partitions of a vector than of X.
    """
    X, *given = (as_it_stands(data) if is_frame(data) else data for data in (X, y, sample_weight, groups))
    vectors = dict(zip(ROLES, given, strict=True))
    if is_frame(X):
        if getattr(X, "ndim", 0) != 2:
            raise ValueError(f"X is a {type(X).__name__} of Dask, which is no table. Make one of it: X.to_frame().")
        frames = [read_vector(data, role, X.npartitions, as_frame) for role, data in vectors.items()]
        return FramePartitions(X, frames, [0] * X.npartitions)
    if not isinstance(X, (list, tuple)):
        raise TypeError(
            f"X is one {type(X).__name__} of Dask. Give a list of them, one for each partition: [X] for a single one."
        )
    tables = as_promises(X, "X")
    lists = [read_vector(data, role, len(tables), as_promises) for role, data in vectors.items()]
    return ListPartitions(tables, lists, [0] * len(tables))


def read_vector(data: Any, role: str, number: int, convert: Callable[[Any, str], Any]) -> Any:
    """Give a vector in the form wanted, if it has as many partitions as X."""
    if data is None:
        return None
    if not (is_frame(data) or is_array(data) or isinstance(data, (list, tuple))):
        raise TypeError(
            f"X is in partitions of Dask, and {role} is a {type(data).__name__}. Give {role} as {LIKE_X}: a column of "
            f"the frame that X was taken from, or dask.array.from_array({role}, chunks=...) with a chunk for each "
            "partition."
        )
    vector = convert(data, role)
    if (n_partitions := vector.npartitions if is_frame(vector) else len(vector)) != number:
        raise ValueError(
            f"X has {number} partitions, and {role} has {n_partitions}. Rows match by position, partition by "
            f"partition: take X and {role} from one frame, or repartition both alike."
        )
    return vector


def is_frame(data: Any) -> bool:
    """Whether data is a Dask frame or series."""
    return hasattr(data, "_meta") and hasattr(data, "divisions")


def as_it_stands(frame: Any) -> Any:
    """Give the frame with the partitions that it says it has.

    Dask joins those of Parquet files where few of their columns are wanted, which it finds out when it computes: other
    ones in each pass, so that the numbers of their rows would not fit.
    """
    from dask.dataframe.dask_expr.io import ReadParquet

    expression = frame.expr
    for reading in list(expression.find_operations(ReadParquet)):
        kind: Any = type(reading)
        expression = expression.substitute(reading, never_joined(kind)(*reading.operands))
    return type(frame)(expression)


@cache
def never_joined(kind: Any) -> Any:
    """Give a kind of Parquet source, pandas' or cuDF's, whose partitions Dask leaves alone."""
    # Dask tells expressions apart by the names of their classes.
    return type(f"NeverJoined{kind.__name__}", (kind,), {"_tune_up": keep_partitions})


def keep_partitions(_source: Any, _parent: Any) -> None:
    """Have nothing to improve, as Dask's expressions say it."""


def is_array(data: Any) -> bool:
    """Whether data is a Dask array."""
    return type(data).__module__.startswith("dask.array")


def as_promises(data: Any, role: str) -> list[Any]:
    """Give a Delayed for each partition."""
    from dask import delayed
    from dask.delayed import Delayed

    if is_frame(data):
        return list(data.to_delayed())
    if is_array(data):
        if data.ndim > 1 and data.numblocks[1] > 1:
            raise ValueError(
                f"{role} is a Dask array with {data.numblocks[1]} chunks of columns. Put its columns together: "
                f"{role}.rechunk({{1: -1}})."
            )
        # Tasks that Dask has joined for an array it finds in a circle when it joins them with others.
        return list(data.to_delayed(optimize_graph=False).ravel())
    for number, part in enumerate(data):
        if not isinstance(part, Delayed) and not type(part).__module__.startswith("distributed"):
            raise TypeError(
                f"{role}[{number}] is a {type(part).__name__}, among Delayed objects of Dask. Each partition must be "
                f"one: dask.delayed({role}[{number}])."
            )
    return [part if isinstance(part, Delayed) else delayed(part) for part in data]


def as_frame(data: Any, role: str) -> Any:
    """Give a Dask collection whose partitions are those of `data`, whatever these are."""
    from dask.dataframe import from_delayed

    return data if is_frame(data) else from_delayed(as_promises(data, role), meta=OPAQUE, verify_meta=False)
