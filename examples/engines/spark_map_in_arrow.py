"""Training encodings in Spark: three passes of `mapInArrow`, and the encodings of new rows in a fourth.

    python examples/engines/spark_map_in_arrow.py
    python examples/engines/spark_map_in_arrow.py --rows 20000 --master "local[2]"

A row's fold follows from its order number (`KFold(by=)`), so rows may lie anywhere in each pass: any `repartition`,
`coalesce`, `union`, sort or retry gives every row the encoding that it has in one table.
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
from operator import add
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from made_rows import ORDER, TARGET, compare, encoder, is_same, orders
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from gpu_encode import TargetEncoder
from gpu_encode.parts import Part, PartialSums, Profile, encode, fit, measure, plan, profile, scheme_columns

STATE = "state binary"
# Rows that are looked at together; it changes no bit.
CHUNK = 1 << 18
# States that one task adds up.
FAN_IN = 4


def tables(batches: Iterator[Any]) -> Iterator[Any]:
    """Gather batches to tables of many rows."""
    held: list[Any] = []
    for batch in batches:
        held.append(batch)
        if sum(map(len, held)) >= CHUNK:
            yield pa.Table.from_batches(held)
            held = []
    if any(map(len, held)):
        yield pa.Table.from_batches(held)


def part(table: Any) -> Part:
    """Give a part of all rows; columns that are not encoded pass through."""
    return Part(table.drop_columns([TARGET]), table[TARGET])


def state(value: Any) -> Any:
    """Give one row with a state."""
    return pa.record_batch([pa.array([pickle.dumps(value)], pa.binary())], names=["state"])


def total(states: DataFrame, neutral: Any, number: int) -> Any:
    """Add up about so many states, a few in each task, until few are left: in any order."""

    def add_states(batches: Iterator[Any]) -> Iterator[Any]:
        yield state(
            reduce(add, (pickle.loads(value) for batch in batches for value in batch["state"].to_pylist()), neutral)
        )

    while number > FAN_IN:
        number = -(-number // FAN_IN)
        states = states.repartition(number).mapInArrow(add_states, STATE)
    return reduce(add, (pickle.loads(row.state) for row in states.collect()), neutral)


def profile_rows(rows: DataFrame, encoder: TargetEncoder) -> tuple[Profile, int]:
    """Profile all rows, and count the partitions that have any."""

    def of_partition(batches: Iterator[Any]) -> Iterator[Any]:
        # Only the target and what the scheme reads are looked at, so the target may stay among the columns.
        found = reduce(add, (profile(encoder, Part(table, table[TARGET])) for table in tables(batches)), Profile())
        if found.n_rows:
            yield state(found)

    read = rows.select(*scheme_columns(encoder), TARGET)
    profiles = [pickle.loads(row.state) for row in read.mapInArrow(of_partition, STATE).collect()]
    return reduce(add, profiles, Profile()), len(profiles)


def measure_rows(rows: DataFrame, encoding_plan: Any, n_partitions: int) -> PartialSums:
    """Sum all rows: each partition where it lies, then a few states at a time."""

    def of_partition(batches: Iterator[Any]) -> Iterator[Any]:
        yield state(reduce(add, (measure(encoding_plan, part(table)) for table in tables(batches)), PartialSums()))

    sums: PartialSums = total(rows.mapInArrow(of_partition, STATE), PartialSums(), n_partitions)
    return sums


def map_rows(rows: DataFrame, schema: Any, function: Callable[[Any], Any]) -> DataFrame:
    """Give the tables that a function makes of tables."""

    def of_partition(batches: Iterator[Any]) -> Iterator[Any]:
        for table in tables(batches):
            yield from function(table).cast(schema).to_batches(max_chunksize=1 << 16)

    return rows.mapInArrow(of_partition, from_arrow_schema(schema))


def fit_transform(rows: DataFrame, encoder: TargetEncoder) -> DataFrame:
    """Fit the encoder here, and give the training encodings, row for row, in a frame that Spark computes when asked."""
    all_rows, n_partitions = profile_rows(rows, encoder)
    encoding_plan = plan(encoder, all_rows)
    encodings = fit(encoder, encoding_plan, measure_rows(rows, encoding_plan, n_partitions))
    sent = rows.sparkSession.sparkContext.broadcast(encodings)
    schema = encode(encodings, part(nothing(rows))).schema
    return map_rows(rows, schema, lambda table: encode(sent.value, part(table)))


def nothing(rows: DataFrame) -> Any:
    """Give a table of the same columns and no rows."""
    return to_arrow_schema(rows.schema).empty_table()


def transform(rows: DataFrame, encoder: TargetEncoder) -> DataFrame:
    """Give the encodings of new rows."""
    sent = rows.sparkSession.sparkContext.broadcast(encoder)

    def transform_table(table: Any) -> Any:
        return sent.value.transform(table)

    return map_rows(rows, encoder.transform(nothing(rows)).schema, transform_table)


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
    check_moved_rows(spark, rows, encodings)
    compare(encodings, rows.toArrow(), transform(spark.createDataFrame(new), fitted).toArrow(), new)


def check_moved_rows(spark: SparkSession, rows: DataFrame, encodings: Any) -> None:
    """Check that encodings stay as rows are moved, before the passes and after them, and that Spark finds the folds."""
    lazy, none = fit_transform(rows, encoder()), spark.createDataFrame(encodings.slice(0, 0))
    moved = {
        "coalesce": lazy.coalesce(1),
        "union": none.union(lazy),
        "repartition": fit_transform(rows.repartition(3), encoder()),
        "orderBy": fit_transform(rows.orderBy("price", ORDER), encoder()),
    }
    for name, frame in moved.items():
        assert is_same(frame.toArrow(), encodings), f"{name} changes encodings"
    own = rows.withColumn("fold", expr(f"pmod(xxhash64({ORDER}), 5)")).toArrow()
    by_spark = encoder().set_params(cv="fold").fit_transform(own.drop_columns([TARGET]), own[TARGET])
    assert is_same(by_spark.drop_columns(["fold"]), encodings), "Spark computes other folds"


if __name__ == "__main__":
    main()
