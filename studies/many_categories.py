"""More categories than fit one process: do files and engines give the same bits, in which time and memory?

    python -m studies.many_categories rows --rows 6e7 --categories 2e7 --folder /mnt/large
    python -m studies.many_categories files --folder /mnt/large --limit 1GiB
    python -m studies.many_categories dask --folder /mnt/large --limit 2GiB
    python -m studies.many_categories spark --folder /mnt/large

The first command writes rows with one text key, a target of two classes, and a number from which `KFold` computes
folds.  Each of the others writes training encodings to a folder of its own.  It prints seconds, the most memory of any
process, and a hash of all encodings in the order of the rows, which must be the same for all.  `--limit` is the
`memory_limit` of files and of each of two workers of Dask; the memory of Spark's driver, in whose process the two
threads work (1 GiB by default); and the memory of Ray's object store.
"""

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.parquet

from benchmarks.harness.arguments import whole_number
from gpu_encode import KFold, TargetEncoder, encode_dataset


def make_encoder() -> TargetEncoder:
    """Make the encoder that all ways fit."""
    return TargetEncoder(columns=["customer"], cv=KFold(5, by="visit"), smooth=10.0, device="cpu")


def write_rows(folder: Path, n_rows: int, n_categories: int, rows_a_file: int = 1_000_000) -> None:
    """Write rows whose customers are drawn at random."""
    (folder / "rows").mkdir(parents=True)
    for number, start in enumerate(range(0, n_rows, rows_a_file)):
        generator = np.random.default_rng(number)
        n = min(rows_a_file, n_rows - start)
        digits = pc.utf8_lpad(pa.array(generator.integers(0, n_categories, n)).cast(pa.string()), 12, "0")
        customer = pc.binary_join_element_wise("customer", digits, "-")
        bought = pa.array(generator.integers(0, 2, n))
        table = pa.table({"visit": np.arange(start, start + n), "customer": customer, "bought": bought})
        pa.parquet.write_table(table, folder / "rows" / f"{number:04d}.parquet")


def encode_files(source: Path, destination: Path, limit: str, tables: Any) -> None:
    """Encode with `encode_dataset`."""
    done = encode_dataset(source, f"{destination}/", make_encoder(), target="bought", memory_limit=limit, tables=tables)
    print(done)


def encode_in_dask(source: Path, destination: Path, limit: str) -> None:
    """Encode with Dask on two workers."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    from gpu_encode.scale.engines import DistributedEncoder

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=limit, dashboard_address=None)
    with cluster, Client(cluster):
        rows = dd.read_parquet(source, blocksize=None)  # a partition a file
        encoder = DistributedEncoder(make_encoder(), tables="shuffle")
        encodings = encoder.fit_transform(rows[["visit", "customer"]], rows["bought"])
        encodings.to_parquet(destination, write_index=False)


def encode_in_spark(source: Path, destination: Path, limit: str) -> None:
    """Encode with Spark, in a process with two threads."""
    from pyspark.sql import SparkSession

    from gpu_encode.scale.engines import DistributedEncoder

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    driver_memory = limit.removesuffix("iB").lower()
    spark = SparkSession.builder.master("local[2]").config("spark.driver.memory", driver_memory).getOrCreate()
    rows = spark.read.parquet(str(source))
    DistributedEncoder(make_encoder(), tables="shuffle").fit_transform(rows, "bought").write.parquet(str(destination))
    spark.stop()


def encode_in_ray(source: Path, destination: Path, limit: str) -> None:
    """Encode with Ray on two processors."""
    import ray
    from dask.utils import parse_bytes

    from gpu_encode.scale.engines import DistributedEncoder

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=parse_bytes(limit))
    ray.data.DataContext.get_current().enable_progress_bars = False
    rows = ray.data.read_parquet(str(source))
    DistributedEncoder(make_encoder(), tables="shuffle").fit_transform(rows, "bought").write_parquet(str(destination))
    ray.shutdown()


CONTENDERS: dict[str, Callable[[Path, Path, str], None]] = {
    "memory": lambda source, destination, limit: encode_files(source, destination, limit, "memory"),
    "files": lambda source, destination, limit: encode_files(source, destination, limit, "disk"),
    "dask": encode_in_dask,
    "spark": encode_in_spark,
    "ray": encode_in_ray,
}


def digest(destination: Path) -> str:
    """Give a hash of all encodings in the order of the row numbers."""
    found = pyarrow.dataset.dataset(destination, format="parquet")
    encodings = np.full(found.count_rows(), np.nan)
    for batch in found.to_batches(columns=["visit", "customer"]):
        encodings[batch["visit"].to_numpy()] = batch["customer"].to_numpy()
    assert not np.isnan(encodings).any(), "rows are lost, or came twice"
    return sha256(encodings.tobytes()).hexdigest()


class Watch(threading.Thread):
    """Records the most resident bytes of this process and of each of its child processes, by program."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most: dict[str, int] = {}

    def run(self) -> None:
        """Read the memory twice a second."""
        while True:
            own = psutil.Process()
            for process in [own, *own.children(recursive=True)]:
                try:
                    name = "this process" if process == own else process.name()
                    self.most[name] = max(self.most.get(name, 0), process.memory_info().rss)
                except psutil.Error:
                    continue
            time.sleep(0.5)


def encode(what: str, folder: Path, limit: str) -> dict[str, Any]:
    """Encode the rows of a folder in one way, and give the figures to print."""
    watch, start, destination = Watch(), time.perf_counter(), folder / what
    watch.start()
    CONTENDERS[what](folder / "rows", destination, limit)
    seconds = time.perf_counter() - start
    most = {name: n_bytes >> 20 for name, n_bytes in watch.most.items()}
    return {"way": what, "seconds": round(seconds), "most_mib": most, "bits": digest(destination)}


def main() -> None:
    """Write rows, or encode them in one way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["rows", *CONTENDERS])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--rows", type=whole_number, default=60_000_000)
    parser.add_argument("--categories", type=whole_number, default=20_000_000)
    parser.add_argument("--limit", default="1GiB")
    options = parser.parse_args()
    if options.what == "rows":
        write_rows(options.folder, options.rows, options.categories)
        return
    print(json.dumps(encode(options.what, options.folder, options.limit)))


if __name__ == "__main__":
    main()
