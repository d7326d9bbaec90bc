"""Workers of little memory, and many text categories: a hundredth of 6e7 rows of 2e7, limits scaled alike."""

import os
from pathlib import Path

import pandas as pd
import pytest
from distributed import Client, LocalCluster

from gpu_encode import KFold, TargetEncoder
from gpu_encode.distributed import shuffle
from gpu_encode.engines import DistributedEncoder
from tests.distributed.cases import assert_same
from tests.distributed.many import lazy_visits, visits

STATUS = Path("/proc/self/status")
N_PARTITIONS, N_ROWS, N_CATEGORIES = 60, 10_000, 200_000
# Some 350 are Python, Dask and the libraries.
LIMIT = 512
pytestmark = [
    pytest.mark.host,
    pytest.mark.long,
    pytest.mark.skipif(not STATUS.exists(), reason="the most that a process had is read from Linux"),
    pytest.mark.skipif("MANY_CATEGORIES" not in os.environ, reason="a minute: MANY_CATEGORIES=1 runs it"),
]


def most():
    """Give the most MiB that this process ever had."""
    [line] = [line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def test_more_categories_than_a_worker_takes(monkeypatch):
    monkeypatch.setattr(shuffle, "PLACE_BYTES", shuffle.PLACE_BYTES // 100)
    frame = pd.concat([visits(number, N_ROWS, N_CATEGORIES) for number in range(N_PARTITIONS)], ignore_index=True)
    whole = TargetEncoder(columns=["visitor"], cv=KFold(5))
    wanted = whole.fit_transform(frame[["visit_id", "visitor"]], frame["bought"])
    rows = lazy_visits(N_PARTITIONS, N_ROWS, N_CATEGORIES)
    encoder = DistributedEncoder(TargetEncoder(columns=["visitor"], cv=KFold(5)), tables="shuffle")
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit=f"{LIMIT}MiB", dashboard_address=None, silence_logs=50
        ) as cluster,
        Client(cluster) as client,
    ):
        training = encoder.fit_transform(rows[["visit_id", "visitor"]], rows["bought"])
        assert encoder.encodings_.numbers[0] > 100
        assert_same(training.compute().reset_index(drop=True), wanted)
        new = encoder.transform(rows[["visit_id", "visitor"]]).compute()
        assert_same(new.reset_index(drop=True), whole.transform(frame[["visit_id", "visitor"]]))
        assert max(client.run(most).values()) < LIMIT
