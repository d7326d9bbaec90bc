"""What does Dask cost beside the direct call?  The same rows whole, and in partitions that lie where they are encoded.

    python benchmarks/dask_overhead.py [--rows 10_000_000] [--partitions 16] [--write benchmarks/results/dask.json]

The first time is of what is learned and of all training codes, the median of several calls in warm processes; all codes
are compared with those of the direct call, bit for bit.  "A partition" is the time that one of ten rows takes: what a
partition costs, whatever is in it.
"""

import argparse
import hashlib
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster, wait

from gpu_encode import KFold, TargetEncoder

KEYS = ["shop", "city"]
N_SHOPS = 100_000


def rows(number: int, n_rows: int) -> pd.DataFrame:
    """Rows of one partition: a key of numbers, a key of text, and a real target."""
    rng = np.random.default_rng(number)
    cities = np.array([f"city {each:04d}" for each in range(1000)], dtype=object)
    return pd.DataFrame(
        {
            "shop": rng.zipf(1.2, n_rows) % N_SHOPS,
            "city": cities[rng.integers(0, len(cities), n_rows)],
            "sold": rng.normal(size=n_rows),
        }
    ).astype({"city": "string[pyarrow]"})


def encoder() -> TargetEncoder:
    return TargetEncoder(cv=KFold(5), smooth=10.0, device="cpu")


def digest(codes: pd.DataFrame) -> str:
    """Fingerprint of the bits of a table of codes."""
    return hashlib.sha256(np.ascontiguousarray(codes.to_numpy()).tobytes()).hexdigest()


def median(call: Callable[[], tuple[float, ...]], repeats: int) -> list[float]:
    """Median of each of the times that a call gives."""
    return [statistics.median(each) for each in zip(*(call() for _ in range(repeats)), strict=True)]


def direct(frame: pd.DataFrame) -> tuple[float]:
    start = time.perf_counter()
    encoder().fit_transform(frame[KEYS], frame["sold"])
    return (time.perf_counter() - start,)


def in_partitions(frame: Any, finish: Callable[[Any], Any]) -> tuple[float, float]:
    start = time.perf_counter()
    codes = encoder().fit_transform(frame[KEYS], frame["sold"])
    fitted = time.perf_counter()
    finish(codes)
    return fitted - start, time.perf_counter() - fitted


@contextmanager
def scheduler(name: str, workers: int) -> Iterator[Callable[[Any], Any]]:
    """Set a scheduler; give what computes a lazy frame and leaves it where it is."""
    if name != "cluster":
        with dask.config.set(scheduler=name, num_workers=workers):
            yield lambda lazy: lazy.persist()
        return
    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        yield lambda lazy: wait(lazy.persist())


def measured(name: str, options: argparse.Namespace, n_rows: int) -> tuple[list[float], list[str]]:
    """Times of a scheduler on partitions of so many rows, and the fingerprint of each partition's codes."""
    with scheduler(name, options.workers) as finish:
        meta = rows(0, 1).iloc[:0]
        frame = dd.from_map(rows, range(options.partitions), n_rows=n_rows, meta=meta).persist()
        wait(frame) if name == "cluster" else None
        codes = encoder().fit_transform(frame[KEYS], frame["sold"])
        prints = list(dask.compute(*(dask.delayed(digest)(part) for part in codes.to_delayed())))
        return median(lambda: in_partitions(frame, finish), options.repeats), prints


def compared(options: argparse.Namespace) -> dict[str, Any]:
    """Measure the direct call and every scheduler."""
    each = options.rows // options.partitions
    whole = pd.concat([rows(number, each) for number in range(options.partitions)], ignore_index=True)
    codes = encoder().fit_transform(whole[KEYS], whole["sold"])
    wanted = [digest(codes[start : start + each]) for start in range(0, len(codes), each)]
    found: dict[str, Any] = {"direct": {"seconds": median(lambda: direct(whole), options.repeats)[0]}}
    for name in options.schedulers:
        (fit, taken), prints = measured(name, options, each)
        bare, _ = measured(name, options, 10)
        found[name] = {
            "fit seconds": fit,
            "codes seconds": taken,
            "seconds": fit + taken,
            "seconds of a partition": sum(bare) / options.partitions,
            "same bits": prints == wanted,
        }
    return found


def main(given: list[str] | None = None) -> int:
    """Measure, print a table, and write it where asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--schedulers", nargs="+", default=["synchronous", "threads", "cluster"])
    parser.add_argument("--write", type=Path, help="a file for the results, as JSON")
    options = parser.parse_args(given)
    found = compared(options)
    versions = {name: version(name) for name in ("dask", "distributed", "pandas", "numpy")}
    size = {name: getattr(options, name) for name in ("rows", "partitions", "workers", "repeats")}
    print(
        f"{options.rows:,} rows in {options.partitions} partitions, {options.workers} workers, on {platform.machine()}"
    )
    for name, times in found.items():
        ratio = times["seconds"] / found["direct"]["seconds"]
        bare = f", a partition {1e3 * times['seconds of a partition']:.1f} ms" if name != "direct" else ""
        same = "" if times.get("same bits", True) else "  OTHER BITS"
        print(f"{name:12} {times['seconds']:8.2f} s  {ratio:5.2f} times the direct call{bare}{same}")
    if options.write:
        options.write.write_text(json.dumps({"size": size, "versions": versions, "times": found}, indent=2) + "\n")
    return 0 if all(times.get("same bits", True) for times in found.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
