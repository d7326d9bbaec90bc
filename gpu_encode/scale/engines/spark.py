"""Spark: the rows of its frames, `fit(frame, y="clicked")`, and tables of categories that stay in Spark.

A fitted encoder is the same object whichever engine fitted it: it is saved in one file, and used without Spark.

Tables of categories stay in Spark: its own shuffle adds up the sums of each category, and joins the tables to rows.
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
from gpu_encode.scale.engines.buckets import unused_prefix
from gpu_encode.scale.files import shuffle
from gpu_encode.scale.files.look_up import UNFINISHED, Joined, JoinedKey, not_saved, saved_already
from gpu_encode.words.errors.values import different_kinds

STATE = "bucket int, state binary"
# Rows that are processed together, and rows that are returned together; neither changes any bit.
CHUNK, BATCH = 1 << 18, 1 << 16
# States that one task adds up, once there are at most as many as processors.
FAN_IN = 8
# Most bytes in one cell of an Arrow column.
LARGEST_CELL = 2**31 - 1
# Assumed if the driver cannot tell how many processors a remote frame has.
PROCESSORS = 32
# Steps that may give other rows each time, by their names in Spark's plans.
CHOICES = {
    "Deduplicate": "dropDuplicates",
    "DeduplicateWithinWatermark": "dropDuplicatesWithinWatermark",
    "GlobalLimit": "limit",
    "LocalLimit": "limit",
    "Offset": "offset",
    "Tail": "tail",
    "Sample": "sample or randomSplit",
}
# Functions whose results depend on which of several equal rows comes first, and others that do not.
AMONG_TIES = re.compile(
    r"\b(row_number|ntile|lag|lead|nth_value|first|first_value|last|last_value|any_value|max_by|min_by|mode"
    r"|collect_list|collect_set|array_agg|listagg|string_agg)\("
)
RANKS = ("rank", "dense_rank", "percent_rank", "cume_dist")
FUNCTION_OF_WINDOW = re.compile(r"(\w+)\(.*windowspecdefinition\(")
ROWS_IN_ORDER = re.compile(r"specifiedwindowframe\(RowFrame, (?!unboundedpreceding\$\(\), unboundedfollowing\$\(\)\))")
# A setting of Spark that is read when a frame is persisted.
JOINS_PARTITIONS = "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning"
# The property of a thread that Spark shows beside its jobs.
DESCRIPTION = "spark.job.description"
# Errors that Spark raises when it looks up a row.
CHANGED = "X has other rows than when they were summed: all passes must read the same."
REFUSED = 'Columns {columns} have {what} that the policy "error" refuses.'


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

        if self._frame.sparkSession.conf.get("spark.sql.caseSensitive") == "false":
            first: dict[str, str] = {}
            for name in self._frame.columns:
                other = first.setdefault(name.lower(), name)
                if other != name:
                    raise ValueError(
                        f"X of Spark has columns {other!r} and {name!r}, which are one name to Spark: rename one, "
                        'or set spark.conf.set("spark.sql.caseSensitive", "true").'
                    )
        return to_arrow_schema(self._frame.schema, timezone="UTC")

    def check_repeatable(self) -> None:
        """Raise ValueError if each pass would draw values, number rows or choose among rows anew."""
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
        number = PROCESSORS if self._context is None else max(1, self._context.defaultParallelism)
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
        return self._frame.mapInArrow(lambda batches: function(join(batches)), schema)

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


class Shuffle:
    """A frame of Spark; the encodings are a frame, too, with a line for each category."""

    def __init__(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> None:
        self._frame, self._rows, self._aside = X, SparkRows(X), (y, sample_weight, groups)

    def count_categories(self, encoder: Any) -> int:
        """Estimate the number of categories of all keys, in a pass of Spark."""
        from pyspark.sql import functions

        keys = calls.columns_of_keys(encoder, self._rows, calls.read_training(encoder, self._rows, *self._aside))
        structs = (functions.struct(*(functions.col(quoted(name)) for name in key)) for key in keys)
        with described(self._rows._context, "count categories"):
            [row] = self._frame.select(*(functions.approx_count_distinct(struct) for struct in structs)).collect()
        return sum(row)

    def learn(self, encoder: Any, training: bool) -> tuple[shuffle.ShuffledSums, Any]:
        """Let Spark add up the sums of each category, and encode the categories; workers keep these on disk."""
        from pyspark.sql import functions

        shuffle.check_parameters(encoder, training)
        self._rows.check_repeatable()
        reading = calls.read_training(encoder, self._rows, *self._aside)
        shared, measured = calls.survey(encoder, self._rows, reading, training)
        lines = measured.map(shuffle.sum_table, shared)
        keys = [name for name in lines.columns if not name.startswith("digit")]
        digits = [name for name in lines.columns if name.startswith("digit")]
        added = lines.groupBy(*keys).agg(*(functions.sum(name).alias(name) for name in digits))
        encodings = keep_on_disks(SparkRows(added).map(shuffle.encode_lines, shared))
        try:
            with described(self._rows._context, "add up and encode categories"):
                encodings.count()
        except Exception:
            encodings.unpersist()
            raise
        return shared, encodings

    def encode_training(self, shared: shuffle.ShuffledSums, joined: Joined, encodings: Any) -> Any:
        """Give the encodings of training rows, lazily."""
        prefix, others = unused_prefix(self._frame.columns), joined.beside_training(shared.reading.roles.beside)
        rows = self._rows.map(shuffle.add_views, (shared, f"{prefix}view"))
        return look_up(rows, encodings, joined, others, prefix, training=True)

    def encode_new(self, joined: Joined, encodings: Any) -> Any:
        """Give the encodings of new rows, lazily."""
        names = calls.names_of(self._rows)
        return look_up(
            self._frame,
            encodings,
            joined,
            joined.beside_new(names, in_order=False),
            unused_prefix(names),
            training=False,
        )

    @staticmethod
    def save(joined: Joined, encodings: Any, path: str, overwrite: bool) -> None:
        """Let Spark write what new rows need; the record comes last."""
        from pyspark.errors import AnalysisException
        from pyspark.sql import functions

        spark, views = encodings.sparkSession, joined.keys[0].new_rows
        widths = functions.size(shuffle.ENCODINGS) / (views + 1)
        own = functions.slice(shuffle.ENCODINGS, (widths * views + 1).cast("int"), widths.cast("int"))
        lines = encodings.withColumn(shuffle.ENCODINGS, own)
        if overwrite:
            # From here on there is no older encoder, even if this process ends.
            write_record(spark, UNFINISHED, path)
        elif read_record(spark, path) is not None:
            raise saved_already(path)
        try:
            lines.write.mode("overwrite" if overwrite else "error").parquet(f"{path}/encodings")
        except AnalysisException as error:
            if "PATH_ALREADY_EXISTS" in str(error):
                raise saved_already(path) from error
            raise
        write_record(spark, joined.of_new_rows(*count_lines(lines)).to_text(), path)

    def read(self, path: str) -> tuple[Joined, Any]:
        """Let Spark read a folder that any engine has saved."""
        from pyspark.errors import AnalysisException

        spark = self._frame.sparkSession
        text = read_record(spark, path)
        if text is None or text == UNFINISHED:
            raise not_saved(path)
        joined = Joined.from_text(text)
        try:
            lines = spark.read.parquet(f"{path}/encodings")
        except AnalysisException:
            # There are no files.
            joined.check_lines(0, 0, path)
            raise
        if joined.n_lines is not None:
            joined.check_lines(*count_lines(lines), path)
        return joined, lines

    @staticmethod
    def release(encodings: Any) -> None:
        """Let the workers drop encodings; they are computed again from X if they are needed."""
        encodings.unpersist()


def write_record(spark: Any, text: str, path: str) -> None:
    """Let Spark write the record of a folder, in place of one that is there."""
    spark.createDataFrame([(text,)], "joined string").write.mode("overwrite").parquet(f"{path}/joined")


def read_record(spark: Any, path: str) -> str | None:
    """Let Spark read the record of a folder; None if there is none."""
    from pyspark.errors import AnalysisException

    try:
        text: str = spark.read.schema("joined string").parquet(f"{path}/joined").first()[0]
    except (AnalysisException, TypeError):
        # A folder without files has no first row.
        return None
    return text


def count_lines(lines: Any) -> tuple[int, int]:
    """Let Spark give what `look_up.sum_lines` gives."""
    from pyspark.sql import functions

    hashes = functions.xxhash64(functions.col(shuffle.ENCODINGS).cast("array<double>")).cast("decimal(20)")
    n_lines, total = lines.agg(functions.count("*"), functions.sum(hashes)).first()
    return n_lines, int(total or 0) % 2**64


def keep_on_disks(frame: Any) -> Any:
    """Keep the computed rows of a frame on disks, in as few partitions as Spark's shuffle would join them to.

    Without this setting, Spark keeps the number of partitions of its settings, and each partition starts Python.
    """
    from pyspark import StorageLevel

    settings = frame.sparkSession.conf
    before = settings.get(JOINS_PARTITIONS, None)
    settings.set(JOINS_PARTITIONS, "true")
    try:
        return frame.persist(StorageLevel.DISK_ONLY)
    finally:
        if before is None:
            settings.unset(JOINS_PARTITIONS)
        else:
            settings.set(JOINS_PARTITIONS, before)


def check_types(rows: Any, encodings: Any, joined: Joined) -> None:
    """Raise ValueError for columns of another type than at fit, which Spark would compare as text or floats."""
    from pyspark.sql.types import IntegralType

    for key in joined.keys:
        for name, stored in zip(key.columns, key.stored, strict=True):
            given, fitted = rows.schema[name].dataType, encodings.schema[stored].dataType
            if given != fitted and not (isinstance(given, IntegralType) and isinstance(fitted, IntegralType)):
                raise different_kinds(name, fitted.simpleString(), given.simpleString())


def look_up(rows: Any, encodings: Any, joined: Joined, others: Sequence[str], prefix: str, training: bool) -> Any:
    """Join the encodings of every key to rows.

    Parameters
    ----------
    rows : pyspark.sql.DataFrame
        Training rows have their views in a column.
    encodings : pyspark.sql.DataFrame
    joined : Joined
    others : list of str
        Columns that follow the encodings.
    prefix : str
        Prefix of the names of columns that are added to those of the rows.
    training : bool
    """
    from pyspark.sql import functions

    check_types(rows, encodings, joined)
    outputs = []
    for entry, key in enumerate(joined.keys):
        aliases = [f"{prefix}{entry}_{column}" for column in range(len(key.columns))]
        found = functions.col(f"{prefix}{entry}")
        stored = [functions.col(name).alias(alias) for name, alias in zip(key.stored, aliases, strict=True)]
        own = functions.col(shuffle.ENCODINGS).alias(f"{prefix}{entry}")
        table = encodings.where(functions.col(shuffle.ENTRY) == entry).select(*stored, own)
        values = [present(rows, name) for name in key.columns]
        same = [value.eqNullSafe(functions.col(alias)) for value, alias in zip(values, aliases, strict=True)]
        rows = rows.join(table, all_of(same), "left").drop(*aliases)
        view = functions.col(f"{prefix}view") if training else functions.lit(key.new_rows)
        for number, name in enumerate(key.outputs):
            at = view * len(key.outputs) + number
            other = not_found(key, values, at, number, joined.dtype, training)
            encoding = functions.when(found.isNotNull(), functions.get(found, at)).otherwise(other)
            outputs.append(encoding.alias(name))
    return rows.select(*outputs, *(functions.col(quoted(name)) for name in others))


def not_found(key: JoinedKey, values: Sequence[Any], at: Any, number: int, dtype: str, training: bool) -> Any:
    """Give the encoding of rows whose key is not in the table: unknown values, or missing ones without a category."""
    from pyspark.sql import functions

    kind = {"float64": "double", "float32": "float"}[dtype]
    shown = ", ".join(map(repr, key.columns))
    if training:
        other = functions.raise_error(CHANGED)
    elif key.refuses_unknown:
        other = functions.raise_error(REFUSED.format(columns=shown, what="unknown values"))
    else:
        other = functions.lit(key.unknown[number])
    if key.policy == "category":
        return other.cast(kind)
    missing = functions.get(functions.array(*map(functions.lit, key.missing)), at)
    if key.policy == "error":
        missing = functions.raise_error(REFUSED.format(columns=shown, what="missing values"))
    any_missing = ~all_of([value.isNotNull() for value in values])
    return functions.when(any_missing, missing.cast(kind)).otherwise(other.cast(kind))


def present(rows: Any, name: str) -> Any:
    """Give a column with null in place of NaN."""
    from pyspark.sql import functions
    from pyspark.sql.types import DoubleType, FloatType

    column = functions.col(quoted(name))
    if isinstance(rows.schema[name].dataType, (FloatType, DoubleType)):
        return functions.when(~functions.isnan(column), column)
    return column


def all_of(conditions: Sequence[Any]) -> Any:
    """Combine conditions to one that holds if all of them hold."""
    total = conditions[0]
    for condition in conditions[1:]:
        total = total & condition
    return total
