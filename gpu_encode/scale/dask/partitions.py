"""The arguments of a call: a Dask frame or a list of Delayed tables, and vectors with the same partitions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import accumulate
from typing import Any, Self

from gpu_encode.scale.dask.exchange import exchange, pack, released
from gpu_encode.scale.dask.trees import add_in_tree
from gpu_encode.scale.engines.checksums import checksum
from gpu_encode.scale.parts import Part
from gpu_encode.seam import devices
from gpu_encode.tables import frames
from gpu_encode.tables.frames import Frame
from gpu_encode.words.errors.tables import rows_have_changed

LIKE_X = "a Dask frame, series or array, or a list of Delayed objects, with as many partitions as X"

ROLES = ("y", "sample_weight", "groups")
# A name and a type: Dask needs them for collections, but never reads the partitions of these.
OPAQUE = ("partition", "int64")


@dataclass(frozen=True, eq=False)
class Partition(Part):
    """Rows of a partition; `select` gives them as an Arrow table, and messages use the partition's number.

    Parameters
    ----------
    number : int
    n_rows : int or None
        Number of rows, if they were counted.
    picked : list of str or None
        The columns that are read; None if X is used unchanged.
    checksums : dict of str to int, optional
        What the first pass found in it, as `checksums_of` says.
    """

    number: int = 0
    n_rows: int | None = None
    picked: Sequence[str] | None = None
    checksums: Mapping[str, int] | None = None

    def __len__(self) -> int:
        return frames.read(self.X).n_rows

    def select(self, names: Sequence[str]) -> Any:
        """Give an Arrow table on the host with the named columns, as far as they are read."""
        return in_arrow(self.X, [name for name in names if self.picked is None or name in self.picked])

    def check_unchanged(self) -> None:
        """Raise ValueError if the first pass read other rows, or other values in what this pass reads, too."""
        known = self.checksums
        if known is not None and any(known[role] != found for role, found in checksums_of(self, known).items()):
            raise rows_have_changed(f"{self.name} has rows, or values of rows,")


def blank(
    number: int,
    first_row: int,
    n_rows: int | None,
    picked: Sequence[str] | None,
    checksums: Mapping[str, int] | None = None,
) -> Partition:
    """Describe a partition whose rows Dask provides later."""
    return Partition(None, None, None, None, first_row, f"partition {number}", number, n_rows, picked, checksums)


def checksums_of(part: Partition, names: Iterable[Any]) -> dict[Any, int]:
    """Give the checksum of each of y, weights, groups and the named columns of X, as far as a partition has them."""
    frame, found = frames.read(part.X), {role: getattr(part, role) for role in ROLES}
    labels = [] if frame.labels is None else list(frame.labels)
    columns = {role: in_columns(data) for role, data in found.items() if data is not None and not devices.on_gpu(data)}
    for name in names:
        if name in labels and name not in ROLES and not devices.on_gpu(part.X):
            columns[name] = frame.assemble([], [], [labels.index(name)], "pyarrow").columns
    return {name: checksum(of_name, ordered=True) for name, of_name in columns.items()}


def in_columns(data: Any) -> list[Any]:
    """Give the columns of a vector or table on the host, as Arrow has them; labels of several types as text."""
    import pyarrow as pa

    if getattr(data, "ndim", 1) > 1 or isinstance(data, pa.Table):
        frame = frames.read(data)
        return list(frame.assemble([], [], list(range(frame.n_columns)), "pyarrow").columns)
    if hasattr(data, "to_arrow"):
        data = data.to_arrow()
    try:
        column = data if isinstance(data, pa.ChunkedArray) else pa.chunked_array([pa.array(data, from_pandas=True)])
    except pa.ArrowException:
        column = pa.chunked_array([pa.array(list(map(repr, data)))])
    return [column]


def run_on_partition(
    function: Callable[..., Any], X: Any, y: Any, weight: Any, groups: Any, part: Partition, *others: Any
) -> Any:
    """Call a function with its shared arguments and the `Partition` that a task has got from Dask."""
    *extra, shared = others
    given = replace(part, X=X, y=y, sample_weight=weight, groups=groups)
    given.check_unchanged()
    return function(shared, given, *extra)


@dataclass(frozen=True, eq=False)
class Partitions:
    """A table in partitions, with its vectors: the `gpu_encode.scale.engines.rows.Rows` of Dask.

    A function is called with the shared data, a `Partition`, and the partition's item of `extra` if that is given.

    Parameters
    ----------
    X : dask.dataframe.DataFrame, or list of Delayed
    vectors : list of Dask collections or lists of Delayed, or None
        y, weights, groups.
    lengths : sequence of int, optional
        Rows of each partition, once they were counted.
    checksums : sequence of dict, optional
        What the first pass found in each partition.
    extra : list of Delayed, optional
        One more argument for each partition.
    sample : table without rows, optional
        An empty table with the names and types of the original X.
    roles : sequence of str
        Names for the vectors, by which `pick` can select them.
    picked : list of str, optional
        The columns that are read.
    """

    X: Any
    vectors: list[Any]
    lengths: Sequence[int] | None = None
    extra: Sequence[Any] | None = None
    sample: Any = None
    roles: Sequence[str] = ROLES
    picked: Sequence[str] | None = None
    checksums: Sequence[Mapping[str, int]] | None = None

    engine = "Dask"

    @property
    def number(self) -> int:
        """Number of partitions."""
        return len(self.X)

    @property
    def first_rows(self) -> list[int]:
        """Number of the first row of each partition; all 0 until rows are counted."""
        return [0] * self.number if self.lengths is None else [0, *accumulate(self.lengths[:-1])]

    @property
    def names(self) -> list[str]:
        """Names of the sample's columns."""
        return names_of(frames.read(self.sample))

    @property
    def schema(self) -> Any:
        """Names and types of the sample's columns, as an Arrow schema."""
        return in_arrow(self.sample, self.names).schema

    def check_repeatable(self) -> None:
        """Do nothing: a partition that has changed is refused when it is read."""

    def pick(self, names: Sequence[str]) -> Self:
        """Give the same rows with some of the columns and vectors, at least one column, so that no others are read."""
        known = self.names
        found = [name for name in names if name in known] or known[:1]
        vectors = [data if role in names else None for role, data in zip(self.roles, self.vectors, strict=True)]
        return replace(self.with_columns(found), vectors=vectors, picked=found)

    def without_target(self) -> Self:
        """Give the same rows without target and weights, so that these are not read."""
        return replace(self, vectors=[None, None, self.vectors[2]])

    @property
    def column_names(self) -> list[Any] | None:
        """Labels of the columns; None if they are unknown until a table is computed."""
        return None

    def with_columns(self, _: Sequence[Any]) -> Self:
        """Give the same rows with some of the columns, if the tables can be read by column."""
        return self

    def samples(self) -> list[Any] | None:
        """Empty tables with the types of X and the vectors; None if these are unknown."""
        return None

    def add_up(self, function: Callable[[Any, Any], Any], shared: Any, nothing: Any = None) -> Any:  # noqa: ARG002
        """Add up the results of a function on all partitions now, in a tree."""
        import dask

        return dask.compute(add_in_tree(self.map(function, shared)))[0]

    def map(self, function: Callable[..., Any], shared: Any) -> list[Any]:
        """Give a Delayed of the result of a function on each partition."""
        raise NotImplementedError

    def table(self, function: Callable[..., Any], _meta: Any, shared: Any) -> Any:
        """Call a function on each partition lazily; the results are tables like `meta`, with the rows of X."""
        return self.map(function, shared)

    def deal(self, function: Callable[[Any, Any], dict[int, Any]], shared: Any, number: int) -> "Dealt":
        """Collect the results of a function on all partitions, bucket by bucket."""
        return Dealt(self, self.map(partial(deal_partition, function), shared), number)

    def task(self, function: Callable[..., Any], *known: Any) -> Callable[..., Any]:
        """Bind the first arguments of a function for Dask."""
        # If X is encoded unchanged, Arrow keeps little memory.
        return partial(function, *known) if self.picked is None else partial(released, function, *known)

    def _blanks(self) -> list[list[Any]]:
        """Give the arguments of `blank`, for all partitions."""
        lengths: Sequence[int | None] = self.lengths or [None] * self.number
        checksums: Sequence[Mapping[str, int] | None] = self.checksums or [None] * self.number
        return [list(range(self.number)), self.first_rows, list(lengths), [self.picked] * self.number, list(checksums)]


class Dealt:
    """The pieces that partitions gave for each bucket."""

    def __init__(self, rows: Partitions, packed: list[Any], number: int) -> None:
        self._rows, self._packed, self._number = rows, packed, number

    def map(self, function: Callable[[Any, Any], Any], shared: Any) -> list[Any]:
        """Give a Delayed of the result of a function on each bucket, which may be empty."""
        return exchange("buckets", self._packed, self._number, self._rows.task(gather_bucket, function), held(shared))


def deal_partition(function: Callable[[Any, Any], dict[int, Any]], shared: Any, part: Partition) -> Any:
    """Call a function on a partition, and pack its pieces for the buckets."""
    return pack(part.number, function(shared, part).items())


def gather_bucket(function: Callable[[Any, Any], Any], bucket: int, pieces: Sequence[Any], shared: Any) -> Any:
    """Call a function on the pieces that were packed for a bucket."""
    return function(shared, (bucket, [piece for _, piece in pieces]))


class FramePartitions(Partitions):
    """A Dask frame, of pandas or cuDF, with its vectors.

    Tasks are made by Dask's own expressions.  So Dask joins them with the tasks that read the partitions, reads only
    the columns that they need, and leaves out partitions of a result that are not asked for.
    """

    @property
    def column_names(self) -> list[Any]:
        """Labels of the columns."""
        return list(self.X.columns)

    def with_columns(self, names: Sequence[Any]) -> Self:
        """Give the same rows with some of the columns, so that no others are read."""
        return replace(self, X=self.X[list(names)])

    def samples(self) -> list[Any]:
        """Empty tables with the types of X and the vectors."""
        return [None if data is None else data._meta for data in (self.X, *self.vectors)]

    @property
    def number(self) -> int:
        """Number of partitions."""
        return int(self.X.npartitions)

    def map(self, function: Callable[..., Any], shared: Any) -> list[Any]:
        """Give a Delayed of the result of a function on each partition."""
        return list(self.table(function, OPAQUE, shared).to_delayed())

    def table(self, function: Callable[..., Any], meta: Any, shared: Any) -> Any:
        """Give a lazy frame of the results of a function on each partition: tables like `meta`, with the rows of X."""
        from dask.dataframe import from_map

        # A collection, since Dask's own number of a task starts again when partitions of a result are selected.
        blanks = from_map(blank, *self._blanks(), meta=OPAQUE)
        extra = [] if self.extra is None else [as_frame(self.extra, "extra")]
        given = [*self.vectors, blanks, *extra, held(shared)]
        task = self.task(run_on_partition, function)
        return self.X.map_partitions(task, *given, meta=meta, enforce_metadata=False, transform_divisions=False)


class ListPartitions(Partitions):
    """A list of Delayed tables of any kind, with its vectors."""

    def map(self, function: Callable[..., Any], shared: Any) -> list[Any]:
        """Give a Delayed of the result of a function on each table."""
        from dask import delayed

        task = delayed(self.task(run_on_partition, function), pure=False, traverse=False)
        shared = held(shared)
        vectors = [vector or [None] * self.number for vector in self.vectors]
        extra = [] if self.extra is None else [self.extra]
        blanks = list(map(blank, *self._blanks()))
        return [task(*given, shared) for given in zip(self.X, *vectors, blanks, *extra, strict=True)]


def read(X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Partitions:
    """Read the arguments of a call.

    Raises
    ------
    TypeError
        If an argument is not Dask's, or X is not a table.
    ValueError
        If a vector does not have as many partitions as X.
    """
    X, *given = (as_it_stands(data) if is_frame(data) else data for data in (X, y, sample_weight, groups))
    vectors = dict(zip(ROLES, given, strict=True))
    if is_frame(X):
        if getattr(X, "ndim", 0) != 2:
            raise ValueError(f"X is a {type(X).__name__} of Dask, which is no table. Make one of it: X.to_frame().")
        return FramePartitions(X, [read_vector(data, role, X.npartitions, as_frame) for role, data in vectors.items()])
    if not isinstance(X, (list, tuple)):
        raise TypeError(
            f"X is one {type(X).__name__} of Dask. Give a list of them, one for each partition: [X] for a single one."
        )
    tables = as_promises(X, "X")
    lists = [read_vector(data, role, len(tables), as_promises) for role, data in vectors.items()]
    return ListPartitions(tables, lists)


def read_vector(data: Any, role: str, number: int, convert: Callable[[Any, str], Any]) -> Any:
    """Convert a vector, after a check that it has as many partitions as X."""
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


def held(shared: Any) -> Any:
    """Give a Delayed of what tasks share, so that it is one node of the graph."""
    from dask import delayed
    from dask.delayed import Delayed

    return shared if isinstance(shared, Delayed) else delayed(shared, traverse=False)


def names_of(frame: Frame) -> list[str]:
    """Give the names of the columns: x0, x1 and so on if they have none."""
    if frame.labels is None:
        return [f"x{position}" for position in range(frame.n_columns)]
    for label in frame.labels:
        if not isinstance(label, str):
            raise TypeError(
                f'tables="shuffle" takes columns that are named by text. Got a column named {label!r} instead: rename '
                "it, X.columns = X.columns.astype(str)."
            )
    return list(frame.labels)


def in_arrow(X: Any, wanted: Sequence[str]) -> Any:
    """Give an Arrow table on the host with the wanted columns, as far as the table has them."""
    import pyarrow as pa

    frame = frames.read(X)
    known = names_of(frame)
    found = [name for name in wanted if name in known]
    table = frame.assemble([], [], [known.index(name) for name in found], "pyarrow") if found else pa.table({})
    return pa.table(list(table.columns), found)


def is_frame(data: Any) -> bool:
    """Whether data is a Dask frame or series."""
    return hasattr(data, "_meta") and hasattr(data, "divisions")


def as_it_stands(frame: Any) -> Any:
    """Give a frame that keeps its number of partitions.

    Dask joins partitions of Parquet files if few of their columns are needed.  It decides this when it computes, so
    each pass could have other partitions, and row numbers would not match.
    """
    from dask.dataframe.dask_expr.io import ReadParquet

    expression = frame.expr
    for reading in list(expression.find_operations(ReadParquet)):
        kind: Any = type(reading)
        expression = expression.substitute(reading, never_joined(kind)(*reading.operands))
    return type(frame)(expression)


@cache
def never_joined(kind: Any) -> Any:
    """Derive a kind of Parquet source (pandas' or cuDF's) whose partitions Dask does not join."""
    # Dask compares expressions by the names of their classes.
    return type(f"NeverJoined{kind.__name__}", (kind,), {"_tune_up": keep_partitions})


def keep_partitions(_source: Any, _parent: Any) -> None:
    """Give None, which tells Dask's optimiser that there is nothing to improve."""


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
        # Dask may already have joined the tasks of an array; it reports a circle when it joins them with others.
        return list(data.to_delayed(optimize_graph=False).ravel())
    for number, part in enumerate(data):
        if not isinstance(part, Delayed) and not type(part).__module__.startswith("distributed"):
            raise TypeError(
                f"{role}[{number}] is a {type(part).__name__}, among Delayed objects of Dask. Each partition must be "
                f"one: dask.delayed({role}[{number}])."
            )
    return [part if isinstance(part, Delayed) else delayed(part) for part in data]


def as_frame(data: Any, role: str) -> Any:
    """Give a Dask collection with the partitions of any kind of `data`."""
    from dask.dataframe import from_delayed

    return data if is_frame(data) else from_delayed(as_promises(data, role), meta=OPAQUE, verify_meta=False)
