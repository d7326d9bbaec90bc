"""Spark: the sums of categories are added up by its own shuffle, and their encodings are joined to its rows."""

from collections.abc import Sequence
from typing import Any

from gpu_encode.scale.engines import calls
from gpu_encode.scale.engines.buckets import unused_prefix
from gpu_encode.scale.engines.spark import SparkRows, quoted
from gpu_encode.scale.files import shuffle
from gpu_encode.scale.files.look_up import Joined, JoinedKey
from gpu_encode.words.errors.values import different_kinds

# A setting of Spark's, read when a frame is persisted.
JOINS_PARTITIONS = "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning"
# Raised by Spark, where a row is looked up.
CHANGED = "X has other rows than when they were summed: all passes must read the same."
REFUSED = 'Columns {columns} have {what} that the policy "error" refuses.'


class Shuffle:
    """A frame of Spark; encodings are a frame, too, with a line a category."""

    def __init__(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> None:
        self._frame, self._rows, self._aside = X, SparkRows(X), (y, sample_weight, groups)

    def count_categories(self, encoder: Any) -> int:
        """Estimate how many categories all keys have, in a pass of Spark's own."""
        from pyspark.sql import functions

        keys = calls.columns_of_keys(encoder, self._rows, calls.read_training(encoder, self._rows, *self._aside))
        structs = (functions.struct(*(functions.col(quoted(name)) for name in key)) for key in keys)
        [row] = self._frame.select(*(functions.approx_count_distinct(struct) for struct in structs)).collect()
        return sum(row)

    def learn(self, encoder: Any, training: bool) -> tuple[shuffle.ShuffledSums, Any]:
        """Have Spark add up the sums of each category, and make encodings of them, which its workers' disks keep."""
        from pyspark.sql import functions

        shuffle.check_parameters(encoder, training)
        self._rows.check_repeatable()
        reading = calls.read_training(encoder, self._rows, *self._aside)
        shared, measured = calls.survey(encoder, self._rows, reading, training)
        lines = measured.map(shuffle.sum_table, shared)
        keys = [name for name in lines.columns if not name.startswith("digit")]
        digits = [name for name in lines.columns if name.startswith("digit")]
        added = lines.groupBy(*keys).agg(*(functions.sum(name).alias(name) for name in digits))
        encodings = keep(SparkRows(added).map(shuffle.encode_lines, shared))
        try:
            encodings.count()
        except Exception:
            encodings.unpersist()
            raise
        return shared, encodings

    def encode_training(self, shared: shuffle.ShuffledSums, joined: Joined, encodings: Any) -> Any:
        """Give the encodings of training rows, lazily."""
        prefix, others = unused_prefix(self._frame.columns), joined.beside_training(shared.reading.roles.aside)
        rows = self._rows.map(shuffle.add_views, (shared, f"{prefix}view"))
        return look_up(rows, encodings, joined, others, prefix, training=True)

    def encode_new(self, joined: Joined, encodings: Any) -> Any:
        """Give the encodings of new rows, lazily."""
        names = calls.names_of(self._rows)
        return look_up(self._frame, encodings, joined, joined.beside_new(names), unused_prefix(names), training=False)

    @staticmethod
    def save(joined: Joined, encodings: Any, path: str) -> None:
        """Write what new rows need, by Spark."""
        from pyspark.sql import functions

        views = joined.keys[0].new_rows
        widths = functions.size(shuffle.ENCODINGS) / (views + 1)
        own = functions.slice(shuffle.ENCODINGS, (widths * views + 1).cast("int"), widths.cast("int"))
        encodings.withColumn(shuffle.ENCODINGS, own).write.parquet(f"{path}/encodings")
        text = joined.of_new_rows().to_text()
        encodings.sparkSession.createDataFrame([(text,)], "joined string").write.parquet(f"{path}/joined")

    def read(self, path: str) -> tuple[Joined, Any]:
        """Read what was saved, by Spark."""
        spark = self._frame.sparkSession
        text = spark.read.parquet(f"{path}/joined").first()[0]
        return Joined.from_text(text), spark.read.parquet(f"{path}/encodings")

    @staticmethod
    def release(encodings: Any) -> None:
        """Let the workers forget encodings, which are computed again from X if they are asked for."""
        encodings.unpersist()


def keep(frame: Any) -> Any:
    """Have what is computed of a frame kept on disks, in as few partitions as Spark joins those of its shuffle to.

    Unless it is told so, Spark keeps a frame in as many partitions as its settings say, each of which starts Python.
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
        Columns that come behind the encodings.
    prefix : str
        How the names of columns begin that are not among the rows'.
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
    """Give the encoding of rows whose key is not in the table: unknown ones, and missing ones that are no category."""
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
    """Give a column whose NaN are missing, as null is."""
    from pyspark.sql import functions
    from pyspark.sql.types import DoubleType, FloatType

    column = functions.col(quoted(name))
    if isinstance(rows.schema[name].dataType, (FloatType, DoubleType)):
        return functions.when(~functions.isnan(column), column)
    return column


def all_of(conditions: Sequence[Any]) -> Any:
    """Say whether all conditions hold."""
    total = conditions[0]
    for condition in conditions[1:]:
        total = total & condition
    return total
