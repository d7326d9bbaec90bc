"""Rows in tiles: kernels count and look up in tiles, and in the rows around them, as the definition does."""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

import cpu_fallback
from cpu_fallback.row_numbers import FoldPattern
from cpu_fallback.types import Rows, SumShape
from tests.backends import memory

pytestmark = [pytest.mark.cuda, pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")]

N_CATEGORIES = 6


@pytest.fixture(scope="module")
def indexed():
    return import_module("gpu_encode.cuda.indexed")


@pytest.fixture
def launched(monkeypatch):
    """Give the variants that are launched, each of which the library compiles for."""
    raw, found = import_module("gpu_encode.cuda.raw"), []
    run = raw.run

    def note(name, *given, variant=None, **options):
        if variant is not None:
            assert variant in raw.VARIANTS[raw.FILES[name]]
            found.append(variant)
        run(name, *given, variant=variant, **options)

    monkeypatch.setattr(raw, "run", note)
    return found


def view_on_device(array, offset):
    """Put an array on the device, so many items behind a vector."""
    return memory.to_device(np.concatenate([np.zeros(offset, array.dtype), array]))[offset:]


def draw(n_rows, n_classes=2, seed=0):
    """Codes, missing and unknown among them, and classes."""
    random = np.random.default_rng(seed + n_rows)
    codes = random.integers(-2, N_CATEGORIES, n_rows).astype(np.int32)
    return codes, random.integers(0, n_classes, n_rows).astype(np.int32)


def check_counts(counting, codes, classes, folds, n_folds, offsets=(0, 0), n_classes=2, of=None):
    """Compare the counts of all cells; `of`: where kernels read the codes, if not from an array."""
    accumulators = memory.zeros((N_CATEGORIES + 2) * n_folds * n_classes, np.int64)
    there = view_on_device(codes, offsets[0]) if of is None else of
    labels = None if classes is None else view_on_device(classes, offsets[1])
    counting.count(there, labels, folds, (N_CATEGORIES + 2, n_folds, n_classes), accumulators)
    expected = cpu_fallback.accumulate(Rows(codes, classes), SumShape(N_CATEGORIES, n_folds, n_classes), folds)
    assert np.array_equal(memory.to_host(accumulators), expected.ravel())


def check_look_up(gathering, codes, folds, n_folds, offsets=(0, 0), n_outputs=1, dtype=np.float32, of=None):
    """Compare all rows; entries all differ, so that each tells its category and its fold."""
    n_lines, n_rows = N_CATEGORIES + 2, len(codes)
    table = np.arange(n_lines * n_folds * n_outputs).astype(dtype).reshape(n_lines, n_folds, n_outputs)
    expected = np.zeros((n_rows, n_outputs), dtype)
    cpu_fallback.gather(table, codes, folds, expected)
    there = view_on_device(codes, offsets[0]) if of is None else of
    out = memory.zeros(offsets[1] + n_rows * n_outputs, dtype)[offsets[1] :].reshape(n_outputs, n_rows).T
    gathering.gather(memory.to_device(table), there, folds, out)
    assert memory.to_host(out).tolist() == expected.tolist()


# Rows of so many folds, around the first blocks that are all alike and around the ends of these.
@pytest.mark.parametrize("n_splits", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("shift", range(4))
def test_blocks_of_random_folds(counting, gathering, launched, n_splits, shift):
    size = 1024 * n_splits
    for first_row, n_rows in (
        (1023 * n_splits + shift, 2 * size - 1),
        (1023 * n_splits - 6 + shift, size + 2 * shift + 3),
        (1023 * n_splits + 5 * size - 3 - shift, 2 * size + 7),
    ):
        codes, classes = draw(n_rows)
        folds = FoldPattern("random", n_splits, 2**63 + 5, first_row=first_row)
        check_counts(counting, codes, classes, folds, n_splits)
        check_look_up(gathering, codes, folds, n_splits)
    assert {variant["SOURCE"] for variant in launched} == {"HashedFolds"}


@pytest.mark.parametrize("extra", [-1, 0, 1, 2, 3, 4, 5])
def test_lengths_around_whole_blocks(counting, gathering, extra):
    for first_row, blocks in ((1023 * 3, 1), (1023 * 3 + 1, 1), (0, 2), (2**40 * 3 + 2, 2)):
        # A chunk that begins with the first row has the growing blocks before its tiles.
        n_rows = blocks * 3072 + extra + (1023 * 3 if first_row == 0 else 0)
        codes, classes = draw(n_rows)
        folds = FoldPattern("random", 3, 7, first_row=first_row)
        check_counts(counting, codes, classes, folds, 3)
        check_look_up(gathering, codes, folds, 3)


@pytest.mark.parametrize("n_splits", [63, 64, 65])
def test_the_most_folds_of_a_tile(gathering, launched, n_splits):
    codes, _ = draw(1024 * n_splits + 9)
    check_look_up(gathering, codes, FoldPattern("random", n_splits, 3, first_row=1023 * n_splits + 2), n_splits)
    assert launched[0]["SOURCE"] == ("HashedFolds" if n_splits <= 64 else "ComputedFolds")


@pytest.mark.parametrize("offsets", [(1, 0), (0, 1), (2, 3), (3, 3), (1, 2)])
@pytest.mark.parametrize("kind", ["random", "given", None])
def test_arrays_that_begin_between_vectors(counting, gathering, offsets, kind):
    # A vector read or written elsewhere than at a multiple of its size would stop the program here, as it does a GPU.
    codes, classes = draw(9300)
    n_folds = 1 if kind is None else 3
    folds = FoldPattern("random", 3, 5, first_row=3072) if kind == "random" else None
    for offset in range(4 if kind == "given" else 1):
        given = view_on_device((np.arange(len(codes)) * 5 % 7 % 3).astype(np.int32), offset)
        folds = given if kind == "given" else folds
        on_host = memory.to_host(given) if kind == "given" else folds
        accumulators = memory.zeros((N_CATEGORIES + 2) * n_folds * 2, np.int64)
        there = view_on_device(codes, offsets[0]), view_on_device(classes, offsets[1])
        counting.count(*there, folds, (N_CATEGORIES + 2, n_folds, 2), accumulators)
        expected = cpu_fallback.accumulate(Rows(codes, classes), SumShape(N_CATEGORIES, n_folds, 2), on_host)
        assert np.array_equal(memory.to_host(accumulators), expected.ravel())
        table = np.arange((N_CATEGORIES + 2) * n_folds, dtype=np.float32).reshape(-1, n_folds, 1)
        wanted, out = np.zeros((len(codes), 1), np.float32), memory.zeros(len(codes) + 3, np.float32)
        cpu_fallback.gather(table, codes, on_host, wanted)
        gathering.gather(memory.to_device(table), there[0], folds, out[offsets[1] :][: len(codes)].reshape(-1, 1))
        assert memory.to_host(out)[offsets[1] :][: len(codes)].tolist() == wanted.ravel().tolist()


def keys_of(codes, dtype, gaps):
    """Numbers that have these codes in a direct index, whose ranks leave gaps; unknown ones lie before and behind."""
    known = np.sort(np.random.default_rng(1).permutation(N_CATEGORIES * gaps)[:N_CATEGORIES])
    numbers = 1000 + known[np.maximum(codes, 0)].astype(np.int64)
    numbers[codes < 0] = np.array([999, 1000 + N_CATEGORIES * gaps, 3])[np.arange((codes < 0).sum()) % 3]
    ranks = np.zeros(N_CATEGORIES * gaps, np.int32)
    ranks[known] = np.arange(1, N_CATEGORIES + 1)
    return numbers.astype(dtype), ranks


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
@pytest.mark.parametrize("ways", ["by slot", "by rank", "by line in memory"])
@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_numbers_in_an_index(counting, gathering, indexed, launched, monkeypatch, dtype, ways, n_classes):
    codes, classes = draw(7000, n_classes)
    codes = np.where(codes < 0, -2, codes).astype(np.int32)
    numbers, ranks = keys_of(codes, dtype, {"by slot": 3, "by rank": 300, "by line in memory": 3000}[ways])
    mask = np.uint64(2 ** (8 * numbers.itemsize) - 1)
    there, ranks = memory.to_device(numbers), memory.to_device(ranks)
    source = indexed.CodeSource(there, np.uint64(1000), mask, np.uint64(len(ranks)), ranks)
    engine = counting.engine()
    monkeypatch.setattr(counting, "engine", lambda: replace(engine, run=import_module("gpu_encode.cuda.raw").run))
    folds = FoldPattern("random", 3, 9, first_row=3 * 1023 + 1)
    for of, n_folds in ((folds, 3), (None, 1)):
        check_counts(counting, codes, None if n_classes == 1 else classes, of, n_folds, n_classes=n_classes, of=source)
        for n_outputs in (1, n_classes + 2):
            for entries in (np.float32, np.float64):
                check_look_up(gathering, codes, of, n_folds, n_outputs=n_outputs, dtype=entries, of=source)
    assert {variant["KEY"] for variant in launched} == {"unsigned" if numbers.itemsize == 4 else "Word"}
    assert {variant["SOURCE"] for variant in launched} == {"HashedFolds", "StraightFolds"}


@pytest.mark.parametrize("order", ["interleaved", "contiguous"])
def test_other_folds(counting, gathering, order):
    codes, classes = draw(13_000)
    for n_folds, first_row in ((3, 0), (7, 2**33 + 1)):
        folds = FoldPattern(order, n_folds, n_rows=first_row + 13_005, first_row=first_row)
        check_counts(counting, codes, classes, folds, n_folds)
        check_look_up(gathering, codes, folds, n_folds)


def test_small_numbers_of_new_rows(gathering):
    known = np.array([3, 5, 60, 61], np.int16)
    for dtype in (np.int8, np.uint8, np.int16, np.uint16):
        values = np.random.default_rng(3).integers(0, 100, 5000).astype(dtype)
        expected, out = np.zeros((5000, 2)), memory.zeros((5000, 2), np.float64)
        table = np.arange(12.0).reshape(6, 1, 2)
        cpu_fallback.gather_numbers(table, values, known.astype(dtype), expected)
        gathering.gather_numbers(memory.to_device(table), memory.to_device(values), known.astype(dtype), out)
        assert memory.to_host(out).tolist() == expected.tolist()
