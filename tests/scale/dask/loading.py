"""Functions that workers import to make partitions."""

import os
import signal
from pathlib import Path

import dask.dataframe as dd

from tests.scale.dask.cases import cuts, rows

N_PARTITIONS = 6


def part(number, n_rows, folder=None, dying=None):
    """Make a partition; kill the process once, at one visit of one partition: `dying` is (partition, visit)."""
    if folder is not None:
        visit = next(visit for visit in range(1, 100) if taken(Path(folder) / f"{number}-{visit}"))
        if (number, visit) == dying:
            os.kill(os.getpid(), signal.SIGKILL)
    places = cuts(n_rows, N_PARTITIONS)
    return rows(n_rows).iloc[places[number] : places[number + 1]]


def taken(path):
    """Make a file, and return whether it is new."""
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def lazy(n_rows, folder=None, dying=None):
    """Give a Dask frame whose rows are made only when they are needed."""
    return dd.from_map(
        part, range(N_PARTITIONS), meta=rows(5).iloc[:0], n_rows=n_rows, folder=folder and str(folder), dying=dying
    )


def visits(folder):
    """Count how often each partition was made."""
    counts = [0] * N_PARTITIONS
    for path in Path(folder).iterdir():
        counts[int(path.name.partition("-")[0])] += 1
    return counts
