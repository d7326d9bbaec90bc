"""Look-ups of rows, compared with the definition: folds, sizes, views and entries."""

from importlib import import_module

import numpy as np
import pytest

import cpu_fallback
from cpu_fallback.row_numbers import FoldPattern
from tests.backends import memory

pytestmark = [pytest.mark.cuda, pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")]

ORDERS = ("random", "interleaved", "contiguous")
# Sizes around a vector, around one step of the grid, and around several.
SIZES = [*range(10), 15, 16, 17, 47, 48, 49, 97, 150]


def make_table(n_lines, n_folds, n_outputs, dtype):
    """Return entries that all differ, among them a NaN and a negative zero."""
    size = n_lines * n_folds * n_outputs
    table = np.arange(size).astype(dtype)
    if np.issubdtype(dtype, np.floating) and size > 2:
        table[1:3] = np.nan, -0.0
    return table.reshape(n_lines, n_folds, n_outputs)


def draw_codes(n_rows, n_lines):
    """Return codes, some of them missing or unknown."""
    return np.random.default_rng(n_rows).integers(-2, n_lines - 2, n_rows).astype(np.int32)


def place_out(n_rows, n_outputs, dtype, order, offset):
    """Return memory for an output that begins at any address, and the memory around it."""
    around = memory.to_device(np.full(n_rows * n_outputs + offset + 5, 7, dtype))
    piece = around[offset : offset + n_rows * n_outputs]
    return around, (piece.reshape(n_outputs, n_rows).T if order == "F" else piece.reshape(n_rows, n_outputs))


def place_view(array, offset):
    """Put an array on the device, some items after an aligned address."""
    return memory.to_device(np.concatenate([np.zeros(offset, array.dtype), array]))[offset:]


def check(gathering, table, codes, folds, order="F", offsets=(0, 0, 0)):
    """Compare all bits; `offsets` holds those of the codes, the given folds and the output."""
    n_rows, n_outputs, offset = len(codes), table.shape[2], offsets[2]
    expected = np.zeros((n_rows, n_outputs), table.dtype)
    cpu_fallback.gather(table, codes, folds, expected)
    around, out = place_out(n_rows, n_outputs, table.dtype, order, offset)
    on_device = place_view(folds, offsets[1]) if isinstance(folds, np.ndarray) else folds
    gathering.gather(memory.to_device(table), place_view(codes, offsets[0]), on_device, out)
    assert np.ascontiguousarray(memory.to_host(out)).tobytes() == expected.tobytes()
    rest = np.delete(memory.to_host(around), np.s_[offset : offset + n_rows * n_outputs])
    assert np.array_equal(rest, np.full(offset + 5, 7, table.dtype))


def folds_of(kind, n_rows, n_folds, first_row=0):
    if kind == "given":
        return (np.arange(n_rows) * 5 % 7 % n_folds).astype(np.int32)
    return kind and FoldPattern(kind, n_folds, 5, n_rows=first_row + n_rows, first_row=first_row)


@pytest.mark.parametrize("kind", [*ORDERS, "given", None])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_sizes(gathering, kind, dtype, n_outputs):
    n_folds = 1 if kind is None else 3
    for n_rows in SIZES:
        table = make_table(9, n_folds, n_outputs, dtype)
        check(gathering, table, draw_codes(n_rows, 9), folds_of(kind, n_rows, n_folds, 40))


@pytest.mark.parametrize("kind", ORDERS)
@pytest.mark.parametrize("n_folds", [1, 5, 1000])
@pytest.mark.parametrize("first_row", [0, 1023 * 5 - 2, 2**32 - 7, 2**62])
def test_rows_far_on(gathering, kind, n_folds, first_row):
    table = make_table(4, n_folds, 1, np.float64)
    check(gathering, table, draw_codes(61, 4), folds_of(kind, 61, n_folds, first_row))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("codes", range(4))
@pytest.mark.parametrize("out", range(4))
def test_views_that_begin_between_vectors(gathering, dtype, codes, out):
    # A vector read or written at a misaligned address would stop the program here, as it does a GPU.
    for n_rows in (1, 2, 3, 4, 7, 61):
        for kind, folds in [("given", 0), ("given", codes), ("given", 3), ("random", 0), ("contiguous", 0)]:
            table = make_table(9, 4, 1, dtype)
            offsets = codes, folds, out
            check(gathering, table, draw_codes(n_rows, 9), folds_of(kind, n_rows, 4, 1), offsets=offsets)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_rows", [1, 4, 6, 50, 61])
@pytest.mark.parametrize("n_outputs", [2, 4, 5])
def test_several_outputs(gathering, order, dtype, n_rows, n_outputs):
    table = make_table(9, 4, n_outputs, dtype)
    for offset in range(4):
        check(gathering, table, draw_codes(n_rows, 9), folds_of("random", n_rows, 4, 9), order, (0, 0, offset))


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8])
def test_codes_of_any_type(gathering, dtype):
    codes = np.arange(61).astype(dtype) % 9
    check(gathering, make_table(9, 1, 1, np.float32), codes, None)


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u4", "f2", "f4", "f8", "?"])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_entries_of_any_type(gathering, dtype, n_outputs):
    check(gathering, make_table(9, 2, n_outputs, np.dtype(dtype)), draw_codes(30, 9), folds_of("random", 30, 2))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("begin", ["lowest", "middle", "highest"])
@pytest.mark.parametrize("n", [1, 2, 90])
def test_neighbours_are_looked_up_without_an_index(gathering, monkeypatch, dtype, begin, n):
    ends, categories = np.iinfo(dtype), import_module("gpu_encode.cuda.categories")
    monkeypatch.setattr(categories, "index_of", None)
    lowest = {"lowest": ends.min, "middle": (int(ends.min) + int(ends.max)) // 2, "highest": int(ends.max) - n + 1}[
        begin
    ]
    wide = "int64" if ends.min else "uint64"
    known = np.arange(n, dtype=wide) + np.array(lowest, wide)
    random = np.random.default_rng(n)
    values = np.concatenate([random.choice(known, 300), np.array([ends.min, ends.max, 0, known[0], known[-1]], wide)])
    # Numbers just outside of the range, if the type has them.
    outside = [int(known[0]) - 1, int(known[-1]) + 1]
    values = np.append(values, np.array([each for each in outside if ends.min <= each <= ends.max], wide)).astype(dtype)
    table = random.standard_normal((n + 2, 1, 1)).astype(np.float32)
    out, expected = memory.to_device(np.zeros((len(values), 1), np.float32)), np.zeros((len(values), 1), np.float32)
    gathering.gather_numbers(memory.to_device(table), memory.to_device(values), known.astype(wide), out)
    cpu_fallback.gather_numbers(table, values.astype(wide), known, expected)
    assert np.array_equal(memory.to_host(out), expected)


def test_numbers_with_one_between_them_need_an_index(gathering, monkeypatch):
    categories, made = import_module("gpu_encode.cuda.categories"), []
    index_of = categories.index_of
    monkeypatch.setattr(categories, "index_of", lambda *given: made.append(given) or index_of(*given))
    for known in (np.array([3, 4, 6, 7]), np.array([3, 5])):
        values, table = np.arange(9), np.arange(1.0, len(known) + 3).reshape(-1, 1, 1)
        out, expected = memory.to_device(np.zeros((9, 1))), np.zeros((9, 1))
        gathering.gather_numbers(memory.to_device(table), memory.to_device(values), known, out)
        cpu_fallback.gather_numbers(table, values, known, expected)
        assert np.array_equal(memory.to_host(out), expected)
    assert len(made) == 2
