"""What a call was given: a Dask frame or a list of Delayed tables, and vectors in line with its partitions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

from gpu_encode.errors.distributed import vector_beside_dask

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

    @property
    def name(self) -> str:
        """What messages call the partition."""
        return f"partition {self.number}"


@dataclass(frozen=True, eq=False)
class FramePartitions:
    """A Dask frame, of pandas or cuDF, with its vectors.

    Tasks are made by Dask's own expressions, so that they are joined with those that read the partitions, read only
    the columns that they need, and follow the partitions where some are picked out of a result.

    Parameters
    ----------
    X : dask.dataframe.DataFrame
    vectors : list of dask.dataframe.Series or DataFrame, or None
        y, weights, groups.
    first_rows : sequence of int
        Number of the first row of each partition; all 0 as long as nobody has counted them.
    own : Dask collection, optional
        Anything else that each partition has of its own.
    """

    X: Any
    vectors: list[Any]
    first_rows: Sequence[int]
    own: Any = None

    @property
    def number(self) -> int:
        """How many partitions there are."""
        return int(self.X.npartitions)

    @property
    def column_names(self) -> list[Any]:
        """Labels of the columns."""
        return list(self.X.columns)

    def counted(self, first_rows: Sequence[int]) -> "FramePartitions":
        """Give the same with the number of the first row of each partition."""
        return replace(self, first_rows=first_rows)

    def with_columns(self, names: Sequence[Any]) -> "FramePartitions":
        """Give the same rows with some of the columns, so that no others are read."""
        return replace(self, X=self.X[list(names)])

    def without_target(self) -> "FramePartitions":
        """Give the same rows without target and weights, so that these are not read."""
        return replace(self, vectors=[None, None, self.vectors[2]])

    def samples(self) -> list[Any]:
        """Tables without rows that say what X and the vectors are made of."""
        return [None if each is None else each._meta for each in (self.X, *self.vectors)]

    def beside(self, own: Sequence[Any]) -> "FramePartitions":
        """Give the same with a Delayed for each partition, which a task gets after the vectors and the place."""
        return replace(self, own=as_frame(own, "own"))

    def mapped(self, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """Give a Delayed of what `function` makes of each partition."""
        return list(self.table(function, OPAQUE, *shared).to_delayed())

    def table(self, function: Callable[..., Any], meta: Any, *shared: Any) -> Any:
        """Give a lazy frame of what `function` makes of each partition: tables like `meta`, with the rows of X."""
        from dask.dataframe import from_map

        # A collection, not the number that Dask tells a task: that one starts anew where partitions are picked.
        places = from_map(Place, range(self.number), list(self.first_rows), meta=OPAQUE)
        own = [] if self.own is None else [self.own]
        return self.X.map_partitions(
            function, *self.vectors, places, *own, *shared, meta=meta, enforce_metadata=False, transform_divisions=False
        )


@dataclass(frozen=True, eq=False)
class ListPartitions:
    """A list of Delayed tables of any kind, with its vectors.

    Parameters
    ----------
    parts : list of Delayed
    vectors : list of (list of Delayed), or None
        y, weights, groups.
    first_rows : sequence of int
        Number of the first row of each table; all 0 as long as nobody has counted them.
    own : list of Delayed, optional
        Anything else that each table has of its own.
    """

    parts: list[Any]
    vectors: list[Any]
    first_rows: Sequence[int]
    own: list[Any] | None = None

    @property
    def number(self) -> int:
        """How many partitions there are."""
        return len(self.parts)

    @property
    def column_names(self) -> None:
        """Unknown before a table is there."""

    def counted(self, first_rows: Sequence[int]) -> "ListPartitions":
        """Give the same with the number of the first row of each table."""
        return replace(self, first_rows=first_rows)

    def with_columns(self, _: Sequence[Any]) -> "ListPartitions":
        """Give the same: nothing is known of how the tables are made."""
        return self

    def without_target(self) -> "ListPartitions":
        """Give the same tables without target and weights, so that these are not made."""
        return replace(self, vectors=[None, None, self.vectors[2]])

    def samples(self) -> None:
        """Nothing is known of the tables."""

    def beside(self, own: Sequence[Any]) -> "ListPartitions":
        """Give the same with a Delayed for each table, which a task gets after the vectors and the place."""
        return replace(self, own=list(own))

    def mapped(self, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """Give a Delayed of what `function` makes of each table."""
        from dask import delayed

        call = delayed(function, pure=False, traverse=False)
        vectors = [each or [None] * self.number for each in self.vectors]
        places = list(map(Place, range(self.number), self.first_rows))
        own = [] if self.own is None else [self.own]
        return [call(*given, *shared) for given in zip(self.parts, *vectors, places, *own, strict=True)]

    def table(self, function: Callable[..., Any], _: Any, *shared: Any) -> list[Any]:
        """Give a list of what `function` makes of each table, lazily."""
        return self.mapped(function, *shared)


Partitions = FramePartitions | ListPartitions


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
        own = [in_line(data, role, X.npartitions, as_frame) for role, data in vectors.items()]
        return FramePartitions(X, own, [0] * X.npartitions)
    if not isinstance(X, (list, tuple)):
        raise TypeError(
            f"X is one {type(X).__name__} of Dask. Give a list of them, one for each partition: [X] for a single one."
        )
    parts = as_promises(X, "X")
    own = [in_line(data, role, len(parts), as_promises) for role, data in vectors.items()]
    return ListPartitions(parts, own, [0] * len(parts))


def in_line(data: Any, role: str, number: int, converted: Callable[[Any, str], Any]) -> Any:
    """Give a vector in the form wanted, if it has as many partitions as X."""
    if data is None:
        return None
    if not (is_frame(data) or is_array(data) or isinstance(data, (list, tuple))):
        raise vector_beside_dask(role, type(data).__name__)
    found = converted(data, role)
    if (own := found.npartitions if is_frame(found) else len(found)) != number:
        raise ValueError(
            f"X has {number} partitions, and {role} has {own}. Rows match by position, partition by partition: take X "
            f"and {role} from one frame, or repartition both alike."
        )
    return found


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
    for found in list(expression.find_operations(ReadParquet)):
        kind: Any = type(found)
        expression = expression.substitute(found, never_joined(kind)(*found.operands))
    return type(frame)(expression)


@cache
def never_joined(kind: Any) -> Any:
    """Give a kind of Parquet source, pandas' or cuDF's, whose partitions Dask leaves alone."""
    # Dask tells expressions apart by the names of their classes.
    return type(f"NeverJoined{kind.__name__}", (kind,), {"_tune_up": left_alone})


def left_alone(_source: Any, _parent: Any) -> None:
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
