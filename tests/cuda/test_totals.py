"""Sums over all categories, compared with NumPy: few and many lines, and more columns than threads."""

from importlib import import_module

import numpy as np
import pytest

import cpu_fallback
from tests.backends import memory

pytestmark = pytest.mark.cuda


@pytest.mark.parametrize("shape", [(1,), (3,), (5, 2, 1), (2, 2, 3), (13,), (4, 4)])
@pytest.mark.parametrize("n_lines", [0, 1, 2, 11, 64, 257])
def test_sums_of_lines(device, n_lines, shape):
    cells = np.random.default_rng(n_lines).integers(-(1 << 62), 1 << 62, (n_lines, *shape))
    found = device.totals(memory.to_device(cells))
    assert (found.shape, found.dtype) == (shape, np.int64)
    # Sums wrap around.
    assert np.array_equal(memory.to_host(found), cpu_fallback.totals(cells))


def test_part_of_the_columns_and_a_sum_on_the_host(device):
    cells = np.random.default_rng(0).integers(-9, 9, (70, 3, 2))
    assert np.array_equal(memory.to_host(device.totals(memory.to_device(cells)[:, 1:2])), cells[:, 1:2].sum(axis=0))
    assert np.array_equal(device.totals(cells), cells.sum(axis=0))


def test_as_many_columns_as_threads(device):
    most = import_module("gpu_encode.cuda.views").MOST_COLUMNS
    for n_columns in (most - 1, most, most + 1):
        cells = np.arange(7 * n_columns).reshape(7, n_columns)
        assert np.array_equal(memory.to_host(device.totals(memory.to_device(cells))), cells.sum(axis=0))
