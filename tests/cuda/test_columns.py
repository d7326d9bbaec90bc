"""Columns that a GPU reads together: codes and distinct numbers are those of each column alone, in as many launches."""

from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cpu_fallback
from tests.backends import memory
from tests.strategies import examples

pytestmark = pytest.mark.cuda

DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
# Around four rows of a thread, a block, and all blocks of a launch.
SIZES = (1, 2, 3, 4, 5, 15, 16, 17, 255, 256, 257, 769, 2001)


@pytest.fixture(scope="module")
def columns():
    return import_module("gpu_encode.cuda.columns")


def draw_column(random, dtype, n_rows):
    """Draw neighbouring numbers or some with gaps, anywhere in the range of a type."""
    held, length = np.iinfo(dtype), int(random.choice([1, 2, 5, 90, 120, 700, 40_000]))
    length = min(length, int(held.max) - int(held.min))
    highest = int(held.max) - length
    lowest = [int(held.min), min(max(int(held.min), -3), highest), highest][random.integers(3)]
    chosen = random.permutation(length + 1)[: max(1, length // int(random.choice([1, 3])))]
    return np.array([lowest + int(offset) for offset in random.choice(chosen, n_rows)], dtype)


def place(values, layout):
    """Put a column on the device: in one piece, beginning anywhere, in a matrix, or backwards."""
    if layout == "whole":
        return memory.to_device(values)
    if layout == "shifted":
        return memory.to_device(np.append(values[:1], values))[1:]
    if layout == "backwards":
        return memory.to_device(values[::-1].copy())[::-1]
    return memory.to_device(np.stack([values, values[::-1], values], axis=1))[:, 2]


@examples(60)
@given(data=st.data())
def test_columns_together_equal_columns_alone(data):
    n_rows, seed = data.draw(st.sampled_from(SIZES)), data.draw(st.integers(0, 2**32 - 1))
    random, layouts = np.random.default_rng(seed), st.sampled_from(["whole", "shifted", "backwards", "matrix"])
    values = [draw_column(random, dtype, n_rows) for dtype in data.draw(st.lists(st.sampled_from(DTYPES), min_size=1))]
    there = [place(each, data.draw(layouts)) for each in values]
    keys_by_fold = import_module("gpu_encode.cuda.keys_by_fold")
    with pytest.MonkeyPatch.context() as patch:
        module = import_module("gpu_encode.cuda.columns")
        patch.setattr(module, "ROWS_A_MARK", data.draw(st.sampled_from([1, 16])))
        # Most columns have numbers outside of the range of a sample of seven.
        patch.setattr(module, "GUESSED_FROM", data.draw(st.sampled_from([7, 1 << 14])))
        found = import_module("gpu_encode.cuda").index_columns(there)
    expected = [cpu_fallback.factorize(each) for each in values]
    sizes = [len(distinct) + 1 for _, distinct in expected]
    narrow = keys_by_fold.narrow_codes([codes for codes, _ in found], sizes)
    for number, ((codes, distinct), (own_codes, own)) in enumerate(zip(expected, found, strict=True)):
        assert own.dtype == distinct.dtype
        assert own.tolist() == distinct.tolist()
        assert memory.to_host(keys_by_fold.codes_at(narrow, number)).tolist() == codes.tolist()
        assert memory.to_host(own_codes.written).tolist() == codes.tolist()
        assert memory.to_host(own_codes[1::2]).tolist() == codes[1::2].tolist()


@pytest.mark.parametrize("n_columns", [1, 2, 9, 70])
def test_launches_do_not_depend_on_the_number_of_columns(columns, launched, n_columns):
    values = [draw_column(np.random.default_rng(number), DTYPES[number % 8], 100) for number in range(n_columns)]
    found = columns.index_columns([*map(memory.to_device, values)])
    assert launched == ["measure_columns", "mark_columns"]
    assert [distinct.tolist() for _, distinct in found] == [np.unique(each).tolist() for each in values]


def test_columns_of_long_ranges_are_left_out(columns, launched):
    short, long = np.arange(100), np.arange(100) << 40
    ends = np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max] * 50)
    found = columns.index_columns([*map(memory.to_device, (long, short, ends))])
    assert [each is None for each in found] == [True, False, True]
    assert found[1][1].tolist() == short.tolist()
    launched.clear()
    assert columns.index_columns([memory.to_device(long)]) == [None]
    assert launched == ["measure_columns"]


def test_columns_with_numbers_that_a_sample_lacks_are_measured(columns, launched, monkeypatch):
    monkeypatch.setattr(columns, "GUESSED_FROM", 16)
    alike = np.arange(300) % 40
    others = alike.copy()
    others[1], others[-2] = -200, 500
    found = columns.index_columns([*map(memory.to_device, (alike, others, alike))])
    assert launched == ["measure_columns", "mark_columns"] * 2
    for (codes, distinct), values in zip(found, (alike, others, alike), strict=True):
        expected, places = np.unique(values, return_inverse=True)
        assert distinct.tolist() == expected.tolist()
        assert memory.to_host(codes.written).tolist() == places.tolist()


@pytest.mark.parametrize("given", [[], [np.zeros(0, np.int32)] * 2])
def test_without_columns_or_rows_nothing_is_launched(columns, launched, given):
    assert columns.index_columns([*map(memory.to_device, given)]) == [None] * len(given)
    assert launched == []


@pytest.mark.parametrize("size", [1, 2, 256, 257, 65_536, 65_537])
@pytest.mark.parametrize("n_rows", [1, 4, 17, 300])
def test_codes_take_as_few_bytes_as_they_need(size, n_rows):
    keys_by_fold = import_module("gpu_encode.cuda.keys_by_fold")
    codes = np.random.default_rng(size).integers(-1, size - 1, n_rows).astype(np.int32)
    codes[-1] = size - 2
    held = keys_by_fold.narrow_codes([memory.to_device(codes)] * 2, [size, size])
    for number in (0, 1):
        found = memory.to_host(keys_by_fold.codes_at(held, number))
        assert found.itemsize == (1 if size <= 256 else 2 if size <= 65_536 else 4)
        assert found.tolist() == np.where(codes < 0, size - 1, codes).tolist()
