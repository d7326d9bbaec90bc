"""The ends of whole numbers, and the numbers that occur: any type, number of rows, and first address in memory."""

from importlib import import_module

import numpy as np
import pytest

from tests.backends import memory

pytestmark = pytest.mark.cuda

DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
# Sizes around a vector of each width, around one step of the grid (4 vectors a thread), and around several.
SIZES = (1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 33, 3071, 3072, 3073, 12_289, 50_001)


@pytest.fixture(scope="module")
def categories():
    return import_module("gpu_encode.cuda.categories")


def draw(dtype, size, offset):
    """Return numbers of a type's full range that begin at any address, on the host and on the device."""
    ends = np.iinfo(dtype)
    numbers = np.random.default_rng(size).integers(ends.min, ends.max, size + offset, dtype, endpoint=True)
    return numbers[offset:], memory.to_device(numbers)[offset:]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("offset", [0, 1, 3])
def test_ends_of_numbers(categories, dtype, offset):
    for size in SIZES:
        numbers, there = draw(dtype, size, offset)
        assert categories.ends_of(there) == (int(numbers.min()), int(numbers.max()))


@pytest.mark.parametrize("at", [0, 1, 4, 37, -5, -1])
@pytest.mark.parametrize("dtype", ["int8", "int32", "uint64"])
def test_one_end_anywhere_is_found(categories, dtype, at):
    numbers = np.full(101, 7, dtype)
    for end in (3, 120):
        numbers[at] = end
        assert categories.ends_of(memory.to_device(numbers)) == (min(end, 7), max(end, 7))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("offset", [0, 1, 3])
def test_numbers_that_occur_are_marked(categories, dtype, offset):
    lowest, length = (0 if dtype.startswith("u") else -60), 100
    for size in SIZES[:-2]:
        numbers = np.random.default_rng(size).integers(lowest, lowest + length, size + offset).astype(dtype)
        codes, distinct = categories.index_range(memory.to_device(numbers)[offset:], lowest, length)
        expected, places = np.unique(numbers[offset:], return_inverse=True)
        assert np.array_equal(memory.to_host(distinct), expected)
        assert np.array_equal(memory.to_host(codes.written), places)


@pytest.mark.parametrize("more", [-40, -1, 0, 1, 40])
def test_marks_fill_the_memory_of_a_block_or_lie_elsewhere(categories, monkeypatch, more):
    raw, launched = import_module("gpu_encode.cuda.raw"), []
    monkeypatch.setattr(categories, "ROWS_A_MARK", 0)
    run_over = raw.run_over
    monkeypatch.setattr(
        raw, "run_over", lambda name, *given, **more: launched.append(name) or run_over(name, *given, **more)
    )
    length = 8 * raw.table_bytes() - 1 + more
    random = np.random.default_rng(length)
    numbers = np.append(random.integers(-7, length - 7, 30_001), [-7, length - 8]).astype(np.int32)
    codes, distinct = categories.index_range(memory.to_device(numbers), -7, length)
    expected, places = np.unique(numbers, return_inverse=True)
    assert np.array_equal(memory.to_host(distinct), expected)
    assert np.array_equal(memory.to_host(codes.written), places)
    assert launched == ["mark_numbers_by_block" if more <= 0 else "mark_numbers"]


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("at", [0, 2, 50, -3, -1])
@pytest.mark.parametrize("outside", [-1, 100])
def test_one_number_outside_of_the_range_is_seen(categories, monkeypatch, at, outside, few):
    monkeypatch.setattr(categories, "ROWS_A_MARK", 1000 if few else 0)
    numbers = np.arange(203, dtype=np.int32) % 100
    assert categories.index_range(memory.to_device(numbers), 0, 100) is not None
    numbers[at] = outside
    assert categories.index_range(memory.to_device(numbers), 0, 100) is None
