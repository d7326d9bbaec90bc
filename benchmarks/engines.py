"""What an engine takes, and its own ways beside ours: from Parquet to training encodings that are thrown away.

    python -m benchmarks.engines [--rows 1e5,1e6] [--ways table,files,dask,spark,ray]
    python -m benchmarks.engines --rows 1e6 --categories 1e5 --keys 1,30 --files 2,100,400 \\
        --ways spark,spark-shuffle,spark-window,spark-by-hand,spark-ml

Keys of whole numbers, a target of two classes, an m-estimate, five folds by a hash of the row's number; a partition for
each file.  The ways of one engine run in one process: each is called once, and then they take turns.  The seconds are
those of all processes, and those that passed; each is the least of the turns, without the start of an engine.  A way
whose library is missing is left out.  ``BENCH_MEMORY=8g`` gives Spark's driver as much memory; thirty keys need it.

- `spark-window` and `spark-by-hand` are out-of-fold means in Spark's own SQL, one key after the other: sums over
  windows; or two group-bys, joined to rows.  They add floats, so that bits depend on partitions.
- `spark-ml` is `pyspark.ml.feature.TargetEncoder`, which has no folds: each row sees its own target.
- `dask-by-hand` is group-bys and merges of Dask.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from subprocess import run
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from gpu_encode import KFold, MEstimate, TargetEncoder, encode_dataset

N_FOLDS, SMOOTH = 5, 10.0
LIBRARIES = {"table": "pyarrow", "files": "pyarrow", "dask": "dask", "spark": "pyspark", "ray": "ray"}
Call = Callable[[str], object]


def write_rows(folder: Path, n_rows: int, n_categories: int, n_keys: int, n_files: int) -> str:
    """Write the rows of a cell to a folder of files."""
    random = np.random.default_rng(0)
    keys = {f"key{number}": random.integers(0, n_categories, n_rows) for number in range(n_keys)}
    table = pa.table({"visit": np.arange(n_rows), **keys, "bought": random.integers(0, 2, n_rows)})
    folder.mkdir()
    borders = [number * n_rows // n_files for number in range(n_files + 1)]
    for number, start in enumerate(borders[:-1]):
        pq.write_table(table.slice(start, borders[number + 1] - start), folder / f"{number:05d}.parquet")
    return str(folder)


def keys_in(names: Sequence[str]) -> list[str]:
    """Give the columns that are encoded."""
    return [name for name in names if name.startswith("key")]


def encoder(names: Sequence[str]) -> TargetEncoder:
    """Make the encoder of our ways."""
    # With this seed, Spark's own hash gives the same folds.
    cv = KFold(N_FOLDS, by="visit", random_state=42)
    return TargetEncoder(columns=keys_in(names), cv=cv, smooth=MEstimate(SMOOTH), device="cpu")


def shuffled(names: Sequence[str]) -> Any:
    """Make the encoder that leaves its categories in the engine."""
    from gpu_encode.engines import DistributedEncoder

    return DistributedEncoder(encoder(names), tables="shuffle")


def ways_in_memory() -> dict[str, Call]:
    """Encode one table in memory, or files within a limit of memory; the encodings of files are written."""

    def of_table(folder: str) -> object:
        table = pq.read_table(folder)
        return encoder(table.column_names).fit_transform(table.drop_columns(["bought"]), table["bought"])

    def of_files(folder: str) -> object:
        names, target = pq.read_schema(next(Path(folder).iterdir())).names, f"{folder}-codes"
        return encode_dataset(folder, target, encoder(names), target="bought", memory_limit="1GiB", overwrite=True)

    return {"table": of_table, "files": of_files}


def ways_of_dask() -> dict[str, Call]:
    """Encode a frame of Dask, on two threads."""
    import dask
    import dask.dataframe as dd

    dask.config.set(scheduler="threads", num_workers=2)

    def ours(make: Callable[[Sequence[str]], Any], folder: str) -> object:
        rows = dd.read_parquet(folder)
        features = rows.drop(columns="bought")
        return make(features.columns).fit_transform(features, rows["bought"]).map_partitions(len).compute()

    def by_hand(folder: str) -> object:
        made = rows = dd.read_parquet(folder).assign(fold=lambda rows: rows["visit"] % N_FOLDS)
        of_fold = rows.groupby("fold")["bought"].agg(["sum", "count"]).compute()
        s, n = of_fold["sum"].sum() - of_fold["sum"], of_fold["count"].sum() - of_fold["count"]
        for key in keys_in(rows.columns):
            own, of_all = (
                rows.groupby(by)["bought"].agg(["sum", "count"]).rename(columns=names).reset_index()
                for by, names in (
                    ([key, "fold"], {"sum": "own_s", "count": "own_n"}),
                    (key, {"sum": "s", "count": "n"}),
                )
            )
            made = made.merge(own, on=[key, "fold"]).merge(of_all, on=key)
            prior = made["fold"].map(s / n, meta=("fold", "f8"))
            made[f"{key}_"] = (made["s"] - made["own_s"] + SMOOTH * prior) / (made["n"] - made["own_n"] + SMOOTH)
            made = made.drop(columns=["s", "n", "own_s", "own_n"])
        return made.map_partitions(len).compute()

    return {
        "dask": lambda folder: ours(encoder, folder),
        "dask-shuffle": lambda folder: ours(shuffled, folder),
        "dask-by-hand": by_hand,
    }


def ways_of_ray() -> dict[str, Call]:
    """Encode a dataset of Ray, on two processors."""
    import ray

    # Ray would end workers that idle between passes, and new ones import for seconds.
    settings = {"idle_worker_killing_time_threshold_ms": 600_000}
    words: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False, "object_store_memory": 1 << 30}
    ray.init(num_cpus=2, _system_config=settings, **words)

    def ours(make: Callable[[Sequence[str]], Any], folder: str) -> None:
        rows = ray.data.read_parquet(folder)
        for _ in make(rows.columns()).fit_transform(rows, "bought").iter_internal_ref_bundles():
            pass

    return {"ray": lambda folder: ours(encoder, folder), "ray-shuffle": lambda folder: ours(shuffled, folder)}


def ways_of_spark() -> dict[str, Call]:
    """Encode a frame of Spark, on two threads."""
    from pyspark.sql import SparkSession

    # The workers' Python is that of this process, whatever `python3` is.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": os.environ.get("BENCH_MEMORY", "3g"),
        "spark.sql.shuffle.partitions": "4",
        # Each file is a partition.
        "spark.sql.files.openCostInBytes": str(1 << 30),
    }
    if daemon := os.environ.get("BENCH_DAEMON"):
        settings["spark.python.daemon.module"] = daemon
    session = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()

    def way(make: Callable[[Any], Any]) -> Call:
        def call(folder: str) -> None:
            make(session.read.parquet(folder)).write.format("noop").mode("overwrite").save()

        return call

    def wake(_: str) -> None:
        # Spark ends Python's processes that had no work for a minute; new ones would import the library in a call.
        session.range(0, 2, 1, 2).mapInArrow(importing, "id long").collect()

    return {
        "wake": wake,
        "spark": way(lambda rows: encoder(rows.columns).fit_transform(rows, "bought")),
        "spark-shuffle": way(lambda rows: shuffled(rows.columns).fit_transform(rows, "bought")),
        "spark-window": way(windows),
        "spark-by-hand": way(group_bys),
        "spark-ml": way(of_pyspark_ml),
    }


def importing(batches: Iterator[Any]) -> Iterator[Any]:
    """Import what our passes need."""
    from gpu_encode.scale.engines import calls  # noqa: F401

    yield from batches


def with_priors(rows: Any) -> Any:
    """Give rows of Spark with their fold, and the mean of the target over the other folds."""
    folded = rows.selectExpr("*", f"pmod(xxhash64(visit), {N_FOLDS}) as fold")
    summed = sum_by(folded, ["fold"], s="sum(bought)", n="count(1)")
    of_all = summed.selectExpr("fold", "(sum(s) over () - s) / (sum(n) over () - n) as prior")
    return folded.join(of_all.hint("broadcast"), "fold")


def sum_by(rows: Any, keys: list[str], **sums: str) -> Any:
    """Group rows of Spark and sum them."""
    from pyspark.sql import functions

    return rows.groupBy(*keys).agg(*(functions.expr(text).alias(name) for name, text in sums.items()))


def smoothed(rows: Any, key: str, total: str, number: str) -> Any:
    """Replace a key by the mean of a category's rows, drawn to that of the rows that a fold may see."""
    others = [name for name in rows.columns if name not in (key, "s", "n", "own_s", "own_n")]
    return rows.selectExpr(*others, f"({total} + {SMOOTH} * prior) / ({number} + {SMOOTH}) as {key}")


def windows(rows: Any) -> Any:
    """Sum over the rows of a category, less those of its own fold."""
    made = with_priors(rows)
    for key in keys_in(rows.columns):
        over, own = f"over (partition by {key})", f"over (partition by {key}, fold)"
        s, n = f"sum(double(bought)) {over} - sum(double(bought)) {own}", f"count(1) {over} - count(1) {own}"
        made = smoothed(made.selectExpr("*", f"{s} as s", f"{n} as n"), key, "s", "n")
    return made.drop("fold", "prior", "bought")


def group_bys(rows: Any) -> Any:
    """Sum by category and fold, then by category, and join both to rows."""
    made = folded = with_priors(rows)
    for key in keys_in(rows.columns):
        own = sum_by(folded, [key, "fold"], own_s="sum(bought)", own_n="count(1)")
        of_all = sum_by(own, [key], s="sum(own_s)", n="sum(own_n)")
        made = smoothed(made.join(own, [key, "fold"]).join(of_all, key), key, "(s - own_s)", "(n - own_n)")
    return made.drop("fold", "prior", "bought")


def of_pyspark_ml(rows: Any) -> Any:
    """Encode with the encoder of Spark."""
    from pyspark.ml.feature import TargetEncoder as Encoder

    keys = keys_in(rows.columns)
    made = [f"{key}_encoded" for key in keys]
    theirs = Encoder(inputCols=keys, outputCols=made, labelCol="bought", targetType="binary", smoothing=SMOOTH)
    given = rows.selectExpr("visit", *(f"double({name}) as {name}" for name in [*keys, "bought"]))
    return theirs.fit(given).transform(given).select("visit", *made)


ENGINES = {"dask": ways_of_dask, "spark": ways_of_spark, "ray": ways_of_ray, "memory": ways_in_memory}
WAYS = ["table", "files", "dask", "spark", "ray"]


def engine_of(way: str) -> str:
    """Name the engine of a way."""
    name = way.split("-", maxsplit=1)[0]
    return name if name in ENGINES else "memory"


def processor_seconds() -> dict[int, float]:
    """Give the processor seconds of this process, and of each that it has started."""
    seconds = {}
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        with suppress(psutil.Error):
            seconds[process.pid] = sum(process.cpu_times()[:2])
    return seconds


def seconds_of(call: Call, folder: str) -> tuple[float, float]:
    """Give the processor seconds of a call, and the seconds that passed; processes that end meanwhile do not count."""
    before, begun = processor_seconds(), time.perf_counter()
    call(folder)
    passed, after = time.perf_counter() - begun, processor_seconds()
    return sum(seconds - before.get(process, 0.0) for process, seconds in after.items()), passed


def measure(ways: list[str], folders: list[str], turns: int) -> None:
    """Print a line for each way of an engine and folder: the least of the seconds of all turns."""
    calls = ENGINES[engine_of(ways[0])]()
    wake = calls.get("wake", lambda _: None)
    for folder in folders:
        found: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
        for way in ways:
            calls[way](folder)
        for way in ways * turns:
            wake(folder)
            found[way].append(seconds_of(calls[way], folder))
        for way in ways:
            spent, passed = (min(turn[which] for turn in found[way]) for which in (0, 1))
            print(f"| {way} | {' | '.join(Path(folder).name.split('-'))} | {spent:.2f} | {passed:.2f} |", flush=True)


def cells(given: argparse.Namespace) -> Iterator[tuple[int, int, int, int]]:
    """Give the numbers of rows, categories, keys and files that are asked for."""
    of_rows, of_categories, of_keys, of_files = (
        [int(float(number)) for number in text.split(",")] if text else [0]
        for text in (given.rows, given.categories, given.keys, given.files)
    )
    for n_rows, n_categories, n_keys, n_files in product(of_rows, of_categories, of_keys, of_files):
        yield n_rows, n_categories or n_rows // 10, n_keys, n_files


def main() -> None:
    """Measure the ways of each engine in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="1e5,1e6")
    parser.add_argument("--categories", help="by default a tenth as many as rows")
    parser.add_argument("--keys", default="1")
    parser.add_argument("--files", default="4")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--folders", help=argparse.SUPPRESS)
    given = parser.parse_args()
    ways = given.ways.split(",")
    if given.folders:
        return measure(ways, given.folders.split(","), given.turns)
    folder = Path(tempfile.mkdtemp(prefix="engines-"))
    try:
        names = [write_rows(folder / "-".join(map(str, cell)), *cell) for cell in cells(given)]
        head = ["way", "rows", "categories", "keys", "files", "processor seconds", "seconds"]
        print(f"| {' | '.join(head)} |\n| --- |{' ---: |' * 6}", flush=True)
        for engine in dict.fromkeys(map(engine_of, ways)):
            own = [way for way in ways if engine_of(way) == engine]
            if find_spec(LIBRARIES.get(engine, "pyarrow")) is not None:
                words = ["--ways", ",".join(own), "--folders", ",".join(names), "--turns", str(given.turns)]
                run([sys.executable, "-m", "benchmarks.engines", *words], check=True)
    finally:
        shutil.rmtree(folder)
    return None


if __name__ == "__main__":
    main()
