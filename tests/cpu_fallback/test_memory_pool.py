"""Memory of large arrays, taken again: never while anybody shows it, and never more kept than was said."""

import gc
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpu_fallback import memory
from cpu_fallback.memory_pool import HUGE, MemoryPool, rounded
from gpu_encode import TargetEncoder

SMALL, LARGE = memory.SMALLEST, 3 * HUGE
DTYPES = ["bool", "int8", "int32", "uint64", "float32", "float64", "<M8[ns]"]


@pytest.fixture
def pool(monkeypatch):
    own = MemoryPool(8 * LARGE)
    monkeypatch.setattr(memory, "pool", own)
    return own


def address(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [0, 7, SMALL, (LARGE // 24, 3), (2, 3, SMALL // 4), (0, 5), (SMALL, 1)])
def test_arrays_are_those_of_numpy(pool, shape, dtype, order):
    found, expected = memory.empty(shape, dtype, order), np.empty(shape, dtype, order)
    for name in ("shape", "dtype", "strides", "nbytes"):
        assert getattr(found, name) == getattr(expected, name)
    for name in ("WRITEABLE", "ALIGNED", "C_CONTIGUOUS", "F_CONTIGUOUS"):
        assert found.flags[name] == expected.flags[name]
    zero = memory.zeros(shape, dtype)
    assert np.array_equal(zero, np.zeros(shape, dtype))
    assert zero.dtype == np.dtype(dtype)


def test_objects_are_never_made_of_old_memory(pool):
    memory.empty(LARGE, np.uint8)[:] = 255
    assert memory.empty(LARGE // 8, object)[-1] is None


def test_memory_is_taken_again_when_nobody_shows_it(pool):
    first = memory.empty(LARGE, np.uint8)
    where, tail = address(first), first[5:].view(np.int8)[::2]
    del first
    other = memory.empty(LARGE, np.uint8)
    assert address(other) != where
    del tail
    # A few bytes less are of the same size of block, and of another type.
    assert address(memory.empty(LARGE // 8 - 1, np.float64)) == where


def test_a_block_is_not_given_to_an_array_of_less_than_half(pool):
    arrays = [memory.empty(times * LARGE, np.uint8) for times in (1, 2, 3)]
    where = [address(array) for array in arrays]
    arrays.clear()
    # The smallest that fits; what is far too large stays for others.
    found = [memory.empty(LARGE, np.uint8) for _ in range(3)]
    assert [address(array) for array in found[:2]] == where[:2]
    assert address(found[2]) != where[2]
    assert [len(block) for block in pool.free] == [rounded(3 * LARGE)]


def test_the_columns_of_a_matrix_know_it(pool):
    matrix = memory.empty((LARGE // 16, 2), np.float64, "F")
    assert matrix[:, 0].base is matrix


def test_large_arrays_begin_at_a_huge_page(pool):
    assert address(memory.empty(LARGE, np.uint8)) % HUGE == 0


@given(st.integers(1, 1 << 40))
def test_a_block_is_hardly_larger_than_what_it_holds(n_bytes):
    size = rounded(n_bytes)
    assert n_bytes <= size
    assert size < n_bytes + max(n_bytes / 4, HUGE if n_bytes >= HUGE else 1)
    assert rounded(size) == size


@given(
    st.lists(st.tuples(st.sampled_from([SMALL, SMALL + 9, LARGE, 2 * LARGE]), st.integers(0, 3)), max_size=30),
    st.sampled_from([0, LARGE, 4 * LARGE]),
)
def test_living_arrays_never_share_memory_and_little_is_kept(steps, most):
    own, alive = MemoryPool(most), {}
    before, memory.pool = memory.pool, own
    try:
        for number, (size, slot) in enumerate(steps):
            alive.pop(slot, None)
            alive[slot] = (number % 251, memory.empty(size, np.uint8))
            alive[slot][1][:] = number % 251
            assert sum(map(len, own.free)) <= most
        for number, array in alive.values():
            assert (array == number).all()
        alive.clear()
        assert sum(map(len, own.free)) <= most
    finally:
        memory.pool = before


def test_what_has_been_free_for_longest_goes_first(pool):
    arrays = [memory.empty(LARGE + number * HUGE, np.uint8) for number in range(4)]
    pool.most = sum(rounded(array.nbytes) for array in arrays[2:])
    while arrays:
        del arrays[0]
    assert [len(block) for block in pool.free] == [LARGE + 2 * HUGE, LARGE + 3 * HUGE]
    pool.release()
    assert not pool.free


def test_memory_that_comes_back_in_the_middle_of_a_take_is_kept(pool):
    array = memory.empty(LARGE, np.uint8)
    where, cycle = address(array), [array]
    cycle.append(cycle)
    del array
    with pool.lock:
        # The collector may run at any line.
        del cycle
        gc.collect()
    assert address(memory.empty(LARGE, np.uint8)) == where


def test_threads_take_and_give_back_at_once(pool):
    def work(number):
        for turn in range(200):
            array = memory.empty(SMALL + (turn % 3) * 4096, np.uint8)
            array[:] = number
            if (array != number).any():
                return False
        return True

    with ThreadPoolExecutor(4) as executor:
        assert all(executor.map(work, range(8)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_has_memory_of_its_own():
    script = """
import os, numpy as np
from cpu_fallback import memory, memory_pool
kept = memory.zeros(1 << 22, np.uint8)
memory_pool.pool.lock.acquire()
if os.fork() == 0:
    again = memory.empty(1 << 22, np.uint8)
    again[:], kept[:] = 7, 9
    os._exit(0)
memory_pool.pool.lock.release()
assert os.wait()[1] == 0
assert not kept.any()
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


@pytest.mark.parametrize(("given", "most"), [("", 512 << 20), ("0", 0), ("64", 64 << 20)])
def test_the_environment_says_how_much_is_kept(given, most):
    script = "from cpu_fallback.memory_pool import pool; print(pool.most)"
    environment = os.environ | {"GPU_ENCODE_KEPT_MEMORY": given}
    found = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=True)
    assert int(found.stdout) == most


def test_a_senseless_environment_is_an_error():
    call = [sys.executable, "-c", "import cpu_fallback"]
    environment = os.environ | {"GPU_ENCODE_KEPT_MEMORY": "all"}
    found = subprocess.run(call, env=environment, capture_output=True, check=False)
    assert b"GPU_ENCODE_KEPT_MEMORY must be a number of MiB, 0 or more. Got 'all'." in found.stderr


@pytest.mark.parametrize("scheme", ["mean", 5])
def test_what_lay_in_memory_before_changes_no_bit(pool, scheme):
    generator = np.random.default_rng(0)
    X = generator.integers(0, 60_000, (200_000, 1))
    X[:, 0] *= generator.integers(1, 3, 200_000)
    y, found = generator.random(200_000), []
    for most, byte in ((0, 0), (1 << 30, 0), (1 << 30, 255)):
        pool.most = most
        rows = [memory.empty(size, np.uint8) for size in range(SMALL, 8 << 20, SMALL)]
        for row in rows:
            row[:] = byte
        del row, rows
        encoder = TargetEncoder(device="cpu") if scheme == "mean" else TargetEncoder(cv=scheme, device="cpu")
        trained = encoder.fit_transform(X, y)
        found.append((trained.tobytes(), encoder.transform(X).tobytes(), encoder.encodings_[0].tobytes()))
        assert (sum(map(len, pool.free)) > 0) == (most > 0)
    assert found[0] == found[1] == found[2]
