"""Fold numbers and permutations on the GPU: as launch arguments, for a chunk's rows, beyond 2**32 and across blocks."""

from importlib import import_module

import numpy as np
import pytest

import cpu_fallback
from cpu_fallback.row_numbers import FoldPattern, Permutation
from tests.backends import memory

pytestmark = [pytest.mark.cuda, pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")]


@pytest.fixture(scope="module")
def cuda():
    return import_module("gpu_encode.cuda.folds")


def folds_of_chunk(cuda, runtime, folds, n_rows):
    """Fold numbers as every other kernel computes them: rows of the chunk from 0 on, the source as arguments."""
    out = memory.empty(n_rows, np.int32)
    runtime.launch_rows(cuda.number_folds, n_rows, 0, *cuda.fold_source(folds), out)
    return memory.to_host(out).tolist()


# First and last rows of growing blocks (units 0, 1, 3, 7, ...), of the first blocks that are all alike, and far on.
UNITS = [0, 1, 2, 3, 6, 7, 511, 1022, 1023, 2046, 2047, 5000]


@pytest.mark.parametrize("n_splits", [1, 2, 5, 64, 9973, 10_000])
@pytest.mark.parametrize("seed", [0, 2**64 - 1])
def test_random_folds_at_the_edges_of_blocks(cuda, runtime, n_splits, seed):
    for unit in UNITS:
        pattern = FoldPattern("random", n_splits, seed, first_row=max(unit * n_splits - 5, 0))
        expected = cpu_fallback.fold_numbers(pattern, 0, 11)
        assert folds_of_chunk(cuda, runtime, pattern, 11) == expected.tolist()


@pytest.mark.parametrize("order", ["random", "interleaved", "contiguous"])
@pytest.mark.parametrize("n_splits", [1, 3, 10_000])
@pytest.mark.parametrize("first_row", [2**32 - 7, 2**32 + 5, 2**62])
def test_rows_beyond_32_bits(cuda, order, n_splits, first_row):
    pattern = FoldPattern(order, n_splits, 5, n_rows=first_row + 1000, first_row=first_row)
    expected = cpu_fallback.fold_numbers(pattern, 3, 30)
    assert memory.to_host(cuda.fold_numbers(pattern, 3, 30)).tolist() == expected.tolist()


@pytest.mark.parametrize(("n_rows", "n_splits"), [(3, 5), (10, 3), (9, 3), (5, 5), (0, 4), (2**40 + 1, 2)])
def test_edges_of_contiguous_blocks(cuda, runtime, n_rows, n_splits):
    for first_row in {0, max(n_rows // n_splits - 4, 0), max(n_rows - 8, 0)}:
        pattern = FoldPattern("contiguous", n_splits, n_rows=n_rows, first_row=first_row)
        expected = cpu_fallback.fold_numbers(pattern, 0, 8)
        assert folds_of_chunk(cuda, runtime, pattern, 8) == expected.tolist()


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8])
def test_given_folds_are_those_of_the_chunk(cuda, runtime, dtype):
    given = np.arange(40)[::2] % 7
    assert folds_of_chunk(cuda, runtime, given.astype(dtype), 20) == given.tolist()
    assert folds_of_chunk(cuda, runtime, memory.to_device(given.astype(dtype)), 20) == given.tolist()


def test_no_folds_are_fold_zero(cuda, runtime):
    assert folds_of_chunk(cuda, runtime, None, 5) == [0] * 5


def test_empty_ranges(cuda):
    pattern, permutation = FoldPattern("random", 5), Permutation(10)
    for found in (cuda.fold_numbers(pattern, 4, 4), cuda.fold_numbers(pattern, 4, 3)):
        assert found.dtype == np.int32
        assert len(found) == 0
    for found in (cuda.places_of(permutation, 4, 4), cuda.rows_at(permutation, 4, 3)):
        assert found.dtype == np.int64
        assert len(found) == 0


# Just above a power of four three numbers in four are walked out of the network and back in.
@pytest.mark.parametrize("n_rows", [1, 2, 255, 256, 257, 1025])
def test_permutations_are_inverse_bijections(cuda, n_rows):
    permutation = Permutation(n_rows, seed=3)
    places = memory.to_host(cuda.places_of(permutation, 0, n_rows))
    assert places.tolist() == cpu_fallback.places_of(permutation, 0, n_rows).tolist()
    assert memory.to_host(cuda.rows_at(permutation, 0, n_rows))[places].tolist() == list(range(n_rows))


@pytest.mark.parametrize("n_rows", [2**32 + 3, 2**40, 2**62])
def test_long_permutations(cuda, n_rows):
    permutation = Permutation(n_rows, seed=2**64 - 1)
    for start in (0, 2**32 - 5, n_rows - 13):
        ends = start, min(start + 13, n_rows)
        places = cpu_fallback.places_of(permutation, *ends).tolist()
        assert memory.to_host(cuda.places_of(permutation, *ends)).tolist() == places
        rows = cpu_fallback.rows_at(permutation, *ends).tolist()
        assert memory.to_host(cuda.rows_at(permutation, *ends)).tolist() == rows
