"""Every scheduler of Dask gives the same bits, and rows stay where they are."""

import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import dask
import pytest
from dask.base import collections_to_expr

from gpu_encode import KFold, LeaveOneOut, Ordered, TargetEncoder
from gpu_encode.scale.dask import tasks
from gpu_encode.scale.dask.partitions import Partition
from gpu_encode.scale.parts import plan
from tests.bits import assert_same_encoder
from tests.cases import some_of
from tests.scale.dask.cases import KEYS, assert_same, rows
from tests.scale.dask.loading import lazy, visits

N_ROWS = 180
SCHEMES = [KFold(4), LeaveOneOut(), Ordered(2), Ordered(shuffle=False)]
pytestmark = [pytest.mark.usefixtures("synchronous"), pytest.mark.filterwarnings("ignore:.*see no rows")]
NAMES = ["folds", "leave one out", "orders", "rows in order"]


@pytest.fixture(scope="module")
def pool():
    """Worker processes that outlive a call, so that they import only once."""
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:
        yield processes


def check(scheme, **how):
    """Fit, and encode training rows and new rows, of lazy data."""
    encoder, whole = TargetEncoder(cv=scheme), TargetEncoder(cv=scheme)
    lazy_rows, frame = lazy(N_ROWS), rows(N_ROWS)
    expected = whole.fit_transform(frame[KEYS], frame["amount"], sample_weight=frame["weight"])
    with dask.config.set(**how):
        training = encoder.fit_transform(lazy_rows[KEYS], lazy_rows["amount"], sample_weight=lazy_rows["weight"])
        assert_same(training.compute(), expected)
        assert_same(encoder.transform(lazy_rows[KEYS]).compute(), whole.transform(frame[KEYS]))
        assert_same_encoder(encoder, whole)


@pytest.mark.parametrize(
    ("scheme", "how"),
    some_of(SCHEMES, [{}, {"scheduler": "threads", "num_workers": 4}, {"scheduler": None}]),
    ids=str,
)
def test_in_one_process(scheme, how):
    check(scheme, **how)


@pytest.mark.parametrize("scheme", [SCHEMES[0], Ordered(2)], ids=["folds", "orders"])
def test_in_processes(pool, scheme):
    check(scheme, scheduler="processes", pool=pool)


def test_each_pass_makes_each_partition_once(tmp_path):
    cut = lazy(N_ROWS, tmp_path)
    encoder = TargetEncoder()
    encodings = encoder.fit_transform(cut[KEYS], cut["amount"])
    assert visits(tmp_path) == [2] * cut.npartitions
    encodings.compute()
    assert visits(tmp_path) == [3] * cut.npartitions
    encoder.transform(cut[KEYS])
    assert visits(tmp_path) == [3] * cut.npartitions


def graph_of(collection):
    return collections_to_expr([collection]).optimize().__dask_graph__()


@pytest.mark.parametrize("scheme", SCHEMES, ids=NAMES)
def test_no_rows_are_in_the_graphs(scheme):
    sizes = []
    for n_rows in (N_ROWS, 20 * N_ROWS):
        cut = lazy(n_rows)[["city"]], lazy(n_rows)["sold"]
        encoder = TargetEncoder(cv=scheme)
        encodings, new = encoder.fit_transform(*cut), encoder.transform(cut[0])
        sizes.append(sum(len(pickle.dumps(graph_of(lazy_table))) for lazy_table in (encodings, new)))
    # An order has some hundred places for each doubling of its rows at which priors are taken.
    assert sizes[1] < (4 if isinstance(scheme, Ordered) else 1.05) * sizes[0]


def test_the_tables_are_in_the_graph_once():
    cut = lazy(N_ROWS)
    encoder = TargetEncoder(cv=KFold(2))
    encodings = encoder.fit_transform(cut[["shop"]], cut["amount"])
    for collection, holds in ((encodings, tasks.EncodingTables), (encoder.transform(cut[["shop"]]), TargetEncoder)):
        graph = graph_of(collection)
        nodes = [task for task in graph.values() if isinstance(getattr(task, "value", task), holds)]
        assert len(nodes) == 1
        others = [len(pickle.dumps(task)) for task in graph.values() if task is not nodes[0]]
        assert max(others) < len(pickle.dumps(nodes[0]))


def test_sums_grow_with_categories_alone():
    sizes = []
    for n_rows in (2000, 40_000):
        frame = rows(n_rows)
        encoder = TargetEncoder(columns=["city"])
        X, y = frame[["city", "price"]], frame["sold"]
        whole = Partition(X, y)
        counted = tasks.profile_partition(encoder._parameters(), whole)
        encoding_plan = plan(encoder, counted.profile)
        results = (counted, encoding_plan, tasks.measure_partition(encoding_plan, whole))
        sizes.append([len(pickle.dumps(result)) for result in results])
    assert all(large < 1.1 * small + 64 for small, large in zip(*sizes, strict=True))


def test_the_first_pass_reads_the_columns_of_the_scheme_alone(monkeypatch):
    seen = []
    profiled = tasks.profile_partition
    monkeypatch.setattr(
        tasks, "profile_partition", lambda known, rows: seen.append(list(rows.X.columns)) or profiled(known, rows)
    )
    cut = lazy(N_ROWS)
    for fit in ("fit_transform", "fit"):
        getattr(TargetEncoder(cv="fold", columns=["shop"]), fit)(cut[[*KEYS, "fold"]], cut["sold"])
    # Folds do not matter to new rows; the first column is there to be counted.
    assert seen == [["fold"]] * 6 + [["shop"]] * 6


def test_y_is_read_again_only_where_a_code_depends_on_its_own_row(monkeypatch):
    seen = []
    encoded = tasks.encode_partition
    monkeypatch.setattr(
        tasks, "encode_partition", lambda tables, rows: seen.append(rows.y is None) or encoded(tables, rows)
    )
    cut = lazy(N_ROWS)
    for scheme, without in ((KFold(3), True), (KFold(3, stratify=True), False), (LeaveOneOut(), False)):
        seen.clear()
        TargetEncoder(cv=scheme).fit_transform(cut[["shop"]], cut["sold"]).compute()
        assert seen == [without] * 6
