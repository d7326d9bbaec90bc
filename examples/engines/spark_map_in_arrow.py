"""Training encodings in Spark: three passes of `mapInArrow`, and the encodings of new rows in a fourth.

    python examples/engines/spark_map_in_arrow.py
    python examples/engines/spark_map_in_arrow.py --rows 20000 --master "local[2]"

Rows are numbered by their partition and their place in it; both have to be the same in every pass, as they are of rows
that are read from files.  The partition travels as a column: after `coalesce` or `union` a task has another number.
States travel pickled.  Whoever can write them can run code where they are read, so they go between processes of one
Spark application alone, which send one another pickled functions anyway, and into no file.
"""

import argparse
import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import reduce
from itertools import accumulate
from operator import add
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from made_rows import TARGET, compare, encoder, orders
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import spark_partition_id
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from gpu_encode import TargetEncoder
from gpu_encode.parts import Part, PartialSums, Profile, encode, fit, measure, plan, profile, scheme_columns

STATE = "partition int, rows long, state binary"
PARTITION = "spark_partition_id"
# Rows that are looked at together; it changes no bit.
CHUNK = 1 << 18
# States that one task adds up.
FAN_IN = 4


def with_partition(rows: DataFrame) -> DataFrame:
    """Add the number of the partition of these rows, which stays theirs whatever becomes of the result."""
    if PARTITION in rows.columns:
        raise ValueError(f"The column {PARTITION!r} is made here: rename yours.")
    return rows.withColumn(PARTITION, spark_partition_id())


def chunks(batches: Iterator[Any]) -> Iterator[tuple[int, int, Any]]:
    """Gather batches to tables, with the numbers of their partition and of their first row in it."""
    first, held = 0, []
    for batch in batches:
        held.append(batch)
        if sum(map(len, held)) >= CHUNK:
            yield from numbered(held, first)
            first, held = first + sum(map(len, held)), []
    yield from numbered(held, first)


def numbered(held: list[Any], first: int) -> Iterator[tuple[int, int, Any]]:
    """Give one table, where there are rows, and take the number of their partition off it."""
    if any(map(len, held)):
        table = pa.Table.from_batches(held)
        yield table[PARTITION][0].as_py(), first, table.drop_columns([PARTITION])


def part(table: Any, first_row: int) -> Part:
    """Give a part of all rows; columns that are not encoded pass through."""
    return Part(table.drop_columns([TARGET]), table[TARGET], first_row=first_row)


def state(partition: int, rows: int, value: Any) -> Any:
    """Give one row with the state of a partition."""
    columns = [[partition], [rows], [pickle.dumps(value)]]
    return pa.record_batch(
        [pa.array(columns[0], pa.int32()), pa.array(columns[1]), pa.array(columns[2])],
        names=["partition", "rows", "state"],
    )


def profile_rows(rows: DataFrame, encoder: TargetEncoder) -> tuple[Profile, dict[int, int]]:
    """Profile all rows, and number the first row of each partition that has rows."""

    def of_partition(batches: Iterator[Any]) -> Iterator[Any]:
        total, partition = Profile(), -1
        for number, first, table in chunks(batches):
            # Only the target and what the scheme reads are looked at, so the target may stay among the columns.
            total, partition = total + profile(encoder, Part(table, table[TARGET], first_row=first)), number
        if total.n_rows:
            yield state(partition, total.n_rows, total)

    read = with_partition(rows.select(*scheme_columns(encoder), TARGET))
    profiles = sorted(read.mapInArrow(of_partition, STATE).collect())
    starts = list(accumulate((row.rows for row in profiles), initial=0))
    # The first row of each partition is known only now.
    moved = (pickle.loads(row.state).moved(start) for row, start in zip(profiles, starts, strict=False))
    numbers = (row.partition for row in profiles)
    return reduce(add, moved, Profile()), dict(zip(numbers, starts, strict=False))


def measure_rows(rows: DataFrame, encoding_plan: Any, starts: dict[int, int]) -> PartialSums:
    """Sum all rows: each partition where it lies, then a few states at a time, until few are left."""

    def of_partition(batches: Iterator[Any]) -> Iterator[Any]:
        parts = (part(table, starts[partition] + first) for partition, first, table in chunks(batches))
        yield state(0, 0, reduce(add, (measure(encoding_plan, chunk) for chunk in parts), PartialSums()))

    def add_states(batches: Iterator[Any]) -> Iterator[Any]:
        states = (pickle.loads(value) for batch in batches for value in batch["state"].to_pylist())
        yield state(0, 0, reduce(add, states, PartialSums()))

    states, left = with_partition(rows).mapInArrow(of_partition, STATE), len(starts)
    while left > FAN_IN:
        # They add up in any order: it does not matter which go together.
        left = -(-left // FAN_IN)
        states = states.repartition(left).mapInArrow(add_states, STATE)
    return reduce(add, (pickle.loads(row.state) for row in states.collect()))


def map_rows(
    rows: DataFrame, schema: Any, function: Callable[[Any, int], Any], starts: dict[int, int] | None
) -> DataFrame:
    """Give the tables that a function makes of tables and the number of their first row."""

    def of_partition(batches: Iterator[Any]) -> Iterator[Any]:
        for partition, first, table in chunks(batches):
            start = 0 if starts is None else starts[partition]
            yield from function(table, start + first).cast(schema).to_batches(max_chunksize=1 << 16)

    return with_partition(rows).mapInArrow(of_partition, from_arrow_schema(schema))


def fit_transform(rows: DataFrame, encoder: TargetEncoder) -> DataFrame:
    """Fit the encoder here, and give the training encodings, row for row, in a frame that Spark computes when asked."""
    total, starts = profile_rows(rows, encoder)
    encoding_plan = plan(encoder, total)
    tables = fit(encoder, encoding_plan, measure_rows(rows, encoding_plan, starts))
    sent = rows.sparkSession.sparkContext.broadcast(tables)
    schema = encode(tables, part(nothing(rows), 0)).schema
    return map_rows(rows, schema, lambda table, first: encode(sent.value, part(table, first)), starts)


def nothing(rows: DataFrame) -> Any:
    """Give a table of the same columns and no rows."""
    return to_arrow_schema(rows.schema).empty_table()


def transform(rows: DataFrame, encoder: TargetEncoder) -> DataFrame:
    """Give the encodings of new rows."""
    sent = rows.sparkSession.sparkContext.broadcast(encoder)
    schema = encoder.transform(nothing(rows)).schema
    return map_rows(rows, schema, lambda table, _: sent.value.transform(table), None)


def main() -> None:
    """Encode in Spark and in one piece, and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--master", default="local[2]")
    options = parser.parse_args()
    # Tasks run in a Python that has gpu-encode.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with tempfile.TemporaryDirectory() as folder:
        whole = orders(options.rows, seed=7)
        for number in range(options.files):
            start, stop = (options.rows * place // options.files for place in (number, number + 1))
            pyarrow.parquet.write_table(whole.slice(start, stop - start), f"{folder}/{number:05d}.parquet")
        builder = SparkSession.builder.master(options.master).config("spark.ui.enabled", "false")
        # Every file is a partition of its own here, so that there are several.
        spark = builder.config("spark.sql.files.openCostInBytes", str(1 << 30)).getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        try:
            encode_files(spark, folder, options.rows)
        finally:
            spark.stop()


def encode_files(spark: SparkSession, folder: str, n_rows: int) -> None:
    """Encode the rows of the files, and new ones, and compare."""
    rows, fitted = spark.read.parquet(folder), encoder()
    encodings = fit_transform(rows, fitted).toArrow()
    print(f"{len(encodings)} rows in {rows.rdd.getNumPartitions()} partitions: {', '.join(encodings.column_names)}")
    new = orders(n_rows, seed=8).drop_columns([TARGET])
    check_moved_partitions(spark, fit_transform(rows, encoder()), encodings)
    compare(encodings, rows.toArrow(), transform(spark.createDataFrame(new), fitted).toArrow(), new)


def check_moved_partitions(spark: SparkSession, lazy: DataFrame, encodings: Any) -> None:
    """Check that a result whose partitions are joined, or come after others, has the same encodings."""
    one = spark.createDataFrame(encodings.slice(0, 1)).coalesce(1)
    expected = encodings.combine_chunks()
    assert lazy.coalesce(1).toArrow().combine_chunks().equals(expected), "coalesce changes encodings"
    assert one.union(lazy).toArrow().slice(1).combine_chunks().equals(expected), "union changes encodings"


if __name__ == "__main__":
    main()
