"""gather and leave_one_out on the GPU: outputs in all layouts, and tables and cells that are views."""

from importlib import import_module

import numpy as np
import pytest

import cpu_fallback
from cpu_fallback.row_numbers import FoldPattern
from tests.backends import memory
from tests.cpu_fallback.definitions import N_CATEGORIES, many

pytestmark = pytest.mark.cuda

N_LINES, N_FOLDS, PAGE = 7, 3, 5


def make_page(n_rows, order, dtype=np.float64):
    page = memory.empty((n_rows, PAGE) if order == "C" else (PAGE, n_rows), dtype)
    page[...] = 7
    return page if order == "C" else page.T


VIEWS = {
    "whole": lambda whole, outputs: whole[:, :outputs] if outputs < PAGE else whole,
    "columns": lambda whole, outputs: whole[:, 1 : 1 + outputs],
    "every other column": lambda whole, outputs: whole[:, 1 : 2 * outputs : 2],
    "backwards": lambda whole, outputs: whole[::-1, :outputs],
}


def draw(n_rows, outputs):
    random = np.random.default_rng(n_rows)
    table = random.standard_normal((N_LINES, N_FOLDS, outputs))
    return table, random.integers(-2, N_LINES - 2, n_rows).astype(np.int32)


def check(gathering, table, codes, folds, out):
    """Compare with the definition, in an array of the same memory layout."""
    expected = np.zeros(out.shape, out.dtype)
    cpu_fallback.gather(table, codes, folds, expected)
    device_folds = memory.to_device(folds) if isinstance(folds, np.ndarray) else folds
    gathering.gather(memory.to_device(table), memory.to_device(codes), device_folds, out)
    assert np.ascontiguousarray(memory.to_host(out)).tobytes() == expected.tobytes()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_an_output_anywhere_is_written_and_nothing_else(gathering, order, view, outputs, dtype):
    whole = make_page(29, order, dtype)
    out = VIEWS[view](whole, outputs)
    check(gathering, *draw(29, outputs), FoldPattern("random", N_FOLDS, 3, first_row=40), out)
    out[...] = 7
    assert (memory.to_host(whole) == 7).all()


@pytest.mark.parametrize(("order", "outputs"), [("F", 1), ("F", 3), ("F", PAGE), ("C", PAGE)])
def test_columns_of_a_fortran_matrix_and_whole_c_matrices_are_written_in_place(gathering, order, outputs):
    out = make_page(9, order)[:, :outputs]
    piece, by_row, by_output = gathering.flatten(out)
    piece[...] = memory.to_device(np.arange(9.0 * outputs))
    rows, columns = np.indices((9, outputs))
    assert memory.to_host(out).tolist() == (rows * by_row + columns * by_output).tolist()


def test_a_table_that_is_not_in_one_piece(gathering):
    table, codes = draw(20, 4)
    out, expected = memory.zeros((20, 2), np.float64), np.zeros((20, 2))
    cpu_fallback.gather(table[:, :, ::2], codes, None, expected)
    gathering.gather(memory.to_device(table)[:, :, ::2], memory.to_device(codes), None, out)
    assert memory.to_host(out).tolist() == expected.tolist()


def test_cells_that_are_a_view():
    drawn = many(30, 2, "whole")
    wide = np.random.default_rng(1).integers(-99, 99, (N_CATEGORIES + 2, 3, drawn.layout.width))
    module = import_module("gpu_encode.cuda.leave_one_out")
    visible = module.leave_one_out(memory.to_device(wide)[:, 1:2], drawn.rows, drawn.layout)
    expected = cpu_fallback.leave_one_out(wide[:, 1:2], drawn.rows, drawn.layout)
    assert np.array_equal(memory.to_host(visible), expected)
