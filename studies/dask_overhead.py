"""What does Dask cost, compared with the direct call? The same rows as one frame, and in partitions on the workers.

    python -m studies.dask_overhead [--rows 1e7] [--partitions 16] [--contenders direct,threads] [--quick]

A time includes the fit and all training encodings, which must have the bits of the direct call.  With ten rows in a
partition, it is the cost of the partitions themselves.
"""

import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster, wait

from benchmarks.harness.grid import Cell, Contender, Grid, Prepared, Topic
from benchmarks.harness.judge import Answer, Verdict
from benchmarks.harness.machine import cores
from benchmarks.harness.program import main
from gpu_encode import KFold, TargetEncoder

KEYS = ["shop", "city"]
N_SHOPS = 100_000


def draw_partition(number: int, n_rows: int) -> pd.DataFrame:
    """Make the rows of one partition: a key of numbers, a key of text, and a real target."""
    rng = np.random.default_rng(number)
    cities = np.array([f"city {each:04d}" for each in range(1000)], dtype=object)
    columns = {"shop": rng.zipf(1.2, n_rows) % N_SHOPS, "city": cities[rng.integers(0, len(cities), n_rows)]}
    return pd.DataFrame({**columns, "sold": rng.normal(size=n_rows)}).astype({"city": "string[pyarrow]"})


def encode(frame: Any) -> Any:
    """Give training encodings of five folds; they are lazy if the frame is lazy."""
    return TargetEncoder(cv=KFold(5), smooth=10.0, device="cpu").fit_transform(frame[KEYS], frame["sold"])


class Left:
    """Encodings that stay in their partitions."""

    def __init__(self, lazy: Any) -> None:
        self.lazy = lazy


class Collected(Answer):
    """The expected encodings, compared with encodings in partitions."""

    def verdict(self, given: Any) -> Verdict:
        """Give the fault of encodings, in one frame or in partitions."""
        return super().verdict(given.lazy.compute() if isinstance(given, Left) else given)


def open_frame(_: Path, cell: Cell, first: int | None = None) -> tuple[Cell, pd.DataFrame]:
    """Open all partitions as one frame."""
    each = (first or cell["rows"]) // cell["partitions"]
    parts = [draw_partition(number, each) for number in range(cell["partitions"])]
    return cell, pd.concat(parts, ignore_index=True)


def prepare(rows: tuple[Cell, pd.DataFrame], scheduler: str) -> Prepared:
    """Prepare the direct call, or a scheduler."""
    cell, whole = rows
    expected = Collected.of(encode(whole), 0.0)
    if scheduler == "direct":
        return Prepared(lambda: encode(whole), expected)
    with ExitStack() as stack:
        if scheduler == "cluster":
            workers = {"n_workers": cores(), "threads_per_worker": 1, "dashboard_address": None}
            stack.enter_context(Client(stack.enter_context(LocalCluster(**workers))))
        else:
            stack.enter_context(dask.config.set(scheduler=scheduler, num_workers=cores()))
        numbers, n_rows = range(cell["partitions"]), len(whole) // cell["partitions"]
        frame = dd.from_map(draw_partition, numbers, n_rows=n_rows, meta=draw_partition(0, 1).iloc[:0]).persist()

        def call() -> Left:
            lazy = encode(frame).persist()
            if scheduler == "cluster":
                wait(lazy)
            return Left(lazy)

        return Prepared(call, expected, stack.pop_all().close)


SCHEDULERS = ("synchronous", "threads", "cluster")
CONTENDERS = (
    Contender("direct", "ours", partial(prepare, scheduler="direct"), compiles=True),
    *(Contender(name, name, partial(prepare, scheduler=name), compiles=True) for name in SCHEDULERS),
)
GRID = Grid(
    "dask",
    {"rows": (160, 10_000_000), "partitions": (16,)},
    CONTENDERS,
    {"rows": (900,), "partitions": (3,)},
    draw=lambda root, _: root,
    open=open_frame,
)
PACKAGES = ("gpu-encode", "dask", "distributed", "pandas", "numpy")
TOPIC = Topic("studies.dask_overhead", "What Dask costs", (GRID,), packages=PACKAGES)

if __name__ == "__main__":
    sys.exit(main(TOPIC, __doc__))
