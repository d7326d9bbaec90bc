"""From how many rows an engine pays: processor seconds from Parquet to training encodings that are thrown away.

    python -m benchmarks.engines [--rows 1e5,1e6] [--ways table,files,dask,spark,ray]

The seconds are those of all processes in the second of two calls, so they do not count the start of an engine.  One key
of whole numbers with a tenth as many categories as rows, a target of two classes, five folds by the number of a row, in
four files.  A way whose library is missing is left out.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from subprocess import run

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from gpu_encode import KFold, TargetEncoder, encode_dataset

LIBRARIES = {"table": "pyarrow", "files": "pyarrow", "dask": "dask", "spark": "pyspark", "ray": "ray"}
FILES = 4


def encoder() -> TargetEncoder:
    """Make the encoder that every way fits."""
    return TargetEncoder(columns=["key"], cv=KFold(5, by="visit"), device="cpu")


def write_rows(n_rows: int, folder: Path) -> str:
    """Write the rows to a folder of files."""
    random = np.random.default_rng(0)
    columns = {"visit": np.arange(n_rows), "key": random.integers(0, n_rows // 10, n_rows)}
    table = pa.table(columns | {"bought": random.integers(0, 2, n_rows)})
    folder.mkdir()
    for number, start in enumerate(range(0, n_rows, n_rows // FILES)):
        pq.write_table(table.slice(start, n_rows // FILES), folder / f"{number}.parquet")
    return str(folder)


def way_of_table() -> Callable[[str], object]:
    """Encode one table in memory."""

    def call(folder: str) -> object:
        table = pq.read_table(folder)
        return encoder().fit_transform(table.drop_columns(["bought"]), table["bought"])

    return call


def way_of_files() -> Callable[[str], object]:
    """Encode files within a limit of memory; the encodings are written."""
    return lambda folder: encode_dataset(
        folder, f"{folder}-codes", encoder(), target="bought", memory_limit="1GiB", overwrite=True
    )


def way_of_dask() -> Callable[[str], object]:
    """Encode a frame of Dask, on two threads."""
    import dask
    import dask.dataframe as dd

    dask.config.set(scheduler="threads", num_workers=2)

    def call(folder: str) -> object:
        rows = dd.read_parquet(folder)
        return encoder().fit_transform(rows[["visit", "key"]], rows["bought"]).map_partitions(len).compute()

    return call


def way_of_spark() -> Callable[[str], object]:
    """Encode a frame of Spark, on two threads."""
    from pyspark.sql import SparkSession

    # The workers' Python is that of this process, whatever `python3` is.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.memory": "3g"}
    session = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()

    def call(folder: str) -> None:
        encodings = encoder().fit_transform(session.read.parquet(folder), "bought")
        encodings.write.format("noop").mode("overwrite").save()

    return call


def way_of_ray() -> Callable[[str], object]:
    """Encode a dataset of Ray, on two processors."""
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=1 << 30)
    return lambda folder: encoder().fit_transform(ray.data.read_parquet(folder), "bought").materialize()


WAYS = {"table": way_of_table, "files": way_of_files, "dask": way_of_dask, "spark": way_of_spark, "ray": way_of_ray}


def processor_seconds() -> float:
    """Give the processor seconds of this process and of all that it has started."""
    seconds = 0.0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        try:
            seconds += sum(process.cpu_times()[:4])
        except psutil.Error:
            continue
    return seconds


def measure(way: str, folders: list[str]) -> None:
    """Print the seconds of one way for each folder, in the second of two calls."""
    call = WAYS[way]()
    for folder in folders:
        call(folder)
        seconds, begun = processor_seconds(), time.perf_counter()
        call(folder)
        spent, passed = processor_seconds() - seconds, time.perf_counter() - begun
        print(f"| {way} | {Path(folder).name} | {spent:.2f} | {passed:.2f} |", flush=True)


def main() -> None:
    """Measure each way in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="1e5,1e6")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--folders", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.folders:
        return measure(given.ways, given.folders.split(","))
    folder = Path(tempfile.mkdtemp(prefix="engines-"))
    try:
        sizes = [int(float(number)) for number in given.rows.split(",")]
        folders = ",".join(write_rows(size, folder / str(size)) for size in sizes)
        print("| way | rows | processor seconds | seconds |\n| --- | ---: | ---: | ---: |", flush=True)
        for way in given.ways.split(","):
            if find_spec(LIBRARIES[way]) is not None:
                run([sys.executable, "-m", "benchmarks.engines", "--ways", way, "--folders", folders], check=True)
    finally:
        shutil.rmtree(folder)
    return None


if __name__ == "__main__":
    main()
