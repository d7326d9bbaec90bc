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
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from benchmarks.harness.grid import Cell, Contender, Grid, Prepared, Topic
from benchmarks.harness.judge import Answer, Verdict
from benchmarks.harness.machine import cores
from benchmarks.harness.program import main
from gpu_encode import KFold, MEstimate, TargetEncoder

N_FOLDS, SMOOTH = 5, 10.0
# The seed of `KFold(by=)`: see its docstring.
FOLD = f"pmod(xxhash64(visit), {N_FOLDS})"


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


def keys_of(names: Iterable[str]) -> list[str]:
    """List the encoded columns."""
    return [name for name in names if name.startswith("key")]


def make_encoder(names: Iterable[str]) -> TargetEncoder:
    """Make the encoder."""
    cv = KFold(N_FOLDS, by="visit", random_state=42)
    return TargetEncoder(columns=keys_of(names), cv=cv, smooth=MEstimate(SMOOTH), device="cpu")


def broadcast(rows: Any) -> Any:
    """Encode with ours, with all categories in one process."""
    return make_encoder(rows.columns).fit_transform(rows, "bought")


def shuffle(rows: Any) -> Any:
    """Encode with ours, with the categories left in Spark."""
    from gpu_encode.scale.engines import DistributedEncoder

    return DistributedEncoder(make_encoder(rows.columns), tables="shuffle").fit_transform(rows, "bought")


def smoothed(total: str, number: str) -> str:
    """Write in SQL the mean, shrunk towards the mean of the rows that a fold may see."""
    return f"({total} + {SMOOTH} * prior) / ({number} + {SMOOTH})"


def with_priors(rows: Any) -> Any:
    """Give rows with their fold, and the mean of the target over the other folds."""
    folded = rows.selectExpr("*", f"{FOLD} as fold")
    summed = sum_by(folded, ["fold"], s="sum(bought)", n="count(1)")
    of_all = summed.selectExpr("fold", "(sum(s) over () - s) / (sum(n) over () - n) as prior")
    return folded.join(of_all, "fold")


def sum_by(rows: Any, keys: list[str], **sums: str) -> Any:
    """Group rows and sum them."""
    return rows.groupBy(*keys).agg(*(expression(text).alias(name) for name, text in sums.items()))


def window(rows: Any) -> Any:
    """Encode with window sums over the rows of a category, minus those of the row's own fold."""
    made = with_priors(rows)
    for key in keys_of(rows.columns):
        over, own = f"over (partition by {key})", f"over (partition by {key}, fold)"
        sums = [f"sum(double(bought)) {over} - sum(double(bought)) {own}", f"count(1) {over} - count(1) {own}"]
        made = made.withColumns({"s": expression(sums[0]), "n": expression(sums[1])})
        made = made.withColumn(key, expression(smoothed("s", "n"))).drop("s", "n")
    return made.drop("fold", "prior", "bought")


def by_hand(rows: Any) -> Any:
    """Encode with sums by category and fold and sums by category, both joined to the rows."""
    made = folded = with_priors(rows)
    for key in keys_of(rows.columns):
        own = sum_by(folded, [key, "fold"], own_s="sum(bought)", own_n="count(1)")
        of_all = sum_by(own, [key], s="sum(own_s)", n="sum(own_n)")
        made = made.join(own, [key, "fold"]).join(of_all, key)
        made = made.withColumn(key, expression(smoothed("(s - own_s)", "(n - own_n)")))
        made = made.drop("s", "n", "own_s", "own_n")
    return made.drop("fold", "prior", "bought")


def ml(rows: Any) -> Any:
    """Encode with Spark's own encoder."""
    from pyspark.ml.feature import TargetEncoder as Encoder

    keys = keys_of(rows.columns)
    made = [f"{key}_encoded" for key in keys]
    encoder = Encoder(inputCols=keys, outputCols=made, labelCol="bought", targetType="binary", smoothing=SMOOTH)
    given = rows.selectExpr("visit", *(f"double({name}) as {name}" for name in [*keys, "bought"]))
    named = [f"{name} as {key}" for name, key in zip(made, keys, strict=True)]
    return encoder.fit(given).transform(given).selectExpr("visit", *named)


def expression(text: str) -> Any:
    """Make a column from its SQL."""
    from pyspark.sql import functions

    return functions.expr(text)


class Collected(Answer):
    """The expected encodings, in the order of the rows."""

    def verdict(self, given: Any) -> Verdict:
        """Collect encodings, and give their fault."""
        return super().verdict(in_order(given.toArrow()))


def in_order(encodings: Any) -> Any:
    """Give a matrix of encodings, sorted by row number."""
    ordered = encodings.sort_by("visit")
    return np.column_stack([ordered[key].to_numpy() for key in sorted(keys_of(ordered.column_names))])


def prepare(folder: Path, encode: Callable[[Any], Any]) -> Prepared:
    """Start a session, and prepare a way to encode."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local[{cores()}]").config("spark.ui.enabled", "false")
    session = builder.config("spark.driver.memory", "4g").config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    table = pa.parquet.read_table(folder)
    X, expected = table.drop_columns(["bought"]), make_encoder(table.column_names)
    trained = expected.fit_transform(X, table["bought"])
    answer = expected.transform(X) if encode is ml else trained

    def call() -> Any:
        encodings = encode(session.read.parquet(str(folder)))
        encodings.write.format("noop").mode("overwrite").save()
        return encodings

    return Prepared(call, Collected.of(in_order(answer)), session.stop)


NEEDS = {"needs": ("pyspark",), "compiles": True}
CONTENDERS = (
    Contender("broadcast", "ours", partial(prepare, encode=broadcast), **NEEDS),
    Contender("shuffle", "ours, shuffled", partial(prepare, encode=shuffle), **NEEDS),
    Contender("window", "window", partial(prepare, encode=window), **NEEDS),
    Contender("by-hand", "by hand", partial(prepare, encode=by_hand), **NEEDS),
    Contender("ml", "pyspark.ml", partial(prepare, encode=ml), **NEEDS),
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
