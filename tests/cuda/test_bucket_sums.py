"""Sums of reals in many cells: rows are sorted into buckets and added in windows, compared with the definition."""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

import cpu_fallback
from cpu_fallback.row_numbers import FoldPattern
from cpu_fallback.types import Layout, Rows, SumShape, Window
from tests.backends import memory
from tests.cpu_fallback.definitions import carried, digit_window

pytestmark = pytest.mark.cuda

SLOTS = 16


@pytest.fixture
def sums():
    return import_module("gpu_encode.cuda.sums")


@pytest.fixture
def partition(sums, monkeypatch):
    """Set blocks of 16 cells and slabs of two tiles; rows are partitioned however few they are."""
    module = import_module("gpu_encode.cuda.partition")
    monkeypatch.setattr(module, "FEWEST_ROWS", 0)
    monkeypatch.setattr(module, "SLAB_OF_PAIRS", 2 * module.TILE)
    monkeypatch.setattr(module.windows, "add", lambda engine, job: False)
    return module


@pytest.fixture
def use(sums, partition, monkeypatch):
    """Return a function that limits a block's bytes for cells, and returns the list of kernels launched after it."""
    kernels = sums.engine()

    def chosen(slot_bytes, slots=SLOTS, **limits):
        launched = []

        def run(name, *arguments, **others):
            launched.append(name)
            kernels.run(name, *arguments, **others)

        room = partition.bytes_beside(kernels, partition.MOST_BUCKETS) + slots * slot_bytes
        monkeypatch.setattr(sums, "engine", lambda: replace(kernels, run=run, table_bytes=room, **limits))
        return launched

    return chosen


def spread(size, random):
    """Return reals of many magnitudes: no window holds all of them."""
    return random.standard_normal(size) * 10.0 ** random.choice([-300, -12, 0, 0, 0, 3, 290], size)


def cancelling(size, random):
    values = random.standard_normal(size) * 1e6
    values[1::2] = -values[: size // 2 * 2 : 2]
    values[: size // 9] = random.choice([0.0, -0.0, 5e-324, -5e-324, 2.0**53, -(2.0**53) + 1], size // 9)
    return values


def narrow(size, random):
    return (random.standard_normal(size) * 2.0 ** random.integers(-140, 20, size)).astype(np.float32)


def integers(size, random):
    return random.integers(-(2**62), 2**62, size)


NUMBERS = {
    "reals": lambda size, random: random.standard_normal(size),
    "float32": narrow,
    "spread": spread,
    "cancelling": cancelling,
    "integers": integers,
}
CODES = {
    "any": lambda size, n, random: random.integers(-2, n, size),
    "zipf": lambda size, n, random: np.minimum(random.zipf(1.3, size) - 1, n - 1),
    "one": lambda size, n, random: np.full(size, n // 2),
    "sorted": lambda size, n, random: np.sort(random.integers(0, n, size)),
    "different": lambda size, n, random: np.arange(size) % n,
}


def rows_of(numbers, codes, size, n_categories, squares):
    """Return rows, and a layout wide enough for their sums."""
    random = np.random.default_rng(size)
    target = NUMBERS[numbers](size, random)
    rows = Rows(CODES[codes](size, n_categories, random).astype(np.int32), None, target)
    wide = rows if target.dtype != np.float32 else replace(rows, target=target.astype(np.float64))
    return rows, Layout(Window(), *(digit_window(wide, power, above=1) for power in range(1, 2 + squares)))


def check(sums, rows, layout, n_categories, folds, n_folds):
    wide = rows if rows.target.dtype != np.float32 else replace(rows, target=rows.target.astype(np.float64))
    expected = cpu_fallback.accumulate(wide, SumShape(n_categories, n_folds, 1, layout), folds)
    given = Rows(memory.to_device(rows.codes), None, memory.to_device(rows.target))
    found = memory.to_host(sums.accumulate(given, SumShape(n_categories, n_folds, 1, layout), folds))
    assert np.array_equal(carried(found, layout), carried(expected, layout))


@pytest.mark.parametrize("squares", [False, True])
@pytest.mark.parametrize("codes", CODES)
@pytest.mark.parametrize("numbers", NUMBERS)
def test_sums(sums, partition, use, numbers, codes, squares):
    launched = use(32 if squares else 12)
    n_rows, n_categories = partition.SLAB_OF_PAIRS + 552, 300
    rows, layout = rows_of(numbers, codes, n_rows, n_categories, squares)
    check(sums, rows, layout, n_categories, FoldPattern("random", 3, seed=5, n_rows=n_rows), 3)
    bits = 8 * rows.target.itemsize
    assert launched == [f"partition_pairs_{bits}", "add_buckets"] * 2


@pytest.mark.parametrize("n_rows", [1, 31, 1023, 1024, 1025, 2049, 4097])
@pytest.mark.parametrize("slots", [1, 2, 64])
def test_sizes(sums, use, n_rows, slots):
    use(12, slots)
    n_categories = 100
    rows, layout = rows_of("reals", "zipf", n_rows, n_categories, False)
    check(sums, rows, layout, n_categories, None, 1)


def test_more_rows_of_a_cell_than_its_top_word_counts(sums, partition, use, monkeypatch):
    monkeypatch.setattr(partition, "SLAB_OF_PAIRS", 1 << 20)
    use(12, blocks=1)
    rows, layout = rows_of("reals", "one", 3 * 2**15, 100, False)
    check(sums, rows, layout, 100, None, 1)


def test_too_many_buckets_too_few_rows_and_other_rows_go_elsewhere(sums, partition, use, monkeypatch):
    most = SLOTS * partition.MOST_BUCKETS
    rows, layout = rows_of("reals", "any", 600, 90, False)
    for n_categories, taken in ((most - 2, True), (most - 1, False)):
        launched = use(12)
        check(sums, rows, layout, n_categories, None, 1)
        assert ("add_buckets" in launched) == taken
    launched = use(12)
    weighted = replace(rows, weight=np.ones(600, np.int64))
    sums.accumulate(
        Rows(*(part if part is None else memory.to_device(part) for part in vars(weighted).values())),
        SumShape(90, layout=layout),
    )
    monkeypatch.setattr(partition, "FEWEST_ROWS", 601)
    check(sums, rows, layout, 90, None, 1)
    assert "add_buckets" not in launched
