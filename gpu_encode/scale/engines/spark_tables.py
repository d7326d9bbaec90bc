"""Tables of categories that stay in Spark: its own shuffle adds up the sums of each category, and joins tables to rows.

Keys of few categories are collected, and looked up where the rows are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Self

import numpy as np

from cpu_fallback.cached import cached_property
from gpu_encode.scale.engines import calls
from gpu_encode.scale.engines.buckets import Buckets, LookUp, add_sums, deal_sums, number_of_buckets, unused_prefix
from gpu_encode.scale.engines.spark import SparkRows, check_names, described, quoted
from gpu_encode.scale.files import shuffle
from gpu_encode.scale.files.look_up import UNFINISHED, BucketTable, Joined, JoinedKey, not_saved, saved_already
from gpu_encode.scale.files.shuffle import ShuffledSums
from gpu_encode.words.errors.values import different_kinds

# Most buckets of a key: lines are dealt by numbers of 16 bits.
MOST_BUCKETS = 1 << 15
# Most bytes of the encodings of all keys that are looked up where rows are, without a shuffle.
SMALL = 1 << 24
# A setting of Spark that is read when a frame is persisted.
JOINS_PARTITIONS = "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning"
# Errors that Spark raises when it looks up a row.
CHANGED = "X has other rows than when they were summed: all passes must read the same."
REFUSED = 'Columns {columns} have {what} that the policy "error" refuses.'


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

    def learn(self, encoder: Any, training: bool) -> tuple[ShuffledSums, Any]:
        """Let Spark add up the sums of each category, and encode the categories; workers keep these on disk."""
        shuffle.check_parameters(encoder, training)
        self._rows.check_repeatable()
        reading = calls.read_training(encoder, self._rows, *self._aside)
        shared, measured = calls.survey(encoder, self._rows, reading, training)
        number = number_of_buckets(0, shared.encoding_plan.n_rows, MOST_BUCKETS)
        buckets = Buckets([number] * len(shared.model.rules))
        dealt = measured.deal(deal_sums, (shared, buckets), buckets.number)
        nothing = shuffle.encode_lines(shared, shuffle.sum_table(shared, measured.schema.empty_table()))
        encodings = keep_on_disks(dealt.map(encode_bucket, (shared, nothing)))
        try:
            with described(self._rows._context, "add up and encode categories"):
                encodings.count()
        except Exception:
            encodings.unpersist()
            raise
        return shared, encodings

    def encode_training(self, shared: ShuffledSums, joined: Joined, encodings: Any) -> Any:
        """Give the encodings of training rows, lazily."""
        return look_up(self._rows, encodings, joined, joined.beside_training(shared.reading.roles.beside), shared)

    def encode_new(self, joined: Joined, encodings: Any) -> Any:
        """Give the encodings of new rows, lazily."""
        names = calls.names_of(self._rows)
        return look_up(self._rows, encodings, joined, joined.beside_new(names, in_order=False))

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
        return read_folder(self._frame.sparkSession, path)

    @staticmethod
    def release(encodings: Any) -> None:
        """Let the workers drop encodings; they are computed again from X if they are needed."""
        encodings.unpersist()


def encode_bucket(shared: tuple[ShuffledSums, Any], group: tuple[int, Sequence[Any]]) -> Any:
    """Add up the lines of digits of a bucket, and encode its categories; without any, give `nothing`."""
    summed, nothing = shared
    encodings = add_sums(summed, group)
    return nothing if encodings is None else encodings


def read_folder(spark: Any, path: str) -> tuple[Joined, Any]:
    """Let Spark read what new rows need from a folder that any engine has saved, after a check of its lines."""
    from pyspark.errors import AnalysisException

    text = read_record(spark, path)
    if text is None or text == UNFINISHED:
        raise not_saved(path)
    joined = Joined.from_text(text, path)
    try:
        lines = spark.read.parquet(f"{path}/encodings")
    except AnalysisException:
        # There are no files.
        joined.check_lines(0, 0, path)
        raise
    if joined.n_lines is not None:
        joined.check_lines(*count_lines(lines), path)
    return joined, lines


def copy_folder(spark: Any, path: str, copy: str) -> None:
    """Let Spark copy a folder that any engine has saved; the record comes last."""
    joined, lines = read_folder(spark, path)
    lines.write.parquet(f"{copy}/encodings")
    write_record(spark, joined.to_text(), copy)


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
    from pyspark.sql.types import IntegralType, StringType

    for key in joined.keys:
        for name, stored in zip(key.columns, key.stored, strict=True):
            given, fitted = rows.schema[name].dataType, encodings.schema[stored].dataType
            # The bytes of text count, not its collation.
            alike = any(isinstance(given, kind) and isinstance(fitted, kind) for kind in (IntegralType, StringType))
            if given != fitted and not alike:
                raise different_kinds(name, fitted.simpleString(), given.simpleString())


def look_up(rows: "SparkRows", encodings: Any, joined: Joined, others: Sequence[str], summed: Any = None) -> Any:
    """Give rows with their encodings: small keys are looked up where the rows are, the others are joined by Spark.

    Parameters
    ----------
    rows : SparkRows
    encodings : pyspark.sql.DataFrame
    joined : Joined
    others : list of str
        Columns that follow the encodings.
    summed : ShuffledSums, optional
        For training rows.
    """
    from pyspark.sql import functions

    check_types(rows._frame, encodings, joined)
    check_names("The result", [*joined.outputs, *others], encodings.sparkSession)
    prefix = unused_prefix(rows.schema.names)
    view = None if summed is None else f"{prefix}view"
    small = SmallKeys.of(encodings, joined, prefix, view)
    known = {how.entry: how.names for how in small.keys}
    frame = rows.map(encode_small, (summed, view, small)) if known or summed is not None else rows._frame
    outputs = []
    for entry, key in enumerate(joined.keys):
        if entry in known:
            outputs += [
                functions.col(name).alias(output) for name, output in zip(known[entry], key.outputs, strict=True)
            ]
            continue
        table, values = encodings_of(key, entry, encodings, prefix), [present(frame, name) for name in key.columns]
        aliases, found = table.columns[:-1], functions.col(f"{prefix}{entry}")
        same = [value.eqNullSafe(functions.col(alias)) for value, alias in zip(values, aliases, strict=True)]
        frame = frame.join(table, all_of(same), "left").drop(*aliases)
        of_row = functions.lit(key.new_rows) if view is None else functions.col(view)
        for number, name in enumerate(key.outputs):
            at = of_row * len(key.outputs) + number
            other = not_found(key, values, at, number, joined.dtype, summed is not None)
            encoding = functions.when(found.isNotNull(), functions.get(found, at)).otherwise(other)
            outputs.append(encoding.alias(name))
    return frame.select(*outputs, *(functions.col(quoted(name)) for name in others))


def encodings_of(key: JoinedKey, entry: int, encodings: Any, prefix: str) -> Any:
    """Give the lines of a key: its values, then its encodings, under names that rows do not have."""
    from pyspark.sql import functions

    own = encodings.where(functions.col(shuffle.ENTRY) == entry)
    stored = [functions.col(name).alias(f"{prefix}{entry}_{number}") for number, name in enumerate(key.stored)]
    return own.select(*stored, functions.col(shuffle.ENCODINGS).alias(f"{prefix}{entry}"))


@dataclass(frozen=True, eq=False)
class SmallKeys:
    """The keys whose rows find their encodings without a shuffle, since each process can hold all of their categories.

    Parameters
    ----------
    keys : list of LookUp
    lines : pyarrow.Table or None
        Lines of these keys.
    """

    keys: list[LookUp]
    lines: Any

    @classmethod
    def of(cls, encodings: Any, joined: Joined, prefix: str, view: str | None) -> Self:
        """Count the categories of each key, and collect the keys that have fewest, as long as all of theirs are few."""
        from pyspark.sql import functions

        with described(SparkRows(encodings)._context, "collect small keys"):
            counted = encodings.groupBy(shuffle.ENTRY).count().collect()
            sizes = sorted((8 * n_lines * len(joined.keys[entry].missing), entry) for entry, n_lines in counted)
            totals = accumulate(n_bytes for n_bytes, _ in sizes)
            small = [entry for (_, entry), total in zip(sizes, totals, strict=True) if total < SMALL]
            lines = encodings.where(functions.col(shuffle.ENTRY).isin(small)).toArrow() if small else None
        made = []
        for entry in sorted(small):
            key = joined.keys[entry]
            names = [f"{prefix}{entry}_{number}" for number in range(len(key.outputs))]
            made.append(LookUp(entry, key, joined.dtype, np.ones(1, np.int64), view, names))
        return cls(made, lines)

    @cached_property
    def tables(self) -> list[BucketTable]:
        """The tables of the keys, made once in each process."""
        return [BucketTable(how.key, shuffle.of_entry(self.lines, how.entry), how.dtype) for how in self.keys]

    def __getstate__(self) -> dict[str, Any]:
        return {"keys": self.keys, "lines": self.lines}


def encode_small(shared: tuple[ShuffledSums | None, str | None, SmallKeys], table: Any) -> Any:
    """Give rows with the encodings of small keys, after the number of the view if these are training rows."""
    summed, view, small = shared
    if summed is not None and view is not None:
        table = shuffle.add_views((summed, view), table)
    for how, of_key in zip(small.keys, small.tables, strict=True):
        table = how.add_columns(of_key, table)
    return table


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
    """Give a column with null in place of NaN, and text that is compared byte by byte."""
    from pyspark.sql import functions
    from pyspark.sql.types import DoubleType, FloatType, StringType

    column, kind = functions.col(quoted(name)), rows.schema[name].dataType
    if isinstance(kind, (FloatType, DoubleType)):
        return functions.when(~functions.isnan(column), column)
    return column if kind == StringType() or not isinstance(kind, StringType) else column.cast(StringType())


def all_of(conditions: Sequence[Any]) -> Any:
    """Combine conditions to one that holds if all of them hold."""
    total = conditions[0]
    for condition in conditions[1:]:
        total = total & condition
    return total
