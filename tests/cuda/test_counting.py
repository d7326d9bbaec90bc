"""Counts without weights: every strategy, forced by thresholds, compared with the definition."""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

import cpu_fallback
from cpu_fallback.row_numbers import FoldPattern
from cpu_fallback.types import Rows, SumShape
from tests.backends import memory

pytestmark = pytest.mark.cuda

TABLES, BUCKETS, MEMORY = ("count_rows",), ("partition_rows", "count_buckets"), ("count_in_memory",)
ORDERS = ("random", "interleaved", "contiguous")


@pytest.fixture
def use(counting, kernels, monkeypatch):
    """Return a function that limits the kernels' shared memory and returns a list of the kernels launched after it."""

    def chosen(table_bytes):
        launched = []

        def run(name, *arguments, shared=0, **variant):
            # Partitioning rows takes the same memory, whatever the limit for a table.
            assert name in BUCKETS or shared <= table_bytes
            launched.append(name)
            kernels.run(name, *arguments, shared=shared, **variant)

        monkeypatch.setattr(counting, "engine", lambda: replace(kernels, run=run, table_bytes=table_bytes))
        return launched

    return chosen


@pytest.fixture
def small_buckets(monkeypatch):
    """Set slabs of two tiles, so that there are several; rows are partitioned however few they are."""
    partition = import_module("gpu_encode.cuda.partition")
    monkeypatch.setattr(partition, "FEWEST_ROWS", 0)
    monkeypatch.setattr(partition, "SLAB", 2 * partition.TILE)
    return partition


def rows_of(n_rows, n_categories, n_classes, hot=0.0, seed=0):
    """Return random rows, some of them missing or unknown; a share `hot` of them is in one category."""
    random = np.random.default_rng(seed)
    codes = random.integers(-2, n_categories, n_rows).astype(np.int32)
    codes[random.random(n_rows) < hot] = n_categories // 2
    return Rows(codes, random.integers(0, n_classes, n_rows).astype(np.int32) if n_classes > 1 else None)


def check(counting, rows, n_categories, folds, n_folds, n_classes, begun=0):
    """Compare all cells; the kernels add counts to `begun`, the first content of the cells."""
    accumulators = memory.zeros((n_categories + 2) * n_folds * n_classes, np.int64)
    accumulators += begun
    classes = None if rows.classes is None else memory.to_device(rows.classes)
    codes = memory.to_device(rows.codes)
    counting.count(codes, classes, folds, (n_categories + 2, n_folds, n_classes), accumulators)
    expected = cpu_fallback.accumulate(rows, SumShape(n_categories, n_folds, n_classes), folds)
    assert np.array_equal(memory.to_host(accumulators), expected.ravel() + begun)


# Limits of shared memory, in bytes: below them 258 or more cells need one strategy or the other.
FORCED = {"tables": (2048, TABLES), "buckets": (256, BUCKETS), "memory": (256, MEMORY)}


@pytest.fixture(params=FORCED)
def forced(request, use, small_buckets, monkeypatch):
    table_bytes, names = FORCED[request.param]
    if request.param == "memory":
        monkeypatch.setattr(small_buckets, "FEWEST_ROWS", 1 << 60)
    return use(table_bytes), names


@pytest.mark.parametrize("order", [*ORDERS, "given", None])
@pytest.mark.parametrize("hot", [0.0, 0.9])
def test_every_strategy(counting, forced, order, hot):
    launched, names = forced
    n_folds, n_rows = (1 if order is None else 3), 2500
    rows = rows_of(n_rows, 420 // n_folds, 1, hot)
    if order == "given":
        folds = np.arange(n_rows, dtype=np.int32) % 7 % 3
    else:
        folds = order and FoldPattern(order, 3, seed=5, n_rows=n_rows + 9, first_row=9)
    check(counting, rows, 420 // n_folds, folds, n_folds, 1)
    assert set(launched) == set(names)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes(counting, forced, n_classes):
    rows = rows_of(250, 260 // n_classes, n_classes, 0.3)
    check(counting, rows, 260 // n_classes, None, 1, n_classes, begun=7)
    assert set(forced[0]) == set(forced[1])


# 512 bytes hold a block's plan and 128 counts; four lines and slots are for missing and unknown rows.
@pytest.mark.parametrize("n_categories", [1, 2, 123, 124, 125, 126, 300])
def test_cardinalities_choose_for_themselves(counting, use, small_buckets, n_categories):
    launched = use(512)
    rows = rows_of(300, n_categories, 1)
    rows.codes[-3:] = n_categories - 1, -1, -2
    check(counting, rows, n_categories, None, 1, 1)
    assert set(launched) == set(TABLES if n_categories <= 124 else BUCKETS)


def test_each_row_its_category(counting, forced):
    rows = Rows(np.random.default_rng(1).permutation(400).astype(np.int32))
    check(counting, rows, 400, None, 1, 1)


@pytest.mark.parametrize("side", [-1, 0, 1])
@pytest.mark.parametrize("turns", ["one", "all blocks"])
def test_edges_of_blocks(counting, forced, kernels, turns, side):
    rows = 4 * kernels.threads * (1 if turns == "one" else kernels.blocks) + side
    check(counting, rows_of(rows, 260, 1), 260, FoldPattern("random", 1, 3), 1, 1)


@pytest.mark.parametrize("side", [-1, 0, 1])
@pytest.mark.parametrize("tiles", [0, 1, 2, 3, 4])
def test_edges_of_tiles_and_slabs(counting, use, small_buckets, tiles, side):
    launched, tile = use(256), small_buckets.TILE
    n_rows = max(tiles * tile + side, 0)
    check(counting, rows_of(n_rows, 150, 2, 0.5), 150, FoldPattern("random", 3, 2), 3, 2)
    assert launched == list(BUCKETS) * -(-n_rows // (2 * tile))


# The share of the most frequent category decides: as many pieces as there are tiles, or one for all buckets.
@pytest.mark.parametrize("hot", [0.0, 0.5, 0.99, 1.0])
@pytest.mark.parametrize("n_categories", [130, 400, 3000])
def test_pieces_of_buckets(counting, use, small_buckets, monkeypatch, n_categories, hot):
    monkeypatch.setattr(small_buckets, "SLAB", 1 << 20)
    use(256)
    check(counting, rows_of(9000, n_categories, 1, hot), n_categories, None, 1, 1)


@pytest.mark.parametrize("period", [1, 2, 1024, 3000])
def test_neighbouring_rows_of_one_bucket(counting, use, small_buckets, monkeypatch, period):
    # Sorted rows, so that most tiles have no row of most buckets, in few slabs and in many.
    codes = (np.arange(9000) // period % 700).astype(np.int32)
    for slab in (small_buckets.SLAB, 1 << 20):
        monkeypatch.setattr(small_buckets, "SLAB", slab)
        use(256)
        check(counting, Rows(codes), 700, None, 1, 1)


def test_more_buckets_than_there_is_room_for(counting, use, small_buckets):
    # 32 bytes: 16 cells in each bucket.
    most = 16 * small_buckets.MOST_BUCKETS
    for n_categories, names in [(most - 2, BUCKETS), (most - 1, MEMORY)]:
        launched = use(32)
        check(counting, rows_of(1500, n_categories, 1), n_categories, None, 1, 1)
        assert set(launched) == set(names)


def test_wide_buckets_where_there_would_be_many(counting, use, small_buckets, monkeypatch):
    monkeypatch.setattr(small_buckets, "TABLE_BYTES", 64)
    monkeypatch.setattr(small_buckets, "WIDE_TABLE_BYTES", 128)
    monkeypatch.setattr(small_buckets, "FEW_BUCKETS", 8)
    # The limit for tables is never exceeded.
    for n_cells, table_bytes, expected in [
        (256, 128, 64),
        (257, 128, 128),
        (257, 96, 96),
        (256, 32, 32),
        (999, 32, 32),
    ]:
        use(table_bytes)
        assert small_buckets.table_for(counting.engine(), n_cells) == expected
        check(counting, rows_of(3000, n_cells - 2, 1, 0.2), n_cells - 2, None, 1, 1)


def test_cells_beyond_the_words_of_a_slab_go_elsewhere(counting, kernels, small_buckets):
    # A word holds a cell number: no bucket may lie above.
    for table_bytes in (48 << 10, 99 << 10, 227 << 10):
        chosen = replace(kernels, table_bytes=table_bytes)
        assert not small_buckets.fits(chosen, 2**31)
        assert not small_buckets.fits(chosen, 2**32 + 5)


@pytest.mark.parametrize("hot", [(4,), (5,), (4, 5), (5, 900)])
def test_more_rows_of_a_cell_than_16_bits_hold(counting, use, small_buckets, monkeypatch, hot):
    monkeypatch.setattr(small_buckets, "SLAB", 1 << 20)
    # A single block counts half of the rows at a time.
    codes = np.resize(np.array(hot, np.int32), len(hot) * 2**18)
    launched = use(256)
    engine = replace(counting.engine(), blocks=1)
    monkeypatch.setattr(counting, "engine", lambda: engine)
    check(counting, Rows(codes), 1000, None, 1, 1)
    assert set(launched) == set(BUCKETS)


@pytest.mark.parametrize("n_classes", [1, 2, 3])
@pytest.mark.parametrize("skewed", [False, True])
def test_words_that_get_full_are_taken_out(counting, use, n_classes, skewed):
    # One cell has more rows in a block than 16 bits hold; other cells have halves that share a word with a full half.
    launched, n_rows = use(2048), 5 * 2**15 + 77
    codes = np.full(n_rows, 4, np.int32)
    if skewed:
        codes[::3], codes[:2000:7] = 5, -1
    classes = None if n_classes == 1 else (np.arange(n_rows) % 11 % n_classes).astype(np.int32)
    check(counting, Rows(codes, classes), 90, None, 1, n_classes, begun=3)
    assert launched == list(TABLES)


@pytest.mark.parametrize("label", [-1, 2, 77, 2**31 - 1])
def test_labels_beyond_harm_no_other_category(counting, use, label):
    use(2048)
    for n_classes in (2, 3):
        rows = rows_of(9000, 30, n_classes)
        right = cpu_fallback.accumulate(rows, SumShape(30, 1, n_classes))[:, 0, :, 0]
        classes = np.where(rows.codes == 7, label, rows.classes).astype(np.int32)
        accumulators = memory.zeros(32 * n_classes, np.int64)
        given = memory.to_device(rows.codes), memory.to_device(classes)
        counting.count(*given, None, (32, 1, n_classes), accumulators)
        found = memory.to_host(accumulators).reshape(32, n_classes)
        assert np.array_equal(np.delete(found, 7, 0), np.delete(right, 7, 0))
        assert found[7].sum() == right[7].sum()


@pytest.mark.parametrize("offsets", [(1, 0, 0), (2, 0, 0), (3, 0, 0), (0, 2, 0), (0, 0, 3), (3, 2, 1)])
def test_views_that_begin_between_vectors(counting, forced, offsets):
    # A vector read from a misaligned address would stop the program here, as it does a GPU.
    columns = [np.random.default_rng(offset).integers(0, 3, 203 + offset).astype(np.int32) for offset in offsets]
    codes, classes, folds = (column[offset:] for column, offset in zip(columns, offsets, strict=True))
    views = [memory.to_device(column)[offset:] for column, offset in zip(columns, offsets, strict=True)]
    accumulators = memory.zeros(32 * 9, np.int64)
    counting.count(*views, (32, 3, 3), accumulators)
    expected = cpu_fallback.accumulate(Rows(codes, classes), SumShape(30, 3, 3), folds)
    assert np.array_equal(memory.to_host(accumulators), expected.ravel())


# Slabs of two tiles; of more than eight tiles, a quarter of the rows.
@pytest.mark.parametrize(("full", "more", "tiles"), [(1, 976, 2), (7, 832, 2), (8, 0, 2), (8, 1, 3), (12, 712, 4)])
def test_slabs_take_a_share_of_the_rows(counting, use, small_buckets, monkeypatch, full, more, tiles):
    asked, n_rows = [], full * small_buckets.TILE + more
    real = small_buckets.empty
    monkeypatch.setattr(small_buckets, "empty", lambda size, dtype: asked.append(size) or real(size, dtype))
    launched = use(256)
    check(counting, rows_of(n_rows, 300, 1), 300, None, 1, 1)
    # 302 cells in three buckets, each with a run in every tile of a slab.
    assert asked == [tiles * small_buckets.TILE, 3 * tiles]
    assert len(launched) <= 2 * small_buckets.MOST_SLABS
