"""What do training encodings cost in Spark, compared with Spark's own functions?

    python -m studies.spark [--rows 1e6] [--categories 100000] [--columns 4] [--contenders broadcast] [--quick]

Keys of whole numbers, a target of two classes, five folds by a hash of the row's number, in a session with two
threads.  A time is that from Parquet files to training encodings, which are computed and thrown away.

- `broadcast` and `shuffle` are ours.
- `window` and `by-hand` are out-of-fold means in Spark's own SQL, one key after the other: sums over windows; or two
  group-bys, joined to rows.  They add floats, so that bits depend on partitions.
- `ml` is `pyspark.ml.feature.TargetEncoder`, which has no folds: each row sees its own target.
"""

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from benchmarks.engines import encoder, group_bys, keys_in, of_pyspark_ml, shuffled, windows
from benchmarks.harness.grid import Cell, Contender, Grid, Prepared, Topic
from benchmarks.harness.judge import Answer, Verdict
from benchmarks.harness.machine import cores
from benchmarks.harness.program import main


def write_rows(root: Path, cell: Cell) -> Path:
    """Write the rows of a cell, one file for each thread."""
    rows, categories, columns = cell["rows"], cell["categories"], cell["columns"]
    folder = root / f"spark-{rows}-{categories}-{columns}"
    if not folder.exists():
        generator = np.random.default_rng(0)
        keys = {f"key{number}": generator.integers(0, categories, rows) for number in range(columns)}
        table = pa.table({"visit": np.arange(rows), **keys, "bought": generator.integers(0, 2, rows)})
        folder.mkdir(parents=True)
        for number, start in enumerate(range(0, rows, -(-rows // cores()))):
            pa.parquet.write_table(table.slice(start, -(-rows // cores())), folder / f"{number}.parquet")
    return folder


def open_rows(folder: Path, _: Cell, __: int | None = None) -> Path:
    """Give the folder, which Spark reads in each call."""
    return folder


def broadcast(rows: Any) -> Any:
    """Encode with ours, with all categories in one process."""
    return encoder(rows.columns).fit_transform(rows, "bought")


def shuffle(rows: Any) -> Any:
    """Encode with ours, with the categories left in Spark."""
    return shuffled(rows.columns).fit_transform(rows, "bought")


class Collected(Answer):
    """The expected encodings, in the order of the rows."""

    def verdict(self, given: Any) -> Verdict:
        """Collect encodings, and give their fault."""
        return super().verdict(in_order(given.toArrow()))


def in_order(encodings: Any) -> Any:
    """Give a matrix of encodings, sorted by row number."""
    ordered = encodings.sort_by("visit")
    return np.column_stack([ordered[key].to_numpy() for key in sorted(keys_in(ordered.column_names))])


def prepare(folder: Path, encode: Callable[[Any], Any]) -> Prepared:
    """Start a session, and prepare a way to encode."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local[{cores()}]").config("spark.ui.enabled", "false")
    session = builder.config("spark.driver.memory", "4g").config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    table = pa.parquet.read_table(folder)
    X, expected = table.drop_columns(["bought"]), encoder(table.column_names)
    trained = expected.fit_transform(X, table["bought"])
    answer = expected.transform(X) if encode is of_pyspark_ml else trained

    def call() -> Any:
        encodings = encode(session.read.parquet(str(folder)))
        encodings.write.format("noop").mode("overwrite").save()
        return encodings

    return Prepared(call, Collected.of(in_order(answer)), session.stop)


NEEDS = {"needs": ("pyspark",), "compiles": True}
CONTENDERS = (
    Contender("broadcast", "ours", partial(prepare, encode=broadcast), **NEEDS),
    Contender("shuffle", "ours, shuffled", partial(prepare, encode=shuffle), **NEEDS),
    Contender("window", "window", partial(prepare, encode=windows), **NEEDS),
    Contender("by-hand", "by hand", partial(prepare, encode=group_bys), **NEEDS),
    Contender("ml", "pyspark.ml", partial(prepare, encode=of_pyspark_ml), **NEEDS),
)
GRID = Grid(
    "spark",
    {"rows": (1_000_000, 10_000_000), "categories": (1000, 100_000, 1_000_000), "columns": (1, 4)},
    CONTENDERS,
    {"rows": (900,), "categories": (30,), "columns": (2,)},
    draw=write_rows,
    open=open_rows,
    most_turns=3,
)
TOPIC = Topic("studies.spark", "Training encodings in Spark", (GRID,), packages=("gpu-encode", "pyspark", "numpy"))

if __name__ == "__main__":
    sys.exit(main(TOPIC, __doc__))
