"""Training encodings of a frame of Spark, written as one file, and the encodings of new rows.

    python examples/engines/spark_frame.py
    python examples/engines/spark_frame.py --rows 20000 --master "local[2]"

A row's fold follows from its order number (`KFold(by=)`), so Spark may move rows at any time.
"""

import argparse
import os
import sys
import tempfile

import pyarrow.parquet
from made_rows import ORDER, TARGET, compare, encoder, is_same, orders
from pyspark.sql import SparkSession
from pyspark.sql.functions import expr


def main() -> None:
    """Encode rows in Spark and in one table, and compare the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--master", default="local[2]")
    options = parser.parse_args()
    # Tasks run in a Python that has gpu-encode.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master(options.master).config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        encode(spark, folder, orders(options.rows, seed=7), orders(options.rows, seed=8).drop_columns([TARGET]))
    spark.stop()


def encode(spark: SparkSession, folder: str, table: pyarrow.Table, new: pyarrow.Table) -> None:
    """Encode training rows, which Spark reads from files, and new rows, and compare the results."""
    spark.createDataFrame(table).repartition(5).write.parquet(f"{folder}/rows")
    rows, fitted = spark.read.parquet(f"{folder}/rows"), encoder()
    encodings = fitted.fit_transform(rows, y=TARGET)
    encodings.coalesce(1).write.parquet(f"{folder}/encodings")
    found = spark.read.parquet(f"{folder}/encodings").toArrow()
    print(f"{len(found)} rows: {', '.join(found.column_names)}")
    found = found.drop_columns([TARGET])
    # Spark computes the same folds itself.
    own = rows.withColumn("fold", expr(f"pmod(xxhash64({ORDER}), 5)"))
    by_spark = encoder().set_params(cv="fold").fit_transform(own, y=TARGET).drop("fold", TARGET).toArrow()
    assert is_same(by_spark, found), "Spark computes other folds"
    compare(found, table, fitted.transform(spark.createDataFrame(new)).toArrow(), new)


if __name__ == "__main__":
    main()
