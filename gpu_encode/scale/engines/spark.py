"""Spark: the rows of its frames, `fit(frame, y="clicked")`.

A fitted encoder is the same object whichever engine fitted it: it is saved in one file, and used without Spark.
"""

import gc
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Self

import pyarrow as pa

from cpu_fallback.cached import cached_property
from gpu_encode.scale.engines import calls

STATE = "bucket int, state binary"
# Rows that are processed together, and rows that are returned together; neither changes any bit.
CHUNK, BATCH = 1 << 18, 1 << 16
# States that one task adds up, once there are at most as many as processors.
FAN_IN = 8
# Most bytes in one cell of an Arrow column.
LARGEST_CELL = 2**31 - 1
# Rows of a range, which Spark divides by the number of its processors; more than there are.
ROWS_OF_RANGE = 1 << 16
# Small partitions are joined to so many tasks for each processor, or to tasks of so many bytes.
TASKS, BYTES_OF_TASK, MOST_PARTITIONS = 4, 1 << 25, 1 << 20
# Steps that may give other rows, or number them otherwise, each time, by their names in Spark's plans.
CHOICES = {
    "AsOfJoin": "merge_asof",
    "AttachDistributedSequence": "zipWithIndex, or an index of pandas on Spark",
    "Deduplicate": "dropDuplicates",
    "DeduplicateWithinWatermark": "dropDuplicatesWithinWatermark",
    "GlobalLimit": "limit",
    "LocalLimit": "limit",
    "NearestByJoin": "nearestByJoin",
    "Offset": "offset",
    "Tail": "tail",
    "Sample": "sample or randomSplit",
}
# Functions whose results depend on which of several equal rows comes first, or on how rows are divided, and others
# that do not.
AMONG_TIES = re.compile(
    r"\b(row_number|ntile|lag|lead|nth_value|first|first_value|last|last_value|any_value|max_by|min_by|mode"
    r"|collect_list|collect_set|array_agg|listagg|string_agg|percentile_approx|approx_percentile|histogram_numeric"
    r"|approx_top_k\w*|kll_sketch_agg\w*)\("
)
# Functions that Spark calls deterministic, since they have one value in each pass.
CLOCK = re.compile(r"\b(now|current_timestamp|current_date|current_time|localtimestamp)\(")
RANKS = ("rank", "dense_rank", "percent_rank", "cume_dist")
FUNCTION_OF_WINDOW = re.compile(r"(\w+)\(.*windowspecdefinition\(")
ROWS_IN_ORDER = re.compile(r"specifiedwindowframe\(RowFrame, (?!unboundedpreceding\$\(\), unboundedfollowing\$\(\)\))")
# The property of a thread that Spark shows beside its jobs.
DESCRIPTION = "spark.job.description"


class SparkRows:
    """A frame of Spark, classic or of Spark Connect."""

    engine = "Spark"

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    @property
    def _context(self) -> Any:
        """The connection to the cluster; None with Spark Connect, which hides it."""
        return None if ".connect." in type(self._frame).__module__ else self._frame.sparkSession.sparkContext

    @cached_property
    def schema(self) -> Any:
        """Names and types of the columns, as an Arrow schema."""
        from pyspark.sql.pandas.types import to_arrow_schema

        check_names("X of Spark", self._frame.columns, self._frame.sparkSession)
        return to_arrow_schema(self._frame.schema, timezone="UTC")

    def check_repeatable(self) -> None:
        """Raise ValueError if each pass would draw values, read the clock, number rows or choose among rows anew."""
        if self._context is None:
            return
        plan = self._frame._jdf.queryExecution().analyzed()
        anew = None if plan.deterministic() else "rand, uuid, monotonically_increasing_id or their like"
        anew = anew or choice_of_rows(plan)
        if anew is not None:
            raise ValueError(
                f"X has rows or values that Spark chooses anew, and otherwise, in each pass ({anew}), so that "
                "rows could see their own target. Write X to a table and read that, or pass X.localCheckpoint(). "
                "X.persist() is not enough, since Spark computes the rows of a lost worker anew."
            )

    def pick(self, names: Sequence[str]) -> Self:
        """Give the same rows with some of the columns, so that no others are read."""
        return type(self)(self._frame.select(*map(quoted, names)))

    def add_up(self, function: Callable[[Any, Any], Any], shared: Any, nothing: Any) -> Any:
        """Add up the results of a function on all rows: where the rows are, then by processor, then in a tree."""
        if self._frame.isStreaming:
            raise TypeError("X is a stream of Spark, which has no end. Fit to a table; transform takes streams, too.")
        sent = self._send(shared)

        def of_tables(tables: Iterator[Any]) -> Iterator[Any]:
            from pyspark import TaskContext

            # `deal` would need the number of a bucket; here a state may go to any task.
            yield write(TaskContext.get().partitionId(), calls.add_tables(function, sent.value, tables, nothing))

        def of_states(batches: Iterator[Any]) -> Iterator[Any]:
            buckets: set[int] = set()
            total = calls.add_states(read(batches, buckets), nothing)
            if buckets:
                yield write(min(buckets), total)

        states = self._apply(of_tables, STATE)
        number = parallelism(self._frame.sparkSession)
        while True:
            # The number of a state decides its task: a lost task that runs again must send each state to the same task.
            states = states.repartition(number, "bucket").mapInArrow(of_states, STATE)
            if number == 1:
                break
            number = -(-number // FAN_IN)
        with described(self._context, function.__name__.removesuffix("_table")):
            total = calls.add_states(map(load, collect(states)), nothing)
        if isinstance(total, Exception):
            raise total
        return total

    def map(self, function: Callable[[Any, Any], Any], shared: Any) -> Any:
        """Call a function on all rows, lazily."""
        from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
        from pyspark.sql.types import StructType

        sent, like = self._send(shared), function(shared, self._nothing())
        check_names("The result", like.column_names, self._frame.sparkSession)
        own = {field.name: field for field in self._frame.schema}
        given = dict(zip(self.schema.names, self.schema.types, strict=True))
        made = zip(like.schema, from_arrow_schema(like.schema), strict=True)
        # Columns that pass through keep the types and metadata that they have in Spark.
        fields = [own[new.name] if given.get(new.name) == old.type else new for old, new in made]
        schema = to_arrow_schema(StructType(fields), timezone="UTC")

        def of_tables(tables: Iterator[Any]) -> Iterator[Any]:
            for table in tables:
                yield from function(sent.value, table).cast(schema).to_batches(max_chunksize=BATCH)

        return self._apply(of_tables, StructType(fields))

    def deal(self, function: Callable[[Any, Any], dict[int, Any]], shared: Any, number: int) -> "SparkGroups":  # noqa: ARG002
        """Collect the results of a function on all rows by bucket; Spark's settings decide the number of tasks."""
        sent = self._send(shared)

        def of_tables(tables: Iterator[Any]) -> Iterator[Any]:
            for table in tables:
                for bucket, state in function(sent.value, table).items():
                    yield write(bucket, state)

        return SparkGroups(self._frame, self._apply(of_tables, STATE))

    def _nothing(self) -> Any:
        """Give the argument that functions get if there are no rows."""
        return self.schema.empty_table()

    def _apply(self, function: Callable[[Iterator[Any]], Iterator[Any]], schema: Any) -> Any:
        """Give the frame of the batches that a function makes of tables."""
        names = self._frame.columns
        # Nobody asks for the partitions of states.
        frame = in_few_tasks(self._frame) if schema == STATE else self._frame
        # PySpark's `mapInArrow` takes a dot or a tick in a column's name for syntax.
        numbered = frame.toDF(*(f"column{number}" for number in range(len(names))))
        return numbered.mapInArrow(lambda batches: function(join(batches, names)), schema)

    def _send(self, value: Any) -> Any:
        """Give an object that is sent with tasks; each worker reads its `value` once."""
        return Held(value) if self._context is None else self._context.broadcast(value)


class SparkGroups(SparkRows):
    """The pieces that rows of a frame gave for each bucket."""

    def __init__(self, frame: Any, dealt: Any) -> None:
        super().__init__(frame)
        self._dealt = dealt

    def _nothing(self) -> Any:
        """Give the argument that functions get if there are no rows."""
        return 0, []

    def _apply(self, function: Callable[[Iterator[Any]], Iterator[Any]], schema: Any) -> Any:
        """Give the frame of the batches that a function makes of groups."""
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


def check_names(whose: str, names: Sequence[str], session: Any) -> None:
    """Raise ValueError for names that differ by case only, if they are one name to Spark."""
    if session.conf.get("spark.sql.caseSensitive") != "false":
        return
    first: dict[str, str] = {}
    for name in names:
        other = first.setdefault(name.lower(), name)
        if other != name:
            raise ValueError(
                f"{whose} has columns {other!r} and {name!r}, which are one name to Spark: rename a column or a class, "
                'or set spark.conf.set("spark.sql.caseSensitive", "true").'
            )


def parallelism(session: Any) -> int:
    """Give the number of tasks into which Spark divides rows by default, about one for each processor.

    Spark Connect has no setting that tells it, so Spark divides the rows of a range, in a job without Python.
    """
    if ".connect." not in type(session).__module__:
        return max(1, session.sparkContext.defaultParallelism)
    numbers = session.range(ROWS_OF_RANGE).selectExpr("spark_partition_id() as number")
    return 1 + int(numbers.selectExpr("max(number)").first()[0])


def in_few_tasks(frame: Any) -> Any:
    """Give a frame in fewer partitions if these are many and small, since each of them costs a task."""
    if ".connect." in type(frame).__module__:
        return frame
    n_bytes = int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
    number = max(TASKS * frame.sparkSession.sparkContext.defaultParallelism, n_bytes // BYTES_OF_TASK)
    # A size that Spark does not know is as large as can be.
    return frame.coalesce(number) if number < MOST_PARTITIONS else frame


def choice_of_rows(plan: Any) -> str | None:
    """Name a step of a plan, or of a query inside, that may choose other rows or values each time; None without one.

    Parameters
    ----------
    plan : logical plan of Spark, in Java
    """
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        waiting += [
            queries.apply(number)
            for queries in (node.children(), node.subqueries())
            for number in range(queries.size())
        ]
        if (read := CLOCK.search(node.expressions().mkString("\n"))) is not None:
            return f"{read[1]}, where a literal would stay"
        name = node.nodeName()
        if name in CHOICES and not is_choice_of_all(name, node):
            return CHOICES[name]
        if name in ("Window", "Aggregate"):
            made = node.windowExpressions() if name == "Window" else node.aggregateExpressions()
            for number in range(made.size()):
                if (found := choice_among_ties(made.apply(number).toString())) is not None:
                    return found
    return None


def is_choice_of_all(name: str, node: Any) -> bool:
    """Tell whether a step that chooses among rows leaves no choice: it takes no rows, or one of rows that are equal."""
    if name == "Deduplicate":
        return bool(node.keys().size() == node.child().output().size())
    return name in ("GlobalLimit", "LocalLimit") and node.limitExpr().toString() == "0"


def choice_among_ties(expression: str) -> str | None:
    """Name the function of an expression whose result depends on the order of equal rows; None without one.

    Examples
    --------
    >>> frame = "windowspecdefinition(shop#1, day#2 ASC NULLS FIRST, specifiedwindowframe({}))"
    >>> rows = frame.format("RowFrame, unboundedpreceding$(), currentrow$()")
    >>> choice_among_ties(f"row_number() {rows} AS r#3"), choice_among_ties(f"rank() {rows} AS r#3")
    ('row_number', None)
    >>> choice_among_ties(f"sum(price#4) {rows} AS s#5")
    'sum over rows before'
    """
    if found := AMONG_TIES.search(expression):
        return found[1]
    over = FUNCTION_OF_WINDOW.match(expression)
    if over is None or over[1] in RANKS or not ROWS_IN_ORDER.search(expression):
        return None
    return f"{over[1]} over rows before"


@contextmanager
def described(context: Any, step: str) -> Iterator[None]:
    """Let Spark's pages and progress bar call its jobs by a step, as long as it lasts; Spark Connect has no context."""
    if context is None:
        yield
        return
    before = context.getLocalProperty(DESCRIPTION)
    context.setLocalProperty(DESCRIPTION, f"gpu-encode: {step}")
    try:
        yield
    finally:
        context.setLocalProperty(DESCRIPTION, before)


def quoted(name: str) -> str:
    """Quote a column's name for Spark, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"


class Held:
    """A value that is sent with each task."""

    def __init__(self, value: Any) -> None:
        self.value = value


@cache
def freeze(n_modules: int) -> None:  # noqa: ARG001
    """Take all that was imported out of the reach of the garbage collector, which PySpark calls after each task.

    It is called with the number of modules, and does its work once for each: a later task may import more.
    """
    gc.collect()
    gc.freeze()


def join(batches: Iterator[Any], names: list[str]) -> Iterator[Any]:
    """Join batches to tables of many rows, and name their columns."""
    held: list[Any] = []
    for batch in batches:
        held.append(batch)
        if sum(map(len, held)) >= CHUNK:
            yield pa.Table.from_batches(held).rename_columns(names)
            held = []
    if any(map(len, held)):
        yield pa.Table.from_batches(held).rename_columns(names)
        held = []
    freeze(len(sys.modules))


def write(bucket: int, state: Any) -> Any:
    """Write a state, or an error, as a row, in the form in which Spark sends functions between its own processes."""
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
    """Yield the states in rows; their bucket numbers are added to `buckets`."""
    for batch in batches:
        for bucket, state in zip(batch["bucket"], batch["state"], strict=True):
            buckets.add(bucket.as_py())
            yield load(state.as_buffer())
    freeze(len(sys.modules))


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
