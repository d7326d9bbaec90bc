"""A cluster of Dask whose worker processes may die: the result has the same bits."""

import os
import signal
import time

import dask
import pandas as pd
import pytest
from distributed import Client, LocalCluster, wait

from gpu_encode import KFold, LeaveOneOut, Ordered, TargetEncoder
from gpu_encode.scale.dask.exchange import choose_shuffle, exchange, pack
from gpu_encode.scale.engines import DistributedEncoder
from tests.bits import assert_same_encoder
from tests.scale.dask.cases import KEYS, assert_same, rows
from tests.scale.dask.loading import lazy, visits

N_ROWS = 180
WHOLE = rows(N_ROWS)
SECONDS = 120
# A worker that dies takes its sockets with it.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*see no rows", "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture(scope="module")
def client():
    with (
        # Dask gives up a missing worker this long after any of its deaths, and a shuffle when a dead worker
        # has not answered.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1h", "distributed.comm.timeouts.connect": "5s"}),
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster, timeout=SECONDS) as connected,
    ):
        yield connected


@pytest.fixture(autouse=True)
def _both_workers(client):
    """Wait for the workers that replace dead ones."""
    client.wait_for_workers(2, timeout=SECONDS)


def wanted(scheme):
    whole = TargetEncoder(cv=scheme)
    return whole, whole.fit_transform(WHOLE[KEYS], WHOLE["amount"])


@pytest.mark.parametrize("scheme", [KFold(4), Ordered(shuffle=False)], ids=["folds", "rows in order"])
def test_a_cluster_gives_the_same_bits(client, scheme):
    whole, encodings = wanted(scheme)
    cut, encoder = lazy(N_ROWS), TargetEncoder(cv=scheme)
    assert_same(encoder.fit_transform(cut[KEYS], cut["amount"]).compute(), encodings)
    assert_same_encoder(encoder, whole)
    new = encoder.transform(cut[KEYS]).persist()
    wait(new, timeout=SECONDS)
    assert_same(new.compute(), whole.transform(WHOLE[KEYS]))


def test_futures_are_taken(client):
    _, encodings = wanted(KFold(4))
    cut = lazy(N_ROWS)
    X, y = client.compute(cut[KEYS].to_delayed()), client.compute(cut["amount"].to_delayed())
    parts = client.gather(client.compute(TargetEncoder(cv=KFold(4)).fit_transform(X, y)))
    assert_same(pd.concat(parts), encodings)


@pytest.mark.parametrize(
    ("scheme", "visit"),
    [
        pytest.param(KFold(4), 1, id="profile", marks=pytest.mark.nightly),
        pytest.param(KFold(4), 2, id="measure"),
        pytest.param(KFold(4), 3, id="encode", marks=pytest.mark.nightly),
        pytest.param(LeaveOneOut(), 3, id="encode, leave one out", marks=pytest.mark.nightly),
        pytest.param(Ordered(2), 3, id="shuffle", marks=pytest.mark.nightly),
        pytest.param(Ordered(2), 4, id="encode, shuffled"),
    ],
)
def test_a_worker_is_killed(client, tmp_path, visit, scheme):
    whole, encodings = wanted(scheme)
    before = client.run(os.getpid)
    cut, encoder = lazy(N_ROWS, tmp_path, dying=(3, visit)), TargetEncoder(cv=scheme)
    assert_same(encoder.fit_transform(cut[KEYS], cut["amount"]).compute(), encodings)
    assert_same_encoder(encoder, whole)
    assert visits(tmp_path)[3] >= 4
    client.wait_for_workers(2, timeout=SECONDS)
    assert len(before.items() & client.run(os.getpid).items()) == 1


@pytest.mark.parametrize(
    "visit",
    [
        pytest.param(visit, id=name, marks=() if name == "sum" else (pytest.mark.long, pytest.mark.nightly))
        for visit, name in enumerate(["count", "profile", "total", "sum", "deal", "put together"], start=1)
    ],
)
def test_a_worker_is_killed_while_tables_stay_there(client, tmp_path, visit):
    _, encodings = wanted(KFold(4))
    before = client.run(os.getpid)
    cut, encoder = lazy(N_ROWS, tmp_path, dying=(3, visit)), DistributedEncoder(TargetEncoder(cv=KFold(4)), "shuffle")
    assert_same(encoder.fit_transform(cut[KEYS], cut["amount"]).compute(), encodings)
    assert visits(tmp_path)[3] >= 7
    client.wait_for_workers(2, timeout=SECONDS)
    assert len(before.items() & client.run(os.getpid).items()) == 1


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(TargetEncoder, marks=pytest.mark.nightly),
        lambda cv: DistributedEncoder(TargetEncoder(cv=cv), "shuffle"),
    ],
)
def test_the_workers_that_hold_the_tables_are_killed(client, make):
    """The data behind the lazy encodings are lost, and are made again."""
    _, encodings = wanted(KFold(4))
    cut, encoder = lazy(N_ROWS), make(cv=KFold(4))
    training = encoder.fit_transform(cut[KEYS], cut["amount"])
    holders = [worker for worker, keys in client.has_what().items() if keys]
    assert holders
    for pid in client.run(os.getpid, workers=holders).values():
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + SECONDS
    while any(client.has_what().get(worker) for worker in holders):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert_same(training.compute(), encodings)


@pytest.mark.usefixtures("client")
def test_there_is_no_task_for_each_pair_of_a_partition_and_a_place():
    given = [dask.delayed(pack)(sender, enumerate(range(50))) for sender in range(50)]
    received = exchange("pieces", given, 50, lambda _, pieces: sum(piece for _, piece in pieces))
    assert len(dict(received[0].__dask_graph__())) < 10 * 50
    assert dask.compute(*received) == tuple(50 * piece for piece in range(50))


@pytest.mark.parametrize(("method", "chosen"), [(None, "p2p"), ("disk", "p2p"), ("p2p", "p2p"), ("tasks", "tasks")])
def test_pieces_never_go_through_files_of_one_machine(client, method, chosen):
    """However the configuration names the client that computes."""
    with Client(client.cluster, set_as_default=False) as another, dask.config.set({"dataframe.shuffle.method": method}):
        for config in ({}, {"scheduler": another}):
            with dask.config.set(config):
                assert choose_shuffle() == chosen
        with dask.config.set(scheduler="synchronous"):
            assert choose_shuffle() == "tasks"


def test_errors_come_back_from_workers(client):
    cut = lazy(N_ROWS)
    bad = cut["amount"].mask(cut["amount"] == WHOLE["amount"].iloc[100])
    with pytest.raises(ValueError, match=r"row 100 \(row \d+ of partition \d\)"):
        TargetEncoder().fit(cut[KEYS], bad)


def test_nothing_of_a_fit_stays_on_the_cluster(client):
    def await_held(number):
        """Wait until the cluster, which forgets with delay, holds `number` results, and no more for a while."""
        deadline, since = time.monotonic() + SECONDS, None
        while since is None or time.monotonic() - since < 0.3:
            assert time.monotonic() < deadline
            held = len({key for keys in client.has_what().values() for key in keys})
            since = (since or time.monotonic()) if held == number else None
            time.sleep(0.05)

    cut = lazy(N_ROWS)
    TargetEncoder().fit(cut[KEYS], cut["amount"])
    await_held(0)
    encodings = TargetEncoder().fit_transform(cut[KEYS], cut["amount"])
    await_held(1)
    del encodings
    await_held(0)
