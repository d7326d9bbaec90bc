"""Fold numbers as kernels compute them: from launch arguments, for the rows of a chunk, and stored."""

from importlib import import_module

import numpy as np
import pytest

import cpu_fallback
from cpu_fallback.row_numbers import FoldPattern
from tests.backends import memory

pytestmark = [pytest.mark.cuda, pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")]

# First and last rows of growing blocks (units 0, 1, 3, 7, ...), of the first blocks that are all alike, and far on.
UNITS = [0, 1, 2, 3, 6, 7, 511, 1022, 1023, 2046, 2047, 5000, 2**40]


@pytest.fixture
def count(counting, kernels, monkeypatch):
    monkeypatch.setattr(counting, "engine", lambda: kernels)
    return counting.count


def folds_of_chunk(count, folds, n_rows, n_folds):
    """Return the fold of every row of a chunk, from the cells of rows that each have their own category."""
    accumulators = memory.zeros((n_rows + 2) * n_folds, np.int64)
    codes = memory.to_device(np.arange(n_rows, dtype=np.int32))
    count(codes, None, folds, (n_rows + 2, n_folds, 1), accumulators)
    cells = memory.to_host(accumulators).reshape(-1, n_folds)[:n_rows]
    assert (cells.sum(1) == 1).all()
    return cells.argmax(1).tolist()


def check(count, pattern, n_rows):
    expected = cpu_fallback.fold_numbers(pattern, 0, n_rows).tolist()
    assert folds_of_chunk(count, pattern, n_rows, pattern.n_splits) == expected
    written = import_module("gpu_encode.cuda.folds").fold_numbers
    assert memory.to_host(written(pattern, 2, n_rows)).tolist() == expected[2:]


LONG = [pytest.param(n_splits, marks=pytest.mark.long) for n_splits in (65535, 100_003)]


@pytest.mark.parametrize("n_splits", [1, 2, 3, 5, 64, 9973, 65536, *LONG])
@pytest.mark.parametrize("seed", [0, 2**64 - 1])
def test_random_folds_at_the_edges_of_blocks(count, n_splits, seed):
    for unit in UNITS:
        for before in (0, 3):
            check(count, FoldPattern("random", n_splits, seed, first_row=max(unit * n_splits - before, 0)), 9)


@pytest.mark.parametrize("order", ["random", "interleaved", "contiguous"])
@pytest.mark.parametrize("n_splits", [1, 3, 7, 1000])
@pytest.mark.parametrize("first_row", [0, 1, 2**32 - 7, 2**32 + 5, 2**62])
def test_folds_over_several_turns_of_the_grid(count, kernels, order, n_splits, first_row):
    n_rows = min(4 * kernels.threads * kernels.blocks + 9, 1100)
    check(count, FoldPattern(order, n_splits, 5, n_rows=first_row + n_rows, first_row=first_row), n_rows)


@pytest.mark.parametrize(("n_rows", "n_splits"), [(3, 5), (10, 3), (9, 3), (5, 5), (0, 4), (2**40 + 1, 2)])
def test_edges_of_contiguous_blocks(count, n_rows, n_splits):
    for first_row in {0, max(n_rows // n_splits - 4, 0), max(n_rows - 8, 0)}:
        check(count, FoldPattern("contiguous", n_splits, n_rows=n_rows, first_row=first_row), min(8, n_rows))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8])
def test_given_folds_are_those_of_the_chunk(count, dtype):
    given = (np.arange(40)[::2] % 7).astype(dtype)
    for folds in (given, memory.to_device(given)):
        assert folds_of_chunk(count, folds, 20, 7) == given.tolist()
