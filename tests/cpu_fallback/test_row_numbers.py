"""fold_numbers, ranks_of and rows_at: every backend gives the definition, for chunks that begin anywhere."""

import numpy as np
import pytest

from cpu_fallback import row_numbers
from cpu_fallback.row_numbers import FoldPattern, Permutation

STARTS = [
    (0, 0),
    (0, 1),
    (0, 3000),
    (1, 7),
    (1023, 1025),
    (5113, 8200),
    (2**32 - 7, 2**32 + 7),
    (10**12, 10**12 + 2000),
]


@pytest.mark.parametrize("order", ["random", "interleaved", "contiguous"])
@pytest.mark.parametrize("n_splits", [1, 2, 5, 64, 3001])
def test_fold_numbers(ops, order, n_splits):
    for first_row, seed in ((0, 0), (17, 2**64 - 1), (10**15, 5)):
        pattern = FoldPattern(order, n_splits, seed, n_rows=2 * 10**15 + 1, first_row=first_row)
        for start, stop in STARTS:
            folds = ops.fold_numbers(pattern, start, stop)
            assert folds.dtype == np.int32
            assert np.array_equal(folds, row_numbers.fold_numbers(pattern, start, stop))


def test_more_folds_than_rows(ops):
    assert ops.fold_numbers(FoldPattern("contiguous", 5, n_rows=3), 0, 3).tolist() == [0, 1, 2]


def check_order(ops, permutation, ranges):
    for start, stop in ((start, min(stop, permutation.n_rows)) for start, stop in ranges):
        ranks = ops.ranks_of(permutation, start, stop)
        assert ranks.dtype == np.int64
        assert np.array_equal(ranks, row_numbers.ranks_of(permutation, start, stop))
        assert np.array_equal(ops.rows_at(permutation, start, stop), row_numbers.rows_at(permutation, start, stop))


@pytest.mark.parametrize("n_rows", [1, 2, 9, 256, 257, 5000, 2**40, 2**62])
@pytest.mark.parametrize("seed", [0, 2**64 - 1])
def test_permutations(ops, n_rows, seed):
    halfway, beyond = n_rows // 2, max(min(n_rows, 2**32) - 5, 0)
    ranges = (0, 5000), (halfway, halfway + 1100), (beyond, beyond + 13), (n_rows, n_rows)
    check_order(ops, Permutation(n_rows, seed), ranges)


@pytest.mark.parametrize("n_rows", [1, 9, 257, 700, 2**40, 2**62])
@pytest.mark.parametrize(("seed", "block"), [(1, 2), (2**64 - 1, 100), (3, 256)])
def test_orders_of_blocks(ops, n_rows, seed, block):
    halfway = n_rows // 2
    check_order(ops, Permutation(n_rows, seed, block), [(0, 700), (halfway, halfway + 130), (n_rows, n_rows)])


@pytest.mark.long
@pytest.mark.parametrize("block", [256, 3000, 70_000])
def test_long_orders_of_blocks(ops, block):
    check_order(ops, Permutation(200_000, 5, block), [(0, 200_000), (1, 130_003)])
