"""leave_one_out on the GPU: edges of the grid, cells that are a view, what a row without a class is."""

from importlib import import_module

import numpy as np
import pytest

import cpu_fallback
from cpu_fallback.types import Layout, Rows
from tests.backends import memory
from tests.cpu_fallback.definitions import KINDS, N_CATEGORIES, many

pytestmark = pytest.mark.cuda


def cells_for(found):
    shape = N_CATEGORIES + 2, found.n_classes, found.layout.width
    return np.random.default_rng(1).integers(-(2**40), 2**40, shape)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("grids", [0, 1, 2])
@pytest.mark.parametrize("beyond", [-1, 0, 1])
def test_rows_at_the_edges_of_the_grid(ops, runtime, kind, grids, beyond):
    found = many(min(max(grids * runtime.THREADS * runtime.MOST_BLOCKS + beyond, 1), 20_000), 3, kind)
    accumulators = cells_for(found)
    seen = ops.leave_one_out(accumulators, found.rows, found.layout)
    assert seen.dtype == np.int64
    assert np.array_equal(seen, cpu_fallback.leave_one_out(accumulators, found.rows, found.layout))


def test_no_rows(ops):
    found = many(5, 1, "classes")
    seen = ops.leave_one_out(cells_for(found), found.rows.block(0, 0), found.layout)
    assert (seen.shape, seen.dtype) == ((0, 3, 1), np.int64)


def test_cells_that_are_a_view(ops):
    found = many(30, 2, "whole")
    wide = np.random.default_rng(1).integers(-99, 99, (N_CATEGORIES + 2, 3, found.layout.width))
    module = import_module("gpu_encode.cuda.leave_one_out")
    seen = module.leave_one_out(memory.to_device(wide)[:, 1:2], found.rows, found.layout)
    expected = cpu_fallback.leave_one_out(wide[:, 1:2], found.rows, found.layout)
    assert np.array_equal(memory.to_host(seen), expected)


def test_rows_without_classes_leave_the_first(ops):
    rows, accumulators = Rows(np.array([0, -1, 1, -2], np.int32)), np.arange(12).reshape(4, 3, 1)
    seen = ops.leave_one_out(accumulators, rows, Layout())
    assert seen[..., 0].tolist() == [[-1, 1, 2], [8, 10, 11], [2, 4, 5], [5, 7, 8]]
