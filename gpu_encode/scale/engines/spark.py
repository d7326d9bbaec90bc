"""Spark: encoders take its frames as they take those of Dask, `fit(frame, y="clicked")`.

They are no Estimators of pyspark.ml.  Its Pipeline calls ``fit(frame).transform(frame)``, which gives training rows the
encodings of new rows, with their own target in them; training encodings have no place there.  And a fitted encoder is
one, whoever fitted it: it is saved in one file, and served without Spark.

Vectors beside a frame are names of its columns, since its rows have no order; columns that are not encoded come out as
they were, the target among them, since no other frame could be put beside the result.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self, TypeVar

import pyarrow as pa

from cpu_fallback.cached import cached_property
from gpu_encode.encoders.base import Encoder
from gpu_encode.scale import messages
from gpu_encode.scale.engines import calls

E = TypeVar("E", bound=Encoder)

STATE = "bucket int, state binary"
# Rows that are looked at together, and rows that are handed back together: neither changes a bit.
CHUNK, BATCH = 1 << 18, 1 << 16
# States that one task adds up, once there are no more of them than processors.
FAN_IN = 8
# Bytes in one cell of Arrow's.
LARGEST_CELL = 2**31 - 1
# Where a frame is far from the driver, and cannot tell how many processors there are.
PROCESSORS = 32


def fit(encoder: E, X: Any, y: Any = None, *, sample_weight: Any = None, groups: Any = None) -> E:
    """Learn the encodings of new rows: two passes over the frame, now.

    Parameters
    ----------
    encoder : TargetEncoder
    X : pyspark.sql.DataFrame
    y : str or list of str
        Columns of X that are learned from.
    sample_weight, groups : str, optional
        Columns of X.

    Returns
    -------
    encoder, fitted

    Raises
    ------
    ValueError, TypeError
        For bad input; the encoder is then as it was.
    MemoryError
        If the sums of all categories are more than Spark's driver takes.
    """
    return calls.fit(encoder, SparkRows(X), y, sample_weight, groups)


def fit_transform(encoder: Encoder, X: Any, y: Any = None, *, sample_weight: Any = None, groups: Any = None) -> Any:
    """Learn the encodings of new rows, now, and give the training encodings in a frame that is computed when asked for.

    Parameters
    ----------
    encoder, X, y, sample_weight, groups
        As in `fit`.  Those schemes serve that find by its values what a row sees, such as ``KFold(by="order_id")`` and
        ``Ordered(time="day")``.

    Returns
    -------
    pyspark.sql.DataFrame
        Encoded columns, columns that pass through, and those of y, weights and groups.
    """
    return calls.fit_transform(encoder, SparkRows(X), y, sample_weight, groups)


def transform(encoder: Encoder, X: Any) -> Any:
    """Give the encodings of new rows, in a frame that is computed when asked for; columns new to it come last."""
    return calls.transform(encoder, SparkRows(X))


def drift(encoder: Encoder, X: Any) -> list[dict[str, Any]]:
    """Compare new rows with those that the encoder has learned from, in one pass, now."""
    return calls.drift(encoder, SparkRows(X))


def partial_fit(*_: Any, **__: Any) -> None:
    """Refuse: encoders of frames are fitted and merged."""
    raise messages.not_added("Spark", "partial_fit")


def forget(*_: Any, **__: Any) -> None:
    """Refuse: frames are not taken out."""
    raise messages.not_added("Spark", "forget")


class SparkRows:
    """A frame of Spark, classic or of Spark Connect."""

    engine = "Spark"

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    @property
    def _context(self) -> Any:
        """What gives access to the cluster; None where that is behind Spark Connect."""
        return None if ".connect." in type(self._frame).__module__ else self._frame.sparkSession.sparkContext

    @cached_property
    def schema(self) -> Any:
        """Names and types of the columns, as Arrow has them."""
        from pyspark.sql.pandas.types import to_arrow_schema

        return to_arrow_schema(self._frame.schema, timezone="UTC")

    def check_repeatable(self) -> None:
        """Raise ValueError if each pass would draw or number rows anew."""
        if self._context is not None and not self._frame._jdf.queryExecution().analyzed().deterministic():
            raise ValueError(
                "X has values that Spark computes anew, and otherwise, in each pass (rand, uuid, "
                "monotonically_increasing_id and their like), so that rows could see their own target. Write X to a "
                "table and read that, or pass X.localCheckpoint()."
            )

    def pick(self, names: Sequence[str]) -> Self:
        """Give the same rows with some of the columns, so that no others are read."""
        return type(self)(self._frame.select(*map(quoted, names)))

    def add_up(self, function: Callable[[Any, Any], Any], shared: Any, nothing: Any) -> Any:
        """Add up what a function gives of all rows: where they lie, then by processor, then in a tree."""
        sent = self._send(shared)

        def of_tables(tables: Iterator[Any]) -> Iterator[Any]:
            from pyspark import TaskContext

            # What is told apart by its task here is a state, that may go anywhere.
            yield write(TaskContext.get().partitionId(), calls.add_tables(function, sent.value, tables, nothing))

        def of_states(batches: Iterator[Any]) -> Iterator[Any]:
            buckets: set[int] = set()
            total = calls.add_states(read(batches, buckets), nothing)
            if buckets:
                yield write(min(buckets), total)

        states = self._apply(of_tables, STATE)
        number = PROCESSORS if self._context is None else max(1, self._context.defaultParallelism)
        while True:
            # By the number of a state, since a lost task, done anew, must send each state where it was sent before.
            states = states.repartition(number, "bucket").mapInArrow(of_states, STATE)
            if number == 1:
                break
            number = -(-number // FAN_IN)
        total = calls.add_states(map(load, collect(states)), nothing)
        if isinstance(total, Exception):
            raise total
        return total

    def map(self, function: Callable[[Any, Any], Any], shared: Any) -> Any:
        """Give what a function gives of all rows, lazily."""
        from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
        from pyspark.sql.types import StructType

        sent, like = self._send(shared), function(shared, self._nothing())
        own = {field.name: field for field in self._frame.schema}
        given = dict(zip(self.schema.names, self.schema.types, strict=True))
        made = zip(like.schema, from_arrow_schema(like.schema), strict=True)
        # Columns that pass through keep what Spark knows of them.
        fields = [own[new.name] if given.get(new.name) == old.type else new for old, new in made]
        schema = to_arrow_schema(StructType(fields), timezone="UTC")

        def of_tables(tables: Iterator[Any]) -> Iterator[Any]:
            for table in tables:
                yield from function(sent.value, table).cast(schema).to_batches(max_chunksize=BATCH)

        return self._apply(of_tables, StructType(fields))

    def deal(self, function: Callable[[Any, Any], dict[int, Any]], shared: Any, number: int) -> "SparkGroups":  # noqa: ARG002
        """Bring together what a function gives of all rows for each bucket; Spark's settings say in how many tasks."""
        sent = self._send(shared)

        def of_tables(tables: Iterator[Any]) -> Iterator[Any]:
            for table in tables:
                for bucket, state in function(sent.value, table).items():
                    yield write(bucket, state)

        return SparkGroups(self._frame, self._apply(of_tables, STATE))

    def _nothing(self) -> Any:
        """Give what functions get where there are no rows."""
        return self.schema.empty_table()

    def _apply(self, function: Callable[[Iterator[Any]], Iterator[Any]], schema: Any) -> Any:
        """Give the frame of the batches that a function gives of tables."""
        return self._frame.mapInArrow(lambda batches: function(join(batches)), schema)

    def _send(self, value: Any) -> Any:
        """Give an object that travels with tasks, and whose `value` each worker reads once."""
        return Held(value) if self._context is None else self._context.broadcast(value)


class SparkGroups(SparkRows):
    """What was given for each bucket, of rows of a frame."""

    def __init__(self, frame: Any, dealt: Any) -> None:
        super().__init__(frame)
        self._dealt = dealt

    def _nothing(self) -> Any:
        """Give what functions get where there are no rows."""
        return 0, []

    def _apply(self, function: Callable[[Iterator[Any]], Iterator[Any]], schema: Any) -> Any:
        """Give the frame of the batches that a function gives of groups."""
        from pyspark.sql.pandas.types import to_arrow_schema
        from pyspark.sql.types import StructType

        like = to_arrow_schema(StructType.fromDDL(schema) if isinstance(schema, str) else schema, timezone="UTC")

        def of_group(cells: Any) -> Any:
            buckets: set[int] = set()
            states = list(read(cells.to_batches(), buckets))
            for state in states:
                if isinstance(state, Exception):
                    raise state
            return pa.Table.from_batches(list(function(iter([(buckets.pop(), states)]))), like)

        return self._dealt.groupBy("bucket").applyInArrow(of_group, schema)


def quoted(name: str) -> str:
    """Give a column's name as Spark reads it, whatever letters it has."""
    return "`" + name.replace("`", "``") + "`"


class Held:
    """A value that travels with each task."""

    def __init__(self, value: Any) -> None:
        self.value = value


def join(batches: Iterator[Any]) -> Iterator[Any]:
    """Join batches to tables of many rows."""
    held: list[Any] = []
    for batch in batches:
        held.append(batch)
        if sum(map(len, held)) >= CHUNK:
            yield pa.Table.from_batches(held)
            held = []
    if any(map(len, held)):
        yield pa.Table.from_batches(held)


def write(bucket: int, state: Any) -> Any:
    """Write a state, or an error instead, as a row: as Spark sends functions, between its own processes."""
    from pyspark.serializers import CPickleSerializer

    written = CPickleSerializer().dumps(state)
    if len(written) > LARGEST_CELL:
        gib = len(written) / 2**30
        written = CPickleSerializer().dumps(
            ValueError(
                f"The sums of some rows take {gib:.1f} GiB, and a cell of Spark holds 2. Encode fewer categories at a "
                "time (columns=), or in fewer folds; or write files and call encode_dataset with a memory_limit."
            )
        )
    cells = [pa.array([bucket], pa.int32()), pa.array([written], pa.binary())]
    return pa.record_batch(cells, names=["bucket", "state"])


def load(written: Any) -> Any:
    """Read a state."""
    from pyspark.serializers import CPickleSerializer

    return CPickleSerializer().loads(bytes(written))


def read(batches: Iterator[Any], buckets: set[int]) -> Iterator[Any]:
    """Read the states of rows, one after the other; `buckets` takes their numbers."""
    for batch in batches:
        for bucket, state in zip(batch["bucket"], batch["state"], strict=True):
            buckets.add(bucket.as_py())
            yield load(state.as_buffer())


def collect(states: Any) -> list[Any]:
    """Bring the last state to the driver."""
    try:
        return [row.state for row in states.collect()]
    except Exception as error:
        text = str(error)
        if "maxResultSize" not in text and "OutOfMemoryError" not in text:
            raise
        raise MemoryError(
            "The sums of all categories are more than Spark's driver takes. Start the session with more "
            "spark.driver.maxResultSize and spark.driver.memory; or encode fewer categories at a time (columns=)."
        ) from error
