"""Rows sorted into buckets: the content of tiles, runs and sizes, compared with loops over rows."""

from importlib import import_module

import numpy as np
import pytest

import cpu_fallback
from cpu_fallback.row_numbers import FoldPattern
from cpu_fallback.types import Rows, SumShape
from tests.backends import memory

pytestmark = pytest.mark.cuda


@pytest.fixture
def partition():
    return import_module("gpu_encode.cuda.partition")


@pytest.fixture
def sort(partition, kernels):
    """Return a function that sorts rows by codes into words, runs (buckets, tiles), sizes, and the rows of a tile."""

    def sorted_by(codes, n_lines, shift, start=0, size=None, values=None):
        size = len(codes) - start if size is None else size
        tile, n_buckets = partition.TILE, -(-n_lines >> shift)
        n_tiles = -(-size // tile)
        words, runs = memory.zeros(n_tiles * tile, np.uint32), memory.zeros(n_buckets * n_tiles, np.uint32)
        sizes = memory.zeros(n_buckets, np.uint32)
        indexed = import_module("gpu_encode.cuda.indexed").source_of(memory.to_device(codes))
        folds = import_module("gpu_encode.cuda.folds").fold_source(None)
        rows = indexed, indexed.ranks, 0, *folds, n_lines, 1, 1
        more, name, item = (), "partition_rows", 4
        if values is not None:
            item = values.itemsize
            more, name = (
                (memory.to_device(values), memory.zeros(len(words), values.dtype)),
                f"partition_pairs_{8 * item}",
            )
        shared = partition.sorting_bytes(n_buckets, item)
        given = start, size, shift, words, runs, sizes
        kernels.run(name, 2, partition.THREADS, *rows, *given, *more, shared=shared)
        found = memory.to_host(words), memory.to_host(runs).reshape(n_buckets, n_tiles), memory.to_host(sizes), tile
        return (*found, memory.to_host(more[1])) if more else found

    return sorted_by


def draw(n_rows, n_lines, kind):
    """Return lines of rows: all alike, all different, one frequent, sorted, or any; some count from the end."""
    random = np.random.default_rng(n_rows)
    lines = {
        "one": np.full(n_rows, n_lines // 2),
        "different": random.permutation(n_rows) * (n_lines // max(n_rows, 1)),
        "hot": np.where(random.random(n_rows) < 0.9, 3, random.integers(0, n_lines, n_rows)),
        "sorted": np.sort(random.integers(0, n_lines, n_rows)),
        "any": random.integers(0, n_lines, n_rows),
    }[kind]
    # Codes are int32: the second half of many lines counts from the end.
    return np.where(lines >= 2**31, lines - n_lines, lines).astype(np.int32), lines


KINDS = ("one", "different", "hot", "sorted", "any")
N_ROWS = (1, 5, 1023, 1024, 1025, 3000, 4096)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_rows", N_ROWS)
def test_runs_hold_the_rows_of_their_tile_and_bucket(sort, kind, n_rows):
    n_lines, shift = 5000, 6
    codes, lines = draw(n_rows, n_lines, kind)
    words, runs, sizes, tile = sort(codes, n_lines, shift)
    assert np.array_equal(sizes, np.bincount(lines >> shift, minlength=len(sizes)))
    for number in range(runs.shape[1]):
        of_tile = lines[number * tile : (number + 1) * tile]
        begins, lengths = runs[:, number] & 0xFFFF, runs[:, number] >> 16
        assert np.array_equal(lengths, np.bincount(of_tile >> shift, minlength=len(sizes)))
        assert np.array_equal(begins, np.cumsum(lengths) - lengths)
        found = words[number * tile : number * tile + len(of_tile)]
        assert (np.diff(found >> shift) >= 0).all() if len(found) > 1 else True
        assert np.array_equal(np.sort(found), np.sort(of_tile))


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
@pytest.mark.parametrize("n_rows", N_ROWS)
def test_values_go_with_their_rows(sort, dtype, n_rows):
    # Any bits: the kernel reads none of them.
    values = np.frombuffer(np.random.default_rng(n_rows).bytes(n_rows * np.dtype(dtype).itemsize), dtype)
    codes, lines = draw(n_rows, 700, "hot")
    words, runs, _, tile, found = sort(codes, 700, 3, values=values)
    for number in range(runs.shape[1]):
        here = slice(number * tile, min((number + 1) * tile, n_rows))
        assert sorted(zip(words[here], found[here], strict=True)) == sorted(zip(lines[here], values[here], strict=True))


@pytest.mark.parametrize("edge", [2**31, 2**32 - 40])
def test_cells_of_32_bits(sort, edge):
    n_lines, n_rows = 2**32, 2000
    lines = edge + np.random.default_rng(1).integers(-30, 30, n_rows)
    words, runs, sizes, tile = sort(np.where(lines >= 2**31, lines - n_lines, lines).astype(np.int32), n_lines, 24)
    assert np.array_equal(np.flatnonzero(sizes), np.unique(lines >> 24))
    for number in range(runs.shape[1]):
        here = slice(number * tile, min((number + 1) * tile, n_rows))
        assert np.array_equal(np.sort(words[here]), np.sort(lines[here]))


@pytest.mark.parametrize(("start", "size"), [(0, 5), (3, 1024), (4, 1025), (1025, 2000), (2999, 1)])
def test_a_slab_of_rows(sort, start, size):
    codes, lines = draw(3025, 900, "any")
    values = np.arange(3025, dtype=np.uint64)
    words, runs, sizes, tile, found = sort(codes, 900, 5, start, size, values)
    assert sizes.sum() == (runs >> 16).sum() == size
    assert np.array_equal(
        np.sort(found[:size]) if size <= tile else np.sort(found)[-size:], np.arange(start, start + size)
    )
    assert np.array_equal(words[: min(size, tile)], lines[found[: min(size, tile)]])


SOURCES = ("codes", "words of 32 bits", "words of 64 bits", "words without ranks")


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("order", ["random", "interleaved", "contiguous", "given", None])
@pytest.mark.parametrize("n_classes", [1, 3])
def test_every_source_of_keys_and_folds(counting, partition, monkeypatch, source, order, n_classes):
    monkeypatch.setattr(partition, "FEWEST_ROWS", 0)
    monkeypatch.setattr(partition, "SLAB", 2048)
    engine = counting.engine()
    monkeypatch.setattr(counting, "engine", lambda: engine.__class__(engine.run, engine.threads, engine.blocks, 256))
    random, n_rows, n_categories, n_folds = np.random.default_rng(3), 3000, 200, 3 if order else 1
    offsets = random.integers(0, n_categories + 30, n_rows)
    ranks = np.where(np.arange(n_categories) % 5 == 1, 0, 1 + random.permutation(n_categories)).astype(np.int32)
    plain = source in ("codes", "words without ranks")
    codes = np.where(offsets < n_categories, offsets if plain else ranks[offsets % n_categories] - 1, -2)
    # Numbers without a rank count as the last line.
    codes = codes.astype(np.int32)
    classes = random.integers(0, n_classes, n_rows).astype(np.int32) if n_classes > 1 else None
    if order == "given":
        folds = random.integers(0, 3, n_rows).astype(np.int32)
    else:
        folds = order and FoldPattern(order, 3, seed=7, n_rows=n_rows + 5, first_row=5)
    given = memory.to_device(codes) if source == "codes" else source_of(source, offsets, ranks, n_categories)
    accumulators = memory.zeros((n_categories + 2) * n_folds * n_classes, np.int64)
    device_folds = memory.to_device(folds) if order == "given" else folds
    counting.count(
        given,
        None if classes is None else memory.to_device(classes),
        device_folds,
        (n_categories + 2, n_folds, n_classes),
        accumulators,
    )
    expected = cpu_fallback.accumulate(Rows(codes, classes), SumShape(n_categories, n_folds, n_classes), folds)
    assert np.array_equal(memory.to_host(accumulators), expected.ravel())


def source_of(source, offsets, ranks, size):
    """Numbers at a distance from a base that wraps around."""
    bits = 64 if "64" in source else 32
    base, mask = np.uint64(2**bits - 50), np.uint64(2**bits - 1)
    words = (offsets.astype(np.uint64) + base & mask).astype(f"u{bits // 8}")
    held = np.zeros(0, np.int32) if "without" in source else ranks
    made = import_module("gpu_encode.cuda.indexed").CodeSource
    return made(memory.to_device(words), base, mask, np.uint64(size), memory.to_device(held))
