"""gather on the GPU: where the output lies, rows that several turns of the grid look up, bits of NaN."""

from importlib import import_module

import numpy as np
import pytest

import cpu_fallback
from cpu_fallback.row_numbers import FoldPattern
from tests.backends import memory

pytestmark = pytest.mark.cuda

N_LINES, N_FOLDS, PAGE = 7, 3, 5


@pytest.fixture(scope="module")
def cuda():
    return import_module("gpu_encode.cuda.gather")


def page(n_rows, order, dtype=np.float64):
    made = memory.empty((n_rows, PAGE) if order == "C" else (PAGE, n_rows), dtype)
    made[...] = 7
    return made if order == "C" else made.T


PLACES = {
    "whole": lambda whole, outputs: whole[:, :outputs] if outputs < PAGE else whole,
    "columns": lambda whole, outputs: whole[:, 1 : 1 + outputs],
    "every other column": lambda whole, outputs: whole[:, 1 : 2 * outputs : 2],
    "backwards": lambda whole, outputs: whole[::-1, :outputs],
}


def drawn(n_rows, outputs, dtype=np.float64):
    random = np.random.default_rng(n_rows)
    table = random.standard_normal((N_LINES, N_FOLDS, outputs)).astype(dtype)
    return table, random.integers(-2, N_LINES - 2, n_rows).astype(np.int32)


def check(cuda, table, codes, folds, out):
    """Compare with the definition, in an array that lies the same way."""
    expected = np.zeros(out.shape, out.dtype)
    cpu_fallback.gather(table, codes, folds, expected)
    device_folds = memory.to_device(folds) if isinstance(folds, np.ndarray) else folds
    cuda.gather(memory.to_device(table), memory.to_device(codes), device_folds, out)
    assert np.ascontiguousarray(memory.to_host(out)).tobytes() == expected.tobytes()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_an_output_anywhere_is_written_and_nothing_else(cuda, order, place, outputs, dtype):
    whole = page(29, order, dtype)
    out = PLACES[place](whole, outputs)
    check(cuda, *drawn(29, outputs), FoldPattern("random", N_FOLDS, 3, first_row=40), out)
    out[...] = 7
    assert (memory.to_host(whole) == 7).all()


@pytest.mark.parametrize(("order", "outputs"), [("F", 1), ("F", 3), ("F", PAGE), ("C", PAGE)])
def test_columns_of_a_fortran_matrix_and_whole_c_matrices_are_written_in_place(cuda, order, outputs):
    out = page(9, order)[:, :outputs]
    piece, by_row, by_output = cuda.flatten(out)
    piece[...] = memory.to_device(np.arange(9.0 * outputs))
    rows, columns = np.indices((9, outputs))
    assert memory.to_host(out).tolist() == (rows * by_row + columns * by_output).tolist()


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("turns", [0, 1, 3, 4, 5, 9])
@pytest.mark.parametrize("beyond", [-1, 0, 1])
def test_rows_at_the_edges_of_turns(cuda, runtime, outputs, turns, beyond):
    n_rows = max(turns * runtime.THREADS * runtime.MOST_BLOCKS + beyond, 0)
    table, codes = drawn(n_rows, outputs)
    for folds in (None, FoldPattern("interleaved", N_FOLDS), (np.arange(n_rows) % N_FOLDS).astype(np.int32)):
        check(cuda, table, codes, folds, memory.zeros((n_rows, outputs), np.float64))


def test_a_table_that_is_not_in_one_piece(cuda):
    table, codes = drawn(20, 4)
    out, expected = memory.zeros((20, 2), np.float64), np.zeros((20, 2))
    cpu_fallback.gather(table[:, :, ::2], codes, None, expected)
    cuda.gather(memory.to_device(table)[:, :, ::2], memory.to_device(codes), None, out)
    assert memory.to_host(out).tolist() == expected.tolist()
